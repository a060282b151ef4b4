"""What of ours grows beside training: decoding with the beam and the length, and preparation."""

import tempfile
import time
from pathlib import Path

import torch

from benchmarks.peers.measure import job, report
from benchmarks.peers.ours import build
from benchmarks.prepared import VOCABULARY, read_corpus
from glassformer.data.token_store import pack
from glassformer.data.tokenizer import train_tokenizer
from glassformer.decoding.beam import beam_search
from glassformer.decoding.constraints import Forbidden

__all__ = ["corpus", "decoding"]

_ROWS, _LENGTH = 16, 20


def decoding(beam: int, length: int) -> dict[str, float]:
    """Seconds of a beam search that must say ``length`` tokens for each of 16 sources."""
    model = build().eval()
    torch.manual_seed(1)
    source = torch.randint(4, model.config.source_vocab_size, (_ROWS, _LENGTH))
    seconds = []
    with torch.inference_mode():
        for _ in range(2):  # the first one fills caches
            begin = time.perf_counter()
            beam_search(
                model.step,
                model.start(model.encode(source)),
                max_lengths=torch.full((_ROWS,), length),
                beam=beam,
                constraints=[Forbidden([model.config.eos_id])],
            )
            seconds.append(time.perf_counter() - begin)
    return {
        "seconds_per_token": seconds[-1] / (_ROWS * length),
        "seconds_per_sentence": seconds[-1] / _ROWS,
    }


def corpus(pairs: int) -> dict[str, float]:
    """Seconds from pairs in memory to packed ids: subwords learnt, text encoded, files written."""
    text = read_corpus(None).train
    chosen = [text[place % len(text)] for place in range(pairs)]
    begin = time.perf_counter()
    tokenizer = train_tokenizer((side for pair in chosen for side in pair), vocab_size=VOCABULARY)
    with tempfile.TemporaryDirectory() as place:
        pack(chosen, tokenizer, tokenizer, Path(place) / "packed", max_tokens=200)
    return {"seconds": time.perf_counter() - begin}


if __name__ == "__main__":
    torch.set_num_threads(job["threads"])
    if job["what"] == "corpus":
        report(**corpus(job["value"]))
    elif job["what"] == "beam":
        report(**decoding(job["value"], 32))
    else:
        report(**decoding(5, job["value"]))
