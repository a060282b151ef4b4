"""The practical face, with a tiny random model whose answers are nonsense, but differ."""

import copy
import dataclasses
import math
import pickle  # noqa: TID251  as a process gets a translator
import re

import pytest
import torch

from glassformer.config import ModelConfig
from glassformer.data.edges import Edges
from glassformer.data.known import Known
from glassformer.data.normaliser import normalised
from glassformer.data.preprocessing import SourceLengths
from glassformer.data.splitting import split_long
from glassformer.decoding.beam import penalty
from glassformer.model.transformer import Transformer
from glassformer.support.devices import device_of
from glassformer.support.errors import InputError, UsageError
from glassformer.translator import Sampling, Translator
from tests.data import ways
from tests.data.decorations import Pair
from tests.data.exact_translator import exact_translator, in_the_order_of_words
from tests.tables import every

TEXTS = ["A dog runs.", "An old hat.", "", "x", "grass and snow", " \u2028 ", "漢字"]
FINITE = {"abs": 1e-4}


@pytest.fixture(scope="module", params=["torch", "auto"])
def translator(bundle_directory, request):
    return Translator.load(bundle_directory, device="cpu", engine=request.param)


def shortened(translator: Translator, max_length: int) -> Translator:
    """The same weights with fewer positions."""
    bundle = translator.bundle
    config = bundle.model.config.model_copy(update={"max_length": max_length})
    model = Transformer(ModelConfig(**config.model_dump())).eval()
    model.load_state_dict(bundle.model.state_dict())
    return Translator(dataclasses.replace(bundle, model=model))


def log_probability(translator: Translator, source: str, ids, *, ends: bool = True) -> float:
    """log p(ids | source) by its definition: one forward pass over one unpadded pair."""
    read, said = translator.source_tokenizer, translator.target_tokenizer
    with torch.inference_mode():
        logits = translator.model(
            torch.tensor([[*read.encode(source), read.eos_id]]), torch.tensor([[said.bos_id, *ids]])
        )
    table = logits[0].double().log_softmax(-1)
    labels = [*ids, said.eos_id] if ends else ids
    return math.fsum(float(table[place, label]) for place, label in enumerate(labels))


def test_the_test_bundle_gives_answers_that_differ(translator):
    answers = {item.text for item in translator.translate(TEXTS)}

    assert len(answers) == len(TEXTS)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_text_alone_is_translated_as_in_a_batch_and_in_any_order(translator, beam):
    together = translator.translate(TEXTS, beam=beam)

    alone = [translator.translate([text], beam=beam)[0] for text in TEXTS]
    backwards = translator.translate(TEXTS[::-1], beam=beam)[::-1]

    for other in (alone, backwards):
        assert [item.text for item in other] == [item.text for item in together]
        assert [item.score for item in other] == pytest.approx(
            [i.score for i in together], **FINITE
        )


def test_no_text_gives_no_translation(translator):
    assert translator.translate([]) == []
    assert translator.score([], []) == []


def test_blank_texts_stay(translator):
    texts = ["", " ", "\t", "\u2028\u0085\u00a0\u3000", " " * 5000]
    for text, item in zip(texts, translator.translate(texts), strict=True):
        assert (item.text, item.score, item.alternatives) == (text, 0.0, ())


def test_a_score_is_the_sum_of_the_log_probabilities_of_teacher_forcing(translator):
    sources = ["A dog runs.", "An old hat.", "", "snow " * 150]
    targets = ["Ein Hund.", "", "Hut", "Schnee " * 150]

    scores = translator.score(sources, targets)

    expected = [
        log_probability(translator, source, translator.target_tokenizer.encode(target))
        for source, target in zip(sources, targets, strict=True)
    ]
    assert scores == pytest.approx(expected, rel=1e-5, abs=1e-3)


def test_scores_stay_with_their_pairs_whatever_is_scored_beside_them(translator, monkeypatch):
    sources = [f"{number} men" for number in range(12)] + ["snow " * 40]
    targets = ["Mann " * (number % 5) for number in range(13)]
    together = translator.score(sources, targets)

    monkeypatch.setattr("glassformer.translator._SCORED_AT_ONCE", 30)

    assert translator.score(sources, targets) == pytest.approx(together, rel=1e-5, abs=1e-3)


