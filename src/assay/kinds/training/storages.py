"""Storages of a pass as they come to be: what each holds, what keeps it, how long it is there.

How long axes are is told in integers, and in sizes of any sort what storages hold. A storage counts once, however many
ops keep it, and whole.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

from assay.kinds.training.values import AUTOCAST_TO_FLOAT32, BEFORE, CACHE, INPUT, Keeping, Store, Value, width_of
from assay.size import Size, Table, maximum, product
from assay.spec import Axes


class Storages:
    """Every tensor that a pass makes or is given: each kept storage is noted under `now`, what is at work.

    `sizes` are ints, `real` the sizes that they stand for, `dtype` that of parameters, and of activations where nothing
    casts them. `autocast` is what products then cast their operands to, while other functions cast theirs to float32;
    which, and in what norms keep their statistics, hangs on the `device`.
    """

    def __init__(self, dtype: str, autocast: str | None = None, device: str = "cpu") -> None:
        self.dtype = dtype
        self.autocast = autocast
        self.device = device
        self.raised = AUTOCAST_TO_FLOAT32[device] if autocast else frozenset()
        self.sizes: dict[str, int] = {}
        self.real: Mapping[str, Size] = {}
        self.now: Hashable = None
        self.shuffles = True  # weights that do not lie as an op takes them are copied
        self.grads = True  # what is kept for a backward pass is told
        self.cache: Keeping | None = None  # how later passes are given what this one makes, None where there are none
        self.clock = 0  # storages made so far
        self.kept: list[Store] = []
        self.made: list[Store] = []
        self.there: list[Store] = []  # what is there before the pass
        self.memo = Table[Value]()
        self.layer = Table[Value]()  # the same of a layer
        self.apart: dict[Hashable, Size] = {}  # what the backward pass of an op has for itself alone
        self.casts: dict[Hashable, Value] = {}
        self.copies: dict[Hashable, Value] = {}  # of parameters, by what tells them apart

    def held(self, axes: Iterable[str], dtype: str) -> Size:
        """Bytes of a tensor of some axes."""
        return product(self.real[a] for a in axes) * width_of(dtype)

    def new(self, axes: Axes, grad: bool = False, dtype: str | None = None, order: Axes | None = None) -> Value:
        """A tensor of its own, its axes one behind the other, or lying in another order; of activations' dtype."""
        dtype = dtype or self.dtype
        store = Store(self.held(axes, dtype), maker=self.now)
        self.clock += 1
        store.born = store.read = self.clock
        store.grad = grad
        self.made.append(store)
        return Value(axes, self.apart_in(axes, order or axes), store, grad and self.grads, dtype)

    def given(self, axes: Axes, dtype: str | None = None) -> Value:
        """A tensor that the pass is given: there before it and to its end."""
        dtype = dtype or self.dtype
        store = Store(self.held(axes, dtype), INPUT, self.now)
        self.there.append(store)
        return Value(axes, self.apart_in(axes, axes), store, False, dtype)

    def apart_in(self, axes: Axes, order: Axes) -> tuple[int, ...]:
        """How far elements lie apart along some axes that lie one behind the other in an order."""
        apart, run = dict.fromkeys(axes, 0), 1
        for axis in reversed(order):
            apart[axis] = run
            run = run * maximum(1, self.sizes[axis])
        return tuple(apart[a] for a in axes)

    def read(self, made: Value, *values: Value) -> Value:
        """What was made of some tensors, which are there until then."""
        for value in values:
            value.store.read = self.clock
        return made

    def axis(self, name: str, size: Size, shown: int) -> str:
        """An axis that the op has no name for."""
        self.sizes[name] = shown
        self.real = {**self.real, name: size}
        return name

    def leave(self, store: Store, group: str = CACHE, before: Size = 0) -> None:
        """What stays for the next pass; `before` bytes, which it has from the last, are there until now."""
        store.held = group
        if before:
            old = Store(before, BEFORE, self.now)
            old.read, old.held = self.clock, group
            self.there.append(old)

    def near(self, key: object, make: Callable[[], Value]) -> Value:
        """What several ops of a layer use, made at the first asking there."""
        return self.layer.get(key) or self.layer.add(key, make())

    def once(self, key: object, make: Callable[[], Value]) -> Value:
        """What several layers use, made at the first asking in a pass."""
        found = self.memo.get(key)
        if found is None:
            found = self.memo.add(key, make())
            found.store.shared = True
        return found

    def keep(self, *values: Value, passing: bool = False) -> None:
        """Autograd keeps the storages of some tensors; `passing`: for a result that is dropped before the op ends."""
        for value in values if self.grads else ():
            if not value.store.keepers:
                self.kept.append(value.store)
            value.store.keepers.append((self.now, passing))
