"""What ranks send each other, by hand."""

from __future__ import annotations

from witnessed.base import BND, A, B, D, N, S, Witness

WITNESSES = (
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
        "y = scatter(x[b s d], ranks=4, over=tensor) -> [b n d]",
        moves=0,
        moves_back=-(-B * S * D * 3 // 4),
        misfits=("y = scatter(x[b n d], ranks=4) -> [b n d]",),
    ),
    Witness(
        "y = all_gather(x[b n d], ranks=4, over=tensor, alike=True) -> [b s d]",
        reads=BND,
        writes=B * S * D,
        moves=-(-B * S * D * 3 // 4),
        moves_back=0,
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