def test_a_translations_score_is_its_log_probability_over_the_length_penalty(
    translator, monkeypatch
):
    text = "grass and snow"
    room = len(translator.source_tokenizer.encode(text)) + 50
    tokenizer = translator.target_tokenizer
    decoded = []
    real = type(tokenizer).decode_batch
    monkeypatch.setattr(
        type(tokenizer), "decode_batch", lambda self, ids: decoded.extend(ids) or real(self, ids)
    )
    for beam, alpha in ((1, 0.6), (1, 1.0), (4, 0.0), (4, 1.0)):
        item = translator.translate([text], beam=beam, length_penalty=alpha)[0]

        ids = decoded.pop()  # the text itself may be cut into other subwords again
        ends = len(ids) < room
        whole = log_probability(translator, text, ids, ends=ends)
        assert item.score == pytest.approx(whole / penalty(len(ids) + ends, alpha), rel=1e-4)


def test_counted_are_the_subwords_and_the_end(translator):
    encode = translator.target_tokenizer.encode

    assert translator.count_tokens(["", "Ein Hund"]) == [1, len(encode("Ein Hund")) + 1]


def test_alternatives_follow_best_first_and_all_differ(translator):
    for item in translator.translate(TEXTS[:2], beam=4, n_best=4):
        scores = [item.score, *(other.score for other in item.alternatives)]

        assert len(scores) == 4
        assert scores == sorted(scores, reverse=True)
        assert len(set(scores)) == 4


def test_a_wider_search_is_asked_for_by_its_beam(translator):
    greedy = translator.translate(TEXTS, beam=1, length_penalty=0.0)
    wide = translator.translate(TEXTS, beam=8, length_penalty=0.0)

    assert sum(item.score for item in wide) > sum(item.score for item in greedy)


def test_each_translation_begins_with_its_own_prefix(translator):
    prefixes = ["Ein Hund", "", "Schnee", "Zwei"]

    found = translator.translate(["a dog", "a hat", "snow", "two"], prefixes=prefixes, beam=2)

    free = translator.translate(["a hat"], beam=2)[0]
    assert [item.text.startswith(p) for item, p in zip(found, prefixes, strict=True)] == [True] * 4
    assert found[1].text == free.text


def test_a_prefix_of_a_long_text_stands_at_its_beginning_only(translator):
    long = "A dog runs across the grass. " * 60

    plain, forced = (
        translator.translate([long], beam=1, prefixes=prefixes)[0].text
        for prefixes in (None, ["Zwei Männer"])
    )

    assert forced.startswith("Zwei Männer")
    assert forced.count("Zwei Männer") == plain.count("Zwei Männer") + 1


def test_a_long_text_is_the_translations_of_its_pieces(translator):
    sentences = [f"A dog runs across {number} hats." for number in range(30)]
    text = " ".join(sentences)
    limit = 200
    assert len(translator.source_tokenizer.encode(text)) > 2 * limit

    whole = translator.translate([text], beam=1)[0]

    pieces = split_long(text, lambda t: len(translator.source_tokenizer.encode(t)), limit=limit)
    parts = translator.translate(pieces, beam=1)
    assert len(pieces) > 2
    assert all(len(translator.source_tokenizer.encode(piece)) <= limit for piece in pieces)
    assert whole.text == " ".join(part.text.strip() for part in parts)
    assert whole.score == pytest.approx(sum(part.score for part in parts) / len(parts), rel=1e-4)


@pytest.mark.parametrize(
    "text",
    ["漢" * 5000, "a\u3000\n\x00" * 1250, "one " + " " * 4995 + "x"],
    ids=["han", "control", "gap"],
)
def test_a_text_of_5000_characters_without_sentences_is_answered(translator, text):
    found = translator.translate([text, "a hat"], beam=1)

    assert found[0].text
    assert found[1].text == translator.translate(["a hat"], beam=1)[0].text


def test_a_model_with_few_positions_gets_shorter_pieces(translator):
    small = shortened(translator, 40)

    found = small.translate(["A dog runs across the grass and the snow. " * 5, "漢" * 50], beam=2)

    assert all(item.text for item in found)


@pytest.fixture(scope="module")
def sentences(translator):
    """The same weights, as of a bundle that has learnt from normalised single sentences."""
    lengths = SourceLengths(median=10, longest=30, several=0.0)
    bundle = dataclasses.replace(
        translator.bundle, normalisation="text", languages=("en", "de"), source_lengths=lengths
    )
    bundle = dataclasses.replace(bundle, known=Known(edges=Edges(("",), ("", "."), "")))
    return Translator(bundle)


