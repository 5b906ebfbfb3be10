"""Headers of weight files: what they say, what is refused, and how they compare with a config."""

from __future__ import annotations

import json
import struct
import warnings
from pathlib import Path
from typing import Any

import pytest
from headers import gguf, raw_safetensors, safetensors, text
from hypothesis import given
from hypothesis import strategies as st

from assay import load
from assay.cli import main
from assay.errors import AssayError, SettingError, SourceError
from assay.readings.check import check
from assay.readings.count import count
from assay.sources.checkpoints import Checkpoint, read_checkpoint, speller
from assay.sources.checkpoints.blocks import BLOCKS
from assay.sources.checkpoints.parts import part_of, totals
from assay.sources.huggingface import read_config

TWO = {"a": ("F32", (2, 3), 24), "b.norm": ("BF16", (5,), 10)}
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
}


def llama_tensors(prefix: str = "model.") -> dict[str, tuple[str, tuple[int, ...], int]]:
    shapes: dict[str, tuple[int, ...]] = {f"{prefix}embed_tokens.weight": (64, 32)}
    for i in range(2):
        at = f"{prefix}layers.{i}."
        for name, shape in {
            "input_layernorm": (32,),
            "self_attn.q_proj": (32, 32),
            "self_attn.k_proj": (16, 32),
            "self_attn.v_proj": (16, 32),
            "self_attn.o_proj": (32, 32),
            "post_attention_layernorm": (32,),
            "mlp.gate_proj": (96, 32),
            "mlp.up_proj": (96, 32),
            "mlp.down_proj": (32, 96),
        }.items():
            shapes[f"{at}{name}.weight"] = shape
    shapes |= {f"{prefix}norm.weight": (32,), "lm_head.weight": (64, 32)}
    return {name: ("F16", shape, 2 * elements(shape)) for name, shape in shapes.items()}


def elements(shape: tuple[int, ...]) -> int:
    made = 1
    for extent in shape:
        made *= extent
    return made


def shapes(held: Checkpoint) -> dict[str, Any]:
    return {tensor.name: tensor.shape for tensor in held.tensors}


def wrong(path: Path) -> str:
    """The line that a file is refused with."""
    with pytest.raises(SourceError, match=r"\S") as caught:
        read_checkpoint(str(path))
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 700
    return line


# safetensors


def test_a_header_is_read(tmp_path: Path) -> None:
    held = read_checkpoint(str(safetensors(tmp_path / "m.safetensors", TWO, format="pt")))
    assert [(t.name, t.dtype, t.shape, t.bytes, t.file) for t in held.tensors] == [
        ("a", "F32", (2, 3), 24, "m.safetensors"),
        ("b.norm", "BF16", (5,), 10, "m.safetensors"),
    ]
    assert held.metadata == {"format": "pt"}
    assert held.bytes == 34
    by_dtype, by_part = totals(held)
    assert {k: (t.tensors, t.elements, t.bytes) for k, t in by_dtype.items()} == {"F32": (1, 6, 24), "BF16": (1, 5, 10)}
    assert by_part.keys() == {"other", "norm"}


