"""Scores against values worked out by hand and against sacreBLEU's own interface."""

import json
import math
import sys
from functools import cache

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from sacremoses.corpus import NonbreakingPrefixes

from glassformer.evaluation import (
    LANGUAGES,
    MOSES,
    PAPER_RULER,
    Scores,
    alignment_error_rate,
    corpus_scores,
    evaluate,
    metric_for,
    paper_ruler,
    perplexity,
    reference_loss,
)
from glassformer.support.errors import InputError, UsageError
from tests.tables import every

REFERENCES = [
    "Ein Mann mit einem orangefarbenen Hut, der etwas anstarrt.",
    "Ein Boston Terrier läuft über saftig-grünes Gras.",
    "Fünf Leute in Winterjacken stehen im Schnee.",
    "Leute reparieren das Dach eines Hauses.",
]
HYPOTHESES = [
    "Ein Mann mit einem orangefarbenen Hut, der etwas anschaut.",
    "ein Boston Terrier rennt über grünes Gras.",
    "Fünf Leute in Winterjacken stehen im Schnee.",
    "Menschen reparieren das Dach.",
]


def test_a_perfect_output_has_perfect_scores():
    scores = corpus_scores(REFERENCES, REFERENCES, language="de")

    assert scores.bleu == pytest.approx(100)
    assert scores.chrf == pytest.approx(100)
    assert scores.paper_ruler == pytest.approx(100)
    assert (scores.ter, scores.exact_match, scores.sentences) == (0, 100, 4)


TEXTS = st.lists(
    st.lists(st.sampled_from(["ein", "Hund,", "„rot“", "3.5", "红色的狗。", "x-y"]), max_size=6),
    min_size=1,
    max_size=12,
)


@given(TEXTS, st.sampled_from([None, "de", "zh", "ja", "Thai"]))
def test_bleu_ranks_only_where_it_gives_a_perfect_output_a_hundred(texts, language):
    references = [" ".join(text) for text in texts]
    bleu = corpus_scores(references, references, language=language, quick=True).bleu
    if metric_for(references, language) == "bleu":
        assert bleu == pytest.approx(100)
    if bleu < 1:
        assert metric_for(references, language) == "chrf"


@given(st.lists(st.tuples(st.text("ab ", max_size=6), st.text("ab ", max_size=6)), min_size=1))
def test_cer_is_the_least_number_of_edits(pairs):
    @cache
    def edits(text, other):
        if not text or not other:
            return len(text + other)
        return min(
            edits(text[1:], other) + 1,
            edits(text, other[1:]) + 1,
            edits(text[1:], other[1:]) + (text[0] != other[0]),
        )

    texts, others = map(list, zip(*pairs, strict=True))
    characters = max(sum(map(len, others)), 1)
    expected = 100 * sum(edits(*pair) for pair in pairs) / characters
    assert corpus_scores(texts, others).cer == pytest.approx(expected)
    assert corpus_scores(texts, [others, texts]).cer == 0


@pytest.mark.parametrize(("with_four", "metric"), [(19, "chrf"), (20, "bleu")])
def test_a_fifth_of_the_references_must_have_a_four_gram(with_four, metric):
    references = ["ein Hund läuft."] * with_four + ["ein Hund läuft"] * (100 - with_four)
    assert metric_for(references, "de") == metric


def test_an_output_that_shares_nothing_scores_nothing():
    scores = corpus_scores(["xyz xyz xyz xyz"], ["Das Boot fuhr gut"], language="de")

    assert (scores.bleu, scores.chrf, scores.exact_match, scores.paper_ruler) == (0, 0, 0, 0)
    assert scores.ter == 100


def test_bleu_and_ter_have_the_values_worked_out_by_hand():
    # a b c d e against a b c d f: 4/5 words, 3/4 pairs, 2/3 triples, 1/2 fours; one edit in five.
    scores = corpus_scores(["a b c d e"], ["a b c d f"])

    assert scores.bleu == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4))
    assert scores.ter == pytest.approx(20)


def test_a_short_output_pays_the_brevity_penalty():
    scores = corpus_scores(["a b c d"], ["a b c d e"])

    assert scores.bleu == pytest.approx(100 * math.exp(1 - 5 / 4))


def test_scores_are_those_of_sacrebleu():
    scores = corpus_scores(HYPOTHESES, REFERENCES)

    assert scores.bleu == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert scores.chrf == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2).score
    assert scores.ter == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score
    assert scores.exact_match == 25


def test_signatures_say_how_each_score_was_made():
    signatures = corpus_scores(HYPOTHESES, REFERENCES, language="de").signatures

    version = f"version:{sacrebleu.__version__}"
    assert signatures["bleu"] == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|{version}"
    assert "nw:2" in signatures["chrf"].split("|")
    assert "tok:tercom" in signatures["ter"].split("|")
    assert {"case:lc", "norm:moses-de", "tok:moses-de", version} <= set(
        signatures["paper_ruler"].split("|")
    )


