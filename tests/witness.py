"""Every kind of op by hand: a line of the notation, what each of its columns holds, and lines that do not fit.

Sizes are distinct primes, so that no product of some axes equals one of others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.kinds import SORTS

SIZES = {
    "b": 2, "n": 3, "past": 5, "d": 7, "f": 11, "g": 13, "r": 17, "k": 19, "e": 23, "a": 29, "V": 31, "P": 37,
    "w": 41, "chunk": 43, "t": 47, "m": 53, "s": 59, "rot": 61, "i": 67, "o": 6,
}  # fmt: skip
B, N, PAST, D, F, G, R, K, E, A, V = (SIZES[axis] for axis in "b n past d f g r k e a V".split())
M, S, W, CHUNK, T, ROT = (SIZES[axis] for axis in "m s w chunk t rot".split())
C = N + PAST  # keys at hand behind all that came before


@dataclass(frozen=True)
class Witness:
    """One line and its columns at SIZES; `after` are lines that bind axes before it."""

    line: str
    work: dict[str, int] = field(default_factory=dict)
    reads: int = 0
    weighs: int = 0
    writes: int = 0
    state: int | None = None
    grows: int | None = None
    active: int | None = None
    moves: int | None = None
    moves_back: int | None = None
    layout: dict[str, tuple[str, ...]] = field(default_factory=dict)
    after: str = ""
    misfits: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of the line."""
        return self.line.split("=", 1)[1].split("(")[0].strip()

    @property
    def text(self) -> str:
        """The lines as a block."""
        return f"{self.after}\n{self.line}"


BND = B * N * D
KEYS = "k0 = append(k[b n g k]) -> [b c g k]"
SCORES = B * G * R * N * C


def element(name: str, misfit: str = "", **work: int) -> Witness:
    """An activation of one operand: the work of one element times all."""
    assert work.keys() <= SORTS.keys()
    return Witness(
        f"y = {name}(x[b n d]) -> [b n d]",
        work={sort: times * BND for sort, times in work.items()},
        reads=BND,
        writes=BND,
        misfits=(f"y = {name}(x[b n d]) -> [b n f]", f"y = {name}(x[b n d]) -> [b n]", misfit)
        if misfit
        else (f"y = {name}(x[b n d]) -> [b n f]", f"y = {name}(x[b n d]) -> [b n]"),
    )


