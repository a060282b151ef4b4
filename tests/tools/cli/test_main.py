"""The command line as a whole: commands, help, and errors that are one line."""

import io
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from glassformer.config import ModelConfig
from glassformer.support.errors import InputError, UsageError
from glassformer.tools.cli.main import COMMANDS, main, module_of
from glassformer.training.setup.options import TrainConfig
from tests.tables import every

SOURCE = Path(__file__).parents[3] / "src"
PLOTS = ("masks", "positions", "schedule", "training", "attention", "alignment", "figure1")
# Options of files and directories that a command reads.
FILES_READ = {"api_key_file", "metrics_key_file", "glossary", "parts", "notebook", "bundle"}
FILES_READ |= {"hypotheses", "references", "baseline", "valid", "test"}
FILES_READ |= {"parent", "general", "replay", "also", "tokenizer"}
NO_MEMORY = "memory ran out: end other programs, or give this one more memory"


def python(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "COLUMNS": "100"},
    )


@pytest.fixture
def command(monkeypatch):
    """Puts a function in the place of ``glassformer doctor``'s work."""

    def replace(work):
        monkeypatch.setattr("glassformer.tools.cli.doctor.run", work)
        return lambda: main(["doctor", "text.tsv"])

    return replace


def test_without_a_command_the_overview_is_an_error():
    assert main(["--help"]) == 0
    assert main([]) == 2


def test_the_overview_names_every_command(capsys):
    main(["-h"])

    said = capsys.readouterr()
    assert all(f"\n  {name} " in said.out for name in COMMANDS)
    main([])
    assert capsys.readouterr().err == said.out


def test_the_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"glassformer {version('glassformer')}\n"


def test_the_overview_says_where_to_begin(capsys):
    main([])

    last = " ".join(capsys.readouterr().err.split("\n\n")[-1].split())
    assert re.findall(r"\b(demo|learn|train)\b", last) == ["demo", "learn", "train"]


@every("words", [[], ["train"], ["plot"], ["plot", "masks"]])
def test_help_is_a_word_too(words, capsys):
    assert main(["help", *words]) == main([*words, "--help"]) == 0

    said = capsys.readouterr().out
    assert said[: len(said) // 2] == said[len(said) // 2 :]


def test_an_option_without_a_command_is_named(refused):
    assert refused("--verison") == (
        2,
        "unknown option --verison (did you mean '--version'?): expected a command first, such as"
        " demo",
    )
    assert refused("--beam", "5")[0] == 2


def test_what_a_command_writes_has_one_name():
    written = {
        f"{words}: {field}"
        for words, options in all_options().items()
        for field, info in options.model_fields.items()
        if "Path" in str(info.annotation) and not info.title and field not in FILES_READ
        if "out" not in (field, *getattr(info.validation_alias, "choices", ()))
    }

    assert not written, "name it out, or add it to FILES_READ"


def test_an_unknown_command_names_the_nearest(refused):
    assert refused("trian") == (2, "unknown command 'trian' (did you mean 'train'?)")
    status, line = refused("xyz")
    assert status == 2
    assert line.endswith(f"expected one of {', '.join(COMMANDS)}")


def all_options() -> dict[str, type]:
    """The options of every command, and of every kind of it."""
    found = {}
    for name in COMMANDS:
        options = module_of(name).OPTIONS
        kinds = options if isinstance(options, dict) else {"": options}
        found |= {f"{name} {kind}".rstrip(): kind_options for kind, kind_options in kinds.items()}
    return found


@every(("words", "options"), all_options().items())
def test_help_has_every_option_with_its_doc_and_default(words, options, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*words.split(), "--help"]) == 0

    text = capsys.readouterr().out
    assert text.startswith(f"usage: glassformer {words} ")
    assert max(map(len, text.split("\n"))) <= 80
    shown = " ".join(text.split())
    for field, info in options.model_fields.items():
        name = info.title or f"--{info.alias or field}".replace("_", "-")
        default = "(required)" if info.is_required() else "(default: "
        doc = " ".join(info.description.split())
        assert name in shown
        assert f"{doc} {default}" in shown


