"""``glassformer evaluate``: scores translations of a file or of a bundle."""

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import Field

from glassformer.config import BEAM, MOST_BEAM
from glassformer.data.corpus import read_lines, read_pairs
from glassformer.data.file_formats import file_format
from glassformer.data.words import is_unspaced, words
from glassformer.evaluation import (
    LANGUAGES,
    MOSES,
    Scores,
    corpus_scores,
    metric_for,
    reference_loss,
)
from glassformer.significance import Comparison, compare
from glassformer.support.errors import InputError, UsageError, check_choice, counted, missing_extra
from glassformer.support.files import check_output, write_atomically
from glassformer.support.languages import language_of
from glassformer.support.progress import shown_progress, working
from glassformer.tools.cli.loading import LoadingOptions

__all__ = ["OPTIONS", "EvaluateOptions", "run"]


class EvaluateOptions(LoadingOptions):
    """Score the translations of a bundle or of a file.

    glassformer evaluate BUNDLE SOURCE TARGET translates SOURCE and scores it against TARGET.
    A TSV or JSON-lines file holds both sides, as in glassformer evaluate BUNDLE test.tsv.
    glassformer evaluate --hypotheses FILE --references FILE [FILE …] scores the lines of FILE.
    --baseline names a second file of translations for a significance test of the difference.
    """

    bundle: Path | None = Field(None, title="BUNDLE")
    """Directory of a trained translator."""
    source: Path | None = Field(None, title="SOURCE")
    """Text to translate, plain or gzip, with a sentence a line, or a file of pairs."""
    target: Path | None = Field(None, title="TARGET")
    """Reference translations; line n translates line n of SOURCE."""
    hypotheses: Path | None = None
    """File of translations to score, instead of a bundle's translations."""
    references: tuple[Path, ...] = ()
    """Reference translations of --hypotheses, one a line. Several files give several a line."""
    baseline: Path | None = None
    """Translations by another system, for a comparison by paired bootstrap."""
    language: str | None = None
    """Target language, such as de, by which the scores tokenise text. None means the ending of the
    references' name, as in test.de, or else the bundle's language."""
    beam: int = Field(BEAM, ge=1, le=MOST_BEAM)
    """Hypotheses of the beam search, with a bundle; 1 means greedy search."""
    out: Path | None = None
    """File for the translations of the bundle."""
    as_json: bool = Field(False, alias="json")
    """Print one JSON object instead of the table."""


OPTIONS = EvaluateOptions

_MANY = 4  # words; if a longer text has no space, its language has no spaces


@shown_progress()
def run(options: EvaluateOptions) -> int:
    """Translate with a bundle, if there is one; print the scores; return the exit status 0.

    Raises:
        UsageError: an option is missing, or two options do not go together.
        InputError: a file cannot be read or written, or the files have unequal lengths.
    """
    texts_file, references = _files(options)
    language = _language(options.language, (*references, texts_file)[0])
    if not references:
        pairs = list(read_pairs(texts_file))
        texts, streams = [pair.source for pair in pairs], [[pair.target for pair in pairs]]
    else:
        streams = [list(read_lines(references[0]))]
        streams += [_read_beside(file, references[0], len(streams[0])) for file in references[1:]]
        texts = _read_beside(texts_file, references[0], len(streams[0]))
    baseline = None
    if options.baseline:
        baseline = _read_beside(options.baseline, (*references, texts_file)[0], len(texts))
    hypotheses, loss = texts, None
    if options.bundle:
        hypotheses, loss, target = _translate(options.bundle, texts, streams[0], options=options)
        language = language or target
    for remark in _remarks(streams[0], language):
        print(f"glassformer: {remark}", file=sys.stderr)
    with working("scoring"):
        scores = corpus_scores(hypotheses, streams, language=language)
        scores = dataclasses.replace(scores, loss=loss)
        comparison = compare(baseline, hypotheses, streams, language=language) if baseline else None
    print(_shown(scores, comparison, language=language, as_json=options.as_json))
    return 0


