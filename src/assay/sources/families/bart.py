"""BART and what is built like it: attention with biases, an MLP of two layers, one table of words for all three uses.

Families differ in where their norms stand, in their positions, and in a bias of the logits that is no parameter.
"""

from __future__ import annotations

from typing import Any, Literal

from assay.blocks import (
    Attention,
    Branch,
    CrossAttention,
    Decoder,
    Embedding,
    Final,
    Head,
    Layer,
    Mlp,
    Norm,
    Sines,
    Step,
)
from assay.blocks.encoder_decoder import EncoderDecoder, SpareEmbedding
from assay.blocks.encoders import Encoder, Pooler
from assay.blocks.stacks import Body
from assay.records import dataclass, replace
from assay.sources.config import Config
from assay.sources.families.common import (
    BASE,
    SEQ2SEQ,
    SEQUENCE,
    Class,
    Names,
    activation,
    depth,
    family,
    labels,
    under,
)


def projections(path: str, names: str = "q_proj k_proj v_proj out_proj", own: str = "") -> dict[str, str]:
    """Where an attention keeps its four matrices; a bias lies beside each."""
    return {f"{own}W{letter}": f"{path}.{name}.weight" for letter, name in zip("qkvo", names.split(), strict=True)}


def sides(encoder: Names, decoder: Names) -> dict[str, str]:
    """The names of both halves as one table."""
    halves = {"encoder": encoder, "decoder": decoder}
    return {f"{side}.{weight}": path for side, names in halves.items() for weight, path in names.items()}


FEED_FORWARD = {"Wu": "fc1.weight", "Wd": "fc2.weight"}
# a layer's norms are named alike before a branch (Ga, Gc, Gm) and behind its sum (Gt0, Gt1, Gt2)
ENCODER_LAYER = {
    **projections("self_attn"),
    **FEED_FORWARD,
    **dict.fromkeys(("Ga", "Gt0"), "self_attn_layer_norm.weight"),
    **dict.fromkeys(("Gm", "Gt1"), "final_layer_norm.weight"),
}
DECODER_LAYER = {
    **projections("self_attn"),
    **projections("encoder_attn", own="cross."),
    **FEED_FORWARD,
    **dict.fromkeys(("Ga", "Gt0"), "self_attn_layer_norm.weight"),
    **dict.fromkeys(("Gc", "Gt1"), "encoder_attn_layer_norm.weight"),
    **dict.fromkeys(("Gm", "Gt2"), "final_layer_norm.weight"),
}
AROUND = {
    "E": "embed_tokens.weight",
    "E_position": "embed_positions.weight",
    "Ge": "layernorm_embedding.weight",
    "Gf": "layer_norm.weight",
}


def bart_names(encoder: Names = ENCODER_LAYER, decoder: Names = DECODER_LAYER, around: Names = AROUND) -> Names:
    """The table of names of such a family; the table of words is the shared one."""
    return {
        **sides(
            under("model.encoder.", {**around, **under("layers.{i}.", encoder)}),
            under("model.decoder.", {**around, **under("layers.{i}.", decoder)}),
        ),
        **dict.fromkeys(("E", "encoder.E", "decoder.E"), "model.shared.weight"),
        "Espare": "model.shared.weight[V d]",
        "Wout": "lm_head.weight",
        "Bout": "~final_logits_bias[1 V]",
    }


def untied(names: Names) -> dict[str, str]:
    """The same where each half has a table of its own; the shared one is then stored and not used."""
    base = names["E"].partition(".")[0]
    own = {f"{side}.E": f"{base}.{side}.embed_tokens.weight" for side in ("encoder", "decoder")}
    return {**names, **own}


BART = bart_names()


@dataclass(frozen=True)
class Style:
    """What tells these families apart."""

    pre: bool  # norms stand before the branches, and one behind the last layer
    normed: bool  # the embedding has a norm
    positions: Literal["learned", "stored", "computed"] = "learned"  # stored sines are no weights to train
    offset: int = 0  # rows of the position table before the first position's
    sines: Sines = Sines()  # of computed positions
    words_normed: bool = False  # the decoder's norm is of words, before their positions
    bias: str = "qkvo"
    logits_bias: bool = True


@dataclass(frozen=True)
class Half:
    """What one half's layers are made of."""

    attention: Attention
    mlp: Mlp
    layers: int


def half(c: Config, side: str, bias: str) -> Half:
    """The sizes of one half."""
    width, heads = c.size("d_model"), c.size(f"{side}_attention_heads")
    each = c.divides("d_model", width, f"{side}_attention_heads", heads)
    attention = Attention(heads, heads, each, bias=bias, sees="all" if side == "encoder" else "past")
    mlp = Mlp(c.size(f"{side}_ffn_dim"), gated=False, activation=activation(c, "activation_function"), bias="ud")
    return Half(attention, mlp, depth(c, key=f"{side}_layers"))


