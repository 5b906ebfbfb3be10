"""Which module is running: by calls in the forward pass, by the module that made the autograd node in the backward."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook


class Paths:
    """A context in which `here` is the dotted path of the module at work, "" for the measured code itself.

    A module used in several places goes by the name that its caller has for it. Autograd numbers its nodes as they are
    made; the number of the node at work says during which module's call it was made.
    """

    def __init__(self, root: Any, entered: Callable[[Any], None]) -> None:
        self.kinds: dict[str, tuple[str, int]] = {}  # class and parameters of each module that ran
        self.calls: Counter[str] = Counter()
        self._root = root
        self._entered = entered
        self._stack: list[tuple[Any, str]] = []
        self._numbers: list[int] = []  # of the first node made after a change of module …
        self._places: list[str] = []  # … and the module from there on
        self._names: WeakKeyDictionary[Any, dict[int, str]] = WeakKeyDictionary()  # module -> id of one within -> name
        self._loose: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._alike: Counter[str] = Counter()
        self._hooks: list[Any] = []

    def __enter__(self) -> Paths:
        self._hooks = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def here(self) -> str:
        """The path of the module whose forward runs, or whose forward made the node whose backward runs."""
        if self._stack or not in_backward():
            return self._stack[-1][1] if self._stack else ""
        at = bisect_right(self._numbers, torch._C._current_autograd_node()._sequence_nr()) - 1
        return self._places[at] if at >= 0 else ""

    def _enter(self, module: Any, _: Any) -> None:
        path = self._path(module)
        self._stack.append((module, path))
        self.calls[path] += 1
        if path not in self.kinds:
            self.kinds[path] = described(module)
        self._entered(module)
        self._turn()

    def _leave(self, module: Any, *_: Any) -> None:
        if self._stack and self._stack[-1][0] is module:
            self._stack.pop()
            self._turn()

    def _turn(self) -> None:
        """From the next node on, nodes belong to what is on top of the stack."""
        number = torch.autograd._get_sequence_nr()
        if not self._numbers or number >= self._numbers[-1]:  # another thread has numbers of its own
            self._numbers.append(number)
            self._places.append(self._stack[-1][1] if self._stack else "")

    def _path(self, module: Any) -> str:
        if module is self._root:
            return ""
        for caller, path in reversed(self._stack):
            if name := self._within(caller).get(id(module)):
                return f"{path}.{name}".removeprefix(".")
        if self._root is not None and (name := self._within(self._root).get(id(module))):
            return name
        return self._loosely(module)

    def _within(self, module: Any) -> dict[int, str]:
        if module not in self._names:
            self._names[module] = {id(inner): name for name, inner in module.named_modules() if name}
        return self._names[module]

    def _loosely(self, module: Any) -> str:
        """A name for a module that nothing measured holds: its class, numbered from the second on."""
        if module not in self._loose:
            kind = type(module).__name__
            self._alike[kind] += 1
            self._loose[module] = kind if self._alike[kind] == 1 else f"{kind}_{self._alike[kind]}"
        return self._loose[module]


def described(module: Any) -> tuple[str, int]:
    """The class of a module, and its parameters and those below, each once."""
    return type(module).__name__, sum(one.numel() for one in module.parameters())


def in_backward() -> bool:
    """True while autograd runs a graph backwards in this thread."""
    return bool(torch._C._current_graph_task_id() != -1)
