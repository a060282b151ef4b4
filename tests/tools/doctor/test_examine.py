import gzip
import itertools
import json
import random
import unicodedata
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.corpus import Filter, Limits, Pair, read_pairs
from glassformer.data.normaliser import normalised
from glassformer.data.scripts import script
from glassformer.support.errors import InputError, UsageError
from glassformer.tools.doctor.checks import SideCheck, lengths
from glassformer.tools.doctor.examine import CorpusFiles, examine
from glassformer.tools.doctor.patterns import hits
from tests.tables import every

HONEST = [
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich – «Ä…».",
    "Voix ambiguë d'un cœur qui, au zéphyr, préfère les jattes de kiwis : «\xa0LIBERTÉ\xa0».",
    "«CAFÉ» «café» À\xa0Noël, il a dit\xa0: «\xa0été\xa0»\xa0– et c'est tout.",
    "À noite, vovô Kowalsky vê o ímã cair no pé do pinguim: “IRMÔ, AMANHÃ, NÃO!",
    "Příliš žluťoučký kůň úpěl ďábelské ódy. Zażółć gęślą jaźń. Şişli'de Ñandú, ÅÄÖ.",
    "Съешь же ещё этих мягких французских булок. Ђаво и Ћевапи.",
    "いろはにほへと 日本語の文章です。中文句子。한국어 문장.",
    "Kæmi ný öxi hér, ykist þjófum nú bæði víl og ádrepa. Ðað",
    "Comment ça va ? Bien ; et toi ! R&D, AT&T, 3 < 4, x<y, I ♥ NY ... J. R. R. Tolkien",
    "iPhone 5 を 2 台買った。スウェーデン クローナ",
    "می\u200cخواهم، 👩\u200d👩\u200d👧 🇩🇪 שלום",
]


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def two_files(folder: Path, source: bytes | str, target: bytes | str) -> CorpusFiles:
    return CorpusFiles(write(folder / "a.de", source), write(folder / "a.en", target))


def found(report) -> dict[str, tuple[int, list[int]]]:
    return {finding.code: (finding.count, finding.lines) for finding in report.findings}


def test_a_clean_corpus_has_no_findings_and_exact_tables(tmp_path):
    files = two_files(tmp_path, "Ja.\nEin Haus\nДа да да\n", "Yes.\nA house\nyes\n")
    report = examine(files)
    assert (report.ok, report.kept, report.findings) == (True, 3, [])
    part = report.parts["train"]
    assert (part.format, part.lines, part.pairs) == ("lines", [3, 3], 3)
    source = part.source
    assert (source.characters.min, source.characters.median, source.characters.max) == (3, 8, 8)
    assert (source.words.min, source.words.mean, source.words.max) == (1, 2.0, 3)
    assert source.scripts == {"Latin": pytest.approx(9 / 15), "Cyrillic": pytest.approx(6 / 15)}
    assert part.target.scripts == {"Latin": 1.0}


def test_every_fault_of_two_files_is_counted_with_its_lines(tmp_path):
    source = [
        b"\xef\xbb\xbfHallo\r",  # 1: a byte order mark, one of two CR LF
        b"Gr\xfc\xdfe",  # 2: Latin-1
        "schÃ¶n".encode(),  # 3: mojibake
        b" ",  # 4: empty
        "\ufffd weg".encode(),  # 5: a replacement character
        b"Hallo\r",  # 6: repeats 1
        "Eins\u2028zwei\x85".encode(),  # 7: control characters
        "\ufeffgleich".encode(),  # 8: an inner byte order mark, identical
        b"x" * 2001,  # 9: long
        b"kurz",  # 10: ratio
    ]
    target = "Hello\nGreetings\nbeautiful\nx\ngone\nHello\none two\n\ufeffgleich\nx\n" + "long " * 9
    report = examine(two_files(tmp_path, b"\n".join(source), target))
    assert found(report) == {
        "invalid-utf8": (1, [2]),
        "empty": (1, [4]),
        "long": (1, [9]),
        "ratio": (1, [10]),
        "replacement": (1, [5]),
        "mojibake": (1, [3]),
        "control": (1, [7]),
        "bom-inside": (1, [8]),
        "mixed-line-ends": (2, [1, 6]),
        "repeated": (1, [6]),
        "identical": (1, [8]),
        "bom": (1, [1]),
    }
    assert not report.ok
    severities = [finding.severity for finding in report.findings]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    invalid = report.findings[0]
    assert (invalid.where, invalid.example) == (str(tmp_path / "a.de"), repr(b"Gr\xfc\xdfe"))


