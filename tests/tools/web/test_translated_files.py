"""Files through the server: LibreTranslate's two addresses, and their bounds."""

import threading
from concurrent.futures import ThreadPoolExecutor

from glassformer.tools.web import translated_files
from glassformer.tools.web.security import RequestLimits
from glassformer.tools.web.translated_files import Store
from tests.tables import every

SRT = b"1\n00:01,000 --> 00:02,000\nA dog runs.\n"


def send(client, data=SRT, name="film.srt", **fields):
    fields = {"source": "en", "target": "de"} | fields
    return client.post("/translate_file", files={"file": (name, data)}, data=fields)


def fetch(client, answer):
    assert answer.status_code == 200, answer.text
    return client.get(answer.json()["translatedFileUrl"])


def test_a_file_is_translated_and_fetched(client, translator):
    [found] = translator.translate(["A dog runs."], beam=1)

    response = fetch(client, send(client))

    assert response.content == SRT.replace(b"A dog runs.", found.text.encode())
    assert response.headers["content-disposition"] == "attachment; filename*=UTF-8''film_de.srt"
    assert response.headers["content-type"] == "application/octet-stream"
    settings = client.get("/frontend/settings").json()
    assert settings["filesTranslation"]
    assert ".docx" in settings["supportedFilesFormat"]


def test_texts_without_a_known_word_are_counted(client):
    known, unknown = (SRT.replace(b"A dog runs.", text) for text in (b"the hat", b"hello world"))
    answers = [send(client, data).json() for data in (known, known + b"\n" + unknown)]
    assert "doubts" not in answers[0]
    assert answers[1]["doubts"] == ["The training had hardly any word of 1 text."]
    html = send(client, b"<p>hello world</p><p>the hat</p>", "a.html").json()
    assert html["doubts"] == answers[1]["doubts"]


def test_text_and_html_files_are_translated_as_texts_are(client):
    question = {"q": "A dog runs.\n\nAn old hat.", "source": "en", "target": "de"}
    expected = client.post("/translate", json=question).json()["translatedText"]

    text = fetch(client, send(client, question["q"].encode(), "a b.TXT", source="auto"))
    page = fetch(client, send(client, b"<pre>A dog</pre>", "é.htm"))

    assert text.text == expected
    assert page.content == b"<pre>A dog</pre>"
    assert page.headers["content-disposition"].endswith("%C3%A9_de.html")


@every(
    ("fields", "message"),
    [
        ({"name": "a.exe"}, "Invalid request: file format not supported: expected .txt, "),
        ({"name": "a"}, "Invalid request: file format not supported"),
        ({"data": b"\xff", "name": "a.txt"}, "not UTF-8 (byte offset 0)"),
        ({"data": b"x", "name": "a.docx"}, "not a Word document"),
        (
            {"data": b"a " * 15_000, "name": "a.txt"},
            "the file has 30,000 characters, more than the limit of 20,000",
        ),
        ({"target": "zz"}, "zz is not supported"),
        ({"target": ""}, "Invalid request: missing target parameter"),
    ],
)
def test_what_cannot_be_translated_is_refused(client, fields, message):
    answer = send(client, **fields)

    assert (answer.status_code, message in answer.json()["error"]) == (400, True), answer.text


def test_a_file_in_the_target_language_stays(client):
    assert fetch(client, send(client, source="de")).content == SRT


def test_a_request_without_a_file_is_refused(client):
    fields = {"source": "en", "target": "de", "file": "a"}

    for body in ({"data": fields}, {"files": {"x": ("a.txt", b"a")}, "data": fields}):
        answer = client.post("/translate_file", **body)
        assert answer.json() == {"error": "Invalid request: missing file parameter"}


def test_files_have_a_size_of_their_own_and_keys(served):
    limits = RequestLimits(max_chars=100, max_file_bytes=100_000)
    client = served(limits=limits, keys=["secret"])
    page = b"<!--" + b"x" * 90_000 + b"-->"

    assert fetch(client, send(client, page, "a.html", api_key="secret")).content == page
    assert send(client, page, "a.html").status_code == 400
    assert send(client, page, "a.html", api_key="no").status_code == 403
    large = send(client, page + page, "a.html", api_key="secret")
    assert large.status_code == 413


def test_a_file_stays_in_memory(client, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    page = b"<!--" + b"x" * (3 << 20) + b"-->"
    assert fetch(client, send(client, page, "a.html")).content == page


def test_files_wait_for_their_turn(served, monkeypatch):
    """30 pupils send a file together: all of them are answered."""
    began, gate, read_file = threading.Semaphore(0), threading.Event(), translated_files.read_file

    def read(*words):
        began.release()
        assert gate.wait(20)
        return read_file(*words)

    monkeypatch.setattr(translated_files, "read_file", read)
    client = served(limits=RequestLimits(max_files=2))
    with ThreadPoolExecutor(30) as pupils:
        answers = [pupils.submit(send, client) for _ in range(30)]
        for _ in range(2):
            assert began.acquire(timeout=20)
        assert not began.acquire(blocking=False)
        gate.set()
        assert {answer.result(60).status_code for answer in answers} == {200}


def test_a_slow_file_is_given_up_and_keeps_its_thread(served, monkeypatch):
    """The client leaves or has waited enough; no further file is read before the thread ends."""
    end, began = threading.Event(), []
    monkeypatch.setattr(translated_files, "read_file", lambda *_: (began.append(1), end.wait()))
    client = served(limits=RequestLimits(timeout=0.2, max_files=1))
    try:
        for _ in range(2):
            answer = send(client)
            assert answer.status_code == 503
            assert answer.json()["error"].startswith("not finished within 0.2 s")
    finally:
        end.set()
    assert began == [1]


def test_unknown_names_are_not_found(client):
    for name in ("a.txt", "..%2f..%2fetc%2fpasswd"):
        assert client.get(f"/download_file/{name}").status_code == 404


def test_the_store_forgets_the_oldest_files():
    store = Store(max_bytes=10)
    first, second, third = (store.add(b"1234", "a.txt") for _ in range(3))

    assert store.get(first) is None
    assert store.get(second).data == store.get(third).data == b"1234"
    assert first != second


def test_the_store_forgets_files_after_their_time():
    store = Store(seconds=0)

    assert store.get(store.add(b"1", "a.txt")) is None
