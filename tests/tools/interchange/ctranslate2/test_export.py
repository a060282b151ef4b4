"""The exported model and the engine: what they give is what our own searches give."""

import dataclasses
import itertools

import ctranslate2
import pytest
import torch

from glassformer.bundle import load_bundle, save_bundle
from glassformer.data.tokenizer import Tokenizer
from glassformer.decoding.engine import Engine, SearchOptions
from glassformer.support.errors import InputError, UsageError
from glassformer.tools.interchange.ctranslate2.export import export_ctranslate2, token_names
from glassformer.translator import Sampling, Translator

TEXTS = ["A dog runs.", "An old hat.", "", "x", "grass and snow", "漢字", "Two men; one sings a"]
# What goes together; test_settings.py has each value of each setting alone.
CONFIGS = [
    {"norm": "pre", "output_bias": True, "norm_epsilon": 0.1},
    {"tying": "embeddings", "output_bias": True, "source_pad_id": 0},
    {"positions": "learned", "position_offset": 2, "embedding_norm": True},
    {"norm": "pre", "embedding_norm": True, "scale_embeddings": False, "position_offset": 3},
    {"norm": "pre", "positions": "learned", "activation": "gelu", "num_decoder_layers": 2},
]


def both_engines(directory) -> tuple[Translator, Translator]:
    ours = Translator.load(directory, device="cpu")
    return ours, Translator.load(directory, device="cpu", engine="ctranslate2")


@pytest.fixture
def biased(bundle_of):
    """The directory of a bundle of these options, whose output's bias is changed."""

    def make(change, **options):
        directory = bundle_of(output_bias=True, **options)
        bundle = load_bundle(directory)
        change(bundle.model.output_bias)
        save_bundle(bundle, directory)
        return directory

    return make


def no_symbol(bias):
    """No symbol but the end is probable."""
    bias[:3] = -30.0


def with_behind(translator: Translator, engine) -> Translator:
    """The same with this engine behind CTranslate2's."""
    return dataclasses.replace(
        translator, engine=dataclasses.replace(translator.engine, torch=engine)
    )


def forgetful(translator: Translator) -> Translator:
    return with_behind(translator, NoEngine())


@dataclasses.dataclass
class Counted:
    """An engine that counts the sources it is asked for."""

    engine: Engine
    sources: int = 0
    at_once: int = 1
    threads: int = 1

    def decode(self, job, options):
        self.sources += len(job.sources)
        return self.engine.decode(job, options)


class NoEngine:
    at_once = threads = 1

    def decode(self, *_):
        raise AssertionError("torch was asked")


def all_of(translations):
    return [(one.text, one.score) for t in translations for one in (t, *t.alternatives)]


def check_same(found, expected):
    found, expected = all_of(found), all_of(expected)
    assert [text for text, _ in found] == [text for text, _ in expected]
    assert [score for _, score in found] == pytest.approx([s for _, s in expected], abs=2e-4)


@pytest.mark.parametrize("options", CONFIGS[:2], ids=["answers end", "few end"])
def test_the_engine_gives_what_torch_gives(bundle_of, options):
    """The search knows symbols and lengths, no weights: two configs are enough."""
    ours, theirs = both_engines(bundle_of(max_length=64, **options))

    for search in (
        {"beam": 1},
        {"beam": 4, "length_penalty": 0.0},
        {"beam": 3, "n_best": 3, "length_penalty": 1.0},
    ):
        expected = ours.translate(TEXTS, **search)
        check_same(theirs.translate(TEXTS, **search), expected)
        assert len({one.text for one in expected}) > 2


@pytest.mark.parametrize(
    "options", CONFIGS, ids=lambda o: "-".join(map(str, o.values())) or "plain"
)
def test_ctranslate2_alone_scores_as_the_model_does(bundle_of, tmp_path, options):
    """Pieces in, log-probabilities out: no search of ours, no engine, no torch behind it."""
    bundle = load_bundle(bundle_of(**options))
    export_ctranslate2(bundle, tmp_path / "exported")
    source = bundle.source_tokenizer.encode("A dog runs.")
    target = bundle.target_tokenizer.encode("Ein alter Hund.")
    names = token_names(bundle.source_tokenizer), token_names(bundle.target_tokenizer)

    [found] = ctranslate2.Translator(str(tmp_path / "exported")).score_batch(
        [[names[0][i] for i in source]], [[names[1][i] for i in target]]
    )

    read = torch.tensor([[*source, bundle.source_tokenizer.eos_id]])
    with torch.inference_mode():
        logits = bundle.model(read, torch.tensor([[bundle.target_tokenizer.bos_id, *target]]))
    labels = torch.tensor([*target, bundle.target_tokenizer.eos_id])
    expected = logits[0].log_softmax(-1).gather(1, labels[:, None])[:, 0].tolist()
    assert found.log_probs == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"repetition_penalty": 1.5},
        {"no_repeat_ngram": 1},
        {"min_length": 60},  # above the maximum of the shortest sources
        {"repetition_penalty": 2.0, "no_repeat_ngram": 2, "min_length": 4},
    ],
    ids=str,
)
def test_repetition_and_minimum_length_are_the_same_token_for_token(biased, options):
    def sooner(bias):
        no_symbol(bias)
        bias[3] += 1.0

    ours, theirs = both_engines(biased(sooner, norm="pre"))
    counted = Counted(theirs.engine.torch)
    lines = [text for text in TEXTS if text]

    for beam in (1, 3):
        search = SearchOptions(beam, length_penalty=0.0, **options)
        found = hypotheses(with_behind(theirs, counted), lines, search)
        expected = hypotheses(ours, lines, search)
        assert [h.tokens for h in found] == [h.tokens for h in expected]
        assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=2e-4)
        plain = hypotheses(ours, lines, SearchOptions(beam, length_penalty=0.0))
        assert [h.tokens for h in plain] != [h.tokens for h in expected]
    assert counted.sources < 2 * len(lines)  # CTranslate2 itself decoded some