def test_the_doctor_drops_exactly_what_training_drops(tmp_path):
    lines = ["a b", "", "c " * 30, "d", "e \xa0\u200b" * 8, "\u200b \xa0"]
    rows = list(itertools.product(lines, lines))
    files = two_files(tmp_path, *("".join(f"{row[side]}\n" for row in rows) for side in (0, 1)))
    limits = Limits(max_chars=50, max_ratio=6.0, ratio_from=10)
    used = Filter(limits)
    pairs = read_pairs(files.source, files.target)
    kept = list(used(Pair(*map(normalised, pair)) for pair in pairs))
    report = examine(files, limits=limits)
    assert min(used.counts.values()) > 0
    assert (report.kept, report.dropped) == (len(kept), used.counts)
    assert report.characters == sum(len(side) for pair in kept for side in pair)


def test_pairs_that_probably_have_too_many_subwords_are_warned_of(tmp_path):
    source, target = "a\n" + "Bb" * 500 + "b\n", "c\n" + "Dd" * 500 + "\n"

    (found,) = examine(two_files(tmp_path, source, target)).findings

    assert (found.code, found.severity, found.lines) == ("many-subwords", "warning", [2])


def test_nothing_left_is_an_error(tmp_path):
    report = examine(two_files(tmp_path, "\n \n", "a\nb\n"))
    assert found(report)["nothing-left"] == (1, [])
    assert not report.ok


def sentence(random_: random.Random) -> str:
    return " ".join("w" * random_.randint(2, 9) for _ in range(random_.randint(1, 30)))


@every(("at", "extra"), [(0, 1), (40, 1), (150, 3), (299, 1), (300, 4)])
@every("longer", ["source", "target"])
def test_files_that_slip_are_told_with_the_line(tmp_path, at, extra, longer):
    random_ = random.Random(7)
    left = [sentence(random_) for _ in range(300)]
    right = [text * 2 for text in left]  # one language may be longer than the other
    slipped = right if longer == "target" else left
    slipped[at:at] = [sentence(random_) for _ in range(extra)]
    report = examine(two_files(tmp_path, "\n".join(left) + "\n", "\n".join(right) + "\n"))
    count, (line,) = found(report)["unpaired"]
    assert count == extra
    assert abs(line - (at + 1)) <= 3
    assert not report.ok
    assert f"{len(left)} lines" in report.findings[0].example
    assert f"{len(right)}" in report.findings[0].example


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("a.tsv", "a\tb\nc\nd\te\tf\ng\th\n", [2, 3]),
        ("a.jsonl", '{"source":"a","target":"b"}\n{}\n\n{"source":"g","target":"h"}\n', [2, 3]),
    ],
)
def test_lines_without_a_pair_are_counted_and_skipped(tmp_path, name, content, lines):
    report = examine(CorpusFiles(write(tmp_path / name, gzip.compress(content.encode()))))
    assert found(report) == {"malformed": (2, lines)}
    assert (report.ok, report.kept, report.parts["train"].lines) == (False, 2, [4])


def test_line_numbers_stay_right_after_lines_without_a_pair(tmp_path):
    report = examine(CorpusFiles(write(tmp_path / "a.tsv", "a\tb\nbad\nbad\na\tb\n\t\n\t\n")))
    assert found(report)["repeated"] == (1, [4])  # empty pairs do not repeat each other


