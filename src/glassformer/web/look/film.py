"""The training film: one sentence, translated by each checkpoint that a run has kept."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pydantic import ValidationError

from glassformer.bundle import Bundle, load_tensors, load_weights
from glassformer.config import BEAM
from glassformer.inspection.trace.array_codec import pack
from glassformer.inspection.trace.build import trace
from glassformer.model.transformer import Transformer
from glassformer.training.checkpoint import checkpoints

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

__all__ = ["film", "film_route"]

_MOST = 24  # checkpoints; of more, so many that are spread over the run


def film(
    bundle: Bundle,
    directory: Path,
    text: str,
    *,
    beam: int = BEAM,
    length_penalty: float | None = None,
) -> list[dict[str, Any]]:
    """One frame for each checkpoint of the run in ``directory``, oldest first; [] without any.

    A frame has the ``update``, the translation's ``text``, ``log_probability`` and ``pieces``, and
    in ``weights`` the attention from them to the source, the mean of all layers and heads.
    """
    paths = checkpoints(directory / "checkpoints")
    step = max(1, -(-len(paths) // _MOST))
    search = {"beam": beam, "length_penalty": length_penalty}
    return [_frame(bundle, path, text, search) for path in paths[::-step][::-1]]


def _frame(bundle: Bundle, path: Path, text: str, search: dict[str, Any]) -> dict[str, Any]:
    model = Transformer(bundle.model.config)
    load_weights(model, load_tensors(path / "model.safetensors"), path)
    model.to(bundle.model.output_weight.device).eval().requires_grad_(False)
    seen = trace(replace(bundle, model=model), text, **search)
    maps = [
        torch.from_numpy(one.weights.array()).mean(dim=0)
        for one in seen.attention
        if one.part == "cross"
    ]
    return {
        "update": int(path.name),
        "text": seen.answer.text,
        "log_probability": seen.answer.log_probability,
        "pieces": [asdict(piece) for piece in seen.target.pieces],
        "weights": asdict(pack(torch.stack(maps).mean(dim=0), "u8")),
    }


def film_route(bundle: Bundle, directory: Path) -> Route:
    """``POST {"text": …, "beam": …, "length_penalty": …}`` is answered with the film of that text,
    or with ``{"error": …}``; what a trace can be asked beside these is passed over."""
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from glassformer.web.routes import fault
    from glassformer.web.schema import TraceQuestion

    async def answer(request: Request) -> Response:
        try:
            said = TraceQuestion.model_validate_json(await request.body())
            search = partial(film, beam=said.beam, length_penalty=said.length_penalty)
            frames = await run_in_threadpool(search, bundle, directory, said.text)
            return JSONResponse(frames)
        except ValidationError as error:
            return JSONResponse({"error": fault(error)}, 400)
        except ValueError as error:  # a text that cannot be translated
            return JSONResponse({"error": str(error)}, 400)

    return Route("/api/v1/film", answer, methods=["POST"])
