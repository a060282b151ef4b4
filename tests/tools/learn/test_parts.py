"""A learner's parts in the place of the package's: the plain path calls them, in a copy of it."""

import sys
from collections import Counter
from inspect import isclass
from types import SimpleNamespace

import pytest
import torch

from glassformer.config import ModelConfig
from glassformer.decoding.beam import beam_search
from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.logits_processors import MinLength
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.parts import FAST, PLAIN
from glassformer.support.errors import UsageError
from glassformer.tools.learn.adapters import ADAPTERS, UNUSED
from glassformer.tools.learn.judge import Judge, same
from glassformer.tools.learn.lesson import known_mistakes, lesson, lessons, part_of
from glassformer.tools.learn.parts import (
    Part,
    chosen_parts,
    learned_parts,
    mistaken_parts,
    own_parts,
)
from glassformer.tools.learn.uncached_search import Uncached
from glassformer.training.optimiser import adam_of
from glassformer.training.setup.options import TrainConfig
from glassformer.training.train import train
from glassformer.translator import Translator
from tests.lessons import ATTENTION, HOLE, folder_with

PLACES = [place for each in lessons() for place in each.holes.values() if place not in UNUSED]
HELPERS = (
    *("model.masks.padding_mask", "model.masks.target_mask", "model.attention.masked_softmax"),
    *("decoding.beam.penalty", "decoding.beam.best_continuations", "decoding.beam.divide"),
)


def parts_of_the_package():
    """The package's own parts, as if a learner had written them."""
    return [Part(place, part_of(place), "a lesson") for place in PLACES]


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """The number of calls of each part, by plain trainings and by plain translations.

    The package's functions call each other where they are. So a part that only another part calls
    has a training without that one.
    """
    calls = Counter()
    for places in (PLACES, HELPERS, ["model.masks.subsequent_mask"]):
        parts = [part for part in parts_of_the_package() if part.place in places]
        use(own_parts(parts), tmp_path_factory.mktemp("plain"))
        calls.update({part.place: part.calls for part in parts})
    return calls


def use(own, directory):
    """Train with these parts, and translate."""
    pairs = directory / "pairs.tsv"
    pairs.write_text("".join(f"one {n}\teins {n}\n" for n in range(50)), encoding="utf-8")
    train(
        TrainConfig(
            pairs=(pairs,),
            run=directory / "run",
            preset="tiny",
            d_model=8,
            num_heads=2,
            d_ff=8,
            num_encoder_layers=1,
            num_decoder_layers=1,
            vocab_size=300,
            updates=2,
            beam=2,
        ),
        parts=own,
    )
    translator = Translator.load(directory / "run", parts=own)
    for beam in (1, 2):
        translator.translate(["one 7"], beam=beam)


def test_the_plain_path_calls_every_part(calls):
    """A place without a call wants an adapter, or a reason in UNUSED."""
    assert [place for place in PLACES if not calls[place]] == []


def test_the_packages_modules_stay_as_they_are():
    parts = parts_of_the_package()
    before = contents()
    own = own_parts(parts)
    assert contents() == before
    assert own.attention is not PLAIN.attention
    assert own.model is not PLAIN.model
    assert (PLAIN.own, FAST.own) == ({}, {})


def contents():
    """All that the package's modules and classes hold, by name."""
    found = {}
    for module, content in list(sys.modules.items()):
        if module.startswith("glassformer"):
            classes = {key: value for key, value in vars(content).items() if isclass(value)}
            for owner, part in {"": content, **classes}.items():
                found |= {f"{module}.{owner}.{key}": id(value) for key, value in vars(part).items()}
    return found


def test_right_parts_have_the_names_of_the_packages():
    assert own_parts(parts_of_the_package()).own == {}


def test_mistakes_are_in_the_name_of_the_model():
    faults = ["scale-missing", "softmax-without-mask"]
    assert own_parts(mistaken_parts(faults)).own == {
        "model": f"Transformer with {', '.join(faults)}"
    }
    assert PLAIN.model.__qualname__ == "Transformer"


