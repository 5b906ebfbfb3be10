"""GGUF files as llama.cpp writes them: metadata read as a config.json is; names and shapes, what a config implies."""

from __future__ import annotations

import re
from typing import Any

import pytest

from assay.readings.check import check
from assay.readings.count import count
from assay.readings.tensors import tensors
from assay.sources.checkpoints import speller
from assay.sources.checkpoints.gguf_config import ARCHITECTURES, config_of
from assay.sources.checkpoints.gguf_names import Speller
from assay.sources.checkpoints.held import Checkpoint, Held
from assay.sources.huggingface import read_config

BASE = {
    "block_count": 3,
    "context_length": 64,
    "embedding_length": 32,
    "feed_forward_length": 48,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.layer_norm_rms_epsilon": 1e-6,
    "rope.freq_base": 10000.0,
}
LAYERNORM = {**{k: v for k, v in BASE.items() if "rms" not in k}, "attention.layer_norm_epsilon": 1e-5}
WIDE = {"attention.key_length": 16, "attention.value_length": 16}
EXPERTS = {"expert_count": 4, "expert_used_count": 2}
MOE = EXPERTS | {"expert_feed_forward_length": 24}
CONFIG = {
    "vocab_size": 80,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
ROUTED = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}

# architecture -> what llama.cpp writes, names of tensors that tell something, the config of the same model
SMALL: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "llama": (BASE, "output.weight", {**CONFIG, "model_type": "llama", "tie_word_embeddings": False}),
    "qwen2": (BASE, "", {**CONFIG, "model_type": "qwen2", "tie_word_embeddings": True}),
    "qwen2moe": (
        BASE | MOE | {"expert_shared_feed_forward_length": 40}, "output.weight",
        {**CONFIG, **ROUTED, "model_type": "qwen2_moe", "shared_expert_intermediate_size": 40},
    ),
    "qwen3": (BASE | WIDE, "", {**CONFIG, "model_type": "qwen3", "head_dim": 16, "tie_word_embeddings": True}),
    "qwen3moe": (
        BASE | WIDE | MOE, "output.weight", {**CONFIG, **ROUTED, "model_type": "qwen3_moe", "head_dim": 16},
    ),
    "gemma": (BASE | WIDE, "", {**CONFIG, "model_type": "gemma", "head_dim": 16}),
    "gemma2": (
        BASE | WIDE | {"attention.sliding_window": 8}, "",
        {**CONFIG, "model_type": "gemma2", "head_dim": 16, "sliding_window": 8},
    ),
    "gemma3": (
        BASE | WIDE | {"attention.sliding_window": 8}, "",
        {**CONFIG, "model_type": "gemma3_text", "head_dim": 16, "sliding_window": 8},
    ),
    "phi3": (
        BASE | {"attention.sliding_window": 8}, "output.weight",
        {**CONFIG, "model_type": "phi3", "sliding_window": 8, "pad_token_id": None},
    ),
    "olmo2": (BASE, "output.weight", {**CONFIG, "model_type": "olmo2"}),
    "olmoe": (
        BASE | EXPERTS, "output.weight", {**CONFIG, "model_type": "olmoe", "num_experts": 4, "num_experts_per_tok": 2},
    ),
    "starcoder2": (LAYERNORM, "", {**CONFIG, "model_type": "starcoder2", "tie_word_embeddings": True}),
    "stablelm": (
        LAYERNORM, "output.weight blk.0.attn_q.bias blk.0.ffn_norm.weight",
        {**CONFIG, "model_type": "stablelm", "use_qkv_bias": True},
    ),
    "command-r": (LAYERNORM, "", {**CONFIG, "model_type": "cohere"}),
    "gpt-oss": (
        BASE | WIDE | MOE | {"attention.sliding_window": 8}, "output.weight",
        {**CONFIG, "model_type": "gpt_oss", "intermediate_size": 24, "head_dim": 16, "num_local_experts": 4,
         "num_experts_per_tok": 2, "sliding_window": 8, "tie_word_embeddings": False},
    ),
    "deepseek2": (
        BASE | MOE | {
            "attention.head_count_kv": 1, "attention.kv_lora_rank": 16, "attention.q_lora_rank": 24,
            "attention.key_length": 24, "attention.value_length": 16, "attention.key_length_mla": 20,
            "attention.value_length_mla": 12, "rope.dimension_count": 8, "leading_dense_block_count": 1,
            "expert_shared_count": 1,
        },
        "output.weight blk.1.exp_probs_b.bias",
        {**CONFIG, "model_type": "deepseek_v3", "num_key_value_heads": 4, "kv_lora_rank": 16, "q_lora_rank": 24,
         "qk_rope_head_dim": 8, "qk_nope_head_dim": 12, "v_head_dim": 12, "n_routed_experts": 4, "n_group": 1,
         "topk_group": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "first_k_dense_replace": 1},
    ),
    "gpt2": (
        {k: v for k, v in LAYERNORM.items() if k not in ("attention.head_count_kv", "rope.freq_base")}, "",
        {"model_type": "gpt2", "vocab_size": 80, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_inner": 48,
         "n_positions": 64},
    ),
    "gptneox": (
        {**{k: v for k, v in LAYERNORM.items() if k != "attention.head_count_kv"}, "use_parallel_residual": True},
        "output.weight",
        {**{k: v for k, v in CONFIG.items() if k != "num_key_value_heads"}, "model_type": "gpt_neox"},
    ),
}  # fmt: skip


