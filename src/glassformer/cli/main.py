"""``glassformer COMMAND``: finds the command, reads its options, says errors in one line.

Exit status: 0 done, 1 the work failed, 2 the call was wrong.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from glassformer.errors import InputError, UsageError, nearest

__all__ = ["main"]

COMMANDS = {
    "demo": "train a small translator of dates and amounts, and show it at work",
    "doctor": "examine parallel text before training on it",
    "train": "two text files in, a translator out",
    "translate": "standard input to standard output, one line for one line",
    "evaluate": "score a translator, or a file of translations",
    "plot": "draw masks, positions, schedule, curves, attention",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the module of that name in this package does the work."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if not words or words[0] in ("-h", "--help"):
            print(_overview())
            return 0 if words else 2
        if words[0] not in COMMANDS:
            hint = nearest(words[0], COMMANDS) or f"; known: {', '.join(COMMANDS)}"
            raise UsageError(f"unknown command {words[0]!r}{hint}")
        return _run(words[0], words[1:])
    except UsageError as error:
        return _say(error, 2)
    except InputError as error:
        return _say(error, 1)
    except BrokenPipeError:  # the reader has enough, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def _run(command: str, words: list[str]) -> int:
    import tyro
    from pydantic import ValidationError

    from glassformer.cli.options import words_from_file

    module = import_module(f"glassformer.cli.{command}")
    try:
        options: Any = tyro.cli(
            module.OPTIONS,
            args=words_from_file(module.OPTIONS, words),
            prog=f"glassformer {command}",
            config=(tyro.conf.OmitArgPrefixes,),
        )
    except ValidationError as error:
        raise UsageError(_first_fault(error)) from error
    return int(module.run(options))


def _first_fault(error: Any) -> str:
    fault = error.errors()[0]
    name = ".".join(map(str, fault["loc"]))
    text = fault["msg"].removeprefix("Value error, ")
    return f"{name} {fault['input']!r}: {text}" if name else text


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
            "--config FILE takes a command's options from YAML; those on the line come first.",
        ]
    )


def _say(error: Exception, status: int) -> int:
    print(f"glassformer: error: {error}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
