"""Train a translator with an attention of your own: each query reads its five likeliest keys.

python examples/own_attention.py demo/en-de/phrases/train.tsv runs/five-keys 200
"""

import sys
from dataclasses import replace

from glassformer import FAST, TrainConfig, Translator, masked_softmax, train
from glassformer.parts import itself


def five_keys(query, key, value, mask=None):
    scores = query @ key.mT / query.size(-1) ** 0.5  # (batch, heads, q_len, k_len)
    weights = masked_softmax(scores, mask)
    fifth = weights.sort(descending=True).values[..., :5][..., -1:]  # of fewer keys, the last
    weights = weights * (weights >= fifth)
    return weights @ value, weights


pairs, directory, updates = sys.argv[1:]
parts = replace(FAST, attention=five_keys, decoder=itself)  # the fast decoder knows only its own
config = TrainConfig(pairs=(pairs,), run=directory, preset="tiny", updates=updates)
train(config, parts=parts)
print(Translator.load(directory, parts=parts).translate(["March 4, 2030"])[0].text)
