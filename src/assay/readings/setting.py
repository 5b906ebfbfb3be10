"""What a model is asked to do, checked against what it can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.errors import SettingError, among
from assay.readings.conventions import convention as convention_of
from assay.readings.dtypes import BITS, dtype
from assay.records import dataclass
from assay.size import (
    Size,
    ceil_div,
    check_broadcast,
    first_above,
    is_integer,
    is_symbol,
    lift,
    maximum,
    minimum,
    only_at_zero,
    same,
    surely_above,
)
from assay.spec import Model

DEFAULT_TOKENS = 2048

# the settings that are sizes, with the least that each may be
SIZES = {"batch": 1, "tokens": 1, "past": 0, "context": 1, "source": 1, "images": 0, "image_tokens": 1, "sounds": 0}


# what decides which FLOPs a pass costs
_ASKED = "batch tokens past source images sounds image_tokens logits latent convention".split()


@dataclass(frozen=True)
class Setting:
    """What a model is asked to do. Sizes may be ints, arrays or symbols."""

    batch: Size = 1
    tokens: Size = DEFAULT_TOKENS
    past: Size = 0
    source: Size | None = None
    stride: tuple[int, int] = (1, 0)  # of the source, for each of its positions in the encoder, and what padding adds
    images: Size = 0
    image_tokens: Size | None = None  # that each makes, where images of any size may be
    token_patches: int = 1  # of the tower, for each of them
    logits: str = "all"
    latent: str = "expanded"
    convention: str = "matmul"
    weights: str = "bf16"
    cache: str = "bf16"
    state: str = "fp32"
    quantized: bool = False  # weights in the formats of the model's own scheme; `weights` is then what others have
    sounds: Size = 0  # where a model both sees and hears

    @property
    def context(self) -> Size:
        """Past and present tokens together."""
        return self.past + self.tokens

    def does_as(self, other: Setting) -> bool:
        """True where another asks for the same pass: all is the same but dtypes, which cost no FLOPs."""
        return all(same(getattr(self, name), getattr(other, name)) for name in _ASKED)

    def sizes(self) -> dict[str, Size]:
        """The axes that a setting binds: once there is a past, the source is encoded no more."""
        sizes = {
            "b": self.batch,
            "n": self.tokens,
            "past": self.past,
            "t": self.tokens if self.logits == "all" else 1,
        }
        if self.source is not None:
            positions = encoded(self.source, self.stride)
            sizes["frames"] = only_at_zero(self.source, self.past)
            sizes["m"] = only_at_zero(positions, self.past)
            sizes["M"] = positions
            sizes["encodings"] = self.batch * only_at_zero(1, self.past)  # sources encoded in this pass
        if not is_integer(self.images) or self.images:
            now = only_at_zero(self.images, self.past)
            sizes["images"] = self.batch * now
            # of a sequence: those seen in this pass and in all; sequences that have any
            sizes["images_now"], sizes["images_each"] = now, self.images
            sizes["seeing"] = self.batch * minimum(self.images, 1)
        if not is_integer(self.sounds) or self.sounds:
            sizes["sounds"] = self.batch * only_at_zero(self.sounds, self.past)
        if self.image_tokens is not None:
            sizes["image_tokens"] = self.image_tokens
            sizes["patches"] = self.image_tokens * self.token_patches
        return sizes


def setting(
    model: Model,
    *,
    batch: object = 1,
    tokens: object = None,
    past: object = None,
    context: object = None,
    logits: str = "all",
    convention: str = "matmul",
    weights: str | None = None,
    cache: str | None = None,
    state: str = "fp32",
    source: object = None,
    images: object = None,
    image_tokens: object = None,
    sounds: object = None,
    latent: str = "expanded",
) -> Setting:
    """The setting asked for, checked against the model. Raises SettingError and SizeError."""
    among(logits, "logits", ("all", "last"))
    among(latent, "latent", ("expanded", "absorbed"))
    seen = _images(model, images)
    if model.sight is not None and model.sight.alone is not None:
        tokens = model.sight.alone * seen  # whatever was asked for: there is no text
    b = lift(batch, "batch")
    n, p = _tokens_and_past(model, tokens, past, context)
    check_broadcast({"batch": b, "tokens": n, "past": p})
    own = weights is None
    said = f"{model.source or model.name}: dtype" if own else "weights"
    kept = dtype((model.dtype or "bf16") if weights is None else weights, said)
    return Setting(
        b,
        n,
        p,
        _source(model, source, n),
        (model.source_stride, model.source_extra),
        seen,
        _image_tokens(model, image_tokens),
        model.sight.patches if model.sight is not None else 1,
        logits,
        latent,
        convention_of(convention).name,
        kept,
        dtype((kept if BITS[kept] >= 16 else "bf16") if cache is None else cache, "cache"),
        dtype(state, "state"),
        model.scheme is not None and own,
        _sounds(model, sounds),
    )


def default_tokens(model: Model, room: Size = 0) -> Size:
    """2,048, or as many as a learned position table has rows for, `room` of them left for what is generated."""
    if model.positions is None:
        return DEFAULT_TOKENS
    return maximum(1, minimum(DEFAULT_TOKENS, model.positions - room))


def _tokens_and_past(model: Model, tokens: object, past: object, context: object) -> tuple[Size, Size]:
    """Tokens now and before, the default cut to a position table and to the context asked for."""
    if past is not None and context is not None:
        raise SettingError("past and context cannot both be given: context is past + tokens")
    c = None if context is None else lift(context, "context")
    if tokens is None:
        tokens = default_tokens(model)
        if c is not None and not is_symbol(c):
            tokens = minimum(tokens, c)
    n = lift(tokens, "tokens")
    p = lift(past if past is not None else 0, "past", least=0)
    check_broadcast({"tokens": n, "past": p, "context": c})
    if c is not None:
        if surely_above(n, c):
            n, c = first_above(n, c)
            raise SettingError(f"context is {c}; it counts past and present, so at least the {n} tokens")
        p = c - n
    if "past" not in model.settings and surely_above(p, 0):
        raise SettingError(
            f"past is {first_above(p, 0)[0]}; {model.name} keeps nothing between passes, so it must be 0"
        )
    check_positions(model, p + n, "past + tokens")
    return n, p


def check_positions(model: Model, size: Size, name: str) -> None:
    """Raise SettingError where a table of learned positions has no row for so many tokens."""
    if model.positions is not None and surely_above(size, model.positions):
        raise SettingError(
            f"{name} is {first_above(size, model.positions)[0]}; {model.name} has a learned position table of "
            f"{model.positions} rows"
        )


def encoded(source: Size, stride: tuple[int, int]) -> Size:
    """Positions of an encoder that a source has: one for each `stride[0]`, of which padding adds `stride[1]`."""
    return source if stride == (1, 0) else ceil_div(source + stride[1], stride[0])


def _source(model: Model, source: object, tokens: Size) -> Size | None:
    """Source tokens of an encoder-decoder: as many as the target's where nothing is said."""
    if "source" not in model.settings:
        if source is not None:
            raise SettingError(f"source is {_one(source)}; {model.name} has no encoder to give it to")
        return None
    usual = tokens if model.source_tokens is None else model.source_tokens
    m = usual if source is None else lift(source, "source")
    if surely_above(1, encoded(m, (model.source_stride, model.source_extra))):
        raise SettingError(
            f"source is {_one(m, min)}; the encoder of {model.name} has no position for so short a source"
        )
    if model.source_positions is not None and surely_above(m, model.source_positions):
        raise SettingError(
            f"source is {first_above(m, model.source_positions)[0]}; the encoder of {model.name} has a position table "
            f"that ends at {model.source_positions}"
        )
    return m


