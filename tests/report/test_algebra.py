"""Formulas as people write them: cases with when each holds, bounds without those that follow from others."""

from __future__ import annotations

import pytest

sympy = pytest.importorskip("sympy")

from assay.readings.explain import derive  # noqa: E402
from assay.readings.letters import Bound, binding  # noqa: E402
from assay.report.algebra import LATEX, write  # noqa: E402
from assay.sources.huggingface import read_config  # noqa: E402

n, w, c = sympy.symbols("n w c", integer=True, positive=True)


def test_cases_say_when_each_holds() -> None:
    made = sympy.Piecewise((n**2, sympy.Eq(sympy.Max(0, n - 2 * w), 0)), (n * w, True))
    assert write(made) == "(n² if n ≤ 2w, else nw)"
    assert write(made, LATEX) == r"\begin{cases} n^{2} & n \le 2 w \\ n w & \text{else} \end{cases}"
    assert write(sympy.Piecewise((n, sympy.Eq(c, n)), (c, True))) == "(n if c = n, else c)"


def test_a_bound_that_follows_from_another_is_left_out() -> None:
    assert binding([Bound(w, n), Bound(w + 1, n), Bound(n, c)]) == (Bound(w + 1, n), Bound(n, c))
    assert binding([Bound(w + 1, n), Bound(w, n)]) == (Bound(w + 1, n),)


def test_what_is_past_is_decided_where_something_is() -> None:
    """A first pass that puts 32 positions before a prompt is no case of a later one."""
    model = read_config({"model_type": "cpmant"}, "config", "model")
    made = derive(model, "flops", convention="causal", past=900)
    assert not made.formula.has(sympy.Piecewise)
    assert not any(letter.definition.has(sympy.Piecewise) for letter in made.legend if letter.definition is not None)
