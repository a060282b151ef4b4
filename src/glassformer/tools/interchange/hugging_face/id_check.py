"""Compares an exported ``tokenizer.json`` with the bundle's own tokenizer, text by text.

The texts have each subword of both sides, beside the next subword and beside characters of other
scripts. So each character that one side alone knows stands in a text, and characters that neither
side knows.
"""

from collections.abc import Callable, Sequence
from itertools import cycle, pairwise
from pathlib import Path

from glassformer.data.tokenizer import SPACE, Tokenizer
from glassformer.support.errors import counted
from glassformer.support.strangers import shown

__all__ = ["check_texts", "id_note"]

_FOREIGN = ("", "é", "", "ßü", "", "Ж", "", "日本", "", "🐕", "", "\U00010330\U00010331x")


def check_texts(tokenizers: Sequence[Tokenizer]) -> list[str]:
    """Two neighbouring subwords each, mostly with a foreign character between."""
    subwords = [
        tokenizer.subword(index).replace(SPACE, " ")
        for tokenizer in dict.fromkeys(tokenizers)
        for index in range(tokenizer.vocab_size)
        if index not in {*tokenizer.symbols, tokenizer.unk_id}
    ]
    between = cycle(_FOREIGN)
    texts = (f"{first}{next(between)}{second}" for first, second in pairwise([*subwords, ""]))
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
        return "no text's ids are compared with the bundle's: that needs pip install tokenizers"
    exported = Exported.from_file(str(directory / "tokenizer.json"))
    exported.encode_special_tokens = True  # as tokenizer_config.json has it
    ours = tokenizer.encode_batch([normalised(text) for text in texts])
    theirs = exported.encode_batch([*texts])
    other = [
        text
        for text, ids, encoding in zip(texts, ours, theirs, strict=True)
        if encoding.ids != [*ids, tokenizer.eos_id]
    ]
    if other:
        example = shown(min(other, key=len))
        return f"{len(other):,} of {counted(len(texts), 'text')} have other ids, such as {example}"
    return f"ids are equal on {counted(len(texts), 'text')}, which have every subword"
