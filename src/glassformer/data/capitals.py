"""Words in capitals and in titles: the tokenizer tears a word that the training text lacks."""

import re

from glassformer.data.tokenizer import Tokenizer

__all__ = ["in_known_case"]

_WORD = re.compile(r"(?<!\S)[^\W\d_]+(?=[\s.,;:!?]|$)")
_TITLE = 4  # a title has so many words with capitals; fewer words may be names


def in_known_case(text: str, tokenizer: Tokenizer) -> str:
    """The text, with a word in lower case if the tokenizer keeps only the lower case whole.

    A word in capitals changes if the tokenizer tears the word. FBI stays, because the tokenizer
    tears fbi too. In a title, a word also changes if its lower case is more frequent. A more
    frequent subword comes earlier in the vocabulary.

    >>> from glassformer.data.subword_training import train_tokenizer
    >>> tokenizer = train_tokenizer(["a man on a ladder", "FBI"] * 9, vocab_size=300)
    >>> in_known_case("A MAN of the FBI on a LADDER.", tokenizer)
    'A man of the FBI on a ladder.'
    """
    words = _WORD.findall(text)
    title = len(words) >= _TITLE and all(word[0].isupper() for word in words)
    title &= not any(map(str.isdecimal, text))  # "Mon, May 4, to Fri, May 8" is a date

    def read(match: re.Match[str]) -> str:
        word, lower = match[0], match[0].lower()
        in_title = title and match.start() > 0
        if len(lower) != len(word) or not (in_title or (len(word) > 2 and word.isupper())):
            return word
        typed, known = tokenizer.encode_batch([word, lower], prefixed=False)
        torn = len(typed) > 1 or (in_title and known < typed)
        return lower if len(known) == 1 and torn else word

    return _WORD.sub(read, text)
