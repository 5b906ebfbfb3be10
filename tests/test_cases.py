"""Public fault reports of other calculators: the input as a model, and the figure that is right.

A case that is no count of a model stands in LISTED with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from drawn import LLAMA3_8B, LLAMA3_70B, LLAMA_7B, block, draw, read

from assay.hardware import chip
from assay.readings.compute import TrainingRun, train
from assay.readings.count import Count, count
from assay.readings.states import states
from assay.readings.step import training_memory
from assay.readings.training import training as trained
from assay.report.units import binary_bytes, decimal_bytes
from assay.rewrites.adapters import lora
from assay.rewrites.plan import Plan
from assay.rewrites.shard import shard
from assay.spec import Block, Model

FILE = Path(__file__).parents[2] / "shared" / "cases" / "cases.json"

GIB = 2**30
MIB = 2**20


@dataclass(frozen=True)
class Case:
    """What a report should have had: what we count, what is right, and how the report prints it."""

    ours: Callable[[], Any]
    right: Any
    printed: tuple[str, ...]


CASES: dict[str, Case] = {}


def case(name: str, right: Any, *printed: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a case; `printed` are the report's words, the figures with thousands set off where not given."""

    def add(ours: Callable[[], Any]) -> Callable[[], Any]:
        assert name not in CASES
        values = right if isinstance(right, tuple) else (right,)
        CASES[name] = Case(ours, right, printed or tuple(v if isinstance(v, str) else f"{v:,}" for v in values))
        return ours

    return add


def one(model: Model | Block, **setting: Any) -> Count:
    """One token, where no length is given."""
    return count(model, **{"tokens": 1, **setting})


def total(model: Model) -> int:
    return int(one(model).parameters.total)


def per_token(model: Model, **setting: Any) -> int:
    """Cache bytes that one more token adds."""
    return int(one(model, **setting).cache.marginal_bytes_per_token)


def cached(model: Model, context: int, **setting: Any) -> int:
    """Cache bytes at a context, in fp16."""
    return int(one(model, past=context - 1, **{"cache": "fp16", **setting}).cache.bytes)


def training(model: Model, **setting: Any) -> int:
    """Three times the forward pass."""
    return 3 * int(one(model, **setting).flops.total)


ATTENTION = """
attention:
  q = linear(x[b n d], Wq[d g r k], Bq[g r k]) -> [b n g r k]
  k = linear(x[b n d], Wk[d g k], Bk[g k]) -> [b n g k]
  v = linear(x[b n d], Wv[d g k], Bv[g k]) -> [b n g k]
  kc = append(k[b n g k]) -> [b c g k]
  vc = append(v[b n g k]) -> [b c g k]
attention.scores:
  s = contract(q[b n g r k], kc[b c g k]) -> [b g r n c]
  p = softmax(s[b g r n c]) -> [b g r n c]
  o = contract(p[b g r n c], vc[b c g k]) -> [b n g r k]
attention:
  y = linear(o[b n g r k], Wo[g r k d], Bo[d]) -> [b n d]
"""


