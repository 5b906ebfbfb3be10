"""Attention as one op: what is fused, what is not, and that nothing is counted otherwise."""

from __future__ import annotations

import pytest

import assay
from assay.rewrites.fuse import fuse, fuse_block
from assay.spec import Model


def kinds(model: Model) -> list[str]:
    return [op.kind for segment in model.segments for op in segment.block.ops]


@pytest.mark.parametrize("name", ["llama-3-8b", "gpt-2", "mixtral-8x7b", "deepseek-v3", "t5-small", "bert-base"])
@pytest.mark.parametrize("convention", ["matmul", "causal", "scalar", "stable-softmax"])
def test_costs_stay(name: str, convention: str) -> None:
    model = assay.load(name)
    plain = assay.count(model, batch=2, tokens=17, convention=convention)
    fused = assay.count(fuse(model), batch=2, tokens=17, convention=convention)
    assert fused.flops.total == plain.flops.total
    assert fused.flops.visible_total == plain.flops.visible_total
    assert fused.parameters == plain.parameters
    assert fused.cache == plain.cache


def test_an_attention_becomes_one_op() -> None:
    model = assay.load("llama-3-8b")
    before, after = kinds(model), kinds(fuse(model))
    assert before.count("softmax") == 1
    assert "softmax" not in after
    assert after.count("attend") == 1
    assert len(before) - len(after) == 4  # scores, scale, mask, softmax and the sum are one


def test_a_fused_block_is_written_as_it_is_read() -> None:
    block = fuse(assay.load("llama-3-8b")).segments[1].block
    again = assay.block(str(block))
    assert again.ops == block.ops


@pytest.mark.parametrize(
    "name",
    [
        "gemma-2-9b",  # soft-capped scores
        "gpt-oss-20b",  # sinks
        "t5-small",  # a bias of the distance
        "bloom-176b",  # slopes of the distance
    ],
)
def test_what_no_kernel_runs_stays(name: str) -> None:
    model = assay.load(name)
    assert kinds(fuse(model)).count("softmax") >= 1


def test_scores_that_are_read_again_stay() -> None:
    block = assay.block(
        """
        s = contract(q[b n g k], k[b c g k]) -> [b g n c]
        p = softmax(s[b g n c]) -> [b g n c]
        o = contract(p[b g n c], v[b c g v]) -> [b n g v]
        z = sum(p[b g n c]) -> [b g n]
        """
    )
    assert fuse_block(block) is block
    cut = assay.block("\n".join(str(op) for op in block.ops[:-1]))
    assert [op.kind for op in fuse_block(cut).ops] == ["attend"]
