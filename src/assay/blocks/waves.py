"""A sound's samples through convolutions, each at every so many steps (Baevski et al. 2020, wav2vec 2.0)."""

from __future__ import annotations

from collections.abc import Sequence

from assay.blocks.ends import Norm
from assay.records import dataclass
from assay.spec import Op, ops


@dataclass(frozen=True)
class Convolution:
    """One of the convolutions: channels made, the kernel's columns, the step."""

    channels: int
    kernel: int
    stride: int


@dataclass(frozen=True)
class Samples:
    """Convolutions over samples, each with a norm and an activation; a projection; a convolution for positions.

    The last one is added to its input; its channels are in groups, each with kernels of its own. Axes: t0 samples,
    t1 and on what each convolution leaves, n the last of them; i1 and on channels, q1 and on columns; G groups
    that read u channels and make z, q columns of their kernels.
    """

    convolutions: tuple[Convolution, ...]
    width: int
    samples: int
    near: int  # columns of the convolution for positions
    groups: int
    activation: str = "gelu"
    bias: bool = True
    norm: Norm = Norm("layernorm", "gain+bias", 1e-5)
    before: Norm = Norm("layernorm", "gain+bias", 1e-5)  # the projection

    @property
    def lengths(self) -> Sequence[int]:
        """How many steps there are, before and behind each convolution."""
        made = [self.samples]
        for one in self.convolutions:
            made.append(max(0, (made[-1] - one.kernel) // one.stride + 1))
        return made

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        own: dict[str, int | None] = {f"t{at}": length for at, length in enumerate(self.lengths[:-1])}
        for at, one in enumerate(self.convolutions, 1):
            own |= {f"i{at}": one.channels, f"q{at}": one.kernel}
        each = self.width // self.groups
        return {**own, "d": self.width, "G": self.groups, "u": each, "z": each, "q": self.near}

    def ops(self) -> list[Op]:
        """From `wave[b t0]` to `x[b n d]`."""
        made: list[Op] = []
        last = len(self.convolutions)
        before, read = "b t0", "wave"
        for at, one in enumerate(self.convolutions, 1):
            time = f"t{at}" if at < last else "n"
            inner = before.split()[2:]
            columns, kernel = " ".join(["b", time, *inner, f"q{at}"]), " ".join([*inner, f"q{at}", f"i{at}"])
            shift = f", Wwave{at}_bias[i{at}]" if self.bias else ""
            made += ops(
                "embedding",
                f"x = columns({read}[{before}], stride={one.stride}) -> [{columns}]",
                f"x = linear(x[{columns}], Wwave{at}[{kernel}]{shift}) -> [b {time} i{at}]",
            )
            before, read = f"b {time} i{at}", "x"
            made += self.norm.ops("x", "x", f"wave{at}", before, f"i{at}")
            made += ops("embedding", f"x = {self.activation}(x[{before}]) -> [{before}]")
        made += self.before.ops("x", "x", "e", before, f"i{last}")
        return made + ops(
            "embedding",
            f"x = linear(x[b n i{last}], Win[i{last} d], Win_bias[d]) -> [b n d]",
            "p = reshape(x[b n d]) -> [b n G u]",
            "p = unfold(p[b n G u]) -> [b n G u q]",
            "p = contract(p[b n G u q], Wnear[G z u q]) -> [b n G z]",
            "p = add(p[b n G z], Wnear_bias[G z]) -> [b n G z]",
            f"p = {self.activation}(p[b n G z]) -> [b n G z]",
            "p = reshape(p[b n G z]) -> [b n d]",
            "x = add(x[b n d], p[b n d]) -> [b n d]",
        )
