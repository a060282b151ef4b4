"""Sentences of the validation text that a bundle keeps: people try the translator with them."""

from collections.abc import Iterable

__all__ = ["MOST_EXAMPLES", "example_sources"]

MOST_EXAMPLES = 3
_LONGEST = 100  # characters: so that it fits on a button and into a trace


def example_sources(sources: Iterable[str]) -> list[str]:
    """Three different sources, at the quarters of their order by length; fewer of a few.

    >>> example_sources(["a b c d e", "a b", "a b c", "a b c d", " ", "a b", "two\\nlines"])
    ['a b c', 'a b c d', 'a b c d e']
    """
    fit = {text for text in sources if text.strip() and len(text) <= _LONGEST}
    fit = {text for text in fit if text.isprintable()}  # one line, without control characters
    ordered = sorted(fit, key=lambda text: (len(text), text))
    places = [len(ordered) * quarter // (MOST_EXAMPLES + 1) for quarter in (1, 2, 3)]
    return [ordered[place] for place in dict.fromkeys(places)] if ordered else []
