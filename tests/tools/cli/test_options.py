"""Words and YAML files to options: both give the same, and every fault is named in one line."""

import json
from pathlib import Path
from typing import Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from glassformer.config import Options
from glassformer.support.errors import InputError, UsageError
from glassformer.tools.cli.options import parse_options
from glassformer.training.setup.options import TrainConfig
from tests.tables import every


class Kinds(Options):
    """One field of every kind."""

    bundle: Path = Field(title="BUNDLE")
    texts: tuple[str, ...] = Field((), title="TEXTS")
    beam: int = 5
    rate: float = 0.5
    head: int | Literal["mean"] | None = None
    name: str | None = None
    keys: tuple[str, str] = ("source", "target")
    columns: tuple[int, ...] = ()
    as_json: bool = Field(False, alias="json")
    joint: bool = True
    kind: Literal["one", "two"] = "one"


def parsed(*words, **changes) -> bool:
    expected = Kinds(bundle=Path("b"), **changes)
    return parse_options(Kinds, words) == expected


@pytest.fixture
def stored(tmp_path):
    """Writes a YAML file; gives the words that name it."""

    def write(text: str | bytes) -> list[str]:
        path = tmp_path / "options.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return ["--config", str(path)]

    return write


def test_words_are_taken_by_the_fields_types():
    assert parsed("b")
    assert parsed("b", "x", "y", texts=("x", "y"))
    assert parsed("b", "--beam", "3", beam=3)
    assert parsed("--beam=3", "b", beam=3)
    assert parsed("b", "--rate", "-1e-3", rate=-1e-3)
    assert parsed("b", "--json", "--no-joint", json=True, joint=False)
    assert parsed("b", "--keys", "de", "en", keys=("de", "en"))
    assert parsed("b", "--head", "mean", head="mean")
    assert parsed("b", "--head", "2", head=2)
    assert parsed("b", "--columns", "1", "-2", "3", "--json", columns=(1, -2, 3), json=True)
    assert parsed("b", "--columns=1", "x", columns=(1,), texts=("x",))


def test_what_begins_with_a_hyphen_may_be_a_value():
    assert parsed("b", "--name", "- Yes, he said.", name="- Yes, he said.")
    assert parsed("b", "--name=--beam", name="--beam")
    assert parsed("b", "--name=", name="")
    assert parsed("b", "--name", "-", name="-")
    assert parsed("--json", "--", "b", "--beam", json=True, texts=("--beam",))


def test_none_is_said_where_it_is_allowed():
    assert parsed("b", "--name", "None", name=None)
    assert parsed("b", "None", texts=("None",))
    with pytest.raises(UsageError, match="--beam 'None': expected a whole number"):
        parse_options(Kinds, ["b", "--beam", "None"])


def test_an_underscore_is_as_good_as_a_hyphen():
    words = ["a", "b", "--run", "r", "--batch_tokens", "64"]

    assert parse_options(TrainConfig, words).batch_tokens == 64


@every(
    ("words", "message"),
    [
        ([], "BUNDLE is missing"),
        (["b", "--beem", "3"], "unknown option --beem (did you mean '--beam'?)"),
        (
            ["b", "--nbest"],
            "unknown option --nbest: see n_best (a translation has alternatives)",
        ),
        (["b", "--beem=3"], "unknown option --beem (did you mean '--beam'?)"),
        (["b", "-x"], "unknown option -x"),
        (["--bundle"], "unknown option --bundle: write BUNDLE without it"),
        (["--bundle", "b"], "unknown option --bundle: write BUNDLE without it"),
        (["b", "--texts=x"], "unknown option --texts: write TEXTS without it"),
        (["b", "--confg", "f"], "unknown option --confg (did you mean '--config'?)"),
        (["b", "--no-beam"], "unknown option --no-beam (did you mean '--beam'?)"),
        (["b", "--beam"], "--beam: expected one argument"),
        (["b", "--beam", "--json"], "--beam: expected one argument"),
        (["b", "--keys", "de"], "--keys: expected 2 arguments"),
        (["b", "--keys=de"], "--keys: expected 2 arguments"),
        (["b", "--columns"], "--columns: expected at least one argument"),
        (["b", "--json=yes"], "--json/--no-json: takes no value, got 'yes'"),
        (["b", "--beam", "2", "--beam", "3"], "--beam is given twice"),
        (["b", "--json", "--no-json"], "--no-json is given twice"),
        (["b", "--beam", "2.5"], "--beam '2.5': expected a whole number"),
        (["b", "--rate", "x"], "--rate 'x': expected a number"),
        (["b", "--head", "men"], "--head 'men': expected a whole number or 'mean'"),
        (["b", "--columns", "1", "x"], "--columns 'x': expected a whole number"),
        (["b", "--kind", "tow"], "--kind 'tow': expected 'one' or 'two' (did you mean 'two'?)"),
        (["b", "--config"], "--config: expected one argument"),
    ],
)
def test_a_wrong_word_is_named(words, message):
    with pytest.raises(UsageError) as caught:
        parse_options(Kinds, words)

    assert str(caught.value) == message


