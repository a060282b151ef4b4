import json
import math

import pytest

from glassformer.support.errors import InputError
from glassformer.tools.inspection.plots import schedule as training
from glassformer.tools.inspection.plots import training_curves as curves
from tests.tables import every


def test_schedule_peaks_at_the_warm_up():
    lines = training.plot_schedule([(512, 400), (256, 800)], updates=2000).axes[0].lines
    for line, d_model, warmup in zip(lines, (512, 256), (400, 800), strict=True):
        peak = line.get_ydata().argmax()
        assert abs(line.get_xdata()[peak] - warmup) <= 2
        assert line.get_ydata()[peak] == pytest.approx((d_model * warmup) ** -0.5, rel=5e-3)


def test_24_schedules_are_told_apart():
    pairs = [(2**width, 1_000 * place) for width in range(4, 10) for place in range(1, 5)]
    figure = training.plot_schedule(pairs)
    assert len({(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines}) == 24
    figure.draw_without_rendering()
    [legend], [axes] = figure.legends, figure.axes
    assert not legend.get_window_extent().overlaps(axes.get_window_extent())
    assert axes.get_window_extent().height > figure.bbox.height / 2


@every(
    ("settings", "updates", "message"),
    [
        ([(8, 8)] * 25, 9, r"plot_schedule takes 1-24 pairs \(d_model, warmup\), got \[\("),
        ([], 9, r"plot_schedule takes 1-24 pairs .* got \[\]$"),
        ((512, 4000), 9, r"plot_schedule takes 1-24 pairs .* got \(512, 4000\)$"),
        ([(0, 100)], 9, "noam_schedule takes a whole number from 1 as d_model, got 0"),
        ([(512, "100")], 9, "noam_schedule takes a whole number from 1 as warmup, got '100'"),
        ([(512, 100)], 0, "noam_schedule: updates count from 1, got 0"),
    ],
)
@pytest.mark.usefixtures("own_messages")
def test_no_schedules(settings, updates, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        training.plot_schedule(settings, updates=updates)


def records():
    for number in (1, 2, 3):
        place = {"update": 10 * number, "seconds": 120.0 * number}
        yield place | {"kind": "update", "loss": 5.0, "perplexity": 7.0, "learning_rate": 0.1}
    scores = {"bleu": 20.5, "chrf": 41.0}
    yield place | {"kind": "validation", "loss": 1.0, "perplexity": math.e} | scores


def test_curves_of_a_run(tmp_path):
    lines = [json.dumps(record) + "\n" for record in records()]
    unfinished = '{"kind": "upd'
    (tmp_path / "metrics.jsonl").write_text("".join(lines) + unfinished, encoding="utf-8")
    loss, rate, scores = curves.plot_training(tmp_path).axes
    named = {line.get_label(): line for line in loss.lines}
    assert named["validation: cross-entropy"].get_ydata().tolist() == [1.0]
    assert named["training: cross-entropy"].get_ydata().tolist() == [math.log(7.0)] * 3
    assert rate.lines[0].get_xdata().tolist() == [10, 20, 30]
    assert [line.get_ydata()[0] for line in scores.lines] == [20.5, 41.0]
    assert scores.get_xlabel() == "updates"


def test_a_run_without_scores_has_no_panel_for_them():
    figure_ = curves.plot_training([next(records())])
    assert len(figure_.axes) == 2
    figure_.draw_without_rendering()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no records yet"),
        (b'{"kind": "update", "update": 1}\n{]\n', r"line 2: expected a JSON object .*'\{\]'"),
        (b"[1]\n", "line 1: expected a JSON object"),
        (b'{"kind": "update"}\n', "line 1: expected a JSON object with kind and update"),
        (b"\xff\n", "line 1: expected a JSON object"),
    ],
)
def test_metrics_that_are_none(tmp_path, content, message):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        curves.read_metrics(path)


def test_not_a_run(tmp_path):
    with pytest.raises(
        InputError, match=r"not a run \(it holds no metrics\.jsonl\); .* a training"
    ):
        curves.read_metrics(tmp_path)
    with pytest.raises(InputError, match="nowhere: not a run"):
        curves.read_metrics(tmp_path / "nowhere")
