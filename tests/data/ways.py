"""The ways of a text to a translator: Python, the command, the server, files and the page."""

import io
import json
import sys
import zipfile
from collections.abc import Callable, Sequence
from html import escape, unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from lxml import etree
from starlette.testclient import TestClient

from glassformer.tools.cli.loading import LoadingOptions
from glassformer.tools.cli.translate import TranslateOptions, run
from glassformer.tools.documents.files.formats import translated_file
from glassformer.tools.web.living_page import about, rounded
from glassformer.tools.web.security import RequestLimits
from glassformer.tools.web.server import Settings, create_app
from glassformer.translator import Translator
from tests.data.exact_translator import ExactEngine
from tests.node import node

Way = Callable[[Translator, Sequence[str]], list[str]]
_REQUEST = 40  # texts of a request
_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_PAGE = """
import { readFileSync } from "node:fs";
import { Engine } from "./engine/engine.js";

export default async ({ about, weights, texts, answers }) => {
  const engine = new Engine(about, new Uint8Array(readFileSync(weights)));
  const asked = [];
  if (answers) {
    engine.align = () => [];
    engine.hypotheses = async ({ text }) => {
      asked.push(text);
      return [{ text: answers[text] ?? "?", logProbability: -1, share: 1 }];
    };
  }
  const translated = [];
  for (const text of texts) translated.push((await engine.translate(text)).text);
  return { translated, asked };
};
"""


def python(translator: Translator, texts: Sequence[str]) -> list[str]:
    return [translation.text for translation in translator.translate(texts)]


def command(translator: Translator, texts: Sequence[str]) -> list[str]:
    """Each text's lines through ``glassformer translate``, one line for one line."""
    lines = [text.replace("\r\n", "\n").split("\n") for text in texts]
    written = iter(_run(translator, [line for of_text in lines for line in of_text]))
    return ["\n".join(next(written) for _ in of_text) for of_text in lines]


def _run(translator: Translator, lines: Sequence[str]) -> list[str]:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "input")
        path.write_bytes("".join(f"{line}\n" for line in lines).encode())
        output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        patch.setattr(LoadingOptions, "load", lambda *_: translator)
        patch.setattr(sys, "stdout", output)
        with path.open(encoding="utf-8") as file:
            patch.setattr(sys, "stdin", file)
            assert run(TranslateOptions(bundle=Path(folder))) == 0
        output.seek(0)
        return output.buffer.read().decode().split("\n")[:-1]


def server(translator: Translator, texts: Sequence[str], **more: Any) -> list[str]:
    """By ``/translate`` with a list of texts, as LibreTranslate's clients send them."""
    source, target = translator.bundle.languages or ("source", "target")
    limits = RequestLimits(max_chars=10**6)
    app = create_app({"bundle": translator}, Settings(limits=limits))
    written: list[str] = []
    with TestClient(app, base_url="http://127.0.0.1") as client:
        for first in range(0, len(texts), _REQUEST):
            asked = {"q": list(texts[first : first + _REQUEST]), "source": source, "target": target}
            asked |= more
            answer = client.post("/translate", json=asked)
            assert answer.status_code == 200, answer.text
            written += answer.json()["translatedText"]
    return written


def page(translator: Translator, texts: Sequence[str]) -> list[str]:
    """By the page's engine in Node; an exact engine answers in the place of the page's model."""
    bundle, weights = rounded(translator.bundle, "int8")
    with TemporaryDirectory() as folder:
        path = Path(folder, "weights")
        path.write_bytes(weights)
        given = {"about": about(bundle, []), "weights": str(path)}
        if isinstance(translator.engine, ExactEngine):
            return _answered(translator.engine, {**given, "texts": list(texts)})
        parts = [list(texts[first : first + _REQUEST]) for first in range(0, len(texts), _REQUEST)]
        return [
            text for part in parts for text in node(_PAGE, {**given, "texts": part})["translated"]
        ]


def _answered(engine: ExactEngine, given: dict[str, Any]) -> list[str]:
    """The page's translations, once the engine has answered all that the page asks."""
    answers: dict[str, str] = {}
    while True:
        found = node(_PAGE, {**given, "answers": answers})
        if not (new := {*found["asked"]} - answers.keys()):
            return found["translated"]
        answers |= {text: engine.answer(text) for text in new}


def catalogue(translator: Translator, texts: Sequence[str]) -> list[str]:
    """The messages of a gettext file."""
    messages = [f'#: {n}\nmsgid {_quoted(text)}\nmsgstr ""\n' for n, text in enumerate(texts)]
    data = _file(translator, "\n".join(messages).encode(), "po").decode()
    entries = data.split("\n#: ")
    return [_unquoted(entry.partition("msgstr ")[2]) for entry in entries]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _unquoted(strings: str) -> str:
    return "".join(json.loads(line) for line in strings.split("\n") if line.startswith('"'))


def html(translator: Translator, texts: Sequence[str]) -> list[str]:
    """The paragraphs of a page, whose signs are no markup."""
    data = "\n".join(f"<p>{escape(text, quote=False)}</p>" for text in texts).encode()
    paragraphs = _file(translator, data, "html").decode().split("</p>")[:-1]
    return [unescape(each.partition("<p>")[2]) for each in paragraphs]


def word(translator: Translator, texts: Sequence[str]) -> list[str]:
    """The paragraphs of a Word document."""
    runs = [f"<w:p><w:r><w:t>{escape(text, quote=False)}</w:t></w:r></w:p>" for text in texts]
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        body = f"<w:document {_WORD}><w:body>{''.join(runs)}</w:body></w:document>"
        archive.writestr("word/document.xml", body)
    data = _file(translator, written.getvalue(), "docx")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        root = etree.fromstring(archive.read("word/document.xml"))
    paragraphs = [each for each in root.iter() if etree.QName(each).localname == "p"]
    return ["".join(paragraph.itertext()) for paragraph in paragraphs]


def subtitles(translator: Translator, texts: Sequence[str]) -> list[str]:
    """The cues of a SubRip file."""
    times = "00:00:01,000 --> 00:00:02,000"
    cues = [f"{number}\n{times}\n{text}\n" for number, text in enumerate(texts, start=1)]
    written = _file(translator, "\n".join(cues).encode(), "srt").decode()
    return [cue.partition(f"{times}\n")[2].strip("\n") for cue in written.split("\n\n")]


def _file(translator: Translator, data: bytes, format: str) -> bytes:
    _, language = translator.bundle.languages or (None, None)
    return translated_file(translator, data, format, language=language)


WAYS: dict[str, Way] = {
    "python": python,
    "command": command,
    "server": server,
    "page": page,
    "po": catalogue,
    "html": html,
    "docx": word,
    "srt": subtitles,
}


def fits(way: str, text: str) -> bool:
    """Whether the file format of a way can hold the text as it is."""
    if way == "html":
        spaces = " ".join(text.split()) == text and not any(c.isspace() and c != " " for c in text)
        return spaces and not any(ord(c) < 32 for c in text)
    if way == "docx":
        return "\n" not in text and not any(ord(c) < 32 and c != "\t" for c in text)
    if way == "srt":
        # SubRip has tags, and its lines are of one text.
        return "\n" not in text and "<" not in text and "&" not in text and text == text.strip()
    if way == "po":
        return not any(ord(c) < 32 and c not in "\n\t\r" for c in text) and bool(text)
    return True
