"""T5Gemma: an encoder and a decoder of Gemma 2's layers, each with a config of its own."""

from __future__ import annotations

from collections.abc import Callable

from assay.blocks import Attention, Branch, CrossAttention, Final, Head, Layer, Norm, Step
from assay.blocks.encoder_decoder import EncoderDecoder
from assay.blocks.encoders import Encoder
from assay.blocks.stacks import Body
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.bart import BARE, GENERATES, projections, sides
from assay.sources.families.common import family, label, rope, under
from assay.sources.families.dense import FULL, SLIDING, Dense, dense, every, layer_types, window_of
from assay.sources.families.gemma import GEMMA2_SIZES, end_keys, offset_rms, score_keys

_FEED = {
    "Wg": "mlp.gate_proj.weight",
    "Wu": "mlp.up_proj.weight",
    "Wd": "mlp.down_proj.weight",
    "Gm": "pre_feedforward_layernorm.weight",
    "Gpm": "post_feedforward_layernorm.weight",
}
_SELF = {
    **projections("self_attn", "q_proj k_proj v_proj o_proj"),
    "Ga": "pre_self_attn_layernorm.weight",
    "Gpa": "post_self_attn_layernorm.weight",
}
_CROSS = {
    **projections("cross_attn", "q_proj k_proj v_proj o_proj", "cross."),
    "Gc": "pre_cross_attn_layernorm.weight",
    "Gpc": "post_cross_attn_layernorm.weight",
}
_ENDS = {"E": "embed_tokens.weight", "Gf": "norm.weight"}
T5GEMMA = {
    **sides(
        under("model.encoder.", {**_ENDS, **under("layers.{i}.", {**_SELF, **_FEED})}),
        under("model.decoder.", {**_ENDS, **under("layers.{i}.", {**_SELF, **_CROSS, **_FEED})}),
    ),
    "E": "model.decoder.embed_tokens.weight",
    "Wout": "lm_head.out_proj.weight",
}
_HARMLESS = ("is_encoder_decoder", "dropout_rate", "classifier_dropout_rate", "model_type", "is_decoder", "hidden_act")


def sandwiched(bodies: tuple[Body, ...], norm: Norm, kind: str) -> Layer:
    """Bodies one after the other, a norm before and behind each."""
    return Layer(tuple(Step((Branch(body, norm, norm),)) for body in bodies), label(kind))


def pieces(c: Config) -> tuple[Dense, list[str]]:
    """One half's sizes, and the kinds of its layers."""
    p = dense(c, GEMMA2_SIZES, norm=offset_rms(c), act_key="hidden_activation")
    return p, layer_types(c, every(2, p.depth))


def around(own: Attention) -> Attention:
    """The same attention seeing to either side, as far as its window."""
    return replace(own, sees="all", window=None, reach=own.window)


@family("t5gemma", cls="T5GemmaForConditionalGeneration", names=T5GEMMA, harmless=_HARMLESS, classes=(GENERATES, BARE))
def t5gemma(c: Config) -> EncoderDecoder:
    """Zhang et al. 2025, arXiv:2504.06225."""
    source, target = c.child("encoder"), c.child("decoder")
    p, kinds = pieces(source)
    own = p.windowed(window_of(source, kinds), **score_keys(source, p, 50.0))
    read = p.mixed(
        kinds, lambda kind: sandwiched((around(own(kind)), p.mlp), p.norm, kind), **end_keys(source, p, 30.0)
    )
    q, sorts = pieces(target)
    target.inert("cross_attention_hidden_size", int(p.width))
    said = score_keys(target, q, 50.0)
    causal = q.windowed(window_of(target, sorts), **said)
    memory = None if p.width == q.width else p.width
    cross = CrossAttention(q.heads.query, q.heads.kv, q.heads.width, memory=memory, **said)
    write = q.mixed(
        sorts, lambda kind: sandwiched((causal(kind), cross, q.mlp), q.norm, kind), **end_keys(target, q, 30.0)
    )
    c.skip("vocab_size")
    head, tied = write.head, c.flag("tie_word_embeddings", True)
    return EncoderDecoder(
        Encoder(read.embedding, read.layers, Final(p.width, norm=p.norm), trained=read.trained),
        replace(write, head=replace(head, tied=tied) if isinstance(head, Head) else head),
    )


