"""MiniMax M3: grouped queries that attend to the best blocks of keys, clamped experts beside a shared one."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Layer, Mlp, Norm
from assay.blocks.moe import Moe, Router
from assay.blocks.sparse import BlockSparseAttention
from assay.sources.config import Config
from assay.sources.families.common import by_kind, depth, family, label, pre_norm, rope, stack, under
from assay.sources.families.experts import CORRECTION, LAYER, MIXTRAL, packed, pool
from assay.sources.families.names import gate_and_up

MINIMAX_M3 = {
    **MIXTRAL,
    **packed(**CORRECTION),
    **under(
        LAYER,
        {
            **gate_and_up("mlp.gate_up_proj"),
            "Wd": "mlp.down_proj.weight",
            "Sg": "mlp.shared_experts.gate_up_proj.weight[+s d]",
            "Su": "mlp.shared_experts.gate_up_proj.weight[+s d]",
            "Sd": "mlp.shared_experts.down_proj.weight",
            "Wiq": "self_attn.indexer.q_proj.weight",
            "Wik": "self_attn.indexer.k_proj.weight",
            "Giq": "self_attn.indexer.q_norm.weight",
            "Gik": "self_attn.indexer.k_norm.weight",
        },
    ),
}
_SPARSE = "minimax_m3_sparse"
_OLDER = {
    "index_n_heads": "sparse_num_index_heads",
    "index_head_dim": "sparse_index_dim",
    "index_block_size": "sparse_block_size",
    "index_topk_blocks": "sparse_topk_blocks",
    "index_local_blocks": "sparse_local_block",
}


@family("minimax_m3_vl_text", cls="MiniMaxM3VLForCausalLM", names=MINIMAX_M3, harmless=("num_mtp_modules",))
def minimax_m3(c: Config) -> Decoder:
    """MiniMax 2026."""
    c.rename(num_experts="num_local_experts")
    c.skip("hidden_act")  # the gate is what `swiglu_alpha` and `swiglu_limit` say, whatever is named
    d, n = c.size("hidden_size", 6144), depth(c, 60)
    norm = Norm(eps=c.positive("rms_norm_eps", 1e-6), unit_offset=True)
    constants = (("alpha", c.positive("swiglu_alpha", 1.702)), ("limit", c.positive("swiglu_limit", 7.0)))
    mlp = Mlp(c.size("dense_intermediate_size", 12288), activation="swiglu_clamp", constants=constants)
    moe = Moe(
        *pool(c, "num_local_experts", 128, 4),
        c.size("intermediate_size", 3072),
        Router("sigmoid", correction=True, normalize=True, scale=c.number("routed_scaling_factor", 2.0)),
        activation="swiglu_clamp",
        constants=constants,
        shared=c.size("shared_intermediate_size", 3072),
    )
    mixers = {False: attention(c, norm), True: sparse_attention(c, norm)}

    def layer(key: tuple[bool, bool]) -> Layer:
        words = label("indexed" if key[0] else "full", "experts" if key[1] else "dense")
        return pre_norm(mixers[key[0]], moe if key[1] else mlp, norm, words)

    layers = by_kind(list(zip(_indexed(c, n), _routed(c, n), strict=True)), layer)
    return stack(c, layers, d, norm, vocab=200064, trained=524288)


def attention(c: Config, norm: Norm) -> Attention:
    """Grouped queries with a norm of each head, a part of it rotated."""
    heads, groups, width = c.size("num_attention_heads", 64), c.size("num_key_value_heads", 4), c.size("head_dim", 128)
    c.divides("num_attention_heads", heads, "num_key_value_heads", groups)
    turned = c.size("rotary_dim", min(64, width))
    if turned > width:
        c.fail("rotary_dim", f"at most head_dim, {int(width)}")
    return Attention(heads, groups, width, qk_norm=norm, positions=rope(c, width, 5e6, turned / width))


def sparse_attention(c: Config, norm: Norm) -> BlockSparseAttention:
    """The same to the best blocks."""
    plain = attention(c, norm)
    older = c.child("sparse_attention_config")

    def size(key: str, default: int, least: int = 1) -> int:
        known = older.has(_OLDER[key])
        return older.size(_OLDER[key], least=least) if known else c.size(key, default, least=least)

    if size("index_local_blocks", 1, least=0) < 1:
        c.fail("index_local_blocks", "at least 1: otherwise what a query sees depends on the text")
    return BlockSparseAttention(
        plain.heads,
        plain.kv_heads,
        plain.head_width,
        qk_norm=norm,
        positions=plain.positions,
        index_heads=size("index_n_heads", 4),
        index_width=size("index_head_dim", 128),
        block=size("index_block_size", 128),
        blocks=size("index_topk_blocks", 16),
    )


def _indexed(c: Config, n: int) -> list[bool]:
    """Which layers have an indexer."""
    older = c.child("sparse_attention_config")
    listed = c.sequence("layer_types", lambda v: v in (_SPARSE, "full_attention"), f"{_SPARSE} or full_attention", n)
    flags = older.sequence("sparse_attention_freq", lambda v: v in (0, 1), "0 or 1", n)
    if listed is not None:
        return [kind == _SPARSE for kind in listed]
    return [bool(flag) for flag in flags] if flags is not None else [False] * n


def _routed(c: Config, n: int) -> list[bool]:
    """Which layers have experts."""
    listed = c.sequence("mlp_layer_types", lambda v: v in ("sparse", "dense"), "sparse or dense", n)
    flags = c.sequence("moe_layer_freq", lambda v: v in (0, 1), "0 or 1", n)
    if listed is not None:
        return [kind == "sparse" for kind in listed]
    return [bool(flag) for flag in flags] if flags is not None else [True] * n
