"""A client sends a file, and fetches the translated file under a name that nobody can guess.

The addresses to send and to fetch are LibreTranslate's.
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import TypeVar
from urllib.parse import quote

from fastapi import FastAPI, Request, Response

from glassformer.alignment.doubts import NO_WORD
from glassformer.support.errors import counted
from glassformer.tools.documents.files.formats import FORMATS, read_file
from glassformer.tools.web.request_body import described, parse
from glassformer.tools.web.routes import REFUSALS, Api
from glassformer.tools.web.schema import ErrorResponse, FileRequest, TranslateRequest
from glassformer.tools.web.security import FILE_PATH, RefusedError

__all__ = ["FileApi", "Store"]

T = TypeVar("T")


@dataclass(frozen=True)
class _StoredFile:
    """A translated file, and the name under which a browser saves it."""

    data: bytes
    name: str
    until: float  # time of deletion on the monotonic clock


@dataclass
class Store:
    """The last translated files, in memory, at most 64 MiB for at most ten minutes.

    The random name is the only way to a file.

    >>> store = Store()
    >>> store.get(store.add(b"Hallo", "greeting.txt")).data
    b'Hallo'
    >>> store.get("greeting.txt") is None
    True
    """

    max_bytes: int = 64 << 20
    seconds: float = 600.0
    _files: OrderedDict[str, _StoredFile] = field(default_factory=OrderedDict)

    def add(self, data: bytes, name: str) -> str:
        """Keep a file; return its random name, with the ending of ``name``."""
        self._forget(room=len(data))
        key = secrets.token_urlsafe(24) + PurePosixPath(name).suffix
        self._files[key] = _StoredFile(data, name, time.monotonic() + self.seconds)
        return key

    def get(self, key: str) -> _StoredFile | None:
        """The file of a random name; None if the store has none, or the file's time is over."""
        self._forget()
        return self._files.get(key)

    def _forget(self, room: int = 0) -> None:
        """Drop files whose time is over, and then the oldest files until there is ``room``."""
        size = sum(len(file.data) for file in self._files.values()) + room
        while self._files:
            file = next(iter(self._files.values()))
            if size <= self.max_bytes and file.until > time.monotonic():
                return
            size -= len(file.data)
            self._files.popitem(last=False)


@dataclass(frozen=True)
class FileApi:
    """The addresses for files, beside the addresses of ``api``."""

    api: Api
    store: Store = field(default_factory=Store)

    def add_to(self, app: FastAPI) -> None:
        """Add the addresses to the app."""
        add, body = app.add_api_route, described(FileRequest)
        add(FILE_PATH, self.translate, methods=["POST"], responses=REFUSALS, openapi_extra=body)
        add(
            "/download_file/{name}",
            self.download,
            methods=["GET"],
            responses={404: {"model": ErrorResponse}},
        )

    async def translate(self, request: Request) -> dict[str, str | list[str]]:
        """LibreTranslate's `/translate_file` takes a form with a file, and gives an address.

        Raises RefusedError, or InputError if the file is damaged.
        """
        asked = await parse(request, FileRequest, needed=("file", "source", "target"))
        self.api.check_key(request, asked.api_key)
        name = PurePosixPath(asked.file.name or "")
        ending = name.suffix.lower().removeprefix(".")
        format_ = {"htm": "html", "pot": "po"}.get(ending, ending)
        if format_ not in FORMATS:
            known = ", ".join(f".{each}" for each in FORMATS)
            raise RefusedError(400, f"Invalid request: file format not supported: expected {known}")
        target = self.api.service.code(asked.target)
        work = self._translated(request, asked, format_)
        written, unknown = await self.api.in_time(request, work)
        key = self.store.add(written, f"{name.stem}_{target}.{format_}")
        address = f"{request.base_url}download_file/{key}"
        if not unknown:
            return {"translatedFileUrl": address}
        doubt = NO_WORD.replace("the text", counted(unknown, "text"))
        return {"translatedFileUrl": address, "doubts": [doubt]}

    async def _translated(
        self, request: Request, asked: FileRequest, format: str
    ) -> tuple[bytes, int]:
        """The translated file, and the number of its texts without a known word."""
        content = await self._in_thread(read_file, asked.file.data, format)
        size, limit = sum(map(len, content.texts)), self.api.limits.max_chars
        if size > limit and not content.html:  # only subwords limit HTML
            raise RefusedError(
                400,
                f"the file has {size:,} characters, more than the limit of {limit:,}: divide it",
            )
        self.api.note_size(request, content.texts)
        question = TranslateRequest.model_construct(
            q=content.texts,
            source=asked.source,
            target=asked.target,
            format="html" if content.html else "text",
        )
        response = await self.api.translated(question)
        texts = [document.text for document in response.documents]
        unknown = sum(NO_WORD in document.doubts for document in response.documents)
        return await self._in_thread(content.write, texts), unknown

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """Threads that read and write files; work goes on to its end even if the client leaves."""
        return ThreadPoolExecutor(self.api.limits.max_files, "files")

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    async def download(self, name: str) -> Response:
        """A translated file, for ten minutes."""
        file = self.store.get(name)
        if file is None:
            raise RefusedError(404, "no such file: it is kept for ten minutes at most")
        # An attachment does not run in this origin; a translated page could hold a script.
        return Response(
            file.data,
            media_type="application/octet-stream",
            headers={"Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name)}"},
        )
