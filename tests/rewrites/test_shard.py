"""Models divided among ranks: what ranks hold together, what each does, and what plans cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sparse_configs import INKLING1

import assay
from assay.errors import SettingError
from assay.kinds import check
from assay.readings.states import states
from assay.rewrites.plan import Plan, Rank
from assay.rewrites.shard import shard
from assay.spec import Model, carried, check_names

B, N = 2, 64
# families with what every tensor rank holds whole: norms go without saying
REPLICATED: dict[str, str] = {
    "llama-3-8b": "",
    "mistral-7b": "",
    "qwen2.5-7b": "",
    "gemma-2-9b": "",
    "olmo-2-7b": "",
    "phi-3-mini-4k": "",
    "gpt-2": "wpe c_proj.bias",
    "gpt-neox-20b": "attention.dense.bias dense_4h_to_h.bias",
    "gpt-j-6b": "fc_out.bias",
    "bloom-7b1": "self_attention.dense.bias dense_4h_to_h.bias",
    "opt-13b": "embed_positions out_proj.bias fc2.bias",
    "falcon-180b": "",
    "command-r7b": "",
    "mixtral-8x7b": "gate.weight",
    "gpt-oss-20b": "router o_proj.bias experts.down_proj_bias",
    "qwen3-30b-a3b": "mlp.gate.weight",
    "deepseek-v3": "q_a_proj kv_a_proj_with_mqa mlp.gate.weight e_score_correction_bias",
    "bert-base": "position_embeddings token_type_embeddings output.dense.bias transform.dense",
    "t5-small": "",
    "mamba-2.8b": "",
    "falcon-mamba-7b": "",
    "lfm2-1.2b": "",
    "nemotron-h-8b": "",
    "deberta-v3-base": "rel_embeddings output.dense.bias predictions.transform",
}
NORMS = ("norm", "ln_", "layer_norm", "layernorm", "LayerNorm")


def everywhere(path: str, name: str) -> bool:
    """True for what each rank holds whole, by hand."""
    words = REPLICATED[name].split()
    if name == "olmo-2-7b" and ("q_norm" in path or "k_norm" in path):
        return False  # of all heads at once
    if path.endswith("mixer.norm.weight"):
        return False  # of a mixer's heads
    return any(mark in path for mark in NORMS) or any(word in path for word in words)


def held(ranks: tuple[Rank, ...]) -> dict[str, int]:
    """Elements of each stored tensor, over all ranks."""
    found: dict[str, int] = {}
    for rank in ranks:
        for entry in assay.tensors(rank.model):
            found[entry.path] = found.get(entry.path, 0) + rank.count * int(entry.elements) * entry.times
    return found


@pytest.mark.parametrize("name", REPLICATED)
@pytest.mark.parametrize("ranks", [2, 4])
def test_tensors_are_divided_or_on_every_rank(name: str, ranks: int) -> None:
    if name == "deberta-v3-base" or (name, ranks) == ("qwen2.5-7b", 4) or (name == "t5-small" and ranks == 4):
        ranks = 2
    model = assay.load(name)
    together, whole = held(shard(model, Plan(tensor=ranks))), held(shard(model, Plan()))
    assert together == {path: (ranks if everywhere(path, name) else 1) * size for path, size in whole.items()}


def test_shared_experts_are_divided_by_their_width_alone() -> None:
    """Where several are one tensor [S d f], each rank has its part of every one."""
    model = assay.load({**INKLING1, "swa_num_key_value_heads": 2})
    ranks = shard(model, Plan(tensor=2))  # of 2 experts of width 24
    blocks = [segment.block for rank in ranks for segment in rank.model.segments if "S" in segment.block.sizes]
    assert {(block.sizes["S"], block.sizes["f"]) for block in blocks} == {(2, 12)}
    together, whole = held(ranks), held(shard(model, Plan()))
    assert all(together[path] in (whole[path], 2 * whole[path]) for path in whole)
    assert [path for path in whole if "shared_experts" in path and together[path] != whole[path]] == []


SEVERAL_AXES: dict[str, dict[str, Any]] = {
    "codegen": {"n_head": 16, "n_embd": 128, "n_inner": 64, "rotary_dim": 8},  # heads in four groups of four
    "diffllama": {"num_attention_heads": 16, "num_key_value_heads": 16, "hidden_size": 128, "intermediate_size": 64},
}


@pytest.mark.parametrize("name", SEVERAL_AXES)
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_heads_along_several_axes(name: str, ranks: int) -> None:
    """Of differential attention two heads of keys see the values of one pair, so that 8 pairs are divided."""
    model = assay.load({"model_type": name, "vocab_size": 64, **SEVERAL_AXES[name]})
    together, whole = held(shard(model, Plan(tensor=ranks))), held(shard(model, Plan()))
    apart = {path for path in whole if "proj.weight" in path or "fc_in.weight" in path}
    assert len(apart) >= 3
    assert {path: together[path] for path in apart} == {path: whole[path] for path in apart}
    assert all(together[path] in (whole[path], ranks * whole[path]) for path in whole)
    assert all_flops(shard(model, Plan(tensor=ranks))) == flops(model)


def test_heads_that_do_not_divide_along_several_axes() -> None:
    model = assay.load({"model_type": "diffllama", **SEVERAL_AXES["diffllama"]})
    with pytest.raises(assay.SettingError, match="tensor is 16; config has 8 query heads, and a rank needs at least"):
        shard(model, Plan(tensor=16))


def flops(model: Model, **setting: Any) -> int:
    return int(assay.count(model, B, N, **setting).flops.total)


def all_flops(ranks: tuple[Rank, ...]) -> int:
    return sum(rank.count * flops(rank.model) for rank in ranks)


@pytest.mark.parametrize("name", REPLICATED)
def test_ranks_share_the_work(name: str) -> None:
    model = assay.load(name)
    more = {  # routers, and the matrices down to a latent, are multiplied by on both ranks
        "mixtral-8x7b": 32 * 4096 * 8,
        "gpt-oss-20b": 24 * 2880 * 32,
        "qwen3-30b-a3b": 48 * 2048 * 128,
        "deepseek-v3": 61 * 7168 * (1536 + 512 + 64) + 58 * 7168 * 256,
        **dict.fromkeys(("bert-base", "deberta-v3-base"), 768 * 768),  # before the head's vocabulary
    }.get(name, 0)
    assert all_flops(shard(model, Plan(tensor=2))) == flops(model) + 2 * B * N * more


@pytest.mark.parametrize("name", [name for name in REPLICATED if not name.startswith(("t5", "deberta", "bert"))])
def test_divided_tokens_leave_no_work_twice(name: str) -> None:
    """With sequence parallelism routers and latents have each rank's own tokens."""
    model = assay.load(name)
    assert all_flops(shard(model, Plan(tensor=2, sequence=True))) == flops(model)


