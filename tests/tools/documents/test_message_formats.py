"""The arguments of messages and translations, compared as gettext compares them."""

import random
import re
import shutil
import subprocess

import pytest

from glassformer.tools.documents.files.message_formats import fits
from tests.tables import every

# Arguments of a language that may stand beside each other in one text.
ARGUMENTS = {
    "c": (["%s", "%d", "%lu", "%-10s", "%5.2f", "%*d", "%%", "%m"], ["%1$s", "%2$d", "%3$s", "%%"]),
    "python": (["%s", "%d", "%r", "%5.2f", "%%"], ["%(a)s", "%(b)d", "%(c)s", "%%"]),
    "python-brace": (["{0}", "{1}", "{a}", "{b!r}", "{c:>3}", "{{", "}}"],),
    "perl-brace": (["{a}", "{b}", "{c}"],),
    "java": (["{0}", "{1}", "{2}"],),
    "qt": (["%1", "%2", "%3"],),
    "kde": (["%1", "%2", "%3"],),
    "sh": (["$a", "${b}", "$c_d"],),
    "php": (["%1$s", "%2$d", "%3$s", "%%"],),
    "javascript": (["%s", "%d", "%%"], ["%1$s", "%2$d", "%%"]),
    "objc": (["%@", "%s", "%d"], ["%1$@", "%2$@", "%3$d"]),
}


def messages(seed, number):
    """Random languages, sources and translations with arguments beside words."""
    rng = random.Random(seed)
    for _ in range(number):
        language = rng.choice([*ARGUMENTS])
        several = rng.choice(ARGUMENTS[language])
        source = rng.choices(several, k=rng.randint(1, 4))
        target = rng.sample(source, len(source))
        if rng.random() < 0.5:
            target = rng.choices(several, k=rng.randint(1, 4))
        yield language, "a ".join(source), "b ".join([*target, ""])


@pytest.mark.skipif(not shutil.which("msgfmt"), reason="gettext's msgfmt is not installed")
def test_gettext_refuses_no_translation_that_fits(tmp_path):
    rows = [*messages(seed=1, number=2000)]
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n'
    entries = [
        f'#, {language}-format\nmsgctxt "{n}"\nmsgid "{source}"\nmsgstr "{target}"\n'
        for n, (language, source, target) in enumerate(rows)
    ]
    file = tmp_path / "all.po"
    file.write_text(header + "".join(entries))
    command = ["msgfmt", "--check-format", "--output-file=/dev/null", file]
    said = subprocess.run(command, capture_output=True, text=True, env={"LC_ALL": "C"}).stderr
    lines = {int(line) for line in re.findall(r"all\.po:(\d+): ", said)}
    refused = {(line - 3) // 4 for line in lines}  # two lines of header, four lines a message

    fitting = {n for n, (language, *pair) in enumerate(rows) if fits(*pair[::-1], [language])}

    assert len(fitting) > 500
    assert len(refused) > 500
    assert [rows[number] for number in sorted(fitting & refused)] == []


@every(
    ("language", "source", "target", "right"),
    [
        ("c", "%s of %s", "%2$s von %1$s", True),
        ("c", "%s of %d", "%d von %s", False),
        ("c", "%d %%", "%d %", False),
        ("c", "%d%% of it", "%d % davon", False),
        ("c", "%s", "%s %1$s", False),
        ("c", "%ld", "%d", False),
        ("c", "%s: %m", "%m: %s", True),
        ("c", "%*d", "%d", False),
        ("c", "%<PRIu64> b", "%<PRIu64> B", True),
        ("python", "%(a)s", "%(b)s", False),
        ("python", "%(a)s %(b)d", "%(b)d %(a)s", True),
        ("python-brace", "{} {}", "{} und {}", True),
        ("python-brace", "{a:>3}", "{a}", False),
        ("python-brace", "{a}", "{a", False),
        ("qt", "%1 %L2", "%L2 %1", True),
        ("qt", "%1", "%L1", False),
        ("qt-plural", "%n dogs", "Hunde", False),
        ("kde", "%1%", "%1 %", True),
        ("sh", "$a ${b}", "$b $a", True),
        ("sh", "a", "$", False),
        ("lisp", "~a~%", "~a", True),
        ("lisp", "~a", "~d", False),
    ],
)
def test_arguments(language, source, target, right):
    assert fits(target, source, [language]) == right


def test_every_language_must_fit():
    assert fits("{a} %s", "%s {a}", ["c", "python-brace"])
    assert not fits("{b} %s", "%s {a}", ["c", "python-brace"])
    assert fits("anything %s", "else", [])


def test_fewer_arguments_are_for_one_thing():
    assert fits("Ein Hund in %2$s", "%1$d dogs in %2$s", ["c"], fewer=True)
    assert not fits("%s", "%d dogs in %s", ["c"], fewer=True)
