"""Decoding: one trained bundle through all engines, the same search, outputs compared.

Greedy (beam 1) and beam 5, a whole file at once and one sentence at a time, or those of them that
are asked for. Every engine has its best setting: it is tried in each for some of the sentences,
then all run in turn, A B C C B A. The length penalty is 0, because the engines' penalties are
different formulas.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.environments import Unavailable, interpreter
from benchmarks.figure import bars
from benchmarks.machine import facts
from benchmarks.options import Options
from benchmarks.pairs import Contender, Failed, rounds, run, spread
from benchmarks.prepared import Corpus, read_corpus
from benchmarks.report import save, shown, table
from benchmarks.training import matrix_peak
from glassformer.bundle import Bundle, load_bundle
from glassformer.config import TrainConfig
from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import InputError
from glassformer.evaluation import corpus_scores

__all__ = ["main", "share_of_same", "splits_of"]

EXTRA = 50  # section 6.1: how much longer than its source a translation may be
_TRIED = 200  # sentences of a trial
_WIDEST = 90  # characters of a reason in the table
_UPDATES = 300  # of the bundle that is trained where none is given

_AS_OURS = {"float32": "float32", "bf16": "bfloat16"}  # what ours call a precision

WITH_ENGINE = "Glassformer, engine ctranslate2,"
WITH_COMMAND = "glassformer translate --engine ctranslate2,"

Engine = tuple[str, str, str, dict[str, Any]]  # name, environment, module, job


def main(options: Options) -> None:
    corpus = read_corpus(options.data, options.languages)
    place = options.work / corpus.name
    directory = options.bundle or _trained(options, corpus, place / "bundle")
    bundle = load_bundle(directory)
    texts = corpus.sources[: options.sentences]
    references = corpus.references[: options.sentences]
    job: dict[str, Any] = {
        "bundle": str(directory.resolve()),
        "exported": _exported(bundle, place / "exported"),
        "threads": options.threads,
        "device": options.device,
        "extra": EXTRA,
        "workers": 1,
        "batch": 64,
        "compute": "float32",
    }
    slow = matrix_peak(options)
    computes = ["float32"] if slow["bf16"] < 0.5 * slow["float32"] else ["float32", "bf16"]
    for way, beam in product(options.ways, options.beams):
        one = way == "one"
        few = _written(texts[:_TRIED], bundle.source_tokenizer, place / "few.json")
        every = _written(texts, bundle.source_tokenizer, place / "sources.json")
        task = {**job, "one": one, "beam": beam}
        chosen = [
            _best(name, engines, {**task, "sources": few}, options)
            for name, engines in _engines(task, computes).items()
        ]
        ready = [
            replace(best, job={**best.job, "sources": every})
            for best in chosen
            if isinstance(best, Contender)
        ]
        found = rounds(ready, number=options.pairs, timeout=options.timeout)
        _show(options, corpus, bundle, (ready, found, chosen), references, one=one, beam=beam)


def _engines(task: dict[str, Any], computes: Sequence[str]) -> dict[str, list[Engine]]:
    """For each row of the table, the settings of which the fastest is taken."""
    ours = ("ours", "translate_ours")
    theirs = ("marian", "translate_hugging_face")
    raw = ("ctranslate2", "translate_ctranslate2")
    batches = (1,) if task["one"] else (32, 128)
    splits = splits_of(task["threads"], one=task["one"])
    threads = sorted({each for _, each in splits}) if task["one"] else [task["threads"]]
    found: dict[str, list[Engine]] = {
        "Glassformer": [
            (f"torch {compute}", *ours, {"engine": "torch", "compute": _AS_OURS[compute]})
            for compute in computes
        ],
        "Hugging Face": [
            (
                f"{compute}, {each} threads, {batch} at once",
                *theirs,
                {"compute": compute, "threads": each, "batch": batch},
            )
            for compute, each, batch in product(computes, threads, batches)
        ],
    }
    for compute in ("float32", "int8"):
        asked = {"engine": "ctranslate2", "compute": compute}
        found[f"{WITH_ENGINE} {compute}"] = [("", *ours, asked)]
        if not task["one"]:
            found[f"{WITH_COMMAND} {compute}"] = [("", "ours", "translate_command", asked)]
        found[f"CTranslate2 {compute}"] = [
            (
                f"{workers} x {each} threads, {batch} at once",
                *raw,
                {"compute": compute, "workers": workers, "threads": workers * each, "batch": batch},
            )
            for (workers, each), batch in product(splits, batches)
        ]
    return found


def splits_of(threads: int, *, one: bool) -> list[tuple[int, int]]:
    """Numbers of workers and of threads for each; a single sentence may be too small to share.

    >>> splits_of(6, one=False), splits_of(6, one=True)
    ([(1, 6), (2, 3), (3, 2), (6, 1)], [(1, 1), (1, 6)])
    """
    if one:
        return [(1, count) for count in sorted({1, threads})]
    return [(workers, threads // workers) for workers in range(1, threads + 1)
            if threads % workers == 0]  # fmt: skip


def _best(
    name: str, engines: Sequence[Engine], job: dict[str, Any], options: Options
) -> Contender | str:
    """The fastest of the settings, or why none runs."""
    tried: list[tuple[float, Contender]] = []
    reason = ""
    for setting, environment, module, more in engines:
        try:
            python = interpreter(environment, device=options.device)
            one = Contender(name, python, module, {**job, **more}, setting)
            speed = run(one, timeout=options.timeout)["sentences_per_second"]
        except (Unavailable, Failed) as fault:
            reason = str(fault) if isinstance(fault, Failed) else f"{name} {fault}"
            print(reason)
            continue
        print(f"{one}: {speed:,.1f} sentences/s in a trial")
        tried.append((speed, one))
    return max(tried, key=lambda found: found[0])[1] if tried else reason


def _show(
    options: Options,
    corpus: Corpus,
    bundle: Bundle,
    runs: tuple[list[Contender], list[list[dict[str, Any]]], list[Contender | str]],
    references: list[str],
    *,
    one: bool,
    beam: int,
) -> None:
    """The table, the JSON and the picture of one way to decode."""
    ready, found, chosen = runs
    texts = [_texts(report["outputs"], bundle.target_tokenizer) for report in found[0]]
    speeds = {
        str(engine): spread([one_round[place]["sentences_per_second"] for one_round in found])
        for place, engine in enumerate(ready)
    }
    names = [engine.name for engine in ready]
    rows = []
    for place, engine in enumerate(ready):
        compute = engine.job["compute"]
        rows.append(
            [
                str(engine),
                shown(speeds[str(engine)], ",.1f"),
                _ratio(found, names, "Glassformer", place),
                _ratio(found, names, f"{WITH_ENGINE} {compute}", place),
                _ratio(found, names, f"{WITH_COMMAND} {compute}", place),
                f"{100 * share_of_same(texts[0], texts[place]):.1f} %",
                f"{corpus_scores(texts[place], references, quick=True).bleu:.2f}",
                _megabytes([one_round[place]["peak_bytes"] for one_round in found]),
            ]
        )
    rows += [[text[:_WIDEST], *[""] * 7] for text in chosen if isinstance(text, str)]
    way = "one sentence at a time" if one else f"{len(references):,} sentences at once"
    title = f"Decoding, {'greedy' if beam == 1 else f'beam {beam}'}, {way} ({corpus.name})"
    columns = ["", "sentences/s", "Glassformer / this", "its ctranslate2 engine / this"]
    columns += ["translate --engine / this", "lines the same", "BLEU", "MB"]
    print(f"\n{table(title, columns, rows)}\n")
    path = options.out / f"decoding-{'one' if one else 'file'}-beam{beam}"
    runs_without_outputs = [
        {str(engine): {k: v for k, v in report.items() if k != "outputs"}
         for engine, report in zip(ready, one_round, strict=True)}
        for one_round in found
    ]  # fmt: skip
    about = facts(threads=options.threads, device=options.device)
    save(path.with_suffix(".json"), {"facts": about, "rounds": runs_without_outputs, "rows": rows})
    bars(path.with_suffix(".png"), title, speeds, unit="sentences a second")


def _ratio(found: list[list[dict[str, Any]]], names: list[str], first: str, place: int) -> str:
    """How much faster ``first`` was than the one at ``place``, by round; blank where it is not."""
    if first not in names:
        return ""
    speeds = [[report["sentences_per_second"] for report in one_round] for one_round in found]
    return shown(spread([one[names.index(first)] / one[place] for one in speeds]), ".2f")


def _megabytes(peaks: Sequence[int]) -> str:
    """The most of all runs; blank where it was not seen."""
    return f"{max(peaks) / 1e6:,.0f}" if any(peaks) else ""


def share_of_same(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """
    >>> share_of_same(["a", "b"], ["a", "c"])
    0.5
    """
    pairs = zip(ours, theirs, strict=True)
    return sum(one == other for one, other in pairs) / max(1, len(ours))


def _texts(outputs: Sequence[Any], tokenizer: Tokenizer) -> list[str]:
    """Outputs as text, whether they are texts, ids, or pieces by the names that we export."""
    if all(isinstance(one, str) for one in outputs):
        return list(outputs)
    if any(isinstance(piece, str) for one in outputs for piece in one):
        from glassformer.interchange.ctranslate2.export import token_names

        ids = {name: place for place, name in enumerate(token_names(tokenizer))}
        return [tokenizer.decode([ids[piece] for piece in one]) for one in outputs]
    return [tokenizer.decode(one) for one in outputs]


def _written(texts: Sequence[str], tokenizer: Tokenizer, path: Path) -> str:
    ids = tokenizer.encode_batch(texts)
    pieces = [[tokenizer.id_to_piece(one) for one in row] for row in ids]
    path.write_text(json.dumps({"texts": list(texts), "ids": ids, "pieces": pieces}), "utf-8")
    return str(path.resolve())


def _exported(bundle: Bundle, place: Path) -> str:
    """The bundle as a CTranslate2 model; where that package is missing, its rows say so."""
    from glassformer.interchange.ctranslate2.export import export_ctranslate2

    try:
        shutil.rmtree(place, ignore_errors=True)  # of an earlier bundle
        export_ctranslate2(bundle, place)
    except InputError as error:
        print(f"no export: {error}")
    return str(place.resolve())


def _trained(options: Options, corpus: Corpus, place: Path) -> Path:
    """A small translator, trained just long enough that it ends its sentences."""
    from glassformer.training.train import train

    files = []
    for side in ("source", "target"):
        path = place.with_name(f"train.{side}")
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{getattr(pair, side)}\n" for pair in corpus.train]
        path.write_text("".join(lines), encoding="utf-8", newline="\n")
        files.append(path)
    sizes = {"preset": options.sizes[0], "updates": _UPDATES, "validations": 1}
    train(TrainConfig(pairs=tuple(files), run=place, threads=options.threads, **sizes))
    return place
