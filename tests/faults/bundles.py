"""Alters a small bundle in many ways and counts what `translate` makes of each.

    python tests/faults/bundles.py [TRIES] [SEED] [--only WORD]

Each altered bundle is loaded, and translates a line, half of them with CTranslate2. It has a
process of its own, for 20 seconds.
One line of error may come out, or a translation. A traceback, a hang, a crash or more than 2 GB of
memory is a fault of the program: it is printed. `docs/reliability.md` has the table.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from glassformer.bundle import Bundle, load_bundle, save_bundle
from glassformer.cli.main import main
from glassformer.config import ModelConfig
from glassformer.data.subword_training import train_tokenizer
from glassformer.hashes import MANIFEST, sha256, write_manifest
from glassformer.interchange.ctranslate2.package import import_ctranslate2
from glassformer.model.transformer import Transformer

SECONDS = 20
ADDRESS_SPACE = 8 << 30
MEMORY = 2e9  # bytes that a process may fill: more is a fault too
TEXTS = ["a dog runs", "ein Hund rennt", "two cats sit in the snow"] * 3
FILES = ("config.json", "model.safetensors", "tokenizer.model")
VALUES = [
    None, True, -1, 0, 7, 1.5, 10**9, 10**18, 10**5000, "x", "", [], ["a"], {}, [[]], 1e308,
    "\x00", "a\nb", "../../etc/passwd", [1, 2, 3], {"a": 1},
]  # fmt: skip

CONVERTED = "ctranslate2/*/*"  # the files of the conversion that a bundle keeps

Alteration = Callable[[Path, random.Random], str]


def make_bundle(directory: Path) -> None:
    """A bundle of a tiny random model."""
    tokenizer = train_tokenizer(TEXTS, vocab_size=300)
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 12, "num_encoder_layers": 1}
    vocabulary = dict.fromkeys(("source_vocab_size", "target_vocab_size"), tokenizer.vocab_size)
    torch.manual_seed(0)
    model = Transformer(ModelConfig(**sizes, **vocabulary, num_decoder_layers=1)).eval()
    alignment = {"layer": 0, "heads": [0], "row": "output", "error": 0.5, "judge": "anchors"}
    save_bundle(Bundle(model, tokenizer, tokenizer, ("en", "de"), {}, alignment), directory)


def other_bytes(directory: Path, draw: random.Random) -> str:
    """1,000 bytes of one file, or of all files together, get another value."""
    names = draw.choice([FILES, *((name,) for name in FILES)])
    contents = {name: bytearray((directory / name).read_bytes()) for name in names}
    for name in draw.choices(names, [len(content) for content in contents.values()], k=1000):
        contents[name][draw.randrange(len(contents[name]))] ^= draw.randrange(1, 256)
    for name, content in contents.items():
        (directory / name).write_bytes(content)
    return f"1,000 bytes of {', '.join(names)}"


def changed_conversion(directory: Path, draw: random.Random) -> str:
    """A file of the kept conversion: bits flipped, cut, or other bytes."""
    path = draw.choice(sorted(directory.glob(CONVERTED)))
    return draw.choice([flipped_bits, cut, random_bytes])(directory, draw, path)


def flipped_bits(directory: Path, draw: random.Random, path: Path | None = None) -> str:
    path = path or directory / draw.choice(FILES)
    content = bytearray(path.read_bytes())
    count = draw.choice([1, 20, 500])
    for _ in range(count):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    return f"{count} bits of {path.name}"


def cut(directory: Path, draw: random.Random, path: Path | None = None) -> str:
    path = path or directory / draw.choice(FILES)
    content = path.read_bytes()
    length = draw.randrange(len(content))
    path.write_bytes(content[:length])
    return f"{path.name} cut at {length}"


def random_bytes(directory: Path, draw: random.Random, path: Path | None = None) -> str:
    path = path or directory / draw.choice(FILES)
    path.write_bytes(draw.randbytes(draw.choice([0, 1, 8, 1000, 100_000])))
    return f"{path.name} as random bytes"


def changed_json(directory: Path, draw: random.Random) -> str:
    """Another value, or none, for one key of the config, of its model or of its alignment."""
    path = directory / "config.json"
    config = json.loads(path.read_text())
    place = draw.choice([config, config["model"], config["model"], config["alignment"]])
    key = draw.choice(list(place))
    if draw.random() < 0.2:
        del place[key]
        value: object = "(left out)"
    else:
        value = place[key] = draw.choice(VALUES)
    sys.set_int_max_str_digits(0)
    path.write_text(json.dumps(config))
    sys.set_int_max_str_digits(4300)
    return f"{key} = {str(value)[:30] if value != 10**5000 else '10**5000'}"


def nested_json(directory: Path, draw: random.Random) -> str:
    depth = draw.choice([300, 10_000, 1_000_000])
    (directory / "config.json").write_text('{"about": ' + "[" * depth + "]" * depth + "}")
    return f"{depth} nested lists"


def changed_weights(directory: Path, draw: random.Random) -> str:
    """One weight of another type or shape, without numbers, missing, or one too many."""
    path = directory / "model.safetensors"
    stored = load_file(path)
    name = draw.choice(list(stored))
    changes: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
        "whole": torch.Tensor.long,
        "bool": torch.Tensor.bool,
        "complex": lambda weight: weight.to(torch.complex64),
        "half": torch.Tensor.half,
        "double": torch.Tensor.double,
        "NaN": lambda weight: weight * torch.nan,
        "infinite": lambda weight: weight + torch.inf,
        "huge": lambda weight: weight.double() * 1e300,
        "flat": lambda weight: weight.flatten()[None],
        "empty": lambda weight: weight[:0],
        "missing": lambda _: None,
    }
    kind = draw.choice(list(changes))
    weight = changes[kind](stored.pop(name))
    save_file(stored if weight is None else {**stored, name: weight.contiguous()}, path)
    return f"{name}: {kind}"


def many_weights(directory: Path, draw: random.Random) -> str:
    path, count = directory / "model.safetensors", draw.choice([1_000, 100_000])
    save_file(load_file(path) | {f"w{i}": torch.zeros(0) for i in range(count)}, path)
    return f"{count} weights more"


def no_file(directory: Path, draw: random.Random) -> str:
    """A pipe, a directory, a link to a device or to nothing, or no file at all."""
    path = directory / draw.choice(FILES)
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


ALTERATIONS: list[tuple[str, Alteration, int]] = [  # the numbers are shares
    ("1,000 other bytes", other_bytes, 2),
    ("bits flipped", flipped_bits, 3),
    ("files cut", cut, 2),
    ("files of random bytes", random_bytes, 1),
    ("values of config.json", changed_json, 6),
    ("deep nesting", nested_json, 1),
    ("weights of another type or shape", changed_weights, 3),
    ("many weights", many_weights, 1),
    ("pipes, devices, links, directories", no_file, 3),
    ("the kept conversion", changed_conversion, 4),
]


def forge_hashes(directory: Path) -> None:
    """Hashes that fit the altered files: those of somebody who alters a bundle on purpose."""
    path = directory / "config.json"
    if not path.is_file():  # a pipe would be waited for
        return
    with suppress(Exception):
        config = json.loads(path.read_text())
        del config["sha256"]["config.json"]
        for name in config["sha256"]:
            config["sha256"][name] = sha256(directory / name)
        settings = json.dumps(config, sort_keys=True, separators=(",", ":")).encode()
        config["sha256"]["config.json"] = sha256(settings)
        path.write_text(json.dumps(config))


def forge_manifest(directory: Path) -> None:
    """The same for the kept conversion; ``config.json`` stays, which the conversion belongs to."""
    for manifest in directory.glob(f"ctranslate2/*/{MANIFEST}"):
        manifest.unlink()
        write_manifest(manifest.parent)


def outcome(directory: Path, output: Path, engine: str) -> tuple[str, int]:
    """What `glassformer translate` makes of it in a child process, and the bytes it needs."""
    child = os.fork()
    if child == 0:
        os._exit(translate(directory, output, engine))
    _, status, usage = os.wait4(child, 0)
    memory = usage.ru_maxrss << 10
    said = output.read_text(errors="replace")
    if os.WIFSIGNALED(status):
        answer = "hang" if os.WTERMSIG(status) == signal.SIGALRM else f"crash: {status}"
    elif memory > MEMORY:
        answer = f"memory: {memory / 1e9:.1f} GB"
    elif os.WEXITSTATUS(status) == 0:
        answer = "works"
    elif said.count("\n") == 1 and said.startswith("glassformer: error: "):
        answer = "one line"
    else:
        answer = f"traceback: {said[-300:]}"
    return answer, memory


def translate(directory: Path, output: Path, engine: str) -> int:
    """The command, with a line as standard input; both outputs go to a file."""
    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    reader, writer = os.pipe()
    os.write(writer, b"a dog runs\n")
    os.close(writer)
    os.dup2(reader, 0)
    descriptor = os.open(output, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    try:
        options = ["--device", "cpu", "--threads", "1", "--engine", engine, "--alignment"]
        return main(["translate", str(directory), *options])
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        return 70


def run(tries: int, seed: int, only: str = "") -> dict[str, Counter[str]]:
    """The outcomes of so many alterations, by their kind; with the true hashes and forged ones."""
    draw = random.Random(seed)
    chosen = [alteration for alteration in ALTERATIONS if only in alteration[0]]
    names, kinds, shares = zip(*chosen, strict=True)
    table: dict[str, Counter[str]] = {name: Counter() for name in names}
    with tempfile.TemporaryDirectory() as temporary:
        whole, altered, output = (Path(temporary, name) for name in ("whole", "altered", "output"))
        make_bundle(whole)
        load_bundle(whole)  # it loads modules, once for all forks
        import_ctranslate2()
        for engine in ("torch", "ctranslate2"):  # the second keeps its conversion
            answer, most = outcome(whole, output, engine)
            if answer != "works":
                raise AssertionError(answer)
        right = output.read_text()
        for number in range(tries):
            shutil.copytree(whole, altered)
            [place] = draw.choices(range(len(names)), shares)
            done = kinds[place](altered, draw)
            forged, on_conversion = number % 2 == 1, kinds[place] is changed_conversion
            if forged:
                forge = forge_manifest if on_conversion else forge_hashes
                forge(altered)
            engine = "ctranslate2" if on_conversion or number % 4 > 1 else "torch"
            answer, memory = outcome(altered, output, engine)
            most = max(most, memory)
            if on_conversion and not forged and answer == "works" and output.read_text() != right:
                answer = f"other text: {output.read_text()}"
            table[names[place]].update([answer.split(":")[0], "tries"])
            if answer not in ("one line", "works"):
                print(f"{names[place]}, {engine}: {done}: {answer}", flush=True)
            shutil.rmtree(altered)
    print(f"altered bundles: a process needs {most / 1e9:.1f} GB at most", flush=True)
    return table


def as_text(table: dict[str, Counter[str]]) -> str:
    """The table in Markdown."""
    columns = ("tries", "one line", "works", "other text", "traceback", "hang", "crash", "memory")
    rows = [f"| alteration | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    total: Counter[str] = sum(table.values(), Counter())
    for name, counts in {**table, "together": total}.items():
        rows.append(f"| {name} | {' | '.join(str(counts[column]) for column in columns)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Alters a bundle, and counts what comes of it.")
    parser.add_argument("tries", type=int, nargs="?", default=300)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--only", metavar="WORD", default="", help="alterations with WORD")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(as_text(run(given.tries, given.seed, given.only)))
