"""What weights weigh: every stored tensor in the format it is stored in."""

from __future__ import annotations

from assay.formats import bytes_of
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
