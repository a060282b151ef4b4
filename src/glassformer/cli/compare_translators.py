"""``learn compare``: two translators side by side: scores, translations, losses, attention."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from glassformer.cli.own_translator import running
from glassformer.data.phrasebook.book import KINDS, Phrase, phrasebook
from glassformer.errors import InputError
from glassformer.learn.parts import hole_of
from glassformer.learn.record import parts_for, read_record

if TYPE_CHECKING:
    from glassformer.inspection.attention_of import Attention
    from glassformer.translator import Translator

__all__ = ["compare"]

_PHRASES = 12_000  # the size of the phrasebook: a 12th of it is for tests
_SHOWN = 5  # phrases with their translations


@dataclass(frozen=True)
class _Side:
    """One of the translators, run with the mistakes that it was trained with."""

    directory: Path
    parts: Path | None

    @property
    def name(self) -> str:
        return self.directory.name

    @contextmanager
    def translator(self) -> Iterator["Translator"]:
        from glassformer.learn.parts import own_parts
        from glassformer.parts import FAST
        from glassformer.translator import Translator

        parts = parts_for(self.directory, self.parts)
        with running(parts):
            yield Translator.load(self.directory, parts=own_parts(parts) if parts else FAST)

    def described(self) -> str:
        """Its name, and the parts that it was trained with."""
        recorded = read_record(self.directory)
        mistakes = dict.fromkeys(fault for each in recorded for fault in each.mistakes)
        own = [hole_of(each.place) for each in recorded if not each.mistakes]
        words = [f"mistakes: {', '.join(mistakes)}"] if mistakes else []
        if own:
            words.append(f"own parts: {', '.join(own)}")
        return f"{self.directory}: {'; '.join(words) or 'the parts of the package'}"


def compare(directories: Sequence[Path], out: Path, parts: Path | None) -> int:
    """Print scores and translations of both, and draw their losses and their attention."""
    sides = [_Side(directory, parts) for directory in directories]
    names = [side.name for side in sides]
    if names[0] == names[1]:
        raise InputError(f"{directories[0]} and {directories[1]}: expected two different names")
    with sides[0].translator() as translator:
        source, target = translator.bundle.languages or ("en", "de")
    phrases = phrasebook(source=source, target=target, seed=1, size=_PHRASES).test
    translations = [_translations(side, phrases) for side in sides]
    console = Console(highlight=False)
    for side in sides:
        console.print(side.described(), markup=False, soft_wrap=True)
    console.print(_scores(names, phrases, translations))
    console.print(_examples(names, phrases, translations))
    _draw(sides, phrases, out)
    return 0


def _translations(side: _Side, phrases: Sequence[Phrase]) -> list[str]:
    with side.translator() as translator:
        texts = [phrase.source for phrase in phrases]
        return [each.text for each in translator.translate(texts, beam=1)]


def _scores(
    names: Sequence[str], phrases: Sequence[Phrase], translations: Sequence[Sequence[str]]
) -> Table:
    """The exact match of each kind of phrase."""
    table = Table("kind", "phrases", *names, title="exact match", title_justify="left")
    for kind in (*KINDS, "all"):
        places = [place for place, phrase in enumerate(phrases) if kind in (phrase.kind, "all")]
        if places:
            rights = [
                sum(texts[place] == phrases[place].target for place in places)
                for texts in translations
            ]
            shares = [f"{100 * right / len(places):.1f} %" for right in rights]
            table.add_row(kind, str(len(places)), *shares)
    return table


def _examples(
    names: Sequence[str], phrases: Sequence[Phrase], translations: Sequence[Sequence[str]]
) -> Table:
    """The first phrases that the two translate differently; or the first of all."""
    different = [place for place, (a, b) in enumerate(zip(*translations, strict=True)) if a != b]
    table = Table("phrase", *names, title="phrases", title_justify="left")
    for place in (different or list(range(len(phrases))))[:_SHOWN]:
        right = phrases[place].target
        texts = [each[place] for each in translations]
        cells = [Text(text, style="green" if text == right else "red") for text in texts]
        table.add_row(Text(phrases[place].source), *cells)
    return table


def _draw(sides: Sequence[_Side], phrases: Sequence[Phrase], out: Path) -> None:
    """Two pictures: the losses, and the cross-attention for the first phrase and its target."""
    from glassformer.inspection.plots.attention import plot_attentions
    from glassformer.inspection.plots.canvas import save
    from glassformer.inspection.plots.training_curves import plot_losses, read_metrics

    out.mkdir(parents=True, exist_ok=True)
    phrase = phrases[0]
    losses = plot_losses({side.name: read_metrics(side.directory) for side in sides})
    save(losses, out / "losses.png")
    attentions = {side.name: _attention(side, phrase) for side in sides}
    title = f"Cross-attention: {phrase.source}"
    save(plot_attentions(attentions, title=title), out / "attention.png")
    print(f"wrote {out / 'losses.png'} and {out / 'attention.png'}")


def _attention(side: _Side, phrase: Phrase) -> "Attention":
    from glassformer.inspection.attention_of import attention_of

    with side.translator() as translator:
        return attention_of(translator, phrase.source, phrase.target)
