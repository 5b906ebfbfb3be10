"""Element by element, as PyTorch composes it."""

from __future__ import annotations

from collections.abc import Callable

from assay.kinds.compress import slots_of
from assay.kinds.training.contractions import everything
from assay.kinds.training.passing import Passing
from assay.kinds.training.rows import saves
from assay.kinds.training.tape import Tape
from assay.kinds.training.values import FLAG, INDEX, Value, promoted
from assay.size import ceil_div
from assay.spec import Axes, Op

Function = Callable[[Tape, Value], Value]

# functions of one tensor: what they keep, or how they are composed
ACTIVATIONS: dict[str, Function] = {
    "relu": lambda tape, x: tape.unary(x, "result"),
    "relu2": lambda tape, x: tape.pow(tape.unary(x, "result")),
    "silu": lambda tape, x: tape.unary(x),
    "sigmoid": lambda tape, x: tape.unary(x, "result"),
    "tanh": lambda tape, x: tape.unary(x, "result"),
    "gelu": lambda tape, x: tape.unary(x),
    "gelu_tanh": lambda tape, x: tape.unary(x),
    "quick_gelu": lambda tape, x: tape.mul(x, tape.unary(tape.linear_in(x), "result")),
    "identity": lambda tape, x: x,
    "exp": lambda tape, x: tape.unary(x, "result", "exp"),
    "softplus": lambda tape, x: tape.unary(x, function="softplus"),
    "sqrtsoftplus": lambda tape, x: tape.unary(tape.unary(x, function="softplus"), "result"),
}


def _activation(function: Function) -> Callable[[Passing, Value], Value]:
    return lambda at, *given: function(at.tape, at.tape.beside(next(everything(at, given)), at.op.axes))


for _name, _function in ACTIVATIONS.items():
    saves(_name)(_activation(_function))


@saves("mul")
def mul(at: Passing, *given: Value) -> Value:
    """From left to right."""
    return at.tape.fold(lambda x, y: at.tape.mul(x, y, at.op.axes), _placed(at, given))


@saves("div")
def div(at: Passing, *given: Value) -> Value:
    """From left to right."""
    return at.tape.fold(lambda x, y: at.tape.div(x, y, at.op.axes), _placed(at, given))


@saves("add")
def add(at: Passing, *given: Value) -> Value:
    """Sums keep nothing, nor do products with numbers."""
    tape = at.tape
    first, *others = _placed(at, given)
    if at.op.attr("keep") is not None:
        first = tape.linear_in(first)
    if at.op.attr("scale") is not None:
        others = [tape.linear_in(x) for x in others]
    return tape.fold(lambda x, y: tape.linear_in(x, y, axes=at.op.axes), [first, *others])


def _placed(at: Passing, given: tuple[Value, ...]) -> list[Value]:
    return [at.tape.beside(x, at.op.axes) for x in everything(at, given)]


@saves("lerp")
def lerp(at: Passing, *given: Value) -> Value:
    """w x + (1 - w) y."""
    x, y, w = _placed(at, given)
    return at.tape.lerp(y, x, w)


@saves("scale")
def scale(at: Passing, x: Value) -> Value:
    """A product with a number keeps nothing."""
    return at.tape.linear_in(x)


@saves("softcap")
def softcap(at: Passing, x: Value) -> Value:
    """cap tanh(x / cap)."""
    return at.tape.linear_in(at.tape.unary(at.tape.linear_in(x), "result"))


@saves("clip")
def clip(at: Passing, x: Value) -> Value:
    """Limits keep what they are applied to."""
    return at.tape.unary(x)


@saves("swiglu_clamp")
def swiglu_clamp(at: Passing, z: Value, u: Value) -> Value:
    """(u + 1) (z sigmoid(alpha z)), both within limits."""
    tape = at.tape
    z, u = tape.unary(z), tape.unary(u)
    gate = tape.mul(z, tape.unary(tape.linear_in(z), "result"))
    return tape.mul(tape.linear_in(u), gate)


@saves("swiglu_limit")
def swiglu_limit(at: Passing, z: Value, u: Value) -> Value:
    """silu(z) u, both within limits."""
    tape = at.tape
    return tape.mul(tape.unary(tape.unary(z)), tape.unary(u))


MASKED = ("append", "keys", "reuse", "hold", "collect")  # kinds that make keys


