"""Which storages are alive: bytes that tensors hold at once, each storage once however many tensors view it."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from torch.utils.weak import WeakIdKeyDictionary

from assay.counter.result import Saved

MADE, GIVEN, WEIGHT = "activations", "inputs", "weights"


class _Held:
    """One storage while it is alive."""

    __slots__ = ("bytes", "origin", "saved", "watch")

    def __init__(self, watch: Any, origin: str) -> None:
        self.watch = watch
        self.origin = origin
        self.bytes = 0
        self.saved = 0


class Storages:
    """Bytes alive and bytes saved for backward, followed by weak references: no tensor lives longer for being seen.

    What was there before the run stays to its end; what the run makes counts until its last tensor is gone.
    """

    def __init__(self) -> None:
        self.resident = 0
        self.made = 0
        self.peak_made = 0
        self.saved = Saved(0, 0, 0)
        self._kept = dict.fromkeys((MADE, GIVEN, WEIGHT), 0)
        self._held: dict[int, _Held] = {}

    def start(self, tensors: Iterable[Any]) -> None:
        """Inputs of the run, none of which is held here."""
        for tensor in tensors:
            self.given(tensor)

    def given(self, tensor: Any, origin: str = GIVEN) -> None:
        """A tensor from before the run; nothing where its storage is known."""
        storage = _storage(tensor)
        if storage is not None and storage._cdata not in self._held:
            held = self._hold(storage, origin)
            held.bytes = storage.nbytes()
            self.resident += held.bytes

    def made_by(self, tensor: Any) -> None:
        """What an op gave: new storage, a view of a known one, or a known one resized."""
        storage = _storage(tensor)
        if storage is None:
            return
        held = self._held.get(storage._cdata) or self._hold(storage, MADE)
        if held.origin == MADE:
            grown = storage.nbytes() - held.bytes
            held.bytes += grown
            self.made += grown
            self.peak_made = max(self.peak_made, self.made)

    def save(self, tensor: Any) -> int:
        """A tensor that autograd keeps: the bytes of its storage where none of it was kept, and it is no weight."""
        storage = _storage(tensor)
        if storage is None:
            return 0
        self.given(tensor)
        held = self._held[storage._cdata]
        grown = held.bytes - held.saved
        held.saved = held.bytes
        self._kept[held.origin] += grown
        if sum(self._kept.values()) > self.saved.total:
            self.saved = Saved(**self._kept)
        return 0 if held.origin == WEIGHT else grown

    def _hold(self, storage: Any, origin: str) -> _Held:
        key = storage._cdata
        held = self._held[key] = _Held(weakref.ref(storage, lambda _: self._gone(key)), origin)
        return held

    def _gone(self, key: int) -> None:
        held = self._held.pop(key)
        self._kept[held.origin] -= held.saved
        if held.origin == MADE:
            self.made -= held.bytes


class Weights:
    """Parameters, each counted once."""

    def __init__(self) -> None:
        self.count = 0
        self._seen = WeakIdKeyDictionary()

    def see(self, tensor: Any) -> None:
        """Count a parameter that was not seen before."""
        if tensor not in self._seen:
            self._seen[tensor] = True
            self.count += tensor.numel()


def _storage(tensor: Any) -> Any:
    """Where a tensor's elements lie; None for layouts that have no storage of their own (sparse, mkldnn)."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None
