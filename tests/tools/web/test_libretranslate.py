"""What LibreTranslate's clients send, and what its own tests ask for."""

import json
from dataclasses import replace
from urllib.parse import urlencode

import pytest

from glassformer.data.trigrams import profile_of
from glassformer.tools.web.schema import Alternative, Document, TranslatedSegment
from glassformer.tools.web.service import Service

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
        "error": "the body cannot be read as a query string in UTF-8"
    }


def test_a_form_may_hold_letters_as_they_are(client):
    """As `curl -d q=😀` sends them."""
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    body = "q=😀&source=en&target=de".encode()
    assert translated(client.post("/translate", content=body, headers=kind)) == "😀"


def test_json_under_curl_s_own_type_is_json(client, german):
    """As `curl -d '{"q": …}'` without a type sends it; a form's field begins with no brace."""
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    body = "\n " + json.dumps(QUESTION)
    assert translated(client.post("/translate", content=body, headers=kind)) == german


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
    english = [{"language": "en", "confidence": 0}]  # it has no profile
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

    answer = client.post("/translate", json=QUESTION | {"q": "s" * 900, "source": "auto"}).json()
    assert answer["detectedLanguage"] == {"language": "fr", "confidence": 75}
    assert answer["translatedText"] == "fr"
    assert samples[:2] == [["s" * 500]] * 2
    assert [one["language"] for one in client.post("/detect", json={"q": "s"}).json()] == [
        "fr",
        "de",
        "en",
    ]


def test_suggestions_are_refused_in_its_words(client):
    answer = client.post("/suggest", json={"q": "a", "s": "b", "source": "en", "target": "de"})
    assert (answer.status_code, answer.json()) == (
        403,
        {"error": "Suggestions are disabled on this server."},
    )


@pytest.mark.parametrize("sent", ["data", "files", "params"])
def test_of_repeated_fields_the_first_counts_and_line_ends_are_lf(client, sent):
    fields = [("q", "😀\r\n…"), ("q", "Hallo"), ("source", "en"), ("target", "de")]
    if sent == "files":
        fields = [(name, (None, value)) for name, value in fields]
    elif sent == "data":
        content = urlencode(fields)
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        assert translated(client.post("/translate", content=content, headers=kind)) == "😀\n…"
        return
    assert translated(client.post("/translate", **{sent: fields})) == "😀\n…"


def test_weblate_s_placeholders_stay(client):
    text = "A [X7X] dog [X12X]."
    answer = translated(client.post("/translate", json=QUESTION | {"q": text}))
    assert answer.count("[X7X]") == answer.count("[X12X]") == 1


ENGLISH = ["A dog runs on the grass.", "Two men sit in the snow.", "The old hat."]
GERMAN = ["Ein Hund rennt über das Gras.", "Zwei Männer sitzen im Schnee.", "Der alte Hut."]
FRENCH = ["Un chien court sur l'herbe.", "Deux hommes sont dans la neige.", "Le vieux chapeau."]
CHINESE = ["一只狗在草地上跑。", "两个人坐在雪地里。"]
TEXTS = {"en": ENGLISH, "de": GERMAN, "fr": FRENCH, "zh": CHINESE}


def with_profiles(translator, *pairs):
    """A bundle for each pair of languages, as training makes it."""
    return {
        f"{source}-{target}": replace(
            translator,
            bundle=replace(
                translator.bundle,
                languages=(source, target),
                trigrams=(profile_of(TEXTS[source]), profile_of(TEXTS[target])),
            ),
        )
        for source, target in pairs
    }


def detected(client, text):
    found = client.post("/detect", json={"q": text}).json()
    assert [each["confidence"] for each in found] == sorted(
        (each["confidence"] for each in found), reverse=True
    )
    assert found[0]["confidence"] < 100
    return found[0]["language"], found[0]["confidence"]


def test_the_profiles_of_the_bundles_know_the_language(served, translator):
    """Of sources and targets; no translator works for it."""
    client = served(with_profiles(translator, ("en", "de"), ("fr", "de"), ("zh", "en")))
    for text, language in (
        ("Two dogs sit on the grass.", "en"),
        ("Zwei Hunde sitzen im Gras.", "de"),
        ("Deux chiens dans l'herbe.", "fr"),
        ("狗坐在雪地里", "zh"),
    ):
        assert detected(client, text)[0] == language
        assert detected(client, text)[1] > 30
    assert detected(client, "😀 12:30")[1] == 0
    assert "glassformer_batch_segments_count 0.0" in client.get("/metrics").text


def test_the_source_auto_is_one_with_a_translator(served, translator):
    client = served(with_profiles(translator, ("en", "de"), ("fr", "de"), ("de", "en")))
    said = {"q": GERMAN[0], "source": "auto", "target": "de"}
    answer = client.post("/translate", json=said).json()["detectedLanguage"]
    assert answer["language"] in ("en", "fr")
    assert answer["confidence"] < 30
    said = {"q": FRENCH[0], "source": "auto", "target": "de"}
    answer = client.post("/translate", json=said).json()["detectedLanguage"]
    assert answer["language"] == "fr"


def test_one_source_is_not_certain(served, translator):
    client = served(with_profiles(translator, ("en", "de")))
    assert detected(client, GERMAN[1])[0] == "de"
    assert detected(client, "Привет, мир") == ("en", 0)
    auto = {"source": "auto", "target": "de"}
    confidences = [
        client.post("/translate", json=auto | {"q": text}).json()["detectedLanguage"]["confidence"]
        for text in (ENGLISH[0], GERMAN[0], "Привет", "😀")
    ]
    assert 60 < confidences[0] < 100
    assert confidences[1] < 40
    assert confidences[2:] == [0, 0]


def test_letters_that_no_profile_has_go_to_the_translators(served, translator):
    client = served(with_profiles(translator, ("en", "de"), ("fr", "de")))
    for letters in ("Привет, мир", "日本語", "😀"):  # nobody knows them
        assert detected(client, letters)[1] == 0
    assert "glassformer_batch_segments_count 0.0" in client.get("/metrics").text
    assert detected(client, "gdgd")[1] > 0
    assert "glassformer_batch_segments_count 0.0" not in client.get("/metrics").text


def test_spec_is_the_description_of_the_api(client):
    paths = client.get("/spec").json()["paths"]
    for path in ("/detect", "/translate", "/translate_file"):
        assert {"200", "400", "413"} <= paths[path]["post"]["responses"].keys()
    assert "404" in paths["/download_file/{name}"]["get"]["responses"]
    assert client.post("/spec").status_code == 405
