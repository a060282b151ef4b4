"""Refuses to export a model with own parts, which no other program can compute."""

from glassformer.bundle import Bundle
from glassformer.model.fast.stock import check_stock
from glassformer.support.errors import UsageError

__all__ = ["require_stock"]


def require_stock(bundle: Bundle, program: str) -> None:
    """Raise UsageError if the model has own parts, or a part changed by hand."""
    for part, name in bundle.parts.items():
        raise UsageError(
            f"the model has your own {part} {name}, which {program} does not know: export a model"
            " without own parts"
        )
    try:
        check_stock(bundle.model, program)
    except TypeError as error:
        raise UsageError(f"{error}: export a model without own parts") from error
