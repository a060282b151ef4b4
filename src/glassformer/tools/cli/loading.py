"""The options by which several commands load a translator, and the translator itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from pydantic import Field

from glassformer.config import LARGE, EngineName, Options

if TYPE_CHECKING:
    from glassformer.parts import Parts
    from glassformer.translator import Translator

__all__ = ["LoadingOptions", "parts_of", "wait_asleep"]

_OWN_PARTS = "glassformer.tools.cli.own_translator:with_parts"  # with all of the lessons


def wait_asleep() -> None:
    """Let torch's threads sleep while they wait; call it before the first import of torch.

    Threads that wait in a loop make a server many times slower on a busy machine.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def parts_of(bundle: Path, folder: Path | None, stock: Parts) -> AbstractContextManager[Parts]:
    """A context with the parts that run a bundle: its own parts if any, or else ``stock``.

    The code of own parts comes from ``folder``, or from the package if ``learn train`` made the
    bundle. Only own parts import the lessons.
    """
    from glassformer.bundle import PARTS_RECORD

    if folder is None and not (bundle / PARTS_RECORD).exists():
        return nullcontext(stock)
    with_parts: Callable[..., AbstractContextManager[Parts]] = resolve_name(_OWN_PARTS)
    return with_parts(bundle, folder, stock)


class LoadingOptions(Options):
    """The languages of a multilingual model, and the engine and machine that run the model."""

    source_language: str | None = None
    """Source language of a multilingual model, such as en. None means the choice of 'import'."""
    target_language: str | None = None
    """Target language of a multilingual model. None means the choice of 'import'."""
    engine: EngineName = "auto"
    """Engine that translates. ctranslate2 (extra ctranslate2) gives equal translations faster. auto
    means ctranslate2 on a CPU, or torch if ctranslate2 is absent or lacks what the options need."""
    quantization: str = "float32"
    """Number type of the weights. Both engines take float32. ctranslate2 also takes int8, which is
    faster and changes some translations a little. torch also takes bfloat16, for machines
    with bfloat16 matrix units."""
    verify: bool = True
    """Compare the checksums of the bundle's files."""
    device: str = "auto"
    """Device of the model, which is cpu, cuda or auto."""
    threads: int = Field(0, ge=0, le=1024)
    """Number of CPU threads. 0 means all threads."""

    def set_threads(self) -> None:
        """Let torch compute with ``threads`` threads; CTranslate2 then starts as many."""
        import torch

        if self.threads:
            torch.set_num_threads(self.threads)

    def load(self, directory: Path, parts: Parts | None = None) -> Translator:
        """The translator in ``directory``; ``parts=None`` stands for FAST.

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
        """The translators by their directories; the call sets torch's threads for a server.

        With ``threads=0``, torch gets one thread if all models are small, or else all threads.
        """
        import torch

        from glassformer.support.threads import torch_threads

        self.set_threads()
        # If torch loaded with threads of its own, it would later have more threads than the
        # machine has cores, and translation would run at half the speed.
        with torch_threads(1):
            translators = {str(path): self.load(path, parts=parts) for path in directories}
        small = all(
            each.engine_name == "torch" and each.model.config.d_model < LARGE
            for each in translators.values()
        )
        if small and not self.threads:
            torch.set_num_threads(1)
        return translators
