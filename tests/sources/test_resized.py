"""Other sizes of the same architecture: what a key changes, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import assay
from assay.sources.resized import configured, described

SMALL = """
vocab = 1000
width = 64
layers = 2

[attention]
heads = 4

[mlp]
width = 96
"""

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 1000,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "bos_token_id": 1,
}


def total(model: assay.Model) -> int:
    return int(assay.count(model, tokens=1).parameters.total)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.mark.parametrize("sizes", [{"width": 128}, {"layers": 7}, {"attention.heads": 8}, {"mlp.width": 512}])
def test_a_size_does_as_if_the_file_said_it(small: Path, sizes: dict[str, int]) -> None:
    ((key, value),) = sizes.items()
    table, _, last = key.rpartition(".")
    old = {"width": "width = 64", "layers": "layers = 2", "attention.heads": "heads = 4", "mlp.width": "width = 96"}
    written = small.with_name("written.toml")
    written.write_text(SMALL.replace(old[key], f"{last} = {value}", 1))
    assert written.read_text() != SMALL
    changed = assay.load(small, sizes=sizes)
    assert changed.segments == assay.load(written).segments
    assert (changed.layers, changed.width) == (assay.load(written).layers, assay.load(written).width)
    assert table in ("", "attention", "mlp")


def test_a_key_left_to_its_default_may_be_given(small: Path) -> None:
    shared = assay.load(small, sizes={"attention.kv_heads": 1})
    fewer = 2 * 2 * 64 * (64 - 16)  # layers, keys and values, rows, columns of the three heads that went
    assert total(assay.load(small)) - total(shared) == fewer


def test_several_at_once_and_none() -> None:
    model = assay.load("gpt-2", sizes={"context": 16384, "layers": 1})
    assert (model.positions, model.layers) == (16384, 1)
    assert assay.load("gpt-2", sizes={}) == assay.load("gpt-2")


def test_a_config_takes_other_sizes() -> None:
    changed = assay.load(CONFIG, sizes={"hidden_size": 128, "num_hidden_layers": 3})
    written = assay.load({**CONFIG, "hidden_size": 128, "num_hidden_layers": 3})
    assert changed.segments == written.segments
    assert CONFIG["hidden_size"] == 64, "what was given stays as it was"


def test_a_table_within_a_config() -> None:
    data = {"text_config": {"hidden_size": 64}, "n": 1}
    assert configured(data, {"text_config.hidden_size": 8}, "config") == {"text_config": {"hidden_size": 8}, "n": 1}
    assert data["text_config"] == {"hidden_size": 64}
    assert described({"a": {"b": 1}}, {"a.c.d": 2}, "x") == {"a": {"b": 1, "c": {"d": 2}}}


def test_a_report_says_what_was_set() -> None:
    model = assay.load("llama-3-8b", sizes={"width": 2048})
    assert model.name == "Llama 3 8B with width 2048"
    assert model.notes == ("sizes set, not of the source: width 2048",)


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ({"width": 2000}, "llama-3-8b.toml with width 2000: width is 2000; it must be a multiple of attention.heads"),
        ({"heads": 64}, "llama-3-8b.toml with heads 64: heads is no key of a description; did you mean head"),
        ({"name": 64}, "name is 64; it must be a string"),
        ({"attention": 64}, "llama-3-8b.toml: attention cannot be set: it is no size"),
        ({"width.x": 2}, "llama-3-8b.toml: width.x cannot be set: width is 4096, not a table"),
        ({"width": True}, "llama-3-8b.toml: width cannot be set to true; it must be an integer"),
        ({"width": -1}, "llama-3-8b.toml: width cannot be set to -1; it must be an integer"),
        ({"width": "2k"}, "llama-3-8b.toml: width cannot be set to '2k'; it must be an integer"),
        ({"": 1}, "llama-3-8b.toml: '' is no key; a key is a word such as width or attention.heads"),
        ({"layers": 0}, "layers is 0; it must be"),
    ],
)
def test_refusals_of_descriptions(sizes: dict[str, Any], says: str) -> None:
    with pytest.raises(assay.AssayError, match=says):
        assay.load("llama-3-8b", sizes=sizes)


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ({"hiden_size": 2}, "config: hiden_size cannot be set: there is no such key; did you mean hidden_size?"),
        ({"model_type": 2}, "config: model_type cannot be set: it is 'llama', no integer"),
        ({"text_config.x": 2}, "config: text_config.x cannot be set: there is no object text_config"),
        ({"bos_token_id": 2}, "config with bos_token_id 2: bos_token_id cannot be set: it changes no figure"),
        ({"hidden_size": 66}, "config with hidden_size 66: hidden_size is 66; it must be"),
    ],
)
def test_refusals_of_configs(sizes: dict[str, Any], says: str) -> None:
    with pytest.raises(assay.AssayError, match=says):
        assay.load(CONFIG, sizes=sizes)
