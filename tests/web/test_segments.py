"""Cutting a text and joining it again."""

from hypothesis import given
from hypothesis import strategies as st

from glassformer.web.segments import cut

LETTERS = st.text(st.sampled_from("ab. ,\t\n\r\u3000é😀"), max_size=60)


@given(LETTERS)
def test_the_pieces_of_short_lines_make_the_text_again(text):
    found = cut(text, len, limit=1000)

    assert found.joined([piece.text for piece in found.pieces]) == text
    assert [piece.text for piece in found.pieces] == [
        line.strip() for line in text.replace("\r", "\n").split("\n") if line.strip()
    ]


@given(LETTERS, st.integers(1, 12))
def test_pieces_stand_where_they_say_and_lose_only_space(text, limit):
    found = cut(text, len, limit=limit)

    for piece in found.pieces:
        assert text[piece.start : piece.start + len(piece.text)] == piece.text
        assert 1 <= len(piece.text) <= limit
        assert piece.cost == len(piece.text) + 1
    said = found.joined([piece.text for piece in found.pieces])
    assert "".join(said.split()) == "".join(text.split())
    assert said.splitlines() == [] or len(said.splitlines()) == len(text.splitlines())


def test_a_long_line_is_joined_by_spaces():
    found = cut("  Eins zwei. Drei vier.\n", len, limit=12)

    assert [piece.text for piece in found.pieces] == ["Eins zwei.", "Drei vier."]
    assert found.joined(["A.", "B."]) == "  A. B.\n"
