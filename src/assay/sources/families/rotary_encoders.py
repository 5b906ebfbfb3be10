"""BERT's layer with rotary positions: Nomic BERT, GTE, Jina's embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.blocks import Attention, Mlp
from assay.blocks.encoders import Encoder, Tables
from assay.records import dataclass
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, heads, rope
from assay.sources.families.encoders import (
    CHOICE,
    DEFAULTS,
    ROBERTA_HEAD,
    encoder,
    head,
    masked,
    norm_of,
    post_norm,
    roberta_classes,
    stored,
    unpooled_base,
)
from assay.sources.families.names import GATED, PROJECTIONS, behind, gate_and_up

# BERT's layer with its norms behind the sums, by today's names
_TURNED = PROJECTIONS | {"Gt0": "post_attention_layernorm.weight", "Gt1": "post_mlp_layernorm.weight"}
_GATED = _TURNED | GATED


@dataclass(frozen=True)
class _Own:
    """What tells these families apart: the config class's defaults, the biases, the MLP."""

    defaults: Mapping[str, Any]
    theta: float
    bias: str = "qkvo"
    mlp_bias: str = "ud"
    gated: bool = False
    fewest_types: int = 1


def _turned(c: Config, own: _Own) -> Encoder:
    """Words and token types; BERT's layer with rotary positions."""
    c.absent(**{**DEFAULTS, **own.defaults})
    c.inert("is_decoder", False)
    d = c.size("hidden_size")
    found = heads(c, d)
    turned = rope(c, found.width, own.theta)
    attention = Attention(found.query, found.query, found.width, bias=own.bias, positions=turned, sees="all")
    mlp = Mlp(c.size("intermediate_size"), own.gated, activation(c, default=None), own.mlp_bias)
    types = c.size("type_vocab_size", least=own.fewest_types)
    c.flag("tie_word_embeddings", True)
    return Encoder(
        Tables(c.size("vocab_size"), d, norm=norm_of(c), tables=(("type", types),) if types else ()),
        (post_norm(attention, mlp, norm_of(c)),) * depth(c),
        None,
        trained=c.maybe("max_position_embeddings"),
    )


# what the code of such a repository can do, and its files do not
_OFF = (
    *("causal", "prenorm", "parallel_block", "parallel_block_tied_norm", "use_rms_norm", "rotary_emb_interleaved"),
    *("qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "scale_attn_by_inverse_layer_idx"),
)
_NOMIC_HEAD = head("cls.predictions.", norm="transform.layer_norm")


@encoder(
    "nomic_bert",
    stem="NomicBert",
    names=stored("nomic_bert.", _GATED, "layers.{i}."),
    classes=unpooled_base("nomic_bert.", _NOMIC_HEAD, masked),
    harmless=("dense_seq_output", "pad_vocab_size_multiple", "scale_attn_weights"),
)
def nomic_bert(c: Config) -> Encoder:
    """Nussbaum et al. 2024: gated, without biases; the keys of GPT-2 in files from before the library had it."""
    c.rename(
        n_embd="hidden_size", n_head="num_attention_heads", n_layer="num_hidden_layers", n_inner="intermediate_size"
    )
    c.rename(n_positions="max_position_embeddings", layer_norm_epsilon="layer_norm_eps", rotary_emb_base="rope_theta")
    c.inert("activation_function", "swiglu")  # the gate around SiLU
    c.inert("rotary_emb_fraction", 1.0)
    for key in _OFF:
        c.inert(key, False)
    own = {"vocab_size": 30528, "hidden_act": "silu", "max_position_embeddings": 2048, "type_vocab_size": 2}
    return _turned(c, _Own(own, 1000.0, bias="", mlp_bias="", gated=True))


_GTE_HEAD = ROBERTA_HEAD | {"Bout": "lm_head.decoder.bias"}


@encoder(
    "gte",
    stem="Gte",
    names=stored("gte.", _GATED, "layers.{i}."),
    classes=unpooled_base("gte.", _GTE_HEAD),
)
def gte(c: Config) -> Encoder:
    """Zhang et al. 2024 (mGTE): gated; a bias at the end of the MLP alone."""
    own = {"vocab_size": 250048, "max_position_embeddings": 8192, "type_vocab_size": 1}
    return _turned(c, _Own(own, 160000.0, mlp_bias="d", gated=True, fewest_types=0))


# the code that such a repository carries beside its config
_NEW = {
    "Gt0": "attn_ln.weight",
    **behind("attention.qkv_proj", biases=True),
    "Wo": "attention.o_proj.weight",
    "Gt1": "mlp_ln.weight",
    **gate_and_up("mlp.up_gate_proj"),
    "Wd": "mlp.down_proj.weight",
}


_NEW_CLASSES = unpooled_base("new.", head("lm_head.", "dense", "norm") | {"Bout": "lm_head.decoder.bias"})


@encoder(
    "new",
    stem="New",
    names=stored("new.", _NEW),
    classes=(_NEW_CLASSES[1], _NEW_CLASSES[0], *_NEW_CLASSES[2:]),  # its config names the base where it names none
    harmless=(
        *("unpad_inputs", "use_memory_efficient_attention", "pack_qkv"),
        *("logn_attention_scale", "logn_attention_clip1"),
    ),
)
def new(c: Config) -> Encoder:
    """The same before the library had it."""
    c.inert("layer_norm_type", "layer_norm")
    c.inert("position_embedding_type", "rope")
    own = {"vocab_size": 30528, "max_position_embeddings": 2048, "type_vocab_size": 1}
    return _turned(c, _Own(own, 10000.0, mlp_bias="d", gated=True, fewest_types=0))


@encoder(
    "jina_embeddings_v3",
    stem="JinaEmbeddingsV3",
    names=stored("roberta.", _TURNED | {"Wu": "mlp.fc1.weight", "Wd": "mlp.fc2.weight"}, "layers.{i}."),
    classes=tuple(one for one in roberta_classes("roberta.", ROBERTA_HEAD) if one.role != CHOICE),
)
def jina_embeddings_v3(c: Config) -> Encoder:
    """Sturua et al. 2024: XLM-R with rotary positions."""
    own = {
        "vocab_size": 250002,
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "max_position_embeddings": 8194,
        "layer_norm_eps": 1e-5,
        "type_vocab_size": 1,
    }
    return _turned(c, _Own(own, 20000.0))
