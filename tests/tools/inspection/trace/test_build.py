from dataclasses import replace

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter

from glassformer.data.preprocessing import SourceLengths
from glassformer.decoding.beam import beam_search, penalty
from glassformer.decoding.constraints import OutputRules
from glassformer.tools.inspection.beam_graph import Watch
from glassformer.tools.inspection.trace import build as trace_module
from glassformer.tools.inspection.trace.array_codec import encode_array
from glassformer.tools.inspection.trace.build import trace
from glassformer.tools.inspection.trace.query import Sentence
from glassformer.tools.inspection.trace.schema import Query, Trace

TEXTS = ["A dog runs.", "Two men sit in the grass", "x"]
TEXT = TEXTS[0]


@pytest.fixture(scope="module", params=["post", "pre"])
def translator(request, beginner):
    return beginner(norm=request.param)


@pytest.fixture(scope="module")
def traced(translator):
    return trace(translator, Query(TEXT, beam=3))


def tensors(traced):
    """Source and what the decoder read, as the model takes them."""
    source = torch.tensor([[piece.id for piece in traced.source.pieces]])
    return source, torch.tensor([[piece.id for piece in traced.target.read]])


@pytest.mark.parametrize("beam", [1, 4])
def test_the_answer_is_the_translators(translator, beam):
    for text, item in zip(TEXTS, translator.translate(TEXTS, beam=beam), strict=True):
        answer = trace(translator, Query(text, beam=beam)).answer
        assert (answer.text, answer.score) == (item.text, pytest.approx(item.score, abs=1e-4))


def test_a_glossary_s_terms_have_places_in_the_free_answer(beginner):
    translator = beginner(norm="post")
    glossary = {"dog": ["Hund", "Hunde"], "cat": "Katze", "runs": "steht"}
    with_terms = trace(translator, Query(TEXT, beam=3), glossary=glossary)
    free = trace(translator, Query(TEXT, beam=3))
    assert (with_terms.answer, with_terms.beam) == (free.answer, free.beam)
    dog, runs = with_terms.terms
    assert (dog.term, dog.forms, runs.term) == ("dog", ["Hund", "Hunde"], "runs")
    pieces = with_terms.target.pieces
    assert "".join(pieces[i].text for i in dog.pieces) == "Hund"
    start, end = pieces[runs.pieces[0]].start, pieces[runs.pieces[-1]].end
    [translation] = translator.translate([TEXT], beam=3, glossary=glossary)
    assert translation.text == f"{free.answer.text[:start]}steht{free.answer.text[end:]}"
    assert free.terms == []


def test_pieces_spell_their_texts(traced):
    for side in (traced.source, traced.target):
        assert side.pieces[-1].text == "</s>"
        visible = "".join(side.text[piece.start : piece.end] for piece in side.pieces)
        assert visible.replace(" ", "") == side.text.replace(" ", "")
        for piece in side.pieces[:-1]:
            start, end = side.words[piece.word]
            assert start <= piece.end
            assert piece.start < end
    assert [piece.text for piece in traced.target.read][:1] == ["<s>"]
    assert traced.target.read[1:] == traced.target.pieces[:-1]
    assert (traced.languages, traced.bounds.left_out) == (("en", "de"), [])


def test_scores_and_weights_are_those_of_the_explicit_formula(translator, traced):
    model = translator.model
    source, read = tensors(traced)
    x = model.source_positions(model.source_embedding(source))
    for layer, block in enumerate(model.encoder.blocks):
        residual = block.self_attention
        stream = residual.norm(x) if residual.norm_first else x
        expected = residual.sublayer.with_weights(stream, stream, stream)[1]
        check(traced, "encoder", layer, expected)
        x = block(x)
    memory = model.encoder.norm(x)
    y = model.target_positions(model.target_embedding(read))
    causal = torch.ones(read.size(1), read.size(1), dtype=torch.bool).tril()
    for layer, block in enumerate(model.decoder.blocks):
        residual = block.self_attention
        stream = residual.norm(y) if residual.norm_first else y
        check(traced, "decoder", layer, residual.sublayer.with_weights(*[stream] * 3, causal)[1])
        middle = residual.add(y, residual.sublayer(stream, stream, stream, causal))
        residual = block.cross_attention
        stream = residual.norm(middle) if residual.norm_first else middle
        check(traced, "cross", layer, residual.sublayer.with_weights(stream, memory, memory)[1])
        y = block(y, memory, causal)
    assert traced.masks.target == causal.tolist()
    assert traced.masks.source == [True] * source.size(1)


