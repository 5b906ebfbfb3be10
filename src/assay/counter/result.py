"""What a measurement found, as figures, a table and JSON."""

from __future__ import annotations

from assay.records import dataclass


@dataclass()
class Flops:
    """FLOPs in the convention of 2 for each multiply-add of a product; `by_module` holds what is below a path too."""

    forward: int
    backward: int
    by_op: dict[str, int]
    by_module: dict[str, int]

    @property
    def total(self) -> int:
        """Forward and backward."""
        return self.forward + self.backward


@dataclass()
class Saved:
    """Bytes of the storages that autograd holds at once for the backward pass, each once, by where they are from."""

    activations: int
    inputs: int
    weights: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.activations + self.inputs + self.weights


@dataclass()
class OpRow:
    """One op of PyTorch: its sort (`counted`, `view`, `pointwise`, …), calls, FLOPs, and elements it gave."""

    name: str
    sort: str
    calls: int
    forward: int
    backward: int
    elements: int


@dataclass()
class ModuleRow:
    """A module and what is below it: FLOPs, own parameters and those below, and bytes saved that are no weights."""

    path: str
    kind: str
    calls: int
    parameters: int
    forward: int
    backward: int
    saved: int

    @property
    def flops(self) -> int:
        """Forward and backward."""
        return self.forward + self.backward


@dataclass()
class Measurement:
    """What a run of PyTorch code did. Integers are exact; bytes are of storages, parameters count once."""

    name: str
    flops: Flops
    parameters: int
    saved: Saved
    resident_bytes: int
    peak_bytes: int
    ops: tuple[OpRow, ...]
    modules: tuple[ModuleRow, ...]

    @property
    def saved_bytes(self) -> int:
        """Bytes that training keeps for the backward pass beside the weights: activations and inputs."""
        return self.saved.activations + self.saved.inputs

    def table(self, depth: int = 3) -> str:
        """The figures, the tree of modules down to `depth` levels, and the ops, as text.

        Modules side by side that are alike in everything stand in one row, with their sum.
        """
        from assay.counter.table import measured_table

        return measured_table(self, depth)

    def to_json(self) -> str:
        """All figures as one JSON object."""
        import json

        return json.dumps(self.as_dict(), indent=2)

    def as_dict(self) -> dict[str, object]:
        """All figures as plain dicts, lists, strings and integers."""
        return {
            "name": self.name,
            "flops": {"total": self.flops.total, **_plain(self.flops)},
            "parameters": self.parameters,
            "saved_bytes": self.saved_bytes,
            "saved": _plain(self.saved),
            "resident_bytes": self.resident_bytes,
            "peak_bytes": self.peak_bytes,
            "ops": [_plain(row) for row in self.ops],
            "modules": [_plain(row) for row in self.modules],
        }

    def __str__(self) -> str:
        return self.table()


def _plain(record: object) -> dict[str, object]:
    return dict(vars(record))
