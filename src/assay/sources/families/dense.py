"""What readers of dense, llama-like decoders share: the config class's own values, the pieces, the windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from assay.blocks import Attention, Decoder, Layer, Mlp, Norm
from assay.records import dataclass
from assay.sources.config import Config
from assay.sources.families.common import (
    Heads,
    Kind,
    activation,
    by_kind,
    depth,
    heads,
    rms,
    rope,
    stack,
    under,
    windows,
)
from assay.sources.families.names import llama

# switches that these classes do not read unless their reader says so: off is what they do
OFF = ("attention_bias", "mlp_bias", "qkv_bias", "use_sliding_window", "use_qk_norm", "qk_norm", "use_mrope")

FULL, SLIDING = "full_attention", "sliding_attention"

LLAMA = {
    **llama(),
    "Wout": "lm_head.weight",
    **under(
        "model.layers.{i}.mlp.act_fn.",
        {"Alpha_p": "alpha_p", "Alpha_n": "alpha_n", "Beta": "~beta[]", "Eps": "~eps[]"},
    ),
}

# norms behind the sub-layers: after attention, after the feed-forward layer
POST_NORMS = under(
    "model.layers.{i}.",
    {"Gpa": "post_attention_layernorm.weight", "Gpm": "post_feedforward_layernorm.weight"},
)


@dataclass(frozen=True)
class Defaults:
    """What a config class holds when its keys are absent; `kv` and `head_dim` are derived where None."""

    width: int
    inner: int
    depth: int
    heads: int
    kv: int | None = None
    head_dim: int | None = None
    vocab: int = 32000
    trained: int = 2048
    eps: float = 1e-6
    theta: float = 10000.0
    partial: float = 1.0
    act: str = "silu"
    tied: bool = False
    style: str | None = None  # of the rotation
    scaling: tuple[tuple[str, Any], ...] | None = None  # of its frequencies, where the config has no table
    derives: bool = True  # a null head_dim is width / heads; otherwise it may not be null


@dataclass(frozen=True)
class Dense:
    """The pieces that a config spells out, from which a reader makes its layers."""

    c: Config
    defaults: Defaults
    width: int
    heads: Heads
    depth: int
    norm: Norm
    mlp: Mlp

    def attention(self, kind: str = "", /, **changes: Any) -> Attention:
        """Grouped heads with rotary positions, and what `changes` says."""
        h, d = self.heads, self.defaults
        if "qk_norm" in changes:
            self.c.inert("qk_norm", True)
            self.c.inert("use_qk_norm", True)
        scaling = None if d.scaling is None else dict(d.scaling)
        positions = rope(self.c, h.width, d.theta, d.partial, kind, style=d.style, scaling=scaling)
        return Attention(*h, **{"positions": positions, **changes})

    def windowed(self, window: int | None, **changes: Any) -> Callable[[str], Attention]:
        """The attention of a layer type: behind a window where it slides."""
        return lambda kind: self.attention(kind, window=window if kind == SLIDING else None, **changes)

    def repeat(self, layer: Layer, **head: Any) -> Decoder:
        """Layers that are all alike between an embedding and a head."""
        return self.stack((layer,) * self.depth, **head)

    def mixed(self, kinds: Sequence[Kind], make: Callable[[Kind], Layer], **head: Any) -> Decoder:
        """A layer for each of `kinds` in turn."""
        return self.stack(by_kind(kinds, make), **head)

    def stack(self, layers: tuple[Layer, ...], **head: Any) -> Decoder:
        """The layers between an embedding and a head."""
        d = self.defaults
        for key in OFF:
            if key not in self.c.used:
                self.c.inert(key, False)
        return stack(self.c, layers, self.width, self.norm, vocab=d.vocab, tied=d.tied, trained=d.trained, **head)


def dense(
    c: Config,
    defaults: Defaults,
    *,
    norm: Norm | None = None,
    bias: str = "",
    gated: bool = True,
    act: str | None = None,
    act_key: str = "hidden_act",
) -> Dense:
    """Read what all of them have; `norm` is RMSNorm with the config's eps, `act` by `act_key` unless given."""
    width = c.size("hidden_size", defaults.width)
    if not defaults.derives:
        c.size("head_dim", defaults.head_dim)
    return Dense(
        c,
        defaults,
        width,
        heads(c, width, defaults.heads, defaults.kv, defaults.head_dim),
        depth(c, defaults.depth),
        norm if norm is not None else rms(c, defaults.eps),
        Mlp(
            c.size("intermediate_size", defaults.inner),
            gated,
            act if act is not None else activation(c, act_key, defaults.act),
            bias,
        ),
    )


def biased(c: Config, key: str, letters: str, default: bool = False) -> str:
    """The projections that have a bias where the key is true."""
    return letters if c.flag(key, default) else ""


def every(pattern: int, layers: int, first: bool = False) -> list[str]:
    """Sliding layers with a full one at the end of every `pattern` layers, or at their start."""
    full = 0 if first else pattern - 1
    return [FULL if i % pattern == full else SLIDING for i in range(layers)]


def layer_types(c: Config, derived: Sequence[str]) -> list[str]:
    """`layer_types`, or what the config class derives where the key is absent or null."""
    return windows(c, len(derived), lambda i: derived[i], (FULL, SLIDING))


def window_of(c: Config, kinds: Sequence[str], default: int | None = 4096) -> int | None:
    """`sliding_window`, which has to be a size where a layer slides."""
    known = c.maybe("sliding_window", default)
    if SLIDING in kinds and known is None:
        c.fail("sliding_window", "an integer of at least 1, for layers that slide")
    return known