ROWS = B * T
WITNESSES = (
    # -- what implementations compose things of
    Witness(
        "y = cast(x[b n d], to=fp32) -> [b n d]",
        reads=BND,
        writes=BND,
        misfits=(
            "y = cast(x[b n d]) -> [b n d]",
            "y = cast(x[b n d], to=fp32, like=z) -> [b n d]",
            "y = cast(x[b n d], to=fp32) -> [b n]",
        ),
    ),
    Witness(
        "y = power(x[b n d], by=3) -> [b n d]",
        work={"multiply": 2 * BND},
        reads=BND,
        writes=BND,
        misfits=("y = power(x[b n d]) -> [b n d]", "y = power(x[b n d], by=4) -> [b n d]"),
    ),
    Witness(
        "y = rsqrt(x[b n d], eps=1e-06) -> [b n d]",
        work={"add": BND, "root": BND, "divide": BND},
        reads=BND,
        writes=BND,
        misfits=("y = rsqrt(x[b n d]) -> [b n]",),
    ),
    Witness(
        "y = copy(x[b n d]) -> [n b d]",
        reads=BND,
        writes=BND,
        misfits=("y = copy(x[b n d]) -> [b n]",),
    ),
    Witness(
        "y = dropout(x[b n d], rate=0.1) -> [b n d]",
        work={"compare": BND, "multiply": BND},
        reads=BND,
        writes=BND,
        misfits=("y = dropout(x[b n d]) -> [b n d]", "y = dropout(x[b n d], rate=1.0) -> [b n d]"),
    ),
    Witness(
        "y = log_softmax(l[b t V]) -> [b t V]",
        work={"exp": ROWS * V, "add": ROWS * (V - 1) + ROWS * V, "function": ROWS},
        reads=ROWS * V,
        writes=ROWS * V,
        misfits=("y = log_softmax(l[b t V]) -> [b t]",),
    ),
    Witness(
        "y = nll(l[b t V], labels[b t]) -> []",
        work={"add": ROWS},
        reads=ROWS * V + ROWS,
        writes=1,
        misfits=("y = nll(l[b t V]) -> []", "y = nll(l[b t V], labels[b]) -> []"),
    ),
    # -- contractions
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
    # -- layout
    Witness(
        "k1 = keys(k[b n g k]) -> [b c g k]",
        misfits=("k1 = keys(k[b n g k]) -> [b n g k]", "k1 = keys(k[b n], z[b n]) -> [b c]"),
    ),
    Witness(
        "k1 = keys(k[b n g k], causal=True) -> [b c g k]",
        misfits=(
            "k1 = keys(k[b n g k], causal=False) -> [b c g k]",
            "k1 = keys(k[b n g k], causal=True, reach=2) -> [b c g k]",
        ),
    ),
    Witness(
        "k1 = keys(k[b n g k], windows=2) -> [b c g k]",
        misfits=("k1 = keys(k[b n], windows=2) -> [b n]", "k1 = keys(k[b n], size=2) -> [b c]"),
    ),
    Witness("y = rename(x[b n d]) -> [b n f]", misfits=("y = rename(x[b n d]) -> [b n d]",)),
    Witness(
        "y = behind(x[b n g d]) -> [b n g c]",
        reads=B * N * G * C,
        writes=B * N * G * C,
        after=KEYS,
        misfits=("y = behind(x[b n g c]) -> [b n g c]", "y = behind(x[b n d], z[b n]) -> [b n c]"),
    ),
    Witness(
        "y = repeat(x[b d]) -> [b n d]",
        misfits=("y = repeat(x[b d]) -> [b d]", "y = repeat(x[b d], z[b]) -> [b n d]"),
    ),
    Witness(
        "y = unfold(x[b n d]) -> [b n d k]",
        misfits=("y = unfold(x[b n d]) -> [b n d]", "y = unfold(x[b n d]) -> [b n k]"),
    ),
    Witness(
        "y = batchnorm(x[b n d], G1[d], B1[d], M1[d]) -> [b n d]",
        {"add": 2 * B * N * D, "multiply": 2 * B * N * D},
        reads=B * N * D,
        weighs=3 * D,
        writes=B * N * D,
        layout={"G1": ("d",), "B1": ("d",), "M1": ("d",)},
        misfits=("y = batchnorm(x[b n d], G1[d]) -> [b n]", "y = batchnorm(x[b n d], G1[f]) -> [b n d]"),
    ),
    Witness(
        "y = clamp(x[b n d], L1[], H1[]) -> [b n d]",
        {"compare": 2 * B * N * D},
        reads=B * N * D,
        weighs=2,
        writes=B * N * D,
        layout={"L1": ("1",), "H1": ("1",)},
        misfits=("y = clamp(x[b n d], L1[], H1[]) -> [b n]", "y = clamp(x[b n d], L1[f], H1[]) -> [b n d]"),
    ),
    Witness(
        "y = offsets(at[n]) -> [i]",
        misfits=("y = offsets(at[n]) -> [n]", "y = offsets(at[n], z[n]) -> [i]"),
    ),
    Witness(
        "y = distances(z[P d], tokens=n, limit=w) -> [i d]",
        misfits=("y = distances(z[P d]) -> [i d]", "y = distances(z[P d], tokens=n, limit=w) -> [P d]"),
    ),
    Witness("y = reshape(x[b n d]) -> [b n g k]", misfits=("y = reshape(x[b n d], z[d]) -> [b n g]",)),
    Witness(
        "y = idle(W1[f d]) -> [f d]",
        layout={"W1": ("(f d)",)},
        misfits=("y = idle(x[d]) -> [d]", "y = idle(W1[d], W2[d]) -> [d]"),
    ),
    Witness("y = slice(x[b n d]) -> [b n f]", misfits=("y = slice(x[b n d]) -> [b n]",)),
    Witness("y = first(x[b n d]) -> [b d]", misfits=("y = first(x[b n d]) -> [b f]", "y = first(x[b n]) -> [b n]")),
    Witness(
        "y = concat(u[b n g], v[b n r]) -> [b n d]",
        reads=B * N * G + B * N * R,
        writes=BND,
        misfits=(
            "y = concat(u[b n g]) -> [b n d]",
            "y = concat(u[b n g], v[b n r]) -> [b n g]",
        ),
    ),
    Witness("y = keep(x[b n d]) -> [b t d]", misfits=("y = keep(x[b n d]) -> [t]",)),
    Witness(
        "y = columns(x[b n d], stride=2) -> [b t d k]",
        misfits=(
            "y = columns(x[b n d]) -> [b n d]",
            "y = columns(x[b n d]) -> [b t f k]",
            "y = columns(x[b n], z[b n]) -> [b n k]",
        ),
    ),
    Witness("y = view(x[b n d]) -> [n b d]", misfits=("y = view(x[b n d]) -> [b n f]",)),
    Witness(
        "w = take(l[b n e], i[b n a]) -> [b n a]",
        reads=2 * B * N * A,
        writes=B * N * A,
        misfits=("w = take(l[b n e]) -> [b n e]", "w = take(l[b n e], i[b n a]) -> [b n e]"),
    ),
    # -- element by element
    Witness(
        "y = add(x[b n d], p[n d], z[b n d]) -> [b n d]",
        work={"add": 2 * BND},
        reads=2 * BND + N * D,
        writes=BND,
        misfits=("y = add(x[b n d]) -> [b n d]", "y = add(x[b n d], z[b n f]) -> [b n d]"),
    ),
    Witness(
        "y = add(x[b n d], z[b n d], scale=0.5, keep=0.25) -> [b n d]",
        work={"add": BND, "multiply": 2 * BND},
        reads=2 * BND,
        writes=BND,
    ),
    Witness(
        "y = mul(x[b n d], z[b n]) -> [b n d]",
        work={"multiply": BND},
        reads=BND + B * N,
        writes=BND,
        misfits=("y = mul(x[b n d]) -> [b n d]", "y = mul(x[b n d], z[f]) -> [b n d]"),
    ),
    Witness(
        "y = div(x[b n d], z[b n]) -> [b n d]",
        work={"divide": BND},
        reads=BND + B * N,
        writes=BND,
        misfits=("y = div(x[b n d]) -> [b n d]", "y = div(x[b n d], z[f]) -> [b n d]"),
    ),
    Witness(
        "y = lerp(x[b n d], z[b n d], w[b n]) -> [b n d]",
        work={"multiply": 2 * BND, "add": BND + B * N},
        reads=2 * BND + B * N,
        writes=BND,
        misfits=("y = lerp(x[b n d], z[b n d]) -> [b n d]", "y = lerp(x[b n d], z[b n], w[b n]) -> [b n d]"),
    ),
    element("scale", multiply=1),
    element("sinusoid", add=1, function=1),
    element("mask", add=1),
    element("alibi", multiply=1, add=1),
    element("softcap", divide=1, function=1, multiply=1),
    element("temper", multiply=1),
    element("collision", function=2, divide=1, add=1),
    element("fourier", function=1),
    element("sqrtsoftplus", exp=1, add=1, function=1, root=1),
    element("clip", compare=2),
    element("relu", compare=1),
    element("relu2", compare=1, multiply=1),
    element("silu", multiply=1, exp=1, add=1, divide=1),
    element("sigmoid", multiply=1, exp=1, add=1, divide=1),
    element("tanh", function=1),
    element("gelu", multiply=3, function=1, add=1),
    element("gelu_tanh", multiply=6, add=2, function=1),
    element("quick_gelu", multiply=2, exp=1, add=1, divide=1),
    element("swiglu_clamp", compare=3, multiply=2, exp=1, add=2, divide=1),
    element("swiglu_limit", compare=3, multiply=2, exp=1, add=1, divide=1),
    element("swiglu_softcap", divide=3, function=2, multiply=5, exp=1, add=1),
    element("identity"),
    element("exp", exp=1),
    element("softplus", exp=1, add=1, function=1),
    element("xielu", compare=1, multiply=4, add=3, exp=1),
    Witness(
        "q = rope(q[b n g r k]) -> [b n g r k]",
        work={"multiply": 2 * B * N * G * R * K, "add": B * N * G * R * K},
        reads=B * N * G * R * K,
        writes=B * N * G * R * K,
        misfits=("q = rope(q[b n k]) -> [b n d]",),
    ),
    Witness(
        "q = rope(q[b n g r k], width=rot) -> [b n g r k]",
        work={"multiply": 2 * B * N * G * R * ROT, "add": B * N * G * R * ROT},
        reads=B * N * G * R * K,
        writes=B * N * G * R * K,
    ),
    # -- over an axis
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
    # -- what is kept
    Witness(
        KEYS,
        reads=B * N * G * K,
        writes=B * N * G * K,
        state=B * C * G * K,
        grows=G * K,
        misfits=(
            "k0 = append(k[b n g k]) -> [b n g k]",
            "k0 = append(k[b n g k], window=w, chunk=chunk) -> [b c g k]",
            "k0 = append(k[b n], v[b n]) -> [b c]",
        ),
    ),
    Witness(
        "k0 = append(k[b n g k], window=6) -> [b c g k]",
        reads=B * N * G * K,
        writes=B * N * G * K,
        state=B * 6 * G * K,  # 8 positions so far, 6 in the window
        grows=0,
    ),
    Witness(
        "k0 = append(k[b n g k], chunk=chunk) -> [b c g k]",
        reads=B * N * G * K,
        writes=B * N * G * K,
        state=B * C * G * K,
        grows=G * K,
    ),
    Witness(
        "k0 = reuse(k[b n g k], window=6) -> [b c g k]",
        misfits=("k0 = reuse(k[b n g k]) -> [b n g k]",),
    ),
    Witness(  # windows of 6: the third token now, the eighth of all, fills one and begins the next
        "y = pool(x[b n d], z[b n d], Bp[o d]) -> [b i d]",
        work={"add": (3 * 6 - 2) * B * D, "exp": 6 * B * D, "divide": 6 * B * D, "multiply": 6 * B * D},
        reads=2 * BND,
        weighs=6 * D,
        writes=B * D,
        state=2 * 2 * B * D,
        layout={"Bp": ("o", "d")},
        misfits=("y = pool(x[b n d], Bp[o d]) -> [b i d]", "y = pool(x[b n d], z[b n d], Bp[o d]) -> [b n d]"),
    ),
    Witness(
        "y = collect(x[b i d], rate=1) -> [b c d]",
        reads=B * 67 * D,
        writes=B * 67 * D,
        state=B * C * D,
        grows=D,
        misfits=("y = collect(x[b i d]) -> [b c d]", "y = collect(x[b i d], rate=1) -> [b i d]"),
    ),
    Witness(
        "k0 = hold(k[b m g k]) -> [b s g k]",
        reads=B * M * G * K,
        writes=B * M * G * K,
        state=B * S * G * K,
        misfits=("k0 = hold(k[b m g k]) -> [b m g k]",),
    ),
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
    Witness(
        "y = div(x[b n d], z[b n]) -> [b n d]",
        work={"divide": BND},
        reads=BND + B * N,
        writes=BND,
        misfits=("y = div(x[b n d]) -> [b n d]",),
    ),
    Witness(
        "y = lerp(x[b n d], z[b n d], Wm[d]) -> [b n d]",
        work={"multiply": 2 * BND, "add": BND + D},
        reads=2 * BND,
        weighs=D,
        writes=BND,
        layout={"Wm": ("d",)},
        misfits=("y = lerp(x[b n d], z[b n d]) -> [b n d]", "y = lerp(x[b n d], z[b n], Wm[d]) -> [b n d]"),
    ),
    # a ring of 4 sends 3/4 of what is gathered or scattered, twice that of what is summed, a last part rounded up
    Witness(
        "y = all_reduce(x[b n d], ranks=4, over=tensor) -> [b n d]",
        moves=-(-2 * BND * 3 // 4),
        misfits=(
            "y = all_reduce(x[b n d], ranks=4) -> [b n f]",
            "y = all_reduce(x[b n d]) -> [b n d]",
            "y = all_reduce(x[b n d], ranks=tensor) -> [b n d]",
        ),
    ),
    Witness("y = all_reduce(x[b n d], ranks=4, over=tensor) -> [b n]", moves=-(-2 * B * N * 3 // 4)),
    Witness(
        "y = copies(x[b n d], ranks=4, over=tensor) -> [b n d]",
        moves=0,
        moves_back=-(-2 * BND * 3 // 4),
        misfits=("y = copies(x[b n d], ranks=4) -> [b n]",),
    ),
    Witness(
        "y = all_gather(x[b n d], ranks=4, over=tensor) -> [b s d]",
        reads=BND,
        writes=B * S * D,
        moves=-(-B * S * D * 3 // 4),
        moves_back=-(-B * S * D * 3 // 4),
        misfits=("y = all_gather(x[b n d], ranks=4) -> [b n]", "y = all_gather(x[b n d], ranks=0) -> [b s d]"),
    ),
    Witness(
        "y = reduce_scatter(x[b s d], ranks=4, over=tensor) -> [b n d]",
        reads=B * S * D,
        writes=BND,
        moves=-(-B * S * D * 3 // 4),
        moves_back=-(-B * S * D * 3 // 4),
        misfits=("y = reduce_scatter(x[b n d], ranks=4) -> [b n d]",),
    ),
    Witness(
        "y = all_to_all(x[b n d], i[b n a], ranks=4, over=expert) -> [b n a d]",
        reads=BND + B * N * A,
        writes=BND * A,
        moves=-(-BND * A * 3 // 4),
        moves_back=-(-BND * A * 3 // 4),
        misfits=("y = all_to_all(x[b n d], i[b n a], ranks=4) -> [b n d]",),
    ),
    Witness("y = send(x[b n d]) -> [b n d]", moves=BND, misfits=("y = send(x[b n d]) -> [b n]",)),
    Witness(
        "y = receive(x[b n d]) -> [b n d]",
        reads=BND,
        writes=BND,
        moves=0,
        moves_back=BND,
        misfits=("y = receive(x[b n d], z[b n d]) -> [b n d]",),
    ),
)
