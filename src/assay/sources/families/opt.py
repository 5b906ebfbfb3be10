"""OPT and what keeps the layer of fairseq: biases, norms before or behind, position tables with an offset."""

from __future__ import annotations

import math

from assay.blocks import Attention, Branch, Decoder, Embedding, Head, Layer, Mlp, Norm, Sines, Step
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, pre_norm, under

OFFSET = 2  # rows of a position table before position 0

FAIRSEQ = {
    "Ga": "self_attn_layer_norm.weight",
    "Gt0": "self_attn_layer_norm.weight",
    "Wq": "self_attn.q_proj.weight",
    "Wk": "self_attn.k_proj.weight",
    "Wv": "self_attn.v_proj.weight",
    "Wo": "self_attn.out_proj.weight",
    "Gm": "final_layer_norm.weight",
    "Gt1": "final_layer_norm.weight",
    "Wu": "fc1.weight",
    "Wd": "fc2.weight",
}
OPT = {
    "Wout": "lm_head.weight",
    **under(
        "model.decoder.",
        {
            "E": "embed_tokens.weight",
            "E_position": "embed_positions.weight",
            "Ein": "project_in.weight",
            "Eout": "project_out.weight",
            "Gf": "final_layer_norm.weight",
            **under("layers.{i}.", FAIRSEQ),
        },
    ),
}


@family("opt", cls="OPTForCausalLM", names=OPT, harmless=("layerdrop", "init_std"))
def opt(c: Config) -> Decoder:
    """Zhang et al. 2022; the model of 350M has a narrower table and its norms behind the residual sum."""
    c.inert("learned_embeddings", True)
    c.inert("output_projection", True)
    c.inert("scale_embeddings", False)
    d = c.size("hidden_size", 768)
    h = c.size("num_attention_heads", 12)
    bias = c.flag("enable_bias", True)
    attention = Attention(h, h, c.divides("hidden_size", d, "num_attention_heads", h), bias="qkvo" if bias else "")
    act = activation(c, "activation_function", "relu")
    mlp = Mlp(c.size("ffn_dim", 3072), gated=False, activation=act, bias="ud" if bias else "")
    norm = Norm("layernorm", "gain+bias" if c.flag("layer_norm_elementwise_affine", True) else "none", 1e-5)
    before, bare = c.flag("do_layer_norm_before", True), c.flag("_remove_final_layer_norm", False)
    layer = pre_norm(attention, mlp, norm) if before else post_norm(attention, mlp, norm)
    row = c.maybe("word_embed_proj_dim") or d
    narrow = None if row == d else row
    vocab = c.size("vocab_size", 50272)
    positions = c.size("max_position_embeddings", 2048)
    last = norm if before and not bare else None
    return Decoder(
        Embedding(vocab, d, narrow=narrow, positions=positions + OFFSET, offset=OFFSET),
        (layer,) * depth(c, 12),
        Head(vocab, d, c.flag("tie_word_embeddings", True), narrow=narrow, norm=last),
        limit=positions,
        trained=positions,
    )


def post_norm(mixer: Attention, mlp: Mlp, norm: Norm) -> Layer:
    """norm(x + mixer(x)), then norm(x + mlp(x)) (Vaswani et al. 2017)."""
    return Layer((Step((Branch(mixer),), after=norm), Step((Branch(mlp),), after=norm)))


XGLM = {
    "Wout": "lm_head.weight",
    **under("model.", {"E": "embed_tokens.weight", "Gf": "layer_norm.weight", **under("layers.{i}.", FAIRSEQ)}),
}
BIOGPT = {
    "Wout": "output_projection.weight",
    **under(
        "biogpt.",
        {
            "E": "embed_tokens.weight",
            "E_position": "embed_positions.weight",
            "Gf": "layer_norm.weight",
            **under("layers.{i}.", FAIRSEQ),
        },
    ),
}
FAIRSEQ_NORM = Norm("layernorm", "gain+bias", 1e-5)


@family("xglm", cls="XGLMForCausalLM", names=XGLM, harmless=("layerdrop", "init_std"))
def xglm(c: Config) -> Decoder:
    """Lin et al. 2021: sinusoidal positions, which hold no parameter."""
    c.rename(hidden_size="d_model", num_attention_heads="attention_heads", num_hidden_layers="num_layers")
    d = c.size("d_model", 1024)
    h = c.size("attention_heads", 16)
    attention = Attention(h, h, c.divides("d_model", d, "attention_heads", h), bias="qkvo")
    act = activation(c, "activation_function", "gelu")
    layer = pre_norm(attention, Mlp(c.size("ffn_dim", 4096), gated=False, activation=act, bias="ud"), FAIRSEQ_NORM)
    vocab = c.size("vocab_size", 256008)
    return Decoder(
        Embedding(vocab, d, sinusoid=Sines(halves=True, closed=True, offset=OFFSET), scale=root(c, d)),
        (layer,) * depth(c, 24, "num_layers"),
        Head(vocab, d, c.flag("tie_word_embeddings", True), norm=FAIRSEQ_NORM),
        trained=c.size("max_position_embeddings", 2048),
    )


@family("biogpt", cls="BioGptForCausalLM", names=BIOGPT, harmless=("layerdrop", "layer_norm_eps"))
def biogpt(c: Config) -> Decoder:
    """Luo et al. 2022. The public implementation norms with its own eps, whatever `layer_norm_eps` says."""
    d = c.size("hidden_size", 1024)
    h = c.size("num_attention_heads", 16)
    attention = Attention(h, h, c.divides("hidden_size", d, "num_attention_heads", h), bias="qkvo")
    width = c.size("intermediate_size", 4096)
    mlp = Mlp(width, gated=False, activation=activation(c, default="gelu"), bias="ud")
    vocab = c.size("vocab_size", 42384)
    positions = c.size("max_position_embeddings", 1024)
    return Decoder(
        Embedding(vocab, d, positions=positions + OFFSET, offset=OFFSET, scale=root(c, d)),
        (pre_norm(attention, mlp, FAIRSEQ_NORM),) * depth(c, 24),
        Head(vocab, d, c.flag("tie_word_embeddings", True), norm=FAIRSEQ_NORM),
        limit=positions,
        trained=positions,
    )


def root(c: Config, width: int) -> float | None:
    """sqrt(d) times the table's rows where `scale_embedding`."""
    return math.sqrt(width) if c.flag("scale_embedding", True) else None
