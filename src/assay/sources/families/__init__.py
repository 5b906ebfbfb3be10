"""One function a model_type: a config in, a stack of blocks out, with the config class's own defaults."""

from importlib import import_module

from assay.sources.families.common import FAMILIES, Family

__all__ = ["FAMILIES", "Family"]

MODULES = (
    "bloom",
    "cohere",
    "gemma",
    "glm",
    "dbrx",
    "diffllama",
    "gains",
    "gpt",
    "hosted",
    "hrm",
    "granite",
    "exaone_moe",
    "glm_moe",
    "mimo",
    "doge",
    "ernie_moe",
    "gated_moe",
    "cohere_moe",
    "jetmoe",
    "llama4",
    "granite_moe",
    "latent",
    "llama",
    "mistral",
    "modernbert_decoder",
    "mixtral",
    "nemotron",
    "neox",
    "olmo",
    "opt",
    "phi",
    "qwen",
    "qwen_moe",
)

for _module in MODULES:  # importing one registers its families
    import_module(f"assay.sources.families.{_module}")
