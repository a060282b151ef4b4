"""Gettext's messages: translations come, and every other byte stays."""

import time
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from glassformer.data.protected import protected_spans
from glassformer.support.errors import InputError
from glassformer.tools.documents.files.gettext import read_gettext
from tests.tables import every

POLISH = "nplurals=3; plural=n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2;"
ARABIC = "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : 4;"
DOGS = 'msgid "dog"\nmsgid_plural "dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
FILE = r"""# Translators' own words.
#, fuzzy
msgid ""
msgstr ""
"X-Generator: by hand\n"
"Content-Type: text/plain; charset=UTF-8\n"

#.extracted
#: a.c:1
#: b.c:2
#, c-format
#| msgid "Old man"
msgid ""
"An %d \"old\"\t"
"man\n"
msgstr ""

#~| msgid "Gone"
#~ msgid "gone"
#~ msgstr ""

  msgctxt "verb"
msgid "close\033"
msgstr ""

#, fuzzy, no-wrap
msgid "open"
msgstr ""

msgid "done"
msgstr "fertig"
# The end."""


def headed(plurals, messages=DOGS):
    return f'msgid ""\nmsgstr "Plural-Forms: {plurals}\\n"\n\n{messages}'


def shouted(text):
    """The file with the messages in capitals, but for placeholders, as translations."""
    content = read_gettext(text.encode())
    return content.write([each.upper().replace("%D", "%d") for each in content.texts]).decode()


def kept(source, translation):
    """The translation of the only message, as the written file has it."""
    quoted = source.replace("\n", "\\n")
    once = read_gettext(f'msgid "{quoted}"\nmsgstr ""\n'.encode()).write([translation]).decode()
    [_, again] = once.split("msgstr ", 1)
    return read_gettext(f'msgid {again}\nmsgstr ""\n'.encode()).texts[0]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_translations_and_flags_come_and_every_other_byte_stays(line_end):
    expected = (
        FILE.replace("#, c-format", "#, fuzzy, c-format")
        .replace('"man\\n"\nmsgstr ""', '"man\\n"\nmsgstr "AN %d \\"OLD\\"\\tMAN\\n"')
        .replace("  msgctxt", "#, fuzzy\n  msgctxt")
        .replace('033"\nmsgstr ""', '033"\nmsgstr "CLOSE\\033"')
        .replace('"open"\nmsgstr ""', '"open"\nmsgstr "OPEN"')
    )

    assert shouted(FILE.replace("\n", line_end)) == expected.replace("\n", line_end)
    assert read_gettext(FILE.encode()).texts[0] == 'An %d "old"\tman\n'


def test_a_previous_text_stays_after_the_flags():
    before = '#| msgid "Old man"\nmsgid "Man"\nmsgstr ""\n'

    assert shouted(before) == f"#, fuzzy\n{before}".replace('""', '"MAN"')


def test_flags_of_an_obsolete_message_are_its_own():
    obsolete = '#, fuzzy\n#~ msgid "a"\n#~ msgstr "b"\n\n'

    assert shouted(f'{obsolete}msgid "Man"\nmsgstr ""\n').startswith(f"{obsolete}#, fuzzy\nmsgid")


def test_a_translation_has_the_lines_of_its_text():
    content = read_gettext(b'msgid "a"\nmsgstr ""\n')

    assert content.write(["eins\nzwei"]).endswith(b'msgstr ""\n"eins\\n"\n"zwei"\n')


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        (headed(POLISH), "DOG DOGS DOGS"),
        (headed(ARABIC), "DOGS DOG DOGS DOGS DOGS DOGS"),
        (headed("nplurals=1; plural=0;"), "DOG"),
        (headed("nplurals=INTEGER; plural=EXPRESSION;"), "DOG DOGS"),
        (DOGS, "DOG DOGS"),
    ],
)
def test_the_singular_goes_to_the_form_of_one_thing(text, forms):
    expected = [f'msgstr[{n}] "{form}"' for n, form in enumerate(forms.split())]

    assert shouted(text).splitlines()[-len(expected) :] == expected


@given(st.text(st.characters(codec="utf-8", exclude_characters="_&"), min_size=1))
def test_any_text_comes_and_goes_as_it_is(text):
    """Also U+2028 and other ends of lines, which gettext's format does not know."""
    assume(text.strip() and text == text.strip("\n") and not protected_spans(text))

    assert kept("a", text) == text


@given(st.text("a\n").filter(str.strip), st.text("b \n").filter(str.strip))
def test_a_translation_begins_and_ends_with_the_line_ends_of_its_message(source, translation):
    """Else gettext refuses the whole catalogue."""
    inner = source.strip("\n")

    assert kept(source, translation) == source.replace(inner, translation.strip("\n"))


