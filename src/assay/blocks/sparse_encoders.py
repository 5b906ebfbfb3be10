"""Encoders that store more than plain tokens use: Longformer, LUKE, X-MOD; a narrow head.

Axes: N entities, q their width, or that of all that is known of a character; S shapes, u wide, O sounds, w wide;
j the inner width of an adapter or of a head.
"""

from __future__ import annotations

from assay.blocks.attention import Attention, of_this_pass
from assay.blocks.encoders import MaskedHead, Tables
from assay.blocks.ends import VOCABULARY, Norm
from assay.blocks.mlp import Mlp
from assay.blocks.stacks import Layer
from assay.records import dataclass
from assay.spec import Op, ops


def idle(part: str, *weights: str) -> list[Op]:
    """Weights that are stored, and that a pass without what they are for does not use."""
    return [op for weight in weights for op in ops(part, f"idle = idle({weight}) -> [{weight.partition('[')[2]}")]


@dataclass(frozen=True)
class Reserved(Attention):
    """Beside its own, further projections that plain tokens do not use: `spare` are their names.

    A Longformer's tokens of global attention and LUKE's entities have them; none are there unless an input names some.
    """

    spare: tuple[str, ...] = ()

    def project(self, x: str) -> list[Op]:
        """Queries, keys and values of plain tokens."""
        made = super().project(x)
        for name in self.spare:
            made += idle("attention", f"W{name}[d g r k]", f"W{name}_bias[g r k]")
        return made


