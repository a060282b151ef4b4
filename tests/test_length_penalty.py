"""The length penalty of a bundle is that of whoever says no other."""

from dataclasses import replace

import pytest

from glassformer.tools.inspection.trace.build import trace
from glassformer.tools.inspection.trace.schema import Query
from glassformer.translator import Translator

TEXT = "grass and snow"


@pytest.fixture(scope="module")
def translator(bundle_directory):
    return Translator.load(bundle_directory, device="cpu")


@pytest.fixture(scope="module")
def own(translator):
    return replace(translator, bundle=replace(translator.bundle, length_penalty=2.0))


def test_a_translator_takes_its_bundles(translator, own):
    said = translator.translate([TEXT], length_penalty=2.0)

    assert said[0].score != translator.translate([TEXT])[0].score
    assert own.translate([TEXT]) == said
    assert own.translate([TEXT], length_penalty=0.6) == translator.translate([TEXT])


def test_so_does_a_trace(own):
    for parts in (own, own.bundle):
        assert trace(parts, TEXT).asked.length_penalty == 2.0
    assert trace(own, Query(TEXT, length_penalty=0.0)).beam.length_penalty == 0.0
