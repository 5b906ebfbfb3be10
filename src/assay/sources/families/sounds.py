"""Models of text and sound: Whisper's encoder, or one like it, before a text model.

What `--images` counts is a sound of the length that the encoder was made for, half a minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.blocks import Attention, Mlp, Norm
from assay.blocks.encoder_decoder import Frames
from assay.blocks.sounds import Planes, UnplacedFrames
from assay.blocks.towers import Drawn, Multimodal, Tower, Windowed
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.bart import ENCODER_LAYER
from assay.sources.families.common import ACTIVATIONS, activation, depth, family, pre_norm, rope, under
from assay.sources.families.multimodal import CLASSES, beside, placed, text_of
from assay.spec import Op, Sight, ops

AROUND = {
    "Wconv1": "conv1.weight[i j q]",
    "Wconv2": "conv2.weight[d i q]",
    "E_position": "embed_positions.weight",
    "Gf": "layer_norm.weight",
}
TWO = under(
    "model.multi_modal_projector.",
    {
        "Wp1": "linear_1.weight[j (q d)]",
        "Wp1_bias": "linear_1.bias",
        "Wp2": "linear_2.weight",
        "Gprojector": "norm.weight",
    },
)
WHISPER = under("model.audio_tower.", {**AROUND, **under("layers.{i}.", ENCODER_LAYER)}) | TWO
GLM = TWO | under(
    "model.audio_tower.",
    {
        **{key: AROUND[key] for key in ("Wconv1", "Wconv2")},
        "Gf": "norm.weight",
        **under(
            "layers.{i}.",
            {
                "Ga": "input_layernorm.weight",
                **{f"W{letter}": f"self_attn.{letter}_proj.weight" for letter in "qkvo"},
                "Gm": "post_attention_layernorm.weight",
                "Wu": "mlp.fc1.weight",
                "Wd": "mlp.fc2.weight",
            },
        ),
    },
)
OLD = {
    "d_model": "hidden_size",
    "encoder_layers": "num_hidden_layers",
    "encoder_attention_heads": "num_attention_heads",
    "encoder_ffn_dim": "intermediate_size",
    "encoder_layerdrop": "layerdrop",
}
SKIPPED = (
    "model_type",
    "layerdrop",
    "scale_embedding",
    "vocab_size",
    "audio_token_index",
    "dropout",
    "rope_parameters",
)
NORM = Norm("layernorm", "gain+bias", 1e-5)


def within(c: Config, default: int | None) -> Sight:
    """Sounds stand in a text in the places of tokens of one id; `default` is the class's."""
    return placed(c, default, "audio_token_id", "audio_token_index")


def whisper(c: Config, layers: int = 32, heads: int = 20, width: int = 1280, mels: int = 128) -> Tower:
    """Whisper's encoder without its last norm."""
    c.rename(**OLD)
    c.absent(num_hidden_layers=layers, num_attention_heads=heads, hidden_size=width, intermediate_size=4 * width)
    c.skip(*SKIPPED)
    d, n, h = c.size("hidden_size"), c.size("max_source_positions", 1500), c.size("num_attention_heads")
    each = c.divides("hidden_size", d, "num_attention_heads", h)
    attention = Attention(h, h, each, bias="qvo", sees="all")
    mlp = Mlp(
        c.size("intermediate_size"), gated=False, activation=activation(c, "activation_function", "gelu"), bias="ud"
    )
    start = Frames(c.size("num_mel_bins", mels), d, positions=n)
    return Tower(
        start, (pre_norm(attention, mlp, NORM),) * depth(c), (), d, {"n": n, "m": 2 * n}, WHISPER, called="audio"
    )


def heard(c: Config, tower: Tower, made: list[Op], tokens: int, **sizes: int) -> Tower:
    """The tower with its projector, and a note of what a sound is."""
    c.notes.append(f"each of --images is a sound of {tower.axes['m']} frames, of which {tokens} tokens are made")
    end = Drawn("projector", tuple(made), {"d": tower.width, **sizes})
    return replace(tower, ends=(end,), axes={**tower.axes, "o": tokens})


def joined() -> list[Op]:
    """Neighbours side by side."""
    return ops("tower", "y = columns(x[b n d], stride=q, pad=0) -> [b o d q]")


def halved() -> list[Op]:
    """The mean of two neighbours, then the norm."""
    pooled = ops("tower", "y = columns(x[b n d], stride=e, pad=0) -> [b o d e]", "y = mean(y[b o d e]) -> [b o d]")
    return [*pooled, *NORM.ops("y", "y", "f", "b o d")]


def two(c: Config, bias: bool, usual: str = "gelu", axes: str = "d") -> list[Op]:
    """Two matrices around an activation."""
    act = ACTIVATIONS[c.word("projector_hidden_act", usual, ACTIVATIONS)]
    one, other = (", Wp1_bias[j]", ", Wp2_bias[k]") if bias else ("", "")
    return ops(
        "tower",
        f"y = linear(y[b o {axes}], Wp1[{axes} j]{one}) -> [b o j]",
        f"y = {act}(y[b o j]) -> [b o j]",
        f"y = linear(y[b o j], Wp2[j k]{other}) -> [b o k]",
    )


