"""Whatever a stranger sends: an answer or a refusal, in JSON, never a fault of ours."""

import json
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# The server's threads may use `random` while an example is drawn; examples do not.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
# The server lives through all examples, as it does in life.
ROUGH = settings(
    deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
ANY_TEXT = st.text(st.characters(), max_size=20)  # control characters and lone surrogates too
NASTY = st.one_of(
    ANY_TEXT,
    st.sampled_from(
        [
            "<script>alert(1)</script>",
            "\x00\x01\x1b[31m\x7f",
            "\u202eabc\u2066",
            "A\u0301" * 9,
            "\ufeff",
            "𝕬😀" * 5,
            "{{7*7}} ${jndi:ldap://x} %s %n",
            "\\ud83d",
            "a" * 60,
        ]
    ),
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | NASTY,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=8,
)
KINDS = (
    "application/json",
    "application/x-www-form-urlencoded",
    "application/xml",
    "multipart/form-data; boundary=x",
)
PATHS = st.sampled_from(["/translate", "/api/v1/translate", "/api/v1/trace"])


def check(answer) -> None:
    assert answer.status_code in (200, 400, 403, 413, 415), answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    said = json.loads(answer.content)
    if answer.status_code != 200:
        assert list(said) == ["error"]
        assert isinstance(said["error"], str)


@ROUGH
@given(PATHS, st.binary(max_size=300), st.sampled_from(KINDS))
def test_any_bytes(client, path, body, kind):
    check(client.post(path, content=body, headers={"Content-Type": kind}))


@ROUGH
@given(PATHS, ANY_JSON)
def test_any_json(client, path, said):
    body = json.dumps(said).encode()
    check(client.post(path, content=body, headers={"Content-Type": "application/json"}))


@ROUGH
@given(
    PATHS,
    st.fixed_dictionaries(
        {"q": NASTY | st.lists(NASTY, max_size=3)},
        optional={
            "text": NASTY,
            "source": st.sampled_from(["en", "auto"]) | ANY_JSON,
            "target": st.just("de") | ANY_JSON,
            "alternatives": st.integers(-1, 5) | ANY_JSON,
            "alignment": st.booleans(),
            "api_key": ANY_JSON,
            "beam": st.integers(0, 3) | ANY_JSON,
            "forced_prefix": ANY_JSON,
        },
    ),
)
def test_any_question(client, path, question):
    if path == "/api/v1/trace":
        question = {"text": question.pop("q")} | question
    body = json.dumps({"source": "en", "target": "de"} | question).encode()

    check(client.post(path, content=body, headers={"Content-Type": "application/json"}))


@settings(ROUGH, max_examples=8)
@given(st.lists(NASTY, min_size=1, max_size=2))
def test_a_text_that_is_one_gets_its_own_answer(client, translator, texts):
    """Whatever it holds, and whatever came before: what the library says to its lines."""
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    lines = [[line.strip() for line in text.replace("\r", "\n").split("\n")] for text in texts]

    answer = client.post("/translate", json={"q": texts, "source": "en", "target": "de"})

    protecting = translator
    expected = [[one.text for one in protecting.translate(some, beam=1)] for some in lines]
    if answer.status_code == 400:
        assert "exceeds text limit" in answer.json()["error"]
        return
    for said, wanted in zip(answer.json()["translatedText"], expected, strict=True):
        assert "".join(said.split()) == "".join("".join(wanted).split())


@pytest.mark.parametrize("depth", [100, 900, 5000, 40_000])
def test_deep_json(client, depth):
    for path in ("/translate", "/api/v1/translate", "/api/v1/trace"):
        for body in ("[" * depth + "]" * depth, '{"q":' * depth + "1" + "}" * depth):
            check(client.post(path, content=body, headers={"Content-Type": "application/json"}))


def test_deep_and_long_forms(client):
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    for body in (
        "q=" * 20_000,
        "&" * 80_000,
        "q=a&" * 5000,
        f"q={quote('<b>')}&source=en&target=de",
    ):
        check(client.post("/translate", content=body, headers=kind))
