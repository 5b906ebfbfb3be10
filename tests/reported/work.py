"""Reports of FLOPs, of training runs and of the peaks that they are held against."""

from __future__ import annotations

from typing import Any

from drawn import LLAMA3_8B, LLAMA3_70B, LLAMA_7B, draw, read
from reported.base import LLAMA2_70B, attention, case, gpt_oss, one, pairs, training

from assay.hardware import chip
from assay.readings.compute import TrainingRun, train
from assay.readings.count import Count, count
from assay.spec import Model


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
