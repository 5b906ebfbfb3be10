"""Whatever a file holds, a user meets one line that names it, and never a traceback or a guess."""

from __future__ import annotations

import io
import json
import os
import re
import socket
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thirds import thirds

import assay
from assay.sources.config import Config
from assay.sources.families import FAMILIES
from assay.sources.jsontext import DEPTH, LIMIT

LLAMA = {
    "model_type": "llama",
    "vocab_size": 100,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
ODD: list[Any] = [None, -1, 0, 1.5, "x", [], {}, 10**30, True, 2, 7, "", [None], {"x": 1}, [1], -(10**30), 1e300]


def line(error: BaseException) -> str:
    """The message, seen to be one short printable line."""
    said = str(error)
    assert said.isprintable(), repr(said)
    assert 0 < len(said) < 4000
    return said


def written(folder: Path, text: str | bytes) -> str:
    path = folder / "config.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def refused(what: Any, match: str) -> None:
    with pytest.raises(assay.SourceError, match=match) as caught:
        assay.load(what)
    line(caught.value)


TEXTS: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "config.json: empty; a config is one JSON object"),
    "blank": (" \n\t", "config.json: empty"),
    "truncated": (
        '{"model_type": "llama", "hidden_size":',
        r"not JSON: .* at line 1, column 39; the text ends too early",
    ),
    "unclosed": ('{"model_type": "llama"', "the text ends too early"),
    "trailing comma": ('{"a": 1,}', "not JSON: .* at line 1, column 9; found '}'"),
    "two values": ("{} {}", "not JSON: Extra data at line 1, column 4"),
    "comment": ("{} // x", "not JSON"),
    "list": ("[1, 2]", "holds a list; a config is one JSON object"),
    "string": ('"llama"', "holds a string"),
    "number": ("3", "holds a number"),
    "null": ("null", "holds null"),
    "true": ("true", "holds true or false"),
    "NaN": ('{"a": NaN}', "json: a: NaN is not JSON; a number must be finite"),
    "infinity": ('{"a": -Infinity}', "a is -inf; a number must be finite"),
    "infinity within": ('{"a": {"b": Infinity}}', r"a\.b is inf; a number must be finite"),
    "NaN in a list": ('{"a": [NaN]}', "json: NaN is not JSON"),
    "1e999": ('{"a": 1e999}', "json: a: 1e999 is beyond any number"),
    "duplicate": ('{"hidden_size": 1, "hidden_size": 2}', "hidden_size stands twice in one object"),
    "duplicate within": ('{"a": {"x\\ny": 1, "x\\ny": 2}}', r"x\\ny stands twice"),
    "deep list": ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", f"nested deeper than {DEPTH} levels"),
    "deep object": ('{"a":' * 500 + "1" + "}" * 500, f"nested deeper than {DEPTH} levels"),
    "huge integer": ('{"hidden_size": ' + "9" * 100_000 + "}", "json: hidden_size: an integer of 100000 digits"),
    "zero byte": ('{"a": 1}\x00', "binary, byte 8 is zero"),
    "utf-16": ('{"a": 1}'.encode("utf-16"), "UTF-16; save it as UTF-8"),
    "latin-1": ('{"a": "é"}'.encode("latin-1"), "byte 7 is no UTF-8"),
    "pickle": (b"\x80\x02}q\x00.", "a pickle"),
    "gguf": (b"GGUF\x03\x00\x00\x00", "a GGUF file"),
    "zip": (b"PK\x03\x04....", "a zip archive"),
    "safetensors": (b"\x10\x00\x00\x00\x00\x00\x00\x00{}", "binary, byte 1 is zero"),
    "no type": ("{}", "model_type is missing"),
    "null type": ('{"model_type": null}', "model_type is null"),
    "wrong type": ('{"model_type": 3}', "model_type is 3; it must be a string"),
    "control characters": (
        '{"model_type": "a\\u001b[31m\\nb"}',
        r"model_type is 'a\\x1b\[31m\\nb', which is not known",
    ),
    "long type": (json.dumps({"model_type": "x" * 10**6}), r"model_type is 'xxx[x]*\.\.\., which is not known"),
    "half a character": ('{"model_type": "\\ud800"}', r"model_type is '\\ud800'"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text(name: str, tmp_path: Path) -> None:
    text, match = TEXTS[name]
    refused(written(tmp_path, text), match)


def test_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbf" + json.dumps(LLAMA).encode())
    assert assay.load(path).layers == LLAMA["num_hidden_layers"]


def test_an_infinite_bound_of_a_list_is_looked_at_where_it_is_read() -> None:
    assert assay.load({**LLAMA, "time_step_limit": [0.0, float("inf")]}, allow="time_step_limit").layers == 2
    refused({**LLAMA, "time_step_limit": [0.0, float("inf")]}, r"time_step_limit is \[0\.0, inf\]: not known")
    refused({**LLAMA, "time_step_limit": [float("nan")]}, "time_step_limit is nan; a number must be finite")


def test_a_hundred_megabytes_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)  # no blocks on the disk
    monkeypatch.setattr("builtins.open", None)
    refused(str(path), "104,857,600 bytes; a config is a few kilobytes")


