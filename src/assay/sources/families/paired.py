"""An encoder and a decoder that are models of their own: BERT's kin on either side, joined by cross-attention."""

from __future__ import annotations

from collections.abc import Callable

from assay.blocks import Attention, Branch, CrossAttention, Decoder, Layer, Step
from assay.blocks.encoder_decoder import EncoderDecoder
from assay.blocks.encoders import Encoder, Pooler
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.bart import projections, sides
from assay.sources.families.bert import bert, camembert, roberta, xlm_roberta
from assay.sources.families.common import SEQ2SEQ, Class, Names, family, under
from assay.sources.families.encoders import gelu_masked, head, masked, stored

_CROSS = {
    **projections("crossattention", "self.query self.key self.value output.dense", "cross."),
    "Gt1": "crossattention.output.LayerNorm.weight",
    "Gt2": "output.LayerNorm.weight",
}
_READERS: dict[str, Callable[[Config], Encoder]] = {
    "bert": bert,
    "roberta": roberta,
    "xlm-roberta": xlm_roberta,
    "camembert": camembert,
}


def paired_names(base: str, predictions: Names) -> dict[str, str]:
    """The names of both, the decoder's base and head under theirs."""
    decoder = {
        **stored(f"decoder.{base}."),
        **under(f"decoder.{base}.encoder.layer.{{i}}.", _CROSS),
        **predictions,
    }
    encoder = {**stored("encoder."), "Wpool": "encoder.pooler.dense.weight"}
    return {**sides(encoder, decoder), "E": f"decoder.{base}.embeddings.word_embeddings.weight"}


BERT = paired_names("bert", head("decoder.cls.predictions."))
ROBERTA = paired_names("roberta", head("decoder.lm_head.", "dense", "layer_norm"))


def half(c: Config, side: str) -> tuple[Config, str, Encoder]:
    """The config nested for a side, its type, and what it describes as an encoder."""
    own = c.child(side)
    kind = own.word("model_type", None, _READERS)
    if side == "decoder":
        own.inert("is_decoder", True)
        own.inert("add_cross_attention", True)
        own.data = {**own.data, "is_decoder": False}
    return own, kind, _READERS[kind](own)


def written(made: Encoder) -> tuple[Layer, ...]:
    """The same layers seeing only what came before, each with attention to the source behind its own."""

    def turn(layer: Layer) -> Layer:
        first, *rest = layer.steps
        (branch,) = first.branches
        own = branch.body
        if not isinstance(own, Attention):
            return layer
        cross = CrossAttention(own.heads, own.kv_heads, own.head_width, bias=own.bias)
        steps = (
            replace(first, branches=(replace(branch, body=replace(own, sees="past")),)),
            Step((Branch(cross),), after=first.after),
            *rest,
        )
        return replace(layer, steps=steps)

    turned = {layer: turn(layer) for layer in dict.fromkeys(made.layers)}
    return tuple(turned[layer] for layer in made.layers)


@family(
    "encoder-decoder",
    cls="EncoderDecoderModel",
    names=BERT,
    harmless=("is_encoder_decoder", "model_type"),
    classes=(Class(SEQ2SEQ, "Model", lambda c, made: made.decoder.head),),
)
def encoder_decoder(c: Config) -> EncoderDecoder:
    """Rothe et al. 2019, arXiv:1907.12461."""
    _, _, source = half(c, "encoder")
    own, kind, target = half(c, "decoder")
    if source.width != target.width:
        own.fail("hidden_size", f"encoder.hidden_size, {source.width}")
    own.inert("cross_attention_hidden_size", int(source.width))
    predicted = masked(own, target) if kind == "bert" else gelu_masked(own, target)
    decoder = Decoder(target.embedding, written(target), predicted, limit=target.limit, trained=target.trained)
    return EncoderDecoder(
        replace(source, head=Pooler(source.width)), decoder, names=BERT if kind == "bert" else ROBERTA
    )