def check(traced, part, layer, expected):
    (found,) = [one for one in traced.attention if (one.part, one.layer) == (part, layer)]
    weights, scores = found.weights.array(), torch.tensor(found.scores.array())
    np.testing.assert_allclose(weights, expected[0], atol=found.weights.scale)
    if part == "decoder":
        scores = scores.masked_fill(~torch.tensor(traced.masks.target), -torch.inf)
    torch.testing.assert_close(scores.softmax(-1), expected[0], atol=1e-2, rtol=0)
    exact = torch.tensor(found.query.array()) @ torch.tensor(found.key.array()).transpose(1, 2)
    np.testing.assert_allclose(found.scores.array(), exact / 7**0.5, atol=found.scores.scale)


def test_steps_are_those_of_decoding_step_by_step(translator, traced):
    model = translator.model
    source, _ = tensors(traced)
    with torch.no_grad():
        state = model.start(model.encode(source))
        for number, step in enumerate(traced.steps):
            logits, state = model.step(torch.tensor([traced.target.read[number].id]), state)
            expected = logits[0].log_softmax(-1)
            best = expected.topk(traced.asked.top)
            assert [one.id for one in step.candidates] == best.indices.tolist()
            found = [one.log_probability for one in step.candidates]
            assert found == pytest.approx(best.values.tolist(), abs=1e-4)
            assert step.candidates[0].probability == pytest.approx(float(best.values[0].exp()))
            assert step.written.id == traced.target.pieces[number].id
            assert step.rank == int((expected > expected[step.written.id]).sum())
            assert not step.forced


def test_the_lens_of_a_layer_is_the_model_cut_behind_it(translator, traced):
    source, read = tensors(traced)
    cut = Sentence.of(translator.bundle, traced.asked).model
    cut.decoder.blocks = cut.decoder.blocks[:1]
    with torch.no_grad():
        expected = cut(source, read)[0].log_softmax(-1)
    for row, step in zip(expected, traced.steps, strict=True):
        assert [one.id for one in step.lens[0]] == row.topk(traced.asked.top).indices.tolist()
        assert step.lens_rank[0] == int((row > row[step.written.id]).sum())
        assert step.lens[1] == step.candidates
    assert len(translator.model.decoder.blocks) == 2


def test_each_sublayer_reads_as_the_model_that_ends_with_it(translator, traced):
    source, read = tensors(traced)
    written = torch.tensor([piece.id for piece in traced.target.pieces])
    kinds = ("self_attention", "cross_attention", "feed_forward")
    readings = []
    with torch.no_grad():
        for last in range(6):  # the residual blocks after the last one pass the stream on
            cut = Sentence.of(translator.bundle, traced.asked).model
            for layer, block in enumerate(cut.decoder.blocks):
                for place, kind in enumerate(kinds):
                    if 3 * layer + place > last:
                        block.register_module(kind, Passing())
            logits = cut(source, read)[0].double()
            probability = logits.exp() / logits.exp().sum(-1, keepdim=True)
            readings.append(probability[torch.arange(len(written)), written].log().tolist())
    for step, expected in zip(traced.steps, zip(*readings, strict=True), strict=True):
        assert step.sublayers == pytest.approx(expected, abs=1e-4)
        assert step.sublayers[-1] == step.written.log_probability
        assert len({round(value, 4) for value in expected}) > 4  # nearly each sublayer moves it


