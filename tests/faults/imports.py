"""Damages translators of other programs in many ways, and counts what `import` makes of each.

    python tests/faults/imports.py [TRIES] [SEED] [--only WORD]

Tiny random models as transformers (Marian, NLLB, mBART-50), Argos Translate and CTranslate2 write
them, and a file of Marian's own. Each has a process of its own, for 20 seconds of
the processor and 1 GB.
One line of error may come out, and nothing beside it; or a bundle that `translate` reads. The rest
is a fault of the program, and is printed. `docs/reliability.md` has the table.
"""

import json
import os
import random
import runpy
import shutil
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

import bundles
import damage

from glassformer.bundle import load_bundle
from glassformer.tools.cli.main import main
from glassformer.tools.interchange.argos.package_in import import_argos  # noqa: F401  loaded for all forks
from glassformer.tools.interchange.ctranslate2.export import export_ctranslate2
from glassformer.tools.interchange.hugging_face.load import import_hugging_face  # noqa: F401

BYTES = (damage.flipped_bits, damage.cut, damage.inserted, damage.overwritten)
FILES = (*BYTES, damage.random_bytes, damage.no_file, damage.bomb)
PAIRS = {"nllb": ("eng_Latn", "deu_Latn"), "mbart": ("en_XX", "de_DE")}
HOSTILE = ["a/.", ".", "a/../../x", "/x", "a\\..\\x", "a/metadata.json", "a/model", "a" * 300]


def make_sources(place: Path) -> dict[str, Path]:
    """A directory or file of each program."""
    folder = Path(__file__).parents[1] / "tools" / "interchange" / "hugging_face"
    sys.path.insert(0, str(Path(__file__).parents[2]))  # it imports from `tests`
    tiny = runpy.run_path(str(folder / "conftest.py"))
    sources = {
        "marian": tiny["marian_directory"](place / "marian"),
        "nllb": tiny["nllb_directory"](place / "nllb"),
        "mbart": tiny["mbart50_directory"](place / "mbart"),
    }
    bundles.make_bundle(place / "bundle")
    sources["ctranslate2"] = place / "ctranslate2"
    export_ctranslate2(load_bundle(place / "bundle"), sources["ctranslate2"])
    sources["argos"] = place / "argos"
    shutil.copytree(sources["ctranslate2"], sources["argos"] / "model")
    for name in ("source.model", "target.model"):
        (sources["argos"] / "model" / name).rename(sources["argos"] / "sentencepiece.model")
    metadata = {"from_code": "en", "from_name": "English", "to_code": "de", "to_name": "German"}
    (sources["argos"] / "metadata.json").write_text(json.dumps(metadata))
    sources["npz"] = place / "opus.npz"
    with zipfile.ZipFile(sources["npz"], "w") as file:
        file.writestr("Wemb.npy", b"\x93NUMPY")
    return sources


def damaged(source: Path, draw: random.Random) -> str:
    """Damage a file of a directory, in a way that fits it; or the file itself."""
    if source.is_file():
        return draw.choice(BYTES)(source, draw)
    path = draw.choice(sorted(each for each in source.rglob("*") if each.is_file()))
    kinds = list(FILES)
    if path.suffix == ".json":
        kinds = [*FILES, damage.nested, *[damage.other_value] * 8]
    elif path.name in ("model.safetensors", "model.bin"):
        kinds += [damage.other_numbers] * 2
    return draw.choice(kinds)(path, draw)


def packed(directory: Path, path: Path, draw: random.Random) -> str:
    """A package of Argos Translate: damaged before it is packed, or after, or with a bomb."""
    way = draw.choice(["before", "before", "after", "hostile", "bomb"])
    done = damaged(directory, draw) if way == "before" else ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in sorted(directory.rglob("*")):
            if each.is_file() and each.stat().st_size < 1 << 28:  # pipes and bombs stay outside
                archive.write(each, f"a/{each.relative_to(directory)}")
        if way == "hostile":
            done = draw.choice(HOSTILE)
            archive.writestr(done, b"x")
        if way == "bomb":
            done = draw.choice(["a/model/config.json", "a/sentencepiece.model", "a/model/x"])
            with archive.open(done, "w", force_zip64=True) as member:
                for _ in range(draw.choice([60, 300])):
                    member.write(bytes(1 << 20))
    return f"{way}: {done or draw.choice(BYTES)(path, draw)}"


def imported(source: Path, bundle: Path, output: Path, family: str) -> tuple[str, int]:
    """What `import` comes to, and `translate` after it; with the bytes that they need."""
    words = ["import", str(source), str(bundle)]
    if family in PAIRS:
        first, second = PAIRS[family]
        words += ["--source-language", first, "--target-language", second]
    answer, memory = damage.outcome(lambda: main(words), output)
    if answer == "works":
        answer, more = damage.outcome(lambda: damage.translate(bundle), output)
        return answer if answer in ("works", "one line") else f"{answer}, then", max(memory, more)
    left = [path.name for path in bundle.parent.iterdir()]
    return (f"left: {left}" if left and answer == "one line" else answer), memory


def run(tries: int, seed: int, only: str = "") -> dict[str, Counter[str]]:
    """The outcomes of so many damaged translators, by their program."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        (place / "sources").mkdir()
        sources = make_sources(place / "sources")
        table = {name: Counter[str]() for name in sources if only in name}
        most = 0
        for number in range(tries):
            family = [*table][number % len(table)]
            altered, out = place / f"altered{sources[family].suffix}", place / "out"
            out.mkdir()
            if family == "npz":
                shutil.copy(sources[family], altered)
            else:
                shutil.copytree(sources[family], altered)
            source = altered
            if family == "argos" and draw.random() < 0.7:
                source = place / "en_de.argosmodel"
                done = packed(altered, source, draw)
            else:
                done = damaged(altered, draw)
            answer, memory = imported(source, out / "bundle", place / "output", family)
            most = max(most, memory)
            table[family].update([answer.split(":")[0], "tries"])
            if answer not in ("one line", "works"):
                print(f"{family}: {done}: {answer}", flush=True)
            for path in (altered, out, place / "en_de.argosmodel"):
                if path.is_dir():
                    shutil.rmtree(path)
                elif os.path.lexists(path):
                    path.unlink()
    print(f"damaged imports: a process needs {most / 1e9:.1f} GB at most", flush=True)
    return table


if __name__ == "__main__":
    raise SystemExit(damage.command(run, "program", 400))
