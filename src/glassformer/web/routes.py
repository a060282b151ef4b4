"""The addresses of the server.

`/translate`, `/detect`, `/languages`, `/health`, `/spec` and `/frontend/settings` take and give
LibreTranslate's JSON (libretranslate.com/docs), so that its clients work. The addresses under
`/api/v1` are our own.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from glassformer.data.language_names import language_name
from glassformer.data.terms import NO_TERMS
from glassformer.web.look.film import film
from glassformer.web.metrics import ServerMetrics
from glassformer.web.rate import RequestRate
from glassformer.web.schema import (
    DetectedLanguage,
    DetectRequest,
    Document,
    ErrorResponse,
    Language,
    TraceRequest,
    TranslateRequest,
    TranslateResponse,
    TranslatorInfo,
)
from glassformer.web.security import RefusedError, RequestLimits, key_is_known
from glassformer.web.service import LanguagePair, Service

__all__ = ["Api", "first_error"]

T = TypeVar("T")
Asked = TypeVar("Asked", bound=BaseModel)

_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse} for status in (400, 403, 408, 413, 415, 429, 503)
}
_TYPES = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
_JSON = re.compile(r"application/([^/]+\+)?json")
_MAX_FORM_FIELDS = 100


def _described(schema: type[BaseModel]) -> dict[str, Any]:
    """The body of a request in the OpenAPI document."""
    content = {type_: {"schema": schema.model_json_schema()} for type_ in _TYPES}
    return {"requestBody": {"required": True, "content": content}}


@dataclass(frozen=True)
class Api:
    """The addresses of one server. `run_directory`: the run whose checkpoints the film shows."""

    service: Service
    keys: Collection[str]
    limits: RequestLimits
    metrics: ServerMetrics
    rate: RequestRate
    run_directory: Path | None = None

    def router(self) -> APIRouter:
        """FastAPI's router for these addresses."""
        router = APIRouter()
        add = router.add_api_route
        add("/health", self.health, methods=["GET"])
        add("/languages", self.languages, methods=["GET"], response_model=list[Language])
        add("/frontend/settings", self.settings, methods=["GET"])
        add("/spec", self.spec, methods=["GET"], include_in_schema=False)
        add("/metrics", self.prometheus, methods=["GET"], include_in_schema=False)
        add("/api/v1/translators", self.translators, methods=["GET"])
        for path, handler, extra in (
            ("/translate", self.translate, _described(TranslateRequest)),
            ("/detect", self.detect, _described(DetectRequest)),
            ("/api/v1/translate", self.documents, None),
            ("/api/v1/trace", self.trace, None),
        ):
            add(path, handler, methods=["POST"], responses=_REFUSALS, openapi_extra=extra)
        if self.run_directory is not None:
            add("/api/v1/film", self.film, methods=["POST"], responses=_REFUSALS)
        return router

    async def health(self) -> dict[str, str]:
        """Whether the server runs."""
        return {"status": "ok"}

    async def languages(self) -> list[Language]:
        """Every language, with the languages that a translator makes from it."""
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
        """The settings that a LibreTranslate page reads first."""
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

    async def translators(self) -> list[TranslatorInfo]:
        """The served bundles."""
        return self.service.translator_infos()

    async def spec(self, request: Request) -> Any:
        """The OpenAPI document, where LibreTranslate has it."""
        return request.app.openapi()

    async def prometheus(self, request: Request) -> Response:
        """The server's counters, in Prometheus's text format."""
        if self.keys and "authorization" not in request.headers:
            raise RefusedError(
                401,
                "expected the header 'Authorization: Bearer KEY'",
                headers={"WWW-Authenticate": "Bearer"},
            )
        self._check_key(request, None)
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")

    async def translate(self, request: Request) -> dict[str, Any]:
        """LibreTranslate's: JSON, a form or a query string in, `translatedText` out."""
        asked = await _parse(request, TranslateRequest, needed=("q", "source", "target"))
        asked = asked.model_copy(update={"alignment": False})
        response = await self.documents(request, asked)
        texts = [document.text for document in response.documents]
        alternatives = [document.alternatives for document in response.documents]
        is_list = isinstance(asked.q, list)
        answer: dict[str, Any] = {"translatedText": texts if is_list else texts[0]}
        if asked.alternatives:
            answer["alternatives"] = alternatives if is_list else alternatives[0]
        if response.detected:
            detected = response.detected.model_dump()
            answer["detectedLanguage"] = [detected for _ in texts] if is_list else detected
        return answer

    async def detect(self, request: Request) -> list[DetectedLanguage]:
        """LibreTranslate's: the languages that a text may have, the likeliest first."""
        asked = await _parse(request, DetectRequest, needed=("q",))
        self._check_key(request, asked.api_key)
        texts = [asked.q] if isinstance(asked.q, str) else asked.q
        self._check_size(texts, 0)
        return await self._in_time(request, self.service.detect(texts))

    async def documents(self, request: Request, asked: TranslateRequest) -> TranslateResponse:
        """Translations with their segments, and the hypotheses of each segment."""
        self._check_key(request, asked.api_key)
        texts = [asked.q] if isinstance(asked.q, str) else asked.q
        self._check_size(texts, asked.alternatives)
        response = await self._in_time(request, self._translated(asked, texts))
        self.metrics.translated(response.source, response.target, sum(map(len, texts)))
        return response

    async def _translated(self, asked: TranslateRequest, texts: list[str]) -> TranslateResponse:
        """The answer to a request whose key and size are checked."""
        service, detected = self.service, None
        source = "auto" if asked.source == "auto" else service.code(asked.source)
        target = service.code(asked.target)
        if source == "auto":
            detected = (await service.detect(texts, target))[0]
            source = detected.language
        documents = await self._documents((source, target), asked, texts)
        return TranslateResponse(
            source=source, target=target, documents=documents, detected=detected
        )

    async def _documents(
        self, pair: LanguagePair, asked: TranslateRequest, texts: list[str]
    ) -> list[Document]:
        """The document of each text; a text that is in the target language already stays."""
        if pair[0] == pair[1]:
            return [Document(text=text, segments=[], alternatives=[]) for text in texts]
        pair = self.service.pair(*pair)
        if asked.format == "html":
            return await self.service.translate_html(pair, texts, glossary=asked.glossary)
        return await self.service.translate(
            pair,
            texts,
            alternatives=asked.alternatives,
            alignment=asked.alignment,
            glossary=asked.glossary,
        )

    async def trace(self, request: Request, asked: TraceRequest) -> Response:
        """The trace of one sentence, which the page at `/look/` draws."""
        pair = self._check_trace(request, asked)
        trace = await self._in_time(request, self.service.trace(pair, asked))
        return Response(trace, media_type="application/json")

    async def film(self, request: Request, asked: TraceRequest) -> Response:
        """The translation of one sentence by each checkpoint of the run."""
        assert self.run_directory is not None
        pair = self._check_trace(request, asked)
        bundle = self.service.translators[pair].bundle
        frames = await run_in_threadpool(
            film,
            bundle,
            self.run_directory,
            asked.text,
            beam=asked.beam,
            length_penalty=asked.length_penalty,
            glossary=self.service.glossaries.get(pair, NO_TERMS),
        )
        return JSONResponse(frames)

    def _check_key(self, request: Request, given: str | None) -> None:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        key = given or (bearer.strip() if scheme.lower() == "bearer" else None)
        known = key_is_known(key, self.keys)
        if request.method == "POST":
            address = request.client.host if request.client else "unknown"
            self.rate.count(f"key {key}" if self.keys and known else address)
        if not known:
            if key:
                raise RefusedError(403, "Invalid API key")
            raise RefusedError(400, "Please contact the server operator to get an API key")

    def _check_trace(self, request: Request, asked: TraceRequest) -> LanguagePair:
        self._check_key(request, None)
        self._check_size([asked.text, asked.reference or ""], 0)
        return self.service.pair(asked.source, asked.target)

    def _check_size(self, texts: list[str], alternatives: int) -> None:
        size, limit = sum(len(text) + 1 for text in texts) - 1, self.limits.max_chars
        if size > limit:
            raise RefusedError(
                400, f"Invalid request: request ({size}) exceeds text limit ({limit})"
            )
        limit = self.limits.max_alternatives
        if alternatives > limit:
            raise RefusedError(400, f"Invalid request: alternatives parameter must be <= {limit}")

    async def _in_time(self, request: Request, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``, unless the time is over or the client disconnects.

        The server has read the body, so the next message of the client is its disconnect.
        """
        task = asyncio.ensure_future(work)
        disconnect = asyncio.ensure_future(request.receive())
        try:
            await asyncio.wait(
                {task, disconnect},
                timeout=self.limits.timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if task.done():
                return task.result()
            if disconnect.done():
                raise RefusedError(400, "the client disconnected")
            raise RefusedError(
                503,
                f"not finished within {self.limits.timeout:g} s:"
                " send less text at once, or try again later",
                headers={"Retry-After": "10"},
            )
        finally:
            task.cancel()
            disconnect.cancel()


async def _parse(request: Request, schema: type[Asked], *, needed: Collection[str]) -> Asked:
    """The request in a body of JSON, or in a form and the query string.

    Raises RefusedError 400 or 415.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        members = await _members(request, content_type)
    except (ValueError, RecursionError, HTTPException):
        kind = content_type or "a query string"
        raise RefusedError(400, f"the body is not {kind} in UTF-8") from None
    if not isinstance(members, dict):
        raise RefusedError(400, "the body must be one JSON object")
    for name in needed:
        if not members.get(name):
            raise RefusedError(400, f"Invalid request: missing {name} parameter")
    try:
        return schema.model_validate(members)
    except ValidationError as error:
        raise RefusedError(400, first_error(error)) from None


async def _members(request: Request, content_type: str) -> object:
    """The members of a JSON object, or the last value of each form field.

    As in LibreTranslate, a field may stand in the query string of a request without JSON.
    """
    body = await request.body()
    if _JSON.fullmatch(content_type):
        return json.loads(body)
    form: dict[str, Any] = {}
    if content_type == "multipart/form-data":
        form = dict(await request.form(max_files=0, max_fields=_MAX_FORM_FIELDS))
    elif content_type == "application/x-www-form-urlencoded":
        form = _fields(body)
    elif body:
        raise RefusedError(415, f"Content-Type: expected {', '.join(_TYPES[:-1])} or {_TYPES[-1]}")
    return form | _fields(request.scope["query_string"])


def _fields(form: bytes) -> dict[str, str]:
    """The last value of each field of a form or a query string."""
    values = parse_qs(
        form.decode("utf-8"),
        keep_blank_values=True,
        errors="strict",
        max_num_fields=_MAX_FORM_FIELDS,
    )
    return {name: found[-1] for name, found in values.items()}


def first_error(error: Any) -> str:
    """The first error of a pydantic or FastAPI validation, without a word of the request."""
    first = error.errors()[0]
    name = next((str(part) for part in first["loc"] if part != "body"), "the body")
    return f"{ascii(name)[1:-1][:60]}: {first['msg'].removeprefix('Value error, ')}"
