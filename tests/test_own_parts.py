"""The experiments of docs/how-to/own-parts.md: trained, saved, loaded, translated, captured."""

import inspect
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch

from glassformer import (
    FAST,
    PLAIN,
    ModelConfig,
    MultiHeadAttention,
    TrainConfig,
    Translator,
    capture,
    train,
)
from glassformer.support.errors import InputError

PAGE = (Path(__file__).parents[1] / "docs/how-to/own-parts.md").read_text("utf-8")
REFERENCE = (Path(__file__).parents[1] / "docs/api.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SPACE: dict[str, object] = {"__name__": "experiments"}
for block in BLOCKS[:-1]:
    exec(block, SPACE)
EXPERIMENTS = ("softmax", "rotary", "biased", "gated", "root_mean_square", "macaron")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pairs")
    numbers = [f"{n} {n + 1} {n % 7}" for n in range(120)]
    (directory / "train.en").write_text("".join(f"one {n}\n" for n in numbers))
    (directory / "train.de").write_text("".join(f"eins {n}\n" for n in numbers))
    return directory / "train.en", directory / "train.de"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_step_is_a_column_of_a_whole_pass(name):
    parts = SPACE[name]
    config = ModelConfig(
        source_vocab_size=31, target_vocab_size=31, d_model=16, num_heads=2, d_ff=24
    )
    model = parts.build(config).eval()
    source, target = torch.randint(4, 31, (3, 7)), torch.randint(4, 31, (3, 5))
    logits = model(source, target)
    state = model.start(model.encode(source))
    for place in range(5):
        step, state = model.step(target[:, place], state)
        torch.testing.assert_close(step, logits[:, place], atol=2e-5, rtol=0)


def options(pairs, run):
    return TrainConfig(
        pairs=pairs,
        run=run,
        preset="tiny",
        d_model=16,
        num_heads=2,
        d_ff=24,
        num_encoder_layers=1,
        num_decoder_layers=1,
        vocab_size=300,
        updates=6,
        validations=1,
        batch_tokens=400,
        beam=2,
    )


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_it_trains_translates_and_is_captured(name, pairs, tmp_path):
    parts = SPACE[name]
    run = train(options(pairs, tmp_path / "run"), parts=parts)

    translator = Translator.load(run.directory, parts=parts)
    with capture(translator.model) as seen:
        translation = translator.translate(["one 5 6 5"], beam=2)[0]
    assert translation.text
    maps = dict(seen.attention_maps())
    assert len(maps) == 3 * len(translator.model.encoder.blocks)
    [score] = translator.score(["one 5 6 5"], [translation.text])
    assert score < 0
    with pytest.raises(InputError, match=r"trained with '\w+ \w+"):
        Translator.load(run.directory)


@pytest.mark.parametrize(
    "names", [("lion", "losses", "focused"), ("curved", "beam_search", "reranked")]
)
def test_a_translator_does_not_ask_for_the_parts_of_its_training(names, pairs, tmp_path):
    first, field, second = names
    parts = replace(SPACE[first], **{field: getattr(SPACE[second], field)})
    run = train(options(pairs, tmp_path / "run"), parts=parts)

    assert Translator.load(run.directory).translate(["one 5 6 5"])[0].text


def test_the_reference_has_the_arguments_of_each_part():
    table = re.findall(r"^\| `(\w+)` \| (.*?) \|", REFERENCE, re.MULTILINE)
    assert {field for field, _ in table} == {
        field.name for field in fields(FAST) if not isinstance(field.default, bool)
    }
    for field, listed in table:
        known = inspect.signature(getattr(PLAIN, field) or getattr(FAST, field)).parameters
        arguments = re.findall(r"`(\w+)`", listed)
        assert arguments == [name for name in known if name in arguments], field
        required = {name for name, each in known.items() if each.default is each.empty}
        assert required <= set(arguments), field


def test_the_page_has_each_experiment_in_ten_lines():
    bodies = re.findall(
        r"(?:^(?:def|class) .*\n(?:(?:    .*)?\n)*)", "\n".join(BLOCKS), re.MULTILINE
    )
    assert len(bodies) >= 8
    for lines in bodies:
        assert len([line for line in lines.splitlines() if line.strip()]) <= 10, lines


@pytest.mark.usefixtures("own_messages")
def test_a_mask_in_the_place_of_a_key_is_named():
    x, mask = torch.randn(2, 3, 8), torch.ones(3, 3, dtype=torch.bool)
    with pytest.raises(TypeError, match=r"the key is boolean: give a mask by its name, mask=…"):
        MultiHeadAttention(8, 2)(x, mask)
