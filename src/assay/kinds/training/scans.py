"""Recurrences over tokens in their recurrent form: what each token's step keeps, n times.

Steps are alike but for the first, whose state is there before any token and needs no gradient, and in some rules the
last, whose state nobody reads. What n steps keep is told as one tensor with the axis of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.errors import KindError
from assay.kinds.base import Extent, Work, kind_of
from assay.kinds.training.passing import Passing
from assay.kinds.training.rows import BACKWARD, saves
from assay.kinds.training.values import FLAG, Value
from assay.registry import entered
from assay.size import exact_div
from assay.spec import Axes, Op

SCANS: dict[str, Callable[..., Value]] = {}
# products of the backward pass beside two for each of forward's: of a first state, of a last one
FEWER = {"lru": 1, "wkv": 2}


def recurs(rule: str) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """What a scan of a rule keeps. Raises KindError where it has one already."""
    return entered(SCANS, (rule,), lambda name: KindError(f"the scan {name!r} has two rules of what training keeps"))


@saves("scan")
def scan(at: Passing, *given: Value) -> Value:
    """By its rule."""
    rule = SCANS.get(at.op.attr("rule"))
    if rule is None:
        raise at.unknown("no rule says how it runs")
    return rule(at, *given)


def _backward(op: Op, extent: Extent, needs: Sequence[bool]) -> Work:
    """Twice forward's, but for steps whose state needs no gradient."""
    work = {"multiply_add": 2 * kind_of(op).work(op, extent).get("multiply_add", 0)}
    fewer = FEWER.get(op.attr("rule"), 0)
    if fewer:
        each = exact_div(exact_div(work["multiply_add"], 2), extent.sizes["n"])
        work["multiply_add"] = work["multiply_add"] - fewer * each
    return work


BACKWARD["scan"] = _backward


class Frame:
    """The axes of a scan, tokens first, then the batch, then the state's."""

    def __init__(self, at: Passing, inner: int) -> None:
        named = at.op.attr("state")
        self.at, self.tape = at, at.tape
        self.state: Axes = (named,) if isinstance(named, str) else tuple(named)
        self.lead = self.state[: len(self.state) - inner]
        self.own = self.state[len(self.state) - inner :]

    def given(self, x: Value, *own: str) -> Value:
        """An operand, seen with tokens first."""
        return self.tape.beside(x, ("n", "b", *self.lead, *own))

    def flat(self, x: Value, *own: str) -> Value:
        """Batch and heads as one axis, alike along heads that it lacks."""
        if not self.lead:
            return x
        whole = self.tape.expand(x, ("n", "b", *self.lead, *own))
        return self.tape.join(whole, ("n",), ("b", *self.lead), *((a,) for a in own))

    def result(self, *own: str) -> Value:
        """What the steps made, stacked."""
        each = self.tape.new(("n", "b", *self.lead, *own), True)
        made = self.tape.new(("n", "b", *self.lead, *own), True)
        return self.tape.order(self.tape.read(made, each), self.at.op.axes)

    def first(self) -> Value:
        """A state that is there before any token."""
        return self.tape.new(("b", *self.state))

    def states(self, *axes: str) -> Value:
        """One of each step, of the axes of the state or of others; of the step at work where none is kept."""
        steps = ("n",) if self.tape.grads else ()
        return self.tape.new((*steps, "b", *(axes or self.state)), True)


def _times(x: Value, y: Value, at: Passing) -> Value:
    """A product that spans the axes of both."""
    axes = ("n", "b", *(a for a in dict.fromkeys((*x.axes, *y.axes)) if a not in ("n", "b")))
    return at.tape.mul(x, y, axes)


