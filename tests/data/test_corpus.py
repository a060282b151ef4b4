import csv
import gzip
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data import lines as lines_module
from glassformer.data.corpus import Filter, Limits, Pair, read_lines, read_pairs
from glassformer.data.file_formats import join_record, split_record
from glassformer.support.errors import InputError, UsageError
from glassformer.training.setup.options import TrainConfig
from tests.tables import every

NEVER_ENDS = "a\u2028b\u2029c\x85d\re\x00f\x0bg\x0ch\x1ci"


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def message(call) -> str:
    with pytest.raises(InputError) as caught:
        list(call())
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Lines


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_lf_is_the_only_line_end_and_one_cr_and_the_bom_are_removed(tmp_path, pack):
    content = f"\ufeffeins\r\n{NEVER_ENDS}\n\r\r\n \n\ufeffzwei\nohne Ende".encode()
    path = write(tmp_path / "any.name", pack(content))
    expected = ["eins", NEVER_ENDS, "\r", " ", "\ufeffzwei", "ohne Ende"]
    assert list(read_lines(path)) == expected


def test_gzip_is_known_by_its_content_not_by_its_name(tmp_path):
    assert list(read_lines(write(tmp_path / "plain.gz", "plain\n"))) == ["plain"]
    two_members = gzip.compress(b"eins\nzw", mtime=0) + gzip.compress(b"ei\n", mtime=0)
    assert list(read_lines(write(tmp_path / "packed.txt", two_members))) == ["eins", "zwei"]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff"))))
def test_any_text_without_a_line_feed_comes_back(tmp_path_factory, texts):
    texts = [*texts, "end"]
    path = tmp_path_factory.mktemp("lines") / "any.txt"
    assert list(read_lines(write(path, "\n".join(texts)))) == texts
    assert list(read_lines(write(path, "\r\n".join(texts) + "\r\n"))) == texts


def test_lines_are_read_as_a_stream(tmp_path):
    path = write(tmp_path / "a.txt", b"first\n" * 100_000 + b"\xff\n")
    reader = read_lines(path)
    assert next(reader) == "first"  # the bad byte at the end is not read yet
    reader.close()


@every(
    ("content", "parts"),
    [
        (b"gut\nGr\xfc\xdfe\n", ["line 2", "0xFC", "byte offset 2", "iconv"]),
        (b"\xef\xbb\xbfGr\xfc\n", ["line 1", "0xFC", "byte offset 5"]),
        ("Grüße".encode("utf-16"), ["line 1", "not UTF-8", "-f UTF-16 "]),
        ("Grüße\n".encode("utf-16-le"), ["line 1", "not UTF-8", "-f UTF-16LE "]),
        ("Grüße\n".encode("utf-16-be"), ["line 1", "not UTF-8", "-f UTF-16BE "]),
        ("a\nGrüße\n".encode("utf-16-le"), ["line 2", "not UTF-8", "-f UTF-16LE "]),
        (b"\xed\xa0\x80\n", ["line 1", "0xED"]),
        (b"", ["empty"]),
        (gzip.compress(b"a\n" * 1000, mtime=0)[:-12], ["gzip", "cut short"]),
        (gzip.compress(b"a\n", mtime=0)[:-3] + b"abc", ["gzip"]),
        (b"\x1f\x8bnothing of the kind", ["gzip"]),
    ],
)
def test_unusable_content_is_named(tmp_path, content, parts):
    path = write(tmp_path / "train.de", content)
    said = message(lambda: read_lines(path))
    assert all(part in said for part in [str(path), *parts]), said


def test_missing_files_and_directories_are_named(tmp_path):
    write(tmp_path / "train.de", "x\n")
    said = message(lambda: read_lines(tmp_path / "tran.de"))
    assert "no such file (did you mean 'train.de'?)" in said
    assert "directory" in message(lambda: read_lines(tmp_path))
    assert "no such file" in message(lambda: read_lines(tmp_path / "none" / "train.de"))


def test_a_file_without_line_ends_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "MAX_LINE_BYTES", 10)
    assert (
        list(read_lines(write(tmp_path / "fits", "0123456789\n0123456789"))) == ["0123456789"] * 2
    )
    path = write(tmp_path / "long", "short\n0123456789x\n")
    assert f"{path}, line 2: the line is longer than" in message(lambda: read_lines(path))


# Pairs


def test_two_files_are_paired_line_by_line(tmp_path):
    source = write(tmp_path / "a.de", f"Hallo\r\n{NEVER_ENDS}\n\n")
    target = write(tmp_path / "a.en", gzip.compress(b"Hello\nanything\nnothing", mtime=0))
    assert list(read_pairs(source, target)) == [
        Pair("Hallo", "Hello"),
        Pair(NEVER_ENDS, "anything"),
        Pair("", "nothing"),
    ]


@pytest.mark.parametrize(("sources", "targets"), [(3, 5), (5, 3), (4, 5), (5, 4)])
def test_files_of_unequal_length_are_named_with_both_counts(tmp_path, sources, targets):
    source = write(tmp_path / "a.de", "x\n" * sources)
    target = write(tmp_path / "a.en", "x\n" * targets)
    said = message(lambda: read_pairs(source, target))
    assert f"{source} has {sources} lines and {target} has {targets}" in said


def test_raw_tsv_keeps_its_quotes(tmp_path):
    path = write(tmp_path / "a.tsv", '"Hallo"\tHe said "Hello\r\n\t\n')
    assert list(read_pairs(path)) == [Pair('"Hallo"', 'He said "Hello'), Pair("", "")]


fields = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"))


