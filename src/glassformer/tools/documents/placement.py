"""The places of marks in a translation, which follow from the alignment.

A pair of tags goes around a run of target words. The alignment links the words of the run to
the source words between the tags. A point goes beside the target word of the nearest linked word.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from glassformer.data.words import Link, Span, words
from glassformer.tools.documents.bare_text import Node

__all__ = ["diagonal", "places"]

_PUNCTUATION = 0.5  # weight of a link of punctuation, which is less sure than a link of words


@dataclass(frozen=True)
class _Pair:
    """A source text, a translation, and the links between both; no mark goes before `least`."""

    source: str
    target: str
    links: Sequence[Link]
    least: int


def places(
    nodes: Sequence[Node], texts: tuple[str, str], links: Sequence[Link], *, least: int = 0
) -> list[Span]:
    """For each node, the span of the target inside the node; an empty span for a point.

    ``texts`` holds the bare source and the translation. No span begins before ``least``. A span
    lies inside the parent's span and apart from other spans. Points of one kind keep their order.

    >>> links = [Link((0, 3), (4, 7)), Link((4, 7), (0, 3))]
    >>> bold, point = Node((0, 3), (6, 10), (0, 3), -1, ""), Node((14, 17), None, (7, 7), -1, "")
    >>> places([bold, point], ("one two", "2wo 1ne"), links)
    [(4, 7), (7, 7)]
    """
    pair = _Pair(*texts, links, least)
    spans = _pair_spans(nodes, pair)
    owners, neighbours = _Owners(nodes, pair, spans), _Neighbours(pair)
    for number, node in enumerate(nodes):
        if node.closing and number not in spans:
            spans[number] = owners.free_word(neighbours.place(node.place[0]), node.parent)
            owners.take(number)
    for number, node in enumerate(nodes):
        if not node.closing:
            place = owners.beside_pairs(neighbours.place(node.place[0]), node.parent)
            spans[number] = place, place
    _keep_order(nodes, spans)
    return [spans[number] for number in range(len(nodes))]


def diagonal(source: str, target: str) -> list[Link]:
    """Links in proportion, for texts without alignment; links never cross.

    >>> [(link.source, link.target) for link in diagonal("a b c d", "x y")]
    [((0, 1), (0, 1)), ((4, 5), (2, 3))]
    """
    sources, targets = words(source), words(target)
    if not sources:
        return []
    return [
        Link(sources[number * len(sources) // len(targets)], word, 0.5)
        for number, word in enumerate(targets)
    ]


def _pair_spans(nodes: Sequence[Node], pair: _Pair) -> dict[int, Span]:
    """The spans of the root (number -1) and of each pair of tags with linked words."""
    spans = {-1: (pair.least, len(pair.target))}
    runs = _runs(nodes, pair)
    ink = list(accumulate((not c.isspace() for c in pair.source), initial=0))
    whole = {-1: ink[-1]} | {
        number: ink[node.place[1]] - ink[node.place[0]] for number, node in enumerate(nodes)
    }
    for number, node in enumerate(nodes):
        if not node.closing or node.parent not in spans:
            continue
        start, end = spans[node.parent]
        if whole[number] == whole[node.parent]:
            start = end - len(pair.target[start:end].lstrip())
            spans[number] = start, start + len(pair.target[start:end].rstrip())
            continue
        fitting = [run for run in runs[number] if start <= run.span[0] and run.span[1] <= end]
        if fitting:
            spans[number] = max(fitting, key=lambda run: run.weight).span
    return spans


@dataclass(frozen=True)
class _Run:
    """Neighbouring linked target words of one pair of tags; `last` numbers the last word."""

    span: Span
    weight: float
    last: int


def _runs(nodes: Sequence[Node], pair: _Pair) -> dict[int, list[_Run]]:
    """The runs of each pair of tags, of target words whose surest links go between the tags.

    Links between a word and a punctuation mark count for nothing.
    """
    owner = [-1] * (len(pair.source) + 1)
    for number, node in enumerate(nodes):
        if node.closing:
            start, end = node.place
            owner[start:end] = [number] * (end - start)
    surest: dict[Span, Link] = {}
    for link in pair.links:
        is_word = pair.target[link.target[0]].isalnum()
        if link.target[0] >= pair.least and is_word == pair.source[link.source[0]].isalnum():
            surest[link.target] = max(surest.get(link.target, link), link, key=lambda x: x.weight)
    runs: dict[int, list[_Run]] = defaultdict(list)
    for word, target in enumerate(sorted(surest)):
        link = surest[target]
        number = owner[link.source[0]]
        while number >= 0:
            before = runs[number][-1] if runs[number] else None
            if before and before.last == word - 1:
                span = before.span[0], target[1]
                runs[number][-1] = _Run(span, before.weight + link.weight, word)
            else:
                runs[number].append(_Run(target, link.weight, word))
            number = nodes[number].parent
    return runs


class _Owners:
    """The innermost pair of tags around each word of the target."""

    def __init__(self, nodes: Sequence[Node], pair: _Pair, spans: dict[int, Span]) -> None:
        self._nodes = nodes
        self._spans = spans
        self._words = words(pair.target)
        self._starts = [start for start, _ in self._words]
        self._owners = [-1] * len(self._words)
        for number in range(len(nodes)):
            if number in spans:
                self.take(number)

    def take(self, number: int) -> None:
        """Give the words in a pair's span to the pair."""
        first, last = (bisect_left(self._starts, place) for place in self._spans[number])
        self._owners[first:last] = [number] * (last - first)

    def free_word(self, place: int, parent: int) -> Span:
        """The word of ``parent`` at or before ``place``; an empty span if there is none."""
        start, end = self._spans[parent]
        place = min(max(place, start), end)
        after = bisect_left(self._starts, place)
        for word in (after, after - 1):
            if 0 <= word < len(self._words) and self._owners[word] == parent:
                first, last = self._words[word]
                if start <= first and last <= end:
                    return first, last
        return (place := self.beside_pairs(place, parent)), place

    def beside_pairs(self, place: int, parent: int) -> int:
        """The place nearest to ``place`` in the span of ``parent`` and outside inner pairs."""
        start, end = self._spans[parent]
        place = min(max(place, start), end)
        word = bisect_right(self._starts, place) - 1
        number = self._owners[word] if word >= 0 else -1
        inside = None
        while number not in (-1, parent):
            inside, number = number, self._nodes[number].parent
        if inside is None or number != parent:
            return place
        first, last = self._spans[inside]
        if not first < place < last:
            return place
        return first if place - first < last - place else last


