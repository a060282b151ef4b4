"""Random models in Marian's own format, as OPUS-MT packs them."""

import io
import json

import numpy as np
import pytest
import sentencepiece
import yaml

SOURCES = ["A dog runs across the green grass.", "Two men sit; one sings: no!", "yes = 1.5"] * 8
TARGETS = ["Ein Hund läuft über das Gras.", "Zwei Männer sitzen.", 'Er sagt "nein".'] * 8
WIDTH, INNER = 12, 20

OPTIONS = {
    "type": "transformer",
    "enc-depth": 2,
    "dec-depth": 3,
    "transformer-heads": 3,
    "transformer-dim-ffn": INNER,
    "transformer-ffn-activation": "swish",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-no-projection": False,
    "transformer-guided-alignment-layer": "last",
    "transformer-tied-layers": [],
    "tied-embeddings-all": True,
}
PRE = {
    "transformer-preprocess": "n",
    "transformer-postprocess": "da",
    "transformer-postprocess-top": "n",
}


def trained(lines) -> bytes:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=written,
        vocab_size=100,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
    )
    return written.getvalue()


def pieces(serialized):
    model = sentencepiece.SentencePieceProcessor(model_proto=serialized)
    return [model.id_to_piece(index) for index in range(3, model.get_piece_size())]


def random_weights(options, sizes):
    """All arrays of a model; ``sizes``: of one vocabulary, or of two."""
    draw = np.random.default_rng(4)
    weights = {}

    def put(name, *shape, around=0.0):
        weights[name] = (around + 0.4 * draw.standard_normal(shape)).astype("float32")

    def norm(name, suffix):
        put(f"{name}_ln_scale{suffix}", 1, WIDTH, around=1.0)
        put(f"{name}_ln_bias{suffix}", 1, WIDTH)

    pre = "_pre" if options["transformer-preprocess"] else ""
    for side, depth, attentions in (
        ("encoder", options["enc-depth"], ("self",)),
        ("decoder", options["dec-depth"], ("self", "context")),
    ):
        for layer in (f"{side}_l{number + 1}" for number in range(depth)):
            for attention in attentions:
                for letter in "qkvo":
                    put(f"{layer}_{attention}_W{letter}", WIDTH, WIDTH)
                    put(f"{layer}_{attention}_b{letter}", 1, WIDTH)
                norm(f"{layer}_{attention}_Wo", pre)
            put(f"{layer}_ffn_W1", WIDTH, INNER)
            put(f"{layer}_ffn_b1", 1, INNER)
            put(f"{layer}_ffn_W2", INNER, WIDTH)
            put(f"{layer}_ffn_b2", 1, WIDTH)
            norm(f"{layer}_ffn_ffn", pre)
        if pre:
            norm(f"{side}_top", "")
        if "n" in options["transformer-postprocess-emb"]:
            norm(f"{side}_emb", "_pre")
    if len(sizes) == 1:
        put("Wemb", sizes[0], WIDTH)
    else:
        put("encoder_Wemb", sizes[0], WIDTH)
        put("decoder_Wemb", sizes[1], WIDTH)
        put("decoder_ff_logit_out_W", WIDTH, sizes[1])
    put("decoder_ff_logit_out_b", 1, sizes[-1])
    weights["decoder_ff_logit_out_b"][0, :2] += (1.0, -9.0)  # targets end, and none is unknown
    return weights


def save_model(path, weights, options):
    text = yaml.safe_dump(options).encode() + b"\0"
    np.savez(path, **weights, **{"special:model.yml": np.frombuffer(text, dtype="uint8")})


def yaml_lines(texts):
    """As Marian writes a vocabulary: plain, in quotes, or escaped."""
    quoted = (json.dumps(text, ensure_ascii=False) for text in texts)
    return "".join(f"{text}: {index}\n" for index, text in enumerate(quoted))


def opus(directory, *, change=None, sizes=1, languages=(), **options):
    """A directory of OPUS-MT; ``change`` alters the weights."""
    directory.mkdir(parents=True)
    options = {**OPTIONS, **options}
    source, target = trained(SOURCES), trained(TARGETS)
    (directory / "source.spm").write_bytes(source)
    (directory / "target.spm").write_bytes(target)
    tokens = [f">>{code}<<" for code in languages]
    if sizes == 1:
        both = sorted({*pieces(source), *pieces(target)} - {"▁the"}, key=lambda t: t[::-1])
        lists = [["</s>", "<unk>", *both, *tokens]]
        names = ["opus.vocab.yml"]
    else:
        lists = [["</s>", "<unk>", *pieces(side)] for side in (source, target)]
        names = ["opus.src.vocab.yml", "opus.trg.vocab.yml"]
    for name, texts in zip(names, lists, strict=True):
        (directory / name).write_text(yaml_lines(texts), "utf-8")
    weights = random_weights(options, [*map(len, lists)])
    if change:
        change(weights)
    save_model(directory / "opus.npz", weights, options)
    decoder = {"models": ["opus.npz"], "vocabs": [names[0], names[-1]], "normalize": 1}
    (directory / "decoder.yml").write_text(yaml.safe_dump(decoder))
    return directory


@pytest.fixture
def make_opus(tmp_path):
    return lambda name="opus", **options: opus(tmp_path / name, **options)


@pytest.fixture
def pre_norm():
    return PRE