def test_a_file_that_grows_while_it_is_read_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, b" " * (LIMIT + 10))
    real = os.stat(path)
    small = os.stat_result((*real[:6], 10, *real[7:]))
    monkeypatch.setattr("assay.sources.files.os.stat", lambda *_: small)
    refused(path, "larger than 16 MiB")


def test_folder_without_a_config(tmp_path: Path) -> None:
    refused(tmp_path, "a folder without a config.json; it holds no other config either")
    (tmp_path / "params.json").write_text("{}")
    refused(tmp_path, "a folder without a config.json; it holds params.json: name one")


def test_folder_called_config(tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()
    refused(tmp_path, r"config\.json: a folder; it must be a file")


def test_broken_link(tmp_path: Path) -> None:
    (tmp_path / "config.json").symlink_to(tmp_path / "gone")
    refused(tmp_path, r"config\.json: a link to .*gone, where nothing is")
    refused(tmp_path / "config.json", "a link to .*gone, where nothing is")


def test_link_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "config.json").symlink_to(tmp_path / "config.json")
    refused(tmp_path, "cannot be read: Too many levels of symbolic links")


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    path = written(tmp_path, json.dumps(LLAMA))
    monkeypatch.setattr("builtins.open", closed)  # not by its mode: a privileged user reads any file
    refused(path, "cannot be read: Permission denied")


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero", "/dev/random"])
def test_device(device: str) -> None:
    if not Path(device).exists():
        pytest.skip(f"{device} is absent here")
    refused(device, "a device, not a file; - reads standard input")


def test_pipe_and_socket(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "a pipe, not a file")
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(str(tmp_path / "s"))
        refused(tmp_path / "s", "a socket, not a file")