@saves("mask")
def mask(at: Passing, s: Value, beside: Value | None = None) -> Value:
    """The mask is kept, one for all layers that have the same; of chosen keys each layer its own."""
    tape, axes = at.tape, at.op.axes
    if at.op.attr("added"):
        return _added(at, s)
    if beside is not None and axes[-1] in beside.axes:
        return _favoured(at, s, beside)
    joined = next((op for op in at.makers(axes[-1]) if op.kind == "concat"), None)
    hidden = _shared(at, axes[-1]) if joined is None else tape.new(axes[-2:], dtype=FLAG)
    if beside is not None and (joined is None or tape.sizes[joined.inputs[1].axes[1]]):
        hidden = tape.new((*beside.axes[:-1], axes[-1]), dtype=FLAG)
    return s if hidden is None else tape.masked_fill(s, hidden)


def _added(at: Passing, s: Value) -> Value:
    """A sum with a mask of the dtype of the stream, one for all layers that have the same."""
    tape, keys = at.tape, at.op.axes[-1]
    makers = [op for op in at.makers(keys) if op.kind in MASKED]
    told = sight(makers[0], at) if makers else None
    if told is None:
        return s
    shape = ("b", "n", keys) if "n" in at.op.axes else ("b", *at.op.axes[-2:])
    table = tape.once(("added", told, at.count(shape)), lambda: tape.new(shape))
    return tape.linear_in(s, table, axes=s.axes)


def _favoured(at: Passing, s: Value, m: Value) -> Value:
    """A number of each key added to scores, of which only the best by it are left."""
    tape, axes = at.tape, at.op.axes
    hidden = _shared(at, axes[-1])
    spread = tuple(a for a in axes if a in m.axes or a in axes[-2:])
    if hidden is not None and m.grad:
        tape.keep(hidden)
    most = at.value("keep")
    if most is not None and at.sizes[axes[-1]] > most and m.grad:
        best = tape.axis("best", at.real_value("keep"), most)
        tape.keep(tape.new((*spread[:-1], best), dtype=INDEX), passing=True)
        tape.keep(tape.new(spread, dtype=FLAG))
    tape.keep(tape.new(spread, dtype=FLAG))
    return tape.new(axes, s.grad or m.grad, s.dtype)


def _shared(at: Passing, keys: str) -> Value | None:
    """The mask of some keys, None where every query sees all of them."""
    makers = [op for op in at.makers(keys) if op.kind in MASKED]
    if not makers:
        raise at.unknown(f"no op makes the keys {keys}")
    told = sight(makers[0], at)
    axes = ("n", keys) if "n" in at.op.axes else at.op.axes[-2:]
    return None if told is None else at.tape.once(("mask", told, at.count(axes)), lambda: at.tape.new(axes, dtype=FLAG))


def sight(maker: Op, at: Passing) -> tuple[object, ...] | None:
    """What tells a mask over the keys that an op makes from others."""
    values = {name: at.sizes.get(v, v) if isinstance(v, str) else v for name, v in maker.attrs}
    if maker.kind == "hold":
        return None
    if maker.attr("causal"):
        return ("causal",)
    for name in ("last", "reach", "block", "window", "near", "chunk", "rate"):
        if values.get(name) is not None:
            return (name, values[name], values.get("offset"))
    return None if maker.kind == "keys" else ("causal",)


@saves("alibi")
def alibi(at: Passing, s: Value) -> Value:
    """A bias that needs no gradient, one for all layers, and the mask."""
    tape, axes = at.tape, at.op.axes
    shape = (*(a for a in axes[:-2] if a != "b"), axes[-1])
    bias = tape.once(("alibi", at.count(shape), at.value("by")), lambda: tape.new(shape))
    return mask(at, tape.linear_in(s, bias.called(shape), axes=axes))


