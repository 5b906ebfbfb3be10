"""Op by op: sums equal the count, bytes are those of the operands, intensities are what roofline papers print."""

from __future__ import annotations

import pytest

import assay
from assay.readings.count import count
from assay.readings.ops import Listing, OpRow, list_ops
from assay.readings.setting import setting


def listings(name: str, **asked: object) -> dict[str, Listing]:
    model = assay.load(name)
    return {listing.name: listing for listing in list_ops(model, setting(model, **asked))}  # type: ignore[arg-type]


def row(listing: Listing, text: str) -> OpRow:
    (found,) = [r for r in listing.rows if str(r.op).startswith(text)]
    return found


@pytest.mark.parametrize("convention", ["matmul", "causal", "scalar", "stable-softmax"])
@pytest.mark.parametrize("name", ["llama-3-8b", "gpt-2", "mixtral-8x7b", "gemma-2-9b", "deepseek-v3"])
def test_sums_equal_the_count(name: str, convention: str) -> None:
    model = assay.load(name)
    for asked in ({"tokens": 100}, {"tokens": 1, "past": 300, "batch": 3}):
        counted = count(model, **asked, convention=convention)  # type: ignore[arg-type]
        made = list_ops(model, counted.setting)
        assert sum(x.flops for x in made) == counted.flops.total
        assert sum(x.parameters for x in made) == counted.parameters.total
        for listing, found in zip(made, counted.rows, strict=True):
            assert (listing.flops, listing.parameters) == (found.flops.total, found.parameters.total)
            assert sum(listing.times * r.flops for r in listing.rows) == listing.flops


def test_bytes_of_a_projection_by_hand() -> None:
    """q of Llama 3 8B over 2,048 tokens: 2 m k n FLOPs over 2 (m k + k n + m n) bytes."""
    q = row(listings("llama-3-8b", tokens=2048)["layer"], "q = linear")
    m = k = n = 4096
    m = 2048
    assert q.flops == 2 * m * k * n
    assert (q.weight_bytes, q.read_bytes, q.written_bytes) == (2 * k * n, 2 * m * k, 2 * m * n)
    assert q.intensity == pytest.approx(2 * m * k * n / (2 * (m * k + k * n + m * n)))
    assert [(t.name, t.axes, t.shape) for t in q.inputs] == [
        ("xa", ("b", "n", "d"), (1, 2048, 4096)),
        ("Wq", ("d", "g", "r", "k"), (4096, 8, 4, 128)),
    ]
    assert q.output.shape == (1, 2048, 8, 4, 128)


def test_the_cache_is_read_in_its_own_dtype() -> None:
    """A decode step of Llama 3 8B: each layer reads 8 heads x 128 of keys at every position."""
    layer = listings("llama-3-8b", tokens=1, past=999, cache="fp8")["layer"]
    scores = row(layer, "s = contract")
    assert scores.read_bytes == 1000 * 8 * 128 * 1 + 2 * 32 * 128
    kept = row(layer, "k = append")
    assert (kept.read_bytes, kept.written_bytes) == (2 * 8 * 128, 8 * 128)


def test_quantized_weights_are_read_in_their_dtype_and_computed_in_bf16() -> None:
    q = row(listings("llama-3-8b", tokens=1, weights="int4")["layer"], "q = linear")
    assert q.weight_bytes == 4096 * 4096 // 2
    assert q.read_bytes == 2 * 4096


def test_experts_read_are_those_that_tokens_can_choose() -> None:
    one = row(listings("mixtral-8x7b", tokens=1)["layer"], "u = select(u")
    many = row(listings("mixtral-8x7b", tokens=100)["layer"], "u = select(u")
    assert one.weight_bytes == 2 * 2 * 14336 * 4096
    assert many.weight_bytes == 2 * 8 * 14336 * 4096
    assert one.parameters == 8 * 14336 * 4096


def test_a_look_up_reads_rows_and_a_view_nothing() -> None:
    made = listings("gpt-2", tokens=10)
    table = row(made["embedding"], "x = gather")
    assert table.weight_bytes == 2 * 10 * 768
    assert table.parameters == 50257 * 768
    kept = row(made["head"], "y = keep")
    assert (kept.moved, kept.intensity) == (0, None)
    tied = row(made["head"], "logits = linear")
    assert (tied.parameters, tied.shared, tied.flops) == (0, True, 2 * 10 * 768 * 50257)
