"""The moments of a training step: against every storage that PyTorch makes, by hand, and part by part."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import assay
from assay.readings.step import WORKSPACE

SMALL = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", **SMALL, "intermediate_size": 160, "vocab_size": 101},
    "tied": {"model_type": "llama", **SMALL, "intermediate_size": 160, "vocab_size": 3001, "tie_word_embeddings": True},
    "qwen3": {"model_type": "qwen3", **SMALL, "head_dim": 16, "intermediate_size": 160, "vocab_size": 101},
    "gpt2": {"model_type": "gpt2", "n_embd": 64, "n_layer": 3, "n_head": 4, "vocab_size": 101, "n_positions": 64},
}
BATCH, TOKENS = 2, 48


def watched(config: dict[str, Any], attention: str, precision: str, again: bool) -> tuple[int, int]:
    """The same of the library."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    warnings.simplefilter("ignore")
    how = {"plain": "eager", "fused": "sdpa"}[attention]
    made = transformers.AutoConfig.for_model(**config, bos_token_id=1, eos_token_id=2)
    net = transformers.AutoModelForCausalLM.from_config(made, attn_implementation=how)
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    net = net.to(torch.bfloat16 if precision == "bf16" else torch.float32).train()
    if again:
        net.gradient_checkpointing_enable({"use_reentrant": False})
    return followed(net, precision, lambda ids, labels: net(input_ids=ids, labels=labels, use_cache=False).loss)


def followed(net: Any, precision: str, loss_of: Callable[[Any, Any], Any]) -> tuple[int, int]:
    """Bytes that a step makes: what is there when the backward pass starts, and at most after that."""
    torch = pytest.importorskip("torch")
    from alive import Alive

    warnings.filterwarnings("ignore", "Mismatch dtype between input and weight")  # of a norm under autocast
    ids = torch.randint(0, 101, (BATCH, TOKENS))
    labels = ids.clone()
    watch = Alive((*net.parameters(), *net.buffers(), ids, labels))
    cast = torch.autocast("cpu", torch.bfloat16) if precision == "autocast" else contextlib.nullcontext()
    with watch:
        with cast:
            loss = loss_of(ids, labels)
        end, watch.most = watch.live, 0
        loss.backward()
    return end, watch.most


@pytest.mark.parametrize("again", ["none", "layer"])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "autocast"])
@pytest.mark.parametrize("attention", ["plain", "fused"])
@pytest.mark.parametrize("name", CONFIGS)
def test_moments_of_the_public_implementation(name: str, attention: str, precision: str, again: str) -> None:
    """To the byte but for a position table and numbers alone; under autocast gradients are cast in another order."""
    step = assay.training_memory(
        assay.load(CONFIGS[name]),
        BATCH,
        TOKENS,
        precision=precision,
        attention=attention,
        device="cpu",
        recompute=again,
    )
    end, most = watched(CONFIGS[name], attention, precision, again == "layer")
    assert abs(step.moment("end of forward").bytes - step.resident - end) <= 16
    backward = max(moment.bytes for moment in step.timeline if moment.name.startswith("backward")) - step.resident
    assert backward == pytest.approx(most, rel=0.02 if precision == "autocast" else 0, abs=16)


FURTHER: dict[str, dict[str, Any]] = {
    name: {"model_type": name, **SMALL, "intermediate_size": 160, "vocab_size": 101, **more}
    for name, more in {
        "gemma3_text": {"head_dim": 16, "sliding_window": 16},
        "mistral": {"sliding_window": 16},
        "olmo2": {},
        "phi3": {"pad_token_id": 0},
    }.items()
}


@pytest.mark.parametrize(("attention", "again"), [("plain", "none"), ("fused", "layer")])
@pytest.mark.parametrize("name", FURTHER)
def test_moments_of_further_families(name: str, attention: str, again: str) -> None:
    step = assay.training_memory(
        assay.load(FURTHER[name]), BATCH, TOKENS, attention=attention, device="cpu", recompute=again
    )
    end, most = watched(FURTHER[name], attention, "bf16", again == "layer")
    assert abs(step.moment("end of forward").bytes - step.resident - end) <= 16
    backward = max(moment.bytes for moment in step.timeline if moment.name.startswith("backward")) - step.resident
    assert abs(backward - most) <= 16


