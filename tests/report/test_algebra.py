"""Formulas as text and LaTeX."""

from __future__ import annotations

from typing import Any

import pytest

from assay.readings.explain import derive
from assay.readings.letters import Bound, binding
from assay.report.algebra import LATEX, Script, quotient, write
from assay.sources.huggingface import read_config

sympy = pytest.importorskip("sympy")

NAMES = "L b n c d h g r k v f w V frames pairs_1 f_2 L_1".split()
S = {name: sympy.Symbol(name, positive=True, integer=True) for name in NAMES}


def made(text: str) -> Any:
    return sympy.sympify(text, locals={**S, "Min": sympy.Min, "floor": sympy.floor})


@pytest.mark.parametrize(
    ("formula", "text", "latex"),
    [
        ("4*n**2*d + 8*n*d**2", "8nd² + 4n²d", "8 n d^{2} + 4 n^{2} d"),
        ("13*d + 12*d**2", "12d² + 13d", "12 d^{2} + 13 d"),
        ("2*d*n*V", "2nVd", "2 n V d"),
        ("d*f_2*3", "3df₂", "3 d f_{2}"),
        ("2*frames*g*k", "2frames·gk", r"2 \mathit{frames} \, g \, k"),
        ("n*d - n*h", "nd − nh", "n d - n h"),
        ("-n + 3", "−n + 3", "-n + 3"),
        ("n**2/2 + n/2", "n²/2 + n/2", r"\frac{n^{2}}{2} + \frac{n}{2}"),
        ("V/(2*L)", "V/(2L)", r"\frac{V}{2 L}"),
        ("Min(n, w)*d", "d·min(n, w)", r"d \min(n, w)"),
        ("floor(n/w)*d", "d·⌊n/w⌋", r"d \left\lfloor \frac{n}{w} \right\rfloor"),
        ("-d*floor(-n/w)", "d·⌈n/w⌉", r"d \left\lceil \frac{n}{w} \right\rceil"),
        ("0", "0", "0"),
        ("1234567", "1,234,567", "1{,}234{,}567"),
    ],
)
def test_formulas(formula: str, text: str, latex: str) -> None:
    assert write(made(formula)) == text
    assert write(made(formula), LATEX) == latex


def test_numbers_in_the_place_of_letters() -> None:
    script = Script(values={S["n"]: 2048, S["d"]: 4096, S["h"]: 1})
    assert write(made("2*n**2*d - n*h"), script) == "2 × 2,048² × 4,096 − 2,048 × 1"


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("2*L*d/(L + 1)", "2Ld/(L + 1)"),
        ("(V + 2*d)/(2*h*(k + v))", "(V + 2d)/(2h(k + v))"),
        ("3*f/2 - d", "3f/2 − d"),
    ],
)
def test_quotients(formula: str, text: str) -> None:
    assert quotient(made(formula)) == text


def test_cases_say_when_each_holds() -> None:
    n, w, c = S["n"], S["w"], S["c"]
    cases = sympy.Piecewise((n**2, sympy.Eq(sympy.Max(0, n - 2 * w), 0)), (n * w, True))
    assert write(cases) == "(n² if n ≤ 2w, else nw)"
    assert write(cases, LATEX) == r"\begin{cases} n^{2} & n \le 2 w \\ n w & \text{else} \end{cases}"
    assert write(sympy.Piecewise((n, sympy.Eq(c, n)), (c, True))) == "(n if c = n, else c)"


def test_a_bound_that_follows_from_another_is_left_out() -> None:
    n, w, c = S["n"], S["w"], S["c"]
    assert binding([Bound(w, n), Bound(w + 1, n), Bound(n, c)]) == (Bound(w + 1, n), Bound(n, c))
    assert binding([Bound(w + 1, n), Bound(w, n)]) == (Bound(w + 1, n),)


def test_what_is_past_is_decided_where_something_is() -> None:
    """A first pass that puts 32 positions before a prompt is no case of a later one."""
    model = read_config({"model_type": "cpmant"}, "config", "model")
    made = derive(model, "flops", convention="causal", past=900)
    assert not made.formula.has(sympy.Piecewise)
    assert not any(letter.definition.has(sympy.Piecewise) for letter in made.legend if letter.definition is not None)
