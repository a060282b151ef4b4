"""The lock: every package but torch, each with hashes, from no host by name."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
# One entry: name==version, perhaps a marker, and one line for each hash.
ENTRY = re.compile(r"([a-z0-9-]+)==([^\s;]+)( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+")


def without_comments(text: str) -> str:
    return "".join(
        line for line in text.splitlines(keepends=True) if not line.lstrip().startswith("#")
    )


def entries(text: str) -> list[tuple[str, str]]:
    """Name and version of each package; an error at a line that is no part of an entry."""
    found = []
    rest = without_comments(text).strip()
    while rest:
        match = ENTRY.match(rest)
        if match is None:
            raise ValueError(f"no package with hashes: {rest.splitlines()[0]}")
        found.append((match[1], match[2]))
        rest = rest[match.end() :].lstrip()
    return found


def test_the_lock_has_each_package_once():
    names = [name for name, _ in entries(LOCK)]

    assert names == sorted(set(names))


def test_the_lock_has_the_versions_of_the_constraints():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = dict(line.split("==") for line in without_comments(text).splitlines())
    wanted = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins.items()}
    del wanted["torch"]

    assert wanted.items() <= set(entries(LOCK))


def test_the_lock_has_the_build_backend_and_no_build_of_torch():
    names = {name for name, _ in entries(LOCK)}

    assert "setuptools" in names
    assert not [name for name in names if re.match(r"torch$|triton|nvidia-|cuda-", name)]


def test_neither_the_lock_nor_the_makefile_names_a_host():
    for text in (LOCK, (ROOT / "Makefile").read_text(encoding="utf-8")):
        text = text.replace("--index-url $(TORCH_INDEX)", "")  # a person names it
        assert not re.search(r"://|--[a-z-]*index|--find-links|--trusted-host", text)


@pytest.mark.parametrize(
    "line",
    [
        "numpy==2.4.6",
        "numpy>=2 \\\n    --hash=sha256:" + "0" * 64,
        "numpy==2.4.6 \\\n    --hash=md5:" + "0" * 32,
        "-r others.txt",
    ],
)
def test_a_line_without_version_or_hash_is_found(line):
    kept = "babel==2.18.0 \\\n    --hash=sha256:" + "a" * 64 + "\n    # via others\n"
    assert entries(kept) == [("babel", "2.18.0")]
    with pytest.raises(ValueError, match="no package"):
        entries(kept + line + "\n")
