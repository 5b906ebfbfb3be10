"""What PyTorch's ops cost: 2 FLOPs for each multiply-add of a product, from the shapes an op was called with.

A rule reads the arguments of one call and gives an integer. Ops are named as the dispatcher names them, without the
overload and without the `_` of an in-place form: `aten::addmm` stands for addmm, addmm_ and addmm.out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

from assay.errors import MeasureError
from assay.registry import entered


class Call:
    """One call of an op: its arguments by position or by the names of its schema, and what it gave."""

    __slots__ = ("_named", "_ordered", "name", "result")

    def __init__(self, name: str, ordered: Sequence[Any], named: dict[str, Any], result: Any) -> None:
        self.name = name
        self.result = result
        self._ordered = ordered
        self._named = named

    def __getitem__(self, key: int | str) -> Any:
        """An argument, None where the call has none of that name or position."""
        if isinstance(key, str):
            return self._named.get(key)
        return self._ordered[key] if key < len(self._ordered) else None

    def shape(self, key: int | str) -> tuple[int, ...]:
        """The shape of a tensor among the arguments."""
        return tuple(self[key].shape)


Rule: TypeAlias = Callable[[Call], int]

RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the cost of ops by name; a second rule for a name is an error."""
    return entered(RULES, names, lambda name: MeasureError(f"{name} has a rule already"))


def _product(a: Sequence[int], columns: int) -> int:
    """[… m k] with [… k columns]: a multiply-add for each element of the first and each column."""
    return 2 * prod(a) * columns


@rule("aten::mm", "aten::bmm", "aten::_int_mm", "aten::_scaled_mm", "aten::_scaled_mm_v2")
def matrices(call: Call) -> int:
    """[b m k] × [b k n]: 2 b m k n."""
    return _product(call.shape(0), call.shape(1)[-1])


@rule("aten::addmm", "aten::_addmm_activation", "aten::baddbmm", "aten::addbmm")
def matrices_onto(call: Call) -> int:
    """A product added to the first argument: the addition is the product's own last one."""
    return _product(call.shape(1), call.shape(2)[-1])


@rule("aten::_foreach_mm")
def lists_of_matrices(call: Call) -> int:
    """One product for each pair of two lists."""
    return sum(_product(a.shape, b.shape[-1]) for a, b in zip(call[0], call[1], strict=True))


@rule("aten::mv", "aten::dot", "aten::vdot")
def vectors(call: Call) -> int:
    """A matrix [m k] or a vector [k] with a vector [k]: 2 m k or 2 k."""
    return _product(call.shape(0), 1)


@rule("aten::addmv")
def vector_onto(call: Call) -> int:
    """[m k] × [k] added to [m]: 2 m k."""
    return _product(call.shape(1), 1)


@rule("aten::addr")
def outer_onto(call: Call) -> int:
    """The outer product of [m] and [n] added to [m n]: 2 m n."""
    return _product(call.shape(1), prod(call.shape(2)))


@rule("aten::linear", "aten::mkldnn_linear", "aten::_mixed_dtypes_linear")
def linear(call: Call) -> int:
    """[… k] with a weight [n k], on devices that run it as one op."""
    return _product(call.shape(0), call.shape(1)[0])


@rule("aten::linear_backward", "aten::mkldnn_linear_backward")
def linear_backward(call: Call) -> int:
    """One product for the gradient of the input, one for the weight's, where they are asked for."""
    return _product(call.shape(0), call.shape(2)[0]) * _asked(call)


def _asked(call: Call) -> int:
    """How many of the gradients that take a product are asked for: the input's, the weight's."""
    return sum(map(bool, call["output_mask"][:2]))


@rule("aten::_weight_int8pack_mm", "aten::_weight_int4pack_mm", "aten::_weight_int4pack_mm_for_cpu")
@rule("aten::_weight_int4pack_mm_with_scales_and_zeros", "aten::_dyn_quant_matmul_4bit")
def packed_matrices(call: Call) -> int:
    """[m k] × packed weights: their shape is the packing's, so the columns are the result's."""
    return _product(call.shape(0), call.result.shape[-1])


@rule("aten::_grouped_mm", "aten::_scaled_grouped_mm", "aten::_scaled_grouped_mm_v2")
@rule("transformers::grouped_mm_fallback")
def grouped(call: Call) -> int:
    """Experts' products. Rows [t k] × [e k n]: each row meets one expert, 2 t k n, rows past the last offset too;
    [m t] × [t n] and [e m k] × [k t]: the groups share t out; [e m k] × [e k n] is a batch.
    """
    a, b = call.shape(0), call.shape(1)
    return _product(a if len(b) == 3 else a[-2:], b[-1])


@rule("transformers::grouped_mm_fallback_backward")
def grouped_backward(call: Call) -> int:
    """Gradients of the rows [t k] and of the experts' weights [e k n]: a product each."""
    return 2 * _product(call.shape(1), call.shape(2)[-1])


