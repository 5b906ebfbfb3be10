"""LongCat-Flash: layers of two halves, experts beside the second, some experts without work."""

from __future__ import annotations

from assay.blocks import Decoder
from assay.blocks.moe import Router
from assay.blocks.shortcut import ShortcutLayer, ZeroMoe
from assay.blocks.sparse import SparseLatent, sparsely
from assay.errors import SourceError
from assay.sources.config import Config
from assay.sources.families.common import Names, activation, depth, family, rms, stack, under
from assay.sources.families.latent import LATENT, latent

LAYER = "model.layers.{i}."


def half(name: str, index: int) -> Names:
    """Where the weights of one half are stored: the first or the second of each list."""
    mixer = {
        f"{name}.{weight}": path.replace("self_attn.", f"self_attn.{index}.")
        for weight, path in LATENT.items()
        if "self_attn." in path and not weight.startswith("B")
    }
    others = {
        "Ga": f"input_layernorm.{index}.weight",
        "Gm": f"post_attention_layernorm.{index}.weight",
        **{f"W{letter[0]}": f"mlps.{index}.{letter}_proj.weight" for letter in ("gate", "up", "down")},
    }
    return mixer | under(LAYER, {f"{name}.{weight}": path for weight, path in others.items()})


LONGCAT = {
    **LATENT,
    **half("first", 0),
    **half("second", 1),
    **under(
        LAYER,
        {
            "Wr": "mlp.router.classifier.weight",
            "Br": "mlp.router.classifier.bias",
            "Cr": "~mlp.router.e_score_correction_bias",
            "Ed": "mlp.experts.down_proj[E d f]",
        },
    ),
}


@family(
    "longcat_flash",
    cls="LongcatFlashForCausalLM",
    names=LONGCAT,
    harmless="head_dim num_key_value_heads num_nextn_predict_layers rope_interleave router_dtype".split(),
)
def longcat_flash(c: Config) -> Decoder:
    """Meituan 2025, arXiv:2509.01322."""
    c.rename(
        num_local_experts="n_routed_experts",
        num_experts_per_tok="moe_topk",
        intermediate_size="ffn_hidden_size",
        moe_intermediate_size="expert_ffn_hidden_size",
    )
    c.absent(hidden_size=6144, vocab_size=131072, max_position_embeddings=131072, num_attention_heads=64)
    c.absent(kv_lora_rank=512, q_lora_rank=1536, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128)
    c.absent(rms_norm_eps=1e-5)
    for key, value in (("attention_method", "MLA"), ("zero_expert_type", "identity"), ("attention_bias", False)):
        c.inert(key, value)
    c.inert("mla_scale_q_lora", True)
    c.inert("mla_scale_kv_lora", True)
    n = layers(c)
    base, width = latent(c), c.size("hidden_size")
    whole = base.plain + base.rotary
    if (c.maybe("qk_head_dim") or whole) != whole:
        c.fail("qk_head_dim", f"qk_nope_head_dim + qk_rope_head_dim, {whole}")
    grown = ((width / c.size("q_lora_rank")) ** 0.5, (width / base.latent) ** 0.5)
    layer = ShortcutLayer(
        (),
        "layer",
        sparsely(SparseLatent, base, grown=grown),
        experts(c, width),
        c.size("ffn_hidden_size", 12288),
        rms(c),
        activation(c),
    )
    return stack(c, (layer,) * n, width, rms(c))


def layers(c: Config) -> int:
    """How many pairs of halves; `num_hidden_layers` counts halves."""
    if not c.has("num_layers") and c.has("num_hidden_layers"):
        return c.divides("num_hidden_layers", depth(c), "num_layers", 2)
    n = depth(c, 28, key="num_layers")
    if c.maybe("num_hidden_layers", 2 * n) != 2 * n:
        c.fail("num_hidden_layers", f"twice num_layers, {2 * n}")
    return n


def experts(c: Config, width: int) -> ZeroMoe:
    """Experts, and those without work, which the public implementation gives a gate and an up matrix all the same."""
    count, zero = c.size("n_routed_experts", 512), c.maybe("zero_expert_num", 256, least=0) or 0
    chosen, inner = c.size("moe_topk", 12), c.size("expert_ffn_hidden_size", 2048)
    if chosen > count:
        raise SourceError(f"{c.where}: {c.path('moe_topk')} is {chosen}; it must be at most n_routed_experts, {count}")
    router = Router(
        "softmax",
        bias=c.flag("router_bias", False),
        correction=True,
        scale=c.number("routed_scaling_factor", 6.0),
    )
    if zero:
        c.notes.append(
            f"{zero} of {count + zero} experts give back what they are given: FLOPs and active parameters are those of "
            f"tokens that choose none of them; the public implementation keeps matrices of theirs that are never used, "
            f"{2 * zero * inner * width:,} elements a layer, which no checkpoint holds"
        )
    return ZeroMoe(count, zero, chosen, inner, router, activation(c))
