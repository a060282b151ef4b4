"""One GPU: its facts, correctness, training and decoding beside peers, and a profile.

No stage needs a network. Each program runs in a process of its own, with this Python's packages. A
failure is a line of the table, and ``gpu.json`` gets each report at once. All programs of a stage
run in turn. Then the best peer and the best of ours run again, the other way about.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import pairs
from benchmarks.decoding import EXTRA, share_of_same
from benchmarks.environments import Failed
from benchmarks.machine import ROOT, facts
from benchmarks.pairs import Contender
from benchmarks.prepared import SIZES, VOCABULARY, model_of, read_corpus, training_batches
from benchmarks.report import save, table
from benchmarks.training import NAMES, job_of, operations
from glassformer.bundle import Bundle, load_bundle, save_bundle
from glassformer.config import ModelConfig
from glassformer.data.subword_training import train_tokenizer
from glassformer.model.transformer import Transformer

__all__ = ["CELLS", "HALVES", "STAGES", "Session", "main"]

CELLS = {"base": 25_000, "base-4096": 4_096, "big": 25_000, "small": 25_000}
"""The tokens of a batch in each stage of training; the stage begins with the model's size."""
_OF_PAPER = 33_700  # subwords of WMT 2014 en-de, for the model big
_TINY, _TINY_TOKENS = {"d_model": 32, "num_heads": 2, "d_ff": 64, "layers": 1}, 256
_PEERS = ("torch_nn", "marian")
_PROFILED = 20  # updates
_SOURCE, _LONGER = 20, 9  # tokens of a random source, and how many more its target may have
_AT_ONCE = 500  # sentences of a peer's batch

Report = dict[str, Any]


