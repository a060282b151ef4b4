"""A translator, which reads texts and writes their translations."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypedDict, Unpack, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.alignment.align import align, check_lengths, with_alignment
from glassformer.alignment.span_placement import SpanPlacement
from glassformer.alignment.term_placement import TermPlacement
from glassformer.bundle import Bundle, load_bundle
from glassformer.config import EngineName, Precision
from glassformer.data.batches import grouped_by_size, pad_rows, shift
from glassformer.data.normaliser import normaliser
from glassformer.data.preprocessing import Segment
from glassformer.data.terms import Terms
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import Link
from glassformer.decoding.beam import penalty
from glassformer.decoding.engine import Engine, SearchOptions, TorchEngine
from glassformer.decoding.sampling import Sampling
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.model.forms import check_record
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, Parts, in_bfloat16
from glassformer.support.devices import device_of
from glassformer.support.errors import (
    UsageError,
    check_choice,
    check_kind,
    check_texts,
    counted,
)
from glassformer.support.other_names import check_keywords
from glassformer.support.reading import told
from glassformer.text_engine import TextEngine, Translation, torch_engine
from glassformer.trial import try_parts

__all__ = ["Sampling", "TranslateSettings", "Translation", "Translator", "target_log_probabilities"]

# The engines outside of the core; the translator imports an engine when a caller asks for it.
_ENGINES = {
    "auto": "glassformer.tools.interchange.ctranslate2.load:load_auto",
    "ctranslate2": "glassformer.tools.interchange.ctranslate2.load:load_ctranslate2",
}
_TORCH_WEIGHTS = get_args(Precision)
_SCORED_AT_ONCE = 8192  # subwords in a batch of sources and targets, with padding


class TranslateSettings(TypedDict, total=False):
    """The settings of `Translator.translate`, which callers give by keyword.

    The settings from ``beam`` on are fields of
    :class:`~glassformer.decoding.engine.SearchOptions`.
    """

    prefixes: Sequence[str] | None
    glossary: Mapping[str, str | Sequence[str]] | Terms | None
    alignment: bool
    split: bool
    protect: bool
    beam: int
    n_best: int
    length_penalty: float
    sampling: Sampling | None
    repetition_penalty: float
    no_repeat_ngram: int
    min_length: int


class LoadSettings(TypedDict, total=False):
    """Further settings of `Translator.load`, which callers give by keyword."""

    quantization: str
    languages: tuple[str | None, str | None]
    verify: bool


@dataclass(frozen=True)
class Translator:
    """A bundle that translates; torch runs the model unless the caller names another engine.

    ``Translator.load("runs/en-de").translate(["A dog runs."])[0].text``
    """

    bundle: Bundle
    device: torch.device = field(default=torch.device("cpu"))
    engine: Engine | None = None
    parts: Parts = FAST
    process: int = field(default_factory=os.getpid, repr=False, compare=False)

    @classmethod
    def load(
        cls,
        directory: str | Path,
        *,
        device: str = "auto",
        engine: str = "torch",
        parts: Parts = FAST,
        **settings: Unpack[LoadSettings],
    ) -> "Translator":
        """Read the translator in ``directory``; ``device`` is cpu, cuda, or auto.

        :meth:`of` describes ``engine``, ``parts`` and the setting ``quantization``. ``languages``
        is the pair for a multilingual model, as in ``("en", "de")``; a side that is None keeps its
        language. ``verify=False`` skips the checksums. A damaged file raises InputError.
        """
        known = (*LoadSettings.__annotations__, "device", "engine", "parts")
        check_keywords("Translator.load", settings, known)
        check_record(parts)
        verify, languages = settings.get("verify", True), settings.get("languages", (None, None))
        bundle = load_bundle(
            Path(directory),
            device=device_of(device),
            verify=verify,
            build=parts.build,
            own=parts.own,
        )
        return cls.of(
            bundle.between(*languages),
            Path(directory),
            engine=engine,
            quantization=settings.get("quantization", "float32"),
            parts=parts,
        )

    @classmethod
    def of(
        cls,
        bundle: Bundle,
        directory: Path,
        *,
        engine: str = "torch",
        quantization: str = "float32",
        parts: Parts = FAST,
    ) -> "Translator":
        """The translator of the bundle that :func:`load_bundle` has read from ``directory``.

        ``engine="ctranslate2"`` (of the extra ``ctranslate2``) gives torch's translations faster.
        CTranslate2 converts the model at the first call, and keeps the conversion in ``directory``.
        "auto" keeps it in the user's cache, and takes torch for a GPU, other ``parts`` and bfloat16
        weights, and if CTranslate2 is absent or fails.
        ``quantization`` is the number type of the weights. CTranslate2's "int8" is faster than its
        "float32"; scores and some translations differ a little. Torch has "float32" and "bfloat16".
        ``parts`` are the forms that torch runs; the bundle's model consists of these forms.
        """
        check_choice("engine", engine, get_args(EngineName))
        device = next(bundle.model.parameters()).device
        of_torch = parts != FAST or device.type != "cpu" or quantization == "bfloat16"
        if engine == "auto" and of_torch:
            engine = "torch"
        if engine == "torch" and quantization not in _TORCH_WEIGHTS:
            raise UsageError(f"only engine ctranslate2 has quantization {quantization!r}")
        if engine != "torch" and parts != FAST:
            raise UsageError(f"engine {engine} has forms of its own: leave plain and parts out")
        try_parts(bundle.model, parts)
        if quantization == "bfloat16" and engine == "torch":
            parts = in_bfloat16(parts)
        translator = cls(bundle, device, parts=parts)
        if engine == "torch":
            return translator
        load: Callable[..., Engine] = resolve_name(_ENGINES[engine])
        loaded = load(bundle, directory, translator._torch_engine, quantization=quantization)
        return replace(translator, engine=loaded)

    def __post_init__(self) -> None:
        check_kind(self.bundle, Bundle, wants="Translator takes a bundle (see Translator.load)")

    def between(self, source: str, target: str) -> "Translator":
        """The translator of another pair of a multilingual model; both share one model.

        Raises UsageError for a language that the model does not know.
        """
        bundle, engine = self.bundle.between(source, target), self.engine or self._torch_engine
        vocabulary = Vocabulary.of(bundle.target_tokenizer)
        return replace(self, bundle=bundle, engine=engine.with_target(vocabulary))

    def __repr__(self) -> str:
        source, target = self.bundle.languages or ("source", "target")
        parameters = sum(weight.numel() for weight in self.model.parameters())
        return f"Translator({source} to {target}, {parameters:,} parameters, {self.device})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the packed weights, which each process packs anew."""
        engine = None if isinstance(self.engine, TorchEngine) else self.engine
        return Translator, (self.bundle, self.device, engine, self.parts)

    @property
    def engine_name(self) -> str:
        """The engine that translates: torch or ctranslate2."""
        return self.engine.name if self.engine else TorchEngine.name

    @property
    def model(self) -> Transformer:
        return self.bundle.model

    @property
    def source_tokenizer(self) -> Tokenizer:
        return self.bundle.source_tokenizer

    @property
    def target_tokenizer(self) -> Tokenizer:
        return self.bundle.target_tokenizer

    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        return self.source_tokenizer, self.target_tokenizer

    def translate(
        self, texts: Sequence[str], **settings: Unpack[TranslateSettings]
    ) -> list[Translation]:
        """One translation for each text, in the order of the texts; a blank text stays blank.

        The model translates a text line by line, or sentence by sentence if the bundle has learnt
        from single sentences. The white space between sentences stays. With ``split=False``, only a
        line of more than 200 subwords is cut. A text of several segments has no alternatives.

        Signs at the edges that the model has not learnt stay, and the model does not read them.
        Protected spans, such as placeholders, markup and unknown characters, stay too. With
        ``protect=False``, spans inside a sentence are text.

        ``prefixes`` are the texts that begin the translations. ``alignment=True`` links each word
        of a translation to source words.

        ``glossary`` maps source terms to target terms. A target term may be a list of forms, such
        as cases; a translation needs one form. A source term may have a capital at the start of a
        sentence. A target term that the translation lacks replaces the words that the alignment
        links to the source term. Without such words the translation stays.

        ``beam``, ``n_best``, ``sampling`` and the other settings are fields of
        :class:`~glassformer.decoding.engine.SearchOptions`; the bundle has the default
        ``length_penalty``. No alternative is blank. No alternative differs from a better
        alternative in white space or the final full stop only.

        This method raises UsageError for an impossible prefix or glossary, and ValueError for a
        number out of its range.
        """
        self._begin()
        check_keywords("Translator.translate", settings, TranslateSettings.__annotations__)
        check_texts("texts", texts)
        prefixes, glossary = settings.pop("prefixes", None), settings.pop("glossary", None)
        alignment, split = settings.pop("alignment", False), settings.pop("split", True)
        protect = settings.pop("protect", True)
        if prefixes is not None and len(prefixes) != len(texts):
            wanted = counted(len(texts), "text")
            raise ValueError(f"{len(prefixes)} prefixes for {wanted}: give one for each")
        search: dict[str, Any] = {"length_penalty": self.bundle.length_penalty, **settings}
        options = SearchOptions(**search)
        terms = _terms(glossary)
        engine, begins = self._engine_with(terms, protects=protect), prefixes or ()
        alpha = 0.0 if options.sampling else options.length_penalty
        placement = TermPlacement(self.bundle, engine, terms, self.token_scores, alpha)
        translations = engine.translate(texts, options, begins, split=split)
        translations = placement.placed(texts, translations, begins)
        if protect:
            translations = SpanPlacement(placement, options).placed(texts, translations, begins)
        translations = list(map(engine.without_blanks, texts, translations))
        return with_alignment(self.bundle, translations) if alignment else translations

    def segments(
        self,
        texts: Sequence[str],
        *,
        split: bool = True,
        glossary: Mapping[str, str | Sequence[str]] | Terms | None = None,
    ) -> list[list[Segment]]:
        """The segments in which :meth:`translate` translates each text, without layout.

        Terms of the ``glossary`` are no layout, even if the model does not know them.
        """
        check_texts("texts", texts)
        return self._engine_with(_terms(glossary)).segments(texts, split=split)

    def _engine_with(self, terms: Terms, *, protects: bool = True) -> TextEngine:
        return replace(self._text_engine, terms=terms, protects=protects)

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """The natural logarithm of p(target | source) for each pair, end symbol included.

        The score leaves out the prefix of a target, such as its language. The bundle normalises
        source and target as in the training.
        """
        return list(map(fsum, self.token_scores(sources, targets)))

    def token_scores(self, sources: Sequence[str], targets: Sequence[str]) -> list[list[float]]:
        """The log-probability of each subword of each target, and of the target's end symbol.

        ``target_tokenizer.subwords(target)`` gives the subwords; :meth:`score` gives the sum of a
        target's log-probabilities.
        """
        self._begin()
        check_texts("sources", sources)
        check_texts("targets", targets)
        if len(sources) != len(targets):
            counts = counted(len(sources), "source"), counted(len(targets), "target")
            raise ValueError(f"{' and '.join(counts)} must be pairs")
        if self.model.training:
            raise ValueError("the model is in training mode: call model.eval() before scoring")
        normalise = normaliser(self.bundle.normalisation)
        inputs = self._ended(self.source_tokenizer, list(map(normalise, sources)))
        labels = self._ended(self.target_tokenizer, list(map(normalise, targets)))
        sizes = list(zip(map(len, inputs), map(len, labels), strict=True))
        check_lengths(sizes, self.model.config)
        scores: list[list[float]] = [[]] * len(inputs)
        begin = len(self.target_tokenizer.prefix_ids)
        for rows in grouped_by_size([2 * max(size) for size in sizes], _SCORED_AT_ONCE):
            chosen = [inputs[row] for row in rows], [labels[row] for row in rows]
            with told(sources[rows[0]]):
                values = target_log_probabilities(self.model, *chosen).tolist()
            for row, of_target in zip(rows, values, strict=True):
                scores[row] = of_target[begin : len(labels[row])]
        return scores

    def align(self, sources: Sequence[str], targets: Sequence[str]) -> list[tuple[Link, ...]]:
        """The links between the words of each source and its target, whoever wrote the target."""
        self._begin()
        check_texts("sources", sources)
        check_texts("targets", targets)
        return align(self.bundle, sources, targets)

    def count_tokens(self, targets: Sequence[str]) -> list[int]:
        """The number of tokens of each target, normalised as in the training, with end symbol.

        The prefix does not count, as in :meth:`score`.
        """
        check_texts("targets", targets)
        normalise = normaliser(self.bundle.normalisation)
        texts = list(map(normalise, targets))
        encoded = self.target_tokenizer.encode_batch(texts, prefixed=False)
        return [len(ids) + 1 for ids in encoded]

    def log_probabilities(self, translations: Sequence[Translation]) -> list[tuple[float, int]]:
        """ln p of each translation, computed from its score, and the number of its tokens."""
        counts = self.count_tokens([translation.text for translation in translations])
        alpha = self.bundle.length_penalty
        return [
            (each.score * penalty(count, alpha), count)
            for each, count in zip(translations, counts, strict=True)
        ]

    @cached_property
    def _torch_engine(self) -> TorchEngine:
        return torch_engine(self.model, self.tokenizers, self.parts)

    @cached_property
    def _text_engine(self) -> TextEngine:
        engine = self.engine or self._torch_engine
        return TextEngine.of(
            self.model,
            self.tokenizers,
            self.parts,
            preprocessing=self.bundle.preprocessing,
            engine=engine,
        )

    def _begin(self) -> None:
        """Set one thread in a forked process, where torch would wait for lost threads for ever."""
        if self.process != os.getpid():
            torch.set_num_threads(1)

    def _ended(self, tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
        return [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_batch(texts)]


@torch.inference_mode()
def target_log_probabilities(
    model: Transformer, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Float[Tensor, "batch tgt_len"]:
    """log p(token | earlier target tokens, source) of each token of each target, on the CPU.

    Sources and targets end in their end symbol; a target has no start symbol. The numbers after the
    end of a shorter target mean nothing.
    """
    config, device = model.config, model.output_weight.device
    source = pad_rows(sources, config.pad_of_source).to(device)
    labels = pad_rows(targets, config.pad_id).to(device)
    logits = model(source, shift(labels, config.bos_id))
    precise = torch.promote_types(logits.dtype, torch.float32)
    scores = logits.log_softmax(-1, dtype=precise).gather(-1, labels[..., None])
    return scores[..., 0].cpu()


def _terms(glossary: Mapping[str, str | Sequence[str]] | Terms | None) -> Terms:
    return glossary if isinstance(glossary, Terms) else Terms.of(glossary or {})
