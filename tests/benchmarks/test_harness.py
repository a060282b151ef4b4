"""Operations, spreads, tables, environments and wrong calls of the benchmarks."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import environments, pairs, quality
from benchmarks.__main__ import main
from benchmarks.decoding import share_of_same, splits_of
from benchmarks.environments import Failed, requirements
from benchmarks.machine import facts, training_flops
from benchmarks.options import PEERS, parse
from benchmarks.pairs import Contender, Spread, fastest, ratio, rounds, run, spread
from benchmarks.report import shown, table
from benchmarks.training import COMPILES, NAMES, settings_of
from glassformer.config import ModelConfig
from glassformer.model.transformer import Transformer

PEAK = Contender("a peer", "ours", "matrix_peak", {"device": "cpu", "threads": 1})
SMALL = {
    "vocab_size": 50,
    "d_model": 32,
    "num_heads": 2,
    "d_ff": 64,
    "num_encoder_layers": 2,
    "num_decoder_layers": 3,
    "pad_id": 0,
}


def test_operations_are_those_that_torch_counts():
    sizes = dict(SMALL)
    vocab_size = sizes.pop("vocab_size")
    model = Transformer(
        ModelConfig(source_vocab_size=vocab_size, target_vocab_size=vocab_size, **sizes)
    )
    source, target = torch.full((3, 7), 5), torch.full((3, 5), 5)
    # Attention as plain products, which torch counts; its fused kernel it does not, on a CPU.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter, torch.no_grad():
        model(source, target)

    operations = training_flops(SMALL, source.numpy(), target.numpy())

    # Torch counts the whole square of the decoder's self-attention, of which half is masked.
    masked = 2 * 2 * 3 * 3 * 32 * 5**2 / 2
    assert operations == pytest.approx(3 * (counter.get_total_flops() - masked), rel=1e-6)


def test_padding_is_no_work():
    source, target = np.full((2, 4), 5), np.full((2, 3), 5)
    padded = np.pad(source, ((0, 0), (0, 6))), np.pad(target, ((0, 0), (0, 2)))

    assert training_flops(SMALL, *padded) == training_flops(SMALL, source, target)


def test_a_spread_is_median_and_ends():
    assert spread([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    assert shown(Spread(2.5, 2.25, 3.0), ".2f") == "2.50 (2.25 to 3.00)"
    assert ratio([2.0, 6.0, 4.0], [1.0, 2.0, 4.0]) == Spread(2.0, 1.0, 3.0)


def test_a_table_is_markdown():
    lines = table("speed", ["who", "tokens/s"], [["a longer name", "9"]]).splitlines()

    assert lines[0] == "**speed**"
    assert len({len(line) for line in lines[2:]}) == 1
    assert [cell.strip() for cell in lines[4].strip("|").split("|")] == ["a longer name", "9"]


def test_workers_share_the_threads():
    assert splits_of(6, single=False) == [(1, 6), (2, 3), (3, 2), (6, 1)]
    assert splits_of(6, single=True) == [(1, 1), (1, 6)]
    assert splits_of(1, single=True) == [(1, 1)]
    assert share_of_same(["a", "b", "c"], ["a", "x", "c"]) == pytest.approx(2 / 3)


def test_a_run_that_fails_says_its_last_line():
    with pytest.raises(Failed, match=r"a peer failed: .*No module named benchmarks\.peers\.no"):
        run(replace(PEAK, module="no"))


def test_a_run_that_takes_too_long_is_given_up():
    with pytest.raises(Failed, match="took longer than 0 s"):
        run(PEAK, timeout=0.01)


@pytest.fixture
def speeds(monkeypatch):
    """The jobs of the runs; the speed of a run is its job's "speed", and None fails."""
    jobs = []

    def timed(contender, **_):
        jobs.append(contender.job)
        if contender.job["speed"] is None:
            raise Failed(f"{contender} failed: no memory")
        return contender.job

    monkeypatch.setattr(pairs, "run", timed)
    return jobs


