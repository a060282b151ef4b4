"""Splitting a text into segments, and joining them."""

from hypothesis import given
from hypothesis import strategies as st

from glassformer.web.segments import segmented

LETTERS = st.text(st.sampled_from("ab. ,\t\n\r\u3000é😀"), max_size=60)


@given(LETTERS)
def test_the_segments_of_short_lines_make_the_text_again(text):
    split = segmented(text, len, limit=1000)

    assert split.joined([segment.text for segment in split.segments]) == text
    assert [segment.text for segment in split.segments] == [
        line.strip() for line in text.replace("\r", "\n").split("\n") if line.strip()
    ]


@given(LETTERS, st.integers(1, 12))
def test_segments_stand_where_they_say_and_lose_only_space(text, limit):
    split = segmented(text, len, limit=limit)

    for segment in split.segments:
        assert text[segment.start : segment.start + len(segment.text)] == segment.text
        assert 1 <= len(segment.text) <= limit
        assert segment.cost == len(segment.text) + 1
    joined = split.joined([segment.text for segment in split.segments])
    assert "".join(joined.split()) == "".join(text.split())
    assert joined.splitlines() == [] or len(joined.splitlines()) == len(text.splitlines())


def test_a_long_line_is_joined_by_spaces():
    split = segmented("  Eins zwei. Drei vier.\n", len, limit=12)

    assert [segment.text for segment in split.segments] == ["Eins zwei.", "Drei vier."]
    assert split.joined(["A.", "B."]) == "  A. B.\n"
