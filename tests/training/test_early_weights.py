"""The weights of early updates: kept once, for the film alone."""

import torch
from safetensors.torch import load_file

from glassformer.tensors import weights
from glassformer.training import early_weights as module
from glassformer.training.checkpoint import checkpoints
from glassformer.training.early_weights import keep_early_weights, kept_weights


def test_a_run_keeps_its_early_weights_beside_the_checkpoints(made):
    trainer = made(updates=11, validations=1)
    begun = {name: weight.clone() for name, weight in weights(trainer.model).items()}
    film = trainer.config.run / "film"
    film.mkdir()
    (film / "00000100.safetensors").write_text("of an earlier beginning")
    (film / "mine.txt").touch()
    trainer.run()

    assert list(kept_weights(trainer.config.run)) == [0, 10, 11]
    assert [path.name for path in checkpoints(trainer.checkpoint_directory)] == ["00000011"]
    assert (film / "mine.txt").exists()
    stored = load_file(film / "00000000.safetensors")
    assert stored.keys() == begun.keys()
    for name, weight in begun.items():
        torch.testing.assert_close(stored[name], weight.half(), rtol=0, atol=0)


def test_the_same_update_is_written_once_and_others_never(tmp_path):
    model = torch.nn.Linear(2, 2)
    for update in (0, 1, 10, 11):
        keep_early_weights(tmp_path, model, update)
    first = (tmp_path / "film" / "00000010.safetensors").read_bytes()
    torch.nn.init.zeros_(model.weight)
    keep_early_weights(tmp_path, model, 10)

    assert list(kept_weights(tmp_path)) == [0, 10]
    assert (tmp_path / "film" / "00000010.safetensors").read_bytes() == first


def test_a_disk_without_room_for_a_film_ends_no_training(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "save_tensors", full)
    keep_early_weights(tmp_path, torch.nn.Linear(2, 2), 0)

    assert kept_weights(tmp_path) == {}


def test_a_checkpoint_stands_for_the_early_weights_of_its_update(tmp_path):
    keep_early_weights(tmp_path, torch.nn.Linear(2, 2), 10)
    (tmp_path / "checkpoints" / "00000010").mkdir(parents=True)

    stored = tmp_path / "checkpoints" / "00000010" / "model.safetensors"
    assert kept_weights(tmp_path) == {10: stored}