def test_the_reference_writer_is_understood(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    library = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "m.safetensors"
    given = {"x": numpy.zeros((3, 0, 2), "float16"), "y": numpy.zeros((), "int64"), "z": numpy.ones((4, 4), "uint8")}
    library.save_file(given, path)
    held = read_checkpoint(str(path))
    assert {t.name: (t.shape, t.bytes) for t in held.tensors} == {"x": ((3, 0, 2), 0), "y": ((), 8), "z": ((4, 4), 16)}


def test_only_the_header_is_read(tmp_path: Path) -> None:
    path = safetensors(tmp_path / "m.safetensors", {"a": ("F32", (2,), 8)})
    with path.open("r+b") as file:  # a hole of a terabyte, not written
        raw = json.dumps({"a": {"dtype": "U8", "shape": [1 << 40], "data_offsets": [0, 1 << 40]}}).encode()
        file.write(struct.pack("<Q", len(raw)) + raw)
        file.truncate(8 + len(raw) + (1 << 40))
    assert read_checkpoint(str(path)).bytes == 1 << 40


ONE = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "data", "line"),
    [
        ({"a": {**ONE, "dtype": "F33"}}, 8, "a: dtype is 'F33'; it must be one of BOOL"),
        ({"a": {**ONE, "dtype": 7}}, 8, "a: dtype is 7"),
        ({"a": {**ONE, "shape": [-2]}}, 8, "a: shape is [-2]; it must be a list of integers of at least 0"),
        ({"a": {**ONE, "shape": [True]}}, 8, "a: shape is [True]"),
        ({"a": {**ONE, "shape": [1 << 70]}}, 8, "a: shape is"),
        ({"a": {**ONE, "shape": "2"}}, 8, "a: shape is '2'"),
        ({"a": {**ONE, "shape": [3]}}, 8, "F32 of shape [3] takes 12 bytes, and data_offsets [0, 8] leave it 8"),
        ({"a": {**ONE, "data_offsets": [8, 0]}}, 8, "leave it -8"),
        ({"a": {**ONE, "data_offsets": [0]}}, 8, "data_offsets is [0]; it must be two integers"),
        ({"a": {"dtype": "F32", "shape": [2]}}, 8, "a: data_offsets is missing"),
        ({"a": 3}, 8, "a is 3; it must be an object"),
        ({"a": ONE, "b": ONE}, 8, "begins at byte 0, which overlaps the tensor before it, at 8"),
        ({"a": ONE, "b": {**ONE, "data_offsets": [12, 20]}}, 20, "b begins at byte 12, which leaves a gap before it"),
        ({"a": ONE}, 7, "the tensors take 8 bytes and the file holds 7 of them"),
        ({"a": ONE}, 9, "the tensors take 8 bytes and the file holds 9 of them"),
        ({"__metadata__": 3, "a": ONE}, 8, "__metadata__ is 3"),
        ({"a": {"dtype": "F4", "shape": [3], "data_offsets": [0, 2]}}, 2, "F4 of shape [3] takes 2 bytes"),
        ([ONE], 8, "holds a list; the header of a safetensors file is one JSON object"),
    ],
)
def test_a_header_that_lies_is_one_line(tmp_path: Path, header: Any, data: int, line: str) -> None:
    path = raw_safetensors(tmp_path / "m.safetensors", json.dumps(header).encode(), data)
    assert line in wrong(path)


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"", "0 bytes; a safetensors file begins with the 8"),
        (b"\x01\x00", "2 bytes"),
        (struct.pack("<Q", 100) + b"{}", "the header claims 100 bytes; it holds 2 more"),
        (struct.pack("<Q", 1 << 63) + b"{}", "the header claims 9,223,372,036,854,775,808 bytes"),
        (struct.pack("<Q", 2) + b"{]", "no JSON"),
        (struct.pack("<Q", 4) + b"\xff\xfe\xff\xff", "UTF-16"),
        (struct.pack("<Q", 2) + b"  ", "empty"),
        (struct.pack("<Q", 21) + b'{"a":{"x":1},"a":{}} ', "'a' stands twice" ),
        (struct.pack("<Q", 20_000) + b'{"a":' * 4000, "nested deeper"),
        (b"\x80\x02}q\x00" + bytes(20), "the header claims"),
    ],
)  # fmt: skip
def test_bytes_that_are_no_header_are_one_line(tmp_path: Path, raw: bytes, line: str) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(raw)
    assert line.replace("'", "") in wrong(path).replace("'", "")


def test_a_header_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 200_000_000))
        file.truncate(300_000_000)
    assert "the header claims 200,000,000 bytes; at most 100,000,000 are read" in wrong(path)


