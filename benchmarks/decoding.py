"""Decoding: one trained bundle through all engines, with the same search, outputs compared.

Greedy (beam 1) and beam 5, a whole file at once and one sentence at a time. A trial on some of the
sentences finds each engine's fastest setting; then all engines run in turn, A B C C B A. The
length penalty is 0, because the engines' formulas differ.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.environments import Unavailable, interpreter
from benchmarks.machine import facts
from benchmarks.options import Options
from benchmarks.pairs import Contender, Failed, rounds, run, spread
from benchmarks.prepared import Corpus, read_corpus
from benchmarks.report import save, shown, table
from benchmarks.training import matrix_peak
from glassformer import TrainConfig, train
from glassformer.bundle import Bundle, load_bundle
from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import InputError
from glassformer.evaluation import corpus_scores

__all__ = ["main", "share_of_same", "splits_of"]

EXTRA = 50  # section 6.1: a translation is at most this much longer than its source
_TRIED = 200  # sentences of a trial
_WIDEST = 90  # characters of a failure's reason in the table
_UPDATES = 300  # training of the small bundle that stands in for --bundle

_AS_OURS = {"float32": "float32", "bf16": "bfloat16"}  # Glassformer's names

WITH_ENGINE = "Glassformer, engine ctranslate2,"
WITH_COMMAND = "glassformer translate --engine ctranslate2,"

_COLUMNS = ["", "sentences/s", "Glassformer / this", "its ctranslate2 engine / this"]
_COLUMNS += ["translate --engine / this", "equal lines", "BLEU", "MB"]

Engine = tuple[str, str, str, dict[str, Any]]  # setting, environment, module, additions to the job


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
    peak = matrix_peak(options)
    computes = ["float32"] if peak["bf16"] < 0.5 * peak["float32"] else ["float32", "bf16"]
    sources = _written(texts, bundle.source_tokenizer, place / "sources.json")
    few = _written(texts[:_TRIED], bundle.source_tokenizer, place / "few.json")
    for way, beam in product(options.ways, options.beams):
        task = {**job, "single": way == "single", "beam": beam}
        chosen = [
            _best(name, engines, {**task, "sources": few}, options)
            for name, engines in _engines(task, computes).items()
        ]
        engines = [
            replace(best, job={**best.job, "sources": sources})
            for best in chosen
            if isinstance(best, Contender)
        ]
        reports = rounds(engines, number=options.pairs, timeout=options.timeout)
        rows = _rows(engines, reports, bundle.target_tokenizer, references)
        rows += [[text[:_WIDEST], *[""] * 7] for text in chosen if isinstance(text, str)]
        search = "greedy" if beam == 1 else f"beam {beam}"
        print(f"\n{table(f'Decoding {corpus.name}, {search}, {way}', _COLUMNS, rows)}\n")
        for report in (report for one_round in reports for report in one_round):
            del report["outputs"]
        figures = {
            "facts": facts(threads=options.threads, device=options.device),
            "engines": [str(engine) for engine in engines],
            "rounds": reports,
            "rows": rows,
        }
        save(options.out / f"decoding-{way}-beam{beam}.json", figures)


def _engines(task: dict[str, Any], computes: Sequence[str]) -> dict[str, list[Engine]]:
    """For each row of the table, the settings to try."""
    ours = ("ours", "translate_ours")
    theirs = ("marian", "translate_hugging_face")
    raw = ("ctranslate2", "translate_ctranslate2")
    batches = (1,) if task["single"] else (32, 128)
    splits = splits_of(task["threads"], single=task["single"])
    threads = sorted({each for _, each in splits}) if task["single"] else [task["threads"]]
    engines: dict[str, list[Engine]] = {
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
        with_engine = {"engine": "ctranslate2", "compute": compute}
        engines[f"{WITH_ENGINE} {compute}"] = [("", *ours, with_engine)]
        if not task["single"]:
            engines[f"{WITH_COMMAND} {compute}"] = [("", "ours", "translate_command", with_engine)]
        engines[f"CTranslate2 {compute}"] = [
            (
                f"{workers} x {each} threads, {batch} at once",
                *raw,
                {"compute": compute, "workers": workers, "threads": workers * each, "batch": batch},
            )
            for (workers, each), batch in product(splits, batches)
        ]
    return engines


def splits_of(threads: int, *, single: bool) -> list[tuple[int, int]]:
    """Pairs (workers, threads of each). A single sentence has one worker, with one or all threads.

    >>> splits_of(6, single=False), splits_of(6, single=True)
    ([(1, 6), (2, 3), (3, 2), (6, 1)], [(1, 1), (1, 6)])
    """
    if single:
        return [(1, count) for count in sorted({1, threads})]
    workers = [number for number in range(1, threads + 1) if threads % number == 0]
    return [(number, threads // number) for number in workers]


def _best(
    name: str, engines: Sequence[Engine], job: dict[str, Any], options: Options
) -> Contender | str:
    """The engine in its fastest setting, or the reason why no setting runs."""
    tried: list[tuple[float, Contender]] = []
    reason = ""
    for setting, environment, module, more in engines:
        try:
            python = interpreter(environment, device=options.device)
            trial = Contender(name, python, module, {**job, **more}, setting)
            speed = run(trial, timeout=options.timeout)["sentences_per_second"]
        except (Unavailable, Failed) as fault:
            reason = str(fault) if isinstance(fault, Failed) else f"{name} {fault}"
            print(reason)
            continue
        print(f"{trial}: {speed:,.1f} sentences/s in a trial")
        tried.append((speed, trial))
    return max(tried, key=lambda trial: trial[0])[1] if tried else reason


def _rows(
    engines: Sequence[Contender],
    reports: Sequence[Sequence[dict[str, Any]]],
    tokenizer: Tokenizer,
    references: Sequence[str],
) -> list[list[str]]:
    """A row for each engine; ``reports`` has a list of their reports for each round."""
    speeds = [
        [report["sentences_per_second"] for report in of_engine]
        for of_engine in zip(*reports, strict=True)
    ]
    texts = [_texts(report["outputs"], tokenizer) for report in reports[0]]
    by_name = {engine.name: mine for engine, mine in zip(engines, speeds, strict=True)}
    rows = []
    for place, engine in enumerate(engines):
        compute = engine.job["compute"]
        beside = ["Glassformer", f"{WITH_ENGINE} {compute}", f"{WITH_COMMAND} {compute}"]
        peak = max(one_round[place]["peak_bytes"] for one_round in reports)
        rows.append(
            [
                str(engine),
                shown(spread(speeds[place]), ",.1f"),
                *(_ratio(by_name.get(name, []), speeds[place]) for name in beside),
                f"{100 * share_of_same(texts[0], texts[place]):.1f} %",
                f"{corpus_scores(texts[place], references, quick=True).bleu:.2f}",
                f"{peak / 1e6:,.0f}" if peak else "",
            ]
        )
    return rows


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Our speed over theirs, round by round; blank if this engine of ours did not run."""
    if not ours:
        return ""
    return shown(spread([mine / other for mine, other in zip(ours, theirs, strict=True)]), ".2f")


