"""Presets run: each is built or refused in one line, and shrunk it makes what the config of the same sizes makes."""

from __future__ import annotations

import re
from typing import Any

import pytest

import assay
from assay.sources.descriptions import read_table
from assay.sources.presets import presets, table

torch = pytest.importorskip("torch")

# what is changed of a preset, and the config of the same sizes; scalings keep their factors from a shorter context on
YARN = {"rope_type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}
LATENT = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "kv_lora_rank": 24,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 12,
    "q_lora_rank": 20,
    "intermediate_size": 48,
    "moe_intermediate_size": 24,
    "n_routed_experts": 16,
    "num_experts_per_tok": 3,
    "first_k_dense_replace": 1,
}


def latent_preset(shared: int) -> dict[str, Any]:
    """The same sizes as a description has them; `shared` is the width of the experts that all tokens pass."""
    return {
        "first": ["dense"],
        "latent": {"heads": 4, "latent": 24, "plain": 8, "rotary": 8, "value_width": 12, "query_rank": 20},
        "positions": {"scaling": {"original_max_position_embeddings": 16}},
        "layer": {
            "dense": {"mlp": {"width": 48}},
            "sparse": {"moe": {"experts": 16, "chosen": 3, "width": 24, "shared": shared}},
        },
    }


SHRUNK: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "opt-350m": (
        {
            "embedding": {"narrow": 16},
            "attention": {"heads": 4},
            "mlp": {"width": 48},
        },
        {
            "model_type": "opt",
            "hidden_size": 64,
            "word_embed_proj_dim": 16,
            "num_attention_heads": 4,
            "ffn_dim": 48,
            "do_layer_norm_before": False,
        },
    ),
    "roberta-base": (
        {"attention": {"heads": 4}, "mlp": {"width": 48}},
        {
            "model_type": "roberta",
            "hidden_size": 64,
            "num_attention_heads": 4,
            "intermediate_size": 48,
            "max_position_embeddings": 66,
            "type_vocab_size": 1,
            "layer_norm_eps": 1e-5,
        },
    ),
    "m2m100-418m": (
        {"embedding": {"scale": 8.0}, "attention": {"heads": 4}, "mlp": {"width": 48}},
        {
            "model_type": "m2m_100",
            "d_model": 64,
            "encoder_layers": 4,
            "decoder_layers": 4,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
        },
    ),
    "llama-3.1-8b": (
        {
            "attention": {"heads": 4, "kv_heads": 2},
            "mlp": {"width": 48},
            "positions": {"scaling": {"original_max_position_embeddings": 16}},
        },
        {
            "model_type": "llama",
            "hidden_size": 64,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "intermediate_size": 48,
            "rms_norm_eps": 1e-5,
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 5e5,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16,
            },
        },
    ),
    "llama-4-scout": (
        {
            "attention": {"heads": 4, "kv_heads": 2, "head_width": 16},
            "moe": {"experts": 3, "width": 24, "shared": 24},
            "layer": {
                "chunked": {
                    "attention": {"chunk": 4},
                    "positions": {"scaling": {"original_max_position_embeddings": 16}},
                },
                "global": {"attention": {"temper": ["next_log", 3, 0.1]}},
            },
        },
        {
            "model_type": "llama4_text",
            "hidden_size": 64,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "intermediate_size": 24,
            "intermediate_size_mlp": 32,
            "num_local_experts": 3,
            "interleave_moe_layer_step": 1,
            "attention_chunk_size": 4,
            "floor_scale": 3,
            "attn_scale": 0.1,
            "rms_norm_eps": 1e-5,
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 5e5,
                "factor": 16.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 1.0,
                "original_max_position_embeddings": 16,
            },
        },
    ),
    "gpt-oss-20b": (
        {
            "attention": {"heads": 4, "kv_heads": 2, "head_width": 16},
            "moe": {"experts": 5, "chosen": 2, "width": 24},
            "positions": {"scaling": {"original_max_position_embeddings": 16}},
            "layer": {"local": {"attention": {"window": 4}}},
        },
        {
            "model_type": "gpt_oss",
            "hidden_size": 64,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "intermediate_size": 24,
            "num_local_experts": 5,
            "num_experts_per_tok": 2,
            "sliding_window": 4,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 150000.0,
                "factor": 32.0,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "truncate": False,
                "original_max_position_embeddings": 16,
            },
        },
    ),
    "deepseek-v3": (
        latent_preset(shared=24),
        {
            "model_type": "deepseek_v3",
            **LATENT,
            "n_shared_experts": 1,
            "rms_norm_eps": 1e-6,
            "rope_parameters": {**YARN, "rope_theta": 10000.0, "original_max_position_embeddings": 16},
        },
    ),
    "deepseek-v2": (
        latent_preset(shared=48),
        {
            "model_type": "deepseek_v2",
            **LATENT,
            "n_shared_experts": 2,
            "topk_method": "group_limited_greedy",
            "n_group": 8,
            "topk_group": 3,
            "routed_scaling_factor": 16.0,
            "rms_norm_eps": 1e-6,
            "rope_parameters": {
                **YARN,
                "mscale": 0.707,
                "mscale_all_dim": 0.707,
                "rope_theta": 10000.0,
                "original_max_position_embeddings": 16,
            },
        },
    ),
}
COMMON = {"vocab": 97, "width": 64, "layers": 4, "context": 64}
SAID = {"vocab_size": 97, "num_hidden_layers": 4, "max_position_embeddings": 64}


def over(below: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    """Tables laid over others."""
    made = dict(below)
    for key, value in changed.items():
        made[key] = over(below.get(key, {}), value) if isinstance(value, dict) else value
    return made


@pytest.mark.parametrize("name", SHRUNK)
def test_a_shrunk_preset_is_the_model_of_the_config(name: str) -> None:
    changed, config = SHRUNK[name]
    mine = read_table(over(table(name), COMMON | changed), f"{name}.toml", name)
    described, read = assay.build(mine, seed=1), assay.build(assay.load(SAID | config))
    with torch.no_grad():
        for weight in described.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)
    read.load_state_dict(described.state_dict())
    ids = torch.arange(2, 82).reshape(2, 40)
    given = (ids, ids.flip(1)) if "source" in mine.settings else (ids,)
    with torch.no_grad():
        one, other = described(*given), read(*given)
    assert one.std() > 1e-2
    torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, _ in presets()])
def test_a_preset_is_built_or_refused(name: str) -> None:
    """A refusal is one line that names the op; what is built holds each parameter of the ledger under its name."""
    model = assay.load(name)
    try:
        built = assay.build(model, device="meta")
    except assay.BuildError as error:
        assert re.fullmatch(r"[\w ]+: \w+ = \w+\(.+\) -> \[.+\]: .+", str(error))  # noqa: PT017
        return
    held = {
        entry.path.replace("{i}", str(layer)): entry.shape
        for entry in assay.tensors(model)
        for layer in entry.layers or ("",)
        if not entry.buffer
    }
    assert {path: tuple(one.shape) for path, one in built.named_parameters()} == held
