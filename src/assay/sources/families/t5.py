"""T5 and what is built like it: no biases, RMSNorms, distances as a learned bias of the scores, heads of a width of
their own. The first layer of each half holds the table of distances, and the others use it (in uMT5 each holds one).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from assay.blocks import Attention, Branch, CrossAttention, Decoder, Embedding, Final, Head, Layer, Mlp, Norm, Step
from assay.blocks.encoder_decoder import EncoderDecoder, of
from assay.blocks.encoders import Encoder
from assay.blocks.stacks import Body
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.bart import projections, sides
from assay.sources.families.common import ACTIVATIONS, BASE, ENCODER, SEQ2SEQ, Class, Names, depth, family, rms, under


def feed_forward(at: int, path: str = "DenseReluDense", up: str = "wi_1") -> dict[str, str]:
    """The MLP at its place within a layer, and the norm before it."""
    names = {"Wg": f"{path}.wi_0.weight", "Wu": f"{path}.{up}.weight", "Wd": f"{path}.wo.weight"}
    return under(f"layer.{at}.", {**names, "Gm": "layer_norm.weight"})


def t5_names(up: str = "wi_1", path: str = "DenseReluDense", attention: str = "SelfAttention") -> dict[str, str]:
    """The table of names; `up` is the matrix beside the gate, or the one where there is no gate."""

    def own(name: str) -> dict[str, str]:
        held = {**projections(name, "q k v o"), "Rel": f"{name}.relative_attention_bias.weight[u (g r)]"}
        return under("layer.0.", {**held, "Ga": "layer_norm.weight"})

    cross = {**projections("EncDecAttention", "q k v o", "cross."), "Gc": "layer_norm.weight"}
    encoder = {**own(attention), **feed_forward(1, path, up)}
    decoder = {**own("SelfAttention"), **under("layer.1.", cross), **feed_forward(2, path, up)}
    final = {"Gf": "final_layer_norm.weight"}
    return {
        **sides(
            under("encoder.", {**final, **under("block.{i}.", encoder)}),
            under("decoder.", {**final, **under("block.{i}.", decoder)}),
        ),
        "E": "shared.weight",
        "Wout": "lm_head.weight",
    }


GATED, PLAIN = t5_names(), t5_names("wi")


def defaults(c: Config, **values: Any) -> None:
    """Today's keys under the family's own; then the config class's own values."""
    c.rename(hidden_size="d_model", num_attention_heads="num_heads", num_hidden_layers="num_layers", head_dim="d_kv")
    c.absent(**values)


def feed(c: Config) -> Mlp:
    """The MLP, as `feed_forward_proj` says: an activation, or gated- and an activation."""
    said = c.word("feed_forward_proj", None)
    gated = said.startswith("gated-")
    act = "gelu_new" if said == "gated-gelu" else said.removeprefix("gated-")
    if act not in ACTIVATIONS:
        c.fail("feed_forward_proj", f"one of {', '.join(sorted(ACTIVATIONS))}, perhaps behind gated-")
    c.inert("is_gated_act", gated)
    c.inert("dense_act_fn", act, said.removeprefix("gated-"))
    return Mlp(c.size("d_ff"), gated=gated, activation=ACTIVATIONS[act])


def attention(c: Config, encoder: bool) -> Attention:
    """Scores are not scaled: the initial values are."""
    heads = c.size("num_heads")
    buckets, far = c.size("relative_attention_num_buckets", 32), c.size("relative_attention_max_distance", 128)
    sees: Literal["all", "past"] = "all" if encoder else "past"
    return Attention(heads, heads, c.size("d_kv"), scale=1.0, sees=sees, relative=buckets, relative_far=far)


def layers(own: Attention, rests: Sequence[tuple[Body, ...]], norm: Norm, tables: bool) -> tuple[Layer, ...]:
    """Attention and the rest of each layer, each behind a norm.

    `tables` where each layer holds a table of distances, and not the first alone.
    """
    found: dict[tuple[bool, tuple[Body, ...]], Layer] = {}
    keys = [(tables or index == 0, rest) for index, rest in enumerate(rests)]
    for here, rest in dict.fromkeys(keys):
        bodies = (replace(own, relative_here=here), *rest)
        found[here, rest] = Layer(tuple(Step((Branch(body, norm),)) for body in bodies))
    return tuple(found[key] for key in keys)


def halves(
    c: Config,
    reads: Sequence[tuple[Body, ...]],
    writes: Sequence[tuple[Body, ...]],
    names: Names,
    tables: bool = False,
    own: Attention | None = None,
) -> EncoderDecoder:
    """Both halves around what their layers hold beside attention of their own, and the head.

    A tied head's input is scaled. `own` is the encoder's attention where it is another.
    """
    rows, width, norm = c.size("vocab_size"), c.size("d_model"), rms(c, key="layer_norm_epsilon")
    tied = c.flag("tie_word_embeddings", True)
    scaled = c.flag("scale_decoder_outputs", tied)
    trained = c.maybe("n_positions")
    start(c)
    words = Embedding(rows, width)
    read = attention(c, encoder=True) if own is None else own
    write = attention(c, encoder=False)
    return EncoderDecoder(
        Encoder(words, layers(read, reads, norm, tables), Final(width, norm=norm), trained=trained),
        Decoder(
            words,
            layers(write, writes, norm, tables),
            Head(rows, width, tied, norm=norm, scale=width**-0.5 if scaled else None),
            trained=trained,
        ),
        names=names,
    )