_NORMED = {"Gqn": "self_attn.q_norm.weight", "Gkn": "self_attn.k_norm.weight"}
_TEXT = "model.encoder.text_model."
T5GEMMA2 = {
    **sides(
        under(_TEXT, {**_ENDS, **under("layers.{i}.", {**_SELF, **_FEED, **_NORMED})}),
        under("model.decoder.", {"Gf": "norm.weight", **under("layers.{i}.", {**_SELF, **_FEED, **_NORMED})}),
    ),
    **dict.fromkeys(("E", "decoder.E"), f"{_TEXT}embed_tokens.weight"),
    "encoder.Eoi": f"{_TEXT}embed_tokens.eoi_embedding[d]",
    "Wout": "lm_head.out_proj.weight",
}


def normed(c: Config) -> tuple[Dense, list[str], Callable[[str], Attention]]:
    """One half of Gemma 3's layers: its sizes, the kinds of its layers, and the attention of each."""
    p = dense(
        c,
        replace(GEMMA2_SIZES, vocab=262208, trained=131072, theta=1e6),
        norm=offset_rms(c),
        act_key="hidden_activation",
    )
    kinds = layer_types(c, every(6, p.depth))
    window, said = window_of(c, kinds), {**score_keys(c, p, None), "qk_norm": p.norm}
    c.inert("attn_logit_softcapping")
    positions = {
        FULL: rope(c, p.heads.width, 1e6, kind=FULL),
        SLIDING: rope(c, p.heads.width, 1e4, kind=SLIDING, theta_key="rope_local_base_freq"),
    }
    return p, kinds, lambda kind: p.windowed(window, **said, positions=positions[kind])(kind)


@family(
    "t5gemma2",
    cls="T5Gemma2ForConditionalGeneration",
    names=T5GEMMA2,
    harmless=(*_HARMLESS, "boi_token_index", "eoi_token_index", "image_token_index", "tie_word_embeddings"),
    classes=(GENERATES,),
)
def t5gemma2(c: Config) -> EncoderDecoder:
    """T5Gemma 2 (Google 2025): one table of words, one attention to both sequences, images within the source."""
    from assay.blocks.merged import MarkedEmbedding, MergedAttention, SeeingEncoderDecoder
    from assay.sources.families.llava import averaged, seen

    outer, target = c.child("encoder"), c.child("decoder")
    source = outer.child("text_config")
    p, kinds, own = normed(source)
    q, sorts, causal = normed(target)
    if p.width != q.width:
        target.fail("hidden_size", f"encoder.text_config.hidden_size, {int(p.width)}")
    read = p.mixed(
        kinds, lambda kind: sandwiched((around(own(kind)), p.mlp), p.norm, kind), **end_keys(source, p, None)
    )

    def merged(kind: str) -> Attention:
        alone = causal(kind)
        return MergedAttention(**{name: getattr(alone, name) for name in Attention.__dataclass_fields__})

    write = q.mixed(sorts, lambda kind: sandwiched((merged(kind), q.mlp), q.norm, kind), **end_keys(target, q, None))
    tower = seen(outer, "siglip_vision_model", {}, "model.encoder.vision_tower.")
    tower = averaged(outer, tower, p.width, "model.encoder.multi_modal_projector.")
    c.notes += outer.notes
    head, words = write.head, read.embedding
    c.skip("vocab_size")
    c.inert("tie_word_embeddings", True)
    return SeeingEncoderDecoder(
        Encoder(
            MarkedEmbedding(words.vocab, words.width, scale=words.scale),
            read.layers,
            Final(p.width, norm=p.norm),
            trained=read.trained,
        ),
        replace(write, head=replace(head, tied=True) if isinstance(head, Head) else head),
        tower=tower,
    )
