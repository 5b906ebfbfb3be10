"""Configs that name no `model_type`: the original ones of Mamba, held to the same model under today's keys."""

from __future__ import annotations

from typing import Any

import pytest

import assay

FIRST: dict[str, Any] = {
    "d_model": 32,
    "n_layer": 2,
    "vocab_size": 50,
    "ssm_cfg": {},
    "rms_norm": True,
    "residual_in_fp32": True,
    "fused_add_norm": True,
    "pad_vocab_size_multiple": 8,
}
SECOND: dict[str, Any] = {
    **FIRST,
    "d_intermediate": 0,
    "ssm_cfg": {"layer": "Mamba2", "d_state": 16, "headdim": 8, "ngroups": 2},
    "attn_layer_idx": [],
    "attn_cfg": {},
    "tie_embeddings": True,
}


def same(config: dict[str, Any], today: dict[str, Any]) -> None:
    ours, other = assay.load(config), assay.load({**today, "hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 56})
    assert [(s.block.ops, s.block.sizes, s.block.stored) for s in ours.segments] == [
        (s.block.ops, s.block.sizes, s.block.stored) for s in other.segments
    ]
    assert assay.count(ours, tokens=5) == assay.count(other, tokens=5)


def test_the_first() -> None:
    today = {"model_type": "mamba", "state_size": 16, "expand": 2, "tie_word_embeddings": True}
    same(FIRST, today)
    same({**FIRST, "ssm_cfg": {"dt_rank": "auto"}}, today)
    same({**FIRST, "ssm_cfg": {"dt_rank": 3, "d_state": 4}}, {**today, "time_step_rank": 3, "state_size": 4})
    assert assay.load(FIRST).notes == ("model_type is missing; the keys are those of mamba",)
    # rows are padded to a multiple of 8: 56 tables of 32; a layer holds in 32·128, conv 64·4 + 64, x 64·(2 + 32),
    # dt 2·64 + 64, A 64·16, D 64, out 64·32 and a norm of 32; the last norm 32
    layer = 32 * 128 + 64 * 5 + 64 * 34 + 2 * 64 + 64 + 64 * 16 + 64 + 64 * 32 + 32
    assert assay.count(assay.load(FIRST), tokens=1).parameters.total == 56 * 32 + 2 * layer + 32


def test_the_second() -> None:
    today = {"model_type": "mamba2", "state_size": 16, "head_dim": 8, "num_heads": 8, "n_groups": 2, "expand": 2}
    same(SECOND, {**today, "tie_word_embeddings": True})
    same({**SECOND, "tie_embeddings": False}, {**today, "tie_word_embeddings": False})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"ssm_cfg": {"layer": "Mamba3"}}, r"ssm_cfg\.layer is 'Mamba3'; it must be one of Mamba1, Mamba2"),
        ({"ssm_cfg": {"layer": "Mamba2", "headdim": 7}}, r"ssm_cfg\.headdim is 7; it must be a divisor of .*, 64"),
        ({"ssm_cfg": {"wings": 4}}, r"ssm_cfg\.wings is 4: not known for mamba"),
        ({"ssm_cfg": 4}, "ssm_cfg is 4; it must be an object"),
        ({"ssm_cfg": None}, "model_type is missing; it must be one of"),
        ({"attn_layer_idx": [1]}, r"attn_layer_idx is \[1\]; it must be \[\] or null"),
        ({"d_intermediate": 64}, "d_intermediate is 64; it must be 0 or null"),
        ({"rms_norm": False}, "rms_norm is false; it must be true or null"),
        ({"vocab_size": None}, "vocab_size is null; it must be an integer of at least 1"),
    ],
)
def test_what_is_refused(change: dict[str, Any], match: str) -> None:
    with pytest.raises(assay.SourceError, match=match):
        assay.load({**SECOND, **change})


NOMIC: dict[str, Any] = {
    "model_type": "nomic_bert",
    "architectures": ["NomicBertModel"],
    "activation_function": "swiglu",
    "causal": False,
    "n_embd": 32,
    "n_head": 4,
    "n_inner": 48,
    "n_layer": 2,
    "n_positions": 8192,
    "max_trained_positions": 2048,
    "pad_vocab_size_multiple": 64,
    "prenorm": False,
    "qkv_proj_bias": False,
    "rotary_emb_base": 1000,
    "rotary_emb_fraction": 1.0,
    "use_rms_norm": False,
    "vocab_size": 64,
}


def test_older_keys_of_a_type() -> None:
    today = {
        "model_type": "nomic_bert",
        "architectures": ["NomicBertModel"],
        "hidden_size": 32,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "vocab_size": 64,
    }
    older, newer = assay.load(NOMIC), assay.load(today)
    assert assay.count(older, tokens=7) == assay.count(newer, tokens=7)
    assert (older.trained, newer.trained) == (8192, 2048)
    for change, match in (
        ({"qkv_proj_bias": True}, "qkv_proj_bias is true; it must be false or null"),
        ({"activation_function": "gelu"}, "activation_function is 'gelu'; it must be 'swiglu' or null"),
        ({"num_experts": 8}, "num_experts is 8: not known for nomic_bert"),
        ({"hidden_size": 64}, "n_embd is 32 and hidden_size is 64; they name one thing and must agree"),
    ):
        with pytest.raises(assay.SourceError, match=match):
            assay.load({**NOMIC, **change})