def _files(options: EvaluateOptions) -> tuple[Path, tuple[Path, ...]]:
    """The file to translate or score, and the reference files (none beside a file of pairs).

    Raises UsageError if the options do not go together.
    """
    of_bundle = {"BUNDLE": options.bundle, "SOURCE": options.source, "TARGET": options.target}
    of_files = {"--hypotheses": options.hypotheses, "--references": options.references}
    if options.bundle and options.source and not any(of_files.values()):
        if options.target:
            return options.source, (options.target,)
        try:
            file_format(options.source)
        except UsageError:
            raise UsageError(
                f"{options.source}: no format of pairs has this ending: give TARGET too, or"
                " a file of pairs, such as test.tsv or test.jsonl"
            ) from None
        return options.source, ()
    if all(of_files.values()) and not any((*of_bundle.values(), options.out)):
        return Path(str(options.hypotheses)), options.references
    named = (of_bundle | of_files | {"--out": options.out}).items()
    given_names = ", ".join(name for name, value in named if value) or "nothing"
    raise UsageError(
        f"evaluate was given {given_names}: expected BUNDLE SOURCE TARGET [--out FILE], "
        "BUNDLE FILE.tsv, or --hypotheses FILE --references FILE"
    )


def _language(asked: str | None, references: Path) -> str | None:
    """The language ``asked`` for, or the ending of a name such as ``test.de`` or ``test.de.gz``."""
    ending = Path(references.name.removesuffix(".gz")).suffix.removeprefix(".")
    code = language_of(asked or ending)
    if asked and code not in LANGUAGES:
        check_choice("--language", asked, LANGUAGES)
    return code if code in LANGUAGES else None


def _remarks(references: Sequence[str], language: str | None) -> Iterator[str]:
    """A line for each fault of the references that makes the scores mean less."""
    blank = sum(not text.strip() for text in references)
    if blank:
        yield f"{counted(blank, 'reference')} of {len(references):,} blank: no translation is right"
    unbroken = sum(len(text.split()) == 1 and len(words(text)) > _MANY for text in references)
    if 2 * unbroken > len(references) and not is_unspaced(language):
        yield (
            "most references have no spaces between words, so BLEU means nothing: give --language,"
            " such as zh"
        )
    elif metric_for(references, language) == "chrf":
        yield (
            "hardly any reference has four words, and BLEU counts groups of four: compare chrF++"
        )


def _read_beside(path: Path, references: Path, expected: int) -> list[str]:
    lines = list(read_lines(path))
    if len(lines) != expected:
        raise InputError(
            f"{path} has {counted(len(lines), 'line')} and {references} has {expected}: "
            "line n of one must belong to line n of the other"
        )
    return lines


def _translate(
    directory: Path, sources: Sequence[str], references: Sequence[str], *, options: EvaluateOptions
) -> tuple[list[str], float | None, str | None]:
    """The bundle's translations, its model's loss on the references, and its language."""
    if options.out:
        check_output("--out", options.out)
    options.set_threads()
    translator = options.load(directory)
    _, language = translator.bundle.languages or (None, None)
    hypotheses = [item.text for item in translator.translate(sources, beam=options.beam)]
    if options.out:  # one output line per input line
        lines = [hypothesis.replace("\n", " ") + "\n" for hypothesis in hypotheses]
        write_atomically(options.out, "".join(lines).encode())
    try:
        return hypotheses, reference_loss(translator, sources, references), language
    except InputError as error:  # a reference is too long for the model; all other scores stand
        print(f"glassformer: no loss: {error}", file=sys.stderr)
        return hypotheses, None, language


def _shown(
    scores: Scores, comparison: Comparison | None, *, language: str | None, as_json: bool
) -> str:
    if as_json:
        compared = {"comparison": comparison.as_dict()} if comparison else {}
        return json.dumps(scores.as_dict() | compared, indent=2, allow_nan=False)
    lines = [str(scores)]
    if scores.paper_ruler is None and not is_unspaced(language):
        lacks = missing_extra("sacremoses", "ruler") if language_of(language) in MOSES else None
        lines.append(f"no paper ruler: {lacks or 'it needs --language, such as de'}")
    if comparison:
        lines += ["", str(comparison)]
    return "\n".join(lines)
