"""``glassformer COMMAND``: finds the command, reads its options, says errors in one line.

Exit status: 0 done, 1 the work failed, 2 the call was wrong.
"""

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from glassformer.errors import InputError, UsageError, nearest

__all__ = ["main"]

COMMANDS = {
    "demo": "train a small translator of dates and amounts, and show it at work",
    "doctor": "examine parallel text before training on it",
    "train": "two text files in, a translator out",
    "translate": "standard input to standard output, one line for one line",
    "serve": "a page and a server, as LibreTranslate's clients know it",
    "export": "a translator as a model of another engine",
    "evaluate": "score a translator, or a file of translations",
    "look": "see what a translator does with a sentence, on a page",
    "plot": "draw masks, positions, schedule, curves, and what a translation was made from",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the module of that name in this package does the work."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None:  # as after `>&-`
        return _say("standard output is closed", 1)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a letter is no failure
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _dispatch(words)
        sys.stdout.flush()
        return status
    except UsageError as error:
        return _say(error, 2)
    except InputError as error:
        return _say(error, 1)
    except BrokenPipeError:  # the reader has enough, as in `| head`
        _end_output()
        return 1
    except OSError as error:  # a full disk, a directory that may not be written
        _end_output()
        return _say(f"{error.filename or 'output'}: {error.strerror or error}", 1)
    except KeyboardInterrupt:
        return 130


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(_overview(), file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    command, *rest = words
    if command not in COMMANDS:
        hint = nearest(command, COMMANDS) or f": expected one of {', '.join(COMMANDS)}"
        raise UsageError(f"unknown command {command!r}{hint}")
    return _run(command, rest)


def _run(command: str, words: list[str]) -> int:
    from pydantic import ValidationError

    from glassformer.cli.options import choose_kind, first_fault, parse_options, print_help

    module = import_module(f"glassformer.cli.{command}")
    options, rest, title = choose_kind(module.OPTIONS, words, f"glassformer {command}")
    if "-h" in rest or "--help" in rest:
        print_help(options, title)
        return 0
    try:
        return int(module.run(parse_options(options, rest)))
    except ValidationError as error:  # what only the work could know, such as a model's sizes
        raise UsageError(first_fault(error)) from error


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()]
    return "\n".join(
        [
            "usage: glassformer COMMAND [OPTIONS]",
            "",
            "The Transformer of 'Attention Is All You Need', to read and to translate with.",
            "",
            *lines,
            "",
            "glassformer COMMAND --help shows every option with its default.",
            "--config FILE takes a command's options from YAML; what is on the line as well wins.",
        ]
    )


def _say(error: object, status: int) -> int:
    text = " ".join(str(error).split("\n"))  # one line, whatever a file's name holds
    print(f"glassformer: error: {text}", file=sys.stderr)
    return status


def _end_output() -> None:
    """Write what is still to be written; where that fails, do not try again at the very end."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):  # an output that is no file has nothing to redirect
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
