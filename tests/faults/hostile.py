"""Requests of 30 hostile kinds to a server: refused or answered, never a fault of the server.

The server must answer a good request after each kind, with the same translation. It may answer 503
but no other 5xx, and its memory must stay as it is after the first round.
"""

import json
import re
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import bundles
from trainings import Broken, Fault

PAUSE, SECONDS = 2, 30  # until a client ends its side, and until it gives up
GROWTH = 30  # MB
LANGUAGES = b'"source": "en", "target": "de"'
GOOD = b'{"q": "a dog runs", ' + LANGUAGES + b"}"
BOUNDARY = "multipart/form-data; boundary=x"
FILE = b'--x\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n%s\r\n--x--\r\n'


def post(body: bytes, path: str = "/translate", kind: str = "application/json") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}"
    return f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def asked(text: bytes) -> bytes:
    return post(b'{"q": "' + text + b'", ' + LANGUAGES + b"}")


HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"
REQUESTS = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00" * 20 + b"\r\n\r\n",
    "random bytes": bytes(range(256)) * 50,
    "nothing": b"",
    "a line without end": b"GET /" + b"a" * 200_000,
    "200,000 bytes of one header": HEAD + b"X: " + b"a" * 200_000 + b"\r\n\r\n",
    "5,000 headers": HEAD + b"".join(b"X%d: 1\r\n" % n for n in range(5000)) + b"\r\n",
    "two lengths": HEAD + b"Content-Length: 3\r\nContent-Length: 30\r\n\r\nabc",
    "length and chunks": HEAD
    + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
    "a negative length": HEAD + b"Content-Length: -1\r\n\r\n",
    "a huge length": HEAD + b"Content-Length: 99999999999999\r\n\r\nabc",
    "half a body": post(GOOD)[:-5],
    "chunks of no number": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
    "another host": post(GOOD).replace(b"localhost", b"attacker.example"),
    "a path out of the files": b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an encoded path": b"GET /%2e%2e/%00/%ff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an unknown method": b"BREAK / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "deep JSON": post(b"[" * 100_000),
    "deep members": post(b'{"q":' * 40_000),
    "NaN": post(b'{"q": NaN, ' + LANGUAGES + b"}"),
    "a number of 5,000 digits": post(b'{"q": ' + b"9" * 5000 + b"}"),
    "half a letter": asked(b"\\ud83d"),
    "no UTF-8": asked(b"\xff\xfe\x80"),
    "control characters": asked(b"\\u0000\\u001b[31m\\u202e"),
    "one word of 15,000 letters": asked(b"a" * 15_000),
    "10,000 line feeds": asked(b"\\n" * 10_000),
    "2 MiB": post(b"x" * (2 << 20)),
    "200,000 texts": post(b'{"q": [' + b'"",' * 200_000 + b'""], ' + LANGUAGES + b"}"),
    "a form of 80,000 fields": post(b"&q=a" * 80_000, kind="application/x-www-form-urlencoded"),
    "a trace of 4,000 words": post(b'{"text": "%s"}' % (b"a b " * 4000), "/api/v1/trace"),
    "a file of random bytes": post(
        FILE % (b"../../a.docx", bytes(range(256)) * 99), "/translate_file", BOUNDARY
    ),
}


def all_requests(tries: int) -> list[Fault]:
    fault = Fault(f"hostile requests of {len(REQUESTS)} kinds")
    with tempfile.TemporaryDirectory() as temporary:
        bundles.make_bundle(Path(temporary, "bundle"))
        log = Path(temporary, "log")
        command = [sys.executable, "-m", "glassformer", "serve", f"{temporary}/bundle"]
        with (
            log.open("w") as errors,
            subprocess.Popen(
                [*command, "--port", "0"], stdout=subprocess.PIPE, stderr=errors, text=True
            ) as server,
        ):
            assert server.stdout is not None
            port = int(re.findall(r":(\d+)", server.stdout.readline())[0])
            try:
                send_all(fault, port, tries, server.pid)
            finally:
                server.terminate()
        with fault.attempt(tries=0):
            if "Traceback" in log.read_text():
                raise Broken("traceback", log.read_text()[-1500:])
    return [fault]


def send_all(fault: Fault, port: int, tries: int, server: int) -> None:
    right = translation(port)
    for number in range(tries):
        for name, request in REQUESTS.items():
            with fault.attempt():
                answer = ask(port, request)
                status = answer[9:12]
                if status[:1] == b"5" and status != b"503":
                    raise Broken("lost", f"{name}: {answer[:500]!r}")
                if translation(port) != right:
                    raise Broken("lost", f"{name}: another translation after it")
        if number == 0:
            first = memory(server)
    with fault.attempt(tries=0):
        if memory(server) > first + GROWTH:
            raise Broken("lost", f"memory grows from {first} to {memory(server)} MB")


def translation(port: int) -> object:
    answer = ask(port, post(GOOD))
    if answer[9:12] != b"200":
        raise Broken("lost", f"a good request gets {answer[:300]!r}")
    return json.loads(answer.partition(b"\r\n\r\n")[2])["translatedText"]


def ask(port: int, request: bytes) -> bytes:
    """All that the server answers; nothing if it closes the connection.

    If it waits for more, the client ends its side.
    """
    answer, ended = b"", False
    place = ("127.0.0.1", port)
    with socket.create_connection(place, timeout=PAUSE) as connection, suppress(ConnectionError):
        connection.sendall(request)
        while True:
            try:
                part = connection.recv(65_536)
            except TimeoutError as error:
                if answer:  # it keeps the connection
                    break
                if ended:
                    raise Broken("hang", f"no answer to {request[:60]!r}") from error
                connection.shutdown(socket.SHUT_WR)
                connection.settimeout(SECONDS)
                ended = True
            else:
                answer += part
                if not part:
                    break
    return answer


def memory(process: int) -> int:
    """The resident memory in MB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024
