"""What training asks of a kind beside its work: the products of its backward pass, and what autograd keeps of it.

A rule tells an op in PyTorch's functions, as it runs eagerly, on a tape that knows what each of them keeps, and in
which dtype (`tape`). Of a kind without a rule it is not known what is kept, never nothing.
Only what reads training imports this.
"""

from assay.kinds.training import collective, contractions, fused, layout, pointwise, primitives, reduce, scans
from assay.kinds.training.passing import Passing
from assay.kinds.training.rows import BACKWARD, SAVES, backward, hands_on, passes, remade, rule_of, saves
from assay.kinds.training.tape import Tape
from assay.kinds.training.values import INPUT, MADE, WEIGHT, Store, Value, width_of

__all__ = [
    "BACKWARD",
    "INPUT",
    "MADE",
    "SAVES",
    "WEIGHT",
    "Passing",
    "Store",
    "Tape",
    "Value",
    "backward",
    "hands_on",
    "passes",
    "remade",
    "rule_of",
    "saves",
    "width_of",
]

# importing them registers their rules
_REGISTERED = (collective, contractions, fused, layout, pointwise, primitives, reduce, scans)
