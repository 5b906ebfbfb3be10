"""What an optimizer's step costs: scalar operations on each parameter, and matrix products where there are any."""

from __future__ import annotations

from assay.errors import SettingError
from assay.readings.optimizers import Optimizer
from assay.readings.optimizers import optimizer as optimizer_of
from assay.readings.tensors import Entry, tensors
from assay.size import Size, product
from assay.spec import Model

# operations on one parameter in one step, as PyTorch's optimizers do them; factors of the learning rate and of bias
# corrections are found once for all
OPERATIONS = {
    "sgd": 2,  # p - lr g
    "sgd-momentum": 4,  # m = mu m + g: 2; p - lr m: 2
    "adam": 13,  # m + (1 - b1) (g - m): 3; b2 v + (1 - b2) g g: 4; root(v) / c + eps: 3; p - lr m / that: 3
    "adamw": 14,  # the same, and p (1 - lr w)
    "adamw-amsgrad": 15,  # and the larger of two
    "lion": 10,  # sign(b1 m + (1 - b1) g): 4; p (1 - lr w) - lr that: 3; b2 m + (1 - b2) g: 3
}
ITERATIONS = 5  # of Newton and Schulz, in Muon


def update_flops(model: Model, optimizer: str | Optimizer) -> Size:
    """FLOPs of one step of an optimizer on all trained parameters.

    Every scalar operation is one, and products count 2 per multiply-add: Muon's are of matrices alone (Jordan et al.
    2024), for one of n x m, m <= n, five times 4 n m^2 + 2 m^3; what is no matrix, and embeddings and heads, it leaves
    to AdamW. Raises SettingError where the operations of an optimizer are not known.
    """
    chosen = optimizer_of(optimizer)
    trained = [entry for entry in tensors(model) if not entry.buffer and not entry.frozen]
    if chosen.others is None:
        return _each(chosen.rule or chosen.name) * _elements(trained)
    matrices = [entry for entry in trained if _orthogonal(entry)]
    rest = [entry for entry in trained if not _orthogonal(entry)]
    # momentum 2, lr and decay 3 around the products
    own = 5 * _elements(matrices) + sum((_products(entry) for entry in matrices), start=0)
    return own + _each(chosen.others) * _elements(rest)


def _each(name: str) -> int:
    found = OPERATIONS.get(name)
    if found is None:
        known = ", ".join([*OPERATIONS, "muon"])
        raise SettingError(f"the operations of a step of {name} are not known; known are those of {known}")
    return found


def _elements(entries: list[Entry]) -> Size:
    return sum((entry.elements * entry.times for entry in entries), start=0)


def _orthogonal(entry: Entry) -> bool:
    """Whether Muon takes it: a matrix, or one of several, that is neither a table nor a head."""
    return len(entry.shape) > 1 and entry.part.partition(".")[0] not in ("embedding", "head")


def _products(entry: Entry) -> Size:
    """Of X X^T, of that with itself and of both with X, five times."""
    *several, rows, columns = entry.shape
    n, m = max(rows, columns), min(rows, columns)
    return ITERATIONS * (4 * n * m * m + 2 * m**3) * product(several) * entry.times
