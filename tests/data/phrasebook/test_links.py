"""True links: told by hand for some phrases; for all, what must hold however they were made."""

import pytest

from glassformer.data.phrasebook.book import oracle, phrasebook, true_links
from glassformer.data.words import words


def spelt(text: str, *, target: str = "de") -> tuple[set[str], set[str]]:
    """The sure links, and those that are only possible, as 'March~März'."""
    found = true_links(text, target=target)
    answer = oracle(text, target=target)
    names = [
        {f"{text[slice(*one)]}~{answer[slice(*other)]}" for one, other in links}
        for links in (found.sure, found.possible - found.sure)
    ]
    return names[0], names[1]


@pytest.mark.parametrize(
    ("text", "sure", "possible"),
    [
        ("Thursday, March 4, 2021", "Thursday~Donnerstag March~März 4~4 2021~2021", ""),
        ("3/4/21", "3~03 4~04 21~21", ""),
        ("3/3/21", "3~03 21~21", ""),  # both, each to its own: see the next test
        ("3:05 PM", "3~15 05~05", "PM~15"),
        ("12:00 AM", "12~00 00~00", "AM~00"),
        ("Mar 4 – 7, 2021", "Mar~März 4~4 –~– 7~7 2021~2021", ""),
        (
            "Wed, Jun 29 – Thu, Jun 30, 1988",
            "Wed~Mi 29~29 –~– Thu~Do Jun~Juni 30~30 1988~1988",
            "Jun~Juni",
        ),
        (
            "Monday, June 8, 1987, 3:05 PM",
            "Monday~Montag June~Juni 8~8 1987~1987 3~15 05~05",
            "PM~15",
        ),
        ("1st quarter 2002", "2002~2002", "1st~1 1st~Quartal quarter~1 quarter~Quartal"),
        ("¥5", "", ""),
    ],
)
def test_links_that_a_person_would_draw(text, sure, possible):
    assert spelt(text) == ({*sure.split()}, {*possible.split()})


def test_equal_numbers_are_told_apart():
    found = true_links("3/3/21")  # 03.03.21: the first 3 is the month, the second 03 as well

    assert ((0, 1), (3, 5)) in found.sure
    assert ((2, 3), (0, 2)) in found.sure
    assert len(found.sure) == len(found.possible) == 3


def test_in_japanese_the_order_turns_round():
    assert spelt("June 7, 2016", target="ja") == ({"June~6", "7~7", "2016~2016"}, set())
    found = sorted(true_links("June 7, 2016", target="ja").sure)
    assert [target[0] for _, target in found] == [5, 7, 0]


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("de", "fr"), ("en", "ja")])
def test_links_join_words_and_each_way_round_the_same(source, target):
    book = phrasebook(source=source, target=target, size=240)
    linked = 0
    for phrase in [*book.train[:60], *book.test]:
        found = true_links(phrase.source, source=source, target=target)
        assert found.sure <= found.possible
        assert {one for one, _ in found.possible} <= {*words(phrase.source)}
        assert {other for _, other in found.possible} <= {*words(phrase.target)}
        for side in (0, 1):  # a sure link leaves no doubt
            assert len({pair[side] for pair in found.sure}) == len(found.sure)
        if oracle(phrase.target, source=target, target=source) == phrase.source:
            back = true_links(phrase.target, source=target, target=source)
            assert {(one, other) for other, one in back.sure} == found.sure
        linked += bool(found.sure)
    assert linked > 50


def test_what_is_no_phrase_has_no_links():
    assert true_links("hello") is None
