"""The server behind nginx, with the block of the page on serving."""

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
from pathlib import Path
from urllib.parse import urljoin
from urllib.request import Request, urlopen

import pytest
import uvicorn

from glassformer.tools.web.connections import Connections
from glassformer.tools.web.server import Settings, create_app, listen, uvicorn_config

PAGE = Path(__file__).parents[3] / "docs/how-to/serving.md"
NAME, SITE = "translate.example.org", "example.org"
pytestmark = pytest.mark.skipif(
    not (shutil.which("nginx") and shutil.which("openssl")), reason="needs nginx and openssl"
)


@pytest.fixture(scope="module")
def server(translator):
    """The port of a server that trusts a proxy on this machine."""
    app = create_app({"toy": translator}, Settings(hosts=[NAME, SITE], proxies=["127.0.0.1/32"]))
    with listen("127.0.0.1", 0) as listener:
        server = uvicorn.Server(uvicorn_config(app, Connections(), seconds=60))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(60)


@pytest.fixture(scope="module")
def nginx(server, tmp_path_factory):
    """The port of nginx in front of it."""
    home = tmp_path_factory.mktemp("nginx")
    [block] = [block for block in _blocks() if "client_max_body_size" in block]
    [below] = [block for block in _blocks() if "X-Forwarded-Prefix" in block]
    _, root, rest = block.partition("    location / {")
    other = block.replace(NAME, SITE, 1).replace(root + rest, f"{below}\n}}\n")
    block += other
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for old, new in {
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "127.0.0.1:5000": f"127.0.0.1:{server}",
        f"/etc/ssl/{NAME}.": f"{home}/",
    }.items():
        assert old in block
        block = block.replace(old, new)
    subject = ["-subj", f"/CN={NAME}", "-keyout", home / "key", "-out", home / "pem"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject],
        check=True,
        capture_output=True,
    )
    temporary = "".join(
        f"{kind}_temp_path {home}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.getuid() == 0 else ""
    (home / "conf").write_text(
        f"daemon off; {user} pid {home}/pid; error_log {home}/log; events {{}}"
        f" http {{ access_log off; {temporary} {block} }}"
    )
    process = subprocess.Popen(["nginx", "-c", home / "conf", "-p", home, "-e", home / "log"])
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            continue
    assert process.poll() is None, (home / "log").read_text()
    yield port
    process.terminate()
    process.wait(60)


def _blocks():
    return re.findall(r"^```nginx\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)


def ask(port, path, body=None, kind="application/json", host=NAME):
    context = ssl._create_unverified_context()
    headers = {"Host": f"{host}:{port}", "Content-Type": kind}
    request = Request(f"https://127.0.0.1:{port}{path}", body, headers)
    with urlopen(request, timeout=60, context=context) as answer:
        return answer.read()


def test_a_large_file_is_translated_and_fetched(nginx):
    """Of 4 MB, from an address of the site that the client knows."""
    page = b"<p>" + b"<br>" * 1_000_000
    fields = [("source", "en"), ("target", "de"), ('file"; filename="a.html', page.decode())]
    form = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields
    )
    body = f"{form}--x--\r\n".encode()

    answer = json.loads(ask(nginx, "/translate_file", body, "multipart/form-data; boundary=x"))

    site, path, name = answer["translatedFileUrl"].partition("/download_file/")
    assert site == f"https://{NAME}:{nginx}"
    assert ask(nginx, path + name).count(b"<br>") == 1_000_000


def test_a_text_is_translated(nginx, translator):
    [expected] = translator.translate(["A dog runs."])
    question = {"q": "A dog runs.", "source": "en", "target": "de"}
    answer = json.loads(ask(nginx, "/translate", json.dumps(question).encode()))
    assert answer == {"translatedText": expected.text}


def test_the_metrics_are_not_for_strangers(nginx):
    with pytest.raises(OSError, match="403"):
        ask(nginx, "/metrics")


def test_below_a_path_the_page_and_its_files_are_there(nginx):
    for page in ("/translate/", "/translate/look/"):
        text = ask(nginx, page, host=SITE).decode()
        for name in re.findall(r'(?:src|href)="((?!data:)[^"]+)"', text):
            assert ask(nginx, urljoin(page, name), host=SITE)
    body = json.dumps({"q": "A dog runs.", "source": "en", "target": "de"}).encode()
    answer = ask(nginx, "/translate/translate", body, host=SITE)
    assert answer == ask(nginx, "/translate", body)
    for private in ("/translate/metrics", "/translate/metrics/", "/translate//metrics"):
        with pytest.raises(OSError, match="403"):
            ask(nginx, private, host=SITE)
