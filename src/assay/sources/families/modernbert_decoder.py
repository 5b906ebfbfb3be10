"""ModernBERT as a decoder (Weller et al. 2025): windows but for every third layer, a dense layer before the head."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Embedding, Layer, Mlp, Norm
from assay.blocks.encoders import MaskedHead
from assay.blocks.stacks import Branch, Step
from assay.sources.config import Config
from assay.sources.families.common import activation, by_kind, depth, family, rope, under
from assay.sources.families.dense import FULL, SLIDING, biased, layer_types
from assay.sources.families.names import gate_and_up

NAMES = {
    "E": "model.embeddings.tok_embeddings.weight",
    "Ge": "model.embeddings.norm.weight",
    "Gf": "model.final_norm.weight",
    "Wdense": "lm_head.dense.weight",
    "Bdense": "lm_head.dense.bias",
    "Ghead": "lm_head.norm.weight",
    "Wout": "decoder.weight",
    **under(
        "model.layers.{i}.",
        {
            "Ga": "attn_norm.weight",
            "Wq": "attn.q_proj.weight",
            "Wk": "attn.k_proj.weight",
            "Wv": "attn.v_proj.weight",
            "Wo": "attn.Wo.weight",
            "Gm": "mlp_norm.weight",
            **gate_and_up("mlp.Wi", biases=True),
            "Wd": "mlp.Wo.weight",
        },
    ),
}

# values of classifiers and of initialization
_HARMLESS = ("initializer_cutoff_factor", "mlp_dropout", "position_embedding_type", "sparse_prediction")


@family("modernbert-decoder", cls="ModernBertDecoderForCausalLM", names=NAMES, harmless=_HARMLESS)
def modernbert_decoder(c: Config) -> Decoder:
    """The first layer's attention reads the normed embedding as it is."""
    d, layers = c.size("hidden_size", 768), depth(c, 22)
    heads = c.size("num_attention_heads", 12)
    width = c.divides("hidden_size", d, "num_attention_heads", heads)
    norm = Norm("layernorm", "gain+bias" if c.flag("norm_bias", False) else "gain", c.positive("norm_eps", 1e-5))
    mlp = Mlp(
        c.size("intermediate_size", 1152),
        activation=activation(c, "hidden_activation", "gelu"),
        bias=biased(c, "mlp_bias", "gud"),
    )
    interval = c.size("global_attn_every_n_layers", 3)
    kinds = layer_types(c, [FULL if i % interval == 0 else SLIDING for i in range(layers)])
    window = c.size("local_attention", 128, least=2) // 2  # to one side, which is all a decoder has
    c.inert("sliding_window", window)
    bias = biased(c, "attention_bias", "qkvo")
    turned = {
        FULL: rope(c, width, 160000.0, kind=FULL, theta_key="global_rope_theta"),
        SLIDING: rope(c, width, 10000.0, kind=SLIDING, theta_key="local_rope_theta"),
    }

    def layer(sort: tuple[str, bool]) -> Layer:
        kind, first = sort
        limit = window if kind == SLIDING else None
        attention = Attention(heads, heads, width, bias=bias, positions=turned[kind], window=limit)
        return Layer((Step((Branch(attention, None if first else norm),)), Step((Branch(mlp, norm),))), kind)

    vocab = c.size("vocab_size", 50368)
    return Decoder(
        Embedding(vocab, d, norm=norm),
        by_kind([(kind, i == 0) for i, kind in enumerate(kinds)], layer),
        MaskedHead(
            vocab,
            d,
            d,
            activation(c, "classifier_activation", "gelu"),
            norm,
            c.flag("tie_word_embeddings", True),
            c.flag("decoder_bias", True),
            c.flag("classifier_bias", False),
            norm,
        ),
        trained=c.maybe("max_position_embeddings", 8192),
    )
