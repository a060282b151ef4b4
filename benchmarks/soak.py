"""The server under mixed load for a long time: short, long, hostile and file requests at once.

``python -m benchmarks.soak BUNDLE TEXTS --minutes 60``: every answer is compared with the library's
own, statuses and the server's memory are noted. A status of 5xx other than 503 is a fault.
"""

import argparse
import collections
import http.client
import json
import random
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.machine import facts
from glassformer.documents.files.formats import translated_file
from glassformer.documents.protection import ProtectingTranslator
from glassformer.translator import Translator

TEXTS, LONG = 200, 60  # short texts, and lines of a long one
HOSTILE = [
    ("/translate", "application/json", b"[" * 100_000),
    ("/translate", "application/json", b'{"q": "\\ud83d", "source": "en", "target": "de"}'),
    ("/translate", "application/json", b'{"q": NaN}'),
    (
        "/translate",
        "application/json",
        b'{"q": "%s", "source": "en", "target": "de"}' % (b"a" * 15_000),
    ),
    ("/translate", "application/json", b"x" * (2 << 20)),
    ("/translate", "text/plain", b"q=a"),
    ("/translate_file", "application/json", b"{}"),
    ("/api/v1/trace", "application/json", b'{"text": "%s"}' % (b"a b " * 4000)),
    ("/../../etc/passwd", "application/json", b"{}"),
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0)
    given = parser.parse_args()
    texts = given.texts.read_text("utf-8").splitlines()[:TEXTS]
    command = [sys.executable, "-m", "glassformer", "serve", str(given.bundle), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = urlsplit(server.stdout.readline().split()[0]).netloc
        try:
            print(json.dumps(facts(threads=1), default=str))
            Soak(given.bundle, address, texts, server.pid).run(given.minutes * 60)
        finally:
            server.terminate()


class Soak:
    """Clients of four kinds, and what they have seen."""

    def __init__(self, bundle: Path, address: str, texts: list[str], server: int) -> None:
        self.address, self.texts, self.server = address, texts, server
        translator = Translator.load(bundle, device="cpu")
        languages = translator.bundle.languages
        assert languages is not None
        self.source, self.target = languages
        protecting = ProtectingTranslator(translator)
        self.expected = [one.text for one in protecting.translate(texts)]
        cues = [
            f"{n}\n00:{n:02}:00,000 --> 00:{n:02}:01,000\n{t}\n" for n, t in enumerate(texts[:20])
        ]
        self.file = "\n".join(cues).encode()
        self.translated_file = translated_file(protecting, self.file, "srt", self.target)
        self.statuses: dict[str, collections.Counter[int]] = collections.defaultdict(
            collections.Counter
        )
        self.waits: list[float] = []
        self.wrong: list[str] = []
        self.memory: list[float] = []

    def run(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds
        clients = [self.short] * 4 + [self.long, self.send_file, self.hostile, self.slow]
        threads = [
            threading.Thread(target=self.client, args=(client, seed))
            for seed, client in enumerate(clients)
        ]
        for thread in threads:
            thread.start()
        while time.monotonic() < self.end:
            time.sleep(min(10.0, seconds / 20))
            status = Path(f"/proc/{self.server}/status").read_text()
            self.memory.append(int(status.partition("VmRSS:")[2].split()[0]) / 1024)
        for thread in threads:
            thread.join()
        self.report()

    def client(self, act: Callable[[random.Random], None], seed: int) -> None:
        generator = random.Random(seed)
        while time.monotonic() < self.end:
            try:
                act(generator)
            except (OSError, http.client.HTTPException) as error:
                self.statuses[act.__name__][-1] += 1
                if act.__name__ not in ("hostile", "slow"):
                    self.wrong.append(f"{act.__name__}: {error!r}")

    def ask(self, kind: str, path: str, type_: str, body: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.address, timeout=120)
        try:
            connection.request("POST", path, body, {"Content-Type": type_})
            answer = connection.getresponse()
            self.statuses[kind][answer.status] += 1
            return answer.status, answer.read()
        finally:
            connection.close()

    def translate(self, kind: str, text: str, expected: str) -> None:
        members = {"q": text, "source": self.source, "target": self.target}
        status, body = self.ask(
            kind, "/translate", "application/json", json.dumps(members).encode()
        )
        if status == 200 and (got := json.loads(body)["translatedText"]) != expected:
            self.wrong.append(
                f"{kind}: {text[:60]!r} gave {got[:60]!r}, expected {expected[:60]!r}"
            )

    def short(self, generator: random.Random) -> None:
        place = generator.randrange(len(self.texts))
        begun = time.monotonic()
        self.translate("short", self.texts[place], self.expected[place])
        self.waits.append(time.monotonic() - begun)

    def long(self, generator: random.Random) -> None:
        places = generator.choices(range(len(self.texts)), k=LONG)
        source, target = (
            "\n".join(lines[place] for place in places) for lines in (self.texts, self.expected)
        )
        self.translate("long", source, target)

    def send_file(self, generator: random.Random) -> None:
        mark = uuid.UUID(int=generator.getrandbits(128)).hex
        parts = [b'name="file"; filename="a.srt"\r\n\r\n' + self.file]
        parts += [
            f'name="{name}"\r\n\r\n{value}'.encode()
            for name, value in (("source", self.source), ("target", self.target))
        ]
        begin = f"--{mark}\r\nContent-Disposition: form-data; ".encode()
        body = b"\r\n".join([*(begin + part for part in parts), f"--{mark}--\r\n".encode()])
        type_ = f"multipart/form-data; boundary={mark}"
        status, answer = self.ask("send_file", "/translate_file", type_, body)
        if status == 200:
            place = urlsplit(json.loads(answer)["translatedFileUrl"]).path
            connection = http.client.HTTPConnection(self.address, timeout=120)
            connection.request("GET", place)
            if connection.getresponse().read() != self.translated_file:
                self.wrong.append("send_file: another file came back")
            connection.close()

    def hostile(self, generator: random.Random) -> None:
        self.ask("hostile", *generator.choice(HOSTILE))
        time.sleep(0.2)

    def slow(self, _: random.Random) -> None:
        """A client that sends its request letter by letter, and goes away."""
        host, _, port = self.address.partition(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            for letter in b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n":
                connection.sendall(bytes([letter]))
                time.sleep(0.05)

    def report(self) -> None:
        self.waits.sort()
        print({kind: dict(sorted(counts.items())) for kind, counts in self.statuses.items()})
        middle, late = (self.waits[int(len(self.waits) * share)] for share in (0.5, 0.99))
        print(f"short: median {middle * 1000:.0f} ms, 99th percentile {late * 1000:.0f} ms")
        tenth = max(1, len(self.memory) // 10)
        first, last = (
            sorted(part)[len(part) // 2] for part in (self.memory[:tenth], self.memory[-tenth:])
        )
        print(f"memory, MB: first {first:.0f}, last {last:.0f}, most {max(self.memory):.0f}")
        print(f"{len(self.wrong)} wrong answers")
        print(*self.wrong[:10], sep="\n")
        faults = sum(
            n
            for counts in self.statuses.values()
            for s, n in counts.items()
            if s >= 500 and s != 503
        )
        print(f"{faults} answers of 5xx other than 503")


if __name__ == "__main__":
    main()
