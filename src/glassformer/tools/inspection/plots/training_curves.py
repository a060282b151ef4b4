"""Curves of loss, learning rate and validation scores from a run's ``metrics.jsonl``."""

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import Any

from glassformer.support.errors import InputError
from glassformer.support.strangers import parsed_json, read_bytes, shown
from glassformer.tools.inspection.plots.canvas import (
    COLOURS,
    Axes,
    Figure,
    new_figure,
    thousands,
    tidy,
)

__all__ = [
    "Record",
    "plot_losses",
    "plot_training",
    "read_metrics",
    "score_table",
]

Record = Mapping[str, Any]
_MOST_BYTES = 256 << 20
_LABEL = 60  # characters in the legend; a longer path loses its beginning


def read_metrics(path: Path) -> list[Record]:
    """The records of a run's ``metrics.jsonl``; ``path`` is the file or the run's directory.

    The records leave out a last line without a line end, because training still writes that line.
    """
    file = path / "metrics.jsonl" if path.is_dir() else path
    if not file.exists():
        reason = "it holds no metrics.jsonl" if path.is_dir() else "no such file"
        raise InputError(f"{path}: not a run ({reason}); expected the directory of a training")
    lines = read_bytes(file, most_bytes=_MOST_BYTES).split(b"\n")
    records: list[Record] = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            record = parsed_json(line, dict[str, Any], file)
            float(record["update"]), str(record["kind"])
        except (ValueError, TypeError, KeyError):
            raise InputError(
                f"{file}, line {number}: expected a JSON object with kind and update, got"
                f" {shown(line.decode(errors='replace'))}"
            ) from None
        records.append(record)
    if not records:
        raise InputError(f"{file} has no records yet; wait for the first updates")
    return records


def plot_training(metrics: Path | Sequence[Record]) -> Figure:
    """Panels of loss and perplexity, of learning rate, and of scores on the validation pairs.

    ``metrics`` is the run's directory, its ``metrics.jsonl``, or the records. Without recorded
    scores, the figure has no panel of scores.

    >>> first = {"kind": "update", "update": 100, "loss": 4.2, "learning_rate": 1e-3}
    >>> len(plot_training([first, first | {"update": 200, "loss": 3.9}]).axes)
    2
    """
    records = read_metrics(metrics) if isinstance(metrics, Path) else metrics
    panels = {_draw_loss: 2.0, _draw_rate: 1.1}
    if _curve(records, "validation", "bleu")[0]:
        panels[_draw_scores] = 1.6
    figure = new_figure(9.0, 1.0 + 2.2 * sum(panels.values()) / 1.3)
    axes = figure.subplots(len(panels), 1, sharex=True, height_ratios=list(panels.values()))
    for draw, place in zip(panels, axes, strict=True):
        draw(place, records)
    axes[-1].set_xlabel("updates")
    thousands(axes[-1])
    return figure


def plot_losses(runs: Mapping[str, Sequence[Record]]) -> Figure:
    """The cross-entropy of each run over the updates, in training (lines) and validation (dots).

    >>> record = {"kind": "update", "update": 50, "perplexity": 9.0}
    >>> figure = plot_losses({"a": [record], "b": [record | {"perplexity": 7.0}]})
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['a', 'b']
    """
    figure = new_figure(8.0, 4.0)
    axes = figure.subplots()
    for place, (name, records) in enumerate(runs.items()):
        style: dict[str, Any] = {"color": COLOURS[place % len(COLOURS)], "markersize": 4}
        label = name if len(name) <= _LABEL else f"…{name[1 - _LABEL :]}"
        axes.plot(*_cross_entropy(records, "update"), "-", label=label, **style)
        axes.plot(*_cross_entropy(records, "validation"), "o", **style)
    tidy(axes, "Loss: training, and validation as dots", x="updates", y="loss (nats a token)")
    thousands(axes)
    axes.set_yscale("log")
    axes.legend(frameon=False)
    return figure