def test_csv_quotes_in_a_raw_tsv_are_noted(tmp_path):
    path = write(tmp_path / "a.tsv", '"Hallo"\tHello\n"\tb\n')
    assert found(examine(CorpusFiles(path))) == {"quoted": (1, [1])}
    path = write(tmp_path / "b.tsv", '"Hallo"\tHello\n')
    assert found(examine(CorpusFiles(path, format="tsv-quoted"))) == {}


def test_csv_quotes_that_hide_the_pairs_are_an_error_with_the_cure(tmp_path):
    path = write(tmp_path / "a.tsv", '"ein\ttab"\tHello\nb\tc\n"d"\te\nf\tg\th\n')
    report = examine(CorpusFiles(path))
    assert found(report) == {"csv-quotes": (2, [1, 3]), "malformed": (2, [1, 4])}
    assert "tsv-quoted" in report.findings[0].meaning
    assert not report.ok


def test_a_file_that_holds_only_malformed_lines_has_empty_tables(tmp_path):
    report = examine(CorpusFiles(write(tmp_path / "a.tsv", "no tab\n")))
    assert report.parts["train"].source.characters is None
    assert set(found(report)) == {"malformed", "nothing-left"}


def test_a_third_column_is_named_with_its_whole_remedy(tmp_path):
    report = examine(CorpusFiles(write(tmp_path / "anki.tsv", "Hi.\tHallo!\tCC-BY 2.0\n")))
    assert report.findings[0].example.endswith("keep these two, as with cut -f1,2")


def test_overlap_counts_pairs_sources_and_targets(tmp_path):
    train = CorpusFiles(write(tmp_path / "train.tsv", "a\tA\nb\tB\nc\tC\n\tempty\n"))
    valid = CorpusFiles(write(tmp_path / "valid.tsv", "x\tX\n b \tB\nb\tother\ny\tA\n\tempty\n"))
    test = CorpusFiles(write(tmp_path / "test.tsv", "x\tX\nc\tX\n"))
    report = examine(train, valid=valid, test=test)
    table = {(o.part, o.within): (o.pairs, o.sources, o.targets, o.lines) for o in report.overlaps}
    assert table == {
        ("valid", "train"): (1, 2, 2, [2]),
        ("test", "train"): (0, 1, 0, []),
        ("test", "valid"): (1, 1, 2, [1]),
    }
    warned = [f.where for f in report.findings if f.code == "overlap"]
    assert warned == ["valid and train", "test and valid"]


def test_faults_of_the_validation_text_count_too(tmp_path):
    train = CorpusFiles(write(tmp_path / "train.tsv", "a\tA\n"))
    valid = CorpusFiles(write(tmp_path / "valid.tsv", b"\xff\tA\n"))
    report = examine(train, valid=valid)
    assert [(f.code, f.part) for f in report.findings] == [("invalid-utf8", "valid")]
    assert (report.ok, report.kept) == (False, 1)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a\r\nb\r\n", {"crlf": (2, [1, 2])}),
        ("a\r\nb", {"crlf": (1, [1])}),
        ("a\nb\nc\r\nd\n", {"mixed-line-ends": (1, [3])}),
        ("a\r\nb\nc\r\n", {"mixed-line-ends": (1, [2])}),
    ],
)
def test_line_ends(tmp_path, content, expected):
    names = "x" + "\nx" * content.rstrip().count("\n")
    assert found(examine(two_files(tmp_path, content, names))) == expected


@every(("order", "mark"), [("LE", ""), ("BE", ""), ("", "\ufeff")])
@every("text", ["Grüße\nHallo\n", "日本語\n漢字\n"])
def test_utf_16_is_told_with_its_order(tmp_path, order, mark, text):
    content = (mark + text).encode(f"utf-16-{order or 'LE'}")
    (finding,) = (
        f for f in examine(two_files(tmp_path, content, "a\nb\n")).findings if f.code == "utf-16"
    )
    assert finding.example == f"iconv -f UTF-16{order} -t UTF-8"
    assert finding.severity == "error"


