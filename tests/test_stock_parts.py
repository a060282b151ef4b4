"""A part of one's own is never silently another: it runs, or one line names it and its place."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from glassformer.parts import FAST, PLAIN, rebuilt
from glassformer.support.errors import UsageError
from glassformer.tools.interchange.ctranslate2.export import export_ctranslate2
from glassformer.tools.interchange.hugging_face.export import export_hugging_face
from glassformer.training.optimiser import adam_of
from glassformer.translator import Translator
from tests.own_parts import Rotary, colder

TEXTS = ["A dog runs.", "An old hat.", "Two men sit in the snow."]


@pytest.fixture
def load(bundle_directory):
    """A translator with a model of its own, which a test may change."""
    return lambda **options: Translator.load(bundle_directory, device="cpu", **options)


class LowRank(nn.Linear):
    """LoRA (Hu et al. 2021), of rank 1."""

    def forward(self, x):
        return super().forward(x) + 3 * x[..., :1]


def low_rank(model):
    attention = model.decoder.blocks[0].cross_attention.sublayer
    layer = LowRank(16, 16)
    layer.weight, layer.bias = attention.query.weight, attention.query.bias
    attention.query = layer


def rotary(model):
    residual = model.encoder.blocks[0].self_attention
    own = Rotary(16, 2, attention=residual.sublayer.attention)
    own.load_state_dict(residual.sublayer.state_dict())
    residual.sublayer = own


def own_attention(model):
    model.encoder.blocks[0].self_attention.sublayer.attention = colder


def hook(model):
    model.decoder.blocks[0].feed_forward.register_forward_hook(lambda *run: 2 * run[-1] + 1)


def pre_hook(model):
    model.encoder.blocks[0].feed_forward.sublayer.register_forward_pre_hook(
        lambda _, inputs: (inputs[0] + inputs[0].roll(1, -1),)
    )


def shadowed(model):
    residual = model.decoder.blocks[0].cross_attention
    residual.add = lambda x, output: residual.norm(x - 2 * output)


PLACES = {
    low_rank: r"decoder\.blocks\.0\.cross_attention\.sublayer\.query is a .*LowRank",
    rotary: r"encoder\.blocks\.0\.self_attention\.sublayer is a tests\.own_parts\.Rotary",
    own_attention: r"encoder\.blocks\.0\.self_attention\.sublayer has its own attention",
    hook: r"decoder\.blocks\.0\.feed_forward has a hook",
    pre_hook: r"encoder\.blocks\.0\.feed_forward\.sublayer has a hook",
    shadowed: r"decoder\.blocks\.0\.cross_attention has its own add",
}
changes = pytest.mark.parametrize("change", PLACES)


def scores(translator):
    return [one.score for one in translator.translate(TEXTS, beam=2)]


@changes
@pytest.mark.parametrize("warm", [False, True])
def test_the_fast_forms_refuse_it_in_one_line(load, change, warm):
    """Before the first translation, and after one."""
    translator = load()
    if warm:
        translator.translate(TEXTS)
    change(translator.model)

    line = f"^{PLACES[change]}, which the fast decoder does not know: give parts=PLAIN$"
    with pytest.raises(TypeError, match=line):
        translator.translate(TEXTS)


@changes
def test_the_plain_forms_run_it(load, change):
    plain = load(parts=PLAIN)
    before = scores(plain)

    change(plain.model)

    assert scores(plain) != pytest.approx(before, abs=1e-3)


def test_an_own_attention_is_given_with_a_plain_decoder(load):
    plain = load(parts=replace(PLAIN, attention=colder))
    quicker = load(parts=replace(FAST, attention=colder, decoder=PLAIN.decoder))

    assert scores(quicker) == pytest.approx(scores(plain), abs=1e-4)
    assert scores(plain) != pytest.approx(scores(load()), abs=1e-3)
    with pytest.raises(TypeError, match=r"sublayer has its own attention, .* give parts=PLAIN"):
        scores(load(parts=replace(FAST, attention=colder)))


def zeroed(model):
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "cross_attention" in name and name.endswith("weight"):
                weight.zero_()


def loaded(model):
    model.load_state_dict({name: 1.3 * weight for name, weight in model.state_dict().items()})


def stepped(model, new_optimiser=adam_of):
    model.requires_grad_(True)
    optimiser = new_optimiser(list(model.parameters()))
    optimiser.param_groups[0]["lr"] = 0.01
    model(torch.tensor([[5, 6, 7]]), torch.tensor([[2, 9, 8]])).square().sum().backward()
    optimiser.step()
    model.requires_grad_(False)


def stepped_down(model):
    stepped(model, torch.optim.SGD)


def replaced(model):
    layer = model.decoder.blocks[0].feed_forward.sublayer.inner
    layer.weight = nn.Parameter(-layer.weight.detach(), requires_grad=False)


def another_activation(model):
    model.encoder.blocks[0].feed_forward.sublayer.activation = F.gelu


@pytest.mark.parametrize(
    "change", [zeroed, loaded, stepped, stepped_down, replaced, another_activation]
)
def test_translations_follow_the_weights(load, change):
    translator = load()
    before = scores(translator)

    change(translator.model)

    found = scores(translator)
    plain = Translator(replace(translator.bundle, model=rebuilt(translator.model, PLAIN)))
    if change is another_activation:  # a rebuilt model has the configuration's
        change(plain.model)
    assert found != pytest.approx(before, abs=1e-3)
    assert found == pytest.approx(scores(replace(plain, parts=PLAIN)), abs=1e-4)
    assert found == scores(Translator(translator.bundle))


EXPORTS = {
    export_hugging_face: "transformers",
    export_ctranslate2: "CTranslate2",
}


@changes
@pytest.mark.parametrize("export", EXPORTS)
def test_exports_refuse_it_in_one_line(load, tmp_path, export, change):
    bundle = load().bundle
    change(bundle.model)

    line = f"^{PLACES[change]}, which {EXPORTS[export]} does not know: own parts have no export$"
    with pytest.raises(UsageError, match=line):
        export(bundle, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("export", EXPORTS)
def test_exports_refuse_a_bundle_of_own_parts(load, tmp_path, export):
    """Whose modules may be the package's: only the name tells."""
    bundle = replace(load().bundle, parts={"model": "mine.Warm"})

    with pytest.raises(UsageError, match=f"the model mine.Warm, which {EXPORTS[export]} does not"):
        export(bundle, tmp_path / "out")


@pytest.mark.parametrize("kept", [False, True])
def test_the_engine_ctranslate2_refuses_it(load, tmp_path, bundle_directory, kept):
    """Also if an earlier conversion of the bundle's own weights is kept."""
    directory = tmp_path / "bundle"
    directory.mkdir()
    for file in Path(bundle_directory).glob("*.*"):
        (directory / file.name).write_bytes(file.read_bytes())
    if kept:
        Translator.load(directory, device="cpu", engine="ctranslate2")
    bundle = load().bundle
    own_attention(bundle.model)

    with pytest.raises(UsageError, match="its own attention, which CTranslate2 does not know"):
        Translator.of(bundle, directory, engine="ctranslate2")
    assert (directory / "ctranslate2").exists() == kept
