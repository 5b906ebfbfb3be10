"""Encoder-decoders in settings of all sorts, against sums by hand: heads are together 32 wide in BART's small config,
24 in T5's.
"""

from __future__ import annotations

from typing import Any

import pytest
from encdec import bart, long, model, named, paired, prophetnet, seamless, t5, t5gemma, t5gemma2, whisper

from assay.errors import AssayError, SourceError
from assay.readings.count import count
from assay.readings.generate import generate
from assay.sources.families import FAMILIES
from assay.sources.huggingface import read_config


def bart_by_hand(n: int, m: int, past: int = 0) -> int:
    """FLOPs of the small BART: d 32, 2 layers of MLP 40, 3 of MLP 56, vocabulary 97; the source passes once."""
    d, source = 32, 0 if past else m
    encoder = 2 * (2 * source * (4 * d * d + 2 * d * 40) + 4 * source * source * d)
    own = 2 * n * 4 * d * d + 4 * n * (past + n) * d
    cross = 2 * n * 2 * d * d + 2 * source * 2 * d * d + 4 * n * m * d
    return encoder + 3 * (own + cross + 2 * n * 2 * d * 56) + 2 * n * d * 97


@pytest.mark.parametrize(("n", "m", "past"), [(5, 5, 0), (3, 20, 0), (20, 1, 0), (1, 9, 7), (2, 24, 22)])
def test_a_source_of_another_length_is_counted_by_hand(n: int, m: int, past: int) -> None:
    counted = count(model(bart()), tokens=n, source=m, past=past)
    assert counted.flops.total == bart_by_hand(n, m, past)
    # scores: the encoder's m x m, the decoder's n x (past + n), and n x m across; 2 products of 2 d FLOPs a pair
    source = 0 if past else m
    assert counted.flops.attention_scores == 4 * 32 * (2 * source * source + 3 * (n * (past + n) + n * m))
    assert count(model(bart()), 7, tokens=n, source=m, past=past).flops.total == 7 * bart_by_hand(n, m, past)


def test_the_source_is_as_long_as_the_target_where_nothing_is_said() -> None:
    small = model(bart())
    assert count(small, tokens=6).flops == count(small, tokens=6, source=6).flops
    assert count(small, tokens=6).flops != count(small, tokens=6, source=5).flops


@pytest.mark.parametrize("past", [0, 1, 11])
def test_cross_keys_are_fixed_and_belong_to_the_whole_batch(past: int) -> None:
    held = count(model(bart()), 5, tokens=2, past=past, source=20, cache="bf16").cache
    # 3 decoder layers, keys and values of 32, bf16: 20 source positions once, one position more a token
    assert held.fixed_bytes == 5 * 3 * 2 * 32 * 2 * 20
    assert held.marginal_bytes_per_token == 3 * 2 * 32 * 2
    assert held.bytes == held.fixed_bytes + 5 * (past + 2) * held.marginal_bytes_per_token


def test_a_decode_step_reads_the_source_and_makes_nothing_of_it() -> None:
    """One token behind 6: the source's length changes only the scores."""
    small = model(t5())
    short, long_one = (count(small, tokens=1, past=6, source=m).flops for m in (10, 30))
    assert long_one.total - short.total == 3 * 4 * 24 * (30 - 10)
    assert long_one.total - short.total == long_one.attention_scores - short.attention_scores
    assert {p: n for p, n in short.by_part.items() if p != "attention"} == {
        p: n for p, n in long_one.by_part.items() if p != "attention"
    }


@pytest.mark.parametrize(
    "config",
    [
        bart(),
        t5(),
        t5("umt5"),
        whisper(),
        long("led", attention_window=4),
        t5gemma(),
        bart("nllb-moe", num_experts=4),
        prophetnet(),
        seamless(),
        seamless("seamless_m4t_v2"),
        t5gemma2(),
    ],
    ids=named,
)
@pytest.mark.parametrize("convention", ["matmul", "causal", "scalar", "stable-softmax"])
def test_generation_is_a_prefill_and_steps(config: dict[str, Any], convention: str) -> None:
    """The closed sum equals the steps counted one by one, and full passes that encode the source again."""
    small = model(config)
    asked: dict[str, Any] = {"batch": 2, "source": 10, "convention": convention}
    made = generate(small, 6, tokens=4, **asked)
    steps = [count(small, tokens=1, past=4 + i, **asked).flops for i in range(6)]
    again = [count(small, tokens=5 + i, **asked).flops for i in range(6)]
    assert made.prefill == count(small, tokens=4, **asked).flops
    assert made.steps == sum(steps[1:], start=steps[0])
    assert made.again == sum(again[1:], start=again[0])
    assert made.cache == count(small, tokens=1, past=9, **asked).cache


