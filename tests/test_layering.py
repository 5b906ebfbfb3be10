"""The arrows between the layers, no cycles, and what only one place may ask."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[1] / "src" / "assay"

# errors <- size <- spec <- kinds <- {blocks <- sources, rewrites, readings} <- report <- studies <- commands <- cli
# records and registry are tools of all
LEAVES = {"errors", "records", "registry"}
SPEC = LEAVES | {"size", "formats", "spec"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "records": set(),
    "registry": {"errors"},
    "size": LEAVES,
    "points": LEAVES | {"size"},
    "formats": LEAVES | {"size"},
    "spec": LEAVES | {"size", "formats"},
    "kinds": SPEC,
    "blocks": SPEC | {"kinds"},
    "sources": SPEC | {"kinds", "blocks", "rewrites"},  # a config may say how its weights are rewritten
    "rewrites": SPEC | {"kinds"},
    "readings": SPEC | {"kinds", "rewrites", "hardware"},  # a reading may ask for a model as it is executed
    "execution": SPEC | {"kinds", "readings", "rewrites", "report"},  # it runs what is counted, and shows how far it is
    "verification": SPEC
    | {"kinds", "readings", "rewrites", "execution", "counter"},  # what is said and what is measured
    "hardware": LEAVES,
    "counter": LEAVES | {"report"},  # what it counts is its own; it prints as the rest does
    "report": SPEC | {"kinds", "blocks", "readings", "rewrites", "hardware"},
    "studies": SPEC  # questions over many models, or many settings of one
    | {"points", "kinds", "sources", "rewrites", "readings", "hardware", "report", "__init__"},
    "__init__": SPEC | {"kinds", "blocks", "sources", "rewrites", "readings", "hardware", "counter", "execution"},
    "__main__": {"cli"},
    "cli": LEAVES | {"report", "commands"},
    "commands": SPEC
    | {"kinds", "blocks", "sources", "rewrites", "readings", "hardware", "report", "studies", "__init__"}
    | {"execution", "verification"},
}
MODULES = {
    ".".join(("assay", *path.relative_to(SRC).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(SRC.rglob("*.py"))
}


def layer(module: str) -> str:
    """The part of the package that a module belongs to: the package's own file is `__init__`."""
    return module.split(".")[1] if "." in module else "__init__"


@cache
def tree(module: str) -> ast.Module:
    """A module of the package, read once for all that is asked of it."""
    return ast.parse(MODULES[module].read_text())


def nodes(above: ast.AST) -> Iterator[ast.AST]:
    """All below, but for what a type checker alone reads."""
    for node in ast.iter_child_nodes(above):
        if not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            yield node
            yield from nodes(node)


def imports(read: ast.Module, known: set[str]) -> Iterator[str]:
    """Modules of the package that a module imports, within functions too, but for those of a type checker alone."""
    for node in nodes(read):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "assay")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "assay":
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                yield below if below in known else node.module
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"


@cache
def graph() -> dict[str, set[str]]:
    return {module: set(imports(tree(module), set(MODULES))) for module in MODULES}


def wrong_arrows(graph: dict[str, set[str]]) -> list[str]:
    return [
        f"{module} imports {other}"
        for module, others in graph.items()
        for other in sorted(others)
        if layer(other) != layer(module) and layer(other) not in MAY_IMPORT[layer(module)]
    ]


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, or []."""
    done: set[str] = set()

    def walk(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for other in sorted(graph.get(module, ())):
            if found := walk(other, [*path, module]):
                return found
        done.add(module)
        return []

    return next((found for module in graph if (found := walk(module, []))), [])


def asks_for_int(tree: ast.AST) -> Iterator[int]:
    """Lines that ask whether something is an int: isinstance(x, int), type(x) is int."""
    for node in ast.walk(tree):
        asked: list[ast.AST] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            asked = list(ast.walk(node.args[1]))
        elif isinstance(node, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            asked = list(node.comparators)
        if any(isinstance(one, ast.Name) and one.id == "int" for one in asked):
            yield getattr(node, "lineno", 0)


def compares_kinds(tree: ast.AST) -> Iterator[int]:
    """Lines that compare the kind of something with a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.Match):
            sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else [node.subject]
            named = [side for side in sides if "kind" in (getattr(side, "attr", ""), getattr(side, "id", ""))]
            if named and not (isinstance(node, ast.Compare) and _is_none(node)):
                yield node.lineno


