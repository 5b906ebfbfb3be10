"""DeepSeek's layer and what keeps it: latent attention, fine-grained experts beside shared ones, dense layers first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from assay.blocks import Body, Branch, Decoder, Layer, Mlp, Norm, Step
from assay.blocks.latent import Latent
from assay.blocks.moe import Moe, Router
from assay.blocks.multi_token import further_names
from assay.sources.config import Config
from assay.sources.families.common import activation, by_kind, depth, family, label, predicting, rms, rope, stack, under
from assay.sources.families.dense import biased
from assay.sources.families.llama import LLAMA
from assay.sources.rotations import grown

# both down projections of keys and values are one matrix, both up projections another, head by head
LATENT = {
    **LLAMA,
    **further_names("model.layers.{i}."),
    **under(
        "model.layers.{i}.",
        {
            "Wqa": "self_attn.q_a_proj.weight",
            "Bqa": "self_attn.q_a_proj.bias",
            "Gqa": "self_attn.q_a_layernorm.weight",
            "Wqb": "self_attn.q_b_proj.weight",
            "Wkva": "self_attn.kv_a_proj_with_mqa.weight[+z d]",
            "Wkvp": "self_attn.kv_a_proj_with_mqa.weight[+p d]",
            "Bkva": "self_attn.kv_a_proj_with_mqa.bias[+z]",
            "Bkvp": "self_attn.kv_a_proj_with_mqa.bias[+p]",
            "Gkva": "self_attn.kv_a_layernorm.weight",
            "Wkb": "self_attn.kv_b_proj.weight[(h +o) z]",
            "Wvb": "self_attn.kv_b_proj.weight[(h +v) z]",
            "Wr": "mlp.gate.weight",
            "Cr": "~mlp.gate.e_score_correction_bias",
            "Eg": "mlp.experts.gate_up_proj[e +f d]",
            "Eu": "mlp.experts.gate_up_proj[e +f d]",
            "Ed": "mlp.experts.down_proj[e d f]",
            "Sg": "mlp.shared_experts.gate_proj.weight",
            "Su": "mlp.shared_experts.up_proj.weight",
            "Sd": "mlp.shared_experts.down_proj.weight",
        },
    ),
}

# head_dim and qk_head_dim are set from the parts of a head whatever the file says; every head has its own keys;
# further prediction modules are left out of the causal model
HARMLESS = """
    head_dim qk_head_dim q_head_dim num_key_value_heads rope_interleave pretraining_tp ep_size
    num_mtp_layers num_nextn_predict_layers topk_method scoring_func aux_loss_alpha seq_aux num_routed_experts
""".split()


def latent(c: Config, interleaved: bool = True) -> Latent:
    """Latent attention in today's words; `interleaved` is how pairs are laid out where the config does not say."""
    rotary = c.size("qk_rope_head_dim")
    heads = c.size("num_attention_heads")
    value, plain = c.maybe("v_head_dim"), c.size("qk_nope_head_dim")
    positions = rope(c, rotary, style="interleaved" if c.flag("rope_interleave", interleaved) else None)
    return Latent(
        heads,
        c.size("kv_lora_rank"),
        plain,
        rotary,
        value if value is not None else c.divides("hidden_size", c.size("hidden_size"), "num_attention_heads", heads),
        c.maybe("q_lora_rank"),
        Norm(eps=1e-6),  # whatever the config's is
        positions,
        bias=biased(c, "attention_bias", "ao"),
        scale=grown(Config(dict(positions.scaling or ()), c.where, f"{c.prefix}rope_parameters."), plain + rotary),
    )


def routed(c: Config, scores: Literal["sigmoid", "softmax"] = "sigmoid", shared_bias: str = "") -> Moe:
    """Routed experts of one width, and shared ones of the same width side by side."""
    c.rename(
        num_local_experts="n_routed_experts", num_experts="n_routed_experts", num_shared_experts="n_shared_experts"
    )
    experts, width = c.size("n_routed_experts"), c.size("moe_intermediate_size")
    chosen = c.size("num_experts_per_tok")
    if chosen > experts:
        c.fail("num_experts_per_tok", f"at most n_routed_experts, {int(experts)}")
    groups, kept = c.maybe("n_group"), c.maybe("topk_group")
    if groups is not None:
        c.divides("n_routed_experts", experts, "n_group", groups)
        if kept is not None and kept > groups:
            c.fail("topk_group", f"at most n_group, {int(groups)}")
    common = c.maybe("n_shared_experts", least=0)
    given = c.flag("norm_topk_prob", False)
    grouped = scores == "sigmoid" or c.word("topk_method", "greedy") == "group_limited_greedy"
    router = Router(
        scores,
        correction=scores == "sigmoid",
        normalize=given and scores == "sigmoid",
        scale=c.number("routed_scaling_factor", 1.0),
        groups=groups if grouped else None,
        keep_groups=kept if grouped else None,
        judged=None if scores == "sigmoid" or not grouped else 1,
    )
    shared = width * common if common else None
    return Moe(experts, chosen, width, router, activation=activation(c), shared=shared, shared_bias=shared_bias)


