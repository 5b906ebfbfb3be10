"""The metadata of a .gguf file as the config.json that it was made from: one table an architecture.

Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. What no key says is read off the tensors: whether the
head is one of its own, whether projections have biases, how many rows the vocabulary has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.errors import SourceError
from assay.records import dataclass, field
from assay.sources.checkpoints.gguf import Length
from assay.sources.checkpoints.held import Checkpoint, Held
from assay.sources.shown import short

# config key <- key of the metadata, below the architecture's name; ? marks one that may be absent
_BASE = """
    hidden_size=embedding_length num_hidden_layers=block_count num_attention_heads=attention.head_count
    num_key_value_heads=attention.head_count_kv? intermediate_size=feed_forward_length
    max_position_embeddings=context_length head_dim=attention.key_length? rope_theta=rope.freq_base?
    rms_norm_eps=attention.layer_norm_rms_epsilon?
"""
_LAYERNORM = " layer_norm_eps=attention.layer_norm_epsilon?"
_WINDOW = " sliding_window=attention.sliding_window?"
_EXPERTS = " num_experts=expert_count num_experts_per_tok=expert_used_count"
_WIDE_EXPERTS = _EXPERTS + " moe_intermediate_size=expert_feed_forward_length"
_GPT2 = """
    n_embd=embedding_length n_layer=block_count n_head=attention.head_count n_inner=feed_forward_length
    n_positions=context_length layer_norm_epsilon=attention.layer_norm_epsilon
"""
_NEOX = """
    hidden_size=embedding_length num_hidden_layers=block_count num_attention_heads=attention.head_count
    intermediate_size=feed_forward_length max_position_embeddings=context_length
    layer_norm_eps=attention.layer_norm_epsilon use_parallel_residual=use_parallel_residual
"""


@dataclass(frozen=True)
class Architecture:
    """How an architecture's metadata becomes a config: keys, constants, and what the tensors tell."""

    model_type: str
    keys: str = _BASE
    values: Mapping[str, Any] = field(default_factory=dict)
    more: Callable[[Metadata], dict[str, Any]] = lambda _: {}
    without: tuple[str, ...] = ()  # keys of the common table that the type lacks


class Metadata:
    """Metadata below an architecture's name, and the tensors. Raises SourceError naming file and key."""

    def __init__(self, checkpoint: Checkpoint, architecture: str) -> None:
        self.where, self.architecture = checkpoint.where, architecture
        self.values = checkpoint.metadata
        self.tensors: dict[str, Held] = {tensor.name: tensor for tensor in checkpoint.tensors}

    def get(self, key: str) -> Any:
        """A number of the architecture; None where it is absent. One that every layer repeats counts once."""
        full = f"{self.architecture}.{key}"
        value = self.values.get(full)
        if isinstance(value, list) and value and all(item == value[0] for item in value):
            value = value[0]
        if isinstance(value, list | Length | str):
            raise SourceError(f"{self.where}: {full} is {short(value)}, not the same for every layer: not read so far")
        return value

    def need(self, key: str) -> Any:
        """The same, where it must be there."""
        value = self.get(key)
        if value is None:
            raise SourceError(f"{self.where}: {self.architecture}.{key} is missing")
        return value

    def has(self, name: str) -> bool:
        """True where a tensor has the name."""
        return name in self.tensors

    def rows(self, name: str) -> int:
        """Rows of a table. Raises SourceError where it is not there."""
        tensor = self.tensors.get(name)
        if tensor is None or not tensor.shape:
            raise SourceError(f"{self.where}: the tensor {name} is missing")
        return tensor.shape[0]


def _llama(m: Metadata) -> dict[str, Any]:
    if not m.get("expert_count"):
        return {"attention_bias": m.has("blk.0.attn_q.bias"), "mlp_bias": m.has("blk.0.ffn_gate.bias")}
    chosen = {"num_local_experts": m.need("expert_count"), "num_experts_per_tok": m.need("expert_used_count")}
    return {"model_type": "mixtral", **chosen}


def _window_types(m: Metadata) -> dict[str, Any]:
    return {"query_pre_attn_scalar": m.need("attention.key_length")}


def _shared(m: Metadata) -> dict[str, Any]:
    return {"shared_expert_intermediate_size": m.need("expert_shared_feed_forward_length")}


def _qwen3(m: Metadata) -> dict[str, Any]:
    return {"attention_bias": m.has("blk.0.attn_q.bias")}