def _is_none(node: ast.Compare) -> bool:
    return all(isinstance(side, ast.Constant) and side.value is None for side in node.comparators)


def test_the_package_is_read() -> None:
    assert {"assay", "assay.errors", "assay.kinds.contract", "assay.sources.families.llama"} <= MODULES.keys()
    assert {layer(module) for module in MODULES} <= MAY_IMPORT.keys()
    assert "assay.sources.hub" in graph()["assay.sources"]


def test_arrows_point_one_way() -> None:
    assert wrong_arrows(graph()) == []


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """The layers that a layer's modules import, at any remove."""
    todo, seen = [module for module in graph if layer(module) == start], set()
    while todo:
        if (module := todo.pop()) not in seen:
            seen.add(module)
            todo.extend(graph.get(module, ()))
    return {layer(module) for module in seen} - {start}


def test_the_counter_knows_nothing_of_what_it_is_to_prove() -> None:
    assert reached(graph(), "counter") <= LEAVES | {"report", "size"}
    assert not {name for module in graph() if layer(module) == "kinds" for name in graph()[module] if "counter" in name}
    assert "kinds" in reached(graph(), "readings")  # the search finds what is there


def test_a_command_is_a_module() -> None:
    from assay.commands import COMMANDS

    modules = {path.stem for path in (SRC / "commands").glob("*.py")}
    assert modules == {*COMMANDS, "report", "__init__", "frame", "options", "training_options"}


def test_no_cycles() -> None:
    assert cycle(graph()) == []


@pytest.mark.parametrize("part", ["spec", "kinds", "blocks", "rewrites", "readings"])
def test_only_size_asks_what_a_size_is(part: str) -> None:
    found = [f"{module}:{line}" for module in MODULES if layer(module) == part for line in asks_for_int(tree(module))]
    assert found == []


@pytest.mark.parametrize("part", ["rewrites", "readings", "report", "commands", "cli", "__init__"])
def test_only_kinds_ask_for_a_kind(part: str) -> None:
    found = [f"{module}:{line}" for module in MODULES if layer(module) == part for line in compares_kinds(tree(module))]
    assert found == []


def test_no_reading_names_a_family() -> None:
    from assay.sources.families import FAMILIES

    # a result that is no view, a kind of op, a make of model, rules of a recurrence: the field's words, which types are
    # called by too
    families = set(FAMILIES) - {"new", "clip", "encoder-decoder", "mamba", "mamba2"}
    named = {
        f"{module}:{node.lineno}"
        for module in MODULES
        if layer(module) in ("kinds", "readings", "report")
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in families
    }
    assert named == set()


def test_the_rules_are_seen_to_fail() -> None:
    wrong = {"assay.kinds.x": {"assay.blocks.y"}, "assay.blocks.y": {"assay.kinds.x"}}
    assert wrong_arrows(wrong) == ["assay.kinds.x imports assay.blocks.y"]
    assert cycle(wrong) == ["assay.kinds.x", "assay.blocks.y", "assay.kinds.x"]
    assert list(imports(ast.parse("def f():\n  from assay.readings import count"), {"assay.readings.count"})) == [
        "assay.readings.count"
    ]
    assert list(asks_for_int(ast.parse("isinstance(x, str | int)\ntype(x) is int\nint(x)"))) == [1, 2]
    assert list(compares_kinds(ast.parse("op.kind == 'a'\nkind in ('a',)\nkind is None\nkinds == 1"))) == [1, 2]
