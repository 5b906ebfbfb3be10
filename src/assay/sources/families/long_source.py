"""Models of long sources built like BART: LED, BigBird-Pegasus, Pegasus-X. Their decoders attend as BART's do."""

from __future__ import annotations

from typing import Any

from assay.blocks import Attention, Decoder, Embedding, Final, Head, Layer, Norm
from assay.blocks.encoder_decoder import EncoderDecoder, SpareEmbedding
from assay.blocks.encoders import Encoder
from assay.blocks.long_source import BlockSparse, GlobalLayer, GlobalTokens, MarkedGlobal
from assay.sources.config import Config
from assay.sources.families.bart import (
    BARE,
    BART,
    CLASSIFIES,
    ENCODER_LAYER,
    GENERATES,
    HARMLESS,
    LARGE,
    Half,
    bart_names,
    crossing,
    defaults,
    half,
    layer,
    projections,
    untied,
)
from assay.sources.families.common import Names, apart, by_kind, family


def taken(attention: Attention, cls: type[Attention], **more: Any) -> Attention:
    """Attention of the same sizes that finds its keys in another way."""
    return cls(attention.heads, attention.kv_heads, attention.head_width, bias=attention.bias, sees="all", **more)


def model(
    c: Config,
    words: Embedding,
    encoder: tuple[Layer, ...],
    write: Half,
    target: Embedding,
    names: Names,
    *,
    pre: bool,
    logits_bias: bool = True,
    limits: tuple[int | None, int | None] = (None, None),
    trained: int | None = None,
) -> EncoderDecoder:
    """Layers that read a long source, before the decoder of these families."""
    norm, tied = Norm("layernorm", "gain+bias", 1e-5), c.flag("tie_word_embeddings", True)
    final = norm if pre else None
    rows, width = c.size("vocab_size"), c.size("d_model")
    writing = layer((write.attention, crossing(write.attention), write.mlp), norm, pre)
    end = Final(width, norm=final) if final is not None else None
    return EncoderDecoder(
        Encoder(words, encoder, end, limit=limits[0], trained=trained),
        Decoder(
            target,
            (writing,) * write.layers,
            Head(rows, width, tied, bias=logits_bias, norm=final),
            limit=limits[1],
            trained=trained,
        ),
        names=None if tied else untied(names),
    )


def table(c: Config) -> type[Embedding]:
    """The encoder's words: an untied model stores a table that nobody looks into beside them."""
    return Embedding if c.flag("tie_word_embeddings", True) else SpareEmbedding


_SELF = "longformer_self_attn"
_FAR = (("q", "query", "(g r k)"), ("k", "key", "(g k)"), ("v", "value", "(g v)"))
LED = {
    name: path.replace("model.", "led.", 1)
    for name, path in bart_names(
        {
            **ENCODER_LAYER,
            **projections("self_attn", f"{_SELF}.query {_SELF}.key {_SELF}.value output"),
            **{f"Wfar{one}": f"self_attn.{_SELF}.{word}_global.weight[{axes} d]" for one, word, axes in _FAR},
            **{f"Bfar{one}": f"self_attn.{_SELF}.{word}_global.bias[{axes}]" for one, word, axes in _FAR},
        }
    ).items()
}


