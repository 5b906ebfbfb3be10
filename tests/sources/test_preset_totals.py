"""Presets against exact parameter totals that others publish: what files of weights hold, counted by their hosts.

Sizes of a preset are typed by hand; a total to the unit is a witness that owes them nothing. Where a file holds more
than the preset describes, or a published total leaves a part out, the difference is summed by hand beside it.
"""

from __future__ import annotations

import pytest

from assay.readings.count import count
from assay.sources.presets import read_preset

# The totals of the metadata of the weights (safetensors) at the address that the preset names as its source.
STORED = {
    "command-r-plus": 103_810_674_688,
    "dbrx": 131_596_523_520,
    "dinov2-base": 86_580_480,
    "dinov2-large": 304_368_640,
    "dinov2-small": 22_056_576,
    "falcon-mamba-7b": 7_272_665_088,
    "flan-t5-base": 247_577_856,
    "flan-t5-large": 783_150_080,
    "flan-t5-small": 76_961_152,
    "gemma-2-27b": 27_227_128_320,
    "gemma-3-1b": 999_885_952,
    "gpt-oss-20b": 20_914_757_184,
    "granite-4.0-h-micro": 3_191_396_096,
    "granite-4.0-h-small": 32_207_337_984,
    "lfm2-1.2b": 1_170_340_608,
    "lfm2-350m": 354_483_968,
    "lfm2-700m": 742_489_344,
    "lfm2-8b-a1b": 8_339_929_856,  # beside 704 numbers of float32: the corrections of 22 routers to 32 experts
    "llama-3-70b": 70_553_706_496,
    "llama-3-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-8b": 8_030_261_248,
    "mamba-1.4b": 1_372_178_432,
    "mamba-130m": 129_135_360,
    "mamba-370m": 371_516_416,
    "mamba-790m": 793_204_224,
    "mistral-large-123b": 122_610_069_504,
    "mistral-small-24b": 23_572_403_200,
    "olmo-2-13b": 13_716_198_400,
    "olmo-2-32b": 32_234_279_936,
    "olmo-3-7b": 7_298_011_136,
    "olmoe-1b-7b": 6_919_161_856,
    "phi-3-medium-4k": 13_960_238_080,
    "phi-3-mini-4k": 3_821_079_552,
    "phi-4": 14_659_507_200,
    "phi-4-mini": 3_836_021_760,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-14b": 14_768_307_200,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "smollm3-3b": 3_075_098_624,
    "whisper-large-v3": 1_543_490_560,
    "whisper-large-v3-turbo": 808_878_080,
}


def masked(width: int, words: int) -> int:
    """The head of a BERT: a dense layer, a norm, a bias of the words."""
    return width * width + width + 2 * width + words


def dense(width: int) -> int:
    """A pooler's: a square matrix and a bias."""
    return width * width + width


# What GLM-4.5 Air's files hold beside the model: a layer that predicts a second token, with a table, a head, a
# projection of two streams and three norms of its own; and in every sparse layer a correction of the router.
AIR_ATTENTION = 2 * 4096 * 12_288 + 12_288 + 2 * (4096 * 1024 + 1024)
AIR_LAYER = AIR_ATTENTION + 129 * 3 * 4096 * 1408 + 128 * 4096 + 2 * 4096
AIR_SECOND = AIR_LAYER + 2 * 151_552 * 4096 + 2 * 4096 * 4096 + 3 * 4096 + (45 + 1) * 128

# Others' totals, and by hand what they hold more or less than the preset.
SUMMED = {
    # EleutherAI, Pythia: the table of sizes in the repository's README
    "pythia-160m": 162_322_944,
    "pythia-1.4b": 1_414_647_808,
    "pythia-6.9b": 6_857_302_016,
    # BigScience, BLOOM: the model card
    "bloom-176b": 176_247_271_424,
    # GLM-4.5 Air, the metadata of its weights
    "glm-4.5-air": 110_468_824_832 - AIR_SECOND,
    # MiniMax-M1, of the same architecture, the metadata of its weights
    "minimax-text-01": 456_089_655_296,
    # Kimi Linear, the metadata of its weights, with the corrections of 26 routers to 256 experts
    "kimi-linear-48b-a3b": 49_122_681_728 - 26 * 256,
    # the metadata of weights that hold a pooler too, and BERT's head for next sentences
    "bert-base-multilingual": 178_566_653 - dense(768) - (2 * 768 + 2),
    "xlm-roberta-base": 278_885_778 - dense(768),
    "xlm-roberta-large": 561_192_082 - dense(1024),
    # Keras Hub's presets, which are without heads; some with fewer rows of positions or words
    "albert-base": 11_683_584 - dense(768) + 768 * 128 + 3 * 128 + 30_000,
    "albert-large": 17_683_968 - dense(1024) + 1024 * 128 + 3 * 128 + 30_000,
    "albert-xlarge": 58_724_864 - dense(2048) + 2048 * 128 + 3 * 128 + 30_000,
    "bart-base": 139_417_344 + 2 * 2 * 768,
    "deberta-v3-base": 183_831_552 + masked(768, 128_100),
    "deberta-v3-large": 434_012_160 + masked(1024, 128_100),
    "deberta-v3-small": 141_304_320 + masked(768, 128_100),
    "deberta-v3-xsmall": 70_682_112 + masked(384, 128_100),
    "electra-base": 109_482_240 + 768 + 1,
    "electra-large": 335_141_888 + 1024 + 1,
    "gemma-3-12b": 11_765_788_416 + 64 * 3840,
    "gemma-3-4b": 3_880_099_328 + 64 * 2560,
    "qwen3-1.7b": 1_720_574_976,
    "roberta-base": 124_052_736 + 3 * 768 + masked(768, 50_265),
    "roberta-large": 354_307_072 + 3 * 1024 + masked(1024, 50_265),
    "vit-b-32": 87_455_232 + dense(768),
    "vit-h-14": 630_764_800 + dense(1280),
    "vit-l-16": 303_301_632 + dense(1024),
    "whisper-base": 72_593_920,
    "whisper-large-v2": 1_543_304_960,
    "whisper-medium": 763_857_920,
    "whisper-small": 241_734_912,
}


@pytest.mark.parametrize(("name", "total"), sorted((STORED | SUMMED).items()))
def test_equals_the_published_total(name: str, total: int) -> None:
    assert count(read_preset(name), tokens=None if name.startswith(("dinov2", "vit")) else 1).parameters.total == total


def test_no_total_is_given_twice() -> None:
    assert not STORED.keys() & SUMMED.keys()
