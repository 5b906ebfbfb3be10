"""How usual the shape of a decoder is, by a rule after published dense decoders.

Of those among the presets two in three come to 0.5 or less, and one in five to 0. Each of these
adds to a number that is 0 for what is entirely usual:

    width / layers       36 to 64 below a width of 2,048, 64 to 128 below 4,096, 96 to 160 from there on;
                         the binary logarithm of how many times it is outside
    MLP / width          2.5 to 4 for a gated MLP, 4 for another; likewise
    head width           64 below a width of 2,048, 128 from there on; 0.25 for another
    query heads          a multiple of 8, of 4 below a width of 2,048; 0.25 for another number
    key/value heads      8, or as many as query heads below a width of 2,048; 0.25 for another number
    round numbers        width a multiple of 1,024 (of 256 below 2,048), MLP of 512, layers of 4;
                         0.1 for each that is not, and as much again for an odd depth
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# width over layers that is usual below a width, and from the last on
ASPECTS = ((2048, 36, 64), (4096, 64, 128), (None, 96, 160))
GATED, PLAIN = (2.5, 4.0), (4.0, 4.0)  # width of the MLP over that of the model
NARROW = 2048  # below it heads are of 64
LARGE, SMALL = 0.25, 0.1


def strangeness(shape: Mapping[str, Any], gated: bool) -> Any:
    """How unusual shapes are, of arrays of sizes: width, layers, heads, kv_heads, head_width, inner."""
    import numpy

    width, layers, inner = (shape[name].astype(float) for name in ("width", "layers", "inner"))
    heads, groups, each = (shape[name] for name in ("heads", "kv_heads", "head_width"))
    low, high = numpy.full(len(width), float(ASPECTS[-1][1])), numpy.full(len(width), float(ASPECTS[-1][2]))
    for below, least, most in reversed(ASPECTS[:-1]):
        low[width < below], high[width < below] = least, most
    narrow = width < NARROW
    total = _outside(numpy, width / layers, low, high)
    total += _outside(numpy, inner / width, *(GATED if gated else PLAIN))
    total += LARGE * (each != numpy.where(narrow, 64, 128))
    total += LARGE * ~((groups == 8) | (narrow & (groups == heads)))
    total += LARGE * (heads % numpy.where(narrow, 4, 8) != 0)
    total += SMALL * (width % numpy.where(narrow, 256, 1024) != 0)
    total += SMALL * (inner % 512 != 0)
    return total + SMALL * (layers % 4 != 0) + SMALL * (layers % 2 != 0)


def _outside(numpy: Any, value: Any, low: Any, high: Any) -> Any:
    """How many doublings a value is outside a range."""
    return numpy.maximum(0, numpy.log2(low / value)) + numpy.maximum(0, numpy.log2(value / high))
