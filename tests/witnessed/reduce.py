"""Ops over an axis, by hand."""

from __future__ import annotations

from witnessed.base import BND, KEYS, SCORES, A, B, D, E, G, K, M, N, R, S, V, Witness

WITNESSES = (
    Witness(
        "p = softmax(s[b g r n c], Sinks[g r]) -> [b g r n c]",
        work={
            "exp": SCORES + B * G * R * N,
            "add": SCORES,
            "divide": SCORES,
            "softmax": SCORES,
        },
        reads=SCORES,
        weighs=G * R,
        writes=SCORES,
        layout={"Sinks": ("(g r)",)},
        after=KEYS,
        misfits=(
            "p = softmax(s[b n], z[b n]) -> [b n]",
            "p = softmax(s[b n]) -> [b d]",
            "p = softmax(s[b n], over=d) -> [b n]",
        ),
    ),
    Witness(
        "p = softmax(l[b n e]) -> [b n e]",
        work={"exp": B * N * E, "add": B * N * E - B * N, "divide": B * N * E},
        reads=B * N * E,
        writes=B * N * E,
    ),
    Witness(
        "y = rmsnorm(x[b n d], G1[d]) -> [b n d]",
        work={"multiply": 3 * BND, "add": BND, "divide": 2 * B * N, "root": B * N},
        reads=BND,
        weighs=D,
        writes=BND,
        layout={"G1": ("d",)},
        misfits=(
            "y = rmsnorm(x[b n d], G1[f]) -> [b n d]",
            "y = rmsnorm(x[b n d], z[b n d]) -> [b n d]",
            "y = rmsnorm(x[b n d]) -> [b n f]",
        ),
    ),
    Witness(
        "q = rmsnorm(q[b n g r k], Gq[g r k], over=('g', 'r', 'k')) -> [b n g r k]",
        work={"multiply": 3 * B * N * G * R * K, "add": B * N * G * R * K, "divide": 2 * B * N, "root": B * N},
        reads=B * N * G * R * K,
        weighs=G * R * K,
        writes=B * N * G * R * K,
        layout={"Gq": ("(g r k)",)},
    ),
    Witness(
        "y = layernorm(x[b n d], G1[d], B1[d]) -> [b n d]",
        work={"multiply": 3 * BND, "add": 4 * BND - B * N, "divide": 3 * B * N, "root": B * N},
        reads=BND,
        weighs=2 * D,
        writes=BND,
        layout={"G1": ("d",), "B1": ("d",)},
        misfits=("y = layernorm(x[b n d], G1[f]) -> [b n d]", "y = layernorm(x[b n d]) -> [b n]"),
    ),
    Witness(
        "y = layernorm(x[b n d]) -> [b n d]",
        work={"multiply": 2 * BND, "add": 3 * BND - B * N, "divide": 3 * B * N, "root": B * N},
        reads=BND,
        writes=BND,
    ),
    Witness(
        "y = running_norm(x[b n d], G1[d], along=n) -> [b n d]",
        # sums of n x d numbers and of as many squares, differences, what keeps the deviation from zero
        work={"multiply": 3 * BND, "add": 2 * (BND - B) + BND + B * N, "divide": 3 * B * N, "root": B * N},
        reads=BND,
        weighs=D,
        writes=BND,
        layout={"G1": ("d",)},
        misfits=("y = running_norm(x[b n d], G1[d]) -> [b n d]", "y = running_norm(x[b n d], along=d) -> [b n d]"),
    ),
    Witness(
        "y = sum(x[b n d]) -> [b n]",
        work={"add": BND - B * N},
        reads=BND,
        writes=B * N,
        misfits=("y = sum(x[b n d]) -> [b n d]", "y = sum(x[b n d], z[b n d]) -> [b n]"),
    ),
    Witness(
        "y = mean(x[b n d]) -> [b n]",
        work={"add": BND - B * N, "divide": B * N},
        reads=BND,
        writes=B * N,
        misfits=("y = mean(x[b n d]) -> [b n d]",),
    ),
    Witness(
        "y = blocks(x[b m d], block=2) -> [b i d]",
        work={"add": B * M * D - B * (M // 2) * D},
        reads=B * M * D,
        writes=B * (M // 2) * D,
        misfits=("y = blocks(x[b m d], block=2) -> [b m d]",),
    ),
    Witness(
        "y = rms(x[b n d]) -> [b n]",
        work={"multiply": BND, "add": BND - B * N, "divide": B * N, "root": B * N},
        reads=BND,
        writes=B * N,
        misfits=("y = rms(x[b n d]) -> [b n d]",),
    ),
    Witness(  # squares, their sum and a small number, the root, the share of the limit, at most one, times the row
        "y = shorten(x[b n d], limit=8.0) -> [b n d]",
        work={"multiply": 2 * BND, "add": BND, "root": B * N, "divide": B * N, "compare": B * N},
        reads=BND,
        writes=BND,
        misfits=("y = shorten(x[b n d]) -> [b n f]",),
    ),
    Witness(
        "y = sparsify(x[b n d], share=0.95) -> [b n d]",
        work={
            "add": 4 * BND - B * N,
            "multiply": BND + B * N,
            "divide": 2 * B * N,
            "root": B * N,
            "compare": BND,
        },
        reads=BND,
        writes=BND,
        misfits=("y = sparsify(x[b n d]) -> [b n f]",),
    ),
    Witness(
        "w = normalize(w[b n a]) -> [b n a]",
        work={"add": B * N * A - B * N, "divide": B * N * A},
        reads=B * N * A,
        writes=B * N * A,
        misfits=("w = normalize(w[b n a]) -> [b n e]", "w = normalize(w[b n a], over=d) -> [b n a]"),
    ),
    Witness(  # over columns, rows, columns
        "y = sinkhorn(x[b n d], times=2) -> [b n d]",
        work={"divide": 3 * BND, "add": 3 * BND - B * N - 2 * B * D},
        reads=BND,
        writes=BND,
        misfits=("y = sinkhorn(x[d]) -> [d]", "y = sinkhorn(x[b n d]) -> [b n f]"),
    ),
    Witness(
        "w = near_softmax(l[b n e], i[b n a]) -> [b n a]",
        work={
            "add": 2 * B * N * E * A - B * N * A,
            "divide": 2 * B * N * E * A,
            "compare": 2 * B * N * E * A,
            "exp": B * N * E * A,
        },
        reads=B * N * E + B * N * A,
        writes=B * N * A,
        misfits=("w = near_softmax(l[b n e]) -> [b n e]", "w = near_softmax(l[b n e], i[b n a]) -> [b n e]"),
    ),
    Witness(
        "s = differential(Q1[k], K1[k], Q2[k], K2[k]) -> [s]",
        work={"multiply": 2 * K + 1, "add": 2 * K, "exp": 2},
        weighs=4 * K,
        writes=S,
        layout={"Q1": ("k",), "K1": ("k",), "Q2": ("k",), "K2": ("k",)},
        misfits=(
            "s = differential(Q1[k], K1[k]) -> [s]",
            "s = differential(Q1[k], K1[k], Q2[k], K2[d]) -> [s]",
            "s = differential(q[k], K1[k], Q2[k], K2[k]) -> [s]",
        ),
    ),
    Witness(
        "i = topk(l[b n e]) -> [b n a]",
        work={"compare": B * N * E * E},  # 29 of 23: no more are found than there are
        reads=B * N * E,
        writes=B * N * A,
        misfits=("i = topk(l[b n e]) -> [b n e]", "i = topk(l[b n e], z[e]) -> [b n a]"),
    ),
    Witness(
        "i = topk(l[b n V]) -> [b n a]",
        work={"compare": B * N * V * A},
        reads=B * N * V,
        writes=B * N * A,
    ),
)
