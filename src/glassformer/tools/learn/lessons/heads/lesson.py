# %% [markdown]
# # Many heads
#
# > "Multi-head attention allows the model to jointly attend to information
# > from different representation subspaces at different positions. With a
# > single attention head, averaging inhibits this." (section 3.2.2)
#
# One softmax gives each query one set of weights: it reads one mixture of the
# values. A verb that needs both its subject and its object reads their mean.
# With 8 heads a query has 8 sets of weights. Each head works on its own
# d_head = d_model / heads features, so that all heads together cost about as
# much as one wide head.
#
#     MultiHead(Q, K, V) = Concat(head_1, …, head_h) Wᴼ
#     head_i = Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V)
#
# No loop runs over the heads. One matrix holds the projections of all heads;
# split makes an axis of the heads, attention treats it as it treats the batch,
# and merge puts the heads side by side:
#
#     query                                (batch 2, q_len 5, d_model 512)
#     key       value has the same shape   (batch 2, k_len 7, d_model 512)
#     projected query W^Q, all heads       (batch 2, q_len 5, d_model 512)
#     queries   split(projected)        (batch 2, heads 8, q_len 5, d_head 64)
#     keys      split(key W^K)          (batch 2, heads 8, k_len 7, d_head 64)
#     values    split(value W^V)        (batch 2, heads 8, k_len 7, d_head 64)
#     scores    queries · keysᵀ / √d_head  (batch 2, heads 8, q_len 5, k_len 7)
#     weights   softmax(scores) over k_len (batch 2, heads 8, q_len 5, k_len 7)
#     heads     weights · values        (batch 2, heads 8, q_len 5, d_head 64)
#     joint     merge(heads)               (batch 2, q_len 5, d_model 512)
#     output    joint Wᴼ                   (batch 2, q_len 5, d_model 512)
#
# A reshape never moves a number: it only draws the borders of the axes anew.
# To bring the heads before the positions, an exchange of two axes has to
# follow it.
#
# A call with the query alone is self-attention: the query is the key and the
# value too.

# %%
import torch
from torch import Tensor, nn

# Of lesson 1; it returns (output, weights).
from glassformer import scaled_dot_product_attention


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(d_model, d_model)  # the Wᵢ^Q side by side
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)  # Wᴼ

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        key = query if key is None else key
        value = key if value is None else value
        keys, values = self.project_keys_and_values(key, value)
        return self.attend(query, keys, values, mask)

    def split(self, joint: Tensor) -> Tensor:
        """Split the last axis into heads, and bring them before the positions.

        joint (batch, len, d_model) -> heads (batch, heads, len, d_head)

        2 heads, joint [[[1, 2, 3, 4],
                         [5, 6, 7, 8]]] -> [[[[1, 2], [5, 6]],
                                             [[3, 4], [7, 8]]]]
        """
        # Two lines: reshape to (batch, len, heads, d_head); exchange two axes.
        raise NotImplementedError

    def merge(self, heads: Tensor) -> Tensor:
        """Put the heads side by side again: merge(split(joint)) is joint.

        heads (batch, heads, len, d_head) -> joint (batch, len, d_model)
        """
        # One line. Tensor.flatten joins neighbouring axes.
        raise NotImplementedError

    def project_keys_and_values(
        self, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of each head.

        key, value (batch, k_len, d_model)
        -> keys, values (batch, heads, k_len, d_head)

        A translator calls it once for each sentence, and keeps the result for
        all its steps.
        """
        # One line, of self.key, self.value and your split.
        raise NotImplementedError

    def attend(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
    ) -> Tensor:
        """The output of the attention of all heads.

        query (batch, q_len, d_model),
        keys and values (batch, heads, k_len, d_head)
        -> output (batch, q_len, d_model)
        """
        # Three lines: split the projected query; attend; merge and project.
        raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. How many parameters has MultiHeadAttention(512, 8)? And
#    MultiHeadAttention(512, 1)?
# 2. Exchange two heads: in self.query, self.key and self.value their rows, in
#    self.output their columns. What changes in the output?
