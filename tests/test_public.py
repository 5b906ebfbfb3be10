"""The public surface: its names, what they are, and the figures a training loop asks for."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import assay

ROOT = Path(__file__).resolve().parents[1]
NAMES = """
    CONVENTIONS AssayError Batch Block BuildError Cache Chip Comparison Convention Count Crossover Diagram Entry
    Explanation Fit Flops HardwareError History KindError Machines MeasureError Measurement Memory Model NotationError
    Op Parameters Plan Proposal Rank Recipe Regime Row Segment Setting SettingError Sharded SizeError SourceError
    States Sweep Tensor Training TrainingMemory TrainingRun UnknownModel Utilization Weight block build chip chips
    compare count crossovers design draw explain fit flops_per_token freeze learn load lora measure memory mfu regimes
    shard sharded shifted states sweep tensors train training training_memory
""".split()
LLAMA = {
    "model_type": "llama",
    "vocab_size": 100,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
DENSE = 2 * (2 * (4 * 32 * 32 + 3 * 32 * 48) + 32 * 100)  # FLOPs a token outside the scores


def scores(n: int) -> int:
    """Two products of n x n x width in each of two layers."""
    return 2 * 2 * 2 * n * n * 32


def test_the_names() -> None:
    assert sorted(assay.__all__) == sorted(NAMES)
    assert assay.__all__ == sorted(assay.__all__, key=lambda name: (name != name.upper(), name[0].islower(), name))
    assert [name for name in dir(assay) if not name.startswith("__")] == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_there_and_says_what_it_is(name: str) -> None:
    found = getattr(assay, name)
    assert found is getattr(assay, name)
    if name != "CONVENTIONS":
        assert inspect.getdoc(found)
        assert found.__name__ == name


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("CONVENTIONS", "AssayError")])
def test_results_and_specs_are_frozen(name: str) -> None:
    found = getattr(assay, name)
    if inspect.isclass(found) and not issubclass(found, Exception):
        assert dataclasses.is_dataclass(found)
        assert found.__setattr__ is not object.__setattr__


def test_the_checker_of_types_sees_the_same_names() -> None:
    tree = (ROOT / "src" / "assay" / "__init__.py").read_text()
    for module, names in assay._HOME.items():
        line = next(line for line in tree.splitlines() if line.startswith(f"    from {module} import "))
        assert line.partition(" import ")[2].replace(",", "").split() == names.split()
        for name in names.split():
            assert getattr(importlib.import_module(module), name) is getattr(assay, name)
    assert (ROOT / "src" / "assay" / "py.typed").exists()


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'assay' has no attribute 'nothing'"):
        assay.nothing  # noqa: B018


def test_the_errors_are_one_tree() -> None:
    errors = [getattr(assay, name) for name in NAMES if name.endswith("Error") or name == "UnknownModel"]
    assert all(issubclass(error, assay.AssayError) for error in errors)
    assert issubclass(assay.UnknownModel, assay.SourceError)


def test_the_version_is_the_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert assay.__version__ == project["version"]


def test_the_docstring_runs() -> None:
    model = assay.load("llama-3-8b")
    counted = assay.count(model, batch=1, tokens=8192)
    assert min(counted.parameters.total, counted.flops.total, counted.cache.bytes) > 0
    used = assay.mfu(model, tokens_per_second=9_500, peak_flops=assay.chip("h100").rate("bf16"), context=8192)
    assert 0 < used.value < 1
    written = 'assay.mfu(model, tokens_per_second=9_500, peak_flops=assay.chip("h100").rate("bf16"), context=8192)'
    assert written in str(assay.__doc__)


def test_flops_per_token_is_a_prefill_divided() -> None:
    model = assay.load(LLAMA)
    assert assay.flops_per_token(model, context=8) == DENSE + scores(8) // 8
    assert assay.flops_per_token(model, context=8, logits="last") == (8 * DENSE - 7 * 2 * 3200 + scores(8)) / 8
    causal = assay.flops_per_token(model, context=8, convention="causal")
    assert causal == DENSE + scores(8) // 8 * 9 // 16  # n (n + 1) / 2 pairs of n^2


def test_flops_per_token_takes_arrays_and_symbols() -> None:
    numpy, sympy = pytest.importorskip("numpy"), pytest.importorskip("sympy")
    model = assay.load(LLAMA)
    contexts = numpy.array([1, 8, 64])
    found = assay.flops_per_token(model, context=contexts)
    assert found.tolist() == [assay.flops_per_token(model, context=int(c)) for c in contexts]
    c = sympy.Symbol("c", integer=True, positive=True)
    assert sympy.expand(assay.flops_per_token(model, context=c)) == DENSE + 256 * c


def test_mfu() -> None:
    model = assay.load(LLAMA)
    used = assay.mfu(model, tokens_per_second=1000, peak_flops=1e9, context=8, gpus=4)
    assert DENSE + 256 * 8 == 43_264
    assert used == assay.Utilization(3 * (DENSE + 256 * 8) * 1000 / 4e9, DENSE + 256 * 8, 8, "matmul")
    assert (str(used), f"{used}", f"{used:.2%}") == ("3.2% MFU (matmul, context 8)",) * 2 + (f"{used.value:.2%}",)
    assert float(used) == used.value
    twice = assay.mfu(model, tokens_per_second=1000, peak_flops=1e9, context=8, gpus=2)
    assert twice.value == 2 * used.value
    assert assay.mfu(model, tokens_per_second=1, peak_flops=1, context=8, convention="causal").convention == "causal"


def test_mfu_of_arrays_and_symbols() -> None:
    numpy, sympy = pytest.importorskip("numpy"), pytest.importorskip("sympy")

    def used(speed: Any, context: Any = 8) -> assay.Utilization:
        return assay.mfu(assay.load(LLAMA), tokens_per_second=speed, peak_flops=1e9, context=context)

    one = used(3)
    assert used(numpy.array([3.0, 6.0])).value.tolist() == [one.value, 2 * one.value]
    assert str(used(numpy.array([0.5]))) == "[6.4896e-05] MFU (matmul, context 8)"  # 3 * 43,264 * 0.5 / 10^9
    assert str(used(sympy.Symbol("s"))).endswith("*s MFU (matmul, context 8)")
    assert str(used(3, numpy.array([8, 9]))).endswith("MFU (matmul, context [8. 9.])")
    for speed in (numpy.float32(3), numpy.float64(3), numpy.int64(3)):
        assert used(speed) == one
    with pytest.raises(assay.SizeError, match=r"tokens_per_second is 0\.0; it must be a finite number above 0"):
        used(numpy.float32(0))


@pytest.mark.parametrize(
    "given",
    [{"tokens": 2, "past": 3}, {"batch": 2, "tokens": 3}, {"tokens": 2, "context": 3}, {"batch": 2, "past": 3}],
)
def test_arrays_that_do_not_broadcast(given: dict[str, int]) -> None:
    numpy = pytest.importorskip("numpy")
    arrays = {name: numpy.full(length, 5) for name, length in given.items()}
    said = ", ".join(rf"{name} is of shape \({length},\)" for name, length in given.items())
    with pytest.raises(assay.SizeError, match=f"{said}; arrays must have shapes that broadcast"):
        assay.count(assay.load(LLAMA), **arrays)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tokens_per_second": 0}, "tokens_per_second is 0; it must be a finite number above 0"),
        ({"tokens_per_second": "9"}, "tokens_per_second is '9'; it must be a finite number"),
        ({"peak_flops": float("nan")}, "peak_flops is nan; it must be a finite number above 0"),
        ({"peak_flops": float("inf")}, "peak_flops is inf"),
        ({"peak_flops": True}, "peak_flops is True"),
        ({"gpus": 0}, "gpus is 0; it must be an integer of at least 1"),
        ({"context": -1}, "context is -1; it must be an integer of at least 1"),
    ],
)
def test_mfu_of_what_cannot_be(changed: dict[str, Any], said: str) -> None:
    asked = {"tokens_per_second": 1.0, "peak_flops": 1.0, "context": 8, **changed}
    with pytest.raises(assay.SizeError, match=said):
        assay.mfu(assay.load(LLAMA), **asked)
    with pytest.raises(assay.SettingError, match="convention is 'x'; known: matmul"):
        assay.mfu(assay.load(LLAMA), tokens_per_second=1, peak_flops=1, context=8, convention="x")


def test_a_block_of_ones_own() -> None:
    text = """
    # a linear map and a norm of its result
    attention:
      y = linear(x[b n d], W[d f]) -> [b n f]
    """
    made = assay.block(text, "mine", d=3)
    assert str(made) == "attention:\n  y = linear(x[b n d], W[d f]) -> [b n f]"
    counted = assay.count(made, batch=2, tokens=5, f=7)
    assert (counted.flops.total, counted.parameters.by_part) == (2 * 2 * 5 * 3 * 7, {"attention": 21})
    assert [(entry.path, entry.shape) for entry in assay.tensors(made, f=7)] == [("mine.W", (7, 3))]


@pytest.mark.parametrize(
    ("text", "sizes", "error", "said"),
    [
        ("y = nonsense(x[b n d]) -> [b n d]", {}, assay.KindError, "no kind 'nonsense'"),
        ("y = linear(x[b n d], W[d f]) -> [b n z]", {}, assay.NotationError, "has an axis that no operand has"),
        ("y = linear(x[b n d])", {}, assay.NotationError, "is no op; write"),
        ("", {}, assay.NotationError, "the block has no ops"),
        (None, {}, assay.NotationError, "a NoneType is no block; it is text, one op a line"),
        ("y = linear(x[b n d], W[d f]) -> [b n f]", {"d": 0}, assay.SizeError, "d is 0; it must be an integer"),
        ("y = linear(x[b n d], W[d f]) -> [b n f]", {"d": 1.5}, assay.SizeError, "d is 1.5; it must be an integer"),
    ],
)
def test_a_block_that_does_not_parse(
    text: str, sizes: dict[str, Any], error: type[assay.AssayError], said: str
) -> None:
    with pytest.raises(error, match=said):
        assay.block(text, **sizes)


def test_a_size_that_a_block_lacks_is_named() -> None:
    made = assay.block("k = append(k[b n d], window=w) -> [b c d]", d=3)
    assert assay.count(made, tokens=9, w=4).cache.bytes == 4 * 3 * 2
    for read in (assay.count, assay.tensors):
        with pytest.raises(assay.SettingError, match="token is no size of block, whose axes are b, c, d, n, w"):
            read(made, w=4, token=9)


def test_an_open_axis_is_named() -> None:
    made = assay.block("y = linear(x[b n d], W[d f]) -> [b n f]", d=3)
    for read in (assay.count, assay.tensors):
        with pytest.raises(assay.SizeError, match=r"axis f \(MLP inner width\) has no size; give it one, f=\.\.\."):
            read(made)
        with pytest.raises(
            assay.SettingError, match=r"^a model or a block is needed, not a dict; assay\.load reads it$"
        ):
            read({})  # type: ignore[arg-type]


READERS: dict[str, Any] = {
    "build": assay.build,
    "compare": lambda model: assay.compare([model, model]),
    "count": assay.count,
    "crossovers": assay.crossovers,
    "draw": assay.draw,
    "explain": assay.explain,
    "flops_per_token": lambda model: assay.flops_per_token(model, context=8),
    "freeze": assay.freeze,
    "lora": assay.lora,
    "memory": assay.memory,
    "mfu": lambda model: assay.mfu(model, tokens_per_second=1, peak_flops=1, context=8),
    "regimes": lambda model: assay.regimes(model, [8]),
    "shard": lambda model: assay.shard(model, assay.Plan(tensor=2)),
    "sharded": lambda model: assay.sharded(model, assay.Plan(tensor=2)),
    "states": assay.states,
    "tensors": assay.tensors,
    "train": lambda model: assay.train(model, tokens=8),
    "training": assay.training,
    "training_memory": assay.training_memory,
}


class Module:
    """As PyTorch's are, for what is asked of them here."""

    def forward(self) -> None: ...


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_model_is_told_how_to_become_one(name: str) -> None:
    if name == "build":
        pytest.importorskip("torch")
    for value, said in (
        ("gpt-2", "is needed, not the name 'gpt-2'; assay.load reads it"),
        ({}, "is needed, not a dict; assay.load reads it"),
        (Module(), "is needed, not a Module; assay.load(module.config) reads"),
        (None, "is needed, not a NoneType; assay.load makes one"),
    ):
        with pytest.raises(assay.SettingError, match=f"^a model( or a block)? {re.escape(said)}"):
            READERS[name](value)
    with pytest.raises(assay.SourceError, match=r"^a Module is a module, not a config; assay\.load\(module\.config\)"):
        assay.load(Module())


