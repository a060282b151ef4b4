"""What an importer gives back, for whichever program."""

from dataclasses import dataclass

from glassformer.bundle import Bundle

__all__ = ["NEVER", "Imported"]

NEVER = -1e4
"""The bias of a symbol that is added: its probability is 0, and half precision can hold it."""


@dataclass(frozen=True)
class Imported:
    """A translator of others as a bundle, its family, and notes for a person to read."""

    bundle: Bundle
    family: str
    notes: tuple[str, ...] = ()
