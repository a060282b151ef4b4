"""A shortlist: all words change nothing, few words bind the search, batches have their own."""

from functools import partial

import pytest
import torch

from glassformer.config import ModelConfig
from glassformer.decoding.batched import decode_sentences
from glassformer.decoding.beam import beam_search
from glassformer.decoding.constraints import ForcedPrefix
from glassformer.decoding.greedy import greedy
from glassformer.decoding.protocols import Vocabulary
from glassformer.decoding.sampling import sample
from glassformer.decoding.shortlist import Shortlist, Shortlisted
from glassformer.errors import InputError
from glassformer.model.transformer import Transformer

SOURCE_VOCAB, TARGET_VOCAB = 29, 37
# Out of order, and padding and start are one: imported models have such ids.
IDS = Vocabulary(pad_id=36, unk_id=5, bos_id=36, eos_id=11)
NO_LIKELY = torch.full((SOURCE_VOCAB, 2), -1)
SOURCES = [[4, 9, 13], [20], [7, 8], [28, 1, 2, 3, 4]]


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    model = Transformer(
        ModelConfig(
            source_vocab_size=SOURCE_VOCAB + 11,
            target_vocab_size=TARGET_VOCAB,
            d_model=16,
            num_heads=2,
            d_ff=24,
            num_encoder_layers=1,
            num_decoder_layers=2,
            tying="none",
            output_bias=True,
            pad_id=36,
            unk_id=5,
            bos_id=36,
            eos_id=11,
        )
    )
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2.0)
        model.output_bias.normal_()
    return model.eval()


def decoded(model, search, sources=SOURCES):
    return decode_sentences(model, sources, search=search, extra_length=6, vocabulary=IDS)


def shortlist(likely=NO_LIKELY, frequent=()):
    rows = torch.cat([likely, likely.new_full((11, likely.shape[1]), -1)])
    return Shortlist(rows, torch.tensor(frequent, dtype=torch.long))


def tokens(answers):
    return [[one.tokens for one in found] for found in answers]


@pytest.mark.parametrize(
    "search",
    [
        partial(greedy, vocabulary=IDS),
        partial(beam_search, beam=4, n_best=3, vocabulary=IDS),
        # Drawn among one: the order of the candidates is another, and a draw depends on it.
        partial(sample, top_k=1, vocabulary=IDS),
    ],
    ids=["greedy", "beam", "sample"],
)
def test_a_shortlist_of_all_words_changes_nothing(model, search):
    short = Shortlisted(model, shortlist(frequent=range(TARGET_VOCAB)), IDS)

    whole, among = decoded(model, search), decoded(short, short.among(search))

    assert tokens(among) == tokens(whole)
    for found, expected in zip(among, whole, strict=True):
        assert [one.score for one in found] == pytest.approx([one.score for one in expected])


def test_with_ordinary_ids_all_words_are_the_same_to_the_bit(model):
    usual = Vocabulary()
    short = Shortlisted(model, shortlist(frequent=range(TARGET_VOCAB)), usual)
    search = partial(beam_search, beam=4, n_best=4, vocabulary=usual)

    assert decoded(short, short.among(search)) == decoded(model, search)


def test_it_is_the_search_where_all_other_words_are_impossible(model):
    allowed = [4, 6, 7, 30, 31]
    short = Shortlisted(model, shortlist(frequent=allowed), IDS)
    barred = torch.full((TARGET_VOCAB,), -torch.inf)
    barred[[*allowed, 36, 5, 11]] = 0.0

    class Barred:
        encode, start = staticmethod(model.encode), staticmethod(model.start)

        def step(self, tokens, state):
            logits, state = model.step(tokens, state)
            return logits + barred, state

    search = partial(beam_search, beam=5, n_best=5, vocabulary=IDS)
    found, expected = decoded(short, short.among(search)), decoded(Barred(), search)

    assert {token for one in found for h in one for token in h.tokens} <= set(allowed)
    assert [[h.tokens for h in one] for one in found] == [
        [h.tokens for h in one] for one in expected
    ]
    assert found != decoded(model, search)
    for one, same in zip(found, expected, strict=True):
        assert [h.log_probability for h in one] == pytest.approx(
            [h.log_probability for h in same], abs=1e-4
        )


def test_the_candidates_are_the_likely_ones_of_the_batch_and_the_frequent_ones():
    likely = NO_LIKELY.clone()
    likely[4], likely[9], likely[20] = torch.tensor([30, 6]), torch.tensor([6, -1]), 17
    short = shortlist(likely, frequent=[8, 11])

    assert short.candidates(torch.tensor([[4, 9, 3]]), first=[36, 5, 11]).tolist() == [
        *(36, 5, 11),
        *(6, 8, 30),
    ]
    assert short.candidates(torch.tensor([[3], [20]]), first=[0]).tolist() == [0, 8, 11, 17]


def test_constraints_are_refused(model):
    short = Shortlisted(model, shortlist(frequent=[4]), IDS)

    with pytest.raises(ValueError, match="constraints and a shortlist do not go together"):
        decode_sentences(
            short,
            [[4]],
            search=short.among(partial(greedy, vocabulary=IDS)),
            constraints=[ForcedPrefix([[4]], IDS)],
            vocabulary=IDS,
        )


def tensors(**changes):
    return {"likely": torch.zeros(7, 2).int(), "frequent": torch.zeros(3).int(), **changes}


def test_the_tensors_of_a_bundle():
    found = Shortlist.of(tensors(), source_vocab_size=7, target_vocab_size=5)

    assert (found.likely.shape, found.frequent.shape) == ((7, 2), (3,))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"likely": torch.zeros(7, 2).int()}, "shortlist.safetensors holds no 'frequent'"),
        (tensors(likely=torch.zeros(6, 2).int()), "for 6 source tokens, and this model has 7"),
        (tensors(frequent=torch.tensor([5])), "names token 5, and this model has 5 target tokens"),
    ],
)
def test_a_shortlist_of_another_model_is_refused(found, message):
    with pytest.raises(InputError, match=message):
        Shortlist.of(found, source_vocab_size=7, target_vocab_size=5)
