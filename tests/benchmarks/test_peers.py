"""Peers that need only the tests' packages compute the same as ours."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import prepared
from benchmarks.pairs import Contender, paired
from benchmarks.peers.translate_hugging_face import converted
from benchmarks.prepared import model_of, training_batches, write_batches
from glassformer.bundle import Bundle, save_bundle
from glassformer.config import ModelConfig
from glassformer.data.corpus import Pair
from glassformer.data.tokenizer import train_tokenizer
from glassformer.errors import InputError
from glassformer.model.transformer import Transformer

HERE = Path(sys.executable)
SIZE = {"d_model": 16, "num_heads": 2, "d_ff": 24, "layers": 2}
UPDATES = 4


def random_batches(rows, length, vocab_size, number):
    """Source, target and labels of random tokens, without padding."""
    generator = np.random.default_rng(1)
    for _ in range(number):
        source, labels = generator.integers(4, vocab_size, (2, rows, length))
        source[:, -1] = labels[:, -1] = 3
        target = np.concatenate((np.full((rows, 1), 2), labels[:, :-1]), axis=1)
        yield source, target, labels


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Toy batches and first weights, without dropout, so that two programs can agree."""
    place = tmp_path_factory.mktemp("job")
    model = model_of(SIZE, vocab_size=60) | {"dropout": 0.0}
    batches = list(random_batches(5, 7, 60, UPDATES))
    batches[1][0][2, 4:] = 0  # a shorter source
    write_batches(place / "batches.npz", iter(batches))
    sizes = {name: value for name, value in model.items() if name != "vocab_size"}
    torch.manual_seed(3)
    ours = Transformer(ModelConfig(source_vocab_size=60, target_vocab_size=60, **sizes))
    weights = {name: weight.detach().numpy() for name, weight in ours.named_parameters()}
    np.savez(place / "weights.npz", **weights)
    return {
        "batches": str(place / "batches.npz"),
        "weights": str(place / "weights.npz"),
        "model": model,
        "warm": 1,
        "updates": UPDATES - 1,
        "rates": [0.003] * UPDATES,
        "smoothing": 0.1,
        "clip": 1.0,
        "precision": "float32",
        "compiled": False,
        "threads": 1,
        "device": "cpu",
        "seed": 1,
    }


def test_torch_nn_learns_as_ours_does_from_the_same_weights(job):
    ours, theirs = (Contender(name, HERE, name, job) for name in ("ours", "torch_nn"))

    ((of_ours, of_torch),) = paired(ours, theirs, pairs=1)

    losses = of_ours["losses"]
    assert losses == pytest.approx(of_torch["losses"], abs=2e-4)
    assert len(losses) == UPDATES
    assert losses[1] != pytest.approx(losses[0], abs=1e-3)
    assert of_ours["parameters"] == of_torch["parameters"]
    # 5 sentences of 7 and 7 tokens; in the first timed batch three are missing.
    assert of_ours["tokens"] == of_torch["tokens"] == (UPDATES - 1) * 5 * 14 - 3
    assert of_ours["tokens_per_second"] == pytest.approx(of_ours["tokens"] / of_ours["seconds"])
    assert of_ours["peak_bytes"] > 20_000_000


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_hugging_face_gets_the_same_model(tmp_path, norm, layout):
    tokenizer = train_tokenizer(["A dog runs.", "Ein Hund läuft."] * 3, vocab_size=310)
    torch.manual_seed(5)
    ours = Transformer(
        ModelConfig(
            source_vocab_size=tokenizer.vocab_size,
            target_vocab_size=tokenizer.vocab_size,
            d_model=16,
            num_heads=2,
            d_ff=24,
            num_encoder_layers=1,
            num_decoder_layers=2,
            max_length=40,
            norm=norm,
            position_layout=layout,
        )
    ).eval()
    with torch.no_grad():
        for weight in ours.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    save_bundle(Bundle(ours, tokenizer, tokenizer), tmp_path)
    source = torch.tensor([[5, 6, 7, 8, 3], [9, 10, 3, 0, 0]])
    target = torch.tensor([[2, 11, 12, 13], [2, 14, 15, 16]])

    theirs = converted(tmp_path)
    with torch.no_grad():
        expected = ours(source, target)
        output = theirs(
            input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=target
        )

    torch.testing.assert_close(output.logits, expected, atol=1e-4, rtol=1e-4)


def test_batches_go_on_into_the_next_epoch(tmp_path):
    corpus = prepared.Corpus("toy", [Pair("a dog runs", "ein Hund läuft")] * 20, [], [])

    path, _ = training_batches(corpus, tmp_path, tokens=64, number=30)

    with np.load(path) as stored:
        first = [stored[f"{name}_29"] for name in ("source", "target", "labels")]
    source, target, labels = first
    assert source.shape[0] == target.shape[0]
    assert source.shape[0] * (source.shape[1] + target.shape[1]) <= 64
    assert (target[:, 0] == 2).all()
    assert (labels[:, -1] == 3).all()


def test_a_folder_without_the_files_is_named(tmp_path):
    with pytest.raises(InputError, match=r"holds none of train\.en, train\.en\.gz"):
        prepared.read_corpus(tmp_path)
