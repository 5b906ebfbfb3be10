"""Headers of safetensors and their indices: what they say, and what is refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from commandline import run
from headers import TWO, llama_tensors, raw_safetensors, safetensors, wrong
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import SourceError
from assay.sources.checkpoints import read_checkpoint
from assay.sources.checkpoints.parts import part_of, totals


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
        (struct.pack("<Q", 2) + b"{]", "not JSON"),
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
    assert "no such file or folder" in wrong(tmp_path / "x.bin")
    (tmp_path / "x.bin").write_bytes(b"")
    assert "ends in none of" in wrong(tmp_path / "x.bin")
    assert "cannot be read: No such file" in wrong(tmp_path / "x.safetensors")


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
