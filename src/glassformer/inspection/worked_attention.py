"""Equation 1 in numbers, for one's own query, keys and values."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.model.attention import scaled_dot_product_attention

__all__ = ["worked_attention"]


def worked_attention(
    query: Float[Tensor, " d_k"],
    keys: Float[Tensor, "k_len d_k"],
    values: Float[Tensor, "k_len d_v"],
    mask: Bool[Tensor, " k_len"] | None = None,
) -> str:
    """Each product and sum of scaled dot-product attention for one query (section 3.2.1).

    ``mask`` is True for the keys that the query may attend to; None: for all.

    >>> q = torch.tensor([1.0, 0.0])
    >>> print(worked_attention(q, torch.eye(2), torch.tensor([[10.0], [20.0]])))
    key 0: 1·1 + 0·0 = 1; divided by √2: 0.707; exp: 2.03; weight 2.03 / 3.03 = 0.67
    key 1: 1·0 + 0·1 = 0; divided by √2: 0; exp: 1; weight 1 / 3.03 = 0.33
    output 0: 0.67·10 + 0.33·20 = 13.3
    """
    row = None if mask is None else mask[None]  # (q_len, k_len)
    _, weights = scaled_dot_product_attention(query[None], keys, values, row)
    weights = weights.flatten()
    scores = keys @ query
    scaled = scores / len(query) ** 0.5
    visible = torch.ones(len(keys), dtype=torch.bool) if mask is None else mask
    exponentials = scaled.exp() * visible
    total = _number(exponentials.sum())
    lines = []
    for place, key in enumerate(keys):
        products = f"key {place}: {_products(query, key)} = {_number(scores[place])}"
        if not visible[place]:
            lines.append(f"{products}; hidden by the mask: weight 0")
            continue
        exponential = _number(exponentials[place])
        lines.append(
            f"{products}; divided by √{len(query)}: {_number(scaled[place])}; exp: {exponential};"
            f" weight {exponential} / {total} = {_number(weights[place])}"
        )
    for place, column in enumerate(values.T):
        result = _number(weights @ column)
        lines.append(f"output {place}: {_products(weights, column)} = {result}")
    return "\n".join(lines)


def _products(numbers: Tensor, others: Tensor) -> str:
    pairs = zip(numbers, others, strict=True)
    return " + ".join(f"{_number(first)}·{_number(second)}" for first, second in pairs)


def _number(value: Tensor) -> str:
    return f"{float(value):.3g}"
