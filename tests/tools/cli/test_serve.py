"""``glassformer serve``: its options, and the process with its signals."""

import json
import signal
import socket
import sys
import threading
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import torch

from glassformer.support.errors import InputError
from glassformer.support.threads import torch_threads
from glassformer.tools.cli.serve import ServeOptions
from tests.processes import Command
from tests.tables import every

STAY = "the earlier keys stay"


@pytest.fixture
def process(bundle_directory):
    """A running server, and its address."""
    words = ["serve", str(bundle_directory), "--port", "0", "--threads", "1", "--device", "cpu"]
    with Command(words) as started:
        line = started.stdout.readline()
        assert line.endswith("/ translates until Ctrl+C\n"), started.stderr.read()
        yield started, line.split()[0]


def ask(address: str, text: str) -> dict:
    said = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
    request = Request(f"{address}translate", said, {"Content-Type": "application/json"})
    with urlopen(request, timeout=120) as answer:
        return json.load(answer)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to end with")
def test_sigterm_answers_what_is_in_flight_and_ends_with_0(process, bundle_directory):
    started, address = process
    assert address.startswith("http://127.0.0.1:")
    long = "A dog runs across the grass.\n" * 600  # of many batches
    answers = []
    asking = threading.Thread(target=lambda: answers.append(ask(address, long)))
    asking.start()
    none, counts = b"glassformer_waiting_segments 0.0\n", b""
    while not counts or none in counts:  # until the long one is under way
        with urlopen(address + "metrics", timeout=60) as metrics:
            counts = metrics.read()
        assert not answers
    started.send(signal.SIGTERM)
    asking.join(120)

    assert started.wait() == 0
    assert answers[0]["translatedText"].count("\n") >= 600
    assert started.stderr.read() == f"{bundle_directory}: engine ctranslate2\n"
    with pytest.raises(OSError, match=r"refused|reset"):
        urlopen(address + "health", timeout=5)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
