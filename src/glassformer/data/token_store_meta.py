"""What a packed corpus says of itself: ``meta.json``, with a version of the format."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from glassformer.errors import InputError

__all__ = ["FORMAT_VERSION", "PackedMeta", "read_meta", "write_meta"]

FORMAT_VERSION = 1


@dataclass(frozen=True)
class PackedMeta:
    """What ``meta.json`` says of a packed corpus.

    ``dropped_empty`` and ``dropped_long`` count the pairs left out because a side was blank, or
    had more than ``max_tokens`` subwords. ``symbols`` holds the ids that a batch adds: ``source``
    and ``target`` each with ``pad``, ``bos``, ``eos``. ``tokenizers`` holds their fingerprints.
    """

    format_version: int
    pairs: int
    dropped_empty: int
    dropped_long: int
    max_tokens: int
    dtype: dict[str, str]
    tokens: dict[str, int]
    symbols: dict[str, dict[str, int]]
    tokenizers: dict[str, str]
    content_hash: str


def write_meta(meta: PackedMeta, directory: Path) -> None:
    """Write ``meta.json`` into ``directory``."""
    (directory / "meta.json").write_text(json.dumps(asdict(meta), indent=2) + "\n")


def read_meta(directory: Path) -> PackedMeta:
    """Read ``meta.json``; :class:`InputError` where it is missing, damaged or of another format."""
    path = directory / "meta.json"
    try:
        fields = json.loads(path.read_text())
        if fields["format_version"] == FORMAT_VERSION:
            names = PackedMeta.__dataclass_fields__  # earlier versions wrote more
            return PackedMeta(**{name: fields[name] for name in names})
    except OSError as error:
        raise InputError(
            f"{directory}: not a packed corpus (meta.json: {error.strerror}); pack it again"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise InputError(
            f"{path}: not the description of a packed corpus; delete the directory to pack it again"
        ) from None
    raise InputError(
        f"{path}: format_version {fields['format_version']}, this program reads {FORMAT_VERSION}; "
        "delete the directory to pack the corpus again"
    )