class Passing(torch.nn.Module):
    """In the place of a residual block: the stream as it comes."""

    def forward(self, x, *_context, **_options):
        return x


def test_the_beam_is_a_tree_that_adds_up(traced):
    nodes = traced.beam.nodes
    assert [node.id for node in nodes] == [*range(len(nodes))]
    assert len({node.status for node in nodes}) >= 3
    for node in nodes[1:]:
        parent = nodes[node.parent]
        assert (parent.status, parent.step) == ("alive", node.step - 1)
        total = parent.log_probability + node.step_log_probability
        assert node.log_probability == pytest.approx(total, abs=1e-5)
        assert node.score == pytest.approx(total / penalty(node.step + 1, 0.6), abs=1e-5)
    for step in range(nodes[-1].step + 1):
        level = [node for node in nodes if node.step == step]
        assert [node.rank for node in level] == [*range(6)]
        totals = [node.log_probability for node in level]
        assert totals == sorted(totals, reverse=True)
        unended = [node for node in level if node.token != 3]
        on = [node for node in level if node.status in ("alive", "open")]
        assert on == unended[:3]
        assert {node.status for node in on} == {"alive" if step < nodes[-1].step else "open"}
    best = [nodes[place] for place in traced.beam.best]
    assert [node.token for node in best[1:]] == [piece.id for piece in traced.target.pieces]
    assert traced.beam.finished[0] == best[-1].id
    assert best[-1].score == pytest.approx(traced.answer.score)
    written = [step.written.log_probability for step in traced.steps]
    assert best[-1].log_probability == pytest.approx(sum(written), abs=1e-4)


def test_a_watched_search_that_is_known_beforehand():
    class Nothing:
        def select(self, _rows):
            return self

    def step(tokens, state):  # 4 is likely, but then nothing is sure; 5 surely ends
        probability = torch.zeros(6, 6)
        probability[2] = torch.tensor([0, 0, 0, 0, 0.6, 0.4])
        probability[4] = torch.tensor([0, 0, 0, 0.5, 0.3, 0.2])
        probability[5] = torch.tensor([0, 0, 0, 1.0, 0, 0])
        return probability[tokens].log(), state

    watch = Watch(beam=1, eos_id=3, line=(5, 3))
    rules = OutputRules(torch.tensor([9]))
    beam_search(step, Nothing(), rules, beam=1, observe=watch.observe)
    assert [[one.tokens for one in watch.went_on(step)] for step in (0, 1)] == [[(4,)], [(4, 4)]]
    assert [one.tokens for one in watch.proposed[1]] == [(4, 3), (4, 4)]
    step_lost, rank, margin = watch.fall()
    assert (step_lost, rank) == (0, 1)
    assert margin == pytest.approx(np.log(0.6 / 0.4))
    wide = Watch(beam=2, eos_id=3, line=(5, 3))
    beam_search(step, Nothing(), rules, beam=2, observe=wide.observe)
    assert wide.fall() == (None, None, None)


def test_going_on_from_another_candidate(translator, traced):
    other = traced.steps[1].candidates[2]
    ids = [traced.target.pieces[0].id, other.id]
    branch = trace(translator, Query(TEXT, beam=3, forced_prefix=ids))
    assert [piece.id for piece in branch.target.pieces][:2] == ids
    assert [step.forced for step in branch.steps][:3] == [True, True, False]
    assert branch.steps[1].written.log_probability == pytest.approx(other.log_probability)
    same = [[one.id for one in seen.steps[1].candidates] for seen in (branch, traced)]
    assert same[0] == same[1]
    ended = trace(translator, Query(TEXT, forced_prefix=[ids[0], 3]))
    assert [piece.id for piece in ended.target.pieces] == [ids[0], 3]
    assert ended.answer.finished
    words = trace(translator, Query(TEXT, beam=3, forced_prefix="Ein Hund"))
    expected = translator.translate([TEXT], beam=3, prefixes=["Ein Hund"])[0].text
    assert words.answer.text == expected


