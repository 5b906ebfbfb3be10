"""SeamlessM4T, as it turns speech into text: a conformer that an adapter shortens, and NLLB's decoder."""

from __future__ import annotations

from typing import Any

from assay.blocks import Attention, Branch, Decoder, Embedding, Head, Layer, Mlp, Norm, Step
from assay.blocks.conformer import Adapter, Adapting, Convolution, Features, Feed, RelativeAttention, SoundEncoder
from assay.blocks.encoder_decoder import EncoderDecoder
from assay.sources.config import Config
from assay.sources.families.bart import crossing, layer, projections, sides
from assay.sources.families.common import SEQ2SEQ, Class, activation, depth, family, under

_LINEAR = "linear_q linear_k linear_v linear_out"


def _feed(path: str, at: str) -> dict[str, str]:
    return {f"Wu{at}": f"{path}.intermediate_dense.weight", f"Wd{at}": f"{path}.output_dense.weight"}


_CONFORMER = {
    **_feed("ffn1", "1"),
    **_feed("ffn2", "2"),
    **{f"Gm{at}": f"ffn{at}_layer_norm.weight" for at in "12"},
    "Ga": "self_attn_layer_norm.weight",
    **projections("self_attn", _LINEAR),
    "Wpos": "self_attn.linear_pos.weight",
    "Biasu": "self_attn.pos_bias_u[(g r) k]",
    "Biasv": "self_attn.pos_bias_v[(g r) k]",
    "Distance": "self_attn.distance_embedding.weight",
    "Gconv": "conv_module.layer_norm.weight",
    "Wua": "conv_module.pointwise_conv1.weight[+i d 1]",
    "Wub": "conv_module.pointwise_conv1.weight[+i d 1]",
    "Wk1": "conv_module.depthwise_conv.weight[i 1 q]",
    "Wpoint": "conv_module.pointwise_conv2.weight[d i 1]",
    "Gt3": "final_layer_norm.weight",
}
_PATHS = {"res": "residual", "sub": "self_attn"}
_ADAPTER = {
    "Gres": "residual_layer_norm.weight",
    "Gsub": "self_attn_layer_norm.weight",
    **{f"W{name}{half}": f"{path}_conv.weight[+i d q]" for name, path in _PATHS.items() for half in "ab"},
    **{f"W{name}{half}_bias": f"{path}_conv.bias[+i]" for name, path in _PATHS.items() for half in "ab"},
    **projections("self_attn", _LINEAR, "adapt."),
    **_feed("ffn", ""),
    "Gm": "ffn_layer_norm.weight",
}
_DECODER = {
    **projections("self_attn"),
    **projections("cross_attention", own="cross."),
    "Wu": "ffn.fc1.weight",
    "Wd": "ffn.fc2.weight",
    "Ga": "self_attn_layer_norm.weight",
    "Gc": "cross_attention_layer_norm.weight",
    "Gm": "ffn_layer_norm.weight",
}


def names(norm: dict[str, str]) -> dict[str, str]:
    """The table of names; `norm` is that of the convolution."""
    conformer = {**_CONFORMER, **{name: f"conv_module.{path}" for name, path in norm.items()}}
    speech = {
        "Ge": "feature_projection.layer_norm.weight",
        "Win": "feature_projection.projection.weight",
        **under("encoder.layers.{i}.", conformer),
        "Gf": "encoder.layer_norm.weight",
        **_feed("intermediate_ffn", "3"),
        **under("adapter.layers.0.", _ADAPTER),
        "Glast": "inner_layer_norm.weight",
    }
    decoder = {**under("layers.{i}.", _DECODER), "Gf": "layer_norm.weight"}
    return {
        **sides(under("speech_encoder.", speech), under("text_decoder.", decoder)),
        "E": "shared.weight",
        "Wout": "lm_head.weight",
    }


# running statistics are stored and no parameters
BATCH = {"Gw": "batch_norm.weight", "Bw": "batch_norm.bias"}
SEAMLESS = {
    **names(BATCH),
    **{
        f"encoder.{name}": f"~speech_encoder.encoder.layers.{{i}}.conv_module.batch_norm.{path}"
        for name, path in {"Mean": "running_mean", "Var": "running_var", "Seen": "num_batches_tracked"}.items()
    },
}
SEAMLESS_2 = names({"Gw": "depthwise_layer_norm.weight"})

# the config is that of all tasks: units, their decoder, the vocoder and the text's encoder are no part of this class
HARMLESS = (
    *("is_encoder_decoder", "encoder_layers", "encoder_ffn_dim", "encoder_attention_heads", "lang_embed_dim"),
    *("spkr_embed_dim", "unit_embed_dim", "unit_hifi_gan_vocab_size", "sampling_rate", "leaky_relu_slope"),
    *("upsample_initial_channel", "upsample_kernel_sizes", "upsample_rates", "resblock_dilation_sizes"),
    *("resblock_kernel_sizes", "var_pred_dropout", "variance_predictor_kernel_size", "char_vocab_size"),
    *("variance_pred_kernel_size", "variance_predictor_embed_dim", "variance_predictor_hidden_dim"),
    *("num_conv_pos_embedding_groups", "num_conv_pos_embeddings", "rotary_embedding_base", "conv_depthwise_strategy"),
    *("max_source_positions", "speech_encoder_chunk_size", "speech_encoder_left_chunk_num", "layer_norm_eps"),
)
SPEAKS = Class(SEQ2SEQ, "ForSpeechToText", lambda c, made: made.decoder.head)
_DEFAULTS: dict[str, Any] = {
    "vocab_size": 256102,
    "hidden_size": 1024,
    "decoder_layers": 24,
    "decoder_ffn_dim": 8192,
    "decoder_attention_heads": 16,
    "speech_encoder_layers": 24,
    "speech_encoder_attention_heads": 16,
    "speech_encoder_intermediate_size": 4096,
    "feature_projection_input_dim": 160,
    "conv_depthwise_kernel_size": 31,
    "adaptor_kernel_size": 8,
    "adaptor_stride": 8,
    "max_position_embeddings": 4096,
}


