"""What is kept between passes, by hand."""

from __future__ import annotations

from witnessed.base import BND, KEYS, B, C, D, G, K, M, N, S, Witness

WITNESSES = (
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
)