def dense(c: Config, shifts: bool = False) -> Mlp:
    """The feed-forward layer of the layers without experts; with biases where the class has them, if asked for."""
    if not shifts:
        c.inert("mlp_bias", False)  # held by some config classes, used by none of their models
    bias = biased(c, "mlp_bias", "gud") if shifts else ""
    return Mlp(c.size("intermediate_size"), activation=activation(c), bias=bias)


# keys that say nothing where no layer is dense, or none has experts
_DENSE = ("intermediate_size", "mlp_bias")
_SPARSE = tuple(
    """moe_intermediate_size n_routed_experts num_local_experts num_experts n_shared_experts num_shared_experts
    num_experts_per_tok n_group topk_group norm_topk_prob routed_scaling_factor""".split()
)


def sparse_layers(c: Config, layers: int, first: int, steps: bool = False, free: bool = True) -> list[str]:
    """Which layers have experts: as `mlp_layer_types` lists, else all from `first_k_dense_replace` on.

    `steps`: of these, those that `moe_layer_freq` divides; classes differ in whether they look at it, and, if not
    `free`, at the first.
    """
    kinds = c.sequence("mlp_layer_types", lambda v: v in ("dense", "sparse"), "dense or sparse", layers)
    if kinds is not None:
        c.skip("first_k_dense_replace", "moe_layer_freq")
    else:
        if not free:
            c.inert("first_k_dense_replace", first)
        first = c.size("first_k_dense_replace", first, least=0) if free else first
        if not steps:
            c.inert("moe_layer_freq", 1)
        every = c.size("moe_layer_freq", 1) if steps and c.has("moe_layer_freq") else 1
        kinds = ["sparse" if i >= first and i % every == 0 else "dense" for i in range(layers)]
    c.skip(*(() if "dense" in kinds else _DENSE), *(() if "sparse" in kinds else _SPARSE))
    return kinds


def decoder(
    c: Config,
    kinds: Sequence[str],
    experts: Body | None,
    *,
    after: Norm | None = None,
    branches: float | None = None,
    shifts: bool = False,
    **more: Any,
) -> Decoder:
    """Latent attention in every layer, experts in the sparse ones.

    `after` is a norm of the experts' output, `branches` a multiplier of each branch; `shifts`: dense layers may have
    biases.
    """
    width = c.size("hidden_size")
    mixer, norm = latent(c), rms(c)

    def layer(kind: str) -> Layer:
        sparse = experts is not None and kind == "sparse"
        feed = Branch(experts, norm, after) if experts is not None and sparse else Branch(dense(c, shifts), norm)
        return Layer((Step((Branch(mixer, norm),), scale=branches), Step((feed,), scale=branches)), label(kind))

    made = stack(c, by_kind(kinds, layer), width, norm, **more)
    return predicting(c, made, layer("sparse" if experts is not None else "dense"), norm)


def absent_v3(c: Config, positions: int) -> None:
    """The sizes of DeepSeek-V3, where a config has none."""
    c.absent(hidden_size=7168, vocab_size=129280, max_position_embeddings=positions, num_hidden_layers=61)
    c.absent(num_attention_heads=128, kv_lora_rank=512, q_lora_rank=1536)
    c.absent(qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, intermediate_size=18432)
    c.absent(n_routed_experts=256, num_experts_per_tok=8, moe_intermediate_size=2048, n_shared_experts=1)
    c.absent(n_group=8, topk_group=4, norm_topk_prob=True, routed_scaling_factor=2.5)


@family("deepseek_v3", "kimi_k2", cls="DeepseekV3ForCausalLM", names=LATENT, harmless=HARMLESS)
def deepseek_v3(c: Config) -> Decoder:
    """DeepSeek-AI 2024, arXiv:2412.19437."""
    absent_v3(c, 4096)
    return decoder(c, sparse_layers(c, depth(c), 3), routed(c))


@family("deepseek_v2", cls="DeepseekV2ForCausalLM", names=LATENT, harmless=HARMLESS)
def deepseek_v2(c: Config) -> Decoder:
    """DeepSeek-AI 2024, arXiv:2405.04434."""
    c.absent(hidden_size=4096, vocab_size=102400, max_position_embeddings=2048, num_hidden_layers=32)
    c.absent(num_attention_heads=32, kv_lora_rank=512, q_lora_rank=1536)
    c.absent(qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, intermediate_size=11008)
    c.absent(n_routed_experts=64, moe_intermediate_size=1407, n_shared_experts=2)
    kinds = sparse_layers(c, depth(c), 0)
    bias = biased(c, "mlp_bias", "gud")  # of the shared experts and the dense layers
    return decoder(c, kinds, routed(c, "softmax", bias) if "sparse" in kinds else None, shifts=True)


