"""The practical face: text in, text out."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from glassformer.bundle import Bundle, load_bundle
from glassformer.data.segments import split_long
from glassformer.data.tokenizer import Tokenizer
from glassformer.decoding.beam import beam_search, penalty
from glassformer.decoding.constraints import Constraint, ForcedPrefix
from glassformer.decoding.greedy import greedy
from glassformer.decoding.sampling import sample
from glassformer.decoding.sentences import Search, decode_sentences
from glassformer.decoding.step import Hypothesis, StepFunction, Vocabulary
from glassformer.errors import InputError, UsageError
from glassformer.model.transformer import Transformer

__all__ = ["Sampling", "Translation", "Translator"]

# A source with more subwords is cut, at sentence ends where it can be, and translated in pieces:
# a model has seen no such lengths in training.
_LONGEST_SOURCE = 200
_EXTRA_LENGTH = 50  # what a translation may be longer than its source (section 6.1)
_SCORED_AT_ONCE = 8192  # subwords of sources and targets, with padding


@dataclass(frozen=True)
class Translation:
    """A translation, its score, and the next best ones.

    The score is log p(text | source) over the length penalty; of a sampled one, without penalty;
    of a text in pieces, the mean of theirs. It is at most 0.
    """

    text: str
    score: float
    alternatives: tuple["Translation", ...] = ()


@dataclass(frozen=True)
class Sampling:
    """Draw translations instead of searching for the best; the seed makes it repeatable."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1


