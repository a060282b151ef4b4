"""Language codes of several programs."""

import pytest

from glassformer.support.errors import UsageError
from glassformer.support.languages import LanguageTokens, short_codes, standard_code

TOKENS = LanguageTokens({"en": "__en__", "de": "__de__", "sr": "srp_Cyrl"})


def test_forms_of_one_code_are_one():
    codes = ["eng", "eng_Latn", "en", "EN", "arb_Arab", "zsm_Latn", "in valid"]
    assert [standard_code(code) for code in codes] == [
        "en",
        "en",
        "en",
        "en",
        "ar",
        "ms",
        "in valid",
    ]


def test_short_codes_differ():
    own = ["deu", "de_DE", "deu_Latn", "cmn_Hans", "x"]
    short = short_codes(own)
    assert list(short.values()) == own
    assert len(short) == len(own)
    assert short["zh"] == "cmn_Hans"


@pytest.mark.parametrize("asked", ["sr", "srp_Cyrl", "sr-Cyrl", "srp"])
def test_a_language_is_known_by_any_form(asked):
    if asked == "sr-Cyrl":  # the short code says less
        with pytest.raises(UsageError, match="this model has no such language"):
            TOKENS.pair("en", asked)
    else:
        assert TOKENS.pair("en", asked) == ("en", "sr")


def test_unknown_and_missing_languages_are_named():
    with pytest.raises(UsageError) as fault:
        TOKENS.pair(None, "de")
    assert str(fault.value) == "source_language is missing: this model has 3 languages: de, en, sr"
    with pytest.raises(UsageError) as fault:
        TOKENS.pair("en", "dee")
    assert str(fault.value) == (
        "target_language 'dee': this model has no such language (did you mean 'de'?)"
    )


def test_the_target_may_stand_before_the_source():
    tokens = LanguageTokens({"de": ">>deu<<"}, before="source")
    assert tokens.pair(None, "deu") == (None, "de")
    assert tokens.pair("eng", "de") == ("en", "de")
    assert tokens.prefixes(None, "de") == ((">>deu<<",), ())
