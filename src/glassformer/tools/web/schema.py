"""The JSON of requests and answers, in LibreTranslate's shapes and in richer ones of glassformer.

A span is two offsets in Unicode code points: of the first character, and after the last.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from glassformer.config import BEAM, MOST_BEAM, MOST_LENGTH_PENALTY
from glassformer.data.words import Link, Span
from glassformer.tools.inspection.trace.schema import Changes, Query
from glassformer.tools.web.security import RefusedError

__all__ = [
    "Alternative",
    "DetectRequest",
    "DetectedLanguage",
    "Document",
    "ErrorResponse",
    "FileRequest",
    "Language",
    "TraceRequest",
    "TranslateRequest",
    "TranslateResponse",
    "TranslatedSegment",
    "TranslatorInfo",
    "Upload",
]


def _unicode(text: str) -> str:
    """Refuses half a surrogate pair, which JSON can hold although it is no character."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("half a surrogate pair, which is not Unicode text")
    return text


def _format(name: object) -> object:
    """An empty name means text. RefusedError passes pydantic with LibreTranslate's words."""
    if isinstance(name, str) and name not in ("", *get_args(_Format)):
        raise RefusedError(400, f"{_unicode(name)[:40]} format is not supported")
    return name or "text"


def _number(value: object) -> int:
    """The number of alternatives as LibreTranslate reads it: 2 or "2", and at least 0."""
    try:
        return max(0, int(value or 0))  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        raise RefusedError(400, "Invalid request: alternatives parameter is not a number") from None


def _file(value: object) -> object:
    if not isinstance(value, Upload) or not value.name:
        raise RefusedError(400, "Invalid request: missing file parameter")
    return value


_Format = Literal["text", "html"]
Format = Annotated[_Format, BeforeValidator(_format)]
Number = Annotated[int, BeforeValidator(_number)]
Text = Annotated[str, AfterValidator(_unicode)]
Code = Annotated[str, Field(max_length=40), AfterValidator(_unicode)]

_MOST_TERMS = 100
_MOST_FORMS = 20
Term = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_unicode)]
Forms = Term | Annotated[list[Term], Field(min_length=1, max_length=_MOST_FORMS)]


class _Request(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True, allow_inf_nan=False)


class _KeyedRequest(_Request):
    api_key: str | None = None
    """A key, if the server needs one; or send ``Authorization: Bearer KEY``."""


class DetectRequest(_KeyedRequest):
    """The body of ``/detect``; other members are ignored."""

    q: Text | list[Text]
    """A text or a list of texts."""

    @property
    def texts(self) -> list[str]:
        """The texts of ``q``."""
        return [self.q] if isinstance(self.q, str) else self.q


class TranslateRequest(DetectRequest):
    """The body of ``/translate`` and ``/api/v1/translate``; other members are ignored."""

    source: Code = "auto"
    """A language code; auto means the source of the only translator into `target`."""
    target: Code
    """A language code."""
    format: Format = "text"
    """html keeps the markup, without alternatives, segments or alignment. Empty means text."""
    alternatives: Number = 0
    """Number of other translations of each text; less than 0 means 0."""
    alignment: bool = False
    """Align the words; only ``/api/v1/translate`` does."""
    glossary: dict[Term, Forms] = Field({}, max_length=_MOST_TERMS)
    """Target terms by source terms; a list holds alternative forms of a target term. The request's
    terms come before the server's terms. Only JSON can have a glossary."""


@dataclass(frozen=True)
class Upload:
    """A file in a form."""

    name: str | None
    data: bytes


class FileRequest(_KeyedRequest):
    """The form of ``/translate_file``; other fields are ignored."""

    file: Annotated[
        Upload,
        BeforeValidator(_file),
        WithJsonSchema({"type": "string", "format": "binary"}),
    ]
    """A file; the ending of the name is the format."""
    source: Code
    """A language code, or auto."""
    target: Code
    """A language code."""


class TraceRequest(_Request):
    """The body of ``/api/v1/trace``: one sentence and its search."""

    model_config = ConfigDict(extra="forbid")

    text: Text
    """The trace shows at most 64 of its subwords."""
    source: Code | None = None
    """A language code; by default the first translator's."""
    target: Code | None = None
    """A language code; by default the first translator's."""
    beam: int = Field(BEAM, ge=1, le=MOST_BEAM)
    """Beam size."""
    length_penalty: float | None = Field(None, ge=0, le=MOST_LENGTH_PENALTY)
    """The paper's alpha (section 6.1); by default the translator's."""
    forced_prefix: list[int] | Text = ""
    """The translation begins with this text or these ids."""
    top: int = Field(Query.top, ge=1, le=50)
    """Number of candidates at each step."""
    reference: Text | None = None
    """A correct translation."""
    changes: Changes = Changes()
    """Changes of model and source before the search."""


class Alternative(BaseModel):
    """One translation of a segment."""

    text: str
    score: float = Field(description="Log-probability over the length penalty.")
    confidence: float = Field(description="Geometric mean of the tokens' probabilities, 0 to 1.")
    share: float = Field(1.0, description="Its share of the probability of the listed hypotheses.")
    alignment: list[Link] | None = Field(
        description="Links between words, as spans in their segment; null if not asked for."
    )
    doubts: list[str] = Field(
        [], description="Reasons to doubt the text, one sentence each; one needs an alignment."
    )


class TranslatedSegment(BaseModel):
    """A line, a sentence, or a part of a long sentence, with both spans and its translations."""

    source: Span
    target: Span
    hypotheses: list[Alternative] = Field(description="The best first: the text contains it.")


class Document(BaseModel):
    """The translation of a text; the n-th alternative has the n-th hypothesis of each segment."""

    text: str
    segments: list[TranslatedSegment] = []
    alternatives: list[str] = []
    doubts: list[str] = Field([], description="Reasons to doubt the text, of all its segments.")

    @property
    def confidence(self) -> float:
        """The mean confidence of the segments' best hypotheses; 0 without segments."""
        confidences = [segment.hypotheses[0].confidence for segment in self.segments]
        return math.fsum(confidences) / max(len(confidences), 1)


class DetectedLanguage(BaseModel):
    """A language that the texts may have."""

    language: str
    confidence: float = Field(
        description="0 to below 100: the share of the text that looks like the language. Without a"
        " profile: the translator's confidence; 0 for an only translator."
    )


class TranslateResponse(BaseModel):
    """The answer of ``/api/v1/translate``."""

    source: str
    target: str
    documents: list[Document]
    detected: DetectedLanguage | None = Field(description="The language found for the source auto.")


class Language(BaseModel):
    """A language in LibreTranslate's shape."""

    code: str
    name: str
    targets: list[str]


class TranslatorInfo(BaseModel):
    """A served bundle, or two served bundles with a language between them."""

    source: str
    target: str
    parameters: int = 0
    learnt_from: str | None = Field(None, description="The texts of its training, by name.")
    through: str | None = Field(description="The language between two bundles; null: one bundle.")
    examples: list[str] = Field([], description="Texts to try; only the demo's bundle has some.")
    languages: list[str] = Field([], description="A multilingual bundle's; it has all their pairs.")


class ErrorResponse(BaseModel):
    """The answer of every refusal, for any status."""

    error: str
