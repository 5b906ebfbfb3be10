"""Reports of caches, of states, and of models that keep nothing or share what they keep."""

from __future__ import annotations

from typing import Any

from drawn import LLAMA3_8B, LLAMA3_70B, LLAMA_7B, draw, read
from reported.base import GIB, LLAMA31_405B, MIB, cached, case, deepseek_v3, gpt_oss, one, per_token, qwen

from assay.spec import Model


def gemma3_27b() -> Model:
    return draw(
        layers=62, d=5376, heads=32, kv=16, head=128, ff=21_504, vocab=262_144, tied=True, arrangement="sandwich",
        qk_norm="head", window=lambda i: None if (i + 1) % 6 == 0 else 1024,
    )  # fmt: skip


def bare(layers: int, kv: int, head: int, window: int | None = None) -> Model:
    """Layers told by what they cache."""
    return draw(layers=layers, d=64, heads=kv, kv=kv, head=head, ff=64, vocab=10, window=lambda i: window)


@case("K02", (163_840, 49_152))
def head_widths_of_their_own() -> tuple[int, int]:
    mistral = draw(layers=40, d=5120, heads=32, kv=8, head=128, ff=32_768, vocab=131_072)
    no_window = draw(layers=24, d=2880, heads=64, kv=8, head=64, vocab=10, ff=2880)
    return per_token(mistral), per_token(no_window)


@case("K04", 70_272)
def latent_cache() -> int:
    return per_token(deepseek_v3())


@case("K05", 35_136)
def latent_elements() -> int:
    return per_token(deepseek_v3()) // 2


@case("K06", ("4.29", "1.072"))
def latent_cache_of_a_long_context() -> tuple[str, str]:
    half, quarter = (cached(deepseek_v3(), 65_536, cache=kind) / GIB for kind in ("fp16", "int4"))
    return f"{half:.2f}", f"{quarter:.3f}"


@case("K42", 31_104)
def latent_cache_of_every_rank() -> int:
    """One latent vector cannot be split by heads: a rank holds what the model needs."""
    return per_token(
        read({"model_type": "deepseek_v2", "num_hidden_layers": 27, "q_lora_rank": None, "num_experts_per_tok": 6})
    )


@case("K07", 11_173_625_856, "10.4062 GiB")
def windows_of_gemma3() -> int:
    size = cached(gemma3_27b(), 131_072)
    assert f"{size / GIB:.4f}" == "10.4062"
    return size


@case("K09", 4.375, "4.375 GiB")
def qwen3_06b() -> float:
    return cached(draw(layers=28, d=1024, heads=16, kv=8, head=128, ff=3072, vocab=151_936), 40_960) / GIB


@case("K17", "2.894", "2.894 GB")
def two_kinds_of_layers() -> str:
    both = one(bare(25, 8, 256, 1024), past=131_071) + one(bare(5, 2, 512), past=131_071)
    assert both.cache.marginal_bytes_per_token == 20_480
    return f"{both.cache.bytes / 1e9:.3f}"


@case("K18", (16_384, 335_544_320), "16,384", "335,544,320")
def fields_of_two_kinds_of_layers() -> tuple[int, int]:
    windowed, whole = (one(bare(40, 8, 256, 1024), past=99_999), one(bare(8, 1, 512), past=99_999))
    return (windowed + whole).cache.marginal_bytes_per_token, windowed.cache.bytes


@case("K19", "3.0029", "3.0029 GiB")
def windows_of_gpt_oss() -> str:
    return f"{cached(gpt_oss(24, 32), 131_072) / GIB:.4f}"


@case("K23", (516_096, "0.4922", "7.69", "61.52", "66.06", "63.00"))
def llama31_405b_table() -> tuple[Any, ...]:
    model = read(LLAMA31_405B)
    sizes = [cached(model, c) for c in (1024, 16_000, 128_000, 131_072)]
    return (
        per_token(model),
        f"{sizes[0] / GIB:.4f}",
        *(f"{s / GIB:.2f}" for s in sizes[1:3]),
        f"{sizes[2] / 1e9:.2f}",
        f"{sizes[3] / GIB:.2f}",
    )


@case("K24", (524_288, 131_072))
def heads_and_groups() -> tuple[int, int]:
    return per_token(read(LLAMA_7B)), per_token(read(LLAMA3_8B))


@case("K25", 131_072)
def groups_not_width() -> int:
    return per_token(read(LLAMA3_8B))


@case("K26", 327_680)
def groups_not_query_heads() -> int:
    return per_token(read(LLAMA3_70B))


@case("K30", 524_288)
def mpt_7b() -> int:
    return per_token(read({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50_432}))


@case("K33", 4_294_967_296)
def eight_thousand_tokens_in_f16() -> int:
    return cached(read(LLAMA_7B), 8192)


@case("K34", 14.0, "14.0 GiB")
def qwen25_7b_long() -> float:
    return cached(qwen(28, 3584, 28, 4, 18_944, 152_064), 262_144) / GIB


