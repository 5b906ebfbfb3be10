"""GGUF files: their metadata as a config, what is refused, blocks of quantized weights."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from commandline import run
from headers import (
    LLAMA,
    SIZES,
    elements,
    gguf,
    llama_gguf,
    shapes,
    text,
    wrong,
)
from hypothesis import given
from hypothesis import strategies as st

from assay import load
from assay.errors import AssayError, SettingError, SourceError
from assay.readings.check import check
from assay.readings.count import count
from assay.sources.checkpoints import read_checkpoint, speller
from assay.sources.checkpoints.blocks import BLOCKS
from assay.sources.huggingface import read_config


def test_gguf_metadata_is_as_good_as_a_config(tmp_path: Path) -> None:
    path = gguf(tmp_path / "small.gguf", SIZES, llama_gguf())
    model, named = load(str(path)), read_config(LLAMA, "config", "model")
    assert model.family == "llama"
    ours, theirs = count(model, tokens=7), count(named, tokens=7)
    assert ours.parameters == theirs.parameters
    assert ours.flops == theirs.flops
    assert ours.cache.bytes == theirs.cache.bytes
    matrices = theirs.parameters.total - 5 * 32
    assert ours.weight_bytes == matrices // 32 * 18 + 5 * 32 * 4 == read_checkpoint(str(path)).bytes
    assert count(model, tokens=7, weights="fp16").weight_bytes == theirs.weight_bytes
    assert load(str(tmp_path)).family == "llama"  # the folder


def test_gguf_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    path = gguf(tmp_path / "small.gguf", SIZES | {"llama.feed_forward_length": 64}, llama_gguf())
    with pytest.raises(SettingError, match=r"its tensors hold 28,832 elements, and the architecture .* has 22,688"):
        count(load(str(path)))


def test_gguf_against_a_config(tmp_path: Path) -> None:
    path = gguf(tmp_path / "small.gguf", SIZES, llama_gguf() | {"rope_freqs.weight": (0, (4,), 16)})
    held = read_checkpoint(str(path))
    found = check(read_config(LLAMA, "config", "model"), shapes(held), speller(held))
    assert (found.agree, found.differences, found.recomputed) == (21, (), 1)
    other = check(read_config({**LLAMA, "intermediate_size": 64}, "config", "m"), shapes(held), speller(held))
    assert {(one.what, one.name) for one in other.differences} == {
        ("shape", f"blk.{i}.ffn_{part}.weight") for i in range(2) for part in ("gate", "up", "down")
    }


def test_experts_of_a_gguf_lie_together(tmp_path: Path) -> None:
    moe = {**LLAMA, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
    tensors = {n: t for n, t in llama_gguf().items() if "ffn_" not in n or "norm" in n}
    for i in range(2):
        tensors[f"blk.{i}.ffn_gate_inp.weight"] = (0, (4, 32), 512)
        for part, shape in (("gate", (4, 96, 32)), ("up", (4, 96, 32)), ("down", (4, 32, 96))):
            tensors[f"blk.{i}.ffn_{part}_exps.weight"] = (2, shape, elements(shape) // 32 * 18)
    sizes = SIZES | {"llama.expert_count": 4, "llama.expert_used_count": 2}
    held = read_checkpoint(str(gguf(tmp_path / "moe.gguf", sizes, tensors)))
    assert check(read_config(moe, "config", "m"), shapes(held), speller(held)).differences == ()
    model = load(str(tmp_path / "moe.gguf"))
    assert model.family == "mixtral"
    assert count(model, tokens=1).parameters == count(read_config(moe, "config", "m"), tokens=1).parameters


def test_a_split_gguf_is_its_parts(tmp_path: Path) -> None:
    whole = list(llama_gguf().items())
    gguf(tmp_path / "m-00001-of-00002.gguf", SIZES, dict(whole[:9]))
    assert "m-00002-of-00002.gguf: is not there, one of 2 files" in wrong(tmp_path / "m-00001-of-00002.gguf")
    gguf(tmp_path / "m-00002-of-00002.gguf", {"split.no": 1}, dict(whole[9:]))
    assert len(read_checkpoint(str(tmp_path)).tensors) == 21
    assert count(load(str(tmp_path / "m-00001-of-00002.gguf"))).parameters.total == 28_832


@pytest.mark.parametrize(
    ("metadata", "line"),
    [
        ({"general.architecture": "nobody"}, "general.architecture is 'nobody'; as a model are read"),
        ({"general.architecture": 3}, "general.architecture is 3"),
        ({"llama.block_count": None}, "llama.block_count is missing"),
        ({"llama.block_count": "two"}, "llama.block_count is 'two'"),
        ({"llama.attention.head_count_kv": [1, 2]}, "head_count_kv is [1, 2], not the same for every layer"),
        ({"llama.attention.head_count": 5}, "num_attention_heads is 5; it must be a multiple of"),
    ],
)  # fmt: skip
def test_metadata_that_are_no_config_are_one_line(tmp_path: Path, metadata: dict[str, Any], line: str) -> None:
    given = {key: item for key, item in {**SIZES, **metadata}.items() if item is not None}
    path = gguf(tmp_path / "m.gguf", given, llama_gguf())
    with pytest.raises(SourceError, match=r"m\.gguf") as caught:
        load(str(path))
    assert line in str(caught.value)


@pytest.mark.parametrize(
    ("tensors", "line"),
    [
        ({"a": (2, (2, 33), 40)}, "a has rows of 33, which blocks of 32 (Q4_0) do not divide"),
        ({"a": (99, (2, 32), 40)}, "a is of block type 99, which is not known"),
        ({"a": (0, (0, 32), 40)}, "it must hold at least 1 element a side"),
        ({"a": (0, (1 << 40, 1 << 40), 40)}, "a has shape"),
        ({"a": (0, (1,) * 9, 4)}, "a claims 9 dimensions; at most 8 are read"),
        ({"a": (2, (), 18)}, "a is one number and cannot be stored as Q4_0"),
        ({"a": (0, (64,), 32), "b": (0, (8,), 32)}, "b begins at byte 32, within the tensor before it"),
        ({"a": (0, (1000,), 4000 - 512)}, "the tensors end at byte"),
    ],
)
def test_tensors_that_lie_are_one_line(tmp_path: Path, tensors: Any, line: str) -> None:
    assert line in wrong(gguf(tmp_path / "m.gguf", {}, tensors))


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"", "ends within its first four bytes"),
        (b"GGML" + bytes(20), "does not begin with GGUF"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(16), "GGUF version 1; versions 2 and 3 are read"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 0), "claims 1,099,511,627,776 tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 40), "claims 1,099,511,627,776 keys"),
        (b"GGUF" + struct.pack("<IQQ", 3, 3, 0), "ends within the name of a tensor"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 60), "claims 1,152,921,504,606,846,976 bytes of text"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<I", 77), "k is of type 77"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", 9, 4, 1 << 50), "k claims"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQQ", 9, 9, 1, 0), "array of type 9"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + 2 * (text("k") + struct.pack("<II", 4, 7)), "k stands twice"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("general.alignment") + struct.pack("<II", 4, 7), "power of two"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2) + b"\xff\xff", "is no UTF-8"),
    ],
)  # fmt: skip
def test_bytes_that_are_no_gguf_are_one_line(tmp_path: Path, raw: bytes, line: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(raw)
    assert line in wrong(path)


def test_a_gguf_cut_anywhere_is_one_line(tmp_path: Path) -> None:
    raw = gguf(tmp_path / "whole.gguf", SIZES, llama_gguf()).read_bytes()
    path = tmp_path / "m.gguf"
    for cut in [*range(0, 2600, 7), len(raw) - 33]:
        path.write_bytes(raw[:cut])
        wrong(path)


@given(st.integers(8, 2000), st.binary(min_size=1, max_size=8))
def test_a_gguf_with_bytes_changed_is_read_or_refused(tmp_path_factory: Any, at: int, change: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "m.gguf"
    raw = bytearray(gguf(path, SIZES, llama_gguf()).read_bytes())
    raw[at : at + len(change)] = change
    path.write_bytes(raw)
    try:
        count(load(str(path)), tokens=1)
    except AssayError as error:
        assert "\n" not in str(error)  # noqa: PT017


def test_blocks_are_those_of_the_reference() -> None:
    constants = pytest.importorskip("gguf.constants")
    for number, (name, block, size) in BLOCKS.items():
        theirs = constants.GGMLQuantizationType(number)
        assert (theirs.name, constants.GGML_QUANT_SIZES[theirs]) == (name, (block, size))


@pytest.mark.parametrize(
    ("name", "bits"),
    # bits a weight that llama.cpp's own table of quantizations states
    [("Q4_0", 4.5), ("Q4_1", 5.0), ("Q5_0", 5.5), ("Q5_1", 6.0), ("Q8_0", 8.5), ("Q2_K", 2.625), ("Q3_K", 3.4375),
     ("Q4_K", 4.5), ("Q5_K", 5.5), ("Q6_K", 6.5625), ("IQ2_XXS", 2.0625), ("IQ2_XS", 2.3125), ("IQ3_XXS", 3.0625),
     ("IQ3_S", 3.4375), ("IQ4_NL", 4.5), ("IQ4_XS", 4.25), ("IQ1_S", 1.5625), ("IQ1_M", 1.75), ("IQ2_S", 2.5625),
     ("TQ1_0", 1.6875), ("TQ2_0", 2.0625), ("MXFP4", 4.25), ("BF16", 16), ("F32", 32)],
)  # fmt: skip
def test_blocks_have_the_stated_bits(name: str, bits: float) -> None:
    block, size = next((e, s) for n, e, s in BLOCKS.values() if n == name)
    assert 8 * size / block == bits


def test_gguf_is_a_model_of_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(gguf(tmp_path / "small.gguf", SIZES, llama_gguf()))
    code, out, err = run(capsys, path, "--json")
    assert (code, err) == (0, "")
    made = json.loads(out)
    assert made["weights"]["bytes"] == (28_832 - 160) // 32 * 18 + 640
    code, out, _ = run(capsys, path)
    assert code == 0
    assert "GGUF, Q4_0, F32" in out
    code, out, _ = run(capsys, "ops", path)
    assert code == 0