def held(architecture: str, metadata: dict[str, Any], names: str) -> Checkpoint:
    keys = {"general.architecture": architecture} | {f"{architecture}.{k}": v for k, v in metadata.items()}
    tensors = [Held("token_embd.weight", "F16", (80, 32), 5120), *(Held(n, "F32", (1,), 4) for n in names.split())]
    return Checkpoint("small.gguf", "gguf", ("small.gguf",), tuple(tensors), keys)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_metadata_read_as_the_config_does(architecture: str) -> None:
    metadata, names, config = SMALL[architecture]
    ours = read_config(config_of(held(architecture, metadata, names)), "small.gguf", "small")
    theirs = read_config(config, "config.json", "small")
    assert ours.family == theirs.family
    asked: dict[str, Any] = {"tokens": 5, "past": 11, "cache": "bf16", "weights": "bf16"}
    a, b = count(ours, **asked), count(theirs, **asked)
    assert a.parameters == b.parameters
    assert a.flops == b.flops
    assert a.cache == b.cache


def test_every_architecture_has_a_model_to_compare() -> None:
    assert SMALL.keys() == ARCHITECTURES.keys()


FOUR_NORMS = ("gemma2", "gemma3", "olmo2", "gpt-oss")
# width 32, 4 heads of 8 and 2 of keys (16 wide in gpt-oss), 80 words, 48 or 24 inner, 4 experts
ENDS = "token_embd.weight 80,32 output_norm.weight 32 output.weight 80,32"
# what stands once and in each layer; * is a weight and a bias, of which the shape is the weight's
WRITTEN: dict[str, tuple[str, str]] = {
    "llama": (
        ENDS,
        """
        attn_norm.weight 32 ffn_norm.weight 32 attn_q.weight 32,32 attn_k.weight 16,32 attn_v.weight 16,32
        attn_output.weight 32,32 ffn_gate.weight 48,32 ffn_up.weight 48,32 ffn_down.weight 32,48
        """,
    ),
    "starcoder2": (
        "token_embd.weight 80,32 output_norm.* 32",
        """
        attn_norm.* 32 ffn_norm.* 32 attn_q.* 32,32 attn_k.* 16,32 attn_v.* 16,32 attn_output.* 32,32
        ffn_up.* 48,32 ffn_down.* 32,48
        """,
    ),
    "stablelm": (
        "token_embd.weight 80,32 output_norm.* 32 output.weight 80,32",
        """
        attn_norm.* 32 ffn_norm.* 32 attn_q.* 32,32 attn_k.* 16,32 attn_v.* 16,32 attn_output.weight 32,32
        attn_q_norm.weight 4,8 attn_k_norm.weight 2,8
        ffn_gate.weight 48,32 ffn_up.weight 48,32 ffn_down.weight 32,48
        """,
    ),
    "gpt2": (
        "token_embd.weight 80,32 position_embd.weight 64,32 output_norm.* 32",
        "attn_norm.* 32 ffn_norm.* 32 attn_qkv.* 96,32 attn_output.* 32,32 ffn_up.* 48,32 ffn_down.* 32,48",
    ),
    "gptneox": (
        "token_embd.weight 80,32 output_norm.* 32 output.weight 80,32",
        "attn_norm.* 32 ffn_norm.* 32 attn_qkv.* 96,32 attn_output.* 32,32 ffn_up.* 48,32 ffn_down.* 32,48",
    ),
    "olmo2": (
        ENDS,
        """
        post_attention_norm.weight 32 post_ffw_norm.weight 32 attn_q.weight 32,32 attn_k.weight 16,32
        attn_v.weight 16,32 attn_output.weight 32,32 attn_q_norm.weight 32 attn_k_norm.weight 16
        ffn_gate.weight 48,32 ffn_up.weight 48,32 ffn_down.weight 32,48
        """,
    ),
    "gpt-oss": (
        ENDS,
        """
        attn_norm.weight 32 post_attention_norm.weight 32 attn_sinks.weight 4 attn_q.* 64,32 attn_k.* 32,32
        attn_v.* 32,32 attn_output.* 32,64 ffn_gate_inp.* 4,32 ffn_gate_exps.weight 4,24,32 ffn_gate_exps.bias 4,24
        ffn_up_exps.weight 4,24,32 ffn_up_exps.bias 4,24 ffn_down_exps.weight 4,32,24 ffn_down_exps.bias 4,32
        """,
    ),
}
LATENT = (
    "attn_norm.weight 32 ffn_norm.weight 32 attn_q_a.weight 24,32 attn_q_a_norm.weight 24 attn_q_b.weight 80,24 "
    "attn_kv_a_mqa.weight 24,32 attn_kv_a_norm.weight 16 attn_output.weight 32,48 "
)
DENSE = "ffn_gate.weight 48,32 ffn_up.weight 48,32 ffn_down.weight 32,48"
SPARSE = (
    "ffn_gate_inp.weight 4,32 exp_probs_b.bias 4 ffn_gate_exps.weight 4,24,32 ffn_up_exps.weight 4,24,32 "
    "ffn_down_exps.weight 4,32,24 ffn_gate_shexp.weight 24,32 ffn_up_shexp.weight 24,32 ffn_down_shexp.weight 32,24"
)
# 4 heads of 12 + 8 and 12 from a latent of 16, the matrix in one or, as later files have it, in two
WHOLE, HALVES = "attn_kv_b.weight 96,16", "attn_k_b.weight 4,16,12 attn_v_b.weight 4,12,16"


