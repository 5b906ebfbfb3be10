"""Where a model begins and ends, and what stands between its sub-layers: embeddings, norms, the head.

Axes: j a table narrower than the model, F frequencies of rotary positions, l labels.
"""

from __future__ import annotations

from typing import Literal

from assay.records import dataclass
from assay.spec import Op, ops

VOCABULARY = "head.vocabulary"  # the part of a head that makes logits: its matrix is the table again where it is tied


@dataclass(frozen=True)
class Norm:
    """LayerNorm (Ba et al. 2016) or RMSNorm (Zhang & Sennrich 2019), with or without gain and bias."""

    kind: Literal["rmsnorm", "layernorm"] = "rmsnorm"
    affine: Literal["none", "gain", "gain+bias"] = "gain"
    eps: float | None = None
    unit_offset: bool | None = None  # the stored gain is added to one (Gemma)

    def ops(self, x: str, y: str, tag: str, axes: str = "b n d", over: str = "d", shared: str = "") -> list[Op]:
        """`y` = norm of `x` over the axes `over`; gain G{tag} and bias B{tag} span `over` and the axes `shared`."""
        weights = {
            "none": "",
            "gain": f", G{tag}[{shared}{over}]",
            "gain+bias": f", G{tag}[{shared}{over}], B{tag}[{shared}{over}]",
        }
        named = (
            ""
            if self.affine != "none" and not shared
            else f", over={tuple(over.split())!r}"
            if " " in over
            else f", over={over}"
        )
        line = f"{y} = {self.kind}({x}[{axes}]{weights[self.affine]}{named}) -> [{axes}]"
        return ops("norm", line, eps=self.eps, unit_offset=self.unit_offset)


@dataclass(frozen=True)
class Sines:
    """How sines and cosines of a position stand in a row: alternating, or all sines first."""

    halves: bool | None = None
    closed: bool | None = None  # the slowest turns by just 1 / 10000, not by nearly as much
    offset: int | None = None  # the position that the first token has


@dataclass(frozen=True)
class Embedding:
    """A table of `vocab` rows, perhaps narrower than the model, with learned positions where `positions` is set."""

    vocab: int
    width: int
    narrow: int | None = None  # rows of another width than the model, projected up
    positions: int | None = None  # rows of the position table
    offset: int | None = None  # rows of it before that of position 0
    sinusoid: bool | Sines = False  # positions as sines and cosines, which are no weights (Vaswani et al. 2017, 3.5)
    scale: float | str | None = None  # a string where it depends on what is read
    norm: Norm | None = None
    norm_first: bool = False  # it is of the words, before positions are added
    frequencies: int | None = None  # of rotary positions, where checkpoints store them

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"V": self.vocab, "d": self.width, "j": self.narrow, "P": self.positions, "F": self.frequencies}

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`."""
        j = "d" if self.narrow is None else "j"
        made = ops("embedding", f"x = gather(ids[b n], E[V {j}]) -> [b n {j}]")
        if self.scale is not None:
            made += ops("embedding", f"x = scale(x[b n {j}]) -> [b n {j}]", by=self.scale)
        if self.narrow is not None:
            made += ops("embedding", "x = linear(x[b n j], Ein[j d]) -> [b n d]")
        if self.norm is not None and self.norm_first:
            made += self.norm.ops("x", "x", "e")
        if self.positions is not None:
            made += ops("embedding", "p = gather(at[n], E_position[P d]) -> [n d]", offset=self.offset)
            made += ops("embedding", "x = add(x[b n d], p[n d]) -> [b n d]")
        if self.sinusoid:
            how = self.sinusoid if isinstance(self.sinusoid, Sines) else Sines()
            given = {"halves": how.halves, "closed": how.closed, "offset": how.offset}
            made += ops("embedding", "x = sinusoid(x[b n d]) -> [b n d]", **given)
        if self.norm is not None and not self.norm_first:
            made += self.norm.ops("x", "x", "e")
        if self.frequencies is not None:
            made += ops("embedding", "angles = mul(at[n], Freq[F]) -> [n F]")
        return made


@dataclass(frozen=True)
class Head:
    """From the last layer to logits; `tied` shares the embedding's table."""

    vocab: int
    width: int
    tied: bool = False
    bias: bool = False
    narrow: int | None = None
    norm: Norm | None = None
    scale: float | None = None
    softcap: float | None = None
    unit_rows: bool = False  # each token's row is divided by its length

    segment = "head"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"V": self.vocab, "d": self.width, "j": self.narrow}

    def ops(self) -> list[Op]:
        """From `x[b n d]` to `logits[b t V]`, t of the n positions."""
        made = self.norm.ops("x", "x", "f") if self.norm is not None else []
        made += ops("head", "y = keep(x[b n d]) -> [b t d]")
        j = "d"
        if self.narrow is not None:
            j = "j"
            made += ops("head", "y = linear(y[b t d], Eout[d j]) -> [b t j]")
        table = f"E[V {j}]" if self.tied else f"Wout[{j} V]"
        bias = ", Bout[V]" if self.bias else ""
        made += ops(VOCABULARY, f"logits = linear(y[b t {j}], {table}{bias}) -> [b t V]")
        if self.unit_rows:
            wide = self.narrow or self.width
            made += ops("head", f"length = rms({table}) -> [V]", least=1e-24 / wide)
            made += ops("head", "logits = div(logits[b t V], length[V]) -> [b t V]")
            made += ops("head", "logits = scale(logits[b t V]) -> [b t V]", by=wide**-0.5)
        if self.scale is not None:
            made += ops("head", "logits = scale(logits[b t V]) -> [b t V]", by=self.scale)
        if self.softcap is not None:
            made += ops("head", "logits = softcap(logits[b t V]) -> [b t V]", cap=self.softcap)
        return made


@dataclass(frozen=True)
class Final:
    """Where a model without a head ends: the final norm, and the projection to a narrower embedding."""

    width: int
    narrow: int | None = None
    norm: Norm | None = None

    segment = "final"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"d": self.width, "j": self.narrow}

    def ops(self) -> list[Op]:
        """From `x[b n d]` to hidden states `x[b n d]`, or `x[b n j]` where they are narrow."""
        made = self.norm.ops("x", "x", "f") if self.norm is not None else []
        if self.narrow is not None:
            made += ops("head", "x = linear(x[b n d], Eout[d j]) -> [b n j]")
        return made


@dataclass(frozen=True)
class Classifier:
    """Hidden states to scores of labels, position by position, as the public implementations compute them."""

    final: Final
    labels: int
    bias: bool = False

    segment = "head"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**self.final.sizes(), "l": self.labels}

    def ops(self) -> list[Op]:
        """From `x[b n d]` to `logits[b t l]`, t of the n positions."""
        j = "d" if self.final.narrow is None else "j"
        bias = ", Bscore[l]" if self.bias else ""
        return [
            *self.final.ops(),
            *ops("head", f"y = keep(x[b n {j}]) -> [b t {j}]"),
            *ops("head", f"logits = linear(y[b t {j}], Wscore[{j} l]{bias}) -> [b t l]"),
        ]