def test_what_a_rank_runs() -> None:
    """A copy before the columns, a sum behind the rows; with tokens divided, gathered before and scattered behind."""
    model = assay.load("llama-3-8b")

    def between(plan: Plan) -> list[str]:
        (rank,) = shard(model, plan)
        ops = rank.model.segments[1].block.ops
        check(ops)
        check_names(ops)
        return [f"{op.kind} {op.name}" for op in ops if op.attr("ranks") is not None]

    assert between(Plan(tensor=8)) == ["copies xa_copy", "all_reduce ya", "copies xm_copy", "all_reduce ym"]
    assert between(Plan(tensor=8, sequence=True)) == [
        "all_gather xa_all",
        "reduce_scatter ya",
        "all_gather xm_all",
        "reduce_scatter ym",
    ]


def test_a_bias_of_rows_is_added_once() -> None:
    (first, *_) = shard(assay.load("gpt-2"), Plan(tensor=2))
    ops = [str(op) for op in first.model.segments[1].block.ops]
    at = ops.index("ya = all_reduce(ya[b n d], ranks=2, over=tensor) -> [b n d]")
    assert ops[at - 1] == "ya = linear(o[b n g r v], Wo[g r v d]) -> [b n d]"
    assert ops[at + 1] == "ya = add(ya[b n d], Bo[d]) -> [b n d]"


