"""Ways to damage a file, and the count of what a command makes of it in a process of its own."""

import argparse
import json
import os
import random
import resource
import signal
import struct
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from glassformer.tools.cli.main import main

SECONDS = 20  # of the processor; one that waits without end gets 12 times as many
MEMORY = 1e9  # bytes that it may fill
ADDRESS_SPACE = 8 << 30
COLUMNS = ("tries", "one line", "works", "wrong", "left", "traceback", "hang", "crash", "memory")
VALUES = [
    None, True, -1, 0, 7, 1.5, 10**9, 10**18, 10**5000, "x", "", [], ["a"], {}, [[]], 1e308,
    "\x00", "a\nb", "\ud800", "x" * 10_000, "../../etc/passwd", [1, 2, 3], {"a": 1},
]  # fmt: skip

Damage = Callable[[Path, random.Random], str]
Table = Mapping[str, Counter[str]]


def flipped_bits(path: Path, draw: random.Random) -> str:
    content = bytearray(path.read_bytes())
    count = draw.choice([1, 20, 500])
    for _ in range(count if content else 0):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    return f"{count} bits of {path.name}"


def cut(path: Path, draw: random.Random) -> str:
    content = path.read_bytes()
    length = draw.randrange(len(content) or 1)
    path.write_bytes(content[:length])
    return f"{path.name} cut at {length}"


def inserted(path: Path, draw: random.Random) -> str:
    content = path.read_bytes()
    place, more = draw.randrange(len(content) + 1), draw.randbytes(draw.choice([1, 2, 8, 4096]))
    path.write_bytes(content[:place] + more + content[place:])
    return f"{len(more)} bytes more in {path.name} at {place}"


def overwritten(path: Path, draw: random.Random) -> str:
    """A block of other bytes, or of zeros as on a disk that has lost a sector."""
    content = path.read_bytes()
    size = min(len(content), draw.choice([4, 200, 4096]))
    place = draw.randrange(len(content) - size + 1)
    block = draw.choice([bytes(size), b"\xff" * size, draw.randbytes(size)])
    path.write_bytes(content[:place] + block + content[place + size :])
    return f"{size} other bytes in {path.name} at {place}"


def random_bytes(path: Path, draw: random.Random) -> str:
    path.write_bytes(draw.randbytes(draw.choice([0, 1, 8, 1000, 100_000])))
    return f"{path.name} as random bytes"


def no_file(path: Path, draw: random.Random) -> str:
    """A pipe, a directory, a link to a device or to nothing, or no file at all."""
    path.unlink()
    kinds: dict[str, Callable[[], object]] = {
        "a pipe": lambda: os.mkfifo(path),
        "a directory": path.mkdir,
        "/dev/zero": lambda: path.symlink_to("/dev/zero"),
        "a link to itself": lambda: path.symlink_to(path),
        "the password file": lambda: path.symlink_to("/etc/passwd"),
        "missing": lambda: None,
    }
    kind = draw.choice(list(kinds))
    kinds[kind]()
    return f"{path.name}: {kind}"


def nested(path: Path, draw: random.Random) -> str:
    depth = draw.choice([150, 300, 10_000, 1_000_000])
    path.write_text('{"about": ' + "[" * depth + "]" * depth + "}")
    return f"{path.name}: {depth} nested lists"


def bomb(path: Path, draw: random.Random) -> str:
    """A file that is far larger than it should be, or whose values are."""
    lists = "[[" + "[]," * 20_000_000 + "[]]]"
    kind = draw.choice(["zeros", "lists", "wrong values", "one long value"])
    if kind == "zeros":
        path.write_bytes(b"")
        os.truncate(path, 3 << 30)  # no block of the disk is used
    else:
        values = "[" + "1," * 25_000_000 + "1]"
        long = json.dumps({"model_type": "x" * 15_000_000, "from_code": "x" * 15_000_000})
        path.write_text({"lists": lists, "wrong values": values}.get(kind, long))
    return f"{path.name}: {kind}"


