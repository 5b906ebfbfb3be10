"""GPT-2 and what keeps its layer: LayerNorm with bias, biases everywhere, an MLP of two matrices."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Embedding, Head, Mlp
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, layernorm, pre_norm, under

# Conv1D keeps weights input first; queries, keys and values lie behind each other along the output
GPT2 = {
    "E": "transformer.wte.weight",
    "E_position": "transformer.wpe.weight",
    "Gf": "transformer.ln_f.weight",
    "Wout": "lm_head.weight",
    **under(
        "transformer.h.{i}.",
        {
            "Ga": "ln_1.weight",
            "Wq": "attn.c_attn.weight[d +(g r k)]",
            "Wk": "attn.c_attn.weight[d +(g k)]",
            "Wv": "attn.c_attn.weight[d +(g v)]",
            "Bq": "attn.c_attn.bias[+(g r k)]",
            "Bk": "attn.c_attn.bias[+(g k)]",
            "Bv": "attn.c_attn.bias[+(g v)]",
            "Wo": "attn.c_proj.weight[(g r v) d]",
            "Gm": "ln_2.weight",
            "Wu": "mlp.c_fc.weight[d f]",
            "Wd": "mlp.c_proj.weight[f d]",
        },
    ),
}


@family("gpt2", cls="GPT2LMHeadModel", names=GPT2, harmless=("n_ctx",))
def gpt2(c: Config) -> Decoder:
    """Radford et al. 2019."""
    d = c.size("n_embd", 768)
    h = c.size("n_head", 12)
    attention = Attention(h, h, c.divides("n_embd", d, "n_head", h), bias="qkvo")
    mlp = Mlp(
        c.maybe("n_inner") or 4 * d, gated=False, activation=activation(c, "activation_function", "gelu_new"), bias="ud"
    )
    norm = layernorm(c)
    positions = c.size("n_positions", 1024)
    vocab = c.size("vocab_size", 50257)
    layers = (pre_norm(attention, mlp, norm),) * depth(c, 12, "n_layer")
    tied = c.flag("tie_word_embeddings", True)
    return Decoder(
        Embedding(vocab, d, positions=positions),
        layers,
        Head(vocab, d, tied, norm=norm),
        limit=positions,
        trained=positions,
    )
