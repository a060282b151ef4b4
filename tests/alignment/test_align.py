"""Alignment: the weights against the capture's, words against subwords, one against a batch."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.alignment.align import (
    Heads,
    align,
    linked,
    word_attention,
)
from glassformer.alignment.cross_attention import cross_weights
from glassformer.bundle import load_bundle
from glassformer.config import ModelConfig
from glassformer.data.words import words
from glassformer.model.transformer import Transformer
from glassformer.support.errors import InputError
from glassformer.tools.inspection.attention_of import attention_of
from glassformer.tools.inspection.capture import capture
from glassformer.translator import Translator
from tests.tables import every

SOURCES = ["A dog runs; an old hat.", "Two", "One man sits in the snow across the grass."]
TARGETS = ["Ein alter Hund läuft.", "Zwei Männer sitzen im Schnee über das Gras.", "Hut"]


@pytest.fixture(scope="module")
def model() -> Transformer:
    torch.manual_seed(5)
    sizes = {"d_model": 24, "num_heads": 3, "d_ff": 8, "max_length": 30, "norm": "pre"}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 4, "tying": "none"}
    config = ModelConfig(source_vocab_size=17, target_vocab_size=19, **sizes, **layers)
    return Transformer(config).eval()


@pytest.fixture(scope="module")
def translator(bundle_directory) -> Translator:
    return Translator.load(bundle_directory, device="cpu")


@pytest.mark.parametrize("layers", [[0], [3], [1, 2]])
def test_the_weights_are_those_of_the_whole_model(model, layers):
    source = torch.tensor([[5, 6, 7, 8, 3], [5, 9, 3, 0, 0]])
    target = torch.tensor([[2, 4, 5], [2, 11, 0]])
    with torch.no_grad(), capture(model) as seen:
        model(source, target)

    found = cross_weights(model, source, target, layers)
    assert len(found) == len(layers)
    for number, weights in zip(layers, found, strict=True):
        expected = seen[f"decoder.blocks.{number}.cross_attention"].weights
        torch.testing.assert_close(weights, expected, atol=1e-5, rtol=1e-4)


def test_rows_are_the_step_that_makes_a_word_and_the_step_that_reads_it(translator):
    """Against attention_of, whose query k predicts subword k: each word's mean, subwords added."""
    source, target = SOURCES[0], TARGETS[0]
    seen = attention_of(translator, source, target)
    [found] = word_attention(translator.bundle, [source], [target], layers=[0])
    rows = _owners(translator.target_tokenizer, target)
    columns = _owners(translator.source_tokenizer, source)
    assert found.weights.shape == (2, 1, 2, len(words(target)), len(words(source)))
    for word in range(len(found.target)):
        own = [row for row, owner in enumerate(rows) if owner == word]
        for place in range(len(found.source)):
            read = [column for column, owner in enumerate(columns) if owner == place]
            for late in (0, 1):  # one later, the decoder reads what it has said
                expected = seen.weights[0, :, [row + late for row in own]][:, :, read]
                np.testing.assert_allclose(
                    found.weights[late, 0, :, word, place],
                    expected.sum(-1).mean(-1).numpy(),
                    atol=1e-5,
                )


def _owners(tokenizer, text: str) -> list[int | None]:
    """The word of each piece, told by the pieces' lengths; None for a space by itself."""
    owners, place = [], 0
    for piece in tokenizer.subwords(text):
        shown = piece.replace("▁", " ")
        shown = shown.removeprefix(" ") if place == 0 else shown
        assert text.startswith(shown, place)
        place += len(shown)
        within = [n for n, (start, end) in enumerate(words(text)) if start < place <= end]
        owners.append(within[0] if within and shown.strip() else None)
    return owners


def test_a_pair_is_aligned_alike_alone_and_among_others(translator):
    heads = Heads(0, (0, 1), "input")
    together = align(translator.bundle, SOURCES, TARGETS, heads=heads)

    assert any(together)
    for source, target, links in zip(SOURCES, TARGETS, together, strict=True):
        alone = align(translator.bundle, [source], [target], heads=heads)[0]
        assert [(one.source, one.target) for one in alone] == [
            (one.source, one.target) for one in links
        ]
        assert {one.source for one in links} <= {*words(source)}
        assert [one.target for one in links] == sorted(one.target for one in links)
        assert all(0 < one.weight <= 1 for one in links)


