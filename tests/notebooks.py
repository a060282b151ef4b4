"""The kernel of a notebook, as far as a display needs one."""

import sys
from types import SimpleNamespace


class Output:
    """One output of a cell: what it shows last, and how often it has changed."""

    def __init__(self, shown):
        self.shown, self.updates = shown, 0

    def update(self, shown, raw):
        assert raw
        self.shown, self.updates = shown, self.updates + 1


def in_notebook(monkeypatch):
    """From now on the program runs in a notebook, whose outputs the returned list gets."""
    outputs = []

    def display(shown, **_):
        outputs.append(Output(shown))
        return outputs[-1]

    shell = SimpleNamespace(kernel=object())
    module = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", module)
    return outputs