def _steps(frame: Frame, decays: Value, rows: Value, columns: Value, read: Value, *held: Value) -> None:
    """Each step: the state times its decay, rows x columns onto it, a product with what reads it.

    What is `held` is there as long, for a caller's variables hold it.
    """
    tape = frame.tape
    if not tape.grads:
        _at_once(frame, frame.states(), decays, rows, columns, read, *held)
        return
    if decays.grad:
        tape.keep(frame.first())
    if tape.sizes["n"] > 1:  # the first step's state needs no gradient, so what it is multiplied with is not kept
        tape.keep(decays)
    tape.keep(*([columns] if rows.grad else []), *([rows] if columns.grad else []), read)
    tape.keep(frame.states())


def _at_once(frame: Frame, faded: Value, *given: Value) -> None:
    """What the last step has at hand where nothing is kept: the first state, which the caller holds, those before it,
    decayed and after, and what the steps so far gave.
    """
    tape = frame.tape
    done = tape.axis("done", tape.real["n"] - 1, tape.sizes["n"] - 1)
    found = tape.new(tuple(done if a == "n" else a for a in frame.at.op.axes))
    before = [frame.first(), *([frame.states()] if tape.sizes["n"] > 1 else [])]
    tape.read(frame.states(), found, faded, *before, *given)


@recurs("mamba2")
def mamba2(at: Passing, u: Value, t: Value, w: Value, r: Value) -> Value:
    """A decay a head, exp(-exp(A) t), and t u written at w, read at r."""
    frame, tape = Frame(at, 2), at.tape
    row, column = frame.own
    time = frame.given(t)
    if at.op.attr("least") is not None or at.op.attr("most") is not None:
        time = tape.unary(time)
    rate = tape.linear_in(tape.unary(at.weight(at.op.weights[0]), "result"))
    decays = frame.flat(tape.unary(_times(rate, time, at), "result"))
    rows = frame.flat(_times(frame.given(u, row), time, at), row)
    writes, reads = (frame.flat(frame.given(x, column), column) for x in (w, r))
    _steps(frame, decays, rows, writes, reads, time)
    return frame.result(row)


@recurs("mamba")
def mamba(at: Passing, u: Value, t: Value, w: Value, r: Value) -> Value:
    """A decay a channel and state element, exp(-exp(A) t), and t u written at w, read at r."""
    frame, tape = Frame(at, 2), at.tape
    row, column = frame.own
    time = frame.given(t, row)
    rows = frame.flat(_times(frame.given(u, row), time, at), row)
    spans = frame.flat(time, row)
    rate = tape.linear_in(tape.unary(at.weight(at.op.weights[0]), "result"))
    if frame.lead:
        rate = tape.new(("b", *frame.state), rate.grad)
    tape.keep(spans, *([rate] if spans.grad else []))
    writes, reads = (frame.flat(frame.given(x, column), column) for x in (w, r))
    decays = frame.states()  # exponentials of each step keep themselves
    tape.keep(decays)
    if tape.grads:
        _steps(frame, decays, rows, writes, reads)
    else:
        _at_once(frame, decays, spans, rate, rows, writes, reads)
    return frame.result(row)


@recurs("delta")
def delta(at: Passing, q: Value, k: Value, v: Value, w: Value, t: Value) -> Value:
    """What the state holds for a key is read, taken from the value, and the rest written there by a rate."""
    frame, tape = Frame(at, 2), at.tape
    row, column = frame.own
    inner = (row,) if row in t.axes else ()
    time = _times(tape.unary(at.weight(at.op.weights[0]), "result"), frame.given(t, *inner), at)
    logs = tape.linear_in(time if at.op.attr("floor") is None else tape.unary(time, "result"))
    decays = frame.flat(tape.unary(logs, "result"), *inner)
    q, k = frame.given(q, row), frame.given(k, row)
    if at.op.attr("unit") is not None:
        q, k = _unit(q, row, at), _unit(k, row, at)
    keys, values = frame.flat(k, row), frame.flat(frame.given(v, column), column)
    rates, queries = frame.flat(frame.given(w)), frame.flat(tape.linear_in(q), row)
    errors = (*frame.lead, column)
    if not tape.grads:
        _at_once(frame, frame.states(*errors), keys, values, rates, queries, decays, time, logs, q, k)
        return frame.result(column)
    tape.keep(frame.first(), *([decays] if tape.sizes["n"] > 1 else []))
    tape.keep(frame.states(), keys, frame.states(*errors), rates, frame.states(*errors), queries, frame.states())
    del values  # only taken from
    return frame.result(column)


