"""A virtual environment for each peer, made when it is first wanted and kept.

What cannot be installed is no silent gap: :func:`interpreter` says why, and the tables repeat it.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["CACHE", "REQUIREMENTS", "Unavailable", "interpreter", "requirements"]

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(__file__).resolve().parent / ".environments"

# What pip is asked for. "torch" and the like without a version get the repository's own pin, so
# that torch is the same build in every environment. After "--no-deps" stands what is installed
# alone, because what it asks for (web servers, language models, image codecs) cannot be had
# everywhere and is not touched by training.
REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "ours": (),  # the interpreter that runs the benchmark
    "torch_nn": ("torch", "numpy"),
    "marian": ("torch", "numpy", "transformers", "safetensors"),
    "keras": ("tensorflow-cpu==2.21.0", "keras==3.15.1"),
    "joey": (
        *("torch", "numpy", "sentencepiece", "sacrebleu", "sacremoses"),
        *("subword-nmt", "tensorboard", "matplotlib", "pandas", "packaging", "pyyaml", "datasets"),
        *("importlib_metadata", "plotly"),
        *("setuptools<81", "--no-deps", "joeynmt==2.3.0"),
    ),
    "eole": (
        *("torch", "numpy", "safetensors", "sacrebleu", "pydantic", "pyyaml", "rich", "pandas"),
        *("huggingface_hub", "configargparse", "six", "rapidfuzz", "pyahocorasick", "spacy"),
        *("subword-nmt", "tensorboard", "tokenizers", "datasets", "sentencepiece", "ctranslate2"),
        *("pyonmttok", "torch-optimi", "--no-deps", "eole==0.6.4"),
    ),
    "ctranslate2": ("ctranslate2", "numpy"),
}
_ON_CUDA = {"tensorflow-cpu==2.21.0": "tensorflow[and-cuda]==2.21.0"}
_LOUD = re.compile(r"^(ERROR|error)\b[: ]*(.*)", re.MULTILINE)

Say = Callable[[str], None]


class Unavailable(Exception):  # noqa: N818  it is no fault of ours: the table says the reason
    """A peer that cannot be installed here, with the reason in a line."""


def interpreter(peer: str, *, device: str = "cpu", say: Say = print) -> Path:
    """The Python that has ``peer``; made with pip where it is not there yet."""
    if not REQUIREMENTS[peer]:
        return Path(sys.executable)
    wanted = requirements(peer, device=device)
    print_of = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()[:8]
    place = CACHE / f"{peer}-{print_of}"
    python = place / "bin" / "python"
    if not (place / "installed.txt").exists():
        say(f"{peer}: making its environment with {' '.join(wanted)}")
        shutil.rmtree(place, ignore_errors=True)
        _checked([sys.executable, "-m", "venv", str(place)])
        everything, _, alone = " ".join(wanted).partition("--no-deps")
        _install(python, everything.split())
        if alone:
            _install(python, ["--no-deps", *alone.split()])
        frozen = _checked([str(python), "-m", "pip", "freeze", "--disable-pip-version-check"])
        (place / "installed.txt").write_text(frozen)  # last: only a whole environment has it
    return python


def requirements(peer: str, *, device: str = "cpu") -> list[str]:
    """What pip is asked for, with the repository's versions where the peer leaves them open."""
    pins = dict(
        line.strip().split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line and not line.startswith("#")
    )
    return [
        _ON_CUDA.get(name, name) if device != "cpu" else _pinned(name, pins)
        for name in REQUIREMENTS[peer]
    ]


def _pinned(name: str, pins: dict[str, str]) -> str:
    return f"{name}=={pins[name]}" if name in pins else name


def _install(python: Path, words: Sequence[str]) -> None:
    _checked(
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
    )


def _checked(words: Sequence[str]) -> str:
    # Another program's path would let its packages be found in the new environment.
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, capture_output=True, text=True, env=plain, check=False)
    if done.returncode:
        shown = _LOUD.search(done.stderr)
        reason = (
            shown[2] if shown else (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        )
        raise Unavailable(f"cannot be installed: {reason.strip()}")
    return done.stdout