def crossing(attention: Attention) -> CrossAttention:
    """Attention of the same sizes to the source."""
    return CrossAttention(attention.heads, attention.kv_heads, attention.head_width, bias=attention.bias)


def layer(bodies: tuple[Body, ...], norm: Norm, pre: bool) -> Layer:
    """Bodies one after the other, with norms before them or behind each sum."""
    return Layer(tuple(Step((Branch(body, norm if pre else None),), after=None if pre else norm) for body in bodies))


def defaults(c: Config, **values: Any) -> None:
    """Today's keys, which say the encoder's sizes, under the keys of the halves; then the config class's own values."""
    c.rename(hidden_size="d_model", num_attention_heads="encoder_attention_heads", num_hidden_layers="encoder_layers")
    c.absent(**values)


def said(c: Config, style: Style) -> None:
    """Keys with which old configs say what the type says by now."""
    c.inert("normalize_before", style.pre)
    c.inert("add_final_layer_norm", style.pre)
    c.inert("normalize_embedding", style.normed)
    c.inert("add_bias_logits", False)
    c.inert("static_position_embeddings", style.positions != "learned")
    c.inert("extra_layer_norm", False)


def embedding(c: Config, style: Style, rows: int, norm: Norm, spare: bool = False) -> Embedding:
    """The table of words, and positions."""
    width, learned = c.size("d_model"), style.positions != "computed"
    make = SpareEmbedding if spare else Embedding
    return make(
        rows,
        width,
        positions=c.size("max_position_embeddings") + style.offset if learned else None,
        offset=style.offset or None,
        sinusoid=False if learned else style.sines,
        scale=width**0.5 if c.flag("scale_embedding", False) else None,
        norm=norm if style.normed else None,
    )


def translator(c: Config, style: Style, names: Names | None = None, target_rows: int | None = None) -> EncoderDecoder:
    """An encoder and a decoder in the words of these configs; `target_rows` where the target's words are others.

    `names` is the family's table where it is not BART's.
    """
    said(c, style)
    norm = Norm("layernorm", "gain+bias", 1e-5)
    tied = c.flag("tie_word_embeddings", True)
    rows, width, longest = c.size("vocab_size"), c.size("d_model"), c.size("max_position_embeddings")
    written = rows if target_rows is None else target_rows
    apart = target_rows is not None  # two tables of words, and no shared one
    read, write = half(c, "encoder", style.bias), half(c, "decoder", style.bias)
    limit = None if style.positions == "computed" else longest
    final = norm if style.pre else None
    reading = layer((read.attention, read.mlp), norm, style.pre)
    writing = layer((write.attention, crossing(write.attention), write.mlp), norm, style.pre)
    return EncoderDecoder(
        Encoder(
            embedding(c, style, rows, norm, spare=not tied and not apart),
            (reading,) * read.layers,
            Final(width, norm=final) if final is not None else None,
            limit=limit,
            trained=longest,
        ),
        Decoder(
            replace(embedding(c, style, written, norm), norm_first=style.words_normed),
            (writing,) * write.layers,
            Head(written, width, tied, bias=style.logits_bias, norm=final),
            limit=limit,
            trained=longest,
        ),
        names=untied(names or BART) if apart or not tied else None,
    )


def fairseq_sines(c: Config) -> Sines:
    """Sines first, the slowest at 1 / 10000; positions begin behind the padding's number."""
    return Sines(halves=True, closed=True, offset=c.size("pad_token_id", 1, least=0) + 1)


def without_head(c: Config, made: EncoderDecoder) -> Final | None:
    """Where the model without a head ends."""
    head = made.decoder.head
    norm = head.norm if isinstance(head, Head) else None
    return Final(made.width, norm=norm) if norm is not None else None


def classifier(c: Config, made: EncoderDecoder) -> Pooler:
    """The last token of the decoder through a dense layer, and labels."""
    final = without_head(c, made)
    # the last token's state takes the same work as the first one's
    return Pooler(made.width, labels(c, 3), norm=final.norm if final is not None else None)


GENERATES = Class(SEQ2SEQ, "ForConditionalGeneration", lambda c, made: made.decoder.head)
BARE = Class(BASE, "Model", without_head, bare=True)
CLASSIFIES = Class(
    SEQUENCE,
    "ForSequenceClassification",
    classifier,
    names={"Wpool": "classification_head.dense.weight", "Wscore": "classification_head.out_proj.weight"},
)
# what a generating pipeline was given, how a student was made, and what the type says by now
HARMLESS = (
    *("is_encoder_decoder", "force_bos_token_to_be_generated", "_num_labels", "extra_pos_embeddings", "unk_token_id"),
    *("student_encoder_layers", "student_decoder_layers", "replacing_rate", "save_step", "is_valid_model"),
    *("layernorm_variant", "do_blenderbot_90_layernorm", "max_target_length", "max_source_length"),
)
LARGE = {
    **{f"{side}_{key}": n for side in ("encoder", "decoder") for key, n in (("layers", 12), ("ffn_dim", 4096))},
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "d_model": 1024,
    "max_position_embeddings": 1024,
    "activation_function": "gelu",
}


