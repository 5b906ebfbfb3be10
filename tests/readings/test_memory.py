"""Memory of inference: by hand, against a run, in pages, chunks and steps, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.readings.memory import Memory
from assay.rewrites.shrink import shrink

PUBLISHED = Path(__file__).parents[3] / "shared" / "published.json"
LLAMA = 16_060_522_496  # bytes of Llama 3 8B in bf16: 8,030,261,248 parameters
TOKEN = 2 * 32 * 8 * 128 * 2  # keys and values of its 32 layers, 8 heads of 128, in bf16


def held(name: str, *args: Any, **settings: Any) -> Memory:
    """What a preset holds."""
    return assay.memory(assay.load(name), *args, **settings)


def test_a_prefill_by_hand() -> None:
    b, n = 16, 8192
    made = held("llama-3-8b", b, n)
    gate_up_and_their_activation = 3 * b * n * 14336 * 2
    stream = b * n * 4096 * 2
    turned = 2 * 2 * n * 128 * 2 + n * 8  # cosines and sines as queries take them and as keys do; positions
    ids = b * n * 8
    assert {part.name: part.bytes for part in made.parts} == {
        "weights": LLAMA,
        "cache": b * n * TOKEN,
        "activations": gate_up_and_their_activation + stream + turned + ids,
    }
    assert made.total == sum(part.bytes for part in made.parts)
    assert (made.at.name, made.at.peak.op.kind) == ("prefill", "silu")
    assert {part.name: part.standing for part in made.parts} == {
        "weights": "exact",
        "cache": "exact",
        "activations": "modelled",
    }


def test_all_logits_are_the_fullest_moment_of_a_small_model() -> None:
    made = held("llama-3.2-1b", 1, 2048, logits="all")
    assert made.part("logits") == 2048 * 128256 * 2
    assert made.at.peak.segment.name == "head"
    last = held("llama-3.2-1b", 1, 2048, logits="last")
    assert last.part("logits") == 0
    assert last.at.peak.segment.name == "layer"


def test_scores_of_plain_attention_are_stored() -> None:
    n = 4096
    fused, plain = (held("llama-3-8b", 1, n, attention=how) for how in ("fused", "plain"))
    scores = 32 * n * n * 2
    assert plain.at.peak.live["attention scores"] == 2 * scores  # before and behind the softmax
    assert "attention scores" not in fused.at.peak.live


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("deepseek-v3", 70_272),  # DeepSeek-AI 2025, arXiv:2505.09343, table 1: 70.272, 327.680 and 516.096 KB
        ("qwen2.5-72b", 327_680),
        ("llama-3.1-405b", 516_096),
    ],
)
def test_a_token_of_the_cache_is_as_published(name: str, published: int) -> None:
    for tokens in (1, 4096):
        assert held(name, 2, tokens).cache == 2 * tokens * published


@pytest.mark.parametrize(("context", "page", "pages"), [(100_001, 16, 6251), (100_000, 16, 6250), (5, 64, 1)])
def test_pages_are_whole(context: int, page: int, pages: int) -> None:
    made = held("llama-3-8b", 8, 1, context=context, page=page)
    assert made.reserved == made.part("cache") == 8 * pages * page * TOKEN
    assert made.cache == 8 * context * TOKEN


def test_a_window_lies_in_one_page_more_than_it_fills() -> None:
    made = held("gpt-oss-120b", 1, 4096, generate=100, page=64)
    row = 2 * 8 * 64 * 2  # keys and values of a layer
    # 18 layers hold all 4,196 positions, in 66 pages; 18 a window of 128, in ceil(127 / 64) + 1
    assert made.reserved == 18 * row * 66 * 64 + 18 * row * 3 * 64
    assert made.cache == 18 * row * 4196 + 18 * row * 128
    short = held("gpt-oss-120b", 1, 1, context=65, page=64)  # no window is full
    assert short.reserved == 36 * row * 2 * 64


def test_states_of_recurrences_take_no_pages() -> None:
    made = held("jamba-v0.1", 4, 1, context=10_000, page=16)
    counted = assay.count(assay.load("jamba-v0.1"), 4, 1, context=10_000).cache
    assert made.states == counted.fixed_bytes > 0
    assert made.cache == counted.bytes - counted.fixed_bytes
    assert made.part("states") == made.states


def test_chunks_bound_what_passes() -> None:
    whole = held("llama-3-8b", 1, 32_768)
    chunks = held("llama-3-8b", 1, 32_768, chunk=2048)
    assert chunks.cache == whole.cache
    assert [(one.name, one.tokens, one.past) for one in chunks.passes] == [("chunk 16", 2048, 30_720)]
    assert chunks.at.activations == held("llama-3-8b", 1, 2048).at.activations == whole.at.activations // 16
    rest = held("llama-3-8b", 1, 5000, chunk=2048)
    assert [(one.tokens, one.past) for one in rest.passes] == [(2048, 2048), (904, 4096)]


def test_steps_behind_have_their_cache_from_the_start() -> None:
    made = held("llama-3-8b", 4, 1000, generate=24)
    assert made.context == 1024
    assert made.part("cache") == 4 * 1024 * TOKEN
    assert [(one.name, one.tokens, one.past) for one in made.passes] == [("prefill", 1000, 0), ("step 24", 1, 1023)]
    assert made.at.name == "prefill"


@pytest.mark.parametrize("name", ["llama-3-8b", "gpt-2", "mixtral-8x7b", "gemma-2-9b"])
def test_what_assay_build_runs_is_so_to_the_byte(name: str) -> None:
    torch = pytest.importorskip("torch")
    model = shrink(assay.load(name))
    built = assay.build(model, attention="plain")
    ids = torch.zeros((2, 12), dtype=torch.int64)

    def run() -> Any:
        with torch.no_grad():
            cache = built.cache()
            return built(ids, cache=cache), cache

    made = assay.memory(model, 2, 12, policy="ours", attention="plain", logits="all", weights="fp32")
    turning = 0 if name == "gpt-2" else 2 * 2 * 4  # frequencies of two pairs, for queries and for keys: constants
    assert made.total == assay.measure(run).peak_bytes - turning
    assert {part.standing for part in made.parts if part.name != "cache"} == {"exact"}


def test_what_a_config_quantizes_is_told_by_format() -> None:
    config = {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    }  # fmt: skip
    made = assay.memory(assay.load(config), 1, 16)
    kept = 2 * 128256 * 4096 * 2 + (2 * 32 + 1) * 4096 * 2  # embedding, head and norms stay as they are
    each = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336
    scales = each // (128 * 128) * 4
    assert sorted(made.weights_by.values()) == sorted([kept, 32 * (each + scales)])
    assert made.part("weights") == sum(made.weights_by.values())
    assert "bf16" in made.weights_by
    assert held("llama-3-8b", weights="int4").weights_by == {"int4": LLAMA // 4}


def test_a_narrow_cache_is_read_as_it_is() -> None:
    wide, narrow = (held("llama-3-8b", 1, 1, context=4096, cache=dtype) for dtype in ("bf16", "fp8"))
    assert 2 * narrow.cache == wide.cache
    assert narrow.at.activations == wide.at.activations


def test_latent_attention_need_not_be_expanded() -> None:
    expanded, absorbed = (held("deepseek-v3", 8, 1, context=8192, latent=how) for how in ("expanded", "absorbed"))
    assert expanded.cache == absorbed.cache
    # keys [b c 128 192], made of a part without positions [b c 128 128], and values [b c 128 128]; each query's are few
    made = 8 * 8192 * 128 * (192 + 128 + 128) * 2
    assert made < expanded.at.activations < 1.01 * made
    assert absorbed.at.activations < made / 100
    assert any("makes keys and values of all at hand anew" in note for note in expanded.notes)
    assert not any("at hand anew" in note for note in absorbed.notes)


def test_a_tower_runs_where_it_is_shown_something() -> None:
    config = {
        "model_type": "qwen2_5_vl",
        "text_config": {
            "model_type": "qwen2_5_vl_text", "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "intermediate_size": 1024, "vocab_size": 1000,
        },
    }  # fmt: skip
    model = assay.load(config)
    none, one = (assay.memory(model, 1, 2048, images=count) for count in (0, 1))
    assert "tower" not in none.at.peak.live
    assert not none.at.peak.segment.name.startswith("vision")
    assert one.at.activations > none.at.activations


def test_a_model_that_keeps_nothing_has_no_cache() -> None:
    made = held("bert-base", 1, 128)
    assert [part.name for part in made.parts] == ["weights", "activations"]
    assert made.at.name == "pass"


def test_a_pair_keeps_keys_of_its_source() -> None:
    made = held("t5-small", 1, 1, source=100, past=9)
    # 6 layers, keys and values of 8 heads of 64, of ten tokens and of a hundred of the source
    assert made.cache == 6 * 2 * 512 * 2 * (10 + 100)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"page": 0}, "page is 0; it must be an integer of at least 1"),
        ({"chunk": 0}, "chunk is 0; it must be an integer of at least 1"),
        ({"chunk": 3000}, "chunk is 3000; it is of the 2048 tokens, so at most as many"),
        ({"generate": -1}, "generate is -1; it must be an integer of at least 0"),
        ({"policy": "mine"}, "policy is 'mine'; known: serving, ours, transformers"),
        ({"attention": "flash"}, "attention is 'flash'; known: plain, fused"),
        ({"policy": "ours", "page": 16}, "page is 16; the policy ours keeps its cache in no pages"),
        ({"compute": "int4"}, "compute is 'int4'; known: bf16, fp16, fp32, fp64"),
        ({"logits": "some"}, "logits is 'some'; known: all, last"),
    ],
)
def test_impossible_settings_are_one_line(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(assay.AssayError, match=re.escape(says)):
        held("llama-3-8b", **settings)


@pytest.mark.parametrize("name", ["page", "chunk", "generate"])
def test_an_encoder_keeps_nothing(name: str) -> None:
    with pytest.raises(assay.SettingError, match=f"{name} is 16; BERT base keeps nothing between passes"):
        held("bert-base", **{name: 16})


def test_steps_end_where_a_position_table_does() -> None:
    with pytest.raises(assay.SettingError, match="past \\+ tokens \\+ generate is 1025; GPT-2 has a learned position"):
        held("gpt-2", 1, 1000, generate=25)


def test_symbols_and_arrays_have_no_fullest_moment() -> None:
    sympy = pytest.importorskip("sympy")
    with pytest.raises(assay.SettingError, match="memory takes integers"):
        held("llama-3-8b", 1, sympy.Symbol("n", positive=True, integer=True))


@pytest.mark.skipif(not PUBLISHED.exists(), reason="needs the published figures beside the repository")
def test_published_peaks_of_an_older_implementation_are_above() -> None:
    """DeepSeek-AI 2024, arXiv:2401.02954, table of peaks: it made float32 logits, and kept more than it needed."""
    sizes = {"vocab_size": 102400, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 30}
    model = assay.load({"model_type": "llama", "num_attention_heads": 32, **sizes})
    rows = [row for row in json.loads(PUBLISHED.read_text()) if row["id"].startswith("mem.infer.deepseek7b")]
    assert len(rows) == 7
    for row in rows:
        batch, tokens = map(int, re.findall(r"[bs](\d+)", row["id"].partition("7b.")[2]))
        made = assay.memory(
            model, batch, tokens, policy="transformers", attention="plain", logits="all", weights="bf16"
        )
        assert 0.6 < made.total / 2**30 / row["value"] < 1
