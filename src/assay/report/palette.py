"""The colours of parts in pictures: fill and edge, on light paper and on dark."""

from __future__ import annotations

PARTS = {
    "attention": (("#ddeeff", "#3b76b0"), ("#12304d", "#4f94d4")),
    "mixer": (("#d8f3ec", "#2f8574"), ("#0f3a33", "#45a895")),
    "mlp": (("#fff1d6", "#b07d2b"), ("#40300f", "#c79a4b")),
    "experts": (("#ffe5d9", "#b5623a"), ("#47271a", "#d07f57")),
    "router": (("#f6e3f3", "#9a5590"), ("#3b2038", "#b876ae")),
    "norm": (("#eef0f2", "#8c959f"), ("#262c33", "#6e7681")),
    "embedding": (("#e6e3f8", "#6b5fb0"), ("#2a2550", "#8b7fd6")),
    "tower": (("#efe6df", "#8a6d58"), ("#33281f", "#a98a73")),
    "head": (("#e6e3f8", "#6b5fb0"), ("#2a2550", "#8b7fd6")),
}
