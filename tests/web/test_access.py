"""Who may ask, how often, and from which pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from glassformer.web.rate import RequestRate
from glassformer.web.security import RefusedError, RequestLimits
from glassformer.web.server import Settings, create_app

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


@pytest.mark.parametrize(
    ("trusted", "peer", "statuses"),
    [
        (True, "127.0.0.1", [200, 429, 200]),
        (False, "127.0.0.1", [200, 429, 429]),
        (True, "192.0.2.9", [200, 429, 429]),  # no proxy of ours: it may say what it likes
    ],
)
def test_a_proxy_on_this_machine_names_the_client(translator, trusted, peer, statuses):
    limits = RequestLimits(per_minute=1)
    app = create_app({"toy": translator}, Settings(limits=limits, trust_proxy=trusted))
    with TestClient(app, base_url="http://127.0.0.1", client=(peer, 9)) as client:
        # The proxy adds the last address; those before come from the client.
        asked = ["203.0.113.1", "198.51.100.7, 203.0.113.1", "203.0.113.2"]
        assert [ask(client, X_Forwarded_For=name).status_code for name in asked] == statuses


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_form_of_a_foreign_page_is_refused(client, site):
    answer = ask(client, Sec_Fetch_Site=site, Origin=ORIGIN)

    assert answer.status_code == 403
    assert answer.json() == {
        "error": "a page of another site asks: start the server with --allow-origin ORIGIN"
    }
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert ask(client, Sec_Fetch_Site="same-origin").status_code == 200


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
    other = ask(client, Sec_Fetch_Site="cross-site", Origin="https://evil.example")
    assert other.status_code == (200 if said == "*" else 403)
    assert other.headers.get("Access-Control-Allow-Origin") != "https://evil.example"
