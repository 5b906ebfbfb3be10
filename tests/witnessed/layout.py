"""Ops that move elements, or that make others seen, by hand."""

from __future__ import annotations

from witnessed.base import BND, KEYS, A, B, C, G, N, R, Witness

WITNESSES = (
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
    Witness(
        "w = take(l[b n e], i[b n a]) -> [b n a]",
        reads=2 * B * N * A,
        writes=B * N * A,
        misfits=("w = take(l[b n e]) -> [b n e]", "w = take(l[b n e], i[b n a]) -> [b n e]"),
    ),
)
