"""What is promised to others: the names, how they are called, and that importing them is cheap."""

import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import torch

import glassformer
from glassformer.bundle import Bundle
from tests.tables import every

# DESIGN, section 3: each public name with the parameters that callers may use. A bare * stands
# before what is by keyword only.
SIGNATURES = {
    "scaled_dot_product_attention": "query, key, value, mask",
    "MultiHeadAttention": "d_model, num_heads, *, dropout, attention",
    "MultiHeadAttention.forward": "query, key, value, mask",
    "MultiHeadAttention.with_weights": "query, key, value, mask",
    "FeedForward": "d_model, d_ff, *, dropout, activation",
    "ResidualBlock": "sublayer, d_model, *, dropout, norm",
    "EncoderBlock": "d_model, num_heads, d_ff, *, dropout, norm, parts",
    "DecoderBlock": "d_model, num_heads, d_ff, *, dropout, norm, parts",
    "Encoder": "",
    "Decoder": "",
    "padding_mask": "tokens, pad",
    "subsequent_mask": "length",
    "target_mask": "tokens, pad",
    "sinusoidal_positions": "length, d_model, *, layout",
    "PositionalEncoding": "d_model, dropout, *, kind, max_length",
    "ScaledEmbedding": "vocab_size, d_model",
    "Transformer": "config, parts",
    "Transformer.forward": "source, target, *, source_mask, target_mask",
    "Transformer.encode": "source",
    "Transformer.start": "memory",
    "Transformer.step": "tokens, state",
    "ModelConfig": "*, source_vocab_size, target_vocab_size, d_model, num_heads, d_ff,"
    " num_encoder_layers, num_decoder_layers, dropout, pad_id",
    "greedy": "step, state, rules",
    "beam_search": "step, state, rules, *, beam, length_penalty, n_best, observe",
    "sample": "step, state, rules, *, sampling, n_best",
    "label_smoothed_cross_entropy": "logits, labels",
    "noam_schedule": "",
    "token_accuracy": "logits, labels, *, pad_id",
    "read_vectors": "path",
    "plot_mask": "mask, queries, keys, *, source, target, title",
    "plot_attention": "weights, queries, keys, *, rows, columns, title",
    "plot_positions": "table, embedded, labels, *, columns, rows, apart",
    "plot_similarity": "vectors, labels, *, to, zoom, title",
    "figure1": "model, src_len, tgt_len",
    "attention_shapes": "attention, query, key",
    "Translator.load": "directory, *, device, engine, parts",
    "Translator.translate": "texts, *, beam, n_best",
    "train": "config, reporter, *, parts",
    "evaluate": "",
    "capture": "model",
    "Parts": "*, attention, dropout, model, decoder, losses",
}


def found(name: str):
    value = glassformer
    for part in name.split("."):
        value = getattr(value, part)
    return value


def parameters_of(function) -> dict[str, inspect.Parameter]:
    """The parameters, those of a record behind ``**`` among them."""
    called = function.__init__ if inspect.isclass(function) else function
    parameters = {}
    for key, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            (record,) = get_args(get_type_hints(called)[key])
            parameters |= {
                field: inspect.Parameter(
                    field,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=inspect.Parameter.empty if field in record.__required_keys__ else None,
                )
                for field in record.__annotations__
            }
        elif key != "self":
            parameters[key] = parameter
    return parameters


@every("name", SIGNATURES)
def test_a_promised_name_is_called_as_promised(name):
    parameters = parameters_of(found(name))
    places, _, keywords = SIGNATURES[name].partition("*")

    positional = [one.strip() for one in places.split(",") if one.strip()]
    by_keyword = [one.strip() for one in keywords.split(",") if one.strip()]
    assert list(parameters)[: len(positional)] == positional
    for key in positional:
        assert parameters[key].kind is not inspect.Parameter.KEYWORD_ONLY
    for key in by_keyword:
        assert parameters[key].kind is inspect.Parameter.KEYWORD_ONLY, key
    # Nothing else that a caller would have to give.
    required = {key for key, one in parameters.items() if one.default is one.empty}
    if positional or by_keyword:
        assert required <= {*positional, *by_keyword}, required


def test_the_four_sizes_are_there():
    assert list(glassformer.presets)[:4] == ["tiny", "small", "base", "big"]


def test_a_translation_has_what_is_promised():
    text = glassformer.Translation("Hund", -0.5)

    assert (text.text, text.score, text.alternatives) == ("Hund", -0.5, ())


def test_every_public_name_can_be_imported_and_is_told():
    names: dict = {}
    exec("from glassformer import *", names)

    assert set(glassformer.__all__) <= set(names)
    assert {name.partition(".")[0] for name in SIGNATURES} <= set(glassformer.__all__)
    assert dir(glassformer) == sorted(glassformer.__all__)


def test_the_docstring_names_each_public_name_once():
    rows = re.findall(r"^ {4}\S.*? {2,}(.+)$", glassformer.__doc__, re.MULTILINE)
    assert sorted(", ".join(rows).split(", ")) == glassformer.__all__


def test_help_is_short():
    text = pydoc.plain(pydoc.render_doc(glassformer))
    assert "translate                 Translator, Translation" in text
    assert len(text.splitlines()) < 80


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"has no attribute 'Trnsformer' .*'Transformer'"):
        _ = glassformer.Trnsformer
    with pytest.raises(AttributeError, match="'Trainer': here it is train"):
        _ = glassformer.Trainer
    assert not hasattr(glassformer, "Trainer")
    assert getattr(glassformer, "Trainer", None) is None
    assert inspect.unwrap(glassformer) is glassformer  # asks for __wrapped__


