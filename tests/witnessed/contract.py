"""Products of matrices, and attention as one op, by hand."""

from __future__ import annotations

from witnessed.base import BND, KEYS, SCORES, A, B, C, D, E, F, G, K, N, R, Witness

WITNESSES = (
    Witness(
        "s = contract(q[b n g r k], k0[b c g k]) -> [b g r n c]",
        work={"multiply_add": SCORES * K, "start": SCORES},
        reads=B * N * G * R * K + B * C * G * K,
        writes=SCORES,
        after=KEYS,
        misfits=(
            "s = contract(q[b n k]) -> [b n]",
            "s = contract(q[b n k], k[b c k]) -> [b n d]",
            "s = contract(q[b n k], k[b c k], z[b d]) -> [b n c]",
        ),
    ),
    Witness(  # scores, their softmax, the values' sum: what the three cost by themselves
        """o = attend(q[b n g r k], k0[b c g k], x[b c g f], of=(\
's = contract(q[b n g r k], k0[b c g k]) -> [b g r n c]', \
'p = softmax(s[b g r n c]) -> [b g r n c]', 'o = contract(p[b g r n c], x[b c g f]) -> [b n g r f]')) \
-> [b n g r f]""",
        work={
            "multiply_add": SCORES * K + SCORES * F,
            "start": SCORES + B * N * G * R * F,
            "exp": SCORES,
            "add": SCORES - B * G * R * N,
            "divide": SCORES,
            "softmax": SCORES,
        },
        reads=B * N * G * R * K + B * C * G * K + B * C * G * F,
        writes=B * N * G * R * F,
        after=KEYS,
        misfits=(
            "o = attend(q[b n k], k[b c k], x[b c f]) -> [b n f]",
            "o = attend(q[b n k], k[b c k], of=('o = contract(q[b n k], k[b c k]) -> [b n c]',)) -> [b n c]",
            "o = attend(q[b n k], k[b c k], x[b c f], of=('o = contract(q[b n k], k[b c k]) -> [b n c]',)) -> [b n f]",
        ),
    ),
    Witness(
        "y = linear(x[b n d], Wq[d g r k], Bq[g r k]) -> [b n g r k]",
        work={"multiply_add": BND * G * R * K, "start": B * N * G * R * K, "add": B * N * G * R * K},
        reads=BND,
        weighs=D * G * R * K + G * R * K,
        writes=B * N * G * R * K,
        layout={"Wq": ("(g r k)", "d"), "Bq": ("(g r k)",)},
        misfits=(
            "y = linear(x[b n d]) -> [b n f]",
            "y = linear(x[b n d], z[d f]) -> [b n f]",
            "y = linear(x[b n d], W[d f]) -> [b n g]",
            "y = linear(x[b n d], W[e f]) -> [b n f]",
            "y = linear(x[b n d], W[d f], B1[g]) -> [b n f]",
        ),
    ),
    Witness(
        "y = linear(x[b n f], Wd[f d]) -> [b n d]",
        work={"multiply_add": BND * F, "start": BND},
        reads=B * N * F,
        weighs=F * D,
        writes=BND,
        layout={"Wd": ("d", "f")},
    ),
    Witness(  # a weight that stays beside the tokens: the summed axis is d alone
        "z = linear(x[b n d], Ws[d]) -> [b n]",
        work={"multiply_add": BND, "start": B * N},
        reads=BND,
        weighs=D,
        writes=B * N,
        layout={"Ws": ("1", "d")},
    ),
    Witness(
        "u = select(x[b n d], Eu[e d f], Eu_bias[e f], i[b n a]) -> [b n a f]",
        work={"multiply_add": BND * A * F, "start": B * N * A * F, "add": B * N * A * F},
        reads=BND + B * N * A,
        weighs=E * D * F + E * F,  # 174 choices of 23 experts touch them all
        writes=B * N * A * F,
        active=E * D * F,  # 29 of 23: all
        layout={"Eu": ("e", "d", "f"), "Eu_bias": ("e", "f")},
        misfits=(
            "u = select(x[b n d], Eu[e d f]) -> [b n f]",
            "u = select(x[b n d], Eu[d f], i[b n a]) -> [b n a f]",
            "u = select(x[b n d], Eu[e d f], i[b n a]) -> [b n f]",
        ),
    ),
    Witness(  # few choices: at most one expert each
        "u = select(x[b d], Eu[V d f], i[b n]) -> [b n f]",
        work={"multiply_add": B * N * D * F, "start": B * N * F},
        reads=B * D + B * N,
        weighs=B * N * D * F,
        writes=B * N * F,
        active=N * D * F,
        layout={"Eu": ("V", "d", "f")},
    ),
    Witness(
        "y = combine(u[b n a d], w[b n a]) -> [b n d]",
        work={"multiply": BND * A, "add": BND * A - BND},
        reads=BND * A + B * N * A,
        writes=BND,
        misfits=(
            "y = combine(u[b n a d]) -> [b n d]",
            "y = combine(u[b n a d], w[b n e]) -> [b n d]",
            "y = combine(u[b n a d], w[b n a]) -> [b n a d]",
        ),
    ),
    Witness(
        "x = gather(ids[b n], E[V d]) -> [b n d]",
        reads=B * N,
        weighs=BND,
        writes=BND,
        layout={"E": ("V", "d")},
        misfits=(
            "x = gather(ids[b n]) -> [b n d]",
            "x = gather(ids[b n], E[V d]) -> [b n f]",
            "x = gather(ids[b n], z[V d]) -> [b n d]",
        ),
    ),
)
