"""The server under load: sentences a second, and the time that a client waits.

The server is a process of its own; this process sends it requests over loopback. Each client
sends one sentence, waits for the translation and sends the next.
"""

import argparse
import http.client
import json
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from benchmarks.environments import Failed
from benchmarks.machine import facts
from benchmarks.prepared import read_corpus
from benchmarks.report import save, table

__all__ = ["load", "main"]


def main(options: argparse.Namespace) -> None:
    texts = read_corpus(options.data, options.languages).sources[: options.sentences]
    command = [sys.executable, "-m", "glassformer", "serve", str(options.bundle), "--port", "0"]
    command += ["--engine", options.engine, "--beam", str(options.beam)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            ready = server.stdout.readline().split()
            if not ready:
                raise Failed("glassformer serve did not start")
            address = urlsplit(ready[0]).netloc
            loads = [
                load(address, texts, options.languages, clients=clients, seconds=options.seconds)
                for clients in options.clients
            ]
        finally:
            server.terminate()
    columns = ["clients", "sentences/s", "median wait, ms", "95th percentile", "longest"]
    rows = [[f"{value:,.3g}" for value in measured.values()] for measured in loads]
    title = f"Serving, engine {options.engine}, beam {options.beam}"
    print(f"\n{table(title, columns, rows)}\n")
    save(options.out / "serving.json", {"facts": facts(threads=options.threads), "loads": loads})


def load(
    address: str,
    texts: Sequence[str],
    languages: tuple[str, str],
    *,
    clients: int,
    seconds: float,
) -> dict[str, Any]:
    """Figures of ``clients`` clients at once; the answers to one text must all be equal."""
    waits: list[float] = []
    faults: list[str] = []
    answers: dict[str, str] = {}
    end = time.monotonic() + seconds

    def client(seed: int) -> None:
        generator = random.Random(seed)
        connection = http.client.HTTPConnection(address, timeout=120)
        while (start := time.monotonic()) < end and not faults:
            text = generator.choice(texts)
            try:
                translation = _translation(connection, text, languages)
            except (OSError, http.client.HTTPException, ValueError) as fault:
                faults.append(f"{text!r}: {fault}")
                break
            waits.append(time.monotonic() - start)
            if answers.setdefault(text, translation) != translation:
                faults.append(f"{text!r}: {answers[text]!r}, then {translation!r}")
        connection.close()

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise Failed(f"wrong answer to {faults[0]}")
    percentiles = (
        statistics.quantiles(waits, n=100, method="inclusive") if len(waits) > 1 else waits * 99
    )
    return {
        "clients": clients,
        "sentences_per_second": len(waits) / seconds,
        "median_ms": 1000 * percentiles[49],
        "percentile_95_ms": 1000 * percentiles[94],
        "longest_ms": 1000 * max(waits),
    }


def _translation(
    connection: http.client.HTTPConnection, text: str, languages: tuple[str, str]
) -> str:
    source, target = languages
    body = json.dumps({"q": text, "source": source, "target": target})
    connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
    answer = json.load(connection.getresponse())
    if "translatedText" not in answer:
        raise ValueError(answer.get("error", answer))
    translation: str = answer["translatedText"]
    return translation
