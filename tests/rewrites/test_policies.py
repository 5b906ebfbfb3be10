"""Execution policies: what the public implementation keeps for the backward pass, to the byte."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import pytest
from execution.families import SMALL

import assay
from assay.readings.precision import precision as precision_of
from assay.readings.setting import setting
from assay.readings.training import trace, trained
from assay.rewrites.policies import READ, executed
from assay.spec import Block, parse_lines

CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", **SMALL},
    "qwen2": {"model_type": "qwen2", "tie_word_embeddings": True, **SMALL},
    "qwen3": {"model_type": "qwen3", "head_dim": 8, **SMALL},
    "gpt2": {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 101, "n_positions": 64},
    "qwen3_moe": {
        "model_type": "qwen3_moe",
        **SMALL,
        "head_dim": 8,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 24,
        "norm_topk_prob": True,
    },
    "mixtral": {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2, **SMALL},
    "mistral": {"model_type": "mistral", "sliding_window": 4, **SMALL},
    "gemma2": {
        "model_type": "gemma2",
        "head_dim": 8,
        "query_pre_attn_scalar": 8,
        "sliding_window": 4,
        **SMALL,
    },
}
_MORE: dict[str, dict[str, Any]] = {  # tried in fewer ways
    "exaone4": {"sliding_window": 4},
    "gemma": {"head_dim": 8},
    "gemma3_text": {"head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 4},
    "gpt_neox": {"hidden_dropout": 0.0, "attention_dropout": 0.0},
    "granite": {},
    "nemotron": {"head_dim": 8},
    "olmo": {},
    "olmo2": {},
    "olmoe": {"num_experts": 4, "num_experts_per_tok": 2, "num_key_value_heads": 4},
    "phi": {"num_key_value_heads": 4},
    "phi3": {"pad_token_id": 0},
    "smollm3": {"pad_token_id": 0},
    "stablelm": {},
    "starcoder2": {},
}
FURTHER = {name: {"model_type": name, **SMALL, **more} for name, more in _MORE.items()}
FURTHER["gpt_neox"].pop("num_key_value_heads")
FURTHER["gpt_bigcode"] = {**CONFIGS["gpt2"], "model_type": "gpt_bigcode", "attn_pdrop": 0.0}
# Gemma multiplies embeddings by a tensor of one number, in the parameters' dtype, which its product keeps
BEYOND = {name: {"fp32": 4, "bf16": 2, "autocast": 4} for name in ("gemma", "gemma2", "gemma3_text")}
NORM = """
norm:
  x = linear(x[b n d], W[d e]) -> [b n e]
  y = rmsnorm(x[b n e], G[e], eps=1e-06) -> [b n e]
"""


def said(name: str, batch: int, tokens: int, precision: str, attention: str, **how: Any) -> int:
    """Bytes that are said to be kept, on a CPU."""
    policy = precision_of(precision)
    model = executed(assay.load({**CONFIGS, **FURTHER}[name]), "transformers", attention, **how)
    asked = setting(model, batch=batch, tokens=tokens, convention="matmul", weights=policy.parameters)
    saved = trained(model, asked, [op for _, ops in trace(model, asked, policy=policy) for op in ops]).saved
    assert isinstance(saved, int)
    return saved


def kept(name: str, batch: int, tokens: int, precision: str, attention: str, dropout: float = 0.0) -> int:
    """Bytes of storages that autograd keeps while the library runs, neither parameters nor token ids."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    warnings.simplefilter("ignore")
    config = transformers.AutoConfig.for_model(**{**CONFIGS, **FURTHER}[name], bos_token_id=1, eos_token_id=2)
    how = {"plain": "eager", "fused": "sdpa"}[attention]
    net = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=how)
    net = net.to(torch.bfloat16 if precision == "bf16" else torch.float32).train()
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = dropout
    ids = torch.randint(0, 101, (batch, tokens))
    known = {tensor.untyped_storage().data_ptr() for tensor in (*net.parameters(), ids)}
    found: dict[int, Any] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            found[storage.data_ptr()] = storage
        return tensor

    cast = torch.autocast("cpu", torch.bfloat16) if precision == "autocast" else contextlib.nullcontext()
    with cast, torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        logits = net(input_ids=ids, use_cache=False).logits
    assert logits.requires_grad
    return sum(storage.nbytes() for storage in found.values())


