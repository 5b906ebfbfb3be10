"""Encoders made smaller or cheaper: SqueezeBERT, ConvBERT, MobileBERT, FNet."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from assay.blocks import Decoder, Layer, Norm
from assay.blocks.compact import (
    Affine,
    Bottlenecked,
    Fourier,
    GroupedAttention,
    GroupedMlp,
    MixedAttention,
    SplitHead,
    Trigrams,
)
from assay.blocks.encoders import Encoder, Pooler, Together
from assay.blocks.stacks import Branch, Ending, Step
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.bert_kin import always_pooled, with_tables
from assay.sources.families.common import BASE, MASKED, PRETRAINING, SEQUENCE, activation, apart, depth, labels
from assay.sources.families.encoders import (
    BERT_HEAD,
    CHOICE,
    LAYER,
    NEXT,
    bert_classes,
    bert_like,
    dense_attention,
    encoder,
    head,
    masked,
    norm_of,
    own_classifier,
    stored,
    two_matrices,
)


def _convolution(path: str, tag: str) -> dict[str, str]:
    """A kernel of one column: output channels, a group's input channels, 1."""
    return {"W": f"{path}.weight[(G{tag} O{tag}) I{tag} 1]", "B": f"{path}.bias"}


_SQUEEZE = {"Gt0": "post_attention.layernorm.weight", "Gt1": "output.layernorm.weight"}
for _weight, _bias, _path, _tag in (
    ("Wq", "Bq", "attention.query", "q"),
    ("Wk", "Bk", "attention.key", "k"),
    ("Wv", "Bv", "attention.value", "v"),
    ("Wo", "Bo", "post_attention.conv1d", "o"),
    ("Wu", "Wu_bias", "intermediate.conv1d", "up"),
    ("Wd", "Wd_bias", "output.conv1d", "down"),
):
    _SQUEEZE[_weight], _SQUEEZE[_bias] = _convolution(_path, _tag).values()


@encoder(
    "squeezebert",
    stem="SqueezeBert",
    names=stored("transformer.", _SQUEEZE, "encoder.layers.{i}."),
    classes=tuple(one for one in always_pooled("transformer.", BERT_HEAD) if one.role not in (NEXT, PRETRAINING)),
)
def squeezebert(c: Config) -> Encoder:
    """Iandola et al. 2020: every matrix is a convolution in groups."""
    made = bert_like(c)
    d, inner = made.width, c.size("intermediate_size")
    c.inert("embedding_size", d)

    def groups(key: str, default: int, *widths: tuple[str, int]) -> int:
        count = c.size(key, default)
        for of, width in widths:
            c.divides(of, width, key, count)
        return count

    model, middle = ("hidden_size", d), ("intermediate_size", inner)
    query, key, value = (groups(f"{name}_groups", 4, model) for name in "qkv")
    output = groups("post_attention_groups", 1, model)
    attention = dense_attention(c, d, kind=GroupedAttention, channels=d, groups=(query, key, value, output))
    pair = (groups("intermediate_groups", 4, model, middle), groups("output_groups", 4, model, middle))
    mlp = GroupedMlp(d, inner, pair, activation(c, default=None))
    norm = Norm("layernorm", "gain+bias", 1e-12)
    layer = Layer((Step((Branch(attention),), after=norm), Step((Branch(mlp),), after=norm)))
    return replace(made, layers=(layer,) * made.depth)


_CONV = LAYER | {
    "Wdepth": "attention.self.key_conv_attn_layer.depthwise.weight[d 1 K]",
    "Wpoint": "attention.self.key_conv_attn_layer.pointwise.weight[(g r k) d 1]",
    "Wpoint_bias": "attention.self.key_conv_attn_layer.bias[(g r k) 1]",
    "Wkernel": "attention.self.conv_kernel_layer.weight",
    "Wnear": "attention.self.conv_out_layer.weight",
}
_CONV_GROUPED = _CONV | {
    "Wu": "intermediate.dense.weight[Gup Iup Oup]",
    "Wd": "output.dense.weight[Gdown Idown Odown]",
}
_CONV_OUTER = {"Ein": "convbert.embeddings_project.weight"}
_GENERATOR = {
    "Wdense": "generator_predictions.dense.weight",
    "Ghead": "generator_predictions.LayerNorm.weight",
    "Wout": "generator_lm_head.weight",
    "Bout": "generator_lm_head.bias",
}


