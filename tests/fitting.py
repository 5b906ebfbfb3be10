"""What a model needs by the reading alone, and chips of any memory."""

from __future__ import annotations

from typing import Any

import assay
from assay.hardware import Chip
from assay.records import replace

RESERVED = 68_000_000


def chip(memory: int, name: str = "h100") -> Chip:
    """A chip with another memory."""
    return replace(assay.chip(name), memory=memory + RESERVED)


def served(name: str, batch: int, context: int, **asked: Any) -> int:
    """What inference needs, by the reading alone."""
    return int(assay.memory(assay.load(name), batch, context, **asked).total)


def learned(name: str, batch: int, context: int, **asked: Any) -> int:
    """What a step needs, by the reading alone."""
    return int(assay.training_memory(assay.load(name), batch, context, workspace=0, **asked).peak.bytes)