OURS: dict[str, dict[str, Any]] = {
    "llama": CONFIGS["llama"],
    "tied": CONFIGS["tied"],
    "gpt2": CONFIGS["gpt2"],
    "gemma2": {
        "model_type": "gemma2",
        **SMALL,
        "head_dim": 16,
        "sliding_window": 16,
        "intermediate_size": 160,
        "vocab_size": 101,
    },
    "mixtral": {
        "model_type": "mixtral",
        **SMALL,
        "num_local_experts": 2,
        "num_experts_per_tok": 2,
        "intermediate_size": 160,
        "vocab_size": 101,
    },
}


@pytest.mark.parametrize("precision", ["fp32", "bf16", "autocast"])
@pytest.mark.parametrize("attention", ["plain", "fused"])
@pytest.mark.parametrize("name", OURS)
def test_moments_of_our_own_execution(name: str, attention: str, precision: str) -> None:
    """To the byte, but for two numbers alone: a loss and its gradient."""
    torch = pytest.importorskip("torch")
    model = assay.load(OURS[name])
    step = assay.training_memory(
        model, BATCH, TOKENS, precision=precision, attention=attention, policy="ours", device="cpu"
    )
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    net = assay.build(model, attention=attention, dtype=dtype, seed=0)
    end, most = followed(net, precision, lambda ids, labels: ours(net, ids, labels))
    assert abs(step.moment("end of forward").bytes - step.resident - end) <= 8
    backward = max(moment.bytes for moment in step.timeline if moment.name.startswith("backward")) - step.resident
    assert abs(backward - most) <= 8


def ours(net: Any, ids: Any, labels: Any) -> Any:
    """The loss as `assay.learn` has it."""
    from torch.nn import functional

    logits = net(ids)
    return functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def llama(**how: Any) -> Any:
    return assay.training_memory(assay.load("llama-3-8b"), 1, 2048, **how)


def test_every_moment_is_the_sum_of_its_parts() -> None:
    step = llama(recompute="layer")
    for moment in step.timeline:
        assert moment.bytes == sum(moment.parts.values())
        assert min(moment.parts.values()) >= 0
    assert step.peak.bytes == max(moment.bytes for moment in step.timeline)
    p = assay.count(assay.load("llama-3-8b")).parameters.total
    between = step.timeline[0].parts
    assert between["parameters"] == 2 * p
    assert between["optimizer.exp_avg"] == between["optimizer.exp_avg_sq"] == 2 * p
    assert between["workspace"] == WORKSPACE
    assert between["inputs"] == 2 * 2048 * 8
    assert step.timeline[-1].parts["gradients"] == 2 * p


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("bert-base", 8 * 2 * (64 + 64)),  # ids and labels
        ("t5-small", 8 * 2 * (64 + 64 + 64)),  # the encoder's ids, the decoder's, labels
        ("whisper-tiny", 2 * 2 * 80 * 3000 + 8 * 2 * (64 + 64)),  # 80 mel bands in bf16
    ],
)
@pytest.mark.parametrize("chunk", [None, 24])
def test_what_a_pass_is_given(name: str, given: int, chunk: int | None) -> None:
    step = assay.training_memory(assay.load(name), 2, 64, logits_chunk=chunk)
    assert {moment.parts["inputs"] for moment in step.timeline} == {given}


def test_a_stage_is_given_what_the_one_before_has_not_made() -> None:
    made = assay.sharded(assay.load("gpt-2"), assay.Plan(pipeline=3), train=True, batch=2, tokens=64)
    assert [one.parts.get("inputs", 0) for one in made.ranks] == [8 * 2 * 64, 0, 8 * 2 * 64]  # ids; nothing; labels


