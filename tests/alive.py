"""Bytes of storages that are alive while PyTorch runs, each storage once."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Alive(TorchDispatchMode):  # type: ignore[misc]
    """Those that come to be while it watches: `live` now and at the `most`; what is there before is not in it."""

    def __init__(self, there: Iterable[Any]) -> None:
        super().__init__()
        self.live = self.most = 0
        self.known: dict[int, Any] = {tensor.untyped_storage()._cdata: tensor for tensor in there}

    def gone(self, key: int, size: int, _: object) -> None:
        """A storage is given back."""
        self.known.pop(key)
        self.live -= size

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = op(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage()._cdata not in self.known:
                storage = tensor.untyped_storage()
                key, size = storage._cdata, storage.nbytes()
                self.known[key] = weakref.ref(storage, partial(self.gone, key, size))
                self.live += size
        self.most = max(self.most, self.live)
        return made
