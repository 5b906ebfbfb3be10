"""What training holds of each parameter: against live optimizers, hand sums and published figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.readings.optimizers import OPTIMIZERS
from assay.readings.precision import POLICIES
from assay.readings.states import states

LLAMA = "llama-3-8b"
P = 8_030_261_248  # the published implementation's parameters of it
SMALL: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 161},
    "llama": {
        "hidden_size": 64,
        "intermediate_size": 80,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 161,
    },
    "mixtral": {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 161,
        "num_local_experts": 4,
    },
}


def small(family: str) -> assay.Model:
    return assay.load({"model_type": family, **SMALL[family]})


# -- live optimizers -------------------------------------------------------------------------------------------------


def trained_by(model: assay.Model, make: Any, dtype: Any = None) -> dict[str, int]:
    """Bytes of an optimizer's state tensors by name after one step, summed over all parameters."""
    torch = pytest.importorskip("torch")
    module = assay.build(model, seed=0, dtype=dtype)
    for parameter in module.parameters():
        parameter.grad = torch.randn_like(parameter)
    return held(make(module), step=True)


def held(made: Any, step: bool) -> dict[str, int]:
    torch = pytest.importorskip("torch")
    found: dict[str, int] = {}
    for one in made if isinstance(made, list) else [made]:
        if step:
            one.step()
        for state in one.state.values():
            for name, value in state.items():
                if torch.is_tensor(value):
                    found[name] = found.get(name, 0) + value.nelement() * value.element_size()
    return found


def by_torch(name: str) -> Any:
    """Our name -> how PyTorch makes that optimizer."""
    from torch import optim

    made: dict[str, Any] = {
        "sgd": lambda m: optim.SGD(m.parameters(), 0.1),
        "sgd-momentum": lambda m: optim.SGD(m.parameters(), 0.1, momentum=0.9),
        "adam": lambda m: optim.Adam(m.parameters()),
        "adamw": lambda m: optim.AdamW(m.parameters()),
        "adamw-amsgrad": lambda m: optim.AdamW(m.parameters(), amsgrad=True),
        "adagrad": lambda m: optim.Adagrad(m.parameters()),
        "rmsprop": lambda m: optim.RMSprop(m.parameters()),
        "adafactor": lambda m: optim.Adafactor(m.parameters()),
        "muon": _muon,
    }
    return made[name]


def _muon(module: Any) -> list[Any]:
    """As its authors say: matrices between embedding and head by Muon, all else by AdamW."""
    from torch import optim

    ends = ("embed", "wte", "wpe", "lm_head")
    named = dict(module.named_parameters())
    hidden = [p for name, p in named.items() if p.dim() == 2 and not any(end in name for end in ends)]
    chosen = {id(p) for p in hidden}
    return [optim.Muon(hidden), optim.AdamW([p for p in named.values() if id(p) not in chosen])]


TORCH = ("sgd", "sgd-momentum", "adam", "adamw", "adamw-amsgrad", "adagrad", "rmsprop", "adafactor", "muon")


@pytest.mark.parametrize("name", TORCH)
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_states_are_those_of_pytorch(name: str, family: str) -> None:
    model = small(family)
    ours = states(model, optimizer=name, precision="fp32")
    theirs = trained_by(model, by_torch(name))
    assert {n: size for n, size in ours.optimizer.items() if size} == theirs
    assert theirs or name == "sgd"


@pytest.mark.parametrize("name", ["adamw", "adafactor", "sgd-momentum"])
def test_states_have_the_dtype_of_the_parameters(name: str) -> None:
    torch = pytest.importorskip("torch")
    model = small("mixtral")  # whose experts lie together in tensors of three dimensions
    ours = states(model, optimizer=name, precision="bf16")
    assert {n: size for n, size in ours.optimizer.items() if size} == trained_by(model, by_torch(name), torch.bfloat16)


AT_ONCE = [name for name, made in OPTIMIZERS.items() if made.rule]


@pytest.mark.parametrize("name", ["sgd", "sgd-momentum", *AT_ONCE])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_step_of_all_tensors_at_once(name: str, precision: str) -> None:
    """What PyTorch's `foreach` has beside what it keeps, in a step behind the first."""
    torch = pytest.importorskip("torch")
    from alive import Alive

    model = small("llama")
    module = assay.build(model, seed=0, dtype={"fp32": torch.float32, "bf16": torch.bfloat16}[precision])
    made = by_torch(name.removesuffix("-foreach"))(module)
    made.param_groups[0]["foreach"] = True
    for parameter in module.parameters():
        parameter.grad = torch.randn_like(parameter)
    made.step()
    kept = [t for state in made.state.values() for t in state.values() if torch.is_tensor(t)]
    with Alive([*module.parameters(), *(p.grad for p in module.parameters()), *kept]) as watch:
        made.step()
    ours = states(model, optimizer=name, precision=precision)
    assert abs(watch.most - int(ours.beside)) <= 4  # a number alone, by which counters go on
    assert bool(ours.beside) is (name in AT_ONCE)
    plain = states(model, optimizer=name.removesuffix("-foreach"), precision=precision)
    assert (plain.parts, plain.beside) == (ours.parts, 0)


