"""Pages, headers, hosts, metrics: what stands around the answers."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from glassformer.tools.web.security import SECURITY_HEADERS
from tests.tables import every

VERSION = version("glassformer")
STATIC = Path(__file__).parents[3] / "src/glassformer/tools/web/static"


def test_the_pages_and_all_that_they_load_are_there(client):
    for page in ("/", "/look/"):
        answer = client.get(page)
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        loaded = re.findall(r'(?:src|href)="((?!data:|\.)[^"#]+)"', answer.text)
        assert len(loaded) >= 2
        for path in loaded:
            assert client.get(page + path).status_code == 200, path
    script = client.get("/static/translate.js")
    assert script.headers["Content-Type"].startswith("text/javascript")
    assert client.get("/look", follow_redirects=False).headers["Location"] == "look/"


def test_the_files_of_the_pages_are_packed(client):
    for path in ("/static/translate.js", "/look/main.js", "/engine/attention.js"):
        answer = client.get(path, headers={"Accept-Encoding": "gzip"})
        assert answer.headers["Content-Encoding"] == "gzip"
        again = {"Accept-Encoding": "gzip", "If-None-Match": answer.headers["ETag"]}
        assert client.get(path, headers=again).status_code == 304


@pytest.mark.parametrize("path", ["translate.html", "translate.js", "ask.js", "marks.js"])
def test_the_page_needs_no_markup_and_no_other_place(path):
    text = (STATIC / path).read_text("utf-8")

    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    assert not re.search(r"\son\w+=|<style|style=|javascript:|https?://", text)
    assert re.findall(r"<script[^>]*>([^<]*)</script>", text) in ([], [""])


@every(
    ("method", "path", "status"),
    [
        ("GET", "/", 200),
        ("GET", "/static/translate.css", 200),
        ("GET", "/languages", 200),
        ("HEAD", "/", 200),
        ("HEAD", "/health", 200),
        ("HEAD", "/languages", 200),
        ("HEAD", "/translate", 405),
        ("GET", "/nothing", 404),
        ("POST", "/translate", 400),
        ("PUT", "/translate", 405),
    ],
)
def test_every_answer_has_the_strict_headers(client, method, path, status):
    answer = client.request(method, path)

    assert answer.status_code == status
    assert {name: answer.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
    policy = answer.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert answer.headers["Cache-Control"] == ("no-cache" if "static" in path else "no-store")


def test_a_fault_of_ours_has_the_headers_too_and_tells_nothing(served, translator, monkeypatch):
    client = served()
    monkeypatch.setattr(type(translator), "translate", lambda *_, **__: 1 / 0)

    answer = client.post("/translate", json={"q": "secret", "source": "en", "target": "de"})

    assert answer.status_code == 500
    assert answer.json() == {"error": "internal error: the server's log has the details"}
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    ["/static/../server.py", "/static/%2e%2e/server.py", "/static/%00", "/static//etc/passwd"],
)
def test_only_the_pages_own_files_are_given(client, path):
    assert client.get(path).status_code == 404


@every(
    ("name", "known"),
    [
        ("127.0.0.1", True),
        ("LOCALHOST:80", True),
        ("[::1]:5000", True),
        ("MINE.example:443", True),
        ("a.ours.example", True),
        ("", False),
        ("evil.example:5000", False),
        ("localhost.evil.example", False),
        ("evil.example:127.0.0.1", False),
        ("localhost:x", False),
    ],
)
def test_another_hosts_name_is_refused_unless_it_was_allowed(served, name, known):
    client = served(hosts=["Mine.example", "*.ours.example"])

    answer = client.get("/health", headers={"Host": name})

    assert (answer.status_code, answer.text == "Invalid host header") == (
        (200, False) if known else (400, True)
    )
    assert served(hosts=None).get("/health", headers={"Host": name}).status_code == 200


def test_metrics_count_what_was_done_and_keep_no_text(served):
    client = served()
    text = "Two men sit in the snow."
    for _ in range(3):
        client.post("/translate", json={"q": text, "source": "en", "target": "de"})
    client.post("/translate", json={"q": text, "source": "fr", "target": "de"})
    client.get("/a/stranger/s/path")
    client.get("/static/translate.js")

    said = client.get("/metrics")

    assert said.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = said.text.splitlines()
    for line in (
        'glassformer_requests_total{path="/translate",status="200"} 3.0',
        'glassformer_requests_total{path="/translate",status="400"} 1.0',
        'glassformer_requests_total{path="other",status="404"} 1.0',
        f'glassformer_characters_total{{source="en",target="de"}} {3 * len(text)}.0',
        "glassformer_batch_segments_sum 3.0",
        "glassformer_waiting_segments 0.0",
    ):
        assert line in lines
    for line in (
        'glassformer_requests_total{path="static",status="200"} 1.0',
        'glassformer_refusals_total{reason="request"} 2.0',
        "glassformer_queue_seconds_count 3.0",
        "glassformer_running_requests 1.0",  # this one
    ):
        assert line in lines
    info = next(line for line in lines if line.startswith("glassformer_translator_info{"))
    for label in ('bundle="toy"', 'source="en"', 'target="de"', f'version="{VERSION}"'):
        assert label in info
    assert "stranger" not in said.text
    assert "snow" not in said.text


def test_the_api_is_described(client):
    described = client.get("/spec").json()

    assert {"/translate", "/languages", "/api/v1/trace"} <= described["paths"].keys()
    assert "/metrics" not in described["paths"]
    assert client.get("/docs").status_code == 404  # it would load scripts from elsewhere
