"""Attention as one op: dense, on each backend, with fewer key/value heads; closed forms and the stock counter."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

F = torch.nn.functional

from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import assay.counter.attention  # noqa: E402, F401 (registers its rules)
from assay import MeasureError, measure  # noqa: E402
from assay.counter.rules import RULES, Call  # noqa: E402

B, H, G, N, C, K = 2, 6, 2, 5, 7, 8
PRODUCT = 2 * B * H * N * C * K  # scores, or values, of every query head: 6,720


def qkv(device: str = "cpu", g: int = H) -> tuple[Any, Any, Any]:
    q = torch.zeros(B, H, N, K, device=device, requires_grad=True)
    k, v = (torch.zeros(B, g, C, K, device=device, requires_grad=True) for _ in range(2))
    return q, k, v


@pytest.mark.parametrize("g", [H, G, 1])
def test_on_the_cpu(g: int) -> None:
    """Flash: two products forward, five backward, since scores are not kept. The stock counter says 0."""
    found = measure(F.scaled_dot_product_attention, *qkv(g=g), enable_gqa=g != H, backward=True)
    assert (found.flops.forward, found.flops.backward) == (2 * PRODUCT, 5 * PRODUCT)
    assert {"aten::_scaled_dot_product_flash_attention_for_cpu"} < found.flops.by_op.keys()
    with FlopCounterMode(display=False) as stock:
        F.scaled_dot_product_attention(*qkv(g=g), enable_gqa=g != H)
    assert stock.get_total_flops() == 0


@pytest.mark.parametrize("mask", ["none", "causal", "given"])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_as_products(device: str, mask: str) -> None:
    """The `math` backend keeps its weights: two products forward and four backward, dense whatever the mask."""
    given = torch.zeros(N, C, device=device) if mask == "given" else None
    with sdpa_kernel(SDPBackend.MATH):
        found = measure(
            F.scaled_dot_product_attention, *qkv(device), attn_mask=given, is_causal=mask == "causal", backward=True
        )
    assert (found.flops.forward, found.flops.backward) == (2 * PRODUCT, 4 * PRODUCT)
    with torch.inference_mode():
        assert measure(F.scaled_dot_product_attention, *qkv(device)).flops.total == 2 * PRODUCT


def test_fewer_key_heads_on_meta() -> None:
    found = measure(F.scaled_dot_product_attention, *qkv("meta", G), enable_gqa=True, backward=True)
    assert (found.flops.forward, found.flops.backward) == (2 * PRODUCT, 4 * PRODUCT)


NAMED = ["flash_attention", "efficient_attention", "cudnn_attention", "flash_attention_for_cpu"]


@pytest.mark.parametrize("name", NAMED)
def test_rules_of_every_backend(name: str) -> None:
    """Widths of keys and values apart: 2 b h n c (k + v) forward, 2 b h n c (3 k + 2 v) backward."""
    q, k, v = (torch.empty(*shape, device="meta") for shape in ((B, H, N, 8), (B, H, C, 8), (B, H, C, 3)))
    out = torch.empty(B, H, N, 3, device="meta")
    rows = 2 * B * H * N * C
    assert RULES[f"aten::_scaled_dot_product_{name}"](Call(name, (q, k, v), {}, None)) == rows * (8 + 3)
    back = RULES[f"aten::_scaled_dot_product_{name}_backward"](Call(name, (out, q, k, v), {}, None))
    assert back == rows * (3 * 8 + 2 * 3)


@pytest.mark.parametrize("name", ["flash", "efficient", "cudnn"])
def test_kernels_of_graphics_processors_by_their_shapes(name: str) -> None:
    """Their ops run on meta, forward and backward, as they are called on CUDA; the stock counter has rules for them."""
    op = getattr(torch.ops.aten, f"_scaled_dot_product_{name}_attention")
    rest = {"flash": (), "efficient": (None, True), "cudnn": (None, True)}[name]

    def attend(*tensors: Any) -> Any:
        return op(*tensors, *rest)[0]

    found = measure(attend, *qkv("meta"), backward=True)
    assert (found.flops.forward, found.flops.backward) == (2 * PRODUCT, 5 * PRODUCT)
    assert found.flops.by_op.keys() == {f"aten::{op.__name__}", f"aten::{op.__name__}_backward"}
    with FlopCounterMode(display=False) as stock:
        attend(*qkv("meta")).sum().backward()
    assert stock.get_total_flops() == found.flops.total


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("aten::_flash_attention", ("cum_seq_q", "cum_seq_k")),
        ("aten::_efficient_attention", ("cu_seqlens_q", "cu_seqlens_k")),
        ("aten::_cudnn_attention", ("cum_seq_q", "cum_seq_k")),
        ("torch_attn::_varlen_attn", ("cu_seq_q", "cu_seq_k")),
    ],
)
def test_sequences_end_to_end(name: str, places: tuple[str, str]) -> None:
    """Lengths 2, 3 and 1 with keys 4, 3 and 2: 8 + 9 + 2 pairs, not 6 x 9; 4 heads, widths 8 and 5."""
    tensors = [torch.empty(*shape, device="meta") for shape in ((6, 4, 8), (9, 4, 8), (9, 4, 5))]
    starts = dict(zip(places, (torch.tensor([0, 2, 5, 6]), torch.tensor([0, 4, 7, 9])), strict=True))
    forward, backward = (name + end for end in (("_forward", "_backward") if "aten" in name else ("", "_backward")))
    assert RULES[forward](Call(name, tensors, starts, None)) == 2 * 4 * 19 * (8 + 5)
    assert RULES[backward](Call(name, [tensors[0], *tensors], starts, None)) == 2 * 4 * 19 * (3 * 8 + 2 * 5)
    nowhere = {key: value.to("meta") for key, value in starts.items()}
    with pytest.raises(MeasureError, match=r"the lengths of the sequences are values, and meta tensors hold none"):
        RULES[forward](Call(name, tensors, nowhere, None))


@pytest.mark.parametrize(("name", "heads_first"), [("flash", False), ("efficient", False), ("cudnn", True)])
def test_kernels_by_their_own_names(name: str, heads_first: bool) -> None:
    """[b n h k], but for cuDNN's [b h n k]."""
    shapes = [(B, H, n, K) if heads_first else (B, n, H, K) for n in (N, C, C)]
    tensors = [torch.empty(*shape, device="meta") for shape in shapes]
    assert RULES[f"aten::_{name}_attention_forward"](Call(name, tensors, {}, None)) == 2 * PRODUCT
    assert RULES[f"aten::_{name}_attention_backward"](Call(name, [tensors[0], *tensors], {}, None)) == 5 * PRODUCT


