"""The addresses: LibreTranslate's shapes and status codes, and our own that say more."""

import asyncio
import json
import math
from dataclasses import replace

import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from glassformer.alignment.doubts import NO_WORD
from glassformer.data.terms import Terms
from glassformer.tools.documents.html import translated_html
from glassformer.tools.inspection.trace.schema import Trace
from glassformer.tools.web import service
from glassformer.tools.web.queue import Batcher
from glassformer.tools.web.server import Settings, create_app
from glassformer.tools.web.service import Service
from glassformer.translator import Translator
from tests.tables import every

TEXTS = ["A dog runs.", "Two men sit in the snow.", "An old hat."]
NOT_READ = "the body cannot be read as application/json in UTF-8"


def post(client, path, said):
    """As JSON that escapes, so that it can hold what is no text."""
    kind = {"Content-Type": "application/json"}
    return client.post(path, content=json.dumps(said).encode(), headers=kind)


def ask(client, **question):
    said = {"q": TEXTS[0], "source": "en", "target": "de"} | question
    return post(client, "/translate", {k: v for k, v in said.items() if v is not None})


def test_health_languages_and_settings(client):
    assert client.get("/health").json() == {"status": "ok", "engine": "ctranslate2"}
    assert client.get("/languages").json() == [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
    ]
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == 2000
    assert settings["keyRequired"] is False
    assert settings["language"]["target"] == {"code": "de", "name": "German"}


@pytest.mark.parametrize("path", ["/", "/health", "/languages", "/frontend/settings", "/spec"])
def test_what_can_be_read_has_a_head(client, path):
    """Some load balancers ask for the head alone."""
    head, whole = client.head(path), client.get(path)

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]


@pytest.mark.parametrize("sent", ["json", "data", "files"])  # urlencoded, and multipart
def test_a_text_is_translated_as_the_library_does(client, translator, sent):
    said = {"q": TEXTS[1], "source": "en", "target": "de", "format": ""}
    if sent == "files":
        said = {name: (None, value) for name, value in said.items()}

    answer = client.post("/translate", **{sent: said})

    assert answer.status_code == 200
    [expected] = translator.translate([TEXTS[1]], beam=1)
    assert answer.json().keys() - {"doubts"} == {"translatedText"}
    assert answer.json()["translatedText"] == expected.text


def test_a_list_is_answered_by_a_list(client, translator):
    found = [one.text for one in translator.translate(TEXTS, beam=1)]

    assert ask(client, q=TEXTS).json()["translatedText"] == found
    others = ask(client, q=[TEXTS[2], "", TEXTS[0]]).json()
    assert others["translatedText"] == [found[2], "", found[0]]


def test_lines_are_translated_one_by_one(client, translator):
    found = [one.text for one in translator.translate(TEXTS, beam=1)]

    answer = ask(client, q="{}\n\n  {}\r\n{}\n".format(*TEXTS)).json()

    assert answer["translatedText"] == "{}\n\n  {}\r\n{}\n".format(*found)


def test_html_is_translated_as_the_library_does(client, translator):
    text = "<p title='An old hat.'>A <b>dog</b> runs.</p><pre>An old hat.</pre>"
    [expected] = translated_html(translator, [text], beam=1)

    answer = ask(client, q=text, format="html", alternatives=2)
    several = ask(client, q=[text, "<hr>", TEXTS[0]], format="html").json()["translatedText"]

    translation = {"translatedText": expected, "alternatives": [], "doubts": [NO_WORD]}
    assert answer.json() == translation
    assert several == [expected, "<hr>", translator.translate([TEXTS[0]], beam=1)[0].text]
    assert "<pre>An old hat.</pre>" in expected
    question = {"q": text, "target": "de", "format": "html"}
    assert post(client, "/api/v1/translate", question).json()["documents"] == [
        {"text": expected, "segments": [], "alternatives": [], "doubts": [NO_WORD]}
    ]


def test_protected_spans_are_kept(client):
    assert "{name}" in ask(client, q="A dog {name} runs.").json()["translatedText"]
    assert ask(client, q="😀 https://a.org").json()["translatedText"] == "😀 https://a.org"


