"""Latent attention to few keys, chosen by an indexer: DeepSeek-V3.2 and what keeps it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from assay.blocks import Branch, Decoder, Layer, Rope, Step
from assay.blocks.latent import Latent
from assay.blocks.sparse import FusedGateLatent, GatedInput, Indexer, SparseLatent, sparsely
from assay.blocks.stacks import Scaled
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import by_kind, depth, family, label, predicting, rms, stack, under
from assay.sources.families.latent import HARMLESS, LATENT, absent_v3, dense, latent, routed, sparse_layers

INDEXER = under(
    "model.layers.{i}.self_attn.indexer.",
    {"Wiq": "wq_b.weight", "Wik": "wk.weight", "Gik": "k_norm.weight", "Wiw": "weights_proj.weight"},
)
SPARSE = {**LATENT, **INDEXER}

# the schedule of an index's sharing is read from `indexer_types` where it stands; the other keys speak of a further
# prediction module, of rotations and of precision
_HARMLESS = (*HARMLESS, "index_share_for_mtp_iteration", "indexer_rope_interleave", "moe_router_dtype")


def indexer(
    c: Config, positions: Rope, rotary: int, default_top: int = 2048, style: str | None = None
) -> tuple[Indexer, int]:
    """The indexer, turned as the heads are but in a style of its own, and how many keys it chooses."""
    heads, width, top = c.size("index_n_heads"), c.size("index_head_dim"), c.size("index_topk", default_top)
    if rotary > width:
        c.fail("index_head_dim", f"at least {c.path('qk_rope_head_dim')}, {int(rotary)}")
    return Indexer(heads, width, replace(positions, width=rotary, style=style)), top


def all_indexed(c: Config) -> None:
    """Every layer is of one kind of attention, whatever else `layer_types` could say."""
    c.sequence("layer_types", lambda v: v == "indexed_attention", "indexed_attention")


def sparse(c: Config, base: Latent, chooses: bool = True, style: str | None = None, **more: Any) -> SparseLatent:
    """Latent attention to the best keys; `chooses` where the layer has an indexer of its own, turned in `style`."""
    own, top = indexer(c, base.positions or Rope(), base.rotary, style=style)
    all_indexed(c)
    return sparsely(SparseLatent, base, indexer=own if chooses else None, top=top, **more)


def shared_indices(c: Config, layers: int, default: Callable[[int], str]) -> list[str]:
    """Which layers have an indexer (full), and which use the last one's choice (shared)."""
    kinds = c.sequence("indexer_types", lambda v: v in ("full", "shared"), "full or shared", layers)
    found = kinds if kinds is not None else [default(i) for i in range(layers)]
    if found[0] != "full":
        c.fail("indexer_types", "a list that begins with full: there is no earlier choice to share")
    return found


def _pattern(c: Config, layers: int) -> Callable[[int], str]:
    """The older keys of the same: a pattern of F and S, or one indexer in every so many layers."""
    words = {"F": "full", "S": "shared"}
    pattern = c.data.get("index_topk_pattern")
    c.skip("index_topk_pattern")
    if pattern is not None:
        c.skip("index_topk_freq", "index_skip_topk_offset")
        wanted = f"{layers} letters F or S, the first F"
        if not isinstance(pattern, str) or len(pattern) != layers or set(pattern) - set(words) or pattern[0] != "F":
            c.fail("index_topk_pattern", wanted)
        return lambda i: words[pattern[i]]
    every, offset = max(c.size("index_topk_freq", 1, least=0), 1), c.size("index_skip_topk_offset", 2, least=0)
    return lambda i: "shared" if max(i - offset + 1, 0) % every else "full"


def layers_of(c: Config, kinds: Sequence[str], indices: Sequence[str], mixers: dict[str, SparseLatent]) -> Decoder:
    """Layers of attention with and without an indexer, over experts or a dense layer."""
    norm = rms(c)
    experts = routed(c) if "sparse" in kinds else None
    feed_forward = dense(c) if "dense" in kinds else None

    def layer(kind: tuple[str, str]) -> Layer:
        body = experts if kind[0] == "sparse" else feed_forward
        assert body is not None
        words = label(kind[0], f"{kind[1]} index" if len(set(indices)) > 1 else "")
        return Layer((Step((Branch(mixers[kind[1]], norm),)), Step((Branch(body, norm),))), words)

    made = stack(c, by_kind(list(zip(kinds, indices, strict=True)), layer), c.size("hidden_size"), norm)
    return predicting(c, made, layer(("sparse" if experts is not None else "dense", "full")), norm)


