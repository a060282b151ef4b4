"""Who may ask, how often, and from which pages; what the log says of it."""

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from glassformer.tools.web.rate import RequestRate
from glassformer.tools.web.security import RefusedError, RequestLimits
from glassformer.tools.web.server import Settings, create_app
from tests.tables import every

QUESTION = {"q": "😀", "source": "en", "target": "de"}
ORIGIN = "https://mine.example"


def ask(client, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post("/translate", data=QUESTION, headers=named)


@given(st.integers(1, 50), st.lists(st.floats(0, 100), min_size=1, max_size=300))
def test_no_minute_has_more_than_two_buckets_and_the_first_is_never_refused(most, pauses):
    """A bucket that is full, and what flows in within that minute."""
    now, times = 0.0, []
    rate = RequestRate(most, clock=lambda: now)
    for pause in pauses:
        now += pause
        try:
            rate.count("a")
        except RefusedError as error:
            assert len([t for t in times if now - t < 60]) >= most
            now += int(error.headers["Retry-After"])
            rate.count("a")  # who waits as it is told may come again
        times.append(now)
        assert len([t for t in times if now - t < 60]) <= 2 * most


def test_a_large_request_counts_as_several_and_leaves_debts_for_a_minute_at_most():
    now = 0.0
    rate = RequestRate(10, clock=lambda: now)
    rate.count("a")
    rate.charge("a", 4)
    rate.count("b")
    rate.charge("b", 1000)
    assert [_wait(rate, name) for name in "ab"] == [None, 12]
    now = 12.0
    assert _wait(rate, "b") is None
    rate.charge("b", 1000)
    assert _wait(rate, "b") == 66  # one such request a minute


def _wait(rate, name):
    try:
        return rate.count(name)
    except RefusedError as error:
        return int(error.headers["Retry-After"])


@pytest.mark.parametrize(
    ("asked", "left"), [("x" * 999, 9), ("x" * 3001, 6), (["x"] * 100, 4), (["😀"] * 1000, 0)]
)
def test_characters_and_texts_count(served, asked, left):
    """Of ten requests a minute so many are left."""
    client = served(limits=RequestLimits(per_minute=10))
    small = {"q": "😀", "source": "en", "target": "de"}
    assert client.post("/translate", json=small | {"q": asked}).status_code == 200
    statuses = [client.post("/translate", json=small).status_code for _ in range(10)]
    assert statuses == [200] * left + [429] * (10 - left)


def test_each_client_has_its_own_rate(served):
    client = served(keys=["sesame", "wheat"], limits=RequestLimits(per_minute=2))
    for key in ("sesame", "wheat"):
        statuses = [ask(client, Authorization=f"Bearer {key}").status_code for _ in range(3)]
        assert statuses == [200, 200, 429]
    refused = ask(client, Authorization="Bearer sesame")
    assert refused.headers["Retry-After"] in ("29", "30")
    assert refused.json()["error"].startswith("more than 2 requests a minute: try again in ")
    # A guesser of keys is counted by the address.
    guesses = [ask(client, Authorization=f"Bearer {n}").status_code for n in range(3)]
    assert guesses == [403, 403, 429]
    assert client.get("/languages").status_code == client.get("/health").status_code == 200


@pytest.mark.parametrize("name", ["2001:db8:1:2::", "::ffff:192.0.2.1"])
def test_the_addresses_of_one_subscriber_are_one_client(translator, name):
    """A /64 of IPv6; an IPv4 address in the form of IPv6 is one of its own."""
    app = create_app({"toy": translator}, Settings(limits=RequestLimits(per_minute=2)))
    statuses = []
    for end in ("", "1", "ffff:1"):
        with TestClient(app, base_url="http://127.0.0.1", client=(name + end, 9)) as client:
            statuses.append(client.post("/detect", json={"q": "a"}).status_code)
    assert statuses == ([200, 200, 429] if name[0] == "2" else [200] * 3)


@pytest.mark.parametrize(
    ("proxies", "peer", "statuses"),
    [
        (["127.0.0.1/32"], "127.0.0.1", [200, 429, 200]),
        (["10.0.0.0/8", "172.16.0.0/12"], "172.18.0.3", [200, 429, 200]),
        ([], "127.0.0.1", [200, 429, 429]),
        (["127.0.0.1/32"], "192.0.2.9", [200, 429, 429]),  # it may say what it likes
    ],
)
def test_a_trusted_proxy_names_the_client(translator, proxies, peer, statuses):
    settings = Settings(limits=RequestLimits(per_minute=1), proxies=proxies)
    app = create_app({"toy": translator}, settings)
    with TestClient(app, base_url="http://127.0.0.1", client=(peer, 9)) as client:
        # The proxy adds the last address; those before come from the client.
        asked = ["203.0.113.1", "198.51.100.7, 203.0.113.1", "203.0.113.2"]
        assert [ask(client, X_Forwarded_For=name).status_code for name in asked] == statuses


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_form_of_a_foreign_page_is_refused(client, site):
    answer = ask(client, Sec_Fetch_Site=site, Origin=ORIGIN)

    assert answer.status_code == 403
    assert answer.json() == {
        "error": "a page of another site asks, and the server does not allow its origin"
    }
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert ask(client, Sec_Fetch_Site="same-origin").status_code == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1", 200),
        (ORIGIN, 403),
        ("http://127.0.0.1:81", 403),
        ("null", 403),
        ("", 403),
        ("http://[", 403),
    ],
)
def test_a_browser_that_says_only_its_origin_is_known_by_it(client, origin, status):
    """To a site without TLS on another machine no browser sends Sec-Fetch-Site."""
    assert ask(client, Origin=origin).status_code == status


