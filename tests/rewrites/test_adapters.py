"""Frozen parameters and low-rank adapters: against peft, hand sums, published counts and autograd."""

from __future__ import annotations

from typing import Any

import pytest

import assay
from assay.readings.states import states
from assay.rewrites.adapters import freeze, lora
from assay.rewrites.quantize import quantize
from assay.sources.quantization import four_bit

PUBLISHED = {  # what peft prints for rank 8 where no targets are named: model cards and tutorials of each
    "llama-3-8b": 3_407_872,
    "mistral-7b": 3_407_872,
    "llama-2-7b": 4_194_304,
    "gpt-2": 294_912,
    "falcon-7b": 2_359_296,
    "t5-small": 294_912,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_usual_adapters(name: str) -> None:
    model = assay.load(name)
    counted, before = (assay.count(m, tokens=8).parameters for m in (lora(model), model))
    assert counted.trained == PUBLISHED[name] == counted.total - before.total
    assert counted.frozen == before.total == before.trained


def test_all_matrices_of_a_layer_by_hand() -> None:
    d, f, kv, layers, rank = 4096, 14336, 1024, 32, 16
    pairs = [(d, d), (d, kv), (d, kv), (d, d), (d, f), (d, f), (f, d)]
    counted = assay.count(lora(assay.load("llama-3-8b"), rank, "all-linear"), tokens=8).parameters
    assert counted.trained == layers * rank * sum(a + b for a, b in pairs)


def test_experts_have_adapters_each_where_they_are_named() -> None:
    d, f, experts, layers, rank = 4096, 14336, 8, 32, 4
    model = assay.load("mixtral-8x7b")
    assert assay.count(lora(model, rank, "down_proj"), tokens=8).parameters.trained == layers * experts * rank * (d + f)
    # gate and up lie in one tensor, which has one A
    both = assay.count(lora(model, rank, "gate_up_proj"), tokens=8).parameters.trained
    assert both == layers * experts * rank * (d + 2 * f)
    plain = assay.count(lora(model, rank, "all-linear"), tokens=8).parameters.trained
    assert plain == layers * rank * (4 * d + 2 * (d + 1024))  # of attention alone


def test_tensors_have_the_shapes_of_their_module() -> None:
    found = {e.path: e.shape for e in assay.tensors(lora(assay.load("gpt-2"), 4)) if not e.frozen}
    assert found == {
        "transformer.h.{i}.attn.c_attn.lora_A.weight": (4, 768),
        "transformer.h.{i}.attn.c_attn.lora_B.weight": (3 * 768, 4),
    }


SMALL: dict[str, Any] = {
    "llama": {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 101,
    },
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 101},
    "falcon": {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 101,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
}


@pytest.mark.parametrize("family", SMALL)
@pytest.mark.parametrize("targets", [None, "all-linear"])
@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning", "ignore:fan_in_fan_out")
def test_peft_makes_the_same(family: str, targets: str | None) -> None:
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(family, **SMALL[family])
    net = transformers.AutoModelForCausalLM.from_config(config)
    theirs = peft.get_peft_model(net, peft.LoraConfig(r=4, target_modules=targets, task_type="CAUSAL_LM"))
    ours = lora(assay.load({"model_type": family, **SMALL[family]}), 4, targets or ("q", "v"))
    trained, every = theirs.get_nb_trainable_parameters()
    counted = assay.count(ours, tokens=4).parameters
    assert (counted.trained, counted.total) == (trained, every)
    shapes = sorted(tuple(p.shape) for p in theirs.parameters() if p.requires_grad)
    assert shapes == sorted(e.shape for e in assay.tensors(ours) for _ in range(e.times) if not e.frozen)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
@pytest.mark.parametrize("targets", ["q", "all-linear", "down_proj c_proj"])
def test_what_runs_is_what_is_said(family: str, targets: str) -> None:
    torch = pytest.importorskip("torch")
    model = assay.load({"model_type": family, **SMALL[family]})
    names = [one for one in targets.split() if (one == "down_proj") == (family == "llama") or " " not in targets]
    ours = lora(model, 3, names, alpha=6, trained=("norm",) if targets == "q" else ())
    batch, tokens = 2, 5
    net = assay.build(ours, attention="plain", seed=0)
    found = assay.measure(net, torch.zeros(batch, tokens, dtype=torch.long), backward=True)
    said = assay.training(ours, batch, tokens)
    assert (found.flops.forward, found.flops.backward) == (said.forward, said.backward)
    assert found.saved.activations == said.saved
    assert {p.requires_grad for p in net.parameters()} == {True, False}
    whole = assay.training(model, batch, tokens)
    assert said.saved is not None
    assert whole.saved is not None
    assert said.backward < whole.backward


def test_frozen_matrices_cost_two_thirds() -> None:
    """4 N + 6 A of 6 (N + A) for N frozen and A trained parameters, where every layer has adapters.

    Less what is before the first of them: keys, values and queries of layer 0 need no gradient of what they read.
    """
    ours = lora(assay.load("llama-3-70b"), 16, "all-linear")
    counted, step = assay.count(ours, tokens=1).parameters, assay.training(ours, 1, 1)
    scores = assay.count(ours, tokens=1).flops.attention_scores
    matrices = counted.frozen - counted.embedding - 161 * 8192  # norms are no products
    first = 2 * (8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 16)
    assert step.flops == 4 * matrices + 6 * counted.trained + 3 * scores - first


def test_a_frozen_model_keeps_nothing() -> None:
    step = assay.training(freeze(assay.load("llama-3-8b")), 1, 16)
    assert (step.backward, step.saved) == (0, 0)
    assert states(freeze(assay.load("llama-3-8b"))).trained == 0


def test_the_head_alone_is_trained() -> None:
    model = assay.load("llama-3-8b")
    step = assay.training(freeze(model, ["lm_head"]), 1, 16)
    assert step.backward == 2 * 16 * 4096 * 128256
    assert step.saved == 16 * 4096 * 4


def test_states_of_a_quantized_base() -> None:
    """NF4, a float32 maximum for each 64 weights: 4.5 bits of a matrix, embeddings, norms and head in 16 bits."""
    d, f, kv, layers, vocab = 4096, 14336, 1024, 32, 128256
    matrices = layers * (2 * d * d + 2 * d * kv + 3 * d * f)
    made = states(lora(quantize(assay.load("llama-3-8b"), four_bit("nf4", False)), 8), precision="bf16")
    rest = 2 * vocab * d + (2 * layers + 1) * d
    assert made.frozen == matrices // 2 + matrices // 64 * 4 + 7 * layers * 16 * 4 + 2 * rest
    assert made.parameters == made.gradients == 2 * 3_407_872
    assert made.optimizer["exp_avg"] == 2 * 3_407_872


def test_a_frozen_base_may_have_a_dtype_of_its_own() -> None:
    made = states(lora(assay.load("llama-3-8b")), precision="autocast", frozen="bf16")
    assert made.frozen == 2 * 8_030_261_248
    assert made.parameters == 4 * 3_407_872
    assert made.total == made.frozen + 16 * 3_407_872 + made.optimizer["step"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"targets": "qq"}, "no matrix of Llama 3 8B answers to 'qq'; its matrices: q_proj, k_proj, v_proj, o_proj"),
        ({"rank": 0}, "rank is 0; it must be an integer of at least 1"),
        ({"trained": ["hd"]}, "no parameter of Llama 3 8B answers to 'hd'; its matrices: q_proj"),
        ({"trained": "hd"}, "no parameter of Llama 3 8B answers to 'hd'; its matrices: q_proj"),
        ({"trained": ""}, "no parameter of Llama 3 8B answers to ''; its matrices: q_proj"),
        ({"trained": 3}, "trained is 3; it must be a name, or several"),
        ({"targets": None}, "targets is None; it must be a name, or several"),
        ({"targets": [1]}, r"targets is \[1\]; it must be a name, or several"),
        ({"alpha": 0}, "alpha is 0; it must be a finite number above 0"),
        ({"alpha": float("nan")}, "alpha is nan; it must be a finite number above 0"),
        ({"alpha": "x"}, "alpha is 'x'; it must be a finite number above 0"),
    ],
)
def test_what_cannot_be_asked(given: dict[str, Any], said: str) -> None:
    with pytest.raises(assay.AssayError, match=said):
        lora(assay.load("llama-3-8b"), **given)


def test_formats_of_what_is_trained_do_not_count() -> None:
    """A quantized matrix is dequantized to be trained."""
    scheme = four_bit("nf4", True)
    model = assay.load("llama-3-8b")
    assert states(quantize(model, scheme)).parameters == 2 * 8_030_261_248
    quantized = quantize(model, scheme)
    made = (assay.training_memory(one, 1, 64).notes for one in (quantized, lora(quantized), model))
    whole, adapted, plain = made
    assert whole == ("weights that are trained are in bf16, not in the format that the config says",)
    assert [note.split(";")[0] for note in adapted] == ["a frozen matrix is read in its format"]
    assert plain == ()


def test_one_name_stands_alone() -> None:
    model = assay.load("gpt-2")
    for name in ("norm", "c_attn"):
        assert freeze(model, name) == freeze(model, [name]) != freeze(model)
        assert lora(model, trained=name) == lora(model, trained=[name]) != lora(model)
