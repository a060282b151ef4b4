"""The page's tokenizer against SentencePiece: ids, texts and spans, for every kind of model."""

import base64
import io
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from glassformer.bundle import load_bundle
from glassformer.data.sentencepiece_model import Piece, PieceType, SentencePieceModel
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import subword_spans
from glassformer.support.errors import InputError, UsageError
from glassformer.tools.web.living_page import write_page
from tests.node import node
from tests.tools.web.engine.texts import SENTENCES, odd_texts

SCRIPT = """
import { Tokenizer } from "./engine/tokenizer.js";

function attempt(work) {
  try {
    return work();
  } catch (error) {
    return error.message;
  }
}

export default function (cases) {
  return cases.map(({ model, options, texts, drawn }) => {
    const tokenizer = new Tokenizer(new Uint8Array(Buffer.from(model, "base64")), options);
    const { padId, unkId, bosId, eosId, size, prefix } = tokenizer;
    const sorted = (ids) => [...ids].sort((a, b) => a - b);
    const read = (ids, text) => [ids, tokenizer.decode(ids), tokenizer.spans(ids, text)];
    return {
      symbols: [padId, unkId, bosId, eosId, size, prefix, sorted(tokenizer.symbols)],
      blank: sorted(tokenizer.blank),
      encoded: texts.map((text) => attempt(() => read(tokenizer.encode(text), text))),
      drawn: texts.map((text, place) => read(drawn[place], text)),
    };
  });
}
"""
SPEED = """
import { Tokenizer } from "./engine/tokenizer.js";

export default function ({ models, texts }) {
  return models.map((model) => {
    const tokenizer = new Tokenizer(new Uint8Array(Buffer.from(model, "base64")), {});
    return texts.map((text) => {
      const begun = performance.now();
      return [tokenizer.encode(text), performance.now() - begun];
    });
  });
}
"""
USER_DEFINED = ["ab", "abc", "bcd", "<x>", "▁c", "éa", "d d", "😀", "\ufeff"]


