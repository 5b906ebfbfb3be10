"""dots3: latent attention with windows in most layers, whose latents and heads have sizes of their own."""

from __future__ import annotations

from assay.blocks import Branch, Decoder, Layer, Rope, Step
from assay.blocks.moe import Moe
from assay.blocks.sparse import SparseLatent, sparsely
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import by_kind, depth, family, label, rms, stack, under
from assay.sources.families.latent import HARMLESS, dense, latent, routed, sparse_layers
from assay.sources.families.per_layer import Own, overlaid, per_layer
from assay.sources.families.sparse_latent import SPARSE, indexer

DOTS3 = {
    **SPARSE,
    **under("model.layers.{i}.self_attn.", {"Wgate": "g_proj.weight", "Gkp": "k_rope_only_layernorm.weight"}),
}
INDEXED, SLIDING, FULL = "indexed_attention", "sliding_attention", "full_attention"

# what windowed layers have instead, as the class sets it where a file has no table of its own for each layer
_WINDOWED = {
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "q_lora_rank": 1024,
    "kv_lora_rank": 1024,
    "head_dim": 256,
    "qk_nope_head_dim": 192,
    "v_head_dim": 128,
}


def layer_kinds(c: Config, layers: int) -> list[str]:
    """Which layers have an indexer, a window, or neither; older files call those with an indexer full."""
    known = (INDEXED, SLIDING, FULL)
    use = c.flag("use_dsa", True) if c.has("use_dsa") or not c.has("per_layer_config") else None
    slides = c.flag("use_sliding_window", True)
    listed = c.sequence("layer_types", lambda v: v in known, f"one of {', '.join(known)}", layers)
    full = FULL if use is False else INDEXED
    if listed is None:
        return [full if not slides or i < 2 or i % 4 == 1 else SLIDING for i in range(layers)]
    return listed if use is None else [SLIDING if kind == SLIDING else full for kind in listed]


def own_sizes(c: Config, kinds: list[str]) -> list[Own]:
    """The sizes that each layer has of its own: from `per_layer_config`, else from the keys of windowed layers."""
    windowed = dict(_WINDOWED)
    for key, size in _WINDOWED.items():
        windowed[key] = c.size(f"swa_{key}", size)
    windowed["qk_rope_head_dim"] = c.size(
        "swa_qk_rope_head_dim", max(windowed["head_dim"] - windowed["qk_nope_head_dim"], 1)
    )
    found = per_layer(c, len(kinds), tuple(windowed))
    return found if found is not None else [tuple(windowed.items()) if kind == SLIDING else () for kind in kinds]


@family("dots3_note_text", cls="Dots3NoteForCausalLM", names=DOTS3, harmless=HARMLESS)
def dots3_note_text(c: Config) -> Decoder:
    """dots3: a gate of each head, latents scaled up, a norm of the rotary key."""
    c.absent(hidden_size=5120, vocab_size=152064, max_position_embeddings=524288, num_hidden_layers=46)
    c.absent(num_attention_heads=128, kv_lora_rank=512, q_lora_rank=1024, rms_norm_eps=1e-5)
    c.absent(qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, intermediate_size=13824)
    c.absent(n_routed_experts=256, num_experts_per_tok=8, moe_intermediate_size=1536, n_shared_experts=1)
    c.absent(n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=1.0)
    c.absent(index_topk=2048, index_head_dim=128, index_n_heads=64)
    c.rename(
        sliding_window_size="sliding_window", moe_shared_expert_intermediate_size="shared_experts_intermediate_size"
    )
    c.inert("mlp_bias", False)
    n, width, norm = depth(c), c.size("hidden_size"), rms(c)
    c.skip("swa_rope_theta")
    kinds = layer_kinds(c, n)
    window = c.maybe("sliding_window") or 512
    feed = sparse_layers(c, n, 1, steps=True)
    common = c.size("shared_experts_intermediate_size", 1536) * c.size("n_shared_experts")
    experts: Moe | None = replace(routed(c), shared=common) if "sparse" in feed else None

    def mixer(kind: str, own: Own) -> SparseLatent:
        inner = overlaid(c, own)
        base = replace(latent(inner), norm=norm)
        rank = inner.size("q_lora_rank")
        more: dict[str, object] = {"window": window} if kind == SLIDING else {}
        if kind == INDEXED:
            more["indexer"], more["top"] = indexer(c, base.positions or Rope(), base.rotary, style="interleaved")
        grown = ((width / rank) ** 0.5, (width / base.latent) ** 0.5)
        return sparsely(SparseLatent, base, rotary_norm=norm, grown=grown, gate="head", **more)

    def layer(key: tuple[str, Own, str]) -> Layer:
        kind, own, fed = key
        body = experts if fed == "sparse" and experts is not None else dense(c)
        steps = (Step((Branch(mixer(kind, own), norm),)), Step((Branch(body, norm),)))
        return Layer(steps, label(kind, fed))

    layers = by_kind(list(zip(kinds, own_sizes(c, kinds), feed, strict=True)), layer)
    return stack(c, layers, width, norm)
