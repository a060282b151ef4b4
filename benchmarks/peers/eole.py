"""eole (OpenNMT-py's successor): its model, loss and optimiser, one ``Trainer`` step.

Its decoder is always pre-norm; the number of operations is the same. "bf16" is its
``compute_dtype: bf16``: weights in bf16, with the optimiser that it takes for them (optimi).
"""

from typing import Any

import torch
from eole.config.models import TransformerModelConfig
from eole.config.training import TrainingConfig
from eole.constants import DefaultTokens
from eole.models.model import EncoderDecoderModel
from eole.utils.loss import LossCompute
from eole.utils.optimizers import build_torch_optimizer

from benchmarks.peers.devices import clock_of, pinned
from benchmarks.peers.measure import Arrays, job, run_updates

__all__ = ["build"]


def build(settings: TrainingConfig) -> tuple[EncoderDecoderModel, dict[str, Any]]:
    """A new model of the job's sizes, with one embedding matrix, and its vocabularies."""
    sizes = job["model"]
    words = [f"word{number}" for number in range(sizes["vocab_size"])]
    names = {"pad_id": "PAD", "unk_id": "UNK", "bos_id": "BOS", "eos_id": "EOS"}
    for place, name in names.items():
        words[sizes[place]] = getattr(DefaultTokens, name)
    ids = {word: number for number, word in enumerate(words)}
    tokens = {f"{name.lower()}_token": getattr(DefaultTokens, name) for name in names.values()}
    vocabs = {"src": ids, "tgt": ids, "specials": tokens}
    config = TransformerModelConfig(
        hidden_size=sizes["d_model"],
        heads=sizes["num_heads"],
        transformer_ff=sizes["d_ff"],
        encoder={"encoder_type": "transformer", "layers": sizes["num_encoder_layers"]},
        decoder={"decoder_type": "transformer", "layers": sizes["num_decoder_layers"]},
        embeddings={
            "word_vec_size": sizes["d_model"],
            "position_encoding_type": "SinusoidalInterleaved",
        },
        share_embeddings=True,
        share_decoder_embeddings=True,
        generator_bias=False,
        add_qkvbias=True,
        add_ffnbias=True,
    )
    return EncoderDecoderModel.for_training(config, vocabs, settings), vocabs


def main() -> None:
    torch.set_num_threads(job["threads"])
    torch.manual_seed(job["seed"])
    torch.backends.cuda.enable_cudnn_sdp(False)  # it compiles a kernel for each new shape
    pad_id = job["model"]["pad_id"]
    settings = TrainingConfig(
        compute_dtype="bf16" if job["precision"] == "bf16" else "fp32",
        use_amp=False,
        dropout=[job["model"]["dropout"]],
        attention_dropout=[0.0],
        param_init_method="xavier_uniform",
        optim="adam",
        adam_beta2=0.98,
        adam_eps=1e-9,
        learning_rate=1e-3,
        label_smoothing=job["smoothing"],
        world_size=0 if job["device"] == "cpu" else 1,
        gpu_ranks=[] if job["device"] == "cpu" else [0],
    )
    model, vocabs = build(settings)
    device = torch.device(job["device"])
    model.to(device).train()
    criterion = torch.nn.CrossEntropyLoss(
        ignore_index=pad_id, reduction="sum", label_smoothing=job["smoothing"]
    )
    loss_of = LossCompute(criterion, model.generator, vocabs=vocabs)
    optimiser = build_torch_optimizer(model, settings)

    def prepare(arrays: Arrays) -> dict[str, Any]:
        source, target, labels = map(torch.from_numpy, arrays)
        return {
            "src": pinned(source),
            "srclen": pinned((source != pad_id).sum(1)),
            "tgt": pinned(torch.cat((target[:, :1], labels), dim=1)),
            "words": int((labels != pad_id).sum()),
            "cid": ["all"] * len(source),
            "cid_line_number": list(range(len(source))),
        }

    def update(prepared: dict[str, Any], rate: float) -> torch.Tensor:
        batch = {name: _moved(part, device) for name, part in prepared.items()}
        optimiser.param_groups[0]["lr"] = rate
        out, attention, _ = model(batch["src"], batch["tgt"], batch["srclen"])
        loss, _, _ = loss_of(batch, out, attention)
        mean = loss / batch["words"]
        mean.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), job["clip"])
        optimiser.step()
        optimiser.zero_grad()
        return mean.detach()

    run_updates(
        prepare,
        update,
        library=f"eole 0.6.4, torch {torch.__version__}",
        parameters=sum(weight.numel() for weight in model.parameters()),
        clock=clock_of(job["device"]),
    )


def _moved(part: Any, device: torch.device) -> Any:
    return part.to(device, non_blocking=True) if isinstance(part, torch.Tensor) else part


if __name__ == "__main__":
    main()
