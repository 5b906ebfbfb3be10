"""The feed-forward layer: two matrices around an activation, or three with a gate (Shazeer 2020)."""

from __future__ import annotations

from assay.blocks.ends import Norm
from assay.records import dataclass
from assay.spec import Op, ops

FUSED = ("swiglu_clamp", "swiglu_limit", "swiglu_softcap")  # activations that take the gate and the other half at once
LEARNED = {"xielu": ", Alpha_p[], Alpha_n[], Beta[], Eps[]"}  # scalars that an activation keeps


def feed_forward(
    part: str,
    x: str,
    y: str,
    names: str,
    width: str,
    gated: bool,
    activation: str,
    bias: str,
    inner: Norm | None = None,
    constants: tuple[tuple[str, float], ...] = (),
) -> list[Op]:
    """`y[b n d]` from `x[b n d]` through weights named by the letters `names` for gate, up and down."""
    gate, up, down = names.split()

    def into(name: str, weight: str, letter: str) -> list[Op]:
        shift = f", {weight}_bias[{width}]" if letter in bias else ""
        return ops(part, f"{name} = linear({x}[b n d], {weight}[d {width}]{shift}) -> [b n {width}]")

    axes = f"[b n {width}]"
    made = (into("z", gate, "g") if gated else []) + into("u", up, "u")
    made += activate(part, "z" if gated else "", "u", axes, activation, **dict(constants))
    if inner is not None:
        made += inner.ops("u", "u", "i", f"b n {width}", width)
    shift = f", {down}_bias[d]" if "d" in bias else ""
    return made + ops(part, f"{y} = linear(u{axes}, {down}[{width} d]{shift}) -> [b n d]")


def activate(part: str, gate: str, up: str, axes: str, activation: str, **constants: float) -> list[Op]:
    """`up` = activation(gate) * up, or activation(up) where there is no gate."""
    learned = LEARNED.get(activation, "")
    if not gate:
        return ops(part, f"{up} = {activation}({up}{axes}{learned}) -> {axes}")
    if activation in FUSED:
        return ops(part, f"{up} = {activation}({gate}{axes}, {up}{axes}) -> {axes}", **constants)
    return ops(
        part,
        f"{gate} = {activation}({gate}{axes}{learned}) -> {axes}",
        f"{up} = mul({gate}{axes}, {up}{axes}) -> {axes}",
    )


@dataclass(frozen=True)
class Mlp:
    """A dense feed-forward layer."""

    width: int
    gated: bool = True
    activation: str = "silu"
    bias: str = ""  # which of g(ate), u(p), d(own) have one
    inner: Norm | None = None  # of what the last matrix reads
    constants: tuple[tuple[str, float], ...] = ()  # of the activation

    part = "mlp"
    tag = "m"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"f": self.width}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        return feed_forward(
            "mlp", x, y, "Wg Wu Wd", "f", self.gated, self.activation, self.bias, self.inner, self.constants
        )


@dataclass(frozen=True)
class ScaledMlp(Mlp):
    """A gated layer whose gate and output have a multiplier each (Falcon-H1, Zuo et al. 2025)."""

    scales: tuple[float, ...] = (1.0, 1.0)

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = super().ops(x, y)
        gate = ops("mlp", "z = scale(z[b n f]) -> [b n f]", by=self.scales[0])
        down = ops("mlp", f"{y} = scale({y}[b n d]) -> [b n d]", by=self.scales[1])
        return made[:1] + gate + made[1:] + down
