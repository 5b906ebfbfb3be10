"""What one rank sends to others in a pass, by the sort of parallelism: a fold over the ops that exchange."""

from __future__ import annotations

from collections.abc import Mapping

from assay.kinds import kind_of
from assay.readings.binding import bind, placed
from assay.readings.dtypes import bytes_of
from assay.readings.setting import Setting
from assay.readings.states import States
from assay.size import Size, ceil_div
from assay.spec import Model


def exchanged(model: Model, asked: Setting, dtype: str, backward: bool = False) -> dict[str, Size]:
    """Bytes that a rank sends in a forward pass, with `backward` in the one behind it too, of elements of a dtype.

    By what ranks are of: tensor, expert, pipeline. What runs again in the backward pass sends again. A ring sends so
    (Patarasuk & Yuan 2009).
    """
    found: dict[str, Size] = {}
    for segment in model.segments:
        extent = bind(segment.block, placed(segment, asked.sizes()))
        for op in segment.block.ops:
            kind = kind_of(op)
            ways = [
                kind.moves,
                *([kind.moves_back] if backward else []),
                *([kind.moves] if backward and op.again else []),
            ]
            sent = sum((way(op, extent) for way in ways if way is not None), start=0)
            if kind.moves is not None:
                over = op.attr("over", "pipeline")
                found[over] = found.get(over, 0) + bytes_of(segment.times * sent, dtype)
    return found


def synchronized(held: States, gradients: str) -> Mapping[str, Size]:
    """Bytes that a data-parallel rank sends a step: gradients scattered and parameters gathered, with ZeRO's third
    stage parameters twice (Rajbhandari et al. 2020, section 7): 2 and 3 times what it holds of them.
    """
    times = 3 if held.zero == 3 else 2
    sent = ceil_div(times * held.trained * (held.shards - 1), held.shards)
    return {"data": bytes_of(sent, gradients)}
