"""The key that a size names is the one it was read from: given another value, the size has it."""

from __future__ import annotations

from typing import Any

import pytest

import assay
from assay.errors import AssayError
from assay.readings.words import is_expression
from assay.sources.families import FAMILIES
from assay.spec import Model

Config = dict[str, Any]


def nested(model_type: str, **sizes: int) -> Config:
    """A config that says so much: `text_config.hidden_size` is a key below another."""
    made: Config = {"model_type": model_type}
    for path, size in sizes.items():
        *tables, key = path.split(".")
        held = made
        for table in tables:
            held = held.setdefault(table, {})
        held[key] = size
    return made


def loaded(config: Config) -> Model | None:
    try:
        return assay.load(config)
    except AssayError:  # a value that others do not go with
        return None


Sizes = dict[tuple[str, str], tuple[int, str]]


def sizes_of(model: Model) -> Sizes:
    """The size and what it names as its origin, by kind of layer and axis."""
    return {
        (segment.name, axis): (size, segment.block.origins.get(axis, ""))
        for segment in model.segments
        for axis, size in segment.block.sizes.items()
    }


def keys_of(sizes: Sizes) -> list[str]:
    """The keys that sizes are of."""
    return [key for key in dict.fromkeys(key for _, key in sizes.values()) if key and not is_expression(key)]


def changed(family: str, key: str, size: int) -> tuple[Sizes, int, Sizes] | None:
    """The sizes of a model that says what its class does, another value that the rest goes with, and its sizes."""
    plain = loaded(nested(family, **{key: size}))
    for other in (2 * size, 4 * size, 3 * size, size // 2, size + 1):
        made = loaded(nested(family, **{key: other}))
        if plain is not None and made is not None:
            return sizes_of(plain), other, sizes_of(made)
    return None


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_size_is_what_its_key_says(family: str) -> None:
    model = loaded({"model_type": family})
    if model is None:
        pytest.skip("its config class itself leaves a size open")
    sizes = sizes_of(model)
    seen, keys = 0, [key for key in keys_of(sizes) if "*" not in key]
    for key in keys:
        made = changed(family, key, next(size for size, of in sizes.values() if of == key))
        if made is None:
            continue
        plain, value, others = made
        for place in plain.keys() & others.keys():
            (size, of), (other, of_other) = plain[place], others[place]
            assert of != key or of_other != key or other == value, (place, key)
            assert size == other or key in of or key in of_other, (place, key)
        seen += 1
    assert seen >= len(keys) // 3  # the rest go with others alone
