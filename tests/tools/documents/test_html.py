"""HTML: the tree stays, text is translated in its units, inline tags stay at their words."""

import re
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.words import Link, words
from glassformer.text_engine import Translation
from glassformer.tools.documents.html import Page, translated_html
from tests.tables import every


class Events(HTMLParser):
    """The standard library's reading of a document: tags, attributes, comments, texts."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tree, self.texts, self.stack = [], [], []

    @classmethod
    def of(cls, text):
        events = cls()
        events.feed(text)
        events.close()
        return events

    def handle_starttag(self, tag, attrs):
        self.tree.append(("open", tag, attrs))

    def handle_endtag(self, tag):
        self.tree.append(("close", tag))

    def handle_comment(self, data):
        self.tree.append(("comment", data))

    def handle_decl(self, decl):
        self.tree.append(("declaration", decl))

    def handle_data(self, data):
        self.texts.append(data)


@every(
    ("source", "target"),
    [
        ("<p>Hello you</p>", "<p>hallo du</p>"),
        ("hello", "hallo"),
        ("\n <p>\n  Hello\n  you </p>\n", "\n <p>\n  hallo du </p>\n"),
        ("<p>Click <a href='x'>here</a> now.</p>", "<p>klicke <a href='x'>hier</a> jetzt.</p>"),
        ("<p><b>Hello</b>, <i>you</i></p>", "<p><b>hallo</b>, <i>du</i></p>"),
        ("<p><b><i>Hello you</i></b></p>", "<p><b><i>hallo du</i></b></p>"),
        ("<p>see <b>red <i>hat</i></b> now", "<p>siehe <b>rot <i>Hut</i></b> jetzt"),
        ("<p>see <img src=x alt='red'> now", "<p>siehe <img src=x alt='rot'> jetzt"),
        ("<p>Hello<br>you</p>", "<p>hallo<br>du</p>"),
        ("<p>see <code>hello</code> now</p>", "<p>siehe <code>hello</code> jetzt</p>"),
        ("<p>see <!-- red --> now</p>", "<p>siehe <!-- red --> jetzt</p>"),
        ("<!-- red --> hello <!-- you -->", "<!-- red --> hallo <!-- you -->"),
        ("<td>3.50</td><td>red</td>", "<td>3.50</td><td>rot</td>"),
        ("<p>red &amp; hat &lt; you</p>", "<p>rot Hut du</p>"),
        ("<title>Hello you</title>", "<title>hallo du</title>"),
        ('<p title="Red hat" id="red">', '<p title="rot Hut" id="red">'),
        ("<p title=red id=red>", '<p title="rot" id=red>'),
        ("<a aria-label='red'>hat</a>", "<a aria-label='rot'>Hut</a>"),
        ('<meta name="description" content="red">', '<meta name="description" content="rot">'),
        ("<meta content='hat' property='og:title'>", "<meta content='Hut' property='og:title'>"),
        ('<meta name="author" content="red">', '<meta name="author" content="red">'),
        ('<input type=submit value="red">', '<input type=submit value="rot">'),
        ('<input type=text value="red">', '<input type=text value="red">'),
        ("<input placeholder='red' value='red'>", "<input placeholder='rot' value='red'>"),
        ('<p data-x="a>b" title = "red">hat</p>', '<p data-x="a>b" title = "rot">Hut</p>'),
        ('<a x=" title=">red</a>', '<a x=" title=">rot</a>'),
        ("<p translate=no>red</p>hat", "<p translate=no>red</p>Hut"),
        ("<div class='a notranslate'><div>red</div>hat</div>you", None),
        ("<p>see <span translate='no'>red hat</span> now", None),
        ("<p>see <b></b> now</p>", "<p>siehe <b></b> jetzt</p>"),
        ("<p>see hat<sub>2</sub> now</p>", "<p>siehe Hut<sub>2</sub> jetzt</p>"),
        ("<P>Hello</P ><HR/>You", "<P>hallo</P ><HR/>du"),
        ("<v Ann>see <c.red>hat</c> <00:01.5>now", "<v Ann>siehe <c.red>Hut</c> <00:01.5>jetzt"),
    ],
)
def test_translated_html(words_alone, source, target):
    if target is None:
        target = source.replace("you", "du").replace("see", "siehe").replace("now", "jetzt")

    assert translated_html(words_alone, [source]) == [target]


@every(
    "source",
    [
        "<!DOCTYPE html>\n<script>if (a<b) hello</script><style>hello{}</style>",
        "<pre>hello\n  <b>you</b></pre><textarea>hello</textarea>",
        "<SCRIPT>hello</script >",
        "<svg><text>hello</text></svg>",
        "<?php hello ?>",
        "<p hello you",
        "<!-- hello",
        "<script>hello",
        "&lt;&gt; 12 – ... ",
        "",
    ],
)
def test_what_stays_stays_byte_for_byte(words_alone, source):
    assert translated_html(words_alone, [source]) == [source]
    assert words_alone.calls == []


def test_the_language_of_the_document_becomes_the_target_s(words_alone):
    page = '<html lang="en-US" title="hat"><p lang="en" title="red">see</p></html>'

    assert translated_html(words_alone, [page], language="de") == [
        '<html lang="de" title="Hut"><p lang="en" title="rot">siehe</p></html>'
    ]
    assert '<html lang="en-US"' in translated_html(words_alone, [page])[0]
    assert translated_html(words_alone, ["<HTML lang=en>"], language="de") == ["<HTML lang=de>"]


@pytest.mark.parametrize("end", [".", "?!", "..."])
def test_tags_around_the_end_of_a_sentence_do_not_double_it(words_alone, end):
    """Without its full stop a model writes one, and that of the tags would come beside it."""
    page = f"<p>see <i>hat</i><b>{end}</b></p>"

    assert translated_html(words_alone, [page]) == [f"<p>siehe <i>Hut</i><b>{end}</b></p>"]
    assert words_alone.calls[0][0] == [f"see hat{end}"]


def test_inline_tags_move_with_their_words(backwards):
    source = "<p>see <a href=x>red</a> hat, <b>you <i>have</i></b></p>"

    [target] = translated_html(backwards, [source])

    assert target == "<p><b><i>hast</i> du</b>, Hut <a href=x>rot</a> siehe</p>"


def test_entities_are_read_and_written(words_alone):
    words_alone.keeps = "[&<é]"

    assert translated_html(words_alone, ["<p>a &lt; b&nbsp;&amp; &eacute;&#x2014;&quot;"]) == [
        '<p>a &lt; b&nbsp;&amp; é—"'
    ]
    assert words_alone.calls[0][0] == ['a < b\xa0& é—"']
    assert translated_html(words_alone, ["""<p title='é "&#39;'>"""]) == [
        "<p title='é &quot;&#x27;'>"
    ]


def test_options_go_to_the_translator_and_links_are_asked_for_if_needed(words_alone):
    translated_html(words_alone, ["<p>hello<p>you"], beam=3)
    translated_html(words_alone, ["<p>hello <b>you</b>"], beam=3)

    assert [options for _, options in words_alone.calls] == [
        {"beam": 3, "alignment": False},
        {"beam": 3, "alignment": True},
    ]


PIECES = ["<p>", "</p>", "<b>", "</b>", "<i class='x'>", "</i>", "<br>", "<!--c-->", "<code>"]
PIECES += [
    "</code>",
    "hello",
    " you",
    " red",
    "\n",
    "&amp;",
    ", ",
    "<img id=x>",
    "<div>",
    "</div>",
]


class Loud:
    """Upper case, word for word, with all links."""

    def translate(self, texts, **_options):
        return [
            Translation(text.upper(), -1.0, alignment=tuple(Link(w, w) for w in words(text)))
            for text in texts
        ]


# Markup inside a word moves to the word's edge, and what stands with it.
INSIDE_A_WORD = re.compile(r"\w(?:<[^>]*>|&amp;)(?:[^\w<>&]*(?:<[^>]*>|&amp;))*\w")


@given(st.lists(st.sampled_from(PIECES), max_size=25))
def test_the_standard_librarys_parser_sees_the_same_tree(pieces):
    source = "".join(pieces)

    [target] = translated_html(Loud(), [source])

    before, after = Events.of(source), Events.of(target)
    assert sorted(map(str, after.tree)) == sorted(map(str, before.tree))
    if not INSIDE_A_WORD.search(source):
        assert after.tree == before.tree
        assert " ".join(after.texts).lower().split() == " ".join(before.texts).split()


@pytest.mark.parametrize(
    "unit",
    ["<", "<a ", "<a x='", "<b>", "<!--", "</", "<b>x", "<code>", "<p title=", "<i>x</i>", "&"],
)
def test_hostile_documents_are_read_in_linear_time(unit):
    """A quadratic reader takes minutes: the standard library's does for some."""
    text = unit * (30_000 // len(unit)) + " hello"

    page = Page.of(text)

    assert len(page.texts) <= 1
    written = page.written([Translation(text, -1.0) for text in page.texts])
    assert unescape(written).count("<") == text.count("<")
