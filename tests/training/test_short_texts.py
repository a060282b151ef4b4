"""Texts without 4-grams: chrF++ ranks, ends, chooses and delivers, because BLEU is 0 at best."""

import pytest
import yaml

from glassformer.training.setup.prepare import prepare
from glassformer.training.train import train
from glassformer.translator import Translator

LABELS = [f"{verb} {noun}" for verb in ("abc", "bca", "cab") for noun in ("def", "efd", "fde")]


@pytest.fixture
def short(config, write):
    """Options of a run on the labels of an interface."""
    source = write("a.src", 20 * LABELS)
    target = write("a.tgt", [f"ein {label}" for label in 20 * LABELS])

    def made(**changes):
        return config(pairs=(source, target), **changes)

    return made


def stored(run):
    return yaml.safe_load((run / "config.yaml").read_text("utf-8"))["metric"]


def test_chrf_chooses_and_is_stored_and_said(short, recorder):
    config = short(updates=4, validations=2, beam=2)
    run = train(config, recorder)
    assert stored(run.directory) == "chrf"
    [line] = recorder.noted("metric ")
    assert line.startswith("metric chrf: hardly any validation reference has four words in a row")
    about = Translator.load(run.directory).bundle.about
    assert str(about["validation"]).startswith("chrF++ ")
    assert "BLEU" not in str(about["validation"])


def test_the_best_by_chrf_is_delivered_though_a_long_wrong_one_has_more_bleu(
    short, recorder, scripted
):
    wrong, right = (23.2, 40.0, 2.0), (0.0, 100.0, 0.05)
    scripted(wrong, right, wrong)
    run = train(short(updates=3, validations=3, average_count=1), recorder).directory
    about = Translator.load(run).bundle.about
    assert about["weights"] == "checkpoint of update 2"


@pytest.mark.parametrize("metric", ["bleu", "loss"])
def test_the_metric_by_name_wins(short, notes, metric):
    prepared = prepare(short(metric=metric), note=notes.append)
    assert prepared.config.metric == metric
    assert prepared.metric == ("bleu" if metric == "bleu" else "chrf")
    assert not [note for note in notes if note.startswith("metric")]


@pytest.mark.parametrize("recorded", ["bleu", None])
def test_a_run_of_an_earlier_program_goes_on_with_bleu(short, recorder, recorded):
    train(short(updates=2, validations=1), recorder)
    file = short().run / "config.yaml"
    options = yaml.safe_load(file.read_text("utf-8")) | {"metric": recorded}
    options = {name: value for name, value in options.items() if name != "metric" or value}
    file.write_text(yaml.safe_dump(options), "utf-8")

    train(short(updates=3, validations=1), recorder)
    assert stored(short().run) == "bleu"
    assert len(recorder.noted("metric ")) == 1  # of the first call


def test_text_with_sentences_is_ranked_by_bleu_without_a_word(config, notes):
    assert prepare(config(), note=notes.append).config.metric == "bleu"
    assert not [note for note in notes if note.startswith("metric")]


@pytest.mark.parametrize(("languages", "metric"), [(("en", "zh"), "bleu"), (None, "chrf")])
def test_the_tokeniser_is_that_of_the_scores(config, write, languages, metric):
    texts = [20 * [side] for side in ("a man sits in the snow", "一个人坐在雪地里")]
    files = tuple(write(f"a.{name}", lines) for name, lines in zip("xy", texts, strict=True))
    options = config(pairs=files, languages=languages)
    assert prepare(options).config.metric == metric
