"""Alters a small bundle in many ways and counts what `translate` makes of each.

    python tests/faults/bundles.py [TRIES] [SEED] [--only WORD]

Each altered bundle is loaded, and translates a line, half of them with CTranslate2. It has a
process of its own, for 20 seconds of the processor and 1 GB.
One line of error may come out, or a translation. A traceback, a hang, a crash, more memory, or
another translation although the hashes are as they were is a fault of the program: it is printed.
`docs/reliability.md` has the table.
"""

import json
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import damage
import torch
from safetensors.torch import load_file, save_file

from glassformer.bundle import Bundle, load_bundle, save_bundle
from glassformer.config import ModelConfig
from glassformer.data.subword_training import train_tokenizer
from glassformer.model.transformer import Transformer
from glassformer.support.hashes import MANIFEST, sha256, write_manifest
from glassformer.tools.interchange.ctranslate2.package import import_ctranslate2

TEXTS = ["a dog runs", "ein Hund rennt", "two cats sit in the snow"] * 3
FILES = ("config.json", "model.safetensors", "tokenizer.model")
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
    return draw.choice([damage.flipped_bits, damage.cut, damage.random_bytes])(path, draw)


def of_a_file(kind: damage.Damage, *names: str) -> Alteration:
    """The damage of one of these files."""
    return lambda directory, draw: kind(directory / draw.choice(names or FILES), draw)


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


ALTERATIONS: list[tuple[str, Alteration, int]] = [  # the numbers are shares
    ("1,000 other bytes", other_bytes, 2),
    ("bits flipped", of_a_file(damage.flipped_bits), 3),
    ("files cut", of_a_file(damage.cut), 2),
    ("bytes inserted", of_a_file(damage.inserted), 2),
    ("blocks overwritten", of_a_file(damage.overwritten), 2),
    ("files of random bytes", of_a_file(damage.random_bytes), 1),
    ("values of config.json", of_a_file(damage.other_value, "config.json"), 6),
    ("deep nesting", of_a_file(damage.nested, "config.json"), 1),
    ("bombs", of_a_file(damage.bomb), 1),
    ("huge numbers, NaN", of_a_file(damage.other_numbers, "model.safetensors"), 2),
    ("weights of another type or shape", changed_weights, 3),
    ("many weights", many_weights, 1),
    ("pipes, devices, links, directories", of_a_file(damage.no_file), 3),
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
            answer, most = damage.outcome(partial(damage.translate, whole, engine), output)
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
            act = partial(damage.translate, altered, engine)
            answer, memory = damage.outcome(act, output)
            most = max(most, memory)
            if not forged and answer == "works" and output.read_text() != right:
                answer = f"wrong: {output.read_text()}"
            table[names[place]].update([answer.split(":")[0], "tries"])
            if answer not in ("one line", "works"):
                print(f"{names[place]}, {engine}: {done}: {answer}", flush=True)
            shutil.rmtree(altered)
    print(f"altered bundles: a process needs {most / 1e9:.1f} GB at most", flush=True)
    return table


if __name__ == "__main__":
    raise SystemExit(damage.command(run, "alteration", 300))
