"""Sequence-level distillation (Kim & Rush 2016, arXiv 1606.07947): learning from a teacher's words.

The student is trained as always, but on other targets: what a teacher translates each training
source to by beam search (section 3.2), or, of the teacher's n best, what is nearest to the original
translation by sentence BLEU (section 3.3). The teacher says things more regularly than people do,
and what is regular a smaller model can learn. It may have its own subwords: only text passes
between the two.

What was translated is kept in shards, each named by the hash of all that it depends on and written
when it is whole: a killed run translates at most one of them again.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import torch

from glassformer.bundle import Bundle, load_bundle
from glassformer.config import TrainConfig
from glassformer.data.corpus import Limits, Pair, drop_reason
from glassformer.data.splitting import LONGEST_SOURCE, pieces_of
from glassformer.decoding.batched import decode_sentences
from glassformer.decoding.beam import beam_search
from glassformer.decoding.protocols import Vocabulary
from glassformer.devices import device_of
from glassformer.errors import InputError
from glassformer.evaluation import bleu_metric
from glassformer.files import write_atomically

__all__ = ["Lesson", "distilled", "lesson_of"]

_SHARD = 1_000  # sources of a shard: seconds of translating
_TOLD_EVERY = 15.0  # seconds between two lines of progress
_EXTRA_LENGTH = 50  # what a translation may be longer than its source (section 6.1 of the paper)


@dataclass(frozen=True)
class Lesson:
    """Who teaches, how, and where it is kept; ``fingerprint`` is a hash of the teacher."""

    config: TrainConfig
    teacher: Path
    fingerprint: str
    languages: tuple[str, str] | None

    def load(self) -> Bundle:
        """The teacher; :class:`InputError` where it is none, or teaches other languages."""
        bundle = load_bundle(self.teacher, device=device_of(self.config.device))
        if self.languages and bundle.languages and bundle.languages != self.languages:
            theirs, ours = (" to ".join(pair) for pair in (bundle.languages, self.languages))
            raise InputError(
                f"distil_from {self.teacher}: translates {theirs}, and these pairs are {ours}:"
                " give a teacher of this direction, or languages if theirs are wrong"
            )
        return bundle

    def shard(self, pairs: Sequence[Pair]) -> Path:
        """Where the teacher's translations of these pairs are, or will be."""
        settings = [self.fingerprint, self.config.distil_beam, self.config.distil_choice]
        digest = hashlib.sha256(json.dumps([settings, pairs]).encode())
        return self.config.run / "data" / "distilled" / f"{digest.hexdigest()[:32]}.json"


def lesson_of(
    config: TrainConfig, *, fingerprint: str, languages: tuple[str, str] | None
) -> Lesson | None:
    """The lesson that the options ask for; None where they ask for none."""
    if config.distil_from is None:
        return None
    return Lesson(config, config.distil_from, fingerprint, languages)


def distilled(
    pairs: Iterable[Pair], lesson: Lesson, *, tell: Callable[[str], None] | None = None
) -> Iterator[tuple[Pair, Pair]]:
    """Each pair, and the same with what the teacher says.

    It keeps its own target where the source is too long for the teacher to be translated in
    one, or where what it says could not be trained on (:func:`corpus.drop_reason`).
    """
    remaining, teacher, done, told = iter(pairs), None, 0, time.monotonic()
    while shard := list(islice(remaining, _SHARD)):
        path = lesson.shard(shard)
        if not path.exists():
            teacher = teacher or lesson.load()
            path.parent.mkdir(parents=True, exist_ok=True)
            said = _translated(shard, teacher, lesson.config)
            write_atomically(path, json.dumps(said, ensure_ascii=False).encode())
        targets = _read(path, len(shard))
        done += len(shard)
        if tell and teacher and time.monotonic() - told > _TOLD_EVERY:
            tell(f"distilling: {done:,} sources translated by {lesson.teacher}")
            told = time.monotonic()
        for pair, target in zip(shard, targets, strict=True):
            taught = Pair(pair.source, target)
            yield pair, pair if drop_reason(taught, Limits()) else taught


def _translated(pairs: Sequence[Pair], teacher: Bundle, config: TrainConfig) -> list[str]:
    """The teacher's choice for each pair; its own target where the teacher cannot translate it."""
    model, target = teacher.model, teacher.target_tokenizer
    extra = min(_EXTRA_LENGTH, model.config.max_length // 2)
    limit = min(LONGEST_SOURCE, model.config.max_length - extra)
    pieces = pieces_of([pair.source for pair in pairs], teacher.source_tokenizer, limit=limit)
    whole = [place for place, span in enumerate(pieces.spans) if len(span) == 1]
    best_only = config.distil_choice == "best"
    answers = decode_sentences(
        model,
        [pieces.ids[pieces.spans[place].start] for place in whole],
        search=partial(
            beam_search,
            beam=config.distil_beam,
            n_best=1 if best_only else config.distil_beam,
            vocabulary=Vocabulary.of(target),
        ),
        extra_length=extra,
        device=next(model.parameters()).device,
        vocabulary=Vocabulary.of(teacher.source_tokenizer),
        cores=torch.get_num_threads(),
    )
    nearness = _Nearness(teacher.languages)
    said = [pair.target for pair in pairs]
    for place, answer in zip(whole, answers, strict=True):
        texts = [target.decode(one.tokens) for one in answer if one.finished]
        if texts:
            said[place] = texts[0] if best_only else nearness.best(texts, pairs[place].target)
    return said


class _Nearness:
    """Sentence BLEU; short sentences lack long n-grams, so the orders that there are count."""

    def __init__(self, languages: tuple[str, str] | None) -> None:
        self._bleu = bleu_metric(languages[1] if languages else None, force=True)
        self._bleu.effective_order = True

    def best(self, texts: Sequence[str], reference: str) -> str:
        """The text nearest to the reference; of equals the first, the teacher's favourite."""
        return max(texts, key=lambda text: self._bleu.sentence_score(text, [reference]).score)


def _read(path: Path, count: int) -> list[str]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: cannot be read ({error}): remove it to translate anew"
        ) from error
    if not isinstance(found, list) or len(found) != count:
        raise InputError(f"{path}: expected {count:,} texts: remove it")
    return found