@pytest.mark.parametrize(("source", "target"), [("", ""), ("A dog", ""), ("", "Hund"), (" ", "a")])
def test_a_side_without_words_has_no_links(translator, source, target):
    assert align(translator.bundle, [source], [target]) == [()]


def test_a_text_beyond_the_positions_is_named(translator):
    config = translator.model.config.model_copy(update={"max_length": 12})
    short = Transformer(config).eval()
    bundle = replace(translator.bundle, model=short)

    with pytest.raises(
        InputError, match=r"pair 2 has \d+ subwords on a side, .* for 12: shorten it"
    ):
        align(bundle, ["A dog", "A dog"], ["Hund", "Ein alter Hund im Schnee " * 3])


def test_what_is_read_enough_is_linked():
    weights = np.array([[0.9, 0.1, 0.0], [0.4, 0.21, 0.39], [0.21, 0.2, 0.09], [0.19, 0.19, 0.19]])

    assert linked(weights).tolist() == [
        [True, False, False],
        [True, True, True],
        [True, True, False],
        [False, False, False],
    ]
    assert linked(np.zeros((2, 3, 0))).shape == (2, 3, 0)


def test_which_heads_where_the_bundle_has_none(model):
    config = model.config

    assert Heads.of(None, config) == Heads(2, (0, 1, 2), "output")
    one_layer = config.model_copy(update={"num_decoder_layers": 1})
    assert Heads.of(None, one_layer) == Heads(0, (0, 1, 2), "output")


def test_heads_are_read_as_they_are_stored(model):
    heads = Heads(3, (0, 2), "input", 0.25, "true links, 9 pairs")

    assert Heads.of(heads.as_dict(), model.config) == heads


@every(
    "wrong",
    [{"layer": 4}, {"layer": -1}, {"heads": [3]}, {"heads": []}, {"row": "both"}, {"more": 1}],
)
def test_heads_that_the_model_has_not_are_refused(model, wrong):
    stored = {"layer": 3, "heads": [0], "row": "input"} | wrong

    with pytest.raises(InputError, match=r"alignment .*: expected a layer below 4, heads below 3"):
        Heads.of(stored, model.config)


def test_translations_are_the_same_with_their_alignment(translator):
    texts = [*SOURCES, "", "A dog runs across the grass. " * 60]
    plain = translator.translate(texts, beam=3, n_best=2)
    found = translator.translate(texts, beam=3, n_best=2, alignment=True)

    for text, one, other in zip(texts, plain, found, strict=True):
        assert one.alignment is None
        assert (one.text, one.score) == (other.text, other.score)
        for said in (other, *other.alternatives):
            if len(text) < 1000:
                assert said.alignment == translator.align([text], [said.text])[0]
    assert found[3].alignment == ()
    assert len(found[0].alternatives) == 1


def test_the_links_of_a_segment_stand_in_the_whole_texts(translator):
    text = "  A dog runs.\n\n- An old hat, and a man." + " A hat." * 90
    [best] = translator.translate([text], beam=2, alignment=True)
    assert len(best.segments) > 2
    expected = []
    for part in best.segments:
        (first, last), start = part.segment.span, part.span[0]
        assert text[first:last] == part.segment.text
        assert best.text[slice(*part.span)] == part.text
        [links] = translator.align([part.segment.text], [part.text])
        for link in links:
            source = tuple(first + place for place in link.source)
            target = tuple(start + place for place in link.target)
            expected.append((source, target, link.weight))
    assert [(link.source, link.target, link.weight) for link in best.alignment] == expected


def test_the_bundle_says_which_heads(translator, bundle_directory):
    stored = Heads(0, (1,), "input").as_dict()
    other = replace(translator, bundle=replace(load_bundle(bundle_directory), alignment=stored))
    heads = Heads(0, (1,), "input")

    assert other.align(SOURCES, TARGETS) == align(translator.bundle, SOURCES, TARGETS, heads=heads)
    assert other.align(SOURCES, TARGETS) != translator.align(SOURCES, TARGETS)
