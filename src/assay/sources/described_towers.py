"""Descriptions of transformers of images."""

from __future__ import annotations

from assay.blocks import Final, Norm
from assay.blocks.mlp import Mlp
from assay.blocks.stacks import Ending
from assay.blocks.towers import Drawn, Patches, Probe, Tower
from assay.errors import SourceError
from assay.records import defaults_of
from assay.sources.describable import NORMS, Role
from assay.sources.described_encoders import read_pooler
from assay.sources.described_layers import read_layers, read_norm, read_positions
from assay.sources.described_stacks import final_norm
from assay.sources.fields import Section, build
from assay.spec import Sight

LARGEST_SIDE = 100_000  # pixels


def read_tower(c: Section) -> Tower:
    """A transformer of images: patches as tokens."""
    width, depth, norm = c.size("width"), c.depth("layers"), read_norm(c)
    learned = read_positions(c, "learned") == "learned"
    start = _patches(c.child("patches"), width, norm, learned)
    layers = read_layers(c, depth, width, Role(encodes=True), "learned")
    final = final_norm(c, norm)
    sight = Sight(images=1, alone=start.length)
    return Tower(start, layers, _seen(c, width, norm, final), width, {"n": start.length}, sight=sight)


def _patches(c: Section, width: int, norm: Norm, learned: bool) -> Patches:
    """An image cut in squares, and the learned tokens before them."""
    c.known(("image", "patch", *(name for name in defaults_of(Patches) if name not in ("kernel", "width", "patches"))))
    sides = (
        c.sequence("image", lambda v: type(v) is int and 0 < v <= LARGEST_SIDE, "pixels", 2)
        if (isinstance(c.data.get("image"), list))
        else [c.size("image", most=LARGEST_SIDE)] * 2
    )
    patch = c.size("patch", most=LARGEST_SIDE)
    count = (sides[0] // patch) * (sides[1] // patch) if sides else 0
    if count < 1:
        c.fail("patch", f"an integer of at most {c.path('image')}, {min(map(int, sides or [0]))}")
    early = _tokens(c, "tokens")
    given = {
        "channels": c.size("channels", 3),
        "kernel": (patch, patch),
        "width": width,
        "patches": count,
        "tokens": early,
        "late": _tokens(c, "late"),
        "spare": tuple(word.capitalize() for word in c.sequence("spare", _is_letters, "words") or ()),
    }
    rows = count + sum(many for _, many in early) if learned else None
    made: Patches = build(Patches, c, given, Patches(3, (1, 1), 1, positions=rows), words={Norm: NORMS}, norm=norm)
    return made


def _tokens(c: Section, key: str) -> tuple[tuple[str, int], ...]:
    """Learned tokens by name, and how many each stands for; weights begin with a capital."""
    table = c.child(key)
    for name in table.data:
        if not _is_letters(name):
            raise SourceError(f"{c.where}: {table.path(name)} is no name of tokens; letters alone are")
    return tuple((name.capitalize(), table.size(name)) for name in table.data)


def _is_letters(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and value.isalpha()


def _seen(c: Section, width: int, norm: Norm, final: Norm | None) -> tuple[Ending, ...]:
    """What stands behind the layers of images: a probe, a pooled token, or the last norm."""
    if c.has("probe") and c.has("pooler"):
        raise SourceError(f"{c.where}: {c.path('probe')} and {c.path('pooler')} cannot both end a model of images")
    if c.has("probe"):
        table = c.child("probe")
        table.known(("heads", "mlp"))
        mlp: Mlp = build(
            Mlp, table.child("mlp"), {}, Mlp(1, gated=False), words={Norm: NORMS}, norm=norm, letters="gud"
        )
        heads = table.size("heads")
        c.divides("width", width, "probe.heads", heads)
        ends: tuple[Ending, ...] = (Probe(heads, width, mlp, norm),)
        return ends if final is None else (Drawn("norm", tuple(final.ops("x", "x", "f")), {"d": width}), *ends)
    if c.has("pooler"):
        return (read_pooler(c, width, norm, final),)
    return () if final is None else (Final(width, norm=final),)