def test_alternatives_are_the_next_best_that_read_differently(client, translator):
    best = translator.translate([TEXTS[0]], n_best=5)[0]
    others = [one.text for one in best.alternatives]

    said = ask(client, alternatives=4).json()

    assert said["translatedText"] == best.text
    assert said["alternatives"] == [t for t in dict.fromkeys(others) if t != best.text]
    several = ask(client, q=TEXTS[:1], alternatives=4).json()
    assert several == {key: [value] for key, value in said.items()}


def test_auto_is_the_only_source_that_there_is(client):
    one = ask(client, source="auto").json()

    assert one["detectedLanguage"] == {"confidence": 0, "language": "en"}
    assert one["translatedText"] == ask(client).json()["translatedText"]
    assert ask(client, q=TEXTS, source="auto").json()["detectedLanguage"] == [
        {"confidence": 0, "language": "en"}
    ] * len(TEXTS)


@every(
    ("question", "error"),
    [
        ({"q": None}, "Invalid request: missing q parameter"),
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"q": []}, "Invalid request: missing q parameter"),
        ({"source": None}, "Invalid request: missing source parameter"),
        ({"target": None}, "Invalid request: missing target parameter"),
        ({"source": "fr"}, "fr is not supported"),
        ({"target": "<b>"}, "<b> is not supported"),
        (
            {"source": "de", "target": "en"},
            "English (en) is not available as a target language from German (de)",
        ),
        ({"format": "xml"}, "xml format is not supported"),
        ({"alternatives": 5}, "Invalid request: alternatives parameter must be <= 4"),
        ({"alternatives": "abc"}, "Invalid request: alternatives parameter is not a number"),
        ({"q": 7}, "q: expected text"),
        ({"source": "x" * 41}, "source: expected at most 40 characters"),
        ({"q": ["a", None]}, "q: item 2: expected text"),
        ({"q": ["a"], "glossary": {"a": ["b", 7]}}, "glossary: item 2: expected text"),
        ({"q": "\ud800"}, "q: half a surrogate pair, which is not Unicode text"),
        ({"q": "a" * 2001}, "Invalid request: request (2001) exceeds text limit (2000)"),
        ({"q": ["a"] * 1001}, "Invalid request: request (2001) exceeds text limit (2000)"),
    ],
)
def test_a_question_that_cannot_be_is_refused(client, question, error):
    answer = ask(client, **question)

    assert (answer.status_code, answer.json()) == (400, {"error": error})


@every(
    ("kind", "body", "status", "error"),
    [
        ("application/json", b"[]", 400, "the body must be one JSON object"),
        ("application/json", b"{", 400, NOT_READ),
        (
            "application/json",
            b'{"q": "\xff"}',
            400,
            NOT_READ,
        ),
        (
            "application/json",
            b"[" * 50_000,
            400,
            NOT_READ,
        ),
        (
            "application/x-www-form-urlencoded",
            b"q=%FF&source=en&target=de",
            400,
            "the body cannot be read as application/x-www-form-urlencoded in UTF-8",
        ),
        (
            "multipart/form-data",
            b"q=a",
            400,
            "the body cannot be read as multipart/form-data in UTF-8",
        ),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="q"; filename="f"\r\n\r\na\r\n--x--\r\n',
            400,
            "the body cannot be read as multipart/form-data in UTF-8",
        ),
        (
            "text/plain",
            b"q",
            415,
            "Content-Type: expected application/json, application/x-www-form-urlencoded"
            " or multipart/form-data",
        ),
        (
            "application/json",
            b" " * 100_000,
            413,
            "the body is larger than 89,536 bytes: send less text at once",
        ),
    ],
)
def test_a_body_that_cannot_be_is_refused(client, kind, body, status, error):
    answer = client.post("/translate", content=body, headers={"Content-Type": kind})

    assert (answer.status_code, answer.json()) == (status, {"error": error})


def test_errors_of_the_routes_have_the_same_shape(client):
    for method, path, status, error in (
        ("GET", "/nothing", 404, "Not Found"),
        ("GET", "/translate", 405, "Method Not Allowed"),
        ("POST", "/api/v1/translate", 400, "Invalid request: body: Field required"),
    ):
        answer = client.request(method, path)
        assert answer.status_code == status
        assert list(answer.json()) == ["error"]
        if status != 400:
            assert answer.json() == {"error": error}