def contenders(*speeds: int | None) -> list[Contender]:
    return [Contender(f"peer {speed}", "ours", "", {"speed": speed}) for speed in speeds]


def test_the_fastest_setting_is_chosen_in_short_runs(speeds):
    best = fastest(contenders(5, None, 9, 7), "speed", trial={"updates": 4}, timeout=1)

    assert best == contenders(9)[0]
    assert [job["updates"] for job in speeds] == [4] * 4


@pytest.mark.usefixtures("speeds")
def test_a_peer_of_which_no_setting_runs_gives_the_reason():
    with pytest.raises(Failed, match="no memory"):
        fastest(contenders(None, None), "speed", trial={}, timeout=1)


def test_every_second_round_runs_backwards(speeds):
    reports = rounds(contenders(1, 2, 3), number=2)

    assert [job["speed"] for job in speeds] == [1, 2, 3, 3, 2, 1]
    assert [[report["speed"] for report in one] for one in reports] == [[1, 2, 3]] * 2


def test_what_cannot_be_installed_says_why():
    program = "import sys; sys.exit('noise\\nERROR: No matching distribution found for nothing')"

    with pytest.raises(Failed, match="installed: No matching distribution found for nothing"):
        environments._checked([sys.executable, "-c", program])


def test_torch_is_the_same_build_for_all():
    pinned = {requirements(peer)[0] for peer in ("torch_nn", "marian", "eole")}

    assert len(pinned) == 1
    assert pinned.pop().startswith("torch==")
    assert "tensorflow[and-cuda]==2.21.0" in requirements("keras", device="cuda")


def test_every_peer_has_a_program_a_name_and_an_environment():
    peers = Path(environments.__file__).parent / "peers"
    for peer in ("ours", *PEERS):
        assert (peers / f"{peer}.py").exists()
        assert peer in NAMES
        assert peer in environments.REQUIREMENTS
    assert set(PEERS) >= COMPILES


def test_bf16_is_tried_where_the_machine_has_units_for_it():
    slow, fast = ({"float32": 100.0, "bf16": speed} for speed in (3.0, 600.0))

    assert settings_of("eole", slow) == [{"precision": "float32", "compiled": False}]
    assert len(settings_of("torch_nn", fast)) == 4
    assert len(settings_of("eole", fast)) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["training", "--sizes", "smal"], "argument --sizes: invalid choice: 'smal'"),
        (["training", "--beams", "5"], "unrecognized arguments: --beams 5"),
        (
            ["decoding", "--bundle", "en-de", "--beams", "5", "0"],
            "argument --beams: 0: a beam is at least 1",
        ),
        (["quality"], "the following arguments are required: --data"),
        (["serving"], "the following arguments are required: --bundle"),
    ],
)
def test_a_wrong_call_is_one_line(words, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)

    assert ended.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_a_folder_without_the_files_is_named(tmp_path, capsys):
    assert main(["quality", "--data", str(tmp_path)]) == 1
    assert "holds none of train.en, train.en.gz" in capsys.readouterr().err


def test_a_run_is_not_measured_twice(tmp_path, capsys):
    (tmp_path / "metrics.jsonl").touch()

    assert main(["quality", "--data", str(tmp_path), "--run", str(tmp_path)]) == 1
    assert "holds a run; the clock needs a new one" in capsys.readouterr().err


def test_quality_runs_the_default_command(tmp_path):
    for name in ("train", "val", "test_2016_flickr"):
        for code in ("en", "de"):
            (tmp_path / f"{name}.{code}.gz").touch()

    words = quality.command(parse(["quality", "--data", str(tmp_path), "--minutes", "20"]))

    assert words[1:4] == ["-m", "glassformer", "train"]
    assert words[words.index("--valid") + 2] == str(tmp_path / "val.de.gz")
    assert words[-2:] == ["--minutes", "20.0"]


def test_facts_name_the_machine_and_the_commit():
    machine = facts(threads=2)

    assert machine["cores"] >= 1
    assert machine["threads"] == 2
    assert {"cpu", "commit", "torch", "command"} <= machine.keys()
