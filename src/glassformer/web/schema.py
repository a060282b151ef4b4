"""What goes in and out as JSON: LibreTranslate's shapes, and our own that say more.

Offsets count characters (Unicode code points), from 0; the end is the place after the last.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from glassformer.config import BEAM, MOST_BEAM, MOST_LENGTH_PENALTY
from glassformer.inspection.trace.schema import Changes

__all__ = [
    "Candidate",
    "Document",
    "Documents",
    "Error",
    "Language",
    "Link",
    "Question",
    "Segment",
    "Span",
    "TraceQuestion",
    "TranslatorFacts",
]

Span = tuple[int, int]


def _unicode(text: str) -> str:
    """JSON can say half a surrogate pair, which is no character and which nothing can be sent."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("half a surrogate pair, which is not Unicode text")
    return text


def _plain_text(said: object) -> object:
    """What LibreTranslate takes for text; its other format is refused in its words."""
    if said == "html":
        raise ValueError("html format is not supported")
    return said or "text"


Format = Annotated[Literal["text"], BeforeValidator(_plain_text)]
Text = Annotated[str, AfterValidator(_unicode)]
Code = Annotated[Text, Field(max_length=40)]


class _Question(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True, allow_inf_nan=False)


class Question(_Question):
    """What shall be translated; a member that is not named here is passed over."""

    q: Text | list[Text]
    """A text or a list of texts."""
    source: Code = "auto"
    """A language's code; auto: the one that there is a translator from."""
    target: Code
    """A language's code."""
    format: Format = "text"
    """Only plain text: markup would be translated as if it were words. Empty is text too."""
    alternatives: int = Field(0, ge=0)
    """How many other translations of each text to give."""
    alignment: bool = False
    """Which words belong together; only ``/api/v1/translate`` says it."""
    api_key: str | None = None
    """Where the server asks for one; or in the header ``Authorization: Bearer KEY``."""


class TraceQuestion(_Question):
    """One short text to look into, and what to change before."""

    model_config = ConfigDict(extra="forbid")

    text: Text
    """At most 64 subwords of it are shown."""
    source: Code | None = None
    """A language's code; left out: the first translator's."""
    target: Code | None = None
    """A language's code; left out: the first translator's."""
    beam: int = Field(BEAM, ge=1, le=MOST_BEAM)
    """Hypotheses that are followed at once."""
    length_penalty: float | None = Field(None, ge=0, le=MOST_LENGTH_PENALTY)
    """The paper's alpha (section 6.1); left out: the translator's."""
    forced_prefix: list[int] | Text = ""
    """What the translation must begin with, as text or as ids."""
    top: int = Field(10, ge=1, le=50)
    """Candidates of each step."""
    reference: Text | None = None
    """What the translation should have been."""
    changes: Changes = Changes()
    """What is switched off before."""


class Link(BaseModel):
    """A word of the source and one of the target that belong together, within their segment."""

    source: Span
    target: Span
    weight: float


class Candidate(BaseModel):
    """What a segment could be translated to, and how sure the model is of it."""

    text: str
    score: float = Field(description="Log-probability over the length penalty.")
    confidence: float = Field(description="Geometric mean of the tokens' probabilities, 0 to 1.")
    alignment: list[Link] | None = Field(description="null where it was not asked for.")


class Segment(BaseModel):
    """A piece that was translated by itself, mostly a line: where it is in both texts."""

    source: Span
    target: Span
    candidates: list[Candidate] = Field(description="The best first: it stands in the text.")


class Document(BaseModel):
    """A text's translation; the n-th of `alternatives` has each segment's n-th best."""

    text: str
    segments: list[Segment]
    alternatives: list[str]


class Documents(BaseModel):
    """The answer of ``/api/v1/translate``."""

    source: str
    target: str
    documents: list[Document]


class Language(BaseModel):
    """As LibreTranslate says it."""

    code: str
    name: str
    targets: list[str]


class TranslatorFacts(BaseModel):
    """One of the bundles."""

    source: str
    target: str
    parameters: int
    validation: str | None = Field(description="Its scores, as its training found them.")


class Error(BaseModel):
    """Every refusal, whatever its status."""

    error: str
