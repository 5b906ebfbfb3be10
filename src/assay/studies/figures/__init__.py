"""Pictures of a sweep, as one would put them on a slide; matplotlib is imported when one is drawn.

flops              FLOPs of a token by part, stacked
shares             the same as shares of the whole
flops-per-token    FLOPs of a token, a line for each model or setting
attention-share    the share of QKᵀ and AV in all FLOPs
memory             bytes of the cache against those of the weights
parameters         where the parameters sit
attention          what attention is made of: projections, QKᵀ, softmax, AV
core               the shares of QKᵀ, softmax and AV among themselves
"""

from __future__ import annotations

from assay.studies.figures.catalogue import FIGURES, figure_of, usual
from assay.studies.figures.saving import draw, save, sort_of

__all__ = ["FIGURES", "draw", "figure_of", "save", "sort_of", "usual"]
