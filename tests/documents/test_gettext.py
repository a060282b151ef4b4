"""Gettext's messages: translations come, and all else stays, in polib's order of lines."""

import re
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.documents.files.gettext import read_gettext
from glassformer.errors import InputError

POLISH = "nplurals=3; plural=n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2;"
ARABIC = "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : 4;"
DOGS = 'msgid "dog"\nmsgid_plural "dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
FILE = r"""# Translators' own words.
#note
#
#, fuzzy
msgid ""
msgstr ""
"X²-Generator: by hand\n"
"no field\n"
"Content-Type: text/plain; charset=UTF-8\n"

#.extracted
#: a.c:1
#: b.c:2
#, c-format
#| msgid "Old man"
msgid ""
"An %d \"old\"\t"
"man\n"
"of \\033 years\n"
msgstr ""

#~| msgid "Gone"
#~ msgid "gone"
#~ msgstr ""

  msgctxt "verb"
msgid "close\033[1m\x41\a\%"
msgstr ""

#, fuzzy, no-wrap
msgid "open"
msgstr ""

#, fuzzy
msgid "a\303\244"
msgstr "ä"

msgid "done"
msgstr "fertig"
# The end."""
WRITTEN = r"""# Translators' own words.
# note
#
#, fuzzy
msgid ""
msgstr ""
"X²-Generator: by hand\n"
"no field\n"
"Content-Type: text/plain; charset=UTF-8\n"

#. extracted
#: a.c:1 b.c:2
#, fuzzy, c-format
#| msgid "Old man"
msgid ""
"An %d \"old\"\tman\n"
"of \\033 years\n"
msgstr ""
"AN %D \"OLD\"\tMAN\n"
"OF \\033 YEARS\n"

#~| msgid "Gone"
#~ msgid "gone"
#~ msgstr ""

#, fuzzy
msgctxt "verb"
msgid "close\033[1m\x41\a\%"
msgstr "CLOSE\033[1MA\007\\%"

#, fuzzy, no-wrap
msgid "open"
msgstr "OPEN"

#, fuzzy
msgid "a\303\244"
msgstr "ä"

msgid "done"
msgstr "fertig"

# The end.
"""


def headed(plurals, messages=DOGS):
    return f'msgid ""\nmsgstr "Plural-Forms: {plurals}\\n"\n\n{messages}'


def shouted(text):
    """The file with the messages in capitals as translations."""
    content = read_gettext(text.encode())
    return content.write([each.upper() for each in content.texts]).decode()


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_translations_and_flags_come_and_all_else_stays(line_end, mark):
    assert shouted(mark + FILE.replace("\n", line_end)) == mark + WRITTEN.replace("\n", line_end)
    assert shouted(WRITTEN) == WRITTEN


def test_a_translator_reads_characters_not_escapes():
    assert read_gettext(FILE.encode()).texts == [
        'An %d "old"\tman\nof \\033 years\n',
        "close\033[1mA\a\\%",
        "open",
    ]
    assert read_gettext(rb'msgid "\303\244\x41\033"' + b'\nmsgstr ""').texts == ["äA\033"]


@pytest.mark.skipif(not shutil.which("msgfmt"), reason="gettext is not installed")
def test_gettext_reads_the_written_file():
    written = shouted(headed(POLISH) + '\nmsgid "close\\033[1m"\nmsgstr ""\n')

    subprocess.run(["msgfmt", "-o", "/dev/null", "-"], input=written.encode(), check=True)


def test_a_text_that_is_the_name_of_a_file_opens_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = 'msgid "secret"\nmsgstr ""\n'
    Path("other").write_text(good)
    for name in ("other", str(tmp_path / "other")):
        with pytest.raises(InputError, match="line 1: expected a comment"):
            read_gettext(name.encode())
    Path("# a").write_text(good)
    with pytest.raises(InputError, match="no msgid"):
        read_gettext(b"# a")


@pytest.mark.parametrize("end", "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
def test_no_character_but_a_line_feed_ends_a_line(end):
    text = f'# a{end}b\nmsgid "a{end}b"\nmsgstr ""\n'

    assert read_gettext(text.encode()).texts == [f"a{end}b"]
    assert read_gettext(text.encode()).write(["c"]).decode() == (
        f'# a{end}b\n#, fuzzy\nmsgid "a{end}b"\nmsgstr "c"\n'
    )


def test_flags_of_an_obsolete_message_are_its_own():
    obsolete = '#, fuzzy\n#~ msgid "a"\n#~ msgstr "b"\n\n'

    assert shouted(f'{obsolete}msgid "Man"\nmsgstr ""\n').startswith(f"{obsolete}#, fuzzy\nmsgid")


def test_a_translation_has_the_lines_of_its_text():
    content = read_gettext(b'msgid "a"\nmsgstr ""\n')

    assert content.write(["eins\nzwei"]).endswith(b'msgstr ""\n"eins\\n"\n"zwei"\n')


def test_a_noncharacter_of_a_model_does_not_become_a_backslash():
    content = read_gettext(b'msgid "a"\nmsgstr ""\n')

    assert content.write(["a\ufdd1b"]).decode().endswith('msgstr "a\ufffdb"\n')


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


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_comes_and_goes_as_it_is(text):
    """Also U+2028 and other ends of lines, which gettext's format does not know."""
    text = re.sub("[\ufdd1-\ufdda]", "", text)  # not allowed
    once = read_gettext(b'msgid "a"\nmsgstr ""\n').write([text or "b"]).decode()
    [_, again] = once.split("msgstr ", 1)

    assert read_gettext(f'msgid {again}\nmsgstr ""\n'.encode()).texts == [text or "b"]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (
            b"hello",
            "not a gettext file: line 1: expected a comment, or msgid and msgstr with texts",
        ),
        (b'msgid "a\nmsgstr ""', "not a gettext file: line 1: "),
        (b'# a\nmsgid "a"\nmsgstr ""\n\nmsgid "b"\n', "not a gettext file: line 5: "),
        (b'#| "a"\nmsgid "a"\nmsgstr ""\n', "not a gettext file: line 1: "),
        (b'msgid "a"\n# a\nmsgid "b"\nmsgstr ""\n', "not a gettext file: line 1: "),
        (b'msgid "a"\nmsgstr ""\n# a\nmsgstr "b"\n', "not a gettext file: line 4: "),
        (b"# a\n" * 1000 + b'msgid "a"\nmsgstr ""\n', "each has at most 999 lines"),
        (b"# a\n" + b'msgid ""\n' + b'"a"\n' * 1000 + b'msgstr ""\n', "line 2: expected"),
        ('\nmsgid "a\ufdd1"\nmsgstr ""\n'.encode(), "line 2: U+FDD1 is no character: remove it"),
        (b"# a\n", "not a gettext file: it has no msgid with a msgstr"),
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
    assert seconds(unit, 1 << 19) < 9 * seconds(unit, 1 << 17) + 0.5


def test_twenty_thousand_messages_take_seconds():
    unit = '#: a.c:1\nmsgid "a %d"\nmsgstr ""\n\n'

    assert seconds(unit, 20_000 * len(unit)) < 5


def seconds(unit, size):
    """The processor's time for files of that size."""
    started = time.process_time()
    many = unit * (size // len(unit))
    for text in (many, f'msgid "a"\n{many}', f'msgid "{many}', f'{many}\nmsgid "a"\nmsgstr ""\n'):
        with suppress(InputError):
            content = read_gettext(text.encode())
            content.write(content.texts)
    return time.process_time() - started
