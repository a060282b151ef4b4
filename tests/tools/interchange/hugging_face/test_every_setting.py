"""Each key of config.json and generation_config.json is obeyed, refused or noted, never ignored."""

import json
import os
import random
import shutil
import warnings

import pytest
import torch

from glassformer.decoding.engine import Job, SearchOptions
from glassformer.parts import FAST
from glassformer.support.errors import InputError
from glassformer.text_engine import torch_engine
from glassformer.tools.interchange.hugging_face.load import import_hugging_face
from tests.own_parts import rebuilt

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

LANGUAGES = {
    "marian": (None, None),
    "m2m100": ("en", "de"),
    "nllb": ("eng_Latn", "deu_Latn"),
    "mbart50": ("en_XX", "de_DE"),
}
CONFIG, SEARCH = "config.json", "generation_config.json"
ALONE = "config.json alone"
"""The place of all options in old directories."""
DROPPED = "no such key"
DRAWN = 2
"""Changes of a family and place that `make test` draws; the nightly profile walks all keys."""
TEXTS = ["A dog runs across the green grass.", "Two men sit in the snow"]


def written(directory):
    """The contents of both files."""
    return [json.loads((directory / name).read_text()) for name in (CONFIG, SEARCH)]


def known_values(directory, place):
    """The value of each key that transformers or the files know; None without a default."""
    config, search = written(directory)
    kind = transformers.CONFIG_MAPPING[config["model_type"]]
    generation = transformers.GenerationConfig
    options = {**generation().to_dict(), **generation._get_default_generation_params(), **search}
    if place == SEARCH:
        return options
    model = {**kind().to_dict(), **dict.fromkeys(kind.attribute_map), **config}
    return {**options, **model} if place == ALONE else {**dict.fromkeys(options), **model}


def other_values(key, value):
    """Three values beside the key's own."""
    if key == "activation_function":
        return ["relu", "gelu_new", DROPPED] if value != "relu" else ["gelu", "swish", DROPPED]
    if isinstance(value, bool):
        return [not value, None, DROPPED]
    if isinstance(value, int):
        return [value + 1, 5 if value != 5 else 6, DROPPED]
    if isinstance(value, float):
        return [value + 0.75, 0, DROPPED]
    return [True, 2, [[5]]] if value is None else [DROPPED, "other", None]


def variant(original, directory, place, key, value):
    """A copy of a directory with another value; links spare the copy of large files."""
    shutil.copytree(original, directory, copy_function=os.link)
    config, search = written(original)
    if place == ALONE:
        config = {**search, **config}
    changed = search if place == SEARCH else config
    changed[key] = value
    if value == DROPPED:
        del changed[key]
    for name, content in ((CONFIG, config), (SEARCH, search)):
        (directory / name).unlink()
        if place != ALONE or name == CONFIG:
            (directory / name).write_text(json.dumps(content))
    return directory


class Beside:
    """A bundle beside transformers' model: both compute from the same ids."""

    def __init__(self, bundle, model, *, forced):
        self.bundle, self.model, self.forced = bundle, model, forced
        source = bundle.source_tokenizer
        self.rows = [[*source.encode(text), source.eos_id] for text in TEXTS]

    def log_probabilities(self):
        """Theirs and ours of a random target, from the token with which ``generate`` begins."""
        config, search = self.bundle.model.config, self.model.generation_config
        start = search.decoder_start_token_id
        start = search.bos_token_id if start is None else start
        ids = torch.tensor(self.rows[:1])
        target = torch.randint(4, 40, (1, 6), generator=torch.Generator().manual_seed(5))
        theirs, ours = (
            torch.cat([torch.tensor([[first]]), target], dim=1) for first in (start, config.bos_id)
        )
        with torch.no_grad():
            expected = self.model(input_ids=ids, decoder_input_ids=theirs)[0].log_softmax(-1)
            found = rebuilt(self.bundle.model, FAST)(ids, ours).log_softmax(-1)
        return expected, found[..., : expected.shape[-1]]

    def greedy(self):
        """Their tokens and ours; no translation is empty or has unknown symbols, as documented."""
        config = self.bundle.model.config
        engine = torch_engine(self.bundle.model, self.bundle.tokenizers, FAST)
        job = Job([row[:-1] for row in self.rows])
        options = SearchOptions(beam=1, length_penalty=0.0)
        ours, theirs = [], []
        for row, [found] in zip(self.rows, engine.decode(job, options), strict=True):
            limit = len(row) - 1 + config.extra_length
            last = limit - 1  # where the longest translations have the forced end symbol
            forced = {} if self.forced is None else {"forced_bos_token_id": self.forced}
            [ids] = self.model.generate(
                input_ids=torch.tensor([row]),
                attention_mask=torch.ones(1, len(row), dtype=torch.long),
                num_beams=1,
                max_new_tokens=limit,
                suppress_tokens=[config.pad_id, config.unk_id],
                min_new_tokens=1 + len(forced),
                return_dict_in_generate=False,
                **forced,
            )
            tokens = [i for i in ids[1:].tolist() if i not in (config.eos_id, config.pad_id)]
            theirs.append(tokens[:last])
            ours.append(list(found.tokens)[:last])
        return theirs, ours


def outcome(directory, key, languages):
    """What becomes of the key: refused, noted, equal, or ignored."""
    source, target = languages
    try:
        imported = import_hugging_face(directory, source_language=source, target_language=target)
    except InputError as error:
        return "refused" if "\n" not in str(error) else f"ignored: several lines: {error}"
    if any(key in note for note in imported.notes):
        return "noted"
    prefix = imported.bundle.target_tokenizer.prefix_ids
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            kind = transformers.AutoModelForSeq2SeqLM
            model = kind.from_pretrained(directory, dtype=torch.float32).eval()
            beside = Beside(imported.bundle, model, forced=prefix[0] if prefix else None)
            expected, found = beside.log_probabilities()
            theirs, ours = beside.greedy()
        except (Exception, SystemExit) as error:  # transformers has no one class for its errors
            return f"transformers fails: {type(error).__name__}"
    if not torch.allclose(found, expected, atol=1e-4):
        return f"ignored: log p differs by {(found - expected).abs().max():.2g}"
    return "equal" if theirs == ours else f"ignored: greedy {ours} for {theirs}"


@pytest.mark.parametrize("place", [CONFIG, SEARCH, ALONE])
@pytest.mark.parametrize("family", LANGUAGES)
def test_no_key_is_ignored(request, tmp_path, family, place):
    original = request.getfixturevalue(family)
    cases = [
        (key, value)
        for key, known in known_values(original, place).items()
        for value in other_values(key, known)
        if value != DROPPED or key in {**written(original)[0], **written(original)[1]}
    ]
    if request.config.getoption("--hypothesis-profile") != "nightly":
        cases = random.Random(f"{family} {place}").sample(cases, DRAWN)

    cases.append(("transformers_version", "5"))  # a key without any effect
    outcomes = {}
    for number, (key, value) in enumerate(cases):
        directory = variant(original, tmp_path / str(number), place, key, value)
        outcomes[key, str(value)] = outcome(directory, key, LANGUAGES[family])

    assert {case: what for case, what in outcomes.items() if what.startswith("ignored")} == {}
    assert outcomes["transformers_version", "5"] == "equal"
