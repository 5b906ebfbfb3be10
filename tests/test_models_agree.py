"""int = array element = symbol substituted: blocks, whole models, every family and setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from agreeing import (
    CONVENTIONS,
    Figures,
    as_arrays,
    check_array,
    check_exact,
    few,
    held,
    landing,
    numpy,
    rows_of,
    sizes_at,
    substituted,
    symbol,
    totals,
)
from drawn import draw
from hypothesis import given, settings
from hypothesis import strategies as st
from thirds import thirds

from assay.blocks import Attention, Mlp, Norm, Rope
from assay.blocks.convolved import CarryingMoe, ConvolvedAttention
from assay.blocks.delta import GatedDelta, KimiDelta
from assay.blocks.latent import GatedLatent, Latent
from assay.blocks.linear import GatedLru, Lightning, MatrixLstm, Rwkv, RwkvMlp
from assay.blocks.mlp import ScaledMlp
from assay.blocks.moe import LatentMoe, Moe, Router
from assay.blocks.recurrent import Mamba, Mamba2, ScaledMamba2, ShortConv
from assay.blocks.shared_block import SharedAttention, SharedBlock, SharedMlp
from assay.errors import SourceError
from assay.readings.count import count
from assay.sources.families import FAMILIES
from assay.sources.huggingface import read_config
from assay.spec import Block, Model, Segment


def around(body: Any, **sizes: int) -> Model:
    """A block alone."""
    made = Block("block", tuple(body.ops("x", "y")), {a: s for a, s in body.sizes().items() if s is not None} | sizes)
    return Model("block", (Segment("block", made),))


def attention(**more: Any) -> Model:
    return around(Attention(**{"heads": 6, "kv_heads": 2, "head_width": 5, **more}), d=7)


BLOCKS: dict[str, Callable[[], Model]] = {
    "multi-head": lambda: attention(kv_heads=6),
    "multi-query": lambda: attention(kv_heads=1),
    "grouped": attention,
    "value width": lambda: attention(value_width=3),
    "biases": lambda: attention(bias="qkvo"),
    "qk-norm": lambda: attention(qk_norm=Norm()),
    "qk-norm of all heads": lambda: attention(qk_norm=Norm(), qk_norm_over="full"),
    "qk-norm a head": lambda: attention(qk_norm=Norm(), qk_norm_over="heads"),
    "rotary": lambda: attention(positions=Rope()),
    "partly rotary": lambda: attention(positions=Rope(width=4)),
    "alibi": lambda: attention(positions="alibi"),
    "window": lambda: attention(window=9),
    "chunk": lambda: attention(chunk=9),
    "softcap, clip, scale": lambda: attention(softcap=50.0, clip=8.0, scale=0.1),
    "sinks": lambda: attention(sinks=True),
    "gate": lambda: attention(gate="element"),
    "gate a head": lambda: attention(gate="head"),
    "window whose keys stay": lambda: attention(window=9, keep_all=True),
    "norm of outputs": lambda: attention(out_norm=Norm(), temper=("log", 8192.0, 0.1), value_scale=2.0),
    "both sides": lambda: attention(sees="all"),
    "near both sides": lambda: attention(sees="all", reach=4),
    "distances": lambda: attention(sees="all", relative=32),
    "mamba": lambda: around(Mamba(16, 4, 3), d=7),
    "mamba-2": lambda: around(Mamba2(4, 5, 6, 2), d=7),
    "gated delta rule": lambda: around(GatedDelta(2, 4, 5, 6), d=7),
    "short convolution": lambda: around(ShortConv(9, 3), d=7),
    "mamba with norms": lambda: around(Mamba(16, 4, 3, norms=Norm(affine="none")), d=7),
    "mamba in parallel": lambda: around(Mamba(16, 4, 3, heads=2), d=7),
    "mamba-2 with multipliers": lambda: around(ScaledMamba2(4, 5, 6, 2, out_bias=True, norm_first=False), d=7),
    "kimi delta rule": lambda: around(KimiDelta(2, 5), d=7),
    "kimi delta rule by rank": lambda: around(KimiDelta(2, 5, rank=3), d=7),
    "lightning attention": lambda: around(Lightning(2, 5, 4), d=7),
    "gated linear recurrence": lambda: around(GatedLru(8, 2), d=7),
    "matrix lstm": lambda: around(MatrixLstm(2, 5, 6), d=7),
    "rwkv": lambda: around(Rwkv(9), d=7),
    "rwkv's mlp": lambda: around(RwkvMlp(11, 7), d=7),
    "convolved attention": lambda: around(ConvolvedAttention(6, 2, 5), d=7),
    "experts behind a router that carries": lambda: around(CarryingMoe(8, 1, 11, router_width=5), d=7),
    "experts in a latent": lambda: around(LatentMoe(8, 3, 11, latent=5), d=7),
    "shared block": lambda: around(
        SharedBlock(SharedAttention(4, 2, 3), SharedMlp(11), Mamba2(4, 5, 6, 2), Norm(), 7), d=7
    ),
    "latent with a gate": lambda: around(GatedLatent(6, 11, 5, 3, 4), d=7),
    "gated mlp with multipliers": lambda: around(ScaledMlp(11), d=7),
    "latent": lambda: around(Latent(6, 11, 5, 3, 4, query_rank=8), d=7),
    "latent absorbed": lambda: around(Latent(6, 11, 5, 3, 4, form="absorbed"), d=7),
    "gated mlp": lambda: around(Mlp(11, bias="gud"), d=7),
    "mlp": lambda: around(Mlp(11, gated=False, activation="gelu"), d=7),
    "experts": lambda: around(Moe(8, 3, 11), d=7),
    "shared experts": lambda: around(Moe(8, 3, 11, shared=5, shared_gate=True), d=7),
    "experts with all": lambda: around(
        Moe(8, 3, 11, Router("sigmoid", True, True, True, 2.5), bias="gud", shared=5), d=7
    ),
    "llama": lambda: draw(layers=3, d=12, heads=6, kv=2, ff=20, vocab=50),
    "gpt": lambda: draw(
        layers=2, d=12, heads=3, ff=48, vocab=50, gated=False, norm="layer", biases=True, tied=True, positions=64
    ),
    "windows": lambda: draw(layers=4, d=12, heads=3, ff=20, vocab=50, window=lambda i: 9 if i % 2 else None),
    "chunks": lambda: draw(layers=4, d=12, heads=3, ff=20, vocab=50, chunk=lambda i: 9 if i % 2 else None),
    "parallel": lambda: draw(layers=2, d=12, heads=3, ff=20, vocab=50, arrangement="parallel"),
    "sandwich": lambda: draw(layers=2, d=12, heads=3, ff=20, vocab=50, arrangement="sandwich", qk_norm="head"),
    "sparse": lambda: draw(
        layers=4,
        d=12,
        heads=3,
        ff=20,
        vocab=50,
        experts=8,
        chosen=2,
        expert_ff=10,
        shared_ff=5,
        moe=lambda i: i % 2 == 1,
    ),
}


def open_axes(model: Model) -> list[tuple[str, str]]:
    """(segment, axis) of every size of the model; the width and the vocabulary are one for all segments."""
    shared = ("d", "V")
    return list(dict.fromkeys(("" if a in shared else s.name, a) for s in model.segments for a in s.block.sizes))


def resized(model: Model, sizes: Mapping[tuple[str, str], Any]) -> Model:
    """The same ops with other sizes."""

    def of(segment: Segment) -> Segment:
        new = {a: sizes["" if ("", a) in sizes else segment.name, a] for a in segment.block.sizes}
        return replace(segment, block=segment.block.resize(**new))

    return replace(model, segments=tuple(map(of, model.segments)), positions=None)


@cache
def drawn_formulas(name: str) -> tuple[Model, list[tuple[str, str]], dict[Any, Any], Figures]:
    """A model, its axes, a symbol for each and for the setting, and every figure as a formula."""
    model = BLOCKS[name]()
    axes = open_axes(model)
    symbols = {axis: symbol(f"{axis[1]}_{axis[0].replace(' ', '_')}") for axis in axes}
    setting = {key: symbol(key) for key in ("batch", "tokens", "past")}
    return model, axes, {**symbols, **setting}, totals(resized(model, symbols), **setting)


@pytest.mark.parametrize("name", BLOCKS)
@settings(max_examples=12)
@given(data=st.data())
def test_models_as_symbols(name: str, data: st.DataObject) -> None:
    model, axes, symbols, formulas = drawn_formulas(name)
    values = dict(
        zip(symbols, data.draw(st.lists(sizes_at, min_size=len(symbols), max_size=len(symbols))), strict=True)
    )
    sizes = {axis: values[axis] for axis in axes}
    setting = {key: values[key] for key in ("batch", "tokens", "past")}
    exact = {symbols[key]: value for key, value in values.items()}
    assert substituted(formulas, exact) == totals(resized(model, sizes), **setting)


@pytest.mark.parametrize("name", BLOCKS)
@settings(max_examples=12)
@given(data=st.data())
def test_models_as_arrays(name: str, data: st.DataObject) -> None:
    model = BLOCKS[name]()
    axes = open_axes(model)
    keys = [*axes, "batch", "tokens", "past"]
    rows = [dict(zip(keys, row, strict=True)) for row in data.draw(rows_of(len(keys)))]

    def figures(values: Mapping[Any, Any]) -> Figures:
        setting = {key: values[key] for key in ("batch", "tokens", "past")}
        return totals(resized(model, {axis: values[axis] for axis in axes}), **setting)

    arrays = {key: numpy.array([float(row[key]) for row in rows]) for key in keys}
    check_array(figures(arrays), [figures(row) for row in rows])


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("name", thirds(BLOCKS))
@settings(max_examples=3)
@given(data=st.data())
def test_models_as_arrays_to_the_last_bit(name: str, convention: str, data: st.DataObject) -> None:
    model = BLOCKS[name]()
    axes = open_axes(model)
    keys = [*axes, "batch", "tokens", "past"]

    def figures(values: Mapping[Any, Any]) -> Figures:
        setting = {key: values[key] for key in ("batch", "tokens", "past")}
        return totals(resized(model, {axis: values[axis] for axis in axes}), (convention,), **setting)

    sizes = dict(zip(keys, data.draw(st.lists(few, min_size=len(keys), max_size=len(keys))), strict=True))
    rows = landing(figures, sizes, data)
    check_array(figures(as_arrays(rows)), [figures(row) for row in rows])


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_families(family: str) -> None:
    """Each family's own default config, at settings as ints, as arrays of floats and of ints, as symbols."""
    model = default_model(family)
    if model is None:
        pytest.skip("its config class itself leaves a size open")
    model = replace(model, positions=None)
    keys = ("batch", "tokens", "past") if "past" in model.settings else ("batch", "tokens")
    rows = [dict(zip(keys, row, strict=False)) for row in ((1, 1, 1), (3, 700, 5000), (2, 9000, 1), (7, 10**7, 10**6))]
    ints = [figures_of(model, row) for row in rows]
    check_array(figures_of(model, {key: numpy.array([row[key] for row in rows]) for key in keys}), ints)
    formulas = figures_of(model, {key: symbol(key) for key in keys})
    vast = {key: 10**25 + odd for key, odd in zip(keys, (1, 3, 7), strict=False)}
    rows, ints = [*rows, vast], [*ints, figures_of(model, vast)]
    check_exact(figures_of(model, {key: held([row[key] for row in rows]) for key in keys}), ints)
    for row, right in zip(rows, ints, strict=True):
        assert substituted(formulas, {symbol(key): value for key, value in row.items()}) == right


