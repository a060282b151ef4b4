"""Chooses open options, such as size, schedule and batches, from the data and the time.

The numbers of the smallest class come from trials on Multi30k (29,000 pairs); all other numbers are
usual in the field. Each choice comes with its reason, which the run prints.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from glassformer.config import ModelConfig, presets
from glassformer.data.corpus import Pair
from glassformer.evaluation import metric_for
from glassformer.support.errors import counted
from glassformer.training.pace import shortened
from glassformer.training.setup.options import LengthOptions, SizeOptions, TrainConfig

__all__ = [
    "choose",
    "choose_in_time",
    "estimated_seconds",
    "estimated_tokens",
    "model_config",
    "ranked",
    "settled",
    "size_in_time",
    "useful_updates",
]

Choices = dict[str, tuple[object, str]]
"""Values of options by name, each with a reason, or "" if the value needs no reason."""


@dataclass(frozen=True)
class _Class:
    """Default settings for corpora of up to ``pairs`` pairs.

    The row with ``pairs=0`` is for a small corpus and little time.
    """

    name: str
    pairs: int | float
    preset: str
    dropout: float
    vocab_size: int
    batch_tokens: int
    updates: int  # about this number, because a run reads whole epochs
    warmup: int
    rate_factor: float
    norm: str
    optimiser: str
    both_ways: float = 0.0


_CLASSES = (
    _Class("hurried", 0, "tiny", 0.2, 10_000, 2_048, 10_000, 800, 2.0, "pre", "muon"),
    _Class("tiny", 60_000, "tiny", 0.3, 10_000, 4_096, 24_000, 800, 2.0, "pre", "muon", 0.6),
    _Class("small", 1_000_000, "small", 0.1, 8_000, 4_096, 8_000, 1_000, 1.0, "pre", "muon"),
    _Class("base", float("inf"), "base", 0.1, 32_000, 16_384, 100_000, 4_000, 1.0, "post", "adam"),
)
_MAX_EPOCHS = 200
_REACHED = 0.4  # speed of a training step on a CPU, as a share of the speed of a large product
# Wang et al. 2019 (arXiv 1906.01787), section 2: deeper encoders with post-norm fail to train.
_DEEPEST_POST_NORM = 6  # blocks


def estimated_tokens(characters: int) -> int:
    """The estimated number of subwords of a text with ``characters`` characters.

    >>> estimated_tokens(400)
    100
    """
    return max(1, characters // 4)


def useful_updates(pairs: int, per_epoch: float) -> int:
    """The updates after which ``pairs`` pairs teach little; an epoch has ``per_epoch`` updates.

    >>> useful_updates(29_000, 800.0), useful_updates(10, 1.0)
    (24000, 200)
    """
    return max(1, round(min(_class(pairs).updates, _MAX_EPOCHS * per_epoch)))


def choose(
    config: TrainConfig, *, pairs: int, tokens: int, size: str | None = None
) -> tuple[TrainConfig, list[str]]:
    """``config`` with a value for each open option, and a line for each choice.

    ``tokens`` is a rough count of the pairs' tokens, source + target. ``size`` names a smaller
    class for a short time (:func:`size_in_time`). The size decides the schedule, the number of
    pairs decides the vocabulary, and size and pairs decide the dropout.
    """
    wants = _class(pairs)
    fit = next((known for known in _CLASSES if known.name == size), wants)
    limit = f"up to {wants.pairs:,} pairs" if wants.pairs < float("inf") else "over a million pairs"
    wanted = f"{counted(pairs, 'pair')}, and {limit} want this size"
    hurried = f"{pairs:,} pairs want {wants.preset}, which learns too little in the minutes given"
    choices: Choices = {"preset": (fit.preset, wanted if fit.preset == wants.preset else hurried)}
    if _size(config.preset) in (None, fit.preset):
        dropout = min(fit.dropout, wants.dropout)
        reason = "it keeps the model from learning the pairs by heart"
        less = f"the pairs want {wants.dropout:g}, but the time is too short to learn them by heart"
        choices["dropout"] = dropout, reason if dropout == wants.dropout else less
    if not config.tokenizer:
        # In a small vocabulary each subword occurs more often; a small corpus fills no large one.
        subwords = min(wants.vocab_size, max(300, tokens // 20))
        choices["vocab_size"] = subwords, f"about {tokens:,} tokens of text"
    choices["batch_tokens"] = fit.batch_tokens, "smaller batches learn more from each token"
    per_epoch = tokens / (0.95 * (config.batch_tokens or fit.batch_tokens)) / config.accumulate
    choices |= _schedule(config, fit, per_epoch=max(1.0, per_epoch), warmup_option=config.warmup)
    before = "a run as short as this gets further with it than with the paper's post-norm"
    choices["norm"] = fit.norm, before if fit.norm == "pre" else "the paper's"
    preset = presets[config.preset or fit.preset]
    if (config.num_encoder_layers or preset["num_encoder_layers"]) > _DEEPEST_POST_NORM:
        choices["norm"] = "pre", "so deep an encoder hardly learns with the paper's post-norm"
    quicker = "it learns more from each token than the paper's Adam"
    choices["optimiser"] = fit.optimiser, quicker if fit.optimiser == "muon" else "the paper's"
    shared = config.joint and len(config.tokenizer) < 2
    if shared and fit.both_ways and wants.both_ways:
        choices["both_ways"] = fit.both_ways, "each of the few pairs then teaches both directions"
    choices["decay"] = "inverse-root", ""
    choices["tying"] = ("three-way", "one vocabulary") if shared else ("target", "two")
    return settled(config, choices)


def settled(config: TrainConfig, choices: Choices) -> tuple[TrainConfig, list[str]]:
    """``config`` with the choices for its open options, and the reasons as lines."""
    opened = {name: each for name, each in choices.items() if getattr(config, name) is None}
    reasons = [
        f"{name.replace('_', ' ')} {f'{value:,}' if isinstance(value, int) else value}: {reason}"
        for name, (value, reason) in opened.items()
        if reason
    ]
    return config.model_copy(update={name: value for name, (value, _) in opened.items()}), reasons


def ranked(
    config: TrainConfig,
    reasons: list[str],
    *,
    valid: Sequence[Pair],
    languages: tuple[str, str] | None,
) -> tuple[TrainConfig, list[str]]:
    """``config`` with the score that ranks the checkpoints; chrF++ adds a reason."""
    language = languages[1] if languages else None
    metric = metric_for([pair.target for pair in valid], language)
    reason = "hardly any validation reference has four words in a row, and BLEU counts these"
    config, further = settled(config, {"metric": (metric, reason if metric == "chrf" else "")})
    return config, [*reasons, *further]


def choose_in_time(
    config: TrainConfig, *, pairs: int, tokens: int, speed: float | None
) -> tuple[TrainConfig, list[str]]:
    """As :func:`choose`, for the time of ``config.minutes`` on a machine of known ``speed``.

    ``speed`` is that of matrix products, in operations a second. The last reason estimates the
    number of updates.

    >>> minutes = TrainConfig(pairs=("a", "b"), run="run", minutes=20)
    >>> choose_in_time(minutes, pairs=29_000, tokens=950_000, speed=4e11)[1][-1]
    'updates about 5,882 to 11,765: 400 billion operations a second now, and validations take time'
    """
    if config.minutes is None or speed is None:
        return choose(config, pairs=pairs, tokens=tokens)
    operations = 60 * config.minutes * _REACHED * speed
    vocab_size = config.vocab_size or _class(pairs).vocab_size
    size = size_in_time(config, pairs=pairs, vocab_size=vocab_size, operations=operations)
    settled, reasons = choose(config, pairs=pairs, tokens=tokens, size=size)
    batch = (settled.batch_tokens or 1) * settled.accumulate
    vocab_size = settled.vocab_size or vocab_size
    each = estimated_seconds(settled, vocab_size=vocab_size, speed=speed)
    useful = useful_updates(pairs, tokens / (0.95 * batch))
    most = min(max(1, round(60 * config.minutes / each)), useful)
    reason = f"{speed / 1e9:,.0f} billion operations a second now, and validations take time"
    return settled, [*reasons, f"updates about {most // 2:,} to {most:,}: {reason}"]


def estimated_seconds(settled: TrainConfig, *, vocab_size: int, speed: float) -> float:
    """The seconds of an update on a machine of known ``speed``, in operations a second."""
    tokens = (settled.batch_tokens or 1) * settled.accumulate
    operations = _operations(settled, settled.preset or "base", vocab_size)
    return tokens * operations / (_REACHED * speed)


def size_in_time(given: SizeOptions, *, pairs: int, vocab_size: int, operations: float) -> str:
    """The largest size for ``pairs`` that reads half of the size's tokens in ``operations``.

    If no size reads so many tokens, the function returns "hurried".

    >>> sizes = {"pairs": 29_000, "vocab_size": 10_000}
    >>> [size_in_time(SizeOptions(), **sizes, operations=each) for each in (2.9e14, 5.8e14)]
    ['hurried', 'tiny']
    """
    wants = _class(pairs)
    smaller = _CLASSES[: _CLASSES.index(wants) + 1]
    sizes = [size for size in smaller if _size(given.preset) in (None, size.preset)] or [wants]
    for size in reversed(sizes):
        tokens = operations / _operations(given, given.preset or size.preset, vocab_size)
        if tokens >= size.updates * size.batch_tokens / 2:
            return size.name
    return sizes[0].name


def _size(preset: str | None) -> str | None:
    """The size in a preset's name, such as "tiny" in "tiny-deep-shallow"."""
    return None if preset is None else preset.removesuffix("-deep-shallow")


