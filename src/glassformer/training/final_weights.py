"""The weights that a run delivers: the mean of checkpoints (section 6.1), or the best one alone."""

from typing import Any

from glassformer.model.transformer import Transformer
from glassformer.training.checkpoint import load_average, whole
from glassformer.training.checkpoint_averaging import averaged_updates, best
from glassformer.training.loop import Trainer

__all__ = ["final_weights"]


def final_weights(trainer: Trainer) -> tuple[Transformer, list[int]]:
    """The model of a finished run, and the updates of the checkpoints whose mean it is.

    The mean is validated as the model was at each of these updates. If the best checkpoint has a
    better score, the run delivers this checkpoint alone. The metrics hold the scores of the mean.
    """
    directory, config, note = trainer.checkpoints, trainer.config, trainer.reporter.note
    validations = trainer.state.validations
    updates = whole(directory, averaged_updates(validations, config), note)
    model = load_average(trainer.model, directory, updates)
    if len(updates) == 1:
        return model, updates
    single = best([each for each in validations if each["update"] in updates], config)
    scores = trainer.validation(model).scores
    mean = {"kind": "average", "update": trainer.state.update, "updates": updates, **scores}
    mean["best"] = best([mean, single], config) is mean
    trainer.metrics.write(mean)
    delivered = updates if mean["best"] else [single["update"]]
    numbers = ", ".join(f"{update:,}" for update in updates)
    note(
        f"mean of the checkpoints {numbers}: {_shown(mean)}; the best of them,"
        f" {single['update']:,}: {_shown(single)}:"
        f" the {'mean' if mean['best'] else 'best'} is delivered"
    )
    return load_average(model, directory, delivered), delivered


def _shown(record: dict[str, Any]) -> str:
    return f"BLEU {record['bleu']:.2f}, loss {record['loss']:.3f}"
