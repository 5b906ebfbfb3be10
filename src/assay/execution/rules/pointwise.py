"""Element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import torch
from torch import Tensor
from torch.nn import functional

from assay.execution.masks import favoured, hide
from assay.execution.rotary import rotation
from assay.execution.rules.reduce import initial_share
from assay.execution.sites import Call, Run, Site, fit, fitted, runs
from assay.execution.storage import Getter

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "relu2": lambda x: functional.relu(x).square(),
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "identity": lambda x: x,
    "exp": torch.exp,
    "softplus": functional.softplus,
    "sqrtsoftplus": lambda x: functional.softplus(x).sqrt(),
}


def _unary(function: Callable[[Tensor], Tensor]) -> Callable[[Site], Run]:
    def rule(site: Site) -> Run:
        turned = fit(site.op.inputs[0].axes, site.op.axes)
        if turned is None:
            return lambda call, x: function(x)
        return lambda call, x: function(turned(x))

    return rule


for _name, _function in ACTIVATIONS.items():
    runs(_name)(_unary(_function))


def operands(site: Site) -> list[Callable[[list[Tensor]], Tensor]]:
    """How to get each operand, weights among them, beside the result's axes, from the activations in order."""
    op = site.op
    made: list[Callable[[list[Tensor]], Tensor]] = []
    at = 0
    for operand in op.inputs:
        if operand.is_weight:
            made.append(_stored(fitted(site.weight(operand), operand.axes, op.axes)))
        else:
            made.append(_given(at, fit(operand.axes, op.axes)))
            at += 1
    return made


def _stored(get: Getter) -> Callable[[list[Tensor]], Tensor]:
    return lambda given: get()


def _given(at: int, change: Callable[[Tensor], Tensor] | None) -> Callable[[list[Tensor]], Tensor]:
    return (lambda given: given[at]) if change is None else (lambda given: change(given[at]))


def _fold(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Site], Run]:
    def rule(site: Site) -> Run:
        gets = operands(site)
        return lambda call, *given: reduce(function, [get(given) for get in gets])  # type: ignore[arg-type]

    return rule


runs("mul")(_fold(torch.mul))
runs("div")(_fold(torch.div))


@runs("add")
def add(site: Site) -> Run:
    """x + y + …, the first times `keep`, the others times `scale`."""
    gets = operands(site)
    keep, scale = site.value("keep"), site.value("scale")
    if keep is None and scale is None:
        if len(gets) == 2:
            a, b = gets
            return lambda call, *given: a(given) + b(given)  # type: ignore[arg-type]
        return lambda call, *given: reduce(torch.add, [get(given) for get in gets])  # type: ignore[arg-type]
    if isinstance(keep, str) or isinstance(scale, str):
        named = " and ".join(by for by in (keep, scale) if isinstance(by, str))
        raise site.refuse(f"a sum whose parts are multiplied by {named} is not run yet")

    def run(call: Call, *given: Tensor) -> Tensor:
        first, *others = [get(given) for get in gets]  # type: ignore[arg-type]
        first = first if keep is None else first * keep
        return reduce(lambda a, b: a + (b if scale is None else b * scale), others, first)

    return run


@runs("lerp")
def lerp(site: Site) -> Run:
    """w x + (1 - w) y."""
    x, y, w = operands(site)
    return lambda call, *given: torch.lerp(y(given), x(given), w(given))  # type: ignore[arg-type]


@runs("scale")
def scale(site: Site) -> Run:
    """Times a constant, plus `plus`: of scores 1 / sqrt(k), where nothing is said, over the axes that were summed."""
    by, plus = site.value("by"), site.value("plus")
    if by == "1 - lambda_init":
        by = 1 - initial_share(site)
    if isinstance(by, str):
        raise site.refuse(f"scaling by {by} is not run yet")
    if by is None:
        made = site.source_of(site.op.inputs[0])
        if made is None or made.kind != "contract":
            raise site.refuse("a constant that it multiplies by is not described")
        summed = [a for a in made.inputs[0].axes if a not in made.axes]
        by = math.prod(site.size(a) for a in summed) ** -0.5
    return (lambda call, x: x * by) if plus is None else (lambda call, x: x * by + plus)