def _operations(options: SizeOptions, preset: str, vocab_size: int) -> float:
    """The training operations a token, which are six for each weight that the token meets.

    Half of the tokens meet the encoder, and half of the tokens meet the decoder.
    """
    shape: dict[str, Any] = dict(presets[preset])
    shape |= {name: value for name in shape if (value := getattr(options, name, None)) is not None}
    width, inner = shape["d_model"], shape["d_ff"]
    encoder = shape["num_encoder_layers"] * (4 * width + 2 * inner) * width
    decoder = shape["num_decoder_layers"] * (8 * width + 2 * inner) * width
    return 6 * (encoder + decoder + vocab_size * width) / 2


def _class(pairs: int) -> _Class:
    return next(fit for fit in _CLASSES if pairs <= fit.pairs)


def _schedule(
    length: LengthOptions, fit: _Class, *, per_epoch: float, warmup_option: int | None
) -> Choices:
    """Length, warm-up and rate; with ``minutes``, the time decides the length.

    ``warmup_option`` is the warm-up that the caller has set.
    """
    choices: Choices = {}
    useful = min(fit.updates, _MAX_EPOCHS * per_epoch)
    epochs = max(1, round(useful / per_epoch))
    if length.updates is None and length.minutes is None:
        choices["epochs"] = float(epochs), f"about {useful:,.0f} updates without further pairs"
    updates = length.updates or (length.epochs or epochs) * per_epoch
    warmup, _ = shortened(fit.warmup, fit.rate_factor, updates=updates)
    short = f"no more than a fifth of about {updates:,.0f} updates"
    if length.minutes is not None:
        short = "at most; no more than a fifth of the updates that the time allows"
    choices["warmup"] = warmup, "for a model of this size" if warmup == fit.warmup else short
    # A shorter warm-up must not raise the highest rate, factor / sqrt(d_model * warmup).
    factor = fit.rate_factor * min(1.0, ((warmup_option or warmup) / fit.warmup) ** 0.5)
    choices["rate_factor"] = round(factor, 4), "for a model of this size and this warmup"
    return choices


def model_config(config: TrainConfig, vocabularies: dict[str, int | None]) -> ModelConfig:
    """The model of a settled ``config``, which is the preset with the options' changes.

    ``vocabularies`` holds sizes and special symbols. Raises :class:`UsageError` for options that do
    not fit together.
    """
    settings = dict(presets[config.preset or "base"])
    sizes = SizeOptions.model_fields.keys() - {"preset"}
    names = (*sizes, "dropout", "attention_dropout", "activation_dropout")
    settings |= {name: value for name in names if (value := getattr(config, name)) is not None}
    # Room for the longest pair, and for a translation of 50 tokens more (section 6.1).
    settings["max_length"] = max(1024, config.max_tokens + 51)
    return ModelConfig(**settings, **vocabularies)
