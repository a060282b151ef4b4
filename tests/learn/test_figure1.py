"""Figure 1 with the learner's own parts."""

import xml.etree.ElementTree as ElementTree

from glassformer.learn.figure1 import COLUMNS, figure_svg, figure_text
from glassformer.learn.lesson import LESSONS


def test_every_lesson_has_a_box():
    named = {lesson for boxes in COLUMNS.values() for box in boxes for lesson in box.lessons}
    assert set(LESSONS) <= named


def test_a_box_is_yours_if_all_its_lessons_are_learned():
    learned = {"attention", "heads", "padding"}
    marks = [
        (text.strip(), mark) for text, mark in figure_text(learned.__contains__) if text.strip()
    ]
    assert ("[ Multi-Head Attention (yours) ]", "yours") in marks
    assert ("[ Masked Multi-Head Attention (partly yours) ]", "partly yours") in marks
    assert ("[ Feed Forward ]", "") in marks


def test_the_picture_is_xml_with_every_box():
    root = ElementTree.fromstring(figure_svg(lambda lesson: lesson == "blocks"))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    boxes = [box for column in COLUMNS.values() for box in column if box.title]
    assert len(texts) == len(boxes) + len(COLUMNS)
    assert texts.count("Feed Forward (yours)") == 2
