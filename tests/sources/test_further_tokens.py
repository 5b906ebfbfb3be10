"""Modules for further tokens (multi-token prediction): what they store, cost and keep, and how they are asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sparse_configs import V3, model

import assay
from assay.cli import main
from assay.errors import SettingError, SourceError
from assay.readings.count import count
from assay.readings.tensors import tensors
from assay.sources.huggingface import read_config


def test_further_tokens_by_hand() -> None:
    """One more sparse layer, a projection of 2 d, three norms, the embedding and the head once more."""
    plain, more = (
        model(V3, num_nextn_predict_layers=2),
        read_config({**V3, "num_nextn_predict_layers": 2}, "c", "m", mtp=True),
    )
    a, b = count(plain, tokens=13), count(more, tokens=13)
    sparse = next(segment for segment in plain.segments if segment.name == "experts")
    row = next(row for row in a.rows if row.name == "experts")
    own = row.parameters.total // len(sparse.layers)
    assert b.parameters.total - a.parameters.total == 2 * (own + 2 * 64 * 64 + 3 * 64 + 2 * 99 * 64)
    work = row.flops.total // len(sparse.layers) + 2 * 13 * (2 * 64 * 64 + 64 * 99)
    assert b.flops.total - a.flops.total == 2 * work
    assert more.layers == plain.layers == 6
    paths = {entry.path: entry.layers for entry in tensors(more)}
    assert paths["model.layers.{i}.eh_proj.weight"] == (6, 7)


def test_further_tokens_of_published_models() -> None:
    """DeepSeek-V3's files hold 680,571,043,840 elements in fp8 and 3,918,786,560 in bf16 (model card: 685B)."""
    config = {"model_type": "deepseek_v3", "num_nextn_predict_layers": 1}
    found = count(read_config(config, "config", "model", mtp=True), tokens=1).parameters.total
    assert found == 680_571_043_840 + 3_918_786_560


def test_glm_counts_its_module() -> None:
    """GLM-4.5 (arXiv:2508.06471, table 1): 355B with its module and without word embeddings and output layer."""
    config = {
        "model_type": "glm4_moe",
        "hidden_size": 5120,
        "num_hidden_layers": 92,
        "first_k_dense_replace": 3,
        "num_attention_heads": 96,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 12288,
        "n_routed_experts": 160,
        "moe_intermediate_size": 1536,
        "num_experts_per_tok": 8,
        "use_qk_norm": True,
        "attention_bias": True,
        "num_nextn_predict_layers": 1,
    }
    found = count(read_config(config, "config", "model", mtp=True), tokens=1).parameters
    assert round(found.non_embedding / 1e9) == 355
    assert found.active - found.embedding - found.head == pytest.approx(32e9, rel=0.0187)


def test_a_module_has_a_cache_of_its_own() -> None:
    a = count(model(V3), tokens=8, cache="bf16").cache
    b = count(read_config({**V3, "num_nextn_predict_layers": 1}, "c", "m", mtp=True), tokens=8, cache="bf16").cache
    assert b.bytes - a.bytes == 2 * 8 * 20


def test_no_module_is_an_error() -> None:
    with pytest.raises(SourceError, match="num_nextn_predict_layers is missing; it must be an integer of at least 1"):
        read_config(V3, "config", "model", mtp=True)
    with pytest.raises(SettingError, match="llama is described without modules for further tokens"):
        read_config({"model_type": "llama"}, "config", "model", mtp=True)
    with pytest.raises(SettingError, match="described without modules"):
        read_config({**V3, "num_nextn_predict_layers": 1}, "config", "model", cls="base", mtp=True)


def test_further_tokens_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the library and by the command; a description has none."""
    config = {**V3, "num_nextn_predict_layers": 1}
    found = assay.count(assay.load(config, mtp=True), tokens=8).parameters.total
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    assert main([str(file), "--mtp", "--tokens", "8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"]["total"] == found
    with pytest.raises(SettingError, match="is a description, which has no modules for further tokens"):
        assay.load("gpt-2", mtp=True)
