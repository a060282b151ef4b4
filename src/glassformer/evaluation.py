"""Scores of translations that others can repeat.

sacreBLEU computes every score (Post 2018, "A Call for Clarity in Reporting BLEU Scores"). With the
signature of a score, anybody can repeat the score. Many papers print BLEU over lowercased,
tokenised text, and the *paper ruler* is BLEU over such text. The ruler lies several points above
BLEU over the text itself. Compare the ruler with such papers only.

:mod:`significance` tests whether two systems differ by more than chance.
"""

import dataclasses
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from glassformer.config import BEAM, TextMetric
from glassformer.data.words import is_unspaced
from glassformer.support.displays import Shown, Table
from glassformer.support.errors import InputError, UsageError, check_kind, counted, missing_extra
from glassformer.support.language_names import UNSPACED
from glassformer.support.languages import language_of

__all__ = [
    "LANGUAGES",
    "METRIC_NAMES",
    "MOSES",
    "PAPER_RULER",
    "MetricScore",
    "Scores",
    "TranslatorLike",
    "alignment_error_rate",
    "bleu_metric",
    "corpus_scores",
    "evaluate",
    "metric_for",
    "new_metric",
    "numbers",
    "paper_ruler",
    "perplexity",
    "reference_loss",
    "reference_streams",
]

PAPER_RULER = (
    "lowercased, punctuation-normalised, Moses-tokenised; not comparable with cased sacreBLEU"
)
"""The remark beside every paper ruler."""

_CODES = """
    as bn ca cs de el en es et fi fr ga gu hi hu is it kn lt lv ml mni mr nl or pa pl pt ro ru sk sl
    sv ta tdt te yue zh
"""
MOSES = frozenset(_CODES.split())
"""The language codes for which Moses has rules; the paper ruler needs such a code."""

LANGUAGES = tuple(sorted(MOSES | UNSPACED))
"""The language codes that change how BLEU or the paper ruler cuts text into words."""

METRIC_NAMES: dict[TextMetric, str] = {"bleu": "BLEU", "chrf": "chrF++"}

_LARGEST = math.log(sys.float_info.max)
_CHINESE = ("zh", "yue", "wuu", "nan", "hak", "gan")
_PUBLISHED = {"chrf": "chrf++"}  # chrF with word bigrams is called chrF++

_FOUR_GRAMS = 0.2  # BLEU needs at least this share of references with a 4-gram
_TOKENISED = "the text looks tokenised (it ends in ' .'): no comparison with other text"

# `evaluate` takes a protocol in place of Translator, because translator.py imports this file.


@runtime_checkable
class TranslatorLike(Protocol):
    """An object that translates texts, and gives the probability of given translations."""

    def translate(self, texts: Sequence[str], /, *, beam: int) -> Sequence[Any]:
        """One translation for each text; a translation has its text in the field ``text``."""

    def score(self, sources: Sequence[str], targets: Sequence[str], /) -> Sequence[float]:
        """ln p(target | source) of each pair, the end symbol included."""

    def count_tokens(self, targets: Sequence[str], /) -> Sequence[int]:
        """The number of tokens of each target, the end symbol included."""


class MetricScore(NamedTuple):
    """A score with its sacreBLEU signature."""

    score: float
    signature: str


