"""Keys that nothing keeps: pairs of a pass against the mask, counted one by one."""

from __future__ import annotations

import pytest

import assay

SCORES = "s = contract(q[b n k], k0[b c k]) -> [b n c]"


@pytest.mark.parametrize("n", [1, 2, 7])
def test_earlier_tokens(n: int) -> None:
    flops = assay.count(assay.block(f"k0 = keys(k[b n k], causal=True) -> [b c k]\n{SCORES}", k=3), tokens=n).flops
    pairs = sum(key <= query for query in range(n) for key in range(n))
    assert (flops.total, flops.visible_total) == (2 * 3 * n * n, 2 * 3 * pairs)


@pytest.mark.parametrize(("n", "window"), [(8, 4), (8, 8), (3, 5), (6, 1)])
def test_windows_of_an_image(n: int, window: int) -> None:
    """Each token is multiplied with those of its window, and with no others."""
    text = f"k0 = keys(k[b n k], windows={window}) -> [b c k]\n{SCORES}"
    flops = assay.count(assay.block(text, k=3), tokens=n).flops
    pairs = sum(query // window == key // window for query in range(n) for key in range(n))
    assert flops.total == flops.visible_total == 2 * 3 * pairs