@pytest.mark.parametrize(
    ("mistake", "uncached"), [("causal-missing", True), ("softmax-without-mask", False)]
)
def test_a_mistake_that_steps_do_not_make_is_searched_without_a_cache(mistake, uncached):
    assert (own_parts(mistaken_parts([mistake])).decoder is Uncached) == uncached


@pytest.fixture
def folder(tmp_path):
    """A folder whose first lesson is learned."""
    folder = folder_with(tmp_path)
    folder.note_right(ATTENTION, folder.file(ATTENTION).read_bytes())
    return folder


def test_only_learned_lessons_give_parts(folder):
    assert [part.place for part in learned_parts(folder)] == [
        "model.attention.scaled_dot_product_attention"
    ]
    file = folder.file(lesson("attention"))
    file.write_text(file.read_text("utf-8") + "\n", encoding="utf-8")
    assert learned_parts(folder) == []


def test_a_learners_part_calls_his_other_parts(folder):
    hidden = mistaken_parts(["softmax-without-mask"])
    q, mask = torch.randn(2, 4), torch.tensor([[True, False], [True, False]])
    attend = part_of("model.attention.scaled_dot_product_attention")
    right = attend(q, q, q, mask)[1]
    parts = [*learned_parts(folder), *hidden]
    weights = own_parts(parts).attention(q, q, q, mask)[1]
    assert [part.calls for part in parts] == [1, 1]
    assert not torch.allclose(weights, right)
    assert torch.allclose(attend(q, q, q, mask)[1], right)


CAUSAL = (
    "    return torch.ones(length, length, dtype=torch.bool).tril()\n",
    "    return padding_mask(tokens, pad) & subsequent_mask(tokens.size(1))\n",
    "    return torch.cat([torch.full_like(labels[:, :1], bos), labels[:, :-1]], 1)\n",
)


def test_a_mistake_acts_in_the_learners_other_functions_of_its_file(folder):
    causal = lesson("causal")
    text = causal.template
    for body in CAUSAL:
        text = text.replace(HOLE, body, 1)
    folder.file(causal).write_text(text, encoding="utf-8")
    folder.note_right(causal, text.encode())
    tokens = torch.tensor([[5, 6, 7]])
    for mistakes, shown in (([], 6), (["causal-missing"], 9)):
        parts = chosen_parts(folder, mistakes)
        model = own_parts(parts).model
        masks = sys.modules[PLAIN.model.__module__].masks
        mask = model.__init__.__globals__["masks"].target_mask(tokens, 0)
        assert int(mask.sum()) == shown
        assert int(masks.target_mask(tokens, 0).sum()) == 6
        assert {part.place: part.calls for part in parts}["model.masks.subsequent_mask"] == 1


def test_arguments_that_a_part_lacks_are_left_out():
    part = Part("model.masks.subsequent_mask", lambda length: length, "causal")
    assert part.counted()(3, device="cpu") == 3


def test_a_method_brings_its_helpers():
    class MultiHeadAttention:
        def split(self, joint):
            return self.halves(joint)

        def halves(self, joint):
            return joint, joint

    solution = SimpleNamespace(MultiHeadAttention=MultiHeadAttention)
    package = part_of("model.attention.MultiHeadAttention")
    functions = {name: vars(MultiHeadAttention)[name] for name in ("split", "halves")}
    part = Part(
        "model.attention.MultiHeadAttention.split",
        solution.MultiHeadAttention.split,
        "heads",
        helpers=functions,
    )
    own = own_parts([part])
    sizes = {"source_vocab_size": 9, "target_vocab_size": 9, "d_model": 8, "num_heads": 2}
    block = own.model(ModelConfig(**sizes), own).encoder.blocks[0]
    assert block.self_attention.sublayer.split(5) == (5, 5)
    assert not hasattr(package, "halves")


