"""The files that ``doctor --out`` writes: what goes, what changes, and that nothing else does."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.corpus import Limits, read_pairs
from glassformer.support.errors import UsageError
from glassformer.tools.doctor import cleaning
from glassformer.tools.doctor.cleaning import check_folder, write_clean
from glassformer.tools.doctor.examine import CorpusFiles, examine


def tsv(path: Path, *rows: tuple[str, str]) -> CorpusFiles:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")
    return CorpusFiles(path)


def written(path: Path) -> list[tuple[str, str]]:
    return [tuple(pair) for pair in read_pairs(path)]


def test_every_change_is_made_and_counted(tmp_path):
    train = tsv(
        tmp_path / "train.tsv",
        ("Ein  Haus", "A\xa0house"),
        ("Cafe\u0301 &amp; Tee", "Coffee &eacute; tea &unknown; &#x41;"),
        ("Nu\u200bll\ufeff", "Zero\x07\u2060"),
        ("", "nothing"),
        ("Ein Haus ", "A house"),  # a repeat once it is mended
        ("lang " * 500, "long " * 500),
        ("ein kurzes", "a very " * 30),
        ("Guten Tag.", "Good day."),
        ("Nacht", "Night"),
    )
    valid = tsv(tmp_path / "valid.tsv", ("Guten  Tag.", "Good day."), ("", "x"))
    test = tsv(tmp_path / "test.tsv", ("Nacht", "Night"), ("Nacht", "Night"))

    cleaned = write_clean(tmp_path / "clean", {"train": train, "valid": valid, "test": test})

    assert written(tmp_path / "clean" / "train.tsv") == [
        ("Ein Haus", "A house"),
        ("Café & Tee", "Coffee é tea &unknown; A"),
        ("Null", "Zero"),
    ]
    assert written(tmp_path / "clean" / "valid.tsv") == [("Guten Tag.", "Good day.")]
    assert written(tmp_path / "clean" / "test.tsv") == [("Nacht", "Night")] * 2  # as it was
    assert cleaned.pairs == {"train": 3, "valid": 1, "test": 2}
    assert dict(cleaned.changes) == {
        "dropped: blank": 2,
        "dropped: too long or of too unlike lengths": 2,
        "dropped: also in the validation or test text": 2,
        "dropped: repeats": 1,
        "changed: entities decoded": 1,
        "changed: made NFC": 1,
        "changed: invisible characters taken out": 1,
        "changed: control characters taken out": 1,
        "changed: white space made one space": 5,
    }


@pytest.mark.parametrize(
    ("name", "format", "rows"),
    [
        ("a.jsonl", None, ['{"source": "a  b", "target": "c\\nd \\"x\\""}']),
        ("a.tsv", "tsv-quoted", ['"a\tb"\t"c d ""x"""']),
        ("a.tsv", "tsv-quoted", ['a  b\t"c  d ""x"""']),
        ("a.txt.gz", "tsv", ['a  b\tc d "x"']),
    ],
)
def test_the_files_keep_their_format(tmp_path, name, format, rows):
    content = "".join(f"{row}\n" for row in rows).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)

    write_clean(tmp_path / "clean", {"train": CorpusFiles(path, format=format)})

    output = tmp_path / "clean" / name.removesuffix(".gz")
    assert list(read_pairs(output, format=format)) == [("a b", 'c d "x"')]


def test_two_files_stay_two_and_keys_stay(tmp_path):
    for side, text in (("de", "ja  ja\n"), ("en", "yes\n")):
        (tmp_path / f"a.{side}").write_text(text, encoding="utf-8")
    record = tmp_path / "b.jsonl"
    record.write_text('{"translation": {"de": "ja ", "en": "yes"}}\n', encoding="utf-8")
    parts = {
        "train": CorpusFiles(tmp_path / "a.de", tmp_path / "a.en"),
        "test": CorpusFiles(record, keys=("de", "en")),
    }

    write_clean(tmp_path / "clean", parts)

    assert (tmp_path / "clean" / "a.de").read_bytes() == b"ja ja\n"
    assert (tmp_path / "clean" / "a.en").read_bytes() == b"yes\n"
    assert json.loads((tmp_path / "clean" / "b.jsonl").read_bytes()) == {"de": "ja", "en": "yes"}


TEXTS = st.text(
    st.sampled_from("aB .,!&;amp#3\t\xa0\u200b\u200e\u200d\ufeff\x07é\u0301ﬁ"), max_size=9
)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=12), st.integers(1, 5))
def test_clean_files_stay_as_they_are_and_the_doctor_finds_nothing_to_mend(
    tmp_path_factory, rows, at_once
):
    folder = tmp_path_factory.mktemp("cleaning")
    lines = [json.dumps({"source": source, "target": target}) for source, target in rows]
    (folder / "a.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cleaning, "_AT_ONCE", at_once)
        write_clean(folder / "once", {"train": CorpusFiles(folder / "a.jsonl")})
    once = (folder / "once" / "a.jsonl").read_bytes()
    if once and b"&" not in once:  # entities inside entities are decoded once
        twice = write_clean(folder / "twice", {"train": CorpusFiles(folder / "once" / "a.jsonl")})

        assert (folder / "twice" / "a.jsonl").read_bytes() == once
        assert not twice.changes.total()
        codes = {each.code for each in examine(CorpusFiles(folder / "once" / "a.jsonl")).findings}
        mended = {"white-space", "zero-width", "bom-inside", "control", "not-nfc", "repeated"}
        assert not codes & (mended | {"empty", "many-repeats"})


def test_honest_text_does_not_change(tmp_path):
    rows = [("Zwölf Boxkämpfer – «Ä…»", "AT&T & R&D; ‘x’"), ("可愛い。ﬁ", "क्\u200dष می\u200cخواهم")]
    train = tsv(tmp_path / "a.tsv", *rows)

    assert not write_clean(tmp_path / "clean", {"train": train}).changes.total()

    assert written(tmp_path / "clean" / "a.tsv") == rows


def test_the_limits_hold(tmp_path):
    train = tsv(tmp_path / "a.tsv", ("abc", "abc"), ("abcdef", "abc"))

    assert (
        write_clean(tmp_path / "b", {"train": train}, limits=Limits(max_chars=5)).pairs["train"]
        == 1
    )


def test_folders_in_which_nothing_can_be_written_are_refused(tmp_path):
    (tmp_path / "sub").mkdir()
    here, there = tsv(tmp_path / "a.tsv", ("a", "b")), tsv(tmp_path / "sub" / "a.tsv", ("c", "d"))
    with pytest.raises(UsageError, match=r"a\.tsv is a file: expected a directory$"):
        check_folder(here.source, {"train": here})
    with pytest.raises(UsageError, match=r"holds the corpus itself: name another directory$"):
        check_folder(tmp_path, {"train": here})
    with pytest.raises(UsageError, match=r"a\.tsv and .*a\.tsv have one name: give them different"):
        check_folder(tmp_path / "clean", {"train": here, "valid": there})
    with pytest.raises(UsageError, match="is no regular file, and is read twice: save"):
        check_folder(tmp_path / "clean", {"train": CorpusFiles(Path("/dev/null"), format="tsv")})
    check_folder(tmp_path / "clean", {"train": here})
    assert not (tmp_path / "clean").exists()
