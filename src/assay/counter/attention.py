"""What attention costs as one op: dense, whatever the mask, on each backend that PyTorch has for it.

Forward two products, scores and values. Backward five: scores again, as none are kept, then the gradients of weights,
values, queries and keys. Key/value heads may be fewer than query heads: each query head does its own products.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, TypeAlias

from assay.counter.rules import Call, rule
from assay.errors import MeasureError


def _forward(rows: int, keys: int, k: int, v: int) -> int:
    """Queries of all heads and sequences (`rows`), each with all keys: scores of width k, values of width v."""
    return 2 * rows * keys * (k + v)


def _backward(rows: int, keys: int, k: int, v: int) -> int:
    """Scores again, and the gradients of queries and keys (width k), of weights and values (width v)."""
    return 2 * rows * keys * (3 * k + 2 * v)


_Sizes: TypeAlias = tuple[int, int, int, int]  # rows of queries, keys, width of both, width of values


def _sizes(q: Sequence[int], key: Sequence[int], v: Sequence[int]) -> _Sizes:
    """[b h n k], [b g c k], [b g c v] -> rows b h n, keys c, and both widths."""
    return prod(q[:-1]), key[-2], q[-1], v[-1]


@rule("aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_flash_attention_for_cpu")
@rule("aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_cudnn_attention")
@rule("aten::_scaled_dot_product_fused_attention_overrideable", "aten::_scaled_dot_product_attention_math_for_mps")
@rule("aten::_triton_scaled_dot_attention", "flex_attention")
def attention(call: Call) -> int:
    """Queries, keys and values are the first three arguments; blocks that a mask skips are counted."""
    return _forward(*_sizes(call.shape(0), call.shape(1), call.shape(2)))


@rule("aten::_scaled_dot_product_flash_attention_backward", "aten::_scaled_dot_product_cudnn_attention_backward")
@rule("aten::_scaled_dot_product_flash_attention_for_cpu_backward")
@rule("aten::_scaled_dot_product_efficient_attention_backward")
@rule("aten::_scaled_dot_product_fused_attention_overrideable_backward")
def attention_backward(call: Call) -> int:
    """The gradient of the result, then queries, keys and values."""
    return _backward(*_sizes(call.shape(1), call.shape(2), call.shape(3)))


@rule("flex_attention_backward")
def flex_backward(call: Call) -> int:
    """Queries, keys and values first, the gradient later."""
    return _backward(*_sizes(call.shape(0), call.shape(1), call.shape(2)))


# --- sequences of several lengths, end to end in one tensor [tokens heads width], with the places where each begins ---


def _packed(
    call: Call, first: int, places: tuple[str, str], heads: bool = False
) -> Iterator[tuple[int, int, int, int]]:
    """Sizes of each sequence; without places, of the whole: [b n h k], or [b h n k] where `heads` come first."""
    q, key, v = (call.shape(i) for i in range(first, first + 3))
    queries, keys = (call[name] for name in places)
    if queries is None:
        yield prod(q[:-1]), key[-2 if heads else -3], q[-1], v[-1]
        return
    lengths = (_lengths(call, one) for one in (queries, queries if keys is None else keys))
    for n, c in zip(*lengths, strict=True):
        yield n * q[-2], c, q[-1], v[-1]


def _lengths(call: Call, starts: Any) -> list[int]:
    if starts.device.type == "meta":
        raise MeasureError(f"{call.name}: the lengths of the sequences are values, and meta tensors hold none")
    return [int(length) for length in starts.diff().tolist()]


@rule("aten::_flash_attention_forward")
def flash(call: Call) -> int:
    """Flash attention called by its own name."""
    return sum(_forward(*sizes) for sizes in _packed(call, 0, ("cum_seq_q", "cum_seq_k")))


@rule("aten::_flash_attention_backward")
def flash_backward(call: Call) -> int:
    """The gradient of the result comes first."""
    return sum(_backward(*sizes) for sizes in _packed(call, 1, ("cum_seq_q", "cum_seq_k")))


@rule("aten::_cudnn_attention_forward")
def cudnn(call: Call) -> int:
    """cuDNN's attention called by its own name: heads before tokens."""
    return sum(_forward(*sizes) for sizes in _packed(call, 0, ("cum_seq_q", "cum_seq_k"), heads=True))


@rule("aten::_cudnn_attention_backward")
def cudnn_backward(call: Call) -> int:
    """The gradient of the result comes first."""
    return sum(_backward(*sizes) for sizes in _packed(call, 1, ("cum_seq_q", "cum_seq_k"), heads=True))


@rule("aten::_efficient_attention_forward")
def efficient(call: Call) -> int:
    """Memory-efficient attention called by its own name."""
    return sum(_forward(*sizes) for sizes in _packed(call, 0, ("cu_seqlens_q", "cu_seqlens_k")))


@rule("aten::_efficient_attention_backward")
def efficient_backward(call: Call) -> int:
    """The gradient of the result comes first."""
    return sum(_backward(*sizes) for sizes in _packed(call, 1, ("cu_seqlens_q", "cu_seqlens_k")))


@rule("torch_attn::_varlen_attn")
def varlen(call: Call) -> int:
    """`torch.nn.attention.varlen_attn`."""
    return sum(_forward(*sizes) for sizes in _packed(call, 0, ("cu_seq_q", "cu_seq_k")))


@rule("torch_attn::_varlen_attn_backward")
def varlen_backward(call: Call) -> int:
    """The gradient of the result comes first."""
    return sum(_backward(*sizes) for sizes in _packed(call, 1, ("cu_seq_q", "cu_seq_k")))


# --- whole layers as one op: what `torch.nn` runs without gradients ---


def _ragged(call: Call) -> _Sizes:
    """Of sequences of several lengths: tokens of all, sequences, tokens of the longest, width.

    Projections are of the tokens that are there; attention pads every sequence to the longest.
    """
    sizes = call[0]._nested_tensor_size().tolist()
    return sum(n for n, _ in sizes), len(sizes), max(n for n, _ in sizes), sizes[0][1]


@rule("aten::_native_multi_head_attention", "aten::_triton_multi_head_attention")
def multi_head(call: Call) -> int:
    """Queries [b n d], keys [b c d]; a weight [3d d] makes queries, keys and values, one [d d] ends it."""
    if call[0].is_nested:
        rows, b, n, d = _ragged(call)
        return 2 * rows * 4 * d * d + _forward(b * n, n, d, d)
    (b, n, d), c = call.shape(0), call.shape(1)[1]
    return 2 * b * (2 * n + 2 * c) * d * d + _forward(b * n, c, d, d)


@rule("aten::_transformer_encoder_layer_fwd")
def encoder_layer(call: Call) -> int:
    """Tokens [b n d] through projections [3d d] and [d d], attention, and both matrices of the MLP."""
    rows, b, n, d = _ragged(call) if call[0].is_nested else (prod(call.shape(0)[:2]), *call.shape(0))
    weights = ("qkv_weight", "proj_weight", "ffn_weight_1", "ffn_weight_2")
    return 2 * rows * sum(prod(call.shape(name)) for name in weights) + _forward(b * n, n, d, d)
