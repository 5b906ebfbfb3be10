"""Llama and what keeps its layer: pre-norm, RMSNorm, grouped queries, rotary positions, a gated MLP."""

from __future__ import annotations

from assay.blocks import Decoder, Layer
from assay.errors import SourceError
from assay.sources.config import Config
from assay.sources.families.common import family, label, pre_norm
from assay.sources.families.dense import FULL, LLAMA, SLIDING, Defaults, biased, dense, layer_types, window_of

__all__ = ["LLAMA"]

_LLAMA = Defaults(4096, 11008, 32, 32)


@family("llama", cls="LlamaForCausalLM", names=LLAMA, harmless=("is_llama_config",))
def llama(c: Config) -> Decoder:
    """Touvron et al. 2023; Llama 3 Team 2024."""
    c.inert("rope_interleaved", False)
    return _with_biases(c, _LLAMA)


@family("iquestcoder", cls="IQuestCoderForCausalLM", names=LLAMA)
def iquestcoder(c: Config) -> Decoder:
    """Llama's layer with a head width of its own; the released code's other options are in no checkpoint."""
    c.inert("clip_qkv")
    c.inert("sliding_window")
    sizes = Defaults(5120, 27648, 80, 40, 8, 128, vocab=76800, trained=131072, eps=1e-5)
    return _with_biases(c, sizes)


def _with_biases(c: Config, sizes: Defaults) -> Decoder:
    """Llama's layer with `attention_bias` on all four projections and `mlp_bias` on all three."""
    p = dense(c, sizes, bias=biased(c, "mlp_bias", "gud"))
    return p.repeat(pre_norm(p.attention(bias=biased(c, "attention_bias", "qkvo")), p.mlp, p.norm))


@family("exaone", cls="LlamaForCausalLM", names=LLAMA, harmless=("embed_dropout",))
def exaone(c: Config) -> Decoder:
    """EXAONE 3.0 (LG AI Research 2024) under its older names of keys."""
    c.rename(num_layers="num_hidden_layers", layer_norm_epsilon="rms_norm_eps", activation_function="hidden_act")
    sizes = Defaults(4096, 14336, 32, 32, 8, vocab=102400, trained=4096, eps=1e-5, theta=500000.0)
    return _with_biases(c, sizes)


@family("internlm3", cls="LlamaForCausalLM", names=LLAMA)
def internlm3(c: Config) -> Decoder:
    """InternLM3 (Shanghai AI Laboratory 2025): one switch for the biases of attention and the MLP."""
    c.rename(qkv_bias="attention_bias", bias="mlp_bias")
    attention, mlp = c.flag("attention_bias", False), c.flag("mlp_bias", False)
    if attention != mlp:
        raise SourceError(
            f"{c.where}: {c.path('attention_bias')} is {str(attention).lower()} and {c.path('mlp_bias')} is "
            f"{str(mlp).lower()}; they must agree, for which biases the projections have is not defined otherwise"
        )
    sizes = Defaults(4096, 10240, 48, 32, 2, 128, vocab=128512, trained=32768, eps=1e-5)
    return _with_biases(c, sizes)


@family("arcee", cls="ArceeForCausalLM", names=LLAMA)
def arcee(c: Config) -> Decoder:
    """AFM: Llama's layer with two matrices around a squared ReLU (So et al. 2021)."""
    sizes = Defaults(2560, 18432, 32, 32, vocab=32000, trained=4096, eps=1e-5, act="relu2")
    p = dense(c, sizes, gated=False, bias=biased(c, "mlp_bias", "ud"))
    return p.repeat(pre_norm(p.attention(bias=biased(c, "attention_bias", "qkvo")), p.mlp, p.norm))


@family("ernie4_5", cls="Ernie4_5ForCausalLM", names=LLAMA, harmless=("compression_ratio",))
def ernie4_5(c: Config) -> Decoder:
    """ERNIE 4.5 (Baidu 2025), dense: one switch for all biases."""
    sizes = Defaults(
        1024, 3072, 18, 16, 2, 128, vocab=103424, trained=131072, eps=1e-5, theta=5e5, tied=True, style="interleaved"
    )
    every = c.flag("use_bias", False)
    p = dense(c, sizes, bias="gud" if every else "")
    return p.repeat(pre_norm(p.attention(bias="qkvo" if every else ""), p.mlp, p.norm))


@family("seed_oss", cls="SeedOssForCausalLM", names=LLAMA)
def seed_oss(c: Config) -> Decoder:
    """Seed-OSS (ByteDance 2025): the output projection's bias has a key of its own."""
    sizes = Defaults(4096, 27648, 64, 80, 8, 128, vocab=155136, trained=524288)
    p = dense(c, sizes, bias=biased(c, "mlp_bias", "gud"))
    bias = biased(c, "attention_bias", "qkv", True) + biased(c, "attention_out_bias", "o")
    return p.repeat(pre_norm(p.attention(bias=bias), p.mlp, p.norm))


@family("smollm3", cls="SmolLM3ForCausalLM", names=LLAMA, harmless=("max_window_layers",))
def smollm3(c: Config) -> Decoder:
    """SmolLM3 (Hugging Face 2025): every fourth layer has no positions (Yang et al. 2025)."""
    sizes = Defaults(2048, 11008, 36, 16, 4, vocab=128256, trained=32768, theta=2e6, tied=True)
    p = dense(c, sizes, bias=biased(c, "mlp_bias", "gud"))
    bias = biased(c, "attention_bias", "qkvo")
    interval = c.size("no_rope_layer_interval", 4)
    turned = c.sequence("no_rope_layers", lambda v: type(v) is int and v in (0, 1), "0 or 1", p.depth)
    if turned is None:
        turned = [int((i + 1) % interval != 0) for i in range(p.depth)]
    slides = c.flag("use_sliding_window", False)
    known = c.maybe("sliding_window")
    kinds = layer_types(c, [SLIDING if slides and known and not turn else FULL for turn in turned])
    window = window_of(c, kinds, None)

    def layer(sort: tuple[str, int]) -> Layer:
        kind, turn = sort
        limit = window if kind == SLIDING else None
        attention = p.attention(bias=bias, window=limit, **({} if turn else {"positions": None}))
        return pre_norm(attention, p.mlp, p.norm, label(kind, "" if turn else "no positions"))

    return p.mixed(list(zip(kinds, turned, strict=True)), layer)
