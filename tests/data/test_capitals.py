"""Words in capitals and titles: read as the model knows them, wherever they stand."""

import pytest

from glassformer.data.capitals import in_known_case
from glassformer.data.preprocessing import Preprocessing
from glassformer.data.subword_training import train_tokenizer
from tests.tables import every

KNOWN = ["the man stands on a ladder near the city"] * 9 + ["FBI", "US and May"] * 5


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(KNOWN, vocab_size=360)


@every(
    ("typed", "read"),
    [
        ("A MAN on a LADDER.", "A man on a ladder."),
        ("LADDER, MAN", "ladder, man"),
        ("The FBI of the US", "The FBI of the US"),  # one piece: the model knows them so
        ("the UNESCO", "the UNESCO"),  # torn in both cases
        ("ON the ladder", "ON the ladder"),  # two letters are mostly a short form
        ("the {MAN} of $LADDER and <MAN>", "the {MAN} of $LADDER and <MAN>"),
        ("The Man Stands On A Ladder", "The man stands on a ladder"),
        ("The Man Stands on A Ladder", "The Man Stands on A Ladder"),  # no title
        ("Man Stands Near", "Man Stands Near"),  # three words may be a name
        ("The Man On May 4 Near Ladder", "The Man On May 4 Near Ladder"),  # a date
        ("", ""),
    ],
)
def test_words_are_read_as_the_model_knows_them(tokenizer, typed, read):
    assert in_known_case(typed, tokenizer) == read


def test_segments_are_read_so_and_keep_their_places(tokenizer):
    read = {
        normalisation: Preprocessing(normalisation).segments([" The MAN"], tokenizer, limit=50)
        for normalisation in ("text", "none")
    }

    [[segment]], [[other]] = read["text"], read["none"]
    assert (segment.text, segment.span, segment.capitals) == ("The man", (1, 8), False)
    assert segment.ids == tokenizer.encode("The man")
    assert other.text.strip() == "The MAN"  # of others' models nobody knows the training text