@dataclass(frozen=True, repr=False)
class Scores(Shown):
    """The scores of one output: ``loss`` in nats a token, all other scores in percent.

    A lower TER, CER or loss is better; a higher value of any other score is better. ``ter``,
    ``cer`` and ``paper_ruler`` are None after a quick scoring, and ``ter`` and ``paper_ruler`` for
    a language without spaces between words. ``paper_ruler`` is None for an unknown language too.
    ``loss`` is None without a model.
    """

    sentences: int
    bleu: float
    chrf: float
    exact_match: float
    ter: float | None = None
    cer: float | None = None
    paper_ruler: float | None = None
    loss: float | None = None
    signatures: Mapping[str, str] = field(default_factory=dict)
    tokenised: bool = False
    """Whether most translations end in a full stop with a space before it."""

    @property
    def perplexity(self) -> float | None:
        """exp(loss), the number of equally likely tokens that gives the same loss."""
        return None if self.loss is None else perplexity(self.loss)

    def as_dict(self) -> dict[str, Any]:
        """All scores by plain names, for JSON, with None for infinity."""
        values = dataclasses.asdict(self) | {"perplexity": self.perplexity}
        values = {_PUBLISHED.get(name, name): value for name, value in values.items()}
        values["signatures"] = {
            _PUBLISHED.get(name, name): text for name, text in self.signatures.items()
        }
        for name, value in values.items():
            if isinstance(value, float) and not math.isfinite(value):
                values[name] = None
        return values

    def records(self) -> Table:
        """One row of all scores."""
        return Table([numbers(self.as_dict())])

    def __str__(self) -> str:
        rows = [
            ("BLEU", self.bleu, _TOKENISED if self.tokenised else ""),
            ("chrF++", self.chrf, ""),
            ("TER", self.ter, "less is better"),
            ("CER", self.cer, "edits of characters; less is better"),
            ("exact match", self.exact_match, "percent of the sentences"),
            ("paper ruler", self.paper_ruler, PAPER_RULER),
            ("loss", self.loss, "nats a token, of the references under the model"),
            ("perplexity", self.perplexity, "exp(loss)"),
        ]
        lines = [f"{'sentences':<12}{self.sentences:>9}"]
        for name, value, remark in rows:
            if value is not None:
                lines.append(f"{name:<12}{value:>9.2f}  {remark}".rstrip())
        lines += [f"signature of {name}: {text}" for name, text in self.signatures.items()]
        return "\n".join(lines)


def numbers(scores: Mapping[str, Any]) -> dict[str, float]:
    """The scores of :meth:`Scores.as_dict`, without signatures and remarks."""
    return {name: value for name, value in scores.items() if type(value) in (int, float)}


def corpus_scores(
    hypotheses: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    language: str | None = None,
    quick: bool = False,
) -> Scores:
    """Score translations against one list of references, or several lists of the same length.

    The scores are cased BLEU, chrF++ (chrF with word order 2), TER, CER, exact match, and
    :func:`paper_ruler`. CER is the number of characters to edit, in percent of the references'
    characters. An exact match equals one of its references, character for character. ``language``
    is any code or the English name of the target language. BLEU's tokeniser depends on ``language``
    for scripts without spaces, for which ``ter`` and ``paper_ruler`` are None. ``paper_ruler`` is
    also None without the extra ``ruler``, and for a language for which Moses has no rules.
    ``quick`` leaves out TER, CER and ``paper_ruler``.

    Raises:
        InputError: no sentences, or not as many references as translations.

    >>> scores = corpus_scores(["Ein Hund läuft heim ."], ["Ein Hund läuft heim ."], quick=True)
    >>> round(scores.bleu), round(scores.chrf), scores.exact_match
    (100, 100, 100.0)
    """
    streams = reference_streams(hypotheses, references)
    measured = {
        "bleu": _measure(bleu_metric(language), hypotheses, streams),
        "chrf": _measure(CHRF(word_order=2), hypotheses, streams),
    }
    if not quick and not is_unspaced(language):
        measured["ter"] = _measure(TER(), hypotheses, streams)
        if (code := language_of(language)) in MOSES and find_spec("sacremoses"):
            measured["paper_ruler"] = paper_ruler(hypotheses, references, language=code)
    exact = sum(h in accepted for h, *accepted in zip(hypotheses, *streams, strict=True))
    return Scores(
        sentences=len(hypotheses),
        exact_match=100 * exact / len(hypotheses),
        cer=None if quick else _character_error_rate(hypotheses, streams),
        tokenised=2 * sum(text.endswith(" .") for text in hypotheses) > len(hypotheses),
        signatures={name: result.signature for name, result in measured.items()},
        **{name: result.score for name, result in measured.items()},
    )


