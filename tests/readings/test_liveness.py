"""Which tensors are there at once: by hand, and against every storage that a run has, to the byte."""

from __future__ import annotations

from typing import Any

import pytest

import assay
from assay.kinds.training.values import Keeping
from assay.readings import liveness as module
from assay.readings.binding import as_model
from assay.readings.liveness import Liveness, liveness
from assay.readings.setting import setting
from assay.rewrites.policies import executed
from assay.rewrites.shrink import shrink
from assay.spec import Block, Model, parse_lines

B, N = 2, 12
MLP = """
mlp:
  z = linear(x[b n d], Wg[d f]) -> [b n f]
  u = linear(x[b n d], Wu[d f]) -> [b n f]
  z = silu(z[b n f]) -> [b n f]
  u = mul(z[b n f], u[b n f]) -> [b n f]
  y = linear(u[b n f], Wd[f d]) -> [b n d]
"""
# every sort of attention, norm, MLP and choice of experts; with windows, several sorts of layers, recurrences
NAMES = """
    llama-3-8b gpt-2 mixtral-8x7b gemma-2-9b gemma-3-1b deepseek-v2-lite deepseek-v3.2 gpt-oss-20b llama-4-scout
    bloom-7b1 falcon-7b gpt-neox-20b gpt-j-6b qwen3-30b-a3b lfm2-700m granite-4.0-h-tiny jamba-v0.1 falcon-mamba-7b
    kimi-linear-48b-a3b qwen3-next-80b-a3b olmoe-1b-7b albert-base modernbert-base command-r7b mpt-7b phi-2
""".split()


def small(name: str) -> Model:
    """A model small enough to be run."""
    return shrink(assay.load(name))


def said(model: Model, batch: int = B, tokens: int = N, past: int = 0, **how: Any) -> Liveness:
    """What we say of a pass in float32."""
    return liveness(model, setting(model, batch=batch, tokens=tokens, past=past), **how)


def made(lived: Liveness) -> int:
    """The peak of all but what is given."""
    return int(lived.peak.bytes - lived.peak.live.get("inputs", 0))


def test_an_mlp_by_hand() -> None:
    model = as_model(Block("mlp", parse_lines(MLP), {"d": 4, "f": 16}), {})
    lived = said(model)
    # at its fullest, at the SiLU: its operand, its result and the other half, beside x
    assert lived.peak.op.kind == "silu"
    assert made(lived) == 3 * B * N * 16 * 4
    by_op = [moment.bytes for moment in lived.moments]
    x, hidden = B * N * 4 * 4, B * N * 16 * 4
    assert by_op == [x + hidden, x + 2 * hidden, x + 3 * hidden, x + 3 * hidden, x + hidden + B * N * 4 * 4]
    assert sorted(one.name for one in lived.peak.tensors) == ["inputs", "u", "z", "z"]


def test_what_is_kept_for_a_later_pass_stays() -> None:
    model = small("llama-3-8b")
    kept, passing = said(model, cache=Keeping("fp32")), said(model)
    held = assay.count(model, B, N, cache="fp32").cache.bytes
    assert kept.left["cache"] == held
    assert "cache" not in passing.left
    assert made(passing) < made(kept) <= made(passing) + held


@pytest.mark.parametrize("name", NAMES)
def test_layers_told_by_one_are_as_if_each_had_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small(name)
    later: list[dict[str, Any]] = [{"cache": Keeping("fp32"), "past": 5}] if "past" in model.settings else []
    for how in ({}, {"cache": Keeping("fp32")}, *later):
        short = said(model, **how)
        with monkeypatch.context() as patched:
            patched.setattr(module._Run, "_given_alike", lambda self: object())  # no two layers are alike
            full = said(model, **how)
        assert (short.peak.bytes, short.left) == (full.peak.bytes, full.left)
        assert len(short.moments) <= len(full.moments)


def both(name: str, keeping: bool) -> tuple[int, int]:
    """The peak of a pass as we say it, and as every storage of a run has it."""
    torch = pytest.importorskip("torch")
    model = small(name)
    built = assay.build(model, attention="plain")
    ids = torch.zeros((B, N), dtype=torch.int64)

    def run() -> Any:
        with torch.no_grad():
            cache = built.cache() if keeping else None
            return built(ids, cache=cache), cache

    found = assay.measure(run)
    lived = said(model, cache=Keeping("fp32") if keeping else None)
    return made(lived), found.peak_bytes - found.resident_bytes


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("keeping", [True, False], ids=["cache", "no cache"])
def test_the_peak_is_that_of_a_run(name: str, keeping: bool) -> None:
    ours, measured = both(name, keeping)
    assert ours == measured