def test_a_default_is_shown_in_words(capsys):
    main(["train", "--help"])

    shown = " ".join(capsys.readouterr().out.split())
    assert "One vocabulary for both sides. (default: yes)" in shown
    assert "(default: source target)" in shown
    assert "(default: none)" in shown


def test_the_options_of_train_stand_under_headings_the_first_ones_first(capsys):
    main(["train", "--help"])

    lines = capsys.readouterr().out.split("\n")
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["positional arguments:", *(f"{t}:" for t in TrainConfig.groups.values())]
    first = lines[lines.index(headings[1]) : lines.index(headings[2])]
    assert sum(line.startswith("  --") for line in first) <= 8


def test_every_heading_begins_with_an_option():
    for words, options in all_options().items():
        assert set(options.groups) <= set(options.model_fields), words


@pytest.mark.parametrize("words", [["-h"], ["plot", "-h"]])
def test_an_overview_fits_the_terminal(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    assert main(words) == 0
    assert max(map(len, capsys.readouterr().out.split("\n"))) <= 80


def test_help_of_a_command_with_kinds_names_them(capsys):
    assert main(["plot", "-h"]) == 0

    shown = capsys.readouterr().out
    assert shown.startswith("usage: glassformer plot KIND [OPTIONS]\n")
    assert all(f"\n  {kind} " in shown for kind in PLOTS)


def test_help_and_importing_need_no_torch():
    for statement in (
        "import glassformer",
        "import glassformer; dir(glassformer)",
        *(
            f"from glassformer.tools.cli.main import main; assert main({words!r}) == 0"
            for words in (["--help"], ["train", "--help"], ["translate", "-h"], ["plot", "-h"])
        ),
    ):
        done = python("-c", f"import sys; {statement}; assert 'torch' not in sys.modules")

        assert done.returncode == 0, done.stderr
        assert done.stderr == ""


def test_a_bundle_of_the_package_s_parts_needs_no_lesson(bundle_directory, tmp_path):
    bundle, page = str(bundle_directory), str(tmp_path / "page.html")
    commands = {
        ("translate", bundle): {"cli", "interchange"},
        ("look", bundle, "--text", "A dog.", "--out", page): {"inspection", "web"},
    }
    done = python(
        "-c",
        "import sys; from glassformer.tools.cli.main import main\n"
        f"sys.stdin, before = open({os.devnull!r}), set()\n"
        f"for words in {list(commands)}:\n"
        "    status = main(words)\n"
        "    tools = {name.split('.')[2] for name in sys.modules if '.tools.' in name}\n"
        "    print('tools', status, *sorted(tools - before))\n"
        "    before = tools",
    )

    lines = [line for line in done.stdout.splitlines() if line.startswith("tools ")]
    assert lines == [" ".join(("tools 0", *sorted(each))) for each in commands.values()], (
        done.stderr
    )


def test_the_package_is_the_command():
    done = python("-m", "glassformer", "trian")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "glassformer: error: unknown command 'trian' (did you mean 'train'?)\n"


def test_a_reader_that_has_enough_ends_it_quietly():
    # The pipe's reader ends before anything is written.
    shell = f"{sys.executable} -m glassformer train --help | true; echo ${{PIPESTATUS[0]}}"

    done = subprocess.run(
        ["bash", "-c", shell],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )

    assert done.stderr == ""
    assert done.stdout in ("0\n", "1\n")


@every(
    ("error", "status", "line"),
    [
        (InputError("a.txt: no such file"), 1, "a.txt: no such file"),
        (UsageError("beam 0"), 2, "beam 0"),
        (InputError("a\nb.txt: no such file"), 1, "a b.txt: no such file"),
        (PermissionError(13, "Permission denied", "runs"), 1, "runs: Permission denied"),
        (OSError(28, "No space left on device"), 1, "this machine: No space left on device"),
        (
            FileNotFoundError(2, "No usable temporary directory found in ['/tmp']"),
            1,
            "this machine: No usable temporary directory found in ['/tmp']: give it one, with"
            " TMPDIR or, in a container, --tmpfs /tmp",
        ),
        (OSError("Matplotlib requires access"), 1, "this machine: Matplotlib requires access"),
        (OSError(12, "Cannot allocate memory"), 1, NO_MEMORY),
        (SystemError("error return without exception set"), 1, NO_MEMORY),
        (MemoryError(), 1, NO_MEMORY),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"), 1, NO_MEMORY),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), 1, NO_MEMORY),
        (ImportError("libtorch.so: failed to map segment from shared object"), 1, NO_MEMORY),
    ],
)
def test_an_error_is_one_line(command, capsys, error, status, line):
    def work(_):
        raise error

    assert command(work)() == status
    assert capsys.readouterr().err == f"glassformer: error: {line}\n"


def test_a_memory_limit_below_what_torch_needs_is_one_line():
    pytest.importorskip("resource")
    for kilobytes in (400_000, 600_000, 800_000):
        for words in (["train", "a.tsv", "--out", "run"], ["doctor", "a.tsv"]):
            limit = f"({kilobytes} << 10,) * 2"
            limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, {limit})"
            begin = f"from glassformer.tools.cli.main import main; raise SystemExit(main({words}))"
            done = python("-c", f"{limited}; {begin}")

            assert done.returncode == 1
            assert done.stderr.startswith("glassformer: error: memory ran out: ")
            assert done.stderr.count("\n") == 1


