"""Optimizers by what they keep of each parameter: a record each, a state a line, with where the rule is from.

A rule says how many elements a state has for a tensor of some shape; `dtype` None is that of what is stepped, as
PyTorch's `zeros_like` makes it. Counters and scalars are one number a tensor.
"""

from __future__ import annotations

from collections.abc import Callable

from assay.errors import among
from assay.records import dataclass, replace
from assay.size import Size, ceil_div, product

Shape = tuple[Size, ...]
Rule = Callable[[Shape], Size]


def like(shape: Shape) -> Size:
    """As many as the parameter has."""
    return product(shape)


def rows(shape: Shape) -> Size:
    """One for each row of a matrix, or of each of several: the last dimension is averaged over."""
    return product(shape[:-1]) if len(shape) > 1 else 0


def columns(shape: Shape) -> Size:
    """One for each column: the last dimension but one is averaged over."""
    return product((*shape[:-2], shape[-1])) if len(shape) > 1 else 0


def vectors(shape: Shape) -> Size:
    """As many as the parameter has, where it is no matrix."""
    return product(shape) if len(shape) < 2 else 0


def once(_: Shape) -> Size:
    """A scalar."""
    return 1


def blocks(of: int) -> Rule:
    """One for each block of so many elements, a last part of a block counting as one."""
    return lambda shape: ceil_div(product(shape), of)


@dataclass(frozen=True)
class State:
    """What is kept of each tensor under one name."""

    name: str
    elements: Rule
    dtype: str | None = None


@dataclass(frozen=True)
class Optimizer:
    """An optimizer and what it keeps.

    Tensors of fewer than `least` elements keep `small` instead of `states`. What is no matrix, and embeddings and
    heads, are left to the optimizer named `others` where there is one. `beside` is what a step makes of each tensor
    and has of all of them at once: nothing where one kernel steps; None where tensors are stepped one after another,
    and what is made of one is not known. `rule` is the optimizer whose rule that steps by, where it is another's.
    """

    name: str
    says: str
    source: str
    states: tuple[State, ...] = ()
    least: int = 0
    small: tuple[State, ...] = ()
    others: str | None = None
    beside: tuple[State, ...] | None = ()
    rule: str | None = None


_STEP = State("step", once, "fp32")
_MOMENTS = (State("exp_avg", like), State("exp_avg_sq", like))
_BLOCKS = blocks(256)


def _eight(*names: str) -> tuple[tuple[State, ...], tuple[State, ...]]:
    """States in 8 bits with a float32 maximum for each 256 elements; and those of small tensors, in float32."""
    numbered = list(enumerate(names, start=1))
    large = tuple(State(name, like, "int8") for name in names)
    maxima = tuple(State(f"absmax{number}", _BLOCKS, "fp32") for number, _ in numbered)
    return (*large, *maxima), tuple(State(name, like, "fp32") for name in names)


_TORCH = "torch.optim"
_BNB = "bitsandbytes 0.50, optim/optimizer.py; Dettmers et al. 2022, arXiv:2110.02861"
_ROOT = (State("root", like),)  # of the second moment, for the division


def _at_once(of: Optimizer, beside: tuple[State, ...]) -> Optimizer:
    """The same stepping all tensors at once, as PyTorch does on a GPU where it is told nothing; none has a kernel."""
    says = f"{of.name}, all tensors at once: what is made of each is there together"
    source = f"{of.source.partition(';')[0]}, foreach, the default on a GPU"
    return replace(of, name=f"{of.name}-foreach", says=says, source=source, beside=beside, rule=of.name)


_TWO, _SMALL_TWO = _eight("state1", "state2")
_ONE, _SMALL_ONE = _eight("state1")

OPTIMIZERS: dict[str, Optimizer] = {
    made.name: made
    for made in (
        Optimizer("sgd", "stochastic gradient descent: nothing is kept", f"{_TORCH}.SGD"),
        Optimizer(
            "sgd-momentum",
            "stochastic gradient descent with momentum",
            f"{_TORCH}.SGD, momentum above 0",
            (State("momentum_buffer", like),),
        ),
        Optimizer("adam", "two moments", f"{_TORCH}.Adam; Kingma & Ba 2015, arXiv:1412.6980", (*_MOMENTS, _STEP)),
        Optimizer(
            "adamw",
            "two moments; weight decay, decoupled, keeps nothing",
            f"{_TORCH}.AdamW; Loshchilov & Hutter 2019, arXiv:1711.05101",
            (*_MOMENTS, _STEP),
        ),
        Optimizer(
            "adamw-amsgrad",
            "two moments and the largest second one",
            f"{_TORCH}.AdamW, amsgrad; Reddi et al. 2018, arXiv:1904.09237",
            (*_MOMENTS, State("max_exp_avg_sq", like), _STEP),
        ),
        Optimizer(
            "adamw-8bit",
            "two moments of 8 bits, a float32 maximum for each 256 elements; tensors under 4,096 elements in float32",
            f"{_BNB}: AdamW8bit, Adam8bit",
            _TWO,
            4096,
            _SMALL_TWO,
        ),
        Optimizer(
            "lion",
            "one moment",
            "Chen et al. 2023, arXiv:2302.06675; lion-pytorch",
            (State("exp_avg", like),),
            beside=None,
        ),
        Optimizer("lion-8bit", "one moment of 8 bits", f"{_BNB}: Lion8bit", _ONE, 4096, _SMALL_ONE),
        Optimizer("adagrad", "sums of squares", f"{_TORCH}.Adagrad", (State("sum", like), _STEP)),
        Optimizer(
            "rmsprop", "averages of squares", f"{_TORCH}.RMSprop", (State("square_avg", like), _STEP), beside=None
        ),
        Optimizer(
            "adafactor",
            "the second moment of a matrix by its rows and columns, of a vector whole; no first moment",
            f"{_TORCH}.Adafactor; Shazeer & Stern 2018, arXiv:1804.04235",
            (State("row_var", rows), State("col_var", columns), State("variance", vectors), _STEP),
            beside=None,
        ),
        Optimizer(
            "muon",
            "momentum of matrices; embeddings, heads and vectors by AdamW",
            f"{_TORCH}.Muon; Jordan et al. 2024, kellerjordan.github.io/posts/muon",
            (State("momentum_buffer", like),),
            others="adamw",
            beside=None,
        ),
    )
}
OPTIMIZERS |= {
    made.name: made
    for made in (
        *(_at_once(OPTIMIZERS[name], _ROOT) for name in ("adam", "adamw", "adamw-amsgrad", "rmsprop")),
        _at_once(OPTIMIZERS["adagrad"], (*_ROOT, State("scaled gradient", like))),
    )
}


def optimizer(name: str | Optimizer) -> Optimizer:
    """The optimizer of a name, or the one given. Raises SettingError."""
    if isinstance(name, Optimizer):
        return name
    return OPTIMIZERS[among(name, "optimizer", OPTIMIZERS)]
