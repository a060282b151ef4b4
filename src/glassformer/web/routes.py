"""The addresses of the server, and what stands behind each.

`/translate`, `/languages`, `/health` and `/frontend/settings` take and give what LibreTranslate's
do (libretranslate.com/docs), so that its clients work; what lies under `/api/v1` is our own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from glassformer.web.language_names import language_name
from glassformer.web.limits import Keys, Limits, RefusedError
from glassformer.web.metrics import Metrics
from glassformer.web.schema import (
    Documents,
    Error,
    Language,
    Question,
    TraceQuestion,
    TranslatorFacts,
)
from glassformer.web.service import Pair, Service

__all__ = ["Api", "fault"]

T = TypeVar("T")

_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Error} for status in (400, 403, 408, 413, 415, 503)
}
_KINDS = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
_MOST_FIELDS = 100  # of a form
_BODY = {
    "requestBody": {
        "required": True,
        "content": {kind: {"schema": Question.model_json_schema()} for kind in _KINDS},
    }
}


@dataclass(frozen=True)
class Api:
    """The routes of one server."""

    service: Service
    keys: Keys
    limits: Limits
    metrics: Metrics

    def router(self) -> APIRouter:
        """All of them, as FastAPI wants them."""
        router = APIRouter()
        plain = router.add_api_route
        plain("/health", self.health, methods=["GET"])
        plain("/languages", self.languages, methods=["GET"], response_model=list[Language])
        plain("/frontend/settings", self.settings, methods=["GET"])
        plain("/metrics", self.prometheus, methods=["GET"], include_in_schema=False)
        plain("/api/v1/translators", self.translators, methods=["GET"])
        for path, handler, extra in (
            ("/translate", self.translate, _BODY),
            ("/api/v1/translate", self.documents, None),
            ("/api/v1/trace", self.trace, None),
        ):
            plain(path, handler, methods=["POST"], responses=_REFUSALS, openapi_extra=extra)
        return router

    async def health(self) -> dict[str, str]:
        """Whether the server is there."""
        return {"status": "ok"}

    async def languages(self) -> list[Language]:
        """Every language, with those that it is translated to."""
        pairs = list(self.service.translators)
        return [
            Language(
                code=code,
                name=language_name(code),
                targets=sorted(target for source, target in pairs if source == code),
            )
            for code in sorted({code for pair in pairs for code in pair})
        ]

    async def settings(self) -> dict[str, Any]:
        """What a page of LibreTranslate's kind asks for before all else."""
        source, target = self.service.pair(None, None)
        return {
            "charLimit": self.limits.max_chars,
            "frontendTimeout": 400,
            "apiKeys": bool(self.keys),
            "keyRequired": bool(self.keys),
            "suggestions": False,
            "filesTranslation": False,
            "supportedFilesFormat": [],
            "language": {
                side: {"code": code, "name": language_name(code)}
                for side, code in (("source", source), ("target", target))
            },
        }

    async def translators(self) -> list[TranslatorFacts]:
        """The bundles that are served."""
        return self.service.facts()

    async def prometheus(self, request: Request) -> Response:
        """Counters, for whoever has the key."""
        self._check_key(request, None)
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")

    async def translate(self, request: Request) -> dict[str, Any]:
        """LibreTranslate's: JSON or a form in, `translatedText` out."""
        question = (await _question(request)).model_copy(update={"alignment": False})
        found = (await self.documents(request, question)).documents
        texts = [one.text for one in found]
        others = [one.alternatives for one in found]
        # Not detected, but the only one that there is.
        guesses = [{"confidence": 100, "language": self._pair(question)[0]} for _ in found]
        several = isinstance(question.q, list)
        answer: dict[str, Any] = {"translatedText": texts if several else texts[0]}
        if question.alternatives:
            answer["alternatives"] = others if several else others[0]
        if question.source == "auto":
            answer["detectedLanguage"] = guesses if several else guesses[0]
        return answer

    async def documents(self, request: Request, question: Question) -> Documents:
        """The same with segments, alternatives of each, confidence and alignment."""
        self._check_key(request, question.api_key)
        pair = self._pair(question)
        texts = [question.q] if isinstance(question.q, str) else question.q
        self._check_size(texts, question.alternatives)
        work = self.service.translate(
            pair, texts, alternatives=question.alternatives, alignment=question.alignment
        )
        found = await self._in_time(request, work)
        self.metrics.translated(*pair, sum(map(len, texts)))
        return Documents(source=pair[0], target=pair[1], documents=found)

    async def trace(self, request: Request, question: TraceQuestion) -> Response:
        """One sentence's way through the model: what the page `look` draws."""
        self._check_key(request, None)
        pair = self.service.pair(question.source, question.target)
        self._check_size([question.text, question.reference or ""], 0)
        found = await self._in_time(request, self.service.trace(pair, question))
        return Response(found, media_type="application/json")

    def _pair(self, question: Question) -> Pair:
        return self.service.pair(question.source, question.target)

    def _check_key(self, request: Request, given: str | None) -> None:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        key = given or (bearer.strip() if scheme.lower() == "bearer" else None)
        if not self.keys.fit(key):
            if key:
                raise RefusedError(403, "Invalid API key")
            raise RefusedError(400, "Please contact the server operator to get an API key")

    def _check_size(self, texts: list[str], alternatives: int) -> None:
        size, most = sum(len(text) + 1 for text in texts) - 1, self.limits.max_chars
        if size > most:
            raise RefusedError(
                400, f"Invalid request: request ({size}) exceeds text limit ({most})"
            )
        most = self.limits.max_alternatives
        if alternatives > most:
            raise RefusedError(400, f"alternatives {alternatives}: at most {most}")

    async def _in_time(self, request: Request, work: Coroutine[Any, Any, T]) -> T:
        """What the work gives, within the time that a request may take, while the client is there.

        The body has been read: what else comes from the client says that it has gone.
        """
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(request.receive())
        try:
            await asyncio.wait(
                {task, gone}, timeout=self.limits.timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if task.done():
                return task.result()
            if gone.done():
                raise RefusedError(400, "the client has gone")
            raise RefusedError(
                503,
                f"not done within {self.limits.timeout:g} s: send less text at once, or later",
                retry_after=10,
            )
        finally:
            task.cancel()
            gone.cancel()


async def _question(request: Request) -> Question:
    """The question in a body that is JSON or a form. RefusedError 400 or 415."""
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "application/json":
            said = json.loads(body)
        elif kind == "application/x-www-form-urlencoded":
            form = parse_qs(
                body.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=_MOST_FIELDS,
            )
            said = {name: values[-1] for name, values in form.items()}
        elif kind == "multipart/form-data":
            said = dict(await request.form(max_files=0, max_fields=_MOST_FIELDS))
        else:
            raise RefusedError(415, f"send {', '.join(_KINDS[:-1])} or {_KINDS[-1]}")
    except (ValueError, RecursionError, HTTPException):
        raise RefusedError(400, f"the body is not {kind} in UTF-8") from None
    if not isinstance(said, dict):
        raise RefusedError(400, "the body must be one JSON object")
    for name in ("q", "source", "target"):
        if not said.get(name):
            raise RefusedError(400, f"Invalid request: missing {name} parameter")
    try:
        return Question.model_validate(said)
    except ValidationError as error:
        raise RefusedError(400, fault(error)) from None


def fault(error: Any) -> str:
    """The first thing that is wrong with a question, without a word of what was sent."""
    first = error.errors()[0]
    name = next((str(part) for part in first["loc"] if part != "body"), "the body")
    return f"{ascii(name)[1:-1][:60]}: {first['msg'].removeprefix('Value error, ')}"