@dataclass(frozen=True)
class Entities(Tables):
    """Words beside entities, which have tables of their own and are none unless an input names some (LUKE)."""

    entities: int = 1
    entity_width: int = 1

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "N": self.entities, "q": self.entity_width}

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`."""
        tables = [f"E_entity_{name}[P_{name} d]" for name, _ in self.tables]
        into = ["Entity_in[d q]"] if self.entity_width != self.width else []
        return [
            *super().ops(),
            *idle("embedding", "E_entity[N q]", *into, *tables),
            *idle("norm", "Gentity[d]", "Bentity[d]"),
        ]


@dataclass(frozen=True)
class EntityHead(MaskedHead):
    """Beside the words' head, one over entities, of which there are none unless an input names some."""

    entities: int = 1
    entity_width: int = 1
    entity_tied: bool = True

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "N": self.entities, "q": self.entity_width}

    def ops(self) -> list[Op]:
        """From `x[b n d]` to `logits[b t V]`."""
        table = [] if self.entity_tied else ["Entity_out[N q]"]
        held = ["Entity_dense[q d]", "Entity_dense_bias[q]", "Gentity_head[q]", "Bentity_head[q]", "Entity_bias[N]"]
        return super().ops() + idle("head", *held, *table)


_ATTENTION, _MLP = Attention(1, 1, 1), Mlp(1)


@dataclass(frozen=True)
class Adapted(Layer):
    """A layer with an adapter for each language behind its feed-forward layer, one a sequence (X-MOD, Pfeiffer et al.
    2022). `own_norm` and `reuse` say what norms the adapter's input, `late` that its residual is taken before that.
    """

    mixer: Attention = _ATTENTION
    mlp: Mlp = _MLP
    norm: Norm = Norm()
    languages: int = 1
    inner: int = 1
    first: bool = False  # norms stand before the sub-layers
    own_norm: bool = False
    reuse: bool = True
    late: bool = False

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**self.mixer.sizes(), **self.mlp.sizes(), "e": self.languages, "j": self.inner, "a": 1}

    def ops(self) -> list[Op]:
        """`x[b n d]` from `x[b n d]`."""
        made = self.branch(self.mixer.ops("y", "y"), "t0")
        if not self.first:
            made += self.norm.ops("x", "x", "t0")
        made += self.branch(self.mlp.ops("y", "y"), "t1")
        made += self.adapt()
        return made if self.first else made + self.norm.ops("x", "x", "t1")

    def branch(self, body: list[Op], tag: str) -> list[Op]:
        """`x` plus a body of `y`, which is `x` or its norm."""
        begin = self.norm.ops("x", "y", tag) if self.first else ops("other", "y = view(x[b n d]) -> [b n d]")
        return begin + body + ops("other", "x = add(x[b n d], y[b n d]) -> [b n d]")

    def adapt(self) -> list[Op]:
        """The adapter of each sequence's language, and its residual."""
        made = ops("other", "h = view(x[b n d]) -> [b n d]") if self.late else []
        if self.own_norm or self.reuse:
            made += self.norm.ops("x", "x", "adapter" if self.own_norm else "t1")
        if not self.late:
            made += ops("other", "h = view(x[b n d]) -> [b n d]")
        return made + ops(
            "other",
            "u = select(x[b n d], Wdown[e j d], Wdown_bias[e j], language[b a]) -> [b n a j]",
            f"u = {self.mlp.activation}(u[b n a j]) -> [b n a j]",
            "u = select(u[b n a j], Wup[e d j], Wup_bias[e d], language[b a]) -> [b n a d]",
            "u = sum(u[b n a d]) -> [b n d]",
            "x = add(h[b n d], u[b n d]) -> [b n d]",
        )


@dataclass(frozen=True)
class Coarse(Attention):
    """Attention whose scores are first made of blocks, and in full where these are high; counted in full (MRA)."""

    def remember(self) -> list[Op]:
        """Keys and values of the pass."""
        return of_this_pass("coarse=True")


@dataclass(frozen=True)
class Numbered(Tables):
    """Tables beside which checkpoints keep the numbers of positions."""

    numbers: int = 1

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "numbers": self.numbers}

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`."""
        return super().ops() + idle("embedding", "Numbers[numbers]")


@dataclass(frozen=True)
class Contacts:
    """A regression over the attention of every head of every layer, which only a prediction of contacts runs (ESM)."""

    pairs: int  # heads of all layers

    segment = "head"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"pairs": self.pairs, "one": 1}

    def ops(self) -> list[Op]:
        """Weights alone."""
        return idle("head", "Wcontact[pairs]", "Wcontact_bias[one]")


@dataclass(frozen=True)
class NarrowedHead:
    """Down, up, the vocabulary: an activation behind each of the first two."""

    vocab: int
    width: int
    inner: int
    tied: bool = False
    activation: str = "gelu_tanh"

    segment = "head"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"V": self.vocab, "d": self.width, "j": self.inner}

    def ops(self) -> list[Op]:
        """From `x[b n d]` to `logits[b t V]`."""
        made = ops(
            "head",
            "y = keep(x[b n d]) -> [b t d]",
            "z = linear(y[b t d], Wnarrow[d j]) -> [b t j]",
            f"z = {self.activation}(z[b t j]) -> [b t j]",
            "y = linear(z[b t j], Wwide[j d]) -> [b t d]",
            f"y = {self.activation}(y[b t d]) -> [b t d]",
        )
        table = "E[V d]" if self.tied else "Wout[d V]"
        return made + ops(VOCABULARY, f"logits = linear(y[b t d], {table}) -> [b t V]")


@dataclass(frozen=True)
class Spelled(Tables):
    """Word vectors beside those of a character's shape and of its sound, through one matrix to the model's width."""

    shapes: tuple[int, int] = (1, 1)  # rows and width
    sounds: tuple[int, int] = (1, 1)

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        (rows, u), (spoken, w) = self.shapes, self.sounds
        return {**super().sizes(), "S": rows, "u": u, "O": spoken, "w": w, "q": self.width + u + w}

    def ops(self) -> list[Op]:
        """From ids to `x[b n d]`."""
        first, *rest = super().ops()
        made = ops(
            "embedding",
            "sound = gather(sounds[b n], E_sound[O w]) -> [b n w]",
            "shape = gather(shapes[b n], E_shape[S u]) -> [b n u]",
            "x = concat(x[b n d], shape[b n u], sound[b n w]) -> [b n q]",
            "x = linear(x[b n q], Ein[q d], Ein_bias[d]) -> [b n d]",
        )
        return [first, *made, *rest]
