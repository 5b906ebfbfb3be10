"""One function a model_type: a config in, a stack of blocks out, with the config class's own defaults.

A family's module is imported when its type is first asked for: one config needs one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from assay.sources.families.common import FAMILIES as REGISTERED
from assay.sources.families.common import Family

__all__ = ["FAMILIES", "Family"]

# the model types of each module; a test holds this against what the modules register
MODULES = {
    "beit": "beit",
    "bert": "bert roberta xlm-roberta camembert data2vec-text",
    "bart": "bart mbart plbart mvp pegasus marian blenderbot blenderbot-small m2m_100",
    "bert_kin": (
        "xlm-roberta-xl roberta-prelayernorm megatron-bert bert-generation ernie layoutlm tapas dpr roformer yoso "
        "nystromformer"
    ),
    "bloom": "bloom falcon mpt",
    "clip": (
        "clip siglip siglip2 clip_vision_model clip_text_model siglip_vision_model siglip_text_model "
        "siglip2_vision_model siglip2_text_model"
    ),
    "cohere": "cohere cohere2",
    "cohere_moe": "cohere2_moe",
    "compact_encoders": "squeezebert convbert fnet mobilebert",
    "cpmant": "cpmant",
    "dbrx": "dbrx",
    "delta_hybrid": "lara_mini qwen3_next qwen3_5_text qwen3_5_moe_text olmo_hybrid",
    "deberta": "deberta deberta-v2",
    "diffllama": "diffllama",
    "dino": "dinov2 dinov2_with_registers dinov3_vit",
    "doge": "doge",
    "downsampled": "aya_vision cohere2_vision lfm2_vl",
    "early_vision": "fuyu git",
    "electra": "distilbert electra albert mpnet rembert",
    "dots3": "dots3_note_text",
    "ernie_moe": "ernie4_5_moe hy_v3 hunyuan_v1_moe",
    "esm": "esm",
    "exaone_moe": "exaone_moe kolibri1",
    "llama_kin": "nanochat jais2 bitnet helium",
    "gated_moe": "afmoe laguna beam",
    "gemma3n": "gemma3n",
    "gemma_vision": "gemma4 gemma4_unified",
    "gemma_shared": "gemma3n_text gemma4_text gemma4_unified_text gemma4_unified_assistant",
    "gemma": "gemma gemma2 vaultgemma gemma3_text",
    "glm": "glm glm4",
    "glm_moe": "glm4_moe sarvam_moe solar_open dots1",
    "funnel": "funnel",
    "got_ocr": "got_ocr2",
    "gpt": "gpt2 openai-gpt gpt_bigcode gpt_neo ctrl",
    "granite": "granite granite_swa hyperclovax",
    "granite_moe": "granitemoe granitemoeshared granitemoe_swa",
    "granite_speech": "granite_speech granite_speech_plus",
    "hyper": "hy_v4 deepseek_v4",
    "remote_code": "baichuan qwen chatglm minicpm internlm2",
    "remote_experts": "deepseek bailing_moe",
    "griffin": "recurrent_gemma",
    "hrm": "hrm_text",
    "ibert": "ibert",
    "idefics": "idefics",
    "idefics2": "idefics2",
    "inkling": "inkling_text inkling2_text inkling2_loop_text",
    "jetmoe": "jetmoe",
    "latent": "deepseek_v3 kimi_k2 deepseek_v2 glm4_moe_lite axk1 sarvam_mla youtu minicpm3",
    "lfm": "lfm2 lfm2_moe lfm3",
    "longcat": "longcat_flash",
    "llama": "llama iquestcoder exaone internlm3 arcee ernie4_5 seed_oss smollm3",
    "glm_vision": "glm4v glm4v_moe",
    "kimi_linear": "kimi_linear bailing_hybrid",
    "kimi_vision": "kimi_k25",
    "llama4": "llama4_text",
    "sounds": "qwen2_audio audioflamingo3 musicflamingo voxtral glmasr moss_transcribe_diarize qwen3_asr",
    "tiled": "llama4 idefics3 smolvlm internvl",
    "llava": "pixtral llava llava_next llava_onevision vipllava paligemma gemma3 mistral3",
    "luke": "luke",
    "mamba": "mamba falcon_mamba mamba2",
    "mimo": "mimo_v2_flash",
    "minimax": "minimax",
    "minimax_m3": "minimax_m3_vl_text",
    "mistral": "mistral ministral ministral3 cwm",
    "mixtral": "mixtral phimoe minimax_m2 olmoe flex_olmo gpt_oss aria_text",
    "mllama": "mllama",
    "modern_encoders": "modernbert eurobert esmc",
    "modernbert_decoder": "modernbert-decoder",
    "nemotron": "nemotron",
    "neomme": "neomme",
    "nemotron_h": "nemotron_h",
    "neox": "gpt_neox gpt_neox_japanese gptj codegen",
    "olmo": "olmo olmo2 olmo3 exaone4",
    "omniasr": "omniasr",
    "opt": "opt xglm biogpt",
    "perceiver": "perceiver",
    "phi": "phi phi3 starcoder2 stablelm persimmon",
    "qwen": "qwen2 qwen3 hunyuan_v1_dense apertus apertus1p5_text",
    "sparse_encoders": "longformer big_bird mra",
    "sparse_latent": "deepseek_v32 glm_moe_dsa axk2",
    "roc_bert": "roc_bert",
    "text_image_encoders": "modernvbert ultravbert",
    "text_decoders": "trocr moshi",
    "ssm_hybrid": "jamba bamba granitemoehybrid falcon_h1",
    "ultrabert": "ultrabert",
    "vit": "vit deit vit_msn",
    "xlm": "xlm flaubert xlnet",
    "xlstm": "xlstm",
    "xmod": "xmod",
    "zamba": "zamba zamba2",
    "zaya": "zaya",
    "qwen_vl": "qwen2_vl qwen2_5_vl qwen3_vl qwen3_vl_moe qwen3_5 qwen3_5_moe",
    "qwen_moe": "qwen2_moe qwen3_moe flint mellum",
    "rotary_encoders": "nomic_bert gte new jina_embeddings_v3",
    "whisper": "whisper",
    "long_source": "led bigbird_pegasus pegasus_x",
    "t5gemma": "t5gemma t5gemma2",
    "paired": "encoder-decoder",
    "rwkv": "rwkv",
    "seamless": "seamless_m4t seamless_m4t_v2",
    "prophetnet": "prophetnet",
    "translation": "fsmt nllb-moe",
    "streamed": "voxtral_realtime",
    "switch": "switch_transformers",
    "t5": "t5 mt5 umt5 longt5",
}
_HOME = {model_type: module for module, types in MODULES.items() for model_type in types.split()}


class Families(Mapping[str, Family]):
    """The families by model_type; all of them are imported only to be listed, or for a type that nobody knows."""

    def __getitem__(self, model_type: str) -> Family:
        """The family of a type. Raises KeyError."""
        if model_type not in REGISTERED:
            for module in [_HOME[model_type]] if model_type in _HOME else MODULES:
                import_module(f"assay.sources.families.{module}")
        return REGISTERED[model_type]

    def __iter__(self) -> Iterator[str]:
        for module in MODULES:
            import_module(f"assay.sources.families.{module}")
        return iter(REGISTERED)

    def __len__(self) -> int:
        return sum(1 for _ in self)


FAMILIES = Families()
