"""Gemma 3n with its MobileNet and its encoder of sound: a conformer behind two convolutions whose norms run along."""

from __future__ import annotations

from assay.blocks import Branch, Layer, Norm, Step
from assay.blocks.conformer import Convolution, Feed
from assay.blocks.sounds import ChunkedAttention, LimitedNorm, Strided
from assay.blocks.towers import Drawn, Multimodal, Tower
from assay.sources.config import Config
from assay.sources.families.common import depth, family, under
from assay.sources.families.mobilenet import OUT, SIDE, TOKENS, mobilenet_v5
from assay.sources.families.multimodal import CLASSES, beside, text_of
from assay.spec import Op, Sight, ops

FRAMES = 3000  # of half a minute: a hundred a second

LAYER = under(
    "conformer.{i}.",
    {
        "Gm1": "ffw_layer_start.pre_layer_norm.weight",
        "Wu1": "ffw_layer_start.ffw_layer_1.weight",
        "Wd1": "ffw_layer_start.ffw_layer_2.weight",
        "Gpm1": "ffw_layer_start.post_layer_norm.weight",
        "Ga": "attention.pre_attn_norm.weight",
        **{f"W{letter}": f"attention.attn.{letter}_proj.weight" for letter in "qkv"},
        "Wpos": "attention.attn.relative_position_embedding.pos_proj.weight",
        "Factor": "attention.attn.per_dim_scale",
        "Wo": "attention.post.weight",
        "Gpa": "attention.post_norm.weight",
        "Gconv": "lconv1d.pre_layer_norm.weight",
        "Wua": "lconv1d.linear_start.weight[+i d]",
        "Wub": "lconv1d.linear_start.weight[+i d]",
        "Wk1": "lconv1d.depthwise_conv1d.weight[i 1 q]",
        "Gw": "lconv1d.conv_norm.weight",
        "Wpoint": "lconv1d.linear_end.weight",
        "Gm2": "ffw_layer_end.pre_layer_norm.weight",
        "Wu2": "ffw_layer_end.ffw_layer_1.weight",
        "Wd2": "ffw_layer_end.ffw_layer_2.weight",
        "Gpm2": "ffw_layer_end.post_layer_norm.weight",
        "Gt3": "norm.weight",
    },
)
_START = {
    "Wplane1": "conv_0.conv.weight[i 1 q r]",
    "Gplane1": "conv_0.norm.weight",
    "Wplane2": "conv_1.conv.weight[l i s t]",
    "Gplane2": "conv_1.norm.weight",
    "Wflat": "input_proj_linear.weight[d (h3 l)]",
}
AUDIO = under("model.audio_tower.", {**under("subsample_conv_projection.", _START), **LAYER})
EMBEDDER = {
    "Hard": "embedding.weight",
    "Ghard": "hard_embedding_norm.weight",
    "Gsoft": "soft_embedding_norm.weight",
    "Wp1": "embedding_projection.weight",
}
VISION_END, AUDIO_END = under("model.embed_vision.", EMBEDDER), under("model.embed_audio.", EMBEDDER)


def embedded(c: Config, width: int, text: int, made: list[Op]) -> Drawn:
    """What a tower makes, `y[b o d]`, normed and as wide as the text model; `width` is the tower's.

    Tokens that begin or end an image or a sound have a table of their own, a norm, and the same matrix. They are the
    text's, and `p`, how many there are, is taken to be none.
    """
    norm, bare = Norm(eps=c.positive("rms_norm_eps", 1e-6)), Norm(affine="none", eps=c.positive("rms_norm_eps", 1e-6))
    c.skip("vocab_offset")
    made = [*made, *norm.ops("y", "y", "soft", "b o d"), *ops("tower", "y = linear(y[b o d], Wp1[d j]) -> [b o j]")]
    made += bare.ops("y", "y", "projected", "b o j", "j")
    made += ops("tower", "h = gather(ids[b p], Hard[V d]) -> [b p d]")
    made += norm.ops("h", "h", "hard", "b p d")
    made += ops("tower", "h = linear(h[b p d], Wp1[d j]) -> [b p j]")
    made += bare.ops("h", "h", "projected", "b p j", "j")
    return Drawn("projector", tuple(made), {"d": width, "j": text, "V": c.size("vocab_size", 128), "p": 0})


def seeing(c: Config, text: int, tokens: int) -> Tower:
    """The tower under `vision_config`: the one that its name stands for, as it is."""
    c.word("architecture", "mobilenetv5_300m_enc", ("mobilenetv5_300m_enc",))
    if c.data.get("model_args"):
        c.fail("model_args", "null or {}: the tower is read as its name says")
    c.skip("model_type", "model_args", "do_pooling", "num_classes", "label_names", "pretrained_cfg")
    if c.size("hidden_size", OUT) != OUT:
        c.fail("hidden_size", f"{OUT}, the channels that mobilenetv5_300m_enc makes")
    start, drawn, names = mobilenet_v5("model.vision_tower.timm_model.")
    made = ops("tower", "y = reshape(x[b v h d]) -> [b o d]")
    made += ops("tower", "y = scale(y[b o d]) -> [b o d]", by=float(OUT) ** 0.5)
    end = embedded(c, OUT, text, made)
    axes = {"n": tokens, "o": tokens, "v": TOKENS, "h": TOKENS}
    return Tower(start, (), (*drawn, end), OUT, axes, {**names, **VISION_END}, called="vision")


