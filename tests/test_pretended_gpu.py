"""The tests of ``test_cuda.py`` on a pretended GPU, for machines without one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.cpp_extension import include_paths, library_paths

TESTS = Path(__file__).parent


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The variables with which each Python pretends a GPU."""
    if torch.version.cuda or torch.version.hip or not shutil.which("g++"):
        pytest.skip("needs a torch without CUDA, and a C++ compiler")
    directory = tmp_path_factory.mktemp("pretended")
    words = ["g++", "-std=c++20", "-shared", "-fPIC", str(TESTS / "pretended_gpu.cpp")]
    words += [f"-I{path}" for path in include_paths()]
    for path in library_paths():
        words += [f"-L{path}", f"-Wl,-rpath,{path}"]
    library = directory / "pretended_gpu.so"
    subprocess.run([*words, "-lc10", "-ltorch_cpu", "-o", str(library)], check=True)
    lines = ["import ctypes", f"ctypes.CDLL({str(library)!r})", "import tests.pretended_gpu"]
    (directory / "sitecustomize.py").write_text("\n".join(lines))
    paths = [str(directory), str(TESTS.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    variables = {"PYTHONPATH": os.pathsep.join(paths), "PYTEST_ADDOPTS": ""}
    return os.environ | variables | {"OMP_NUM_THREADS": "1", "JAXTYPING_DISABLE": "1"}


def run(environment, *words):
    """Run tests of ``test_cuda.py``; all of them must pass. Returns the last line of pytest."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/test_cuda.py"]
    process = subprocess.run(
        [*command, *words], cwd=TESTS.parent, env=environment, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout.splitlines()[-1]


def test_updates_with_and_without_a_graph_mix_no_devices_and_do_not_wait(environment):
    assert run(environment, "-k", "does_not_wait").startswith("2 passed")


@pytest.mark.usefixtures("nightly")
def test_all_of_them_but_several_processes(environment):
    assert "skipped" not in run(environment, "-k", "not NCCL")