def test_training_without_memory_names_its_options(monkeypatch, capsys):
    def work(_):
        raise MemoryError

    monkeypatch.setattr("glassformer.tools.cli.train.run", work)

    assert main(["train", "a.tsv", "--out", "run"]) == 1
    assert "memory ran out: give a smaller --batch-tokens or --preset" in capsys.readouterr().err


def test_a_fault_of_the_program_keeps_its_traceback(command):
    def work(_):
        raise ValueError("a fault of ours")

    with pytest.raises(ValueError, match="a fault of ours"):
        command(work)()


def test_sizes_that_do_not_fit_are_a_wrong_call(command, capsys):
    def work(_):
        ModelConfig(source_vocab_size=9, target_vocab_size=9, d_model=63)

    assert command(work)() == 2
    assert "d_model must be even" in capsys.readouterr().err
    with pytest.raises(UsageError):
        work(None)


def test_an_interrupt_is_130(command):
    def work(_):
        raise KeyboardInterrupt

    assert command(work)() == 130


def test_the_commands_own_status_is_passed_on(command):
    assert command(lambda _: 1)() == 1
    assert command(lambda _: 130)() == 130


def test_a_full_disk_is_found_before_the_end(command, monkeypatch):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no full device")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        errors = io.StringIO()
        monkeypatch.setattr(sys, "stderr", errors)

        status = command(lambda _: print("the report") or 0)()

    assert status == 1
    assert errors.getvalue() == "glassformer: error: output: No space left on device\n"


def test_a_closed_output_is_said(command, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)

    assert command(lambda _: 0)() == 1
    assert capsys.readouterr().err == "glassformer: error: standard output is closed\n"


def test_letters_that_the_terminal_lacks_are_no_failure(command, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))

    assert command(lambda _: print("größer") or 0)() == 0
    assert raw.getvalue() == b"gr\\xf6\\xdfer\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected one of masks, positions"),
        (["maks"], "unknown kind 'maks' (did you mean 'masks'?)"),
        (["--out", "x.png"], "unknown kind '--out'"),
    ],
)
def test_a_command_with_kinds_wants_one(refused, words, message):
    status, line = refused("plot", *words)

    assert status == 2
    assert message in line


def test_a_bundle_loads_without_a_temporary_directory(bundle_directory):
    """A service may have none; torch's compiler asks for one, and takes a second and 70 MB."""
    done = python(
        "-c",
        "import sys, tempfile, pathlib; from glassformer.bundle import load_bundle;"
        f"tempfile.gettempdir = None; load_bundle(pathlib.Path({str(bundle_directory)!r}));"
        "assert not {'torch._dynamo', 'sympy'} & set(sys.modules)",
    )
    assert (done.returncode, done.stderr) == (0, "")
