"""From two text files to a translator that is right: a task whose answers are known."""

import random

from glassformer import Translator, train
from glassformer.training.setup.options import TrainConfig


def rows(count, seed):
    draw = random.Random(seed)
    found = {}
    while len(found) < count:
        found[" ".join(draw.choices("abcdef", k=draw.randint(3, 6)))] = None
    return list(found)


def test_it_learns_to_turn_rows_round(tmp_path):
    lines = rows(1_700, seed=3)
    training, held_out = lines[:1_500], lines[1_500:]
    source, target = tmp_path / "train.src", tmp_path / "train.tgt"
    source.write_text("".join(f"{line}\n" for line in training))
    target.write_text("".join(f"{line[::-1]}\n" for line in training))

    run = train(
        TrainConfig(
            pairs=(source, target),
            run=tmp_path / "run",
            preset="tiny",
            d_model=48,
            d_ff=96,
            num_encoder_layers=1,
            num_decoder_layers=1,
            dropout=0.05,
            vocab_size=300,
            batch_tokens=1_024,
            updates=240,
            warmup=50,
            rate_factor=2.0,
            validations=1,
            average="none",
            precision="float32",
            device="cpu",
            threads=1,
        )
    )
    answers = Translator.load(run.directory, device="cpu").translate(held_out, beam=1)

    right = sum(answer.text == line[::-1] for answer, line in zip(answers, held_out, strict=True))
    assert right > 0.9 * len(held_out)
    assert run.validation["bleu"] > 90
