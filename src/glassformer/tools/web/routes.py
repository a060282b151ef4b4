"""The addresses of the server.

`/translate`, `/detect`, `/languages`, `/health`, `/spec` and `/frontend/settings` take and give
LibreTranslate's JSON (libretranslate.com/docs), so that LibreTranslate's clients work. The
addresses under `/api/v1` are glassformer's.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Collection
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.security.utils import get_authorization_scheme_param
from prometheus_client import generate_latest

from glassformer.support.language_names import language_name
from glassformer.tools.documents.files.formats import FORMATS
from glassformer.tools.web.metrics import ServerMetrics
from glassformer.tools.web.rate import RequestRate, network_of
from glassformer.tools.web.request_body import described, parse
from glassformer.tools.web.schema import (
    DetectedLanguage,
    DetectRequest,
    ErrorResponse,
    Language,
    TraceRequest,
    TranslateRequest,
    TranslateResponse,
    TranslatorInfo,
)
from glassformer.tools.web.security import RefusedError, RequestLimits
from glassformer.tools.web.service import Service

__all__ = ["REFUSALS", "Api"]

T = TypeVar("T")

_SIZE_OF_REQUEST = 1_000  # characters; a larger request counts as several requests
_LEAST_SIZE = 50  # characters that each text counts at least

# The statuses of refused requests, as OpenAPI describes them.
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse} for status in (400, 403, 408, 413, 415, 429, 503)
}


@dataclass(frozen=True)
class Api:
    """The addresses of one server."""

    service: Service
    keys: Collection[str]
    metrics_keys: Collection[str]
    limits: RequestLimits
    metrics: ServerMetrics
    rate: RequestRate

    def add_to(self, app: FastAPI) -> None:
        """Add the addresses to the app."""
        add = app.add_api_route
        add("/health", self.health, methods=["GET"])
        add("/languages", self.languages, methods=["GET"], response_model=list[Language])
        add("/frontend/settings", self.settings, methods=["GET"])
        add("/metrics", self.prometheus, methods=["GET"], include_in_schema=False)
        add("/api/v1/translators", self.translators, methods=["GET"])
        for path, handler, extra in (
            ("/translate", self.translate, described(TranslateRequest)),
            ("/detect", self.detect, described(DetectRequest)),
            ("/suggest", self.suggest, None),
            ("/api/v1/translate", self.documents, None),
            ("/api/v1/trace", self.trace, None),
        ):
            add(path, handler, methods=["POST"], responses=REFUSALS, openapi_extra=extra)

    async def health(self) -> dict[str, str]:
        """The engines that translate. Raises RefusedError 503 if the batches stand still."""
        if not self.service.batcher.works:
            raise RefusedError(
                503, "the batches stand still: start the server anew", reason="stuck"
            )
        engines = {each.engine_name for each in self.service.translators.values()}
        return {"status": "ok", "engine": ", ".join(sorted(engines))}

    async def languages(self) -> list[Language]:
        """Every language, with the target languages of translators from it."""
        targets: dict[str, list[str]] = {code: [] for pair in self.service.pairs for code in pair}
        for source, target in sorted(self.service.pairs):
            targets[source].append(target)
        return [
            Language(code=code, name=language_name(code), targets=targets[code])
            for code in sorted(targets)
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
            "filesTranslation": True,
            "fileCharLimit": self.limits.max_file_chars,
            "fileMegabytes": self.limits.max_file_bytes >> 20,
            "supportedFilesFormat": [f".{name}" for name in FORMATS],
            "language": {
                side: {"code": code, "name": language_name(code)}
                for side, code in (("source", source), ("target", target))
            },
        }

    async def translators(self, request: Request) -> list[TranslatorInfo]:
        """The served pairs of languages; example sentences only for clients that may translate."""
        if key := _bearer(request):
            self.check_key(request)
        return self.service.translator_infos(examples=bool(key) or not self.keys)

    async def prometheus(self, request: Request) -> Response:
        """The server's counters, in Prometheus's text format."""
        keys = self.metrics_keys or self.keys
        if keys and "authorization" not in request.headers:
            raise RefusedError(
                401,
                "expected the header 'Authorization: Bearer KEY'",
                reason="key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        self.check_key(request, keys=keys)
        counters = generate_latest(self.metrics.registry)
        return Response(counters, media_type="text/plain; version=0.0.4")

    async def translate(self, request: Request) -> dict[str, Any]:
        """LibreTranslate's `/translate` takes JSON, form or query, and gives `translatedText`."""
        asked = await parse(request, TranslateRequest, needed=("q", "source", "target"))
        response = await self.documents(request, asked)
        documents = response.documents
        answer: dict[str, list[Any]] = {"translatedText": [each.text for each in documents]}
        if asked.alternatives:
            answer["alternatives"] = [each.alternatives for each in documents]
        if any(each.doubts for each in documents):
            answer["doubts"] = [each.doubts for each in documents]
        if response.detected:
            answer["detectedLanguage"] = [response.detected.model_dump()] * len(documents)
        if isinstance(asked.q, list):
            return answer
        return {name: values[0] for name, values in answer.items()}

    async def detect(self, request: Request) -> list[DetectedLanguage]:
        """LibreTranslate's `/detect` gives the possible languages of a text, likeliest first."""
        asked = await parse(request, DetectRequest, needed=("q",))
        self.check_key(request, asked.api_key)
        self.check_size(request, asked.texts)
        return await self.in_time(request, self.service.detect(asked.texts))

    async def suggest(self) -> None:
        """LibreTranslate's `/suggest` collects better translations; this server refuses it."""
        raise RefusedError(403, "Suggestions are disabled on this server.")

    async def documents(self, request: Request, asked: TranslateRequest) -> TranslateResponse:
        """Translations with their segments, and the hypotheses of each segment."""
        self.check_key(request, asked.api_key)
        self.check_size(request, asked.texts, asked.alternatives)
        return await self.in_time(request, self.translated(asked))

    async def translated(self, asked: TranslateRequest) -> TranslateResponse:
        """The answer to a request after the checks of its key and size."""
        response = await self.service.documents(asked)
        characters = self.metrics.characters.labels(response.source, response.target)
        characters.inc(sum(map(len, asked.texts)))
        return response

    async def trace(self, request: Request, asked: TraceRequest) -> Response:
        """The trace of one sentence, which the page at `/look/` draws."""
        self.check_key(request)
        self.check_size(request, [asked.text, asked.reference or ""])
        pair = self.service.pair(asked.source, asked.target)
        trace = await self.in_time(request, self.service.trace(pair, asked))
        return Response(trace, media_type="application/json")

    def check_key(
        self, request: Request, given: str | None = None, *, keys: Collection[str] | None = None
    ) -> None:
        """Count the request; the body has the key `given`. Raises RefusedError 400, 403 or 429."""
        keys = self.keys if keys is None else keys
        key = given or _bearer(request)
        sent = key.encode("utf-8", "surrogatepass")
        # Compare all keys, each in constant time, so that the time reveals no key.
        equal = [hmac.compare_digest(sent, known.encode()) for known in keys]
        known = any(equal) or not keys
        if request.method == "POST" or not known:
            address = network_of(request.client.host) if request.client else "unknown"
            client = f"key {key}" if keys and known else address
            self.rate.count(client)
            request.scope["counted"] = client
        if not known:
            if key:
                raise RefusedError(403, "Invalid API key", reason="key")
            raise RefusedError(
                400, "Please contact the server operator to get an API key", reason="key"
            )

    def note_size(self, request: Request, texts: list[str]) -> None:
        """Let a large request count as several: one for each 1,000 characters."""
        request.scope["characters"] = sum(map(len, texts))
        size = sum(max(len(text), _LEAST_SIZE) for text in texts)
        self.rate.charge(request.scope["counted"], size // _SIZE_OF_REQUEST)

    def check_size(self, request: Request, texts: list[str], alternatives: int = 0) -> None:
        """Raises RefusedError 400 if the texts are too long, or the alternatives too many."""
        size, limit = sum(len(text) + 1 for text in texts) - 1, self.limits.max_chars
        if size > limit:
            raise RefusedError(
                400, f"Invalid request: request ({size}) exceeds text limit ({limit})"
            )
        limit = self.limits.max_alternatives
        if alternatives > limit:
            raise RefusedError(400, f"Invalid request: alternatives parameter must be <= {limit}")
        self.note_size(request, texts)

    async def in_time(self, request: Request, work: Awaitable[T]) -> T:
        """The result of ``work``, unless the time is over or the client disconnects.

        The server has read the body, so the client's next message is a disconnect.
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
                raise RefusedError(499, "the client disconnected", reason="gone")
            raise RefusedError(
                503,
                f"not finished within {self.limits.timeout:g} s:"
                " send less text at once, or try again later",
                reason="timeout",
                headers={"Retry-After": "10"},
            )
        finally:
            task.cancel()
            disconnect.cancel()


def _bearer(request: Request) -> str:
    """The key in ``Authorization: Bearer KEY``; empty without one."""
    scheme, key = get_authorization_scheme_param(request.headers.get("authorization"))
    return key if scheme.lower() == "bearer" else ""