def test_documents_say_where_everything_is(client):
    text = f"😀 {TEXTS[0]}\n\n  {TEXTS[1]}"

    said = client.post(
        "/api/v1/translate", json={"q": text, "target": "de", "alternatives": 2}
    ).json()

    (document,) = said["documents"]
    assert (said["source"], said["target"]) == ("en", "de")
    assert [text[slice(*one["source"])] for one in document["segments"]] == [
        f"😀 {TEXTS[0]}",
        TEXTS[1],
    ]
    for segment in document["segments"]:
        best = segment["hypotheses"][0]
        assert document["text"][slice(*segment["target"])] == best["text"]
        assert best["alignment"] is None
        scores = [one["score"] for one in segment["hypotheses"]]
        assert scores == sorted(scores, reverse=True)


def test_confidence_is_the_mean_probability_of_a_token(client, translator):
    said = client.post("/api/v1/translate", json={"q": TEXTS[1], "target": "de"}).json()
    best = said["documents"][0]["segments"][0]["hypotheses"][0]

    (count,) = translator.count_tokens([best["text"]])
    log_probability = best["score"] * ((5 + count) / 6) ** 0.6  # Wu et al. 2016, equation 14

    assert best["confidence"] == pytest.approx(math.exp(log_probability) ** (1 / count))


def test_a_share_is_the_probability_among_those_shown(client, translator):
    asked = {"q": TEXTS[1], "target": "de", "alternatives": 3}
    said = client.post("/api/v1/translate", json=asked).json()
    hypotheses = said["documents"][0]["segments"][0]["hypotheses"]
    texts = [each["text"] for each in hypotheses]

    counts = translator.count_tokens(texts)
    scores = [
        each["score"] * ((5 + n) / 6) ** 0.6 for each, n in zip(hypotheses, counts, strict=True)
    ]
    probabilities = [math.exp(score) for score in scores]
    assert len(texts) > 1
    assert [each["share"] for each in hypotheses] == pytest.approx(
        [probability / sum(probabilities) for probability in probabilities]
    )


def test_doubts_stand_beside_the_translation(client):
    asked = {"q": ["An old hat of 1998.", "12"], "source": "en", "target": "de"}
    richer = client.post("/api/v1/translate", json=asked).json()["documents"]
    [first, second] = client.post("/translate", json=asked).json()["doubts"]
    assert first == richer[0]["segments"][0]["hypotheses"][0]["doubts"] == richer[0]["doubts"]
    assert "The translation lacks these numbers of the text: 1998." in first
    assert second == []
    assert "doubts" not in client.post("/translate", json=asked | {"q": "12"}).json()


def test_alignment_is_the_librarys(client, translator):
    said = client.post(
        "/api/v1/translate", json={"q": TEXTS[1], "target": "de", "alignment": True}
    ).json()
    best = said["documents"][0]["segments"][0]["hypotheses"][0]

    (links,) = translator.align([TEXTS[1]], [best["text"]])
    assert [(tuple(one["source"]), tuple(one["target"])) for one in best["alignment"]] == [
        (link.source, link.target) for link in links
    ]


def test_a_trace_is_given_as_the_library_writes_it(client, translator):
    answer = client.post("/api/v1/trace", json={"text": TEXTS[0], "beam": 2, "top": 3})

    traced = TypeAdapter(Trace).validate_json(answer.text)
    assert traced.source.text == TEXTS[0]
    assert traced.answer.text == translator.translate([TEXTS[0]], beam=2)[0].text


@every(
    ("question", "part"),
    [
        ({}, "text: it is missing"),
        ({"text": 7}, "text: expected text"),
        ({"text": "  "}, "no word"),
        ({"text": "a", "forced_prefix": [10**6]}, "1000000"),
        ({"text": "a", "beam": 0}, "beam: "),
        ({"text": "a", "beam": 101}, "beam: expected at most 100"),
        ({"text": "a", "unheard": 1}, "unheard: "),
        ({"text": "a", "reference": "\udc00"}, "reference: half a surrogate"),
    ],
)
def test_a_trace_that_cannot_be_is_refused(client, question, part):
    answer = post(client, "/api/v1/trace", question)

    assert answer.status_code == 400
    assert part in answer.json()["error"]


TERMS = {"dog": ["Hund", "Köter"], "hat": "Hut"}


def beam_server(translator, **settings):
    """A server with a beam of 3."""
    app = create_app({"toy": translator}, Settings(beam=3, **settings))
    return TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)


