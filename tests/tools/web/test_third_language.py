"""Two translators and a language between them."""

from dataclasses import replace

import pytest

from glassformer.support.errors import UsageError
from glassformer.tools.web.server import Settings, create_app

TEXT = "A dog runs.\nAn old hat."


def between(translator, source, target):
    return replace(translator, bundle=replace(translator.bundle, languages=(source, target)))


@pytest.fixture(scope="module")
def two(translator):
    return {"a": between(translator, "de", "en"), "b": between(translator, "en", "fr")}


@pytest.fixture
def client(served, two):
    return served(two, through="en")


def ask(client, path="/translate", **question):
    question = {"q": TEXT, "source": "de", "target": "fr"} | question
    return client.post(path, json=question)


def translated(client, text, source, target, **options):
    answer = ask(client, q=text, source=source, target=target, **options)
    return answer.json()["translatedText"]


@pytest.mark.parametrize("format", ["text", "html"])
def test_a_text_is_translated_twice(client, format):
    options = {"q": "<p>A dog <b>runs</b>.</p>", "format": "html"} if format == "html" else {}
    text = options.pop("q", TEXT)

    first = translated(client, text, "de", "en", **options)
    second = translated(client, first, "en", "fr", **options)

    assert translated(client, text, "de", "fr", **options) == second
    assert translated(client, text, "auto", "fr", **options) != text


def test_files_and_languages_know_the_way(client):
    languages = {one["code"]: one["targets"] for one in client.get("/languages").json()}
    infos = client.get("/api/v1/translators").json()
    fields = {"source": "de", "target": "fr"}
    sent = client.post("/translate_file", files={"file": ("a.txt", TEXT.encode())}, data=fields)

    assert languages == {"de": ["en", "fr"], "en": ["fr"], "fr": []}
    assert [info["through"] for info in infos] == [None, None, "en"]
    content = client.get(sent.json()["translatedFileUrl"]).text
    assert content == translated(client, TEXT, "de", "fr")


def test_two_translations_have_no_segments(client):
    """Neither links nor shares nor doubts: nobody has compared the text with its translation."""
    [document] = ask(client, "/api/v1/translate", alignment=True).json()["documents"]

    text = translated(client, TEXT, "de", "fr")
    assert document == {"text": text, "segments": [], "alternatives": [], "doubts": []}


def test_terms_and_traces_need_a_translator(client):
    glossary = ask(client, glossary={"dog": "chien"})
    trace = client.post("/api/v1/trace", json={"text": "a", "source": "de", "target": "fr"})

    assert glossary.json()["error"] == "glossary: a translation by way of en takes none"
    assert trace.json()["error"] == "de to fr has no single translator to trace"


def test_nothing_goes_by_way_of_a_language_unless_asked(served, two):
    assert "not available" in ask(served(two)).json()["error"]


def test_a_language_that_joins_nothing_is_refused(two):
    with pytest.raises(UsageError, match="through fr: expected a bundle into this language"):
        create_app(two, Settings(through="fr"))
