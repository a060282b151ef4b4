"""``python -m benchmarks.serving BUNDLE SENTENCES``: the server under load, and under attack.

The server is a process of its own, and this one asks it on loopback. For each number of clients:
sentences a second, and how long one waits; then, with ``--hostile SECONDS``, a mix of good and bad
requests: no 5xx but 503, right answers throughout, and the server's memory before and after.
"""

import argparse
import http.client
import json
import random
import re
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["main"]

_JSON = {"Content-Type": "application/json"}


def main() -> int:
    """Print one JSON object; exit status 1 where an answer was wrong or a status was a fault."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("bundle", help="a translator into German")
    made.add_argument("sentences", type=Path, help="a text to translate, a sentence a line")
    made.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    made.add_argument("--seconds", type=float, default=20.0)
    made.add_argument("--hostile", type=float, default=0.0, metavar="SECONDS")
    made.add_argument(
        "--server", nargs="*", default=[], metavar="NAME=VALUE", help="options of serve, without --"
    )
    said = made.parse_args()
    texts = [line for line in said.sentences.read_text("utf-8").splitlines() if line.strip()]
    words = [part for option in said.server for part in f"--{option}".split("=", 1)]
    command = [sys.executable, "-m", "glassformer", "serve", said.bundle, "--port", "0", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            ready = server.stdout.readline().split()
            if not ready:  # it has said why
                return 1
            found = _measured(urlsplit(ready[0]).netloc, texts[:2000], said)
        finally:
            server.terminate()
        found["exit status after SIGTERM"] = server.wait(120)
    print(json.dumps(found, indent=2))
    return int(bool(found["wrong answers"] or found.get("faults")))


def _measured(place: str, texts: list[str], said: argparse.Namespace) -> dict[str, object]:
    answers: dict[str, str] = {}  # the first one that each text got
    found: dict[str, object] = {"wrong answers": 0}
    wrong = 0
    for clients in said.clients:
        load = _load(place, texts, answers, clients, said.seconds)
        found[f"{clients} clients"] = load
        wrong += load.pop("wrong")
    if said.hostile:
        statuses: Counter[str] = Counter()
        half = said.hostile / 2
        for number in (1, 2):  # the first half warms up: caches, threads, the allocator
            _in_threads(16, lambda seed: _hostile(place, texts, answers, statuses, seed, half))
            found[f"resident MB after half {number}"] = _resident(place)
        found["statuses"] = dict(sorted(statuses.items()))
        found["faults"] = sum(n for key, n in statuses.items() if key[0] == "5" and key != "503")
        wrong += statuses["wrong"]
    found["wrong answers"] = wrong
    return found


def _load(
    place: str, texts: list[str], answers: dict[str, str], clients: int, seconds: float
) -> dict[str, float]:
    """Each client asks for one sentence after the other."""
    times: list[float] = []
    wrong = 0
    end = time.monotonic() + seconds

    def work(seed: int) -> None:
        nonlocal wrong
        chosen = random.Random(seed)
        connection = http.client.HTTPConnection(place, timeout=120)
        while (started := time.monotonic()) < end:
            text = chosen.choice(texts)
            connection.request("POST", "/api/v1/translate", _question(text), _JSON)
            said = json.load(connection.getresponse())["documents"][0]["text"]
            times.append(time.monotonic() - started)
            wrong += answers.setdefault(text, said) != said
        connection.close()

    _in_threads(clients, work)
    cuts = statistics.quantiles(times, n=100) if len(times) > 1 else times * 99
    return {
        "sentences a second": round(len(times) / seconds, 2),
        "median ms": round(1000 * cuts[49], 1),
        "95th percentile ms": round(1000 * cuts[94], 1),
        "longest ms": round(1000 * max(times), 1),
        "wrong": wrong,
    }


def _question(text: str) -> bytes:
    return json.dumps({"q": text, "target": "de"}).encode()


def _hostile(
    place: str,
    texts: list[str],
    answers: dict[str, str],
    statuses: "Counter[str]",
    seed: int,
    seconds: float,
) -> None:
    """One client that sends good and bad in turn."""
    chosen = random.Random(seed)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        text = chosen.choice(texts)
        kind, body = chosen.choice(_bodies(text, chosen))
        connection = http.client.HTTPConnection(place, timeout=120)
        status = "closed"
        with suppress(OSError, http.client.HTTPException):
            if kind == "slow":
                _drip(connection, body)
            else:
                connection.request("POST", "/api/v1/translate", body, _JSON)
            response = connection.getresponse()
            status = str(response.status)
            said = response.read()
            if kind == "good" and response.status == 200:
                found = json.loads(said)["documents"][0]["text"]
                statuses["wrong"] += answers.setdefault(text, found) != found
        connection.close()
        statuses[status] += 1


def _bodies(text: str, chosen: random.Random) -> list[tuple[str, bytes]]:
    return [
        *[("good", _question(text))] * 4,
        ("slow", _question(text)),
        ("huge", b"x" * 3_000_000),
        ("long", _question(text * 200)),
        ("deep", b'{"q":' * 50_000),
        ("malformed", chosen.randbytes(200)),
        ("markup", _question(f"<script>{text}</script>")),
        ("control", _question("\x00\x1b\u202e" + text)),
        ("surrogate", _question("\ud800" + text)),
    ]


def _drip(connection: http.client.HTTPConnection, body: bytes) -> None:
    connection.putrequest("POST", "/api/v1/translate")
    for name, value in {**_JSON, "Content-Length": str(len(body))}.items():
        connection.putheader(name, value)
    connection.endheaders()
    for place in range(0, len(body), 8):
        connection.send(body[place : place + 8])
        time.sleep(0.2)


def _in_threads(count: int, work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _resident(place: str) -> float:
    connection = http.client.HTTPConnection(place, timeout=60)
    connection.request("GET", "/metrics")
    said = connection.getresponse().read().decode()
    connection.close()
    found = re.search(r"^process_resident_memory_bytes (\S+)", said, re.MULTILINE)
    return round(float(found[1]) / 1e6, 1) if found else 0.0


if __name__ == "__main__":
    sys.exit(main())