@family(
    "bart", cls="BartForConditionalGeneration", names=BART, harmless=HARMLESS, classes=(GENERATES, BARE, CLASSIFIES)
)
def bart(c: Config) -> EncoderDecoder:
    """Lewis et al. 2019, arXiv:1910.13461."""
    defaults(c, vocab_size=50265, **LARGE)
    return translator(c, Style(pre=False, normed=True, offset=2))


@family(
    "mbart", cls="MBartForConditionalGeneration", names=BART, harmless=HARMLESS, classes=(GENERATES, BARE, CLASSIFIES)
)
def mbart(c: Config) -> EncoderDecoder:
    """Liu et al. 2020, arXiv:2001.08210: BART with its norms before the branches."""
    defaults(c, vocab_size=50265, **LARGE)
    return translator(c, Style(pre=True, normed=True, offset=2))


@family(
    "plbart", cls="PLBartForConditionalGeneration", names=BART, harmless=HARMLESS, classes=(GENERATES, BARE, CLASSIFIES)
)
def plbart(c: Config) -> EncoderDecoder:
    """Ahmad et al. 2021, arXiv:2103.06333: BART for programs."""
    base = {**LARGE, "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072}
    base |= {"encoder_attention_heads": 12, "decoder_attention_heads": 12, "d_model": 768}
    defaults(c, vocab_size=50005, scale_embedding=True, **base)
    return translator(c, Style(pre=False, normed=True, offset=2))


@family(
    "mvp",
    cls="MvpForConditionalGeneration",
    names=BART,
    harmless=(*HARMLESS, "prompt_length", "prompt_mid_dim"),
    classes=(GENERATES, BARE, CLASSIFIES),
)
def mvp(c: Config) -> EncoderDecoder:
    """Tang et al. 2022, arXiv:2206.12131: BART, without the prompts of a task."""
    defaults(c, vocab_size=50267, **LARGE)
    c.inert("use_prompt", False)
    return translator(c, Style(pre=False, normed=True, offset=2))


@family("pegasus", cls="PegasusForConditionalGeneration", names=BART, harmless=HARMLESS, classes=(GENERATES, BARE))
def pegasus(c: Config) -> EncoderDecoder:
    """Zhang et al. 2019, arXiv:1912.08777."""
    defaults(c, vocab_size=50265, **LARGE)
    return translator(c, Style(pre=True, normed=False, positions="stored"))


@family(
    "marian",
    cls="MarianMTModel",
    names=BART,
    harmless=HARMLESS,
    classes=(Class(SEQ2SEQ, "MTModel", GENERATES.end), BARE),
)
def marian(c: Config) -> EncoderDecoder:
    """Junczys-Dowmunt et al. 2018, arXiv:1804.00344: the transformer of 2017."""
    defaults(c, vocab_size=58101, **LARGE)
    target = c.maybe("decoder_vocab_size") or c.size("vocab_size")
    shared = c.flag("share_encoder_decoder_embeddings", True)
    return translator(c, Style(pre=False, normed=False, positions="stored"), target_rows=None if shared else target)


@family(
    "blenderbot", cls="BlenderbotForConditionalGeneration", names=BART, harmless=HARMLESS, classes=(GENERATES, BARE)
)
def blenderbot(c: Config) -> EncoderDecoder:
    """Roller et al. 2020, arXiv:2004.13637."""
    defaults(c, encoder_layers=2, decoder_layers=24, encoder_ffn_dim=10240, decoder_ffn_dim=10240, d_model=2560)
    defaults(c, encoder_attention_heads=32, decoder_attention_heads=32, activation_function="gelu")
    defaults(c, vocab_size=8008, max_position_embeddings=128)
    return translator(c, Style(pre=True, normed=False))


@family(
    "blenderbot-small",
    cls="BlenderbotSmallForConditionalGeneration",
    names=BART,
    harmless=HARMLESS,
    classes=(GENERATES, BARE),
)
def blenderbot_small(c: Config) -> EncoderDecoder:
    """The same work's model of 90 million parameters."""
    defaults(c, encoder_layers=8, decoder_layers=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048, d_model=512)
    defaults(c, encoder_attention_heads=16, decoder_attention_heads=16, activation_function="gelu")
    defaults(c, vocab_size=50265, max_position_embeddings=512)
    return translator(c, Style(pre=False, normed=True, words_normed=True))


@family("m2m_100", cls="M2M100ForConditionalGeneration", names=BART, harmless=HARMLESS, classes=(GENERATES, BARE))
def m2m_100(c: Config) -> EncoderDecoder:
    """Fan et al. 2020, arXiv:2010.11125, and NLLB's dense models: positions are computed, for any length."""
    defaults(c, vocab_size=128112, scale_embedding=True, **{**LARGE, "activation_function": "relu"})
    style = Style(pre=True, normed=False, positions="computed", sines=fairseq_sines(c), logits_bias=False)
    return translator(c, style)
