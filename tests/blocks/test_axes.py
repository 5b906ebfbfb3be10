"""Axes that only some blocks have: a stranger finds in the module what each letter stands for."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from assay.spec import AXES

BLOCKS = sorted((Path(__file__).parents[2] / "src" / "assay" / "blocks").glob("*.py"))
LONGEST = 2  # letters; a longer name says itself what it is


def unexplained(source: str) -> list[str]:
    """Short axes in the notation of a module that neither the field's legend nor its docstrings name."""
    tree = ast.parse(source)
    holders = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef)]
    said = " ".join(ast.get_docstring(node) or "" for node in holders)
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    axes = {axis for text in texts for found in re.findall(r"\[([\w ]+)\]", text) for axis in found.split()}
    short = (axis for axis in axes - set(AXES) if len(axis) <= LONGEST and axis.isidentifier())
    return sorted(axis for axis in short if not re.search(rf"(?<!\w){axis}(?!\w)", said))


@pytest.mark.parametrize("path", BLOCKS, ids=lambda path: path.stem)
def test_axes_are_explained(path: Path) -> None:
    assert unexplained(path.read_text()) == []


def test_an_unexplained_axis_is_seen() -> None:
    source = 'x = ops("y = linear(x[b n d], W[d q]) -> [b n q]")'
    assert unexplained(source) == ["q"]
    assert unexplained(f'"""Axes: q columns."""\n{source}') == []