def test_the_server_s_terms_and_the_request_s_own(translator):
    own = Terms.of({"dog": "Schnee"})
    with beam_server(translator, glossaries=[own]) as client:
        plain = ask(client, q=TEXTS).json()["translatedText"]
        asked = ask(client, q=TEXTS, glossary={"hat": "Hut"}).json()["translatedText"]
        other = ask(client, q=TEXTS, glossary=TERMS).json()["translatedText"]

    def expected(glossary):
        found = translator.translate(TEXTS, beam=3, glossary=glossary)
        return [item.text for item in found]

    assert plain == expected({"dog": "Schnee"})
    assert asked == expected({"dog": "Schnee", "hat": "Hut"})
    assert other == expected(TERMS)
    assert len({plain[0], other[0]}) == len({plain[2], asked[2]}) == 2


def test_a_trace_shows_the_places_of_the_server_s_terms(translator):
    with beam_server(translator, glossaries=[Terms.of({"dog": "Schnee"})]) as client:
        asked = {"text": TEXTS[0], "beam": 3}
        traced = client.post("/api/v1/trace", json=asked).json()
    [term] = traced["terms"]
    assert (term["term"], term["forms"]) == ("dog", ["Schnee"])
    assert term["pieces"]
    [free] = translator.translate(TEXTS[:1], beam=3)
    assert traced["answer"]["text"] == free.text


def test_requests_with_different_terms_share_a_batch_and_keep_their_own(translator):
    service = Service({("en", "de"): translator}, Batcher(), beam=3)
    glossaries = [{}, TERMS, {"dog": "Schnee"}, TERMS]

    async def ask_all():
        asked = [service.translate(("en", "de"), TEXTS, glossary=each) for each in glossaries]
        return await asyncio.gather(*asked)

    answers = asyncio.run(ask_all())
    service.batcher.close()
    for glossary, documents in zip(glossaries, answers, strict=True):
        found = translator.translate(TEXTS, beam=3, glossary=glossary)
        assert [document.text for document in documents] == [item.text for item in found]


@every(
    ("glossary", "error"),
    [
        ({"dog": "x" * 101}, "glossary: expected at most 100 characters"),
        ({"d" * 101: "x"}, "glossary: expected at most 100 characters"),
        ({"dog": ["x"] * 21}, "glossary: "),
        ({"dog": []}, "glossary: "),
        ({"dog": 7}, "glossary: "),
        (
            {f"dog{n}": "x" for n in range(101)},
            "glossary: expected at most 100 items",
        ),
        ({"dog": " "}, "glossary: the target term of 'dog' is blank: write a word"),
        ([["dog", "Hund"]], "glossary: expected an object"),
    ],
)
def test_a_glossary_out_of_its_limits_is_refused(translator, glossary, error):
    with beam_server(translator) as client:
        answer = ask(client, glossary=glossary)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(error)


def test_a_greedy_server_has_terms_too(client, translator):
    answer = ask(client, q=TEXTS, glossary=TERMS).json()["translatedText"]
    found = translator.translate(TEXTS, beam=1, glossary=TERMS)
    assert answer == [item.text for item in found]
    assert answer[0] != ask(client, q=TEXTS).json()["translatedText"][0]


def test_what_a_translator_has_learnt_from_is_said_in_words():
    about = {"data": "train.en and train.de", "pairs": 28_998}
    assert service._learnt_from(about) == "train.en and train.de (28,998 pairs)"
    assert service._learnt_from({"data": "train.tsv"}) == "train.tsv"
    assert service._learnt_from({"imported from": "Marian"}) is None


def test_examples_are_for_those_who_may_translate(served, translator):
    def examples(client, **headers):
        answer = client.get("/api/v1/translators", headers=headers)
        return answer.json()[0]["examples"]

    def with_examples(found):
        return {"toy": Translator(replace(translator.bundle, examples=tuple(found)))}

    texts = ["An old hat.", "Two men sing."]
    assert examples(served(with_examples(texts))) == texts
    assert examples(served(with_examples([]))) == []
    guarded = served(with_examples(texts), keys=["sesame"])
    assert examples(guarded) == []
    assert examples(guarded, Authorization="Bearer sesame") == texts
    wrong = guarded.get("/api/v1/translators", headers={"Authorization": "Bearer wheat"})
    assert (wrong.status_code, wrong.json()) == (403, {"error": "Invalid API key"})