def default_model(family: str) -> Model | None:
    """The family's model where every size has a default."""
    try:
        return read_config({"model_type": family}, "config", "model")
    except SourceError:
        return None


def figures_of(model: Model, setting: Mapping[str, Any]) -> Figures:
    """Figures in two conventions: dense, and every scalar operation. A source is of 100 tokens."""
    setting = {**setting, "source": 100} if "source" in model.settings else setting
    return {
        f"{name} {figure}": value
        for name in ("matmul", "scalar")
        for figure, value in totals(model, (name,), **setting).items()
    }


# -- one setting at a time -------------------------------------------------------------------------------------------

DRAWN = ("llama", "gpt", "windows", "chunks", "sparse")


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("swept", ["batch", "tokens", "past"])
@settings(max_examples=10)
@given(data=st.data())
def test_each_setting_alone(name: str, swept: str, data: st.DataObject) -> None:
    """Batch, tokens or past as an array or a symbol, the others ints."""
    model = replace(BLOCKS[name](), positions=None)
    fixed = {key: data.draw(st.integers(1, 200), key) for key in ("batch", "tokens", "past")}
    values = data.draw(st.lists(st.integers(1, 10**6), min_size=2, max_size=4), swept)
    ints = [totals(model, **{**fixed, swept: value}) for value in values]
    for dtype in ("int64", "float64"):
        check_array(totals(model, **{**fixed, swept: numpy.array(values, dtype=dtype)}), ints)
    formulas = totals(model, **{**fixed, swept: symbol("n")})
    for value, right in zip(values, ints, strict=True):
        assert substituted(formulas, {symbol("n"): value}) == right


def test_int64_would_wrap() -> None:
    """Arrays are lifted to floats: an int64 of the same product is negative."""
    tokens = numpy.array([2**40], dtype="int64")
    flops = count(draw(layers=3, d=12, heads=6, ff=20, vocab=50), tokens=tokens).flops.attention_scores
    assert (tokens * tokens)[0] == 0
    assert flops[0] == 4 * 3 * 12 * 2.0**80


def test_figures_that_differ_are_seen() -> None:
    check_array({"a": numpy.array([1.0, 2.0])}, [{"a": 1}, {"a": 2}])
    with pytest.raises(AssertionError, match="a"):
        check_array({"a": numpy.array([1.0, 2.0])}, [{"a": 1}, {"a": 3}])
    with pytest.raises(AssertionError, match="a"):
        check_array({"a": numpy.array([1e20 * (1 + 1e-11)])}, [{"a": 10**20}])