def test_sighup_rereads_the_keys_and_keeps_the_old_ones_after_an_error(bundle_directory, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("sesame\n")
    words = ["serve", bundle_directory, "--port", 0, "--threads", 1, "--api-key-file", keys]
    with Command([*words, "--device", "cpu", "--access-log"]) as started:
        address = started.stdout.readline().split()[0]

        def status(key):
            body = json.dumps({"q": "a", "api_key": key}).encode()
            headers = {"Content-Type": "application/json", "X-Request-Id": f"try-{key}"}
            try:
                return urlopen(Request(f"{address}detect", body, headers), timeout=60).status
            except HTTPError as error:
                with error:
                    return error.code

        assert [status("sesame"), status("wheat")] == [200, 403]
        keys.write_text("wheat\n")
        started.send(signal.SIGHUP)
        while status("wheat") != 200:
            assert started.process.is_alive()
        assert status("sesame") == 403
        keys.write_text("\n")
        started.send(signal.SIGHUP)
        assert started.stderr.readline() == f"{bundle_directory}: engine ctranslate2\n"
        line = started.stderr.readline()
        assert line == f"error: --api-key-file {keys} holds no key: write one key a line; {STAY}\n"
        assert status("wheat") == 200
        started.send(signal.SIGTERM)
        assert started.wait() == 0
        lines = [json.loads(line) for line in started.stdout]
    assert {(line["id"], line["path"]) for line in lines} == {
        ("try-sesame", "/detect"),
        ("try-wheat", "/detect"),
    }
    assert {line["status"] for line in lines} == {200, 403}


@every(
    ("words", "status", "line"),
    [
        (
            ["{bundle}", "--root-path", "gf"],
            2,
            "--root-path 'gf': expected a path such as /translate",
        ),
        ([], 2, "BUNDLE [BUNDLE ...] is missing"),
        (["{bundle}", "--port", "70000"], 2, "--port '70000': expected at most 65535"),
        (
            ["{bundle}", "--trust-proxy", "10.0.0.0/99"],
            2,
            "--trust-proxy '10.0.0.0/99': expected an address, or a network as 10.0.0.0/8",
        ),
        (
            ["{bundle}", "--port", "0", "--metrics-key-file", "{bundle}/none"],
            1,
            "{bundle}/none: no such file",
        ),
        (["{bundle}", "--beam", "0"], 2, "--beam '0': expected at least 1"),
        (["{bundle}", "--timeout", "0"], 2, "--timeout '0': expected more than 0"),
        (
            ["{bundle}", "--host", "0.0.0.0", "--allow-host", "mine.example"],
            2,
            "--allow-host belongs to a server on 127.0.0.1; 0.0.0.0 takes any host name",
        ),
        (
            ["{bundle}", "--allow-host", "*"],
            2,
            "--allow-host '*': expected a name such as translate.example.org, or *.example.org for"
            " all names under it",
        ),
        (
            ["{bundle}", "--port", "0", "--api-key-file", "{bundle}/none"],
            1,
            "{bundle}/none: no such file",
        ),
        (["{bundle}", "--port", "0", "--host", "256.0.0.1"], 1, "cannot listen on 256.0.0.1:0"),
        (["{bundle}", "--port", "0", "--host", "[::g]"], 1, "cannot listen on ::g:0"),
        (
            ["{bundle}", "--host", "[::]", "--allow-host", "mine.example"],
            2,
            "--allow-host belongs to a server on 127.0.0.1; :: takes any host name",
        ),
        (
            ["{bundle}", "--port", "0", "--host", "a..b"],
            1,
            "cannot listen on a..b:0 (not a host name",
        ),
        (
            ["{bundle}", "--port", "0", "--glossary", "a.tsv", "b.tsv"],
            2,
            "--glossary: 2 files for 1 bundle: give one for each bundle, in the bundles' order",
        ),
        (
            ["{bundle}", "--port", "0", "--glossary", "{bundle}/none.tsv"],
            1,
            "{bundle}/none.tsv: no such file",
        ),
        (
            ["{bundle}", "--port", "0", "--allow-origin", "example.org"],
            2,
            "--allow-origin 'example.org': expected https://example.org, or *",
        ),
        (
            ["{bundle}", "--requests-per-minute", "-1"],
            2,
            "--requests-per-minute '-1': expected at least 0",
        ),
        (["nowhere", "--port", "0"], 1, "nowhere: not a bundle (no such directory)"),
    ],
)
def test_a_wrong_call_is_one_line(refused, bundle_directory, words, status, line):
    filled = [word.replace("{bundle}", str(bundle_directory)) for word in words]

    found = refused("serve", *filled)

    assert found[0] == status
    assert found[1].startswith(line.replace("{bundle}", str(bundle_directory)))


def test_two_bundles_of_one_pair_are_refused(refused, bundle_directory, tmp_path):
    other = tmp_path / "other"
    other.symlink_to(bundle_directory)

    status, line = refused("serve", bundle_directory, other, "--port", "0", "--device", "cpu")

    assert status == 2
    assert line.startswith(f"{bundle_directory} and {other} both translate en to de")


def test_a_place_that_is_taken_is_named(refused, bundle_directory):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, line = refused("serve", bundle_directory, "--port", port)

    assert status == 1
    assert line.startswith(f"cannot listen on 127.0.0.1:{port} (Address already in use)")
    assert line.endswith("choose another host or port")


def test_an_empty_key_file_is_refused(refused, bundle_directory, tmp_path):
    file = tmp_path / "keys"
    file.write_text("\n \n", "utf-8")

    status, line = refused("serve", bundle_directory, "--api-key-file", file)

    assert (status, line) == (1, f"--api-key-file {file} holds no key: write one key a line")


def test_without_the_extra_the_error_names_it(refused, bundle_directory, monkeypatch):
    monkeypatch.setitem(sys.modules, "glassformer.tools.web.server", None)
    monkeypatch.setitem(sys.modules, "fastapi", None)

    status, line = refused("serve", bundle_directory)

    assert status == 1
    assert line.endswith("pip install 'glassformer[serve]'")


def test_who_loads_has_one_thread_and_who_translates_all(bundle_directory, monkeypatch):
    loading, load = [], ServeOptions.load

    def watched(*words, **options):
        loading.append(torch.get_num_threads())
        return load(*words, **options)

    monkeypatch.setattr(ServeOptions, "load", watched)
    with torch_threads(2):
        options = ServeOptions(bundles=(bundle_directory,), device="cpu", engine="ctranslate2")
        loaded = options.load_to_serve(options.bundles)
        [translator] = loaded.values()
        with pytest.raises(InputError, match="nowhere"):
            options.load_to_serve([Path("nowhere")])
        assert torch.get_num_threads() == 2
        assert translator.engine.workers.cores == 2
    assert loading == [1, 1]
