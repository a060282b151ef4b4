"""What a server is made of: its translators, its keys, its bounds."""

import asyncio
import gc
import os
import re
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx2
import pytest
from starlette.testclient import TestClient

from glassformer.support.errors import InputError, UsageError
from glassformer.tools.web import server
from glassformer.tools.web.queue import Batcher
from glassformer.tools.web.security import RefusedError, RequestLimits
from glassformer.tools.web.server import Settings, create_app, listen
from glassformer.tools.web.service import Service
from glassformer.translator import Translator


def with_languages(translator, source, target) -> Translator:
    return replace(translator, bundle=replace(translator.bundle, languages=(source, target)))


def ask(client, **question):
    return client.post(
        "/translate", json={"q": "A dog.", "source": "en", "target": "de"} | question
    )


def waiting_segments(client) -> int:
    metrics = client.get("/metrics").text
    return int(float(re.search(r"^glassformer_waiting_segments (\S+)", metrics, re.M)[1]))


def test_several_translators_by_their_pairs(served, translator):
    client = served(
        {
            "a": translator,
            "b": with_languages(translator, "fr", "de"),
            "c": with_languages(translator, "de", "en"),
        }
    )

    assert [one["targets"] for one in client.get("/languages").json()] == [["en"], ["de"], ["de"]]
    assert ask(client, source="fr").status_code == 200
    assert ask(client, source="auto", target="en").json()["detectedLanguage"]["language"] == "de"
    for path, question in (("translate", {"q": "a"}), ("api/v1/trace", {"text": "a"})):
        answer = client.post(f"/{path}", json=question | {"source": "fr", "target": "en"})
        assert answer.status_code == 400
        assert answer.json() == {
            "error": "English (en) is not available as a target language from French (fr)"
        }


def test_a_trace_takes_the_first_pair_that_fits(translator):
    pairs = {("en", "de"): translator, ("de", "en"): translator}
    batcher = Batcher()
    service = Service(pairs, batcher)
    batcher.close()

    assert service.pair(None, None) == ("en", "de")
    assert service.pair("de", None) == service.pair(None, "EN") == ("de", "en")
    only = replace(service, translators={("en", "de"): translator})
    with pytest.raises(
        RefusedError, match=r"^any language is not available .* from German \(de\)$"
    ):
        only.pair("de", None)


def test_two_translators_of_one_pair_are_refused(translator):
    with pytest.raises(UsageError, match=r"^a and b both translate en to de: serve one of them"):
        create_app({"a": translator, "b": translator}, Settings())


def test_a_translator_without_languages_is_served(served, translator):
    client = served({"a": replace(translator, bundle=replace(translator.bundle, languages=None))})

    assert ask(client, source="source", target="target").status_code == 200


def test_keys(served):
    client = served(keys=["sesame"])

    assert ask(client).status_code == 400
    assert ask(client).json() == {"error": "Please contact the server operator to get an API key"}
    assert ask(client, api_key="wheat").status_code == 403
    assert ask(client, api_key="wheat").json() == {"error": "Invalid API key"}
    assert ask(client, api_key="sesame").status_code == 200
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics").headers["WWW-Authenticate"] == "Bearer"
    assert client.get("/metrics").json() == {
        "error": "expected the header 'Authorization: Bearer KEY'"
    }
    wrong = client.get("/metrics", headers={"Authorization": "Bearer wheat"})
    assert wrong.status_code == 403
    assert client.post("/api/v1/trace", json={"text": "a"}).status_code == 400
    client.headers["Authorization"] = "Bearer sesame"
    assert ask(client).status_code == 200
    assert client.get("/metrics").status_code == 200
    assert client.get("/languages").status_code == 200


def test_what_takes_too_long_is_given_up(served):
    client = served(limits=RequestLimits(timeout=0.0))

    answer = ask(client)

    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "10"
    assert answer.json()["error"].startswith("not finished within 0 s: send less text at once")


def test_a_short_request_is_answered_beside_a_long_one(served, monkeypatch):
    batches = threading.Semaphore(0)  # those that may begin
    answer = Batcher._answer
    monkeypatch.setattr(Batcher, "_answer", lambda *batch: batches.acquire() and answer(*batch))
    client = served()
    long_text = "\n".join(f"Two men sit in the snow {'x' * 60} {n}." for n in range(60))

    with ThreadPoolExecutor(2) as pool:
        long = pool.submit(ask, client, q=long_text)
        while (left := waiting_segments(client)) not in range(1, 60):
            assert not long.done()  # until the first batch has its lines
        short = pool.submit(ask, client)
        while waiting_segments(client) != left + 1:
            assert not short.done()
        batches.release(2)
        assert short.result(60).status_code == 200
        assert not long.done()
        batches.release(60)
        assert long.result(60).json()["translatedText"].count("\n") == 59