def test_what_a_step_makes_is_divided_with_what_it_keeps() -> None:
    whole, part = (states(of(8000), optimizer="adamw-foreach", zero=zero, shards=4) for zero in (0, 1))
    assert (whole.beside, part.beside) == (2 * 8000, 2 * 2000)
    lora = assay.training_memory(assay.load(LLAMA), 1, 128, optimizer="adamw-foreach", precision="mixed")
    (last,) = [moment for moment in lora.timeline if moment.name == "optimizer step"]
    assert last.parts["update"] == 4 * P
    assert lora.peak is last


@pytest.mark.parametrize("name", ["adamw-8bit", "lion-8bit"])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_states_of_8_bits_are_those_of_bitsandbytes(name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    bnb = pytest.importorskip("bitsandbytes")
    model = small("llama")
    module = assay.build(model, seed=0, dtype={"fp32": torch.float32, "bf16": torch.bfloat16}[dtype])
    made = {"adamw-8bit": bnb.optim.AdamW8bit, "lion-8bit": bnb.optim.Lion8bit}[name](module.parameters())
    made.check_overrides()
    for at, group in enumerate(made.param_groups):
        for index, parameter in enumerate(group["params"]):
            parameter.grad = torch.zeros_like(parameter)
            made.init_state(group, parameter, at, index)
    theirs = {n: size for n, size in held(made, step=False).items() if not n.startswith("qmap")}  # one table for all
    assert dict(states(model, optimizer=name, precision=dtype).optimizer) == theirs
    assert {p.numel() < 4096 for p in module.parameters()} == {True, False}  # both sorts are there


def test_lion_is_that_of_its_package() -> None:
    theirs = pytest.importorskip("lion_pytorch")
    model = small("llama")
    ours = states(model, optimizer="lion", precision="fp32")
    assert dict(ours.optimizer) == trained_by(model, lambda m: theirs.Lion(m.parameters()))


# -- hand sums -------------------------------------------------------------------------------------------------------

A_PARAMETER = {  # parameter + gradient + copies + two moments: the papers' and manuals' own sums
    "fp32": 4 + 4 + 4 + 4,
    "bf16": 2 + 2 + 2 + 2,
    "autocast": 4 + 4 + 4 + 4,
    "mixed": 2 + 2 + 4 + 4 + 4,  # Rajbhandari et al. 2020: 2 + 2 + K, K = 12
    "fp16": 2 + 2 + 4 + 4 + 4 + 4,  # Megatron-LM's table: fp16 parameters and gradients, 20
    "megatron": 2 + 4 + 4 + 4 + 4,  # the same: bf16 parameters, fp32 gradients, 18
    "bf16-states": 2 + 4 + 4 + 2 + 2,
}


@pytest.mark.parametrize("policy", POLICIES)
def test_bytes_a_parameter(policy: str) -> None:
    made = states(assay.load(LLAMA), precision=policy)
    assert made.total - made.optimizer["step"] == A_PARAMETER[policy] * P
    assert made.total == sum(made.parts.values())
    assert made.optimizer["step"] == 4 * 291  # a counter a tensor: 32 layers of 9, two tables, a norm


def test_adafactor_keeps_rows_and_columns_of_real_tensors() -> None:
    d, f, kv, layers, vocab = 4096, 14336, 1024, 32, 128256
    matrices = layers * [(d, d), (kv, d), (kv, d), (d, d), (f, d), (f, d), (d, f)] + 2 * [(vocab, d)]
    kept = states(assay.load(LLAMA), optimizer="adafactor", precision="fp32").optimizer
    assert kept["row_var"] == 4 * sum(rows for rows, _ in matrices)
    assert kept["col_var"] == 4 * sum(columns for _, columns in matrices)
    assert kept["variance"] == 4 * (2 * layers + 1) * d


def test_scales_of_8_bits_are_one_for_256() -> None:
    kept = states(assay.load(LLAMA), optimizer="adamw-8bit", precision="bf16").optimizer
    assert kept["state1"] == P  # every tensor has 4,096 elements or more
    assert kept["absmax1"] == 4 * P // 256


def test_gradients_are_held_between_passes_and_not_between_steps() -> None:
    one, four = (states(assay.load(LLAMA), precision="fp32", accumulation=n) for n in (1, 4))
    assert one.between == one.forward == four.between
    assert four.forward == four.total == one.total == one.between + 4 * P


def test_sizes_may_be_symbols_and_arrays() -> None:
    sympy, numpy = pytest.importorskip("sympy"), pytest.importorskip("numpy")
    made = assay.block("y = linear(x[b n d], W[d f]) -> [b n f]", d=64)
    f = sympy.Symbol("f", positive=True, integer=True)
    assert sympy.expand(states(made, precision="mixed", f=f).total) == 16 * 64 * f + 4
    small_and_large = states(made, optimizer="adamw-8bit", f=numpy.array([63, 64]))
    assert list(small_and_large.optimizer["state1"]) == [4 * 63 * 64, 64 * 64]
    assert list(small_and_large.optimizer["absmax1"]) == [0, 4 * 16]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"optimizer": "adem"}, "optimizer is 'adem'; known: sgd, sgd-momentum, adam,"),
        ({"optimizer": ["adam"]}, r"optimizer is \['adam'\]; known: sgd, sgd-momentum, adam,"),
        ({"precision": {}}, r"precision is \{\}; known: fp32, bf16, autocast"),
        ({"precision": "bf61"}, "precision is 'bf61'; known: fp32, bf16, autocast"),
        ({"zero": 4}, "zero is 4; known: 0, 1, 2, 3"),
        ({"shards": 0}, "shards is 0; it must be an integer of at least 1"),
        ({"accumulation": 0}, "accumulation is 0; it must be an integer of at least 1"),
        ({"frozen": "bf61"}, "frozen is 'bf61'; known: fp64"),
        ({"d": 3}, "a model has no open sizes; d cannot be set"),
    ],
)
def test_what_cannot_be_asked(given: dict[str, Any], said: str) -> None:
    with pytest.raises(assay.AssayError, match=said):
        states(assay.load(LLAMA), **given)


