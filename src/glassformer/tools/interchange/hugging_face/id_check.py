"""Compares an exported ``tokenizer.json`` with the bundle's own tokenizer.

The texts have each subword of both sides beside the next one, mostly with characters between them
that few models know. So they have each character that one side alone knows.
"""

from collections.abc import Callable, Sequence
from itertools import cycle, pairwise
from pathlib import Path

from glassformer.data.sentencepiece_model import PieceType, SentencePieceModel
from glassformer.data.tokenizer import SPACE, Tokenizer
from glassformer.support.errors import counted
from glassformer.support.strangers import shown

__all__ = ["check_texts", "id_note"]

_BETWEEN = ("", "é", "", "ßü", "", "Ж", "", "日本", "", "🐕", "", "\U00010330\U00010331x")
_OF_TEXTS = (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED)


def check_texts(tokenizers: Sequence[Tokenizer]) -> list[str]:
    """Texts with each subword of all tokenizers."""
    models = [SentencePieceModel.parse(model) for model in {t.serialized for t in tokenizers}]
    pieces = [p.text.replace(SPACE, " ") for m in models for p in m.pieces if p.type in _OF_TEXTS]
    between = cycle(_BETWEEN)
    texts = (f"{first}{next(between)}{second}" for first, second in pairwise([*pieces, ""]))
    return [text for text in texts if text.strip()]


def id_note(
    directory: Path, tokenizer: Tokenizer, texts: Sequence[str], normalised: Callable[[str], str]
) -> str:
    """Say on how many of ``texts`` the exported ``directory`` has the ids of ``tokenizer``.

    ``normalised`` is the function that the bundle applies to a text first.
    """
    try:
        from tokenizers import Tokenizer as Exported
    except ImportError:
        return "no ids are compared with the bundle's: that needs pip install tokenizers"
    exported = Exported.from_file(str(directory / "tokenizer.json"))
    exported.encode_special_tokens = True  # as tokenizer_config.json has it
    ours = tokenizer.encode_batch([normalised(text) for text in texts])
    pairs = zip(texts, ours, exported.encode_batch([*texts]), strict=True)
    other = [text for text, ids, theirs in pairs if theirs.ids != [*ids, tokenizer.eos_id]]
    if other:
        example = shown(min(other, key=len))
        return f"{len(other):,} of {counted(len(texts), 'text')} have other ids, such as {example}"
    return f"ids are equal on {counted(len(texts), 'text')}, which have every subword"
