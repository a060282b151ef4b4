"""``glassformer COMMAND`` finds the command, parses its options, and prints an error as one line.

The exit status is 0 for success, 1 for failed work, 2 for a wrong call.
"""

import io
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from types import ModuleType

from glassformer import __version__
from glassformer.support.cores import keep_to_quota
from glassformer.support.errors import InputError, UsageError, nearest

__all__ = ["COMMANDS", "main", "module_of"]

COMMANDS = {
    "demo": "train a small translator of dates and amounts, and show it at work",
    "doctor": "examine parallel text before training on it",
    "train": "train a translator on two text files",
    "backtranslate": "make training pairs from text in the target language alone",
    "translate": "translate standard input to standard output, line by line",
    "serve": "serve a page and LibreTranslate's network interface",
    "import": "read a translator of another program: OPUS-MT, NLLB-200, M2M100, mBART-50",
    "export": "write a translator as a model of another engine",
    "evaluate": "score a translator, or a file of translations",
    "look": "show on a page how a translator translates a sentence",
    "learn": "build the Transformer yourself, part by part, and be told what went wrong",
    "plot": "draw masks, positions, schedule, curves, attention and alignment",
}

_ABOUT = "\nThe Transformer of 'Attention Is All You Need', to read and to translate with.\n"
_CONFIG = "\n--config FILE reads options from YAML; an option on the line wins over it."
_BEGIN = """
To begin: demo shows a translator that learns, learn lets you build one,
and train makes one from your own files."""
_HELP = {"-h", "--help"}
_NO_MEMORY = (
    *("can't allocate memory", "cannot allocate memory", "out of memory", "bad_alloc"),
    *("failed to map segment", "without exception set", "without setting an exception"),
)
_LESS_MEMORY = {
    "train": "give a smaller --batch-tokens or --preset, with another --out",
    "translate": "give a smaller --beam, or shorter lines",
    "evaluate": "give a smaller --beam",
    "serve": "give a smaller --max-chars or --beam",
}
_LEAST_MEMORY = 800 << 20  # bytes of address space; with less, torch ends the process as it loads
_LESS = "end other programs, or give this one more memory"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, whose module in this package does the work."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None:  # as after `>&-`
        return _print_error("standard output is closed", 1)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack a letter
            stream.reconfigure(errors="backslashreplace")
    keep_to_quota()
    try:
        status = _dispatch(words)
        sys.stdout.flush()
        return status
    except UsageError as error:
        return _print_error(error, 2)
    except InputError as error:
        return _print_error(error, 1)
    except BrokenPipeError:  # the reader has left, as in `| head`
        _end_output()
        return 1
    except (MemoryError, RuntimeError, ImportError, SystemError, OSError) as error:
        output_failed = not _end_output()
        if _out_of_memory(error):
            command = words[0] if words else ""
            return _print_error(f"memory ran out: {_LESS_MEMORY.get(command, _LESS)}", 1)
        if not isinstance(error, OSError):
            raise
        # A full disk, a directory that may not be written; without a file, the machine's own.
        origin = error.filename or ("output" if output_failed else "this machine")
        return _print_error(f"{origin}: {error.strerror or error}{_temporary(error)}", 1)
    except KeyboardInterrupt:
        return 130


