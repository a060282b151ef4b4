import math

import pytest
import torch

from glassformer.support.errors import InputError, UsageError
from glassformer.tools.inspection.ablation import ablated, changed, reordered
from glassformer.tools.inspection.capture import capture
from glassformer.tools.inspection.scoring import log_probabilities
from glassformer.tools.inspection.trace.build import trace
from glassformer.tools.inspection.trace.schema import Changes, Head, Query
from tests.tables import every

TEXT = "A dog runs across the grass."
TARGET = "Ein Hund läuft über das Gras."


@pytest.fixture(
    scope="module", params=[{}, {"positions": "learned"}], ids=["sinusoidal", "learned"]
)
def translator(request, beginner):
    return beginner(norm="pre", **request.param)


def sides(translator, target=TARGET):
    """The ids of the source, of what the decoder reads, and of what it writes."""
    source, tokenizer = translator.source_tokenizer, translator.target_tokenizer
    ids = [*tokenizer.encode(target), tokenizer.eos_id]
    read = torch.tensor([[tokenizer.bos_id, *ids[:-1]]])
    return torch.tensor([[*source.encode(TEXT), source.eos_id]]), read, torch.tensor(ids)


def scores(translator, changes=None, *, order=None):
    """The log-probability of each piece of TARGET after these changes."""
    source, _, target = sides(translator)
    *ids, end = source[0].tolist()
    model = changed(translator.model, changes or Changes())
    return log_probabilities(model, [[*reordered(ids, order), end]], target.tolist())[0].tolist()


def test_a_layer_without_all_its_heads_adds_only_a_bias(translator):
    heads = [Head("cross", 1, 0), Head("cross", 1, 1)]
    model = changed(translator.model, Changes(heads_off=heads))
    source, read, own = sides(translator)
    with torch.no_grad(), capture(model) as seen:
        logits = model(source, read)
    bias = model.decoder.blocks[1].cross_attention.sublayer.output.bias
    added = seen["decoder.blocks.1.cross_attention"].added
    torch.testing.assert_close(added, bias.expand_as(added))
    assert seen["decoder.blocks.0.cross_attention"].added.std() > 0

    before, after = scores(translator), scores(translator, Changes(heads_off=heads))
    expected = logits[0].log_softmax(-1).gather(-1, own[:, None])[:, 0]
    assert after == pytest.approx(expected.tolist(), abs=1e-4)
    assert sum(before) == pytest.approx(translator.score([TEXT], [TARGET])[0], abs=1e-4)


def test_a_head_off_holds_in_the_search_too(translator):
    changes = Changes(heads_off=[Head("cross", 0, 0), Head("decoder", 1, 1), Head("encoder", 0, 0)])
    seen = trace(translator, Query(TEXT, changes=changes))
    written = [step.written.log_probability for step in seen.steps]  # by the plain model
    assert seen.answer.log_probability == pytest.approx(sum(written), abs=1e-4)
    plain = translator.score([TEXT], [seen.answer.text])[0]
    assert abs(seen.answer.log_probability - plain) > 0.01


def test_an_ablated_translator_scores_and_searches_without_the_heads(translator):
    heads = [Head("cross", 0, 0), Head("encoder", 1, 1)]
    before = translator.translate([TEXT])
    other = ablated(translator, iter(heads), positions_off=True)

    expected = scores(translator, Changes(heads_off=heads, positions_off=True))
    assert other.token_scores([TEXT], [TARGET])[0] == pytest.approx(expected, abs=1e-4)
    seen = trace(translator, Query(TEXT, changes=Changes(heads, positions_off=True)))
    assert other.translate([TEXT])[0].text == seen.answer.text
    assert translator.translate([TEXT]) == before
    with pytest.raises(UsageError, match="layer '2': expected 0, 1"):
        ablated(translator, [Head("cross", 2, 0)])


def test_without_positions_the_source_is_a_bag_of_pieces(translator):
    source, _, _ = sides(translator)
    order = list(range(source.size(1) - 1))[::-1]
    before = scores(translator)
    assert scores(translator, order=order) != pytest.approx(before, abs=2e-4)
    alone = scores(translator, Changes(positions_off=True))
    assert alone != pytest.approx(before, abs=2e-4)
    shuffled = scores(translator, Changes(positions_off=True), order=order)
    assert shuffled == pytest.approx(alone, abs=1e-5)