def grouped(c: Config, tower: Tower, key: str) -> int:
    """How many neighbours lie side by side in a vector as wide as the config says."""
    inner = c.size(key)
    c.divides(key, inner, "hidden_size", tower.width)
    return inner // tower.width


@family("qwen2_audio", cls="Qwen2AudioForConditionalGeneration", names={}, classes=CLASSES)
def qwen2_audio(c: Config) -> Multimodal:
    """Chu et al. 2024, arXiv:2407.10759: the mean of every two positions, one matrix."""
    tower, text = whisper(c.child("audio_config")), text_of(c, "qwen2", tied=None)
    made = [*halved(), *ops("tower", "y = linear(y[b o d], Wp1[d j], Wp1_bias[j]) -> [b o j]")]
    tower = heard(c, tower, made, int(tower.axes["n"]) // 2, e=2, j=text[0].width)
    one = {"Wp1": "model.multi_modal_projector.linear.weight", "Wp1_bias": "model.multi_modal_projector.linear.bias"}
    return beside(c, text, [replace(tower, names={**WHISPER, **one})], within(c, 151646))


def flamingo(c: Config, sight: Sight | None = None) -> Multimodal:
    """The mean of every two positions, two matrices."""
    tower, text = whisper(c.child("audio_config")), text_of(c, "qwen2", tied=None)
    made = [*halved(), *two(c, c.flag("projector_bias", True))]
    out = text[0].width
    tower = heard(c, tower, made, int(tower.axes["n"]) // 2, e=2, j=out, k=out)
    names = {**WHISPER, "Wp1": "model.multi_modal_projector.linear_1.weight"}
    return beside(c, text, [replace(tower, names=names)], sight)


@family("audioflamingo3", cls="AudioFlamingo3ForConditionalGeneration", names={}, classes=CLASSES)
def audioflamingo3(c: Config) -> Multimodal:
    """Goel et al. 2025, arXiv:2507.08128."""
    return flamingo(c, within(c, 151669))


@family("musicflamingo", cls="MusicFlamingoForConditionalGeneration", names={}, classes=CLASSES)
def musicflamingo(c: Config) -> Multimodal:
    """Ghosh et al. 2025, arXiv:2511.10289: the same, with the seconds of a sound as rotations, which are no weights."""
    c.skip("rope_parameters", "audio_frame_step", "max_position_embeddings", "head_dim", "partial_rotary_factor")
    return flamingo(c)


_MISTRAL: dict[str, Any] = {"vocab_size": 131072, "hidden_size": 3072, "intermediate_size": 8192}
_MISTRAL |= {"num_hidden_layers": 30, "num_key_value_heads": 8, "max_position_embeddings": 131072}
_MISTRAL |= {"rms_norm_eps": 1e-5, "rope_theta": 1e8, "head_dim": 128}


def always(c: Config, values: Mapping[str, Any]) -> None:
    """Values that the class gives a text model of any config."""
    c.child("text_config").absent(**values)


@family("voxtral", cls="VoxtralForConditionalGeneration", names={}, classes=CLASSES)
def voxtral(c: Config) -> Multimodal:
    """Liu et al. 2025, arXiv:2507.13264: four positions side by side, two matrices."""
    always(c, _MISTRAL)
    c.skip("hidden_size")
    inner = c.child("audio_config")
    tower, text = whisper(inner), text_of(c, "llama", tied=None)
    many = grouped(inner, tower, "intermediate_size")
    made = [
        *NORM.ops("x", "x", "f"),
        *joined(),
        *two(c, False, axes="d q"),
    ]
    out = text[0].width
    tower = heard(c, tower, made, int(tower.axes["n"]) // many, q=many, j=out, k=out)
    return beside(c, text, [tower], within(c, None))


_GLM: dict[str, Any] = {"vocab_size": 59264, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28}
_GLM |= {"num_attention_heads": 16, "num_key_value_heads": 4, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5}


@family("glmasr", cls="GlmAsrForConditionalGeneration", names={}, classes=CLASSES)
def glmasr(c: Config) -> Multimodal:
    """Zhipu AI 2025: rotations in the place of the table of positions; four positions side by side."""
    always(c, _GLM)
    seen = c.child("audio_config")
    seen.absent(hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_attention_heads=20)
    seen.skip("model_type")
    d, h, n = seen.size("hidden_size"), seen.size("num_attention_heads"), seen.size("max_position_embeddings", 1500)
    groups = seen.maybe("num_key_value_heads") or h
    seen.divides("num_attention_heads", h, "num_key_value_heads", groups)
    each = seen.maybe("head_dim") or seen.divides("hidden_size", d, "num_attention_heads", h)
    attention = Attention(h, groups, each, bias="qvo", positions=rope(seen, each, partial=0.5), sees="all")
    mlp = Mlp(seen.size("intermediate_size"), gated=False, activation=activation(seen, default="gelu"), bias="ud")
    start = UnplacedFrames(seen.size("num_mel_bins", 128), d)
    layers = (pre_norm(attention, mlp, NORM),) * depth(seen)
    tower = Tower(start, layers, (), d, {"n": n, "m": 2 * n}, GLM, called="audio")
    text = text_of(c, "llama", tied=True)
    many = grouped(seen, tower, "intermediate_size")
    made = [
        *NORM.ops("x", "x", "f"),
        *joined(),
        *two(c, True, axes="d q"),
    ]
    out = text[0].width
    return beside(c, text, [heard(c, tower, made, n // many, q=many, j=2 * out, k=out)], within(c, 59260))


_MOSS: dict[str, Any] = {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28}
_MOSS |= {"num_attention_heads": 16, "num_key_value_heads": 8, "max_position_embeddings": 131072}


@family("moss_transcribe_diarize", cls="MossTranscribeDiarizeForConditionalGeneration", names={}, classes=CLASSES)
def moss(c: Config) -> Multimodal:
    """MOSS Team 2026: several positions side by side, two matrices, a norm."""
    c.skip("audio_chunk_size")
    tower = whisper(c.child("audio_config"), 24, 16, 1024, 80)
    text = text_of(c, "qwen3", tied=True, whole=_MOSS)
    many, out = c.size("audio_merge_size", 4), text[0].width
    eps = c.child("text_config").positive("rms_norm_eps", 1e-6)
    made = [
        *NORM.ops("x", "x", "f"),
        *joined(),
        *two(c, c.flag("projector_bias", True), "silu", "d q"),
        *Norm("layernorm", "gain+bias", eps).ops("y", "y", "projector", "b o k", "k"),
    ]
    tower = heard(c, tower, made, -(-int(tower.axes["n"]) // many), q=many, j=out, k=out)
    return beside(c, text, [tower], within(c, 151671))


ASR = TWO | under(
    "model.audio_tower.",
    {
        "Wplane1": "conv2d1.weight[i 1 r q]",
        "Wplane2": "conv2d2.weight[i2 i r q]",
        "Wplane3": "conv2d3.weight[i3 i2 r q]",
        "Wflat": "conv_out.weight[d (i3 h4)]",
        "Gf": "ln_post.weight",
        **under("layers.{i}.", ENCODER_LAYER),
    },
)
_ASR: dict[str, Any] = {"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28, "head_dim": 128}
_ASR |= {"num_attention_heads": 16, "num_key_value_heads": 8, "max_position_embeddings": 65536}


@family("qwen3_asr", cls="Qwen3ASRForConditionalGeneration", names={}, classes=CLASSES)
def qwen3_asr(c: Config) -> Multimodal:
    """Qwen Team 2026, Qwen3-ASR: chunks through planes of convolutions; attention within windows of chunks."""
    c.skip("timestamp_token_id", "token_classification_bias", "initializer_range")
    seen = c.child("audio_config")
    seen.rename(**OLD)
    seen.absent(num_hidden_layers=24, num_attention_heads=16, hidden_size=1024, intermediate_size=4096)
    seen.skip(*SKIPPED, "max_position_embeddings", "conv_chunksize")
    d, h = seen.size("hidden_size"), seen.size("num_attention_heads")
    chunk, window = 2 * seen.size("n_window", 50), seen.size("n_window_infer", 800)
    near = max(1, window // chunk)  # chunks that see each other
    chunks = near * max(1, round(3000 / (near * chunk)))
    channels = seen.size("downsample_hidden_size", 480)
    start = Planes(seen.size("num_mel_bins", 128), channels, chunk, chunks, d)
    each = seen.divides("hidden_size", d, "num_attention_heads", h)
    attention = Windowed(h, h, each, bias="qkvo", patches=near * start.length // chunks)
    act = activation(seen, "activation_function", "gelu")
    mlp = Mlp(seen.size("intermediate_size"), gated=False, activation=act, bias="ud")
    axes = {"n": start.length, "m": chunk * chunks}
    layers = (pre_norm(attention, mlp, NORM),) * depth(seen)
    tower = Tower(start, layers, (), d, axes, ASR, called="audio")
    made = [
        *NORM.ops("x", "x", "f"),
        *ops(
            "tower",
            "y = linear(x[b n d], Wp1[d j], Wp1_bias[j]) -> [b n j]",
            f"y = {act}(y[b n j]) -> [b n j]",
            "y = linear(y[b n j], Wp2[j k], Wp2_bias[k]) -> [b n k]",
        ),
    ]
    text = text_of(c, "qwen3", tied=True, whole=_ASR)
    tower = heard(c, tower, made, start.length, j=d, k=seen.size("output_dim", 3584))
    names = {**ASR, "Wp1": "model.multi_modal_projector.linear_1.weight"}
    return beside(c, text, [replace(tower, names=names)])