def trained(kind: str, **options: Any) -> bytes:
    """A model as another program trains it."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20),
        model_writer=written,
        model_type=kind,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
        **{"vocab_size": 120, **options},
    )
    return written.getvalue()


def ours(kind: str, **options: str) -> bytes:
    return train_tokenizer(SENTENCES * 20, vocab_size=420, kind=kind, **options).serialized


def edited(model: bytes, change: Callable[[Piece], Piece], *, step: int = 1) -> bytes:
    """The model with every so many normal piece changed, and with its pieces turned round."""
    parsed = SentencePieceModel.parse(model)
    pieces = [
        change(piece) if place % step == 0 and piece.type == PieceType.NORMAL else piece
        for place, piece in enumerate(parsed.pieces)
    ]
    return parsed.with_pieces(pieces[::-1], {}).serialized()


def unused(piece: Piece) -> Piece:
    return replace(piece, type=PieceType.UNUSED)


def alike(piece: Piece) -> Piece:
    """The piece with a score by its length: all sums for a text differ by rounding alone."""
    return replace(piece, score=-17.3 * len(piece.text))


@dataclass(frozen=True)
class Case:
    """A tokenizer with its texts, and ids drawn at random for each."""

    tokenizer: Tokenizer
    texts: list[str]
    drawn: list[list[int]]

    @classmethod
    def of(cls, tokenizer: Tokenizer, seed: int) -> "Case":
        texts = odd_texts(300, seed)
        draw = random.Random(seed)
        ids = range(tokenizer.vocab_size)
        drawn = [draw.choices(ids, k=draw.randint(0, 9)) for _ in texts]
        return cls(tokenizer, [*texts, "half \ud83d"], [*drawn, []])

    @property
    def given(self) -> dict[str, Any]:
        options = {"prefix": self.tokenizer.prefix, "known": self.tokenizer.known}
        model = base64.b64encode(self.tokenizer.serialized).decode()
        return {"model": model, "options": options, "texts": self.texts, "drawn": self.drawn}


def tokenizers(folder: Path) -> Iterator[tuple[str, Tokenizer]]:
    names = {"bos_piece": "[b]", "eos_piece": "[e]", "pad_piece": "[p]", "unk_piece": "[u]"}
    ids = {"bos_id": 2, "eos_id": 0, "pad_id": 3, "unk_id": 1}
    (folder / "back.tsv").write_text("61\t62 63\n20 20\t20\n64\t\n7A\tFEFF\n")
    for kind in ("bpe", "unigram"):
        own = ours(kind)
        user_defined = trained(kind, user_defined_symbols=USER_DEFINED)
        models = {
            "own": own,
            "own, NFKC": ours(kind, normalization="nfkc"),
            "default": trained(kind),
            "NFKC, case folded": trained(
                kind, vocab_size=400, byte_fallback=True, normalization_rule_name="nmt_nfkc_cf"
            ),
            "no space before": trained(kind, add_dummy_prefix=False, unk_surface="?"),
            "all spaces": trained(
                kind, normalization_rule_name="nfkc", remove_extra_whitespaces=False
            ),
            "space behind": trained(kind, treat_whitespace_as_suffix=True),
            "user-defined": user_defined,
            "changed when decoded": trained(
                kind, denormalization_rule_tsv=str(folder / "back.tsv")
            ),
            "unused": edited(trained(kind), unused, step=3),
            "scores alike": edited(own, alike),
            "user-defined, scores alike": edited(user_defined, alike),
        }
        for name, model in models.items():
            yield f"{kind}, {name}", Tokenizer(model)
        named = trained(kind, control_symbols=["<en>", "x"], **names, **ids)
        yield f"{kind}, names and a prefix", Tokenizer(named, prefix=["<en>"])
        yield f"{kind}, a list", Tokenizer(own, known=330)
        yield f"{kind}, a list without padding", Tokenizer(models["default"], known=60)


@pytest.fixture(scope="module")
def cases(tmp_path_factory) -> dict[str, Case]:
    named = tokenizers(tmp_path_factory.mktemp("rules"))
    return {name: Case.of(each, seed) for seed, (name, each) in enumerate(named)}


@pytest.fixture(scope="module")
def answers(cases) -> dict[str, Any]:
    given = [case.given for case in cases.values()]
    return dict(zip(cases, node(SCRIPT, given), strict=True))


def read(tokenizer: Tokenizer, ids: list[int], text: str) -> list[Any]:
    spans = [list(span) for span in subword_spans(tokenizer, ids, text)]
    return [ids, tokenizer.decode(ids), spans]


def test_symbols_and_blank_subwords(cases, answers):
    for name, case in cases.items():
        each = case.tokenizer
        symbols = [each.pad_id, each.unk_id, each.bos_id, each.eos_id, each.vocab_size]
        symbols += [list(each.prefix_ids), sorted(each.symbols)]
        assert answers[name]["symbols"] == symbols, name
        assert answers[name]["blank"] == sorted(each.blank_ids), name


def test_ids_texts_and_spans_of_9000_odd_texts(cases, answers):
    for name, case in cases.items():
        assert len(case.texts) == 301
        for text, found in zip(case.texts[:-1], answers[name]["encoded"], strict=False):
            expected = read(case.tokenizer, case.tokenizer.encode(text), text)
            assert found == expected, (name, text)


def test_texts_and_spans_of_ids_in_any_order(cases, answers):
    for name, case in cases.items():
        for ids, text, found in zip(case.drawn, case.texts, answers[name]["drawn"], strict=True):
            assert found == read(case.tokenizer, ids, text), (name, ids, text)


def test_half_a_surrogate_pair_is_refused_in_one_line(cases, answers):
    for name, case in cases.items():
        with pytest.raises(InputError, match="half a surrogate pair"):
            case.tokenizer.encode(case.texts[-1])
        message = answers[name]["encoded"][-1]
        assert message == "Half a surrogate pair is no Unicode text."


def test_thousands_of_letters_without_a_space_take_less_than_a_second():
    """Sums of scores beyond 100,000 begin anew, as in SentencePiece."""
    draw = random.Random(3)
    texts = ["".join(draw.choices(letters, k=9_000)) for letters in ("x", "abcdefgh", "abЖ😀")]
    many = [f"<{number}>" for number in range(500)]
    options = {"vocab_size": 900, "user_defined_symbols": [*many, *USER_DEFINED]}
    models = [trained(kind, **options) for kind in ("bpe", "unigram")]
    models += [ours("unigram"), edited(ours("unigram"), alike)]
    encoded = [base64.b64encode(model).decode() for model in models]
    answers = node(SPEED, {"models": encoded, "texts": texts})
    for model, rows in zip(models, answers, strict=True):
        assert [ids for ids, _ in rows] == Tokenizer(model).encode_batch(texts)
        assert max(milliseconds for _, milliseconds in rows) < 1000


def test_models_of_words_or_characters_are_told_apart():
    kinds = ["bpe", "unigram", "word", "char"]
    told = [Tokenizer(trained(kind, vocab_size=60)).cuts_subwords for kind in kinds]
    assert told == [True, True, False, False]


def test_no_page_of_a_tokenizer_of_words(bundle_directory, tmp_path):
    words = Tokenizer(trained("word", vocab_size=60))
    bundle = replace(load_bundle(bundle_directory), target_tokenizer=words)
    with pytest.raises(UsageError, match="whole words or single characters"):
        write_page(bundle, tmp_path / "me.html", face="translate", quantization="int8")
    assert not list(tmp_path.iterdir())
