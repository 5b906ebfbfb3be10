"""What papers draw: each block a function of its sizes that returns a list of ops."""

from assay.blocks.attention import Attention, CrossAttention, Rope
from assay.blocks.ends import Embedding, Head, Norm
from assay.blocks.latent import Latent
from assay.blocks.mlp import Mlp
from assay.blocks.moe import Moe, Router
from assay.blocks.stacks import Body, Branch, Decoder, Layer, Step

__all__ = [
    "Attention",
    "Body",
    "Branch",
    "CrossAttention",
    "Decoder",
    "Embedding",
    "Head",
    "Latent",
    "Layer",
    "Mlp",
    "Moe",
    "Norm",
    "Rope",
    "Router",
    "Step",
]
