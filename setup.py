"""The description on the package index: README.md, whose links are addresses of the repository.

``pyproject.toml`` has all else.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")  # a picture may be a link's text


def description(readme: str, repository: str) -> str:
    """README's text with absolute links to files and pictures; without an address, as it is."""
    if not repository:
        return readme
    return LINK.sub(
        lambda link: (
            f"]({repository}/{'raw' if link[1].endswith('.png') else 'blob'}/main/{link[1]})"
        ),
        readme,
    )


project = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["project"]
setup(
    long_description=description(
        (HERE / "README.md").read_text("utf-8"), project.get("urls", {}).get("Repository", "")
    ),
    long_description_content_type="text/markdown",
)