def listed(text: str, before: str = "") -> dict[str, tuple[int, ...]]:
    """Names and shapes; a weight and its bias where the name ends in a star."""
    found: dict[str, tuple[int, ...]] = {}
    words = text.split()
    for name, shape in zip(words[::2], words[1::2], strict=True):
        sides = tuple(map(int, shape.split(",")))
        if name.endswith(".*"):
            found[f"{before}{name[:-1]}bias"] = sides[:1]
            name = f"{name[:-1]}weight"
        found[before + name] = sides
    return found


def written(once: str, *layers: str) -> dict[str, tuple[int, ...]]:
    """The tensors of a file."""
    made = listed(once)
    for index, layer in enumerate(layers):
        made |= listed(layer, f"blk.{index}.")
    return made


def file(architecture: str, shapes: dict[str, tuple[int, ...]]) -> Checkpoint:
    """A file of these tensors, with the metadata that llama.cpp writes of the small model."""
    metadata, names, _ = SMALL[architecture]
    keys = held(architecture, metadata, names).metadata
    tensors = tuple(Held(name, "F32", shape, 0) for name, shape in shapes.items())
    return Checkpoint("small.gguf", "gguf", ("small.gguf",), tensors, keys)


def agrees(architecture: str, shapes: dict[str, tuple[int, ...]], **changed: Any) -> None:
    """The file holds what its config implies; a tensor less or of another shape is told."""
    read = file(architecture, shapes)
    model = read_config({**config_of(read), **changed}, "small.gguf", "small")
    found = check(model, shapes, speller(read))
    assert not found.differences, "\n".join(map(str, found.differences))
    assert found.agree == len(shapes)
    for lost, shape in shapes.items():
        if lost == "output.weight":
            continue
        less = check(model, {name: kept for name, kept in shapes.items() if name != lost}, speller(read))
        assert less.differences, lost
        grown = check(model, {**shapes, lost: (*shape, 3)}, speller(read))
        assert grown.differences, lost


@pytest.mark.parametrize("architecture", WRITTEN)
def test_files_hold_what_their_config_implies(architecture: str) -> None:
    once, layer = WRITTEN[architecture]
    agrees(architecture, written(once, layer, layer, layer))


@pytest.mark.parametrize("matrix", [WHOLE, HALVES])
def test_a_latent_may_lead_to_one_matrix_or_two(matrix: str) -> None:
    dense, sparse = LATENT + f"{matrix} {DENSE}", LATENT + f"{matrix} {SPARSE}"
    agrees("deepseek2", written(ENDS, dense, sparse, sparse))


def test_factors_of_rotation_are_made_anew() -> None:
    once, layer = WRITTEN["llama"]
    shapes = written(once, layer, layer, layer)
    read = file("llama", shapes)
    more = {**shapes, "rope_factors_long.weight": (4,), "rope_factors_short.weight": (4,)}
    found = check(read_config(config_of(read), "small.gguf", "small"), more, speller(read))
    assert (found.agree, found.differences, found.recomputed) == (len(shapes), (), 2)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_names_are_those_of_the_reference(architecture: str) -> None:
    """Every published name of every architecture, as the table of llama.cpp's own converter has it."""
    gguf = pytest.importorskip("gguf", reason="gguf is not installed")
    metadata, names, _ = SMALL[architecture]
    model = read_config(config_of(held(architecture, metadata, names)), "small.gguf", "small")
    kind = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}[architecture]
    table = gguf.get_tensor_name_map(kind, 3)
    spell, seen = Speller(architecture, architecture in FOUR_NORMS), 0
    for entry in tensors(model):
        for stored in entry.checkpoint:
            path = re.sub(r"(\.norms)?\.\{[^i][^{}]*\}", "", stored.path).replace("{i}", "1")
            theirs = table.get_name(path, try_suffixes=(".weight", ".bias"))
            if theirs is None or "." not in theirs.removeprefix("blk.1."):
                continue  # the converter has a rule of its own for it
            (name, _), *_ = spell(stored.path, stored.shape)[0]
            assert name.replace("{i}", "1") == theirs
            seen += 1
    assert seen >= 9
