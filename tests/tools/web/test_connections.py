"""Connections of real sockets: a client without a request keeps nobody else out."""

import asyncio
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from glassformer.tools.web import connections
from glassformer.tools.web.connections import BoundedConnection, Connections
from glassformer.tools.web.metrics import ServerMetrics
from glassformer.tools.web.security import Guard, RequestLimits
from glassformer.tools.web.server import listen, uvicorn_config
from tests.tables import every

PATIENCE = 60.0  # until a test fails
HEAD_SECONDS = 10 * PATIENCE  # by a clock that the test sets: no busy machine comes near
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
SLOW = HEALTH.replace(b"health", b"slow")
LARGE = HEALTH.replace(b"health", b"large")


class ClockedServer(uvicorn.Server):
    """The time of its loop runs ahead as the test says."""

    ahead = 0.0

    async def startup(self, sockets=None):
        self.loop = asyncio.get_running_loop()
        clock = self.loop.time
        self.loop.time = lambda: clock() + self.ahead
        await super().startup(sockets)


class Running:
    """A server in a thread; it answers /slow when its gate is open."""

    def __init__(self, listener, **bounds):
        self.gate, self.begun = threading.Event(), threading.Semaphore(0)
        self.bounds = Connections(**{"head_seconds": HEAD_SECONDS} | bounds)
        self.place = listener.getsockname()
        routes = [Route(f"/{name}", getattr(self, name)) for name in ("health", "slow", "large")]
        app = Guard(Starlette(routes=routes), RequestLimits(), (), ServerMetrics())
        config = uvicorn_config(app, self.bounds, seconds=0)
        config.timeout_keep_alive = 10 * HEAD_SECONDS  # uvicorn's own bound of idle connections
        self.server = ClockedServer(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listener]})
        self.thread.start()

    async def health(self, _):
        return PlainTextResponse("ok")

    async def slow(self, _):
        self.begun.release()
        await asyncio.to_thread(self.gate.wait, PATIENCE)
        return PlainTextResponse("done")

    async def large(self, _):
        return PlainTextResponse("x" * (32 << 20))

    def pass_time(self, seconds, *, connections=1):
        """Let so much time pass, once so many connections are known."""
        end = time.monotonic() + PATIENCE
        while len(self.bounds.open) < connections:
            assert time.monotonic() < end
        passed = threading.Event()

        def run_ahead():
            self.server.ahead += seconds
            passed.set()

        self.server.loop.call_soon_threadsafe(run_ahead)  # after all of a begun answer
        assert passed.wait(PATIENCE)

    def stop(self):
        self.server.should_exit = True
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        for connection in self.bounds.open:  # a process would end with them
            connection.transport._sock.close()
            connection.transport._sock = None
        self.bounds.open.clear()


@contextmanager
def running(**bounds):
    with listen("127.0.0.1", 0) as listener:
        server = Running(listener, **bounds)
        try:
            yield server
        finally:
            server.gate.set()
            server.stop()


@pytest.fixture
def start():
    """Starts servers with bounds of a test's own."""
    with ExitStack() as servers:
        yield lambda **bounds: servers.enter_context(running(**bounds))


@pytest.fixture
def server(start):
    """A server with the usual bounds, for all rows of a table."""
    return start()


@pytest.fixture
def connect():
    """Opens connections, which end with the test."""
    with ExitStack() as stack:
        yield lambda server, source="127.0.0.1": stack.enter_context(
            socket.create_connection(server.place, PATIENCE, source_address=(source, 0))
        )


def ask(connection, request=b""):
    """The body that the server sends after a request; nothing if it closes the connection."""
    answer = b""
    with suppress(ConnectionError):
        connection.sendall(request)
        while not answer.endswith((b"ok", b"done")) and (part := connection.recv(65_536)):
            answer += part
    return answer.rpartition(b"\r\n\r\n")[2]


def test_a_client_that_asks_is_heard_beside_silent_half_and_slow_ones(start, connect):
    """Of its own address and of another one."""
    server = start(most=60, most_of_network=50)
    others = [connect(server) for _ in range(150)]
    for half in others[100:]:
        with suppress(ConnectionError):
            half.sendall(HEALTH[:20])
    for source in ("127.0.0.1", "127.0.0.2") * 10:
        for slow in others[140:]:
            with suppress(ConnectionError):
                slow.sendall(b"X")
        assert ask(connect(server, source), HEALTH) == b"ok"


def test_silent_and_half_heads_are_closed(server, connect):
    silent = [connect(server) for _ in range(20)]
    for half in silent[::2]:
        half.sendall(HEALTH[:20])
    server.pass_time(HEAD_SECONDS, connections=20)

    assert {ask(one) for one in silent} == {b""}
    assert ask(connect(server), HEALTH) == b"ok"


def test_a_head_byte_by_byte_has_no_more_time(server, connect):
    client = connect(server)
    for byte in HEALTH[:10]:
        client.sendall(bytes([byte]))
        server.pass_time(HEAD_SECONDS / 10)

    assert ask(client) == b""


