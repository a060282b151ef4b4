"""Which sources have no importer: one line each."""

import zipfile

import pytest

from glassformer.support.errors import InputError
from glassformer.tools.interchange.sources import importer_of


@pytest.mark.parametrize("name", ["opus.npz", "opus.zip", "opus"])
def test_marian_s_own_files_are_refused(tmp_path, name):
    source = tmp_path / name
    if name == "opus":
        source.mkdir()
        (source / "opus.npz").touch()
    else:
        with zipfile.ZipFile(source, "w") as file:
            file.writestr("opus.npz" if name == "opus.zip" else "Wemb.npy", b"")
    with pytest.raises(
        InputError, match=rf"{name} is a model in Marian's format: import reads OPUS-MT's mo"
    ):
        importer_of(source)(source)