def share_of_same(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """
    >>> share_of_same(["a", "b"], ["a", "c"])
    0.5
    """
    equal = sum(mine == other for mine, other in zip(ours, theirs, strict=True))
    return equal / max(1, len(ours))


def _texts(outputs: Sequence[Any], tokenizer: Tokenizer) -> list[str]:
    """Outputs as text; an engine gives texts, ids, or subwords by their exported names."""
    if all(isinstance(output, str) for output in outputs):
        return list(outputs)
    if any(isinstance(token, str) for output in outputs for token in output):
        from glassformer.interchange.ctranslate2.export import token_names

        ids = {name: place for place, name in enumerate(token_names(tokenizer))}
        outputs = [[ids[token] for token in output] for output in outputs]
    return [tokenizer.decode(output) for output in outputs]


def _written(texts: Sequence[str], tokenizer: Tokenizer, path: Path) -> str:
    """The path of a JSON file with the texts, their ids and their subwords."""
    ids = tokenizer.encode_batch(texts)
    subwords = [[tokenizer.subword(token) for token in row] for row in ids]
    path.parent.mkdir(parents=True, exist_ok=True)
    sources = {"texts": list(texts), "ids": ids, "subwords": subwords}
    path.write_text(json.dumps(sources), "utf-8")
    return str(path.resolve())


def _exported(bundle: Bundle, place: Path) -> str:
    """The bundle as a CTranslate2 model; without that package its rows show the reason."""
    from glassformer.interchange.ctranslate2.export import export_ctranslate2

    try:
        shutil.rmtree(place, ignore_errors=True)  # the model of an earlier bundle
        export_ctranslate2(bundle, place)
    except InputError as error:
        print(f"no export: {error}")
    return str(place.resolve())


def _trained(options: Options, corpus: Corpus, place: Path) -> Path:
    """A small translator, trained just long enough to end its sentences."""
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