def other_value(path: Path, draw: random.Random) -> str:
    """Another value, or none, at a place of a JSON file."""
    content = json.loads(path.read_text())
    place = content
    while True:
        keys = [*place] if isinstance(place, dict) else [*range(len(place))]
        if not keys:
            return f"{path.name}: nothing to change"
        key = draw.choice(keys)
        if not isinstance(place[key], dict | list) or draw.random() < 0.3:
            break
        place = place[key]
    if draw.random() < 0.2:
        del place[key]
        value: object = "(left out)"
    else:
        value = place[key] = draw.choice(VALUES)
    sys.set_int_max_str_digits(0)
    path.write_text(json.dumps(content))
    sys.set_int_max_str_digits(4300)
    return f"{path.name}: {str(key)[:30]} = {'10**5000' if value == 10**5000 else repr(value)[:30]}"


def other_numbers(path: Path, draw: random.Random) -> str:
    """Numbers in a binary file that are huge, NaN or infinite."""
    content = bytearray(path.read_bytes())
    value = draw.choice([1e10, 1e20, 3e38, float("nan"), float("inf"), -0.0, 1e-40])
    first = draw.randrange(len(content) // 8, len(content) - 400) // 4 * 4
    content[first : first + 400] = struct.pack("<f", value) * 100
    path.write_bytes(content)
    return f"{path.name}: 100 times {value} at {first}"


def outcome(act: Callable[[], int], output: Path) -> tuple[str, int]:
    """What ``act`` comes to in a child process, and the bytes it needs; its prints are ``output``.

    It has ``SECONDS`` of the processor, and a line as standard input.
    """
    child = os.fork()
    if child == 0:
        os._exit(_act(act, output))
    _, status, usage = os.wait4(child, 0)
    memory = usage.ru_maxrss << 10
    said = output.read_text(errors="replace")
    if os.WIFSIGNALED(status):
        over = os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGXCPU)
        answer = "hang" if over else f"crash: {status}"
    elif memory > MEMORY:
        answer = f"memory: {memory / 1e9:.1f} GB"
    elif os.WEXITSTATUS(status) == 0:
        answer = "works"
    elif said.count("\n") == 1 and said.startswith("glassformer: error: ") and len(said) < 2000:
        answer = "one line"
    else:
        answer = f"traceback: {said[-300:]}"
    return answer, memory


def _act(act: Callable[[], int], output: Path) -> int:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(12 * SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    reader, writer = os.pipe()
    os.write(writer, b"a dog runs\n")
    os.close(writer)
    os.dup2(reader, 0)
    descriptor = os.open(output, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    try:
        status = act()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        status = 70
    return status


def translate(directory: Path, engine: str = "torch") -> int:
    """The command, with the line that standard input has."""
    options = ["--device", "cpu", "--threads", "1", "--engine", engine, "--alignment"]
    return main(["translate", str(directory), *options])


def command(run: Callable[[int, int, str], Table], kind: str, tries: int) -> int:
    """``python SCRIPT [TRIES] [SEED] [--only WORD]``: the table, and 1 if something went wrong."""
    parser = argparse.ArgumentParser(description=f"Damages one {kind} after the other, and counts.")
    parser.add_argument("tries", type=int, nargs="?", default=tries)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--only", metavar="WORD", default="", help=f"each {kind} with WORD")
    given = parser.parse_args()
    torch.set_num_threads(1)  # no thread of torch: the processes fork
    table = run(given.tries, given.seed, given.only)
    print(as_text(table, kind))
    return int(faulty(table))


def faulty(table: Table) -> bool:
    """Whether an outcome is neither one line nor a translation."""
    total: Counter[str] = sum(table.values(), Counter())
    return total["tries"] != total["one line"] + total["works"]


def as_text(table: Table, kind: str) -> str:
    """The table in Markdown; a row for each ``kind``."""
    rows = [f"| {kind} | {' | '.join(COLUMNS)} |", "|---|" + "---:|" * len(COLUMNS)]
    total: Counter[str] = sum(table.values(), Counter())
    for name, counts in {**table, "together": total}.items():
        rows.append(f"| {name} | {' | '.join(str(counts[column]) for column in COLUMNS)} |")
    return "\n".join(rows)
