"""Files keep all but their texts, and hostile ones get one line."""

import io
import zipfile

import pytest
from lxml import etree

from glassformer.support.errors import InputError
from glassformer.tools.documents.files.formats import FORMATS, read_file, translated_file
from tests.tables import every

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def shouted(data, format):
    """The file with every text in capitals, but for the markup in it."""
    content = read_file(data, format)
    if not content.html:
        return content.write([text.upper() for text in content.texts])

    def upper(text):
        return "".join(
            part if part.startswith("<") else part.upper()
            for part in text.replace("<", "\0<").replace(">", ">\0").split("\0")
        )

    return content.write([upper(text) for text in content.texts])


def document(body):
    return f"<w:document {W}><w:body>{body}</w:body></w:document>"


def docx(body, **parts):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", document(body))
        for name, part in parts.items():
            archive.writestr(f"word/{name}.xml", part)
    return written.getvalue()


def body_of(data, name="document"):
    """The XML of a part, without namespaces and attributes."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        root = etree.fromstring(archive.read(f"word/{name}.xml"))
    for element in root.iter():
        element.tag = etree.QName(element).localname
        element.attrib.clear()
    etree.cleanup_namespaces(root)
    return etree.tostring(root, encoding="unicode")


@every("format", FORMATS)
def test_a_file_whose_texts_stay_is_the_same_file(format):
    data = {
        "txt": b"\xef\xbb\xbfHi, all.\r\n\r\n  Bye.\n",
        "html": b"<p title='a'>Hi <b>all</b>.</p>",
        "srt": b"\xef\xbb\xbf1\r\n00:01 --> 00:02\r\n{\\an8}Hi & <i>all</i>\r\nnow.\r\n\r\n2\r\n",
        "vtt": b"WEBVTT - x\n\nNOTE a --\n\nid\n00:01.000 --> 00:02.000 align:start\n<v Ann>Hi\n",
        "po": b'#: a.c:1\n#, c-format\nmsgid "%d <b>file</b>\\n"\nmsgstr "%d Datei"\n\n',
        "docx": docx("<w:p><w:r><w:t>12 %</w:t></w:r></w:p>"),
    }[format]
    content = read_file(data, format)

    written = content.write(content.texts)

    if format == "docx":
        assert body_of(written) == body_of(data)
    else:
        assert written == data


def test_a_cue_is_one_text_and_keeps_its_number_of_lines():
    data = b"1\n00:01 --> 00:02\nThe dog runs over\nthe green meadow.\n\n2\n00:03 --> 00:04\nWhy?\n"

    content = read_file(data, "srt")

    assert content.texts == ["The dog runs over the green meadow.", "Why?"]
    assert content.write(["Der Hund läuft über die grüne Wiese.", "Warum?"]).decode() == (
        "1\n00:01 --> 00:02\nDer Hund läuft über\ndie grüne Wiese.\n\n2\n00:03 --> 00:04\nWarum?\n"
    )


def test_two_people_in_a_cue_are_two_texts():
    data = b"1\n00:01 --> 00:02\n- Hi.\n<i>- Bye.</i>\n"

    assert read_file(data, "srt").texts == ["- Hi.", "<i>- Bye.</i>"]
    assert shouted(data, "srt") == b"1\n00:01 --> 00:02\n- HI.\n<i>- BYE.</i>\n"


@every(
    ("cue", "texts"),
    [
        ("Hi.\n- Bye\nnow.\n–Why?", ["Hi.", "- Bye now.", "–Why?"]),
        ("♪ Oh, what\na day ♪\nCome on.", ["♪ Oh, what a day ♪ Come on."]),
        ("♪ Oh. ♪\n♪ Ah\nso ♪", ["Oh.", "♪ Ah so ♪"]),
        ("Hi,\n[A man laughs]\nTom.", ["Hi,", "A man laughs", "Tom."]),
        ("(door)\n( Tom ) Hi (all)", ["door", "( Tom ) Hi (all)"]),
        ("<i>Hi.</i>\n<b>Bye.</b>", ["<i>Hi.</i>", "<b>Bye.</b>"]),
        ("Hi.\n<i>Bye.</i>\nNow", ["Hi.", "<i>Bye.</i>", "Now"]),
        ("<i>I go</i>\n<i>home.</i>", ["<i>I go</i> <i>home.</i>"]),
        ("Hi\n\n \nall\n", ["Hi", "all"]),
    ],
)
@every("line_end", ["\n", "\r\n"])
def test_each_speaker_of_a_cue_has_a_text_of_its_own(cue, texts, line_end):
    data = f"1\n00:01 --> 00:02\n{cue}\n2\n00:03 --> 00:04\n".replace("\n", line_end).encode()

    content = read_file(data, "srt")

    assert content.texts == texts
    assert content.write(texts) == data


def test_a_voice_of_webvtt_has_a_text_of_its_own_and_a_blank_line_ends_a_cue():
    data = (
        b"WEBVTT\n\n00:01 --> 00:02\n<v Ann>Hi\nall\n<v Tom>Bye\n\nNOTE no\n\nid\n00:03 --> 00:04\n"
    )
    data += b"Yes\n"

    assert read_file(data, "vtt").texts == ["<v Ann>Hi all", "<v Tom>Bye", "Yes"]


HOSTILE = ["1", "1\n\n\n", "1\n2\n", "-->", "-->\n", "[a]", "[", "<i>", "<i>a\n", "♪ a\n", " "]


@every("unit", HOSTILE)
@every(("format", "head"), [("srt", ""), ("vtt", "WEBVTT\n")])
def test_hostile_subtitles_are_read(unit, format, head):
    """In linear time: these take many minutes in quadratic time."""
    data = f"{head}1\n00:01 --> 00:02\n{unit * 40_000}".encode()

    content = read_file(data, format)

    assert content.write(content.texts).count(b"-->") == data.count(b"-->")


def test_cues_without_a_blank_line_between_them_stay_apart():
    data = (
        b"1\n00:01 --> 00:02\nHi.\n2\n00:03 --> 00:04\nBye.\n \n\n3 \n\n00:05 --> 00:06\nYes. 4\n"
    )

    assert read_file(data, "srt").texts == ["Hi.", "Bye.", "Yes. 4"]
    assert shouted(data, "srt") == data.upper()


def test_runs_of_one_format_are_one_text():
    bold = "<w:rPr><w:b/></w:rPr>"
    data = docx(
        "<w:p><w:pPr><w:jc/></w:pPr><w:r><w:t>The d</w:t></w:r><w:proofErr/>"
        "<w:r><w:rPr><w:noProof/></w:rPr><w:t>og </w:t></w:r>"
        f"<w:r>{bold}<w:t>runs</w:t></w:r><w:r><w:t>.</w:t><w:tab/><w:t>Now</w:t></w:r></w:p>"
    )

    assert read_file(data, "docx").texts == ['The dog <span id="0">runs</span>.<br id="0">Now']
    assert body_of(shouted(data, "docx")) == (
        "<document><body><p><pPr><jc/></pPr><r><t>THE DOG </t></r><r><rPr><b/></rPr><t>RUNS</t></r>"
        "<r><t>.</t></r><r><tab/></r><r><t>NOW</t></r></p></body></document>"
    )


def test_links_pictures_and_fields_stay_and_text_boxes_are_read():
    field = "".join(
        f"<w:r>{part}</w:r>"
        for part in (
            '<w:fldChar w:fldCharType="begin"/>',
            "<w:instrText>DATE</w:instrText>",
            '<w:fldChar w:fldCharType="separate"/>',
            "<w:t>May</w:t>",
            '<w:fldChar w:fldCharType="end"/>',
        )
    )
    box = "<w:drawing><w:txbx><w:p><w:r><w:t>in</w:t></w:r></w:p></w:txbx></w:drawing>"
    data = docx(
        f"<w:p><w:hyperlink><w:r><w:t>see</w:t></w:r></w:hyperlink>{field}"
        f"<w:r><w:t> it</w:t>{box}</w:r><w:ins><w:r><w:t> now</w:t></w:r></w:ins></w:p>"
    )
    content = read_file(data, "docx")

    assert content.texts == [
        '<a id="0">see</a><img id="1"> it<img id="2"> now',
        "in",
    ]
    written = body_of(shouted(data, "docx"))
    assert "<hyperlink><r><t>SEE</t></r></hyperlink><r><fldChar/></r>" in written
    assert "<t>May</t>" in written
    assert "<r><t> IT</t></r><r><drawing><txbx><p><r><t>IN</t>" in written


def test_controls_and_moved_text_are_translated():
    def run(text):
        return f"<w:r><w:t>{text}</w:t></w:r>"

    def moved(side, text):
        name = f"w:move{side}"
        return f"<{name}RangeStart/><{name}>{run(text)}</{name}><{name}RangeEnd/>"

    data = docx(
        f"<w:p>{run('Dear ')}<w:sdt><w:sdtPr/><w:sdtContent>{run('client')}</w:sdtContent></w:sdt>"
        f"{moved('From', 'old')}{moved('To', ' we move')}</w:p>"
    )

    assert read_file(data, "docx").texts == ['Dear <a id="0">client</a> we move']
    written = body_of(shouted(data, "docx")).replace("<r><t>", "").replace("</t></r>", "")
    assert written == (
        "<document><body><p>DEAR <sdt><sdtPr/><sdtContent>CLIENT</sdtContent></sdt> WE MOVE</p>"
        "</body></document>"
    )


def test_notes_and_headers_are_translated_and_other_parts_stay():
    paragraph = f"<w:p {W}><w:r><w:t>page</w:t></w:r></w:p>"
    data = docx("<w:p/>", header1=paragraph, footnotes=paragraph, styles=paragraph)

    written = shouted(data, "docx")

    assert [body_of(written, name) for name in ("header1", "footnotes", "styles")] == [
        "<p><r><t>PAGE</t></r></p>",
        "<p><r><t>PAGE</t></r></p>",
        "<p><r><t>page</t></r></p>",
    ]


def test_words_move_in_a_word_document_with_their_format(backwards):
    data = docx(
        "<w:p><w:r><w:t>see </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>red</w:t></w:r>"
        "<w:r><w:t> hat</w:t></w:r></w:p>"
    )

    assert body_of(translated_file(backwards, data, "docx")) == (
        "<document><body><p><r><t>Hut </t></r><r><rPr><b/></rPr><t>rot</t></r>"
        "<r><t> siehe</t></r></p></body></document>"
    )


def test_control_characters_of_a_model_do_not_reach_the_xml():
    content = read_file(docx("<w:p><w:r><w:t>Hi</w:t></w:r></w:p>"), "docx")

    assert "<t>Hallo</t>" in body_of(content.write(["Ha\x00l\x0blo"]))


def bomb():
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b" " * (101 << 20))
    return written.getvalue()


@every(
    ("format", "data", "message"),
    [
        ("txt", b"a\xff", "not UTF-8 (byte offset 1)"),
        ("vtt", "é".encode("utf-16"), "not UTF-8"),
        ("docx", b"hello", "not a Word document"),
        ("docx", docx("<w:p>")[:-40], "not a Word document"),
        ("docx", docx("<w:p>"), "one of its parts is no XML"),
        ("docx", bomb, "101 MiB unpacked: expected at most 100 MiB"),
        ("po", b'msgid "\xff"\nmsgstr ""\n', "not UTF-8"),
        ("srt", b"A man\n", "not subtitles: no line has times, as 00:00:01,000 --> 00:00:02,000"),
        (
            "vtt",
            b"1\n00:01 --> 00:02\nHi\n",
            "not WebVTT: the first line does not begin",
        ),
    ],
)
def test_damaged_files_get_one_line(format, data, message):
    with pytest.raises(InputError) as caught:
        read_file(data() if data is bomb else data, format)

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_entities_of_xml_are_not_resolved():
    part = (
        f'<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/hostname">]><w:document {W}><w:body><w:p>'
        "<w:r><w:t>a &x; b</w:t></w:r></w:p></w:body></w:document>"
    )
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("word/document.xml", part)

    assert read_file(written.getvalue(), "docx").texts == ["a "]