def pairs(c: Config, key: str, usual: int) -> list[tuple[int, int]]:
    """Two numbers for each of the two convolutions: of times and of pitches."""

    def fits(one: object) -> bool:
        return isinstance(one, list) and len(one) == 2 and all(type(n) is int and 0 < n < 1000 for n in one)

    found = c.sequence(key, fits, "pairs of integers of at least 1", 2)
    return [(int(a), int(b)) for a, b in found] if found is not None else [(usual, usual)] * 2


def beginning(c: Config, width: int) -> Strided:
    """Two convolutions over times and pitches: pitches are filled up by one at either end, times at their end."""
    found = c.sequence("sscp_conv_channel_size", lambda v: type(v) is int and v > 0, "an integer of at least 1", 2)
    channels = (int(found[0]), int(found[1])) if found is not None else (128, 32)
    kernels, strides = pairs(c, "sscp_conv_kernel_size", 3), pairs(c, "sscp_conv_stride_size", 2)
    times, tones = [FRAMES], list[int]([c.size("input_feat_size", 128)])
    for (_, across), (slow, high) in zip(kernels, strides, strict=True):
        times.append((times[-1] - 1) // slow + 1)
        tones.append((tones[-1] + 2 - across) // high + 1)
        if tones[-1] < 1:
            c.fail("sscp_conv_kernel_size", f"kernels no wider than the pitches, {tones[-2]} and one at either end")
    return Strided(
        (times[0], times[1], times[2]),
        (tones[0], tones[1], tones[2]),
        channels,
        (kernels[0], kernels[1]),
        (strides[0], strides[1]),
        width,
        c.positive("sscp_conv_group_norm_eps", 1e-3),
    )


def hearing(c: Config, text: int) -> Tower:
    """The tower under `audio_config`, for half a minute of sound."""
    c.absent(hidden_size=1536)
    c.skip("model_type", "conf_positional_bias_size", "conf_attention_invalid_logits_value", "sscp_conv_eps")
    width, heads = c.size("hidden_size"), c.size("conf_num_attention_heads", 8)
    each = c.divides("hidden_size", width, "conf_num_attention_heads", heads)
    limit, given = c.positive("gradient_clipping", 1e10), c.positive("rms_norm_eps", 1e-6)
    norm = LimitedNorm(eps=1e-6, limit=limit)
    before = max(0, c.size("conf_attention_context_left", 13, least=0) - 1)
    behind = c.size("conf_attention_context_right", 0, least=0)
    attention = ChunkedAttention(
        heads,
        heads,
        each,
        scale=1.0,
        softcap=c.positive("conf_attention_logit_cap", 50.0),
        sees="all",
        size=c.size("conf_attention_chunk_size", 12) + before + behind,
        places=before + behind + 1,
    )
    convolution = Convolution(width, c.size("conf_conv_kernel_size", 5), "silu", LimitedNorm(eps=given, limit=limit))
    one, other = (Feed(4 * width, gated=False, activation="silu", tag=tag) for tag in ("m1", "m2"))
    weight = c.positive("conf_residual_weight", 0.5)
    layer = Layer(
        (
            Step((Branch(one, norm, norm),), scale=weight),
            Step((Branch(attention, norm, norm),)),
            Step((Branch(convolution, Norm(eps=given)),)),
            Step((Branch(other, norm, norm),), scale=weight, after=norm),
        )
    )
    start = beginning(c, width)
    length = start.times[-1]
    kept = -(-length // c.size("conf_reduction_factor", 4))
    end = embedded(c, width, text, ops("tower", "y = slice(x[b n d]) -> [b o d]"))
    axes = {"n": length, "o": kept, "b": "sounds"}
    names = {**AUDIO, **AUDIO_END}
    return Tower(start, (layer,) * depth(c, 12, "conf_num_hidden_layers"), (end,), width, axes, names, called="audio")


@family("gemma3n", cls="Gemma3nForConditionalGeneration", names={}, classes=CLASSES)
def gemma3n(c: Config) -> Multimodal:
    """Google 2025: a MobileNet-V5 of 300 million parameters and an encoder of sound beside Gemma 3n's text model."""
    c.skip("boi_token_id", "eoi_token_id", "boa_token_id", "eoa_token_id", "audio_soft_tokens_per_image")
    text = text_of(c, "gemma3n_text", tied=True)
    width, tokens = text[0].width, TOKENS * TOKENS
    if c.size("vision_soft_tokens_per_image", tokens) != tokens:
        c.fail("vision_soft_tokens_per_image", f"{tokens}, which is what the tower makes of an image")
    towers = [seeing(c.child("vision_config"), width, tokens), hearing(c.child("audio_config"), width)]
    c.notes.append(f"each of --images is one of {SIDE} x {SIDE} pixels, {tokens} tokens")
    c.notes.append(f"each of --sounds is one of half a minute, {towers[1].axes['o']} tokens")
    return beside(c, text, towers, Sight(sounds=True))
