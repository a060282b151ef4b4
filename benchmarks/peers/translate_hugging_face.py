"""Hugging Face's ``generate`` with a bundle that ``export --to hugging-face`` has written."""

from collections.abc import Callable, Sequence

import torch
import transformers
from torch import nn
from transformers import AutoModelForSeq2SeqLM, GenerationConfig

from benchmarks.peers.measure import job
from benchmarks.peers.translating import time_translation

__all__ = ["load"]


def load() -> Callable[[Sequence[list[int]]], list[list[int]]]:
    """A function from ids to ids; sentences of like length together, the longest first."""
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(job["threads"])
    dtype = getattr(torch, job["compute"])
    model = AutoModelForSeq2SeqLM.from_pretrained(job["exported"]["hugging_face"], dtype=dtype)
    model.to(job["device"]).eval()
    pad, end = model.config.pad_token_id, model.config.eos_token_id
    # In place of the exported search, which takes time to rule out some tokens.
    model.generation_config = GenerationConfig(
        pad_token_id=pad,
        eos_token_id=end,
        decoder_start_token_id=model.config.decoder_start_token_id,
        num_beams=job["beam"],
        do_sample=False,
        length_penalty=0.0,
        cache_implementation=job.get("cache"),  # "static": generate compiles each step on a GPU
    )

    def translate_batch(sources: list[list[int]]) -> list[list[int]]:
        ended = [torch.tensor([*tokens, end]) for tokens in sources]
        ids = nn.utils.rnn.pad_sequence(ended, batch_first=True, padding_value=pad)
        translations = model.generate(
            input_ids=ids.to(job["device"]),
            attention_mask=(ids != pad).long().to(job["device"]),
            max_new_tokens=ids.size(1) + job["extra"],
        )
        rows = translations.tolist()
        return [[token for token in row[1:] if token not in (pad, end)] for row in rows]

    def translate(sources: Sequence[list[int]]) -> list[list[int]]:
        order = sorted(range(len(sources)), key=lambda place: -len(sources[place]))
        outputs: list[list[int]] = [[] for _ in sources]
        for begin in range(0, len(order), job["batch"]):
            places = order[begin : begin + job["batch"]]
            translations = translate_batch([sources[place] for place in places])
            for place, translation in zip(places, translations, strict=True):
                outputs[place] = translation
        return outputs

    return torch.inference_mode()(translate)


if __name__ == "__main__":
    time_translation(load, "ids", library=f"transformers {transformers.__version__}")
