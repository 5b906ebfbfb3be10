"""Tables of what training holds, from the records themselves: optimizers and precision policies."""

from __future__ import annotations

from fractions import Fraction

from pages import table

from assay.readings.optimizers import OPTIMIZERS
from assay.readings.precision import POLICIES
from assay.readings.states import States, states
from assay.spec import Block, parse_lines

SIDE = 4096  # of a square matrix that stands for all


def matrix(**asked: str) -> States:
    """What training holds of one large matrix."""
    block = Block("block", parse_lines("y = linear(x[b n d], W[d f]) -> [b n f]"), {"d": SIDE, "f": SIDE})
    return states(block, **asked)  # type: ignore[arg-type]


def a_parameter(size: int) -> str:
    """Bytes a parameter of that matrix, to three digits behind the point, those of counters left out."""
    each = Fraction(int(size), SIDE * SIDE)
    return f"{float(each):.3f}".rstrip("0").rstrip(".")


def optimizers_table() -> str:
    """Every optimizer: what it keeps, and bytes a parameter of a large matrix in both common policies."""
    rows = []
    for name, made in OPTIMIZERS.items():
        kept = [state.name for state in made.states] or ["nothing"]
        found = [matrix(optimizer=name, precision=policy) for policy in ("fp32", "bf16")]
        sizes = [a_parameter(sum(held.optimizer.values())) for held in found]
        beside = "not known" if made.beside is None else a_parameter(found[1].beside)
        rows.append([f"`{name}`", ", ".join(kept), *sizes, beside, made.says, made.source])
    return table(("optimizer", "keeps", "bytes, fp32", "bytes, bf16", "in a step", "what it is", "source"), rows)


def precisions_table() -> str:
    """Every policy: the dtypes, and bytes a parameter under Adam."""
    rows = []
    for name, made in POLICIES.items():
        held = matrix(optimizer="adamw", precision=name)
        gradients = " + ".join(filter(None, (made.gradients, made.main_gradients)))
        total = a_parameter(held.total)
        rows.append(
            [f"`{name}`", made.parameters, made.compute, gradients, made.master or "", made.kept, total, made.says]
        )
    titles = ("policy", "parameters", "products", "gradients", "master copy", "states", "bytes, Adam", "what it is")
    return table(titles, rows)
