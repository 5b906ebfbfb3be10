"""Configs of the first generations of decoders: small ones with every option turned, and published ones."""

from __future__ import annotations

from typing import Any

DEFAULTS = """
    gpt2 gpt_neo gpt_neox gpt_neox_japanese gptj codegen opt bloom falcon mpt gpt_bigcode starcoder2 phi phi3 stablelm
    persimmon openai-gpt xglm biogpt ctrl nanochat jais2 bitnet helium cpmant
""".split()


def config(model_type: str, **keys: Any) -> dict[str, Any]:
    """A config that says nothing more."""
    return {"model_type": model_type} | keys


def gpt2(model_type: str = "gpt2", **keys: Any) -> dict[str, Any]:
    """A small config in GPT-2's words."""
    return {
        "model_type": model_type,
        "vocab_size": 97,
        "n_embd": 32,
        "n_layer": 3,
        "n_head": 4,
        "n_positions": 16,
    } | keys


def today(model_type: str, **keys: Any) -> dict[str, Any]:
    """A small config in today's words."""
    return bare(model_type, **({"intermediate_size": 48} | keys))


def bare(model_type: str, **keys: Any) -> dict[str, Any]:
    """The same without a width of the MLP."""
    return {
        "model_type": model_type,
        "vocab_size": 97,
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "max_position_embeddings": 16,
        "pad_token_id": 0,
    } | keys


def falcon(**keys: Any) -> dict[str, Any]:
    """A small Falcon."""
    return bare("falcon", ffn_hidden_size=56, **keys)


def opt(**keys: Any) -> dict[str, Any]:
    """A small OPT."""
    return bare("opt", ffn_dim=56, **keys)


def mpt(**keys: Any) -> dict[str, Any]:
    """A small MPT."""
    return {"model_type": "mpt", "vocab_size": 97, "d_model": 32, "n_heads": 4, "n_layers": 3, "max_seq_len": 16} | keys