def test_several_references_each_count():
    other = ["Menschen reparieren das Dach.", "nichts", "nichts", "Menschen reparieren das Dach."]

    scores = corpus_scores(HYPOTHESES, [REFERENCES, other])

    assert scores.bleu == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES, other]).score
    assert scores.exact_match == 50
    assert scores.signatures["bleu"].startswith("nrefs:2|")


def test_quick_leaves_out_what_is_slow_and_changes_nothing_else():
    quick = corpus_scores(HYPOTHESES, REFERENCES, language="de", quick=True)
    full = corpus_scores(HYPOTHESES, REFERENCES, language="de")

    assert (quick.ter, quick.cer, quick.paper_ruler) == (None, None, None)
    assert (quick.bleu, quick.chrf, quick.exact_match) == (full.bleu, full.chrf, full.exact_match)
    assert set(quick.signatures) == {"bleu", "chrf"}


@pytest.mark.parametrize("language", [None, "xx", "ja"])
def test_there_is_no_paper_ruler_without_rules_for_the_language(language):
    assert (corpus_scores(HYPOTHESES, REFERENCES, language=language).ter is None) == (
        language == "ja"
    )
    assert corpus_scores(HYPOTHESES, REFERENCES, language=language).paper_ruler is None


BY_TOKENIZER = {
    "zh": ["zh", "zh_TW", "zho_Hans", "cmn", "yue", "Chinese"],
    "char": ["ja", "jpn", "my", "mya", "Thai", "bo"],
    "13a": ["de", "deu_Latn", None, "none"],
}


@every(
    ("language", "tokens"), [(name, key) for key, names in BY_TOKENIZER.items() for name in names]
)
def test_scripts_without_spaces_are_cut_into_characters(language, tokens):
    scores = corpus_scores(["我喜欢猫和狗"], ["我喜欢猫和鱼"], language=language, quick=True)

    assert f"tok:{tokens}" in scores.signatures["bleu"].split("|")
    assert (scores.bleu > 0) == (tokens in {"zh", "char"})


@every("hypothesis", ["", " ", "\u2028", ".", "a\x00b", "猫" * 300])
def test_odd_lines_are_scored_like_any_other(hypothesis):
    scores = corpus_scores([hypothesis, ""], ["Ein Hund.", ""], language="de")

    assert scores.exact_match == 50
    assert math.isfinite(scores.ter)


@given(st.lists(st.text(max_size=12), min_size=4, max_size=4), st.permutations(range(4)))
def test_the_order_of_the_sentences_is_irrelevant(hypotheses, order):
    straight = corpus_scores(hypotheses, REFERENCES, quick=True)

    turned = corpus_scores(
        [hypotheses[i] for i in order], [REFERENCES[i] for i in order], quick=True
    )

    assert turned == straight


# Cut by hand, after the rules of the Moses scripts. The English one holds ’ between letters, where
# it is an apostrophe, and at the end of a word, where the scripts write a double quote, and put it
# after the dots.
TOKENISED_BY_HAND = [
    ("de", "Ein Mann, der „Ja!“ ruft.", 'ein mann , der " ja ! " ruft .'),
    ("en", "The dog’s ball – it ‚rolls’…", "the dog 's ball - it ' rolls ... \""),
    ("de", "Ein saftig-grünes T-Shirt", "ein saftig-grünes t-shirt"),
    ("fr", "L'homme « rit »", 'l\' homme " rit "'),
    (
        "de",
        "Das Tor (5,3 m) von Dr. Ungewitter & Co.",
        "das tor ( 5,3 m ) von dr. ungewitter & co .",
    ),
]


@pytest.mark.parametrize(("language", "written", "tokens"), TOKENISED_BY_HAND)
def test_the_paper_ruler_cuts_text_as_by_hand(language, written, tokens):
    # The score must be the very one of the hand-made tokens, for an output that is right in part.
    measured = paper_ruler([f"x {written}"], [written], language=language)

    expected = sacrebleu.corpus_bleu([f"x {tokens}"], [[tokens]], tokenize="none", force=True)
    assert measured.score == pytest.approx(expected.score)
    assert 0 < measured.score < 100


def test_the_paper_ruler_ignores_case_and_the_shape_of_quotes():
    assert paper_ruler(['EIN "HUND" LÄUFT'], ["Ein „Hund“ läuft"], language="de").score == (
        pytest.approx(100)
    )


def test_the_paper_ruler_is_labelled_wherever_it_is_shown():
    table = str(corpus_scores(HYPOTHESES, REFERENCES, language="de"))

    line = next(line for line in table.splitlines() if line.startswith("paper ruler"))
    assert PAPER_RULER in line
    assert "not comparable with cased sacreBLEU" in line


def test_without_its_extra_there_is_no_paper_ruler(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)

    assert corpus_scores(["ein Hund"], ["ein Hund"], language="de").paper_ruler is None
    with pytest.raises(InputError, match=r"needs sacremoses: pip install 'glassformer\[ruler\]'"):
        paper_ruler(["ein Hund"], ["ein Hund"], language="de")


