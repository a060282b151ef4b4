"""Section 5 as one loop: a small Transformer learns to translate dates, in less than a minute."""

import random
from itertools import product

import torch

import glassformer as gf
from glassformer.data.batches import shift

CALENDAR = """Monday:Montag Tuesday:Dienstag Wednesday:Mittwoch Thursday:Donnerstag Friday:Freitag
Saturday:Samstag Sunday:Sonntag January:Januar February:Februar March:März April:April May:Mai
June:Juni July:Juli August:August September:September October:Oktober November:November
December:Dezember"""
GERMAN = dict(pair.split(":") for pair in CALENDAR.split())
WEEKDAYS, MONTHS, DAYS = list(GERMAN)[:7], list(GERMAN)[7:], [str(day) for day in range(1, 29)]
PAIRS = [
    ([weekday, ",", month, day], [GERMAN[weekday], ",", day, ".", GERMAN[month]])
    for weekday, month, day in product(WEEKDAYS, MONTHS, DAYS)
]
random.Random(1).shuffle(PAIRS)
TRAINING, TEST = PAIRS[:-200], PAIRS[-200:]
# One vocabulary for both sides; it begins with padding, unknown, start and end.
WORDS = ["<pad>", "<unk>", "<s>", "</s>", *sorted({*GERMAN, *GERMAN.values(), *DAYS, ",", "."})]


def ids(sentences):
    """The ids of sentences, each with the end symbol, padded to one length."""
    return gf.pad_rows([[*map(WORDS.index, words), 3] for words in sentences], pad=0)


def train(model, pairs, *, updates, batch=64, warmup=200):
    """Random batches, the smoothed loss, and Adam with the rate of equation 3."""
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for update in range(1, updates + 1):
        source, labels = map(ids, zip(*random.sample(pairs, batch), strict=True))
        logits = model(source, shift(labels, bos=2))
        loss = gf.label_smoothed_cross_entropy(logits, labels, smoothing=0.1, pad_id=0)
        optimiser.zero_grad()
        loss.backward()
        for group in optimiser.param_groups:
            group["lr"] = gf.noam_schedule(update, d_model=model.config.d_model, warmup=warmup)
        optimiser.step()
        if update % 100 == 0:
            print(f"update {update}: loss {loss.item():.3f}")


def new_model():
    """A Transformer of two blocks on each side; WORDS serves both sides."""
    sizes = {"d_model": 64, "num_heads": 4, "d_ff": 256}
    blocks = {"num_encoder_layers": 2, "num_decoder_layers": 2}
    words = {"source_vocab_size": len(WORDS), "target_vocab_size": len(WORDS)}
    return gf.Transformer(gf.ModelConfig(**sizes, **blocks, **words))


if __name__ == "__main__":
    random.seed(1)
    torch.manual_seed(1)
    model = new_model()
    train(model, TRAINING, updates=600)
