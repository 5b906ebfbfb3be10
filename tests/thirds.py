"""Long lists of alike cases: every third one by default, all of them in the whole run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

THIRD = 3


def thirds(cases: Iterable[Any]) -> list[Any]:
    """The cases, two of three marked slow."""
    return [
        case if not index % THIRD else pytest.param(case, marks=pytest.mark.slow) for index, case in enumerate(cases)
    ]
