"""The lock: every package but torch, from no host by name."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
# pip itself refuses an entry without a hash: `make` installs with --require-hashes.
ENTRIES = re.findall(r"^([a-z0-9-]+)==([^\s;]+)", LOCK, re.MULTILINE)


def test_the_lock_has_each_package_once():
    names = [name for name, _ in ENTRIES]

    assert names == sorted(set(names))


def test_the_lock_has_the_versions_of_the_constraints():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = dict(line.split("==") for line in re.findall(r"^[^#\s]+", text, re.MULTILINE))
    wanted = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins.items()}
    del wanted["torch"]

    assert wanted.items() <= set(ENTRIES)


def test_the_lock_has_the_build_backend_and_no_build_of_torch():
    names = {name for name, _ in ENTRIES}

    assert "setuptools" in names
    assert not [name for name in names if re.match(r"torch$|triton|nvidia-|cuda-", name)]


def test_neither_the_lock_nor_the_makefile_names_a_host():
    for text in (LOCK, (ROOT / "Makefile").read_text(encoding="utf-8")):
        text = text.replace("--index-url $(TORCH_INDEX)", "")  # a person names it
        assert not re.search(r"://|--[a-z-]*index|--find-links|--trusted-host", text)
