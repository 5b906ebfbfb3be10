"""BERT and RoBERTa, and what keeps their layer: other tables, other defaults."""

from __future__ import annotations

from assay.blocks.encoders import Encoder
from assay.sources.config import Config
from assay.sources.families.encoders import (
    BERT_HEAD,
    ROBERTA_HEAD,
    bert_classes,
    bert_like,
    encoder,
    roberta_classes,
    stored,
)


@encoder("bert", stem="Bert", names=stored("bert."), classes=bert_classes("bert.", BERT_HEAD))
def bert(c: Config) -> Encoder:
    """Devlin et al. 2018."""
    return bert_like(c)


@encoder("roberta", stem="Roberta", names=stored("roberta."), classes=roberta_classes("roberta.", ROBERTA_HEAD))
def roberta(c: Config) -> Encoder:
    """Liu et al. 2019: positions begin behind the padding's."""
    return bert_like(c, padded=True, vocab_size=50265, pad_token_id=1)


@encoder("xlm-roberta", stem="XLMRoberta", names=stored("roberta."), classes=roberta_classes("roberta.", ROBERTA_HEAD))
def xlm_roberta(c: Config) -> Encoder:
    """Conneau et al. 2019."""
    return bert_like(c, padded=True, pad_token_id=1)


@encoder("camembert", stem="Camembert", names=stored("roberta."), classes=roberta_classes("roberta.", ROBERTA_HEAD))
def camembert(c: Config) -> Encoder:
    """Martin et al. 2019."""
    return bert_like(c, padded=True, pad_token_id=1)


@encoder(
    "data2vec-text",
    stem="Data2VecText",
    names=stored("data2vec_text."),
    classes=roberta_classes("data2vec_text.", ROBERTA_HEAD),
)
def data2vec_text(c: Config) -> Encoder:
    """Baevski et al. 2022."""
    return bert_like(c, padded=True, pad_token_id=1)
