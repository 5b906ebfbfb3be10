"""GGUF's types of blocks: elements and bytes of one block, by the number that files use.

From ggml (https://github.com/ggml-org/ggml): ggml.h numbers the types, ggml-common.h lays the blocks out. A K-block
holds 256 elements: scales of parts, a scale of these, and the quanta.
"""

from __future__ import annotations

# number: (name, elements of a block, bytes of a block)
BLOCKS: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 2 + 16),
    3: ("Q4_1", 32, 2 + 2 + 16),
    6: ("Q5_0", 32, 2 + 4 + 16),
    7: ("Q5_1", 32, 2 + 2 + 4 + 16),
    8: ("Q8_0", 32, 2 + 32),
    9: ("Q8_1", 32, 4 + 4 + 32),
    10: ("Q2_K", 256, 2 + 2 + 16 + 64),
    11: ("Q3_K", 256, 2 + 64 + 32 + 12),
    12: ("Q4_K", 256, 2 + 2 + 128 + 12),
    13: ("Q5_K", 256, 2 + 2 + 128 + 32 + 12),
    14: ("Q6_K", 256, 2 + 128 + 64 + 16),
    15: ("Q8_K", 256, 4 + 256 + 32),
    16: ("IQ2_XXS", 256, 2 + 64),
    17: ("IQ2_XS", 256, 2 + 64 + 8),
    18: ("IQ3_XXS", 256, 2 + 64 + 32),
    19: ("IQ1_S", 256, 2 + 32 + 16),
    20: ("IQ4_NL", 32, 2 + 16),
    21: ("IQ3_S", 256, 2 + 64 + 32 + 8 + 4),
    22: ("IQ2_S", 256, 2 + 64 + 16),
    23: ("IQ4_XS", 256, 2 + 2 + 128 + 4),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 32 + 16 + 8),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 2 + 4 * 13),
    35: ("TQ2_0", 256, 2 + 64),
    39: ("MXFP4", 32, 1 + 16),
    40: ("NVFP4", 64, 4 + 32),
}
