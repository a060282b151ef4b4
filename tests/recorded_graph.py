"""A stand-in for a CUDA graph on any device."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass
class Operation:
    function: Any
    arguments: tuple[tuple[Any, ...], dict[str, Any]]
    results: Any = None

    def run(self) -> Any:
        positional, named = self.arguments
        return self.function(*positional, **named)

    def new_tensors(self) -> list[tuple[int, Tensor]]:
        """The results, with their places, that lie in memory of their own."""
        shared = {_memory(each) for each in tree_leaves(self.arguments) if isinstance(each, Tensor)}
        results = enumerate(tree_leaves(self.results))
        return [
            (place, each)
            for place, each in results
            if isinstance(each, Tensor) and _memory(each) not in shared
        ]


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


class RecordedGraph(TorchDispatchMode):
    """Keeps each operation of a capture with its tensors and numbers, and repeats all of them.

    As with a CUDA graph, no Python runs between the repeated operations, random numbers are drawn
    anew, and results lie where the capture's results lie. A CUDA graph's capture computes nothing,
    so a capture leaves NaN in new results.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[Operation] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        operation = Operation(function, (arguments, named or {}))
        operation.results = operation.run()
        self.operations.append(operation)
        return operation.results

    def run(self, work: Callable[[], None]) -> None:
        work()

    def capture(self, work: Callable[[], None]) -> None:
        with self:
            work()

    def __exit__(self, *fault: Any) -> None:
        super().__exit__(*fault)
        with torch.no_grad():
            for operation in self.operations:
                for _, tensor in operation.new_tensors():
                    if tensor.is_floating_point():
                        tensor.fill_(torch.nan)

    @torch.no_grad()
    def replay(self) -> None:
        for operation in self.operations:
            results = tree_leaves(operation.run())
            for place, tensor in operation.new_tensors():
                tensor.copy_(results[place])
