"""A bundle as ONNX graphs, in the directory that transformers.js loads (extra ``export``).

``config.json`` says "marian" for every model: transformers.js takes from it only the names and
sizes of the caches; what the model computes stands in the graphs.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.data.sentencepiece_model import SentencePieceModel
from glassformer.errors import check_choice, missing_extra
from glassformer.files import new_directory
from glassformer.interchange.hugging_face.export import model_card, write_settings
from glassformer.interchange.onnx.graphs import DecoderGraph, EncoderGraph, cache_names
from glassformer.interchange.stock import require_stock
from glassformer.parts import PLAIN, rebuilt

__all__ = ["QUANTIZATIONS", "export_onnx"]

QUANTIZATIONS = ("float32", "int8")
_OPSET = 18  # browsers' runtimes have it
_DTYPE = {"float32": "fp32", "int8": "q8"}  # as transformers.js names them


def export_onnx(bundle: Bundle, directory: Path, *, quantization: str = "float32") -> list[str]:
    """Write ``bundle`` as ONNX graphs into a new directory; return notes for a person to read.

    ``int8``: onnxruntime's dynamic quantisation of the matrices. The bundle's model stays as it is.
    A kill leaves no half-written ``directory``.

    Raises:
        UsageError: an unknown quantization, a directory that is not empty, or a part that is not
            the package's.
        InputError: a package of the extra ``export`` is not installed.
    """
    check_choice("quantization", quantization, QUANTIZATIONS)
    require_stock(bundle, "the ONNX export")
    _require_packages(quantization)
    bundle = replace(bundle, model=rebuilt(bundle.model, PLAIN))
    with new_directory(directory) as place:
        notes = write_settings(bundle, place, "marian", beam=1)  # transformers.js searches greedily
        graphs = place / "onnx"
        graphs.mkdir()
        with torch.no_grad(), _quiet():
            _write_encoder(bundle, graphs / "encoder_model.onnx")
            _write_decoder(bundle, graphs / "decoder_model_merged.onnx")
            if quantization == "int8":
                for name in ("encoder_model", "decoder_model_merged"):
                    _quantize(graphs / f"{name}.onnx", graphs / f"{name}_quantized.onnx")
        (place / "README.md").write_text(_readme(bundle, directory.name, quantization), "utf-8")
    if SentencePieceModel.parse(bundle.source_tokenizer.serialized).kind == "unigram":
        notes.append("transformers.js reads a character that the unigrams lack as unknown")
    return [*notes, "transformers.js searches greedily"]


def _require_packages(quantization: str) -> None:
    """Raise InputError for the first package that is not installed."""
    names = ["onnx", "onnxscript", *(["onnxruntime"] if quantization == "int8" else [])]
    for name in names:
        try:
            __import__(name)
        except ImportError as error:
            raise missing_extra(name, "onnx") from error


def _write_encoder(bundle: Bundle, path: Path) -> None:
    ids = torch.ones(2, 5, dtype=torch.int64)
    axes = {0: "batch_size", 1: "encoder_sequence_length"}
    _write_graph(
        EncoderGraph(bundle.model),
        (ids, ids.clone()),  # one tensor for both would become one input
        path,
        inputs={"input_ids": axes, "attention_mask": axes},
        outputs=["last_hidden_state"],
        config=bundle.model.config,
    )


def _write_decoder(bundle: Bundle, path: Path) -> None:
    config = bundle.model.config
    batch, source, target, d_head = 2, 7, 3, config.d_model // config.num_heads
    names = cache_names(config, "past_key_values")
    caches = [
        torch.zeros(batch, config.num_heads, target if "decoder" in name else 4, d_head)
        for name in names
    ]
    example = (
        torch.ones(batch, 1, dtype=torch.int64),
        torch.zeros(batch, source, config.d_model),
        torch.ones(batch, source, dtype=torch.int64),
        caches,
    )
    of_source = {0: "batch_size", 1: "encoder_sequence_length"}
    # transformers.js begins with 0 for each name but the batch. Programs that give a cache of the
    # memory give a whole one, or none.
    of_caches = {
        name: {0: "batch_size", 2: "past_decoder" if ".decoder." in name else "past_encoder"}
        for name in names
    }
    _write_graph(
        DecoderGraph(bundle.model),
        example,
        path,
        inputs={
            "input_ids": {0: "batch_size"},
            "encoder_hidden_states": of_source,
            "encoder_attention_mask": of_source,
            **of_caches,
        },
        outputs=["logits", *cache_names(config, "present")],
        config=config,
    )


def _write_graph(
    graph: nn.Module,
    example: tuple[Any, ...],
    path: Path,
    *,
    inputs: dict[str, dict[int, str]],
    outputs: list[str],
    config: ModelConfig,
) -> None:
    """Trace ``graph`` with ``example``; ``inputs`` names each input and its axes that vary."""
    most = {"encoder_sequence_length": config.max_length_of_source}  # positions
    most |= {"past_encoder": config.max_length_of_source, "past_decoder": config.max_length - 1}
    dimensions: dict[str, Any] = {
        name: torch.export.Dim(name, max=most.get(name))
        for axes in inputs.values()
        for name in axes.values()
    }
    shapes: list[Any] = [
        {axis: dimensions[name] for axis, name in axes.items()} for axes in inputs.values()
    ]
    plain = len([part for part in example if not isinstance(part, list)])
    if plain < len(example):  # the caches are one list
        shapes = [*shapes[:plain], shapes[plain:]]
    torch.onnx.export(
        graph.eval(),
        example,
        str(path),
        dynamo=True,
        opset_version=_OPSET,
        input_names=list(inputs),
        output_names=outputs,
        dynamic_shapes=tuple(shapes),
        external_data=False,
        verbose=False,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the remarks of torch and onnxruntime on their own progress."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _quantize(whole: Path, quantized: Path) -> None:
    """The matrices of ``whole`` in 8 bits; the file of the whole numbers goes.

    They are unsigned: products of signed with unsigned bytes overflow on CPUs without VNNI.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(str(whole), str(quantized), weight_type=QuantType.QUInt8, per_channel=True)
    whole.unlink()


def _readme(bundle: Bundle, name: str, quantization: str) -> str:
    usage = [
        "```js",
        'import { pipeline } from "@huggingface/transformers";',
        "",
        f'const options = {{ dtype: "{_DTYPE[quantization]}" }};',
        f'const translator = await pipeline("translation", "{name}", options);',
        'console.log(await translator("A dog runs."));',
        "```",
    ]
    return model_card(bundle, "transformers.js", usage)