def test_every_optimizer_and_policy_names_its_source() -> None:
    records: list[Any] = [*OPTIMIZERS.values(), *POLICIES.values()]
    for says, source in ((record.says, record.source) for record in records):
        assert says
        assert any(mark in source for mark in ("torch", "arXiv", "bitsandbytes", "Megatron", "PyTorch"))


# -- published -------------------------------------------------------------------------------------------------------

PUBLISHED = Path(__file__).parents[3] / "shared" / "published.json"


def of(parameters: int) -> assay.Block:
    """One matrix with so many parameters."""
    rows = 1000
    assert parameters % rows == 0
    return assay.block("y = linear(x[b n d], W[d f]) -> [b n f]", d=rows, f=parameters // rows)


def test_the_example_of_the_zero_paper() -> None:
    """Rajbhandari et al. 2020, figure 1: 7.5 billion parameters, 64 ranks, K = 12; in GB of 10^9 bytes."""
    figures = []
    for zero in range(4):
        made = states(of(7_500_000_000), precision="mixed", zero=zero, shards=64)
        figures.append(f"{made.total / 1e9:.1f}")
    assert figures == ["120.0", "31.4", "16.6", "1.9"]


@pytest.mark.skipif(not PUBLISHED.exists(), reason="needs the published figures beside the repository")
def test_published_states_are_these() -> None:
    wanted: dict[str, tuple[int, dict[str, Any], float]] = {
        "mem.zero.7.5b.baseline": (7_500_000_000, {"precision": "mixed"}, 1e9),
        **{
            f"mem.zero.7.5b.stage{zero}": (7_500_000_000, {"precision": "mixed", "zero": zero, "shards": 64}, 1e9)
            for zero in (1, 2, 3)
        },
        "mem.ultrascale.1b": (10**9, {"precision": "mixed"}, 1e9),
        "mem.ultrascale.70b": (70 * 10**9, {"precision": "mixed"}, 1e9),
        "mem.ultrascale.405b": (405 * 10**9, {"precision": "mixed"}, 1e9),
        "mem.megatron.distopt.fp16": (10**9, {"precision": "fp16"}, 1e9),
        "mem.megatron.distopt.bf16-fp32": (10**9, {"precision": "megatron"}, 1e9),
    }
    rows = {row["id"]: row for row in json.loads(PUBLISHED.read_text())}
    for name, (parameters, asked, unit) in wanted.items():
        value, made = rows[name]["value"], states(of(parameters), **asked).total / unit
        assert made == pytest.approx(value, rel=rows[name]["tol_rel"]), name


def test_the_largest_layer_is_whole_while_it_runs() -> None:
    """Of Llama 3 8B that is a table of the vocabulary, with the last norm before the head."""
    whole = 128_256 * 4096 + 4096
    model = assay.load(LLAMA)
    two, three = (states(model, precision="mixed", zero=zero, shards=8) for zero in (2, 3))
    assert (two.gathered, three.gathered) == (2 * whole, (2 + 2) * whole)
    assert states(model, precision="mixed", zero=1, shards=8).gathered == 0


def test_a_distributed_optimizer_divides_what_it_steps() -> None:
    """Megatron-LM's table: 6 + 12/d bytes with float32 gradients, which each rank holds whole."""
    model, d = of(10**9), 16
    made = states(model, precision="megatron", zero=1, shards=d)
    assert made.total - made.optimizer["step"] == (6 * d + 12) * 10**9 // d
    assert made.parameters + made.main_gradients == 6 * 10**9
