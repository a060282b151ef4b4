"""ONNX graphs, run by onnxruntime: the numbers and the greedy translations of the model."""

import json
import shutil
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import torch

from glassformer.bundle import Bundle, save_bundle
from glassformer.cli.main import main
from glassformer.config import ModelConfig
from glassformer.data.subword_training import train_tokenizer
from glassformer.decoding.engine import Job, SearchOptions
from glassformer.errors import InputError
from glassformer.interchange.onnx.export import export_onnx
from glassformer.model.attention import (
    MultiHeadAttention,
    fused_attention,
    scaled_dot_product_attention,
)
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST
from glassformer.text_engine import torch_engine

pytestmark = pytest.mark.usefixtures("without_shape_types")  # a traced shape is a symbol
TEXTS = ["A dog runs across the grass.", "Two men sit in the snow.", "Ein Hut, ein Hund \U0001f415"]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS * 3, vocab_size=320)


def bundle_of(tokenizer, **options):
    vocabulary = dict.fromkeys(("source_vocab_size", "target_vocab_size"), tokenizer.vocab_size)
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 2}
    sizes = {"d_model": 12, "num_heads": 3, "d_ff": 20, "max_length": 40}
    torch.manual_seed(3)
    model = Transformer(ModelConfig(**vocabulary, **layers, **sizes, **options)).eval()
    with torch.no_grad():
        for weight in model.parameters():  # no zero, no one: a weight left out would show
            weight.add_(0.3 * torch.randn_like(weight))
    return Bundle(model.requires_grad_(False), tokenizer, tokenizer, ("en", "de"))


class Graphs:
    """The two graphs of a directory, and greedy search with them."""

    def __init__(self, directory, ending=""):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.encoder, self.decoder = (
            onnxruntime.InferenceSession(directory / "onnx" / f"{name}{ending}.onnx", options)
            for name in ("encoder_model", "decoder_model_merged")
        )
        self.caches = [i for i in self.decoder.get_inputs() if i.name.startswith("past")]

    def start(self, source, mask):
        """The memory, and empty caches as transformers.js makes them from the graph's inputs."""
        source, mask = source.numpy(), mask.numpy()
        [memory] = self.encoder.run(None, {"input_ids": source, "attention_mask": mask})
        sizes = {"batch_size": len(source)}
        empty = {
            cache.name: torch.zeros(
                [s if isinstance(s, int) else sizes.get(s, 0) for s in cache.shape]
            ).numpy()
            for cache in self.caches
        }
        return {"encoder_hidden_states": memory, "encoder_attention_mask": mask}, empty

    def step(self, tokens, memory, caches):
        """Logits of the next tokens, and the caches after them."""
        feed = {"input_ids": tokens.numpy(), **memory, **caches}
        logits, *after = self.decoder.run(None, feed)
        names = [name.name.replace("present", "past_key_values") for name in self.outputs]
        return torch.from_numpy(logits), dict(zip(names, after, strict=True))

    @property
    def outputs(self):
        return self.decoder.get_outputs()[1:]

    def logits(self, source, mask, target):
        """Logits of whole targets, token by token."""
        memory, caches = self.start(source, mask)
        rows = []
        for place in range(target.size(1)):
            found, caches = self.step(target[:, place : place + 1], memory, caches)
            rows.append(found)
        return torch.cat(rows, dim=1)


def require_packages():
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name, reason=f"{name} is not installed")


@pytest.fixture(scope="module")
def exported(tokenizer, tmp_path_factory):
    """A bundle, its export, and the words of the command."""
    require_packages()
    place = tmp_path_factory.mktemp("onnx")
    bundle = bundle_of(tokenizer, norm="pre", activation="gelu")
    save_bundle(bundle, place / "bundle")
    with redirect_stdout(StringIO()) as said:
        words = ["export", "--to", "onnx", str(place / "bundle"), str(place / "out")]
        assert main(words) == 0
    return bundle, place / "out", said.getvalue()