@pytest.mark.parametrize("name", ["../../../x/config.json", "..", "a/../../b", "org/../name", "x..y/z"])
def test_name_with_dots(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    refused(name, "no such file or folder|a folder without a config")


@pytest.mark.parametrize(
    "name", ["", "a b", "a\x00b", "a\x1b[2J", "x" * 5000, "\ud800", "é", "a/b/c", "a--b/c", "@x", "a@"]
)
def test_nonsense_name(name: str) -> None:
    refused(name, "no file, no preset|no such file")


def test_nonsense_name_shows_the_nearest_presets() -> None:
    refused("lama-3-8b", r"presets like it: llama-3-8b, ")
    refused("some-org/Mixtral-8x7B", "presets like it: mixtral-8x7b")


def test_a_preset_by_its_name_in_capitals() -> None:
    assert assay.load("Llama-3-8B") == assay.load("llama-3-8b")


@pytest.mark.parametrize("what", [None, 3, 1.5, b"x", [], object(), int, True])
def test_other_things(what: Any) -> None:
    refused(what, "cannot be loaded; a name, a path, a dict|is bytes")


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("hidden_size", None, "config: hidden_size is null; it must be an integer of at least 1"),
        ("hidden_size", -8, "hidden_size is -8; it must be an integer of at least 1"),
        ("hidden_size", 0, "hidden_size is 0; it must be an integer of at least 1"),
        ("hidden_size", 32.0, "hidden_size is 32.0; it must be an integer of at least 1"),
        ("hidden_size", "32", "hidden_size is '32'; it must be an integer of at least 1"),
        ("hidden_size", True, "hidden_size is true; it must be an integer of at least 1"),
        ("hidden_size", 10**30, r"hidden_size is 10+; it must be an integer of at most 10+"),
        ("hidden_size", [32], r"hidden_size is \[32\]; it must be"),
        ("hidden_size", 33, "hidden_size is 33; it must be a multiple of num_attention_heads, 4"),
        ("num_key_value_heads", 3, "num_attention_heads is 4; it must be a multiple of num_key_value_heads, 3"),
        ("num_hidden_layers", 10**9, "num_hidden_layers is 1000000000; it must be an integer of at most 100000"),
        ("hidden_act", "nonsense", "hidden_act is 'nonsense'; it must be one of gelu,"),
        ("rms_norm_eps", "x", "rms_norm_eps is 'x'; it must be a number"),
        ("rms_norm_eps", float("nan"), "rms_norm_eps is nan; a number must be finite"),
        ("rms_norm_eps", 10**400, "rms_norm_eps is an integer of about .* digits; it must be a number"),
        ("tie_word_embeddings", 1, "tie_word_embeddings is 1; it must be true or false"),
        ("architectures", "LlamaForCausalLM", "architectures is 'LlamaForCausalLM'; it must be a list of class names"),
        ("quantization_config", 4, "quantization_config is 4; it must be an object"),
        ("torch_dtype", 16, "torch_dtype is 16; it must be a string"),
        ("hiden_act", "silu", "might change the model; did you mean hidden_act\\? --allow hiden_act \\(in"),
        ("memory", 4, "memory is 4: not known for llama, and might change the model; --allow memory"),
        ("bad\nkey", {"x": 1}, r"bad\\nkey is {'x': 1}: not known"),
        ("add_cross_attention", True, "is true: not known for llama unless add_cross_attention false, and might"),
        ("pruned_heads", {"0": [1]}, "pruned_heads is .* not known for llama unless"),
        ("x", {1, 2}, r"x is \[1, 2\]: not known"),
        ("x", object(), "x is a object; it must be a value that JSON can hold"),
    ],
)  # fmt: skip
def test_value(key: str, value: Any, match: str) -> None:
    refused({**LLAMA, key: value}, match)


def test_values_that_odd_arithmetic_would_meet() -> None:
    refused({**LLAMA, "partial_rotary_factor": 1e308}, r"partial_rotary_factor is 1e\+308; it must be a number above 0")
    refused({"model_type": "minicpm3", "n_routed_experts": 8}, "n_routed_experts is 8: not known for minicpm3")


def test_an_integer_too_long_to_print() -> None:
    refused({**LLAMA, "hidden_size": 10**5000}, "hidden_size is an integer of about 5000 digits; it must be")
    refused({**LLAMA, "other": [10**5000]}, "other is a list: not known for llama")


def test_many_unknown_keys_make_one_short_line() -> None:
    with pytest.raises(assay.SourceError, match="and 94 more keys: not known for llama") as caught:
        assay.load({**LLAMA, **{f"odd_{i}": "y" * 10**5 for i in range(100)}})
    assert len(line(caught.value)) < 1000


def test_a_dict_within_itself() -> None:
    loop: dict[str, Any] = dict(LLAMA)
    loop["quantization_config"] = loop
    refused(loop, "nested deeper than")


MISSING = re.compile(r"config: (?P<key>[\w.]+) is missing; it must be (?P<what>.*)")


def fitting(what: str) -> Any:
    """A value that is what a message says is allowed: an integer, a list of words, true or false."""
    if what.startswith("an integer"):
        return 8
    if what.startswith("one of"):
        return what.removeprefix("one of ").partition(",")[0]
    listed = re.fullmatch(r"a list of (\d+) items, each one of (\w+),.*", what)
    return [listed[2]] * int(listed[1]) if listed else "true" in what


# config classes whose own values do not fit each other, here and in the library: one that does
BROKEN: dict[str, dict[str, Any]] = {
    "aya_vision": {"vision_config": {"num_attention_heads": 16}},  # 14 heads in a width of 1,152
}


def test_what_is_broken_is_so_without_help() -> None:
    for model_type in BROKEN:
        with pytest.raises(assay.SourceError, match="it must be a multiple of"):
            assay.load({"model_type": model_type})


