"""Recurrent and hybrid families: logits, steps, caches and counts against the public implementation."""

from __future__ import annotations

import re
from typing import Any

import pytest
from execution.twins import ids, ours, same_logits, theirs, torch, transformers

import assay
from assay.errors import BuildError

WINDOW = 5
SMALL: dict[str, Any] = {"hidden_size": 32, "vocab_size": 101, "num_hidden_layers": 2, "pad_token_id": None}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 24}
SCANS = {
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_n_groups": 2,
    "mamba_d_state": 6,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_chunk_size": 4,
}
KINDS = {"layer_types": ["linear_attention", "full_attention"]}
DELTA = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 6,
    "linear_conv_kernel_dim": 4,
}
SHARED = {"num_experts": 4, "shared_expert_intermediate_size": 20}
LATENT = {
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 48,
    "linear_head_dim": 8,
    "linear_num_heads": 4,
    "kv_lora_rank": 12,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "num_local_experts": 4,
    "n_shared_experts": 1,
    "topk_group": 1,
}
MAMBA = {"state_size": 5, "expand": 2, "conv_kernel": 4}
MAMBA2 = {"state_size": 6, "expand": 2, "conv_kernel": 4, "num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 4}

CONFIGS: dict[str, dict[str, Any]] = {
    "mamba": MAMBA,
    "falcon_mamba": MAMBA,
    "mamba2": MAMBA2,
    "jamba": HEADS
    | {"mamba_d_state": 5, "attn_layer_period": 2, "attn_layer_offset": 1}
    | {"expert_layer_period": 2, "expert_layer_offset": 1, "num_experts": 4, "num_experts_per_tok": 2},
    "bamba": HEADS | SCANS | {"attn_layer_indices": [1]},
    "granitemoehybrid": HEADS
    | SCANS
    | {"layer_types": ["mamba", "attention"], "num_local_experts": 4, "num_experts_per_tok": 2}
    | {"shared_intermediate_size": 24, "position_embedding_type": "rope"},
    "falcon_h1": HEADS
    | SCANS
    | {"mamba_d_ssm": 64, "head_dim": 8, "mamba_rms_norm": True, "mamba_norm_before_gate": False}
    | {"ssm_multipliers": [0.5, 1.25, 0.75, 1.5, 2.0], "ssm_in_multiplier": 1.5, "ssm_out_multiplier": 0.5}
    | {"attention_in_multiplier": 1.25, "key_multiplier": 0.75, "mlp_multipliers": [0.5, 2.0]},
    "zamba": HEADS
    | {"num_hidden_layers": 5, "num_key_value_heads": 4, "attention_head_dim": 16, "n_mamba_heads": 2}
    | {"mamba_d_state": 5, "attn_layer_period": 2, "attn_layer_offset": 1},
    "zamba2": HEADS
    | {"num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"], "num_key_value_heads": 4}
    | {"n_mamba_heads": 8, "mamba_ngroups": 2, "mamba_d_state": 6, "chunk_size": 4, "adapter_rank": 5}
    | {"num_mem_blocks": 1, "use_mem_rope": True, "use_shared_attention_adapter": True},
    "nemotron_h": HEADS
    | EXPERTS
    | {"layers_block_type": ["mamba", "attention", "mlp", "moe"], "num_hidden_layers": 4, "mamba_num_heads": 8}
    | {"mamba_head_dim": 8, "ssm_state_size": 6, "n_groups": 2, "conv_kernel": 4, "head_dim": 8, "chunk_size": 4}
    | {"n_routed_experts": 4, "moe_shared_expert_intermediate_size": 20, "n_group": 1, "topk_group": 1},
    "qwen3_next": HEADS | EXPERTS | DELTA | KINDS | SHARED | {"head_dim": 8},
    "qwen3_5_text": HEADS | DELTA | KINDS | {"head_dim": 8},
    "qwen3_5_moe_text": HEADS | EXPERTS | DELTA | KINDS | SHARED | {"head_dim": 8},
    "olmo_hybrid": HEADS | DELTA | KINDS,
    "lara_mini": HEADS
    | EXPERTS
    | DELTA
    | SHARED
    | {"num_hidden_layers": 3, "layer_types": ["linear_attention", "sliding_attention", "full_attention"]}
    | {"sliding_window": WINDOW, "head_dim": 8},
    "kimi_linear": LATENT | EXPERTS | KINDS | {"n_group": 1},
    "bailing_hybrid": LATENT | EXPERTS | KINDS | {"n_group": 2},
    "lfm2": HEADS | {"layer_types": ["conv", "full_attention"], "conv_L_cache": 3},
    "lfm2_moe": HEADS
    | EXPERTS
    | {"layer_types": ["conv", "full_attention"], "conv_L_cache": 3, "num_experts": 4, "num_dense_layers": 1},
    "lfm3": HEADS
    | {"num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "sliding_attention"]}
    | {"head_dim": 8, "sliding_window": WINDOW},
    # its embedding's multiplier is the root of the width in bfloat16: 8 of 64 is the same in both
    "recurrent_gemma": HEADS
    | {"hidden_size": 64, "num_hidden_layers": 3, "lru_width": 64, "attention_window_size": WINDOW}
    | {"num_key_value_heads": 1, "head_dim": 16},
    "zaya": {"num_attention_heads": 4, "num_key_value_heads": 2}
    | {"head_dim": 8, "moe_intermediate_size": 24, "num_experts": 3, "router_hidden_size": 12, "attention_bias": True},
    "inkling_text": {"num_hidden_layers": 3, "layer_types": ["hybrid_sliding", "hybrid", "hybrid_sliding"]}
    | {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "sliding_window_size": WINDOW}
    | {"swa_num_attention_heads": 4, "swa_num_key_value_heads": 2, "swa_head_dim": 8, "rel_extent": 6, "d_rel": 4}
    | {"mlp_layer_types": ["dense", "sparse", "sparse"], "intermediate_size": 40, "moe_intermediate_size": 24}
    | {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 2, "unpadded_vocab_size": 101}
    | {"logits_mup_width_multiplier": 2.0},
    "inkling2_text": {"num_hidden_layers": 5, "n_layers_per_attn_res_block": 2, "num_attention_heads": 4}
    | {"layer_types": ["hybrid_sliding", "hybrid", "hybrid_sliding", "hybrid", "hybrid_sliding"]}
    | {"num_key_value_heads": 2, "head_dim": 8, "sliding_window_size": WINDOW, "rel_extent": 6, "d_rel": 4}
    | {"swa_num_attention_heads": 4, "swa_num_key_value_heads": 2, "swa_head_dim": 8, "unpadded_vocab_size": 99}
    | {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "qk_l2_clip_threshold": 0.9}
    | {"rel_l2_clip_threshold": 0.7},
    "rwkv": {"attention_hidden_size": 32, "context_length": 64},
    "minimax": HEADS | KINDS | {"head_dim": 8, "block_size": 4, "num_local_experts": 4, "num_experts_per_tok": 2},
    # its cache rounds the widths of keys and values up to 64, whatever else a config says
    "xlstm": {"hidden_size": 128, "embedding_dim": 128, "num_blocks": 2, "num_heads": 4},
}
NEW = 5
# the library heeds bounds of time steps in a pass of several tokens alone, not in its steps
BOUNDS: dict[str, dict[str, Any]] = {
    "mamba2": {"time_step_limit": [0.4, 0.7]},
    "bamba": {"time_step_limit": [0.4, 0.7]},
    "nemotron_h": {"time_step_min": 0.7},
    "zamba2": {"time_step_min": 0.7},
    # by the position, which padding moves
    "inkling_text": {"log_scaling_n_floor": 4},
    "inkling2_text": {"log_scaling_n_floor": 4},
}


def config(model_type: str) -> dict[str, Any]:
    """A small one."""
    return {"model_type": model_type, **SMALL, **CONFIGS[model_type]}


def said(model: assay.Model, tokens: int, past: int = 0) -> Any:
    """What the description counts for two texts, keys and values in float32 as they run here."""
    return assay.count(model, batch=2, tokens=tokens, past=past, cache="fp32")


@pytest.mark.parametrize("model_type", CONFIGS)
def test_logits_counts_and_cache(model_type: str) -> None:
    """Logits, all at once and step by step; then FLOPs of a prefill and a step, and the bytes that it leaves."""
    their, own = same_logits(config(model_type) | BOUNDS.get(model_type, {}))
    model = own.description
    given = ids(their, 13)
    assert assay.measure(own, given).flops.forward == said(model, 13).flops.total
    few = WINDOW - 1  # a full window is held less the position that the next token takes
    cache = own.cache()
    with torch.no_grad():
        own(given[:, : few - 1], cache=cache)
        assert cache.bytes() == said(model, few - 1).cache.bytes
        step = assay.measure(own, given[:, few - 1 : few], cache=cache)
    assert step.flops.forward == said(model, 1, few - 1).flops.total
    assert cache.bytes() == said(model, 1, few - 1).cache.bytes


@pytest.mark.parametrize("model_type", CONFIGS)
def test_generation_with_both_caches(model_type: str) -> None:
    """Greedy tokens with the library's cache and with ours are the same."""
    their = theirs(config(model_type))
    own = ours(their)
    given = ids(their, 7, batch=1)  # RWKV's steps mix up the texts of a batch in the library
    more = {"max_new_tokens": NEW, "min_new_tokens": NEW, "do_sample": False, "use_cache": True}
    with torch.no_grad():
        expected = their.generate(given, **more, eos_token_id=None, pad_token_id=0)
        made, last, cache = given, given, own.cache()
        for _ in range(NEW):
            last = own(last, cache=cache, logits="last")[:, -1].argmax(-1, keepdim=True)
            made = torch.cat((made, last), 1)
    assert made.tolist() == expected.tolist()


@pytest.mark.parametrize("model_type", CONFIGS)
def test_padding_leaves_no_trace(model_type: str) -> None:
    """Texts behind padding give the logits that they give alone, in one pass and in two."""
    their = theirs(config(model_type))
    own, given = ours(their), ids(their, 7)
    padded = torch.cat((torch.full((2, 3), 5), given), 1)
    mask = torch.arange(10).expand(2, 10) >= 3
    with torch.no_grad():
        alone = own(given)
        torch.testing.assert_close(own(padded, mask=mask)[:, 3:], alone, rtol=1e-4, atol=1e-5)
        cache = own.cache()
        own(padded[:, :5], cache=cache, mask=mask[:, :5])
        torch.testing.assert_close(own(padded[:, 5:], cache=cache, mask=mask), alone[:, 2:], rtol=1e-4, atol=1e-5)
        assert (own(padded)[:, 3:] - alone).abs().max() > 1e-3, "padding would not have been seen anyway"


@pytest.mark.parametrize("model_type", ["mamba2", "mamba", "qwen3_next", "minimax", "recurrent_gemma", "rwkv", "xlstm"])
def test_states_are_float32_and_gradients_reach_every_weight(model_type: str) -> None:
    small = config(model_type)
    model = assay.load(theirs(small).config)
    low = assay.build(model, dtype=torch.bfloat16, seed=0)
    cache, given = low.cache(), torch.arange(6).reshape(1, 6)
    logits = low(given, cache=cache)
    assert logits.dtype == torch.bfloat16
    assert bool(logits.isfinite().all())
    kept = {tensor.dtype for tensor in cache.storages()}
    assert torch.float32 in kept
    assert kept <= {torch.float32, torch.bfloat16}
    held = assay.count(model, tokens=6, cache="bf16").cache.bytes if model_type != "recurrent_gemma" else None
    assert held is None or cache.bytes() == held  # Griffin's window is full here
    whole = assay.build(model, seed=0)
    whole(given).square().mean().backward()
    still = [name for name, p in whole.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    assert all("experts" in name for name in still), still  # an expert that nobody chose has none


@pytest.mark.parametrize("model_type", ["qwen3_next", "kimi_linear", "xlstm"])
def test_the_recurrent_form_is_the_chunked_one(model_type: str) -> None:
    """Beyond the chunks of 64 tokens in which the library computes these."""
    same_logits(config(model_type), tokens=70)


def test_initial_values_are_those_of_the_library() -> None:
    """Of what is not drawn; and time steps within their range."""
    fixed = {
        "mamba": (r"A_log|\.D$", 4),
        # time_first is left out: the library sets ones, for its formula stands within ones_like
        "rwkv": (r"time_decay|time_mix_key|ln1\.", 10),
        "minimax": (r"slope_rate|query_decay|key_decay|diagonal_decay", 4),
    }
    for model_type, (names, count) in fixed.items():
        made = transformers.AutoConfig.for_model(**config(model_type))
        their = transformers.AutoModelForCausalLM.from_config(made).state_dict()
        own = assay.build(assay.load(made), seed=3).state_dict()
        compared = [name for name in own if re.search(names, name)]
        assert len(compared) == count, compared
        for name in compared:
            torch.testing.assert_close(own[name], their[name], msg=lambda text, name=name: f"{name}: {text}")
    own = assay.build(assay.load(transformers.AutoConfig.for_model(**config("mamba2"))), seed=3).state_dict()
    steps = torch.stack([torch.nn.functional.softplus(own[name]) for name in own if name.endswith("dt_bias")])
    assert 0.001 <= steps.min() < steps.max() <= 0.1


def test_a_long_pass_is_its_parts() -> None:
    """Passes of any lengths, one behind the other, give what one pass gives."""
    own = ours(theirs(config("bamba")))
    given = torch.arange(40).reshape(2, 20)
    with torch.no_grad():
        whole, cache = own(given), own.cache()
        parts = [own(part, cache=cache) for part in given.split([1, 7, 2, 10], 1)]
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("end", "passes"), [(6, 3), (4, 2)])
def test_layers_told_by_their_pass_before(end: int, passes: int) -> None:
    """Each pass goes back to the entry of the loop, with what the one before has left; keys and values of its own."""
    small = CONFIGS["inkling2_text"] | {"num_hidden_layers": 7, "layer_types": ["hybrid_sliding", "hybrid"] * 3}
    small |= {"n_layers_per_attn_res_block": 2, "layer_types": [*small["layer_types"], "hybrid"]}
    loops = {"loop_layer_index_start": 2, "loop_layer_index_end": end, "loop_num_passes": passes, "loop_gate_rank": 4}
    their = theirs({"model_type": "inkling2_loop_text", **SMALL, **small, **loops})
    own, given = ours(their), torch.randint(3, 90, (2, 9), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = their(input_ids=given).logits
        torch.testing.assert_close(own(given), expected, rtol=1e-4, atol=1e-3)
        cache = own.cache()
        parts = torch.cat([own(part, cache=cache) for part in given.split([6, 1, 2], 1)], 1)
        torch.testing.assert_close(parts, expected, rtol=1e-4, atol=1e-3)


def test_passes_without_turns_are_refused() -> None:
    """Layers of several blocks that run several times each: who comes after whom is no part of the description."""
    config = {"model_type": "funnel", "block_sizes": [2, 2, 2], "block_repeats": [1, 2, 2]}
    with pytest.raises(BuildError, match="block 1 runs 2 times, others too: in which turns is not known"):
        assay.build(assay.load(config), device="meta")


def test_an_index_behind_the_last_expert_chooses_nothing() -> None:
    text = """
    experts:
      x = gather(ids[b n], E[V d]) -> [b n d]
      y = select(x[b n d], W[e d f], i[b n a], none=True) -> [b n a f]
    """
    own = assay.build(assay.block(text, V=7, d=4, e=3, f=5, a=2), seed=0)
    given, index = torch.tensor([[2, 6]]), torch.tensor([[[0, 3], [2, 1]]])
    made = own(given, i=index)
    assert made[0, 0, 1].tolist() == [0.0] * 5
    table, experts = own.state_dict().values()
    torch.testing.assert_close(made[0, 1], torch.stack([table[6] @ experts[e] for e in (2, 1)]))
    assert own(given, i=index.clamp(max=2))[0, 0, 1].abs().sum() > 0


def test_a_rule_that_nobody_knows_is_refused() -> None:
    text = """
    mixer:
      u = linear(x[b n d], W[d i]) -> [b n i]
      o = scan(u[b n i], A[i], state=i, reads=0, rule=guess) -> [b n i]
    """
    block = assay.block(text, d=8, i=4)
    with pytest.raises(BuildError, match=r"rule=guess.*no rule says how it runs; known: delta, linear, lru, mamba"):
        assay.build(block)


def test_a_rule_without_its_constants_is_refused() -> None:
    text = "o = scan(u[b n i], r[b n i], A[i], state=i, reads=0, rule=lru) -> [b n i]"
    with pytest.raises(BuildError, match="the power of its decay is not known"):
        assay.build(assay.block(text, i=4))
