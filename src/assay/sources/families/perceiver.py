"""Perceiver IO for text: bytes read by a fixed number of latent vectors, which queries of each position read."""

from __future__ import annotations

from assay.blocks import Attention, Mlp, Norm
from assay.blocks.encoders import Tables
from assay.blocks.latent_array import LatentArray, Reading
from assay.sources.config import Config
from assay.sources.families.common import MASKED, Class, activation, depth, family, pre_norm, under

_MLP = {"Wu": "mlp.dense1.weight", "Bu": "mlp.dense1.bias", "Wd": "mlp.dense2.weight", "Bd": "mlp.dense2.bias"}
_LAYER = {
    "Ga": "attention.self.layernorm1.weight",
    "Wq": "attention.self.query.weight",
    "Wk": "attention.self.key.weight",
    "Wv": "attention.self.value.weight",
    "Wo": "attention.output.dense.weight",
    "Gm": "layernorm.weight",
    **_MLP,
}


def _reading(name: str, place: str, queries: str) -> dict[str, str]:
    """Names of what reads another sequence."""
    own = {**_LAYER, "Gn": "attention.self.layernorm2.weight"}
    return {f"{name}.{weight}": place + path for weight, path in own.items()} | {f"{name}.Queries": queries}


NAMES = {
    "E": "perceiver.input_preprocessor.embeddings.weight",
    "E_position": "perceiver.input_preprocessor.position_embeddings.weight",
    **under("perceiver.encoder.self_attends.{i}.", _LAYER),
    **_reading("entry", "perceiver.encoder.cross_attention.", "perceiver.embeddings.latents[z d]"),
    **_reading(
        "answer",
        "perceiver.decoder.decoding_cross_attention.",
        "perceiver.decoder.output_position_encodings.position_embeddings[P j]",
    ),
    "Bout": "embedding_decoder.bias",
}
# of the models of images, sound and flow
HARMLESS = """
    image_size num_frames audio_samples_per_frame samples_per_patch output_shape output_num_channels train_size
    _label_trainable_num_channels layer_norm_eps
""".split()
ANSWER_HEADS, ANSWER_WIDTH = 8, 8 * 32  # of the masked-language model, whatever the config says


@family(
    "perceiver",
    cls="PerceiverForMaskedLM",
    names=NAMES,
    harmless=HARMLESS,
    classes=(Class(MASKED, "ForMaskedLM", lambda c, made: None),),
)
def perceiver(c: Config) -> LatentArray:
    """Jaegle et al. 2021, arXiv:2107.14795, for text: logits of every row of the table of positions."""
    c.inert("num_blocks", 1)
    d, j, z = c.size("d_latents", 1280), c.size("d_model", 768), c.size("num_latents", 256)
    rows = c.size("max_position_embeddings", 2048)
    shape = c.word("cross_attention_shape_for_attention", "kv", ("kv", "q"))
    keys, values = c.maybe("qk_channels"), c.maybe("v_channels")
    norm, act = Norm("layernorm", "gain+bias", 1e-5), activation(c, default="gelu")

    def attention(heads_key: str, keys: int, values: int) -> Attention:
        h = c.size(heads_key, 8)
        key, value = c.divides("qk_channels", keys, heads_key, h), c.divides("v_channels", values, heads_key, h)
        return Attention(h, h, key, value, bias="qkvo", sees="all")

    within = keys or d
    if (values or within) != d:
        c.fail("v_channels" if values else "qk_channels", f"d_latents, {int(d)}, which layers add to")
    inner = c.size("self_attention_widening_factor", 1) * d
    layer = pre_norm(
        attention("num_self_attention_heads", within, d), Mlp(inner, gated=False, activation=act, bias="ud"), norm
    )
    read = keys or (j if shape == "kv" else d)
    entry = Reading(
        "entry",
        attention("num_cross_attention_heads", read, values or read),
        Mlp(c.size("cross_attention_widening_factor", 1) * d, gated=False, activation=act, bias="ud"),
        norm,
        c.flag("use_query_residual", True),
        ("z", "d", "n", "j"),
    )
    each = c.divides("d_model", j, "num_attention_heads of the answer", ANSWER_HEADS)
    answer = Reading(
        "answer",
        Attention(ANSWER_HEADS, ANSWER_HEADS, ANSWER_WIDTH // ANSWER_HEADS, each, bias="qkvo", sees="all"),
        Mlp(j, gated=False, activation=act, bias="ud"),
        norm,
        False,
        ("P", "j", "z", "d"),
    )
    words = Tables(c.size("vocab_size", 262), j, tables=(("position", rows),))
    layers = (layer,) * depth(c, 26, "num_self_attends_per_block")
    return LatentArray(words, layers, None, rows, entry=entry, answer=answer, latents=z, across=d)
