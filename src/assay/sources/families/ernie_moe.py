"""ERNIE 4.5, Hunyuan's mixtures: experts in a range of layers or in all, beside shared ones."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Layer, Mlp
from assay.blocks.moe import Moe, Router
from assay.sources.config import Config
from assay.sources.families.common import activation, by_kind, depth, family, heads, pre_norm, rms, rope, stack, under
from assay.sources.families.dense import biased
from assay.sources.families.experts import FURTHER, LAYER, MIXTRAL, alike, beside, chosen, packed, pool, sparse_layers

ERNIE = {**MIXTRAL, **packed(Cr="gate.moe_statics.e_score_correction_bias[1 e]"), **beside()}


@family(
    "ernie4_5_moe",
    cls="Ernie4_5_MoeForCausalLM",
    names=ERNIE,
    harmless=(*FURTHER, "moe_capacity", "moe_gate", "moe_use_aux_free"),
)
def ernie4_5_moe(c: Config) -> Decoder:
    """Baidu 2025: `use_bias` gives one to every projection, the head and the shared experts, none to routed ones."""
    c.rename(num_experts="moe_num_experts", num_experts_per_tok="moe_k")
    d = c.size("hidden_size", 2560)
    h = heads(c, d, 20, 4)
    n = depth(c, 28)
    norm = rms(c, 1e-5)
    every = c.flag("use_bias", False)
    attention = Attention(*h, bias="qkvo" if every else "", positions=rope(c, h.width, 5e5, style="interleaved"))
    mlp_bias = "gud" if every else ""
    mlp = Mlp(c.size("intermediate_size", 12288), activation=activation(c), bias=mlp_bias)
    width = c.size("moe_intermediate_size", 1536)
    c.skip("moe_norm_min")
    moe = Moe(
        *pool(c, "moe_num_experts", 64, 6, "moe_k"),
        width,
        Router("softmax", correction=True, normalize=True),
        activation=activation(c),
        shared=width * c.size("moe_num_shared_experts", 2, least=0) or None,
        shared_bias=mlp_bias,
    )
    start, step = c.size("moe_layer_start_index", 1, least=0), c.size("moe_layer_interval", 1)
    end = c.size("moe_layer_end_index", -1, least=-1)
    last = n - 1 if end == -1 else end

    sparse = [(i + 1) % step == 0 and start <= i <= last for i in range(n)]
    layers = alike(sparse, attention, mlp, moe, norm)
    return stack(c, layers, d, norm, vocab=103424, tied=True, trained=131072, bias=every)


HY = {**MIXTRAL, **beside(), **under(LAYER, {"Cr": "~mlp.e_score_correction_bias"})}


@family("hy_v3", cls="HYV3ForCausalLM", names=HY, harmless=(*FURTHER, "enable_moe_fp32_combine"))
def hy_v3(c: Config) -> Decoder:
    """Tencent 2026 (Hy3)."""
    c.rename(num_local_experts="num_experts")
    d = c.size("hidden_size", 4096)
    h = heads(c, d, 64, 8, 128)
    n = depth(c, 80)
    norm = rms(c, 1e-5)
    attention = Attention(
        *h,
        bias=biased(c, "attention_bias", "qkvo"),
        qk_norm=norm,
        positions=rope(c, h.width, 11158840.0),
    )
    mlp_bias = biased(c, "mlp_bias", "gud")
    mlp = Mlp(c.size("intermediate_size", 13312), activation=activation(c), bias=mlp_bias)
    width = c.size("moe_intermediate_size", 1536)
    moe = Moe(
        *pool(c, "num_experts", 192, 8),
        width,
        Router("sigmoid", correction=True, normalize=True, scale=c.positive("router_scaling_factor", 2.826)),
        activation=activation(c),
        shared=width * c.size("num_shared_experts", 1),
        shared_bias=mlp_bias,
    )

    layers = alike(sparse_layers(c, n, lambda i: i > 0), attention, mlp, moe, norm)
    return stack(c, layers, d, norm, vocab=120832, trained=131072)


HUNYUAN = {
    **MIXTRAL,
    **beside("mlp.shared_mlp."),
    **under(
        LAYER,
        {
            "Gqn": "self_attn.query_layernorm.weight",
            "Gkn": "self_attn.key_layernorm.weight",
            "Wr": "mlp.gate.wg.weight",
        },
    ),
}


@family(
    "hunyuan_v1_moe",
    cls="HunYuanMoEV1ForCausalLM",
    names=HUNYUAN,
    # latent attention and shared keys are switched off below; what the released code carries for towers
    harmless=(
        *(
            "cla_share_factor",
            "dense_list",
            "num_media_embeds",
            "org_vocab_size",
            "pool_type",
            "add_classification_head",
        ),
        *("anyres_pooling_size", "anyres_vit_max_image_size", "anyres_vit_two_views", "moe_drop_tokens"),
        *("vit_add_patchemb_bias", "vit_used_rms_norm", "vit_remove_prenorm", "vit_patch", "vit_type", "vit_path"),
        *("vit_input_resolution", "vit_mapping_type", "vit_norm_type", "vit_token", "use_vit", "max_image_size"),
        *("max_vit_seq_len", "xdrope_section", "position_embedding_xdrope"),
    ),
)
def hunyuan_v1_moe(c: Config) -> Decoder:
    """Sun et al. 2024: queries and keys are normed after their rotation; a shared MLP of a routed expert's width."""
    c.rename(num_local_experts="num_experts", num_experts_per_tok="moe_topk", attention_head_dim="head_dim")
    d = c.size("hidden_size", 4096)
    h = heads(c, d, 32)
    n = depth(c, 32)
    for key, value in (("use_qk_norm", True), ("use_mixed_mlp_moe", True), ("use_cla", False), ("mlp_bias", False)):
        c.inert(key, value)
    c.inert("moe_layer_num_skipped", 0)
    c.inert("norm_type", "rms")
    c.inert("norm_topk_prob", True)
    c.inert("use_rotary_pos_emb", True)
    c.inert("use_mla", False)
    c.inert("position_embedding_xdrope", False)
    c.inert("num_shared_expert", 1, [1] * n)
    c.inert("moe_intermediate_size", c.data.get("intermediate_size"), [c.data.get("intermediate_size")] * n)
    norm = rms(c, 1e-5)
    attention = Attention(
        *h,
        bias=biased(c, "attention_bias", "qkvo"),
        qk_norm=norm,
        norm_late=True,
        positions=rope(c, h.width),
    )
    e = c.size("num_experts", 1)
    width = c.size("intermediate_size", 11008)
    act = activation(c)
    if isinstance(c.data.get("moe_topk"), list):
        fits = f"an integer from 1 to num_experts, {e}"
        counts = c.sequence(
            "moe_topk", lambda v: isinstance(v, int) and not isinstance(v, bool) and 1 <= v <= e, fits, n
        )
        assert counts is not None
    else:
        counts = [chosen(c, "moe_topk", 1, e, "num_experts")] * n

    def layer(k: int) -> Layer:
        moe = Moe(e, k, width, Router(normalize=True), activation=act, shared=width)
        return pre_norm(attention, moe, norm, f"{k} of {e} experts")

    return stack(c, by_kind(counts, layer), d, norm, vocab=290943, trained=2048)