def _latent(m: Metadata) -> dict[str, Any]:
    """DeepSeek's latent attention: widths of the parts with positions and without, of values, of the latents."""
    turned = m.need("rope.dimension_count")
    whole = m.get("attention.key_length_mla") or m.need("attention.key_length")
    values = m.get("attention.value_length_mla") or m.need("attention.value_length")
    return {
        "model_type": "deepseek_v3" if m.has(f"blk.{m.need('leading_dense_block_count')}.exp_probs_b.bias")
        else "deepseek_v2",
        "kv_lora_rank": m.need("attention.kv_lora_rank"),
        "q_lora_rank": m.get("attention.q_lora_rank"),
        "qk_rope_head_dim": turned,
        "qk_nope_head_dim": whole - turned,
        "v_head_dim": values,
        "num_key_value_heads": m.need("attention.head_count"),
        "n_routed_experts": m.need("expert_count"),
        "n_shared_experts": m.get("expert_shared_count") or None,
        "num_experts_per_tok": m.need("expert_used_count"),
        "moe_intermediate_size": m.need("expert_feed_forward_length"),
        "first_k_dense_replace": m.need("leading_dense_block_count"),
        "n_group": m.get("expert_group_count") or 1,
        "topk_group": m.get("expert_group_used_count") or 1,
        "topk_method": "greedy",
    }  # fmt: skip


_GATED = {"hidden_act": "silu"}
ARCHITECTURES = {
    "llama": Architecture("llama", more=_llama),
    "qwen2": Architecture("qwen2", without=("head_dim",)),
    "qwen2moe": Architecture("qwen2_moe", _BASE + _WIDE_EXPERTS, more=_shared, without=("head_dim",)),
    "qwen3": Architecture("qwen3", more=_qwen3),
    "qwen3moe": Architecture("qwen3_moe", _BASE + _WIDE_EXPERTS, more=_qwen3),
    "gemma": Architecture("gemma", values={"hidden_activation": "gelu_pytorch_tanh"}),
    "gemma2": Architecture("gemma2", _BASE + _WINDOW),
    "gemma3": Architecture("gemma3_text", _BASE + _WINDOW, more=_window_types),
    "phi3": Architecture("phi3", _BASE + _WINDOW, without=("head_dim",)),
    "olmo2": Architecture("olmo2", without=("head_dim",)),
    "olmoe": Architecture("olmoe", _BASE + _EXPERTS, without=("head_dim",)),
    "starcoder2": Architecture("starcoder2", _BASE + " norm_epsilon=attention.layer_norm_epsilon?",
                               without=("head_dim", "rms_norm_eps")),
    "stablelm": Architecture(
        "stablelm", _BASE + _LAYERNORM, without=("head_dim", "rms_norm_eps"),
        more=lambda m: {"use_qkv_bias": m.has("blk.0.attn_q.bias"), "qk_layernorm": m.has("blk.0.attn_q_norm.weight"),
                        "use_parallel_residual": not m.has("blk.0.ffn_norm.weight")},
    ),
    "command-r": Architecture("cohere", _BASE + _LAYERNORM, without=("head_dim", "rms_norm_eps"),
                              more=lambda m: {"use_qk_norm": m.has("blk.0.attn_q_norm.weight")}),
    "gpt-oss": Architecture("gpt_oss", _BASE + _WINDOW + " num_local_experts=expert_count "
                            "num_experts_per_tok=expert_used_count", more=lambda m: {
                                "intermediate_size": m.need("expert_feed_forward_length")}),
    "deepseek2": Architecture("deepseek_v3", more=_latent, without=("head_dim",)),
    "gpt2": Architecture("gpt2", _GPT2),
    "gptneox": Architecture("gpt_neox", _NEOX),
}  # fmt: skip


def config_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """The config of a GGUF checkpoint. Raises SourceError for an architecture or metadata that are not read."""
    name = checkpoint.metadata.get("general.architecture")
    known = ARCHITECTURES.get(name) if isinstance(name, str) else None
    if known is None:
        raise SourceError(
            f"{checkpoint.where}: general.architecture is {short(name)}; as a model are read "
            f"{', '.join(sorted(ARCHITECTURES))}; `assay checkpoint` lists the tensors of any"
        )
    m = Metadata(checkpoint, str(name))
    made: dict[str, Any] = {"model_type": known.model_type, **known.values}
    for pair in known.keys.split():
        key, _, source = pair.partition("=")
        if key in known.without:
            continue
        value = m.get(source[:-1]) if source.endswith("?") else m.need(source)
        if value is not None:
            made[key] = value
    values, keys = m.get("attention.value_length"), m.get("attention.key_length")
    if values != keys and known.model_type != "deepseek_v3":
        raise SourceError(f"{m.where}: {name}.attention.value_length is {values}; it must be the key length, {keys}")
    made["vocab_size"] = m.rows("token_embd.weight")
    made["tie_word_embeddings"] = not m.has("output.weight")
    return made | known.more(m)