class Session:
    """The options, the time that is left, and the reports of each stage in ``gpu.json``."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self._end = options, time.monotonic() + options.seconds
        self.stages: Sequence[str] = options.stages or HALVES[options.half]
        self._path: Path = options.out / ("gpu-tiny.json" if options.tiny else "gpu.json")
        stored = json.loads(self._path.read_text("utf-8")) if self._path.exists() else {}
        self.figures: dict[str, list[Report]] = {
            name: stored[name] for name in stored if name not in self.stages
        }
        on_gpu = options.device.startswith("cuda")
        self.precision, self.compute = ("bf16", "bfloat16") if on_gpu else ("float32", "float32")
        data: Path | None = options.data
        self.place: Path = options.work / (data.name if data else "built-in phrasebook")

    @property
    def left(self) -> float:
        """The seconds that are left for all stages."""
        return self._end - time.monotonic()

    def measure(self, stage: str, program: Contender) -> Report:
        """Run a program and keep its report, or the reason of its failure."""
        try:
            if self.left < 1:
                raise Failed(f"no time is left of {self.options.seconds:.0f} s")
            report = pairs.run(program, timeout=self.left)
        except Failed as fault:
            report = {"reason": str(fault)}
        outputs = report.pop("outputs", None)
        report.pop("losses", None)
        if "operations" in program.job and "seconds" in report:
            each = program.job["operations"] / report["seconds_per_update"]
            report["operations_per_second"] = each
        return {**self.keep(stage, str(program), report), "outputs": outputs}

    def keep(self, stage: str, program: str, report: Report) -> Report:
        """Store and print a report."""
        report = {"program": program, **report}
        self.figures.setdefault(stage, []).append(report)
        save(self._path, self.figures)
        print(" | ".join([stage, *_row(report)]), flush=True)
        return report

    def in_turn(self, stage: str, programs: Sequence[Contender], speed: str) -> list[Report]:
        """The reports of all programs; then the best peer and the best of ours run again."""
        reports = [self.measure(stage, program) for program in programs]
        speeds = [report.get(speed, 0.0) for report in reports]
        best: dict[bool, int] = {}  # the place of the best peer (False), of the best of ours (True)
        for place in sorted(range(len(speeds)), key=speeds.__getitem__):
            best[programs[place].name == NAMES["ours"]] = place
        for _, place in sorted(best.items()):
            if speeds[place]:
                self.measure(stage, programs[place])
        return reports

    def job(self, stage: str) -> dict[str, Any]:
        """The job of a stage of training. Batches that are there already stay."""
        options, size = self.options, stage.partition("-")[0]
        sizes, tokens = (_TINY, _TINY_TOKENS) if options.tiny else (SIZES[size], CELLS[stage])
        number = options.warm + options.updates
        path = self.place / f"batches-{tokens}-{number}.npz"
        if not path.exists():
            corpus = read_corpus(options.data, options.languages)
            path = training_batches(corpus, self.place, tokens=tokens, number=number)
        vocab_size = _OF_PAPER if size == "big" and not options.tiny else VOCABULARY
        sized = argparse.Namespace(**vars(options) | {"batch_tokens": tokens})
        job = job_of(sized, path, model_of(sizes, vocab_size=vocab_size))
        job |= {"precision": self.precision, "compiled": False}
        return job | ({"compiler": "eager"} if options.tiny else {})


def _batches(session: Session, stage: str) -> None:
    """Make the batches of all stages, for instance on another machine."""
    for cell in CELLS:
        session.keep(stage, cell, {"file": session.job(cell)["batches"]})


def _facts(session: Session, stage: str) -> None:
    options = session.options
    session.keep(stage, "machine", facts(threads=options.threads, device=options.device))
    fields = "name,driver_version,memory.total,clocks.max.sm,power.limit,utilization.gpu"
    words = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
    session.keep(stage, "nvidia-smi", _last_line(words, timeout=60))
    job = {"threads": options.threads, "device": options.device}
    session.measure(stage, Contender("matrix products, copy", "ours", "matrix_peak", job))


def _correctness(session: Session, stage: str) -> None:
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "auto", "-rfE"]
    log = session.options.out / "gpu-tests.txt"
    report = _last_line([*words, "-v", "tests/test_cuda.py"], timeout=session.left, log=log)
    session.keep(stage, "tests/test_cuda.py", report)


def _attention(session: Session, stage: str) -> None:
    """Each kernel of attention, in rows of packed batches."""
    options = session.options
    job = {"threads": options.threads, "device": options.device, "compute": session.compute}
    job |= {"widths": [16], "tokens": 64, "heads": 1}
    if not options.tiny:
        job |= {"widths": [64, 128, 256], "tokens": 12_500, "heads": 8}
    program = Contender("kernels of attention", "ours", "attention_kernels", job)
    for kernel, milliseconds in session.measure(stage, program).get("kernels", {}).items():
        session.keep(stage, kernel, {"milliseconds": milliseconds})


def _last_line(words: Sequence[str], timeout: float, log: Path | None = None) -> Report:
    """The last line that a program prints, or the reason why the program does not run.

    The file ``log`` gets all that the program prints, also before its time is over.
    """
    process, output = None, ""
    try:
        process = subprocess.run(
            words, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False
        )
        output = process.stdout.strip() or process.stderr.strip()
    except subprocess.TimeoutExpired as fault:
        output = (fault.stdout or b"").decode() + f"\ntook longer than {timeout:.0f} s"
    except OSError as fault:
        output = str(fault)
    if log:
        log.write_text(output, "utf-8")
    last = (output.splitlines() or ["no output"])[-1]
    return {"text" if process and process.returncode == 0 else "reason": last}


def _train(session: Session, stage: str) -> None:
    """All programs at ``base``; in other stages, the best of ours and the best peer of ``base``."""
    job = session.job(stage)
    job["operations"] = operations(job) / job["updates"]
    programs = list(_programs(job))
    if stage != "base":
        best = [_fastest(session, ours=ours) for ours in (True, False)]
        programs = [each for each in programs if str(each) in best] or programs
    session.in_turn(stage, programs, "tokens_per_second")


def _programs(job: dict[str, Any]) -> Iterator[Contender]:
    """Ours in each form, and the peers, eager and compiled."""
    from benchmarks.peers.ours import FORMS

    for form in FORMS:
        yield Contender(NAMES["ours"], "ours", "ours", {**job, "form": form}, form)
    for setting, peer in product(("eager", "compiled"), _PEERS):  # compiling takes minutes
        compiled = {**job, "compiled": setting == "compiled"}
        yield Contender(NAMES[peer], "ours", peer, compiled, setting)


def _fastest(session: Session, *, ours: bool) -> str:
    """The program with the fastest report of the stage ``base``; "" without one."""
    speeds = {
        report["program"]: report["tokens_per_second"]
        for report in session.figures.get("base", [])
        if "tokens_per_second" in report
        and report["program"].startswith(f"{NAMES['ours']} (") == ours
    }
    return max(speeds, key=speeds.__getitem__, default="")


def _profile(session: Session, stage: str) -> None:
    job = session.job("base")
    job["updates"] = min(_PROFILED, job["updates"])
    ours = [each for each in _programs(job) if each.module == "ours"]
    best = next((each for each in ours if str(each) == _fastest(session, ours=True)), ours[-1])
    program = Contender(best.name, "ours", "profile_ours", best.job, best.setting)
    for kernel in session.measure(stage, program).get("longest", []):
        session.keep(stage, kernel.pop("name")[:60], kernel)


def _decode(session: Session, stage: str) -> None:
    """Greedy and beam 5 from ids to ids: ours, and Hugging Face with each cache."""
    from glassformer.tools.interchange.hugging_face.export import export_hugging_face

    options = session.options
    directory = options.bundle or _random_bundle(session)
    exported = session.place / f"{directory.name}-hugging-face"
    if not exported.exists():
        export_hugging_face(load_bundle(directory), exported)
    sources = session.place / "gpu-sources.json"
    sources.write_text(json.dumps({"ids": _sources(session, directory)}), "utf-8")
    for beam in (1, 5):
        job = {
            "bundle": str(directory.resolve()),
            "exported": {"hugging_face": str(exported.resolve())},
            "sources": str(sources.resolve()),
            "extra": EXTRA if options.bundle else _LONGER,
            "beam": beam,
            "compute": session.compute,
            "threads": options.threads,
            "device": options.device,
            "batch": _AT_ONCE,
            "warm": _AT_ONCE,  # a static cache of other sizes would be compiled anew
            "single": False,
        }
        search = "greedy" if beam == 1 else f"beam {beam}"
        programs = [Contender(NAMES["ours"], "ours", "decode_ours", job, search)]
        for cache in ("dynamic", "static"):
            cached = job | {"cache": cache}
            setting = f"{search}, {cache} cache"
            module = "translate_hugging_face"
            programs.append(Contender("Hugging Face", "ours", module, cached, setting))
        mine, *theirs = session.in_turn(stage, programs, "sentences_per_second")
        for report in theirs:
            if mine["outputs"] and report["outputs"]:
                share = share_of_same(mine["outputs"], report["outputs"])
                session.keep(stage, report["program"], {"equal_lines": share})


def _random_bundle(session: Session) -> Path:
    """A translator of random weights, whose targets have the greatest length but for a few."""
    options = session.options
    place = session.place / ("tiny-random" if options.tiny else "base-random")
    if not place.exists():
        train = read_corpus(options.data, options.languages).train
        text = (side for pair in train for side in pair)
        tokenizer = train_tokenizer(text, vocab_size=VOCABULARY)
        count = tokenizer.vocab_size
        sizes = model_of(_TINY if options.tiny else SIZES["base"])
        del sizes["vocab_size"]
        config = ModelConfig(source_vocab_size=count, target_vocab_size=count, **sizes)
        save_bundle(Bundle(Transformer(config).eval(), tokenizer, tokenizer), place)
    return place


def _sources(session: Session, directory: Path) -> list[list[int]]:
    """Ids of the test sentences for a trained translator; random ids for random weights."""
    options, tokenizer = session.options, load_bundle(directory).source_tokenizer
    if options.bundle:
        texts = read_corpus(options.data, options.languages).sources[: options.sentences]
        return tokenizer.encode_batch(texts)
    draw = np.random.default_rng(1)
    rows: list[list[int]] = draw.integers(
        4, tokenizer.vocab_size, (options.sentences, _SOURCE)
    ).tolist()
    return rows


def _row(report: Report) -> list[str]:
    """The cells of a report in the table: program, figure, and more."""
    figure, more = "", ""
    if "reason" in report:
        figure, more = "failed", report["reason"]
    elif "tokens_per_second" in report:
        figure = f"{report['tokens_per_second']:,.0f} tokens/s"
        slowest, median = (1000 * report[f"{name}_update"] for name in ("slowest", "median"))
        more = f"slowest update {slowest:.1f} ms, median {median:.1f} ms;"
        more += f" {report['operations_per_second'] / 1e12:.2f} TFLOP/s;"
        more += f" {report['peak_bytes'] / 1e6:,.0f} MB"
    elif "sentences_per_second" in report:
        figure = f"{report['sentences_per_second']:,.1f} sentences/s"
        more = f"{report['sentences']:,} sentences in {report['seconds']:.2f} s"
    elif "equal_lines" in report:
        figure = f"{report['equal_lines']:.1%} equal lines"
    elif "busy_share" in report:
        figure = f"busy {report['busy_share']:.1%}"
        more = f"{report['kernels_per_update']:,.0f} kernels,"
        more += f" {report['busy_ms_per_update']:.2f} of {report['ms_per_update']:.2f} ms an update"
    elif "each" in report:
        figure = f"{report['ms_per_update']:.3f} ms an update"
        more = f"{report['each']:g} of them an update"
    elif "copied" in report:
        figure = f"{report['bf16'] / 1e12:,.2f} TFLOP/s in bf16"
        more = f"float32 {report['float32'] / 1e12:,.2f}; copy {report['copied'] / 1e9:,.0f} GB/s"
    else:
        more = ", ".join(f"{name} {value}" for name, value in report.items() if name != "program")
    return [report["program"], figure, more.replace("|", "/")]


STAGES = {
    "batches": _batches,
    "facts": _facts,
    "correctness": _correctness,
    "attention": _attention,
    **dict.fromkeys(CELLS, _train),
    "profile": _profile,
    "decoding": _decode,
}
HALVES = {
    1: ("facts", "attention", "base", "profile"),
    2: ("base-4096", "decoding", "big", "small", "correctness"),
}


def main(options: argparse.Namespace) -> None:
    session = Session(options)
    for stage in session.stages:
        try:
            STAGES[stage](session, stage)
        except Exception as fault:  # it costs a line, and the next stage runs
            session.keep(stage, "the stage", {"reason": f"{type(fault).__name__}: {fault}"})
    rows = [[name, *_row(each)] for name in session.stages for each in session.figures[name]]
    title = f"One GPU ({options.device}{', toy sizes' if options.tiny else ''})"
    print(f"\n{table(title, ['stage', 'program', 'figure', 'more'], rows)}\n")
