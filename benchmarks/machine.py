"""The machine of a measurement, and the operations of one update."""

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
        "load": round(os.getloadavg()[0], 2),  # before the first run
        "system": platform.platform(terse=True),
        "python": sys.version.split()[0],
        "torch": version("torch"),
        "commit": _git("rev-parse", "--short", "HEAD") + (" with changes" if status else ""),
        "command": " ".join(["python -m benchmarks", *sys.argv[1:]]),
        **more,
    }


def cores() -> int:
    """Number of CPU cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _git(*words: str) -> str:
    git = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return git.stdout.strip()


def _cpu() -> str:
    """The processor's name with its matrix and vector units, if the system tells them."""
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

    The backward pass has two products for each of the forward pass. Only real tokens count. A
    source token passes the encoder blocks' four projections and two inner layers, and the keys and
    values of the cross-attention. A target token passes the decoder blocks and the projection to
    the vocabulary. Attention itself is two products of length x length x d_model for a pair.
    """
    d, inner = model["d_model"], 2 * model["d_model"] * model["d_ff"]
    encoder, decoder = model["num_encoder_layers"], model["num_decoder_layers"]
    src_len = (np.asarray(source) != model["pad_id"]).sum(axis=1).astype(float)
    tgt_len = (np.asarray(target) != model["pad_id"]).sum(axis=1).astype(float)
    of_source = encoder * (4 * d * d + inner) + decoder * 2 * d * d
    of_target = decoder * (6 * d * d + inner) + d * model["vocab_size"]
    # A target position attends to the earlier ones: half of the square.
    squares = encoder * src_len**2 + decoder * (tgt_len**2 / 2 + tgt_len * src_len)
    products = (of_source * src_len + of_target * tgt_len + 2 * d * squares).sum()
    return float(3 * 2 * products)
