"""Entries that stand for windows of tokens, and streams beside each other, against the public implementation."""

from __future__ import annotations

from typing import Any

import pytest
from execution.twins import agree, ids, ours, theirs, torch

import assay
from assay.errors import BuildError

WINDOW = 5
SMALL: dict[str, Any] = {"hidden_size": 32, "vocab_size": 101, "pad_token_id": None, "hc_mult": 2}
EXPERTS = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
# eight heads of the indexer: scores of a few might all be zero, and which of equals are the best nobody knows
INDEX = {"index_n_heads": 8, "index_head_dim": 8}
KINDS = ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"]
CONFIGS: dict[str, dict[str, Any]] = {
    "deepseek_v4": EXPERTS
    | INDEX
    | {"num_hidden_layers": 4, "num_attention_heads": 4, "head_dim": 16, "q_lora_rank": 12, "o_groups": 2}
    | {"o_lora_rank": 6, "sliding_window": WINDOW, "partial_rotary_factor": 0.25, "hc_sinkhorn_iters": 3}
    | {"layer_types": [*KINDS, KINDS[1]], "compress_rates": dict(zip(KINDS[1:], (2, 4), strict=True))}
    | {"index_topk": 2, "mlp_layer_types": ["hash_moe", "moe", "moe", "moe"], "hc_eps": 0.01, "swiglu_limit": 0.3},
    "hy_v4": EXPERTS
    | INDEX
    | {"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 48}
    | {"q_lora_rank": 12, "kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8}
    | {"index_topk": 3, "n_shared_experts": 1, "hc_eps": 0.01, "hc_magnitude": 1.5}
    | {"mlp_layer_types": ["dense", "sparse", "sparse"]},
}


def twins(model_type: str) -> tuple[Any, Any]:
    """Both models, their tables of experts filled."""
    their = theirs({"model_type": model_type, **SMALL, **CONFIGS[model_type]})
    for name, table in their.named_buffers():
        if name.endswith("tid2eid"):
            table.copy_(torch.stack([torch.randperm(4)[:2] for _ in range(table.shape[0])]))
    return their, ours(their)


@pytest.mark.parametrize("model_type", CONFIGS)
def test_logits_steps_and_flops(model_type: str) -> None:
    their, own = twins(model_type)
    given = ids(their, 15)
    with torch.no_grad():
        expected = their(given).logits
        agree(own(given), expected)
        cache = own.cache()
        steps = [own(part, cache=cache) for part in given.split([1, 2, 4, 1, 1, 1, 5], 1)]
        agree(torch.cat(steps, 1), expected)
    for tokens in (1, 7, 15):
        said = assay.count(own.description, batch=2, tokens=tokens).flops.total
        assert assay.measure(own, given[:, :tokens]).flops.forward == said
    with torch.no_grad():
        cache = own.cache()
        own(given[:, :7], cache=cache)
        step = assay.measure(own, given[:, 7:8], cache=cache)
    assert step.flops.forward == assay.count(own.description, batch=2, tokens=1, past=7).flops.total


@pytest.mark.parametrize("model_type", CONFIGS)
def test_greedy_tokens_with_both_caches(model_type: str) -> None:
    their, own = twins(model_type)
    given = ids(their, 7)
    more = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "use_cache": True}
    with torch.no_grad():
        expected = their.generate(given, **more, eos_token_id=None, pad_token_id=0)
        made, last, cache = given, given, own.cache()
        for _ in range(6):
            last = own(last, cache=cache, logits="last")[:, -1].argmax(-1, keepdim=True)
            made = torch.cat((made, last), 1)
    assert made.tolist() == expected.tolist()


def test_cache_bytes() -> None:
    """Keys of the window, entries, what waits in open windows, and halves that overlap."""
    _, own = twins("deepseek_v4")
    for tokens in range(1, 12):
        cache = own.cache()
        with torch.no_grad():
            own(torch.arange(2 * tokens).reshape(2, tokens), cache=cache)
        said = assay.count(own.description, batch=2, tokens=tokens, cache="fp32").cache.bytes
        full = 4 * 2 * 16 * 4 if tokens >= WINDOW else 0  # a full window is held less the next token's place
        assert cache.bytes() == said - full, tokens


def test_padding_is_refused() -> None:
    _, own = twins("deepseek_v4")
    given, mask = torch.arange(8).reshape(1, 8), torch.arange(8).reshape(1, 8) > 1
    with pytest.raises(BuildError, match="windows are counted from the first position, which must be no padding"):
        own(given, mask=mask)
    own(given, mask=torch.ones_like(mask))
