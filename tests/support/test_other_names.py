"""Another toolkit's name is answered with the name here, and a wrong first argument with the right.

The table is a page of the site: ``tests/test_docs.py`` parses its commands.
"""

import inspect
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
import torch

import glassformer
from glassformer import (
    FeedForward,
    ModelConfig,
    ResidualBlock,
    TrainConfig,
    Transformer,
    Translator,
    presets,
)
from glassformer.evaluation import Scores
from glassformer.support import other_names
from glassformer.support.other_names import check_keywords, remedy, rows
from glassformer.tools.cli import plot
from glassformer.tools.cli.main import COMMANDS
from glassformer.translator import TranslateSettings
from tests.tables import every

PAGE = Path(other_names.__file__).with_suffix(".md")


def words_of(code):
    return re.findall(r"[A-Za-z_]\w*", code)


@pytest.fixture(scope="module")
def names_here():
    """Public names, their parameters, methods and parts; options and commands."""
    names = {*glassformer.__all__, "glassformer", *COMMANDS, *plot.OPTIONS, *dir(Scores)}
    for item in (getattr(glassformer, name) for name in glassformer.__all__):
        methods = [getattr(item, name) for name in dir(item) if not name.startswith("_")]
        for call in filter(callable, (item, *methods)):
            with suppress(ValueError):  # of methods in C
                names |= {*inspect.signature(call).parameters}
        names |= {*dir(item)}
    settings = (
        ModelConfig.model_fields,
        TrainConfig.model_fields,
        TranslateSettings.__annotations__,
    )
    names = names.union(*settings)
    model = Transformer(ModelConfig(**presets["tiny"], source_vocab_size=9, target_vocab_size=9))
    return names | {part for name, _ in model.named_modules() for part in name.split(".")}


def test_each_row_has_four_cells_and_names_of_its_own():
    lines = PAGE.read_text("utf-8").splitlines()
    table = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]
    names = Counter(name for row in table for name in re.findall(r"`([^`]+)`", row[0]))

    assert {len(row) for row in table} == {4}
    assert names.keys() == rows().keys()
    assert [name for name, number in names.items() if number > 1] == []


def test_each_name_elsewhere_is_answered_with_a_name_here(names_here):
    for name, (_, here, differs, _) in rows().items():
        used = {word for code in re.findall(r"`([^`]+)`", here) for word in words_of(code)}
        assert used <= names_here, name
        assert used or here in ("not a setting", "the directory of a run"), name
        assert remedy(name, []) == f": here it is {here} ({differs})".replace("`", "")
        elsewhere = remedy(f"--{name.replace('_', '-')}", ["--other"])
        assert elsewhere.partition(here.replace("`", ""))[0] in (": here it is ", ": see "), name


def test_each_line_runs(bundle_directory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vectors.txt").write_text("dog 0.5 1.0\ncat 0.25 2.0\n")
    setup = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[1]
    names = {}
    exec(setup.replace("runs/en-de", str(bundle_directory)), names)
    failed = {}
    for row in {id(row): row for row in rows().values()}.values():
        line = row[3].strip("`")
        if not line.startswith("glassformer "):
            try:
                exec(line, dict(names))
            except Exception as error:
                failed[line] = error

    assert not failed


@every(
    ("call", "message"),
    [
        (
            lambda: Translator("runs/en-de"),
            r"Translator takes .*Translator\.load.*got str",
        ),
        (lambda: glassformer.Tokenizer("a.model"), r"Tokenizer takes bytes .*Tokenizer\.load"),
        (lambda: glassformer.evaluate("runs/en-de", ["a"], ["b"]), r"evaluate .*Translator\.load"),
        (lambda: glassformer.trace("runs/en-de", "a"), r"trace takes .*Translator\.load.*got str"),
        (lambda: glassformer.train("a.en", "a.de"), r"train takes TrainConfig.*, got str"),
        (lambda: Transformer("tiny"), r"Transformer takes ModelConfig.*, got str"),
        (lambda: Transformer(512, 8), r"Transformer takes ModelConfig.*, got int"),
        (
            lambda: ResidualBlock(FeedForward(8, 32), 0.1),
            r"ResidualBlock takes .* as d_model, got 0\.1$",
        ),
        (lambda: glassformer.capture(0).__enter__(), r"capture takes a model.*got int"),
        (lambda: glassformer.EncoderBlock(12, 48, 4), "their order is d_model, num_heads, d_ff"),
        (
            lambda: glassformer.PositionalEncoding(8, max_len=9),
            "no 'max_len': here it is max_length ",
        ),
        (
            lambda: glassformer.padding_mask([[5, 0]], 0),
            r"must be a tensor .*, got list",
        ),
        (lambda: glassformer.subsequent_mask(torch.ones(1, 2)), r"such as tokens\.size\(1\), got"),
        (lambda: TrainConfig(pairs=("a", "b")), "^run is missing$"),
        (
            lambda: TrainConfig(pairs=("a", "b"), run="r", lr=1),
            "lr is no option: here it is rate_factor ",
        ),
        (lambda: TrainConfig(pairs=("a", "b"), out="r", warmpu=1), "did you mean 'warmup'"),
        (lambda: ModelConfig(n_heads=8), "n_heads is no option: here it is num_heads "),
        (lambda: check_keywords("f", ["bem"], ["beam"]), "f takes no 'bem' .did you mean 'beam'"),
    ],
)
@pytest.mark.usefixtures("own_messages")
def test_the_first_check_of_a_call_says_what_it_takes(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_translate_knows_the_names_of_other_searches(bundle_directory):
    translator = Translator.load(bundle_directory)

    hints = dict.fromkeys(("num_beams", "lenpen", "do_sample", "max_new_tokens"), "here it is")
    for name, hint in (hints | {"batch_size": "see batch_tokens"}).items():
        with pytest.raises(TypeError, match=f"Translator.translate takes no '{name}': {hint} "):
            translator.translate(["A dog runs."], **{name: 1})
