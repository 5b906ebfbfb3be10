"""What papers draw: each block a function of its sizes that returns a list of ops.

What nearly every model is made of is named here; experts, latent attention, recurrences and the rest are asked of
their own modules, so that a model without them does not load them.
"""

from assay.blocks.attention import Alibi, Attention, CrossAttention, Rope
from assay.blocks.ends import Classifier, Embedding, Final, Head, Norm, Sines
from assay.blocks.mlp import Mlp
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
    "Head",
    "Layer",
    "Mlp",
    "Norm",
    "Rope",
    "Sines",
    "Step",
]
