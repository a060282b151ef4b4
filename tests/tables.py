"""Tables of cases: one test checks every row, and reports all that fail."""

import functools
import inspect
from collections.abc import Callable, Collection


def every(names: str | tuple[str, ...], rows: Collection) -> Callable[[Callable], Callable]:
    """Run the test for each row; ``pytest.mark.parametrize`` makes a test of each instead.

    A row that fails is reported by its values, and the rows behind it run all the same. All rows
    share the test's fixtures: give it none that a row changes.
    """
    names = (names,) if isinstance(names, str) else names

    def decorate(test: Callable) -> Callable:
        parameters = inspect.signature(test).parameters
        fixtures = [one for name, one in parameters.items() if name not in (*names, "subtests")]

        @functools.wraps(test)
        def run(subtests, **given) -> None:
            if "subtests" in parameters:
                given["subtests"] = subtests
            for row in rows:
                values = dict(zip(names, row if len(names) > 1 else (row,), strict=True))
                with subtests.test(**values):
                    test(**given, **values)

        first = inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        run.__signature__ = inspect.Signature([first, *fixtures])
        return run

    return decorate
