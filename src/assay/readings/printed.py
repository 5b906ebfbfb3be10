"""What `print` shows of a result: a setting, and a few figures below each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assay.size import shown


def said(**sizes: Any) -> str:
    """Sizes by their names, as a title has them."""
    return " · ".join(f"{name.replace('_', ' ')} {shown(size, ',')}" for name, size in sizes.items())


def listed(title: str, rows: Iterable[tuple[str, Any, str]]) -> str:
    """A title and figures: a name, a number or a word, what it is; numbers end below each other."""
    figures = [(name, value if isinstance(value, str) else shown(value, ","), says) for name, value, says in rows]
    name_width, wide = (max(len(row[at]) for row in figures) for at in (0, 1))
    return "\n".join(
        [title, *(f"{name:<{name_width}}  {value:>{wide}}  {says}".rstrip() for name, value, says in figures)]
    )
