"""Presets: each loads and says where its facts are from; its figures are those of configs, recordings and papers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from described import constants, ledger, said, structure

from assay.errors import AssayError, UnknownModel
from assay.readings.count import Parameters, count
from assay.sources.descriptions import read_table
from assay.sources.huggingface import read_config
from assay.sources.presets import is_preset, presets, read_preset, table
from assay.spec import Model

SHARED = Path(__file__).resolve().parents[3] / "shared"
NAMES = [name for name, _ in presets()]

# presets and the recorded configs of the same architecture
RECORDED = {
    "albert-xxlarge": "default--albert",
    "bart-large": "facebook--bart-large",
    "bert-base": "bert-base-uncased",
    "bert-large": "bert-large-uncased",
    "deepseek-r1": "deepseek-ai--DeepSeek-R1",
    "deepseek-v2": "deepseek-ai--DeepSeek-V2",
    "deepseek-v3.1": "nvidia--DeepSeek-V3.1-NVFP4",
    "deepseek-v3.2": "default--deepseek_v32",
    "distilbert-base": "distilbert-base-uncased",
    "electra-small": "google--electra-small-discriminator",
    "gpt-1": "default--openai-gpt",
    "jamba-v0.1": "ai21labs--Jamba-v0.1",
    "kimi-k2": "moonshotai--Kimi-K2.5",
    "m2m100-418m": "default--m2m_100",
    "mamba-2.8b": "state-spaces--mamba-2.8b-hf",
    "mamba-codestral-7b": "mistralai--Mamba-Codestral-7B-v0.1",
    "modernbert-base": "answerdotai--ModernBERT-base",
    "modernbert-large": "LLM-Factory--modernbert",
    "nemotron-3-nano-30b-a3b": "kaito--nemotron-3-nano-30b-a3b",
    "nemotron-h-56b": "nvidia--Nemotron-H-56B-Base-8K",
    "qwen3-next-80b-a3b": "default--qwen3_next",
    "qwen3.5-27b": "Qwen--Qwen3.5-27B",
    "qwen3.5-35b-a3b": "Qwen--Qwen3.5-35B-A3B",
    "rwkv-4-7b": "default--rwkv",
    "t5-small": "xformer--t5-small",
    "vit-b-16": "default--vit",
    "whisper-tiny": "openai--whisper-tiny",
    "xlstm-7b": "default--xlstm",
    "bloom-7b1": "bigscience--bloom-7b1",
    "codellama-34b": "inference-sim--codellama-34b-instruct-hf",
    "command-r7b": "CohereForAI--c4ai-command-r7b-12-2024",
    "deepseek-v2-lite": "inference-sim--deepseek-v2-lite",
    "deepseek-v3": "deepseek-ai--DeepSeek-V3",
    "ernie-4.5-0.3b": "baidu--ERNIE-4.5-0.3B-PT",
    "falcon-7b": "default--falcon",
    "gemma-2-2b": "executorch--gemma2_2b_it",
    "gemma-2-9b": "google--gemma-2-9b",
    "gemma-2b": "google--gemma-2b",
    "gemma-3-27b": "google--gemma-3-27b-it-text",
    "gemma-7b": "default--gemma",
    "glm-4-9b": "zai-org--GLM-4-9B-0414",
    "glm-4.5": "rtp-llm--glm45",
    "gpt-2": "gpt2",
    "gpt-2-large": "gpt2-large",
    "gpt-j-6b": "EleutherAI--gpt-j-6b",
    "gpt-neo-2.7b": "EleutherAI--gpt-neo-2.7B",
    "gpt-neox-20b": "EleutherAI--gpt-neox-20b",
    "gpt-oss-120b": "default--gpt_oss",
    "granite-3.3-8b": "ibm-granite--granite-3.3-8b-instruct",
    "llama-2-70b": "meta-llama--Llama-2-70b-hf",
    "llama-2-7b": "meta-llama--Llama-2-7b-hf",
    "llama-3-8b": "executorch--llama3-8B-instruct",
    "llama-3.1-405b": "meta-llama--Meta-Llama-3.1-405B",
    "llama-3.2-1b": "executorch--Llama-3.2-1B-Instruct",
    "llama-3.2-3b": "executorch--Llama-3.2-3B-Instruct",
    "llama-4-maverick": "meta-llama--Llama-4-Maverick-17B-128E-Instruct",
    "llama-4-scout": "inference-sim--llama-4-scout-17b-16e-instruct-fp8-dynamic",
    "minimax-m2": "MiniMaxAI--MiniMax-M2.5",
    "mistral-7b": "mistralai--Mistral-7B-v0.1",
    "mistral-nemo-12b": "inference-sim--mistral-nemo-instruct-2407",
    "mixtral-8x22b": "mistralai--Mixtral-8x22B-v0.1",
    "mixtral-8x7b": "mistralai--Mixtral-8x7B-v0.1",
    "mpt-30b": "mosaicml--mpt-30b",
    "mpt-7b": "mosaicml--mpt-7b",
    "nemotron-4-340b": "nvidia--Nemotron-4-340B",
    "olmo-2-7b": "allenai--OLMo-2-1124-7B",
    "olmo-3-32b": "allenai--Olmo-3.1-32B-Instruct",
    "olmo-7b": "allenai--OLMo-7B-hf",
    "opt-125m": "facebook--opt-125m",
    "opt-13b": "facebook--opt-13b",
    "opt-350m": "facebook--opt-350m",
    "phi-4-mini": "executorch--phi-4-mini-reasoning",
    "qwen1.5-7b": "sophgo--Qwen1.5-7B-Chat",
    "qwen2-1.5b": "executorch--Qwen2-1.5B-Instruct",
    "qwen2-57b-a14b": "Qwen--Qwen2-57B-A14B",
    "qwen2-7b": "sophgo--Qwen2-7B-Instruct",
    "qwen2.5-0.5b": "executorch--Qwen2.5-0.5B-Instruct",
    "qwen2.5-7b": "inference-sim--qwen2.5-7b-instruct",
    "qwen3-0.6b": "Qwen--Qwen3-0.6B",
    "qwen3-235b-a22b": "xft--qwen3-235b",
    "qwen3-30b-a3b": "Qwen--Qwen3-30B-A3B-FP8",
    "qwen3-32b": "Qwen--Qwen3-32B-FP8",
    "smollm3-3b": "default--smollm3",
    "stablelm-2-1.6b": "stabilityai--stablelm-2-1_6b",
    "stablelm-3b": "default--stablelm",
    "starcoder": "bigcode--starcoder",
    "starcoder2-15b": "bigcode--starcoder2-15b",
    "starcoder2-3b": "bigcode--starcoder2-3b",
    "tinyllama-1.1b": "TinyLlama--TinyLlama-1.1B-Chat-v1.0",
    "yi-34b": "inference-sim--yi-34b",
}

# published rows by the preset they are of; the first part of a row's name says which figure it is
PUBLISHED = {
    "bert-base": "params.bert-base",
    "bert-large": "params.bert-large",
    "t5-small": "params.t5-small",
    "t5-base": "params.t5-base",
    "t5-large": "params.t5-large",
    "t5-3b": "params.t5-3b",
    "t5-11b": "params.t5-11b",
    "vit-b-16": "params.vit-b16",
    "vit-l-16": "params.vit-l16",
    "vit-h-14": "params.vit-h14",
    "whisper-tiny": "params.whisper-tiny",
    "whisper-small": "params.whisper-small",
    "whisper-medium": "params.whisper-medium",
    "whisper-large-v2": "params.whisper-large",
    "whisper-large-v3-turbo": "params.whisper-turbo",
    "deepseek-v2": "params.dsv2 active.dsv2",
    "kimi-k2": "params.kimi-k2",
    "qwen3-next-80b-a3b": "params.qwen3-next-80b nonemb.qwen3-next-80b",
    "gpt-2": "params.gpt2-124m",
    "gpt-2-medium": "params.gpt2-355m",
    "gpt-2-xl": "params.gpt2-1558m",
    "gpt-3-1.3b": "params.gpt3-1.3b",
    "gpt-3-13b": "params.gpt3-13b",
    "gpt-3-175b": "params.gpt3-175b",
    "mt-nlg-530b": "params.megatron21.530b",
    "palm-62b": "params.palm-62b",
    "palm-540b": "params.palm-540b",
    "llama-7b": "params.llama1-7b",
    "llama-13b": "params.llama1-13b",
    "llama-33b": "params.llama1-33b",
    "llama-2-70b": "params.llama2-70b",
    "llama-3-8b": "params.llama3-8b",
    "llama-3.1-405b": "params.llama3.1-405b",
    "llama-3.2-3b": "params.llama3.2-3b",
    "mistral-7b": "params.mistral-7b",
    "mixtral-8x7b": "params.mixtral-8x7b",
    "mixtral-8x22b": "active.mixtral-8x22b",
    "qwen2.5-0.5b": "params.qwen2.5-0.5b nonemb.qwen2.5-0.5b",
    "qwen2.5-1.5b": "params.qwen2.5-1.5b nonemb.qwen2.5-1.5b",
    "qwen2.5-3b": "nonemb.qwen2.5-3b",
    "qwen2.5-7b": "params.qwen2.5-7b nonemb.qwen2.5-7b",
    "qwen3-0.6b": "nonemb.qwen3-0.6b",
    "qwen3-1.7b": "nonemb.qwen3-1.7b",
    "qwen3-4b": "params.qwen3-4b nonemb.qwen3-4b",
    "qwen3-8b": "nonemb.qwen3-8b",
    "qwen3-14b": "params.qwen3-14b nonemb.qwen3-14b",
    "qwen3-32b": "params.qwen3-32b",
    "qwen3-30b-a3b": "params.qwen3-30b-a3b",
    "qwen3-235b-a22b": "params.qwen3-235b-a22b active.qwen3-235b-a22b",
    "deepseek-67b": "params.deepseek-67b",
    "deepseek-v2-lite": "params.dsv2-lite",
    "deepseek-v3": "params.dsv3 active.dsv3",
    "gpt-oss-20b": "params.gpt-oss-20b",
    "gpt-oss-120b": "params.gpt-oss-120b",
    "gemma-2b": "params.gemma-2b",
    "gemma-7b": "params.gemma-7b",
    "gemma-2-2b": "nonemb.gemma2-2b",
    "gemma-2-9b": "nonemb.gemma2-9b",
    "gemma-3-1b": "nonemb.gemma3-1b emb.gemma3-1b",
    "gemma-3-4b": "nonemb.gemma3-4b emb.gemma3-4b",
    "gemma-3-12b": "nonemb.gemma3-12b emb.gemma3-12b",
    "gemma-3-27b": "nonemb.gemma3-27b",
    "phi-3-medium-4k": "params.phi3-medium",
    "falcon-7b": "params.falcon-7b",
    "falcon-40b": "params.falcon-40b",
    "falcon-180b": "params.falcon-180b",
    "bloom-176b": "params.bloom-176b",
    "llama-4-maverick": "params.llama4-maverick active.llama4",
    "llama-4-scout": "active.llama4",
    "pythia-160m": "params.pythia-160m nonemb.pythia-160m",
    "pythia-1.4b": "params.pythia-1.4b nonemb.pythia-1.4b",
    "pythia-6.9b": "params.pythia-6.9b nonemb.pythia-6.9b",
    "olmo-2-7b": "params.olmo2-7b",
    "olmo-2-13b": "params.olmo2-13b",
}
FIGURES = {
    "params": lambda p: p.total,
    "active": lambda p: p.active,
    "nonemb": lambda p: p.total - p.by_part["embedding"] - p.by_part.get("head", 0),
    "emb": lambda p: p.by_part["embedding"],
}
UNITS = {"": 1, "M": 10**6, "B": 10**9, "T": 10**12}


def shared(name: str) -> Any:
    """A file beside the project, which stands without it."""
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"{path} is absent: recorded figures are not part of the project")
    return read_json(path)


@lru_cache(maxsize=4)
def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def parameters(model: Model) -> Parameters:
    return count(model, tokens=1).parameters


def test_there_are_many() -> None:
    assert len(NAMES) >= 200
    assert {"gpt-2", "gpt-3-175b", "llama-7b", "llama-3-8b", "llama-3-8b-64x8"} <= set(NAMES)
    assert all(re.fullmatch(r"[a-z0-9]+([.-][a-z0-9]+)*", name) for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_loads_and_says_its_source(name: str) -> None:
    model = read_preset(name)
    assert re.match(r"https://(huggingface\.co/[\w.-]+/[\w.-]+$|arxiv\.org/abs/\d{4}\.\d{4,5}$)", model.source)
    assert model.name == table(name)["name"] != name
    assert parameters(model).total > 0


@pytest.mark.parametrize("name", ["llama-3-8c", "../presets/gpt-2", "gpt-2.toml", "", ".", "/etc"])
def test_other_names_are_no_presets(name: str) -> None:
    assert not is_preset(name)
    with pytest.raises(UnknownModel, match=r" is no preset; (did you mean|`assay models` lists them)"):
        read_preset(name)


def test_no_file_holds_a_total() -> None:
    """The largest number of a description is a context, a vocabulary or a rotation's base: totals are counted."""
    for name, path in presets():
        for number in re.findall(r"(?<![\w.])\d{8,}", Path(path).read_text(encoding="utf-8")):
            assert int(number) in (10_000_000, 10_240_000, 10_485_760, 75_000_000, 100_000_000), f"{name}: {number}"


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where the values of nested tables stand, and the tables themselves."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(below, (*path, key))


