"""What the figures were measured on, and the most that it can do."""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["cores", "facts", "training_flops"]

ROOT = Path(__file__).resolve().parents[1]


def facts(**more: Any) -> dict[str, Any]:
    """CPU, cores, load, versions and commit, for the JSON beside each figure."""
    status = _git("status", "--porcelain", "--untracked-files=no")
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu(),
        "cores": cores(),
        "load": round(os.getloadavg()[0], 2),  # before the first run: what else was busy
        "system": platform.platform(terse=True),
        "python": sys.version.split()[0],
        "torch": version("torch"),
        "commit": _git("rev-parse", "--short", "HEAD") + (" with changes" if status else ""),
        "command": " ".join(["python -m benchmarks", *sys.argv[1:]]),
        **more,
    }


def cores() -> int:
    """Those that this process may use."""
    may_use = getattr(os, "sched_getaffinity", None)  # Linux has it
    return len(may_use(0)) if may_use else os.cpu_count() or 1


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _cpu() -> str:
    """The processor's name with its matrix and vector units, as far as the system says."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or platform.machine()
    fields = dict(
        (part.strip() for part in line.split(":", 1))
        for line in info.read_text().splitlines()
        if ":" in line
    )
    flags = set(fields.get("flags", "").split())
    units = [unit for unit in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if unit in flags]
    return f"{fields.get('model name', 'unknown')} ({', '.join(units) or 'no vector units named'})"


def training_flops(model: dict[str, Any], source: Any, target: Any) -> float:
    """Operations of one update on these id arrays: multiplications and additions of the matrices.

    The backward pass has two products for each of the forward's. Only real tokens count: what a
    program computes on padding is its own loss. For a token of the source: an encoder block's four
    projections and two inner layers, and the keys and values of the cross-attention; of the
    target: the decoder's, and the projection to words. Attention itself is two products of
    length x length x d_model for a pair.
    """
    d, inner = model["d_model"], 2 * model["d_model"] * model["d_ff"]
    encoder, decoder = model["num_encoder_layers"], model["num_decoder_layers"]
    read = (np.asarray(source) != model["pad_id"]).sum(axis=1).astype(float)
    said = (np.asarray(target) != model["pad_id"]).sum(axis=1).astype(float)
    of_source = encoder * (4 * d * d + inner) + decoder * 2 * d * d
    of_target = decoder * (6 * d * d + inner) + d * model["vocab_size"]
    # A target position may attend to those before it: half of the square.
    squares = encoder * read**2 + decoder * (said**2 / 2 + said * read)
    products = (of_source * read + of_target * said + 2 * d * squares).sum()
    return float(3 * 2 * products)