@pytest.mark.parametrize("beam", [1, 3])
def test_the_sentences_of_a_text_are_translated_one_by_one(sentences, beam):
    text = "A dog runs.  An old hat.\n\n\t- Grass and snow.\n"
    alone = sentences.translate(["A dog runs.", "An old hat.", "Grass and snow."], beam=beam)

    [whole] = sentences.translate([text], beam=beam)

    first, second, third = (translation.text for translation in alone)
    assert whole.text == f"{first}  {second}\n\n\t- {third}\n"
    assert whole.score == pytest.approx(sum(item.score for item in alone) / 3, abs=1e-4)
    assert [part.text for part in whole.segments] == [first, second, third]
    assert [part.segment.text for part in whole.segments][2] == "Grass and snow."
    [unsplit] = sentences.translate([text], beam=beam, split=False)
    assert [part.segment.text for part in unsplit.segments] == [
        "A dog runs. An old hat.",
        "Grass and snow.",
    ]


def test_unclean_text_is_translated_as_clean_text(sentences, translator):
    clean, *unclean = ["A café.", "A  cafe\u0301.", "\ufeffA\u00a0café\u200b.\r", "\tA café. "]
    expected = sentences.translate([clean])[0]

    found = sentences.translate(unclean)

    assert [normalised(item.text) for item in found] == [normalised(expected.text)] * 3
    assert [item.score for item in found] == pytest.approx([expected.score] * 3, abs=1e-4)
    assert {item.text for item in translator.translate(unclean)} != {expected.text}


def test_unclean_pairs_are_scored_as_clean_ones(sentences, translator):
    clean, unclean = ("A café.", "Ein Café."), ("\ufeffA  cafe\u0301.", "Ein\u00a0Cafe\u0301. ")
    first, second = zip(clean, unclean, strict=True)

    scores = sentences.score(first, second)

    assert scores[0] == scores[1]
    assert len(set(sentences.count_tokens(second))) == 1
    assert len(set(translator.score(first, second))) == 2


def test_capitals_are_translated_in_small_letters_and_written_in_capitals(sentences):
    small, capitals = sentences.translate(["An old hat", "AN OLD HAT"], alignment=True)

    assert capitals.text == small.text.upper()
    assert [link.source for link in capitals.alignment] == [link.source for link in small.alignment]
    for link in capitals.alignment:
        assert 0 <= link.target[0] < link.target[1] <= len(capitals.text)


def test_drawing_is_repeated_by_its_seed(translator):
    def drawn(seed):
        return [t.text for t in translator.translate(TEXTS, sampling=Sampling(seed=seed))]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert drawn(-1) == drawn(-1)
    assert drawn(2**70) == drawn(2**70)


def test_drawing_only_the_likeliest_is_greedy(translator):
    for one in (Sampling(top_k=1), Sampling(top_p=1e-9), Sampling(temperature=1e-6)):
        drawn = translator.translate(TEXTS, sampling=one)

        greedy = translator.translate(TEXTS, beam=1)
        assert [item.text for item in drawn] == [item.text for item in greedy]


def test_a_single_text_is_refused(translator):
    with pytest.raises(TypeError, match="a list of texts, not one text"):
        translator.translate("A dog.")


def test_what_does_not_pair_is_refused(translator):
    with pytest.raises(ValueError, match="1 prefixes for 2 texts"):
        translator.translate(["a", "b"], prefixes=["x"])
    with pytest.raises(ValueError, match="2 sources and 1 target"):
        translator.score(["a", "b"], ["x"])
    with pytest.raises(TypeError, match="sources must be a list of texts, not one text"):
        translator.score("ab", "cd")


def test_a_model_in_training_mode_scores_nothing(translator):
    translator.model.train()
    try:
        with pytest.raises(ValueError, match="the model is in training mode: call"):
            translator.score(["a"], ["b"])
    finally:
        translator.model.eval()