def test_what_is_no_plan_and_no_list_of_models() -> None:
    model = assay.load("llama-3-8b")
    with pytest.raises(assay.SettingError, match=r"^plan is of type int; it must be an assay\.Plan"):
        assay.shard(model, 8)  # type: ignore[arg-type]
    for value in ("gpt-2", model):
        with pytest.raises(assay.SettingError, match=r"^a comparison is of a list of models, not a (str|Model)$"):
            assay.compare(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("what", [LLAMA, "llama-3-8b"], ids=["config", "preset"])
def test_models_and_results_can_be_copied_and_sent(what: object) -> None:
    model = assay.load(what)
    for made in (model, assay.count(model, tokens=3), assay.tensors(model)):
        assert pickle.loads(pickle.dumps(made)) == made
        assert copy.deepcopy(made) == made
    heads = model.segments[1].block.sizes["h"]
    assert getattr(copy.copy(heads), "key", None) == getattr(heads, "key", None)


def test_a_model_prints_in_the_notation() -> None:
    text = str(assay.load(LLAMA))
    assert text.startswith(
        "config\n\nembedding\n  embedding:\n    x = gather(ids[b n], E[V d]) -> [b n d]\n\nlayer × 2\n"
    )
    assert "  attention.scores:\n    s = contract(q[b n g r k], k[b c g k]) -> [b g r n c]\n" in text
    assert text.count("linear(") == 8  # seven of a layer, and the head


def test_a_representation_fits_on_a_screen() -> None:
    model = assay.load("deepseek-v3")
    assert len(repr(model)) < 1000
    assert len(repr(assay.count(model))) < 1500


def test_counts_print_what_people_ask_for() -> None:
    model = assay.load(LLAMA)
    one = assay.count(model, tokens=1, past=1999)
    shown = [line.split() for line in str(one).splitlines()]
    assert shown[0] == "batch 1 · tokens 1 · past 1,999".split()
    assert shown[1] == ["parameters", f"{2 * (4 * 32 * 32 + 3 * 32 * 48 + 2 * 32) + 32 + 2 * 32 * 100:,}"]
    assert shown[2] == ["FLOPs", f"{DENSE + 2 * 2 * 2 * 2000 * 32:,}", "matmul"]
    assert shown[4] == ["cache", "bytes", f"{2 * 2 * 2000 * 32 * 2:,}", "bf16"]
    assert str(one + assay.count(model, tokens=2)).startswith("a sum over several settings\n")
    unknown = assay.load(LLAMA | {"quantization_config": {"quant_method": "hqq"}})
    assert str(assay.count(unknown, tokens=1)).splitlines()[3].split() == ["weight", "bytes", "unknown"]


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        (lambda value: assay.count(assay.load("gpt-2"), convention=value), "convention"),
        (lambda value: assay.count(assay.load("gpt-2"), logits=value), "logits"),
        (lambda value: assay.count(assay.load("gpt-2"), latent=value), "latent"),
        (lambda value: assay.memory(assay.load("gpt-2"), policy=value), "policy"),
        (lambda value: assay.memory(assay.load("gpt-2"), attention=value), "attention"),
        (lambda value: assay.training(assay.load("gpt-2"), attention=value), "attention"),
        (lambda value: assay.training(assay.load("gpt-2"), precision=value), "precision"),
        (lambda value: assay.states(assay.load("gpt-2"), optimizer=value), "optimizer"),
        (lambda value: assay.training_memory(assay.load("gpt-2"), device=value), "device"),
    ],
)
@pytest.mark.parametrize("value", ["none such", None, 3, ["fused"], {"all": 1}])
def test_a_word_that_is_none_of_those_known(asked: Any, word: str, value: Any) -> None:
    with pytest.raises(assay.SettingError, match=rf"^{word} is {re.escape(repr(value))}; known: \w+"):
        asked(value)


