"""JetMoE: experts for queries and outputs of attention as well as for the MLP."""

from __future__ import annotations

from assay.blocks import Decoder
from assay.blocks.expert_attention import ExpertAttention
from assay.blocks.moe import Moe, Router
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, pre_norm, rms, rope, stack, under
from assay.sources.families.dense import LLAMA
from assay.sources.families.experts import LAYER, pool

JETMOE = {
    **LLAMA,
    **under(
        LAYER,
        {
            "Wrq": "self_attention.experts.router.layer.weight",
            "Eq": "self_attention.experts.input_linear.weight[e (g k) d]",
            "Wk": "self_attention.kv_proj.weight[+(g k) d]",
            "Wv": "self_attention.kv_proj.weight[+(g v) d]",
            "Eo": "self_attention.experts.output_linear.weight[e d (g v)]",
            "Bo": "self_attention.experts.bias",
            "Wr": "mlp.router.layer.weight",
            "Eg": "mlp.input_linear.weight[e +f d]",
            "Eu": "mlp.input_linear.weight[e +f d]",
            "Ed": "mlp.output_linear.weight[e d f]",
            "By": "mlp.bias",
        },
    ),
}


@family("jetmoe", cls="JetMoeForCausalLM", names=JETMOE, harmless=("aux_loss_coef",))
def jetmoe(c: Config) -> Decoder:
    """Shen et al. 2024."""
    c.rename(
        head_dim="kv_channels",
        num_layers="num_hidden_layers",
        ffn_hidden_size="intermediate_size",
        moe_num_experts="num_local_experts",
        moe_top_k="num_experts_per_tok",
    )
    c.inert("bias", True)
    c.inert("glu", True)
    c.inert("rotary_percent", 1.0)
    d = c.size("hidden_size", 2048)
    g, width = c.size("num_key_value_heads", 16), c.size("kv_channels", 128)
    c.skip("num_attention_heads")  # follows from the others
    e, a = pool(c, "num_local_experts", 8, 2)
    norm = rms(c)
    attention = ExpertAttention(e, a, g, width, rope(c, width), output_bias=True)
    moe = Moe(
        e,
        a,
        c.size("intermediate_size", 5632),
        Router("softmax-of-chosen"),
        activation=activation(c, "activation_function"),
        output_bias=True,
    )
    layer = pre_norm(attention, moe, norm)
    return stack(c, (layer,) * depth(c, 12), d, norm, vocab=32000, tied=True, trained=4096)