def attention(d: int, heads: int, kv: int | None = None, width: int | None = None) -> Block:
    """One attention with biases."""
    kv = kv or heads
    return block(ATTENTION, d=d, g=kv, r=heads // kv, k=width or d // heads)


def pairs(tokens: int, past: int = 0) -> int:
    """Visible (query, key) pairs."""
    return int(one(attention(1, 1), tokens=tokens, past=past, convention="causal").flops.attention_scores) // 4


LLAMA2_70B = {**LLAMA3_70B, "vocab_size": 32000}
LLAMA31_405B = {
    **LLAMA3_8B,
    "hidden_size": 16384,
    "num_hidden_layers": 126,
    "num_attention_heads": 128,
    "intermediate_size": 53248,
}


def qwen(layers: int, d: int, heads: int, kv: int, ff: int, vocab: int, *, tied: bool = False) -> Model:
    """Llama's layer with biases of q, k and v."""
    return draw(layers=layers, d=d, heads=heads, kv=kv, ff=ff, vocab=vocab, tied=tied, biases="qkv")


def mixtral(layers: int, d: int, heads: int, ff: int, vocab: int) -> Model:
    return read(
        {
            "model_type": "mixtral", "num_hidden_layers": layers, "hidden_size": d, "num_attention_heads": heads,
            "num_key_value_heads": 8, "intermediate_size": ff, "vocab_size": vocab,
        }
    )  # fmt: skip


def llama4(experts: int, every: int) -> Model:
    return read(
        {
            "model_type": "llama4_text", "num_hidden_layers": 48, "hidden_size": 5120, "num_attention_heads": 40,
            "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202_048, "intermediate_size": 8192,
            "intermediate_size_mlp": 16_384, "num_local_experts": experts, "interleave_moe_layer_step": every,
        }
    )  # fmt: skip


def gpt_oss(layers: int, experts: int) -> Model:
    return read({"model_type": "gpt_oss", "num_hidden_layers": layers, "num_local_experts": experts})


# -- parameters ------------------------------------------------------------------------------------------------------


@case("P01", 68_976_648_192)
def llama2_70b() -> int:
    return total(read(LLAMA2_70B))


@case("P02", 72_287_920_128)
def qwen15_72b() -> int:
    return total(qwen(80, 8192, 64, 64, 24_576, 152_064))


@case("P03", (6_738_415_616, 6_476_005_376))
def llama_7b() -> tuple[int, int]:
    parts = one(read(LLAMA_7B)).parameters
    return parts.total, parts.by_part["attention"] + parts.by_part["mlp"]


@case("P04", 124_439_808)
def gpt2() -> int:
    return total(read({"model_type": "gpt2"}))


@case("P06", 162_201_636)
def speedrun_gpt2() -> int:
    """Norms without weights, three scalars a block."""
    scalars = block("\n".join(f"x = mul(x[n d], S{i}[]) -> [n d]" for i in range(3)), d=768)
    model = draw(layers=12, d=768, heads=12, ff=3072, vocab=50_304, gated=False, norm="bare")
    return total(model) + 12 * int(one(scalars).parameters.total)


@case("P07", (1_543_714_304, 1_777_088_000))
def qwen25_coder() -> tuple[int, int]:
    tied, untied = (total(qwen(28, 1536, 12, 2, 8960, 151_936, tied=t)) for t in (True, False))
    return tied, untied


@case("P09", (786_432, 384), "384 x 512")
def inner_width_of_its_own() -> tuple[int, int]:
    """Six heads of 64 in a width of 512: the weights alone, without the biases of the block."""
    of = attention(512, 6, width=64)
    biases = 3 * 384 + 512
    return int(one(of).parameters.total) - biases, of.sizes["g"] * of.sizes["r"] * of.sizes["k"]


@case("P11", (8_537_680_896, 8_185_359_360))
def gemma_7b() -> tuple[int, int]:
    wide, narrow = (
        total(draw(layers=28, d=3072, heads=16, head=head, ff=24_576, vocab=256_000, tied=True)) for head in (256, 192)
    )
    return wide, narrow


@case("P12", 14_167_290_880)
def qwen_14b() -> int:
    """The config's width is that of both halves."""
    return total(
        read(
            {
                "model_type": "qwen",
                "num_hidden_layers": 40,
                "hidden_size": 5120,
                "num_attention_heads": 40,
                "intermediate_size": 27_392,
                "vocab_size": 152_064,
                "kv_channels": 128,
            }
        )
    )


def deepseek_v3() -> Model:
    return read({"model_type": "deepseek_v3"})  # the config class's own values are the model's


@case("P14", (671_026_419_200, 37_552_297_472, 36_625_618_432))
def deepseek_v3_active() -> tuple[int, int, int]:
    """The report counts the router's correction, 58 x 256, with the parameters; it is no parameter."""
    p = one(deepseek_v3()).parameters
    assert p.buffers == 58 * 256
    return p.total + p.buffers, p.active + p.buffers, p.active - p.embedding + p.buffers


@case("P15", (46_702_792_704, 12_879_925_248))
def mixtral_8x7b() -> tuple[int, int]:
    parts = one(mixtral(32, 4096, 32, 14_336, 32_000)).parameters
    return parts.total, parts.active


@case("P16", (140_620_634_112, 140_630_071_296, 46_702_792_704))
def mixtral_8x22b() -> tuple[int, int, int]:
    small, large = (total(mixtral(56, 6144, 48, 16_384, vocab)) for vocab in (32_000, 32_768))
    return small, large, total(mixtral(32, 4096, 32, 14_336, 32_000))


@case("P17", 6_738_415_616)
def packing_changes_no_parameter() -> int:
    four_bit = one(read(LLAMA_7B), weights="int4")
    assert four_bit.weight_bytes is not None
    assert 2 * four_bit.weight_bytes == four_bit.parameters.total
    return int(four_bit.parameters.total)


@case("P26", 41_620_750_336)
def gptq_weighs_its_scales_and_indices() -> int:
    """This config's MLP is 29,696 wide; 4 bits a weight, a scale and a zero point for each 128, an index an input."""
    qwen = {
        "model_type": "qwen2",
        "vocab_size": 152_064,
        "hidden_size": 8192,
        "intermediate_size": 29_696,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
        "torch_dtype": "float16",
        "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128},
    }
    return int(one(read(qwen)).weight_bytes or 0)


@case("P19", (8_030_261_248, 70_553_706_496, 405_853_388_800))
def llama31() -> tuple[int, int, int]:
    return total(read(LLAMA3_8B)), total(read(LLAMA3_70B)), total(read(LLAMA31_405B))


@case("P22", 1_315_758_080)
def opt_13b() -> int:
    return total(
        draw(
            layers=24,
            d=2048,
            heads=32,
            ff=8192,
            vocab=50_272,
            gated=False,
            norm="layer",
            biases=True,
            tied=True,
            positions=2050,
        )
    )


@case("P23", (400_711_848_960, 107_769_861_120))
def interleaved_experts() -> tuple[int, int]:
    return total(llama4(128, 2)), total(llama4(16, 1))


@case("P24", 1_050_624)
def heads_change_no_parameter() -> int:
    totals = {int(one(attention(512, heads)).parameters.total) for heads in (1, 2, 8, 64)}
    (alike,) = totals
    return alike


@case("P08", 76_961_152)
def flan_t5_small() -> int:
    """The config's word for the head, which the library ties all the same."""
    return total(
        read(
            {
                "model_type": "t5",
                "d_model": 512,
                "num_layers": 8,
                "num_heads": 6,
                "d_kv": 64,
                "d_ff": 1024,
                "feed_forward_proj": "gated-gelu",
                "vocab_size": 32_128,
                "tie_word_embeddings": False,
            }
        )
    )


@case("P25", 233_472)
def rows_that_an_engine_pads() -> int:
    """Rows that an engine adds are asked for as a vocabulary of that size."""
    logical, stored = (
        total(draw(layers=1, d=4096, heads=32, ff=64, vocab=vocab, tied=True)) for vocab in (49_159, 49_216)
    )
    return stored - logical


@case("M16", ("35.28", "4.82"))
def nominal_and_published_bits() -> tuple[str, str]:
    """70.6 billion weights at four bits each; the published file has 42.52 GB."""
    counted = one(read(LLAMA3_70B), weights="int4")
    assert counted.weight_bytes is not None
    return f"{counted.weight_bytes / 1e9:.2f}", f"{42.52e9 * 8 / counted.parameters.total:.2f}"


@case("M17", 3_127_075_840 - 9_216, "3,127,075,840", "9,216")
def linears_of_four_bits() -> int:
    """The report adds the tables of rotations, 18 x 128 x 4 bytes, which no checkpoint stores."""
    gemma = {
        "model_type": "gemma",
        "torch_dtype": "float32",
        "num_hidden_layers": 18,
        "hidden_size": 2048,
        "num_attention_heads": 8,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "intermediate_size": 16_384,
        "vocab_size": 256_000,
        "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
    }
    return int(one(read(gemma)).weight_bytes or 0)


@case("M14", ("65,248,815,744", "65.25 GB", "60.77 GiB"), "65.25 GB = 60.77 GiB")
def units_of_bytes() -> tuple[str, str, str]:
    """GPT-OSS 120B, its experts in MXFP4."""
    kept = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    sizes = {"num_hidden_layers": 36, "num_local_experts": 128, "torch_dtype": "bfloat16"}
    quantized = {"quant_method": "mxfp4", "modules_to_not_convert": kept}
    held = one(read({"model_type": "gpt_oss", **sizes, "quantization_config": quantized})).weight_bytes
    return f"{held:,}", decimal_bytes(held), binary_bytes(held)


# -- FLOPs -----------------------------------------------------------------------------------------------------------


@case("F01", ("70.27", "32.94"), "70.27", "32.94")
def llama3_at_4096() -> tuple[str, str]:
    dense, visible = (
        count(read(LLAMA3_8B), tokens=4096, convention=c).flops.total for c in ("matmul", "causal")
    )  # fmt: skip
    assert dense == 2 * (30_739_080_937_472 + 4_398_046_511_104)
    return f"{dense / 1e12:.2f}", f"{visible / 2e12:.2f}"


def scores(batch: int, heads: int, tokens: int, width: int, kv: int | None = None) -> int:
    return int(one(attention(heads * width, heads, kv, width), batch=batch, tokens=tokens).flops.attention_scores)


@case("F03", 12_582_912)
def scaled_dot_product() -> int:
    return scores(1, 12, 64, 64)


@case("F04", 12_960)
def scaled_dot_product_once() -> int:
    return scores(2, 5, 9, 4)


@case("F06", 134_217_728)
def grouped_scaled_dot_product() -> int:
    return scores(1, 32, 128, 64, kv=8)


@case("F07", 12_884_901_888)
def grouping_lowers_no_scores() -> int:
    return 3 * int(one(read(LLAMA3_8B), past=8191).flops.attention_scores)


@case("F08", (952_647_680, 1_905_295_360))
def multi_head_attention() -> tuple[int, int]:
    flops = int(one(attention(512, 4), tokens=580).flops.total)
    return flops // 2, flops


@case("F09", (240_000_000, 40_400))
def multi_head_attention_of_one_head() -> tuple[int, int]:
    of = one(attention(100, 1), tokens=1000)
    return int(of.flops.total) // 2, int(of.parameters.total)


@case("F14", 8_422_042_894_336, "8.422 TFLOPs")
def prompt_with_image() -> int:
    """Of the language model, 622 positions, logits at all."""
    return int(count(read(LLAMA_7B), tokens=622).flops.total)


@case("F15", (113_246_208, 56_678_400), "both right")
def dense_and_causal() -> tuple[int, int]:
    gpt = read({"model_type": "gpt2"})
    dense, visible = (count(gpt, tokens=1024, convention=c).flops.attention_scores for c in ("matmul", "causal"))
    return 3 * dense // 1024, 3 * visible // 1024


@case("F16", 51_471_187_968)
def causal_training() -> int:
    model = read(LLAMA3_8B)
    assert count(model, tokens=8192).flops_per_token * 3 == 57_912_852_480
    return int(3 * count(model, tokens=8192, convention="causal").flops_per_token)


def megatron(tokens: int, layers: int, h: int, vocab: int) -> Count:
    return count(
        draw(layers=layers, d=h, heads=16, ff=4 * h, vocab=vocab, gated=False, tied=True), batch=3, tokens=tokens
    )


@case("F19", 12, "x = 12")
def denominator_of_the_logits() -> int:
    """72 B s l h^2 (1 + s / 6h + V / (x l h)), solved for x."""
    s, layers, h, vocab = 256, 4, 128, 1000
    spent = 3 * megatron(s, layers, h, vocab).flops.total
    rest = spent * 6 * h - 72 * 3 * s * layers * h * h * (6 * h + s)  # 6 h times the logits' share
    return int(72 * 3 * s * layers * h * h * vocab * 6 * h // (rest * layers * h))


@case("F20", 6, "always 6*B*s*h*V")
def head_is_neither_gated_nor_recomputed() -> int:
    for gated in (True, False):
        model = draw(layers=2, d=128, heads=4, ff=512, vocab=1000, gated=gated)
        head = 3 * count(model, batch=3, tokens=256).flops.by_part["head"]
        assert head % (3 * 256 * 128 * 1000) == 0
    return int(head // (3 * 256 * 128 * 1000))


@case("F22", (24_141_260_160, 34_534_221_696))
def windows_count() -> tuple[int, int]:
    """Six times the active parameters but the input table; in a windowed layer 128 keys."""

    def of(layers: int, experts: int) -> int:
        counted = one(gpt_oss(layers, experts), past=4095)
        p = counted.parameters
        return int(6 * (p.active - p.embedding) + 3 * counted.flops.attention_scores)

    return of(24, 32), of(36, 128)


@case("F24", ("211.13", "211.11", "1510.11"), "211.11", "1510.11", "211.13")
def causal_half() -> tuple[str, str, str]:
    model = read(LLAMA_7B)
    dense, visible = (count(model, batch=4, tokens=8192, convention=c).flops for c in ("matmul", "causal"))
    half = 3 * dense.attention_scores / 2
    assert 3 * (dense.total - dense.attention_scores) == 6 * 6_607_077_376 * 32_768
    return (
        f"{3 * visible.attention_scores / 1e12:.2f}",
        f"{half / 1e12:.2f}",
        f"{(3 * (dense.total - dense.attention_scores) + half) / 1e12:.2f}",
    )


@case("F25", 41_006_200_258_560, "same, with dense attention")
def dense_anchor() -> int:
    return training(read(LLAMA_7B), batch=4, tokens=256)


@case("F26", "204.04", "204.04")
def head_width_of_its_own() -> str:
    model = draw(
        layers=94, d=4096, heads=64, kv=4, head=128, vocab=151_936, experts=128, chosen=8, expert_ff=1536,
        qk_norm="head",
    )  # fmt: skip
    return f"{training(model, tokens=196_608, convention='causal') / 1e15:.2f}"


@case("F28", 1_040_191_488)
def chunk_behind_a_prefix() -> int:
    return pairs(8192, 122_880)


@case("F29", (33_558_528, 8192), "33,558,528", "decode: C")
def queries_at_the_end() -> tuple[int, int]:
    return pairs(8192), pairs(1, 8191)


@case("F30", 23_068_672)
def packed_sequences() -> int:
    of = attention(1, 1)
    packed = sum((one(of, tokens=n) for n in (4096, 2048, 1024, 1024)), start=Count())
    assert one(of, tokens=8192).flops.attention_scores == 4 * 67_108_864
    return int(packed.flops.attention_scores) // 4


@case("F41", 32_768)
def one_more_position() -> int:
    scores = [one(read(LLAMA3_70B), past=past).flops.attention_scores for past in (100, 101)]
    return int(scores[1] - scores[0]) // 80


def run(model: Model, **asked: Any) -> TrainingRun:
    return train(model, **{"context": 2048, **asked})


@case("T01", ("38.44", "51.06", "3,565"), "38.44", "51.06", "3,565 A100-days")
def training_total() -> tuple[str, str, str]:
    """Days are of the model's own FLOPs: the share of the peak is theirs."""
    made = run(
        draw(layers=44, d=6144, heads=64, ff=4 * 6144, vocab=51_200, gated=False, tied=True),
        tokens=300 * 10**9,
        recompute="layer",
        gpu="a100",
        mfu=0.4,
    )
    assert made.on is not None
    return f"{made.flops / 1e21:.2f}", f"{made.hardware_flops / 1e21:.2f}", f"{made.on.gpu_days:,.0f}"


@case("F36", ("42.45", 835.5, 756.5), "42.45%", "835.5", "756.5")
def dense_peaks() -> tuple[str, float, float]:
    """The library's constant is 989.5; the white paper's dense rate is 989.4."""
    nvl, pcie = (chip(name).rate("bf16") / 1e12 for name in ("H100 NVL", "H100 PCIe"))
    return f"{100 * 420e12 / chip('h200').rate('bf16'):.2f}", nvl, pcie


@case("F38", "32.8", "32.8%")
def the_peak_of_the_gpu_that_runs() -> str:
    return f"{104 * chip('a100').rate('bf16') / chip('h100').rate('bf16'):.1f}"


@case("F39", "2.84", "2.84%")
def the_peak_of_all_gpus() -> str:
    """The report takes 6ND with N = 70e9: so much of what is counted, for the model has fewer parameters."""
    tokens = 2048 * 16 * 500
    made = run(read(LLAMA2_70B), tokens=tokens, gpu="a100", gpus=16, tokens_per_second=tokens / (13.5 * 3600))
    assert made.on is not None
    return f"{100 * made.on.mfu * 6 * 70e9 * tokens / made.flops:.2f}"


@case("F40", 756.5, "756.5 TFLOPS dense")
def the_dense_peak_of_a_card() -> float:
    return chip("h100-pcie").rate("bf16") / 1e12


@case("T03", ("6.33", 152), "6.33 GPU-days", "152")
def hours_of_all_gpus() -> tuple[str, int]:
    """Eight GPUs for 19 hours, whatever they do."""
    speed = 1000
    made = run(read(LLAMA_7B), tokens=19 * 3600 * speed, gpu="h100", gpus=8, tokens_per_second=speed).on
    assert made is not None
    return f"{made.gpu_days:.2f}", round(made.gpu_hours)


# -- cache -----------------------------------------------------------------------------------------------------------


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


# -- encoders, encoder-decoders, shared keys -------------------------------------------------------------------------


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


# -- memory of training, ranks ---------------------------------------------------------------------------------------


def held(model: Model | Block, **asked: Any) -> int:
    """Bytes of what training holds of parameters, without the counters of the optimizer."""
    made = states(model, **asked)
    return int(made.total - made.optimizer.get("step", 0))


@case("M02", (144_544_702_464, 18, 16), "144,544,702,464", "18 bytes per parameter", "16 when gradients are bf16")
def states_with_wide_gradients() -> tuple[int, int, int]:
    model = read(LLAMA3_8B)
    wide, narrow = (held(model, precision=policy) for policy in ("megatron", "mixed"))
    return wide, wide // total(model), narrow // total(model)


@case("M03", ("9.96 GiB", "11.28 GiB"))
def divided_gradients() -> tuple[str, ...]:
    model = block("y = linear(x[n d], W[d f]) -> [n f]", d=1000, f=2_851_000)
    made = (held(model, precision=policy, zero=2, shards=8) for policy in ("mixed", "fp16"))
    return tuple(f"{size / GIB:.2f} GiB" for size in made)


@case("M04", ("80.86 GB", "107.8 GB"))
def states_between_steps() -> tuple[str, str]:
    made = states(read(LLAMA_7B), precision="fp32")
    return f"{made.between / 1e9:.2f} GB", f"{made.total / 1e9:.1f} GB"


@case("M06", ("53.9 GB", "40.4 GB"))
def states_of_8_bits() -> tuple[str, str]:
    whole, eight = (states(read(LLAMA_7B), optimizer=name, precision="bf16") for name in ("adamw", "adamw-8bit"))
    scales = eight.optimizer["absmax1"] + eight.optimizer["absmax2"]
    return f"{whole.total / 1e9:.1f} GB", f"{(eight.total - scales) / 1e9:.1f} GB"


@case("M07", (956_301_312, 30_601_641_984))
def activations_of_a_layer() -> tuple[int, int]:
    model = draw(
        layers=32, d=4096, heads=32, vocab=32000, ff=16384, gated=False, norm="layer", biases=True, positions=2048
    )
    made = training_memory(
        model, 1, 2048, precision="fp16", attention="plain", policy="megatron", dropout=0.1, optimizer="sgd"
    )
    (layer,) = (kept for kept in made.layers if kept.name == "layer")
    statistics = 2 * 2 * 4 * 2048  # of two norms, which the formula leaves out
    return layer.bytes - statistics, layer.times * (layer.bytes - statistics)


@case("M08", ("2*s*b*h", "4*s*b*h"))
def activations_of_a_norm() -> tuple[str, str]:
    text = "norm:\nx = linear(x[b n d], W[d d2]) -> [b n d2]\ny = layernorm(x[b n d2], G[d2], B[d2]) -> [b n d2]"
    one, two = (trained(block(text, d=64, d2=width), 3, 50, precision="bf16").saved_by_part for width in (512, 1024))
    grown = (two["norm"] - one["norm"]) // (3 * 50 * 512)  # statistics of rows do not grow with the width
    return f"{grown}*s*b*h", f"{2 * grown}*s*b*h"


@case("M11", 22_548_578_304)
def experts_of_a_rank() -> int:
    model = draw(layers=32, d=4096, heads=32, kv=8, head=128, vocab=32000, experts=8, chosen=2, expert_ff=14336)
    (rank,) = shard(model, Plan(tensor=4, sequence=True, expert=2, expert_tensor=1))
    return int(one(rank.model).parameters.by_part["experts"])


@case("F32", "0.6675")
def frozen_weights() -> str:
    """Of the second half of the layers, into which a gradient comes from the first."""
    _, last = shard(lora(read(LLAMA3_70B), 14, "all-linear"), Plan(pipeline=2))
    step = trained(last.model, tokens=1)
    return f"{step.flops / (3 * step.forward):.4f}"


# -- the rest --------------------------------------------------------------------------------------------------------

LISTED = {
    "an engine's layout of cached rows, with scales of its own": "K22",
    "a dispatcher of experts that is not named": "M12",
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    assert CASES[name].ours() == CASES[name].right


def reports() -> dict[str, dict[str, str]]:
    """The reports, by id."""
    return {entry["id"]: entry for entry in json.loads(FILE.read_text())}


needs_reports = pytest.mark.skipif(not FILE.exists(), reason="needs the fault reports beside the repository")


@needs_reports
def test_every_report_is_covered_or_listed() -> None:
    listed = [name for names in LISTED.values() for name in names.split()]
    assert sorted([*CASES, *listed]) == sorted(reports())
    assert len(CASES) == 85


@needs_reports
@pytest.mark.parametrize("name", CASES)
def test_right_is_what_the_report_says(name: str) -> None:
    report = reports()[name]
    for words in CASES[name].printed:
        assert words in report["right"] + report["derivation"]