@given(st.binary(max_size=200), st.integers(0, 300))
def test_no_bytes_make_the_reader_of_safetensors_stumble(tmp_path_factory: Any, raw: bytes, length: int) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "m.safetensors"
    raw_safetensors(path, raw, length=length)
    try:
        read_checkpoint(str(path))
    except SourceError as error:
        assert "\n" not in str(error)  # noqa: PT017
        assert "m.safetensors: " in str(error)  # noqa: PT017


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=4), lambda s: st.lists(s, max_size=3)
                     | st.dictionaries(st.sampled_from(["dtype", "shape", "data_offsets"]), s), max_leaves=12),
        max_size=4,
    )
)  # fmt: skip
def test_no_object_makes_it_stumble(tmp_path_factory: Any, header: dict[str, Any]) -> None:
    path = raw_safetensors(tmp_path_factory.mktemp("fuzz") / "m.safetensors", json.dumps(header).encode(), 8)
    try:
        read_checkpoint(str(path))
    except SourceError as error:
        assert "\n" not in str(error)  # noqa: PT017


# indices and folders


def sharded(folder: Path, **changes: Any) -> Path:
    folder.mkdir(exist_ok=True)
    safetensors(folder / "m-1.safetensors", {"a": TWO["a"]})
    safetensors(folder / "m-2.safetensors", {"b.norm": TWO["b.norm"]})
    places = {"a": "m-1.safetensors", "b.norm": "m-2.safetensors"}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 34}, "weight_map": places, **changes}))
    return index


def test_an_index_and_its_folder_are_its_files_together(tmp_path: Path) -> None:
    index = sharded(tmp_path / "m")
    for path in (index, index.parent):
        held = read_checkpoint(str(path))
        assert {t.name: t.file for t in held.tensors} == {"a": "m-1.safetensors", "b.norm": "m-2.safetensors"}
        assert (held.bytes, held.stated, len(held.files)) == (34, 34, 2)
    index.unlink()
    assert read_checkpoint(str(tmp_path / "m")).bytes == 34


def test_an_index_alone_has_names(tmp_path: Path) -> None:
    index = sharded(tmp_path / "m")
    for file in tmp_path.glob("m/*.safetensors"):
        file.unlink()
    held = read_checkpoint(str(index))
    assert [t.name for t in held.tensors] == ["a", "b.norm"]
    assert not held.shaped
    assert held.bytes == 34


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"weight_map": {"a": "m-1.safetensors"}}, None),
        ({"weight_map": {"a": "m-2.safetensors", "b.norm": "m-1.safetensors"}}, "is in m-2.safetensors by the index"),
        ({"weight_map": {"a": "m-1.safetensors", "b.norm": "m-3.safetensors"}}, "m-3.safetensors is not there"),
        ({"weight_map": {"a": "../m-1.safetensors"}}, "it must be a file beside the index"),
        ({"weight_map": {"a": "/etc/passwd"}}, "it must be a file beside the index"),
        ({"weight_map": {"a": 1}}, "it must be an object of tensors and their files"),
        ({"weight_map": None}, "weight_map is null"),
        ({"metadata": {"total_size": "x"}}, "total_size is 'x'"),
        (
            {"weight_map": {"a": "m-1.safetensors", "b.norm": "m-2.safetensors", "c": "m-2.safetensors"}},
            "c is in m-2.safetensors by the index and stands in none of the files",
        ),
    ],
)
def test_an_index_that_lies_is_one_line(tmp_path: Path, changes: Any, line: str | None) -> None:
    index = sharded(tmp_path / "m", **changes)
    if line is None:
        assert read_checkpoint(str(index)).bytes == 24
    else:
        assert line in wrong(index)


def test_folders_without_weights_and_twice_the_same_are_one_line(tmp_path: Path) -> None:
    assert "a folder without weight files" in wrong(tmp_path)
    safetensors(tmp_path / "a.safetensors", TWO)
    safetensors(tmp_path / "b.safetensors", TWO)
    assert "stands in a.safetensors too" in wrong(tmp_path)
    assert "ends in none of" in wrong(tmp_path / "x.bin")
    assert "cannot be read: No such file" in wrong(tmp_path / "x.safetensors")


