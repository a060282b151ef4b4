"""Parameter names and shapes are a file format: trained bundles hold them.

A change here makes every saved model unreadable. If it is meant, raise the bundle's
``format_version``, then write the new snapshot.
"""

from pathlib import Path

import pytest

SNAPSHOT = Path(__file__).with_name("state_dict_names.txt")
LAYERS = {"num_encoder_layers": 2, "num_decoder_layers": 2}
VARIANTS = {
    "the paper's": {},
    "target tying": {"tying": "target"},
    "every option": {
        "tying": "none",
        "norm": "pre",
        "positions": "learned",
        "position_offset": 2,
        "embedding_norm": True,
        "output_bias": True,
    },
}


def listing(model) -> list[str]:
    return [f"{name} {tuple(x.shape)}" for name, x in model.state_dict().items()]


def snapshot() -> dict[str, list[str]]:
    """Sections ``[name]``, each a list of parameters."""
    sections: dict[str, list[str]] = {}
    for line in SNAPSHOT.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), [])
        elif line:
            current.append(line)
    return sections


@pytest.mark.parametrize("variant", VARIANTS)
def test_names_and_shapes_are_those_of_saved_models(build, variant):
    assert sorted(listing(build(**LAYERS, **VARIANTS[variant]))) == sorted(snapshot()[variant])


def test_the_snapshot_holds_no_other_variant():
    assert set(snapshot()) == set(VARIANTS)
