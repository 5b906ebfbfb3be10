"""Granite Speech: a conformer over windows of a sound, a few queries for each short window of it, a text model."""

from __future__ import annotations

from math import lcm

from assay.blocks import Branch, Layer, Mlp, Norm, Step
from assay.blocks.conformer import Feed
from assay.blocks.sounds import BiasedConvolution, NamedNorm, NearAttention, WindowQueries
from assay.blocks.towers import Drawn, Multimodal, Tower, Windowed
from assay.sources.config import Config
from assay.sources.families.common import activation, by_kind, depth, family, under
from assay.sources.families.multimodal import CLASSES, beside, text_of
from assay.spec import Sight, ops

SECONDS = 1500  # positions of half a minute, of two frames each

CONFORMER = under(
    "model.encoder.",
    {
        "Win": "input_linear.weight",
        "Wctc": "out.weight",
        "Wback": "out_mid.weight",
        **under(
            "layers.{i}.",
            {
                **{
                    f"W{letter}{n}": f"ff{n}.{name}_proj.weight"
                    for n in "12"
                    for letter, name in (("u", "up"), ("d", "down"))
                },
                **{f"Gm{n}": f"ff{n}.pre_norm.weight" for n in "12"},
                "Ga": "attn.pre_norm.weight",
                "Wq": "attn.to_q.weight",
                "Wk": "attn.to_kv.weight[+(g k) d]",
                "Wv": "attn.to_kv.weight[+(g v) d]",
                "Wo": "attn.to_out.weight",
                "Distance": "attn.rel_pos_emb.weight",
                "Gconv": "conv.norm.weight",
                "Wua": "conv.up_conv.weight[+i d 1]",
                "Wub": "conv.up_conv.weight[+i d 1]",
                "Wua_bias": "conv.up_conv.bias[+i]",
                "Wub_bias": "conv.up_conv.bias[+i]",
                "Wk1": "conv.depth_conv.conv.weight[i 1 q]",
                "Gw": "conv.batch_norm.weight",
                "Mean": "~conv.batch_norm.running_mean",
                "Var": "~conv.batch_norm.running_var",
                "Seen": "~conv.batch_norm.num_batches_tracked[ ]",
                "Wpoint": "conv.down_conv.weight[d i 1]",
                "Gt3": "post_norm.weight",
            },
        ),
    },
)
_BERT = "qformer.encoder.layer.{i}."
QUERIES = under(
    "model.projector.",
    {
        "Query": "query[1 Q d]",
        "Gstart": "qformer.layernorm.weight",
        **{
            f"W{x}": f"{_BERT}attention.attention.{n}.weight"
            for x, n in zip("qkv", ("query", "key", "value"), strict=True)
        },
        "Wo": _BERT + "attention.output.dense.weight",
        "Gt0": _BERT + "attention.output.LayerNorm.weight",
        **{
            f"cross.W{x}": f"{_BERT}crossattention.attention.{n}.weight"
            for x, n in zip("qkv", ("query", "key", "value"), strict=True)
        },
        "cross.Wo": _BERT + "crossattention.output.dense.weight",
        "Gcross": _BERT + "crossattention.output.LayerNorm.weight",
        "Wu": _BERT + "intermediate_query.dense.weight",
        "Wd": _BERT + "output_query.dense.weight",
        "Glast": _BERT + "output_query.LayerNorm.weight",
        "Wp1": "linear.weight",
    },
)

FRAMES = tuple(ops("embedding", "x = linear(frames[b n j], Win[j d], Win_bias[d]) -> [b n d]"))
LETTERS = tuple(
    ops(
        "tower",
        "y = linear(x[b n d], Wctc[d l], Wctc_bias[l]) -> [b n l]",
        "y = softmax(y[b n l]) -> [b n l]",
        "y = linear(y[b n l], Wback[l d], Wback_bias[d]) -> [b n d]",
        "x = add(x[b n d], y[b n d]) -> [b n d]",
    )
)