@runs("softcap")
def softcap(site: Site) -> Run:
    """cap tanh(x / cap)."""
    cap = site.value("cap")
    return lambda call, x: torch.tanh(x / cap) * cap


@runs("clip")
def clip(site: Site) -> Run:
    """No further from zero than a limit."""
    limit = site.value("limit")
    return lambda call, x: x.clamp(-limit, limit)


@runs("swiglu_clamp")
def swiglu_clamp(site: Site) -> Run:
    """min(z, limit) sigmoid(alpha z) (u + 1), u within the limit (OpenAI 2025, gpt-oss)."""
    alpha, limit = site.value("alpha"), site.value("limit")

    def run(call: Call, z: Tensor, u: Tensor) -> Tensor:
        z, u = z.clamp(max=limit), u.clamp(-limit, limit)
        return (u + 1) * (z * torch.sigmoid(z * alpha))

    return run


@runs("swiglu_limit")
def swiglu_limit(site: Site) -> Run:
    """silu(min(z, limit)) times u within the limit."""
    limit = site.value("limit")
    return lambda call, z, u: functional.silu(z.clamp(max=limit)) * u.clamp(-limit, limit)


@runs("swiglu_softcap")
def swiglu_softcap(site: Site) -> Run:
    """z sigmoid(z) u with z and u outside the sigmoid bounded by tanh, each by its cap."""
    gate, up = site.value("gate_cap"), site.value("up_cap")

    def run(call: Call, z: Tensor, u: Tensor) -> Tensor:
        return torch.tanh(z / gate) * gate * torch.sigmoid(z) * (torch.tanh(u / up) * up)

    return run


@runs("mask")
def mask(site: Site) -> Run:
    """Scores as they are where the mask lets a query see a key, else so low that a softmax gives zero."""
    beside = site.op.activations[1:]
    if beside and site.op.axes[-1] in beside[0].axes:  # a number for each key, and no index of them
        return favoured(site, site.value("keep"))
    return hide(site)


@runs("alibi")
def alibi(site: Site) -> Run:
    """Scores plus `by` times a slope of the head times the distance (Press et al. 2022), and masked.

    The key's position is added and not the distance: for all keys of a query that is the same but for one number,
    which a softmax takes away again. Where slopes and their products are `rounded` to bfloat16, positions count from
    the first token that is none of padding.
    """
    hidden = hide(site)
    axes = site.op.axes
    heads = [a for a in axes[:-1] if a in site.stored.sizes]
    count = math.prod(site.size(a) for a in heads)
    shape = [site.size(a) if a in heads else 1 for a in axes]
    by, rounded = site.value("by", 1.0), bool(site.op.attr("rounded"))
    dtype = torch.bfloat16 if rounded else torch.float32
    lead = tuple(slice(None) if a in ("b", axes[-1]) else None for a in axes)

    def make(call: Call, s: Tensor) -> Tensor:
        slopes = torch.tensor(_slopes(count), dtype=dtype, device=s.device).reshape(shape)
        if not rounded:
            at = torch.arange(1 - s.shape[-1], 1, dtype=dtype, device=s.device)
        elif call.mask is None:
            at = torch.arange(call.past + call.tokens, device=s.device)[-s.shape[-1] :]
        else:
            there = call.mask.to(torch.int64)
            at = ((there.cumsum(-1) - 1) * there)[:, -s.shape[-1] :][lead]
        return (slopes * at).to(s.dtype) * by

    def run(call: Call, s: Tensor) -> Tensor:
        return hidden(call, s + call.once(("alibi", count, by, rounded, s.shape[-1], s.dtype), lambda: make(call, s)))

    return run


