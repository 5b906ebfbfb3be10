"""The classic decoder-only families against the public implementation, tensor by tensor and FLOP by FLOP."""

from __future__ import annotations

import pytest
from classic_configs import DEFAULTS, PUBLISHED, VARIED, falcon, gpt2, mpt, today
from library import check_against_library, needs_library

from assay.errors import SourceError
from assay.readings.count import count
from assay.readings.generate import generate
from assay.readings.tensors import tensors
from assay.sources.huggingface import read_config


@needs_library
@pytest.mark.parametrize("model_type", DEFAULTS)
def test_default_config_equals_the_library(model_type: str) -> None:
    check_against_library({"model_type": model_type})


@needs_library
@pytest.mark.parametrize("name", VARIED)
def test_varied_config_equals_the_library(name: str) -> None:
    check_against_library(VARIED[name], tokens=8)


@pytest.mark.parametrize("name", PUBLISHED)
def test_types_hosted_with_their_weights_equal_published_figures(name: str) -> None:
    config, parameters, buffers = PUBLISHED[name]
    found = count(read_config(config, name, name), tokens=1).parameters
    assert (found.total, found.buffers) == (parameters, buffers)


def test_baichuan_is_llama_with_one_matrix_for_three() -> None:
    keys = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
    keys |= {"intermediate_size": 48, "max_position_embeddings": 16}
    ours = read_config(keys | {"model_type": "baichuan"}, "config", "model")
    llama = read_config(keys | {"model_type": "llama"}, "config", "model")
    assert count(ours, tokens=8).parameters == count(llama, tokens=8).parameters
    assert count(ours, tokens=8).flops == count(llama, tokens=8).flops
    packed = {entry.path: entry.shape for entry in tensors(ours)}
    assert packed["model.layers.{i}.self_attn.W_pack.weight"] == (96, 32)


def test_a_prompt_passes_before_the_text_and_is_kept() -> None:
    """3 positions before 10: all see each other; later each token sees all before it. 2 layers, 4 heads of 6."""
    model = read_config(VARIED["cpmant"], "config", "model")
    once = 2 * (4 * 32 * 24 + 3 * 32 * 40)
    first = count(model, tokens=10, cache="bf16")
    assert first.flops.total == first.flops.visible_total
    assert first.flops.total == 2 * (13 * once + 4 * 13 * 13 * 24) + 2 * 10 * 32 * 97
    assert first.cache.bytes == 2 * 2 * 2 * 24 * 13
    later = count(model, tokens=1, past=10, cache="bf16")
    assert later.flops.total == 2 * (once + 4 * 14 * 24) + 2 * 32 * 97
    assert later.cache.bytes == 2 * 2 * 2 * 24 * 14
    steps = [count(model, tokens=1, past=10 + i).flops.total for i in range(4)]
    again = [count(model, tokens=11 + i).flops.total for i in range(4)]
    made = generate(model, 4, tokens=10)
    assert (made.steps.total, made.again.total) == (sum(steps), sum(again))


def test_internlm2_is_llama_with_one_matrix_for_each_group() -> None:
    keys = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
    keys |= {"intermediate_size": 48, "num_key_value_heads": 2}
    ours = read_config(keys | {"model_type": "internlm2"}, "config", "model")
    llama = read_config(keys | {"model_type": "llama"}, "config", "model")
    for tokens, past in ((8, 0), (1, 20)):
        one, other = (count(model, tokens=tokens, past=past) for model in (ours, llama))
        assert (one.parameters, one.flops, one.cache) == (other.parameters, other.flops, other.cache)
    packed = {entry.path: entry.shape for entry in tensors(ours)}
    assert packed["model.layers.{i}.attention.wqkv.weight"] == (2 * (2 + 2) * 8, 32)


@pytest.mark.parametrize(("model_type", "experts"), [("deepseek", "n_routed_experts"), ("bailing_moe", "num_experts")])
def test_experts_hosted_with_their_weights_are_counted_by_hand(model_type: str, experts: str) -> None:
    """Width 32, 4 heads of 8, 2 of keys; a layer of MLP 48, two of 6 experts of 12: 2 for each token, 3 for all."""
    shared = "n_shared_experts" if model_type == "deepseek" else "num_shared_experts"
    keys = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
    keys |= {"intermediate_size": 48, "num_key_value_heads": 2, "moe_intermediate_size": 12, experts: 6, shared: 3}
    keys |= {"num_experts_per_tok": 2, "first_k_dense_replace": 1}
    read = read_config(keys | {"model_type": model_type}, "config", "model")
    attention, scores = 32 * (32 + 16 + 16 + 32), 2 * 10 * 32
    sparse = 32 * 6 + (2 + 3) * 3 * 32 * 12
    assert count(read, tokens=10).flops.total == 2 * 10 * (
        3 * (attention + scores) + 3 * 32 * 48 + 2 * sparse + 32 * 97
    )
    assert count(read, tokens=10, cache="bf16").cache.bytes == 2 * 2 * 3 * 10 * 16
    held = {entry.path: (entry.shape, entry.times) for entry in tensors(read)}
    assert held["model.layers.{i}.mlp.experts.{e}.down_proj.weight"] == ((32, 12), 2 * 6)
    assert held["model.layers.{i}.mlp.shared_experts.up_proj.weight"] == ((36, 32), 2)