def test_adapters_are_divided_with_their_matrices() -> None:
    """Of a matrix divided by columns B is, of one divided by rows A; the other is on every rank."""
    d, f, layers, r = 4096, 14336, 32, 8
    (rank,) = shard(assay.lora(assay.load("llama-3-8b"), r, "all-linear"), Plan(tensor=4))
    columns = 2 * (d + f // 4) + (d + d // 4) + 2 * (d + 1024 // 4)  # gate, up, q, k, v
    rows = (f // 4 + d) + (d // 4 + d)  # down, o
    assert assay.count(rank.model, B, N).parameters.trained == layers * r * (columns + rows)


# -- heads, the vocabulary ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ranks", "groups"), [(1, 8), (2, 4), (8, 1), (16, 1), (32, 1)])
def test_key_value_heads_of_a_rank(ranks: int, groups: int) -> None:
    """max(1, 8 / t): with more ranks than heads each is on several, and so are its keys and values."""
    (rank,) = shard(assay.load("llama-3-8b"), Plan(tensor=ranks))
    cached = assay.count(rank.model, tokens=1, past=99, cache="bf16").cache.bytes
    assert cached == 32 * 100 * 2 * groups * 128 * 2
    shapes = {entry.path.split(".")[-2]: entry.shape for entry in assay.tensors(rank.model)}
    assert shapes["q_proj"] == (32 // ranks * 128, 4096)
    assert shapes["k_proj"] == shapes["v_proj"] == (groups * 128, 4096)
    assert shapes["o_proj"] == (4096, 32 // ranks * 128)
    assert shapes["gate_proj"] == (14336 // ranks, 4096)
    assert shapes["embed_tokens"] == shapes["lm_head"] == (128256 // ranks, 4096)


def test_latents_are_cached_on_every_rank() -> None:
    (rank,) = shard(assay.load("deepseek-v3"), Plan(tensor=16))
    assert assay.count(rank.model, cache="bf16").cache.marginal_bytes_per_token == 61 * (512 + 64) * 2


def test_rows_of_a_vocabulary_that_does_not_divide() -> None:
    """50,257 = 12,565 + 3 x 12,564."""
    first, others = shard(assay.load("gpt-2"), Plan(tensor=4))
    assert (first.count, others.count) == (1, 3)
    assert first.name == "tensor ranks with 12,565 rows of the vocabulary"
    assert others.name == "tensor ranks with 12,564 rows of the vocabulary"
    assert assay.count(first.model, 1, 1).parameters.total - assay.count(others.model, 1, 1).parameters.total == 768


# -- stages ------------------------------------------------------------------------------------------------------------


def test_stages_hold_layers_in_order() -> None:
    model = assay.load("llama-3-8b")
    d, vocab, layer = 4096, 128256, 4096 * (2 * 4096 + 2 * 1024 + 3 * 14336) + 2 * 4096
    ranks = shard(model, Plan(pipeline=5))
    figures = [(rank.name, rank.count, assay.count(rank.model, B, N).parameters.total) for rank in ranks]
    assert figures == [
        ("stage 1 of 5, with the embedding", 1, vocab * d + 7 * layer),
        ("stage 2 of 5", 1, 7 * layer),
        ("stages 3 to 4 of 5", 2, 6 * layer),
        ("stage 5 of 5, with the head", 1, 6 * layer + d + vocab * d),
    ]
    assert [rank.in_flight for rank in ranks] == [5, 4, 3, 1]
    assert sum(rank.count * total for rank, (_, _, total) in zip(ranks, figures, strict=True)) == 8_030_261_248
    assert all_flops(ranks) == flops(model)


def test_layers_in_turn_stay_in_order() -> None:
    """Gemma 2 has a window in every other layer: 26 layers, of which the first stage has 9."""
    first, *_ = shard(assay.load("gemma-2-2b"), Plan(pipeline=3))
    assert [segment.layers for segment in first.model.segments[1:-1]] == [(0, 2, 4, 6, 8), (1, 3, 5, 7)]


def test_a_tied_table_is_on_the_first_stage_and_on_the_last() -> None:
    model = assay.load("gpt-2")
    ranks = shard(model, Plan(pipeline=4))
    total = sum(rank.count * assay.count(rank.model, B, N).parameters.total for rank in ranks)
    assert total == 124_439_808 + 50257 * 768


def test_few_microbatches_are_not_many_in_flight() -> None:
    ranks = shard(assay.load("llama-3-8b"), Plan(pipeline=4, microbatches=2))
    assert [rank.in_flight for rank in ranks] == [2, 2, 1]
    assert [rank.count for rank in ranks] == [1, 2, 1]


def test_gradients_go_back_through_a_stage() -> None:
    """All layers of a later stage pass a gradient on: its backward pass is twice its forward one."""
    _, middle, last = shard(assay.load("llama-3-8b"), Plan(pipeline=4))
    for rank in (middle, last):
        step = assay.training(rank.model, B, N)
        assert step.backward == 2 * step.forward
        assert not step.unknown


# -- experts -----------------------------------------------------------------------------------------------------------


def experts(rank: Rank) -> int:
    """Parameters of routed experts that a rank holds."""
    return sum(int(e.elements) * e.times for e in assay.tensors(rank.model) if ".experts." in e.path)


def test_experts_are_divided_and_the_rest_is_not() -> None:
    model = assay.load("mixtral-8x7b")
    routed = 32 * 8 * 3 * 4096 * 14336
    total = assay.count(model, B, N).parameters.total
    (rank,) = shard(model, Plan(data=8, expert=4))
    assert (rank.count, experts(rank)) == (8, routed // 4)
    assert assay.count(rank.model, B, N).parameters.total == total - routed + routed // 4
    assert flops(rank.model) == flops(model)  # as many tokens come as go


@pytest.mark.parametrize(
    ("plan", "share"),
    [
        (Plan(tensor=4, sequence=True, expert=2, expert_tensor=1), 2),
        (Plan(tensor=4, sequence=True, expert=4, expert_tensor=1), 4),
        (Plan(tensor=4, data=2, expert=2), 8),
    ],
)
def test_experts_are_divided_by_ranks_of_their_own(plan: Plan, share: int) -> None:
    model = assay.load("mixtral-8x7b")
    (rank,) = shard(model, plan)
    assert experts(rank) == 32 * 8 * 3 * 4096 * 14336 // share
    routers = 0 if plan.sequence else (plan.tensor - 1) * 32 * 4096 * 8
    assert all_flops((rank,)) // plan.data == flops(model) + 2 * B * N * routers
    check_names(rank.model.segments[1].block.ops)


def test_tokens_go_to_experts_and_back() -> None:
    (rank,) = shard(assay.load("mixtral-8x7b"), Plan(data=2, expert=2))
    ops = [str(op) for op in rank.model.segments[1].block.ops if op.kind == "all_to_all"]
    assert ops == [
        "xm_sent = all_to_all(xm[b n d], i[b n a], ranks=2, over=expert) -> [b n a d]",
        "u = all_to_all(u[b n a d], ranks=2, over=expert) -> [b n a d]",
    ]


# -- states ------------------------------------------------------------------------------------------------------------


def test_states_of_a_plan() -> None:
    """Llama 3 8B on 4 x 8 ranks, its states divided by 8: 2 bytes and 14 / 8 of a quarter, norms whole."""
    plan = Plan(data=8, tensor=4, zero=2)
    (rank,) = shard(assay.load("llama-3-8b"), plan)
    made = states(rank.model, precision="mixed", zero=plan.zero, shards=plan.data)
    quarter = (8_030_261_248 - 65 * 4096) // 4 + 65 * 4096
    assert made.trained == quarter
    assert made.parameters == 2 * quarter
    assert made.gradients == 2 * quarter // 8
    assert made.total - made.optimizer["step"] == 2 * quarter + 14 * quarter // 8


def test_states_of_experts_are_divided_by_fewer_ranks() -> None:
    """8 data ranks, of which 4 divide the experts: 2 hold the same experts, and divide their states."""
    plan = Plan(data=8, expert=4, zero=1)
    (rank,) = shard(assay.load("mixtral-8x7b"), plan)
    made = states(rank.model, precision="mixed", zero=1, shards=plan.data, expert_shards=plan.replicas)
    routed = 32 * 8 * 3 * 4096 * 14336 // 4
    rest = made.trained - routed
    assert plan.replicas == 2
    assert made.master == 4 * (routed // 2 + rest // 8)
    assert made.optimizer["exp_avg"] == made.optimizer["exp_avg_sq"] == made.master


# -- numbers from elsewhere --------------------------------------------------------------------------------------------

CASES = Path(__file__).parents[3] / "shared" / "cases" / "cases.json"


@pytest.mark.skipif(not CASES.exists(), reason="needs the fault reports beside the repository")
def test_the_report_on_expert_parameters() -> None:
    report = next(case for case in json.loads(CASES.read_text()) if case["id"] == "M11")
    (rank,) = shard(assay.load("mixtral-8x7b"), Plan(tensor=4, sequence=True, expert=2, expert_tensor=1))
    assert f"{experts(rank):,}" in report["right"]


def test_published_shares_of_megatron_turing() -> None:
    """35 stages of 8 tensor ranks (Smith et al. 2022, arXiv:2201.11990): 105 layers, 3 each."""
    ranks = shard(assay.load("mt-nlg-530b"), Plan(tensor=8, pipeline=35))
    d = 20480
    layer = 12 * d * d // 8 + (3 * d + 4 * d) // 8 + 6 * d  # matrices, biases of columns; of rows, and norms
    middle = next(rank for rank in ranks if rank.name == "stages 2 to 34 of 35")
    assert middle.count == 33 * 8
    assert assay.count(middle.model, 1, 16).parameters.total == 3 * layer


# -- what cannot be ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "plan", "said"),
    [
        ("llama-3-8b", {"tensor": 64}, r"tensor is 64; Llama 3 8B has 32 query heads, and a rank needs at least one"),
        (
            "llama-3-8b",
            {"tensor": 3},
            r"tensor is 3; the 32 query heads of Llama 3 8B do not divide among so many ranks",
        ),
        (
            "phi-3-medium-4k",
            {"tensor": 4},
            r"tensor is 4; the 10 key/value heads of Phi-3 medium 4k do not divide among so many ranks",
        ),
        ("llama-3-8b", {"pipeline": 33}, r"pipeline is 33; Llama 3 8B has 32 layers to divide into stages"),
        (
            "t5-small",
            {"pipeline": 2},
            r"pipeline is 2; it is not known for T5 small, which has an encoder and a decoder",
        ),
        ("t5-small", {"tensor": 2, "sequence": True}, r"sequence is not known for T5 small, which has an encoder"),
        ("albert-base", {"pipeline": 2}, r"pipeline is 2; .* goes through its layers several times"),
        (
            "mamba-2-1.3b",
            {"tensor": 3},
            r"tensor is 3; the 64 heads or channels of a mixer of Mamba-2 1.3B do not divide",
        ),
        (
            {"model_type": "convbert"},
            {"tensor": 2},
            r"how tensor ranks divide o = reshape\(o\[b n g r v\]\) -> \[b n e v\] of config is not known",
        ),
        ("llama-3-8b", {"data": 2, "expert": 2}, r"expert is 2; Llama 3 8B has no routed experts"),
        ("mixtral-8x7b", {"data": 3, "expert": 3}, r"expert is 3; the 8 experts of Mixtral 8x7B do not divide among"),
        ("mixtral-8x7b", {"tensor": 2, "expert_tensor": 1}, r"every tensor rank would do the same work of experts"),
    ],
)
def test_plans_that_a_model_cannot_have(name: Any, plan: dict[str, Any], said: str) -> None:
    with pytest.raises(assay.SettingError, match=said):
        shard(assay.load(name), Plan(**plan))


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"tensor": 0}, r"tensor is 0; it must be an integer of at least 1"),
        ({"data": 1.5}, r"data is 1\.5; it must be an integer of at least 1"),
        ({"pipeline": True}, r"pipeline is True; it must be an integer"),
        ({"zero": 4}, r"zero is 4; known: 0, 1, 2, 3"),
        ({"tensor": 4, "expert_tensor": 2}, r"expert_tensor is 2; known: 1, or as many as tensor, 4"),
        ({"sequence": True}, r"sequence divides tokens among tensor ranks, and tensor is 1"),
        ({"expert": 2}, r"expert x expert_tensor is 2 x 1; it must divide data x tensor, 1 x 1"),
    ],
)
def test_plans_that_are_none(plan: dict[str, Any], said: str) -> None:
    with pytest.raises(assay.SettingError, match=said):
        Plan(**plan)


def test_one_rank_is_the_model() -> None:
    model = assay.load("llama-3-8b")
    (rank,) = shard(model, Plan())
    assert (rank.name, rank.count, rank.model) == ("the one rank", 1, model)
    assert Plan(data=2, tensor=4, pipeline=8).world == 64
    assert str(Plan(data=2, zero=3, tensor=4, sequence=True)) == "data 2, tensor 4, zero 3, sequence"


@pytest.mark.parametrize("name", sorted(REPLICATED))
@pytest.mark.parametrize("sequence", [False, True])
def test_what_ranks_exchange_is_read(name: str, sequence: bool) -> None:
    """Parts of a sum that were read as they are are not added up once more."""
    try:
        ranks = shard(assay.load(name), Plan(tensor=2, sequence=sequence))
    except SettingError:
        pytest.skip("tokens are not divided here, as the error says")
    for rank in ranks:
        onward = carried(rank.model.segments)
        for segment in rank.model.segments:
            ops = segment.block.ops
            for index, op in enumerate(ops):
                later = [t.name for after in ops[index + 1 :] for t in after.activations]
                statistics = "_row" in op.name  # of a norm: what is made of them is the norm's
                assert op.attr("over") is None or op.name in later or op.name in onward or statistics, op
