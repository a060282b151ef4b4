"""Grouped queries (Ainslie et al. 2023): groups of heads share keys and values."""

from torch import Tensor

from glassformer.model.attention import scaled_dot_product_attention


def grouped_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Attention with keys and values (batch, groups, k_len, …) for more heads than groups."""
    heads_in_group = query.size(1) // key.size(1)
    key = key.repeat_interleave(heads_in_group, dim=1)
    value = value.repeat_interleave(heads_in_group, dim=1)
    output, _ = scaled_dot_product_attention(query, key, value, mask)
    return output


def pooled(weight: Tensor, heads: int, groups: int) -> Tensor:
    """The mean of the projections of each group's heads (section 2.1)."""
    by_head = weight.unflatten(0, (groups, heads // groups, -1))
    return by_head.mean(dim=1).flatten(0, 1)
