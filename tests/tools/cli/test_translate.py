"""``translate`` through the real command line: one line for one line, whatever the lines hold."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch

from glassformer.alignment.doubts import NO_WORD
from glassformer.bundle import load_bundle, save_bundle
from glassformer.tools.cli.main import main
from glassformer.tools.cli.translate import TranslateOptions, _rows
from glassformer.tools.documents.html import translated_html
from glassformer.translator import Translation, Translator
from tests.processes import Command
from tests.tables import every


@pytest.fixture
def told(bundle_directory, tmp_path, monkeypatch, capfdbinary):
    """Runs the command on bytes; gives the exit status, its output, and its errors."""

    def call(data: bytes, *words, bundle=bundle_directory):
        path = tmp_path / "input"
        path.write_bytes(data)
        with path.open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            status = main(["translate", str(bundle), "--device", "cpu", *map(str, words)])
        said = capfdbinary.readouterr()
        return status, said.out, said.err.decode()

    return call


@pytest.fixture
def translate(told):
    """As `told`, without the line that the toy translator hardly knows a word."""

    def call(data: bytes, *words, **options):
        status, out, err = told(data, *words, **options)
        return status, out, re.sub("glassformer: the training had hardly .*\n", "", err)

    return call


@pytest.fixture(scope="module")
def translator(bundle_directory):
    return Translator.load(bundle_directory, device="cpu")


ODD = {
    "empty": "",
    "one character": "x",
    "spaces": "     ",
    "han": "漢" * 5000,
    "emoji": "🐄" * 5000,
    "letters": "word " * 300,
    "script": "Ένας σκύλος τρέχει",
    "line separator": "a\u2028b",
    "next line": "a\u0085b",
    "bare CR": "a\rb",
    "NUL": "a\x00b",
    "CR": "\r",
    "mark inside": "a\ufeffb",
    "unit separators": "a\x1c\x1d\x1e\x0b\x0cb",
}


def test_any_line_comes_back_as_one_line_in_its_place(translate, translator):
    texts = [text for odd in ODD.values() for text in (odd, "A dog runs.")]

    status, out, err = translate("".join(f"{text}\n" for text in texts).encode(), "--beam", 1)

    assert (status, err) == (0, "")
    answers = out.decode().split("\n")
    assert len(answers) == len(texts) + 1
    assert answers[-1] == ""
    for text, answer in zip(texts, answers, strict=False):
        if len(text) < 100:
            alone = translator.translate([text.removesuffix("\r")], beam=1)[0]
            assert answer == alone.text.replace("\n", " ")
    blank = [name for name, answer in zip(ODD, answers[::2], strict=False) if not answer.strip()]
    assert blank == ["empty", "spaces", "CR"]


def test_line_ends_and_a_byte_order_mark_are_no_text(translate):
    plain = translate(b"A dog runs.\nAn old hat.\n")

    assert translate(b"\xef\xbb\xbfA dog runs.\r\nAn old hat.\r\n") == plain
    assert translate(b"A dog runs.\nAn old hat.") == plain
    assert plain[1].count(b"\n") == 2


def test_no_input_gives_no_output(translate):
    assert translate(b"") == (0, b"", "")
    assert translate(b"\n") == (0, b"\n", "")


def test_many_blocks_of_input_keep_their_order(translate, translator, monkeypatch):
    texts = [f"{number} {'hat' * (number % 7)}" for number in range(12)]
    expected = "".join(f"{t.text}\n" for t in translator.translate(texts, beam=1)).encode()
    monkeypatch.setattr("glassformer.tools.cli.translate._AT_ONCE", 7)  # cuts lines and characters

    assert translate("\n".join(texts).encode(), "--beam", 1) == (0, expected, "")
    assert translate("ä\nö\nü\n".encode())[1].count(b"\n") == 3


def test_a_line_feed_that_the_model_writes_is_no_line_end(translate, bundle_directory, tmp_path):
    bundle = load_bundle(bundle_directory)
    line_feed = bundle.target_tokenizer.encode("\n")[-1]
    assert bundle.target_tokenizer.subword(line_feed) == "<0x0A>"
    with torch.no_grad():
        bundle.model.output_bias[line_feed] = 100.0
    save_bundle(bundle, tmp_path / "bundle")

    _, out, _ = translate(b"A dog.\nA hat.\n", bundle=tmp_path / "bundle")

    assert out.count(b"\n") == 2
    assert all(line.strip() for line in out.splitlines())
    found = translate(b"A dog.\n", "--n-best", 2, bundle=tmp_path / "bundle")[1]
    assert found.count(b"\n") == len(found.splitlines())
    options = TranslateOptions(bundle=tmp_path)
    line = _rows(bundle, Translation("one\ntwo", -1.0), 0, options, "a b")
    assert line == "one two\n"


def test_bytes_that_are_not_utf8_are_named_and_what_is_before_them_answered(translate):
    good, bad = b"A dog runs.\nAn old hat.\n", b"A d\xffg.\nA hat.\n"
    expected = translate(good)[1]

    status, out, err = translate(good + bad)

    assert status == 1
    assert out == expected
    assert err == (
        "glassformer: error: standard input, line 3: not UTF-8: 0xFF at byte offset 3 of the line:"
        " convert the file, e.g. with 'iconv -f LATIN1 -t UTF-8'\n"
    )


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(translate, monkeypatch):
    monkeypatch.setattr("glassformer.tools.cli.translate.MAX_LINE_BYTES", 1 << 20)
    expected = translate(b"A dog.\n")[1]

    status, out, err = translate(b"A dog.\n" + b"x" * ((1 << 20) + (1 << 17)))

    assert (status, out) == (1, expected)
    assert "standard input, line 2: the line is longer than 1 MiB" in err


def test_protected_spans_are_kept_unless_told_otherwise(translate, translator):
    texts = ["A dog {name} runs.", "An old hat.", "😀 https://a.org/x"]
    plain = "".join(
        f"{t.text}\n" for t in translator.translate(texts, beam=1, protect=False)
    ).encode()
    data = "\n".join(texts).encode()

    kept = translate(data, "--beam", 1)[1].decode().split("\n")

    assert translate(data, "--beam", 1, "--no-protect") == (0, plain, "")
    assert "{name}" in kept[0]
    assert kept[1:] == [plain.decode().split("\n")[1], texts[2], ""]


@pytest.mark.parametrize(
    ("data", "format_"),
    [(b"hello world\n2030\nthe hat\n", "text"), (b"<p>hello world<p>2030<p>the hat", "html")],
)
def test_texts_without_a_known_word_are_counted(told, data, format_):
    _, _, err = told(data, "--format", format_)
    assert err == (
        "glassformer: the training had hardly any word of 1 text, such as 'hello world':"
        " look at the translation\n"
    )
    assert told(b"the hat", "--format", format_)[2] == ""


def test_an_html_document_is_translated_as_a_whole(translate, translator):
    text = "<!DOCTYPE html>\n<p>A <b>dog</b>\nruns.</p>\n<script>A dog runs.</script>"
    [expected] = translated_html(translator, [text], beam=1)

    assert translate(text.encode(), "--format", "html", "--beam", 1) == (0, expected.encode(), "")
    assert expected.startswith("<!DOCTYPE html>\n<p>")
    assert expected.endswith("</p>\n<script>A dog runs.</script>")
    assert translate(b"", "--format", "html") == (0, b"", "")


@pytest.mark.parametrize(
    "words", [["--alignment"], ["--json"], ["--n-best", 2], ["--prefix", "Ein"], ["--sample"]]
)
def test_options_for_lines_are_refused_for_html(translate, words):
    status, out, err = translate(b"<p>A dog.", "--format", "html", *words)

    assert (status, out) == (2, b"")
    assert err == (
        f"glassformer: error: {words[0]} has no use with --format html, whose output is one file:"
        " leave one of them out\n"
    )


def test_html_that_is_not_utf8_is_named(translate):
    status, out, err = translate(b"<p>A d\xffg", "--format", "html")

    assert (status, out) == (1, b"")
    assert err == (
        "glassformer: error: standard input: not UTF-8 (byte offset 6): save it as UTF-8\n"
    )


def test_n_best_names_the_line_of_each_translation(translate, translator):
    texts = ["A dog runs.", "An old hat."]

    _, out, _ = translate("\n".join(texts).encode(), "--n-best", 3, "--beam", 4)

    expected = [
        (str(number), one.text, one.score)
        for number, best in enumerate(translator.translate(texts, beam=4, n_best=3))
        for one in (best, *best.alternatives)
    ]
    rows = [line.split(" ||| ") for line in out.decode().split("\n")[:-1]]
    assert [(number, text) for number, text, _ in rows] == [row[:2] for row in expected]
    assert all(re.fullmatch(r"-?\d+\.\d{4}", score) for *_, score in rows)
    scores = [float(score) for *_, score in rows]  # of other batches, so the last digit may differ
    assert scores == pytest.approx([row[2] for row in expected], abs=2e-4)
    assert len(expected) == 6


def test_json_is_one_object_a_line(translate, translator):
    _, out, _ = translate("A dog.\n\n漢\n".encode(), "--json", "--n-best", 2)

    records = [json.loads(line) for line in out.decode().split("\n")[:-1]]
    assert [record["text"] for record in records] == [
        item.text for item in translator.translate(["A dog.", "", "漢"], n_best=2)
    ]
    assert [len(record["alternatives"]) for record in records] == [1, 0, 1]
    assert set(records[0]["alternatives"][0]) == {"text", "score"}


def test_json_with_an_alignment_has_doubts(told):
    _, out, _ = told(b"hello world\nthe hat\n", "--json", "--alignment")

    unknown, known = (json.loads(line)["doubts"] for line in out.decode().splitlines())
    assert NO_WORD in unknown
    assert NO_WORD not in known


def test_a_prefix_begins_each_translation(translate):
    _, out, _ = translate(b"A dog.\nA hat.\n\n", "--prefix", "Ein Hund")

    assert [line.startswith("Ein Hund") for line in out.decode().split("\n")[:2]] == [True, True]
    _, out, _ = translate(b" " * 2500 + b"A dog.\n", "--prefix", "Ein Hund")  # in several pieces
    assert out.decode().strip().startswith("Ein Hund")


def test_a_glossary_s_terms_stand_in_the_translations(translate, translator, tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("# animals\ndog\tHund\tKöter\nsnow\tSchnee\n", "utf-8")
    texts = ["A dog.", "A hat.", "", "Snow"]
    glossary = {"dog": ["Hund", "Köter"], "snow": "Schnee"}
    expected = [item.text for item in translator.translate(texts, glossary=glossary)]
    assert "Schnee" in expected[3]

    status, out, err = translate("\n".join(texts).encode(), "--glossary", path)

    assert (status, err) == (0, "")
    assert out.decode().split("\n")[:-1] == expected
    path.write_text("dog\tHund\ncat Katze\n", "utf-8")
    assert translate(b"A dog.\n", "--glossary", path) == (
        1,
        b"",
        f"glassformer: error: {path}, line 2: no tab: expected a source term, a tab and its target"
        " term\n",
    )


def test_lines_without_a_term_of_the_glossary_are_counted(translate, tmp_path, monkeypatch):
    path = tmp_path / "terms.tsv"
    path.write_text("dog\tHund\n", "utf-8")
    translations = [Translation(text, -1.0) for text in ("Hut", "Hund", "Tier", "Tiere")]
    monkeypatch.setattr(Translator, "translate", lambda *_, **__: translations)

    status, out, err = translate(b"A hat.\nA dog.\nA dog.\nA dog.\n", "--glossary", path)

    assert (status, out) == (0, b"Hut\nHund\nTier\nTiere\n")
    assert err == (
        "glassformer: a term of the glossary has no place in 2 lines, the first is line 3: no word"
        " of the translation belongs to it\n"
    )


def test_messages_without_a_right_translation_are_counted(translate, monkeypatch):
    translations = [Translation(text, -1.0) for text in ("Hund", "%d %d", "Tiere", " ")]
    monkeypatch.setattr(Translator, "translate", lambda *_, **__: translations)
    sources = ("dog", "%d dogs", "%s has animals", "all")
    messages = [f'#, c-format\nmsgid "{source}"\nmsgstr ""\n' for source in sources]

    data = "\n".join(messages).encode()
    status, out, err = translate(data, "--format", "po", "--no-protect")

    assert status == 0
    assert out.count(b'msgstr ""') == 3
    assert err == (
        "glassformer: 3 texts without a translation, the first is '%d dogs': the translations are"
        " blank, or lack or add a placeholder\n"
    )


def test_the_settings_of_the_search_are_the_library_s(translate, translator):
    words = ["--repetition-penalty", 1.5, "--no-repeat-ngram", 2, "--min-length", 9]
    options = {"repetition_penalty": 1.5, "no_repeat_ngram": 2, "min_length": 9}
    expected = [item.text for item in translator.translate(["A dog.", "hat"], **options)]

    assert translate(b"A dog.\nhat\n", *words)[1].decode().split("\n")[:-1] == expected
    assert expected != [item.text for item in translator.translate(["A dog.", "hat"])]


def test_drawn_translations_depend_on_the_seed_and_the_line_alone(translate, monkeypatch):
    lines = b"A dog.\nhat\nA dog.\n"

    def drawn(*words):
        return translate(lines, "--sample", *words)[1]

    first = drawn("--seed", 3)
    assert drawn("--seed", 3) == first
    assert drawn("--seed", 4) != first
    assert first.split(b"\n")[0] != first.split(b"\n")[2]
    monkeypatch.setattr("glassformer.tools.cli.translate._AT_ONCE", 5)  # as when they come slowly
    assert drawn("--seed", 3) == first
    assert drawn("--top-k", 1) == translate(lines, "--beam", 1)[1]


@every(
    ("words", "message"),
    [
        (["--beam", 0], "--beam '0': expected at least 1"),
        (["--beam", 100000], "--beam '100000': expected at most 100"),
        (["--n-best", 0], "--n-best '0': expected at least 1"),
        (["--n-best", 6], "--n-best 6: expected at most the beam"),
        (["--length-penalty", -1], "--length-penalty '-1': expected at least 0"),
        (["--length-penalty", "nan"], "--length-penalty 'nan': expected a finite number"),
        (["--repetition-penalty", 0.5], "--repetition-penalty '0.5': expected at least 1"),
        (["--repetition-penalty", 11], "--repetition-penalty '11': expected at most 10"),
        (["--no-repeat-ngram", -1], "--no-repeat-ngram '-1': expected at least 0"),
        (["--min-length", 501], "--min-length '501': expected at most 500"),
        (
            ["--prefix", "Ein", "--no-repeat-ngram", 2],
            "--no-repeat-ngram 2 could forbid the text of --prefix: leave one of them out",
        ),
        (["--sample", "--temperature", 0], "--temperature '0': expected more than 0"),
        (["--sample", "--top-k", -1], "--top-k '-1': expected at least 0"),
        (["--sample", "--top-p", 1.5], "--top-p '1.5': expected at most 1"),
        (["--threads", -1], "--threads '-1': expected at least 0"),
        (["--beam", "wide"], "--beam 'wide': expected a whole number"),
        (["--baem", 5], "unknown option --baem (did you mean '--beam'?)"),
        (["--device", "cuda:99"], "device 'cuda:99': this machine has "),
        (["--engine", "onyx"], "--engine 'onyx': expected "),
        (
            ["--engine", "torch", "--quantization", "int8"],
            "only engine ctranslate2 has quantization 'int8'",
        ),
        (["--device", "gpu"], "device 'gpu': expected cpu, cuda, cuda:N or auto"),
        (["--out", "x"], "unknown option --out"),
        (["-o", "x"], "unknown option -o"),
        (["more"], "unexpected 'more': expected BUNDLE [OPTIONS] < TEXT > TRANSLATION"),
    ],
)
def test_a_wrong_call_is_one_line_and_2(bundle_directory, refused, words, message):
    status, line = refused("translate", bundle_directory, *words)

    assert status == 2
    assert line.startswith(message)


def test_a_closed_standard_input_is_said(bundle_directory, refused, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)

    assert refused("translate", bundle_directory) == (
        2,
        "standard input is closed: give the text, as in '… < text'",
    )


def test_a_prefix_that_is_too_long_is_one_line(translate):
    status, out, err = translate(b"A dog.\n", "--prefix", "Schnee " * 1000)

    assert (status, out) == (2, b"")
    assert err.startswith("glassformer: error: a prefix has ")


def broken(directory: Path, bundle: Path, name: str, content: bytes | None) -> Path:
    """A copy of the bundle in which one file is missing or holds something else."""
    shutil.copytree(bundle, directory)
    (directory / name).unlink()
    if content is not None:
        (directory / name).write_bytes(content)
    return directory


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", b"{", "config.json: not JSON, or cut short"),
        ("model.safetensors", b"x" * 99, "model.safetensors: cannot be read as safetensors"),
        ("target.model", b"no model", "target.model: not a SentencePiece model"),
    ],
)
def test_a_broken_bundle_is_named_with_its_part(
    bundle_directory, tmp_path, refused, name, content, message
):
    directory = broken(tmp_path / "broken", bundle_directory, name, content)

    status, line = refused("translate", directory, "--no-verify")

    assert status == 1
    assert line.startswith(str(directory))
    assert message in line
    assert refused("translate", directory)[1].startswith(str(directory))


def test_a_checksum_names_the_option_where_the_command_has_it(bundle_directory, tmp_path, refused):
    directory = tmp_path / "changed"
    shutil.copytree(bundle_directory, directory)
    config = (directory / "config.json").read_text()
    (directory / "config.json").write_text(
        config.replace('"position_offset": 0', '"position_offset": 2')
    )
    line = f"{directory / 'config.json'}: checksum mismatch: the file is changed or damaged:"

    assert refused("translate", directory) == (
        1,
        f"{line} copy the bundle anew; --no-verify loads it unchecked",
    )
    assert refused("export", directory, tmp_path / "out") == (1, f"{line} copy the bundle anew")


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_another_program_gets_each_answer_at_once(bundle_directory, engine):
    """A pipe that is kept open; then the reader goes away, and the program ends quietly."""
    texts = ["A dog runs.", "", "漢字", "An old hat."]
    expected = Translator.load(bundle_directory).translate(texts)
    words = ["translate", bundle_directory, "--threads", 1, "--engine", engine]
    with Command(words) as process:
        for text, translation in zip(texts, expected, strict=True):
            # The last one comes with the beginning of the next line.
            process.stdin.write(f"{text}\n{'A' if text == texts[-1] else ''}")
            process.stdin.flush()
            assert process.stdout.readline() == f"{translation.text}\n"
        process.stdout.close()
        process.stdin.write("A hat.\nA dog.\n")
        process.stdin.close()
        assert process.stderr.read() == ""
        assert process.wait() == 1
