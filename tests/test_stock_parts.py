"""A part of one's own is never silently another: it runs, or one line names it and its place.

``model/fast/test_stock.py`` has all kinds of parts and of changes; here one meets each caller.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from glassformer.parts import FAST, PLAIN
from glassformer.support.errors import InputError, UsageError
from glassformer.tools.interchange.ctranslate2.export import export_ctranslate2
from glassformer.tools.interchange.hugging_face.export import export_hugging_face
from glassformer.translator import Translator
from tests.own_parts import Rotary, colder, rebuilt

TEXTS = ["A dog runs.", "An old hat.", "Two men sit in the snow."]
ROTARY = r"encoder\.blocks\.0\.self_attention\.sublayer is a tests\.own_parts\.Rotary"


@pytest.fixture
def load(bundle_directory):
    """A translator with a model of its own, which a test may change."""
    return lambda **options: Translator.load(bundle_directory, device="cpu", **options)


def rotary(model):
    residual = model.encoder.blocks[0].self_attention
    own = Rotary(16, 2, attention=residual.sublayer.attention)
    own.load_state_dict(residual.sublayer.state_dict())
    residual.sublayer = own


def scores(translator):
    return [one.score for one in translator.translate(TEXTS, beam=2)]


def test_a_translator_refuses_it_in_one_line_also_after_a_first_translation(load):
    translator = load()
    translator.translate(TEXTS)
    rotary(translator.model)

    line = f"^{ROTARY}, which the fast decoder does not know: give parts with decoder=itself$"
    with pytest.raises(TypeError, match=line):
        translator.translate(TEXTS)


def test_the_plain_forms_run_it(load):
    plain = load(parts=PLAIN)
    before = scores(plain)

    rotary(plain.model)

    assert scores(plain) != pytest.approx(before, abs=1e-3)


def test_an_own_attention_is_given_with_a_plain_decoder(load):
    plain = load(parts=replace(PLAIN, attention=colder))
    quicker = load(parts=replace(FAST, attention=colder, decoder=PLAIN.decoder))

    assert scores(quicker) == pytest.approx(scores(plain), abs=1e-4)
    assert scores(plain) != pytest.approx(scores(load()), abs=1e-3)
    line = r"attention colder: .*sublayer has its own attention, .* give parts with decoder=itself"
    with pytest.raises(InputError, match=line):
        load(parts=replace(FAST, attention=colder))


def test_translations_follow_the_weights(load):
    translator = load()
    before = scores(translator)

    model = translator.model
    model.load_state_dict({name: 1.3 * weight for name, weight in model.state_dict().items()})

    found = scores(translator)
    plain = Translator(replace(translator.bundle, model=rebuilt(model, PLAIN)), parts=PLAIN)
    assert found != pytest.approx(before, abs=1e-2)
    assert found == pytest.approx(scores(plain), abs=1e-3)  # in float32
    assert found == scores(Translator(translator.bundle))


EXPORTS = {
    export_hugging_face: "transformers",
    export_ctranslate2: "CTranslate2",
}


@pytest.mark.parametrize("export", EXPORTS)
def test_exports_refuse_it_in_one_line(load, tmp_path, export):
    bundle = load().bundle
    rotary(bundle.model)

    line = f"^{ROTARY}, which {EXPORTS[export]} does not know: export a model without own parts$"
    with pytest.raises(UsageError, match=line):
        export(bundle, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("export", EXPORTS)
def test_exports_refuse_a_bundle_of_own_parts(load, tmp_path, export):
    """Whose modules may be the package's: only the name tells."""
    bundle = replace(load().bundle, parts={"model": "mine.Warm"})

    with pytest.raises(UsageError, match=f"own model mine.Warm, which {EXPORTS[export]} does not"):
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
    rotary(bundle.model)

    with pytest.raises(UsageError, match=f"{ROTARY}, which CTranslate2 does not know"):
        Translator.of(bundle, directory, engine="ctranslate2")
    assert (directory / "ctranslate2").exists() == kept