def test_the_ruler_has_the_languages_of_moses():
    assert set(NonbreakingPrefixes().available_langs.values()) == MOSES


def test_a_language_without_moses_rules_is_an_error_of_the_paper_ruler():
    with pytest.raises(UsageError, match=r"cannot tokenise language 'xx': .*\bde, el, en\b"):
        paper_ruler(["a"], ["a"], language="xx")


def test_known_languages_are_codes_in_order():
    assert {"de", "en", "fr", "zh", "ja"} <= set(LANGUAGES)
    assert list(LANGUAGES) == sorted(set(LANGUAGES))


@pytest.mark.parametrize("score", [corpus_scores, lambda h, r: paper_ruler(h, r, language="de")])
def test_lists_that_do_not_belong_together_are_refused(score):
    with pytest.raises(InputError, match="2 translations and 1 reference"):
        score(["a", "b"], ["a"])
    with pytest.raises(InputError, match="1 translation and 2 references"):
        score(["a"], [["a"], ["a", "b"]])
    with pytest.raises(InputError, match="no sentences to score"):
        score([], [])
    with pytest.raises(TypeError, match="put it in a list"):
        score("a", ["a"])


def test_scores_become_json_that_is_valid_even_where_a_loss_is_infinite():
    scores = Scores(sentences=1, bleu=1.0, chrf=2.0, exact_match=0.0, loss=math.inf)

    values = json.loads(json.dumps(scores.as_dict(), allow_nan=False))

    assert (values["bleu"], values["loss"], values["perplexity"]) == (1.0, None, None)


@pytest.mark.parametrize(
    ("loss", "expected"), [(0.0, 1.0), (math.log(7), 7.0), (710.0, math.inf), (-1e4, 0.0)]
)
def test_perplexity_is_the_exponential_of_the_loss(loss, expected):
    assert perplexity(loss) == pytest.approx(expected)


def test_the_perplexity_of_no_number_is_no_number():
    assert math.isnan(perplexity(math.nan))


class Guesser:
    """Translates by a phrase table, and finds each token of anything as likely as one in eight."""

    def translate(self, texts, /, *, beam):
        self.beam = beam
        return [type("Translated", (), {"text": text.upper()}) for text in texts]

    def score(self, sources, targets, /):
        assert len(sources) == len(targets)
        return [-math.log(8) * count for count in self.count_tokens(targets)]

    def count_tokens(self, targets, /):
        return [len(target.split()) + 1 for target in targets]


def test_the_loss_of_the_references_is_per_token():
    assert reference_loss(Guesser(), ["x", "y"], ["a b c", ""]) == pytest.approx(math.log(8))


def test_evaluate_translates_and_scores():
    guesser = Guesser()

    scores = evaluate(guesser, ["ein hund", "b"], ["EIN HUND", "c"], beam=3, language="de")

    assert guesser.beam == 3
    assert scores.exact_match == 50
    assert scores.perplexity == pytest.approx(8)
    assert "perplexity       8.00" in str(scores)


def test_a_tokenised_text_is_remarked_on(capfd):
    texts = ["Ein Hund läuft heim ."] * 120
    scores = corpus_scores(texts, texts)
    assert scores.tokenised
    assert "the text looks tokenised (it ends in ' .')" in str(scores)
    clean = [text.replace(" .", ".") for text in texts]
    assert "tokenised" not in str(corpus_scores(clean, texts)).split("\n")[1]
    assert capfd.readouterr().err == ""  # sacreBLEU's own hint names an option that is not ours


LINKS = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)))


def written(links, mark="-"):
    return [f"{source}{mark}{target}" for source, target in sorted(links)]


@given(st.lists(st.tuples(LINKS, LINKS, LINKS), max_size=5))
def test_the_alignment_error_rate_is_that_of_och_and_ney(pairs):
    links = [" ".join(written(found)) for found, _, _ in pairs]
    gold = [" ".join(written(sure) + written(possible, "p")) for _, sure, possible in pairs]
    found, sure = ({(n, x) for n, pair in enumerate(pairs) for x in pair[side]} for side in (0, 1))
    possible = sure | {(n, x) for n, pair in enumerate(pairs) for x in pair[2]}
    rate = alignment_error_rate(links, gold)

    if not found or not sure:
        assert 0 <= rate <= 1
        return
    precision, recall = len(found & possible) / len(found), len(found & sure) / len(sure)
    parts = len(found) + len(sure)
    assert rate == pytest.approx(1 - (precision * len(found) + recall * len(sure)) / parts)
    assert alignment_error_rate([" ".join(written(s | p)) for _, s, p in pairs], gold) == 0


@every(
    ("links", "gold", "message"),
    [
        (["0-0"], [], r"1 lines of links, 0 of gold: expected as many"),
        (["0-0"], ["0001 1 1 S"], r"link '0001': expected 0-1, or 0p1"),
        (["0:0"], ["0-0"], r"link '0:0': expected 0-1"),
    ],
)
def test_links_of_another_form_are_refused(links, gold, message):
    with pytest.raises(InputError, match=message):
        alignment_error_rate(links, gold)