def test_json_gives_the_trace_back(traced):
    text = traced.to_json()
    assert TypeAdapter(Trace).validate_json(text) == traced
    assert "NaN" not in text


def test_bounds_are_said_where_they_bite(translator, traced, monkeypatch):
    monkeypatch.setattr(trace_module, "_PIECES", 4)
    monkeypatch.setattr(trace_module, "_VECTOR_NUMBERS", 10)
    small = trace(translator, Query(TEXT, beam=3))
    sizes = (len(traced.source.pieces), len(traced.target.pieces))
    assert (small.bounds.source_pieces, small.bounds.target_pieces) == sizes
    assert [line.split(";")[0] for line in small.bounds.left_out] == [
        f"the source has {sizes[0]} pieces",
        f"the target has {sizes[1]} pieces",
        "queries, keys and values are not stored, because they have more than 10 numbers",
    ]
    assert len(small.source.pieces) == len(small.steps) == len(small.sublayers[0].added) == 4
    assert small.attention[0].query is None
    for small_one, large in zip(small.attention, traced.attention, strict=True):
        expected = large.weights.array()[:, :4, :4]
        np.testing.assert_allclose(small_one.weights.array(), expected, atol=0.004)
    for step, large in zip(small.steps, traced.steps, strict=False):
        assert (step.written.id, step.rank) == (large.written.id, large.rank)
    assert small.answer == traced.answer
    first = {piece.word for piece in small.source.pieces} - {None}
    assert len(small.erased.words) == len(first) < len(traced.erased.words)


def test_of_several_sentences_the_first_is_shown_and_said(translator):
    lengths = SourceLengths(median=10, longest=30, several=0.0)
    single = replace(translator.bundle, source_lengths=lengths, normalisation="text")
    first = trace(single, "A  dog runs. A cat sits.")
    assert first.source.text == first.asked.text == "A dog runs."
    assert first.bounds.left_out == [
        "the text has 2 parts, which are translated one by one; the first is shown"
    ]
    assert trace(translator, "A dog runs. A cat sits.").bounds.left_out == []
    long = Sentence.of(translator.bundle, Query("dog " * 300, 0.6, []))
    assert long.segments == 4  # cut as a translation cuts it


def test_a_worked_sum_leads_to_what_the_sublayer_added(translator, traced, worked_sum):
    name = "decoder.blocks.1.cross_attention"
    sums = [worked_sum(traced, "cross", 1, head, 2) for head in range(2)]
    heads = torch.tensor([number for one in sums for number in one.output]).float()
    added = translator.model.get_submodule(name).sublayer.output(heads)
    (norms,) = [one.added for one in traced.sublayers if one.name == name]
    assert float(added.norm()) == pytest.approx(norms[2], abs=1e-3)
    (found,) = [one for one in traced.attention if one.name == name]
    np.testing.assert_allclose(sums[1].weights, found.weights.array()[1, 2], atol=0.004)
    row = worked_sum(traced, "decoder", 0, 0, 1)
    assert row.allowed == [place < 2 for place in range(len(traced.steps))]
    assert sum(row.weights[:2]) == pytest.approx(1.0)


def test_encoded_numbers_are_near():
    values = torch.tensor([[0.0, 0.3, 1.0], [-2.0, 5.5, 0.7]])
    for kind, levels in (("u8", 255), ("u16", 65535)):
        encoded = encode_array(values, kind)
        assert encoded.scale == pytest.approx(7.5 / levels)
        np.testing.assert_allclose(encoded.array(), values, atol=encoded.scale / 2 + 1e-6)
    assert torch.equal(torch.tensor(encode_array(values, "f32").array()), values)
    assert encode_array(torch.tensor([0.0, 0.9]), "u8").array()[0] == 0.0
    assert encode_array(torch.zeros(3), "u8").array().tolist() == [0.0, 0.0, 0.0]