@pytest.mark.parametrize("precision", ["fp32", "bf16", "autocast"])
@pytest.mark.parametrize("attention", ["plain", "fused"])
@pytest.mark.parametrize("name", CONFIGS)
def test_what_the_public_implementation_keeps(name: str, attention: str, precision: str) -> None:
    if name == "gemma2" and attention == "fused":
        pytest.skip("its soft caps run in no kernel, and the library refuses them")
    for batch, tokens in ((2, 6), (1, 9), (2, 3)):
        beyond = BEYOND.get(name, {}).get(precision, 0)
        ours = said(name, batch, tokens, precision, attention)
        assert kept(name, batch, tokens, precision, attention) == ours + beyond


@pytest.mark.parametrize("precision", ["bf16", "autocast"])
@pytest.mark.parametrize("attention", ["plain", "fused"])
@pytest.mark.parametrize("name", FURTHER)
def test_what_further_families_keep(name: str, attention: str, precision: str) -> None:
    ours = said(name, 2, 6, precision, attention)
    assert kept(name, 2, 6, precision, attention) == ours + BEYOND.get(name, {}).get(precision, 0)


def test_every_family_that_is_said_to_be_read_is_tried() -> None:
    assert READ.keys() == CONFIGS.keys() | FURTHER.keys()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_where_gpt2_drops(precision: str) -> None:
    """Scores, both branches of a layer and the embedding; on a CPU what is kept of each is as large as the element."""
    assert kept("gpt2", 2, 6, precision, "plain", 0.1) == said("gpt2", 2, 6, precision, "plain", dropout=0.1)


def test_a_norm_by_hand() -> None:
    """x in float32, its root a row, and what is multiplied by the gain, in bf16."""
    block = Block("norm", parse_lines(NORM), {"d": 3, "e": 5})
    model = executed(assay.Model("norm", (assay.Segment("norm", block),)), "transformers")
    policy = precision_of("bf16")
    asked = setting(model, batch=2, tokens=7, convention="matmul", weights="bf16")
    ops_of = [op for _, ops in trace(model, asked, policy=policy) for op in ops]
    assert trained(model, asked, ops_of).saved == 2 * 7 * 5 * (4 + 2) + 2 * 7 * 4


def test_scores_are_kept_in_float32_and_in_the_dtype_of_values() -> None:
    """Of eager attention 6 bytes a score where the softmax is float32's, 2 where it is not (GPT-2's own)."""
    heads = 4
    for name, width in (("qwen2", 6), ("gpt2", 2)):
        more = [said(name, 1, n, "bf16", "plain") for n in (64, 32, 48)]
        curve = more[0] - more[1] - 2 * (more[2] - more[1])  # what grows with the square of tokens, as said above 16
        assert curve == 2 * heads * width * (64**2 - 32**2 - 2 * (48**2 - 32**2))


def test_a_family_whose_files_were_not_read_is_said_to_run_as_llama() -> None:
    model = assay.load({"model_type": "helium", "head_dim": 8, **SMALL})
    assert executed(model, "transformers").notes[-1] == (
        "how transformers executes helium is taken to be as it executes Llama"
    )
    assert executed(assay.load(CONFIGS["llama"]), "transformers").notes == assay.load(CONFIGS["llama"]).notes


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"policy": "theirs"}, "policy is 'theirs'; known: ours, transformers"),
        ({"attention": "flash"}, "attention is 'flash'; known: plain, fused"),
        ({"policy": "transformers", "dropout": 1.0}, "dropout is 1.0; a rate from 0 to below 1"),
        ({"policy": "transformers", "dropout": "0.1"}, "dropout is '0.1'; a rate from 0 to below 1"),
        ({"dropout": 0.1}, "dropout is 0.1; the policy ours runs none"),
    ],
)
def test_what_is_not_known_is_refused(how: dict[str, Any], message: str) -> None:
    with pytest.raises(assay.SettingError, match=message):
        executed(assay.load(CONFIGS["llama"]), **how)
