"""The learning rate over time (section 5.3, equation 3)."""

__all__ = ["learning_rate", "noam_schedule"]


def noam_schedule(update: int, *, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    r"""Equation 3: :math:`d_{model}^{-0.5}\min(u^{-0.5}, u\,w^{-1.5})`, times ``factor``.

    It rises for ``warmup`` updates, then falls with the square root. Updates count from 1.

    >>> f"{noam_schedule(4000, d_model=512):.6f}"
    '0.000699'
    """
    if update < 1 or warmup < 1:
        raise ValueError(f"update and warmup count from 1, got {update} and {warmup}")
    return factor * d_model**-0.5 * min(update**-0.5, update * warmup**-1.5)


def learning_rate(
    update: int, *, updates: int, d_model: int, warmup: int, factor: float, anneal: float
) -> float:
    """:func:`noam_schedule`, brought down to zero in a straight line over the last share.

    Departure from the paper: over the last ``anneal`` of all ``updates`` the rate goes to zero,
    because a run of a known length ends better when its last steps are small. With ``anneal=0``
    it is the paper's.

    >>> learning_rate(100, updates=100, d_model=512, warmup=10, factor=1.0, anneal=0.5) < 1e-4
    True
    """
    rate = noam_schedule(update, d_model=d_model, warmup=warmup, factor=factor)
    left = (updates - update + 1) / max(anneal * updates, 1.0)
    return rate * min(1.0, left)