def hypotheses(translator, lines, search):
    """Those of all lines, one after the other."""
    engine = translator._text_engine
    return [h for line in engine.search(engine.segments(lines), search) for h in line]


def test_forbidden_symbols_never_come_out(biased):
    ours, theirs = both_engines(biased(lambda bias: bias[:3].fill_(30.0)))

    for beam in (1, 3):
        check_same(theirs.translate(TEXTS, beam=beam), ours.translate(TEXTS, beam=beam))
    with pytest.raises(AssertionError, match="torch was asked"):
        forgetful(theirs).translate(["A dog runs."])


def test_only_sentences_that_ctranslate2_answers_otherwise_go_to_torch(biased):
    ours, theirs = both_engines(biased(lambda bias: bias[3].add_(2.0), norm="pre"))
    words = [*TEXTS[0].split(), "x", "y"]
    lines = [" ".join(some) for some in itertools.permutations(words, 3)][::3]

    for n_best in (1, 4):
        counted = Counted(theirs.engine.torch)
        found = with_behind(theirs, counted).translate(lines, beam=4, n_best=n_best)
        check_same(found, ours.translate(lines, beam=4, n_best=n_best))
        assert 0 < counted.sources < len(lines)


def test_targets_that_never_end_are_cut_at_each_sentences_own_length(biased):
    ours, theirs = both_engines(biased(lambda bias: bias[:4].fill_(-30.0)))

    found = theirs.translate(TEXTS, beam=2, n_best=2)
    check_same(found, ours.translate(TEXTS, beam=2, n_best=2))


def test_prefixes_and_samples_are_the_same(bundle_of):
    ours, theirs = both_engines(bundle_of(norm="pre", output_bias=True))
    prefixes = ["Ein", "", "", "Zwei", "", "", ""]

    for more in ({"prefixes": prefixes}, {"sampling": Sampling(seed=3)}):
        check_same(theirs.translate(TEXTS, **more), ours.translate(TEXTS, **more))


def test_terms_need_no_search_by_torch(biased):
    ours, theirs = both_engines(biased(no_symbol, norm="pre"))
    glossary = {"dog": ["Hund", "Hut"], "snow": "Schnee"}
    counts = []
    for terms in ({}, glossary):
        counted = Counted(theirs.engine.torch)
        found = with_behind(theirs, counted).translate(TEXTS, beam=2, glossary=terms)
        check_same(found, ours.translate(TEXTS, beam=2, glossary=terms))
        counts.append(counted.sources)
    assert counts[0] == counts[1] < len(TEXTS)


def test_int8_runs_and_is_near(biased):
    directory = biased(no_symbol, norm="pre")
    ours = Translator.load(directory, device="cpu")
    theirs = Translator.load(directory, device="cpu", engine="ctranslate2", quantization="int8")

    found, expected = theirs.translate(TEXTS, beam=1), ours.translate(TEXTS, beam=1)

    assert [bool(one.text) for one in found] == [bool(one.text) for one in expected]
    assert [one.score for one in found] != [one.score for one in expected]
    assert all(one.score <= 0 for one in found)


def test_many_jobs_come_back_in_their_order(bundle_of):
    ours, theirs = both_engines(bundle_of(norm="pre", output_bias=True))
    small = dataclasses.replace(theirs, engine=dataclasses.replace(theirs.engine, at_once=2))
    lines = [f"{'dog ' * (n % 5)}{n}" for n in range(12)] + ["", "x"]

    found = small.translate(lines, beam=1)

    check_same(found, ours.translate(lines, beam=1))


def test_the_files_of_an_export(bundle_of, tmp_path):
    bundle = load_bundle(bundle_of())

    export_ctranslate2(bundle, tmp_path / "new" / "model")

    names = {path.name for path in (tmp_path / "new" / "model").iterdir()}
    assert names == {
        "config.json",
        "model.bin",
        "source.model",
        "source_vocabulary.json",
        "target.model",
        "target_vocabulary.json",
    }
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["model"]  # nothing half-done
    again = Tokenizer.load(tmp_path / "new" / "model" / "target.model")
    assert again.fingerprint == bundle.target_tokenizer.fingerprint


def test_a_weight_without_a_place_is_refused(bundle_of, tmp_path):
    bundle = load_bundle(bundle_of())
    bundle.model.encoder.blocks[0].register_parameter("gate", torch.nn.Parameter(torch.ones(1)))

    with pytest.raises(UsageError, match=r"no weight like encoder\.blocks\.0\.gate"):
        export_ctranslate2(bundle, tmp_path / "new")


def test_two_pieces_of_one_name_are_refused(tokenizers, monkeypatch):
    real = Tokenizer.subword
    monkeypatch.setattr(Tokenizer, "subword", lambda self, i: real(self, 300 if i == 301 else i))

    with pytest.raises(InputError, match="the tokenizer has two subwords named "):
        token_names(tokenizers[0])


@pytest.mark.parametrize("beam", [1, 3])
def test_no_translation_reads_as_empty(biased, tokenizers, beam):
    """White space and the end are the most probable tokens, always."""
    target = tokenizers[1]
    space = next(index for index in target.blank_ids if target.subword(index) == "▁")

    def blank(bias):
        bias[[space, target.eos_id]] += torch.tensor([40.0, 39.0])

    ours, theirs = both_engines(biased(blank))

    found = theirs.translate(["Monday", "A", "7"], beam=beam)

    assert all(translation.text.strip() for translation in found)
    check_same(found, ours.translate(["Monday", "A", "7"], beam=beam))
