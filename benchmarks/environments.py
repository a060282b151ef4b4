"""A virtual environment for each peer, made at its first use and kept.

If a peer cannot be installed, :func:`interpreter` raises the reason, and the table shows it.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["REQUIREMENTS", "Failed", "interpreter", "requirements"]

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(__file__).resolve().parent / ".environments"

# The arguments of pip. A name without a version gets the repository's pin, so that torch is the
# same build in every environment. Packages after "--no-deps" are installed without their own
# requirements (web servers, language models, image codecs), which training does not touch.
REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "ours": (),  # the interpreter that runs the benchmark
    "torch_nn": ("torch", "numpy"),
    "marian": ("torch", "numpy", "transformers", "safetensors"),
    "keras": ("tensorflow-cpu==2.21.0", "keras==3.15.1"),
    "eole": (
        *("torch", "numpy", "safetensors", "sacrebleu", "pydantic", "pyyaml", "rich", "pandas"),
        *("huggingface_hub", "configargparse", "six", "rapidfuzz", "pyahocorasick", "spacy"),
        *("subword-nmt", "tensorboard", "tokenizers", "datasets", "sentencepiece", "ctranslate2"),
        *("pyonmttok", "torch-optimi", "--no-deps", "eole==0.6.4"),
    ),
    "ctranslate2": ("ctranslate2", "numpy"),
}
_ON_CUDA = {"tensorflow-cpu==2.21.0": "tensorflow[and-cuda]==2.21.0"}
_ERROR = re.compile(r"^(ERROR|error)\b[: ]*(.*)", re.MULTILINE)


class Failed(Exception):  # noqa: N818  a row of the table
    """A program that cannot be installed, or ends without a report. The message is the reason."""


def interpreter(peer: str, *, device: str = "cpu") -> Path:
    """The Python interpreter of a peer's environment, which pip makes at the first use."""
    if not REQUIREMENTS[peer]:
        return Path(sys.executable)
    wanted = requirements(peer, device=device)
    print_of = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()[:8]
    place = CACHE / f"{peer}-{print_of}"
    python = place / "bin" / "python"
    if not (place / "installed.txt").exists():
        print(f"{peer}: making its environment with {' '.join(wanted)}")
        shutil.rmtree(place, ignore_errors=True)
        _checked([sys.executable, "-m", "venv", str(place)])
        everything, _, alone = " ".join(wanted).partition("--no-deps")
        pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        _checked([*pip, "install", *everything.split()])
        if alone:
            _checked([*pip, "install", "--no-deps", *alone.split()])
        frozen = _checked([*pip, "freeze"])
        (place / "installed.txt").write_text(frozen)  # last: it marks a complete environment
    return python


def requirements(peer: str, *, device: str = "cpu") -> list[str]:
    """The arguments of pip, with the repository's version for each name without one."""
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


def _checked(words: Sequence[str]) -> str:
    # PYTHONPATH would make other packages visible in the new environment.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    if process.returncode:
        error = _ERROR.search(process.stderr)
        lines = process.stderr.strip().splitlines() or ["no reason given"]
        reason = error[2] if error else lines[-1]
        raise Failed(f"cannot be installed: {reason.strip()}")
    return process.stdout
