"""``learn compare``: scores, translations, losses and attention of two translators."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from glassformer.parts import FAST
from glassformer.support.consoles import new_console
from glassformer.support.errors import InputError
from glassformer.tools.cli.demo import score_table
from glassformer.tools.cli.own_translator import running
from glassformer.tools.inspection.attention_of import Attention, attention_of
from glassformer.tools.inspection.plots.canvas import Figure, save
from glassformer.tools.inspection.plots.tensors import plot_attention
from glassformer.tools.inspection.plots.training_curves import plot_losses, read_metrics
from glassformer.tools.learn.parts import own_parts
from glassformer.tools.learn.record import parts_for, read_record
from glassformer.tools.phrasebook.book import Phrase, phrasebook
from glassformer.translator import Translator

__all__ = ["compare"]

_PHRASES = 12_000  # the size of the phrasebook; a 12th of the phrases is for tests
_SHOWN = 5  # phrases with their translations


def compare(directories: Sequence[Path], out: Path, folder: Path | None) -> int:
    """Print scores and translations of two translators, and draw their losses and attention.

    A translator runs with the mistakes of its training and the learned parts of ``folder``.
    """
    if directories[0].name == directories[1].name:
        raise InputError(f"{directories[0]} and {directories[1]}: expected two different names")
    parts = {directory: parts_for(directory, folder) for directory in directories}
    with running([part for each in parts.values() for part in each]):
        translators = {
            directory.name: Translator.load(directory, parts=own_parts(each) if each else FAST)
            for directory, each in parts.items()
        }
        bundle = translators[directories[0].name].bundle
        source, target = bundle.languages or ("en", "de")
        phrases = phrasebook(source=source, target=target, seed=1, size=_PHRASES).test
        texts = [phrase.source for phrase in phrases]
        translations = {
            name: [each.text for each in translator.translate(texts, beam=1)]
            for name, translator in translators.items()
        }
        attentions = {
            name: attention_of(translator, phrases[0].source, phrases[0].target)
            for name, translator in translators.items()
        }
    console = new_console()
    for directory in directories:
        console.print(Text(_described(directory)))
    console.print(score_table("exact match", phrases, translations))
    console.print(_examples(phrases, translations))
    out.mkdir(parents=True, exist_ok=True)
    metrics = {directory.name: read_metrics(directory) for directory in directories}
    save(plot_losses(metrics), out / "losses.png")
    title = f"Cross-attention: {phrases[0].source}"
    save(_attentions(attentions, title), out / "attention.png")
    print(f"wrote {out / 'losses.png'} and {out / 'attention.png'}")
    return 0


def _attentions(attentions: Mapping[str, Attention], title: str) -> Figure:
    """The mean of the heads, with a row for each translator and a column for each layer."""
    (first, one), (second, other) = attentions.items()
    labels = (one.query_labels, one.key_labels)
    if one.weights.shape != other.weights.shape or labels != (other.query_labels, other.key_labels):
        raise InputError(f"{second} has other subwords or layers than {first}")
    weights = [each.weights.mean(dim=1) for each in attentions.values()]
    return plot_attention(weights, *labels, rows=[*attentions], columns="layer", title=title)


def _described(directory: Path) -> str:
    """The directory, and the parts of its translator's training."""
    recorded = read_record(directory)
    mistakes = dict.fromkeys(name for each in recorded for name in each.mistakes)
    own_lessons = dict.fromkeys(
        Path(each.file).stem.partition("_")[2] for each in recorded if each.file
    )
    words = [f"mistakes: {', '.join(mistakes)}"] if mistakes else []
    if own_lessons:
        words.append(f"own lessons: {', '.join(own_lessons)}")
    return f"{directory}: {'; '.join(words) or 'the parts of the package'}"


def _examples(phrases: Sequence[Phrase], translations: Mapping[str, Sequence[str]]) -> Table:
    """A table of phrases with different translations, or of the first phrases if none differ."""
    rows = list(zip(phrases, *translations.values(), strict=True))
    different = [row for row in rows if row[1] != row[2]]
    table = Table("phrase", *translations, title="phrases", title_justify="left")
    for phrase, *texts in (different or rows)[:_SHOWN]:
        cells = [Text(text, style="green" if text == phrase.target else "red") for text in texts]
        table.add_row(Text(phrase.source), *cells)
    return table
