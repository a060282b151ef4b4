"""Terms: where a source term stands in a text, and the files."""

import pytest

from glassformer.data.terms import Terms, form_place, read_terms
from glassformer.support.errors import InputError, UsageError
from tests.tables import every

GLOSSARY = {
    "dog": ["hund", "hunde"],
    "guide dog": "blindenhund",
    "New York": "Neu York",
    "York Street": "york-allee",
    "New": "neu",
    "eau": "wasser",
    "don't": "nicht",
    "犬": "hund",
    "Street": "allee",
}


@every(
    ("text", "targets"),
    [
        ("a dog", ["hund"]),
        ("dogs, hotdog, dog2", []),
        ("the dog's bowl", ["hund"]),
        ("(dog)", ["hund"]),
        ("DOG and a Dog", []),  # not at the start of a sentence
        ("new york", []),
        ("a guide dog", ["blindenhund"]),
        ("a guide  dog and a dog", ["blindenhund", "hund"]),
        ("a guide-dog", ["hund"]),  # other words stand between
        ("in New York Street", ["Neu York", "allee"]),  # of two of one length the first
        ("l'eau et l’eau", ["wasser"]),
        ("we don't", ["nicht"]),
        ("we don t", []),
        ("この犬は", ["hund"]),
        ("", []),
    ],
)
def test_a_term_stands_in_a_text_as_whole_words(text, targets):
    assert [forms[0] for forms in Terms.of(GLOSSARY).forms_in(text).values()] == targets


@every("text", ["Dog", "Yes. Dog", "“Dog”", "So? (Dog!)", "犬。Dog", "1 dog. Dog"])
def test_a_capital_at_the_start_of_a_sentence_allows_capitals_in_the_target(text):
    forms = Terms.of({"dog": ["hund", "hunde"]}).forms_in(text)
    assert forms == {"dog": ("hund", "hunde", "Hund", "Hunde")}


def test_an_exact_term_comes_before_a_capitalised_one():
    terms = Terms.of({"apple": "apfel", "Apple": "apple inc"})
    assert terms.forms_in("Apple") == {"Apple": ("apple inc", "Apple inc")}
    forms = terms.forms_in("an apple of Apple")
    assert list(forms.items()) == [("apple", ("apfel",)), ("Apple", ("apple inc",))]


def test_a_composed_and_a_decomposed_accent_are_one_letter():
    [forms] = Terms.of({"cafe\u0301": "kaffee"}).forms_in("un caf\u00e9").values()
    assert forms == ("kaffee",)


def test_the_terms_of_the_second_glossary_come_first():
    both = Terms.of({"dog": "hund", "cat": "katze"}) | Terms.of({"dog": "köter"})
    assert both == Terms.of({"dog": "köter", "cat": "katze"})


@pytest.mark.parametrize(
    ("glossary", "message"),
    [
        ({" ": "hund"}, "glossary: a source term is blank: write a word"),
        ({"dog": " "}, "glossary: the target term of 'dog' is blank: write a word"),
        ({"dog": []}, "glossary: the target term of 'dog' is blank: write a word"),
        (
            {"dog": ["hund", ""]},
            "glossary: the target term of 'dog' is blank: write a word",
        ),
    ],
)
def test_a_blank_term_is_refused(glossary, message):
    with pytest.raises(UsageError) as error:
        Terms.of(glossary)
    assert str(error.value) == message


def test_a_file_holds_a_term_a_line(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("# animals\n\ndog\thund\thunde\t\r\n guide dog \tblindenhund\n", "utf-8")
    assert read_terms(path) == Terms.of({"dog": ["hund", "hunde"], "guide dog": "blindenhund"})


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (b"a\tb\ndog hund\n", "line 2: no tab: expected a source term, a tab and its target term"),
        (b"\thund\n", "line 1: the source term is blank: write the term, or begin with #"),
        (b"dog\t \thunde\n", "line 1: the target term is blank: write the term, or begin with #"),
        (
            b"dog\thund\n#\ndog\thunde\n",
            "line 3: 'dog' stands on line 1 already: write all its forms on one line",
        ),
        (b"dog\th\xffnd\n", "line 1: not UTF-8: 0xFF at byte offset 5 of the line: "),
    ],
)
def test_a_faulty_line_is_named(tmp_path, lines, message):
    path = tmp_path / "terms.tsv"
    path.write_bytes(lines)
    with pytest.raises(InputError) as error:
        read_terms(path)
    assert str(error.value).startswith(f"{path}, {message}")


@every(
    ("text", "form", "place"),
    [
        ("Hunde und ein Hund, Hund", "Hund", (14, 18)),
        ("ein  alter Hut", "alter Hut", (5, 14)),
        ("der Hundehalter", "Hund", None),
        ("l’eau", "eau", (2, 5)),
        ("この犬は", "犬", (2, 3)),
        ("", "Hund", None),
    ],
)
def test_a_form_stands_in_a_translation_as_whole_words(text, form, place):
    assert form_place(text, form) == place
