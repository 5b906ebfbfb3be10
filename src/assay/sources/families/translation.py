"""Translation models beside BART's kin: FSMT with two vocabularies, NLLB's mixture of experts."""

from __future__ import annotations

from assay.blocks import Decoder, Embedding, Final, Head, Mlp, Norm
from assay.blocks.encoder_decoder import EncoderDecoder, SpareEmbedding
from assay.blocks.encoders import Encoder
from assay.blocks.moe import Moe, Router
from assay.blocks.stacks import Body
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.bart import (
    BARE,
    BART,
    DECODER_LAYER,
    ENCODER_LAYER,
    GENERATES,
    HARMLESS,
    LARGE,
    bart_names,
    crossing,
    defaults,
    fairseq_sines,
    half,
    layer,
    projections,
    untied,
)
from assay.sources.families.common import BASE, Class, apart, by_kind, family

FSMT = {
    **untied(BART),
    "E": "model.decoder.embed_tokens.weight",
    "Wout": "model.decoder.output_projection.weight",
}


@family(
    "fsmt",
    cls="FSMTForConditionalGeneration",
    names=FSMT,
    harmless=(*HARMLESS, "langs", "architectures"),
    classes=(GENERATES, Class(BASE, "Model", lambda c, made: made.decoder.head, bare=True)),
)
def fsmt(c: Config) -> EncoderDecoder:
    """Ng et al. 2019, arXiv:1907.06616. Sines are stored, and made anew for longer sequences."""
    c.rename(vocab_size="tgt_vocab_size")
    defaults(c, src_vocab_size=42024, tgt_vocab_size=42024, scale_embedding=True, tie_word_embeddings=False)
    c.absent(**{**LARGE, "activation_function": "relu"})
    norm, width, longest = Norm("layernorm", "gain+bias", 1e-5), c.size("d_model"), c.size("max_position_embeddings")
    heard, written = c.size("src_vocab_size"), c.size("tgt_vocab_size")
    tied = c.flag("tie_word_embeddings", False)
    if tied and heard != written:
        c.fail("src_vocab_size", f"tgt_vocab_size, {int(written)}, where tie_word_embeddings is true")
    scale = width**0.5 if c.flag("scale_embedding", True) else None
    # the padding's row and those before it come first
    offset = c.size("pad_token_id", 1, least=0) + 1
    words = Embedding(written, width, positions=longest + offset, offset=offset, scale=scale)
    read, write = half(c, "encoder", "qkvo"), half(c, "decoder", "qkvo")
    reading = layer((read.attention, read.mlp), norm, pre=False)
    writing = layer((write.attention, crossing(write.attention), write.mlp), norm, pre=False)
    shared = dict.fromkeys(("E", "encoder.E", "decoder.E"), "model.encoder.embed_tokens.weight")
    return EncoderDecoder(
        Encoder(replace(words, vocab=heard), (reading,) * read.layers, None, trained=longest),
        Decoder(
            words,
            (writing,) * write.layers,
            Head(written, width, tied),
            trained=longest,
        ),
        names={**FSMT, **shared} if tied else None,
    )


NLLB_FEED = {
    "Wu": "ffn.fc1.weight",
    "Wd": "ffn.fc2.weight",
    "Gm": "ff_layer_norm.weight",
    "Wr": "ffn.router.classifier.weight",
    "Eu": "ffn.experts.expert_{e}.fc1.weight[f d]",
    "Eu_bias": "ffn.experts.expert_{e}.fc1.bias[f]",
    "Ed": "ffn.experts.expert_{e}.fc2.weight[d f]",
    "Ed_bias": "ffn.experts.expert_{e}.fc2.bias[d]",
}
NLLB = bart_names(
    {**ENCODER_LAYER, **NLLB_FEED},
    {
        **DECODER_LAYER,
        **NLLB_FEED,
        **projections("cross_attention", own="cross."),
        "Gc": "cross_attention_layer_norm.weight",
    },
)


def sparse(c: Config, side: str, layers: int) -> list[bool]:
    """Which layers have experts: each `sparse_step`-th, none at 0."""
    step = c.size(f"{side}_sparse_step", 4, least=0)
    return [step > 0 and (index + 1) % step == 0 for index in range(layers)]


def experts(c: Config, mlp: Mlp) -> Moe:
    """Two of the experts for each token, each as wide as the dense MLP."""
    count = c.size("num_experts")
    if count < 2:
        c.fail("num_experts", "an integer of at least 2: each token passes two of them")
    dropped = c.number("moe_token_dropout", 0.2)
    if dropped is None:
        c.fail("moe_token_dropout", "a number")
    kept = 1.0 - dropped  # in evaluation all of an output is kept, so much smaller
    router = Router(bias=c.flag("router_bias", False), normalize=True, scale=kept)
    return Moe(count, 2, mlp.width, router, gated=False, activation=mlp.activation, bias="ud")


@apart(flops="of each token through its experts: none is ever full")
@family(
    "nllb-moe",
    cls="NllbMoeForConditionalGeneration",
    names=NLLB,
    harmless=(
        *HARMLESS,
        *("expert_capacity", "router_dtype", "router_ignore_padding_tokens", "router_z_loss_coef"),
        *("second_expert_policy", "normalize_router_prob_before_dropping", "batch_prioritized_routing"),
        *("moe_eval_capacity_token_fraction", "router_type", "num_sparse_encoder_layers", "num_sparse_decoder_layers"),
    ),
    classes=(GENERATES, BARE),
)
def nllb_moe(c: Config) -> EncoderDecoder:
    """NLLB Team 2022, arXiv:2207.04672. No expert is ever full."""
    defaults(c, vocab_size=128112, scale_embedding=True, **{**LARGE, "activation_function": "relu"})
    c.absent(num_experts=128, router_bias=False)
    c.skip("num_experts", "router_bias", "moe_token_dropout")  # of no model without a sparse layer
    norm, rows, width = Norm("layernorm", "gain+bias", 1e-5), c.size("vocab_size"), c.size("d_model")
    tied, longest = c.flag("tie_word_embeddings", True), c.size("max_position_embeddings")
    scale = width**0.5 if c.flag("scale_embedding", True) else None
    read, write = half(c, "encoder", "qkvo"), half(c, "decoder", "qkvo")

    def feed(mlp: Mlp, routed: bool) -> Body:
        return experts(c, mlp) if routed else mlp

    sines = fairseq_sines(c)
    words = Embedding(rows, width, sinusoid=sines, scale=scale)
    return EncoderDecoder(
        Encoder(
            words if tied else SpareEmbedding(rows, width, sinusoid=sines, scale=scale),
            by_kind(
                sparse(c, "encoder", read.layers),
                lambda routed: layer((read.attention, feed(read.mlp, routed)), norm, pre=True),
            ),
            Final(width, norm=norm),
            trained=longest,
        ),
        Decoder(
            words,
            by_kind(
                sparse(c, "decoder", write.layers),
                lambda routed: layer(
                    (write.attention, crossing(write.attention), feed(write.mlp, routed)), norm, pre=True
                ),
            ),
            Head(rows, width, tied, norm=norm),
            trained=longest,
        ),
        names=None if tied else untied(NLLB),
    )
