"""What weights weigh: every stored tensor in the format it is stored in."""

from __future__ import annotations

from assay.errors import SettingError
from assay.formats import Scheme, bytes_of
from assay.readings.tensors import Entry, Stored, tensors
from assay.size import Size
from assay.spec import Model


def stored_bytes(model: Model, plain: str) -> Size | None:
    """Bytes of all that published files hold of a model, `plain` the dtype of what no format is given for.

    Scales, zero points and tables of a format are in; headers of files are not. None where the model's scheme is not
    known.
    """
    scheme = model.scheme
    if scheme is not None and scheme.unknown:
        return None
    if scheme is not None and scheme.total is not None:
        return scheme.total
    buffers = scheme.buffers if scheme is not None else None
    total: Size = 0
    for entry in tensors(model):
        kept = (buffers or plain) if entry.buffer else plain
        total = total + entry_bytes(entry, kept)
    return total


def entry_bytes(entry: Entry, plain: str) -> Size:
    """Bytes of all occurrences of an entry."""
    copies = len(entry.layers) or 1
    return sum((copies * tensor.times * tensor_bytes(tensor, plain) for tensor in entry.checkpoint), start=0)


def tensor_bytes(tensor: Stored, plain: str) -> Size:
    """Bytes of one stored tensor and of what its format keeps beside it."""
    if tensor.format is None:
        return bytes_of(tensor.elements, plain)
    count, outputs, inputs = tensor.matrices
    return count * tensor.format.bytes(outputs, inputs)


def by_format(model: Model, scheme: Scheme, rest: str) -> dict[str, int]:
    """The same by what tensors are stored in, scales and tables with the matrices that they are of, most first.

    `rest` is the dtype of what the scheme leaves as it is. Raises SettingError where it is not known.
    """
    if scheme.unknown:
        raise SettingError(
            f"{model.name} quantizes weights in a format that is not known: {scheme.unknown}; "
            "a dtype of weights prices them"
        )
    if scheme.total is not None:
        return {scheme.says: int(scheme.total)}
    found: dict[str, int] = {}
    for entry in tensors(model):
        plain = (scheme.buffers or rest) if entry.buffer else rest
        copies = len(entry.layers) or 1
        for tensor in entry.checkpoint:
            name = plain if tensor.format is None else tensor.format.says
            found[name] = found.get(name, 0) + int(copies * tensor.times * tensor_bytes(tensor, plain))
    return dict(sorted(found.items(), key=lambda one: -one[1]))
