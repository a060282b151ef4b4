"""Each value of each closed setting of a model, through each export: held, or refused in a line."""

from dataclasses import dataclass
from typing import get_args

import pytest
import torch
from torch import nn

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.data.subword_training import train_tokenizer
from glassformer.errors import UsageError
from glassformer.interchange.ctranslate2.export import export_ctranslate2, token_names
from glassformer.interchange.hugging_face.export import export_hugging_face
from glassformer.interchange.onnx import export
from glassformer.interchange.onnx.graphs import DecoderGraph, EncoderGraph
from glassformer.model.transformer import Transformer
from glassformer.parts import PLAIN, rebuilt

LINES = ["A dog runs across the grass.", "Ein Hund läuft über das Gras.", "An old hat."]
TEXTS = "A dog runs.", "An old hat lies"
VALUES = {
    name: (False, True) if field.annotation is bool else get_args(field.annotation)
    for name, field in ModelConfig.model_fields.items()
    if field.annotation is bool
    or all(isinstance(n, str) for n in get_args(field.annotation) or [0])
}
EACH = [{name: value} for name, values in VALUES.items() for value in values]
# The values that no family of transformers has alone, and their families.
M2M100 = {"norm": "pre", "position_frequencies": "tensor2tensor", "position_offset": 2}
MBART = {"norm": "pre", "positions": "learned", "position_offset": 2, "embedding_norm": True}
NOT_ALONE = [{name: value} for family in (M2M100, MBART) for name, value in family.items()]
# Tracing takes seconds: each value that acts in an encoder stands in one of these.
TRACED = [
    {},
    {"activation": "gelu", "norm": "pre", "positions": "learned", "embedding_norm": True},
    {
        **{"activation": "swish", "scale_embeddings": False},
        **{"position_layout": "halves", "position_frequencies": "tensor2tensor"},
    },
]


def test_the_closed_settings_are_found():
    positions = {"positions", "position_layout", "position_frequencies"}
    embeddings = {"tying", "scale_embeddings", "embedding_norm", "output_bias"}
    assert VALUES.keys() == {"activation", "norm"} | positions | embeddings


@dataclass
class Case:
    """A random model; sources with padding, the start of their targets, and the right logits."""

    bundle: Bundle
    source: torch.Tensor
    target: torch.Tensor

    @property
    def read(self):
        return (self.source != self.bundle.model.config.pad_id).long()

    @property
    def logits(self):
        return self.bundle.model(self.source, self.target)


@pytest.fixture(scope="module")
def case_of():
    tokenizer = train_tokenizer(3 * LINES, vocab_size=310)
    sizes = {"d_model": 12, "num_heads": 3, "d_ff": 20, "max_length": 40}
    sizes |= {"num_encoder_layers": 1, "num_decoder_layers": 1}
    sizes |= dict.fromkeys(("source_vocab_size", "target_vocab_size"), tokenizer.vocab_size)

    def make(options):
        torch.manual_seed(5)
        model = Transformer(ModelConfig(**{**sizes, **options})).eval().requires_grad_(False)
        for weight in model.parameters():  # no zero, no one: a weight left out would show
            weight.mul_(1.5).add_(0.3 * torch.randn_like(weight))
        rows = [torch.tensor([*tokenizer.encode(text), tokenizer.eos_id]) for text in TEXTS]
        pad = model.config.pad_id
        source = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
        target = torch.randint(4, tokenizer.vocab_size, (2, 5))
        target[:, 0] = tokenizer.bos_id
        return Case(Bundle(model, tokenizer, tokenizer, ("en", "de")), source, target)

    return make


def in_words(options):
    return " ".join(f"{name} {value}" for name, value in options.items())