@rule("aten::_trilinear")
def trilinear(call: Call) -> int:
    """Three factors with broadcast axes: the first two are multiplied and summed over what the third lacks, then
    with the third. As PyTorch runs bilinear layers, forward and backward.
    """
    shapes = [list(call.shape(i)) for i in range(3)]
    for shape, lacking in zip(shapes, (call["expand1"], call["expand2"], call["expand3"]), strict=True):
        for axis in lacking:
            shape.insert(axis, 1)
    first = [max(a, b) for a, b in zip(shapes[0], shapes[1], strict=True)]
    early = set(call["sumdim"]) & set(call["expand3"]) - {call["unroll_dim"]}
    summed = [1 if i in early else size for i, size in enumerate(first)]
    second = [max(a, b) for a, b in zip(summed, shapes[2], strict=True)]
    return 2 * prod(first) + 2 * prod(second)


@rule("aten::linalg_solve_triangular")
def triangular(call: Call) -> int:
    """A triangle [n n] and m right sides: n² m, multiplications, additions and divisions (LAPACK Working Note 41)."""
    return _product(call.result.shape, call.shape(0)[-1]) // 2


@rule("aten::triangular_solve")
def triangular_of_old(call: Call) -> int:
    """The same with the right sides first."""
    return _product(call.result[0].shape, call.shape(1)[-1]) // 2


# --- convolutions: weights [out, in/groups, taps], transposed [in, out/groups, taps]; taps on padding count ---


def _taps(x: Sequence[int], weight: Sequence[int], y: Sequence[int], transposed: bool) -> int:
    """Each place of the output (of the input, transposed) meets all weights once: groups are in the weight's shape."""
    return _product(weight, x[0] * prod((x if transposed else y)[2:]))


@rule("aten::convolution", "aten::_convolution", "aten::convolution_overrideable")
@rule("aten::cudnn_convolution", "aten::cudnn_convolution_relu", "aten::cudnn_convolution_add_relu")
@rule("aten::mkldnn_convolution", "aten::miopen_convolution", "aten::miopen_depthwise_convolution")
@rule("aten::_slow_conv2d_forward", "aten::slow_conv3d_forward", "aten::_conv_depthwise2d", "aten::conv_depthwise3d")
@rule("aten::slow_conv_dilated2d", "aten::slow_conv_dilated3d", "aten::_nnpack_spatial_convolution")
@rule("aten::miopen_convolution_relu", "aten::miopen_convolution_add_relu", "aten::_mps_convolution")
def convolution(call: Call) -> int:
    """2 · batch · places · out · in/groups · taps."""
    return _taps(call.shape(0), call.shape(1), _first(call.result).shape, bool(call["transposed"]))


@rule("aten::cudnn_convolution_transpose", "aten::miopen_convolution_transpose", "aten::_mps_convolution_transpose")
@rule("aten::slow_conv_transpose2d", "aten::slow_conv_transpose3d")
def transposed_convolution(call: Call) -> int:
    """2 · batch · places of the input · in · out/groups · taps."""
    return _taps(call.shape(0), call.shape(1), (), True)


@rule("aten::convolution_backward", "aten::convolution_backward_overrideable")
def convolution_backward(call: Call) -> int:
    """As much as forward for the gradient of the input, and for the weight's, where they are asked for."""
    forward = _taps(call.shape(1), call.shape(2), call.shape(0), bool(call["transposed"]))
    return forward * _asked(call)


@rule("aten::conv_tbc")
def convolution_of_time(call: Call) -> int:
    """[t b in] with a weight [taps in out]."""
    return _product(call.shape(1), prod(call.result.shape[:2]))


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple | list) else result


# --- recurrent networks run as one op ---


@rule("aten::mkldnn_rnn_layer")
def recurrent_layer(call: Call) -> int:
    """Every step [in] meets the weights of the input and those of the state."""
    rows = prod(call.shape(0)[:-1])
    return _product(call.shape(1), rows) + _product(call.shape(2), rows)


@rule("aten::mkldnn_rnn_layer_backward")
def recurrent_layer_backward(call: Call) -> int:
    """Gradients of inputs and states, and of both weights: twice the forward products."""
    return 2 * recurrent_layer(call)


@rule("aten::_cudnn_rnn", "aten::miopen_rnn")
def recurrent(call: Call) -> int:
    """Every step meets every matrix of every layer and direction."""
    rows = prod(call.shape(0)[:-1])
    return sum(_product(weight.shape, rows) for weight in call["weight"] if len(weight.shape) == 2)


@rule("aten::_cudnn_rnn_backward", "aten::miopen_rnn_backward")
def recurrent_backward(call: Call) -> int:
    """The gradients of inputs and states, and where they are asked for, of the weights."""
    return recurrent(call) * (1 + bool(call["output_mask"][3]))
