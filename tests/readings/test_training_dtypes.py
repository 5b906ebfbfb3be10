"""What training keeps in bf16, under autocast and with fused attention: our own execution, as autograd keeps it."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import pytest
from execution.families import SMALL

import assay
from assay.spec import Block, parse_lines

torch = pytest.importorskip("torch")

CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", **SMALL},
    "qwen3": {"model_type": "qwen3", "head_dim": 8, **SMALL},
    "gpt2": {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 101, "n_positions": 64},
    "mistral": {"model_type": "mistral", "sliding_window": 4, **SMALL},
    "mixtral": {"model_type": "mixtral", "num_local_experts": 2, "num_experts_per_tok": 2, **SMALL},
    "gemma2": {"model_type": "gemma2", "head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 4, **SMALL},
    "deepseek_v3": {
        "model_type": "deepseek_v3",
        **SMALL,
        "num_key_value_heads": 4,
        "kv_lora_rank": 8,
        "q_lora_rank": 12,
        "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4,
        "v_head_dim": 6,
        "moe_intermediate_size": 24,
        "n_routed_experts": 2,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
    },
}


@pytest.mark.parametrize("precision", ["fp32", "bf16", "autocast"])
@pytest.mark.parametrize("attention", ["plain", "fused"])
@pytest.mark.parametrize("name", CONFIGS)
def test_as_autograd_keeps_it(name: str, attention: str, precision: str) -> None:
    model = assay.load(CONFIGS[name])
    composed = name == "deepseek_v3" and attention == "fused"  # a CPU has no kernel for values of another width
    if composed and precision == "autocast":
        with pytest.raises(assay.KindError, match="values of another width than keys under autocast"):
            assay.training(model, 2, 6, precision=precision, attention=attention)
        return
    for batch, tokens in ((2, 6), (1, 9)):
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        net = assay.build(model, attention=attention, dtype=dtype, seed=0)
        ids = torch.randint(0, 101, (batch, tokens), generator=torch.Generator().manual_seed(0))
        warnings.filterwarnings("ignore", "Mismatch dtype between input and weight")  # of a norm under autocast
        cast = torch.autocast("cpu", torch.bfloat16) if precision == "autocast" else contextlib.nullcontext()
        with cast:
            found = assay.measure(net, ids, backward=True)
        step = assay.training(model, batch, tokens, precision=precision, attention=attention)
        assert step.saved == found.saved.activations
        assert composed or step.backward == found.flops.backward


def test_fused_attention_by_hand() -> None:
    """q, k, v and the result in bf16, a logarithm a row in float32, and no scores."""
    ops = """
attention:
  q = linear(x[b n d], Wq[d h k]) -> [b n h k]
  k = linear(x[b n d], Wk[d h k]) -> [b n h k]
  v = linear(x[b n d], Wv[d h k]) -> [b n h k]
  k = append(k[b n h k]) -> [b c h k]
  v = append(v[b n h k]) -> [b c h k]
attention.scores:
  s = contract(q[b n h k], k[b c h k]) -> [b h n c]
  s = mask(s[b h n c]) -> [b h n c]
  p = softmax(s[b h n c]) -> [b h n c]
  o = contract(p[b h n c], v[b c h k]) -> [b n h k]
"""
    block = Block("attention", parse_lines(ops), {"d": 3, "h": 2, "k": 5})
    fused = assay.training(block, 2, 7, attention="fused", precision="bf16")
    plain = assay.training(block, 2, 7, attention="plain", precision="bf16")
    rows = 2 * 7 * 2
    assert fused.saved == 4 * rows * 5 * 2 + rows * 4
    assert plain.saved == 3 * rows * 5 * 2 + rows * 7 * 2 + 7 * 7  # q, k, v, the softmax, a truth a pair
    # two products forward; backward four, and the scores once more
    product = 2 * rows * 7 * 5
    assert plain.forward == fused.forward
    assert fused.backward - plain.backward == product
    assert plain.backward == 3 * 2 * 2 * 7 * 3 * 2 * 5 + 4 * product


def test_a_recurrence_is_known_in_float32_alone() -> None:
    config = {
        "model_type": "mamba2",
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "state_size": 8,
        "head_dim": 8,
        "num_heads": 4,
        "vocab_size": 32,
        "n_groups": 1,
    }
    model = assay.load(config)
    assert assay.training(model, 2, 6).unknown == ()
    assert assay.training(model, 2, 6, precision="bf16").unknown == ("scan",)


def test_unknown_ways_are_refused() -> None:
    model = assay.load(CONFIGS["llama"])
    with pytest.raises(assay.SettingError, match="attention is 'flash'; known: plain, fused"):
        assay.training(model, attention="flash")
    with pytest.raises(assay.SettingError, match="precision is 'fp7'; known: fp32"):
        assay.training(model, precision="fp7")