def test_flex_attention() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it were faster compiled
        found = measure(flex_attention, *(one.detach() for one in qkv(g=G)), enable_gqa=True)
    assert found.flops.by_op == {"flex_attention": 2 * PRODUCT}
    shapes = [SimpleNamespace(shape=tuple(one.shape)) for one in qkv(g=G)]
    assert RULES["flex_attention_backward"](Call("flex_attention_backward", shapes, {}, None)) == 5 * PRODUCT


@pytest.mark.parametrize("fast", [True, False])
def test_layers_that_run_as_one_op(fast: bool) -> None:
    """`torch.nn` has kernels for whole layers without gradients; they cost what the ops do.

    Multi-head attention: four projections 2 n d d and 4 n n d; the encoder layer has an MLP of 2 · 2 n d f besides.
    """
    n, d, f = 6, 8, 16
    attention = torch.nn.MultiheadAttention(d, 2, batch_first=True).train(not fast)
    layer = torch.nn.TransformerEncoderLayer(d, 2, f, batch_first=True).train(not fast)
    x = torch.zeros(3, n, d)
    expected = 3 * (4 * 2 * n * d * d + 4 * n * n * d)
    with torch.no_grad():
        of_attention = measure(attention, x, x, x, need_weights=False).flops
        of_layer = measure(layer, x).flops
    assert of_attention.total == expected
    assert of_layer.total == expected + 3 * 2 * 2 * n * d * f
    assert ("aten::_native_multi_head_attention" in of_attention.by_op) is fast
    assert ("aten::_transformer_encoder_layer_fwd" in of_layer.by_op) is fast