SERVING: dict[str, object] = {"logits": "last"}  # what has another default where a model serves
PER_TOKEN: dict[str, object] = {"context": inspect.Parameter.empty}  # what has none
OTHERWISE: dict[str, dict[str, object]] = {
    "memory": SERVING,
    "fit": SERVING,
    "mfu": PER_TOKEN,
    "flops_per_token": PER_TOKEN,
}


def test_a_setting_has_one_default_whichever_reading_is_asked() -> None:
    """Keywords are written out for help and checkers of types, and are held to be as `setting` has them."""
    from assay.readings.setting import SIZES, setting

    known = {name: p.default for name, p in inspect.signature(setting).parameters.items() if name != "model"}
    taking = []
    for name in assay.__all__:
        if not inspect.isfunction(found := getattr(assay, name)):
            continue
        given = {name: p.default for name, p in inspect.signature(found).parameters.items() if name in known}
        other = {setting: default for setting, default in given.items() if default != known[setting]}
        assert other == OTHERWISE.get(name, {}), name
        taking += [name] * bool(given)
    assert {"count", "memory", "fit", "training", "training_memory", "train"} <= set(taking)
    assert SIZES.keys() < known.keys()
    assert known.keys() == inspect.signature(assay.count).parameters.keys() - {"model", "sizes"}