def changed(value: Any, path: tuple[str, ...], new: Any) -> Any:
    """The same tables with one value, or without it where `new` is ...."""
    key, *rest = path
    if rest:
        return {**value, key: changed(value[key], tuple(rest), new)}
    return {k: new if k == key else v for k, v in value.items() if k != key or new is not ...}


WRONG: tuple[Any, ...] = (
    ...,
    0,
    -1,
    1.5,
    True,
    "x",
    "none",
    "",
    [],
    {},
    ["x"],
    [{}],
    10**30,
    10**400,
    float("nan"),
    float("-inf"),
)


VARIED = """
    albert-base clip-vit-l-14 deberta-v3-base deepseek-v3 deepseek-v3.2 dinov2-small electra-small falcon-40b
    flan-t5-base gpt-2 gpt-oss-20b jamba-v0.1 kimi-linear-48b-a3b llama-4-maverick minimax-text-01 modernbert-base
    opt-350m qwen2-57b-a14b qwen3-next-80b-a3b recurrentgemma-2b rwkv-4-169m siglip-base whisper-tiny xlstm-7b
""".split()


@pytest.mark.parametrize("name", VARIED)
def test_a_wrong_value_is_one_line_or_another_model(name: str) -> None:
    """Each value of a description in turn is left out or replaced: never a traceback."""
    data, said = table(name), []
    for path in leaves(data):
        for new in WRONG:
            try:
                count(read_table(changed(data, path, new), "mine.toml", "mine"), tokens=3)
            except AssayError as error:
                said.append(str(error))
    assert [line for line in said if not re.fullmatch(r"mine\.toml: .+", line)] == []
    assert len(said) > 100


