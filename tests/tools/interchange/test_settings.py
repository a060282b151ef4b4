"""Each value of each closed setting of a model, through each export: held, or refused in a line."""

from dataclasses import dataclass
from typing import get_args

import pytest
import torch

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.data.subword_training import train_tokenizer
from glassformer.model.transformer import Transformer
from glassformer.support.errors import UsageError
from glassformer.tools.interchange.ctranslate2.export import export_ctranslate2, token_names
from glassformer.tools.interchange.hugging_face.export import export_hugging_face

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
