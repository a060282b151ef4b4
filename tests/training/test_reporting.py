"""What a person sees, and the lines of metrics.jsonl."""

import io
import json
import threading
from contextlib import contextmanager

import pytest
from rich.console import Console

from glassformer.data.corpus import Pair
from glassformer.training import reporting
from glassformer.training.reporting import CellReporter, Metrics, TextReporter
from glassformer.training.validation import Validation
from tests.notebooks import in_notebook

RECORD = {
    "kind": "update",
    "update": 1_250,
    "loss": 2.5,
    "perplexity": 6.049,
    "tokens_per_second": 12_345.6,
    "seconds": 60.0,
}


def reporter_on(*, terminal):
    """A reporter and what it has written."""
    reporter = TextReporter()
    shown = io.StringIO()
    reporter.console = Console(
        file=shown,
        force_terminal=terminal,
        width=120,
        highlight=reporter.console._highlight,
        soft_wrap=reporter.console.soft_wrap,
        emoji=reporter.console._emoji,
    )
    return reporter, shown


def test_plain_lines_where_there_is_no_terminal():
    reporter, shown = reporter_on(terminal=False)

    reporter.update(RECORD, updates=5_000, seconds_left=200.0)
    reporter.close()

    assert shown.getvalue() == (
        "update 1,250/5,000  loss 2.500  perplexity 6.05  12,346 tokens/s  3:20 min left\n"
    )


def test_a_live_line_on_a_terminal(monkeypatch):
    events = []

    @contextmanager
    def working(words, total):
        events.append((words, total))
        yield lambda amount, words: events.append((amount, words[:20]))
        events.append("end")

    monkeypatch.setattr(reporting, "working", working)
    reporter, shown = reporter_on(terminal=True)

    reporter.update(RECORD, updates=5_000, seconds_left=200.0)
    reporter.update({**RECORD, "update": 1_300}, updates=5_000, seconds_left=190.0)
    reporter.note("a note")
    reporter.close()
    reporter.close()

    assert shown.getvalue() == "a note\n"
    assert events == [
        ("training", 5_000),
        (1_250, "update 1,250/5,000  "),
        (50, "update 1,300/5,000  "),
        "end",
    ]


def test_the_live_line_ends_with_the_last_update(monkeypatch):
    ended = threading.Event()

    @contextmanager
    def working(*_, total):
        yield lambda *_: total
        ended.set()

    monkeypatch.setattr(reporting, "working", working)
    reporter, _ = reporter_on(terminal=True)
    reporter.update(RECORD, updates=1_250, seconds_left=0.0)
    assert ended.is_set()


def test_it_goes_to_standard_error(capsys):
    TextReporter().note("something")

    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "something\n")


@pytest.mark.parametrize("text", ["[red]a[/red] [1]", ":smile: :x:", "x" * 500])
def test_text_is_shown_as_it_is(text):
    reporter, shown = reporter_on(terminal=False)

    reporter.note(text)

    assert shown.getvalue() == f"{text}\n"


def test_a_validation_shows_scores_and_translations():
    reporter, shown = reporter_on(terminal=False)
    pairs = [Pair(f"source {i}", f"reference {i}") for i in range(10)]
    found = Validation(1.25, 30.5, 51.2, 10.0, [f"translated {i}" for i in range(10)], pairs)
    record = {"update": 1_250, "perplexity": 3.49, "seconds": 75.0, "best": True}

    reporter.validated(record, found)

    lines = shown.getvalue().splitlines()
    assert lines[0] == (
        "validation, update 1,250: BLEU 30.50  chrF++ 51.20  loss 1.250  1:15 min  best so far"
    )
    assert [line.split() for line in lines[1:4]] == [
        ["source", "source", "2"],
        ["reference", "reference", "2"],
        ["translation", "translated", "2"],
    ]
    assert len(lines) == 1 + 2 * 3
    reporter.validated({**record, "best": False}, found)
    assert shown.getvalue().count("best so far") == 1


@pytest.mark.parametrize(("count", "shown_of"), [(0, 0), (1, 1), (3, 2)])
def test_fewer_pairs_than_samples(count, shown_of):
    reporter, shown = reporter_on(terminal=False)
    pairs = [Pair("a", "b")] * count
    found = Validation(1.0, 1.0, 1.0, 0.0, ["c"] * count, pairs)

    reporter.validated({"update": 1, "perplexity": 1.0, "seconds": 1.0, "best": False}, found)

    assert shown.getvalue().count("translation ") == shown_of


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_metrics_are_a_json_object_a_line(tmp_path):
    metrics = Metrics(tmp_path / "metrics.jsonl", from_update=0)
    metrics.write({"kind": "update", "update": 50, "loss": 0.1})
    assert lines_of(tmp_path / "metrics.jsonl") == [{"kind": "update", "update": 50, "loss": 0.1}]
    metrics.write({"kind": "validation", "update": 60, "bleu": 1 / 3})
    metrics.close()

    assert [line["update"] for line in lines_of(tmp_path / "metrics.jsonl")] == [50, 60]


def test_metrics_after_the_checkpoint_are_taken_away(tmp_path):
    path = tmp_path / "metrics.jsonl"
    kept = '{"update": 50, "loss": 0.30000000000000004}\n{"update": 60}\n'
    end = '{"kind": "average", "update": 60}\n{"kind": "score", "update": 60}\n'  # made anew
    path.write_text(kept + end + '{"update": 61}\n[1]\n{"kind": 1}\n\xff\n{"update": 55')

    metrics = Metrics(path, from_update=60)
    metrics.write({"update": 100})
    metrics.close()

    assert path.read_text() == kept + '{"update": 100}\n'


def test_a_notebook_gets_one_output_with_all_lines(monkeypatch, capsys):
    outputs = in_notebook(monkeypatch)
    reporter = CellReporter()
    for number in range(60):
        reporter.note(f"<line {number}>")
    reporter.update(RECORD, updates=2_000, seconds_left=61.0)
    reporter.close()
    [output] = outputs

    assert output.updates == 61
    assert "&lt;line 0&gt;\n&lt;line 1&gt;\n" in output.shown["text/html"]
    assert "update 1,250/2,000  loss 2.500" in output.shown["text/html"]
    assert output.shown["text/plain"].endswith("12,346 tokens/s  1:01 min left\n")
    assert len(output.shown["text/plain"]) < 2000
    assert capsys.readouterr() == ("", "")
