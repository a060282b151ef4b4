"""Draw what a translator reads for each piece that it writes, with one map for each head.

python examples/draw_attention.py demo/en-de "Monday, March 4, 2030"
"""

import sys

import torch

from glassformer import PLAIN, Translator, capture, plot_attention

directory, text = sys.argv[1:]
translator = Translator.load(directory, parts=PLAIN)  # a capture sees the readable forms alone
translation = translator.translate([text])[0].text
source, target = translator.source_tokenizer, translator.target_tokenizer
pieces_read, pieces_written = source.subwords(text), target.subwords(translation)
read = torch.tensor([[*source.encode(text), source.eos_id]])
written = torch.tensor([[target.bos_id, *target.encode(translation)]])
with torch.no_grad(), capture(translator.model) as seen:
    translator.model(read, written)
weights = seen["decoder.blocks.0.cross_attention"].weights[0]  # (heads, q_len, k_len)
figure = plot_attention(weights, [*pieces_written, "</s>"], [*pieces_read, "</s>"], title=text)
figure.savefig("attention.png")
print(f"{text} -> {translation}: attention.png")