@pytest.mark.parametrize("config", [bart(), t5("longt5"), whisper(), t5gemma(), seamless()], ids=named)
def test_symbols_and_arrays_give_the_same_as_numbers(config: dict[str, Any]) -> None:
    numpy, sympy = pytest.importorskip("numpy"), pytest.importorskip("sympy")
    small = model(config)
    m, p = sympy.symbols("m p", integer=True, positive=True)
    said = count(small, tokens=2, source=m, past=p)
    swept = count(small, tokens=2, source=numpy.array([4, 10, 12]), past=numpy.array([0, 1, 5]))
    for at, (source, past) in enumerate([(4, 0), (10, 1), (12, 5)]):
        exact = count(small, tokens=2, source=source, past=past)
        assert swept.flops.total[at] == exact.flops.total
        assert swept.cache.bytes[at] == exact.cache.bytes
        if past:
            assert said.flops.total.subs({m: source, p: past}) == exact.flops.total
            assert said.cache.fixed_bytes.subs({m: source, p: past}) == exact.cache.fixed_bytes
    whole = count(small, tokens=2, source=m).flops.total
    assert whole.subs({m: 10}) == count(small, tokens=2, source=10).flops.total


def test_whispers_source_is_frames_two_a_position() -> None:
    small = model(whisper())
    counted = count(small, tokens=1)
    assert counted.setting.source == 24
    assert counted.cache.fixed_bytes == 3 * 2 * 32 * 2 * 12
    half = count(small, tokens=1, source=12)
    assert half.cache.fixed_bytes == 3 * 2 * 32 * 2 * 6
    # 3 columns of 10 bands at each frame, 3 of 32 channels at every other one
    assert half.flops.by_part["embedding"] == 2 * 12 * 3 * 10 * 32 + 2 * 6 * 3 * 32 * 32
    assert count(small, tokens=1, past=3).flops.by_part["embedding"] == 0
    assert read_config({"model_type": "whisper"}, "config", "w").source_tokens == 3000


@pytest.mark.parametrize(("frames", "positions"), [(3, 1), (4, 2), (11, 3), (12, 4)])
def test_an_adapter_leaves_every_fourth_frame_and_one(frames: int, positions: int) -> None:
    """A kernel and a stride of 4 over frames with 2 added at either end: frames / 4 + 1, rounded down."""
    counted = count(model(seamless()), tokens=1, source=frames, cache="bf16")
    assert counted.cache.fixed_bytes == 2 * 2 * 32 * 2 * positions


@pytest.mark.parametrize(
    ("config", "said", "match"),
    [
        (bart(), {"source": 25, "tokens": 4}, r"source is 25; .* position table that ends at 24"),
        (bart(), {"tokens": 25, "source": 4}, r"past \+ tokens is 25; .* position table of 24 rows"),
        (bart(), {"tokens": 1, "past": 24, "source": 4}, r"past \+ tokens is 25; .* 24 rows"),
        (whisper(), {"source": 26, "tokens": 4}, r"source is 26; .* position table that ends at 24"),
        (whisper(), {"tokens": 17}, r"past \+ tokens is 17; .* position table of 16 rows"),
        (
            seamless(adaptor_stride=1),
            {"source": 2},
            r"source is 2; the encoder of m has no position for so short a source",
        ),
        (bart(), {"source": 0}, r"source is 0; it must be an integer of at least 1"),
    ],
)
def test_lengths_beyond_a_table_are_refused(config: dict[str, Any], said: dict[str, Any], match: str) -> None:
    with pytest.raises(AssayError, match=match):
        count(model(config), **said)


@pytest.mark.parametrize("config", [t5(), bart("m2m_100"), bart("fsmt", src_vocab_size=9)], ids=named)
def test_computed_positions_have_no_end(config: dict[str, Any]) -> None:
    assert count(model(config), tokens=50, source=70).flops.total > 0


