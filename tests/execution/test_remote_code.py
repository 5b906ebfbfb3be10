"""Types whose code is published beside the weights: logits as that code has them, written here once more by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from execution.twins import agree, torch

import assay

QWEN: dict[str, Any] = {
    "model_type": "qwen",
    "hidden_size": 32,
    "num_attention_heads": 2,
    "kv_channels": 16,
    "num_hidden_layers": 2,
    "intermediate_size": 64,
    "vocab_size": 101,
    "seq_length": 8,
}
BAICHUAN: dict[str, Any] = {
    "model_type": "baichuan",
    "hidden_size": 32,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "intermediate_size": 64,
    "vocab_size": 101,
    "max_position_embeddings": 64,
}


def rms(x: Any, gain: Any) -> Any:
    """A norm of the last axis."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * gain


def qwen(state: dict[str, Any], ids: Any, trained: int, ntk: bool, logn: bool) -> Any:
    """Logits by the rules of Qwen's technical report and code: heads of 16, all tokens in one pass."""
    n = ids.shape[1]
    # twice the trained length has 3 times the base to the power, four times has 7 times: one less than a power of two
    alpha = max(1, 2 ** math.ceil(math.log2(n / trained) + 1) - 1) if ntk else 1
    base = 10000.0 * alpha ** (16 / 14)
    angle = torch.arange(n)[:, None] / base ** (torch.arange(0, 16, 2) / 16)
    angle = torch.cat((angle, angle), -1)[:, None, :]
    grown = torch.tensor([math.log(i, trained) if i > trained and logn else 1.0 for i in range(1, n + 1)])

    def turn(x: Any) -> Any:
        half = torch.cat((-x[..., 8:], x[..., :8]), -1)
        return x * angle.cos() + half * angle.sin()

    x = state["transformer.wte.weight"][ids]
    for i in range(2):
        layer = {k.removeprefix(f"transformer.h.{i}."): v for k, v in state.items() if f".h.{i}." in k}
        y = rms(x, layer["ln_1.weight"]) @ layer["attn.c_attn.weight"].T + layer["attn.c_attn.bias"]
        q, k, v = (part.unflatten(-1, (2, 16)) for part in y.chunk(3, -1))
        q, k = turn(q) * grown[:, None, None], turn(k)
        scores = torch.einsum("bnhk,bchk->bhnc", q, k) / 4
        scores = scores.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
        y = torch.einsum("bhnc,bchk->bnhk", scores.softmax(-1), v).flatten(2)
        x = x + y @ layer["attn.c_proj.weight"].T
        y = rms(x, layer["ln_2.weight"])
        gate = torch.nn.functional.silu(y @ layer["mlp.w2.weight"].T)
        x = x + (gate * (y @ layer["mlp.w1.weight"].T)) @ layer["mlp.c_proj.weight"].T
    return rms(x, state["transformer.ln_f.weight"]) @ state["lm_head.weight"].T


def drawn(config: dict[str, Any]) -> Any:
    """A model whose weights are so large that positions tell."""
    own = assay.build(assay.load(config), seed=0)
    rng = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in own.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=rng) * 0.3)
    return own


def ids(tokens: int) -> Any:
    return torch.randint(0, 101, (2, tokens), generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("tokens", [8, 9, 16, 17, 40])
@pytest.mark.parametrize(("ntk", "logn"), [(True, True), (True, False), (False, True), (False, False)])
def test_qwen_beyond_its_trained_length(tokens: int, ntk: bool, logn: bool) -> None:
    own = drawn(QWEN | {"use_dynamic_ntk": ntk, "use_logn_attn": logn})
    with torch.no_grad():
        logits = own(ids(tokens))
        agree(logits, qwen(own.state_dict(), ids(tokens), 8, ntk, logn))
        plain = qwen(own.state_dict(), ids(tokens), 8, False, False)
    same = bool((logits - plain).abs().max() < 1e-3)
    assert same == (tokens <= 8 or not (ntk or logn))


def test_qwen_s_defaults_are_its_class_s() -> None:
    both = QWEN | {"use_dynamic_ntk": True, "use_logn_attn": True}
    with torch.no_grad():
        assert torch.equal(drawn(QWEN)(ids(20)), drawn(both)(ids(20)))


def test_the_second_baichuan_divides_by_the_length_of_each_row() -> None:
    first, second = drawn(BAICHUAN), drawn(BAICHUAN | {"z_loss_weight": 0})
    assert {name: one.shape for name, one in first.state_dict().items()} == {
        name: one.shape for name, one in second.state_dict().items()
    }
    with torch.no_grad():
        plain = first(ids(9))
        first.get_parameter("lm_head.weight").copy_(
            torch.nn.functional.normalize(first.get_parameter("lm_head.weight"))
        )
        agree(second(ids(9)), first(ids(9)))
        assert (second(ids(9)) - plain).abs().max() > 0.1
        second.get_parameter("lm_head.weight")[3] = 0  # a row of padding
        assert bool(second(ids(9)).isfinite().all())


@pytest.mark.parametrize(
    ("more", "unit"), [({}, False), ({"vocab_size": 125696}, True), ({"vocab_size": 64000}, False)]
)
def test_which_baichuan_it_is(more: dict[str, Any], unit: bool) -> None:
    head = assay.load(BAICHUAN | more).segments[-1].block
    assert any(op.kind == "rms" for op in head.ops) == unit
