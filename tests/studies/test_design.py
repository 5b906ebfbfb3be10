"""Designs meet their targets, by counting what their descriptions say; and their figures by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import SettingError
from assay.sources.presets import presets, table
from assay.studies import design as module
from assay.studies.design import Frame, Targets, design, search
from assay.studies.designed import to_json, write
from assay.studies.shapes import strangeness

numpy = pytest.importorskip("numpy")


def by_hand(sizes: dict[str, int], vocabulary: int) -> int:
    """Two tables; a layer's projections, gated MLP and two norms; the last norm."""
    d, f, kv = sizes["width"], sizes["inner"], sizes["kv_heads"] * sizes["head_width"]
    q = sizes["heads"] * sizes["head_width"]
    return 2 * vocabulary * d + sizes["layers"] * (2 * d * q + 2 * d * kv + 3 * d * f + 2 * d) + d


@pytest.mark.parametrize("target", [125_000_000, 10**9, 8 * 10**9, 70 * 10**9, 405 * 10**9])
def test_parameters_are_met(target: int) -> None:
    vocabulary = 32_000 if target < 10**9 else 128_000
    made = design(target, vocabulary=vocabulary)
    assert len(made) == 8
    for one in made:
        assert one.count.parameters.total == by_hand(dict(one.sizes), vocabulary)
        assert abs(one.count.parameters.total / target - 1) == one.off <= 0.01
        assert one.sizes["width"] % 128 == one.sizes["inner"] % 128 == 0
        assert one.sizes["heads"] * one.sizes["head_width"] == one.sizes["width"]
        assert one.sizes["heads"] % one.sizes["kv_heads"] == 0


def test_a_published_shape_is_found() -> None:
    """With Llama 3 8B's vocabulary and parameters, its own sizes are a proposal, and none is more usual."""
    model = assay.load("llama-3-8b")
    made = design(assay.count(model).parameters.total, vocabulary=128_256, within=0.001, number=20)
    assert min(one.strange for one in made) == 0
    shapes = [tuple(one.sizes[key] for key in ("width", "layers", "heads", "kv_heads", "inner")) for one in made]
    assert (4096, 32, 32, 8, 14336) in shapes
    own = made[shapes.index((4096, 32, 32, 8, 14336))]
    assert own.off == 0
    assert own.count.flops == assay.count(model).flops


def test_ranked_by_what_is_met_then_by_shape() -> None:
    made = design(8 * 10**9, None, 65_536, number=30)
    met = [one.off <= 0.01 for one in made]
    assert met == sorted(met, reverse=True)
    assert [one.strange for one in made if one.off <= 0.01] == sorted(one.strange for one in made if one.off <= 0.01)
    assert [one.off for one in made if one.off > 0.01] == sorted(one.off for one in made if one.off > 0.01)


def test_flops_of_a_token() -> None:
    for one in design(None, 16 * 10**9, context=8192):
        counted = assay.count(one.model, tokens=8192)
        assert abs(counted.flops_per_token / 16e9 - 1) == one.off <= 0.01


def test_the_cache_of_a_token() -> None:
    for one in design(8 * 10**9, None, 65_536, cache="fp8", number=3):
        sizes = one.sizes
        assert 2 * sizes["layers"] * sizes["kv_heads"] * sizes["head_width"] == pytest.approx(65_536, rel=0.01)


def test_several_targets_at_once() -> None:
    best = design(8_030_261_248, 16_083_058_688, 131_072, vocabulary=128_256)[0]
    assert best.off <= 0.01
    assert best.sizes["width"] == 4096


@pytest.mark.parametrize(
    ("frame", "holds"),
    [
        ({"layers": (40,)}, lambda s: s["layers"] == 40),
        ({"widths": (4096, 5120)}, lambda s: s["width"] in (4096, 5120)),
        ({"heads": (32,)}, lambda s: s["heads"] == 32),
        ({"kv_heads": (4,)}, lambda s: s["kv_heads"] == 4),
        ({"head_widths": (256,)}, lambda s: s["head_width"] == 256),
        ({"heads": (16,), "head_widths": (128,)}, lambda s: (s["heads"], s["head_width"]) == (16, 128)),
        ({"ratio": 3.5}, lambda s: abs(s["inner"] - 3.5 * s["width"]) <= 64),
        ({"aspect": 128.0}, lambda s: round(s["width"] / 128) == s["layers"]),
    ],
)
def test_what_is_fixed_stays(frame: dict[str, Any], holds: Any) -> None:
    made = design(8 * 10**9, **frame)
    assert made
    for one in made:
        assert holds(one.sizes)
        assert one.count.parameters.total == by_hand(dict(one.sizes), 128_000)


def test_a_plain_mlp_and_a_tied_head() -> None:
    one = design(10**9, gated=False, tied=True, vocabulary=50_304)[0]
    d, f, layers = (one.sizes[key] for key in ("width", "inner", "layers"))
    kv = one.sizes["kv_heads"] * one.sizes["head_width"]
    assert one.count.parameters.total == 50_304 * d + layers * (2 * d * d + 2 * d * kv + 2 * d * f + 2 * d) + d


