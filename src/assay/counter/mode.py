"""Every op that the dispatcher runs passes here: it is counted, known to be free, or written down as unknown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import assay.counter.attention  # noqa: F401 (registers its rules)
from assay.counter.free import sort_of
from assay.counter.paths import Paths, in_backward
from assay.counter.result import OpRow
from assay.counter.rules import RULES, Call
from assay.counter.storages import WEIGHT, Storages, Weights
from assay.errors import MeasureError

# ops that know the lengths of nested tensors: what a padded batch of `torch.nn.TransformerEncoder` runs
RAGGED = ("aten::_transformer_encoder_layer_fwd", "aten::_native_multi_head_attention", "aten::to_padded_tensor")
PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


class Tally:
    """FLOPs forward and backward of something."""

    __slots__ = ("calls", "elements", "flops", "sort")

    def __init__(self, sort: str = "") -> None:
        self.sort = sort
        self.calls = 0
        self.elements = 0
        self.flops = [0, 0]


class Counting(TorchDispatchMode):  # type: ignore[misc]
    """A context that counts what runs in it, by op and by the module at work."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled while a mode like this is on; guarding against it would import the compiler."""
        return False

    def __init__(self, paths: Paths, storages: Storages, weights: Weights, allow: frozenset[str]) -> None:
        super().__init__()
        self.ops: dict[str, Tally] = {}
        self.modules: dict[str, list[int]] = {}
        self.unknown: dict[str, str] = {}
        self._paths = paths
        self._storages = storages
        self._weights = weights
        self._allow = allow
        self._kinds: dict[Any, tuple[str, str | None, bool]] = {}
        self._aside = False

    def aside(self, tensor: Any) -> Any:
        """The same elements apart from what made them, by an op that is none of the code's own."""
        self._aside = True
        try:
            return tensor.data
        finally:
            self._aside = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._aside:
            return func(*args, **kwargs)
        if any(kind not in PLAIN and not _is_fake(kind) for kind in types):
            return NotImplemented  # a tensor made of tensors: what it runs on those comes here by itself
        name, sort, decomposes = self._kind(func)
        given = [*_tensors(args), *_tensors(kwargs)]
        if sort != "view" and name not in RAGGED and any(tensor.is_nested for tensor in given):
            raise MeasureError(f"{name} works on nested tensors without a shape; use those of layout=torch.jagged")
        if decomposes:  # without autograd even ops that are written in others arrive whole
            with self:
                return func.decompose(*args, **kwargs)
        for tensor in given:
            self._give(tensor, name)
        result = func(*args, **kwargs)
        made = list(_tensors(result))
        for tensor in made:
            self._storages.made_by(tensor)
        self._count(func, name, sort, args, kwargs, given, made, result)
        return result

    def rows(self) -> tuple[OpRow, ...]:
        """The ops, those that cost most first."""
        found = [OpRow(name, op.sort, op.calls, op.flops[0], op.flops[1], op.elements) for name, op in self.ops.items()]
        return tuple(sorted(found, key=lambda row: (-row.forward - row.backward, row.sort != "counted", row.name)))

    def _kind(self, func: Any) -> tuple[str, str | None, bool]:
        """Name, sort (None where nothing is known of it) and whether an op is written in other ops."""
        if func not in self._kinds:
            name = _name(func)
            sort = "counted" if name in RULES else sort_of(name) or _by_schema(func, name)
            self._kinds[func] = name, sort, _decomposes(func)
        return self._kinds[func]

    def _give(self, tensor: Any, name: str) -> None:
        if name == "aten::lift_fresh":  # a tensor written in the code: made by the run
            self._storages.made_by(tensor)
        elif isinstance(tensor, torch.nn.Parameter):
            self._weights.see(tensor)
            self._storages.given(tensor, WEIGHT)
        else:
            self._storages.given(tensor)

    def _count(
        self, func: Any, name: str, sort: str | None, args: Any, kwargs: Any, given: Any, made: Any, result: Any
    ) -> None:
        if sort is None:
            if name not in self._allow:
                self.unknown.setdefault(name, _described(name, given, self._paths.here()))
            sort = "allowed"
        op = self.ops.setdefault(name, Tally(sort))
        op.calls += 1
        if sort != "view":
            op.elements += sum(tensor.numel() for tensor in made)
        if sort == "counted":
            flops = int(RULES[name](_bound(func, name, args, kwargs, result)))
            backward = in_backward()
            op.flops[backward] += flops
            self.modules.setdefault(self._paths.here(), [0, 0])[backward] += flops


def _name(func: Any) -> str:
    """`aten::add` for add.Tensor, add_.Tensor and add.out."""
    if not isinstance(func, torch._ops.OpOverload):
        return str(func.name())
    name = str(func._schema.name)
    inplace = name.endswith("_") and not name.endswith("__")
    return name[:-1] if inplace else name


def _by_schema(func: Any, name: str) -> str | None:
    """What an op of PyTorch's own says of itself: that it is a view, works element by element, or sees no tensor."""
    if not isinstance(func, torch._ops.OpOverload) or not name.startswith(("aten::", "prims::")):
        return None
    schema = func._schema
    views = any(one.alias_info is not None and not one.alias_info.is_write for one in schema.returns)
    if views or torch.Tag.inplace_view in func.tags:
        return "view"
    if torch.Tag.pointwise in func.tags:
        return "pointwise"
    if not any("Tensor" in str(one.type) for one in (*schema.arguments, *schema.returns)):
        return "question"
    return None


def _decomposes(func: Any) -> bool:
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    if not isinstance(func, torch._ops.OpOverload) or func.namespace == "prim":
        return False
    written = torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), composite)
    return composite in func.py_kernels or bool(written)


def _bound(func: Any, name: str, args: Any, kwargs: Any, result: Any) -> Call:
    """A call with its arguments by name, those left out as their defaults."""
    if not isinstance(func, torch._ops.OpOverload):
        return Call(name, args, kwargs, result)
    arguments = func._schema.arguments
    named = {one.name: one.default_value for one in arguments if one.has_default_value()} | kwargs
    named |= {one.name: value for one, value in zip(arguments, args, strict=False)}
    return Call(name, [named.get(one.name) for one in arguments], named, result)


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _tensors(one)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _is_fake(kind: Any) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return issubclass(kind, FakeTensor)


def _described(name: str, given: list[Any], path: str) -> str:
    shapes = ", ".join("×".join(map(str, tensor.shape)) or "scalar" for tensor in given)
    return f"{name}({shapes})" + (f" in {path}" if path else "")


def refuse_unknown(unknown: dict[str, str]) -> None:
    """Raises MeasureError naming each op that has no rule, with the shapes of its first call."""
    if unknown:
        names = ", ".join(f'"{name}"' for name in unknown)
        raise MeasureError(f"no rule says what {'; '.join(unknown.values())} costs; allow=({names},) takes it for free")