def start(c: Config) -> None:
    """Initial values as small as what each matrix reads is wide, for scores are not scaled (Shazeer & Stern 2018)."""
    by = c.data.get("initializer_factor", 1.0)
    if not isinstance(by, int | float):
        c.fail("initializer_factor", "a number")
    width, heads, each, inner = (int(c.size(key)) for key in ("d_model", "num_heads", "d_kv", "d_ff"))
    c.starts |= {"shared.weight": by, "lm_head.weight": by, "embed_tokens.weight": by}
    c.starts |= {"Attention.q.weight": by * (width * each) ** -0.5, "Attention.o.weight": by * (heads * each) ** -0.5}
    ends = (
        "Attention.k.weight",
        "Attention.v.weight",
        "attention_bias.weight",
        "wi.weight",
        "wi_0.weight",
        "wi_1.weight",
    )
    c.starts |= dict.fromkeys(ends, by * width**-0.5)
    c.starts["wo.weight"] = by * inner**-0.5


def crossing(c: Config) -> CrossAttention:
    """Attention to the source, without distances."""
    return CrossAttention(c.size("num_heads"), c.size("num_heads"), c.size("d_kv"), scale=1.0)


def depths(c: Config) -> tuple[int, int]:
    """Layers of the encoder and of the decoder, as many where nothing says otherwise."""
    encoder = depth(c, key="num_layers")
    return encoder, depth(c, encoder, "num_decoder_layers") if c.has("num_decoder_layers") else encoder


def dense(c: Config, tables: bool = False) -> EncoderDecoder:
    """All layers alike."""
    mlp = feed(c)
    reads, writes = depths(c)
    return halves(
        c,
        [(mlp,)] * reads,
        [(crossing(c), mlp)] * writes,
        GATED if mlp.gated else PLAIN,
        tables,
    )


def bare(c: Config, made: EncoderDecoder) -> Final:
    """The model without its head."""
    return Final(made.width, norm=rms(c, key="layer_norm_epsilon"))


def alone(c: Config, made: EncoderDecoder) -> Encoder:
    """The encoder, as models of other kinds use it."""
    return replace(made.encoder, names=of(made.names or {}, "encoder."))


GENERATES = Class(SEQ2SEQ, "ForConditionalGeneration", lambda c, made: made.decoder.head)
BARE = Class(BASE, "Model", bare)
ENCODES = Class(ENCODER, "EncoderModel", alone)
CLASSES = (GENERATES, BARE, ENCODES)
HARMLESS = (
    *("is_encoder_decoder", "dropout_rate", "classifier_dropout"),
    *("initializer_factor", "output_past", "is_decoder", "scalable_attention"),
)


OLD = ("T5WithLMHeadModel",)  # as configs of 2019 name the class


@family("t5", cls="T5ForConditionalGeneration", names=PLAIN, harmless=HARMLESS, classes=CLASSES, also=OLD)
def t5(c: Config) -> EncoderDecoder:
    """Raffel et al. 2019, arXiv:1910.10683; version 1.1 gates its MLP and unties its head."""
    defaults(c, vocab_size=32128, d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8, feed_forward_proj="relu")
    return dense(c)


@family("mt5", cls="MT5ForConditionalGeneration", names=GATED, harmless=HARMLESS, classes=CLASSES)
def mt5(c: Config) -> EncoderDecoder:
    """Xue et al. 2020, arXiv:2010.11934."""
    defaults(c, vocab_size=250112, d_model=512, d_kv=64, d_ff=1024, num_layers=8, num_heads=6)
    defaults(c, feed_forward_proj="gated-gelu", scale_decoder_outputs=False)
    return dense(c)


@family("umt5", cls="UMT5ForConditionalGeneration", names=GATED, harmless=HARMLESS, classes=CLASSES)
def umt5(c: Config) -> EncoderDecoder:
    """Chung et al. 2023, arXiv:2304.09151: a table of distances in each layer."""
    defaults(c, vocab_size=250112, d_model=512, d_kv=64, d_ff=1024, num_layers=8, num_heads=6)
    defaults(c, feed_forward_proj="gated-gelu")
    return dense(c, tables=True)


LOCAL, FAR = "LocalSelfAttention", "TransientGlobalSelfAttention"
_FAR_NAMES = {
    "Relfar": f"{FAR}.global_relative_attention_bias.weight[u (g r)]",
    "Gfar": f"{FAR}.global_input_layer_norm.weight",
}
LONG = {
    (kind, gated): {
        **t5_names("wi_1" if gated else "wi", attention=kind),
        **{f"encoder.{name}": f"encoder.block.{{i}}.layer.0.{path}" for name, path in _FAR_NAMES.items()},
    }
    for kind in (LOCAL, FAR)
    for gated in (True, False)
}


@family("longt5", cls="LongT5ForConditionalGeneration", names=LONG[LOCAL, False], harmless=HARMLESS, classes=CLASSES)
def longt5(c: Config) -> EncoderDecoder:
    """Guo et al. 2021, arXiv:2112.07916: the encoder sees `local_radius` tokens to either side, and perhaps blocks."""
    defaults(c, vocab_size=32128, d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8, feed_forward_proj="relu")
    mlp = feed(c)
    reads, writes = depths(c)
    own = replace(attention(c, encoder=True), reach=c.size("local_radius", 127))
    block = c.size("global_block_size", 16)
    kind = LOCAL
    if c.word("encoder_attention_type", "local", ("local", "transient-global")) == "transient-global":
        from assay.blocks.long_source import TransientGlobal

        kind = FAR
        own = TransientGlobal(
            own.heads,
            own.kv_heads,
            own.head_width,
            scale=own.scale,
            sees="all",
            reach=own.reach,
            relative=own.relative,
            block=block,
            norm=rms(c, key="layer_norm_epsilon"),
        )
    return halves(c, [(mlp,)] * reads, [(crossing(c), mlp)] * writes, LONG[kind, mlp.gated], own=own)
