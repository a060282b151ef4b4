"""Bodies, hosts and keys."""

import asyncio
import gzip
import json

from hypothesis import given
from hypothesis import strategies as st

from glassformer.tools.web import security
from glassformer.tools.web.security import (
    RefusedError,
    RequestLimits,
    read_body,
)
from tests.tables import every

SMALL = RequestLimits(max_chars=1)
LARGEST = SMALL.max_body_bytes


def read(*chunks, gone=False, forever=False, pause=0.0, limits=SMALL, declared=0):
    """What `read_body` returns for a body in these chunks, and how many of them it reads."""
    messages = [
        {"type": "http.request", "body": chunk, "more_body": place < len(chunks)}
        for place, chunk in enumerate(chunks, start=1)
    ]
    taken = 0

    async def receive():
        nonlocal taken
        if not messages:
            if gone:
                return {"type": "http.disconnect"}
            await asyncio.sleep(60)
        taken += 1
        if taken > 1:
            await asyncio.sleep(pause)
        return messages[0] if forever else messages.pop(0)

    if gone or forever:
        messages = [message | {"more_body": True} for message in messages]
    try:
        return asyncio.run(read_body(receive, limits, declared=declared)), taken
    except RefusedError as error:
        return error.status, taken


@given(st.lists(st.binary(max_size=30), min_size=1))
def test_a_body_is_read_whole(chunks):
    assert read(*chunks) == (b"".join(chunks), len(chunks))


def test_a_body_may_have_just_the_most_bytes():
    assert read(b"x" * LARGEST)[0] == b"x" * LARGEST
    assert read(b"x" * LARGEST, b"x") == (413, 2)


def test_a_body_without_end_is_refused_after_some_more_of_it():
    assert read(b"x" * LARGEST, forever=True) == (413, 2 + (16 << 20) // LARGEST)


def test_a_body_whose_head_names_more_than_all_that_is_read_is_refused_at_once():
    assert read(b"x", forever=True, declared=99_999_999_999) == (413, 0)
    assert read(b"x", declared=LARGEST) == (b"x", 1)
    assert read(b"x", declared=LARGEST + 1) == (413, 1)  # the client may write all of it


def test_a_body_has_as_much_more_time_as_it_has_bytes(monkeypatch):
    """Its last chunk comes when the first seconds are over."""
    limits = RequestLimits(max_chars=1, body_timeout=0.05)
    monkeypatch.setattr(security, "_SLOWEST", 1e-6)  # bytes a second
    assert read(b"x", b"y", pause=0.2, limits=limits) == (b"xy", 2)
    monkeypatch.setattr(security, "_SLOWEST", 1e9)
    assert read(b"x", b"y", pause=0.2, limits=limits)[0] == 408


def test_a_slow_body_is_refused():
    assert read(b"x", b"") == (b"x", 2)
    assert read(limits=RequestLimits(body_timeout=0.01))[0] == 408


def test_a_client_that_goes_is_not_waited_for():
    assert read(b"x", gone=True)[0] == 499  # nginx's number: no fault of the client's


@given(st.text(max_size=200))
def test_the_body_limit_has_room_for_any_text_of_the_character_limit(text):
    from urllib.parse import urlencode

    largest = RequestLimits(max_chars=len(text)).max_body_bytes - (1 << 16)
    assert len(json.dumps(text)) - 2 <= largest
    assert len(urlencode({"q": text}, errors="surrogatepass")) - 2 <= largest


@every("encoding", ["gzip", "GZIP", "br", "deflate, gzip", "identity, gzip", "x"])
def test_a_compressed_body_is_refused_by_its_name(client, encoding):
    """Not as a body that is no JSON; the client is told what the server reads."""
    question = json.dumps({"q": "😀", "source": "en", "target": "de"}).encode()
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    answer = client.post("/translate", content=gzip.compress(question), headers=headers)
    assert answer.status_code == 415
    assert answer.json() == {"error": "Content-Encoding: expected a body without compression"}
    assert answer.headers["Accept-Encoding"] == "identity"
    for none in ("", "Identity"):
        headers["Content-Encoding"] = none
        assert client.post("/translate", content=question, headers=headers).status_code == 200


def test_any_of_several_keys_fits(served):
    def statuses(client):
        asked = [{"q": "a"} | ({"api_key": key} if key is not None else {}) for key in given]
        kind = {"Content-Type": "application/json"}
        answers = [client.post("/detect", content=json.dumps(q), headers=kind) for q in asked]
        return [answer.status_code for answer in answers]

    given = ("one", "zwei", "drei", "", None, "\ud800")

    assert statuses(served(keys=["one", "zwei"])) == [200, 200, 403, 400, 400, 403]
    assert statuses(served()) == [200] * 6
