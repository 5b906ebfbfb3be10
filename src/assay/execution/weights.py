"""Weights in safetensors files: a model's own, and those of published checkpoints by the names that those have.

Nothing is unpickled. A tensor is found by the library's name, or by the published one, of which a parameter may need
several: one for each expert, or the parts that lie behind each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from assay.errors import BuildError
from assay.execution.storage import Getter, Weights

if TYPE_CHECKING:
    from assay.execution.module import Executable, Layer

INDEX = "model.safetensors.index.json"


class Files:
    """The tensors of a safetensors file, or of a folder of them, read one by one."""

    def __init__(self, path: str | Path, stack: ExitStack) -> None:
        from safetensors import SafetensorError, safe_open

        self.where = Path(path)
        self.held: dict[str, Any] = {}
        for file in self._files():
            try:
                opened = stack.enter_context(safe_open(file, framework="pt"))
            except (SafetensorError, OSError) as error:
                raise BuildError(f"{file}: no safetensors file can be read there: {error}") from None
            self.held.update(dict.fromkeys(opened.keys(), opened))
        self.used: set[str] = set()

    def _files(self) -> list[Path]:
        if self.where.is_file():
            return [self.where]
        index = self.where / INDEX
        if index.is_file():
            try:
                listed = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
                return [self.where / name for name in dict.fromkeys(map(str, listed))]
            except (ValueError, KeyError, AttributeError, TypeError):
                raise BuildError(f"{index}: weight_map is missing; it must name the file of each tensor") from None
        found = sorted(self.where.glob("*.safetensors"))
        if not found:
            raise BuildError(f"{self.where}: no safetensors file is there")
        return found

    def __contains__(self, name: str) -> bool:
        return name in self.held

    def get(self, name: str) -> Tensor:
        """A tensor."""
        self.used.add(name)
        tensor: Tensor = self.held[name].get_tensor(name)
        return tensor

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of one, from the header alone."""
        return tuple(self.held[name].get_slice(name).get_shape())

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
    found = files.get(name)
    if found.shape != held.shape:
        raise BuildError(f"{files.where}: {name} has shape {_shape(found.shape)}; it must be {_shape(held.shape)}")
    held.copy_(found)
    return True


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
    from safetensors.torch import save_file

    held = {name: tensor.detach().contiguous().clone() for name, tensor in state(module).items()}
    save_file(held, str(path), metadata={"format": "pt", **(extra or {})})
