"""A sweep's rows are the report's figures at each setting: compared one by one with the report itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import assay
from assay.errors import SettingError, SourceError
from assay.report.contract import document
from assay.studies import sweep as module
from assay.studies.sweep import CHUNK, EXACT, corners, pieces, plan, sweep
from assay.studies.written import sort_of

numpy = pytest.importorskip("numpy")

SEER = "vit-b-16"
MODELS = ("llama-3-8b", "gpt-oss-20b", "jamba-v0.1", "deepseek-v3", "gemma-2-9b", "minimax-m2")


def flat(held: dict[str, Any], path: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in held.items():
        name = f"{path}.{key}".lstrip(".")
        found |= flat(value, name) if isinstance(value, dict) else {name: value}
    return found


def reported(model: assay.Model, **setting: Any) -> dict[str, Any]:
    """The figures that the report prints as JSON."""
    made = document("", model, assay.count(model, **setting))
    return flat({part: made[part] for part in ("setting", "parameters", "flops", "cache", "weights")})


def check(found: dict[str, Any], right: dict[str, Any], exact: bool) -> None:
    for name, value in right.items():
        if value is None:
            assert found.get(name) is None, name
        elif exact or isinstance(value, str):
            assert found[name] == value, name
        else:
            assert abs(found[name] - value) <= 1e-12 * abs(value), name


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("exact", [True, False])
def test_rows_are_reports(name: str, exact: bool) -> None:
    model = assay.load(name)
    swept = sweep(model, exact=exact, batch=[1, 3], context="1:300k:x7", weights="bf16,int4", convention="causal")
    rows = list(swept.rows())
    assert len(rows) == len(swept) == 2 * 2 * len({r["setting.context"] for r in rows})
    for row in rows[:: 1 if exact else 5]:
        asked = {key: row[f"setting.{key}"] for key in ("batch", "context", "weights")}
        check(row, reported(model, **asked, convention="causal"), exact)
        assert list(row) == list(rows[0])


def test_rows_of_an_encoder_decoder_and_of_images() -> None:
    model = assay.load("t5-base")
    for row in sweep(model, tokens=[1, 7], source=[5, 50]).rows():
        check(row, reported(model, tokens=row["setting.tokens"], source=row["setting.source"]), exact=True)
    seer = assay.load(SEER)
    for row in sweep(seer, images=[1, 3]).rows():
        check(row, reported(seer, images=row["setting.images"]), exact=True)


@settings(max_examples=25)
@given(
    tokens=st.lists(st.integers(1, 10**7), min_size=1, max_size=4, unique=True),
    past=st.lists(st.integers(0, 10**9), min_size=1, max_size=4, unique=True),
    batch=st.lists(st.integers(1, 10**4), min_size=1, max_size=3, unique=True),
)
def test_exact_at_any_magnitude(tokens: list[int], past: list[int], batch: list[int]) -> None:
    model = assay.load("gpt-oss-20b")
    swept = sweep(model, tokens=tokens, past=past, batch=batch)
    assert swept.exact
    for row in swept.rows():
        asked = {key: row[f"setting.{key}"] for key in ("tokens", "past", "batch")}
        counted = assay.count(model, **asked)
        assert row["flops.total"] == counted.flops.total
        assert row["cache.bytes"] == counted.cache.bytes


def test_rows_are_in_order_and_the_last_setting_moves_fastest() -> None:
    swept = sweep(["gpt-2", "llama-3-8b"], batch=[2, 1], tokens=[5, 3], convention="matmul,scalar")
    order = [(r["model.name"], r["setting.convention"], r["setting.batch"], r["setting.tokens"]) for r in swept.rows()]
    names = [assay.load(name).name for name in ("gpt-2", "llama-3-8b")]
    assert order == [(m, c, b, t) for m in names for c in ("matmul", "scalar") for b in (2, 1) for t in (5, 3)]
    assert swept.swept == ("model.name", "setting.convention", "setting.batch", "setting.tokens")


def test_settings_that_stay_are_stored_once() -> None:
    swept = sweep("llama-3-8b", context="1:1000:+1")
    assert swept["parameters.total"].strides == (0,)
    assert swept["flops.total"].strides != (0,)


def test_sizes_change_the_model() -> None:
    swept = sweep("llama-3-8b", sizes={"width": [2048, 4096], "mlp.width": "3.5*width"}, tokens=[1, 10])
    assert swept.swept == ("set.width", "setting.tokens")
    for row in swept.rows():
        sizes = {"width": row["set.width"], "mlp.width": row["set.mlp.width"]}
        assert 2 * row["set.mlp.width"] == 7 * row["set.width"]
        check(row, reported(assay.load("llama-3-8b", sizes=sizes), tokens=row["setting.tokens"]), exact=True)


def test_doubling_the_length_and_the_width() -> None:
    """Of a plain block's 24nd² + 4n²d FLOPs: at n = 6d both ways of doubling cost three times as much."""
    d, n = 64, 384
    sizes = {"width": [d, 2 * d], "mlp.width": "4*width", "attention.heads": "width/64", "context": 2 * n, "layers": 1}
    swept = sweep("gpt-2", sizes=sizes, tokens=[n, 2 * n])
    block = {(r["set.width"], r["setting.tokens"]): r["blocks.layer.flops"] for r in swept.rows()}
    assert block[d, n] == 24 * n * d * d + 4 * n * n * d
    assert block[2 * d, n] == block[d, 2 * n] == 3 * block[d, n]


