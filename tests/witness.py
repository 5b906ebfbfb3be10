"""Every kind of op by hand, as the files of `witnessed` have them: one for each sort of kinds."""

from __future__ import annotations

from witnessed import collective, contract, layout, pointwise, primitives, reduce, scan, state

WITNESSES = (
    *primitives.WITNESSES,
    *contract.WITNESSES,
    *layout.WITNESSES,
    *pointwise.WITNESSES,
    *reduce.WITNESSES,
    *state.WITNESSES,
    *scan.WITNESSES,
    *collective.WITNESSES,
)