def heard(c: Config, attention: Attention, within: Norm | None) -> SoundEncoder:
    """The encoder of speech; `within` is the norm of its convolutions, None where it is by stored statistics."""
    width, norm = c.size("hidden_size"), Norm("layernorm", "gain+bias", 1e-5)
    act, inner = activation(c, "speech_encoder_hidden_act", "swish"), c.size("speech_encoder_intermediate_size")
    kernel = c.size("conv_depthwise_kernel_size")
    if kernel % 2 == 0:
        c.fail("conv_depthwise_kernel_size", "an odd integer")
    first, second = (Feed(inner, False, act, "ud", tag=tag) for tag in ("m1", "m2"))
    conformer = Layer(
        (
            Step((Branch(first, norm),), scale=0.5),
            Step((Branch(attention, norm),)),
            Step((Branch(Convolution(width, kernel, act, within), norm),)),
            Step((Branch(second, norm),), scale=0.5, after=norm),
        )
    )
    c.inert("num_adapter_layers", 1)
    c.inert("add_adapter", True)
    again = Adapting(attention.heads, attention.kv_heads, attention.head_width, bias="qkvo", sees="all")
    relu = Mlp(inner, False, "relu", "ud")
    return SoundEncoder(
        Features(c.size("feature_projection_input_dim"), width, norm=norm),
        (conformer,) * depth(c, key="speech_encoder_layers"),
        None,
        bridge=Feed(inner, False, "relu", "ud", tag="m3"),
        adapter=Adapter(again, relu, norm, c.size("adaptor_kernel_size"), c.size("adaptor_stride")),
        norm=norm,
    )


def speech(c: Config, encoder: SoundEncoder) -> EncoderDecoder:
    """The encoder before NLLB's decoder."""
    rows, width, norm = c.size("vocab_size"), c.size("hidden_size"), Norm("layernorm", "gain+bias", 1e-5)
    heads = c.size("decoder_attention_heads")
    own = Attention(heads, heads, c.divides("hidden_size", width, "decoder_attention_heads", heads), bias="qkvo")
    mlp = Mlp(c.size("decoder_ffn_dim"), False, activation(c, "activation_function", "relu"), "ud")
    c.inert("tie_word_embeddings", True)
    for key in c.data:
        if key.startswith(("t2u_", "vocoder_")):
            c.skip(key)
    kernel, stride = c.size("adaptor_kernel_size"), c.size("adaptor_stride")
    scale = width**0.5 if c.flag("scale_embedding", True) else None
    return EncoderDecoder(
        encoder,
        Decoder(
            Embedding(rows, width, sinusoid=True, scale=scale),
            (layer((own, crossing(own), mlp), norm, pre=True),) * depth(c, key="decoder_layers"),
            Head(rows, width, tied=True, norm=norm),
            trained=c.size("max_position_embeddings"),
        ),
        source_stride=stride,
        source_extra=2 * (stride // 2) - kernel + 1,
    )


def relative(c: Config, by: str, rows: int | None = None) -> Attention:
    """The conformer's attention."""
    width, heads = c.size("hidden_size"), c.size("speech_encoder_attention_heads")
    each = c.divides("hidden_size", width, "speech_encoder_attention_heads", heads)
    given: dict[str, Any] = {"bias": "qkvo", "sees": "all"}
    kind = c.data.get("position_embeddings_type", by)
    c.word("position_embeddings_type", by, (by,)) if kind is not None else c.skip("position_embeddings_type")
    if kind is None:
        return Attention(heads, heads, each, **given)
    return RelativeAttention(heads, heads, each, **given, by="sines" if by == "relative" else "distances", rows=rows)


@family("seamless_m4t", cls="SeamlessM4TForSpeechToText", names=SEAMLESS, harmless=HARMLESS, classes=(SPEAKS,))
def seamless_m4t(c: Config) -> EncoderDecoder:
    """Seamless Communication 2023, arXiv:2308.11596. The source is counted in frames of features."""
    c.absent(**{**_DEFAULTS, "max_position_embeddings": 1024})
    return speech(c, heard(c, relative(c, "relative"), None))


@family("seamless_m4t_v2", cls="SeamlessM4Tv2ForSpeechToText", names=SEAMLESS_2, harmless=HARMLESS, classes=(SPEAKS,))
def seamless_m4t_v2(c: Config) -> EncoderDecoder:
    """Seamless Communication 2023, arXiv:2312.05187: learned distances, norms within the convolutions."""
    c.absent(**_DEFAULTS)
    rows = c.size("left_max_position_embeddings", 64) + c.size("right_max_position_embeddings", 8) + 1
    norm = Norm("layernorm", "gain+bias", 1e-5)
    return speech(c, heard(c, relative(c, "relative_key", rows), norm))
