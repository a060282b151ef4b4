"""Turns one captured run of the model into records of a trace: maps, norms, masks, steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.data.tokenizer import Tokenizer
from glassformer.model.transformer import Transformer
from glassformer.tools.inspection.capture import Capture
from glassformer.tools.inspection.trace.array_codec import EncodedArray, encode_array
from glassformer.tools.inspection.trace.schema import (
    ATTENTION_PATHS,
    AttentionPart,
    AttentionTrace,
    Candidate,
    Masks,
    Positions,
    Step,
    SublayerNorms,
)
from glassformer.tools.inspection.trace.subwords import text_of

__all__ = ["CapturedRun", "attention_traces", "masks", "positions", "steps", "sublayer_norms"]


@dataclass(frozen=True)
class CapturedRun:
    """One run of the model on source and answer, and the numbers of pieces that the trace holds."""

    model: Transformer
    tokenizer: Tokenizer
    """The tokenizer of the target."""
    sublayers: Capture
    written: Sequence[int]
    mask: Tensor
    """The mask of the decoder's self-attention, (1, 1, tgt_len, tgt_len)."""
    source_shown: int
    target_shown: int

    @property
    def vector_numbers(self) -> int:
        """How many numbers the queries, keys and values of the trace have together."""
        config = self.model.config
        rows = config.num_encoder_layers * 3 * self.source_shown
        rows += config.num_decoder_layers * (4 * self.target_shown + 2 * self.source_shown)
        return rows * config.d_model

    def shown(self, name: str) -> int:
        """The number of positions in the trace for the stream of a sublayer."""
        return self.source_shown if name.startswith("encoder") else self.target_shown


def attention_traces(run: CapturedRun, *, vectors: bool) -> list[AttentionTrace]:
    """Scores and weights of each attention; ``vectors`` adds queries, keys and values."""
    config = run.model.config
    places: list[tuple[AttentionPart, int]] = [
        ("encoder", i) for i in range(config.num_encoder_layers)
    ]
    for layer in range(config.num_decoder_layers):
        places += [("decoder", layer), ("cross", layer)]
    return [_attention(run, part, layer, vectors) for part, layer in places]


def _attention(run: CapturedRun, part: AttentionPart, layer: int, vectors: bool) -> AttentionTrace:
    name = ATTENTION_PATHS[part].format(layer)
    attended = run.sublayers[name].attended
    queries = run.shown(name)
    keys = run.source_shown if part == "cross" else queries

    def encoded(heads: Tensor, length: int) -> EncodedArray | None:
        return encode_array(heads[0, :, :length].float(), "f32") if vectors else None

    return AttentionTrace(
        name=name,
        part=part,
        layer=layer,
        scores=encode_array(attended.scores[0, :, :queries, :keys], "u16"),
        weights=encode_array(attended.weights[0, :, :queries, :keys], "u8"),
        query=encoded(attended.query, queries),
        key=encoded(attended.key, keys),
        value=encoded(attended.value, keys),
    )


def sublayer_norms(run: CapturedRun) -> list[SublayerNorms]:
    """The lengths of each residual block's input vectors, added vectors and output vectors."""

    def lengths(stream: Tensor, name: str) -> list[float]:
        return [round(x, 5) for x in stream[0, : run.shown(name)].norm(dim=-1).tolist()]

    return [
        SublayerNorms(name, *(lengths(x, name) for x in (each.input, each.added, each.output)))
        for name, each in run.sublayers.items()
    ]


def masks(run: CapturedRun) -> Masks:
    """The masks; all source keys are allowed, because one sentence has no padding."""
    shown = run.target_shown
    return Masks([True] * run.source_shown, run.mask[0, 0, :shown, :shown].tolist())


def positions(run: CapturedRun) -> Positions:
    """The position vectors that the model adds to the embeddings of both sides."""
    return Positions(
        kind=run.model.config.positions,
        frequencies=run.model.config.position_frequencies,
        source=_table(run.model.source_positions, run.source_shown),
        target=_table(run.model.target_positions, run.target_shown),
    )


def _table(module: torch.nn.Module, length: int) -> EncodedArray:
    encoding: Any = getattr(module, "positions", module)  # NormedPositions holds the encoding
    return encode_array(encoding.table[encoding.offset : encoding.offset + length], "u16")


@torch.no_grad()
def steps(run: CapturedRun, *, top: int, forced: int) -> list[Step]:
    """Each step of the answer with ``top`` candidates; the first ``forced`` steps were forced."""
    # Read the stream after each sublayer as if the sublayer were the last. Keep (tgt_len, vocab)
    # for each layer's last sublayer, and the written pieces' values for each sublayer.
    by_layer, readings = [], []
    for name in [name for name in run.sublayers if name.startswith("decoder")]:
        table = _reading(run, run.sublayers[name].output)
        readings.append([float(row[piece]) for row, piece in zip(table, run.written, strict=False)])
        if name.endswith("feed_forward"):
            by_layer.append(table)
    records = []
    for step in range(run.target_shown):
        piece = run.written[step]
        rows = [table[step] for table in by_layer]
        ranks = [int((row > row[piece]).sum()) for row in rows]
        lens = [
            _candidates(run, row, row.topk(min(top, len(row))).indices.tolist()) for row in rows
        ]
        record = Step(
            step=step,
            written=_candidates(run, rows[-1], [piece])[0],
            rank=ranks[-1],
            forced=step < forced,
            candidates=lens[-1],
            lens=lens,
            lens_rank=ranks,
            sublayers=[reading[step] for reading in readings],
        )
        records.append(record)
    return records


def _reading(run: CapturedRun, stream: Tensor) -> Float[Tensor, "tgt_len vocab"]:
    """The log-probabilities of the next pieces if the decoder ended with ``stream``."""
    state = run.model.decoder.norm(stream[0, : run.target_shown])
    return run.model.project(state).float().log_softmax(-1).cpu()


def _candidates(
    run: CapturedRun, log_probabilities: Float[Tensor, " vocab"], ids: Sequence[int]
) -> list[Candidate]:
    candidates = []
    for index in ids:
        piece, value = run.tokenizer.subword(index), log_probabilities[index]
        candidates.append(Candidate(index, piece, text_of(piece), float(value.exp()), float(value)))
    return candidates
