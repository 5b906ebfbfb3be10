"""GPT-J and GPT-NeoX and what keeps their layer: partial rotary positions, attention and MLP side by side."""

from __future__ import annotations

from assay.blocks import Attention, Branch, Decoder, Embedding, Head, Layer, Mlp, Norm, Rope, Step
from assay.blocks.parted import PartedAttention
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, layernorm, parallel, pre_norm, rope, stack, under
from assay.sources.families.dense import biased
from assay.sources.families.gpt import SUMMARY, TODAY, inner_width, names
from assay.sources.families.names import interleaved

NEOX_LAYER = {
    **interleaved("attention.query_key_value"),
    "Ga": "input_layernorm.weight",
    "Wo": "attention.dense.weight",
    "Gm": "post_attention_layernorm.weight",
    "Wu": "mlp.dense_h_to_4h.weight",
    "Wd": "mlp.dense_4h_to_h.weight",
}
NEOX = {
    "E": "gpt_neox.embed_in.weight",
    "Gf": "gpt_neox.final_layer_norm.weight",
    "Wout": "lm_head.weight",
    **under("gpt_neox.layers.{i}.", NEOX_LAYER),
}


def side_by_side(mixer: Attention, mlp: Mlp, norm: Norm) -> Layer:
    """x + mixer(norm(x)) + mlp(norm'(x)), each with a norm of its own."""
    return Layer((Step((Branch(mixer, norm), Branch(mlp, norm))),))


@family("gpt_neox", cls="GPTNeoXForCausalLM", names=NEOX)
def gpt_neox(c: Config) -> Decoder:
    """Black et al. 2022."""
    c.rename(rotary_pct="partial_rotary_factor", rotary_emb_base="rope_theta")
    d = c.size("hidden_size", 6144)
    h = c.size("num_attention_heads", 64)
    k = c.divides("hidden_size", d, "num_attention_heads", h)
    bias = biased(c, "attention_bias", "qkvo", True)
    attention = Attention(h, h, k, bias=bias, positions=rope(c, k, partial=0.25))
    mlp = Mlp(c.size("intermediate_size", 24576), gated=False, activation=activation(c, default="gelu"), bias="ud")
    norm = layernorm(c, "layer_norm_eps")
    arranged = side_by_side if c.flag("use_parallel_residual", True) else pre_norm
    layers = (arranged(attention, mlp, norm),) * depth(c, 44)
    return stack(c, layers, d, norm, vocab=50432, trained=2048)


JAPANESE = {
    "E": "gpt_neox_japanese.embed_in.weight",
    "Gf": "gpt_neox_japanese.final_layer_norm.weight",
    "Wout": "embed_out.weight",
    **under("gpt_neox_japanese.layers.{i}.", NEOX_LAYER | {"Bo": "attention.dense_bias"}),
}


@family("gpt_neox_japanese", cls="GPTNeoXJapaneseForCausalLM", names=JAPANESE)
def gpt_neox_japanese(c: Config) -> Decoder:
    """ABEJA 2022: GPT-NeoX one sub-layer after the other, no bias but that of the last layer's attention."""
    c.rename(rotary_pct="partial_rotary_factor", rotary_emb_base="rope_theta")
    d = c.size("hidden_size", 2560)
    h = c.size("num_attention_heads", 32)
    k = c.divides("hidden_size", d, "num_attention_heads", h)
    turned = rope(c, k)
    mlp = Mlp(d * c.size("intermediate_multiple_size", 4), gated=False, activation=activation(c, default="gelu"))
    norm = layernorm(c, "layer_norm_eps")

    def layer(bias: str, kind: str) -> Layer:
        return pre_norm(Attention(h, h, k, bias=bias, positions=turned), mlp, norm, kind)

    layers = (layer("", ""),) * (depth(c, 32) - 1) + (layer("o", "last"),)
    return stack(c, layers, d, norm, vocab=32000, tied=True, trained=2048)


J_LAYER = {
    "Gs0": "ln_1.weight",
    "Wq": "attn.q_proj.weight",
    "Wk": "attn.k_proj.weight",
    "Wv": "attn.v_proj.weight",
    "Wo": "attn.out_proj.weight",
    "Wu": "mlp.fc_in.weight",
    "Wd": "mlp.fc_out.weight",
}
PARTS = 4  # one a device that CodeGen was trained on
CODEGEN = {
    "Wq": "attn.qkv_proj.weight[(p + y r k) d]",
    "Wv": "attn.qkv_proj.weight[(p + y v) d]",
    "Wk": "attn.qkv_proj.weight[(p + y k) d]",
}


def rotated(c: Config, head_width: int) -> Rope:
    """Pairs of neighbours in the first `rotary_dim` elements of a head, all where that is null."""
    width = c.maybe("rotary_dim", 64)
    if width is not None and (width > head_width or width % 2):
        c.fail("rotary_dim", f"even and at most the head width, {head_width}")
    return Rope(None if width == head_width else width, 10000.0, style="interleaved")


def j_like(c: Config, parts: int | None = None) -> Decoder:
    """The layer of GPT-J and CodeGen, their head with a bias."""
    c.rename(**TODAY)
    d = c.size("n_embd", 4096)
    h = c.size("n_head", 16)
    k = c.divides("n_embd", d, "n_head", h)
    c.inert("scale_attn_weights", True)
    if parts is None:
        attention = Attention(h, h, k, positions=rotated(c, k))
    else:
        c.divides("n_head", h, "its four parts", parts)
        attention = PartedAttention(h, h, k, positions=rotated(c, k), parts=parts)
    mlp = Mlp(inner_width(c, d), gated=False, activation=activation(c, "activation_function", "gelu_new"), bias="ud")
    norm = layernorm(c)
    vocab = c.size("vocab_size", 50400)
    return Decoder(
        Embedding(vocab, d),
        (parallel(attention, mlp, norm),) * depth(c, 28, "n_layer"),
        Head(vocab, d, c.flag("tie_word_embeddings", False), bias=True, norm=norm),
        trained=c.size("n_positions", 2048),
    )


@family(
    "gptj",
    cls="GPTJForCausalLM",
    names=names(J_LAYER),
    harmless=(*SUMMARY, "n_ctx"),
)
def gptj(c: Config) -> Decoder:
    """Wang & Komatsuzaki 2021."""
    c.inert("rotary", True)
    return j_like(c)


@family("codegen", cls="CodeGenForCausalLM", names=names(J_LAYER | CODEGEN), harmless=(*SUMMARY, "n_ctx"))
def codegen(c: Config) -> Decoder:
    """Nijkamp et al. 2022: GPT-J's layer, its weights in four parts with queries, values and keys of a few heads."""
    return j_like(c, PARTS)
