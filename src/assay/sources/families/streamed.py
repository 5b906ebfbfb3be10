"""A text model that follows a stream of sound: each of its tokens is the sum of a word and a moment."""

from __future__ import annotations

from typing import Any

from assay.blocks import Decoder, Mlp
from assay.blocks.sounds import UnplacedFrames
from assay.blocks.stacks import Wrapped
from assay.blocks.towers import Drawn, Multimodal, Recent, Tower
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import Family, activation, depth, family, heads, pre_norm, rms, rope, under
from assay.sources.families.dense import FULL, LLAMA, SLIDING, Defaults, dense
from assay.sources.families.multimodal import CLASSES, beside, text_of
from assay.sources.families.names import GATED, PROJECTIONS
from assay.sources.families.sounds import OLD, TWO, always, two
from assay.spec import Op, Sight, ops

DELAYED = LLAMA | under(
    "model.layers.{i}.ada_rms_norm.", {"Wdelay_in": "linear1.weight", "Wdelay_out": "linear2.weight"}
)
STREAM = TWO | under(
    "model.audio_tower.",
    {
        "Wconv1": "embedder.conv1.weight[i j q]",
        "Wconv2": "embedder.conv2.weight[d i q]",
        "Gf": "norm.weight",
        **under(
            "layers.{i}.",
            {"Ga": "self_attn_layer_norm.weight", "Gm": "final_layer_norm.weight", **PROJECTIONS, **GATED},
        ),
    },
)
HALF_A_MINUTE = 3000  # frames
_TEXT: dict[str, Any] = {"vocab_size": 131072, "hidden_size": 3072, "intermediate_size": 9216}
_TEXT |= {"num_hidden_layers": 26, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128}
_TEXT |= {"max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 1e6, "sliding_window": 8192}
_MINISTRAL = Defaults(4096, 14336, 32, 32, 8, trained=131072)


class Delayed(Wrapped):
    """A feed-forward layer whose input is scaled by what two matrices make of the sines of the delay, once a pass.

    Axis: j between the two.
    """

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**self.body.sizes(), "j": 32}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y` from `x`, both `[b n d]`."""
        made = ops(
            "norm",
            "t = linear(delay[d], Wdelay_in[d j]) -> [j]",
            "t = gelu(t[j]) -> [j]",
            "t = linear(t[j], Wdelay_out[j d]) -> [d]",
            f"xt = mul({x}[b n d], t[d]) -> [b n d]",
            f"{x} = add({x}[b n d], xt[b n d]) -> [b n d]",
        )
        return made + self.body.ops(x, y)


def delayed(c: Config) -> Decoder:
    """Mistral's layers, each told how many tokens the words are behind the sound."""
    p = dense(c, _MINISTRAL)
    window = c.maybe("sliding_window", 4096)
    return p.repeat(pre_norm(p.attention(window=window), Delayed(p.mlp), p.norm, FULL if window is None else SLIDING))


WORDS = Family("voxtral_realtime_text", delayed, DELAYED, "VoxtralRealtimeTextForCausalLM")


def stream(c: Config) -> Tower:
    """An encoder of which every position sees the last few: two convolutions, rotations, three matrices of an MLP."""
    c.rename(**OLD)
    c.absent(num_attention_heads=32, num_hidden_layers=32, rms_norm_eps=1e-5, head_dim=64, intermediate_size=5120)
    c.skip("model_type", "vocab_size", "activation_function", "max_position_embeddings", "layerdrop")
    d, norm = c.size("hidden_size", 1280), rms(c)
    h = heads(c, d)
    if h.kv != h.query:
        c.fail("num_key_value_heads", f"num_attention_heads, {int(h.query)}, for this model_type")
    last = c.maybe("sliding_window", 750)
    attention = Recent(h.query, h.query, h.width, bias="qvo", positions=rope(c, h.width), last=last)
    mlp = Mlp(c.size("intermediate_size"), activation=activation(c), bias="d")
    start = UnplacedFrames(c.size("num_mel_bins", 128), d)
    layers = (pre_norm(attention, mlp, norm),) * depth(c)
    axes = {"n": "patches", "m": ("patches", 2)}
    return Tower(start, layers, (), d, axes, STREAM, called="audio")


@family("voxtral_realtime", cls="VoxtralRealtimeForConditionalGeneration", names={}, classes=CLASSES)
def voxtral_realtime(c: Config) -> Multimodal:
    """Mistral AI 2026: positions of a causal encoder side by side, two matrices, added to the words' embeddings."""
    always(c, _TEXT)
    c.skip("hidden_size", "audio_length_per_tok", "default_num_delay_tokens")
    tower, many = stream(c.child("audio_config")), c.size("downsample_factor", 4)
    text = text_of(c, WORDS.model_type, tied=True, own=WORDS)
    out = text[0].width
    made = [
        *rms(c.child("audio_config"), 1e-5).ops("x", "x", "f"),
        *ops("tower", "y = columns(x[b n d], stride=q, pad=0) -> [b o d q]"),
        *two(c, False, axes="d q"),
    ]
    end = Drawn("projector", tuple(made), {"d": tower.width, "q": many, "j": out, "k": out})
    tower = replace(tower, ends=(end,), axes={**tower.axes, "o": "image_tokens"})
    tokens = HALF_A_MINUTE // (2 * many)
    return beside(c, text, [tower], Sight(tokens=tokens, patches=many, says=f"a sound of {2 * many * tokens:,} frames"))
