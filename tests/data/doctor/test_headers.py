import pytest

from glassformer.data.doctor.headers import is_header


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("source", "target"),
        ("English", "Yoruba"),
        ("en", "de"),
        (" SOURCE_TEXT ", "target text"),
        ('"src"', '"tgt"'),
        ("sentence (en)", "sentence (fr)"),
        ("Deutsch", "Englisch"),
        ("日本語", "English"),
        ("sentence_de", "translation"),
    ],
)
def test_names_of_two_columns_are_a_header(source, target):
    assert is_header(source, target)
    assert is_header(target, source)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("English", "Englisch"),  # a word and its translation
        ("German", "Deutsch"),
        ("source", "source"),
        ("Hello", "Hallo"),
        ("English", "Guten Tag"),
        ("We speak English.", "Wir sprechen Deutsch."),
        ("", ""),
        ("1", "2"),
        ("text", "text"),
        ("english " * 9, "german " * 9),
    ],
)
def test_sentences_are_none(source, target):
    assert not is_header(source, target)
