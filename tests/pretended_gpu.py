"""A pretended GPU, ``cuda:0``, for a torch without CUDA: its import pretends it in this process.

Its tensors lie on the CPU and compute there, but their device is ``cuda:0``. As on a GPU, an
operation refuses tensors of two devices, unless one is a number, and NumPy refuses a tensor of the
GPU. A question for a value, or a copy that is not ``non_blocking``, is a wait: an error in a graph,
and if ``torch.cuda.set_sync_debug_mode`` says "error". Both devices draw from one generator.

The compiled ``pretended_gpu.cpp`` must be loaded before torch.
"""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from tests.recorded_graph import RecordedGraph

GPU = torch.device("cuda", 0)
OPERATIONS = torch.ops.aten
QUESTIONS = {
    OPERATIONS._local_scalar_dense.default,
    OPERATIONS._unique2.default,
    OPERATIONS.bincount.default,
    OPERATIONS.equal.default,
    OPERATIONS.is_nonzero.default,
    OPERATIONS.masked_select.default,
    OPERATIONS.nonzero.default,
    OPERATIONS.repeat_interleave.Tensor,
    OPERATIONS.unique_consecutive.default,
    OPERATIONS.unique_dim.default,
}
INDEXING = {
    OPERATIONS.index.Tensor,
    OPERATIONS.index_put.default,
    OPERATIONS.index_put_.default,
}
COPIES = {OPERATIONS.copy_.default, OPERATIONS._foreach_copy_.default}
ACROSS = {OPERATIONS._to_copy.default, *COPIES}
state = {"waits": "default", "capture": False}


class OnGpu(Tensor):
    """A tensor of the pretended GPU, whose numbers ``inner`` lie on the CPU."""

    inner: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: Tensor) -> "OnGpu":
        layout = {"strides": inner.stride(), "storage_offset": inner.storage_offset()}
        return Tensor._make_wrapper_subclass(
            cls, inner.size(), **layout, dtype=inner.dtype, device=GPU
        )

    def __init__(self, inner: Tensor) -> None:
        self.inner = inner

    def __repr__(self) -> str:
        return f"{self.inner} on {GPU}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if id(self) not in memo:
            copied = OnGpu(self.inner.detach().clone())
            is_weight = getattr(self, "_is_param", False)
            memo[id(self)] = nn.Parameter(copied, self.requires_grad) if is_weight else copied
        return memo[id(self)]

    @classmethod
    def __torch_dispatch__(
        cls, function: Any, types: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        return computed(function, arguments, named or {})

    def tolist(self) -> Any:
        wait("tolist")
        return self.inner.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        if not force:
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        wait("numpy")
        return self.inner.detach().numpy(force=True)

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.numpy()

    def data_ptr(self) -> int:
        return self.inner.data_ptr()

    def untyped_storage(self) -> torch.UntypedStorage:
        return self.inner.untyped_storage()


def wait(name: str) -> None:
    if state["waits"] == "error" or state["capture"]:
        raise RuntimeError(f"{name} waits for the GPU")


def computed(function: Any, arguments: Any, named: dict[str, Any]) -> Any:
    """The results of an operation, on the GPU if an argument is there or if it asks for it."""
    leaves = tree_leaves((arguments, named))
    on_gpu = [each for each in leaves if isinstance(each, OnGpu)]
    on_cpu = [each for each in leaves if isinstance(each, Tensor) and not isinstance(each, OnGpu)]
    device, for_gpu = named.get("device"), bool(on_gpu)
    if device is not None:
        for_gpu = torch.device(device).type == "cuda"
        named = named | ({"device": torch.device("cpu")} if for_gpu else {})
    elif function in COPIES:
        for_gpu = isinstance(tree_leaves(arguments)[0], OnGpu)
    elif on_gpu and any(each.dim() for each in on_cpu):
        raise RuntimeError(f"{function}: expected all tensors to be on the same device")
    crosses = function in ACROSS and bool(on_cpu if for_gpu else on_gpu)
    waits = crosses and not named.get("non_blocking", any(each is True for each in arguments))
    if waits or (on_gpu and (function in QUESTIONS or by_mask(function, arguments))):
        wait(str(function))
    if state["capture"]:
        assert not (crosses and for_gpu), "a graph copies nothing from the host"
    if on_gpu and function is OPERATIONS._fused_sdp_choice.default:
        return 0  # attention by products, which each device has
    arguments, named = tree_map(
        lambda each: each.inner if isinstance(each, OnGpu) else each, (arguments, named)
    )
    results, known = function(*arguments, **named), {id(each.inner): each for each in on_gpu}

    def placed(result: Any) -> Any:
        if not isinstance(result, Tensor):
            return result
        same = known.get(id(result))
        return OnGpu(result) if same is None else same

    return tree_map(placed, results) if for_gpu else results


def by_mask(function: Any, arguments: Any) -> bool:
    """True for an index of Booleans, whose number of results is a value."""
    return function in INDEXING and any(
        index is not None and index.dtype == torch.bool for index in arguments[1]
    )


class Computer(TorchDispatchMode):
    """A computer with the GPU: an operation without tensors, too, may ask for it."""

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        return computed(function, arguments, named or {})


class Graph(RecordedGraph):
    def __enter__(self) -> "Graph":
        state["capture"] = True
        super().__enter__()
        return self

    def __exit__(self, *fault: Any) -> None:
        state["capture"] = False
        super().__exit__(*fault)


class Stream:
    def wait_stream(self, _: "Stream") -> None:
        pass


def without_gradient(mode: bool = True) -> Any:
    """In the place of ``inference_mode``, in which a view of an :class:`OnGpu` is an error."""
    return torch.no_grad() if mode else torch.enable_grad()


def pretend() -> None:
    """Let torch's questions about GPUs have the answers of one GPU."""
    torch.__future__.set_swap_module_params_on_conversion(True)  # for a weight of another class
    torch._C._set_only_lift_cpu_tensors(True)  # for torch.tensor with a device
    torch.inference_mode = without_gradient
    Tensor.pin_memory = lambda tensor: tensor  # type: ignore[method-assign,misc,assignment]
    answers: dict[str, Any] = {
        "_lazy_init": None,
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "is_bf16_supported": True,
        "mem_get_info": (8_000_000_000, 8_000_000_000),
        "get_rng_state": torch.get_rng_state(),
        "set_rng_state": None,
        "manual_seed_all": None,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *_, answer=answer, **__: answer)
    torch.cuda.set_sync_debug_mode = lambda mode: state.update(waits=mode)
    torch.cuda.CUDAGraph, torch.cuda.Stream, torch.cuda.stream = Graph, Stream, nullcontext
    torch.cuda.current_stream = Stream
    torch.cuda.graph = lambda graph, **_: graph
    Computer().__enter__()


pretend()
