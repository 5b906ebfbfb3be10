"""OmniASR: the encoder of wav2vec before a text model, which reads samples and not frames."""

from __future__ import annotations

from typing import Any

from assay.blocks import Attention, Mlp
from assay.blocks.towers import Drawn, Multimodal, Tower
from assay.blocks.waves import Convolution, Samples
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, layernorm, pre_norm, under
from assay.sources.families.multimodal import CLASSES, beside, text_of
from assay.spec import ops

SECONDS, RATE = 30, 16_000  # of a sound, and samples in one
LAYER = {
    "Ga": "layer_norm.weight",
    **{f"W{letter}": f"attention.{letter}_proj.weight" for letter in "qkv"},
    "Wo": "attention.out_proj.weight",
    "Gm": "final_layer_norm.weight",
    "Wu": "feed_forward.intermediate_dense.weight",
    "Wd": "feed_forward.output_dense.weight",
}
AROUND = {
    "Ge": "subsampling.layer_norm.weight",
    "Win": "subsampling.projection.weight",
    "Wnear": "encode_positions.conv.weight[(G z) u q]",
    "Wnear_bias": "encode_positions.conv.bias[(G z)]",
    "Gf": "layer_norm.weight",
}


def _convolutions(c: Config) -> tuple[Convolution, ...]:
    """Channels, kernels and steps, each a list as long as the others."""
    usual = {"conv_dim": [512] * 7, "conv_kernel": [10, 3, 3, 3, 3, 2, 2], "conv_stride": [5, 2, 2, 2, 2, 2, 2]}
    c.absent(**usual)
    many = len(c.data["conv_dim"]) if isinstance(c.data["conv_dim"], list) else 0
    listed = []
    for key in usual:
        found = c.sequence(key, lambda v: type(v) is int and v >= 1, "integers of at least 1", many or None)
        if not found:
            c.fail(key, "a list of at least one integer")
        listed.append(found)
    return tuple(Convolution(*sizes) for sizes in zip(*listed, strict=True))


def _named(convolutions: int) -> dict[str, str]:
    """Where each convolution is stored, the first of which reads one channel."""
    found = {}
    for at in range(1, convolutions + 1):
        inner = "1" if at == 1 else f"i{at - 1}"
        path = f"subsampling.conv_layers.{at - 1}."
        found[f"Wwave{at}"] = f"{path}conv.weight[i{at} {inner} q{at}]"
        found[f"Wwave{at}_bias"] = f"{path}conv.bias"
        found[f"Gwave{at}"] = f"{path}layer_norm.weight"
    return found


_LLAMA: dict[str, Any] = {"vocab_size": 11984, "hidden_size": 4096, "intermediate_size": 2816, "num_hidden_layers": 12}
_LLAMA |= {"num_attention_heads": 8, "num_key_value_heads": 8, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5}


@family("omniasr", cls="OmniASRForConditionalGeneration", names={}, classes=CLASSES)
def omniasr(c: Config) -> Multimodal:
    """Omnilingual ASR team 2025, arXiv:2511.09690: one matrix between a wav2vec encoder and a text model."""
    heard = c.child("audio_config")
    heard.absent(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
    heard.skip("model_type", "layerdrop")
    d, h, norm = heard.size("hidden_size"), heard.size("num_attention_heads"), layernorm(heard, "layer_norm_eps")
    each = heard.divides("hidden_size", d, "num_attention_heads", h)
    act, groups = activation(heard, default="gelu"), heard.size("num_conv_pos_embedding_groups", 16)
    heard.divides("hidden_size", d, "num_conv_pos_embedding_groups", groups)
    start = Samples(
        _convolutions(heard),
        d,
        SECONDS * RATE,
        heard.size("num_conv_pos_embeddings", 128),
        groups,
        act,
        heard.flag("conv_bias", True),
        before=norm,
    )
    mlp = Mlp(heard.size("intermediate_size"), gated=False, activation=act, bias="ud")
    layers = (pre_norm(Attention(h, h, each, bias="qkvo", sees="all"), mlp, norm),) * depth(heard)
    text, n = text_of(c, "llama", tied=None, whole=_LLAMA), start.lengths[-1]
    made = [*norm.ops("x", "x", "f"), *ops("tower", "y = linear(x[b n d], Wp1[d j], Wp1_bias[j]) -> [b n j]")]
    names = under("model.audio_tower.", AROUND | under("layers.{i}.", LAYER) | _named(len(start.convolutions)))
    names["Wp1"] = "model.multi_modal_projector.weight"
    end = Drawn("projector", tuple(made), {"d": d, "j": text[0].width})
    c.notes.append(f"each of --images is a sound of {SECONDS} seconds, of which {n:,} tokens are made")
    return beside(c, text, [Tower(start, layers, (end,), d, {"n": n, "o": n}, names, called="audio")])