@pytest.mark.parametrize(("said", "turned"), [({}, None), ({"style": "interleaved"}, "interleaved")])
def test_an_indexer_turns_halves_unless_it_says_otherwise(said: dict[str, str], turned: str | None) -> None:
    """DeepSeek-V3.2's turns halves beside attention that turns neighbours; GLM-5's turns neighbours as well."""
    data = table("deepseek-v3.2")
    indexer = data["latent"]["indexer"] | said
    model = read_table(changed(data, ("latent", "indexer"), indexer), "mine.toml", "mine")
    layer = next(segment for segment in model.segments if segment.layers)
    styles = {op.name: op.attr("style") for op in layer.block.ops if op.kind == "rope"}
    assert styles == {"qp": "interleaved", "kp": "interleaved", "iq": turned, "ik": turned}


def recorded(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The config (the text model's alone) and what the public implementation was seen to hold and do."""
    said = shared("truth/truth.json")[RECORDED[name]]
    config = shared(f"truth/configs/{RECORDED[name]}.json")
    return (config["text_config"], said["text"]) if "text_config" in config else (config, said)


@pytest.mark.parametrize("name", RECORDED)
def test_equals_the_recorded_config(name: str) -> None:
    """The same ops, tensors by name, and figures as the config read by its family."""
    ours, theirs = read_preset(name), read_config(recorded(name)[0], name, name)
    assert structure(ours) == structure(theirs)
    assert ledger(ours) == ledger(theirs)
    tokens = 600 if ours.positions is None else min(600, ours.positions - 100)
    past = 0 if "past" not in ours.settings else 9000 if ours.positions is None else 100
    for setting in ({"past": past}, {"past": past, "convention": "scalar"}, {"convention": "causal"}):
        one, other = (count(model, tokens=tokens, cache="bf16", **setting) for model in (ours, theirs))
        assert (one.parameters, one.flops, one.cache) == (other.parameters, other.flops, other.cache)


# Recorded configs that are not the preset's own in eps, factors and rotations, which sizes do not show: they leave them
# to their class, or to its defaults altogether, or are a later release's.
SILENT = """
    command-r7b deepseek-v2 gemma-3-27b glm-4-9b llama-3.2-1b llama-3.2-3b mistral-7b olmo-2-7b qwen2-57b-a14b
    starcoder2-15b starcoder2-3b tinyllama-1.1b
""".split()
DEFAULT = ["deepseek-v3.2", "qwen3-next-80b-a3b", "smollm3-3b"]
LATER = ["kimi-k2", "phi-4-mini"]


@pytest.mark.parametrize("name", sorted(RECORDED.keys() - {*SILENT, *DEFAULT, *LATER}))
def test_equals_the_recorded_constants(name: str) -> None:
    assert constants(read_preset(name)) == constants(read_config(recorded(name)[0], name, name))


@pytest.mark.parametrize("name", [*SILENT, *DEFAULT, *LATER])
def test_says_each_constant_that_the_recorded_config_has(name: str) -> None:
    assert said(read_preset(name)) == said(read_config(recorded(name)[0], name, name))


@pytest.mark.parametrize("name", ["bloom-7b1", "deepseek-v2", "jamba-v0.1", "llama-3-8b", "opt-350m", "rwkv-4-7b"])
def test_without_its_head_it_equals_the_base_model(name: str) -> None:
    ours, theirs = read_preset(name, "base"), read_config(recorded(name)[0], name, name, cls="base")
    assert (ours.cls, structure(ours)) == (theirs.cls, structure(theirs))
    assert ledger(ours) == ledger(theirs)


@pytest.mark.parametrize("name", RECORDED)
def test_equals_the_recorded_figures(name: str) -> None:
    """Parameters, by part, FLOPs and cache of the public implementation, to the unit."""
    said, model = recorded(name)[1], read_preset(name)
    held = parameters(model)
    assert held.total == said["params"]
    groups = said.get("params_by_group", {"other": 0})
    if not groups.keys() & {"other", "ssm_conv"} and "mixer" not in held.by_part:  # those are no parts of ours
        assert {part: n for part, n in held.by_part.items() if n} == {part: n for part, n in groups.items() if n}
        assert held.buffers == said["buffers"]
    for n, flops in said["flops"].items() if said.get("flops_clean") else ():  # 0 is one image
        assert count(model, tokens=int(n) or None).flops.total == flops, f"{n} tokens"
    read = said.get("cache_read_elems", {})
    for n, elements in read.items():
        assert count(model, tokens=int(n), cache="bf16").cache.bytes == 2 * elements, f"{n} tokens"
    for n, elements in said.get("cache_elems", {}).items():
        # states among them: elements, whatever their dtype; where there is one element, the cache is no tensor
        if n not in read and "mixer" in held.by_part and elements > 1:
            assert count(model, tokens=int(n), cache="bf16", state="bf16").cache.bytes == 2 * elements, f"{n} tokens"


def published() -> Iterator[tuple[str, str]]:
    for name, rows in PUBLISHED.items():
        for row in rows.split():
            yield name, row


@pytest.mark.parametrize(("name", "row"), list(published()))
def test_equals_the_published_figure(name: str, row: str) -> None:
    said = next(entry for entry in shared("published.json") if entry["id"] == row)
    assert said["check"] == "formula"
    ours = FIGURES[row.partition(".")[0]](parameters(read_preset(name)))
    theirs = said["value"] * UNITS[said["unit"]]
    assert ours == pytest.approx(theirs, rel=said["tol_rel"]), f"{ours:,} for {theirs:,.0f} of {said['source']}"


@pytest.mark.parametrize(
    ("name", "width"),
    [("llama-3-8b-64x8", 14336), ("llama-3-8b-64x8-fine", 14336 // 8)],
)
def test_mixture_by_hand(name: str, width: int) -> None:
    """Llama 3 8B with 64 experts of which a token passes 8: as wide as the MLP, or an eighth as wide."""
    d, layers = 4096, 32
    attention = 2 * d * d + 2 * d * 8 * 128
    outside = 2 * 128_256 * d + d + layers * (attention + 2 * d + 64 * d)
    expert = layers * 3 * d * width
    model = read_preset(name)
    assert parameters(model).total == outside + 64 * expert
    assert parameters(model).active == outside + 8 * expert
    gathered = 128_256 * d + (2 * layers + 1) * d  # a look-up and norms: no matmul
    at_2048 = 2 * (outside + 8 * expert - gathered) + 4 * layers * 2048 * d
    assert count(model, tokens=2048).flops.total == 2048 * at_2048
