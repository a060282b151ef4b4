"""A sample of the damaged files of ``make test-faults``, which tries hundreds."""

import subprocess
import sys
from pathlib import Path

import pytest

FAULTS = Path(__file__).parents[1] / "faults"


@pytest.mark.parametrize(("script", "tries"), [("imports.py", 18), ("bundles.py", 14)])
def test_damaged_files_end_in_a_line_or_work(script, tries):
    pytest.importorskip("transformers", reason="transformers is not installed")

    done = subprocess.run(
        [sys.executable, str(FAULTS / script), str(tries), "3"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"| together | {tries} | " in done.stdout
