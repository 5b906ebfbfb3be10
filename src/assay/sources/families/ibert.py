"""I-BERT: RoBERTa that can run on whole numbers, which lie beside its weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.blocks.encoders import Encoder, Tables
from assay.blocks.integers import BOUNDS, RoundedLayer, RoundedTables
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import under
from assay.sources.families.encoders import LAYER, ROBERTA_HEAD, TABLES, bert_like, encoder, roberta_classes

_NORMED = ("attention.output.LayerNorm", "output.LayerNorm")
_RANGES = (
    *(f"attention.self.{name}_activation" for name in ("query", "key", "value", "output")),
    "attention.self.softmax.act",
    *("attention.output.ln_input_act", "attention.output.LayerNorm.activation", "attention.output.output_activation"),
    *("intermediate.output_activation", "pre_intermediate_act", "pre_output_act"),
    *("output.ln_input_act", "output.LayerNorm.activation", "output.output_activation"),
)
_EARLY = ("embeddings_act1", "embeddings_act2", "LayerNorm.activation", "output_activation")
_OUTPUTS = {"Wq": "g r k", "Wk": "g k", "Wv": "g v"}
_STORED = dict(zip(BOUNDS, ("x_min", "x_max", "act_scaling_factor"), strict=True))


def _ranges(paths: Sequence[str], norms: Sequence[str], at: str = "") -> dict[str, str]:
    """Where the bounds of activations and the shifts of norms are stored."""
    places = enumerate(paths)
    found = {f"{bound}{at}{i}": f"~{path}.{name}[1]" for i, path in places for bound, name in _STORED.items()}
    return found | {f"Shift{at}{i}": f"~{path}.shift[1]" for i, path in enumerate(norms)}


def _whole_table(weight: str, path: str) -> dict[str, str]:
    base = path.removesuffix(".weight")
    rows = f"P{weight[1:]}" if weight[1:] else "V"
    return {
        f"{weight}_whole": f"~{base}.weight_integer[{rows} d]",
        f"{weight}_step": f"~{base}.weight_scaling_factor[1]",
    }


def _whole_matrix(weight: str, path: str) -> dict[str, str]:
    base, rows = path.removesuffix(".weight"), _OUTPUTS.get(weight)
    shape = {"Wo": "[d (g r v)]", "Wu": "[f d]", "Wd": "[d f]"}.get(weight) or f"[({rows}) d]"
    bias = f"B{weight[1]}" if weight in ("Wq", "Wk", "Wv", "Wo") else f"{weight}_bias"
    outputs = shape.partition(" ")[0] + "]" if rows is None else f"[({rows})]"
    return {
        f"{weight}_whole": f"~{base}.weight_integer{shape}",
        f"{weight}_step": f"~{base}.fc_scaling_factor{outputs}",
        f"{bias}_whole": f"~{base}.bias_integer{outputs}",
    }


TABLE = ("E", "E_position", "E_type")
MATRICES = ("Wq", "Wk", "Wv", "Wo", "Wu", "Wd")
NAMES = under(
    "ibert.embeddings.",
    TABLES
    | {name: path for weight in TABLE for name, path in _whole_table(weight, TABLES[weight]).items()}
    | _ranges(_EARLY, ("LayerNorm",), "e"),
) | under(
    "ibert.encoder.layer.{i}.",
    LAYER
    | {name: path for weight in MATRICES for name, path in _whole_matrix(weight, LAYER[weight]).items()}
    | _ranges(_RANGES, _NORMED),
)


@encoder(
    "ibert", stem="IBert", names=NAMES, classes=roberta_classes("ibert.", ROBERTA_HEAD), harmless=("force_dequant",)
)
def ibert(c: Config) -> Encoder:
    """Kim et al. 2021, arXiv:2101.01321, run on real numbers."""
    c.inert("quant_mode", False)
    made = bert_like(c, padded=True, pad_token_id=1)
    words = made.embedding
    assert isinstance(words, Tables)
    kept: dict[str, Any] = {"norm": words.norm, "offset": words.offset, "tables": words.tables}
    tables = RoundedTables(words.vocab, words.width, **kept, ranges=len(_EARLY), shifts=1)
    layer = RoundedLayer(made.layers[0].steps, ranges=len(_RANGES), shifts=len(_NORMED))
    return replace(made, embedding=tables, layers=(layer,) * made.depth)