def paper_ruler(
    hypotheses: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    language: str,
) -> MetricScore:
    """BLEU over lowercased, punctuation-normalised, Moses-tokenised text, on both sides.

    The script of the Multi30k data set (``scripts/task1-tokenize.sh`` of
    github.com/multi30k/dataset) sets these steps: lowercase, normalise punctuation, tokenise, leave
    hyphens whole. Wu et al. (2021), "Good for Misconceived Reasons", train and score on its files.
    For each validation and test file in English, German and French, the word counts equal the
    README's counts. The ruler escapes no character (``"`` stays ``"``), because escapes on both
    sides change no match.

    Raises:
        UsageError: Moses has no rules for ``language``.
        InputError: no sentences, not as many references as translations, or no extra ``ruler``.

    >>> tokenised, written = "ein mann , der „ lacht “ .", "Ein Mann, der “lacht”."
    >>> round(paper_ruler([tokenised], [written], language="de").score)
    100
    """
    language = language_of(language)
    if language not in MOSES:
        raise UsageError(
            f"the paper ruler cannot tokenise language {language!r}: "
            f"Moses has rules for {', '.join(sorted(MOSES))}"
        )
    try:
        import sacremoses
    except ModuleNotFoundError:
        raise missing_extra("sacremoses", "ruler") from None
    # By default the Python port turns ’ into '; with Perl parity, as in the original, into ".
    normaliser = sacremoses.MosesPunctNormalizer(language, perl_parity=True)
    tokeniser = sacremoses.MosesTokenizer(language)

    def tokenised(lines: Sequence[str]) -> list[str]:
        normalised = (normaliser.normalize(line.lower()) for line in lines)
        return [" ".join(tokeniser.tokenize(line, escape=False)) for line in normalised]

    streams = [tokenised(stream) for stream in reference_streams(hypotheses, references)]
    metric = BLEU(tokenize="none", force=True)
    score = float(metric.corpus_score(tokenised(hypotheses), streams).score)
    signature = metric.get_signature()
    signature.update("case", "lc")
    signature.update("norm", f"moses-{language}")
    signature.update("tok", f"moses-{language}")
    signature.update("sacremoses", sacremoses.__version__)
    return MetricScore(score, str(signature))


def evaluate(
    translator: TranslatorLike,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    beam: int = BEAM,
    language: str | None = None,
) -> Scores:
    """Translate and score: :func:`corpus_scores` with :func:`reference_loss` beside it.

    If ``language`` is None, the target language of the translator's bundle counts.
    """
    check_kind(translator, TranslatorLike, wants="evaluate takes a translator (Translator.load)")
    hypotheses = [translated.text for translated in translator.translate(sources, beam=beam)]
    languages = getattr(getattr(translator, "bundle", None), "languages", None)
    language = language or (languages and languages[1])
    scores = corpus_scores(hypotheses, references, language=language)
    return dataclasses.replace(scores, loss=reference_loss(translator, sources, references))


def reference_loss(
    translator: TranslatorLike, sources: Sequence[str], references: Sequence[str]
) -> float:
    """−ln p(references | sources) / tokens, in nats for each token of the references.

    The end symbols count as tokens; the labels are not smoothed. Only models with the same target
    tokenizer can be compared by this loss, because longer tokens carry more nats.
    """
    log_probability = math.fsum(translator.score(sources, references))
    return -log_probability / sum(translator.count_tokens(references))


def alignment_error_rate(links: Sequence[str], gold: Sequence[str]) -> float:
    r"""1 − (\|A ∩ S\| + \|A ∩ P\|) / (\|A\| + \|S\|), from 0 to 1 (Och and Ney 2003, section 6).

    A line of ``links`` has the links A of one pair, as ``pharaoh`` writes them: ``0-1 1-0``. A line
    of ``gold`` has sure links S, such as ``0-1``, and possible links, such as ``1p0``. P are both.

    >>> alignment_error_rate(["0-0 1-2"], ["0-0 1-1 1p2"])
    0.25
    """
    if len(links) != len(gold):
        raise InputError(f"{len(links)} lines of links, {len(gold)} of gold: expected as many")
    for word in " ".join([*links, *gold]).split():
        if not re.fullmatch(r"\d+[-p]\d+", word):
            raise InputError(f"link {word!r}: expected 0-1, or 0p1 for a possible link of gold")
    right = total = 0
    for line, gold_line in zip(links, gold, strict=True):
        found, possible = set(line.split()), set(gold_line.replace("p", "-").split())
        sure = {link for link in gold_line.split() if "-" in link}
        right += len(found & sure) + len(found & possible)
        total += len(found) + len(sure)
    return 1 - right / total if total else 0.0


