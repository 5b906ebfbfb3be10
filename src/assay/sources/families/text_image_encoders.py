"""Encoders of text beside one of images, whose outputs stand among the tokens: ModernVBERT, UltraVBERT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from assay.blocks import Norm
from assay.blocks.encoders import Encoder, MaskedHead, Pooler
from assay.blocks.sparse_encoders import NarrowedHead
from assay.blocks.towers import Drawn, Multimodal
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families import modern_encoders as modern
from assay.sources.families import ultrabert
from assay.sources.families.clip import VISION, siglip_vision
from assay.sources.families.common import BASE, MASKED, SEQUENCE, TOKEN, Class, Names, family, labels, rms, under
from assay.sources.families.encoders import SCORE
from assay.sources.families.llava import CROPS
from assay.sources.families.multimodal import base, moved
from assay.spec import Sight, ops


def _text(c: Config, read: Callable[[Config], Encoder]) -> Encoder:
    """The encoder under `text_config`; whether the head is tied is for the whole config to say."""
    inner = c.child("text_config")
    inner.skip("model_type", "tie_word_embeddings", "classifier_dropout", "classifier_pooling", "prediction_head_size")
    made = read(inner)
    c.notes += inner.notes
    return made


def _seeing(c: Config, text: Encoder, names: Names, norm: Norm | None, whole: bool) -> Multimodal:
    """SigLIP's encoder, squares of patches as one vector, one matrix, and a norm where there is one."""
    seen = c.child("vision_config")
    if not c.has("vision_config"):
        seen.absent(vision_use_head=whole)
    tower = siglip_vision(seen)
    side, patches = c.size("pixel_shuffle_factor", 4), int(tower.axes["n"])
    made = ops(
        "tower",
        "y = columns(x[b n d], order=squares) -> [b o d q]",
        "y = linear(y[b o d q], Wp1[d q j]) -> [b o j]",
    )
    if norm is not None:
        made += norm.ops("y", "y", "merge", "b o j", "j")
    connector = {"Wp1": "modality_projection.weight[j (q d)]", "Gmerge": "norm.weight"}
    end = Drawn("projector", tuple(made), {"d": tower.width, "q": side * side, "j": text.width})
    own = under("model.vision_model.", VISION) | under("model.connector.", connector)
    axes = {**tower.axes, "o": patches // side**2}
    tower = replace(tower, ends=(*tower.ends, end), names=own, axes=axes, part="tower")
    c.notes.append(CROPS)
    c.skip("classifier_pooling", "classifier_bias")
    c.flag("tie_word_embeddings", False)
    return Multimodal(text, (tower,), Sight(), moved(names, "model.text_model."))


def _modern_masked(c: Config, made: Multimodal) -> MaskedHead:
    own = modern.masked_head(c.child("text_config"), made.text)
    return replace(own, tied=c.flag("tie_word_embeddings", False))


def _over(c: Config) -> Literal["first", "mean"]:
    return "first" if c.word("classifier_pooling", "cls", ("cls", "mean")) == "cls" else "mean"


def _modern_labels(c: Config, made: Multimodal) -> Pooler:
    own = modern.labelled("all", lambda _: labels(c))(c.child("text_config"), made.text)
    return replace(own, over=_over(c))


def _modern_each(c: Config, made: Multimodal) -> Pooler:
    return replace(_modern_labels(c, made), over="all")


def _narrowed(c: Config, made: Multimodal) -> NarrowedHead:
    inner = c.child("text_config").size("prediction_head_size", 768)
    return NarrowedHead(made.text.embedding.vocab, made.width, inner, c.flag("tie_word_embeddings", False))


def _ultra_labels(c: Config, made: Multimodal) -> Pooler:
    return Pooler(made.width, labels(c), dense=False, over=_over(c))


def _ultra_each(c: Config, made: Multimodal) -> Pooler:
    return replace(_ultra_labels(c, made), over="all")


_MODERN_HEAD = {
    "Wdense": "projection_head.dense.weight",
    "Ghead": "projection_head.norm.weight",
    "Wout": "lm_head.weight",
    "Bout": "lm_head.bias",
}


@family(
    "modernvbert",
    cls="ModernVBertForMaskedLM",
    names=modern.MODERN,
    classes=(
        Class(MASKED, "ForMaskedLM", _modern_masked, _MODERN_HEAD),
        Class(BASE, "Model", base),
        Class(SEQUENCE, "ForSequenceClassification", _modern_labels, modern.MODERN_SCORE),
        Class(TOKEN, "ForTokenClassification", _modern_each, modern.MODERN_SCORE),
    ),
    harmless=("initializer_cutoff_factor",),
)
def modernvbert(c: Config) -> Multimodal:
    """Teiletche et al. 2025, arXiv:2510.01149: ModernBERT behind SigLIP's encoder."""
    inner = c.child("text_config")
    inner.skip(*modern.HARMLESS)
    return _seeing(c, _text(c, modern.modernbert), modern.MODERN, None, True)


@family(
    "ultravbert",
    cls="UltraVBertForMaskedLM",
    names=ultrabert.ULTRA,
    classes=(
        Class(
            MASKED,
            "ForMaskedLM",
            _narrowed,
            {
                "Wnarrow": "projection_head.linear1.weight",
                "Wwide": "projection_head.linear2.weight",
                "Wout": "lm_head.weight",
            },
        ),
        Class(BASE, "Model", base),
        Class(SEQUENCE, "ForSequenceClassification", _ultra_labels, SCORE),
        Class(TOKEN, "ForTokenClassification", _ultra_each, SCORE),
    ),
    harmless=("initializer_cutoff_factor",),
)
def ultravbert(c: Config) -> Multimodal:
    """UltraBERT behind SigLIP's encoder, a norm between them, for the words have none."""
    text = _text(c, ultrabert.ultrabert)
    return _seeing(c, text, ultrabert.ULTRA, rms(c.child("text_config")), False)
