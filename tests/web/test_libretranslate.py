"""What LibreTranslate's clients send, and what its own tests ask for."""

import json
from dataclasses import replace

import pytest

from glassformer.web.schema import Alternative, Document, TranslatedSegment
from glassformer.web.service import Service

QUESTION = {"q": "A dog runs.", "source": "en", "target": "de"}


def translated(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()["translatedText"]


@pytest.fixture(scope="module")
def german(client):
    return translated(client.post("/translate", json=QUESTION))


def test_fields_may_stand_in_the_query_string(client, german):
    """As deep-translator sends them."""
    assert translated(client.post("/translate", params=QUESTION)) == german
    split = client.post(
        "/translate", params={"q": QUESTION["q"]}, data={"source": "en", "target": "de"}
    )
    assert translated(split) == german
    assert client.post("/translate?q=%FF&source=en&target=de").json() == {
        "error": "the body is not a query string in UTF-8"
    }


def test_a_form_may_hold_letters_as_they_are(client):
    """As `curl -d q=😀` sends them."""
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    body = "q=😀&source=en&target=de".encode()
    assert translated(client.post("/translate", content=body, headers=kind)) == "😀"


def test_a_further_kind_of_json_is_json(client, german):
    kind = {"Content-Type": "application/vnd.api+json"}
    assert (
        translated(client.post("/translate", content=json.dumps(QUESTION), headers=kind)) == german
    )


@pytest.mark.parametrize("source", ["EN", "en-GB", "en_US", "eng", "eng_Latn"])
def test_a_language_has_many_codes(client, german, source):
    answer = client.post("/translate", json=QUESTION | {"source": source, "target": "de-DE"})
    assert translated(answer) == german


def test_a_text_in_the_target_language_stays(client):
    for source, target in (("en", "en"), ("de", "de-AT"), ("auto", "en")):
        said = QUESTION | {"source": source, "target": target, "alternatives": 2}
        answer = client.post("/translate", json=said).json()
        assert (answer["translatedText"], answer["alternatives"]) == (QUESTION["q"], [])


@pytest.mark.parametrize("text", ["😀😀", "…", "  - \n ***", "{name} !"])
def test_a_text_without_letters_and_digits_stays(client, text):
    assert translated(client.post("/translate", json=QUESTION | {"q": text})) == text


def test_alternatives_are_a_number_in_any_form(client):
    counts = {}
    for asked in (-1, "2", None):
        answer = client.post("/translate", json=QUESTION | {"alternatives": asked}).json()
        counts[asked] = len(answer["alternatives"]) if "alternatives" in answer else None
    assert counts == {-1: None, "2": 2, None: None}


def test_detect_names_the_only_source(client):
    english = [{"language": "en", "confidence": 100}]
    for sent in ({"data": {"q": "Hallo"}}, {"json": {"q": ["Hallo", ""]}}, {"params": {"q": "x"}}):
        assert client.post("/detect", **sent).json() == english
    assert client.get("/detect").status_code == 405
    answer = client.post("/detect")
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "Invalid request: missing q parameter"},
    )


def test_of_several_sources_the_surest_translator_has_it(served, translator, monkeypatch):
    sure = {"en": 0.25, "fr": 0.75, "de": 0.5}
    samples = []

    async def translate(_, pair, texts, **__):
        samples.append(texts)
        found = Alternative(text="", score=0, confidence=sure[pair[0]], alignment=None)
        segment = TranslatedSegment(source=(0, 1), target=(0, 0), hypotheses=[found])
        return [Document(text=pair[0], segments=[segment], alternatives=[])]

    monkeypatch.setattr(Service, "translate", translate)
    pairs = [("en", "de"), ("fr", "de"), ("de", "en")]
    client = served(
        {
            "/".join(pair): replace(translator, bundle=replace(translator.bundle, languages=pair))
            for pair in pairs
        }
    )

    answer = client.post("/translate", json=QUESTION | {"q": "x" * 900, "source": "auto"}).json()
    assert answer["detectedLanguage"] == {"language": "fr", "confidence": 75}
    assert answer["translatedText"] == "fr"
    assert samples[:2] == [["x" * 500]] * 2
    assert [one["language"] for one in client.post("/detect", json={"q": "x"}).json()] == [
        "fr",
        "de",
        "en",
    ]


def test_detect_needs_a_key_where_there_is_one(served):
    client = served(keys=["sesame"])
    assert client.post("/detect", json={"q": "a"}).status_code == 400
    assert client.post("/detect", params={"q": "a", "api_key": "sesame"}).status_code == 200


def test_spec_is_the_description_of_the_api(client):
    paths = client.get("/spec").json()["paths"]
    for path in ("/detect", "/translate", "/translate_file"):
        assert {"200", "400", "413"} <= paths[path]["post"]["responses"].keys()
    assert "404" in paths["/download_file/{name}"]["get"]["responses"]
    assert client.post("/spec").status_code == 405
