"""One stage of making a corpus ready, timed: ``python -m benchmarks.peers.prepare_ours JOB``."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from glassformer.data.corpus import read_pairs
from glassformer.data.doctor.examine import CorpusFiles, examine
from glassformer.data.token_store import pack
from glassformer.data.tokenizer import Tokenizer, train_tokenizer

__all__ = ["main"]


def main(job: dict[str, Any]) -> None:
    """Print the stage's seconds; its files stay in the job's place for the next one."""
    place = Path(job["place"])
    files = (place / "source", place / "target")
    begin = time.perf_counter()
    if job["stage"] == "doctor":
        examine(CorpusFiles(*files))
    elif job["stage"] == "subwords":
        sides = (side for pair in read_pairs(*files) for side in pair)
        train_tokenizer(sides, vocab_size=job["vocab_size"]).save(place / "model")
    else:
        tokenizer = Tokenizer.load(place / "model")
        pack(read_pairs(*files), tokenizer, tokenizer, place / "packed", max_tokens=256)
    print(time.perf_counter() - begin)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
