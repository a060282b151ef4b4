"""The options by which several commands load a translator, and the translator itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from glassformer.config import Options

if TYPE_CHECKING:
    from glassformer.parts import Parts
    from glassformer.translator import Translator

__all__ = ["LoadingOptions"]


class LoadingOptions(Options):
    """The pair of languages of a multilingual model, and the machine that runs the translator."""

    source_language: str | None = None
    """Source language of a multilingual model, such as en. None: the language of the import."""
    target_language: str | None = None
    """Target language of a multilingual model. None: the language of the import."""
    verify: bool = True
    """Compare the files of the bundle with their checksums."""
    device: str = "auto"
    """Device of the model: cpu, cuda, or auto."""
    threads: int = Field(0, ge=0, le=1024)
    """Number of CPU threads. 0: all."""

    def set_threads(self) -> None:
        """Let torch compute with so many threads; CTranslate2 starts with as many."""
        import torch

        if self.threads:
            torch.set_num_threads(self.threads)

    def load(
        self,
        directory: Path,
        *,
        engine: str = "torch",
        quantization: str = "float32",
        parts: Parts | None = None,
    ) -> Translator:
        """The translator in ``directory``; without ``parts``, of the fast ones.

        Raises:
            UsageError: an option does not fit the bundle or the machine.
            InputError: the directory is no bundle, or its files are damaged.
        """
        from glassformer.bundle import load_bundle
        from glassformer.devices import device_of
        from glassformer.parts import FAST
        from glassformer.translator import Translator

        parts = parts or FAST
        bundle = load_bundle(
            directory, device=device_of(self.device), verify=self.verify, parts=parts
        )
        bundle = bundle.between(self.source_language, self.target_language)
        return Translator.of(
            bundle, directory, engine=engine, quantization=quantization, parts=parts
        )
