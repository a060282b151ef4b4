"""What terminals and notebooks show of records is short, whole, and no markup of its own."""

import re
from base64 import b64decode
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from glassformer.support.displays import Page, Shown, Table

NUMBERS = st.none() | st.integers() | st.floats()
TEXTS = st.text(max_size=300)
VALUES = NUMBERS | TEXTS | st.booleans() | st.lists(st.integers(), max_size=90)
RECORDS = st.dictionaries(TEXTS, VALUES, max_size=30)


class Cells(HTMLParser):
    """The tags of a text of HTML, and the cells of its tables."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.cells = set(), []
        self.feed(html)

    def handle_starttag(self, tag, _):
        self.tags.add(tag)
        self.cells += [""] * (tag == "td")

    def handle_data(self, data):
        self.cells[-1] += data


@given(st.lists(RECORDS, max_size=40))
def test_any_table_is_short_as_text_and_its_html_has_each_cell(records):
    table = Table(records)
    names = list(dict.fromkeys(name for record in records for name in record))
    texts = [*names, *(x for record in records for x in record.values() if type(x) is str)]

    assert len(repr(table)) < 2000
    assert len(repr(table).splitlines()) <= 21
    page = Cells(table._repr_html_())
    assert page.tags <= {"table", "tr", "td"}
    assert len(page.cells) == (len(records) + 1) * len(names)
    assert {" ".join(text.splitlines()) for text in texts} <= {*page.cells}


def test_a_long_table_says_that_it_goes_on():
    table = Table({"row": number} for number in range(1000))

    assert repr(table).splitlines()[-1].strip() == "…"
    assert Cells(table._repr_html_()).cells[-2:] == ["199", "…"]
    assert len(table) == 1000


@given(TEXTS)
def test_a_page_is_whole_in_its_frame(text):
    page = Page(text)

    assert page == text
    assert len(repr(page)) < 100
    assert Cells(page._repr_html_()).tags == {"iframe"}
    data = re.fullmatch(r'<iframe [^<>]*base64,([^"<>]*)"></iframe>', page._repr_html_())[1]
    assert b64decode(data).decode() == text


class Part(Shown):
    remarks = ("2 of 3 <parts> have no rows",)

    def records(self):
        return Table([{"part": 1}])


def test_what_has_no_rows_is_said_in_a_terminal_and_in_a_notebook():
    assert repr(Part()) == "part\n   1\n2 of 3 <parts> have no rows"
    assert Part()._repr_html_().endswith("</table><p>2 of 3 &lt;parts&gt; have no rows</p>")
