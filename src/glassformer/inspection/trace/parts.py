"""The parts of a trace that one captured run of the model gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.data.tokenizer import Tokenizer
from glassformer.inspection.ablation import SUBLAYERS
from glassformer.inspection.capture import Capture
from glassformer.inspection.trace.array_codec import Packed, pack
from glassformer.inspection.trace.records import (
    AttentionTrace,
    Candidate,
    Masks,
    Positions,
    Step,
    SublayerNorms,
)
from glassformer.inspection.trace.subwords import readable
from glassformer.model.positions import PositionalEncoding
from glassformer.model.transformer import Transformer

__all__ = ["Run", "attention_traces", "masks", "positions", "steps", "sublayer_norms"]


@dataclass(frozen=True)
class Run:
    """One sentence through a model, with all that was seen, and how much of it is shown."""

    model: Transformer
    tokenizer: Tokenizer
    """Of the target."""
    seen: Capture
    written: Sequence[int]
    mask: Tensor
    """The decoder's self-attention's, (1, 1, tgt_len, tgt_len)."""
    source_shown: int
    target_shown: int

    @property
    def vector_numbers(self) -> int:
        """How many numbers the shown queries, keys and values are."""
        config, ours, theirs = self.model.config, self.source_shown, self.target_shown
        rows = config.num_encoder_layers * 3 * ours
        rows += config.num_decoder_layers * (4 * theirs + 2 * ours)
        return rows * config.d_model

    def shown(self, name: str) -> int:
        """How many positions of a sublayer's stream are shown."""
        return self.source_shown if name.startswith("encoder") else self.target_shown


def attention_traces(run: Run, *, vectors: bool) -> list[AttentionTrace]:
    """Scores and weights of each attention; with its queries, keys and values where wanted."""
    config = run.model.config
    names = [("encoder", layer) for layer in range(config.num_encoder_layers)]
    names += [(part, i) for i in range(config.num_decoder_layers) for part in ("decoder", "cross")]
    return [_attention(run, part, layer, vectors) for part, layer in names]


def _attention(run: Run, part: Any, layer: int, vectors: bool) -> AttentionTrace:
    name = SUBLAYERS[part].format(layer)
    attended = run.seen[name].attended
    queries = run.shown(name)
    keys = run.source_shown if part == "cross" else queries

    def vector(heads: Tensor, length: int) -> Packed | None:
        return pack(heads[0, :, :length].float(), "f32") if vectors else None

    return AttentionTrace(
        name=name,
        part=part,
        layer=layer,
        scores=pack(attended.scores[0, :, :queries, :keys], "u16"),
        weights=pack(attended.weights[0, :, :queries, :keys], "u8"),
        query=vector(attended.query, queries),
        key=vector(attended.key, keys),
        value=vector(attended.value, keys),
    )


def sublayer_norms(run: Run) -> list[SublayerNorms]:
    """The lengths of the vectors around each residual block."""
    found = []
    for name, sublayer in run.seen.items():
        stack, _, layer, kind = name.split(".")
        lengths: dict[str, Any] = {
            key: [round(one, 5) for one in norms[0, : run.shown(name)].tolist()]
            for key, norms in sublayer.norms.items()
        }
        about: dict[str, Any] = {"stack": stack, "layer": int(layer), "kind": kind}
        found.append(SublayerNorms(name=name, **about, **lengths))
    return found


def masks(run: Run) -> Masks:
    """Who may attend to whom: of the source everybody to all of it, for nothing is padded."""
    shown = run.target_shown
    return Masks([True] * run.source_shown, run.mask[0, 0, :shown, :shown].tolist())


def positions(run: Run) -> Positions:
    """The rows that are added to both sides' embeddings."""
    config = run.model.config
    return Positions(
        kind=config.positions,
        layout=config.position_layout,
        frequencies=config.position_frequencies,
        offset=config.position_offset,
        embedding_factor=run.model.source_embedding.factor,
        source=_table(run.model.source_positions, run.source_shown),
        target=_table(run.model.target_positions, run.target_shown),
    )


def _table(module: torch.nn.Module, length: int) -> Packed:
    encoding = next(one for one in module.modules() if isinstance(one, PositionalEncoding))
    return pack(encoding.table[encoding.offset : encoding.offset + length], "u16")


@torch.no_grad()
def steps(run: Run, *, top: int, forced: int) -> list[Step]:
    """Each step of the answer; ``forced``: how many of its pieces were asked for."""
    layers = [
        run.seen[f"decoder.blocks.{layer}.feed_forward"].output[0, : run.target_shown]
        for layer in range(run.model.config.num_decoder_layers)
    ]
    # Each layer's state as if it were the last: (layers, tgt_len, vocab).
    said = [
        run.model.project(run.model.decoder.norm(state)).float().log_softmax(-1).cpu()
        for state in layers
    ]
    read = [run.model.config.bos_id, *run.written[:-1]]
    found = []
    for step in range(run.target_shown):
        piece = run.written[step]
        rows = [one[step] for one in said]
        ranks = [int((row > row[piece]).sum()) for row in rows]
        lens = [
            _candidates(run, row, row.topk(min(top, len(row))).indices.tolist()) for row in rows
        ]
        one = Step(
            step=step,
            read=read[step],
            sees=run.mask[0, 0, step, : run.target_shown].nonzero().flatten().tolist(),
            written=_candidates(run, rows[-1], [piece])[0],
            rank=ranks[-1],
            forced=step < forced,
            entropy=float(-(rows[-1].exp() * rows[-1]).sum()),
            candidates=lens[-1],
            lens=lens,
            lens_rank=ranks,
        )
        found.append(one)
    return found


def _candidates(
    run: Run, log_probabilities: Float[Tensor, " vocab"], ids: Sequence[int]
) -> list[Candidate]:
    found = []
    for index in ids:
        piece, value = run.tokenizer.id_to_piece(index), log_probabilities[index]
        found.append(Candidate(index, piece, readable(piece), float(value.exp()), float(value)))
    return found
