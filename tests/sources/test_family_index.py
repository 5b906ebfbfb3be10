"""Families are imported one at a time, by an index that says where each is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from assay.errors import AssayError
from assay.kinds.base import check
from assay.sources.families import FAMILIES, MODULES
from assay.sources.huggingface import read_config

LOADED = "print(sorted(m.rpartition('.')[2] for m in sys.modules if m.startswith('assay.sources.families.')))"


def test_index_is_what_the_modules_register() -> None:
    registered: dict[str, set[str]] = {}
    for model_type, family in FAMILIES.items():
        registered.setdefault(family.read.__module__.rpartition(".")[2], set()).add(model_type)
    assert {module: set(types.split()) for module, types in MODULES.items()} == registered
    assert sum(len(types.split()) for types in MODULES.values()) == len(FAMILIES), "a type stands twice"


@pytest.mark.parametrize(("model_type", "there"), [("gpt2", True), ("no-such", False), ("", False)])
def test_a_type_is_known_or_not(model_type: str, there: bool) -> None:
    assert (model_type in FAMILIES) is there
    assert (FAMILIES.get(model_type) is not None) is there


def test_every_op_of_every_family_fits_its_kind() -> None:
    """A description may hold each of them."""
    whole = 0
    for model_type in FAMILIES:
        try:
            model = read_config({"model_type": model_type}, "config", "model")
        except AssayError:
            continue  # it has no sizes of its own
        whole += 1
        for segment in model.segments:
            check(segment.block.ops)
    assert whole > 250


def test_one_type_imports_one_module() -> None:
    """And what that module imports itself; no family for a type of another module."""
    code = f"import sys; from assay.sources.families import FAMILIES; FAMILIES['llama']; {LOADED}"
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert "'llama'" in done.stdout
    assert "'gpt'" not in done.stdout