@lru_cache
def smallest(model_type: str) -> dict[str, Any]:
    """The config that holds nothing but its type, and the keys that its config class has no value for."""
    config: dict[str, Any] = {"model_type": model_type, **deepcopy(BROKEN.get(model_type, {}))}
    for _ in range(40):
        try:
            assay.load(config)
        except assay.SourceError as error:
            lacking = MISSING.fullmatch(str(error))
            if lacking is None:
                raise
            put(config, lacking["key"], fitting(lacking["what"]))
        else:
            return config
    raise AssertionError(config)


def put(config: dict[str, Any], path: str, value: Any) -> None:
    """Set a key, `table.key` within a table."""
    *tables, key = path.split(".")
    for table in tables:
        config = config.setdefault(table, {})
    config[key] = value


@lru_cache
def keys_of(model_type: str) -> tuple[str, ...]:
    """The keys that a family reads from its smallest config."""
    c = Config(smallest(model_type), "config")
    FAMILIES[model_type].read(c)
    return tuple(sorted(c.used - {"model_type"}))


def survives(config: dict[str, Any]) -> bool:
    """True where the config is read and counted; False where one line refuses it. Anything else is a failure."""
    try:
        counted = assay.count(assay.load(config), tokens=3)
    except assay.AssayError as error:
        line(error)
        return False
    figures = [counted.parameters.total, counted.flops.total, counted.cache.bytes, counted.weight_bytes]
    if counted.weight_bytes is None:
        figures.pop()  # in a format that the config names and nobody knows
        assert config.get("quantization_config") is not None
    assert all(type(figure) is int and figure >= 0 for figure in figures)
    assert sum(counted.parameters.by_part.values()) == counted.parameters.total
    assert sum(counted.flops.by_part.values()) == counted.flops.total
    return True


@pytest.mark.parametrize("model_type", thirds(sorted(FAMILIES)))
def test_every_key_of_a_family_refuses_or_reads_any_value(model_type: str) -> None:
    assert survives(smallest(model_type))
    for key in keys_of(model_type):
        for odd in ODD:
            survives({**smallest(model_type), key: odd})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | st.sampled_from(ODD),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_mutated_configs(data: st.DataObject) -> None:
    model_type = data.draw(st.sampled_from(sorted(FAMILIES)))
    keys = [*keys_of(model_type), "architectures", "id2label", "auto_map", "dtype", "quantization_config", "other"]
    changed = data.draw(st.dictionaries(st.sampled_from(keys), VALUES, min_size=1, max_size=4))
    survives({**smallest(model_type), **changed})


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes(raw: bytes) -> None:
    from assay.sources.jsontext import parse

    try:
        assert isinstance(parse(raw, "config.json"), dict)
    except assay.SourceError as error:
        line(error)


@given(st.integers(0, 400), st.sampled_from(["", "\x00", "}", "]", '"', ",", "NaN", "\\"]))
def test_cut_and_spliced_text(at: int, piece: str) -> None:
    from assay.sources.jsontext import parse

    text = json.dumps({**LLAMA, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}, "eos_token_id": [1, 2]})
    for changed in (text[:at] + piece, text[:at] + piece + text[at:]):
        try:
            survives(parse(changed.encode(), "config.json"))
        except assay.SourceError as error:
            line(error)


def test_survival_is_seen_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.sources.huggingface.finish", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError, match="zero"):
        survives(LLAMA)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"model_type": "llama", "hidden_size": 7}')))
    refused("-", "standard input: hidden_size is 7; it must be a multiple")
    monkeypatch.setattr("sys.stdin", None)
    refused("-", "there is no standard input")


@pytest.mark.parametrize(
    ("model_type", "changed"),
    [
        ("deepseek_v2", {"first_k_dense_replace": 0, "num_experts_per_tok": 6, "mlp_bias": False}),
        ("deepseek_v2", {"first_k_dense_replace": 32, "num_experts_per_tok": 6, "n_group": 8, "norm_topk_prob": True}),
        ("deepseek_v3", {"first_k_dense_replace": 0, "intermediate_size": 18432}),
        ("qwen3_next", {"num_experts": 0, "norm_topk_prob": True, "moe_intermediate_size": 512}),
        ("chatglm", {"multi_query_attention": False, "multi_query_group_num": 2}),
    ],
)
def test_a_key_of_layers_that_a_model_lacks_is_no_unknown_key(model_type: str, changed: dict[str, Any]) -> None:
    filled = {key: 64 for key in keys_of(model_type) if key == "intermediate_size"}
    assert survives({**smallest(model_type), **filled, **changed})
