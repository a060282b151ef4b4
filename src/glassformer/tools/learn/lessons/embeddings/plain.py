"""The Transformer without its stacks: the two ends, which share a table."""

from torch import Tensor, nn

from glassformer.model.embeddings import ScaledEmbedding


class Transformer(nn.Module):
    """The target embedding, and the projection with the same table (section 3.4)."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.target_embedding = ScaledEmbedding(vocab_size, d_model)

    def project(self, states: Tensor) -> Tensor:
        """The logits: each state's dot product with each row of the table."""
        return states @ self.target_embedding.weight.T