def test_a_layer_of_llama_by_hand() -> None:
    """In bf16 by the public implementation, its attention fused: norms 2 x (4 + 2 + 2), q k v o 2 each, MLP 4 x 2."""
    n, d, kv, f, h = 2048, 4096, 1024, 14336, 32
    norm = n * d * (4 + 2 + 2) + 4 * n  # float32, before the gain, behind it; a root a row
    attention = n * (2 * d + 2 * kv) * 2 + 4 * n * h  # q, k, v and the result; a logarithm a head
    layer = 2 * norm + attention + 4 * n * f * 2
    step = llama()
    tables = 2 * n * 128 * 2
    assert [(kept.name, kept.times, kept.bytes) for kept in step.layers] == [
        ("layer", 1, layer + tables),
        ("layer", 31, layer),
        ("head", 1, norm),
    ]
    assert step.saved == 32 * layer + tables + norm
    assert step.loss == n * 128256 * 4 + n * 8 + 4  # the log-softmax, labels shifted, their number


def test_in_float32_no_kernel_of_a_gpu_takes_grouped_heads() -> None:
    """So scores are stored, 4 bytes each; a head of keys for each of queries has a kernel, and stores none."""
    for name, heads in (("llama-3-8b", 32), ("gpt-2", 0)):
        model = assay.load(name)
        a, b, c = (assay.training_memory(model, 1, n, precision="fp32").layers[-2].bytes for n in (256, 512, 1024))
        assert (c - b) - 2 * (b - a) == heads * 4 * ((1024**2 - 512**2) - 2 * (512**2 - 256**2))


def test_masks_of_dropout_by_hand() -> None:
    """On a GPU a truth an element: of scores, with what is left of them, of both branches and of the embedding."""
    model, n, d, h, layers = assay.load("gpt-2"), 1024, 768, 12, 12
    for attention, scores in (("plain", n * n * h * (1 + 2)), ("fused", 0)):
        with_, without = (
            assay.training_memory(model, 1, n, attention=attention, dropout=rate).saved for rate in (0.1, 0.0)
        )
        assert with_ - without == layers * (scores + 2 * n * d) + n * d


def test_what_runs_again_is_not_kept() -> None:
    n, d = 2048, 4096
    every, some, none = llama(recompute="layer"), llama(recompute=4), llama()
    norm, tables = n * d * (4 + 2 + 2) + 4 * n, 2 * n * 128 * 2
    assert every.saved == 32 * n * d * 2 + tables + norm + 8 * n  # and positions, which each layer is given
    assert some.saved == 8 * n * d * 2 + tables + norm + 8 * n
    kernel = 32 * 2 * n * n * 32 * 128  # the scores, which one kernel makes again
    assert none.work.again == kernel
    assert none.work.backward == 2 * none.work.forward
    count = assay.count(assay.load("llama-3-8b"), 1, n).flops
    assert every.work.again == some.work.again == count.total - count.by_part["head"] + kernel
    assert every.work.flops == none.work.flops
    assert every.work.executed == every.work.flops + every.work.again


def test_selective_recomputation_keeps_queries_keys_and_values_alone() -> None:
    """What is made of scores goes (Korthikanti et al. 2022): of eager attention 6 bytes of each, and the copies."""
    n, h = 2048, 32
    plain, again = llama(attention="plain"), llama(attention="plain", recompute="attention")
    scores = n * n * h * 6
    copies = 2 * n * h * 128 * 2  # keys and values of every query head
    own = 2 * n * 8 * 128 * 2  # as they are
    mask = n * n * 2  # one for all layers, which run again
    assert plain.saved - again.saved == 32 * (scores + copies - own) - mask
    assert again.work.again == assay.count(assay.load("llama-3-8b"), 1, n).flops.attention_scores


def test_a_loss_in_chunks_keeps_no_logits() -> None:
    whole, parts = llama(), llama(logits_chunk=500)
    assert parts.saved == whole.saved
    assert parts.loss == 0
    head = assay.count(assay.load("llama-3-8b"), 1, 2048).flops.by_part["head"]
    assert parts.work.again == head + whole.work.again
    assert parts.work.flops == whole.work.flops
    most = max(moment.bytes for moment in parts.timeline if "loss" in moment.name)
    assert most < whole.peak.bytes


def test_gradients_that_are_added_up_are_there_all_the_time() -> None:
    p = assay.count(assay.load("llama-3-8b")).parameters.total
    once, often = llama(), llama(accumulation=4)
    assert often.resident - once.resident == 2 * p
    assert all(moment.parts["gradients"] == 2 * p for moment in often.timeline)


