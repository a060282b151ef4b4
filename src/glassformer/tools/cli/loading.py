"""The options by which several commands load a translator, and the translator itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from pydantic import Field

from glassformer.config import EngineName, Options

if TYPE_CHECKING:
    from glassformer.parts import Parts
    from glassformer.translator import Translator

__all__ = ["LoadingOptions", "parts_of", "wait_asleep"]

_OWN_PARTS = "glassformer.tools.cli.own_translator:with_parts"  # with all of the lessons
_LARGE = 512  # d_model: the products of smaller models are quicker than threads that wait


def wait_asleep() -> None:
    """Let torch's threads wait for each other asleep; torch reads it at its first import.

    Awake, they take the cores from other programs: on a busy machine a server is many times slower.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def parts_of(bundle: Path, folder: Path | None, stock: Parts) -> AbstractContextManager[Parts]:
    """The parts that run a bundle: ``stock``, or own ones for as long as the block lasts.

    The code of own parts comes from ``folder``, or from the package if ``learn train`` made the
    bundle. Only these two cases import the lessons.
    """
    from glassformer.bundle import PARTS_RECORD

    if folder is None and not (bundle / PARTS_RECORD).exists():
        return nullcontext(stock)
    with_parts: Callable[..., AbstractContextManager[Parts]] = resolve_name(_OWN_PARTS)
    return with_parts(bundle, folder, stock)


class LoadingOptions(Options):
    """The languages of a multilingual model; the engine and machine that run the translator."""

    source_language: str | None = None
    """Source language of a multilingual model, such as en. None: the language of the import."""
    target_language: str | None = None
    """Target language of a multilingual model. None: the language of the import."""
    engine: EngineName = "torch"
    """Engine that translates. ctranslate2: the same translations, faster (extra ctranslate2)."""
    quantization: str = "float32"
    """Number type of the weights: float32. With ctranslate2 also int8: faster, with small
    differences. With torch also bfloat16, for machines with matrix units for it."""
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

    def load(self, directory: Path, parts: Parts | None = None) -> Translator:
        """The translator in ``directory``; without ``parts``, of the fast ones.

        Raises:
            UsageError: an option does not fit the bundle or the machine.
            InputError: the directory is no bundle, or its files are damaged.
        """
        from glassformer.parts import FAST
        from glassformer.translator import Translator

        return Translator.load(
            directory,
            device=self.device,
            languages=(self.source_language, self.target_language),
            verify=self.verify,
            engine=self.engine,
            quantization=self.quantization,
            parts=parts or FAST,
        )

    def load_to_serve(
        self, directories: Iterable[Path], parts: Parts | None = None
    ) -> dict[str, Translator]:
        """The translators by their directories; the threads are set for a server.

        Without ``threads``, torch has one if all models are small, or else all.
        """
        import torch

        from glassformer.support.threads import torch_threads

        self.set_threads()
        # This thread only loads. Threads of its own, beside the translating ones, are more than the
        # cores: all of them then wait for each other asleep, at half the speed.
        with torch_threads(1):
            translators = {str(path): self.load(path, parts=parts) for path in directories}
        small = all(each.model.config.d_model < _LARGE for each in translators.values())
        if self.engine == "torch" and small and not self.threads:
            torch.set_num_threads(1)
        return translators