@pytest.mark.parametrize(
    ("config", "match"),
    [
        (bart(d_model=30), r"config: d_model is 30; it must be a multiple of encoder_attention_heads, 4"),
        (bart(encoder_layers=None), r"config: encoder_layers is null; it must be an integer of at least 1"),
        (bart(decoder_ffn_dim=-1), r"config: decoder_ffn_dim is -1; it must be an integer of at least 1"),
        (bart(hidden_size=64), r"config: hidden_size is 64 and d_model is 32; they name one thing and must agree"),
        (bart(normalize_before=True), r"config: normalize_before is true; it must be false or null"),
        (bart("mvp", use_prompt=True), r"config: use_prompt is true; it must be false or null"),
        (bart(new_key=3), r"config: new_key is 3: not known for bart"),
        (bart(activation_function="sine"), r"config: activation_function is 'sine'; it must be one of"),
        (
            bart("fsmt", src_vocab_size=5, tie_word_embeddings=True),
            r"config: src_vocab_size is 5; .* tgt_vocab_size, 97",
        ),
        (bart("nllb-moe", num_experts=1, encoder_sparse_step=1), r"config: num_experts is 1; .* at least 2"),
        (t5(feed_forward_proj="gated-"), r"config: feed_forward_proj is 'gated-'; it must be one of"),
        (t5(d_kv=0), r"config: d_kv is 0; it must be an integer of at least 1"),
        (t5(is_gated_act=True), r"config: is_gated_act is true; it must be false or null"),
        (t5("switch_transformers", num_sparse_encoder_layers=5), r"num_sparse_encoder_layers is 5; it must be at most"),
        (t5("longt5", encoder_attention_type="global"), r"encoder_attention_type is 'global'; it must be one of local"),
        (long("led", attention_window=3), r"config: attention_window is 3; it must be an even integer"),
        (long("led", attention_window=[4]), r"config: attention_window has 1 items; it must be a list of 2 items"),
        (long("pegasus_x", block_size=5), r"config: block_size is 5; it must be an even integer"),
        (paired("bert", "gpt2"), r"config: decoder.model_type is 'gpt2'; it must be one of bert"),
        (paired("bert", "bert", hidden_size=48), r"config: decoder.hidden_size is 48; .* encoder.hidden_size, 32"),
        (seamless(num_adapter_layers=2), r"config: num_adapter_layers is 2; it must be 1 or null"),
        (seamless(conv_depthwise_kernel_size=4), r"config: conv_depthwise_kernel_size is 4; it must be an odd integer"),
        (
            seamless(position_embeddings_type="rotary"),
            r"position_embeddings_type is 'rotary'; it must be one of relative",
        ),
        (whisper(num_mel_bins=None), r"config: num_mel_bins is null; it must be an integer of at least 1"),
        (bart(architectures=["BartForCausalLM"]), r"architectures names BartForCausalLM, which is not described"),
    ],
)
def test_what_does_not_fit_is_said(config: dict[str, Any], match: str) -> None:
    with pytest.raises(SourceError, match=match):
        model(config)


# what blocks and windows let through: dense figures are the same whatever they are


@pytest.mark.parametrize(
    ("config", "m", "pairs"),
    [
        (long("led", attention_window=4), 9, sum(min(9, i + 3) - max(0, i - 2) for i in range(9))),
        (long("pegasus_x", block_size=4, num_global_tokens=3, stagger_local_blocks=False), 10, 16 + 16 + 4 + 10 * 3),
        (long("bigbird_pegasus", block_size=2, num_random_blocks=1), 14, 14 * 14),
        # 8 blocks of 2: the first and the last see 8, their neighbours 5, the other four 6
        (long("bigbird_pegasus", block_size=2, num_random_blocks=1), 16, 4 * (2 * 8 + 2 * 5 + 4 * 6)),
        (t5("longt5", local_radius=2), 9, sum(min(9, i + 3) - max(0, i - 2) for i in range(9))),
        (
            t5("longt5", local_radius=2, encoder_attention_type="transient-global", global_block_size=4),
            9,
            sum(min(9, i + 3) - max(0, i - 2) for i in range(9)) + 9 * 2,
        ),
    ],
    ids=["led", "pegasus_x", "bigbird-full", "bigbird", "longt5", "longt5-global"],
)
def test_visible_pairs_of_long_sources(config: dict[str, Any], m: int, pairs: int) -> None:
    """Scores of the encoder alone, over the pairs that its masks let through."""
    row = next(
        r
        for r in count(model(config), tokens=1, source=m, convention="causal").rows
        if r.layers == (0,) or r.layers[:1] == (0,)
    )
    width, layers = (24 if "d_kv" in config else 32), len(row.layers)
    far = 4 * width * 3 * (m + 3) if config["model_type"] == "pegasus_x" else 0  # global tokens see all
    assert row.flops.attention_scores == layers * (4 * width * pairs + far)


