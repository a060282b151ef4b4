"""What unclean text costs: a translator's BLEU on the same sentences, clean, unclean, and together.

``python -m benchmarks.unclean BUNDLE SOURCE TARGET`` prints three tables: sentences on one line,
unclean characters, and protected spans. Each has the score without this program's help (as typed,
lines whole, no protection) and with it, of the same weights.
"""

import argparse
import random
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from glassformer.data.corpus import read_pairs
from glassformer.data.preprocessing import SourceLengths
from glassformer.data.protected import lost_spans
from glassformer.data.splitting import sentence_spans
from glassformer.documents.protection import ProtectingTranslator
from glassformer.evaluation import bleu_metric
from glassformer.translator import Translator

__all__ = ["FAULTS", "SPANS", "main"]

Fault = Callable[[str], str]

FAULTS: dict[str, Fault] = {
    "clean": str,
    "double spaces": lambda text: text.replace(" ", "  "),
    "a no-break space": lambda text: text.replace(" ", "\u00a0", 1),
    "a tab": lambda text: text.replace(" ", "\t", 1),
    "a byte order mark in front": lambda text: f"\ufeff{text}",
    "a zero-width space at the end": lambda text: f"{text}\u200b",
    "CR at the end": lambda text: f"{text}\r",
    "spaces around": lambda text: f"  {text} ",
    "NFD": lambda text: unicodedata.normalize("NFD", text),
    "fullwidth letters": lambda text: "".join(
        chr(ord(letter) + 0xFEE0) if letter.isascii() and letter.isalnum() else letter
        for letter in text
    ),
    "capitals": str.upper,
    "small letters": str.lower,
}
SPANS = {
    "placeholder": ("{name}", "%s", "{{count}}", "$1"),
    "tag": ("<b>", "<br/>", "&nbsp;"),
    "url": ("https://example.org/a?b=1", "www.example.com"),
    "email": ("ann.lee@example.org",),
    "measure": ("3.5 GHz", "12 km"),
    "code": ("`ls -l`", "`x = 1`"),
    "emoji": ("🎉", "👍🏽", "👩\u200d💻"),
}
_TOGETHER = (1, 2, 5)


def main(words: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.unclean", description=__doc__)
    parser.add_argument("bundle")
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--sentences", type=int, default=200, help="the first so many pairs")
    parser.add_argument("--spans", type=int, default=300, help="lines with protected spans")
    options = parser.parse_args(words)
    helped = Translator.load(options.bundle)
    pairs = list(read_pairs(options.source, options.target))
    sources, targets = map(list, zip(*pairs[: options.sentences], strict=True))
    bare = Translator(replace(helped.bundle, normalisation="none", source_lengths=None))
    if helped.bundle.source_lengths is None:
        language = (helped.bundle.languages or ("en",))[0]
        lengths = SourceLengths.of(sources, language)
        helped = Translator(replace(helped.bundle, normalisation="text", source_lengths=lengths))
    for line in (
        *_together(bare, helped, sources, targets),
        *_faults(bare, helped, sources, targets),
        *_spans(helped, [pair.source for pair in pairs], options.spans),
    ):
        print(line)
    return 0


def _bleu(texts: Sequence[str], targets: Sequence[str]) -> float:
    return float(bleu_metric(None).corpus_score(texts, [targets]).score)


def _translated(translator: Translator, texts: Sequence[str]) -> list[str]:
    return [" ".join(item.text.split()) for item in translator.translate(texts)]


def _together(
    bare: Translator, helped: Translator, sources: list[str], targets: list[str]
) -> Iterator[str]:
    """BLEU with several sentences on a line, and as a page and a list, and sentences written."""
    yield "| on a line | sentences in | out, before | out, now | BLEU before | BLEU now |"
    yield "|---|---|---|---|---|---|"
    forms = {f"{count} a line": (count, " ", "") for count in _TOGETHER}
    forms |= {"paragraphs of 5": (5, " ", "\n\n"), "a list": (1, " ", "\n- ")}
    for name, (count, space, between) in forms.items():
        rows = range(0, len(sources) - len(sources) % count, count)
        texts, references = (
            [space.join(side[row : row + count]) for row in rows] for side in (sources, targets)
        )
        if between:
            texts = [between.join(["", *texts]).strip("\n")]
            references = [" ".join(between.join(["", *references]).split())]
        scores, written = [], []
        for translator in (bare, helped):
            translations = _translated(translator, texts)
            written.append(sum(len(list(sentence_spans(text, "de"))) for text in translations))
            scores.append(_bleu(translations, references))
        given = len(rows) * count
        before, now = scores
        yield f"| {name} | {given} | {written[0]} | {written[1]} | {before:.1f} | {now:.1f} |"


def _faults(
    bare: Translator, helped: Translator, sources: list[str], targets: list[str]
) -> Iterator[str]:
    yield "| fault | BLEU before | BLEU now |"
    yield "|---|---|---|"
    for name, fault in FAULTS.items():
        # Of capitals, capitals are expected.
        references = [target.upper() for target in targets] if fault is str.upper else targets
        texts = [fault(source) for source in sources]
        before, now = (_bleu(_translated(each, texts), references) for each in (bare, helped))
        yield f"| {name} | {before:.1f} | {now:.1f} |"


def _spans(translator: Translator, sources: list[str], count: int) -> Iterator[str]:
    """How many spans, one put into each sentence, come through."""
    random_ = random.Random(1)
    lines = []
    for number, source in enumerate(sources[:count]):
        kind = list(SPANS)[number % len(SPANS)]
        words = source.split(" ")
        words.insert(random_.randint(1, len(words)), random_.choice(SPANS[kind]))
        lines.append((kind, " ".join(words)))
    texts = [text for _, text in lines]
    bare, kept = translator.translate(texts), ProtectingTranslator(translator).translate(texts)
    yield "| span | in | through, before | through, now |"
    yield "|---|---|---|---|"
    for kind in (*SPANS, "all"):
        rows = [row for row, (name, _) in enumerate(lines) if kind in (name, "all")]
        through = [
            sum(not lost_spans(texts[row], translations[row].text) for row in rows)
            for translations in (bare, kept)
        ]
        yield f"| {kind} | {len(rows)} | {through[0]} | {through[1]} |"


if __name__ == "__main__":
    sys.exit(main())
