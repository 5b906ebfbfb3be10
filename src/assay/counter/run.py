"""`measure`: run any PyTorch code once and say what it did."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from assay.counter.result import Flops, Measurement, ModuleRow
from assay.errors import MeasureError

if TYPE_CHECKING:
    from assay.counter.paths import Paths


def measure(
    code: Any, /, *inputs: Any, backward: bool = False, allow: Iterable[str] = (), **options: Any
) -> Measurement:
    """Run a module or function once and count its FLOPs and memory, op by op; meta tensors work too.

    Args:
        code: a `torch.nn.Module`, a method of one, or any callable that runs PyTorch.
        inputs: what it is called with.
        backward: also run the backward pass, from `loss` where the result has one, else from every tensor of the result
            that needs a gradient, with gradients of ones. No `.grad` is changed.
        allow: names of ops without a rule to take for free, such as "mylib::kernel".
        options: what it is called with by name.

    Returns:
        FLOPs (2 for each multiply-add of a product, attention dense) by op and module, forward and backward; bytes
        saved for backward; the most bytes of storages alive at once; parameters; every op with its sort.

    Raises:
        MeasureError: PyTorch is not there, an op has no rule, or the result needs no gradient to run backward from.
    """
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MeasureError("measuring runs PyTorch, which is not installed: pip install torch") from None
    from assay.counter.mode import Counting, refuse_unknown
    from assay.counter.paths import Paths, in_backward
    from assay.counter.storages import WEIGHT, Storages, Weights

    root = _root(code)
    storages, weights = Storages(), Weights()

    def weigh(module: Any) -> None:
        """What a module holds itself is there before it runs."""
        for tensor in module.parameters(recurse=False):
            weights.see(tensor)
            storages.given(tensor, WEIGHT)
        for tensor in module.buffers(recurse=False):
            storages.given(tensor, WEIGHT)

    for module in root.modules() if root is not None else ():
        weigh(module)
    storages.start(_tensors((inputs, options)))
    paths = Paths(root, weigh)
    counting = Counting(paths, storages, weights, _allowed(allow))
    saved: dict[str, int] = {}

    def keep(tensor: Any) -> Any:
        if not in_backward():
            path = paths.here()
            saved[path] = saved.get(path, 0) + storages.save(tensor)
        # an op that keeps its own result must not hold itself alive by it
        return tensor if tensor.grad_fn is None else counting.aside(tensor)

    leaves = None
    if backward:
        leaves = [*(root.parameters() if root is not None else ()), *_tensors((inputs, options))]
    _run(lambda: code(*inputs, **options), leaves, (paths, counting), keep)
    refuse_unknown(counting.unknown)
    modules = _tree(paths, root, counting.modules, saved, _title(code, root))
    return Measurement(
        name=_title(code, root),
        flops=Flops(
            forward=sum(forward for forward, _ in counting.modules.values()),
            backward=sum(back for _, back in counting.modules.values()),
            by_op={row.name: row.forward + row.backward for row in counting.rows() if row.sort == "counted"},
            by_module={row.path: row.flops for row in modules},
        ),
        parameters=weights.count,
        saved=storages.saved,
        resident_bytes=storages.resident,
        peak_bytes=storages.resident + storages.peak_made,
        ops=counting.rows(),
        modules=modules,
    )


def _run(code: Callable[[], Any], leaves: list[Any] | None, contexts: Any, keep: Callable[[Any], Any]) -> None:
    """The code, once; backward too where there are leaves, whose gradients are left as they were."""
    import torch
    from torch.autograd.graph import saved_tensors_hooks

    paths, counting = contexts
    kept = saved_tensors_hooks(keep, lambda tensor: tensor)  # nothing is run for it
    with _uncompiled(), _explained(), paths, counting, kept:
        result = code()
        if leaves is not None:
            ends = _ends(result)
            with _gradients_apart([*leaves, *_leaves(ends)]):
                torch.autograd.backward(ends, [torch.ones_like(end) for end in ends])


def _uncompiled() -> AbstractContextManager[Any]:
    """Compiled code runs as it was written: a compiled graph is not made of ops that can be seen."""
    import torch

    if not {"torch._dynamo", "torch.nn.attention.flex_attention"} & sys.modules.keys():
        return nullcontext()  # nothing is compiled, and asking for this would import the compiler
    return torch.compiler.set_stance("force_eager")  # type: ignore[no-any-return]


@contextmanager
def _explained() -> Iterator[None]:
    """One line where PyTorch cannot be watched."""
    try:
        yield
    except RuntimeError as error:
        if "saved tensor hooks" not in str(error):
            raise
        raise MeasureError(f"what autograd keeps cannot be followed here: {error}") from None


def _ends(result: Any) -> list[Any]:
    """Tensors to run backward from."""
    loss = getattr(result, "loss", None)
    ends = [end for end in _tensors(result if loss is None else loss) if end.requires_grad]
    if not ends:
        raise MeasureError("backward=True, but nothing in the result needs a gradient")
    return ends


@contextmanager
def _gradients_apart(tensors: Iterable[Any]) -> Iterator[None]:
    """A backward pass as the first of a step, after which every gradient is what it was."""
    kept = [(tensor, tensor.grad) for tensor in {id(one): one for one in tensors if one.is_leaf}.values()]
    for tensor, _ in kept:
        tensor.grad = None
    try:
        yield
    finally:
        for tensor, grad in kept:
            tensor.grad = grad


def _leaves(ends: list[Any]) -> list[Any]:
    """Tensors whose gradients a graph accumulates."""
    todo, seen, found = [end.grad_fn for end in ends if end.grad_fn is not None], set(), []
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        todo.extend(following for following, _ in node.next_functions if following is not None)
    return found


def _tensors(value: Any) -> list[Any]:
    """Tensors in nested results and arguments."""
    import torch
    from torch.utils._pytree import tree_leaves

    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _allowed(allow: Iterable[str]) -> frozenset[str]:
    from assay.counter.free import sort_of
    from assay.counter.rules import RULES

    if isinstance(allow, str):
        raise MeasureError(f'allow is {allow!r}; it must be a list of names, such as ("mylib::kernel",)')
    names = frozenset(allow)
    for name in sorted(map(str, names)):
        if "::" not in name:
            raise MeasureError(f'allow holds {name!r}; it must hold names such as "mylib::kernel"')
        if name in RULES or sort_of(name):
            raise MeasureError(f"allow holds {name!r}, which has a rule")
    return names


def _root(code: Any) -> Any:
    """The module that paths start from: the code itself, or the one whose method it is."""
    import torch

    for one in (code, getattr(code, "__self__", None)):
        if isinstance(one, torch.nn.Module):
            return one
    if not callable(code):
        raise MeasureError(f"measure takes a module or a function, not {type(code).__name__}")
    return None


def _title(code: Any, root: Any) -> str:
    return type(root).__name__ if root is not None else getattr(code, "__name__", type(code).__name__)


def _tree(
    paths: Paths, root: Any, flops: dict[str, list[int]], saved: dict[str, int], title: str
) -> tuple[ModuleRow, ...]:
    """A row for every module that ran, and for those that hold it; each with what is below it."""
    from assay.counter.paths import described

    inner = dict(root.named_modules()) if root is not None else {}
    sums: dict[str, list[int]] = {"": [0, 0, 0]}
    for path in {*paths.calls, *flops, *saved}:
        own = (*flops.get(path, (0, 0)), saved.get(path, 0))
        for above in _upwards(path):
            total = sums.setdefault(above, [0, 0, 0])
            total[:] = [a + b for a, b in zip(total, own, strict=True)]
    rows = []
    for path in dict.fromkeys(("", *inner, *paths.kinds)):  # as they are held, then as they ran
        if path in sums:
            kind, parameters = paths.kinds.get(path) or (described(inner[path]) if path in inner else (title, 0))
            rows.append(ModuleRow(path, kind, paths.calls[path], parameters, *sums[path]))
    return tuple(rows)


def _upwards(path: str) -> Iterator[str]:
    """a.b.c, a.b, a and the root."""
    yield path
    while path:
        path = path.rpartition(".")[0]
        yield path