def test_a_word_too_many_is_named():
    class Plain(Options):
        beam: int = 5

    with pytest.raises(UsageError, match=r"^unexpected 'x': expected \[OPTIONS\]$"):
        parse_options(Plain, ["x"])


@every(
    ("words", "message"),
    [
        (["a", "b", "c"], "SOURCE [TARGET] a b c: expected at most 2 values, not 3"),
        (["--epochs", "0"], "--epochs '0': expected more than 0"),
        (["--epochs", "inf"], "--epochs 'inf': expected a finite number"),
        (["--dropout", "1"], "--dropout '1': expected less than 1"),
        (["--batch-tokens", "2"], "--batch-tokens '2': expected at least 16"),
        (["--epochs", "2", "--updates", "9"], "give epochs or updates, not both"),
        (["--tokenizer", "x", "y"], "two tokenizers are not joint: set joint to false"),
        (["--format", "tvs"], "--format 'tvs': expected 'lines', 'tsv', 'tsv-quoted' or 'jsonl' ("),
        (["--clip", "9" * 99 + "x"], f"--clip '{'9' * 39}…: expected a number"),
    ],
)
def test_ranges_of_training_are_said_in_one_line(words, message):
    with pytest.raises(UsageError) as caught:
        parse_options(TrainConfig, [*words, *([] if words[0] == "a" else ["--run=r", "--", "a"])])

    line = str(caught.value)
    assert line.startswith(message)
    assert "\n" not in line
    assert "pydantic" not in line


def test_a_missing_run_is_named():
    with pytest.raises(UsageError, match=r"^--out is missing$"):
        parse_options(TrainConfig, ["a", "b"])


OPTIONS = st.fixed_dictionaries(
    {"bundle": st.text("ab/.", min_size=1)},
    optional={
        "beam": st.integers(-9, 9),
        "rate": st.floats(allow_nan=False, allow_infinity=False),
        "name": st.text(st.characters(codec="utf-8", exclude_characters="\x00")),
        "keys": st.tuples(st.text(min_size=1), st.text(min_size=1)).map(list),
        "columns": st.lists(st.integers(), min_size=1),
        "json": st.booleans(),
        "joint": st.booleans(),
        "kind": st.sampled_from(["one", "two"]),
    },
)


def as_words(values: dict) -> list[str]:
    """The same on the command line."""
    words = []
    for name, value in values.items():
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        elif isinstance(value, list) and not any(str(item).startswith("-") for item in value):
            words += [f"--{name}", *map(str, value)]
        elif name != "bundle" and not isinstance(value, list):
            words.append(f"--{name}={value}")
    return words