@every(
    ("flags", "source", "translation", "right"),
    [
        ("c-format", "%d of %s", "%d von %s", True),
        ("c-format", "%d of %s", "%2$s hat %1$d", True),
        ("c-format", "%d of %s", "%s hat %d", False),
        ("no-wrap, c-format", "%d of %s", "von %s", False),
        ("c-format", "Update", "%d", False),
        ("no-c-format", "100% of x", "100% der x", True),
        ("kde-format", "%1 of %2", "%2 hat %1", True),
        ("kde-format", "%1 of %2", "%2 hat %2", False),
        ("python-brace-format", "{a} {b}", "{b} {a}", True),
        ("c-format", "<b>Open</b>", "Öffnen", False),
        ("", "Open", "<u>", False),
        ("", "Open {name}", "{name} öffnen", True),
        ("", "Open {name}", "Öffnen", False),
        ("", "Open", " ", False),
    ],
)
def test_a_translation_that_gettext_or_a_program_refuses_is_left_out(
    flags, source, translation, right
):
    text = f"#, {flags}\n" * bool(flags) + f'msgid "{source}"\nmsgstr ""\n'
    new = read_gettext(text.encode()).write([translation]).decode()

    assert new.endswith(f'msgstr "{translation}"\n') if right else new == text


@every(
    ("plurals", "singular", "forms"),
    [
        ("nplurals=2; plural=n != 1;", "Ein Hund", ["Ein Hund", "%d Hunde"]),
        ("nplurals=2; plural=n != 1;", "%d Hund", ["%d Hund", "%d Hunde"]),
        ("nplurals=2; plural=n != 1;", "%s Hund", ["%d Hunde", "%d Hunde"]),
        ("nplurals=2; plural=n > 1;", "Ein Hund", ["%d Hunde", "%d Hunde"]),  # 0 and 1
        ("nplurals=2; plural=n%10!=1;", "Ein Hund", ["%d Hunde", "%d Hunde"]),  # 1, 11, 21
    ],
)
def test_the_singular_leaves_out_its_number_if_it_is_for_one_thing(plurals, singular, forms):
    text = headed(plurals, "#, c-format\n" + DOGS.replace("dogs", "%d dogs"))
    new = read_gettext(text.encode()).write([singular, "%d Hunde"]).decode()

    assert [line for line in new.splitlines() if line.startswith("msgstr[")] == [
        f'msgstr[{n}] "{form}"' for n, form in enumerate(forms)
    ]


@every("credits", ["translator-credits", "translator_credits", "Your names", "Your emails"])
def test_nobody_invents_translators(credits):
    text = f'msgid "{credits}"\nmsgstr ""\n\nmsgid "Your names are"\nmsgstr ""\n'

    assert read_gettext(text.encode()).texts == ["Your names are"]


def test_accelerators_are_counted_in_all_messages():
    """A file of one program has one sign, and most of its messages have a translation."""
    done = "".join(f'msgid "_{n}a"\nmsgstr "x"\n' for n in "abc")
    content = read_gettext(f'{done}msgid "Cu_t"\nmsgstr ""\n'.encode())

    assert content.texts == ["Cut"]
    assert content.write(["Ausschneiden"]).endswith(b'msgstr "_Ausschneiden"\n')


@every(
    ("data", "line"),
    [
        (
            b"hello",
            "not a gettext file: line 1: expected a comment, or msgid and msgstr with texts",
        ),
        (b'msgid "a\nmsgstr ""', "not a gettext file: line 1: "),
        (b'# a\nmsgid "a"\nmsgstr ""\n\nmsgid "b"\n', "not a gettext file: line 5: "),
        (b"# a\n", "not a gettext file: no msgid has a msgstr"),
        (
            b'msgid ""\nmsgstr "charset=KOI8-R\\n"',
            "charset=KOI8-R: expected UTF-8: convert it with",
        ),
        (headed("nplurals=900000000; plural=0;").encode(), "Plural-Forms: nplurals=900000000;"),
        (headed("nplurals=2; plural=n n;").encode(), "expected at most 9 forms, and a formula"),
        (headed("nplurals=2; plural=n/0;").encode(), "expected at most 9 forms"),
        (headed("nplurals=2; plural=2;").encode(), "expected at most 9 forms"),
    ],
)
def test_a_faulty_file_is_one_line(data, line):
    with pytest.raises(InputError) as caught:
        read_gettext(data)

    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "unit",
    [
        '#: a.c:1\nmsgid "a %d"\nmsgstr "b %d"\n\n',
        'msgid "a"\nmsgstr ""\n\n',
        "# a\n",
        '"a"\n',
        'msgid "a"\n',
        'msgctxt "a"\n',
        "#, fuzzy\n",
        '\\"',
        " ",
    ],
)
def test_files_are_read_in_linear_time(unit):
    """A search of the whole file for each message is 16 times slower for 4 times the bytes."""
    assert seconds(unit, 1 << 20) < 9 * seconds(unit, 1 << 18) + 0.5


def seconds(unit, size):
    """The processor's time for files of that size."""
    started = time.process_time()
    many = unit * (size // len(unit))
    for text in (many, f'msgid "a"\n{many}', f'msgid "{many}', f'{many}\nmsgid "a"\nmsgstr ""\n'):
        with suppress(InputError):
            content = read_gettext(text.encode())
            content.write(content.texts)
    return time.process_time() - started
