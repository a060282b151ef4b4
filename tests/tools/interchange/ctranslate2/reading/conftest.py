"""Random models as CTranslate2's converters write them."""

import io
import json
import struct

import ctranslate2
import numpy as np
import pytest
import sentencepiece
import torch
from ctranslate2.specs import common_spec, transformer_spec

LINES = ["A dog runs across the grass.", "Ein Hund läuft über das Gras.", "Two men, 17 hats!"] * 9


def sentencepiece_model() -> bytes:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=written,
        vocab_size=90,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
    )
    return written.getvalue()


def interleaved(length, width):
    angles = np.arange(length)[:, None] * np.exp(
        np.arange(0, width, 2) * -(np.log(10_000.0) / width)
    )
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(length, width).astype("float32")


class Randoms:
    """Fills the modules of a specification."""

    def __init__(self, width, inner):
        self.random = np.random.default_rng(5)
        self.width, self.inner = width, inner

    def __call__(self, *shape):
        return (0.5 * self.random.standard_normal(shape)).astype("float32")

    def norm(self, spec):
        spec.gamma, spec.beta = 1 + self(self.width), self(self.width)

    def attention(self, spec, parts):
        self.norm(spec.layer_norm)
        for linear, part in zip(spec.linear, parts, strict=True):
            linear.weight = self(part * self.width, self.width)  # OpenNMT's have no bias

    def stack(self, spec, positions):
        self.norm(spec.layer_norm)
        spec.position_encodings.encodings = positions
        for layer in spec.layer:
            self.attention(layer.self_attention, (3, 1))
            if hasattr(layer, "attention"):
                self.attention(layer.attention, (1, 2, 1))
            self.norm(layer.ffn.layer_norm)
            for linear, shape in (
                (layer.ffn.linear_0, (self.inner, self.width)),
                (layer.ffn.linear_1, (self.width, self.inner)),
            ):
                linear.weight, linear.bias = self(*shape), self(shape[0])


def opennmt(directory, *, tokens, settings=(), change=None, quantization=None, save=True):
    """A model of OpenNMT-py: pre-norm, one matrix for all tokens, sources without an end symbol."""
    width, inner = 12, 20
    spec = transformer_spec.TransformerSpec.from_config((2, 3), 3)
    fill = Randoms(width, inner)
    for stack in (spec.encoder, spec.decoder):
        fill.stack(stack, interleaved(600, width))
    matrix = fill(len(tokens), width)
    for place in (spec.encoder.embeddings[0], spec.decoder.embeddings, spec.decoder.projection):
        place.weight = matrix.copy()
    spec.decoder.projection.bias = fill(len(tokens))
    spec.config.layer_norm_epsilon = 1e-2
    for name, value in dict(settings).items():
        spec.config.__dict__[name] = value
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    if change:
        change(spec)
    spec.validate()
    spec.optimize(quantization=quantization)
    if save:
        directory.mkdir(parents=True)
        spec.save(str(directory))
        (directory / "sentencepiece.model").write_bytes(sentencepiece_model())
    return spec


@pytest.fixture(scope="session")
def vocabulary():
    """In OpenNMT's order; it lacks a piece, and has one that the SentencePiece model lacks."""
    model = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model())
    pieces = [model.id_to_piece(i) for i in range(3, model.get_piece_size()) if i != 7]
    return ["<unk>", "<blank>", "<s>", "</s>", *reversed(pieces), "madeup"]


@pytest.fixture
def make_opennmt(tmp_path, vocabulary):
    def make(name="model", **options):
        opennmt(tmp_path / name, **{"tokens": vocabulary, **options})
        return tmp_path / name

    return make


def write_old(directory, spec, version, *, scaled=None):
    """Like the converters before CTranslate2 3.0: a text vocabulary, options for both stacks.

    ``scaled``: the switch of the embeddings' scale, by its first name.
    """
    text = lambda name: struct.pack("<H", len(name) + 1) + name.encode() + b"\0"  # noqa: E731
    variables = dict(spec.variables(ordered=True))
    aliases = {name: value for name, value in variables.items() if isinstance(value, str)}
    values = {name: value.numpy() for name, value in variables.items() if name not in aliases}
    for option in ("num_heads", "pre_norm", "activation"):
        values[option] = values.pop(f"encoder/{option}")
        values.pop(f"decoder/{option}")
    for side in ("encoder", "decoder") if scaled is not None else ():
        del values[f"{side}/scale_embeddings"]
        values[f"{side}/embeddings/multiply_by_sqrt_depth"] = np.int8(scaled)
    values["encoder/embeddings/weight"] = values.pop("decoder/embeddings/weight")
    tied = ("decoder/embeddings/weight", "decoder/projection/weight")
    aliases |= dict.fromkeys(tied, "encoder/embeddings/weight")
    aliases.pop("encoder/embeddings_0/weight")
    if version < 3:
        values |= {alias: values[name] for alias, name in aliases.items()}
    written = struct.pack("<I", version) + text("TransformerSpec") + struct.pack("<I", 4)
    written += struct.pack("<I", len(values))
    for name, value in values.items():
        written += text(name) + struct.pack(f"<B{value.ndim}I", value.ndim, *value.shape)
        ids = {"float32": 0, "int8": 1, "int16": 2}
        if version >= 4:
            written += struct.pack("<BI", ids[value.dtype.name], value.nbytes)
        else:
            written += struct.pack("<BI", value.itemsize, value.size)
        written += value.tobytes()
    if version >= 3:
        written += struct.pack("<I", len(aliases))
        written += b"".join(text(alias) + text(name) for alias, name in aliases.items())
    (directory / "model.bin").write_bytes(written)
    tokens = json.loads((directory / "shared_vocabulary.json").read_text())
    (directory / "shared_vocabulary.txt").write_text("".join(f"{t}\n" for t in tokens))
    for name in ("shared_vocabulary.json", "config.json"):
        (directory / name).unlink()


@pytest.fixture
def make_old(make_opennmt, vocabulary):
    def make(version, **options):
        directory = make_opennmt()
        write_old(directory, opennmt(directory, tokens=vocabulary, save=False), version, **options)
        return directory

    return make


@pytest.fixture
def activations():
    return common_spec.Activation


@pytest.fixture
def compared():
    return Compared


class Compared:
    """A bundle beside the CTranslate2 model it was read from: pieces in, log-probabilities out."""

    def __init__(self, bundle, directory):
        self.bundle = bundle
        self.theirs = ctranslate2.Translator(str(directory), compute_type="float32")

    def scores(self, text, target):
        """Theirs and ours of each subword of ``target``."""
        source, writing = self.bundle.source_tokenizer, self.bundle.target_tokenizer
        ids, labels = source.encode(text), [*writing.encode(target), writing.eos_id]
        [found] = self.theirs.score_batch(
            [[source.subword(i) for i in ids]], [[writing.subword(i) for i in labels[:-1]]]
        )
        with torch.inference_mode():
            logits = self.bundle.model(
                torch.tensor([[*ids, source.eos_id]]),
                torch.tensor([[writing.bos_id, *labels[:-1]]]),
            )
        ours = logits[0].log_softmax(-1).gather(1, torch.tensor(labels)[:, None])[:, 0]
        return found.log_probs, ours.tolist()
