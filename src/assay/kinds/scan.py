"""Recurrences over tokens: short causal convolutions and scans with a state of fixed size.

A scan is counted in its recurrent form, whatever chunks an implementation works in: each token updates every
element of the state once and reads it out `reads` times, one multiply-add each (Dao & Gu 2024; Yang et al. 2024).
"""

from __future__ import annotations

from functools import lru_cache

from assay.kinds.base import Extent, Kind, Work, dimension, expect, flat, register, same_axes, union
from assay.size import Size, is_integer
from assay.spec import Axes, Op

# a second activation of a convolution is taps that each token adds to the kernel; `order` is back where the first
# column meets the token itself, not the last
# `before` of a convolution or shift names a weight, of what stands before the first token; zeros where it is left out

# of a rule: what queries are scaled by, the eps of vectors brought to length one, bounds of a time step, the least
# logarithm of a decay, the power of one, the eps of a normalizer
CONSTANTS = ("scale", "unit", "least", "most", "floor", "power", "eps")


def _state_axes(op: Op) -> Axes:
    named = op.attr("state")
    expect(op, named is not None, "scan names the axes of its state: state=(h, p, s)")
    return (named,) if isinstance(named, str) else tuple(named)


def _check_scan(op: Op) -> None:
    known = {a for t in op.inputs for a in t.axes}
    expect(op, len(op.activations) >= 1, "scan takes at least one tensor of tokens")
    expect(op, set(_state_axes(op)) <= known, "every axis of the state is one of an operand")
    expect(op, set(op.axes) <= known, f"[{' '.join(op.axes)}] has an axis that no operand has")
    expect(op, is_integer(op.attr("reads", 1)), "reads is how often a token reads the state")


def _spanned(op: Op) -> Axes:
    """Tokens and state: the axes that every operand of tokens shares, and those of the state."""
    x = op.activations[0].axes
    state = _state_axes(op)
    tokens = [a for a in x if all(a in t.axes for t in op.activations) and a not in state]
    return (*tokens, *state)


def _scan(op: Op, extent: Extent) -> Work:
    elements = extent(_spanned(op))
    return {"multiply_add": (1 + op.attr("reads", 1)) * elements, "multiply": elements}


def _scan_state(op: Op, extent: Extent) -> Size:
    return extent(("b", *_state_axes(op)))


def _check_peak(op: Op) -> None:
    expect(op, len(op.activations) >= 1, "peak takes at least one tensor of tokens")
    expect(op, set(_state_axes(op)) <= set(op.axes), "every axis of the state is one of the result")
    same_axes(op)


def _peak(op: Op, extent: Extent) -> Work:
    """The one so far less its decay, and the larger of it and the new one."""
    elements = extent(op.axes)
    return {"add": elements, "compare": elements}


@lru_cache(maxsize=4096)
def _columns(op: Op) -> Axes:
    """The axis of a kernel's columns: neither a channel that it reads nor one that it makes."""
    known = {*op.axes, *op.inputs[0].axes}
    return tuple(a for a in op.weights[0].axes if a not in known)


def _check_conv(op: Op) -> None:
    weights = op.weights
    given = len(op.activations)
    expect(op, 1 <= given <= 2 and 1 <= len(weights) <= 2, "conv takes x, a kernel and perhaps a bias, or taps")
    known = {a for t in op.inputs[:2] for a in t.axes}
    expect(op, set(op.axes) <= known, f"[{' '.join(op.axes)}] has an axis that no operand has")
    lost = set(op.inputs[0].axes) - set(op.axes)
    expect(op, lost <= set(weights[0].axes), "conv keeps the axes of x but for channels that it mixes")
    expect(op, len(_columns(op)) == 1, f"{weights[0]} has one axis of its own: the kernel's columns")
    for bias in weights[1:]:
        expect(op, set(bias.axes) <= set(op.axes), f"the bias {bias} has an axis that the result lacks")
    for taps in op.activations[1:]:
        spanned = {*op.inputs[0].axes, *_columns(op)}
        expect(op, set(taps.axes) <= spanned, f"the taps {taps} have an axis that neither x nor the kernel has")
    expect(op, op.attr("order", "back") == "back", "order is back or left out")
    expect(op, op.attr("held", "kernel") in ("kernel", "past"), "held is kernel or past")


def _conv(op: Op, extent: Extent) -> Work:
    work: Work = {"multiply_add": extent(union(op)), "start": extent(op.axes)}
    if len(op.weights) > 1:
        work["add"] = work["start"]
    return work


def _conv_layout(op: Op, axes: Axes) -> tuple[str, ...]:
    """Channels made, channels mixed (one where a channel has a kernel of its own), kernel: as nn.Conv1d keeps it."""
    if axes != op.weights[0].axes:
        return flat(op, axes)
    columns = _columns(op)
    made = [a for a in axes if a in op.axes]
    return (dimension(made), dimension(a for a in axes if a not in made and a not in columns), *columns)


def _conv_state(op: Op, extent: Extent) -> Size:
    """As many columns as the kernel has, or those before the present one."""
    columns = extent(_columns(op)) - (1 if op.attr("held", "kernel") == "past" else 0)
    channels = [a for a in op.inputs[0].axes if a in op.weights[0].axes]
    return columns * extent(("b", *channels))


def _check_shift(op: Op) -> None:
    expect(op, len(op.inputs) == 1, "shift takes one tensor")
    same_axes(op)


def _shift_state(op: Op, extent: Extent) -> Size:
    """The last token."""
    return extent(a for a in op.axes if a != "n")


register(
    Kind(
        "scan",
        "a state of fixed size, updated and read by each token in turn",
        _check_scan,
        _scan,
        state=_scan_state,
        kept="state",
        contracts=True,
        attrs=("state", "reads", "rule", *CONSTANTS),
    ),
    Kind(
        "conv",
        "a kernel over the last few tokens, of each channel or of all in a group",
        _check_conv,
        _conv,
        state=_conv_state,
        layout=_conv_layout,
        contracts=True,
        attrs=("held", "before", "order"),
    ),
    Kind("shift", "the token before", _check_shift, state=_shift_state, attrs=("before",)),
    Kind(
        "peak",
        "the largest so far, each step less a decay",
        _check_peak,
        _peak,
        state=_scan_state,
        kept="state",
        attrs=("state", "start"),
    ),
)