# GGUF

SIZES = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.context_length": 128,
    "llama.embedding_length": 32,
    "llama.feed_forward_length": 96,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 10000.0,
    "tokenizer.ggml.tokens": [str(i) for i in range(64)],
}
BLOCK_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def llama_gguf() -> dict[str, tuple[int, tuple[int, ...], int]]:
    """The small Llama in Q4_0: 18 bytes for each 32 elements; norms in F32."""
    made: dict[str, tuple[int, tuple[int, ...], int]] = {}
    ends = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for name, (_, shape, _) in llama_tensors().items():
        stem = name.removesuffix(".weight")
        if stem in ends:
            spelled = ends[stem]
        else:
            _, _, layer, rest = stem.split(".", 3)
            spelled = f"blk.{layer}.{BLOCK_NAMES[rest]}"
        made[f"{spelled}.weight"] = (
            (0, shape, 4 * shape[0]) if len(shape) == 1 else (2, shape, elements(shape) // 32 * 18)
        )
    return made


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
    for number, (name, elements, size) in BLOCKS.items():
        theirs = constants.GGMLQuantizationType(number)
        assert (theirs.name, constants.GGML_QUANT_SIZES[theirs]) == (name, (elements, size))


@pytest.mark.parametrize(
    ("name", "bits"),
    # bits a weight that llama.cpp's own table of quantizations states
    [("Q4_0", 4.5), ("Q4_1", 5.0), ("Q5_0", 5.5), ("Q5_1", 6.0), ("Q8_0", 8.5), ("Q2_K", 2.625), ("Q3_K", 3.4375),
     ("Q4_K", 4.5), ("Q5_K", 5.5), ("Q6_K", 6.5625), ("IQ2_XXS", 2.0625), ("IQ2_XS", 2.3125), ("IQ3_XXS", 3.0625),
     ("IQ3_S", 3.4375), ("IQ4_NL", 4.5), ("IQ4_XS", 4.25), ("IQ1_S", 1.5625), ("IQ1_M", 1.75), ("IQ2_S", 2.5625),
     ("TQ1_0", 1.6875), ("TQ2_0", 2.0625), ("MXFP4", 4.25), ("BF16", 16), ("F32", 32)],
)  # fmt: skip
def test_blocks_have_the_stated_bits(name: str, bits: float) -> None:
    elements, size = next((e, s) for n, e, s in BLOCKS.values() if n == name)
    assert 8 * size / elements == bits


# against a config


def test_a_checkpoint_that_agrees(tmp_path: Path) -> None:
    model = read_config(LLAMA, "config", "model")
    for prefix in ("model.", "", "language_model.model.", "module.model."):
        held = {name: shape for name, (_, shape, _) in llama_tensors(prefix).items()}
        assert (check(model, held).agree, check(model, held).differences) == (21, ()), prefix


def test_every_sort_of_difference() -> None:
    model = read_config(LLAMA, "config", "model")
    held = {name: shape for name, (_, shape, _) in llama_tensors().items()}
    del held["model.layers.1.mlp.up_proj.weight"]
    held["model.layers.0.self_attn.q_proj.weight"] = (32, 31)
    held |= {"model.layers.0.self_attn.q_proj.bias": (32,), "model.layers.0.self_attn.rotary_emb.inv_freq": (4,)}
    held |= {"model.layers.2.eh_proj.weight": (32, 64), "model.layers.2.mlp.up_proj.weight": (96, 32)}
    found = check(model, held)
    assert [(d.what, d.name, d.expected, d.held) for d in found.differences] == [
        ("shape", "model.layers.0.self_attn.q_proj.weight", (32, 32), (32, 31)),
        ("missing", "model.layers.1.mlp.up_proj.weight", (96, 32), None),
        ("unexpected", "model.layers.0.self_attn.q_proj.bias", None, (32,)),
    ]
    # a factor of rotation is made anew, and what stands under eh_proj's layer predicts a further token
    assert (found.agree, found.recomputed, found.further) == (19, 1, 2)


def test_a_mask_is_made_anew_and_a_bias_is_not() -> None:
    model = read_config(LLAMA, "config", "model")
    held = {name: shape for name, (_, shape, _) in llama_tensors().items()}
    masks = {"h.0.attn.bias": (1, 1, 8, 8), "h.0.attn.masked_bias": ()}
    assert check(model, {**held, **masks}).recomputed == 2
    assert check(model, {**held, **masks}).differences == ()
    assert [d.name for d in check(model, {**held, "h.0.attn.bias": (32,)}).differences] == ["h.0.attn.bias"]


def test_a_tied_head_may_be_stored_or_not() -> None:
    model = read_config({**LLAMA, "tie_word_embeddings": True}, "config", "model")
    held = {name: shape for name, (_, shape, _) in llama_tensors().items()}
    assert check(model, held).differences == ()
    del held["lm_head.weight"]
    assert check(model, held).differences == ()
    assert [d.name for d in check(model, {**held, "lm_head.weight": (9, 32)}).differences] == ["lm_head.weight"]
    untied = check(read_config(LLAMA, "config", "model"), held)
    assert [(d.what, d.name) for d in untied.differences] == [("missing", "lm_head.weight")]


def test_names_alone_are_compared_by_name() -> None:
    model = read_config(LLAMA, "config", "model")
    held: dict[str, Any] = dict.fromkeys(llama_tensors())
    assert check(model, held).differences == ()
    del held["model.norm.weight"]
    assert [d.what for d in check(model, held).differences] == ["missing"]


FP8 = {"quant_method": "fp8", "weight_block_size": [16, 32]}


def test_a_quantized_checkpoint_is_compared_tensor_by_tensor() -> None:
    model = read_config({**LLAMA, "quantization_config": FP8}, "config", "model")
    held: dict[str, Any] = {}
    for name, (_, shape, _) in llama_tensors().items():
        held[name] = shape
        if "proj" in name:
            held[f"{name}_scale_inv"] = (shape[0] // 16, shape[1] // 32)
    assert check(model, held).differences == ()
    del held["model.layers.1.mlp.up_proj.weight_scale_inv"]
    assert [d.name for d in check(model, held).differences] == ["model.layers.1.mlp.up_proj.weight_scale_inv"]


def test_a_format_that_is_not_known_cannot_be_checked() -> None:
    model = read_config({**LLAMA, "quantization_config": {"quant_method": "hqq"}}, "config", "model")
    with pytest.raises(SettingError, match="model cannot be checked: its weights' format is not known"):
        check(model, {})


MOE = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_experts_per_tok": 2,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
SAVED: dict[str, dict[str, Any]] = {
    "llama": {k: v for k, v in MOE.items() if k != "num_experts_per_tok"},
    "qwen3_moe": {**MOE, "num_experts": 4, "moe_intermediate_size": 24, "head_dim": 8},
    "mixtral": {**MOE, "num_local_experts": 4},
    "phimoe": {**MOE, "num_local_experts": 4},
    "minimax_m2": {**MOE, "num_local_experts": 4, "head_dim": 8},
    "gpt_oss": {**MOE, "num_local_experts": 4, "head_dim": 8},
    "granitemoe": {**MOE, "num_local_experts": 4},
    "hy_v3": {**MOE, "num_experts": 4, "moe_intermediate_size": 24, "head_dim": 8},
    "deepseek_v3": {
        **MOE, "n_routed_experts": 4, "n_group": 2, "topk_group": 1, "kv_lora_rank": 16, "q_lora_rank": 24,
        "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16, "first_k_dense_replace": 1,
        "moe_intermediate_size": 24, "num_key_value_heads": 4,
    },
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 64, "n_positions": 16},
    "vit": {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
            "image_size": 8, "patch_size": 4},
    "gpt_neox": {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
                 "num_attention_heads": 4},
}  # fmt: skip


@pytest.mark.parametrize("model_type", SAVED)
def test_what_the_library_saves_is_what_the_config_implies(tmp_path: Path, model_type: str) -> None:
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = transformers.AutoConfig.for_model(model_type, **SAVED[model_type])
        made = getattr(transformers, "AutoModel" if model_type == "vit" else "AutoModelForCausalLM").from_config(config)
        made.save_pretrained(tmp_path)
    held = read_checkpoint(str(tmp_path))
    names = shapes(held)
    model = load(str(tmp_path))
    found = check(model, names)
    assert found.differences == ()
    assert found.agree == len(names)
    # the library's own names, where it packs what files hold one by one
    buffers = [(name, buffer) for name, buffer in made.named_buffers() if "e_score_correction" in name]
    packed = {name: tuple(tensor.shape) for name, tensor in [*made.named_parameters(), *buffers]}
    assert check(model, packed).differences == ()
    largest = max(names, key=lambda name: elements(names[name] or ()))
    cut = {name: shape for name, shape in names.items() if name != largest}
    assert [(d.what, d.name) for d in check(model, cut).differences] == [("missing", largest)]


# the command


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command_reports_a_checkpoint(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(safetensors(tmp_path / "m.safetensors", llama_tensors()))
    for words in (("checkpoint", path), (path,), (str(tmp_path),)):
        code, out, err = run(capsys, *words)
        assert (code, err) == (0, "")
        assert "57,664 B" in out
        assert "attention" in out
    code, out, _ = run(capsys, "checkpoint", path, "--json")
    made = json.loads(out)["checkpoint"]
    assert made["bytes"] == 57_664
    assert made["by_dtype"] == {"F16": {"tensors": 21, "elements": 28_832, "bytes": 57_664}}
    assert sum(part["bytes"] for part in made["by_part"].values()) == 57_664
    assert made["by_part"]["norm"]["tensors"] == 5


def test_the_command_checks_a_checkpoint(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(LLAMA))
    path = str(safetensors(tmp_path / "m.safetensors", llama_tensors()))
    code, out, err = run(capsys, str(config), "--check", path)
    assert (code, err) == (0, "")
    assert "21 tensors agree · no difference" in out
    config.write_text(json.dumps({**LLAMA, "num_hidden_layers": 3}))
    code, out, err = run(capsys, str(config), "--check", path)
    assert (code, err) == (1, "")
    assert "  missing      model.layers.2.mlp.up_proj.weight  96×32" in out
    code, out, _ = run(capsys, str(config), "--check", path, "--json")
    found = json.loads(out)["check"]
    assert code == 1
    assert len(found["differences"]) == 9
    assert {one["what"] for one in found["differences"]} == {"missing"}
    code, out, err = run(capsys, str(config), "--check", str(tmp_path / "nothing.gguf"))
    assert (code, out) == (2, "")
    assert "nothing.gguf: cannot be read" in err


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


def test_parts_go_by_names() -> None:
    for name, part in {
        "model.embed_tokens.weight": "embedding",
        "transformer.wte.weight": "embedding",
        "model.layers.3.self_attn.q_proj.weight": "attention",
        "blk.3.attn_q.weight": "attention",
        "blk.3.attn_norm.weight": "norm",
        "model.layers.3.mlp.experts.7.up_proj.weight": "experts",
        "blk.3.ffn_gate_exps.weight": "experts",
        "blk.3.ffn_gate_inp.weight": "router",
        "model.layers.3.mlp.gate.weight": "router",
        "model.layers.3.mlp.up_proj.weight": "mlp",
        "lm_head.weight": "head",
        "output.weight": "head",
        "backbone.layers.0.mixer.in_proj.weight": "mixer",
        "vision_tower.blocks.0.attn.q.weight": "tower",
        "something": "other",
    }.items():
        assert part_of(name) == part, name
