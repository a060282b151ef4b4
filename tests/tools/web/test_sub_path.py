"""The server below a path of another host: every absolute address of an answer begins with it."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from glassformer.support.errors import UsageError
from glassformer.tools.web.server import Settings, create_app
from glassformer.tools.web.sub_path import ROOT_PATH

HOST = "https://example.org"
NAMES = st.from_regex(r"\A[\w.~-]{1,9}\Z", fullmatch=True).filter(str.isascii)
# The names of the server's own addresses, too.
OWN_READ = ["look", "static", "engine", "api", "frontend", "languages", "spec", "health"]
OWN = st.sampled_from(["translate", "detect", "v1", *OWN_READ])
ROOTS = st.lists(NAMES | OWN, min_size=1, max_size=3)
FILE = {"file": ("a.txt", b"A dog.")}


@pytest.fixture(scope="module")
def servers(translator):
    """A server for each root path, with a proxy on 127.0.0.1 that it trusts."""

    def serve(root, proxies=("127.0.0.1/32",)):
        settings = Settings(beam=1, hosts=["example.org"], proxies=proxies, root_path=root)
        app = create_app({"toy": translator}, settings)
        return TestClient(app, base_url=HOST, client=("127.0.0.1", 9), follow_redirects=False)

    return serve


@pytest.fixture(scope="module")
def below_any_path(servers):
    with servers("") as client:
        yield client


def check(client, cut, headers):
    """Follow every address that the server gives; `cut` is the path that the proxy cuts off."""

    def fetch(address, **question):
        path = address.removeprefix(HOST)
        assert path.startswith(cut)
        method = "POST" if question else "GET"
        return client.request(method, path.removeprefix(cut), headers=headers, **question)

    root = cut or client.app.root
    fields = {"source": "en", "target": "de"}
    answer = fetch(f"{root}/translate_file", files=FILE, data=fields)
    address = answer.json()["translatedFileUrl"]
    assert address.startswith(f"{HOST}{root}/download_file/")
    assert fetch(address).status_code == 200
    assert fetch(f"{root}/translate", data=fields | {"q": "A dog."}).status_code == 200
    assert fetch(f"{root}/spec").json()["servers"] == [{"url": root}]
    assert fetch(f"{root}/languages/").headers["Location"] == f"{HOST}{root}/languages"
    assert fetch(f"{root}/static/translate.js").headers["Cache-Control"] == "no-cache"
    for page, folder in (("", ""), ("look/", "look/")):
        text = fetch(f"{root}/{page}").text
        for name in re.findall(r'(?:src|href)="([^"]+)"', text):
            assert name.startswith("data:") or fetch(f"{root}/{folder}{name}").status_code == 200
    if root and not cut:  # other proxies redirect by themselves
        answer = fetch(root)
        assert (answer.status_code, answer.headers["Location"]) == (307, f"{HOST}{root}/")


@given(parts=ROOTS, slash=st.sampled_from(["", "/"]))
def test_a_trusted_proxy_names_the_path_that_it_has_cut_off(below_any_path, parts, slash):
    root = "/" + "/".join(parts)
    assert ROOT_PATH.fullmatch(root)
    check(below_any_path, root, {"X-Forwarded-Prefix": root + slash})


@given(parts=ROOTS, cut=st.booleans())
@example(parts=["translate"], cut=True)
@example(parts=["translate"], cut=False)
@example(parts=["look"], cut=True)
def test_a_proxy_may_cut_off_the_root_path_or_leave_it(servers, parts, cut):
    """But a path that clients read at the server itself says nothing, and is refused."""
    root = "/" + "/".join(parts)
    if parts[0] in OWN_READ:
        with pytest.raises(
            UsageError, match=f"root_path {re.escape(root)}: the server itself has this"
        ):
            servers(root)
        return
    with servers(root) as client:
        check(client, root if cut else "", {})


@pytest.mark.parametrize(
    ("proxies", "prefix"),
    [([], "/gf"), (["10.0.0.0/8"], "/gf"), (["127.0.0.1/32"], "//evil.example"),
     (["127.0.0.1/32"], "/gf?x=<b>"), (["127.0.0.1/32"], "gf")],
)  # fmt: skip
def test_nobody_else_and_no_other_form_changes_an_address(servers, proxies, prefix):
    with servers("", proxies) as client:
        headers = {"X-Forwarded-Prefix": prefix}
        fields = {"source": "en", "target": "de"}
        answer = client.post("/translate_file", files=FILE, data=fields, headers=headers)
        assert json.loads(answer.content)["translatedFileUrl"].startswith(f"{HOST}/download_file/")