@every(
    "wrong",
    [
        {"beam": 0},
        {"n_best": 0},
        {"beam": 2, "n_best": 3},
        {"length_penalty": -1.0},
        {"repetition_penalty": 0.9},
        {"no_repeat_ngram": -1},
        {"min_length": 501},
    ],
)
def test_a_number_out_of_its_range_is_refused(translator, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        translator.translate(["a dog"], **wrong)


def test_what_the_model_has_no_positions_for_is_refused(translator):
    small = shortened(translator, 40)

    with pytest.raises(
        UsageError, match=r"a prefix has \d+ subwords, .* room for [\d,]+: shorten it"
    ):
        small.translate(["a"], prefixes=["Schnee " * 20])
    with pytest.raises(
        InputError, match=r"pair 2 has \d+ subwords on a side, .* for 40: shorten it"
    ):
        small.score(["a", "a"], ["b", "Schnee " * 20])


def test_a_prefix_that_the_tokenizer_cannot_write_is_refused(translator, monkeypatch):
    tokenizer = type(translator.target_tokenizer)  # without bytes, as some that are brought
    real = tokenizer.encode_batch
    monkeypatch.setattr(
        tokenizer,
        "encode_batch",
        lambda self, texts: [
            [self.unk_id] if "漢" in text else real(self, [text])[0] for text in texts
        ],
    )

    with pytest.raises(
        UsageError, match="a prefix has a character that the target tokenizer lacks: leave it out"
    ):
        translator.translate(["a", "b"], prefixes=["Ein", "漢"])


@pytest.mark.parametrize("device", ["gpu", "meta", "cuda:99", "", "cpu:x"])
def test_a_device_that_is_not_here_is_refused(bundle_directory, device):
    with pytest.raises(UsageError, match=f"device '{device}': "):
        Translator.load(bundle_directory, device=device)


def test_cuda_where_there_is_none_is_refused(bundle_directory, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    with pytest.raises(UsageError, match="device 'cuda': this machine has 0 CUDA devices"):
        Translator.load(bundle_directory, device="cuda")
    assert Translator.load(bundle_directory, device="auto").device == torch.device("cpu")


def test_on_a_gpu_attention_does_not_use_cudnn(monkeypatch):
    """It would compile a kernel for each new shape."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    torch.backends.cuda.enable_cudnn_sdp(True)  # an earlier test may have had a GPU of its own
    try:
        assert device_of("auto") == torch.device("cuda")
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(True)


def test_an_unknown_engine_is_refused(bundle_directory):
    with pytest.raises(UsageError, match="engine 'tensorflow'"):
        Translator.load(bundle_directory, engine="tensorflow")


def test_a_translator_by_ctranslate2_scores_and_counts_as_before(bundle_directory, translator):
    other = Translator.load(bundle_directory, device="cpu", engine="ctranslate2")

    assert other.count_tokens(TEXTS) == translator.count_tokens(TEXTS)
    assert other.score(TEXTS, TEXTS) == translator.score(TEXTS, TEXTS)
    long = " ".join(f"A dog runs across {number} hats." for number in range(18))
    found, expected = (one.translate([long, "a hat"], beam=1) for one in (other, translator))
    assert [item.text for item in found] == [item.text for item in expected]
    assert [item.score for item in found] == pytest.approx([i.score for i in expected], **FINITE)


GLOSSARY = {"dog": ["Hund", "Köter"], "old hat": "alter Hut", "snow": "Schnee", "漢字": "Zeichen"}


def test_a_translation_holds_the_terms_of_its_text_and_of_no_other(translator):
    plain = translator.translate(TEXTS)
    found = translator.translate(TEXTS, glossary=GLOSSARY)

    assert re.search(r"\b(Hund|Köter)\b", found[0].text)
    assert re.search(r"\balter Hut\b", found[1].text)
    assert re.search(r"\bSchnee\b", found[4].text)
    assert re.search(r"\bZeichen\b", found[6].text)
    free = (2, 3, 5)
    assert [found[place].text for place in free] == [plain[place].text for place in free]
    scores = [plain[place].score for place in free]
    assert [found[place].score for place in free] == pytest.approx(scores, **FINITE)


def test_each_segment_of_a_long_text_has_its_own_terms(translator):
    small = shortened(translator, 60)
    text = "A dog runs across the grass; it is old. " * 2 + "Two men sit in the snow."
    [found] = small.translate([text], glossary={"dog": "Hund", "snow": "Schnee"})
    assert found.text.count("Hund") >= 2
    assert "Schnee" in found.text


def test_a_prefix_and_a_glossary_go_together(translator):
    [found] = translator.translate(["A dog."], prefixes=["Zwei "], glossary={"dog": "Hund"})
    assert found.text.startswith("Zwei")
    assert re.search(r"\bHund\b", found.text)


def test_another_type_is_one_line_that_names_the_value(translator):
    for texts, message in (
        (["A dog.", None], r"^texts\[1\] is None: expected a text$"),
        ([float("nan")], r"^texts\[0\] is nan: expected a text$"),
        ({"a": "b"}, "^texts must be a list of texts, not dict$"),
    ):
        with pytest.raises(TypeError, match=message):
            translator.translate(texts)
    with pytest.raises(TypeError, match=r"^targets\[0\] is 5: expected a text$"):
        translator.score(["a"], [5])
    for glossary, message in (
        ("terms.tsv", "^glossary must map source terms to target terms, as a dict does, not str"),
        ([("dog", "x")], "as a dict does, not list: read_terms reads a file$"),
        ({"dog": 5}, "^glossary: 'dog': 5: expected a text, or some texts$"),
        ({"dog": ["x", None]}, r"^glossary: 'dog': \['x', None\]: expected a text, or some"),
        ({5: "x"}, "^glossary: 5: 'x': expected a text, or some texts$"),
    ):
        with pytest.raises(TypeError, match=message):
            translator.translate(["a"], glossary=glossary)


@pytest.mark.parametrize("call", ["translate", "score", "align"])
def test_in_a_forked_process_torch_computes_with_one_thread(translator, call):
    """With more it would wait for the helper threads of its parent for ever."""
    texts = [["A dog."]] * (1 if call == "translate" else 2)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        getattr(translator, call)(*texts)
        assert torch.get_num_threads() == 2
        getattr(dataclasses.replace(translator, process=translator.process + 1), call)(*texts)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_translator_goes_to_another_process(bundle_directory, copied):
    translator = Translator.load(bundle_directory, device="cpu")
    before = translator.translate(TEXTS)  # by now its weights are packed

    assert copied(translator).translate(TEXTS) == before


def test_a_translator_is_shown_in_one_line(translator):
    assert re.fullmatch(r"Translator\(en to de, [\d,]+ parameters, cpu\)", repr(translator))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"glossary": {"dog": ""}},
            "glossary: the target term of 'dog' is blank: write a word",
        ),
        (
            {"glossary": {"dog": "Hund " * 50}},
            "a translation with the glossary's terms has 51 subwords, .* for 40: shorten the terms",
        ),
        ({"min_length": 21}, "min_length 21: this model has room for 20 subwords: give less"),
        (
            {"prefixes": ["Hund"], "no_repeat_ngram": 2},
            "no_repeat_ngram 2 could forbid subwords of a prefix: give only one of the two",
        ),
    ],
)
def test_a_glossary_or_search_without_room_is_refused(translator, options, message):
    with pytest.raises(UsageError, match=message):
        shortened(translator, 40).translate(["A dog."], **options)


def test_the_search_s_settings_reach_the_translation(translator):
    texts = ["A dog runs.", "grass and snow"]
    for beam in (1, 3):
        plain = translator.translate(texts, beam=beam)
        long = translator.translate(texts, beam=beam, min_length=30)
        assert all(n > 30 for n in translator.count_tokens([item.text for item in long]))
        penalised = translator.translate(texts, beam=beam, repetition_penalty=3.0)
        assert [item.text for item in penalised] != [item.text for item in plain]
        [once] = translator.translate(texts[:1], beam=beam, min_length=30, no_repeat_ngram=1)
        ids = translator.target_tokenizer.encode(once.text)
        assert len(set(ids)) > len(set(translator.target_tokenizer.encode(long[0].text)))


@every("answer", ["", " ", "<u>", "{x}", "%s"])
def test_a_segment_with_a_blank_translation_stays(answer):
    exact = exact_translator()
    exact.engine.learn([Pair("Search", answer)])

    texts = ["Search", "[Search] ...", "Two dogs run. Search", "&Search", "{x1} Search :D"]
    expected = [*texts[:2], "Zwei Hunde rennen. Search", *texts[3:]]
    assert [each.text for each in exact.translate(texts)] == expected
    assert ways.server(exact, texts) == expected


def test_terms_are_read_though_the_model_tears_them():
    exact = exact_translator()
    exact.engine.learn([Pair("Search JKQX", "Suche JKQX"), Pair("JKQX", "jkqx")])
    texts, terms = ["Search JKQX", "JKQX", "[JKQX]"], {"JKQX": "Ding"}
    expected = ["Suche Ding", "Ding", "[Ding]"]
    with in_the_order_of_words():
        assert [each.text for each in exact.translate(texts)] == ["Suche JKQX", "JKQX", "[JKQX]"]
        assert [each.text for each in exact.translate(texts, glossary=terms)] == expected
        assert ways.server(exact, texts, glossary=terms) == expected


@every("text", ["\ud83d", "A dog \udc4d runs.", "[\ud800]", "A dog.\n***\udfff"])
def test_half_a_character_is_one_line(translator, text):
    for call in (translator.translate, translator.segments):
        with pytest.raises(InputError, match=r"^text 2: character \d+ .* is half a surrogate pair"):
            call(["A dog.", text])
