"""Node for the tests of the pages' JavaScript: JSON in, JSON out."""

import json
import shutil
import subprocess
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

_OLDEST = 20
_SECONDS = 120
_RUN = """
import { readFileSync } from "node:fs";
import run from "./script.js";
process.stdout.write(JSON.stringify(await run(JSON.parse(readFileSync(0, "utf-8")))));
"""


def node(script: str, given: Any) -> Any:
    """The answer of a module's default export to ``given``.

    The module's imports begin with ``./engine/`` or ``./look/``. Where there is no Node, or an old
    one, the test is skipped.
    """
    if _version() < _OLDEST:
        pytest.skip(f"there is no Node {_OLDEST} on this machine")
    with TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(str(files("glassformer.tools.web") / "static"), folder, dirs_exist_ok=True)
        (folder / "package.json").write_text('{"type": "module"}')
        (folder / "script.js").write_text(script, "utf-8")
        (folder / "run.js").write_text(_RUN)
        done = subprocess.run(
            ["node", "run.js"],
            cwd=folder,
            input=json.dumps(given).encode(),
            capture_output=True,
            timeout=_SECONDS,
        )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return json.loads(done.stdout)


@cache
def _version() -> int:
    """The first number of Node's version; 0 without Node."""
    if shutil.which("node") is None:
        return 0
    printed = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=20)
    return int(printed.stdout.removeprefix("v").split(".")[0])