def _unit(x: Value, over: str, at: Passing) -> Value:
    """x over its length."""
    rows = tuple(a for a in x.axes if a != over)
    at.tape.mul(x, x)
    return at.tape.mul(x, at.tape.unary(at.tape.new(rows, x.grad), "result"))


@recurs("linear")
def linear(at: Passing, q: Value, k: Value, v: Value) -> Value:
    """Keys times values summed under the decay of a head, read by queries."""
    frame, tape = Frame(at, 2), at.tape
    row, column = frame.own
    slope = at.weight(at.op.weights[0])
    logs = tape.linear_in(slope)
    decays = tape.read(tape.new(("b", *frame.lead), slope.grad), logs)
    if slope.grad:
        tape.keep(decays)
    keys, values = frame.flat(frame.given(k, row), row), frame.flat(frame.given(v, column), column)
    _steps(frame, decays, keys, values, frame.flat(frame.given(q, row), row), logs)
    return frame.result(column)


@recurs("lru")
def lru(at: Passing, u: Value, r: Value) -> Value:
    """h = a h + sqrt(1 - a^2) u, a = exp(-power r softplus(A)), each element alone."""
    frame, tape = Frame(at, 0), at.tape
    rate = tape.unary(at.weight(at.op.weights[0]))
    logs = _times(tape.linear_in(frame.given(r)), rate, at)
    scale = tape.unary(tape.linear_in(tape.unary(tape.linear_in(logs), "result")), "result")
    first = tape.new(("n",), dtype=FLAG)
    scale = tape.masked_fill(scale, first)
    decays = tape.unary(logs, "result")
    rows = _times(frame.given(u), scale, at)
    if not tape.grads:
        return tape.read(frame.result(), first, logs, scale, decays, rows)
    _alone(frame, decays)
    tape.keep(frame.states())
    return frame.result()


def _alone(frame: Frame, x: Value, last: bool = True) -> None:
    """One-by-one products of each step: a factor is copied where batch and channels are not one behind the other.

    The first step keeps none, for its state needs no gradient; the `last` is kept where its result is read.
    """
    tape = frame.tape
    if tape.joins(x, ("b", *frame.state)):
        if tape.sizes["n"] > 1:
            tape.keep(x)
        return
    often = tape.sizes["n"] - 1
    more = tape.axis("steps", tape.real["n"] - 1, often)
    if last:
        tape.keep(tape.new((more, "b", *frame.state)))
        return
    tape.keep(tape.new((tape.axis("read", tape.real["n"] - 2, max(0, often - 1)), "b", *frame.state)))
    tape.keep(tape.new(("b", *frame.state)), passing=True)


@saves("peak")
def peak(at: Passing, x: Value, f: Value | None = None) -> Value:
    """The largest so far: each step keeps both that it compares."""
    frame, tape = Frame(at, 0), at.tape
    if f is None:
        tape.unary(at.weight(at.op.weights[0]), "result")
    else:
        _log_sigmoid(frame.given(f), at)
    tape.keep(frame.states(), x)
    return tape.order(tape.new(("n", "b", *frame.lead, *frame.own), True), at.op.axes)


def _log_sigmoid(x: Value, at: Passing) -> Value:
    """What it is of is kept, and as much that it is computed with."""
    y = at.tape.new(x.axes, x.grad)
    if x.grad:
        at.tape.keep(x, at.tape.new(x.axes))
    return y