@case("K35", 10_752, "10752 MiB")
def mistral_22b_long() -> int:
    size = cached(draw(layers=56, d=6144, heads=48, kv=8, head=128, ff=16_384, vocab=32_768), 49_152)
    assert size % MIB == 0
    return size // MIB


@case("K39", (4096, 188_416))
def one_layer_of_a_draft() -> tuple[int, int]:
    return per_token(bare(1, 8, 128)), per_token(bare(46, 8, 128))


@case("K43", 939_524_096)
def four_slots() -> int:
    return cached(qwen(28, 3584, 28, 4, 18_944, 152_064), 4096, batch=4)


@case("K44", 831_744)
def cache_dtype_is_obeyed() -> int:
    gemma = draw(layers=18, d=2048, heads=8, kv=1, head=256, ff=16_384, vocab=256_000, tied=True)
    budget = 415_872 * per_token(gemma, cache="bf16")
    assert per_token(gemma, cache="bf16") == 18_432
    return budget // per_token(gemma, cache="fp8")


# -- states of fixed size --------------------------------------------------------------------------------------------

QWEN35_27B = {
    "model_type": "qwen3_5_text", "num_hidden_layers": 64, "hidden_size": 5120, "num_attention_heads": 24,
    "num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 17_408, "linear_num_value_heads": 48,
}  # fmt: skip
DELTA_LAYERS, CONVOLVED = 24, 8192  # of Qwen 3.5 9B: layers with a state, channels of their convolutions


@case("K10", 65_536 * 262_144, "65,536 bytes per token", "16.00 GiB")
def sixteen_of_sixty_four_layers_keep_keys() -> int:
    kept = one(read(QWEN35_27B), past=262_143, cache="fp16").cache
    assert kept.marginal_bytes_per_token == 65_536
    return int(kept.bytes - kept.fixed_bytes)


@case("K12", 27_648)
def twenty_four_of_ninety_three_layers_keep_latents() -> int:
    kinds = ["full_attention" if i % 4 == 3 or i == 92 else "linear_attention" for i in range(93)]
    assert kinds.count("full_attention") == 24
    sizes = {"num_hidden_layers": 93, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "layer_types": kinds}
    return per_token(read({"model_type": "kimi_linear", **sizes}), cache="bf16")


@case("K13", (52_690_944, 51_511_296))
def a_state_costs_the_same_at_any_length() -> tuple[int, int]:
    """The report counts what is held between steps: a column of each channel less than a step reads."""
    model = read({"model_type": "qwen3_5_text"})

    def held(cache: str, size: int) -> int:
        fixed = {one(model, past=past, cache=cache).cache.fixed_bytes for past in (0, 10**6)}
        return int(fixed.pop()) - DELTA_LAYERS * CONVOLVED * size if len(fixed) == 1 else -1

    return held("fp32", 4), held("bf16", 2)


@case("K14", 65_536, "65,536 bytes")
def states_do_not_grow() -> int:
    """Requests that fit are a budget over what one of that length keeps, not over a rate per token."""
    return per_token(read(QWEN35_27B), cache="fp16")


# -- encoders, encoder-decoders, shared keys ---------------------------------------------------------------------------


@case("K37", (0, 567_755_777, "1.06"), "KV 0", "567,755,777", "1.06 GiB")
def a_reranker_keeps_nothing() -> tuple[int, int, str]:
    model = read(
        {
            "model_type": "xlm-roberta",
            "architectures": ["XLMRobertaForSequenceClassification"],
            "id2label": {"0": "LABEL_0"},
            "vocab_size": 250_002,
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "intermediate_size": 4096,
            "max_position_embeddings": 8194,
            "type_vocab_size": 1,
        }
    )
    counted = one(model, weights="fp16")
    return counted.cache.bytes, counted.parameters.total, f"{(counted.weight_bytes or 0) / GIB:.2f}"


@case("K38", (245_760_000, 163_840))
def keys_of_a_sound_are_kept_once() -> tuple[int, int]:
    sizes = {"d_model": 1280, "vocab_size": 51_866, "num_mel_bins": 128}
    halves = {
        f"{half}_{key}": value
        for half in ("encoder", "decoder")
        for key, value in (("layers", 32), ("attention_heads", 20), ("ffn_dim", 5120))
    }
    kept = one(read({"model_type": "whisper", **sizes, **halves}), cache="fp16").cache
    return kept.fixed_bytes, kept.marginal_bytes_per_token


@case("K21", ("57.1", 15), "57.1% less", "15 caches")
def later_layers_reuse_keys() -> tuple[str, int]:
    def of(shared: int) -> int:
        alike = {"num_hidden_layers": 35, "layer_types": ["full_attention"] * 35, "global_head_dim": 256}
        heads = {"num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256}
        return per_token(read({"model_type": "gemma4_text", **alike, **heads, "num_kv_shared_layers": shared}))

    own, all_own = of(20), of(0)
    return f"{100 * (1 - own / all_own):.1f}", own // (all_own // 35)