@given(fields, fields, st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_quoted_tsv_reads_what_the_csv_module_writes(source, target, quoting):
    out = io.StringIO()
    csv.writer(out, delimiter="\t", quoting=quoting, lineterminator="").writerow([source, target])
    assert split_record(out.getvalue(), "tsv-quoted") == (source, target)


def test_a_bare_cr_does_not_split_a_quoted_record(tmp_path):
    path = write(tmp_path / "a.tsv", '"a\rb"\tc\rd\r\n')
    assert list(read_pairs(path, format="tsv-quoted")) == [Pair("a\rb", "c\rd")]


def test_json_lines_keep_every_character(tmp_path):
    record = json.dumps(
        {"source": NEVER_ENDS, "target": 'ein "Zitat"', "id": 7}, ensure_ascii=False
    )
    for name in ("a.jsonl", "a.json.gz", "A.NDJSON"):
        path = write(tmp_path / name, f"\ufeff{record}\r\n")
        assert list(read_pairs(path)) == [Pair(NEVER_ENDS, 'ein "Zitat"')]


@pytest.mark.parametrize(
    ("record", "keys"),
    [
        ({"de": "Hallo", "en": "Hello"}, ("de", "en")),
        ({"translation": {"de": "Hallo", "en": "Hello"}}, ("de", "en")),
        ({"translation": {"de": "Hallo", "en": "Hello"}}, ("translation.de", "translation.en")),
        ({"a.b": "Hallo", "a": {"b": "no", "c": "Hello"}}, ("a.b", "a.c")),
    ],
)
def test_json_keys_are_looked_up_plain_dotted_and_in_translation(record, keys):
    assert split_record(json.dumps(record), "jsonl", keys=keys) == ("Hallo", "Hello")


@every(
    ("format", "bad", "part"),
    [
        ("tsv", "", "1 column"),
        (
            "tsv",
            "a\tb\tc",
            "3 columns: expected source, one tab, target: keep these two, as with cut -f1,2",
        ),
        ("tsv-quoted", '"a\tb', "opens column 1 is not closed"),
        ("tsv-quoted", 'a\t"b', "opens column 2 is not closed"),
        ("tsv-quoted", '"a"b\tc', "after the closing quote of column 1"),
        ("tsv-quoted", '"a\tb"', "1 column"),
        ("jsonl", "", "not JSON"),
        ("jsonl", '{"source": "a"', "not JSON"),
        ("jsonl", "[" * 100_000, "not JSON"),
        ("jsonl", '["a", "b"]', "JSON array"),
        ("jsonl", "null", "JSON null"),
        ("jsonl", '{"source": "a", "tgt": "b"}', "no key 'target', only 'source', 'tgt'"),
        ("jsonl", '{"translation": {"de": "a", "en": "b"}}', "no key 'source', only 'de', 'en'"),
        ("jsonl", '{"source": "a", "target": 7}', "'target' holds a JSON number"),
        ("jsonl", '{"source": "\\ud800", "target": "b"}', "surrogate"),
    ],
)
def test_a_line_without_a_pair_is_named(tmp_path, format, bad, part):
    good = {"tsv": "a\tb", "tsv-quoted": '"a"\tb', "jsonl": '{"source": "a", "target": "b"}'}[
        format
    ]
    path = write(tmp_path / "train.any", f"{good}\n{bad}\n")
    said = message(lambda: read_pairs(path, format=format))
    assert said.startswith(f"{path}, line 2: "), said
    assert part in said


@pytest.mark.parametrize(
    ("source", "target", "format", "part"),
    [
        ("a.txt", None, None, "give the target file too"),
        ("a.csv", None, None, "a format (tsv, tsv-quoted or jsonl)"),
        ("a.de", None, "lines", "needs two files"),
        ("a.de", "a.en", "tsv", "one file with both sides"),
        ("a.tsv", None, "tsv-qoted", "did you mean 'tsv-quoted'?"),
    ],
)
def test_a_format_that_does_not_fit_is_refused_at_the_call(source, target, format, part):
    with pytest.raises(UsageError) as caught:
        read_pairs(source, target, format=format)
    assert part in str(caught.value)


# What training leaves out


@every(
    ("source", "target", "reason"),
    [
        ("Hallo", "Hello", None),
        ("", "Hello", "empty"),
        ("Hallo", "\u2028 \t\xa0", "empty"),
        ("x" * 2000 + " " * 500, "y" * 1000, None),
        ("x" * 1000, "y" * 2001, "long"),
        ("x", "y" * 20, None),
        ("x", "y" * 21, "ratio"),
        ("x" * 27, "yyy", None),
        ("x" * 28, "yyy", "ratio"),
    ],
)
def test_drop_reasons_stand_at_their_limits(source, target, reason):
    assert Filter(Limits()).reason(len(source.strip()), len(target.strip())) == reason


def test_the_filter_counts_what_it_drops():
    pairs = [Pair("a", "b"), Pair("", ""), Pair("x" * 99, "y" * 99), Pair("a", "y" * 40)] * 2
    keep = Filter(Limits(max_chars=50))
    assert list(keep(pairs)) == [Pair("a", "b")] * 2
    assert (keep.kept, keep.counts) == (2, {"empty": 2, "long": 2, "ratio": 2})
    assert str(keep) == "2 of 8 pairs kept; 6 dropped: 2 empty, 2 long, 2 ratio"


def test_training_drops_by_default_what_the_doctor_does():
    fields = TrainConfig.model_fields
    assert Limits() == Limits(fields["max_chars"].default, fields["max_ratio"].default)


@given(
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])),
    st.sampled_from(["tsv", "tsv-quoted", "jsonl"]),
)
def test_a_joined_record_is_split_into_its_pair(source, target, format):
    if format == "tsv":
        source, target = source.replace("\t", " "), target.replace("\t", " ")
    assert split_record(join_record(source, target, format), format) == (source, target)
