"""What implementations compose things of, by hand."""

from __future__ import annotations

from witnessed.base import BND, ROWS, V, Witness

WITNESSES = (
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
)