@apart(flops="of windows: which tokens are global is an input")
@family("led", cls="LEDForConditionalGeneration", names=LED, harmless=HARMLESS, classes=(GENERATES, BARE))
def led(c: Config) -> EncoderDecoder:
    """Beltagy et al. 2020, arXiv:2004.05150: a token sees half a window to either side; no token is marked global."""
    base = {key: value for key, value in LARGE.items() if key != "max_position_embeddings"}
    defaults(c, vocab_size=50265, max_encoder_position_embeddings=16384, max_decoder_position_embeddings=1024, **base)
    heard, written = c.size("max_encoder_position_embeddings"), c.size("max_decoder_position_embeddings")
    rows, width, norm = c.size("vocab_size"), c.size("d_model"), Norm("layernorm", "gain+bias", 1e-5)
    read, write = half(c, "encoder", "qkvo"), half(c, "decoder", "qkvo")

    def reading(window: int) -> Layer:
        return layer((taken(read.attention, MarkedGlobal, reach=window // 2), read.mlp), norm, pre=False)

    return model(
        c,
        table(c)(rows, width, positions=heard, norm=norm),
        by_kind(windows(c, read.layers), reading),
        write,
        Embedding(rows, width, positions=written, norm=norm),
        LED,
        pre=False,
        limits=(heard, written),
    )


def windows(c: Config, layers: int) -> list[int]:
    """`attention_window`: one even number, or one for each layer."""
    said = c.data.get("attention_window", 512)
    if isinstance(said, list):
        fits = "an even integer of at least 2"
        found = c.sequence("attention_window", lambda v: isinstance(v, int) and v > 1 and v % 2 == 0, fits, layers)
        return found or []
    window = c.size("attention_window", 512)
    if window % 2:
        c.fail("attention_window", "an even integer, or a list of them")
    return [window] * layers


BIGBIRD = bart_names(
    {**ENCODER_LAYER, **projections("self_attn", "self.query self.key self.value output")},
    around={
        "E_position": "embed_positions.weight",
        "Gf": "layernorm_embedding.weight",  # by this name, the norm behind the last layer
    },
)


@family(
    "bigbird_pegasus",
    cls="BigBirdPegasusForConditionalGeneration",
    names=BIGBIRD,
    harmless=HARMLESS,
    classes=(GENERATES, BARE, CLASSIFIES),
)
def bigbird_pegasus(c: Config) -> EncoderDecoder:
    """Zaheer et al. 2020, arXiv:2007.14062, on Pegasus: sparse blocks in the encoder, dense where it is short."""
    larger = {"encoder_layers": 16, "decoder_layers": 16, "max_position_embeddings": 4096}
    defaults(c, vocab_size=96103, scale_embedding=True, **{**LARGE, **larger, "activation_function": "gelu_new"})
    rows, width, norm = c.size("vocab_size"), c.size("d_model"), Norm("layernorm", "gain+bias", 1e-5)
    bias = "qkvo" if c.flag("use_bias", False) else ""
    read, write = half(c, "encoder", bias), half(c, "decoder", bias)
    block, random = c.size("block_size", 64), c.size("num_random_blocks", 3)
    attention = read.attention
    if c.word("attention_type", "block_sparse", ("block_sparse", "original_full")) == "block_sparse":
        attention = taken(attention, BlockSparse, block=block, random=random)
    longest = c.size("max_position_embeddings")
    scale = width**0.5 if c.flag("scale_embedding", True) else None
    return model(
        c,
        table(c)(rows, width, positions=longest, scale=scale),
        (layer((attention, read.mlp), norm, pre=True),) * read.layers,
        write,
        Embedding(rows, width, positions=longest, scale=scale),
        BIGBIRD,
        pre=True,
        limits=(longest, longest),
    )


PEGASUS_X = {
    **BART,
    "encoder.Gz": "model.encoder.layers.{i}.global_self_attn_layer_norm.weight",
    "encoder.Efar": "model.encoder.embed_global.weight",
}


@family(
    "pegasus_x", cls="PegasusXForConditionalGeneration", names=PEGASUS_X, harmless=HARMLESS, classes=(GENERATES, BARE)
)
def pegasus_x(c: Config) -> EncoderDecoder:
    """Phang et al. 2022, arXiv:2208.04347: blocks, staggered in every other layer, and global tokens."""
    larger = {"encoder_layers": 16, "decoder_layers": 16, "max_position_embeddings": 16384}
    defaults(c, vocab_size=96103, scale_embedding=True, **{**LARGE, **larger})
    rows, width, norm = c.size("vocab_size"), c.size("d_model"), Norm("layernorm", "gain+bias", 1e-5)
    read, write = half(c, "encoder", ""), half(c, "decoder", "")
    block, count = c.size("block_size", 512), c.size("num_global_tokens", 32)
    staggered = c.flag("stagger_local_blocks", True)
    if staggered and block % 2:
        c.fail("block_size", "an even integer where stagger_local_blocks is true")
    scale = width**0.5 if c.flag("scale_embedding", True) else None

    def reading(offset: int) -> Layer:
        return GlobalLayer(
            (), attention=read.attention, mlp=read.mlp, norm=norm, count=count, block=block, offset=offset
        )

    spare = not c.flag("tie_word_embeddings", True)
    return model(
        c,
        GlobalTokens(rows, width, sinusoid=True, scale=scale, count=count, spare=spare),
        by_kind([block // 2 if staggered and index % 2 else 0 for index in range(read.layers)], reading),
        write,
        Embedding(rows, width, sinusoid=True, scale=scale),
        PEGASUS_X,
        pre=True,
        logits_bias=False,
        trained=c.size("max_position_embeddings"),
    )
