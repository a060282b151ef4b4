"""Joey NMT: its model, batch, loss and optimiser, as in its ``TrainManager._train_step``."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from joeynmt.batch import Batch
from joeynmt.builders import build_gradient_clipper, build_optimizer
from joeynmt.model import Model, build_model
from joeynmt.vocabulary import Vocabulary

from benchmarks.peers.measure import Arrays, job, run_updates

__all__ = ["build"]

# Joey's vocabulary begins with unknown, padding, start and end; ours with padding and unknown.
_PAD, _UNK = 1, 0


def build() -> Model:
    """A new model of the job's sizes, post-norm, with one embedding matrix."""
    sizes = job["model"]
    symbols = SimpleNamespace(
        **{"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"},
        **{"unk_id": _UNK, "pad_id": _PAD, "bos_id": sizes["bos_id"], "eos_id": sizes["eos_id"]},
        **{"sep_token": None, "sep_id": None, "lang_tags": []},
    )
    words = [f"word{number}" for number in range(sizes["vocab_size"] - 4)]
    vocabulary = Vocabulary(words, symbols)

    def stack(layers: int) -> dict[str, Any]:
        return {
            "type": "transformer",
            "num_layers": layers,
            "num_heads": sizes["num_heads"],
            "hidden_size": sizes["d_model"],
            "ff_size": sizes["d_ff"],
            "dropout": sizes["dropout"],
            "layer_norm": "post",
            "embeddings": {"embedding_dim": sizes["d_model"], "scale": True},
        }

    return build_model(
        {
            "encoder": stack(sizes["num_encoder_layers"]),
            "decoder": stack(sizes["num_decoder_layers"]),
            "tied_embeddings": True,
            "tied_softmax": True,
        },
        vocabulary,
        vocabulary,
    )


def main() -> None:
    torch.set_num_threads(job["threads"])
    torch.manual_seed(job["seed"])
    device = torch.device(job["device"])
    model = build().to(device).train()
    model.loss_function = ("crossentropy", job["smoothing"])
    optimiser = build_optimizer(
        {"optimizer": "adam", "learning_rate": 1.0, "adam_betas": (0.9, 0.98)}, model.parameters()
    )
    clip = build_gradient_clipper({"clip_grad_val": None, "clip_grad_norm": job["clip"]})
    ours_pad = job["model"]["pad_id"]

    def theirs(ids: Any) -> torch.Tensor:
        swapped = np.where(ids == ours_pad, _PAD, np.where(ids == _PAD, _UNK, ids))
        return torch.from_numpy(swapped)

    def prepare(arrays: Arrays) -> Batch:
        whole = np.concatenate((arrays.target[:, :1], arrays.labels), axis=1)
        lengths = torch.from_numpy((arrays.source != ours_pad).sum(axis=1))
        rows = torch.arange(len(lengths))
        batch = Batch(
            theirs(arrays.source), lengths, None, theirs(whole), None, rows, device,
            pad_index=_PAD, eos_index=job["model"]["eos_id"],
        )  # fmt: skip
        batch.sort_by_src_length()
        return batch

    def update(batch: Batch, rate: float) -> torch.Tensor:
        for group in optimiser.param_groups:
            group["lr"] = rate
        loss, _, _, _ = model(return_type="loss", **vars(batch))
        mean = batch.normalize(loss, normalization="tokens")
        mean.backward()
        clip(parameters=model.parameters())
        optimiser.step()
        model.zero_grad()
        return mean.detach()

    on_cuda = device.type == "cuda"
    run_updates(
        prepare,
        update,
        library=f"joeynmt 2.3.0, torch {torch.__version__}",
        parameters=sum(weight.numel() for weight in model.parameters()),
        wait=torch.cuda.synchronize if on_cuda else lambda: None,
        device_peak=torch.cuda.max_memory_allocated if on_cuda else None,
    )


if __name__ == "__main__":
    main()
