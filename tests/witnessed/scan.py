"""Recurrences and convolutions, by hand."""

from __future__ import annotations

from witnessed.base import BND, B, D, G, K, N, S, T, Witness

WITNESSES = (
    Witness(
        "y = scan(x[b n g k], z[b n s], state=('g', 'k', 's'), reads=2) -> [b n g k]",
        work={"multiply_add": 3 * B * N * G * K * S, "multiply": B * N * G * K * S},
        reads=B * N * G * K + B * N * S,
        writes=B * N * G * K,
        state=B * G * K * S,
        misfits=(
            "y = scan(x[b n g k]) -> [b n g k]",
            "y = scan(x[b n g k], state=f) -> [b n g k]",
            "y = scan(x[b n g k], state=k, reads=many) -> [b n g k]",
            "y = scan(x[b n g k], state=k) -> [b n d]",
        ),
    ),
    Witness(
        "y = shift(x[b n d]) -> [b n d]",
        reads=BND,
        writes=BND,
        state=B * D,
        misfits=("y = shift(x[b n d]) -> [b n f]", "y = shift(x[b n d], z[b n d]) -> [b n d]"),
    ),
    Witness(
        "y = peak(x[b n g], state=g) -> [b n g]",
        work={"add": B * N * G, "compare": B * N * G},
        reads=B * N * G,
        writes=B * N * G,
        state=B * G,
        misfits=("y = peak(x[b n g]) -> [b n g]", "y = peak(x[b n g], state=f) -> [b n g]"),
    ),
    Witness(
        "y = conv(x[b n d], Wc[d t], Bc[d]) -> [b n d]",
        work={"multiply_add": BND * T, "start": BND, "add": BND},
        reads=BND,
        weighs=D * T + D,
        writes=BND,
        state=B * D * T,
        layout={"Wc": ("d", "1", "t"), "Bc": ("d",)},
        misfits=(
            "y = conv(x[b n d]) -> [b n d]",
            "y = conv(x[b n d], Wc[d t]) -> [b n f]",
            "y = conv(x[b n d], Wc[d]) -> [b n d]",
        ),
    ),
    Witness(
        "y = conv(x[b n g k], Wc[g s k t], Bc[g s], held=past) -> [b n g s]",
        work={"multiply_add": B * N * G * K * S * T, "start": B * N * G * S, "add": B * N * G * S},
        reads=B * N * G * K,
        weighs=G * S * K * T + G * S,
        writes=B * N * G * S,
        state=B * G * K * (T - 1),
        layout={"Wc": ("(g s)", "k", "t"), "Bc": ("(g s)",)},
        misfits=(
            "y = conv(x[b n g k], Wc[g s k t], held=all) -> [b n g s]",
            "y = conv(x[b n g k], Wc[g s t]) -> [b n g s]",
            "y = conv(x[b n g k], Wc[g s k t], Bc[f]) -> [b n g s]",
        ),
    ),
    Witness(
        "y = conv(x[b n g k], Wc[g k t], z[b n g t], order=back) -> [b n g k]",
        work={"multiply_add": B * N * G * K * T, "start": B * N * G * K},
        reads=B * N * G * K + B * N * G * T,
        weighs=G * K * T,
        writes=B * N * G * K,
        state=B * G * K * T,
        layout={"Wc": ("(g k)", "1", "t")},
        misfits=(
            "y = conv(x[b n g k], Wc[g k t], z[b n f t]) -> [b n g k]",
            "y = conv(x[b n g k], Wc[g k t], z[b n g t], order=forth) -> [b n g k]",
        ),
    ),
    Witness(
        "y = scan(x[b n d], z[b n d], state=d, reads=0) -> [b n d]",
        work={"multiply_add": BND, "multiply": BND},
        reads=2 * BND,
        writes=BND,
        state=B * D,
    ),
    Witness(
        "y = peak(x[b n d], z[b n d], state=d) -> [b n d]",
        work={"add": BND, "compare": BND},
        reads=2 * BND,
        writes=BND,
        state=B * D,
        misfits=("y = peak(x[b n d], state=f) -> [b n d]", "y = peak(x[b n d], state=d) -> [b n]"),
    ),
    Witness(
        "y = shift(x[b n d]) -> [b n d]",
        reads=BND,
        writes=BND,
        state=B * D,
        misfits=("y = shift(x[b n d], z[b n d]) -> [b n d]", "y = shift(x[b n d]) -> [b n f]"),
    ),
)
