"""The time of each of torch's kernels of attention, forward and backward, in rows of sentences.

A row is that of a packed batch: sentences end to end, and a mask that shows a token its own.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.peers.devices import clock_of
from benchmarks.peers.measure import job, report

__all__ = ["main"]

_KERNELS = ("EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "MATH")
_SENTENCE, _D_HEAD, _TIMES = 12, 64, 20


def main() -> None:
    """Report milliseconds by kernel and width; the reason of a failure in their place."""
    found: dict[str, float | str] = {}
    for width in job["widths"]:
        shape = (max(1, job["tokens"] // width), job["heads"], width, _D_HEAD)
        options = {"device": job["device"], "dtype": getattr(torch, job["compute"])}
        vectors = [torch.randn(shape, **options, requires_grad=True) for _ in range(3)]
        sentence = torch.arange(width, device=job["device"]) // _SENTENCE
        mask = (sentence[:, None] == sentence).expand(shape[0], 1, width, width)
        for name in _KERNELS:
            run = partial(_attend, vectors, mask, getattr(SDPBackend, name))
            try:
                found[f"{name.lower()} {width}"] = _milliseconds(run)
            except RuntimeError as fault:
                found[f"{name.lower()} {width}"] = str(fault).splitlines()[0]
    report(kernels=found)


def _attend(vectors: list[Tensor], mask: Tensor, kernel: SDPBackend) -> None:
    with sdpa_kernel(kernel):
        output = scaled_dot_product_attention(*vectors, attn_mask=mask)
    torch.autograd.grad(output, vectors, torch.ones_like(output))


def _milliseconds(run: Callable[[], None]) -> float:
    clock = clock_of(job["device"])
    for _ in range(3):
        run()
    begin = clock.mark()
    for _ in range(_TIMES):
        run()
    end = clock.mark()
    clock.wait()
    return 1000 * clock.between(begin, end) / _TIMES


if __name__ == "__main__":
    torch.set_num_threads(job["threads"])
    main()
