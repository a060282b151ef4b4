"""The sdist and the wheel: what is in them, and each command from an installed wheel."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest
import yaml

from glassformer import __version__
from glassformer.tools.cli.main import COMMANDS
from tests.other_systems import LACKING

ROOT = Path(__file__).parent.parent
REPOSITORY = "https://example.org/Owner/glassformer"
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
PARTS = (
    "benchmarks", "docs", "examples", "src", "tests", "CHANGELOG.md", "CITATION.cff",
    "CONTRIBUTING.md", "Dockerfile", "LICENSE", "MANIFEST.in", "Makefile", "README.md",
    "SECURITY.md", "constraints.txt", "pyproject.toml", "requirements.lock", "setup.py",
)  # fmt: skip
BY_BENCHMARKS = (".environments", ".work", "results")  # gigabytes that a benchmark leaves
# Each command's first success. The translator learns nothing in three updates.
CALLS = """\
demo --size 100 --epochs 0.1
doctor demo/en-de/phrases/train.tsv
train demo/en-de/phrases/train.tsv --valid demo/en-de/phrases/valid.tsv --out run --updates 3 \
--preset tiny --patience 0 --validations 1
backtranslate run more.de --out more.tsv --beam 1
translate run
translate demo/en-de --engine ctranslate2
evaluate run demo/en-de/phrases/test.tsv --beam 1
look run --text May --out look.html
plot positions --out positions.png
export demo/en-de en-de.argosmodel --to argos
import en-de.argosmodel imported
learn watch lessons --list
serve run --port 0 --beam 1
"""
# Other packages load once: each system is a fork of this process, and loads the wheel's package.
PROGRAM = """\
import os, runpy, shlex, sys
from pathlib import Path
import fastapi, matplotlib.figure, sacremoses, torch._dynamo, uvicorn

def call(place):
    print(os.getpid(), flush=True)
    os.chdir(place)
    os.environ["PYTHONPATH"] += os.pathsep + place
    exec(Path("sitecustomize.py").read_text(), {})
    import glassformer
    assert Path(glassformer.__file__).is_relative_to(sys.path[0]), glassformer.__file__
    for line in Path("calls").read_text().splitlines():
        print(">", line, flush=True)
        sys.argv = ["glassformer", *shlex.split(line)]
        sys.stdin = open("more.de")
        try:
            runpy.run_module("glassformer", run_name="__main__")
        except SystemExit as end:
            assert end.code == 0, line

for place in sys.stdin:
    if os.fork() == 0:
        sys.exit(call(place.strip()))
    print("status", os.wait()[1], flush=True)
"""
BUILD = (
    "import setuptools.build_meta as build, sys; print(getattr(build, sys.argv[1])(sys.argv[2]))"
)


def built(kind: str, tree: Path, out: Path) -> Path:
    """The file that the build backend makes of a source tree."""
    words = [sys.executable, "-c", BUILD, f"build_{kind}", str(out)]
    lines = subprocess.run(words, cwd=tree, check=True, capture_output=True, text=True).stdout
    return out / lines.splitlines()[-1]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the source tree, at an address."""
    tree = tmp_path_factory.mktemp("tree")
    leave = shutil.ignore_patterns("__pycache__", *BY_BENCHMARKS, "generated", "*.egg-info")
    for name in PARTS:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tree / name, **({"ignore": leave} if (ROOT / name).is_dir() else {}))
    for name in BY_BENCHMARKS:
        (tree / "benchmarks" / name).mkdir()
        (tree / "benchmarks" / name / "large.bin").touch()
    settings = (tree / "pyproject.toml").read_text("utf-8")
    settings = re.sub('(?m)^repository = ".*?"', f'repository = "{REPOSITORY}"', settings)
    (tree / "pyproject.toml").write_text(settings, "utf-8")
    return tree


@pytest.fixture(scope="module")
def sdist(tree, tmp_path_factory):
    return built("sdist", tree, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """The wheel that an installer builds from the sdist."""
    directory = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = lambda member, _: member  # Python 3.11.2 knows no filter=
        archive.extractall(directory)
    return built("wheel", next(directory.iterdir()), tmp_path_factory.mktemp("wheel"))


def test_the_sdist_has_the_tests_the_documents_and_the_changes(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert set(PARTS) <= {name.split("/")[0] for name in names}
    for path in (Path(__file__), ROOT / "docs" / "reading.md", ROOT / "docs" / "attention.png"):
        assert str(path.relative_to(ROOT)) in names
    assert not any(name.endswith((".pyc", "large.bin")) or "generated" in name for name in names)


def test_the_wheel_has_every_file_of_the_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    files = {path for path in (source / "glassformer").rglob("*") if path.is_file()}
    assert names == {str(path.relative_to(source)) for path in files if path.suffix != ".pyc"}


def test_the_description_has_absolute_links_and_the_version_is_the_package_s(wheel):
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = BytesParser().parsebytes(archive.read(name))
    assert metadata["Version"] == __version__
    text = metadata.get_payload()
    assert f'src="{REPOSITORY}/raw/main/docs/attention.png"' in text
    assert f"({REPOSITORY}/raw/main/docs/page.png)](" in text
    assert f"({REPOSITORY}/blob/main/docs/measurements.md)" in text
    assert not re.search(r"""(\]\(|=")docs/""", text)
    assert metadata.get_all("Project-URL") == [
        f"Repository, {REPOSITORY}",
        "Documentation, https://owner.github.io/glassformer/",
        f"Issues, {REPOSITORY}/issues",
        f"Changelog, {REPOSITORY}/blob/main/CHANGELOG.md",
    ]


def test_the_citation_has_the_version_and_the_address():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["glassformer"]
    assert citation["version"] == __version__
    assert citation.get("repository-code", "") == settings["repository"]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Python with the installed wheel, which calls the commands in each folder that it is told."""
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    with subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as program:
        yield program
        program.stdin.close()
    assert program.returncode == 0


@pytest.mark.parametrize("system", ["this system", *LACKING])
def test_each_command_runs_from_the_installed_wheel(installed, system, tmp_path, request):
    """Its first success, on this system; nightly, on those that this one can play."""
    if system in LACKING:
        request.getfixturevalue("nightly")
    (tmp_path / "sitecustomize.py").write_text(LACKING.get(system, ""))
    (tmp_path / "calls").write_text(CALLS)
    (tmp_path / "more.de").write_text("Mai\n")
    assert {line.split()[0] for line in CALLS.splitlines()} == set(COMMANDS)

    installed.stdin.write(f"{tmp_path}\n")
    installed.stdin.flush()
    process, output, health = int(installed.stdout.readline()), "", None
    for line in installed.stdout:
        if line.startswith("status"):
            break
        output += line
        if address := ADDRESS.search(line):
            with urllib.request.urlopen(f"{address[0]}/health", timeout=60) as answer:
                health = answer.status
            os.kill(process, signal.SIGTERM)

    assert line == "status 0\n", output
    assert health == 200, output
    assert (tmp_path / "look.html").exists()
