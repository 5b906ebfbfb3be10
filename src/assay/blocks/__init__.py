"""What papers draw: each block a function of its sizes that returns a list of ops."""

from assay.blocks.attention import Alibi, Attention, CrossAttention, Rope
from assay.blocks.delta import GatedDelta, KimiDelta
from assay.blocks.ends import Classifier, Embedding, Final, Head, Norm, Sines
from assay.blocks.latent import Latent
from assay.blocks.mlp import Mlp
from assay.blocks.moe import Moe, Router
from assay.blocks.recurrent import Mamba, Mamba2, ScaledMamba2, ShortConv
from assay.blocks.stacks import Body, Branch, Decoder, Layer, Step

__all__ = [
    "Alibi",
    "Attention",
    "Body",
    "Branch",
    "Classifier",
    "CrossAttention",
    "Decoder",
    "Embedding",
    "Final",
    "GatedDelta",
    "Head",
    "KimiDelta",
    "Latent",
    "Layer",
    "Mamba",
    "Mamba2",
    "Mlp",
    "Moe",
    "Norm",
    "Rope",
    "Router",
    "ScaledMamba2",
    "ShortConv",
    "Sines",
    "Step",
]