def test_parts_that_a_model_lacks_are_nothing() -> None:
    swept = sweep(["llama-3-8b", "mixtral-8x7b", "t5-base"], tokens=4)
    assert swept["flops.by_part.experts"].tolist()[0] == 0 < swept["flops.by_part.experts"].tolist()[1]
    assert swept["flops.by_part.mlp"].tolist()[1] == 0
    assert swept["setting.source"].tolist() == [None, None, 4]


def test_many_points_are_counted_in_pieces() -> None:
    asked = plan("llama-3-8b", context=range(1, 3 * CHUNK))
    found = list(pieces(asked, exact=False))
    assert [piece.stop - piece.start for piece in found] == [CHUNK, CHUNK, CHUNK - 1]
    assert all(len(value) <= CHUNK for piece in found for value in piece.figures.values() if hasattr(value, "dtype"))


def test_pieces_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sweep("gpt-oss-20b", batch=[1, 2, 3], context=range(1, 40), exact=False)
    monkeypatch.setattr(module, "CHUNK", 7)
    cut = sweep("gpt-oss-20b", batch=[1, 2, 3], context=range(1, 40), exact=False)
    for name, column in whole.columns.items():
        assert column.tolist() == cut.columns[name].tolist(), name
        assert column.dtype == cut.columns[name].dtype, name


def test_large_sweeps_are_floats_and_say_so() -> None:
    swept = sweep("llama-3-8b", context=range(1, EXACT + 2), columns=["flops.total", "context"])
    assert not swept.exact
    assert swept["flops.total"].dtype == numpy.float64
    assert swept["context"].dtype == numpy.int64
    assert sweep("llama-3-8b", context=range(1, 30), columns=["flops.total"])["flops.total"].dtype == numpy.int64
    vast = sweep("llama-3-8b", tokens=[1, 10**12], columns=["flops.total"])
    assert vast["flops.total"].tolist()[1] == assay.count(assay.load("llama-3-8b"), tokens=10**12).flops.total > 2**63


def test_columns_that_are_chosen() -> None:
    swept = sweep("llama-3-8b", context=[1, 2], columns=["cache", "context", "parameters.total"])
    assert set(swept.columns) == {
        "setting.context",
        "parameters.total",
        "cache.bytes",
        "cache.marginal_bytes_per_token",
        "cache.fixed_bytes",
    }
    with pytest.raises(SettingError, match="flop is no column of this sweep; did you mean"):
        sweep("llama-3-8b", columns=["flop"])
    with pytest.raises(SettingError, match=r"zzz is no column of this sweep; known: model.name, .* and \d+ more$"):
        sweep("llama-3-8b").only(["zzz"])
    with pytest.raises(SettingError, match="nothing is no column of this sweep"):
        sweep("llama-3-8b", columns=[""])
    with pytest.raises(SettingError, match=r"flops is the end of several columns: blocks.embedding.flops"):
        sweep("llama-3-8b").column("flops")