def test_each_later_head_has_the_same_time(server, connect):
    client = connect(server)
    for _ in range(3):
        server.pass_time(0.6 * HEAD_SECONDS)
        assert ask(client, HEALTH) == b"ok"
    client.sendall(HEALTH[:20])
    server.pass_time(HEAD_SECONDS)

    assert ask(client) == b""


@every("method", ["GET", "POST", "HEAD"])
@every("length", [0, 1, 5, 999])
@every("first", [0, 1])
def test_a_request_with_two_lengths_is_refused_and_closed(server, connect, method, length, first):
    """A proxy that goes by the other length has handed on what follows as a body."""
    lengths = [f"Content-Length: {length}", "transfer-encoding: chunked"]
    head = [f"{method} /health HTTP/1.1", "Host: localhost", *lengths[:: 1 - 2 * first], "", ""]
    client = connect(server)
    answer = b""
    with suppress(ConnectionError):
        client.sendall("\r\n".join(head).encode() + b"0\r\n\r\n" + HEALTH)
        while part := client.recv(65_536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1") == 1


def test_an_answer_may_take_longer_than_a_head(server, connect):
    client = connect(server)
    client.sendall(SLOW)
    assert server.begun.acquire(timeout=PATIENCE)
    server.pass_time(2 * HEAD_SECONDS)
    server.gate.set()

    assert ask(client) == b"done"
    assert [ask(client, request) for request in (HEALTH, SLOW)] == [b"ok", b"done"]


def test_those_that_wait_for_an_answer_keep_their_place(start, connect, capsys):
    server = start(most=3, most_of_network=2)
    kept = [connect(server, f"127.0.0.{n}") for n in (1, 1, 2)]
    for client in kept:
        client.sendall(SLOW)
        assert server.begun.acquire(timeout=PATIENCE)

    assert [ask(connect(server, f"127.0.0.{n}"), HEALTH) for n in (1, 3)] == [b"", b""]
    server.gate.set()
    assert [ask(client) for client in kept] == [b"done"] * 3
    assert [ask(connect(server, f"127.0.0.{n}"), HEALTH) for n in (1, 3)] == [b"ok", b"ok"]
    line = "more than 2 connections of a client or 3 of all: closed those without a request\n"
    assert capsys.readouterr().err.count(line) == 1


def test_a_proxy_may_have_as_many_connections_as_all_clients(start, connect):
    server = start(most_of_network=1, is_proxy="127.0.0.1".__eq__)
    clients = [connect(server) for _ in range(3)]

    assert [ask(client, HEALTH) for client in clients] == [b"ok"] * 3


@pytest.fixture
def told(monkeypatch):
    """An event for a method of the connections: somebody has called it."""

    def event(name):
        called, method = threading.Event(), getattr(BoundedConnection, name)
        monkeypatch.setattr(
            BoundedConnection, name, lambda *words: (method(*words), called.set())[0]
        )
        return called

    return event


def test_a_client_that_does_not_read_is_closed(start, connect, told):
    lost = told("connection_lost")
    client = connect(start(write_seconds=0.1))
    client.sendall(LARGE)

    assert lost.wait(PATIENCE)
    assert len(ask(client)) < 32 << 20


def test_a_client_that_does_not_read_keeps_no_server_alive(start, connect, told):
    writing = told("pause_writing")
    server = start(write_seconds=10 * PATIENCE)
    client = connect(server)
    client.sendall(LARGE)
    assert writing.wait(PATIENCE)

    server.stop()


def test_a_restart_on_a_kept_socket_loses_no_request():
    """As systemd keeps it, or a new server takes it."""
    answered, answers = threading.Semaphore(0), []

    def client(place):
        for _ in range(50):
            with socket.create_connection(place, PATIENCE) as connection:
                answers.append(ask(connection, HEALTH))
            answered.release()

    with listen("127.0.0.1", 0) as kept:
        clients = [
            threading.Thread(target=client, args=(kept.getsockname(),), daemon=True)
            for _ in range(8)
        ]
        server = Running(kept.dup())
        for each in clients:
            each.start()
        for _ in range(3):
            for _ in range(50):
                assert answered.acquire(timeout=PATIENCE)
            server.stop()
            server = Running(kept.dup())
        for each in clients:
            each.join(PATIENCE)
        server.stop()
    assert answers == [b"ok"] * 400


def test_a_server_that_stops_answers_a_client_that_has_just_come(start, connect, told, monkeypatch):
    monkeypatch.setattr(connections, "_LAST_CALL", PATIENCE)
    came, stopping = told("connection_made"), told("shutdown")
    server = start()
    client = connect(server)
    assert came.wait(PATIENCE)
    server.server.should_exit = True
    assert stopping.wait(PATIENCE)

    assert ask(client, HEALTH) == b"ok"