@recurs("mlstm")
def mlstm(at: Passing, *given: Value) -> Value:
    """Keys times values under gates, exponents less the largest so far; without values their normalizer."""
    tape, valued = at.tape, len(given) == 6
    frame = Frame(at, 2 if valued else 1)
    row = frame.own[0]
    q, k, *rest = given
    i, f, m = (frame.given(x) for x in rest[-3:])
    q, k = frame.given(q, row), frame.given(k, row)
    earlier = tape.new(("n", "b", *frame.lead), True)
    decays = frame.flat(tape.unary(tape.linear_in(_log_sigmoid(f, at), earlier, axes=earlier.axes), "result"))
    gates = frame.flat(tape.unary(tape.linear_in(i, m), "result"))
    queries, keys = frame.flat(tape.linear_in(q), row), frame.flat(k, row)
    values = gates
    if valued:
        column = frame.own[1]
        values = _times(frame.flat(frame.given(rest[0], column), column), gates, at)
    _steps(frame, decays, keys, values, queries, earlier, gates)
    if valued:
        return frame.result(frame.own[1])
    least = frame.flat(tape.unary(tape.linear_in(m), "result"))
    made = tape.new(("n", "b", *frame.lead), True)
    tape.keep(made, tape.new(made.axes), least)
    return frame.result()


@recurs("wkv")
def wkv(at: Passing, *given: Value) -> Value:
    """Values weighed by exp(k) under a decay, less the largest so far; without values the sum of weights."""
    frame, tape = Frame(at, 0), at.tape
    k, m = frame.given(given[0]), frame.given(given[-1])
    decay, first = (at.weight(weight) for weight in at.op.weights)
    axes = ("n", "b", *frame.state)
    earlier = tape.new(axes, True)
    bonus = tape.linear_in(k, first, axes=axes)
    tape.keep(earlier, bonus)
    most = tape.pointwise(earlier, bonus)
    old = tape.unary(tape.linear_in(earlier, most), "result")
    new = tape.unary(tape.linear_in(bonus, most), "result")
    rate = tape.linear_in(tape.unary(decay, "result"))
    fade = tape.unary(tape.linear_in(tape.linear_in(tape.expand(rate, axes), earlier), m), "result")
    added = tape.unary(tape.linear_in(k, m), "result")
    if len(given) == 3:
        v = frame.given(given[1])
        new, added = tape.mul(new, v), tape.mul(added, v)
    if not tape.grads:
        state = frame.states()
        return tape.read(frame.result(), state, earlier, bonus, most, old, new, fade, added)
    tape.keep(frame.states())
    _alone(frame, old)
    _alone(frame, fade, last=False)
    return frame.result()


# --- convolutions ---


@saves("conv")
def conv(at: Passing, x: Value, more: Value | None = None) -> Value:
    """What is convolved is padded first, and kept so; with taps of a token's own, both sides of the products are."""
    op, tape = at.op, at.tape
    weight = op.weights[0]
    (column,) = [a for a in weight.axes if a not in x.axes and a not in op.axes]
    mixed = tuple(a for a in weight.axes if a in x.axes and a not in op.axes)
    apart = tuple(a for a in weight.axes if a in x.axes and a in op.axes)
    results = (*apart, *(a for a in weight.axes if a not in x.axes and a != column))
    kernel = at.weight(weight, results, mixed, (column,)) if mixed else at.weight(weight, results, (column,))
    if op.attr("order") == "back":
        kernel = tape.new(kernel.axes, kernel.grad)
    past = at.sizes[column] - 1
    longer = tape.axis("padded", tape.real["n"] + tape.real[column] - 1, tape.sizes["n"] + past)
    padded = tape.new(("b", *apart, *mixed, longer), x.grad)
    if more is not None:
        both = ("b", "n", *apart, column)
        tape.keep(tape.new(both), tape.new(both))
        return tape.order(tape.new(("b", "n", *results), True), op.axes)
    tape.keep(*([padded] if kernel.grad else []), *([kernel] if x.grad else []))
    return tape.order(tape.read(tape.new(("b", *results, "n"), True), padded), op.axes)


@saves("shift")
def shift(at: Passing, x: Value) -> Value:
    """Behind a token of zeros."""
    return at.tape.cat(at.op.axes, at.tape.beside(x, at.op.axes))