@family("glm4_moe_lite", cls="Glm4MoeLiteForCausalLM", names=LATENT, harmless=HARMLESS)
def glm4_moe_lite(c: Config) -> Decoder:
    """GLM-4.7 Flash: DeepSeek's layer, the first one dense."""
    c.absent(hidden_size=2048, vocab_size=154880, max_position_embeddings=202752, num_hidden_layers=47)
    c.absent(num_attention_heads=20, kv_lora_rank=512, q_lora_rank=768, rms_norm_eps=1e-5)
    c.absent(qk_nope_head_dim=192, qk_rope_head_dim=64, v_head_dim=256, intermediate_size=10240)
    c.absent(n_routed_experts=64, num_experts_per_tok=4, moe_intermediate_size=1536, n_shared_experts=1)
    c.absent(n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=1.8)
    return decoder(c, sparse_layers(c, depth(c), 1, free=False), routed(c))


@family(
    "axk1",
    cls="AXK1ForCausalLM",
    names={**LATENT, "Gpm": "model.layers.{i}.mlp.post_mlp_layernorm.weight"},
    harmless=HARMLESS,
)
def axk1(c: Config) -> Decoder:
    """A.X K1: DeepSeek's layer, with a norm of the experts' output."""
    c.absent(hidden_size=7168, vocab_size=163840, max_position_embeddings=32768, num_hidden_layers=61)
    c.absent(num_attention_heads=64, kv_lora_rank=512, q_lora_rank=1536)
    c.absent(qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, intermediate_size=18432)
    c.absent(n_routed_experts=192, num_experts_per_tok=8, moe_intermediate_size=2048, n_shared_experts=1)
    c.absent(n_group=8, topk_group=4, norm_topk_prob=True, routed_scaling_factor=2.5)
    return decoder(c, sparse_layers(c, depth(c), 1, steps=True), routed(c), after=rms(c))


@family("sarvam_mla", cls="DeepseekV3ForCausalLM", names=LATENT, harmless=HARMLESS)
def sarvam_mla(c: Config) -> Decoder:
    """Sarvam 105B: DeepSeek's layer without a rank of the queries."""
    c.absent(hidden_size=4096, vocab_size=262144, max_position_embeddings=4096, num_hidden_layers=32)
    c.absent(num_attention_heads=64, kv_lora_rank=512)
    c.absent(qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, intermediate_size=16384)
    c.absent(n_routed_experts=128, num_experts_per_tok=8, moe_intermediate_size=2048, n_shared_experts=1)
    c.absent(n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5)
    return decoder(c, sparse_layers(c, depth(c), 1), routed(c))


@family("youtu", cls="YoutuForCausalLM", names=LATENT, harmless=(*HARMLESS, "embedding_initializer_range"))
def youtu(c: Config) -> Decoder:
    """Youtu-LLM: latent attention, every layer dense."""
    c.absent(hidden_size=2048, vocab_size=128256, max_position_embeddings=131072, num_hidden_layers=32)
    c.absent(num_attention_heads=16, kv_lora_rank=512, q_lora_rank=1536, tie_word_embeddings=True)
    c.absent(qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, intermediate_size=6144)
    return decoder(c, ["dense"] * depth(c), None)


@family("minicpm3", cls="MiniCPM3ForCausalLM", names=LATENT, harmless=HARMLESS)
def minicpm3(c: Config) -> Decoder:
    """MiniCPM3: latent attention, every layer dense; embeddings, branches and logits scaled (Hu et al. 2024)."""
    c.absent(hidden_size=2560, vocab_size=73448, max_position_embeddings=32768, num_hidden_layers=62)
    c.absent(num_attention_heads=40, kv_lora_rank=256, q_lora_rank=768, rms_norm_eps=1e-5, tie_word_embeddings=True)
    c.absent(qk_nope_head_dim=64, qk_rope_head_dim=32, intermediate_size=6400)
    layers, width = depth(c), c.size("hidden_size")
    share = c.positive("scale_depth", 1.4) if c.has("scale_depth") or "scale_depth" not in c.data else layers**0.5
    base = c.maybe("dim_model_base", 256) or width
    return decoder(
        c,
        ["dense"] * layers,
        None,
        branches=share / layers**0.5,
        shifts=True,
        embedding_scale=c.positive("scale_emb", 12.0),
        scale=base / width,
    )
