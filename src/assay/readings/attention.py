"""What the attention of a model is made of: its projections, QKᵀ, the softmax, and the sum of values."""

from __future__ import annotations

from assay.kinds import Extent, kind_of
from assay.readings.binding import bind, placed
from assay.readings.conventions import convention as convention_of
from assay.readings.count import flops
from assay.readings.setting import Setting
from assay.records import dataclass, replace
from assay.size import Size
from assay.spec import Block, Model, Op


@dataclass(frozen=True)
class Split:
    """FLOPs of all attention of a model, cross-attention included, that of a tower not.

    `scores` are of QKᵀ, `output` of the weighted sum of values, `softmax` of all between them; `projections` are of
    the rest: of queries, keys, values, outputs and gates.
    """

    projections: Size = 0
    scores: Size = 0
    softmax: Size = 0
    output: Size = 0

    @property
    def total(self) -> Size:
        """All four."""
        return self.projections + self.scores + self.softmax + self.output


def split(model: Model, asked: Setting) -> Split:
    """The attention of a model in a checked setting, under its convention."""
    prices = convention_of(asked.convention)
    found: dict[str, Size] = dict.fromkeys(("projections", "scores", "softmax", "output"), 0)
    for segment in model.segments:
        absorbed = segment.absorbed if asked.latent == "absorbed" else None
        block = segment.block if absorbed is None else absorbed
        if not any(op.part.partition(".")[0] == "attention" for op in block.ops):
            continue
        extent = bind(block, placed(segment, asked.sizes()))
        for name, ops in _sorted(block, extent).items():
            spent = flops(replace(block, ops=tuple(ops)), extent, prices).total
            found[name] = found[name] + segment.times * spent
    return Split(**found)


def _sorted(block: Block, extent: Extent) -> dict[str, list[Op]]:
    """The ops of attention: contractions before a softmax make scores, those behind it use them."""
    found: dict[str, list[Op]] = {"projections": [], "scores": [], "softmax": [], "output": []}
    weighed = False
    for op in block.ops:
        part, _, sub = op.part.partition(".")
        if sub != "scores":
            weighed = False
        if part != "attention":
            continue
        kind = kind_of(op)
        if sub != "scores":
            found["projections"].append(op)
        elif kind.contracts:
            found["output" if weighed else "scores"].append(op)
        else:
            found["softmax"].append(op)
            weighed = weighed or "softmax" in kind.work(op, extent)
    return found