def test_gpt_neo_keeps_keys_beyond_the_window_and_does_not_see_them() -> None:
    model = read_config(VARIED["gpt_neo"], "config", "model")
    step = count(model, tokens=1, past=11, cache="bf16")
    assert step.cache.bytes == 2 * 3 * 2 * 32 * 12  # keys and values of 3 layers, 12 positions
    hidden = 2 * (2 * 2 * 32) * (12 - 4)  # in 2 local layers, QK and AV over 8 keys out of reach
    assert step.flops.total - step.flops.visible_total == hidden


def test_opt_positions_end_before_the_rows_of_the_table() -> None:
    model = read_config(VARIED["opt-narrow"], "config", "model")
    rows = {entry.path: entry.shape for entry in tensors(model)}
    assert rows["model.decoder.embed_positions.weight"] == (18, 32)
    assert model.positions == 16


REFUSED = {
    "cross-attention": (gpt2(add_cross_attention=True), "add_cross_attention is true: not known for gpt2 unless"),
    "heads": (gpt2(n_head=5), "n_embd is 32; it must be a multiple of n_head, 5"),
    "today's name": (gpt2() | {"hidden_size": 64}, "hidden_size is 64 and n_embd is 32"),
    "unknown": (gpt2(n_expert=4), "n_expert is 4: not known for gpt2"),
    "groups": (gpt2("gpt_bigcode", num_key_value_heads=2), "num_key_value_heads is 2; it must be 1 or null"),
    "rotary_dim": (gpt2("gptj", rotary_dim=12), "rotary_dim is 12; it must be even and at most the head width, 8"),
    "four parts": (gpt2("codegen", n_head=2, rotary_dim=8), "n_head is 2"),
    "attention types": (
        VARIED["gpt_neo"] | {"attention_types": [[["global"], 2]]},
        r"attention_types is \[\[\['global'\], 2\]\]; it must be a list of",
    ),
    "attention kind": (VARIED["gpt_neo"] | {"attention_types": [[["far"], 3]]}, "attention_types .* global or local"),
    "bloom width": (VARIED["bloom"] | {"n_inner": 100}, "n_inner is 100; it must be 128 or null"),
    "falcon norms": (falcon(num_ln_in_parallel_attn=2), "num_ln_in_parallel_attn is 2; it must be 1 or null"),
    "falcon arrangement": (falcon(new_decoder_architecture=True, parallel_attn=False), "parallel_attn is false"),
    "falcon groups": (falcon(new_decoder_architecture=True, num_kv_heads=3), "num_kv_heads, 3"),
    "falcon heads": (falcon(multi_query=False, num_kv_heads=2), "num_kv_heads is 2; it must be 4 or null"),
    "mpt ratio": (mpt(expansion_ratio=2), "expansion_ratio is 2; it must be 4 or null"),
    "mpt bias": (mpt(no_bias=False), "no_bias is false; it must be true or null"),
    "mpt attention": (mpt(attn_config={"attn_type": "multiquery_attention"}), "attn_config.attn_type is 'multiquery_"),
    "mpt positions": (mpt(attn_config={"alibi": False}), "attn_config.alibi is false"),
    "mpt norms": (mpt(attn_config={"qk_ln": True}), "attn_config.qk_ln is true"),
    "mpt unknown": (mpt(attn_config={"heads_of_other": 2}), "attn_config.heads_of_other is 2: not known for mpt"),
    "starcoder2 norm": (today("starcoder2", norm_type="rms_norm", num_key_value_heads=2), "norm_type is 'rms_norm'"),
    "phi3 bias": (today("phi3", attention_bias=True), "attention_bias is true; it must be false or null"),
    "bitnet width": (today("bitnet", num_key_value_heads=2, head_dim=16), "head_dim is 16; it must be hidden_size"),
    "helium width": (today("helium", num_key_value_heads=2), "head_dim is missing; it must be hidden_size"),
    "dbrx top k": (VARIED["dbrx"] | {"ffn_config": {"moe_top_k": 9}}, "ffn_config.moe_top_k is 9; it must be at most"),
    "dbrx groups": (VARIED["dbrx"] | {"attn_config": {"kv_n_heads": 3}}, "attn_config.kv_n_heads is 3"),
    "minicpm sparse": (PUBLISHED["MiniCPM-2B"][0] | {"sparse_config": {"topk": 64}}, "sparse_config is .* null"),
    "chatglm prefix": (PUBLISHED["ChatGLM3-6B"][0] | {"pre_seq_len": 128}, "pre_seq_len is 128; it must be null"),
    "chatglm of old": (
        PUBLISHED["ChatGLM3-6B"][0] | {"inner_hidden_size": 16384},
        "inner_hidden_size is 16384: not known",
    ),
    "qwen halves": (PUBLISHED["Qwen-7B"][0] | {"intermediate_size": 11007}, "intermediate_size is 11007; .* even"),
    "baichuan size": ({"model_type": "baichuan"}, "hidden_size is missing"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_modelled_is_refused_by_name(name: str) -> None:
    config, message = REFUSED[name]
    with pytest.raises(SourceError, match=message):
        read_config(config, "config.json", "model")