VARIED = {
    "gpt2": gpt2(n_inner=40, activation_function="relu", tie_word_embeddings=False),
    "gpt2-scales": gpt2(scale_attn_by_inverse_layer_idx=True, scale_attn_weights=False, reorder_and_upcast_attn=True),
    "gpt2-today": config(
        "gpt2", vocab_size=97, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=16
    ),
    "gpt_bigcode": gpt2("gpt_bigcode", n_inner=40),
    "gpt_bigcode-heads": gpt2("gpt_bigcode", multi_query=False, scale_attn_weights=False, tie_word_embeddings=False),
    "openai-gpt": gpt2("openai-gpt", afn="silu", tie_word_embeddings=False),
    "ctrl": gpt2("ctrl", dff=56, tie_word_embeddings=False),
    "ctrl-tied": gpt2("ctrl", dff=56),
    "gptj": gpt2("gptj", rotary_dim=4, n_inner=40, tie_word_embeddings=True),
    "codegen": gpt2("codegen", rotary_dim=8, n_inner=40),
    "gpt_neo": config(
        "gpt_neo",
        vocab_size=97,
        hidden_size=32,
        num_layers=3,
        num_heads=4,
        max_position_embeddings=16,
        intermediate_size=40,
        window_size=4,
        tie_word_embeddings=False,
        attention_types=[[["global", "local"], 1], [["local"], 1]],
    ),
    "gpt_neox": today("gpt_neox", rotary_pct=0.5, rotary_emb_base=500, tie_word_embeddings=True),
    "gpt_neox-sequential": today("gpt_neox", use_parallel_residual=False, attention_bias=False),
    "gpt_neox_japanese": bare("gpt_neox_japanese", intermediate_multiple_size=3, tie_word_embeddings=False),
    "opt": opt(tie_word_embeddings=False, enable_bias=False, layer_norm_elementwise_affine=False),
    "opt-narrow": opt(word_embed_proj_dim=24, do_layer_norm_before=False),
    "opt-bare": opt(_remove_final_layer_norm=True, word_embed_proj_dim=40),
    "xglm": config(
        "xglm",
        vocab_size=97,
        d_model=32,
        ffn_dim=56,
        num_layers=3,
        attention_heads=4,
        max_position_embeddings=16,
        scale_embedding=False,
        tie_word_embeddings=False,
    ),
    "biogpt": today("biogpt", scale_embedding=False, tie_word_embeddings=False),
    "bloom": {"model_type": "bloom", "vocab_size": 97, "n_embed": 32, "n_layer": 3, "num_attention_heads": 4},
    "bloom-onto-normed": config(
        "bloom",
        vocab_size=97,
        hidden_size=32,
        num_hidden_layers=3,
        n_head=4,
        apply_residual_connection_post_layernorm=True,
        tie_word_embeddings=False,
    ),
    "falcon": falcon(bias=True, tie_word_embeddings=False),
    "falcon-sequential": falcon(bias=True, multi_query=False, parallel_attn=False, alibi=True),
    "falcon-new": falcon(new_decoder_architecture=True, num_kv_heads=2, bias=True),
    "falcon-new-one-norm": falcon(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1),
    "falcon-new-heads": falcon(new_decoder_architecture=True),
    "mpt": mpt(attn_config={"clip_qkv": 6.0, "softmax_scale": 0.3}, tie_word_embeddings=False),
    "starcoder2": today("starcoder2", num_key_value_heads=2, sliding_window=4, tie_word_embeddings=False),
    "starcoder2-bare": today("starcoder2", num_key_value_heads=1, use_bias=False, head_dim=12),
    "phi": today("phi", num_key_value_heads=2, qk_layernorm=True, partial_rotary_factor=0.25),
    "phi3": today("phi3", num_key_value_heads=2, sliding_window=4, tie_word_embeddings=True),
    "phi3-partial": today("phi3", partial_rotary_factor=0.75, head_dim=16),
    "stablelm": today(
        "stablelm", num_key_value_heads=2, qk_layernorm=True, use_qkv_bias=True, tie_word_embeddings=True
    ),
    "stablelm-parallel": today("stablelm", num_key_value_heads=4, use_parallel_residual=True),
    "persimmon": today("persimmon", qk_layernorm=False, tie_word_embeddings=True),
    "persimmon-normed": today("persimmon", hidden_act="gelu"),
    "nanochat": today("nanochat", num_key_value_heads=2, attention_bias=True, final_logit_softcapping=None),
    "nanochat-tied": today("nanochat", head_dim=12, tie_word_embeddings=True),
    "jais2": today("jais2", num_key_value_heads=2, attention_bias=False, head_dim=12),
    "jais2-bare": today("jais2", mlp_bias=False, tie_word_embeddings=True),
    "bitnet": today("bitnet", num_key_value_heads=2, attention_bias=True, tie_word_embeddings=True),
    "helium": today("helium", num_key_value_heads=2, head_dim=8, attention_bias=True, mlp_bias=True),
    "cpmant": config(
        "cpmant",
        vocab_size=97,
        hidden_size=32,
        num_attention_heads=4,
        dim_head=6,
        dim_ff=40,
        num_hidden_layers=2,
        prompt_types=4,
        prompt_length=3,
        segment_types=5,
        position_bias_num_buckets=8,
    ),
    "dbrx": config(
        "dbrx",
        vocab_size=97,
        d_model=32,
        n_heads=4,
        n_layers=3,
        max_seq_len=16,
        attn_config={"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 500000},
        ffn_config={"ffn_hidden_size": 24, "moe_num_experts": 6, "moe_top_k": 2},
    ),
}


# (config, parameters, stored elements that are none): figures printed for the published checkpoints
PUBLISHED = {
    "Qwen-7B": (  # index of the checkpoint: 15,442,649,088 bytes of bf16
        config(
            "qwen",
            vocab_size=151936,
            hidden_size=4096,
            num_hidden_layers=32,
            num_attention_heads=32,
            intermediate_size=22016,
            kv_channels=128,
            no_bias=True,
        ),
        15_442_649_088 // 2,
        0,
    ),
    "ChatGLM3-6B": (  # index of the checkpoint: 12,487,168,064 bytes of fp16
        config(
            "chatglm",
            padded_vocab_size=65024,
            hidden_size=4096,
            num_layers=28,
            num_attention_heads=32,
            ffn_hidden_size=13696,
            kv_channels=128,
            add_qkv_bias=True,
            multi_query_attention=True,
            multi_query_group_num=2,
        ),
        12_487_168_064 // 2 - 32,
        32,
    ),
    "GLM-4-9B-Chat": (  # "has 9399951392 parameters, 9399951360 are trainable", printed when it is loaded
        config(
            "chatglm",
            padded_vocab_size=151552,
            hidden_size=4096,
            num_layers=40,
            num_attention_heads=32,
            ffn_hidden_size=13696,
            kv_channels=128,
            add_qkv_bias=True,
            multi_query_attention=True,
            multi_query_group_num=2,
        ),
        9_399_951_360,
        32,
    ),
    "MiniCPM-2B": (  # "2724880896 (2.7B) parameters", printed by a program that serves it
        config(
            "minicpm",
            vocab_size=122753,
            hidden_size=2304,
            num_hidden_layers=40,
            num_attention_heads=36,
            num_key_value_heads=36,
            intermediate_size=5760,
            scale_emb=12,
            dim_model_base=256,
            scale_depth=1.4,
        ),
        2_724_880_896,
        0,
    ),
    "InternLM2-7B": (  # index of the checkpoint: 15,475,417,088 bytes of bf16
        config(
            "internlm2",
            vocab_size=92544,
            hidden_size=4096,
            num_hidden_layers=32,
            num_attention_heads=32,
            num_key_value_heads=8,
            intermediate_size=14336,
            bias=False,
        ),
        15_475_417_088 // 2,
        0,
    ),
    "DeepSeekMoE-16B": (  # elements of the published files
        config(
            "deepseek",
            vocab_size=102400,
            hidden_size=2048,
            num_hidden_layers=28,
            num_attention_heads=16,
            num_key_value_heads=16,
            intermediate_size=10944,
            moe_intermediate_size=1408,
            n_routed_experts=64,
            n_shared_experts=2,
            num_experts_per_tok=6,
            first_k_dense_replace=1,
        ),
        16_375_728_128,
        0,
    ),
    "Ling-lite": (  # elements of the published files
        config(
            "bailing_moe",
            vocab_size=126464,
            hidden_size=2048,
            num_hidden_layers=28,
            num_attention_heads=16,
            num_key_value_heads=4,
            intermediate_size=5632,
            moe_intermediate_size=1408,
            num_experts=64,
            num_shared_experts=2,
            num_experts_per_tok=6,
        ),
        16_801_974_272,
        0,
    ),
    "Ling-mini-2.0": (  # elements of the published files, 16,255,643,392: scores are corrected in 19 layers
        config(
            "bailing_moe",
            vocab_size=157184,
            hidden_size=2048,
            num_hidden_layers=20,
            num_attention_heads=16,
            num_key_value_heads=4,
            head_dim=128,
            intermediate_size=5120,
            moe_intermediate_size=512,
            moe_shared_expert_intermediate_size=512,
            num_experts=256,
            num_shared_experts=1,
            num_experts_per_tok=8,
            n_group=8,
            topk_group=4,
            score_function="sigmoid",
            moe_router_enable_expert_bias=True,
            use_qk_norm=True,
            first_k_dense_replace=1,
        ),
        16_255_643_392 - 19 * 256,
        19 * 256,
    ),
}
