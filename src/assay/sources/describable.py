"""The blocks that a description may hold: their tables, defaults that depend on more than the block, and checks.

A block becomes describable by one line in `BLOCKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.blocks import Attention, GatedDelta, Latent, Mamba, Mamba2, Mlp, Moe, Norm, Rope, ShortConv
from assay.blocks.mlp import FUSED
from assay.errors import SourceError
from assay.records import dataclass, defaults_of, field
from assay.sources.fields import Section, build

NORMS = {"rmsnorm": Norm(), "layernorm": Norm("layernorm", "gain+bias")}


@dataclass(frozen=True)
class Around:
    """What a block finds around it: the model's width, and its layer's norm and positions."""

    width: int
    norm: Norm
    positions: Rope | str | None


@dataclass(frozen=True)
class Described:
    """A block that a table of its name describes.

    `fill` checks what fields say together, and gives those whose default depends on more than the block; `hidden`
    are fields that no table sets; `biases` are the letters that `bias` may hold; `needs` names fields that say
    nothing without another.
    """

    block: type[Any]
    fill: Callable[[Section, Around], dict[str, Any]] = lambda c, around: {}
    hidden: tuple[str, ...] = ("positions",)
    biases: str = ""
    needs: Mapping[str, str] = field(default_factory=dict)


def _attention(c: Section, around: Around) -> dict[str, Any]:
    """As many key/value heads as heads, and the width shared among the heads, unless the table says otherwise."""
    heads = c.size("heads")
    groups = c.size("kv_heads", heads)
    c.divides("heads", heads, "kv_heads", groups)
    if not c.has("head_width") and around.width % heads:
        raise SourceError(
            f"{c.where}: width is {int(around.width)}; it must be a multiple of {c.path('heads')}, {int(heads)}, "
            f"where {c.path('head_width')} is not given"
        )
    each = c.size("head_width", int(around.width) // heads)
    _turns(c, around.positions, each)
    if _said(c, "window") and _said(c, "chunk"):
        c.fail("chunk", f'"none" where {c.path("window")} is set')
    return {"heads": heads, "kv_heads": groups, "head_width": each, "positions": around.positions}


def _turns(c: Section, positions: Rope | str | None, each: int) -> None:
    """A rotation turns pairs within a head."""
    if isinstance(positions, Rope) and positions.width is not None and (positions.width > each or positions.width % 2):
        key = getattr(positions.width, "key", "positions.width")
        raise SourceError(
            f"{c.where}: {key} is {int(positions.width)}; "
            f"it must be an even integer of at most the head width, {int(each)}"
        )


def _latent(c: Section, around: Around) -> dict[str, Any]:
    """Rotary positions or none."""
    if not isinstance(around.positions, Rope | None):
        raise SourceError(
            f"{c.where}: positions is {around.positions!r}; with latent attention it must be rope or none"
        )
    return {"positions": around.positions}


def _said(c: Section, key: str) -> bool:
    """The table sets the key to more than nothing."""
    return c.data.get(key, False) not in (False, "none", "")


def _feed_forward(c: Section, around: Around) -> dict[str, Any]:
    """Some activations take the gate and the other half at once."""
    if c.data.get("activation") in FUSED and c.data.get("gated") is False:
        c.fail("gated", f"true with the activation {c.data['activation']}")
    return {}


def _mixture(c: Section, around: Around) -> dict[str, Any]:
    """No more experts are chosen than there are, nor groups kept; groups are alike."""
    experts = c.size("experts")
    if c.size("chosen") > experts:
        c.fail("chosen", f"an integer of at most {c.path('experts')}, {int(experts)}")
    router = c.child("router")
    groups = router.size("groups", 1)
    if experts % groups:
        router.fail("groups", f"a divisor of {c.path('experts')}, {int(experts)}")
    if router.size("keep_groups", 1) > groups:
        router.fail("keep_groups", f"an integer of at most {router.path('groups')}, {int(groups)}")
    return _feed_forward(c, around)


def _shared(many: str, few: str) -> Callable[[Section, Around], dict[str, Any]]:
    """Heads that are shared among others evenly."""

    def fill(c: Section, around: Around) -> dict[str, Any]:
        c.divides(many, c.size(many), few, c.size(few, 1 if few == "groups" else None))
        return {}

    return fill


_WITH_GATE = {"gate_bias": "gate", "gate_activation": "gate"}
_WITH_NORM = {"qk_norm_over": "qk_norm", "norm_late": "qk_norm"}
_WITH_SHARED = {"shared_gate": "shared", "shared_bias": "shared", "shared_activation": "shared"}

BLOCKS: dict[str, Described] = {
    "attention": Described(
        Attention,
        _attention,
        ("positions", "rows"),
        "qkvo",
        {**_WITH_GATE, **_WITH_NORM, "keep_all": "window", "relative_here": "relative"},
    ),
    "latent": Described(Latent, _latent, ("positions", "form"), "ao"),
    "mamba": Described(Mamba, hidden=("heads",)),
    "mamba2": Described(Mamba2, _shared("heads", "groups")),
    "gated_delta": Described(GatedDelta, _shared("value_heads", "key_heads")),
    "short_conv": Described(ShortConv),
    "mlp": Described(Mlp, _feed_forward, biases="gud"),
    "moe": Described(Moe, _mixture, biases="gud", needs=_WITH_SHARED),
}


def read_block(c: Section, described: Described, around: Around) -> Any:
    """A block from its table. Raises SourceError."""
    c.known(name for name in defaults_of(described.block) if name not in described.hidden)
    for key, other in described.needs.items():
        if _said(c, key) and not _said(c, other):
            raise SourceError(f"{c.where}: {c.path(key)} says nothing where {c.path(other)} is not set")
    return build(
        described.block,
        c,
        described.fill(c, around),
        words={Norm: NORMS},
        norm=around.norm,
        letters=described.biases,
        skip=described.hidden,
    )
