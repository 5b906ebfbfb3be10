"""Weights in safetensors files: a model's own, and those of published checkpoints by the names that those have.

Nothing is unpickled. A tensor is found by the library's name, or by the published one, of which a parameter may need
several: one for each expert, or the parts that lie behind each other. Files of a model without its head lack the first
word of all names, or have one more; files may say that a tensor is another one; and the oldest call gains gamma.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from assay.errors import BuildError
from assay.execution.initial import biases
from assay.execution.storage import Getter, Weights

if TYPE_CHECKING:
    from assay.execution.module import Executable, Layer

INDEX = "model.safetensors.index.json"
PLAIN = (torch.float64, torch.float32, torch.float16, torch.bfloat16)  # what is a weight as it stands
OLD = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}  # TensorFlow's names of both


class Files:
    """The tensors of a safetensors file, or of a folder of them, read one by one."""

    def __init__(self, path: str | Path, stack: ExitStack) -> None:
        from safetensors import SafetensorError, safe_open

        self.where = Path(path)
        self.held: dict[str, Any] = {}
        self.same: dict[str, str] = {}  # tensors that are shared with one that is kept
        for file in self._files():
            try:
                opened = stack.enter_context(safe_open(file, framework="pt"))
            except (SafetensorError, OSError) as error:
                raise BuildError(f"{file}: no safetensors file can be read there: {error}") from None
            self.held.update(dict.fromkeys(opened.keys(), opened))
            self.same.update(opened.metadata() or {})
        self.first = {name.partition(".")[0] for name in self.held}
        self.used: set[str] = set()
        self.headless = False

    def _files(self) -> list[Path]:
        if self.where.is_file() and self.where.suffix != ".json":
            return [self.where]
        index = self.where if self.where.is_file() else self.where / INDEX
        if index.is_file():
            try:
                listed = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
                names = list(dict.fromkeys(map(str, listed)))
            except (ValueError, KeyError, AttributeError, TypeError):
                raise BuildError(f"{index}: weight_map is missing; it must name the file of each tensor") from None
            for name in names:
                if Path(name).name != name:
                    raise BuildError(f"{index}: weight_map names {name!r}; it must name files of its folder")
            return [index.parent / name for name in names]
        found = sorted(self.where.glob("*.safetensors"))
        if not found:
            raise BuildError(f"{self.where}: no safetensors file is there")
        return found

    def find(self, name: str) -> str | None:
        """What a tensor is called here, None where it is not there."""
        for one in self._called(name):
            if one in self.held:
                return one
        return None

    def _called(self, name: str) -> Iterator[str]:
        yield name
        if name in self.same:
            yield self.same[name]
        for suffix, old in OLD.items():
            if name.endswith(suffix):
                yield name.removesuffix(suffix) + old
        first, _, rest = name.partition(".")
        if rest and first not in self.first:
            for one in self._called(rest):
                self.headless |= one in self.held
                yield one
        longer = [f"{one}.{name}" for one in self.first if f"{one}.{name}" in self.held]
        if len(longer) == 1:
            yield longer[0]

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def get(self, name: str) -> Tensor:
        """A tensor. Raises BuildError for one of numbers that are none without a scale."""
        found = self.find(name) or name
        self.used.add(found)
        tensor: Tensor = self.held[found].get_tensor(found)
        if tensor.dtype not in PLAIN:
            said = str(tensor.dtype).removeprefix("torch.")
            raise BuildError(f"{self.where}: {found} is of {said}: quantized weights are not run")
        return tensor

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of one, from the header alone."""
        found = self.find(name) or name
        return tuple(self.held[found].get_slice(found).get_shape())

    def getter(self, name: str) -> Getter:
        """How to get one later."""
        return lambda: self.get(name)


def load_weights(module: Executable, path: str | Path) -> tuple[str, ...]:
    """Set every parameter and buffer from a checkpoint; the names of tensors in it that nothing needed.

    Raises BuildError for a tensor that is missing or of another shape, naming it and both shapes.
    """
    with ExitStack() as stack, torch.no_grad():
        files = Files(path, stack)
        left = {name: held for name, held in state(module).items() if not _copied(files, name, held)}
        if left:
            for layer in (*module.source_plan, *module.plan):
                _assemble(files, module, layer, left)
        if files.headless:  # what a head adds and no training changes
            left = {name: held for name, held in left.items() if not _cleared(module, name, held)}
        if left:
            name, held = next(iter(left.items()))
            more = f", nor are {len(left) - 1} more" if len(left) > 1 else ""
            raise BuildError(f"{files.where}: {name} of shape {_shape(held.shape)} is not there{more}")
        return tuple(sorted(files.held.keys() - files.used))


def state(module: Executable) -> dict[str, Tensor]:
    """Every parameter and buffer by its name, not copies of them."""
    return dict(module.state_dict(keep_vars=True))


def _copied(files: Files, name: str, held: Tensor) -> bool:
    """True where a tensor is there by the library's name."""
    if name not in files:
        return False
    if not held.is_floating_point():  # a table of indices
        plain = files.find(name) or name
        files.used.add(plain)
        found = files.held[plain].get_tensor(plain)
    else:
        found = files.get(name)
    if found.shape != held.shape:
        raise BuildError(f"{files.where}: {name} has shape {_shape(found.shape)}; it must be {_shape(held.shape)}")
    held.copy_(found)
    return True


def _cleared(module: Executable, name: str, held: Tensor) -> bool:
    """True where a tensor is no parameter but a head's bias, which is zero where nothing says another."""
    for layer in module.plan:
        for op in layer.block.ops if layer.segment.name.endswith("head") else ():
            for bias in biases(op):
                if name in layer.weights.names(bias, layer.layer) and layer.block.weight(bias).buffer:
                    held.zero_()
                    return True
    return False


def _shape(sizes: Iterable[int]) -> str:
    return "x".join(map(str, sizes)) or "()"


def _assemble(files: Files, module: Executable, layer: Layer, left: dict[str, Tensor]) -> None:
    """Put what published files keep of a layer's weights where it lies in the parameters that are left."""
    here: set[str] = set()
    published: Weights | None = None
    for weight in {weight.name: weight for op in layer.block.ops for weight in op.weights}.values():
        stored = [name for name in layer.weights.names(weight.name, layer.layer) if name in left]
        if not stored:
            continue
        if published is None:
            published = layer.weights.published()
        for name, shape in published.shapes(weight.name, layer.layer):
            if name not in files:
                return  # the first that is missing is named where all has been tried
            if files.shape(name) != shape:
                found = _shape(files.shape(name))
                raise BuildError(f"{files.where}: {name} has shape {found}; it must be {_shape(shape)}")
        axes = [(axis,) for axis in weight.axes]
        if layer.weights.each(weight.name):  # a tensor for each expert here too: by the library's name or not at all
            return
        target = layer.weights.view(module, weight, layer.layer, axes)()
        target.copy_(published.view(files, weight, layer.layer, axes)())
        here.update(stored)
    for name in here:
        del left[name]


def save_weights(module: Executable, path: str | Path, extra: Mapping[str, str] | None = None) -> None:
    """Write every parameter and buffer to a safetensors file under the library's names, shared ones once."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    held = {name: tensor.detach().contiguous().clone() for name, tensor in state(module).items()}
    try:
        save_file(held, str(path), metadata={"format": "pt", **(extra or {})})
    except (SafetensorError, OSError) as error:
        raise BuildError(f"{path}: it cannot be written: {error}") from None