def test_the_search_sees_what_counting_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of layers and straight lines in the MLP's width: the same as a count of each description."""
    seen: dict[str, Any] = {}
    kept = module._shapes

    def spy(*args: Any) -> Any:
        seen.update(kept(*args))
        return seen

    monkeypatch.setattr(module, "_shapes", spy)
    targets = Targets(10**9, 2 * 10**9, 40_000)
    search(targets, Frame(), 3, 0.01)
    for place in range(0, len(seen["off"]), len(seen["off"]) // 60):
        sizes = {name: int(seen[name][place]) for name in module.SIZES}
        assert module._proposal(targets, Frame(), sizes).off == pytest.approx(seen["off"][place], abs=1e-9)


def test_no_more_than_three_depths_of_a_width() -> None:
    widths = [one.sizes["width"] for one in design(8 * 10**9, number=12)]
    assert max(widths.count(width) for width in widths) == 3
    assert len({one.sizes["layers"] for one in design(8 * 10**9, widths=(4096,), number=6)}) == 6


def test_descriptions_are_read_as_they_are(tmp_path: Path) -> None:
    made = design(10**9, number=3, context=4096, tied=True)
    said = write(made, str(tmp_path / "designs"))
    assert len(said) == 3
    for one in made:
        model = assay.load(tmp_path / "designs" / f"{one.name}.toml")
        assert assay.count(model).parameters.total == one.count.parameters.total
        assert model.trained == 4096
        assert model.segments == one.model.segments
    assert [p["description"] for p in to_json(made, Targets(10**9), Frame(), 0.01, "1")["proposals"]] == [
        one.description for one in made
    ]
    with pytest.raises(SettingError, match="cannot be written to: Not a directory"):
        write(made, str(tmp_path / "designs" / f"{made[0].name}.toml" / "x"))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "a design needs a target: parameters, FLOPs of a token, or both"),
        ({"parameters": 0}, "parameters is 0; it must be an integer of at least 1"),
        ({"parameters": "8B"}, "parameters is '8B'; it must be an integer"),
        ({"parameters": 1000}, "no shape comes near what is asked: the nearest has 32,866,688 parameters"),
        ({"parameters": 10**9, "widths": (100,)}, "width is 100; a design's is a multiple of 128"),
        ({"parameters": 10**9, "widths": (128,), "heads": (3,)}, "no width that is a multiple of 128 has heads"),
        ({"parameters": 10**9, "widths": (8192,), "layers": (90,)}, "no shape comes near what is asked"),
        ({"parameters": 10**9, "depth": 3}, "depth is no size that a design has; known: vocabulary, widths"),
    ],
)
def test_refusals(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        design(**asked)


def test_without_numpy_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(SettingError, match="NumPy is not installed; pip install numpy"):
        design(10**9)


def strange(gated: bool = True, **sizes: int) -> float:
    usual = {"width": 4096, "layers": 32, "heads": 32, "kv_heads": 8, "head_width": 128, "inner": 14336}
    held = {name: numpy.array([size]) for name, size in {**usual, **sizes}.items()}
    return round(float(strangeness(held, gated)[0]), 6)


def test_the_rule_term_by_term() -> None:
    assert strange() == 0
    assert strange(layers=16) == round(float(numpy.log2(256 / 160)), 6)
    assert strange(inner=4096) == round(float(numpy.log2(2.5)), 6)
    assert strange(inner=16384, gated=False) == 0
    assert strange(head_width=64) == 0.25
    assert strange(heads=36) == 0.25
    assert strange(kv_heads=32) == 0.25
    assert strange(width=4224) == 0.1
    assert strange(inner=14336 + 128) == 0.1
    assert (strange(layers=34), strange(layers=33)) == (0.1, 0.2)
    assert strange(width=768, layers=12, heads=12, kv_heads=12, head_width=64, inner=3072, gated=False) == 0


def test_the_rule_is_after_published_decoders() -> None:
    found = []
    for name, _ in presets():
        told = table(name)
        alike = "layer" not in told and "attention" in told and "mlp" in told and "moe" not in told
        if told.get("kind", "decoder") != "decoder" or not alike:
            continue
        model = assay.load(name)
        block = next(s for s in model.segments if s.layers).block.sizes
        named = {"width": "d", "heads": "h", "kv_heads": "g", "head_width": "k", "inner": "f"}
        if set(named.values()) <= block.keys():
            sizes = {key: block[axis] for key, axis in named.items()}
            found.append(strange(told["mlp"].get("gated", True), layers=model.layers, **sizes))
    assert len(found) > 80
    assert sum(value <= 0.5 for value in found) > 0.66 * len(found)
    assert sum(value == 0 for value in found) > 0.2 * len(found)


@pytest.mark.parametrize(("parameters", "cache"), [(297_784_399_961, 34_065), (92_500_000_000, 62_000)])
def test_small_caches_of_large_models_are_met(parameters: int, cache: int) -> None:
    """With one or two heads of keys and values for all queries: 2 x layers x heads x 128 x 2 bytes."""
    best = assay.design(parameters, cache_per_token=cache, number=1)[0]
    assert best.off <= 0.01
    s = best.sizes
    assert abs(2 * s["layers"] * s["kv_heads"] * s["head_width"] * 2 / cache - 1) <= 0.01