@dataclass(frozen=True)
class Translator:
    """A bundle that translates.

    ``Translator.load("runs/en-de").translate(["A dog runs."])[0].text``
    """

    bundle: Bundle
    device: torch.device = field(default=torch.device("cpu"))

    @classmethod
    def load(
        cls, directory: str | Path, *, device: str = "auto", engine: str = "torch"
    ) -> "Translator":
        """Read the translator in ``directory``; ``device`` is cpu, cuda, or auto."""
        if engine != "torch":
            raise UsageError(f"engine {engine!r}: the only engine is 'torch'")
        place = _device(device)
        return cls(load_bundle(Path(directory), device=place), place)

    @property
    def model(self) -> Transformer:
        return self.bundle.model

    @property
    def source_tokenizer(self) -> Tokenizer:
        return self.bundle.source_tokenizer

    @property
    def target_tokenizer(self) -> Tokenizer:
        return self.bundle.target_tokenizer

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam: int = 5,
        n_best: int = 1,
        length_penalty: float = 0.6,
        prefixes: Sequence[str] | None = None,
        sampling: Sampling | None = None,
    ) -> list[Translation]:
        """One translation for each text, in their order; a blank text gives a blank one.

        ``beam=1`` is greedy search. ``n_best`` adds alternatives. ``prefixes``: what each
        translation must begin with. A text of more than 200 subwords is translated in pieces,
        which are joined by spaces; of such a text there are no alternatives.

        Raises UsageError for a prefix that cannot be, ValueError for a number out of its range.
        """
        if isinstance(texts, str):
            raise TypeError("texts must be a list of texts, not one text")
        if prefixes is not None and len(prefixes) != len(texts):
            raise ValueError(f"{len(prefixes)} prefixes for {len(texts)} texts")
        pieces: list[str] = []
        spans: list[range] = []
        limit = self._longest_source
        for text in texts:
            found = split_long(text, self._length, limit=limit) if text.strip() else [""]
            spans.append(range(len(pieces), len(pieces) + len(found)))
            pieces += found
        search = self._search(beam, n_best, length_penalty, sampling)
        ids = self.source_tokenizer.encode_batch(pieces)
        ids = [found if piece.strip() else [] for found, piece in zip(ids, pieces, strict=True)]
        answers = self._decode(ids, search, self._prefix_of_first(prefixes, spans, ids))
        return [self._joined([answers[place] for place in span]) for span in spans]

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """The natural logarithm of p(target | source) for each pair, end symbol included."""
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources)} sources and {len(targets)} targets must be pairs")
        read = self._ended(self.source_tokenizer, sources)
        said = self._ended(self.target_tokenizer, targets)
        lengths = [max(map(len, pair)) for pair in zip(read, said, strict=True)]
        room = self.model.config.max_length
        if any(length > room for length in lengths):
            place = next(place for place, length in enumerate(lengths) if length > room)
            raise InputError(
                f"pair {place + 1} has {lengths[place]:,} subwords on a side, and this model has"
                f" positions for {room:,}"
            )
        scores = [0.0] * len(read)
        for rows in _alike(lengths):
            chosen = [read[row] for row in rows], [said[row] for row in rows]
            for row, value in zip(rows, self._log_probabilities(*chosen), strict=True):
                scores[row] = value
        return scores

    def count_tokens(self, targets: Sequence[str]) -> list[int]:
        """The tokens of each target, end symbol included."""
        return [len(ids) + 1 for ids in self.target_tokenizer.encode_batch(targets)]

    @property
    def _extra_length(self) -> int:
        return min(_EXTRA_LENGTH, self.model.config.max_length // 2)

    @property
    def _longest_source(self) -> int:
        """In subwords, so that the longest translation has positions too."""
        return min(_LONGEST_SOURCE, self.model.config.max_length - self._extra_length)

    def _length(self, text: str) -> int:
        return len(self.source_tokenizer.encode(text))

    def _ended(self, tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
        return [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_batch(texts)]

    def _search(
        self, beam: int, n_best: int, length_penalty: float, sampling: Sampling | None
    ) -> Search:
        vocabulary = _vocabulary(self.target_tokenizer)
        if sampling is not None:
            return partial(
                sample,
                temperature=sampling.temperature,
                top_k=sampling.top_k,
                top_p=sampling.top_p,
                n_best=n_best,
                generator=torch.Generator(self.device).manual_seed(sampling.seed % 2**64),
                vocabulary=vocabulary,
            )
        if beam == 1 and n_best == 1:
            return partial(_greedy, vocabulary=vocabulary, length_penalty=length_penalty)
        return partial(
            beam_search,
            beam=beam,
            n_best=n_best,
            length_penalty=length_penalty,
            vocabulary=vocabulary,
        )

    def _prefix_of_first(
        self,
        prefixes: Sequence[str] | None,
        spans: Sequence[range],
        pieces: Sequence[Sequence[int]],
    ) -> list[Constraint]:
        """Each text's prefix, forced on its first piece."""
        if prefixes is None:
            return []
        forced: list[list[int]] = [[] for _ in pieces]
        for span, ids in zip(spans, self.target_tokenizer.encode_batch(prefixes), strict=True):
            room = self.model.config.max_length - self._extra_length - len(pieces[span.start])
            if self.target_tokenizer.unk_id in ids:
                raise UsageError("a prefix has a character that the target tokenizer has not")
            if len(ids) > room:
                raise UsageError(
                    f"a prefix has {len(ids):,} subwords, and this model has room for {room:,}"
                )
            forced[span.start] = ids
        return [ForcedPrefix(forced, _vocabulary(self.target_tokenizer))]

    def _decode(
        self, sources: Sequence[Sequence[int]], search: Search, constraints: Sequence[Constraint]
    ) -> list[list[Hypothesis]]:
        return decode_sentences(
            self.model,
            sources,
            search=search,
            constraints=constraints,
            extra_length=self._extra_length,
            device=self.device,
            vocabulary=_vocabulary(self.source_tokenizer),
        )

    def _joined(self, answers: list[list[Hypothesis]]) -> Translation:
        if len(answers) == 1:
            best, *others = (
                Translation(self.target_tokenizer.decode(h.tokens), h.score) for h in answers[0]
            )
            return Translation(best.text, best.score, tuple(others))
        texts = [self.target_tokenizer.decode(found[0].tokens) for found in answers]
        mean = math.fsum(found[0].score for found in answers) / len(answers)
        return Translation(" ".join(text.strip() for text in texts if text.strip()), mean)

    @torch.inference_mode()
    def _log_probabilities(
        self, sources: Sequence[list[int]], targets: Sequence[list[int]]
    ) -> list[float]:
        """Each target's, given its source; both end in the end symbol."""
        tokenizer = self.target_tokenizer
        source = _padded(sources, self.source_tokenizer.pad_id).to(self.device)
        labels = _padded(targets, tokenizer.pad_id).to(self.device)
        read = [[tokenizer.bos_id, *ids[:-1]] for ids in targets]
        logits = self.model(source, _padded(read, tokenizer.pad_id).to(self.device))
        of_labels = logits.log_softmax(-1).gather(-1, labels[..., None])[..., 0]
        return of_labels.masked_fill(labels == tokenizer.pad_id, 0.0).sum(-1).tolist()


def _greedy(
    step: StepFunction[Any], state: Any, *, length_penalty: float, **settings: Any
) -> list[list[Hypothesis]]:
    """Greedy search, scored as beam search scores, so that a beam of 1 compares with one of 5."""
    return [
        [
            replace(one, score=one.log_probability / penalty(length, length_penalty))
            for one in found
            for length in [len(one.tokens) + one.finished]
        ]
        for found in greedy(step, state, **settings)
    ]


def _device(name: str) -> torch.device:
    """The place that ``name`` says; UsageError where this machine has it not."""
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return torch.device("cuda" if there else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"device {name!r}: expected cpu, cuda, cuda:N or auto")
    if device.type == "cuda" and (device.index or 0) >= there:
        raise UsageError(f"device {name!r}: this machine has {there} CUDA devices")
    return device


def _alike(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places in groups of like lengths, each of a bounded number of subwords."""
    group: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and 2 * lengths[place] * (len(group) + 1) > _SCORED_AT_ONCE:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _vocabulary(tokenizer: Tokenizer) -> Vocabulary:
    return Vocabulary(tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id)


def _padded(rows: Sequence[list[int]], pad_id: int) -> torch.Tensor:
    return nn.utils.rnn.pad_sequence(
        [torch.tensor(row) for row in rows], batch_first=True, padding_value=pad_id
    )
