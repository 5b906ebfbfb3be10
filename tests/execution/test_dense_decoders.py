"""Dense decoders run: logits, work and greedy generation are the public implementation's, with every option turned."""

from __future__ import annotations

from typing import Any

import pytest
from execution.twins import agree, ids, same_logits, torch
from sources.test_classic_families import VARIED as CLASSIC
from sources.test_dense_families import OPTIONS, small
from sources.test_moe_families import SIZES
from sources.test_moe_families import VARIED as MOE
from sources.test_sparse_families import VARIED as SPARSE

import assay
from assay.sources.huggingface import read_config

# options of execution that no size hangs on, and that the tables of sizes leave out
SIX = {"hidden_size": 48, "num_hidden_layers": 2, "vocab_size": 97}
MORE: dict[str, dict[str, Any]] = {
    "bloom, six heads": {"model_type": "bloom", **SIX, "n_head": 6},
    "mpt, six heads": {"model_type": "mpt", "d_model": 48, "n_heads": 6, "n_layers": 2, "vocab_size": 97},
    "falcon, six heads": {"model_type": "falcon", **SIX, "num_attention_heads": 6, "alibi": True},
    "gptj, whole": {"model_type": "gptj", "n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 97, "rotary_dim": 8},
    "glm, odd": {
        "model_type": "glm",
        **SIX,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 12,
        "partial_rotary_factor": 0.5,
        "intermediate_size": 40,
        "pad_token_id": 0,
    },
}


def rows() -> dict[str, dict[str, Any]]:
    """Small configs by name: those that hold counts to the public implementation, and more."""
    dense = {f"{kind}-{i}": small(kind, i) for kind, options in OPTIONS.items() for i in range(len(options))}
    others = {name: config for name, (config, _) in SPARSE.items() if config["model_type"] in ("trocr", "moshi")}
    gains = next(config for kind, config in MOE if kind == "doge")
    return dense | CLASSIC | others | {"doge": {"model_type": "doge", **SIZES, **gains}} | MORE


ROWS = {name: config for name, config in rows().items() if name != "dbrx"}  # whose base the library does not read


def greedy(own: Any, given: Any, new: int) -> Any:
    """`new` tokens behind those given, each the likeliest, with a cache."""
    cache, made, step = own.cache(), given, given
    for _ in range(new):
        step = own(step, cache=cache, logits="last").argmax(-1)[:, -1:]
        made = torch.cat((made, step), 1)
    return made


def theirs_greedy(their: Any, given: Any, new: int) -> Any:
    """The same by the library."""
    their.generation_config.eos_token_id = None
    their.generation_config.pad_token_id = 0
    return their.generate(given, max_new_tokens=new, do_sample=False)


@pytest.mark.parametrize("name", ROWS)
def test_equals_the_library(name: str) -> None:
    """Logits at once and step by step, as one kernel and op by op; FLOPs as counted; the same tokens generated."""
    config = ROWS[name]
    # eager code of the library adds Falcon's distances twice: once to the scores and once with the mask
    their, own = same_logits(dict(config), attention="sdpa" if config.get("alibi") else "eager")
    given = ids(their)
    with torch.no_grad():
        expected = their(given).logits
        plain = assay.build(read_config(dict(config), "config.json", "model"), attention="plain").eval()
        plain.load_state_dict(own.state_dict())
        agree(plain(given), expected)
        assert torch.equal(greedy(own, given[:, :6], 9), theirs_greedy(their, given[:, :6], 9))
    for module in (own, plain):
        counted = assay.count(own.description, batch=2, tokens=13).flops.total
        assert assay.measure(module, given).flops.forward == counted


def test_a_wrong_description_has_other_logits() -> None:
    """The comparison sees a constant: one scale of the scores less."""
    their, own = same_logits(dict(ROWS["gemma2-0"]))
    their.config.query_pre_attn_scalar = 10
    other = assay.build(assay.load(their.config)).eval()
    other.load_state_dict(own.state_dict())
    given = ids(their)
    with torch.no_grad(), pytest.raises(AssertionError, match="differ by"):
        agree(other(given), own(given))
