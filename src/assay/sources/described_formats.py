"""The table `[quantization]` of a description: a config's `quantization_config`, key by key, read by the same reader.

A config whose format is not known is still read, for all that bytes are not in; a description is its author's own, so
what cannot be told is refused there.
"""

from __future__ import annotations

from assay.errors import SourceError
from assay.formats import Scheme
from assay.sources.config import Config
from assay.sources.fields import Section
from assay.sources.quantization import METHODS, scheme_of

# keys of configs that no byte of weights depends on: how a format was found, and how activations are handled
IDLE = frozenset(
    """
    fmt scale_fmt activation_scheme activation_scale_ub dequantize sym desc_act static_groups true_sequential
    damp_percent zero_point backend producer quantization_status global_compression_ratio kv_cache_scheme
    kv_cache_quant_algo bnb_4bit_compute_dtype bnb_4bit_quant_storage llm_int8_threshold llm_int8_has_fp16_weight
    input_activations output_activations observer observer_kwargs dynamic actorder
    """.split()
)


def read_formats(c: Section, family: str, dtype: str | None) -> Scheme:
    """The scheme of the table, for names of a family and a dtype of what stays as it is.

    Raises SourceError, also for a key that the method does not have and for formats of which no bytes can be told.
    """
    held = Config(c.data, c.where, c.prefix)
    method = held.word("quant_method", None, METHODS)
    scheme = scheme_of(held, family, dtype)
    if scheme.unknown:
        raise SourceError(f"{c.where}: bytes cannot be told by {c.prefix.rstrip('.')}: {scheme.unknown}")
    for path in held.remaining():
        key = path.rpartition(".")[2]
        if key not in IDLE:
            c.refuse(path, f"is no key where quant_method is {method}", key, sorted(held.holder(path).used))
    return scheme
