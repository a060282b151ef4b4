"""Pairs of languages of a multilingual bundle, through the commands."""

import html
import pickle  # noqa: TID251  as a process gets a translator
from dataclasses import replace
from itertools import permutations

import pytest
from starlette.testclient import TestClient

from glassformer.bundle import Bundle, load_bundle, save_bundle
from glassformer.config import ModelConfig
from glassformer.data.sentencepiece_model import Piece, PieceType, SentencePieceModel
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.tokenizer import Tokenizer
from glassformer.model.transformer import Transformer
from glassformer.support.errors import UsageError
from glassformer.support.languages import LanguageTokens
from glassformer.tools.cli.main import main
from glassformer.tools.web import service
from glassformer.tools.web.server import Settings, create_app
from glassformer.translator import Translator

TOKENS = LanguageTokens({"en": "__en__", "de": "__de__", "sr": "srp_Cyrl"})


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A bundle of three languages, random weights."""
    plain = train_tokenizer(["a dog runs", "ein Hund rennt"] * 9, vocab_size=300)
    model = SentencePieceModel.parse(plain.serialized)
    symbols = [Piece(token, type=PieceType.CONTROL) for token in TOKENS.subwords.values()]
    serialized = model.with_pieces([*model.pieces, *symbols], {}).serialized()
    source, target = (Tokenizer(serialized, prefix=(token,)) for token in ("__en__", "__de__"))
    sizes = dict.fromkeys(("source_vocab_size", "target_vocab_size"), source.vocab_size)
    shape = {"d_model": 16, "num_heads": 2, "d_ff": 16}
    model = Transformer(
        ModelConfig(**sizes, **shape, num_encoder_layers=1, num_decoder_layers=1)
    ).eval()
    bundle = Bundle(model, source, target, ("en", "de"), language_tokens=TOKENS)
    directory = tmp_path_factory.mktemp("many") / "bundle"
    save_bundle(bundle, directory)
    return directory


def test_a_bundle_translates_between_any_of_its_languages(many):
    bundle = load_bundle(many)
    assert bundle.language_tokens == TOKENS
    assert bundle.between(None, None) is bundle
    other = Translator.load(many, device="cpu", languages=("de", "srp_Cyrl"))
    assert other.bundle.languages == ("de", "sr")
    assert [tokenizer.prefix for tokenizer in other.tokenizers] == [("__de__",), ("srp_Cyrl",)]
    assert other.bundle.model.config == bundle.model.config
    half = bundle.between("sr", None)
    assert half.languages == ("sr", "de")


PAIRS = [*permutations(TOKENS.subwords, 2)]
TEXTS = ["a dog runs", "ein Hund"]


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_translator_has_all_pairs_of_its_languages_and_one_model(many, engine):
    if engine == "ctranslate2":
        pytest.importorskip("ctranslate2")
    own = Translator.load(many, device="cpu", engine=engine)
    assert sorted(own.bundle.pairs) == sorted(PAIRS)
    assert own.bundle.pairs[0] == ("en", "de")
    texts = set()
    for pair in PAIRS:
        other = own.between(*pair)
        alone = Translator.load(many, device="cpu", engine=engine, languages=pair)
        assert other.translate(TEXTS) == alone.translate(TEXTS)
        assert other.score(TEXTS, TEXTS) == alone.score(TEXTS, TEXTS)
        assert other.model is own.model
        assert other.source_tokenizer.fingerprint == alone.source_tokenizer.fingerprint
        texts.add(other.translate(TEXTS)[0].text)
        if engine == "torch":
            assert pickle.loads(pickle.dumps(other)).translate(TEXTS) == alone.translate(TEXTS)
    assert len(texts) > 2  # the pair does matter


def test_a_server_has_all_pairs_of_a_bundle(many):
    """Beside a bundle of one of the pairs, which keeps it."""
    several = Translator.load(many, device="cpu")
    bundle = replace(several.between("sr", "de").bundle, language_tokens=None)
    one = Translator(bundle)
    app = create_app({"many": several, "one": one}, Settings(beam=1, hosts=None))
    with TestClient(app) as client:

        def ask(path, **question):
            answer = client.post(path, json=question)
            assert answer.status_code == 200, answer.text
            return answer.json()

        languages = {each["code"]: each["targets"] for each in client.get("/languages").json()}
        assert languages == {"de": ["en", "sr"], "en": ["de", "sr"], "sr": ["de", "en"]}
        infos = client.get("/api/v1/translators").json()
        assert [(each["source"], each["target"]) for each in infos] == [("en", "de"), ("sr", "de")]
        assert [sorted(each["languages"]) for each in infos] == [["de", "en", "sr"], []]
        for source, target in PAIRS:
            pair = {"source": source, "target": target}
            [expected] = several.between(*pair.values()).translate(TEXTS[:1], beam=1)
            assert ask("/translate", q=TEXTS[0], **pair)["translatedText"] == expected.text
            page = ask("/translate", q=f"<p>{TEXTS[0]}</p>", format="html", **pair)
            assert expected.text in html.unescape(page["translatedText"])
            trace = ask("/api/v1/trace", text=TEXTS[0], beam=1, **pair)
            assert TOKENS.subwords[source] in str(trace["source"])
        auto = client.post("/detect", json={"q": "a"}).json()
    assert len(auto) == 3


def test_many_languages_are_not_tried_one_by_one(many, monkeypatch):
    monkeypatch.setattr(service, "_MOST_TRIED", 2)
    several = Translator.load(many, device="cpu")
    with TestClient(create_app({"many": several}, Settings(beam=1, hosts=None))) as client:
        answer = client.post("/translate", json={"q": "a dog", "source": "auto", "target": "de"})
        assert answer.status_code == 200  # of two
        answer = client.post("/detect", json={"q": "a dog"})
    assert answer.status_code == 400
    assert answer.json() == {"error": "3 languages are too many to try: name the source"}


@pytest.mark.parametrize("command", ["translate", "evaluate", "backtranslate", "look", "serve"])
def test_each_command_takes_languages(many, tmp_path, refused, command):
    (tmp_path / "text.de").write_text("ein Hund\n")
    files = {
        "evaluate": [tmp_path / "text.de", tmp_path / "text.de"],
        "backtranslate": [tmp_path / "text.de", "--out", tmp_path / "pairs.tsv"],
        "look": ["--text", "a dog", "--out", tmp_path / "look.html"],
        "serve": ["--port", "0"],
    }.get(command, [])
    words = [str(word) for word in (command, many, *files, "--target-language", "xx")]
    assert refused(*words) == (
        2,
        "--target-language 'xx': this model has no such language: expected one of de, en, sr",
    )


def test_the_page_shows_the_languages_asked_for(many, tmp_path, capsys):
    out = tmp_path / "look.html"
    words = ["--text", "a dog", "--source-language", "sr", "--target-language", "en"]
    assert main(["look", str(many), *words, "--out", str(out), "--beam", "1"]) == 0
    assert "srp_Cyrl" in out.read_text()
    capsys.readouterr()


def test_an_export_says_the_pieces_of_the_languages(many, tmp_path, capsys):
    assert main(["export", str(many), str(tmp_path / "model")]) == 0
    assert capsys.readouterr().out.endswith(
        "note: begin each source with the piece __en__\n"
        "note: begin each target_prefix with the piece __de__\n"
    )


def test_an_export_is_of_the_pair_asked_for(many, tmp_path, capsys):
    words = ["--source-language", "sr", "--target-language", "en"]
    assert main(["export", str(many), str(tmp_path / "model"), *words]) == 0
    assert "begin each source with the piece srp_Cyrl" in capsys.readouterr().out


def test_a_bundle_of_one_pair_has_no_other(many):
    bundle = replace(load_bundle(many), language_tokens=None)
    assert bundle.between("eng_Latn", "de") is bundle
    with pytest.raises(UsageError) as fault:
        bundle.between("fr", None)
    assert str(fault.value) == (
        "source_language 'fr': this translator has one pair, en to de: leave it out"
    )
