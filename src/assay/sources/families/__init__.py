"""One function a model_type: a config in, a stack of blocks out, with the config class's own defaults."""

from assay.sources.families import gpt, llama
from assay.sources.families.common import FAMILIES, Family

__all__ = ["FAMILIES", "Family"]

_REGISTERED = (gpt, llama)  # importing them registers their families