def perplexity(loss: float) -> float:
    """exp(loss), for a loss in nats a token; infinite beyond the greatest float.

    >>> perplexity(0.0), perplexity(1e6)
    (1.0, inf)
    """
    return math.inf if loss > _LARGEST else math.exp(loss)


def reference_streams(
    hypotheses: Sequence[str], references: Sequence[str] | Sequence[Sequence[str]]
) -> list[list[str]]:
    """The references as lists; InputError unless each list is as long as ``hypotheses``.

    >>> reference_streams(["ja"], ["yes"]), reference_streams(["ja"], [["yes"], ["yeah"]])
    ([['yes']], [['yes'], ['yeah']])
    """
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise TypeError("expected a list of sentences, got one string: put it in a list")
    texts = [reference for reference in references if isinstance(reference, str)]
    lists = [list(reference) for reference in references if not isinstance(reference, str)]
    streams = lists or [texts]
    for stream in streams:
        if len(stream) != len(hypotheses):
            translations = counted(len(hypotheses), "translation")
            raise InputError(
                f"{translations} and {counted(len(stream), 'reference')}: reference n must belong"
                " to translation n"
            )
    if not hypotheses:
        raise InputError("no sentences to score: expected at least one translation and reference")
    return streams


def bleu_metric(language: str | None) -> BLEU:
    """sacreBLEU's BLEU with the language's tokeniser; ``force`` silences sacreBLEU's hints.

    The usual tokeniser makes one token of a sentence without spaces. sacreBLEU's better tokeniser
    for Japanese (ja-mecab) needs a package with a dictionary.
    """
    tokenizer = BLEU.TOKENIZER_DEFAULT
    if is_unspaced(language):
        tokenizer = "zh" if language_of(language) in _CHINESE else "char"
    return BLEU(tokenize=tokenizer, force=True)


def metric_for(references: Sequence[str], language: str | None = None) -> TextMetric:
    """The metric that ranks translations: chrF++ if hardly any reference has a 4-gram, else BLEU.

    BLEU's tokeniser cuts the 4-grams. If the references have no 4-gram, a perfect translation
    scores BLEU 0, and a longer, wrong translation scores more.

    >>> metric_for(["Open", "Save all"]), metric_for(["Ein Hund läuft."])
    ('chrf', 'bleu')
    """
    bleu = bleu_metric(language)
    sizes = [len(bleu.tokenizer(text.strip()).split()) for text in references]
    with_four = sum(size >= bleu.max_ngram_order for size in sizes)
    return "bleu" if with_four >= _FOUR_GRAMS * len(references) else "chrf"


def new_metric(name: TextMetric, language: str | None) -> Metric:
    """sacreBLEU's metric of this name, with the settings of :func:`corpus_scores`."""
    return bleu_metric(language) if name == "bleu" else CHRF(word_order=2)


def _measure(
    metric: Metric, hypotheses: Sequence[str], streams: Sequence[Sequence[str]]
) -> MetricScore:
    score = float(metric.corpus_score(hypotheses, streams).score)
    return MetricScore(score, str(metric.get_signature()))


def _character_error_rate(hypotheses: Sequence[str], streams: Sequence[Sequence[str]]) -> float:
    """The edits to the nearest references, in percent of the references' characters."""
    nearest = [
        min((_edits(text, reference), len(reference)) for reference in references)
        for text, *references in zip(hypotheses, *streams, strict=True)
    ]
    edits, characters = map(sum, zip(*nearest, strict=True))
    return 100 * edits / max(characters, 1)


def _edits(text: str, other: str) -> int:
    """The Levenshtein distance: characters to insert, delete or replace."""
    letters, places = np.array([*other]), np.arange(len(other) + 1)
    row = places
    for letter in text:
        cheapest = np.minimum(row[1:] + 1, row[:-1] + (letters != letter))
        row = np.minimum.accumulate(np.append(row[0] + 1, cheapest) - places) + places
    return int(row[-1])