@saves("rope")
def rope(at: Passing, x: Value) -> Value:
    """x cos + turned x sin; cosines and sines are kept, one pair for all layers that turn alike."""
    tape, axes = at.tape, at.op.axes
    head = axes[-1]
    scaling = dict(at.op.attr("scaling") or ())
    spread = (scaling.get("rope_type") or scaling.get("type")) == "proportional"  # all of a head, some of it by nothing
    width = at.sizes[head] if spread else at.value("width") or at.sizes[head]
    width += width % 2  # an odd one has a pair more
    whole = width == at.sizes[head]
    tokens, rate = _positions(at, axes)
    part = head if whole else tape.axis("turned", 2 * ceil_div(at.real_value("width"), 2), width)
    told = (at.value("theta"), at.op.attr("scaling"), at.op.attr("style"), at.sizes[head])
    shared = at.op.attr("tables")  # one pair whatever lies between tokens and head: of the stream's dtype, or float32
    dtype = {None: x.dtype, "shared": tape.dtype, "wide": "fp32"}[shared]
    key = ("rope", rate, at.value("width") or at.sizes[head], bool(shared) or len(axes) - axes.index(tokens), *told)
    table = (tokens, part)
    if tokens == "n":
        tape.once(("positions", at.sizes[tokens]), lambda: tape.new((tokens,), dtype=INDEX))
    cos = tape.once((key, dtype, "cos"), lambda: tape.new(table, dtype=dtype))
    sin = tape.once((key, dtype, "sin"), lambda: tape.new(table, dtype=dtype))
    cos, sin = cos.called(table), sin.called(table)
    given = x if whole else x.seen((*x.axes[:-1], part), x.strides)
    other = tape.new(given.axes, x.grad, x.dtype)  # halves swapped: a tensor of its own
    y = tape.cast(tape.linear_in(tape.mul(given, cos), tape.mul(other, sin)), x.dtype)
    if not shared or (whole and not at.op.attr("joined")):
        return y if whole else tape.cat(axes, y, x)
    lies = (*(a for a in axes[:-1] if a != tokens), tokens, head)  # heads before tokens, as it is seen there
    return tape.read(tape.new(axes, x.grad, promoted((y, x)), lies), y, x)


def _positions(at: Passing, axes: Axes) -> tuple[str, int | None]:
    """The axis that has positions; of entries how many tokens each stands for."""
    for axis in axes:
        if axis in ("n", "m", "c"):
            return axis, None
        made = at.makers(axis)
        if made and made[0].kind == "pool":
            return axis, at.sizes[slots_of(made[0])[1]]
    raise at.unknown("none of its axes has positions")


@saves("sinusoid")
def sinusoid(at: Passing, x: Value) -> Value:
    """A sum with what needs no gradient."""
    return at.tape.linear_in(x)


@saves("temper")
def temper(at: Passing, x: Value) -> Value:
    """A product with a number for each position, one tensor for all layers that grow alike."""
    tape, axes = at.tape, at.op.axes
    key = ("temper", *(at.value(name) for name in ("form", "floor", "by")), len(axes) - axes.index("n"))
    table = tape.once(key, lambda: tape.new(("n",), dtype="fp32"))
    return tape.mul(x, tape.cast(table, x.dtype), axes)


@saves("xielu")
def xielu(at: Passing, x: Value) -> Value:
    """where(x > 0, up x x + b x, (exp(min(x, e)) - 1 - x) down + b x), up and down softplus of what is learned."""
    tape, axes = at.tape, at.op.axes
    above, below, beta, eps = (at.weight(weight) for weight in at.op.weights)
    up, down = tape.unary(above), tape.linear_in(beta, tape.unary(below))
    high = tape.linear_in(tape.mul(tape.mul(x, up, axes), x), tape.mul(x, beta, axes))
    least = tape.pointwise(x, eps, axes=axes)
    tape.keep(*([x, eps] if least.grad else []))
    rest = tape.linear_in(tape.unary(least, "result"), x)
    low = tape.linear_in(tape.mul(rest, down, axes), tape.mul(x, beta, axes))
    tape.keep(tape.new(axes, dtype=FLAG))
    return tape.linear_in(high, low)


@saves("swiglu_softcap")
def swiglu_softcap(at: Passing, z: Value, u: Value) -> Value:
    """cap tanh(z / cap) sigmoid(z) cap tanh(u / cap), from left to right."""
    tape = at.tape
    gate, up = (tape.linear_in(tape.unary(tape.linear_in(x), "result")) for x in (z, u))
    return tape.mul(tape.mul(gate, tape.unary(z, "result")), up)


@saves("clamp")
def clamp(at: Passing, x: Value) -> Value:
    """Bounds that are tensors are kept, and what they are applied to."""
    low, high = (at.weight(weight) for weight in at.op.weights)
    y = at.tape.pointwise(x, low, high, axes=at.op.axes)
    if y.grad:
        at.tape.keep(x, low, high)
    return y


@saves("collision")
def collision(at: Passing, x: Value) -> Value:
    """(1 - acos(x) / pi) to a power."""
    return at.tape.pow(at.tape.linear_in(at.tape.unary(x)))


@saves("fourier")
def fourier(at: Passing, x: Value) -> Value:
    """The real halves of complex numbers: a transform keeps nothing."""
    made = at.tape.new(at.op.axes, x.grad, dtype="complex64")
    seen = made.seen(made.axes, tuple(2 * apart for apart in made.strides))
    seen.dtype = x.dtype
    return seen
