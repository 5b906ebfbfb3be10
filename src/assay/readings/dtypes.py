"""Dtypes by the names that configs and people use."""

from __future__ import annotations

from assay.errors import SettingError
from assay.formats import BITS, bytes_of

__all__ = ["BITS", "bytes_of", "dtype"]

_ALIASES = {
    "float64": "fp64",
    "double": "fp64",
    "float32": "fp32",
    "float": "fp32",
    "f32": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "f16": "fp16",
    "float8": "fp8",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "f8_e4m3": "fp8",
    "i8": "int8",
    "uint8": "int8",
    "i4": "int4",
    "uint4": "int4",
}


def dtype(name: str, what: str = "dtype") -> str:
    """The short name of a dtype. Raises SettingError naming `what`."""
    short = str(name).lower().removeprefix("torch.")
    short = _ALIASES.get(short, short)
    if short not in BITS:
        raise SettingError(f"{what} is {name!r}; known: {', '.join(BITS)}")
    return short
