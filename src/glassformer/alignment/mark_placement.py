"""The places of marks in a translation, which follow from the alignment.

A pair of tags goes around a run of target words. The alignment links the words of the run to
the source words between the tags. A point goes beside the target word of the nearest linked word.
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate, groupby

from glassformer.data.bare_text import Node
from glassformer.data.words import Link, Span, words

__all__ = ["diagonal", "is_spaced", "places"]

_PUNCTUATION = 0.5  # weight of a link of punctuation, which is less sure than a link of words


def places(
    nodes: Sequence[Node], texts: tuple[str, str], links: Sequence[Link], *, least: int = 0
) -> list[Span]:
    """For each node, the span of the target inside the node; an empty span for a point.

    ``texts`` holds the bare source and the translation. No span begins before ``least``. A span
    lies inside the parent's span and apart from other spans. Ordered points keep their order.

    >>> links = [Link((0, 3), (4, 7)), Link((4, 7), (0, 3))]
    >>> bold = Node((0, 3), (6, 10), (0, 3), -1, False)
    >>> places([bold, Node((14, 17), None, (7, 7), -1, True)], ("one two", "2wo 1ne"), links)
    [(4, 7), (7, 7)]
    """
    linked, placing = _Linked(texts, links, least), _Placing(texts[1], least)
    ink = list(accumulate((not character.isspace() for character in texts[0]), initial=0))
    whole = {-1: ink[-1]} | {n: ink[x.place[1]] - ink[x.place[0]] for n, x in enumerate(nodes)}
    for number, node in enumerate(nodes):
        if node.closing and node.parent in placing.spans:
            inside = placing.spans[node.parent]
            if whole[number] == whole[node.parent]:
                text = texts[1][slice(*inside)]
                start = inside[1] - len(text.lstrip())
                placing.put(number, node, (start, start + len(text.strip())))
            elif run := linked.run(node.place, inside):
                wider = _wider(texts, node.place, run)
                placing.put(number, node, wider if placing.fits(wider, node.parent) else run)
    for number, node in enumerate(nodes):
        if number not in placing.spans:
            beside = _apart(texts, node.place[0], linked.beside(node.place[0]))
            place = placing.outside(beside, node.parent)
            word = placing.free_word(place, node.parent) if node.closing else (place, place)
            placing.put(number, node, word)
    _keep_order(nodes, placing.spans)
    return [placing.spans[number] for number in range(len(nodes))]


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


class _Linked:
    """The links of words, by source word and by target word."""

    def __init__(self, texts: tuple[str, str], links: Sequence[Link], least: int) -> None:
        self._texts = texts
        self._least = least
        self._links: dict[Span, list[Link]] = defaultdict(list)
        surest: dict[Span, Link] = {}
        for link in links:
            self._links[link.source].append(link)
            is_word = texts[1][link.target[0]].isalnum()
            if link.target[0] >= least and is_word == texts[0][link.source[0]].isalnum():
                best = max(surest.get(link.target, link), link, key=lambda each: each.weight)
                surest[link.target] = best
        self._words = sorted(self._links)
        self._surest = [surest[target] for target in sorted(surest)]
        self._by_source = sorted((x.source[0], n) for n, x in enumerate(self._surest))

    def run(self, place: Span, inside: Span) -> Span | None:
        """The neighbouring target words with the surest links to a place of the source."""
        first, last = (bisect_left(self._by_source, (end, -1)) for end in place)
        members = sorted(number for _, number in self._by_source[first:last])
        spans = [self._surest[number].target for number in members]
        pairs = zip(members, spans, strict=True)
        fitting = [n for n, span in pairs if inside[0] <= span[0] and span[1] <= inside[1]]
        groups = groupby(enumerate(fitting), lambda each: each[1] - each[0])
        runs = [[self._surest[number] for _, number in group] for _, group in groups]
        if not runs:
            return None
        run = max(runs, key=lambda run: sum(link.weight for link in run))
        return run[0].target[0], run[-1].target[1]

    def beside(self, place: int) -> int:
        """The target place for a source place, beside the nearest and surest linked word."""
        most = len(self._texts[1])
        if place in (0, len(self._texts[0])):
            return self._least if place == 0 else most
        before = bisect_right(self._words, place, key=lambda word: word[1]) - 1
        after = bisect_left(self._words, place, key=lambda word: word[0])
        sides: list[tuple[float, int]] = []
        for number, end, nearest in ((before, 1, max), (after, 0, min)):
            for word in self._words[number : number + 1] if number >= 0 else []:
                weight = max(link.weight for link in self._links[word])
                targets = [x.target[end] for x in self._links[word] if x.weight == weight]
                weight *= 1 if self._texts[0][word[0]].isalnum() else _PUNCTUATION
                sides.append((weight / (1 + abs(place - word[end])), nearest(targets)))
        return max(sides, default=(0.0, most), key=lambda side: side[0])[1]


class _Placing:
    """The spans of the nodes so far; node -1 has the whole target from ``least`` on."""

    def __init__(self, target: str, least: int) -> None:
        self.spans = {-1: (least, len(target))}
        self._pairs: dict[int, list[Span]] = defaultdict(list)  # sorted, by parent
        found = words(target)
        self._words = [word for word in found if target[word[0]].isalnum()] or found

    def put(self, number: int, node: Node, span: Span) -> None:
        self.spans[number] = span
        if node.closing:
            insort(self._pairs[node.parent], span)

    def outside(self, place: int, parent: int) -> int:
        """The place nearest to ``place`` in the span of ``parent`` and outside its pairs."""
        start, end = self.spans[parent]
        place = min(max(place, start), end)
        pairs = self._pairs[parent]
        if number := bisect_left(pairs, (place, -1)):
            first, last = pairs[number - 1]
            if place < last:
                return first if place - first < last - place else last
        return place

    def fits(self, span: Span, parent: int) -> bool:
        """Whether a span lies in the span of ``parent`` and apart from its pairs."""
        start, end = self.spans[parent]
        apart = all(span[1] <= pair[0] or pair[1] <= span[0] for pair in self._pairs[parent])
        return apart and start <= span[0] and span[1] <= end

    def free_word(self, place: int, parent: int) -> Span:
        """The word of ``parent`` at or before ``place``; an empty span if there is none."""
        start, end = self.spans[parent]
        after = bisect_left(self._words, (place, -1))
        near = self._words[max(after - 1, 0) : after + 1]
        for first, last in sorted(near, key=lambda word: word[0] < place):
            beside = bisect_left(self._pairs[parent], (first, last))
            taken = self._pairs[parent][max(beside - 1, 0) : beside + 1]
            apart = all(last <= span[0] or span[1] <= first for span in taken)
            if start <= first and last <= end and apart:
                return first, last
        return place, place


def _apart(texts: tuple[str, str], source: int, place: int) -> int:
    """The place, or the next end of a target word such as "02:12" if the mark stands at a space."""
    at_space = " " in f" {texts[0]} "[source : source + 2]
    start, end = texts[1].rfind(" ", 0, place) + 1, f"{texts[1]} ".find(" ", place)
    halves = texts[1][start:place], texts[1][place:end]
    if at_space and all(any(map(is_spaced, half)) for half in halves):
        return start if place - start < end - place else end
    return place


def _wider(texts: tuple[str, str], place: Span, run: Span) -> Span:
    """The run with all of its first and last target word, such as "02:12", but for signs around it.

    A side of the run stays if it stands inside a source word. So does a run beside letters of a
    script without spaces, such as Han.
    """
    source, target = (f" {text} " for text in texts)
    start, end = target.rfind(" ", 0, run[0] + 1), target.find(" ", run[1] + 1) - 1
    first = next(n for n in range(start, run[0] + 1) if n == run[0] or texts[1][n].isalnum())
    last = next(n for n in range(end, run[1] - 1, -1) if n == run[1] or texts[1][n - 1].isalnum())
    begins, ends = (" " in source[side : side + 2] for side in place)
    wider = first if begins else run[0], last if ends else run[1]
    added = texts[1][wider[0] : run[0]] + texts[1][run[1] : wider[1]]
    return wider if all(map(is_spaced, filter(str.isalnum, added))) else run


def is_spaced(character: str) -> bool:
    """Whether a character is a letter or digit of a script that puts spaces between words."""
    return character.isalnum() and len(words(character + "x")) == 1


def _keep_order(nodes: Sequence[Node], spans: dict[int, Span]) -> None:
    """Sort the places of the ordered points with one parent."""
    groups: dict[int, list[int]] = defaultdict(list)
    for number, node in enumerate(nodes):
        if node.ordered:
            groups[node.parent].append(number)
    for numbers in groups.values():
        rising = sorted(spans[number] for number in numbers)
        spans.update(zip(numbers, rising, strict=True))