@every(
    ("statement", "message"),
    [
        ("from glassformer import Trainer", r"'Trainer' from 'glassformer': here it is train\("),
        ("from glassformer import train, Trnsformer", "'Trnsformer' .*did you mean 'Transformer'"),
        (
            "from glassformer import (\n    train,\n    mhsa as attend,\n)",
            "here it is MultiHeadAttention",
        ),
        ("import glassformer.Trainer", "No module named 'glassformer.Trainer'"),
    ],
)
def test_an_import_of_a_name_that_is_not_there_is_an_import_error(statement, message):
    with pytest.raises(ImportError, match=message):
        exec(statement, {})


def test_modules_are_imported_as_from_any_package():
    names: dict = {}
    exec("from glassformer import support, bundle\nimport glassformer.config as config", names)

    assert [names[name].__name__ for name in ("support", "bundle", "config")] == [
        "glassformer.support",
        "glassformer.bundle",
        "glassformer.config",
    ]


def test_the_table_of_lazy_names_is_what_type_checkers_are_told():
    """The stub's imports give the names that the package gives, and no others."""
    names: dict = {}
    exec(Path(glassformer.__file__).with_suffix(".pyi").read_text("utf-8"), names)

    for name in glassformer.__all__:
        assert names[name] is getattr(glassformer, name), name
    assert not {name for name in names if not name.startswith("__")} - {*glassformer.__all__}


def test_the_parts_need_nothing_but_torch():
    """In a REPL a part is imported without the data's, the training's or the command line's."""
    statement = (
        "import sys; from glassformer import MultiHeadAttention, Transformer;"
        "loaded = [name for name in sys.modules if name.startswith('glassformer.')];"
        "assert not [n for n in loaded if n.split('.')[1] not in ('model', 'config', 'support')],"
        " loaded"
    )

    done = subprocess.run(
        [sys.executable, "-c", statement],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(glassformer.__file__).parents[1])},
    )

    assert done.returncode == 0, done.stderr


def calls():
    """Each public function and class, and each public method of a class."""
    for name in glassformer.__all__:
        value = getattr(glassformer, name)
        if callable(value) and not isinstance(value, glassformer.Parts):
            yield name
        if inspect.isclass(value):
            members = (key for key in vars(value) if not key.startswith("_"))
            yield from (f"{name}.{key}" for key in members if callable(getattr(value, key)))


# Calls that take any keyword, by their own check.
OPEN = {
    "PositionalEncoding": lambda new, **given: new(4, kind="learned", **given),
    "Translator.load": lambda load, **given: load("nowhere", **given),
    "Translator.translate": lambda _, **given: found("Translator")(_tiny()).translate([], **given),
    "ResidualBlock.forward": lambda _, **given: glassformer.ResidualBlock(
        glassformer.FeedForward(4, 4), 4
    )(torch.zeros(1, 2, 4), **given),
}


def _tiny():
    tokenizer = glassformer.train_tokenizer(["a b"], vocab_size=300)
    sizes = dict.fromkeys(("source_vocab_size", "target_vocab_size"), tokenizer.vocab_size)
    model = glassformer.Transformer(glassformer.ModelConfig(**glassformer.presets["tiny"], **sizes))
    return Bundle(model.eval(), tokenizer, tokenizer)


@pytest.mark.usefixtures("own_messages")
@every("name", list(calls()))
def test_an_unknown_keyword_is_an_error(name):
    """No public call swallows one."""
    call = OPEN.get(name, lambda function, **given: function(**given))
    with pytest.raises((TypeError, ValueError), match=r"quantisation|no keyword arguments"):
        call(found(name), quantisation="int8")


def test_an_unknown_keyword_has_its_remedy():
    with pytest.raises(TypeError, match=r"'quantisation' \(did you mean 'quantization'"):
        glassformer.Translator.load("nowhere", quantisation="int8")
    with pytest.raises(TypeError, match=r"takes no 'enginee' \(did you mean 'engine'\?\)$"):
        glassformer.Translator.load("nowhere", enginee="torch")


# Each public call that takes several texts, by the parameter of the texts.
OF_TEXTS = [
    ("train_tokenizer", "lines"),
    *(("Translator." + name, "texts") for name in ("translate", "segments")),
    *((f"Translator.{name}", "sources") for name in ("score", "token_scores", "align")),
    ("Translator.count_tokens", "targets"),
    ("Tokenizer.encode_batch", "texts"),
    ("corpus_scores", "hypotheses"),
    ("evaluate", "sources"),
]


@pytest.mark.usefixtures("own_messages")
@every(("name", "parameter"), OF_TEXTS)
def test_one_text_is_no_list_of_texts(name, parameter):
    """Its letters would be the texts."""
    function, translator = found(name), found("Translator")(_tiny())
    owner = {"Translator": translator, "Tokenizer": translator.source_tokenizer}
    bound = [owner[name.partition(".")[0]]] if "." in name else []
    given = {
        key: {"translator": translator, "vocab_size": 300}.get(key, ["a"])
        for key, one in inspect.signature(function).parameters.items()
        if one.default is one.empty and key != "self" and one.kind is not one.VAR_KEYWORD
    }
    with pytest.raises(TypeError, match=r"one (text|string)"):
        function(*bound, **given | {parameter: "train.en"})