def _one(asked: Any, pick: Callable[[Any], Any] = max) -> object:
    """What was asked for, of an array its largest or smallest: a message names one."""
    return int(pick(asked.flat)) if hasattr(asked, "flat") else asked


def _images(model: Model, images: object) -> Size:
    """Images of each sequence: none unless asked for or needed."""
    sight = model.sight
    if sight is None:
        if images is not None and not (is_integer(images) and images == 0):
            raise SettingError(f"images is {_one(images)}; {model.name} has no tower to see them")
        return 0
    return lift(sight.images if images is None else images, "images", least=0 if sight.alone is None else 1)


def _sounds(model: Model, sounds: object) -> Size:
    """Stretches of sound of each sequence, in a model that sees images as well: none unless asked for."""
    if "sounds" not in model.settings:
        if sounds is not None and not (is_integer(sounds) and sounds == 0):
            tower = "towers of one sort, for --images" if model.sight is not None else "no tower to hear them"
            raise SettingError(f"sounds is {_one(sounds)}; {model.name} has {tower}")
        return 0
    return lift(0 if sounds is None else sounds, "sounds", least=0)


def _image_tokens(model: Model, tokens: object) -> Size | None:
    """Tokens of the text model that an image makes, where it may have any size."""
    usual = None if model.sight is None else model.sight.tokens
    if usual is None:
        if tokens is not None:
            why = "no tower" if model.sight is None else "a tower whose images are all of one size"
            raise SettingError(f"image tokens is {_one(tokens)}; {model.name} has {why}")
        return None
    return lift(usual if tokens is None else tokens, "image tokens")
