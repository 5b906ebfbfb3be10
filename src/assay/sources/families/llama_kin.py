"""Llama's layer with other norms or activations: NanoChat, Jais 2, BitNet, Helium."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Embedding, Head, Mlp, Norm
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, heads, layernorm, pre_norm, rms, rope, stack, under
from assay.sources.families.dense import biased
from assay.sources.families.names import GATED, NORMS, PROJECTIONS, TABLES

NANOCHAT = TABLES | under("model.layers.{i}.", PROJECTIONS | {"Wu": "mlp.fc1.weight", "Wd": "mlp.fc2.weight"})


@family("nanochat", cls="NanoChatForCausalLM", names=NANOCHAT)
def nanochat(c: Config) -> Decoder:
    """Karpathy 2025: norms without gains, of the embedding and of rotated queries and keys too."""
    d = c.size("hidden_size", 768)
    h = heads(c, d, 6)
    norm = Norm("rmsnorm", "none", c.positive("rms_norm_eps", 1e-6))
    attention = Attention(
        *h,
        bias=biased(c, "attention_bias", "qkvo"),
        qk_norm=norm,
        norm_late=True,
        positions=rope(c, h.width, style="backward"),
    )
    mlp = Mlp(c.size("intermediate_size", 8192), gated=False, activation=activation(c, default="relu2"))
    vocab = c.size("vocab_size", 50304)
    cap = c.number("final_logit_softcapping", 15.0)
    if cap is not None:
        cap = c.positive("final_logit_softcapping", 15.0)
    return Decoder(
        Embedding(vocab, d, norm=norm),
        (pre_norm(attention, mlp, norm),) * depth(c, 12),
        Head(vocab, d, c.flag("tie_word_embeddings", False), norm=norm, softcap=cap),
        trained=c.size("max_position_embeddings", 2048),
    )


JAIS2 = TABLES | under(
    "model.layers.{i}.", NORMS | PROJECTIONS | {"Wu": "mlp.up_proj.weight", "Wd": "mlp.down_proj.weight"}
)


@family("jais2", cls="Jais2ForCausalLM", names=JAIS2)
def jais2(c: Config) -> Decoder:
    """Inception 2025: LayerNorm, squared ReLU without a gate, biases."""
    d = c.size("hidden_size", 3328)
    h = heads(c, d, 26)
    attention = Attention(*h, bias=biased(c, "attention_bias", "qkvo", True), positions=rope(c, h.width))
    mlp = Mlp(
        c.size("intermediate_size", 26624),
        gated=False,
        activation=activation(c, default="relu2"),
        bias=biased(c, "mlp_bias", "ud", True),
    )
    norm = layernorm(c, "layer_norm_eps")
    return stack(c, (pre_norm(attention, mlp, norm),) * depth(c, 32), d, norm, vocab=150272, trained=8192)


BITNET = TABLES | under(
    "model.layers.{i}.",
    NORMS | PROJECTIONS | GATED | {"Gon": "self_attn.attn_sub_norm.weight", "Gi": "mlp.ffn_sub_norm.weight"},
)


@family("bitnet", cls="BitNetForCausalLM", names=BITNET)
def bitnet(c: Config) -> Decoder:
    """Ma et al. 2025: a norm more before each output matrix."""
    d = c.size("hidden_size", 2560)
    h = heads(c, d, 20, 5)
    whole(c, d, h.query * h.width)
    norm = rms(c, 1e-5)
    attention = Attention(
        *h,
        bias=biased(c, "attention_bias", "qkvo"),
        positions=rope(c, h.width, 500000.0),
        out_norm=norm,
    )
    mlp = Mlp(c.size("intermediate_size", 6912), activation=activation(c, default="relu2"), inner=norm)
    return stack(c, (pre_norm(attention, mlp, norm),) * depth(c, 30), d, norm, vocab=128256, trained=2048)


HELIUM = TABLES | under("model.layers.{i}.", NORMS | PROJECTIONS | GATED)


@family("helium", cls="HeliumForCausalLM", names=HELIUM)
def helium(c: Config) -> Decoder:
    """Kyutai 2025: Llama's layer, the output projection without a bias."""
    d = c.size("hidden_size", 2560)
    h = heads(c, d, 20, 20, 128)
    whole(c, d, h.query * h.width)
    norm = rms(c, 1e-8)
    attention = Attention(
        *h,
        bias=biased(c, "attention_bias", "qkv"),
        positions=rope(c, h.width, 100000.0, style="interleaved"),
    )
    mlp = Mlp(c.size("intermediate_size", 7040), activation=activation(c), bias=biased(c, "mlp_bias", "gud"))
    return stack(c, (pre_norm(attention, mlp, norm),) * depth(c, 24), d, norm, vocab=48000, trained=4096)


def whole(c: Config, width: int, together: int) -> None:
    """The heads' outputs together are as wide as the model. Raises SourceError."""
    if together != width:
        c.fail(
            "head_dim", f"hidden_size / num_attention_heads: the heads together are {together} wide, the model {width}"
        )
