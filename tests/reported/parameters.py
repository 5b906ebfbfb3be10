"""Reports of parameters, and of the bytes that they take."""

from __future__ import annotations

from drawn import LLAMA3_8B, LLAMA3_70B, LLAMA_7B, block, draw, read
from reported.base import LLAMA2_70B, LLAMA31_405B, attention, case, deepseek_v3, llama4, mixtral, one, qwen, total

from assay.report.units import binary_bytes, decimal_bytes


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
