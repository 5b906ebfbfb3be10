"""Rules by name: entered under each of their names, and never a second time, in every registry there is."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from assay.errors import AssayError, BuildError, KindError, MeasureError
from assay.registry import entered

# module, what registers, what it fills, a name that is taken, and what is said of it
REGISTRIES: dict[str, tuple[str, str, str, str, AssayError]] = {
    "counter": ("counter.rules", "rule", "RULES", "aten::mm", MeasureError("aten::mm has a rule already")),
    "training": (
        *("kinds.training.rows", "saves", "SAVES", "linear"),
        KindError("the kind 'linear' has two rules of what training keeps"),
    ),
    "training scans": (
        *("kinds.training.scans", "recurs", "SCANS", "delta"),
        KindError("the scan 'delta' has two rules of what training keeps"),
    ),
    "policies": (
        *("rewrites.policies", "executes", "RULES", "rmsnorm"),
        KindError("the kind 'rmsnorm' is executed in two ways"),
    ),
    "PyTorch": ("execution.sites", "runs", "RULES", "linear", BuildError("the kind 'linear' runs in two ways")),
    "PyTorch scans": (
        *("execution.rules.scan", "recurs", "SCANS", "delta"),
        BuildError("the scan 'delta' runs in two ways"),
    ),
}


def rule() -> None:
    """Stands for any."""


def test_a_rule_is_known_under_each_of_its_names() -> None:
    known: dict[str, Callable[[], None]] = {}
    assert entered(known, ("a", "b"), KindError)(rule) is rule
    assert known == {"a": rule, "b": rule}


@pytest.mark.parametrize("which", REGISTRIES)
def test_no_registry_takes_a_name_twice(which: str) -> None:
    module, register, table, name, error = REGISTRIES[which]
    if module.startswith("execution"):
        pytest.importorskip("torch")
        import_module("assay.execution.module")
    elif module.startswith("kinds"):
        import_module("assay.kinds.training")
    found: Any = import_module(f"assay.{module}")
    held = dict(getattr(found, table))
    assert name in held
    with pytest.raises(type(error), match=f"^{error}$"):
        getattr(found, register)(name)(rule)
    assert getattr(found, table) == held
