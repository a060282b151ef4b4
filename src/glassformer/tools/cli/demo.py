"""``glassformer demo``: trains a translator of dates, times and amounts while you watch."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from glassformer.config import Options
from glassformer.support.consoles import new_console
from glassformer.support.errors import InputError
from glassformer.support.files import write_atomically
from glassformer.support.progress import console
from glassformer.tools.phrasebook.book import (
    KINDS,
    Phrase,
    Phrasebook,
    normalise,
    oracle,
    phrasebook,
)
from glassformer.training.setup.options import TrainConfig

if TYPE_CHECKING:
    from rich.table import Table

    from glassformer.parts import Parts
    from glassformer.training.validation import Validation
    from glassformer.translator import Translator

__all__ = [
    "OPTIONS",
    "DemoOptions",
    "PhraseOptions",
    "run",
    "score_table",
    "train_on_phrases",
]

_MOST_PHRASES = 200_000  # the drawing of more phrases takes longer than the training
_KNOWN = "dates, times and amounts of money, from Unicode's CLDR"
_WATCHED = 500  # held-out phrases that each validation translates


class PhraseOptions(Options):
    """The phrases of a training, and its length."""

    size: int = Field(36_000, ge=100, le=_MOST_PHRASES)
    """Number of training phrases."""
    epochs: float = Field(4.8, gt=0)
    """Number of times that the training reads the phrases."""
    seed: int = Field(1, ge=0, lt=2**32)
    """Seed of the phrases and of the training."""


class DemoOptions(PhraseOptions):
    """Train a small translator of dates, times and amounts of money, and show it at work.

    The phrases come from Unicode's CLDR. The training sees no phrase with certain held-out years,
    and the score counts phrases with held-out years. A second equal call skips the training.
    """

    source: str = "en"
    """CLDR name of the language to translate from."""
    target: str = "de"
    """CLDR name of the language to translate to."""
    out: Path = Path("demo")
    """Directory of the run, whose files lie in OUT/SOURCE-TARGET."""
    phrase: tuple[str, ...] = ()
    """Your phrases, which the demo translates and judges at the end. Without phrases, a demo in a
    terminal asks for some."""


OPTIONS = DemoOptions


def run(options: DemoOptions) -> int:
    """Make the phrases, train, score, draw, and translate the person's phrases."""
    directory = options.out / f"{options.source}-{options.target}"
    book, status = train_on_phrases(options, directory)
    if status:
        return status
    from glassformer.translator import Translator

    translator = Translator.load(directory)
    _print_scores(translator, book.test)
    _draw(translator, options, directory)
    _ask(translator, options)
    print("Next, a translator of everyday sentences: docs/how-to/everyday-sentences.md")
    return 0


def train_on_phrases(
    options: DemoOptions,
    directory: Path,
    *,
    parts: "Parts | None" = None,
    whose: Mapping[str, str] | None = None,
    changes: Mapping[str, object] | None = None,
) -> tuple[Phrasebook, int]:
    """The phrasebook, and the exit status of a training on its phrases in the directory.

    The bundle gets examples from the book, and ``whose``, which names the owner of each part.
    ``changes`` holds training options that replace the demo's.
    """
    from glassformer.bundle import MOST_EXAMPLES, load_bundle, save_bundle
    from glassformer.parts import FAST
    from glassformer.tools.cli import train

    book = phrasebook(
        source=options.source, target=options.target, seed=options.seed, size=options.size
    )
    watched = book.validation[:_WATCHED]
    files = {"train": book.train, "valid": watched, "test": book.test}
    (directory / "phrases").mkdir(parents=True, exist_ok=True)
    for name, phrases in files.items():
        lines = "".join(f"{phrase.source}\t{phrase.target}\n" for phrase in phrases)
        write_atomically(directory / "phrases" / f"{name}.tsv", lines.encode())
    config = _config(options, directory).model_copy(update=dict(changes or {}))
    shown = [next(p for p in watched if p.kind == kind) for kind in _kinds(watched)]
    status = train.run(config, _Watcher(shown), parts)
    if not status:
        forms = parts or FAST
        bundle = load_bundle(directory, build=forms.build, own=forms.own)
        examples = tuple(phrase.source for phrase in shown[:MOST_EXAMPLES])
        about = {**bundle.about, "data": _KNOWN, **({"parts": dict(whose)} if whose else {})}
        save_bundle(replace(bundle, examples=examples, about=about), directory)
    return book, status


