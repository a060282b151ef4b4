"""One training update in plain PyTorch, shared by the peers that are PyTorch modules.

Adam with the paper's constants, clipping, label smoothing by ``cross_entropy``, each in torch's
fastest form (fused Adam, autocast, compile).
"""

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.peers.devices import clock_of, pinned
from benchmarks.peers.measure import Arrays, job, run_updates

__all__ = ["smoothed_loss", "train"]


def train(
    model: nn.Module, loss_of: Callable[[nn.Module, Arrays], Tensor], *, library: str
) -> None:
    """Run the job: ``loss_of(model, batch)`` is the mean loss over the batch's target tokens."""
    device = torch.device(job["device"])
    model.to(device).train()
    if job["compiled"]:  # in place, so that parameters keep their names
        model.compile(dynamic=True, backend=job.get("compiler", "inductor"))
    optimiser = torch.optim.Adam(
        model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True
    )
    autocast = (
        torch.autocast(device.type, dtype=torch.bfloat16)
        if job["precision"] == "bf16"
        else nullcontext()
    )

    def prepare(arrays: Arrays) -> Arrays:
        return Arrays(*(pinned(torch.from_numpy(part)) for part in arrays))

    def update(prepared: Arrays, rate: float) -> Tensor:
        batch = Arrays(*(tensor.to(device, non_blocking=True) for tensor in prepared))
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad(set_to_none=True)
        with autocast:
            loss = loss_of(model, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), job["clip"])
        optimiser.step()
        return loss.detach()

    run_updates(
        prepare,
        update,
        library=library,
        parameters=sum(weight.numel() for weight in model.parameters() if weight.requires_grad),
        clock=clock_of(job["device"]),
    )


def smoothed_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Label-smoothed cross-entropy, the mean over real target tokens."""
    return F.cross_entropy(
        logits.flatten(0, 1),
        labels.flatten(),
        ignore_index=job["model"]["pad_id"],
        label_smoothing=job["smoothing"],
    )


torch.set_num_threads(job.get("threads", 1))
torch.manual_seed(job.get("seed", 1))
torch.backends.cuda.enable_cudnn_sdp(False)  # it compiles a kernel for each new shape