def test_corners_name_what_rows_hold() -> None:
    asked = plan(["llama-3-8b", "t5-base"], batch=[1, 2], context="1:64", convention="matmul,causal", past=None)
    swept = module.gather(asked)
    sorts = corners(asked, exact=True)
    assert list(sorts) == list(swept.columns)
    named = {name: sort_of(column.tolist()) for name, column in swept.columns.items()}
    assert {n for n in named if named[n] != sorts[n]} == {"flops.per_token", "cache.marginal_bytes_per_token"}


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    sweep("llama-3-8b", batch=[1, 2], convention="matmul,causal", progress=lambda *done: told.append(done))
    assert told == [(2, 4), (4, 4)]


@pytest.mark.parametrize(
    ("what", "asked", "says"),
    [
        ("llama-3-8b", {"tokns": 3}, "tokns is no setting; known: batch, tokens"),
        ("llama-3-8b", {"batch": "0:8"}, "batch is 0; it must be an integer of at least 1"),
        ("llama-3-8b", {"convention": 3}, "convention is 3; it must be a word, or a list of words"),
        ("llama-3-8b", {"convention": "flops"}, "convention is 'flops'; known: matmul"),
        ("llama-3-8b", {"context": [10], "tokens": [20]}, "context is 10; it counts past and present"),
        ("llama-3-8b", {"context": [10, 30], "tokens": [20]}, "it counts past and present, so at least the 20 tokens"),
        ("gpt-2", {"tokens": [1000, 2000]}, r"past \+ tokens is 2000; GPT-2 has a learned position table of 1024 rows"),
        ("bert-base", {"past": [0, 3, 5]}, "past is 3; BERT base keeps nothing between passes, so it must be 0"),
        ("llama-3-8b", {"sizes": {"width": [4096, 4097]}}, "width is 4097; it must be a multiple of attention.heads"),
        ("llama-3-8b", {"sizes": {"wdth": [1]}}, "wdth is no key of a description; did you mean width?"),
        ([], {}, "a sweep needs a model"),
        ("no-such-model", {}, "no file, no preset"),
    ],
)
def test_refusals(what: Any, asked: dict[str, Any], says: str) -> None:
    with pytest.raises((SettingError, SourceError), match=says):
        sweep(what, **asked)


def test_a_model_that_is_read_has_its_sizes() -> None:
    with pytest.raises(SettingError, match="Llama 3 8B is read already; sizes are set of what it was read from"):
        sweep(assay.load("llama-3-8b"), sizes={"width": [1024]})


def test_without_numpy_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(SettingError, match="NumPy is not installed; pip install numpy"):
        sweep("llama-3-8b", batch=[1, 2])


def test_what_is_swept_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input has no second time, and the hub need not be asked twice."""
    import io
    import json
    import sys

    config = {"model_type": "llama", "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(config)))
    asked = plan("-", sizes={"hidden_size": [64, 128], "num_hidden_layers": [2, 3]}, tokens=[1, 2])
    assert corners(asked, exact=True)
    totals = module.gather(asked)["parameters.total"].tolist()
    assert totals == [
        assay.count(assay.load({**config, "hidden_size": d, "num_hidden_layers": n})).parameters.total
        for d in (64, 128)
        for n in (2, 3)
        for _ in range(2)
    ]


def test_sweeps_are_equal_where_their_rows_are() -> None:
    one, same, other = (sweep("gpt-2", tokens=tokens) for tokens in ([1, 2], [1, 2], [1, 3]))
    assert one == same
    assert one != other
    assert one != sweep("gpt-2", tokens=[1, 2], exact=False)
    assert one != "sweep"
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_what_weights_are_stored_in_is_a_column() -> None:
    """DeepSeek-V3 is published in fp8, whatever the dtype of the rest is; asked for in another, it is in that."""
    made = sweep(["deepseek-v3", "llama-3-8b"], tokens=[1, 2])
    fp8 = "fp8 in blocks of 128×128, the rest bf16"
    assert made["weights.format"].tolist() == [fp8, fp8, "bf16", "bf16"]
    assert sweep("deepseek-v3", tokens=1, weights="int8,bf16")["weights.format"].tolist() == ["int8", "bf16"]