def test_a_request_that_becomes_too_many_subwords_is_refused_at_once(served):
    client = served(limits=RequestLimits(max_chars=4000))
    for text, kind, error in (
        ("zq" * 2000, "text", "request (4,0"),
        ("<p>" + "zq" * 600, "html", "a text of the document has 1,"),
    ):
        answer = ask(client, q=text, format=kind)
        assert answer.status_code == 400
        assert answer.json()["error"].startswith(f"Invalid request: {error}")
        assert "waiting_segments 0.0" in client.get("/metrics").text
    assert answer.json()["error"].endswith("divide it among several elements")
    assert ask(client, q="zq" * 2000).json()["error"].endswith("2,000: send less text at once")


def test_health_is_that_of_the_batches(served, monkeypatch):
    client = served()
    assert client.get("/health").status_code == 200
    monkeypatch.setattr(Batcher, "works", False)
    answer = client.get("/health")
    assert (answer.status_code, answer.json()) == (
        503,
        {"error": "the batches stand still: start the server anew"},
    )


def test_a_server_knows_its_speed_before_the_first_request(served):
    assert "batch_segments_count 0.0" not in served(warm_up=True).get("/metrics").text
    assert "batch_segments_count 0.0" in served().get("/metrics").text


def test_too_many_at_once_are_told_to_come_again(served):
    client = served(limits=RequestLimits(max_requests=0))

    answer = ask(client)

    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "2"
    assert client.get("/health").status_code == 200
    assert 'refusals_total{reason="busy"} 1.0' in client.get("/metrics").text


def test_an_answers_second_packet_does_not_wait_for_the_first_to_be_acknowledged():
    with (
        listen("127.0.0.1", 0) as place,
        socket.create_connection(place.getsockname()),
        place.accept()[0] as connection,
    ):
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_slow_body_takes_nobody_s_place(translator):
    """Only requests whose body has come count as running."""
    app = create_app({"toy": translator}, Settings(limits=RequestLimits(max_requests=1)))
    end = asyncio.Event()

    async def ask_beside_a_slow_one():
        async def slow():
            await end.wait()
            return {"type": "http.request", "body": b"q=%F0%9F%98%80&source=en&target=de"}

        scope = {
            "type": "http", "method": "POST", "path": "/translate", "query_string": b"",
            "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1),
        }  # fmt: skip
        sent = []

        async def send(message):
            sent.append(message)

        waiting = asyncio.create_task(app(scope, slow, send))
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            answer = await client.post("/detect", json={"q": "a"})
        end.set()
        await waiting
        return answer.status_code

    assert asyncio.run(ask_beside_a_slow_one()) == 200


def test_a_socket_of_systemd_is_taken(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as given:
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        monkeypatch.setattr(server, "_SOCKET_OF_SYSTEMD", os.dup(given.fileno()))
        with listen("127.0.0.1", 1) as listener:
            assert listener.getsockname() == given.getsockname()


def test_a_process_that_has_served_ends_without_a_search_for_garbage(translator, monkeypatch):
    """Among all objects of torch this takes longer than the rest of the end, half a second."""
    monkeypatch.setattr(server.uvicorn.Server, "run", lambda *_, **__: None)
    monkeypatch.setattr(server.signal, "signal", lambda *_: None)
    app = create_app({"toy": translator}, Settings())
    with listen("127.0.0.1", 0) as listener, TestClient(app):
        server.serve(app, listener, Settings())
        frozen = gc.get_freeze_count()
        gc.unfreeze()
    assert frozen > 10_000


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no systemd")
def test_a_socket_of_systemd_that_is_none_of_tcp_is_refused(monkeypatch, tmp_path):
    with socket.socket(socket.AF_UNIX) as given:
        monkeypatch.chdir(tmp_path)  # the path of a socket has at most 107 characters
        given.bind("socket")
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        monkeypatch.setattr(server, "_SOCKET_OF_SYSTEMD", os.dup(given.fileno()))
        with pytest.raises(InputError, match=r"^systemd's socket: expected ListenStream=127"):
            listen("127.0.0.1", 1)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no systemd")
def test_systemd_is_told_when_the_server_is_ready_and_when_it_stops(
    translator, monkeypatch, tmp_path
):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        monkeypatch.chdir(tmp_path)
        systemd.bind("notify")
        systemd.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", "notify")
        app = create_app({"toy": translator}, Settings())
        with TestClient(app):
            assert systemd.recv(99) == b"READY=1"
        assert systemd.recv(99) == b"STOPPING=1"