def test_without_the_causal_mask_the_future_is_seen(translator):
    seen, plain = (
        trace(translator, Query(TEXT, changes=Changes(causal_off=True))),
        trace(translator, TEXT),
    )
    assert seen.answer == plain.answer
    source, read, own = sides(translator, seen.answer.text)
    with torch.no_grad():
        everything = torch.ones(1, 1, len(own), len(own), dtype=torch.bool)
        logits = translator.model(source, read, target_mask=everything)
    expected = logits[0].log_softmax(-1).gather(-1, own[:, None])[:, 0]
    written = [step.written.log_probability for step in seen.steps]
    assert written == pytest.approx(expected.tolist(), abs=1e-4)
    assert written[0] != pytest.approx(plain.steps[0].written.log_probability, abs=1e-3)
    assert all(map(all, seen.masks.target))


def test_erasing_a_word_is_translating_without_it(translator):
    seen = trace(translator, TEXT)
    erased, answer = seen.erased, seen.answer.text
    assert erased.words == ["A", "dog", "runs", "across", "the", "grass", "."]
    without = ["A runs across the grass.", "A dog across the grass.", "A dog runs across the grass"]
    before, *after = translator.score([TEXT, *without], [answer] * 4)
    totals = [erased.totals[word] for word in (1, 2, 6)]
    assert totals == pytest.approx([score - before for score in after], abs=1e-3)
    assert [sum(row) for row in erased.changes] == pytest.approx(erased.totals, abs=1e-4)


def test_nothing_is_left_in_the_translator(translator):
    before = translator.translate([TEXT])
    names = [sorted(vars(module)) for module in translator.model.modules()]
    trace(translator, Query(TEXT, changes=Changes([Head("cross", 0, 0)], None, True, True)))
    assert [sorted(vars(module)) for module in translator.model.modules()] == names
    assert not any(module._forward_pre_hooks for module in translator.model.modules())
    assert translator.translate([TEXT]) == before


@pytest.mark.parametrize(
    ("beam", "reference", "verdict", "fell_off"),
    [
        (1, "up on", "found", None),
        (1, "up at", "model", 1),
        (1, "down by", "search", 0),
        (2, "down by", "found", None),
        (2, "up on", "model", None),
    ],
)
def test_a_reference_shows_whether_search_or_model_is_at_fault(
    ambiguous, beam, reference, verdict, fell_off
):
    found = trace(ambiguous, Query("a b", beam=beam, reference=reference)).reference
    assert (found.verdict, found.fell_off) == (verdict, fell_off)
    shares = {"up on": 0.35, "up at": 0.25, "down by": 0.4}  # as learnt
    assert found.log_probability == pytest.approx(math.log(shares[reference]), abs=0.1)
    assert (found.fell_rank is None) == (found.margin is None) == (fell_off is None)
    if reference == "down by" and fell_off == 0:  # "up" has 0.6
        assert (found.fell_rank, found.margin) == (1, pytest.approx(0.405, abs=0.15))


@every(
    ("options", "error", "message"),
    [
        ({"text": " \n"}, InputError, r"the text has no word"),
        ({"forced_prefix": [2]}, UsageError, r"the id 2 is no ordinary piece"),
        ({"forced_prefix": [5, 999]}, UsageError, r"the id 999 is no ordinary piece"),
        ({"forced_prefix": [5] * 990}, InputError, r"a prefix has 990 subwords, and this model"),
        ({"reference": "Hund " * 2000}, InputError, r"the reference has .* has positions for"),
        ({"top": 0}, UsageError, r"top 0: expected at least 1"),
        ({"beam": 0}, ValueError, r"beam must be at least 1"),
        ({"changes": Changes([Head("cross", 2, 0)])}, UsageError, r"layer '2': expected 0, 1"),
        ({"changes": Changes([Head("cross", 0, -1)])}, UsageError, r"head '-1': expected 0"),
        (
            {"changes": Changes(source_order=[0])},
            UsageError,
            "source_order has 1 numbers: expected",
        ),
    ],
)
def test_a_wrong_question_is_refused_in_one_line(translator, options, error, message):
    options = {"text": TEXT} | options
    with pytest.raises(error, match=message) as caught:
        trace(translator, Query(options.pop("text"), **options))
    assert "\n" not in str(caught.value)
