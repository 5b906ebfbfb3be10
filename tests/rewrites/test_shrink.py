"""Shrunken models: the same ops, smaller sizes that still fit each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import assay
from assay.rewrites.shrink import LAYERS, shrink
from assay.sources.presets import find

NAMES = ("llama-3-8b", "gpt2", "mixtral-8x7b", "deepseek-v3", "gemma-2-9b", "t5-base", "bert-base-uncased")

SRC = Path(__file__).resolve().parents[2] / "src"


@pytest.mark.parametrize("name", [name for name in NAMES if name in find([])])
def test_structure_stays(name: str) -> None:
    model = assay.load(name)
    small = shrink(model)
    assert [s.name for s in small.segments] == [s.name for s in model.segments]
    for old, new in zip(model.segments, small.segments, strict=True):
        assert [op.kind for op in new.block.ops] == [op.kind for op in old.block.ops]
        assert [op.inputs for op in new.block.ops] == [op.inputs for op in old.block.ops]
        assert new.layers == old.layers[:LAYERS]
        assert all(new.block.sizes[axis] <= size for axis, size in old.block.sizes.items())
    assert assay.count(small, tokens=4).parameters.total < 5_000_000 < assay.count(model, tokens=4).parameters.total


def test_sizes_that_are_parts_of_others_still_are() -> None:
    small = shrink(assay.load("deepseek-v3"))
    sizes = small.segments[1].block.sizes
    assert sizes["o"] + sizes["p"] == sizes["k"]
    assert sizes["p"] % 2 == 0


def test_windows_bite() -> None:
    small = shrink(assay.load({"model_type": "mistral", "sliding_window": 4096}))
    (window,) = {op.attr("window") for s in small.segments for op in s.block.ops if op.attr("window")}
    sizes = small.segments[1].block.sizes
    assert sizes.get(window, window) < 12


def test_several_windows_stay_apart() -> None:
    small = shrink(assay.load({"model_type": "gemma3_text", "sliding_window": 512}))
    assert assay.count(small, tokens=12).flops.visible_total < assay.count(small, tokens=12).flops.total


def test_more_experts_than_are_chosen() -> None:
    for name in ("mixtral-8x7b", "deepseek-v3"):
        sizes = shrink(assay.load(name)).segments[-2].block.sizes
        assert sizes["e"] >= 2 * sizes["a"]


def test_formats_are_left_out() -> None:
    small = shrink(assay.load("deepseek-v3"))
    assert small.scheme is None
    assert all(where.format is None for s in small.segments for where in s.block.stored.values())


def test_what_is_small_does_not_hang_on_hashes() -> None:
    """Sets of names come in another order in every run; what becomes of sizes is the same in each."""
    code = (
        "import assay; from assay.rewrites.shrink import shrink\n"
        "for name in ('siglip', 'llava', 'qwen3_moe'):\n"
        "    small = shrink(assay.load({'model_type': name}))\n"
        "    print(*(dict(sorted(s.block.sizes.items())) for s in small.segments))"
    )
    made = set()
    for seed in ("1", "2", "3"):
        environment = {"PYTHONPATH": str(SRC), "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        made.add(done.stdout)
    assert len(made) == 1