def test_a_lone_cr_in_a_line_ends_no_line(tmp_path):
    assert found(examine(two_files(tmp_path, "a\rb\nc\n", "x\ny\n"))) == {"control": (1, [1])}
    report = examine(two_files(tmp_path, "a\rb\rc\r", "x\n"))
    assert set(found(report)) == {"cr-only", "control"}


@every(
    ("text", "code"),
    [
        ("ein haus am see", "lower-case"),
        ("ДОМ У МОРЯ", "upper-case"),
        ("Ein Haus am See", None),
        ("სახლი ზღვასთან", None),  # Georgian has no capitals
        ("海の家 SEK", None),  # most letters have no case
        ("Ⅳ 7 !", None),
    ],
)
def test_a_side_in_one_case_is_named(tmp_path, text, code):
    files = two_files(
        tmp_path,
        "".join(f"{text} {row}\n" for row in range(60)),
        "".join(f"A house at the Sea number {row}\n" for row in range(60)),
    )
    assert set(found(examine(files))) == ({code} if code else set())


@pytest.mark.parametrize(("count", "severity"), [(1, "note"), (10, "warning")])
def test_light_faults_are_notes_if_they_are_rare(tmp_path, count, severity):
    lines = [f"Line {row}" if row >= count else f"Line <b>{row}" for row in range(200)]
    text = "".join(f"{line}\n" for line in lines)
    report = examine(two_files(tmp_path, text, "".join(f"Zeile {row}\n" for row in range(200))))
    assert [(finding.code, finding.severity, finding.count) for finding in report.findings] == [
        ("markup", severity, count),
    ]


def lost_at_line_8(folder: Path, span: str, other: str, others: str) -> list[int]:
    """The lines with lost spans; line 8 has ``other`` for ``span``, and the other lines ``others``.

    A number stands for each ``#``.
    """
    sides = [[span] * 60, [other if row == 7 else others for row in range(60)]]
    texts = (
        "".join(f"Nr {part} a\n".replace("#", str(row)) for row, part in enumerate(side, start=1))
        for side in sides
    )
    return found(examine(two_files(folder, *texts))).get("lost-spans", (0, []))[1]


SPANS = ["{n#}", "%s", "<i>#</i>", "&gt; #", "www.a#.org", "a#@b.org", "# km", "v#.1.2", "👍"]


@every("span", SPANS)
def test_a_lost_span_is_found_if_the_other_targets_keep_its_kind(tmp_path, span):
    assert lost_at_line_8(tmp_path, span, "", span) == [8]
    kept = lost_at_line_8(tmp_path, span, span, span.replace("{", "")[:1])
    assert kept == ([1, 2, 3, 4, 5] if span in ("{n#}", "%s") else [])


@every(
    ("span", "other"),
    [("<file#>", "<Datei#>"), ("file_#", "Datei #"), ("SHA#", "SHA-#"), ("@me#", "mich"),
     ("%d #", "%2$d #"), ("# km", "#-km"), ("`%s' `%s'", "`%s' und `%s'"), ("20 h", "20 Uhr")],
)  # fmt: skip
def test_a_span_that_the_target_writes_in_another_way_is_not_lost(tmp_path, span, other):
    others = other if span == "20 h" else span
    assert lost_at_line_8(tmp_path, span, other, others) == []


def test_one_file_for_both_sides_is_an_error_however_short(tmp_path):
    path = write(tmp_path / "a.de", "Ja.\nNein.\n")
    assert found(examine(CorpusFiles(path, path)))["same-text"] == (2, [1, 2])
    other = write(tmp_path / "a.en", "Ja.\nNein.\n")  # two words may be the same in two languages
    assert found(examine(CorpusFiles(path, other))) == {"identical": (2, [1, 2])}


