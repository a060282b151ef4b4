"""The members of a request, from JSON, a form or a query string."""

import json
import re
from collections.abc import Collection
from typing import Any, TypeVar
from urllib.parse import parse_qs

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from glassformer.support.errors import expected_words
from glassformer.tools.web.schema import Upload
from glassformer.tools.web.security import RefusedError

__all__ = ["described", "first_error", "parse"]

Asked = TypeVar("Asked", bound=BaseModel)

_TYPES = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
_JSON = re.compile(r"application/([^/]+\+)?json")
_MAX_FORM_FIELDS = 100


def described(schema: type[BaseModel]) -> dict[str, Any]:
    """The description of a request's body for the OpenAPI document."""
    types = _TYPES[-1:] if "file" in schema.model_fields else _TYPES
    content = {type_: {"schema": schema.model_json_schema()} for type_ in types}
    return {"requestBody": {"required": True, "content": content}}


async def parse(request: Request, schema: type[Asked], *, needed: Collection[str]) -> Asked:
    """The validated request, from a body of JSON, or from a form and the query string.

    A schema with the field ``file`` takes a form with one file. Raises RefusedError 400 or 415.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        members = await _members(request, content_type, int("file" in schema.model_fields))
    except (ValueError, RecursionError, MultiPartException):
        kind = content_type or "a query string"
        raise RefusedError(400, f"the body cannot be read as {kind} in UTF-8") from None
    if not isinstance(members, dict):
        raise RefusedError(400, "the body must be one JSON object")
    for name in needed:
        if not members.get(name):
            raise RefusedError(400, f"Invalid request: missing {name} parameter")
    try:
        return schema.model_validate(members)
    except ValidationError as error:
        raise RefusedError(400, first_error(error)) from None


async def _members(request: Request, content_type: str, files: int) -> object:
    """The members of a JSON object, or the first value of each form field.

    As in LibreTranslate, a field may stand in the query string of a request without JSON. Line ends
    of a form, which browsers write as CR LF, become LF.
    """
    body = await request.body()
    if _JSON.fullmatch(content_type):
        return json.loads(body)
    form: dict[str, Any] = {}
    if content_type == "multipart/form-data":
        parser = _InMemory(
            request.headers, request.stream(), max_files=files, max_fields=_MAX_FORM_FIELDS
        )
        fields = await parser.parse()
        for name, value in reversed(fields.multi_items()):
            if isinstance(value, UploadFile):
                form[name] = Upload(value.filename, await value.read())
            else:
                form[name] = value.replace("\r\n", "\n")
        await fields.close()
    elif content_type == "application/x-www-form-urlencoded":
        # curl sends JSON under this type unless its user names another one.
        form = json.loads(body) if body.lstrip().startswith(b"{") else _fields(body)
    elif body:
        raise RefusedError(415, f"Content-Type: expected {', '.join(_TYPES[:-1])} or {_TYPES[-1]}")
    return form | _fields(request.scope["query_string"])


def _fields(form: bytes) -> dict[str, str]:
    """The first value of each field of a form or a query string."""
    values = parse_qs(
        form.decode("utf-8"),
        keep_blank_values=True,
        errors="strict",
        max_num_fields=_MAX_FORM_FIELDS,
    )
    return {name: texts[0].replace("\r\n", "\n") for name, texts in values.items()}


class _InMemory(MultiPartParser):
    """Starlette's parser of forms, which here writes no large file to the disk."""

    spool_max_size = 1 << 62


def first_error(error: ValidationError | RequestValidationError) -> str:
    """The first error of a pydantic or FastAPI validation, without a word of the request."""
    errors = error.errors()
    first = next((each for each in errors if isinstance(each["loc"][-1], int)), errors[0])
    names = (part for part in first["loc"] if isinstance(part, str) and part != "body")
    name, place = ascii(next(names, "the body"))[1:-1][:60], first["loc"][-1]
    item = f" item {place + 1}:" if isinstance(place, int) and name != "the body" else ""
    return f"{name}:{item} {expected_words(first['msg'])}"
