"""Renaming, picking, joining, and what a pass keeps for the next, which training has not."""

from __future__ import annotations

from assay.kinds.base import traded
from assay.kinds.compress import slots_of
from assay.kinds.training.contractions import everything
from assay.kinds.training.passing import Passing
from assay.kinds.training.rows import saves
from assay.kinds.training.values import FLAG, INDEX, WIDE, Value, width_of
from assay.size import Size, minimum, product


@saves("rename", "view", "keys", "reuse", "keep", "collect", "distances")
def same(at: Passing, *given: Value) -> Value:
    """The same elements, of a weight too; an axis may have another name."""
    (x,) = everything(at, given)
    return at.tape.rename(x, at.op.axes)


@saves("append")
def append(at: Passing, x: Value) -> Value:
    """Behind what earlier passes kept, of which there is none in training."""
    op, tape = at.op, at.tape
    queries, keys = traded(op)
    y = tape.rename(x, op.axes)
    if tape.cache is None:
        return y
    held = at.sizes[keys] - at.sizes[queries]
    row = product(tape.real[a] for a in op.axes if a != keys)
    width = width_of(tape.cache.dtype)
    window = at.value("window") if op.attr("window") is not None else at.value("chunk")
    if not tape.cache.grown:
        room = tape.held(op.axes, tape.cache.dtype) if window is None else minimum(window, at.sizes[keys]) * row * width
        kept = tape.given(op.axes, tape.cache.dtype)
        kept.store.bytes = room
        tape.leave(kept.store)
        kept.dtype = x.dtype  # a kernel reads it as it is
        return kept if held else y
    if held or tape.cache.copied:
        y = tape.read(tape.new(op.axes, x.grad, x.dtype), x)
    kept = y if tape.cache.dtype == x.dtype else tape.cast(y, tape.cache.dtype)
    if window is not None and at.sizes[keys] > window:
        last = tape.axis("kept", window - 1, window - 1)
        kept = tape.read(tape.new(tuple(last if a == keys else a for a in op.axes), dtype=kept.dtype), kept)
    tape.leave(kept.store, before=held * row * width)
    return y


@saves("hold")
def hold(at: Passing, x: Value) -> Value:
    """Of the source, as it was made in the first pass."""
    tape = at.tape
    y = tape.rename(x, at.op.axes)
    if tape.cache is not None:
        tape.leave(y.store)
    return y


@saves("slice")
def slice_(at: Passing, *given: Value) -> Value:
    """A part along one axis, of a weight too."""
    (x,) = everything(at, given)
    return at.tape.rename(x, at.op.axes)


@saves("first")
def first(at: Passing, x: Value) -> Value:
    """One along an axis; where each text has another, they are looked up by two indices."""
    tape = at.tape
    if at.op.attr("token") is None:
        return tape.drop(x, *(a for a in x.axes if a not in at.op.axes))
    if x.grad:
        tape.keep(*(tape.new(x.axes[:1], dtype=INDEX) for _ in range(2)))
    return tape.new(at.op.axes, x.grad, x.dtype)


@saves("repeat")
def repeat(at: Passing, *given: Value) -> Value:
    """The same along further axes: none of it is copied."""
    (x,) = everything(at, given)
    return at.tape.expand(x, at.op.axes)


@saves("concat")
def concat(at: Passing, *given: Value) -> Value:
    """Behind each other in a tensor of its own."""
    return at.tape.cat(at.op.axes, *everything(at, given))


@saves("take")
def take(at: Passing, *given: Value) -> Value:
    """Values at an index along the last axis, of a weight too."""
    x, index = everything(at, given)
    return at.tape.gather(x, index, at.op.axes)


@saves("idle")
def idle(at: Passing) -> Value:
    """Stored, and not used."""
    return at.weight(at.op.weights[0])


@saves("behind")
def behind(at: Passing, x: Value) -> Value:
    """Looked up by distance, and none where it is beyond: index and mask are of all layers that look as far."""
    op, tape = at.op, at.tape
    profile, keys = x.axes[-1], next(a for a in op.axes if a not in x.axes)
    x = tape.order(x, (*op.axes[:-1], profile))
    windows = tuple(at.sizes.get(w, w) for one in at.makers(keys) if (w := one.attr("window")) is not None)
    shape, key = ("n", keys), ("behind", at.sizes[profile], windows, tuple(a in ("n", keys) for a in op.axes))
    index = tape.once(key, lambda: tape.new(shape, dtype=INDEX))
    beyond = tape.once((*key, "beyond"), lambda: tape.new(shape, dtype=FLAG))
    return tape.masked_fill(tape.gather(x, index, op.axes), beyond)


@saves("pool")
def pool(at: Passing, v: Value, g: Value) -> Value:
    """Values times a softmax of gates; where windows overlap, both are joined with those of the window before."""
    op, tape = at.op, at.tape
    _, slots, halves = slots_of(op)
    made = next(a for a in op.axes if a not in v.axes)
    width = v.axes[-1]
    bias = at.weight(op.weights[0])
    grad = g.grad or bias.grad
    axes = ("b", made, slots, *halves, width) if halves and at.sizes[made] else ("b", made, slots, width)
    shares = tape.cast(tape.softmax(tape.new(axes, grad, WIDE.get(g.dtype, g.dtype))), v.dtype)
    values = tape.new(axes, v.grad, v.dtype) if halves and at.sizes[made] else v
    tape.keep(*([values] if shares.grad else []), *([shares] if v.grad else []))
    return tape.order(tape.new(("b", made, width), True, v.dtype), op.axes)


@saves("reshape")
def reshape(at: Passing, x: Value) -> Value:
    """The same elements, copied where they do not lie evenly."""
    return at.tape.reshape(x, at.op.axes)


@saves("unfold")
def unfold(at: Passing, x: Value) -> Value:
    """Windows of what is padded first; turned round they are copied."""
    count = at.op.axes[-1]
    padded = _padded(at, x, x.axes[1], at.tape.real[count] - 1, at.sizes[count] - 1)
    y = at.tape.unfold(padded, x.axes[1], at.op.axes, 1)
    return at.tape.new(at.op.axes, x.grad, x.dtype) if at.op.attr("order") == "back" else y


@saves("columns")
def columns(at: Passing, x: Value) -> Value:
    """Windows that may lie further apart."""
    along = next((a for a, b in zip(x.axes, at.op.axes, strict=False) if a != b), x.axes[1])
    if at.op.attr("order") == "squares":
        b, made, d, kernel = at.op.axes
        return at.tape.order(at.tape.new((b, made, kernel, d), x.grad, x.dtype), at.op.axes)
    pad = at.value("pad") or 0
    padded = _padded(at, x, along, 2 * pad, 2 * pad) if pad else x
    return at.tape.unfold(padded, along, at.op.axes, at.value("stride", 1))


def _padded(at: Passing, x: Value, axis: str, more: Size, shown: int) -> Value:
    """A tensor that is longer along one axis."""
    tape = at.tape
    longer = tape.axis("longer", tape.real[axis] + more, tape.sizes[axis] + shown)
    return tape.new(tuple(longer if a == axis else a for a in x.axes), x.grad, x.dtype).called(x.axes)