@given(OPTIONS)
def test_a_file_says_what_flags_say(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("yaml") / "options.yaml"
    values = {
        name: value
        for name, value in values.items()
        if not (isinstance(value, list) and any(str(item).startswith("-") for item in value))
        and value != "None"
    }
    path.write_text(yaml.safe_dump(values), "utf-8")

    from_file = parse_options(Kinds, ["--config", str(path)])

    assert from_file == parse_options(Kinds, [values["bundle"], *as_words(values)])


def test_what_is_on_the_line_wins_over_the_file(stored):
    file = stored("bundle: b\nbeam: 3\njson: true\ncolumns: [1, 2]\ntexts: [x, y]\n")

    assert parsed(*file, beam=3, json=True, columns=(1, 2), texts=("x", "y"))
    assert parsed(*file, "--beam", "4", "--no-json", "--columns", "7", beam=4, columns=(7,),
                  texts=("x", "y"))  # fmt: skip
    assert parsed(*file, "b", "z", beam=3, json=True, columns=(1, 2), texts=("z",))
    with pytest.raises(UsageError, match=r"^--beam 'x'"):
        parse_options(Kinds, [*file, "--beam", "x"])


@pytest.mark.parametrize("name", ["out", "run"])
def test_the_run_directory_has_two_names(stored, name):
    file = stored(f"pairs: [a, b]\n{name}: r\n")

    assert parse_options(TrainConfig, ["a", "b", f"--{name}", "r"]).run == Path("r")
    assert parse_options(TrainConfig, file).run == Path("r")
    with pytest.raises(UsageError, match=r"^--run is given twice$"):
        parse_options(TrainConfig, ["a", "b", "--out", "r", "--run", "s"])
    with pytest.raises(UsageError, match=r"out and run name one option: give it once$"):
        parse_options(TrainConfig, stored("pairs: [a, b]\nrun: r\nout: s\n"))


def test_a_file_may_write_options_in_several_ways(stored):
    assert parsed(*stored("bundle: b\ncolumns: 4\nname: null\nhead: mean\n"), columns=(4,),
                  head="mean")  # fmt: skip
    assert parsed(f"--config={stored('bundle: b')[1]}")
    words = stored("pairs: [a, b]\nrun: r\nbatch-tokens: 64\nrate_factor: 5e-1\nvalid: dev.tsv\n")
    config = parse_options(TrainConfig, words)
    assert (config.batch_tokens, config.rate_factor) == (64, 0.5)
    assert config.valid == (Path("dev.tsv"),)


@every(
    ("text", "message"),
    [
        ("beem: 3", "unknown option 'beem' (did you mean 'beam'?)"),
        ("3: 3", "unknown option 3"),
        ("bundle: b\nbeam: wide", "beam 'wide': expected a whole number"),
        ("bundle: b\nbeam: 2.5", "beam 2.5: expected a whole number"),
        ("bundle: b\nname: 5", "name 5: expected text"),
        ("bundle: 5", "bundle 5: expected a path"),
        ("bundle: b\nkeys: [de]", "keys: too few values"),
        ("bundle: b\nkeys: [en, no]", "keys holds a truth value; a word such as no, yes, on or"),
        ("bundle: b\nbeam: yes", "beam holds a truth value"),
        ("bundle: b\njson: often", "json 'often': expected a boolean"),
        ("bundle: b\nbeam: {a: b}", "beam {'a': 'b'}: expected a whole number"),
    ],
)
def test_a_wrong_value_in_a_file_is_named_with_the_file(stored, text, message):
    words = stored(text)

    with pytest.raises(UsageError) as caught:
        parse_options(Kinds, words)

    assert str(caught.value).startswith(f"{words[1]}: {message}")
    assert "\n" not in str(caught.value)


@every(
    ("content", "message"),
    [
        ("a: [", "not YAML ("),
        (b"\xff\xfe", "not UTF-8 text ("),
        ("a: \x00", "not YAML ("),
        ("a: 2030-13-45", "not YAML ("),
        ("a: " + "9" * 5000, "not YAML ("),
        ("[" * 3000, "not YAML ("),
        ("!!python/object/apply:os.getcwd []", "not YAML ("),
        ("- a", "expected a mapping"),
        ("", "expected a mapping"),
        ("text", "expected a mapping"),
    ],
)
def test_a_file_that_is_no_mapping_is_named(stored, content, message):
    words = stored(content)

    with pytest.raises(InputError) as caught:
        parse_options(Kinds, words)

    assert str(caught.value).startswith(f"{words[1]}: {message}")
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, UsageError)


def test_two_files_are_one_too_many():
    with pytest.raises(UsageError, match=r"^--config is given twice$"):
        parse_options(Kinds, ["--config", "a.yaml", "--config=b.yaml"])


def test_a_file_that_is_not_there_is_named(tmp_path, refused):
    for path, reason in (
        (tmp_path / "no.yaml", ": cannot be read: No such"),
        (tmp_path, " is a directory"),
    ):
        status, line = refused("train", "--config", path)
        assert (status, line.startswith(f"{path}{reason}")) == (1, True)


def test_all_that_training_settles_can_be_given_again_as_a_file(stored):
    config = TrainConfig(
        pairs=(Path("a"), Path("b")), run=Path("r"), languages=("en", "no"), epochs=2.5, joint=False
    )

    words = stored(yaml.safe_dump(json.loads(config.model_dump_json())))

    assert parse_options(TrainConfig, words) == config
