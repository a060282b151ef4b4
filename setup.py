"""The description and the addresses on the package index, both from the repository's address.

``pyproject.toml`` has this address and all else. README.md is the description.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
LINK = re.compile(
    r"""(\]\(|(?:href|src)=")(?!https?:|#)([^)"]+)"""
)  # a picture may be a link's text


def description(readme: str, repository: str) -> str:
    """README's text with absolute links to files and pictures; without an address, as it is."""
    if not repository:
        return readme
    return LINK.sub(
        lambda link: (
            f"{link[1]}{repository}/{'raw' if link[2].endswith('.png') else 'blob'}/main/{link[2]}"
        ),
        readme,
    )


def addresses(repository: str) -> dict[str, str]:
    """The repository, its issues, the changes, and the site on GitHub's pages."""
    if not repository:
        return {}
    owner, name = repository.split("/")[-2:]
    return {
        "Repository": repository,
        "Documentation": f"https://{owner.lower()}.github.io/{name}/",
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
    }


settings = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["tool"]["glassformer"]
setup(
    long_description=description((HERE / "README.md").read_text("utf-8"), settings["repository"]),
    long_description_content_type="text/markdown",
    project_urls=addresses(settings["repository"]),
)
