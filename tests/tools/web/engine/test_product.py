"""The bytes of WebAssembly in the repository are those of its text; skipped without wabt."""

import base64
import re
import shutil
import subprocess
from importlib.resources import files

import pytest

ENGINE = files("glassformer.tools.web") / "static" / "engine"


@pytest.mark.skipif(shutil.which("wat2wasm") is None, reason="wabt is not installed")
def test_the_bytes_of_the_product_are_those_of_its_text(tmp_path):
    out = tmp_path / "product.wasm"
    subprocess.run(["wat2wasm", str(ENGINE / "product.wat"), "-o", str(out)], check=True)

    source = (ENGINE / "product.js").read_text("utf-8")
    constant = source[source.index("const PRODUCT =") : source.index(";", source.index("PRODUCT"))]
    stored = "".join(re.findall(r'"([^"]+)"', constant))
    assert base64.b64decode(stored) == out.read_bytes()
