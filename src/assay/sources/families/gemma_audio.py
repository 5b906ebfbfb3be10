"""Gemma 4's encoder of sound: a conformer whose attention sees little more than its chunk (Zhang et al. 2023)."""

from __future__ import annotations

from assay.blocks import Branch, Layer, Norm, Step
from assay.blocks.conformer import Convolution, Feed
from assay.blocks.sounds import ChunkedAttention, Clamped, Subsampled, bounds
from assay.blocks.stacks import Body
from assay.blocks.towers import Drawn, Tower
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, under
from assay.spec import ops

POSITIONS = 750  # of half a minute: a hundred frames a second, four of them each

LAYER = under(
    "layers.{i}.",
    {
        "Gm1": "feed_forward1.pre_layer_norm.weight",
        "Wu1": "feed_forward1.ffw_layer_1.linear.weight",
        "Wd1": "feed_forward1.ffw_layer_2.linear.weight",
        "Gpm1": "feed_forward1.post_layer_norm.weight",
        "Ga": "norm_pre_attn.weight",
        **{f"W{letter}": f"self_attn.{letter}_proj.linear.weight" for letter in "qkv"},
        "Wpos": "self_attn.relative_k_proj.weight",
        "Factor": "self_attn.per_dim_scale",
        "Wo": "self_attn.post.linear.weight",
        "Gpa": "norm_post_attn.weight",
        "Gconv": "lconv1d.pre_layer_norm.weight",
        "Wua": "lconv1d.linear_start.linear.weight[+i d]",
        "Wub": "lconv1d.linear_start.linear.weight[+i d]",
        "Wk1": "lconv1d.depthwise_conv1d.weight[i 1 q]",
        "Gw": "lconv1d.conv_norm.weight",
        "Wpoint": "lconv1d.linear_end.linear.weight",
        "Gm2": "feed_forward2.pre_layer_norm.weight",
        "Wu2": "feed_forward2.ffw_layer_1.linear.weight",
        "Wd2": "feed_forward2.ffw_layer_2.linear.weight",
        "Gpm2": "feed_forward2.post_layer_norm.weight",
        "Gt3": "norm_out.weight",
    },
)
GEMMA4 = under(
    "model.audio_tower.",
    {
        "Wplane1": "subsample_conv_projection.layer0.conv.weight[i 1 q r]",
        "Gplane1": "subsample_conv_projection.layer0.norm.weight",
        "Wplane2": "subsample_conv_projection.layer1.conv.weight[l i q r]",
        "Gplane2": "subsample_conv_projection.layer1.norm.weight",
        "Wflat": "subsample_conv_projection.input_proj_linear.weight[d (h3 l)]",
        **LAYER,
        **bounds(LAYER),
        "Wlast": "output_proj.weight",
    },
) | {"Wp1": "model.embed_audio.embedding_projection.weight"}
MATRICES = ("Wu1", "Wd1", "Wq", "Wk", "Wv", "Wo", "Wua", "Wub", "Wpoint", "Wu2", "Wd2")


def hearing(c: Config, text: int, alone: bool) -> Tower:
    """The tower under `audio_config`; its sounds are what --images counts where there is no other tower."""
    c.absent(hidden_size=1024, num_hidden_layers=12, num_attention_heads=8, hidden_act="silu")
    c.skip("model_type", "gradient_clipping", "attention_invalid_logits_value")
    width, heads, act = c.size("hidden_size"), c.size("num_attention_heads"), activation(c)
    each = c.divides("hidden_size", width, "num_attention_heads", heads)
    norm, given = Norm(eps=1e-6), c.positive("rms_norm_eps", 1e-6)
    chunk, left = c.size("attention_chunk_size", 12), c.size("attention_context_left", 13)
    size = chunk + left - 1 + c.size("attention_context_right", 0, least=0)
    cap = c.positive("attention_logit_cap", 50.0)
    attention = ChunkedAttention(
        heads, heads, each, scale=1.0, softcap=cap, sees="all", size=size, places=size // 2 + 1
    )
    convolution = Convolution(width, c.size("conv_kernel_size", 5), act, Norm(eps=given))
    feeds = [Feed(4 * width, gated=False, activation=act, tag=tag) for tag in ("m1", "m2")]
    bodies: list[Body] = [feeds[0], attention, convolution, feeds[1]]
    if c.flag("use_clipped_linears", True):
        bodies = [Clamped(body, MATRICES, (("Wub", "Wua"),)) for body in bodies]
    one, mixer, near, other = bodies
    weight = c.positive("residual_weight", 0.5)
    layer = Layer(
        (
            Step((Branch(one, norm, norm),), scale=weight),
            Step((Branch(mixer, norm, norm),)),
            Step((Branch(near, Norm(eps=given)),)),
            Step((Branch(other, norm, norm),), scale=weight, after=norm),
        )
    )
    found = c.sequence("subsampling_conv_channels", lambda v: type(v) is int and v > 0, "an integer of at least 1", 2)
    channels = (int(found[0]), int(found[1])) if found is not None else (128, 32)
    if channels[0] < 4:
        c.fail("subsampling_conv_channels", "a list whose first item is at least 4")
    # the class takes as many pitches as the first convolution has channels
    start = Subsampled(channels[0] // 4 * 4, channels, width, Norm("layernorm", "gain", given))
    made = ops("tower", "y = linear(x[b n d], Wlast[d l], Wlast_bias[l]) -> [b n l]")
    made += Norm(affine="none", eps=given).ops("y", "y", "projector", "b n l", "l")
    made += ops("tower", "y = linear(y[b n l], Wp1[l j]) -> [b n j]")
    end = Drawn("projector", tuple(made), {"d": width, "l": c.size("output_proj_dims", 1536), "j": text})
    axes = {"n": POSITIONS, "a": 2 * POSITIONS, "m": 4 * POSITIONS} | ({} if alone else {"b": "sounds"})
    return Tower(start, (layer,) * depth(c), (end,), width, axes, GEMMA4, called="audio")
