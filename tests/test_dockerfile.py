"""The Dockerfile's commands run in an empty folder, as far as a machine without Docker can.

The folder takes the place of ``/``. A virtual environment takes that of the image's Python: it has
the packages of this one but Glassformer, so that pip needs no network. No user is made.
"""

import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def instructions():
    """The name and the words of each instruction."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    lines = [line for line in text.replace("\\\n", "").splitlines() if line[:1] not in ("", "#")]
    return [line.split(maxsplit=1) for line in lines]


@pytest.fixture
def image(tmp_path):
    """The folder, with what ``.dockerignore`` leaves of the repository, and with a Python."""
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    leave = shutil.ignore_patterns(*(line[3:] for line in lines if line.startswith("**/")))
    (tmp_path / "src").mkdir()
    for name in (line[1:] for line in lines if line.startswith("!")):
        path, copy = ROOT / name, tmp_path / "src" / name
        shutil.copytree(path, copy, ignore=leave) if path.is_dir() else shutil.copy(path, copy)
    venv.create(tmp_path / "python", symlinks=True)
    [packages] = (tmp_path / "python").glob("lib/python*/site-packages")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "glassformer" not in path.name:
            (packages / path.name).symlink_to(path)
    programs = tmp_path / "python" / "bin"
    for name, line in (("pip", f'exec {programs}/python -m pip "$@"'), ("useradd", "")):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o700)
    return tmp_path


@pytest.mark.usefixtures("nightly")
def test_each_command_runs_and_the_image_s_program_serves(image, bundle_directory):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shutil.copytree(bundle_directory, image / "bundle")
    (image / "run").mkdir()
    (image / "run" / "keys").write_text("a-long-random-key\n")
    environment = {"PATH": f"{image}/python/bin:{os.environ['PATH']}", "HOME": str(image)}
    environment |= {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "OMP_NUM_THREADS": "1"}

    def placed(text):
        text = text.replace("--owner translator", f"--owner {getpass.getuser()}")
        text = text.replace(":5000/", f":{port}/")
        return re.sub(r"(?<![\w/.])/(?=src|wheels|cache|bundle|run/)", f"{image}/", text)

    known = {"FROM", "COPY", "ARG", "USER", "EXPOSE"}
    checks = {}
    for name, words in instructions():
        if name == "RUN":
            subprocess.run(placed(words), shell=True, cwd=image, env=environment, check=True)
        elif name == "ENV":
            environment |= dict([placed(words).split("=", 1)])
        elif name in ("HEALTHCHECK", "CMD"):
            checks[name] = json.loads(placed(words.removeprefix("CMD ")))
        else:
            assert name in known
    command = [f"{image}/python/bin/{checks['CMD'][0]}", *checks["CMD"][1:], "--port", port]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert f":{port}/" in server.stdout.readline()
        subprocess.run(checks["HEALTHCHECK"], env=environment, check=True)
        server.send_signal(signal.SIGTERM)
    assert server.returncode == 0
    assert any((image / "cache").iterdir())  # the conversion for CTranslate2