@pytest.mark.parametrize("options", EACH, ids=in_words)
def test_ctranslate2_holds_it(case_of, tmp_path, options):
    ctranslate2 = pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed")
    case = case_of(options)
    names = token_names(case.bundle.source_tokenizer)
    sources = [[names[i] for i in row if i > 3] for row in case.source]
    targets = [[names[i] for i in row[1:]] for row in case.target]

    export_ctranslate2(case.bundle, tmp_path / "out")
    theirs = ctranslate2.Translator(str(tmp_path / "out")).score_batch(sources, targets)

    expected = case.logits.log_softmax(-1)
    for row, scored in enumerate(theirs):
        labels = [*case.target[row, 1:].tolist(), 3]
        ours = [expected[row, place, label].item() for place, label in enumerate(labels)]
        assert scored.log_probs == pytest.approx(ours, abs=1e-4)


@pytest.mark.parametrize("options", [*EACH, MBART], ids=in_words)
def test_transformers_holds_it_or_a_line_names_it(case_of, tmp_path, options):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    case = case_of(options)
    if options in NOT_ALONE and options != {"norm": "pre"}:
        with pytest.raises(UsageError) as caught:
            export_hugging_face(case.bundle, tmp_path / "out")
        [(name, value)] = options.items()
        assert f"{name} {value!r}" in str(caught.value)
        assert "\n" not in str(caught.value)
        return

    export_hugging_face(case.bundle, tmp_path / "out")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out").eval()
    found = model(
        input_ids=case.source, attention_mask=case.read, decoder_input_ids=case.target
    ).logits

    torch.testing.assert_close(found, case.logits, atol=5e-5, rtol=1e-5)


@pytest.mark.usefixtures("own_messages")  # a cache of the graph may be empty
@pytest.mark.parametrize("options", EACH, ids=in_words)
def test_the_graphs_of_onnx_hold_it(case_of, options):
    case = case_of(options)
    model = rebuilt(case.bundle.model, PLAIN)

    memory, decoder = EncoderGraph(model)(case.source, case.read), DecoderGraph(model)
    caches, rows = [torch.zeros(2, 3, 0, 4) for _ in range(4)], []
    for token in case.target.split(1, dim=1):
        logits, caches = decoder(token, memory, case.read, caches)
        rows.append(logits)

    torch.testing.assert_close(torch.cat(rows, dim=1), case.logits, atol=5e-5, rtol=1e-5)


class Encoders(nn.Module):
    """Several encoders in one graph: tracing them one by one takes longer."""

    def __init__(self, models):
        super().__init__()
        self.graphs = nn.ModuleList([EncoderGraph(rebuilt(model, PLAIN)) for model in models])

    def forward(self, input_ids, attention_mask):
        return tuple(graph(input_ids, attention_mask) for graph in self.graphs)


@pytest.mark.usefixtures("own_messages")  # a traced shape is a symbol
def test_onnx_holds_the_values(case_of, tmp_path):
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    from onnxruntime import InferenceSession

    cases = list(map(case_of, TRACED))
    graphs, first = Encoders([case.bundle.model for case in cases]), cases[0]
    axes = {0: "batch_size", 1: "encoder_sequence_length"}
    with torch.no_grad(), export._quiet():
        export._write_graph(
            graphs,
            (first.source, first.read),
            tmp_path / "encoders.onnx",
            inputs={"input_ids": axes, "attention_mask": axes},
            outputs=[f"states{place}" for place in range(len(cases))],
            config=first.bundle.model.config,
        )
    session = InferenceSession(tmp_path / "encoders.onnx")
    wider = nn.functional.pad(first.source, (0, 3), value=first.bundle.model.config.pad_id)
    mask = nn.functional.pad(first.read, (0, 3))
    feed = {"input_ids": wider.numpy(), "attention_mask": mask.numpy()}

    for case, states in zip(cases, session.run(None, feed), strict=True):
        length = first.source.size(1)
        expected = case.bundle.model.encode(first.source).states
        torch.testing.assert_close(
            torch.from_numpy(states)[:, :length], expected, atol=5e-5, rtol=1e-5
        )


def test_each_value_is_traced():
    defaults = {name: field.default for name, field in ModelConfig.model_fields.items()}
    for name in VALUES.keys() - {"tying", "output_bias"}:  # they act in the decoder alone
        assert {options.get(name, defaults[name]) for options in TRACED} == set(VALUES[name])
