"""Chooses the importer for a foreign translator by the files in it."""

from collections.abc import Callable
from pathlib import Path, PurePosixPath

import torch

from glassformer.bundle import load_bundle, save_bundle
from glassformer.support.errors import InputError
from glassformer.support.files import new_directory
from glassformer.support.strangers import member_names
from glassformer.tools.interchange.importing import Imported

__all__ = ["import_bundle", "importer_of"]

_EXPECTED = "a directory of transformers or CTranslate2, or a package of Argos Translate"


def import_bundle(source: Path, directory: Path, **languages: str | None) -> Imported:
    """Write the translator in ``source`` as the new bundle ``directory``, and load the bundle.

    ``languages``: ``source_language`` and ``target_language``, or None. An error leaves no files
    behind.

    Raises:
        InputError: no importer reads ``source``, or the files are faulty.
        UsageError: a language is missing or unknown, or ``directory`` is not empty.
    """
    with new_directory(directory) as place:
        imported = importer_of(source)(source, **languages)
        save_bundle(imported.bundle, place)
        family, notes = imported.family, imported.notes
        del imported  # the memory of one model is enough
        try:
            bundle = load_bundle(place)
            ids = bundle.model.config
            logits = bundle.model(torch.tensor([[ids.unk_id]]), torch.tensor([[ids.bos_id]]))
            if not torch.isfinite(logits).all():
                raise InputError("its numbers overflow: the weights are damaged: copy them anew")
            return Imported(bundle, family, notes)
        except InputError as error:
            reason = str(error).replace(str(place), str(directory))
            raise InputError(f"{source}: the files make no bundle ({reason})") from error


def importer_of(source: Path) -> Callable[..., Imported]:
    """The function that reads ``source``, a file or directory of another program."""
    if not source.exists():
        at_hub = len(source.parts) == 2 and not source.is_absolute()
        remedy = f"; `hf download {source} --local-dir {source.name}` fetches it" if at_hub else ""
        raise InputError(
            f"{source}: no such file or directory, and import downloads nothing: give {_EXPECTED}"
            f"{remedy}"
        )
    if source.is_dir():
        names = {path.name for path in source.iterdir()}
    else:
        names = {PurePosixPath(name).name for name in member_names(source)}
    if "metadata.json" in names:
        from glassformer.tools.interchange.argos.package_in import import_argos

        return import_argos
    if "model.bin" in names:
        from glassformer.tools.interchange.ctranslate2.reading.load import import_ctranslate2_model

        return import_ctranslate2_model
    if "config.json" not in names and any(name.endswith(".npz") for name in {source.name, *names}):
        raise InputError(
            f"{source} is a model in Marian's format: import reads OPUS-MT's models in the format"
            " of transformers, as Hugging Face has them"
        )
    if source.is_file():
        raise InputError(f"{source}: expected {_EXPECTED}")
    from glassformer.tools.interchange.hugging_face.load import import_hugging_face

    return import_hugging_face