class _Neighbours:
    """The source words with links, and the links of these words."""

    def __init__(self, pair: _Pair) -> None:
        self._pair = pair
        self._links: dict[Span, list[Link]] = defaultdict(list)
        for link in pair.links:
            self._links[link.source].append(link)
        self._words = sorted(self._links)

    def place(self, place: int) -> int:
        """The target place for a source place, beside the nearest and surest linked word."""
        most = len(self._pair.target)
        if place in (0, len(self._pair.source)):
            return self._pair.least if place == 0 else most
        before = bisect_right(self._words, place, key=lambda word: word[1]) - 1
        after = bisect_left(self._words, place, key=lambda word: word[0])
        sides: list[tuple[float, int]] = []
        if before >= 0:
            word = self._words[before]
            sure, targets = self._surest(word)
            sides.append((sure / (1 + place - word[1]), max(end for _, end in targets)))
        if after < len(self._words):
            word = self._words[after]
            sure, targets = self._surest(word)
            sides.append((sure / (1 + word[0] - place), min(start for start, _ in targets)))
        return max(sides, default=(0.0, most), key=lambda side: side[0])[1]

    def _surest(self, word: Span) -> tuple[float, list[Span]]:
        """The weight and the targets of a word's surest links."""
        links = self._links[word]
        weight = max(link.weight for link in links)
        sure = weight * (1 if self._pair.source[word[0]].isalnum() else _PUNCTUATION)
        return sure, [link.target for link in links if link.weight == weight]


def _keep_order(nodes: Sequence[Node], spans: dict[int, Span]) -> None:
    """Sort the places of the points with one kind and one parent."""
    groups: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, node in enumerate(nodes):
        if node.kind and not node.closing:
            groups[node.kind, node.parent].append(number)
    for numbers in groups.values():
        rising = sorted(spans[number] for number in numbers)
        spans.update(zip(numbers, rising, strict=True))
