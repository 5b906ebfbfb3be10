"""A .gguf file as a model: its metadata read as a config, held against its own tensors, weighed by its header."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from assay.errors import SourceError
from assay.formats import Scheme
from assay.records import replace
from assay.sources.checkpoints import read_checkpoint
from assay.sources.checkpoints.gguf_config import config_of
from assay.sources.checkpoints.held import Checkpoint
from assay.sources.huggingface import read_config
from assay.spec import Model

# factors of rotation that llama.cpp stores: no parameters
_FACTORS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")


def read_gguf_model(path: str, title: str, allow: Collection[str] = (), cls: str | None = None) -> Model:
    """The model of a .gguf file. Raises SourceError, SettingError."""
    checkpoint = read_checkpoint(path)
    if checkpoint.sort != "gguf":
        raise SourceError(f"{checkpoint.where}: weights without a config; `assay checkpoint` lists them")
    model = read_config(config_of(checkpoint), checkpoint.where, title, allow, cls)
    held = sum(tensor.elements for tensor in checkpoint.tensors if tensor.name not in _FACTORS)
    return replace(model, scheme=Scheme(f"GGUF, {mixture(checkpoint)}", total=checkpoint.bytes, elements=held))


def mixture(checkpoint: Checkpoint) -> str:
    """The dtypes of a checkpoint, the one that takes most bytes first."""
    weights: Counter[str] = Counter()
    for tensor in checkpoint.tensors:
        weights[tensor.dtype] += tensor.bytes
    return ", ".join(dtype for dtype, _ in weights.most_common())
