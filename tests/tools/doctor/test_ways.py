"""Every known way to ruin a corpus, tried on the phrasebook: the doctor names it, or is known not
to."""

import inspect
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from glassformer.data import corpus, parallel_lines
from glassformer.tools.doctor import checks, examine, patterns
from glassformer.tools.doctor.report import MEANINGS, Report
from tests.tables import every
from tests.tools.doctor.ways import WAYS, Corpus, examined, named, phrases

TRAINING_STOPS = {"unpaired", "utf-16", "invalid-utf8", "cr-only"}
RUINOUS = TRAINING_STOPS | {"same-text", "shifted", "unrelated"}


@cache
def clean(target: str) -> Corpus:
    return phrases(target=target, pairs=600)


@cache
def clean_report(target: str) -> Report:
    with TemporaryDirectory() as folder:
        return examined(clean(target), Path(folder))


@pytest.mark.parametrize("target", ["de", "ja"])
def test_a_clean_corpus_raises_no_alarm(target):
    report = clean_report(target)

    assert report.ok
    assert {each.code for each in report.findings} <= {"identical"}  # SEK58.83, October 1971
    assert all(each.severity == "note" for each in report.findings)


@every("way", WAYS)
def test_the_doctor_names_what_ruins_a_corpus(way, tmp_path):
    report = examined(way.ruin(clean("de")), tmp_path)

    codes = named(clean_report("de"), report)
    if way.code is None:
        assert codes == ()
    else:
        assert way.code in codes
        assert report.ok == (way.code not in RUINOUS)
        assert way.code == report.findings[0].code or way.code not in RUINOUS


def test_japanese_in_words_is_named_too(tmp_path):
    (way,) = (way for way in WAYS if "Japanese" in way.title)

    assert "tokenised" in named(clean_report("ja"), examined(way.ruin(clean("ja")), tmp_path))


@every("code", MEANINGS)
def test_each_finding_is_reported_somewhere(code):
    """A row of MEANINGS alone would never be said."""
    sources = map(inspect.getsource, (parallel_lines, checks, corpus, examine, patterns))

    assert any(f'"{code}"' in source for source in sources)