def test_a_dictionary_stops_no_work(tmp_path):
    rng = random.Random(0)
    lengths = [rng.randint(2, 14) for _ in range(2000)] + [rng.randint(16, 40) for _ in range(400)]
    sides = ["".join(f"{x * rng.choice(lengths)}\n" for _ in range(2400)) for x in "ab"]

    report = examine(two_files(tmp_path, *sides))

    [finding] = [each for each in report.findings if each.code.startswith("unrelated")]
    assert (finding.code, finding.severity, report.ok) == ("unrelated-words", "warning", True)


def test_only_the_first_places_are_kept(tmp_path):
    report = examine(two_files(tmp_path, "\n" * 5000, "x\n" * 5000))
    assert found(report)["empty"] == (5000, [1, 2, 3, 4, 5])


def test_the_report_is_json(tmp_path):
    report = examine(two_files(tmp_path, b"a\x00\nb\xff\n", "x\ny\nz"))
    again = json.loads(json.dumps(asdict(report)))
    assert again["findings"][0]["code"] == "unpaired"
    assert again["parts"]["train"]["source"]["characters"]["max"] == 2


def test_files_that_cannot_be_read_and_wrong_formats_are_refused(tmp_path):
    path = write(tmp_path / "a.de", "x\n")
    with pytest.raises(InputError, match="no such file"):
        examine(CorpusFiles(path, tmp_path / "none"))
    with pytest.raises(UsageError, match="give the target"):
        examine(CorpusFiles(path))


# The text checks


def suspicions(text: str) -> set[str]:
    """The code of each fault that one text seems to have."""
    return {code for code, _ in hits(text, text)}


@every("text", HONEST)
def test_honest_text_is_not_suspected(text):
    assert suspicions(text) <= {"white-space"}  # French has other spaces


@every("unseen", "\u200b\u200e\u200c\u202a\u2060\xad\ufe0f\uf0b7\U000e0041\ufdd0")
def test_characters_that_no_reader_sees_are_counted(tmp_path, unseen):
    assert suspicions(f"Ja.{unseen}") == {"zero-width"}
    report = examine(two_files(tmp_path, "Ja.\nNein\n", f"Yes.{unseen}\nNo\n"))
    assert found(report) == {"zero-width": (1, [1])}


@every("text", HONEST)
@every("codec", ["latin-1", "cp1252"])
def test_text_decoded_wrongly_is_suspected(text, codec):
    wrong = text.encode().decode(codec, "ignore")
    assert "mojibake" in suspicions(wrong)


@given(
    st.lists(
        st.text(st.sampled_from(" .aÃâä\x80€\xa0\t\x00\u200b\ufeff\ufffd<p>&;@漢"), max_size=8)
    )
)
def test_a_search_of_many_texts_at_once_is_a_search_of_each(texts):
    side = SideCheck()
    if texts:
        side.add(texts, range(1, len(texts) + 1))

    expected = Counter(code for text in texts for code in suspicions(text))
    assert {code: tally.count for code, tally in side.tallies.items() if tally.count} == expected


def test_scripts_of_letters():
    expected = {
        "ß": "Latin", "Ａ": "Latin", "ª": "Latin", "ж": "Cyrillic", "語": "Han", "々": "Han",
        "の": "Hiragana", "ｶ": "Katakana", "한": "Hangul", "ש": "Hebrew", "ि": "Devanagari",
    }  # fmt: skip
    assert {letter: script(letter) for letter in expected} == expected
    for other in ("1", " ", "!", "\u0301", "\ufe0f", "\x00", "€", "\ue000", "\U000e0fff"):
        assert script(other) is None, unicodedata.name(other, other)


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=300))
def test_lengths_are_order_statistics(values):
    table = lengths(Counter(values))
    ordered = sorted(values)
    assert (table.min, table.max) == (ordered[0], ordered[-1])
    for share, value in ((50, table.median), (95, table.p95), (99, table.p99)):
        # The smallest value that at least this share of the lengths does not exceed.
        assert value == next(
            v for v in ordered if 100 * sum(w <= v for w in ordered) >= share * len(ordered)
        )
