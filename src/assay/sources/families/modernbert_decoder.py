"""ModernBERT as a decoder (Weller et al. 2025): windows but for every third layer, a dense layer before the head."""

from __future__ import annotations

from assay.blocks import Decoder, Embedding
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import family, under
from assay.sources.families.modern_encoders import MODERN, masked_head, modern_layers, modern_norm

NAMES = {
    **MODERN,
    "Wdense": "lm_head.dense.weight",
    "Bdense": "lm_head.dense.bias",
    "Ghead": "lm_head.norm.weight",
    "Wout": "decoder.weight",
    **under(
        "model.layers.{i}.attn.",
        {
            f"{weight}{letter}": f"{letter}_proj.{kind}"
            for letter in "qkv"
            for weight, kind in (("W", "weight"), ("B", "bias"))
        },
    ),
}

# values of classifiers and of initialization
_HARMLESS = ("initializer_cutoff_factor", "mlp_dropout", "position_embedding_type", "sparse_prediction")


@family("modernbert-decoder", cls="ModernBertDecoderForCausalLM", names=NAMES, harmless=_HARMLESS)
def modernbert_decoder(c: Config) -> Decoder:
    """ModernBERT's layers, whose windows end at the token itself."""
    d, norm = c.size("hidden_size", 768), modern_norm(c)
    made = Decoder(
        Embedding(c.size("vocab_size", 50368), d, norm=norm),
        modern_layers(c, d, norm, lambda side: {"window": side}),
        None,
        trained=c.maybe("max_position_embeddings", 8192),
    )
    return replace(made, head=replace(masked_head(c, made), final=norm))