def conformer(c: Config) -> tuple[Tower, int]:
    """Zhang et al. 2023 as IBM has it: attention within windows, the likely letters half-way given back."""
    c.absent(input_dim=160, num_layers=10, hidden_dim=1024, feedforward_mult=4, num_heads=8, output_dim=42)
    c.absent(context_size=200, max_pos_emb=512, conv_kernel_size=15, conv_expansion_factor=2)
    c.skip("model_type", "dropout")
    c.inert("cat_hidden_layers")
    width, heads, norm = c.size("hidden_dim"), c.size("num_heads"), Norm("layernorm", "gain+bias", 1e-5)
    each = c.maybe("dim_head") or c.divides("hidden_dim", width, "num_heads", heads)
    window, far = c.size("context_size"), c.size("max_pos_emb")
    if window > far:
        c.fail("context_size", f"at most max_pos_emb, {far}")
    attention = NearAttention(heads, heads, each, bias="o", by="distances", rows=2 * far + 1, size=window, sees="all")
    inner = width * c.size("feedforward_mult")
    convolution = BiasedConvolution(width * c.size("conv_expansion_factor"), c.size("conv_kernel_size"))
    one, other = (Feed(inner, gated=False, bias="ud", tag=tag) for tag in ("m1", "m2"))
    layer = Layer(
        (
            Step((Branch(one, norm),), scale=0.5),
            Step((Branch(attention, norm),)),
            Step((Branch(convolution, norm),)),
            Step((Branch(other, norm),), scale=0.5, after=norm),
        )
    )
    start = Drawn("embedding", FRAMES, {"j": c.size("input_dim"), "d": width})
    letters = Drawn("letters", LETTERS, {"l": c.size("output_dim")})
    layers = (layer,) * depth(c, key="num_layers")
    return Tower(start, layers, (letters,), width, {"n": "patches"}, CONFORMER, called="audio"), int(window)


def asked(c: Config, outer: Config, text: int) -> Tower:
    """Li et al. 2023, arXiv:2301.12597: learned queries that attend to each other and to a window of the sound."""
    c.absent(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072)
    c.absent(encoder_hidden_size=1408, cross_attention_frequency=2, hidden_act="gelu")
    c.skip("vocab_size", "max_position_embeddings", "position_embedding_type")
    c.word("model_type", "blip_2_qformer", ("blip_2_qformer",))
    c.inert("use_qformer_text_input", False)
    width, heads, eps = c.size("hidden_size"), c.size("num_attention_heads"), c.positive("layer_norm_eps", 1e-12)
    each = c.divides("hidden_size", width, "num_attention_heads", heads)
    window, rate = outer.size("window_size", 15), outer.size("downsample_rate", 5)
    queries = outer.divides("window_size", window, "downsample_rate", rate)
    norm, last = Norm("layernorm", "gain+bias", eps), NamedNorm("layernorm", "gain+bias", eps, named="last")
    among = Windowed(heads, heads, each, bias="qkvo", patches=queries)
    across = WindowQueries(heads, heads, each, bias="qkvo", size=int(window), source=c.size("encoder_hidden_size"))
    mlp = Mlp(c.size("intermediate_size"), gated=False, activation=activation(c), bias="ud")
    crossed = NamedNorm("layernorm", "gain+bias", eps, named="cross")

    def layer(kind: str) -> Layer:
        look = (Step((Branch(across),), after=crossed),) if kind == "cross-attention" else ()
        return Layer((Step((Branch(among),), after=norm), *look, Step((Branch(mlp),), after=last)), kind)

    every = c.size("cross_attention_frequency")
    kinds = ["self-attention" if i % every else "cross-attention" for i in range(depth(c))]
    made = (
        *ops("embedding", "x = gather(at[n], Query[Q d]) -> [n d]", "x = repeat(x[n d]) -> [b n d]"),
        *norm.ops("x", "x", "start"),
    )
    start = Drawn("embedding", made, {"d": width, "Q": queries})
    end = Drawn(
        "projector",
        tuple(ops("tower", "y = linear(x[b n d], Wp1[d j], Wp1_bias[j]) -> [b n j]")),
        {"d": width, "j": text},
    )
    axes = {"n": "image_tokens", "m": "patches"}
    return Tower(start, by_kind(kinds, layer), (end,), width, axes, QUERIES, called="queries")


@family("granite_speech", cls="GraniteSpeechForConditionalGeneration", names={}, classes=CLASSES)
def granite_speech(c: Config) -> Multimodal:
    """Saon et al. 2025, arXiv:2505.08699, without the adapter that its files hold apart."""
    c.skip("audio_token_index", "has_lora_adapter")
    text = text_of(c, "granite", tied=True)
    encoder, window = conformer(c.child("encoder_config"))
    inner = c.child("projector_config")
    queries = asked(inner, c, text[0].width)
    read = inner.size("encoder_hidden_size")
    if read != encoder.width:  # the class's own sizes are of this kind
        c.notes.append(
            f"queries read {int(read)} numbers of a position that has {encoder.width}: such a model cannot run"
        )
    rate = int(c.size("downsample_rate", 5))
    whole = lcm(window, int(c.size("window_size", 15)))
    positions = -(-SECONDS // whole) * whole
    sight = Sight(tokens=positions // rate, patches=rate, says=f"a sound of {2 * positions:,} frames")
    return beside(c, text, [encoder, queries], sight)


@family("granite_speech_plus", cls="GraniteSpeechPlusForConditionalGeneration", names={}, classes=CLASSES)
def granite_speech_plus(c: Config) -> Multimodal:
    """The same; no config here gives the queries layers on the way as well."""
    return granite_speech(c)
