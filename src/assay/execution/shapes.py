"""Whether a result has the shape that the description says; else which op, which axis, and both sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from assay.errors import AssayError, BuildError
from assay.spec import Axes, Op

if TYPE_CHECKING:
    from assay.execution.module import Layer, Step
    from assay.execution.sites import Call


def checked(layer: Layer, step: Step, call: Call, inputs: Sequence[Any], sizes: Mapping[str, Any]) -> Tensor:
    """What a step makes of its inputs. Raises BuildError where that, or what it is made of, has another shape."""
    op = step.op
    try:
        result = step.run(call, *inputs)
    except AssayError:
        raise
    except (RuntimeError, ValueError, IndexError) as error:
        for what in _unlike(layer, op, inputs, sizes):
            raise BuildError(f"{layer.where()}: {op}: {what}") from error
        raise
    for what in _differences("", op.axes, result, [sizes[axis] for axis in op.axes]):
        raise BuildError(f"{layer.where()}: {op}: {what}")
    return result


def _unlike(layer: Layer, op: Op, inputs: Sequence[Any], sizes: Mapping[str, Any]) -> Iterator[str]:
    """What of an op's operands has not the shape that is said."""
    for operand, given in zip(op.activations, inputs, strict=True):
        if isinstance(given, Tensor):
            said = [sizes[axis] for axis in operand.axes]
            yield from _differences(f"{operand}: ", operand.axes, given, said)
    for weight in op.weights:
        each = layer.weights.each(weight.name)
        dims = tuple(dim for dim in layer.weights.dims[weight.name] if dim not in each)
        for name, shape in layer.weights.shapes(weight.name, layer.layer):
            yield from _differences(f"{name}: ", dims, layer.root.getter(name)(), list(shape))


def _differences(what: str, axes: Axes, given: Tensor, said: list[Any]) -> Iterator[str]:
    """A line for each axis that has not as many elements as are said."""
    if given.dim() != len(said):
        yield f"{what}it has {given.dim()} axes, and the description says {len(said)}"
        return
    for axis, here, should in zip(axes, given.shape, said, strict=True):
        if here != should:
            yield f"{what}axis {axis} has {here} elements, and the description says {should}"
