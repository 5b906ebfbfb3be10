"""RWKV: a recurrence over keys and values, and one of its own kind behind it."""

from __future__ import annotations

from assay.blocks import Decoder, Embedding, Head
from assay.blocks.linear import Rwkv, RwkvMlp
from assay.sources.config import Config
from assay.sources.families.common import depth, family, layernorm, pre_norm, under

_RWKV_LAYER = "rwkv.blocks.{i}."
RWKV = {
    "E": "rwkv.embeddings.weight",
    "Ge": "rwkv.blocks.0.pre_ln.weight",
    "Gf": "rwkv.ln_out.weight",
    "Wout": "head.weight",
    "Ga": _RWKV_LAYER + "ln1.weight",
    "Gm": _RWKV_LAYER + "ln2.weight",
    **under(
        _RWKV_LAYER + "attention.",
        {
            "mixer.Mk": "time_mix_key[1 1 d]",
            "mixer.Mv": "time_mix_value[1 1 d]",
            "mixer.Mr": "time_mix_receptance[1 1 d]",
            "mixer.Wk": "key.weight",
            "mixer.Wv": "value.weight",
            "mixer.Wr": "receptance.weight",
            "mixer.Decay": "time_decay",
            "mixer.First": "time_first",
            "mixer.Wo": "output.weight",
        },
    ),
    **under(
        _RWKV_LAYER + "feed_forward.",
        {
            "mlp.Mk": "time_mix_key[1 1 d]",
            "mlp.Mr": "time_mix_receptance[1 1 d]",
            "mlp.Wk": "key.weight",
            "mlp.Wv": "value.weight",
            "mlp.Wr": "receptance.weight",
        },
    ),
}


@family("rwkv", cls="RwkvForCausalLM", names=RWKV, harmless=("rescale_every", "attention_hidden_size"))
def rwkv(c: Config) -> Decoder:
    """RWKV-4 (Peng et al. 2023, arXiv:2305.13048): LayerNorms, a norm of the embedding."""
    width, norm = c.size("hidden_size", 4096), layernorm(c)
    inner = c.maybe("attention_hidden_size") or width
    if inner != width:  # the public implementation keeps states of the model's width
        c.fail("attention_hidden_size", f"hidden_size, {int(width)}")
    layer = pre_norm(Rwkv(inner), RwkvMlp(c.maybe("intermediate_size") or 4 * width, width), norm)
    rows, tied = c.size("vocab_size", 50277), c.flag("tie_word_embeddings", False)
    c.rename(max_position_embeddings="context_length")
    return Decoder(
        Embedding(rows, width, norm=norm),
        (layer,) * depth(c, 32),
        Head(rows, width, tied, norm=norm),
        trained=c.maybe("context_length", 1024),
    )
