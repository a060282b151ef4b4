"""The learning rate over time (section 5.3, equation 3)."""

from collections.abc import Callable
from numbers import Real

from glassformer.config import check_arguments
from glassformer.support.errors import check_kind

__all__ = ["NoamSchedule", "noam_schedule"]

NoamSchedule = Callable[..., float]
"""The learning rate of an update, with the keywords of :func:`noam_schedule`."""


def noam_schedule(
    update: int | float, *, d_model: int, warmup: int = 4000, factor: float = 1.0
) -> float:
    r"""Equation 3: :math:`d_{model}^{-0.5}\min(u^{-0.5}, u\,w^{-1.5})`, times ``factor``.

    :math:`u` is ``update``, the paper's *step_num*, from 1; :math:`w` is ``warmup``. The rate rises
    for ``warmup`` updates, then falls with the inverse square root of the update.

    >>> f"{noam_schedule(4000, d_model=512):.6f}"
    '0.000699'
    """
    check_arguments("noam_schedule", d_model=d_model, warmup=warmup)
    for name, value in (("update", update), ("factor", factor)):
        check_kind(value, Real, wants=f"noam_schedule takes a number as {name}")
    if update < 1:
        raise ValueError(f"noam_schedule: updates count from 1, got {update}")
    return factor * d_model**-0.5 * min(update**-0.5, update * warmup**-1.5)