@pytest.mark.parametrize("chunk", [1, 5, 8])
@pytest.mark.parametrize("how", [{}, {"precision": "autocast", "accumulation": 2}, {"recompute": "layer", "zero": 2}])
def test_chunks_alike_are_walked_once(monkeypatch: pytest.MonkeyPatch, chunk: int, how: dict[str, Any]) -> None:
    """Three of them show all that happens, whether there is a rest or not: nothing else is different where all run."""
    from assay.rewrites import loss

    for name in ("tied", "gpt2"):
        model = assay.load(CONFIGS[name])
        few = assay.training_memory(model, BATCH, TOKENS, logits_chunk=chunk, **how)
        monkeypatch.setattr(loss, "CHUNKS", TOKENS)
        every = assay.training_memory(model, BATCH, TOKENS, logits_chunk=chunk, **how)
        assert (few.timeline, few.work, few.saved, few.loss) == (every.timeline, every.work, every.saved, every.loss)
        monkeypatch.undo()


def test_chunks_of_one_token_of_a_long_text() -> None:
    step = assay.training_memory(assay.load("llama-3.2-1b"), 1, 2**20, logits_chunk=1)
    assert step.work.forward == assay.count(assay.load("llama-3.2-1b"), 1, 2**20).flops.total


def test_what_is_not_known_of_an_optimizers_step_is_said() -> None:
    said = "what muon makes of a tensor while it steps is not known, and not in it"
    assert said in llama(optimizer="muon").notes
    assert not any("while it steps" in note for note in llama(optimizer="adamw").notes)


def test_master_weights_are_the_policys() -> None:
    p = assay.count(assay.load("llama-3-8b")).parameters.total
    assert llama(precision="mixed").resident - llama().resident == 4 * p + 2 * 2 * p
    assert llama(precision="bf16", optimizer="sgd", workspace=0).resident == 2 * p + 2 * 2048 * 8


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"recompute": "all"}, "recompute is 'all'; known: none, attention, layer, or a number of layers, 1 or more"),
        ({"recompute": 0}, "recompute is 0; known: none"),
        ({"recompute": 1.5}, r"recompute is 1\.5; known: none"),
        ({"logits_chunk": 0}, "logits_chunk is 0; it must be an integer of at least 1"),
        ({"device": "tpu"}, "device is 'tpu'; known: cpu, cuda"),
        ({"workspace": -1}, "workspace is -1; it must be an integer of at least 0"),
        ({"policy": "theirs"}, "policy is 'theirs'; known: ours, transformers"),
    ],
)
def test_what_is_not_known_is_refused(how: dict[str, Any], message: str) -> None:
    with pytest.raises((assay.SettingError, assay.SizeError), match=message):
        llama(**how)


def test_a_model_without_logits_has_no_loss() -> None:
    config = {
        "model_type": "llama",
        **SMALL,
        "intermediate_size": 160,
        "vocab_size": 101,
        "architectures": ["LlamaModel"],
    }
    with pytest.raises(assay.SettingError, match=r"a loss is known of logits of words \[b t V\]"):
        assay.training_memory(assay.load(config), 1, 8)


def test_what_is_not_known_is_said() -> None:
    config = {"model_type": "mamba2", "hidden_size": 16, "num_hidden_layers": 1, "state_size": 8, "head_dim": 8}
    model = assay.load({**config, "num_heads": 4, "vocab_size": 32, "n_groups": 1})
    note = "what is kept of scan in bf16 is not known, and not in it"
    assert note in assay.training_memory(model, 1, 8).notes
    assert note not in assay.training_memory(model, 1, 8, precision="fp32", policy="ours").notes


def test_moments_have_names() -> None:
    step = llama()
    assert step.moment("backward, loss").at == "logits.logs"
    with pytest.raises(assay.SettingError, match="the step has no moment 'lunch'; it has between steps"):
        step.moment("lunch")


def test_arrays_are_refused() -> None:
    numpy = pytest.importorskip("numpy")
    with pytest.raises(assay.SettingError, match="of integers, not of arrays or symbols"):
        assay.training_memory(assay.load("llama-3-8b"), 1, numpy.array([16, 32]))