def score_table(runs: Mapping[str, Sequence[Record]]) -> str:
    """A table of each run's final scores by text, with mean and range.

    A score is BLEU, or chrF++ for a run that BLEU cannot rank.

    >>> score = {"kind": "score", "update": 9, "name": "test"}
    >>> print(score_table({"a": [score | {"bleu": 30.0}], "b": [score | {"bleu": 32.0}]}))
    run                 test
    a                  30.00
    b                  32.00
    mean               31.00
    range     30.00 to 32.00
    >>> print(score_table({"a": [score | {"metric": "chrf", "chrf++": 90.0}]}).splitlines()[1])
    a                  90.00
    """
    scores = {
        run: dict(_named_score(record) for record in records if record["kind"] == "score")
        for run, records in runs.items()
    }
    texts = list(dict.fromkeys(chain.from_iterable(scores.values())))
    columns = [[of_run[text] for of_run in scores.values() if text in of_run] for text in texts]
    rows = [["run", *texts]]
    rows += [
        [run, *(_decimals(of_run.get(text)) for text in texts)] for run, of_run in scores.items()
    ]
    rows.append(["mean", *(_decimals(mean(column)) for column in columns)])
    rows.append(["range", *(f"{min(column):.2f} to {max(column):.2f}" for column in columns)])
    width = max(len(row[0]) for row in rows)
    return "\n".join(row[0].ljust(width) + "".join(f"{x:>19}" for x in row[1:]) for row in rows)


def _named_score(record: Record) -> tuple[str, float]:
    """The name of a text, and its score by the metric of the run."""
    if record.get("metric") == "chrf":
        return f"{record['name']}, chrF++", record["chrf++"]
    return record["name"], record["bleu"]


def _decimals(score: float | None) -> str:
    return "-" if score is None else f"{score:.2f}"


def _curve(records: Sequence[Record], kind: str, name: str) -> tuple[list[int], list[float]]:
    """The updates and values of ``name`` in the records of ``kind`` that hold ``name``."""
    chosen = [each for each in records if each["kind"] == kind and each.get(name) is not None]
    return [each["update"] for each in chosen], [each[name] for each in chosen]


def _cross_entropy(records: Sequence[Record], kind: str) -> tuple[list[int], list[float]]:
    updates, perplexities = _curve(records, kind, "perplexity")
    return updates, list(map(math.log, perplexities))


def _draw_loss(axes: Axes, records: Sequence[Record]) -> None:
    """Cross-entropy of training and validation, and the smoothed loss that training minimises."""
    series = (
        (_curve(records, "update", "loss"), 0.9, COLOURS[5], "training: smoothed loss"),
        (_cross_entropy(records, "update"), 1.5, COLOURS[0], "training: cross-entropy"),
        (_cross_entropy(records, "validation"), 1.5, COLOURS[1], "validation: cross-entropy"),
    )
    for (x, y), width, colour, label in series:
        if x:
            marker = "o" if label.startswith("validation") or len(x) == 1 else ""
            axes.plot(x, y, color=colour, marker=marker, markersize=4, lw=width, label=label)
    tidy(axes, "Loss", x="", y="loss (nats a token)")
    if axes.lines:
        axes.legend(frameon=False)
    perplexity = axes.secondary_yaxis("right")
    perplexity.yaxis.set_major_formatter(lambda loss, _: _short(math.exp(min(loss, 700.0))))
    perplexity.set_ylabel("perplexity")
    perplexity.spines["right"].set_visible(False)


def _draw_rate(axes: Axes, records: Sequence[Record]) -> None:
    x, y = _curve(records, "update", "learning_rate")
    axes.plot(x, y, color=COLOURS[5], linewidth=1.5, marker="o" if len(x) == 1 else "")
    tidy(axes, "Learning rate", x="", y="learning rate")
    axes.set_ylim(bottom=0)


def _draw_scores(axes: Axes, records: Sequence[Record]) -> None:
    for place, (name, label) in enumerate((("bleu", "BLEU"), ("chrf", "chrF++"))):
        x, y = _curve(records, "validation", name)
        if x:
            axes.plot(x, y, "o-", color=COLOURS[place], markersize=4, label=label)
            axes.annotate(
                f"{y[-1]:.1f}",
                (x[-1], y[-1]),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                color=COLOURS[place],
            )
    tidy(axes, "Scores on the validation pairs", x="", y="score")
    axes.legend(frameon=False)


def _short(value: float) -> str:
    return f"{value:,.0f}" if 100 <= value < 1e6 else f"{value:.3g}"
