"""Train with a loss of your own: the focal loss (Lin et al. 2017) counts sure tokens less.

python examples/own_loss.py demo/en-de/phrases/train.tsv runs/focal 200
"""

import sys
from dataclasses import replace

from glassformer import FAST, TrainConfig, Translator, train


def focal(model, batch, **_):
    """The sum that is minimised, and the cross-entropy, which the log shows."""
    batch = batch.to(model.output_weight.device)
    real = batch.labels != model.config.pad_id
    logs = model(batch.source, batch.target)[real].log_softmax(-1)
    of_label = logs.gather(-1, batch.labels[real][:, None])
    return -((1 - of_label.exp()) ** 2 * of_label).sum(), -of_label.sum().detach()


pairs, directory, updates = sys.argv[1:]
config = TrainConfig(pairs=(pairs,), run=directory, preset="tiny", updates=updates)
train(config, parts=replace(FAST, losses=focal))
print(Translator.load(directory).translate(["March 4, 2030"])[0].text)