def _config(options: DemoOptions, directory: Path) -> TrainConfig:
    """The options of a small model and a schedule of under three minutes on two cores."""
    return TrainConfig(
        pairs=(directory / "phrases" / "train.tsv",),
        valid=(directory / "phrases" / "valid.tsv",),
        run=directory,
        languages=(options.source, options.target),
        vocab_size=700,
        preset="tiny",
        d_model=64,
        d_ff=256,
        num_encoder_layers=2,
        num_decoder_layers=2,
        norm="pre",
        # Each phrase has one right translation, so the model needs no doubt.
        dropout=0.0,
        label_smoothing=0.0,
        both_ways=0.0,
        joined_pairs=0.0,
        epochs=options.epochs,
        batch_tokens=1024,
        optimiser="muon",  # over 99 % exact; the paper's Adam reaches 93.9 to 96.5 %
        warmup=300,
        rate_factor=0.8,
        anneal=0.5,
        validations=8,
        patience=0,
        average="none",
        beam=1,
        seed=options.seed,
    )


def _kinds(phrases: Sequence[Phrase]) -> list[str]:
    present = {phrase.kind for phrase in phrases}
    return [kind for kind in KINDS if kind in present]


class _Watcher:
    """Shows a few fixed phrases after each validation, whose translations turn right in time."""

    def __init__(self, shown: Sequence[Phrase]) -> None:
        self.console = console()
        self.shown = shown

    def note(self, text: str) -> None:
        # The tables show exact match, the score of this corpus.
        if not text.startswith(("validation", "bundle")):
            self.console.print(text, markup=False)

    def update(self, record: dict[str, Any], *, updates: int, seconds_left: float) -> None:
        pass

    def validated(self, record: dict[str, Any], validation: "Validation") -> None:
        from rich.table import Table
        from rich.text import Text

        sources = [pair.source for pair in validation.pairs]
        translations = dict(zip(sources, validation.translations, strict=True))
        title = (
            f"after {record['seconds']:.0f} s: loss {record['loss']:.4f},"
            f" {record['exact_match']:.1f} % of {len(validation.pairs)} phrases with unseen years"
            " are right"
        )
        self.console.print(title)  # a table would break the title at the table's width
        table = Table("phrase", "translation so far", "", "right translation")
        for phrase in self.shown:
            translation = translations.get(phrase.source, "")
            right = translation == phrase.target
            table.add_row(
                Text(phrase.source),
                Text(translation[:60], style="green" if right else "red"),
                "right" if right else "wrong",
                Text(phrase.target),
            )
        self.console.print(table, soft_wrap=False)

    def close(self) -> None:
        pass


def _print_scores(translator: "Translator", test: Sequence[Phrase]) -> None:
    """Print the exact match on phrases with years that training and validation lack."""
    translations = translator.translate([phrase.source for phrase in test], beam=1)
    texts = {"right": [translation.text for translation in translations]}
    new_console().print(score_table("exact match on held-out years", test, texts))


def score_table(
    title: str, phrases: Sequence[Phrase], translations: Mapping[str, Sequence[str]]
) -> "Table":
    """The exact match of each kind of phrase, with a column for each translator."""
    from rich.table import Table

    table = Table("kind", "phrases", *translations, title=title, title_justify="left")
    for kind in [*_kinds(phrases), "all"]:
        places = [place for place, phrase in enumerate(phrases) if kind in (phrase.kind, "all")]
        rights = [
            sum(texts[place] == phrases[place].target for place in places)
            for texts in translations.values()
        ]
        shares = [f"{100 * right / len(places):.1f} %" for right in rights]
        table.add_row(kind, str(len(places)), *shares)
    return table


def _draw(translator: "Translator", options: DemoOptions, directory: Path) -> None:
    """Draw the cross-attention of one date, in which day and month change places."""
    try:
        from glassformer.tools.inspection.attention_of import attention_of
        from glassformer.tools.inspection.plots.attention import plot_attention_of
        from glassformer.tools.inspection.plots.canvas import save
    except InputError as error:  # without matplotlib the demo goes on without a picture
        print(f"no picture: {error}")
        return
    text = _date(options.source)
    translation = translator.translate([text])[0].text
    figure = plot_attention_of(attention_of(translator, text, translation), head="mean")
    path = directory / "attention.png"
    save(figure, path)
    print(f"attention of {translation!r} to {text!r}: {path}")


def _date(language: str) -> str:
    from datetime import date

    from babel.dates import format_date

    return normalise(str(format_date(date(2030, 3, 4), "long", locale=language)))


def _ask(translator: "Translator", options: DemoOptions) -> None:
    for phrase in options.phrase:
        print(f"{phrase}  ->  {_judged(translator, phrase, options)}")
    if options.phrase or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    print(f"Type a phrase, such as {_date(options.source)}; an empty line ends the demo.")
    with suppress(EOFError):
        for phrase in iter(lambda: input("> ").strip(), ""):
            print(_judged(translator, phrase, options))


def _judged(translator: "Translator", phrase: str, options: DemoOptions) -> str:
    text = normalise(phrase)
    translation = translator.translate([text])[0].text
    right = oracle(text, source=options.source, target=options.target)
    if right is None:
        return f"{translation}  (not in the phrasebook: it has no right translation to compare)"
    return f"{translation}  (right)" if translation == right else f"{translation}  (wrong: {right})"