@pytest.mark.parametrize(
    "name", ["recurrentgemma-2b", "rwkv-4-169m", "minimax-text-01", "xlstm-7b", "deberta-v3-small"]
)
def test_of_these_a_vector_or_one_state_is_counted_otherwise(name: str) -> None:
    """Numbers that a program makes of a layer's stored ones, and a state that is one of those that are stacked."""
    for keeping in (True, False):
        ours, measured = both(name, keeping)
        assert abs(ours / measured - 1) < 0.02


TINY = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 100}
WIDE = {"intermediate_size": 512, "num_key_value_heads": 2}
FUSED = (
    {"model_type": "llama", "num_key_value_heads": 2, **TINY},
    {"model_type": "mistral", "num_key_value_heads": 2, "sliding_window": 5, **TINY},
    {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100},
    {"model_type": "bert", **TINY},
    {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2, **TINY, **WIDE},
)


@pytest.mark.parametrize("config", FUSED, ids=[str(config["model_type"]) for config in FUSED])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("attention", ["fused", "plain"])
def test_so_it_is_in_one_kernel_and_in_sixteen_bits(config: dict[str, Any], dtype: str, attention: str) -> None:
    torch = pytest.importorskip("torch")
    model = assay.load(config)
    built = assay.build(model, attention=attention, dtype={"fp32": torch.float32, "bf16": torch.bfloat16}[dtype])
    ids = torch.zeros((B, 40), dtype=torch.int64)
    keeping = "past" in model.settings

    def run() -> Any:
        with torch.no_grad():
            cache = built.cache() if keeping else None
            return built(ids, cache=cache), cache

    found = assay.measure(run)
    lived = said(executed(model, "ours", attention), tokens=40, dtype=dtype, cache=Keeping(dtype) if keeping else None)
    assert made(lived) == found.peak_bytes - found.resident_bytes


@pytest.mark.parametrize("name", ["llama-3-8b", "gpt-2", "gemma-2-9b", "mixtral-8x7b"])
def test_a_step_behind_others_has_what_they_left_and_a_copy(name: str) -> None:
    torch = pytest.importorskip("torch")
    model = small(name)
    built = assay.build(model, attention="plain")
    ids = torch.zeros((B, N), dtype=torch.int64)

    def run() -> Any:
        with torch.no_grad():
            cache = built.cache()
            for at in range(N):
                built(ids[:, at : at + 1], cache=cache)
            return cache

    found = assay.measure(run)
    last = said(model, tokens=1, past=N - 1, cache=Keeping("fp32"))
    assert made(last) == found.peak_bytes - found.resident_bytes


@pytest.mark.parametrize("name", ["t5-small", "flan-t5-base", "bart-base"])
def test_a_pair_is_so_too(name: str) -> None:
    """The encoder's tensors are gone when the decoder runs, but for what it reads of them."""
    torch = pytest.importorskip("torch")
    model = small(name)
    built = assay.build(model, attention="plain")
    ids, source = (torch.zeros((B, tokens), dtype=torch.int64) for tokens in (7, 20))

    def run() -> Any:
        with torch.no_grad():
            cache = built.cache()
            return built(ids, source=source, cache=cache), cache

    found = assay.measure(run)
    asked = setting(model, batch=B, tokens=7, source=20)
    assert made(liveness(model, asked, cache=Keeping("fp32"))) == found.peak_bytes - found.resident_bytes


def test_what_an_implementation_has_longer_makes_it_more() -> None:
    model = small("llama-3-8b")
    totals = [
        made(said(model, holds=holds)) for holds in ((), ("part",), ("part", "layer"), ("part", "layer", "layers"))
    ]
    assert totals == sorted(totals)
    assert totals[0] < totals[-1]


def test_a_kind_that_nobody_knows_is_named() -> None:
    model = assay.load({"model_type": "gemma3n_text"})
    assert said(model, tokens=4).unknown == ("sparsify",)