def test_numbers_translations_and_files(exported):
    bundle, directory, said = exported
    assert "note: transformers.js searches greedily\n" in said
    graphs, source = Graphs(directory), bundle.source_tokenizer
    rows = [torch.tensor([*source.encode(text), source.eos_id]) for text in TEXTS]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=source.pad_id)
    targets = torch.randint(4, source.vocab_size, (len(rows), 6))
    targets[:, 0] = source.bos_id

    found = graphs.logits(ids, (ids != source.pad_id).long(), targets)

    torch.testing.assert_close(found, bundle.model(ids, targets), atol=5e-5, rtol=1e-5)
    for row, text in zip(rows, TEXTS, strict=True):
        assert greedy(graphs, row, bundle) == ours(bundle, text)
    settings = json.loads((directory / "config.json").read_text())
    assert settings["model_type"] == "marian"
    assert settings["decoder_layers"] == 2
    search = json.loads((directory / "generation_config.json").read_text())
    assert search["num_beams"] == 1
    assert 'dtype: "fp32"' in (directory / "README.md").read_text()


def greedy(graphs, row, bundle):
    """Greedy search over the graphs; padding, unknown and start are forbidden, as is no token."""
    memory, caches = graphs.start(row[None], torch.ones_like(row)[None])
    token, found = bundle.target_tokenizer.bos_id, []
    for step in range(len(row) - 1 + bundle.model.config.extra_length):
        logits, caches = graphs.step(torch.tensor([[token]]), memory, caches)
        logits[..., [0, 1, 2] + ([3] if step == 0 else [])] = -torch.inf
        token = int(logits.argmax())
        if token == bundle.target_tokenizer.eos_id:
            break
        found.append(token)
    return found


def ours(bundle, text):
    engine = torch_engine(bundle.model, bundle.tokenizers, FAST)
    job = Job([bundle.source_tokenizer.encode(text)])
    return list(engine.decode(job, SearchOptions(beam=1))[0][0].tokens)


def attentions_of(model):
    return {part.attention for part in model.modules() if isinstance(part, MultiHeadAttention)}


def test_the_caller_s_model_stays_as_it_is(tokenizer, tmp_path, monkeypatch):
    require_packages()
    graphs = []
    monkeypatch.setattr(torch.onnx, "export", lambda graph, *_, **__: graphs.append(graph))
    bundle = bundle_of(tokenizer)
    bundle.model.train()

    export_onnx(bundle, tmp_path / "out")

    assert all(module.training for module in bundle.model.modules())
    assert attentions_of(bundle.model) == {fused_attention}
    for graph in graphs:
        assert attentions_of(graph) == {scaled_dot_product_attention}
        pairs = zip(graph.model.parameters(), bundle.model.parameters(), strict=True)
        assert all(theirs is ours for theirs, ours in pairs)
    assert len(graphs) == 2


def test_unigrams_without_bytes_are_said(tokenizer, tmp_path, monkeypatch):
    """transformers.js has byte fallback for BPE alone."""
    require_packages()
    monkeypatch.setattr(torch.onnx, "export", lambda *_, **__: None)
    unigrams = train_tokenizer(TEXTS * 3, vocab_size=320, kind="unigram")
    note = "transformers.js reads a character that the unigrams lack as unknown"
    for subwords, said in ((tokenizer, False), (unigrams, True)):
        notes = export_onnx(bundle_of(subwords), tmp_path / str(said))
        assert (note in notes) == said


def test_int8_is_near(exported, tmp_path, monkeypatch):
    """Quantized are the graphs that the command has written: tracing them takes long."""
    bundle, directory, _ = exported
    monkeypatch.setattr(
        torch.onnx,
        "export",
        lambda _, __, path, **___: shutil.copy(directory / "onnx" / Path(path).name, path),
    )
    export_onnx(bundle, tmp_path / "out", quantization="int8")

    names = {path.name for path in (tmp_path / "out" / "onnx").iterdir()}
    assert names == {"encoder_model_quantized.onnx", "decoder_model_merged_quantized.onnx"}
    ids = torch.tensor([[9, 8, 7, 3]])
    targets = torch.tensor([[2, 11, 12]])
    found = Graphs(tmp_path / "out", "_quantized").logits(ids, torch.ones_like(ids), targets)
    expected = bundle.model(ids, targets)
    assert 0 < (found - expected).abs().max() < 0.1 * expected.abs().max()
    assert 'dtype: "q8"' in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize("package", ["onnx", "onnxscript", "onnxruntime"])
def test_the_absent_package_is_named(tokenizer, tmp_path, monkeypatch, package):
    for name in ("onnx", "onnxscript", "onnxruntime"):
        monkeypatch.setitem(sys.modules, name, None if name == package else sys)
    with pytest.raises(
        InputError, match=rf"this needs {package}: pip install 'glassformer\[onnx\]'"
    ):
        export_onnx(bundle_of(tokenizer), tmp_path / "out", quantization="int8")
    assert not (tmp_path / "out").exists()
