"""The sentence splitter: the graph keeps the contract, and its rules cut where they should."""

import json

import numpy as np
import pytest

from glassformer.tools.interchange.argos.export import splitter
from tests.tables import every

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


@pytest.fixture(scope="module")
def session():
    return runtime.InferenceSession(splitter("en"), providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def split(session):
    """Cuts one paragraph as the contract says: white space is one blank, then a 0."""
    properties = session.get_modelmeta().custom_metadata_map
    ids = json.loads(properties["vocab"])["_unit2id"]

    def cut(text):
        text = " ".join(text.split())
        units = [[*(ids.get(letter, ids["<UNK>"]) for letter in text), ids["<PAD>"]]]
        features = np.zeros((1, len(units[0]), 0), np.float32)
        feed = {"units": np.array(units), "features": features}
        [predictions] = session.run(None, feed)
        assert predictions.shape == (1, len(units[0]), 3)
        ends = [place + 1 for place in np.flatnonzero(predictions[0].argmax(-1) == 2)]
        starts = [0, *ends]
        parts = [text[a:b].strip() for a, b in zip(starts, [*ends, len(text)], strict=True)]
        return [part for part in parts if part]

    return cut


def test_the_settings(session):
    properties = session.get_modelmeta().custom_metadata_map
    assert properties["lang_code"] == "en"
    assert properties["lexicon"] == "null"
    settings = json.loads(properties["config"])
    assert (settings["feat_funcs"], settings["no_ssplit"]) == ([], False)
    vocabulary = json.loads(properties["vocab"])
    assert vocabulary["_unit2id"]["<PAD>"] == 0
    assert [vocabulary["_unit2id"][unit] for unit in vocabulary["_id2unit"]] == list(
        range(len(vocabulary["_id2unit"]))
    )


@every(
    "sentences",
    [
        ["A dog runs.", "Two men sit in the snow!", "Why?", "No end"],
        ['He said "Stop."', "Then he left.", '"Really?" he asked.'],
        ["Mr. Smith and J. R. Smith came on 3. Mai 1990.", "Then, e.g. dogs and etc. and all."],
        ["犬が走る。", "猫が寝る。", "「行く。」と言った。", "はい！"],
        ["Café…", "Är det?", "Мир.", "Дом!"],
        ["यह है।", "वह है।"],
        ["مرحبا؟", "نعم."],
        ["3.14 is pi.", "U.S. Army is one.", "...", "And so on."],
        ["日本"],
    ],
)
def test_sentences_are_cut(split, sentences):
    wide = sentences[0].endswith("。")
    assert split(("" if wide else " ").join(sentences)) == sentences


def test_a_batch_is_as_its_rows(session):
    """Padding after a row changes nothing in it."""
    units = np.array([[5, 3, 2, 40, 0, 0, 0], [40, 41, 3, 2, 300, 3, 2]])
    both = session.run(None, {"units": units, "features": np.zeros((2, 7, 3), np.float32)})[0]
    for row, expected in zip(units, both, strict=True):
        feed = {"units": row[None], "features": np.zeros((1, 7, 3), np.float32)}
        assert np.array_equal(session.run(None, feed)[0][0], expected)