def test_staggered_blocks_begin_with_half_a_block() -> None:
    said = long("pegasus_x", block_size=4, num_global_tokens=3)
    rows = [r for r in count(model(said), tokens=1, source=10, convention="causal").rows if r.name == "encoder layer"]
    # blocks of 4, 4 and 2; staggered of 2, 4 and 4
    found = [r.flops.attention_scores for r in rows]
    assert found == [4 * 32 * (16 + 16 + 4 + 10 * 3 + 3 * 13), 4 * 32 * (4 + 16 + 16 + 10 * 3 + 3 * 13)]


def test_transient_global_tokens_are_counted_by_hand() -> None:
    """9 tokens in blocks of 4 make 2 sums, which pass the matrices of keys and values and are seen by each token."""
    local = t5("longt5", local_radius=2)
    far = local | {"encoder_attention_type": "transient-global", "global_block_size": 4}
    plain, more = (count(model(c), tokens=1, source=9).flops.total for c in (local, far))
    assert more - plain == 2 * (2 * 2 * 2 * 32 * 24 + 4 * 9 * 2 * 24)


def test_global_tokens_pass_the_encoder_too() -> None:
    said = long("pegasus_x", block_size=4, num_global_tokens=3)
    d, f, n, z = 32, 40, 9, 3
    layer = 2 * (n + z) * (4 * d * d + 2 * d * f) + 4 * (n + z) * (n + z) * d
    rows = [r for r in count(model(said), tokens=1, source=n).rows if r.name == "encoder layer"]
    assert [r.flops.total for r in rows] == [layer, layer]


def test_nllb_routes_each_token_to_two_experts() -> None:
    said = bart("nllb-moe", num_experts=4, encoder_sparse_step=1, decoder_sparse_step=0)
    spent = count(model(said), tokens=1, source=5).flops.by_part
    assert spent["experts"] == 2 * 5 * 2 * 2 * 2 * 32 * 40
    assert spent["router"] == 2 * 2 * 5 * 32 * 4


def test_images_stand_within_the_source_and_pass_the_tower_alone() -> None:
    """16 patches of 3 x 4 x 4 pixels, two layers of width 24 and MLP 20, a probe, 4 tokens projected to 32."""
    small = model(t5gemma2())
    none, two = (count(small, 3, tokens=2, source=9, images=images).flops for images in (0, 2))
    d, n = 24, 16
    layer = 2 * n * (4 * d * d + 2 * d * 20) + 4 * n * n * d
    # the probe's query, keys and values of the patches, its scores, its output, its MLP
    probe = 2 * d * d + 2 * n * 2 * d * d + 4 * n * d + 2 * d * d + 2 * 2 * d * 20
    image = 2 * n * 48 * d + 2 * layer + probe + 2 * 4 * d * 32
    assert two.total - none.total == 3 * 2 * image == two.by_part["tower"]
    assert count(small, 3, tokens=1, past=2, source=9, images=2).flops.by_part["tower"] == 0


def test_one_softmax_over_both_sequences() -> None:
    """Two layers of 4 heads of 6: n x (past + n + m) pairs, keys and values of the source kept once."""
    small = model(t5gemma2())
    step = count(small, tokens=1, past=3, source=9, cache="bf16")
    assert step.flops.attention_scores == 2 * 4 * 24 * (4 + 9)
    assert step.cache.fixed_bytes == 2 * 2 * 6 * 2 * 9


READING = [name for name, family in FAMILIES.items() if family.read.__annotations__["return"] == "EncoderDecoder"]


@pytest.mark.parametrize("model_type", READING)
@pytest.mark.parametrize("convention", ["matmul", "scalar"])
def test_no_encoder_runs_once_there_is_a_past(model_type: str, convention: str) -> None:
    """Nothing of it: neither what has a length of its own, global tokens say, nor what reads its first token."""
    config: dict[str, Any] = {"model_type": model_type}
    if model_type == "encoder-decoder":
        config |= {side: {"model_type": "bert"} for side in ("encoder", "decoder")}
    read = read_config(config, "config", "model")
    first = count(read, tokens=2, source=60, convention=convention)
    later = count(read, 3, tokens=1, past=2, source=60, convention=convention)
    assert sum(row.flops.total for row in first.rows if row.name.startswith("encoder")) > 0
    assert sum(row.flops.total for row in later.rows if row.name.startswith("encoder")) == 0
    assert later.parameters == first.parameters
