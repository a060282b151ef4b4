"""Decoding: one trained bundle through all engines, with the same search, outputs compared.

Greedy (beam 1) and beam 5, a whole file at once and one sentence at a time. A trial on some of the
sentences finds each engine's fastest setting; then all engines run in turn, A B C C B A. The
length penalty is 0, because the engines' formulas differ.
"""

import argparse
import json
import shutil
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.environments import Failed
from benchmarks.machine import facts
from benchmarks.pairs import Contender, fastest, ratio, rounds, spread
from benchmarks.prepared import read_corpus
from benchmarks.report import save, shown, table
from benchmarks.training import matrix_peak
from glassformer.bundle import Bundle, load_bundle
from glassformer.data.tokenizer import Tokenizer
from glassformer.evaluation import corpus_scores
from glassformer.support.errors import InputError

__all__ = ["main", "share_of_same", "splits_of"]

EXTRA = 50  # section 6.1: a translation is at most this much longer than its source
_TRIED = 200  # sentences of a trial

WITH_ENGINE = "Glassformer, engine ctranslate2,"
_COLUMNS = ["", "sentences/s", "Glassformer / this", "its ctranslate2 engine / this"]
_COLUMNS += ["equal lines", "BLEU", "MB"]


def main(options: argparse.Namespace) -> None:
    corpus = read_corpus(options.data, options.languages)
    place = options.work / corpus.name
    bundle = load_bundle(options.bundle)
    texts = corpus.sources[: options.sentences]
    references = corpus.references[: options.sentences]
    job: dict[str, Any] = {
        "bundle": str(options.bundle.resolve()),
        "exported": _exported(bundle, place),
        "sources": _written(texts, bundle.source_tokenizer, place / "sources.json"),
        "threads": options.threads,
        "device": options.device,
        "extra": EXTRA,
    }
    few = _written(texts[:_TRIED], bundle.source_tokenizer, place / "few.json")
    peak = matrix_peak(options)
    computes = ["float32"] if peak["bf16"] < 0.5 * peak["float32"] else ["float32", "bfloat16"]
    for way, beam in product(options.ways, options.beams):
        task = {**job, "single": way == "single", "beam": beam}
        engines, failed = _fastest(_engines(task, computes), few, timeout=options.timeout)
        reports = rounds(engines, number=options.rounds, timeout=options.timeout)
        rows = _rows(engines, reports, bundle.target_tokenizer, references) + failed
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


def _engines(task: dict[str, Any], computes: Sequence[str]) -> list[list[Contender]]:
    """For each row of the table, the engine in all settings to try."""
    batches = (1,) if task["single"] else (32, 128)
    splits = splits_of(task["threads"], single=task["single"])
    threads = sorted({each for _, each in splits}) if task["single"] else [task["threads"]]

    def row(
        name: str, peer: str, module: str, *settings: dict[str, Any], **fixed: str
    ) -> list[Contender]:
        return [
            Contender(name, peer, module, {**task, **fixed, **setting}, _words(setting))
            for setting in settings
        ]

    ours, theirs = ("ours", "translate_ours"), ("marian", "translate_hugging_face")
    rows = [
        row("Glassformer", *ours, *({"compute": each} for each in computes), engine="torch"),
        row(
            *("Hugging Face", *theirs),
            *(
                {"compute": compute, "threads": each, "batch": batch}
                for compute, each, batch in product(computes, threads, batches)
            ),
        ),
    ]
    for compute in ("float32", "int8"):
        rows.append(
            row(f"{WITH_ENGINE} {compute}", *ours, {}, engine="ctranslate2", compute=compute)
        )
        settings = (
            {"workers": workers, "threads": workers * each, "batch": batch}
            for (workers, each), batch in product(splits, batches)
        )
        raw = ("ctranslate2", "translate_ctranslate2")
        rows.append(row(f"CTranslate2 {compute}", *raw, *settings, compute=compute))
    return rows


def _words(setting: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in setting.items())


def splits_of(threads: int, *, single: bool) -> list[tuple[int, int]]:
    """Pairs (workers, threads of each). A single sentence has one worker, with one or all threads.

    >>> splits_of(6, single=False), splits_of(6, single=True)
    ([(1, 6), (2, 3), (3, 2), (6, 1)], [(1, 1), (1, 6)])
    """
    if single:
        return [(1, count) for count in sorted({1, threads})]
    workers = [number for number in range(1, threads + 1) if threads % number == 0]
    return [(number, threads // number) for number in workers]


def _fastest(
    engines: Sequence[Sequence[Contender]], few: str, *, timeout: float
) -> tuple[list[Contender], list[list[str]]]:
    """Each engine in its fastest setting, and a row with the reason for one that does not run."""
    best, failed = [], []
    for settings in engines:
        try:
            trial = {"sources": few}
            best.append(fastest(settings, "sentences_per_second", trial=trial, timeout=timeout))
        except Failed as fault:
            failed.append([settings[0].name, str(fault), *[""] * (len(_COLUMNS) - 2)])
    return best, failed


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
        beside = ("Glassformer", f"{WITH_ENGINE} {engine.job['compute']}")
        peak = max(one_round[place]["peak_bytes"] for one_round in reports)
        ratios = (
            ratio(by_name[name], speeds[place]) if name in by_name else None for name in beside
        )
        rows.append(
            [
                str(engine),
                shown(spread(speeds[place]), ",.1f"),
                *("" if each is None else shown(each, ".2f") for each in ratios),
                f"{100 * share_of_same(texts[0], texts[place]):.1f} %",
                f"{corpus_scores(texts[place], references, quick=True).bleu:.2f}",
                f"{peak / 1e6:,.0f}",
            ]
        )
    return rows


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
        from glassformer.tools.interchange.ctranslate2.export import token_names

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


def _exported(bundle: Bundle, place: Path) -> dict[str, str]:
    """The bundle as a model of each peer; if it cannot be written, the peer's row says so."""
    from glassformer.tools.interchange.ctranslate2.export import export_ctranslate2
    from glassformer.tools.interchange.hugging_face.export import export_hugging_face

    models = {}
    for peer, export in (
        ("ctranslate2", export_ctranslate2),
        ("hugging_face", export_hugging_face),
    ):
        shutil.rmtree(place / peer, ignore_errors=True)  # the model of an earlier bundle
        models[peer] = str((place / peer).resolve())
        try:
            export(bundle, place / peer)
        except InputError as error:
            print(f"no export to {peer}: {error}")
    return models