def _dispatch(words: list[str]) -> int:
    if words[:1] == ["help"]:  # `help train` is `train --help`
        words = [*words[1:], "--help"]
    if not words or words[0] in _HELP:
        text = _overview("glassformer", "COMMAND", COMMANDS, _ABOUT) + _CONFIG + _BEGIN
        print(text, file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    if words == ["--version"]:
        print(f"glassformer {__version__}")
        return 0
    command, *rest = words
    if command.startswith("-"):
        raise UsageError(
            f"unknown option {command}{nearest(command, ('--help', '--version'))}: expected a"
            " command first, such as demo"
        )
    _check_known(command, COMMANDS, "command")
    return _run(command, rest)


def _run(command: str, words: list[str]) -> int:
    from glassformer.tools.cli.options import help_text, naming_options, parse_options

    if _HELP.isdisjoint(words):
        _check_memory()
    module = module_of(command)
    title, options = f"glassformer {command}", module.OPTIONS
    if isinstance(options, dict):  # kinds, such as `plot masks`
        default = getattr(module, "DEFAULT_KIND", None)
        if default and _HELP.isdisjoint(words[:1]) and not (words and words[0] in options):
            _check_no_kind(words[:1], options)
            words = [default, *words]
        if not words:
            raise UsageError(f"{title}: expected one of {', '.join(options)}")
        if words[0] in _HELP:
            texts = {kind: (each.__doc__ or "").split("\n")[0] for kind, each in options.items()}
            about = f"\n{title} FOLDER is short for {title} {default} FOLDER.\n" if default else ""
            print(_overview(title, "KIND", texts, about))
            return 0
        kind, *words = words
        _check_known(kind, options, "kind")
        title, options = f"{title} {kind}", options[kind]
    if not _HELP.isdisjoint(words):
        print(help_text(options, title), end="")
        return 0
    with naming_options(options):
        return int(module.run(parse_options(options, words)))


def module_of(command: str) -> ModuleType:
    """The module of a command; ``import_`` holds ``import``, which is a keyword of Python."""
    return import_module(f"glassformer.tools.cli.{command}{'_' * iskeyword(command)}")


def _check_known(word: str, known: Iterable[str], noun: str) -> None:
    if word not in known:
        hint = nearest(word, known) or f": expected one of {', '.join(known)}"
        raise UsageError(f"unknown {noun} {word!r}{hint}")


def _check_no_kind(words: Sequence[str], options: Iterable[str]) -> None:
    """Raise UsageError if the first word of the default kind looks like another kind.

    The name of a folder that exists, and a word with a slash, are no kinds.
    """
    for word in words:
        hint = nearest(word, options)
        if hint and word == Path(word).name and not Path(word).exists():
            raise UsageError(f"unknown action {word!r}{hint}; a new folder: ./{word}")


def _overview(title: str, noun: str, texts: Mapping[str, str], about: str = "") -> str:
    return f"""\
usage: {title} {noun} [OPTIONS]
{about}
{_table(texts)}

{title} {noun} --help shows every option with its default."""


def _table(texts: Mapping[str, str]) -> str:
    margin = max(map(len, texts)) + 4
    width = shutil.get_terminal_size().columns
    return "\n".join(
        textwrap.fill(
            text,
            width,
            initial_indent=f"  {name}".ljust(margin),
            subsequent_indent=" " * margin,
        )
        for name, text in texts.items()
    )


def _check_memory() -> None:
    """Raise MemoryError if the limit of this process's memory is too low to load torch."""
    with suppress(ImportError):  # Windows has no such limit
        import resource

        if 0 <= resource.getrlimit(resource.RLIMIT_AS)[0] < _LEAST_MEMORY:
            raise MemoryError


def _out_of_memory(error: Exception) -> bool:
    """Whether the error of Python, torch, CUDA, C++ or the linker says that memory ran out."""
    message = str(error).lower()
    return isinstance(error, MemoryError) or any(words in message for words in _NO_MEMORY)


def _temporary(error: OSError) -> str:
    """The remedy, if the error says that there is no temporary directory."""
    wanted = "temporary directory" in str(error)
    return ": give it one, with TMPDIR or, in a container, --tmpfs /tmp" if wanted else ""


def _print_error(error: object, status: int) -> int:
    text = " ".join(str(error).split("\n"))  # a file's name may have line feeds
    print(f"glassformer: error: {text}", file=sys.stderr)
    return status


def _end_output() -> bool:
    """Write the rest of the output; after a failure, stop Python's second attempt at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):  # an output without a descriptor cannot be redirected
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True
