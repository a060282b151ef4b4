"""Connections of real sockets: a client without a request keeps nobody else out."""

import asyncio
import socket
import threading
from contextlib import ExitStack, contextmanager, suppress

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from glassformer.web.connections import Connections
from glassformer.web.server import listen, uvicorn_config

HEAD_SECONDS = 0.3
PATIENCE = 30.0  # until a test fails
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
SLOW = HEALTH.replace(b"health", b"slow")


async def health(_):
    return PlainTextResponse("ok")


async def slow(_):
    await asyncio.sleep(2 * HEAD_SECONDS)
    return PlainTextResponse("done")


@contextmanager
def running(**bounds):
    app = Starlette(routes=[Route("/health", health), Route("/slow", slow)])
    connections = Connections(**{"head_seconds": HEAD_SECONDS} | bounds)
    with listen("127.0.0.1", 0) as listener:
        address = listener.getsockname()
        server = uvicorn.Server(uvicorn_config(app, connections))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield address
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


@pytest.fixture
def start():
    """Starts servers with bounds of a test's own; gives their addresses."""
    with ExitStack() as servers:
        yield lambda **bounds: servers.enter_context(running(**bounds))


@pytest.fixture
def connect():
    """Opens connections, which end with the test."""
    with ExitStack() as connections:
        yield lambda place, source="127.0.0.1": connections.enter_context(
            socket.create_connection(place, PATIENCE, source_address=(source, 0))
        )


def ask(connection, request=b""):
    """The body that the server sends after a request; nothing if it closes the connection."""
    answer = b""
    with suppress(ConnectionError):
        connection.sendall(request)
        while not answer.endswith((b"ok", b"done")) and (part := connection.recv(65_536)):
            answer += part
    return answer.rpartition(b"\r\n\r\n")[2]


def test_silent_connections_keep_nobody_else_out(start, connect):
    place = start(most=60, most_of_address=50)
    silent = [connect(place) for _ in range(100)]
    for half in silent[::2]:
        with suppress(ConnectionError):
            half.sendall(HEALTH[:20])

    assert ask(connect(place, "127.0.0.2"), HEALTH) == b"ok"  # another address: at once
    assert {ask(one) for one in silent} == {b""}
    assert ask(connect(place), HEALTH) == b"ok"


def test_a_head_byte_by_byte_has_no_more_time(start, connect):
    client = connect(start())
    client.settimeout(HEAD_SECONDS / 10)
    with pytest.raises(ConnectionError):  # noqa: PT012
        for byte in HEALTH[:-2] + b"X: " + b"a" * 1000:
            client.sendall(bytes([byte]))
            try:
                assert client.recv(9) == b""
                raise ConnectionError("closed")
            except TimeoutError:
                continue


def test_each_later_head_has_the_same_time(start, connect):
    client = connect(start())

    assert [ask(client, HEALTH) for _ in range(3)] == [b"ok"] * 3
    assert ask(client, HEALTH[:20]) == b""


def test_an_answer_may_take_longer_than_a_head(start, connect):
    client = connect(start())

    assert [ask(client, request) for request in (SLOW, HEALTH, SLOW)] == [b"done", b"ok", b"done"]


def test_connections_beyond_a_bound_are_closed_at_once_with_one_log_line(start, connect, capsys):
    place = start(most=4, most_of_address=2, head_seconds=PATIENCE)
    kept = [connect(place, f"127.0.0.{n}") for n in (1, 1, 2, 3)]
    assert [ask(one, HEALTH) for one in kept] == [b"ok"] * 4

    assert [ask(connect(place, f"127.0.0.{n}"), HEALTH) for n in (1, 4)] == [b"", b""]
    assert [ask(one, HEALTH) for one in kept] == [b"ok"] * 4
    line = "more than 2 connections of a client or 4 of all: closed the newest\n"
    assert capsys.readouterr().err.count(line) == 1


def test_a_proxy_may_have_as_many_connections_as_all_clients(start, connect):
    place = start(most_of_address=1, proxies=["127.0.0.1"])

    assert [ask(connect(place), HEALTH) for _ in range(3)] == [b"ok"] * 3