@pytest.mark.parametrize(("origins", "said"), [([ORIGIN], ORIGIN), (["*"], "*")])
def test_pages_of_an_allowed_origin_may_ask(served, origins, said):
    client = served(origins=origins)
    before = client.options(
        "/translate",
        headers={
            "Origin": ORIGIN,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type,authorization",
        },
    )
    for answer in (
        before,
        ask(client, Sec_Fetch_Site="cross-site", Origin=ORIGIN),
        client.get("/languages", headers={"Origin": ORIGIN}),
    ):
        assert answer.status_code == 200
        assert answer.headers["Access-Control-Allow-Origin"] == said
    exposed = answer.headers["Access-Control-Expose-Headers"]
    assert exposed == "Retry-After, X-Request-Id"  # or the page does not see them
    other = ask(client, Sec_Fetch_Site="cross-site", Origin="https://evil.example")
    assert other.status_code == (200 if said == "*" else 403)
    assert other.headers.get("Access-Control-Allow-Origin") != "https://evil.example"


def test_each_answer_is_a_line_in_the_log_without_its_text(served, caplog):
    caplog.set_level(logging.INFO, "glassformer.access")
    client = served(keys=["sesame"])
    texts = ["A secret dog.", "😀"]
    question = {"q": texts, "source": "en", "target": "de", "api_key": "sesame"}
    asked = client.post("/translate?q=secret", json=question, headers={"X-Request-Id": "a-1"})
    client.post("/translate", data={"q": "secret", "source": "en", "target": "de"})
    client.get("/secret/path")
    client.get("/static/translate.js")

    lines = [json.loads(record.getMessage()) for record in caplog.records]
    assert [(line["path"], line["status"], line["characters"]) for line in lines] == [
        ("/translate", 200, sum(map(len, texts))),
        ("/translate", 400, 0),
        ("other", 404, 0),
        ("static", 200, 0),
    ]
    assert all(0 <= line["seconds"] < 600 for line in lines)
    assert lines[0]["id"] == asked.headers["X-Request-Id"] == "a-1"
    assert "secret" not in caplog.text


@every("given", ["", "a b", "x" * 65, "ä", "\\n{}", None])
def test_a_request_without_an_id_that_can_be_logged_gets_one(client, given):
    headers = {} if given is None else {"X-Request-Id": given.encode("latin-1")}
    names = {client.get("/health", headers=headers).headers["X-Request-Id"] for _ in range(2)}
    assert len(names) == 2
    assert all(len(name) == 16 for name in names)


def test_metrics_have_keys_of_their_own(served):
    client = served(keys=["sesame"], metrics_keys=["watch"])

    def status(key):
        return client.get("/metrics", headers={"Authorization": f"Bearer {key}"}).status_code

    assert [status("watch"), status("sesame")] == [200, 403]
    assert client.get("/metrics").status_code == 401
    assert ask(client, Authorization="Bearer watch").status_code == 403
    assert served(metrics_keys=["watch"]).get("/metrics").status_code == 401


def test_keys_may_change(served):
    keys = ["sesame"]
    client = served(keys=keys)
    assert ask(client, Authorization="Bearer sesame").status_code == 200
    keys[:] = ["wheat"]
    assert ask(client, Authorization="Bearer sesame").status_code == 403
    assert ask(client, Authorization="Bearer wheat").status_code == 200
