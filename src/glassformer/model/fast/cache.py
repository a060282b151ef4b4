"""The fast decoder's key-value cache.

The readable version is ``DecoderState`` in ``model/cache.py``. A test checks that both give equal
logits (tests/model/fast/test_decoder.py). This cache differs in two ways:

- Rows come in groups: the ``width`` unfinished targets of one sentence lie side by side, and share
  the memory's keys and values.
- A selection waits for the next step. That step copies each key once, into a tensor with one place
  more; the readable version copies each key twice.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["GroupedState"]


@dataclass(frozen=True)
class GroupedState:
    """The cache of all decoder blocks, as a value: a step returns a new state.

    ``selected`` are the rows of ``blocks`` that this state consists of; None means all of them.
    """

    blocks: list[Float[Tensor, "rows 2 length d_model"]]  # keys first
    memory: list[Float[Tensor, "sentences 2 src_len d_model"]]  # keys first
    memory_mask: Float[Tensor, "sentences 1 1 src_len"] | None
    """Added to the scores. None if no source is padded."""
    width: int = 1
    selected: Int[Tensor, " selected"] | None = None

    @property
    def sentences(self) -> int:
        return self.memory[0].size(0)

    @property
    def rows(self) -> int:
        return self.sentences * self.width

    @property
    def length(self) -> int:
        """The number of target tokens read so far."""
        return self.blocks[0].size(2)

    def select(self, rows: Int[Tensor, " selected"]) -> "GroupedState":
        """The state of the given rows; each row is one sentence, as in the readable version."""
        return self.select_beams(rows[:, None])

    def select_beams(
        self, rows: Int[Tensor, "sentences width"], *, all_stay: bool = False
    ) -> "GroupedState":
        """The state of the given rows. Sentence n has line n of the table ``rows``.

        ``all_stay`` says that each sentence keeps its line, so that the memory stays as it is.
        """
        memory, mask, width = self.memory, self.memory_mask, rows.size(1)
        if not all_stay:
            sentences = torch.div(rows[:, 0], self.width, rounding_mode="floor")
            memory = [block.index_select(0, sentences) for block in memory]
            mask = None if mask is None else mask.index_select(0, sentences)
        chosen = rows.flatten() if self.selected is None else self.selected[rows.flatten()]
        return GroupedState(self.blocks, memory, mask, width, chosen)

    def grown(self) -> "GroupedState":
        """The state with room for one more token, whose keys and values the step writes."""
        blocks = []
        for block in self.blocks:
            rows, _, length, d_model = block.shape
            rows = rows if self.selected is None else len(self.selected)
            larger = block.new_empty(rows, 2, length + 1, d_model)
            if self.selected is None:
                larger[:, :, :length] = block
            else:
                torch.index_select(block, 0, self.selected, out=larger[:, :, :length])
            blocks.append(larger)
        return replace(self, blocks=blocks, selected=None)
