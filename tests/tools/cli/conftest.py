"""What the tests of the command line share."""

import pytest

from glassformer.tools.cli.main import main


@pytest.fixture
def refused(capsys):
    """Calls a command that must fail; gives the exit status and the one line that it said."""

    def call(*words) -> tuple[int, str]:
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("\n") == 1, said.err
        prefix = "glassformer: error: "
        assert said.err.startswith(prefix)
        return status, said.err.removeprefix(prefix).removesuffix("\n")

    return call