@encoder(
    "convbert",
    stem="ConvBert",
    names=stored("convbert.", _CONV) | _CONV_OUTER,
    classes=tuple(
        replace(one, end=lambda c, made: masked(c, made, "gelu", spare=False), names=_GENERATOR)
        if one.role == MASKED
        else one
        for one in own_classifier(_GENERATOR)
    ),
)
def convbert(c: Config) -> Encoder:
    """Jiang et al. 2020: heads fewer by `head_ratio`, half of the width convolved."""
    made = bert_like(c)
    d, all_heads = made.width, c.size("num_attention_heads")
    heads = all_heads // c.size("head_ratio", 2) or 1
    if d % (2 * heads):
        c.fail("hidden_size", f"a multiple of {2 * heads}, twice the heads that head_ratio leaves")
    kernel = c.size("conv_kernel_size", 9)
    if kernel % 2 == 0:
        c.fail("conv_kernel_size", "odd, so that each token has as many neighbours to either side")
    attention = MixedAttention(heads, heads, d // heads // 2, bias="qkvo", sees="all", kernel=kernel)
    c.inert("linear_groups", 1)
    groups, names, norm = c.size("num_groups", 1), None, norm_of(c)
    mlp: GroupedMlp | None = None
    if groups > 1:
        inner = c.size("intermediate_size")
        for key, width in (("hidden_size", d), ("intermediate_size", inner)):
            c.divides(key, width, "num_groups", groups)
        mlp = GroupedMlp(d, inner, (groups, groups), activation(c, default=None))
        names = stored("convbert.", _CONV_GROUPED) | _CONV_OUTER
    second = Step((Branch(two_matrices(c) if mlp is None else mlp),), after=norm)
    layer = Layer((Step((Branch(attention),), after=norm), second))
    narrow = c.size("embedding_size", 768)
    types = c.size("type_vocab_size")
    made = with_tables(made, None if narrow == d else narrow, position=made.limit or 0, type=types)
    return replace(made, layers=(layer,) * made.depth, names=names)


@apart(flops="of matrix products: a fast Fourier transform has none")
@encoder(
    "fnet",
    stem="FNet",
    names=stored("fnet.", {"Gt0": "fourier.output.LayerNorm.weight", **{k: LAYER[k] for k in ("Wu", "Wd", "Gt1")}})
    | {"Ein": "fnet.embeddings.projection.weight"},
    classes=always_pooled("fnet.", BERT_HEAD),
    harmless=("tpu_short_seq_length",),
)
def fnet(c: Config) -> Encoder:
    """Lee-Thorp et al. 2021: a Fourier transform in attention's place; words always pass a matrix."""
    made = bert_like(c, vocab_size=32000, hidden_act="gelu_new", type_vocab_size=4)
    c.inert("use_tpu_fourier_optimizations", False)
    norm = norm_of(c)
    layer = Layer((Step((Branch(Fourier()),), after=norm), Step((Branch(two_matrices(c)),), after=norm)))
    made = with_tables(made, made.width, position=made.limit or 0, type=c.size("type_vocab_size"))
    return replace(made, layers=(layer,) * made.depth)


def _mobile_layer(stacked: int) -> dict[str, str]:
    found = {
        **{weight: LAYER[weight] for weight in ("Wq", "Wk", "Wv", "Wo", "Gt0", "Wu", "Wd", "Gt1")},
        "Wwide": "output.bottleneck.dense.weight",
        "Gwide": "output.bottleneck.LayerNorm.weight",
        "Win": "bottleneck.input.dense.weight",
        "Gin": "bottleneck.input.LayerNorm.weight",
        "Wqk": "bottleneck.attention.dense.weight",
        "Gqk": "bottleneck.attention.LayerNorm.weight",
    }
    for j in range(stacked - 1):
        found |= {
            f"Wu{j}": f"ffn.{j}.intermediate.dense.weight",
            f"Wd{j}": f"ffn.{j}.output.dense.weight",
            f"Gt1{j}": f"ffn.{j}.output.LayerNorm.weight",
        }
    return found


def _mobile_names(stacked: int) -> dict[str, str]:
    outer = {"Ein": "mobilebert.embeddings.embedding_transformation.weight[d (W j)]"}
    return stored("mobilebert.", _mobile_layer(stacked)) | outer


def _mobile_masked(c: Config, made: Decoder) -> SplitHead:
    tied = c.flag("tie_word_embeddings", True)
    return SplitHead(
        made.embedding.vocab,
        made.width,
        made.width,
        activation(c, default="relu"),
        Norm("layernorm", "gain+bias", 1e-12),
        tied,
        spare=not tied,
        narrow=c.size("embedding_size", 128),
    )


_MOBILE_HEAD: Mapping[str, str] = head("cls.predictions.") | {"Wrest": "cls.predictions.dense.weight[rest V]"}


def _mobile_pooler(count: int | None, labelled: bool) -> Callable[[Config, Decoder], Pooler | None]:
    def end(c: Config, made: Decoder) -> Pooler | None:
        dense = c.flag("classifier_activation", True)
        found = (labels(c) if count is None else count) if labelled else None
        return Pooler(made.width, found, dense=dense) if dense or labelled else None

    return end


def _mobile_pretraining(c: Config, made: Decoder) -> Together:
    pair = _mobile_pooler(2, True)(c, made)
    assert pair is not None
    return Together((pair, _mobile_masked(c, made)))


_POOLED = {BASE: (None, False), SEQUENCE: (None, True), CHOICE: (1, True), NEXT: (2, True)}
_MOBILE_ENDS: dict[str, Callable[[Config, Decoder], Ending | None]] = {
    MASKED: _mobile_masked,
    PRETRAINING: _mobile_pretraining,
    **{role: _mobile_pooler(*said) for role, said in _POOLED.items()},
}


@encoder(
    "mobilebert",
    stem="MobileBert",
    names=_mobile_names(4),
    classes=tuple(
        replace(one, end=_MOBILE_ENDS[one.role]) if one.role in _MOBILE_ENDS else one
        for one in bert_classes("mobilebert.", _MOBILE_HEAD)
    ),
    harmless=("classifier_activation",),
)
def mobilebert(c: Config) -> Encoder:
    """Sun et al. 2020: wide between layers, narrow within; several feed-forward layers behind one attention."""
    c.absent(hidden_size=512, num_hidden_layers=24, num_attention_heads=4, intermediate_size=512)
    c.absent(hidden_act="relu", intra_bottleneck_size=128)
    made = bert_like(c)
    d = made.width
    narrow = c.size("intra_bottleneck_size") if c.flag("use_bottleneck", True) else None
    whole = narrow or d
    c.inert("true_hidden_size", int(whole))
    heads = c.size("num_attention_heads")
    each = c.divides("hidden_size" if narrow is None else "intra_bottleneck_size", whole, "num_attention_heads", heads)
    c.skip("intra_bottleneck_size")
    alone = c.flag("use_bottleneck_attention", False)
    if c.flag("key_query_shared_bottleneck", True) == alone and narrow is not None:
        c.fail("key_query_shared_bottleneck", f"the opposite of use_bottleneck_attention, {str(alone).lower()}")
    named = c.word("normalization_type", "no_norm", ("no_norm", "layer_norm"))
    norm = Affine("layernorm", "gain+bias") if named == "no_norm" else norm_of(c)
    stacked, act = c.size("num_feedforward_networks", 4), activation(c, default=None)
    layer = Bottlenecked((), "", heads, each, narrow, c.size("intermediate_size"), stacked, not alone, act, norm)
    words = c.size("embedding_size", 128)
    if words >= d:
        c.fail("embedding_size", f"below hidden_size, {d}: the head has a row for each of the rest")
    rows = (("position", made.limit or 0), ("type", c.size("type_vocab_size")))
    near = 3 if c.flag("trigram_input", True) else 1
    embedding = Trigrams(made.embedding.vocab, d, words, norm=norm, tables=rows, neighbours=near)
    return replace(made, embedding=embedding, layers=(layer,) * depth(c), names=_mobile_names(stacked))
