"""Import a random model in Hugging Face's form: import_hugging_face.py marian runs/marian"""

import json
import subprocess
import sys
from pathlib import Path

from transformers import MarianConfig, MarianMTModel

from glassformer import train_tokenizer

(original, bundle), text = map(Path, sys.argv[1:]), "A dog runs across the grass."
original.mkdir()
tokenizer = train_tokenizer([text], vocab_size=300)
for name in ("source.spm", "target.spm"):
    tokenizer.save(original / name)
pieces = [tokenizer.subword(number) for number in range(4, tokenizer.vocab_size)]
ids = {piece: number for number, piece in enumerate(["</s>", "<pad>", "<unk>", *pieces])}
(original / "vocab.json").write_text(json.dumps(ids))
special = {"eos_token_id": 0, "pad_token_id": 1, "decoder_start_token_id": 1}
config = MarianConfig(vocab_size=len(ids), d_model=16, encoder_layers=2, **special)
MarianMTModel(config).save_pretrained(original)
for words in (["import", original, bundle], ["look", bundle, "--text", text, "--out", "look.html"]):
    subprocess.run(["glassformer", *words], check=True)