def test_every_mistake_has_a_part_or_a_reason(subtests):
    for mistake, record in known_mistakes().items():
        with subtests.test(mistake=mistake):
            place = record.place_of(record.mistakes[mistake].hole)
            if place.startswith("tools.") and place not in ADAPTERS:
                with pytest.raises(UsageError, match=f"'{mistake}' changes no translator"):
                    mistaken_parts([mistake])
            else:
                [part] = mistaken_parts([mistake])
                assert (part.place, part.mistakes) == (place, (mistake,))


def test_mistakes_that_exclude_each_other():
    one, other = "scale-missing", "scale-times-root"
    with pytest.raises(UsageError, match=f"{one} and {other} exclude each other"):
        mistaken_parts([one, other])


def test_a_mistake_of_a_constructor_acts():
    own = own_parts(mistaken_parts(["positions-trained"]))
    sizes = {"source_vocab_size": 9, "target_vocab_size": 9, "d_model": 8, "num_heads": 2}
    assert own.model(ModelConfig(**sizes), own).source_positions.table.requires_grad


def test_an_unknown_mistake():
    with pytest.raises(UsageError, match=r"'scale-mising' \(did you mean 'scale-missing'\?\)"):
        mistaken_parts(["scale-mising"])


def test_the_checks_keep_the_packages_own():
    judge = Judge.of(lesson("attention"), "scaled_dot_product_attention")
    own_parts(mistaken_parts(["softmax-without-mask"]))
    assert same(judge.results(()), judge.right)


def test_a_learners_adam_step_is_torchs_adam():
    def adam_step(weight, gradient, *, state, rate, betas, epsilon):
        count, mean, square = state[0] + 1, *state[1:]
        mean = betas[0] * mean + (1 - betas[0]) * gradient
        square = betas[1] * square + (1 - betas[1]) * gradient**2
        rate /= 1 - betas[0] ** count
        root = (square / (1 - betas[1] ** count)).sqrt()
        return weight - rate * mean / (root + epsilon), (count, mean, square)

    def trained(new_adam):
        generator = torch.Generator().manual_seed(1)
        weight = torch.nn.Parameter(torch.randn(3, 2, generator=generator))
        optimiser = new_adam([weight])
        for _ in range(5):
            weight.grad = torch.randn(3, 2, generator=generator)
            optimiser.param_groups[0]["lr"] = 0.1
            optimiser.step()
        return weight

    own = ADAPTERS["tools.learn.lessons.schedule.plain.adam_step"][1](adam_step)
    assert torch.allclose(trained(own), trained(adam_of), atol=1e-6)


def test_a_learners_search_runs_with_prefix_processors_and_several_targets():
    """It takes its candidates from the rules, and leaves out what its signature lacks."""

    def own(step, state, rules, *, beam, length_penalty, n_best):
        options = {"beam": beam, "n_best": n_best, "length_penalty": length_penalty}
        return beam_search(step, state, rules, **options)

    class State:
        def select(self, _rows):
            return self

    def step(tokens, state):  # 5 again and again is nearly as probable as the end
        return torch.tensor([0.0, 0, 0, 9, 1, 8]).repeat(len(tokens), 1), state

    part = Part("decoding.beam.beam_search", own, "beam")
    rules = OutputRules(torch.tensor([9]), Vocabulary(prefix_ids=(4,)), processors=[MinLength(3)])
    search = own_parts([part]).beam_search
    [found] = search(step, State(), rules, beam=2, length_penalty=1.0, n_best=2, observe=None)
    assert part.calls == 1
    assert [one.tokens for one in found] == [(4, 5, 5), (4, 5, 5, 5)]


def test_the_searches_are_the_quick_ones_unless_a_part_of_them_is_ones_own():
    """The plain beam search takes one sentence at a time."""
    quick = own_parts(mistaken_parts(["scale-missing"]))
    assert (quick.greedy, quick.beam_search) == (FAST.greedy, FAST.beam_search)
    for mistake in ("penalty-sign", "greedy-end-kept", "beam-mean"):
        own = own_parts(mistaken_parts([mistake]))
        assert own.beam_search.__module__ == own.greedy.__module__[:-6] + "beam"
        assert own.beam_search not in (PLAIN.beam_search, FAST.beam_search)
