"""Faults of all kinds against the program, counted: ``python tests/faults [--quick]``.

``--quick`` tries a tenth of each. What goes wrong is printed at once, and the table at the end.
``docs/reliability.md`` has it. Status 1: something went wrong.
"""

import argparse
import multiprocessing
import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import bundles
import checkpoints
import disks
import hostile
import imports
import kills
import processes
import ranks
import torch
from trainings import Fault

import glassformer.training.train  # noqa: F401  loaded once, for all forks


def altered_bundles(tries: int) -> list[Fault]:
    return [_counted("altered bundle", tries, bundles.run(tries, seed=1))]


def damaged_imports(tries: int) -> list[Fault]:
    return [_counted("damaged import", tries, imports.run(tries, seed=1))]


def _counted(name: str, tries: int, table: dict[str, Counter[str]]) -> Fault:
    outcomes: Counter[str] = sum(table.values(), Counter())
    lost = sum(outcomes[kind] for kind in ("crash", "wrong", "left", "memory"))
    counts = {"lost": lost, "hang": outcomes["hang"]}
    return Fault(name, tries, traceback=outcomes["traceback"], **counts)


FAMILIES = [  # with the number of tries
    (kills.at_events, 120),
    (ranks.all_ranks, 2),
    (kills.at_times, 80),
    (disks.all_disks, 10),
    (altered_bundles, 1000),
    (damaged_imports, 400),
    (checkpoints.altered, 60),
    (processes.all_processes, 5),
    (hostile.all_requests, 5),
]


def main() -> int:
    parser = argparse.ArgumentParser(description="Faults against the program, counted.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the tries")
    parser.add_argument("--only", metavar="WORD", default="", help="families with WORD in the name")
    given = parser.parse_args()
    begin = time.monotonic()
    torch.set_num_threads(1)  # no thread of torch: the processes fork
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("fork")) as pool:
        waiting = [
            pool.submit(family, max(1, tries // 10) if given.quick else tries)
            for family, tries in FAMILIES
            if given.only in f"{family.__module__}.{family.__name__}"
        ]
        faults = [fault for future in waiting for fault in future.result()]
    print(as_text(faults))
    print(f"\n{(time.monotonic() - begin) / 60:.0f} minutes")
    return int(any(fault.lost or fault.traceback or fault.hang for fault in faults))


def as_text(faults: list[Fault]) -> str:
    """The table in Markdown."""
    rows = ["| fault | tries | lost | tracebacks | hangs |", "|---|---:|---:|---:|---:|"]
    for fault in faults:
        counts = (fault.tries, fault.lost, fault.traceback, fault.hang)
        rows.append(f"| {fault.name} | {' | '.join(map(str, counts))} |")
    return "\n".join(rows)


if __name__ == "__main__":
    raise SystemExit(main())