@family("deepseek_v32", cls="DeepseekV32ForCausalLM", names=SPARSE, harmless=_HARMLESS)
def deepseek_v32(c: Config) -> Decoder:
    """DeepSeek-AI 2025: DeepSeek-V3 with an indexer in each layer."""
    absent_v3(c, 163840)
    c.absent(index_topk=2048, index_head_dim=128, index_n_heads=64)
    c.size("q_lora_rank")
    n = depth(c)
    return layers_of(c, sparse_layers(c, n, 3), ["full"] * n, {"full": sparse(c, latent(c))})


@family("glm_moe_dsa", cls="GlmMoeDsaForCausalLM", names=SPARSE, harmless=_HARMLESS)
def glm_moe_dsa(c: Config) -> Decoder:
    """GLM-5: the same, where layers may share the choice of an earlier one's indexer."""
    c.absent(hidden_size=6144, vocab_size=154880, max_position_embeddings=202752, num_hidden_layers=78)
    c.absent(num_attention_heads=64, kv_lora_rank=512, q_lora_rank=2048, rms_norm_eps=1e-5)
    c.absent(qk_nope_head_dim=192, qk_rope_head_dim=64, v_head_dim=256, intermediate_size=12288)
    c.absent(n_routed_experts=256, num_experts_per_tok=8, moe_intermediate_size=2048, n_shared_experts=1)
    c.absent(n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5)
    c.absent(index_topk=2048, index_head_dim=128, index_n_heads=32)
    c.size("q_lora_rank")
    n = depth(c)
    full = sparse(c, latent(c), style="interleaved")
    indices = shared_indices(c, n, _pattern(c, n))
    return layers_of(c, sparse_layers(c, n, 3), indices, {"full": full, "shared": replace(full, indexer=None)})


AXK2 = {
    **SPARSE,
    **under(
        "model.layers.{i}.",
        {
            "Wqb": "self_attn.q_gate_proj.weight[+(h k) L]",
            "Wgate": "self_attn.q_gate_proj.weight[+(h v) L]",
            "Ga": "input_layernorm.norm.weight",
            "Wa_in": "input_layernorm.mlp.fc1.weight",
            "Wa_out": "input_layernorm.mlp.fc2.weight",
            "Gm": "post_attention_layernorm.norm.weight",
            "Wm_in": "post_attention_layernorm.mlp.fc1.weight",
            "Wm_out": "post_attention_layernorm.mlp.fc2.weight",
            "Gd": "post_attention_layernorm.weight",  # of a dense layer, whose norm has no gate
        },
    ),
}


@family("axk2", cls="AXK2ForCausalLM", names=AXK2, harmless=_HARMLESS)
def axk2(c: Config) -> Decoder:
    """A.X K2: norms with a low-rank gate, and a gate of the outputs made of the queries' rank."""
    c.absent(hidden_size=2048, vocab_size=163840, max_position_embeddings=131072, num_hidden_layers=48)
    c.absent(num_attention_heads=32, kv_lora_rank=128, q_lora_rank=384, gated_norm_rank=16)
    c.absent(qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64, intermediate_size=5120)
    c.absent(n_routed_experts=128, num_experts_per_tok=8, moe_intermediate_size=512, n_shared_experts=1)
    c.absent(norm_topk_prob=True, routed_scaling_factor=2.5, index_topk=2048, index_head_dim=128, index_n_heads=16)
    c.size("q_lora_rank")
    c.inert("mlp_bias", False)
    if c.has("n_group") != c.has("topk_group"):
        c.fail("topk_group", "set where n_group is, null where n_group is null")
    rank, norm = c.size("gated_norm_rank"), rms(c)
    all_indexed(c)
    base = latent(c)
    own, top = indexer(c, base.positions or Rope(), base.rotary)
    mixer = GatedInput(sparsely(FusedGateLatent, base, indexer=own, top=top), rank)
    kinds = sparse_layers(c, depth(c), 1, steps=True)
    experts = GatedInput(routed(c), rank, "m") if "sparse" in kinds else None
    plain = Scaled(dense(c), tag="d") if "dense" in kinds else None

    def layer(kind: str) -> Layer:
        body = experts if kind == "sparse" else plain
        assert body is not None
        return Layer((Step((Branch(mixer, norm),)), Step((Branch(body, norm),))), label(kind))

    return stack(c, by_kind(kinds, layer), c.size("hidden_size"), norm)
