"""``glassformer doctor``: reports a corpus's faults and the choices of a training on it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple
from pathlib import Path

from pydantic import Field

from glassformer.data.corpus import Limits, read_pairs
from glassformer.data.preprocessing import SourceLengths
from glassformer.support.errors import counted
from glassformer.support.progress import shown_progress, working
from glassformer.tools.doctor.cleaning import check_folder, write_clean
from glassformer.tools.doctor.examine import CorpusFiles, Report, examine
from glassformer.tools.doctor.report import Finding, Lengths, PartReport
from glassformer.training.setup.augmentation import settle_joined_pairs
from glassformer.training.setup.kept_pairs import even_sample
from glassformer.training.setup.options import PairOptions, TrainConfig
from glassformer.training.setup.recipe import choose_in_time, estimated_tokens

__all__ = ["OPTIONS", "DoctorOptions", "run"]


class DoctorOptions(PairOptions):
    """Examine a corpus before training: list its faults and the pairs that training drops.

    The exit status is 0 if training can start, and 1 if a fault prevents training.
    """

    minutes: float | None = Field(None, gt=0)
    """Show the choices of 'train --minutes X' on this machine."""
    out: Path | None = None
    """Directory for mended files; the report counts the changes."""
    as_json: bool = Field(False, alias="json")
    """Print one JSON object instead of the tables."""


OPTIONS = DoctorOptions


@shown_progress()
def run(options: DoctorOptions) -> int:
    """Examine the corpus and print the report; return 1 if training could not go on, else 0.

    Raises:
        UsageError: an option is out of range, or two options do not go together.
        InputError: a file cannot be read at all.
    """
    files = {"train": options.pairs, "valid": options.valid, "test": options.test}
    parts = {
        name: CorpusFiles(*files, format=options.format, keys=options.keys)
        for name, files in files.items()
        if files
    }
    if options.out:
        check_folder(options.out, parts)
    with working("examining"):
        report = examine(**parts, limits=options.limits)
    results: dict[str, list[str]] = {"choices": _choices(report, options)}
    if options.out:
        results["written"] = _write(options.out, report, parts=parts, limits=options.limits)
    if options.as_json:
        print(json.dumps(asdict(report) | results, indent=2))
    else:
        choices = [f"  {choice}" for choice in results["choices"]]
        written = ["", *results["written"]] if options.out else []
        print("\n".join([_as_text(report), *choices, *written]))
    return 0 if report.ok else 1


def _as_text(report: Report) -> str:
    lines: list[str] = []
    for name, part in report.parts.items():
        lines += [*_part(name, part), ""]
    for overlap in report.overlaps:
        sources, targets = counted(overlap.sources, "source"), counted(overlap.targets, "target")
        lines.append(
            f"of {overlap.part}, {counted(overlap.pairs, 'pair')}, {sources} and {targets} stand in"
            f" {overlap.within} too"
        )
    lines += [""] if report.overlaps else []
    findings = [line for finding in report.findings for line in _finding(finding)]
    lines += findings or ["no fault was found"]
    return "\n".join([*map(_printable, lines), "", _verdict(report)])


def _part(name: str, part: PartReport) -> Iterator[str]:
    yield f"{name}: {counted(part.pairs, 'pair')} ({part.format})"
    for path, count in zip(part.files, part.lines, strict=True):
        yield f"  {path}: {counted(count, 'line')}"
    heads = ("min", "median", "mean", "95 %", "99 %", "max")
    yield f"  {'':18}" + "".join(f"{head:>9}" for head in heads)
    for title, side in (("source", part.source), ("target", part.target)):
        yield from _lengths(f"{title} characters", side.characters)
        yield from _lengths(f"{title} words", side.words)
    for title, side in (("source", part.source), ("target", part.target)):
        shares = ", ".join(
            f"{script} {share:.1%}" if share >= 0.001 else f"{script} < 0.1%"
            for script, share in side.scripts.items()
        )
        yield f"  {title} scripts     {shares or 'no letters'}"


def _lengths(title: str, table: Lengths | None) -> Iterator[str]:
    if table is not None:
        numbers = [f"{n:,.1f}" if isinstance(n, float) else f"{n:,}" for n in astuple(table)]
        yield f"  {title:18}" + "".join(f"{number:>9}" for number in numbers)


def _finding(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity:8} {finding.where}: {finding.meaning}"
    if finding.lines:
        places = ", ".join(str(line) for line in finding.lines)
        more = ", …" if finding.count > len(finding.lines) else ""
        example = f": {finding.example}" if finding.example else ""
        yield f"         {counted(finding.count, 'line')} ({places}{more}){example}"


def _verdict(report: Report) -> str:
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in report.dropped.items() if count)
    pairs = f"{report.kept + sum(report.dropped.values()):,} training pairs"
    kept = f"keep {report.kept:,} of {pairs}"
    does = f"{kept} and drop {dropped}" if dropped else kept
    first = "" if report.ok else "mend the errors above before you train; then "
    return f"{first}training would {does}"


def _choices(report: Report, options: DoctorOptions) -> list[str]:
    """The choices of a training on this corpus, in the words that the training prints."""
    if not report.ok:
        return []
    corpus = options.model_dump(include=set(PairOptions.model_fields))
    config = TrainConfig(**corpus, run=Path("runs"), minutes=options.minutes)
    speed = None
    if config.minutes:  # these modules load torch; otherwise the doctor starts at once
        from glassformer.support.devices import device_of
        from glassformer.training.setup.machine import machine_speed

        speed = machine_speed(config, device_of(config.device))
    tokens = estimated_tokens(report.characters)
    _, reasons = choose_in_time(config, pairs=report.kept, tokens=tokens, speed=speed)
    pairs = read_pairs(*config.pairs, format=config.format, keys=config.keys)
    sample = even_sample(pairs, report.kept)
    language, _ = config.language_pair or (None, None)
    lengths = SourceLengths.of([pair.source for pair in sample], language)
    return [*reasons, *settle_joined_pairs(config, lengths)[1]]


def _write(
    folder: Path, report: Report, *, parts: Mapping[str, CorpusFiles], limits: Limits
) -> list[str]:
    """Writes the mended files, or none after an error; yields a line for each kind of change."""
    if not report.ok:
        return [f"{folder}: nothing is written: mend the errors above first"]
    with working("writing"):
        cleaned = write_clean(folder, parts, limits=limits)
    pairs = ", ".join(
        f"{counted(count, 'pair')} in {name}" for name, count in cleaned.pairs.items()
    )
    changes = sorted(cleaned.changes.items(), reverse=True)
    lines = [f"  {counted(count, 'pair')} {change}" for change, count in changes if count]
    return [f"{folder}: {pairs}", *lines]


def _printable(line: str) -> str:
    """The line with escapes for control characters, which a terminal would obey or hide."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
