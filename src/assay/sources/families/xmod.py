"""X-MOD: an adapter for each language."""

from __future__ import annotations

from assay.blocks.encoders import Encoder
from assay.blocks.sparse_encoders import Adapted
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.encoders import (
    LAYER,
    ROBERTA_HEAD,
    bert_like,
    dense_attention,
    encoder,
    norm_of,
    roberta_classes,
    stored,
    two_matrices,
)

_XMOD = LAYER | {
    "Wdown": "output.adapter_modules.{e}.dense1.weight[j d]",
    "Wdown_bias": "output.adapter_modules.{e}.dense1.bias[j]",
    "Wup": "output.adapter_modules.{e}.dense2.weight[d j]",
    "Wup_bias": "output.adapter_modules.{e}.dense2.bias[d]",
    "Gadapter": "output.adapter_layer_norm.weight",
}


@encoder(
    "xmod",
    stem="Xmod",
    names=stored("roberta.", _XMOD) | {"Gf": "roberta.encoder.LayerNorm.weight"},
    classes=roberta_classes("roberta.", ROBERTA_HEAD),
    harmless=("default_language",),
)
def xmod(c: Config) -> Encoder:
    """Pfeiffer et al. 2022: an adapter for each language, of which a sequence passes one."""
    made = bert_like(c, padded=True, pad_token_id=1)
    d = made.width
    languages = c.sequence("languages", lambda v: isinstance(v, str), "names of languages") or ["en_XX"]
    inner = d // c.size("adapter_reduction_factor", 2)
    if inner < 1:
        c.fail("adapter_reduction_factor", f"at most hidden_size, {d}")
    first = c.flag("pre_norm", False)
    layer = Adapted(
        (),
        mixer=dense_attention(c, d),
        mlp=two_matrices(c),
        norm=norm_of(c),
        languages=len(set(languages)),
        inner=inner,
        first=first,
        own_norm=c.flag("adapter_layer_norm", False),
        reuse=c.flag("adapter_reuse_layer_norm", True),
        late=not c.flag("ln_before_adapter", True),
    )
    return replace(made, layers=(layer,) * made.depth, final=norm_of(c) if first else None)