def _slopes(heads: int) -> list[float]:
    """2^(-8 j / heads), where heads are a power of two; between them every second one of twice as many."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (j + 1) / power) for j in range(power)]
    return slopes + [2 ** (-4 * (2 * j + 1) / power) for j in range(heads - power)]


@runs("rope")
def rope(site: Site) -> Run:
    """Pairs turned by their position (Su et al. 2021)."""
    return rotation(site)


@runs("sinusoid")
def sinusoid(site: Site) -> Run:
    """x plus sines and cosines of the position, one of each for a frequency (Vaswani et al. 2017, 3.5).

    They alternate, or in `halves` all sines stand first. Frequencies go from 1 to nearly 1 / 10000, or where the row
    is `closed` to just that.
    """
    axes, op = site.op.axes, site.op
    width = site.size(axes[-1])
    half = width // 2
    halves, offset = bool(op.attr("halves")), site.value("offset", 0)
    steps = half - 1 if op.attr("closed") else width / 2
    if width % 2 and not halves:
        raise site.refuse("sines and cosines alternate along an odd width")
    if tuple(axes) != ("b", "n", axes[-1]):
        raise site.refuse("positions are those of tokens [b n]")
    by = torch.exp(torch.arange(half, dtype=torch.float32, device="cpu") * (-math.log(10000.0) / steps))

    def make(call: Call, x: Tensor) -> Tensor:
        angle = (call.where() + offset).to(torch.float32)[..., None] * by.to(x.device)
        if not halves:
            return torch.stack((angle.sin(), angle.cos()), -1).flatten(-2).to(x.dtype)
        both = torch.cat((angle.sin(), angle.cos()), -1)
        return functional.pad(both, (0, width - 2 * half)).to(x.dtype)

    return lambda call, x: x + make(call, x)


@runs("temper")
def temper(site: Site) -> Run:
    """Grown with the position: the first where their number is, by the logarithm of how many floors are below."""
    op = site.op
    form, floor, by = op.attr("form"), site.value("floor"), site.value("by")
    if form not in TEMPERS:
        raise site.refuse(f"queries that grow as {form} are not run; {', '.join(TEMPERS)} are")
    grown = TEMPERS[form]
    behind = len(op.axes) - 1 - op.axes.index("n")

    def make(call: Call) -> Tensor:
        at = grown(call.where().to(torch.float32), floor, by)
        return at.reshape(*at.shape, *(1,) * behind)

    return lambda call, x: x * call.once(("temper", form, floor, by, behind), lambda: make(call)).to(x.dtype)


TEMPERS: dict[str, Callable[[Tensor, float, float], Tensor]] = {
    "log": lambda at, floor, by: 1 + by * torch.log(1 + torch.floor(at / floor)),
    "next_log": lambda at, floor, by: 1 + by * torch.log1p(torch.floor((at + 1) / floor)),
    "excess_log": lambda at, floor, by: 1 + by * torch.log(((at + 1) / floor).clamp(min=1.0)),
    # the logarithm of how many tokens are seen, to the base of as many as were in training (Su 2021)
    "lengths": lambda at, floor, by: 1 + by * (torch.log((at + 1) / floor) / math.log(floor)).clamp(min=0.0),
    "power": lambda at, floor, by: torch.exp(by * torch.log1p((at + 1) / floor)),
}


@runs("xielu")
def xielu(site: Site) -> Run:
    """a x^2 + b x above zero, (exp(min(x, e)) - 1 - x) c + b x below, with a and c learned (Huang & Schlag 2025)."""
    above, below, beta, eps = (site.weight(weight) for weight in site.op.weights)

    def run(call: Call, x: Tensor) -> Tensor:
        b = beta()
        up, down = functional.softplus(above()), b + functional.softplus(below())
        return torch.where(x > 0, up * x * x + b * x, (torch.expm1(torch.min(x, eps())) - x) * down + b * x)

    return run


@runs("fourier")
def fourier(site: Site) -> Run:
    """The real part of a transform over the last two axes."""
    turned = fit(site.op.inputs[0].axes, site.op.axes)
    return lambda call, x: torch.fft.fftn(x if turned is None else turned(x), dim=(-2, -1)).real


@runs("clamp")
def clamp(site: Site) -> Run:
    """Between two stored bounds."""
    low, high = (site.weight(weight) for weight in site.op.weights)
    return lambda call, x: torch.clamp(x, low(), high())
