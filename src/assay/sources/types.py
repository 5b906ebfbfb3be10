"""Model types that are not read as they stand: other names of known ones, and other kinds of model by name.

Read only once a `model_type` is not found among the families.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from assay.records import dataclass, field
from assay.sources.shown import short


@dataclass(frozen=True)
class Renamed:
    """A type whose configs are those of another: `keys` names old keys today's way, `values` are its own defaults."""

    to: str
    keys: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


# the code that such a repository carries beside its config computes what the named type does
_FALCON = {"n_head": "num_attention_heads", "n_layer": "num_hidden_layers", "n_head_kv": "num_kv_heads"}
RENAMED = {
    "Yi": Renamed("llama"),
    "xverse": Renamed("llama"),
    "internlm": Renamed("llama", {"bias": "attention_bias"}, {"attention_bias": True}),
    "gpt-sw3": Renamed("gpt2"),
    "xlm-prophetnet": Renamed("prophetnet"),
    "phi4": Renamed("phi3"),
    "minimax_text_01": Renamed("minimax"),
    "stablelm_epoch": Renamed("stablelm", {"rope_pct": "partial_rotary_factor", "norm_eps": "layer_norm_eps"}),
    "mymodernbert": Renamed("modernbert"),
    "RefinedWeb": Renamed("falcon", _FALCON, {"new_decoder_architecture": True}),
    "RefinedWebModel": Renamed("falcon", _FALCON, {"multi_query": False, "parallel_attn": False}),
}

_KINDS = {
    "an encoder": """
        canine ernie_m lilt markuplm mega neobert nezha qdqbert reformer retribert splinter
    """,
    "an encoder-decoder": """
        pop2piano speech_to_text speecht5 udop
    """,
    "a model with sparse latent attention": "deepseek_ref",
    "a recurrent or state-space model": "hgrn2 retnet rwkv5 rwkv6 rwkv7",
    "a hybrid of attention with recurrent layers": "hymba plamo2",
    "a decoder of patches of bytes, whose work depends on how well the text can be foretold": "blt",
    "a decoder of a make that is not described": "cohere_compass_text qwen4_exp_text",
    "a vision model": """
        convnext convnextv2 cvt dinat dino dinov3_convnext
        efficientnet hiera ijepa levit mobilevit mobilevitv2 poolformer pvt pvt_v2 regnet resnet sam sam2 segformer
        swin swin2sr swinv2 timesformer timm_wrapper videomae vit_mae vitdet vivit yolos
    """,
    "a speech or audio model": """
        audio-spectrogram-transformer bark clap csm data2vec-audio encodec hubert mimi moonshine musicgen
        musicgen_melody parakeet_ctc sew sew-d unispeech unispeech-sat vits wav2vec2 wav2vec2-bert wav2vec2-conformer
        wavlm xcodec
    """,
    "a hybrid text model behind a conformer that halves a sound three times": "nemo_speechlm",
    "a text model with an adapter for each other modality": "phi4_multimodal",
    "a text model behind a tokenizer of sound made of convolutions": "vibevoice_asr",
    "a text model with towers of other modalities": """
        align altclip apertus1p5 aria blip blip-2 blip_text_model bridgetower chameleon chinese_clip
        cohere_compass colpali deepseek_vl deepseek_vl_v2
        dots3_note emu3 ernie4_5_vl_moe evolla florence2 instructblip internvl_chat janus
        kimi_k3 kimi_vl kosmos-2 llava_llama llava_mistral llava_next_video llava_qwen2 locateanything
        maira2 minicpmo minicpmv molmo molmo2 NVLM_D ovis2 perception_lm phi3_v qwen2_5_omni qwen3_omni_moe
        qwen4_exp speech-encoder-decoder ultravox video_llava vilt vision-encoder-decoder
        vision-text-dual-encoder visual_bert xclip
    """,
    "a diffusion or time-series model": """
        autoformer chronos diffusion_gemma dream informer llada patchtsmixer patchtst time_series_transformer timesfm
    """,
}
OTHER_KINDS = {model_type: kind for kind, types in _KINDS.items() for model_type in types.split()}


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """At most three of the known words that are like this one, the nearest first; case does not count."""
    from difflib import get_close_matches

    spelled = {one.casefold(): one for one in known}
    found = get_close_matches(word.casefold()[:100], spelled, n=3, cutoff=0.6)
    return [spelled[one] for one in found]


def refusal(model_type: str, known: Iterable[str], remote_code: bool) -> str:
    """Why a type is not read: what kind of model it is, that it needs foreign code, or what it may have meant."""
    said = f"model_type is {short(model_type)}"
    kind = OTHER_KINDS.get(model_type)
    if kind is not None:
        return f"{said}, {kind}: not read so far"
    near = nearest(model_type, sorted(known))
    meant = f"near it: {', '.join(near)}" if near else "`assay families` lists those that are"
    if remote_code:
        return f"{said}, which is not known, and its auto_map needs code from the hub, which is never run; {meant}"
    return f"{said}, which is not known; {meant}"
