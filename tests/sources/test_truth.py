"""Every recorded config of a known family against the public implementation's figures, to the unit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from assay.errors import AssayError
from assay.readings.count import Count, count
from assay.sources.families import FAMILIES
from assay.sources.huggingface import read_config
from assay.sources.types import OTHER_KINDS
from assay.spec import Model

TRUTH = Path(__file__).resolve().parents[3] / "shared" / "truth"

# configs of known families that are refused, with the reason
REFUSED: dict[str, str] = {
    # the class's own default: without a number of chosen experts no token has a way through the layer
    "default--deepseek_v2": "num_experts_per_tok is null; it must be an integer of at least 1",
    # its keys lie below one that the library does not read, which then builds the class's own sizes
    "sophgo--Qwen3_ASR": "thinker_config is .*: not known for qwen3_asr",
    # heads that share keys, and another norm: no published code of this type has the first
    "LLM-Factory--gte-large-en-v1.5": "layer_norm_type is 'rms_norm'; it must be 'layer_norm' or null",
}


def both_halves(n: int, d: int, f: int, layers: int, vocab: int, far: int = 0) -> int:
    """FLOPs of n source and n target tokens: four matrices of attention in each encoder layer and eight in a decoder's,
    two of the MLP, one attention of all pairs in the encoder and two in the decoder, the head.

    `far` are further tokens that pass the encoder.
    """
    encoder = 2 * (n + far) * (4 * d * d + 2 * d * f) + 4 * (n + far) * (n + far) * d
    decoder = 2 * n * (8 * d * d + 2 * d * f) + 2 * 4 * n * n * d
    return layers * (encoder + decoder) + 2 * n * d * vocab


def words_in_embedding(name: str, vocab: int, d: int, rows: int) -> dict[tuple[str, str], int]:
    """A masked-language head that is built before the words it is tied to gives its name to their table.

    The head has a dense layer, a norm and a bias; `rows` are the positions and token types.
    """
    own = d * d + d + 2 * d + vocab
    return {(name, "parameters of head"): own, (name, "parameters of embedding"): (vocab + rows) * d}


def encoder_alone(n: int, d: int, f: int, layers: int, vocab: int) -> int:
    """FLOPs of n tokens: four matrices of attention, two of the MLP, all pairs, a dense layer and the vocabulary."""
    return layers * (2 * n * (4 * d * d + 2 * d * f) + 4 * n * n * d) + 2 * n * (d * d + d * vocab)


# the library ties the head of these whatever the config says
ALWAYS_TIED = ("t5", "mt5", "umt5", "longt5")

# recorded figures that are not the architecture's: (config, figure) -> ours, with the hand sum beside it
CORRECTED: dict[tuple[str, str], int] = {
    # LongCat's router is named classifier: 28 layers of 512 experts and 256 without work
    ("default--longcat_flash", "parameters of router"): 28 * 768 * 6144,
    ("default--longcat_flash", "parameters of head"): 131072 * 6144,
    # the correction of AFMoE's router is named mlp.expert_bias: 31 layers of 64 are the router's, as the record itself
    # has them where a name says gate (ERNIE 4.5), and no dense MLP's
    ("default--afmoe", "parameters of mlp"): 3 * 2048 * 6144,
    ("default--afmoe", "parameters of router"): 31 * (2048 * 64 + 64),
    # JetMoE's experts are named mlp.input_linear and mlp.output_linear: experts all the same, and there is no other
    # MLP; the router of its attention's experts is recorded as attention
    ("default--jetmoe", "parameters of mlp"): 0,
    ("default--jetmoe", "parameters of experts"): 12 * (8 * 3 * 2048 * 5632 + 2048),
    ("default--jetmoe", "parameters of router"): 12 * 2 * 2048 * 8,
    ("default--jetmoe", "parameters of attention"): 12 * (8 * 2 * 2048 * 2048 + 2 * 2048 * 2048 + 2048),
    **words_in_embedding("default--xlm-roberta", 30522, 768, 512 + 2),
    **words_in_embedding("default--camembert", 30522, 768, 512 + 2),
    **words_in_embedding("BAAI--bge-reranker-large", 250002, 1024, 514 + 1),
    **words_in_embedding("tests--utils--bge_copy", 250002, 1024, 8194 + 1),
    **words_in_embedding("default--jina_embeddings_v3", 250002, 1024, 1),
    # every name below roberta_prelayernorm holds the word layernorm
    **words_in_embedding("default--roberta-prelayernorm", 50265, 768, 512 + 2),
    ("default--roberta-prelayernorm", "parameters of norm"): (1 + 2 * 12 + 1) * 2 * 768,
    ("default--roberta-prelayernorm", "parameters of attention"): 12 * 4 * (768 * 768 + 768),
    ("default--roberta-prelayernorm", "parameters of mlp"): 12 * (2 * 768 * 3072 + 3072 + 768),
    # the library fills up to 512 tokens, a window: twelve layers, a head with a dense layer
    ("default--longformer", "flops[64]"): encoder_alone(64, 768, 3072, 12, 30522),
    ("default--longformer", "flops[256]"): encoder_alone(256, 768, 3072, 12, 30522),
    # routers named classifier are no heads: six layers of each
    ("default--nllb-moe", "parameters of head"): 0,
    ("default--nllb-moe", "parameters of router"): 6 * 128 * 1024,
    ("default--switch_transformers", "parameters of head"): 0,
    ("default--switch_transformers", "parameters of router"): 6 * 8 * 768,
    # the library fills a source up to a multiple of a window, of three blocks or of 512 tokens
    ("default--led", "flops[64]"): both_halves(64, 1024, 4096, 12, 50265),
    ("default--led", "flops[256]"): both_halves(256, 1024, 4096, 12, 50265),
    ("default--longt5", "flops[64]"): both_halves(64, 512, 2048, 6, 32128),
    ("default--longt5", "flops[256]"): both_halves(256, 512, 2048, 6, 32128),
    ("default--pegasus_x", "flops[64]"): both_halves(64, 1024, 4096, 16, 96103, far=32),
    ("default--pegasus_x", "flops[256]"): both_halves(256, 1024, 4096, 16, 96103, far=32),
    # the matrix that features pass first, recorded as other, is the embedding of sounds
    ("default--seamless_m4t", "parameters of embedding"): 256102 * 1024 + 160 * 1024 + 1024,
    ("default--seamless_m4t", "parameters of mixers"): 93203456 + 348477440 - (160 * 1024 + 1024),
    ("default--seamless_m4t_v2", "parameters of embedding"): 256102 * 1024 + 160 * 1024 + 1024,
    ("default--seamless_m4t_v2", "parameters of mixers"): 93203456 + 323374592 - (160 * 1024 + 1024),
    # the bias of the vocabulary is called embedding_decoder; words, positions, queries and latents are embedding
    ("default--perceiver", "parameters of head"): 262,
    ("default--perceiver", "parameters of embedding"): (262 + 2 * 2048) * 768 + 256 * 1280,
    # Granite 4 without experts: what is left, named shared_mlp, is a dense layer
    ("ibm-granite--granite-4-8b-dense-hybrid", "parameters of experts"): 0,
    ("ibm-granite--granite-4-8b-dense-hybrid", "parameters of mlp"): 40 * 3 * 4096 * 12800,
    # 16 layers of lightning attention keep a product of keys and values a head, which is not among the tensors
    ("default--minimax", "cache[64]"): 2 * (16 * 2 * 8 * 128) * 64 + 4 * 16 * 32 * 128 * 128,
    ("default--minimax", "cache[256]"): 2 * (16 * 2 * 8 * 128) * 256 + 4 * 16 * 32 * 128 * 128,
    # LFM3's five windowed layers hold 255 positions between steps and read 256: keys and values of 4 heads of 128
    ("default--lfm3", "cache[256]"): 2 * (3064832 + 5 * 2 * 4 * 128),
    # xLSTM's cache is no tensor but a table of them: a matrix, a sum of keys and a maximum for each head
    ("default--xlstm", "cache[64]"): 2 * 32 * 8 * (256 * 512 + 256 + 1),
    ("default--xlstm", "cache[256]"): 2 * 32 * 8 * (256 * 512 + 256 + 1),
}


def recorded() -> Iterator[str]:
    """Names of the recorded configs of known families that the library could build."""
    if not TRUTH.is_dir():
        return
    for name, figures in json.loads((TRUTH / "truth.json").read_text()).items():
        if figures.get("built") and figures["model_type"] in FAMILIES:
            yield name


@lru_cache(maxsize=1)
def truth() -> dict[str, Any]:
    """The recorded figures by the config's name."""
    found: dict[str, Any] = json.loads((TRUTH / "truth.json").read_text())
    return found


def config(name: str) -> dict[str, Any]:
    """A recorded config.json."""
    found: dict[str, Any] = json.loads((TRUTH / "configs" / f"{name}.json").read_text())
    return found


def read(name: str) -> Model:
    """A recorded config, as the class that was built of it."""
    said = truth()[name]
    named = said["kind"] == "masked" and name not in REFUSED
    return read_config(config(name), name, name, cls=said["class"] if named else None)


def test_truth_is_there() -> None:
    if not TRUTH.is_dir():
        pytest.skip(f"{TRUTH} is absent: the recorded configs are not part of the project")
    assert len(list(recorded())) > 20


def test_tables_name_recorded_configs() -> None:
    if not TRUTH.is_dir():
        pytest.skip(f"{TRUTH} is absent: the recorded configs are not part of the project")
    assert set(REFUSED) | {name for name, _ in CORRECTED} <= set(recorded())


# what the library builds and we refuse, beside REFUSED: by the reason that the table of families gives, or their own
TYPES_REFUSED = """
    blt nemo_speechlm phi4_multimodal vibevoice_asr
""".split()
OWN_REASONS = {
    # nor are there architectures; the library reads it only from a folder whose name holds a type's
    "roberta-base-no-model_type": "model_type is missing",
    "sophgo--Qwen3_ASR": "thinker_config is ",  # the class reads no such table, and builds its own defaults
}
# what neither can read: values that leave a size open, and types that nobody has described
NEITHER = {
    "XiaomiMiMo--MiMo-7B-Base": "model_type is 'mimo', which is not known",
    "default--dots1": "n_routed_experts is null",
    "default--esm": "pad_token_id is null",
    "default--lfm2_moe": "layer_types is null",
    "mllm--qwen3_moe-config_30B_A3B_gguf": r"rope_scaling is 1\.0; it must be an object",
}


def refusals() -> dict[str, str]:
    """Every recorded config that is refused, with what is said of it."""
    said = {}
    for name in truth():
        try:
            read_config(config(name), name, name)
        except AssayError as error:
            said[name] = str(error)
    return said


@pytest.mark.skipif(not TRUTH.is_dir(), reason=f"{TRUTH} is absent: the recorded configs are not part of the project")
def test_every_recorded_config_is_read_or_refused_with_a_reason() -> None:
    reasons = {**REFUSED, **OWN_REASONS, **NEITHER}
    found = refusals()
    for name, said in found.items():
        model_type = truth()[name]["model_type"]
        by_name = f"model_type is '{model_type}', {OTHER_KINDS[model_type]}" if model_type in OTHER_KINDS else None
        assert (by_name and by_name in said) or re.search(reasons[name], said), f"{name}: {said}"
    built = {name for name in found if truth()[name]["built"]}
    by_type = {name for name in built if truth()[name]["model_type"] in TYPES_REFUSED}
    assert built <= by_type | set(REFUSED) | set(OWN_REASONS)
    others = built - {"roberta-base-no-model_type"}
    assert len(others) <= 10, f"{len(others)} configs that the library builds are refused: {sorted(others)}"
    assert len(truth()) - len(found) >= 409, f"{len(truth()) - len(found)} of {len(truth())} are read"


def figures(name: str, model: Model) -> Iterator[tuple[str, int, int]]:
    """(figure, ours, theirs) of everything that was recorded of a config."""
    said = truth()[name]

    def row(figure: str, ours: object, theirs: int) -> tuple[str, int, int]:
        assert isinstance(ours, int), f"{figure} is {ours!r}, no integer"
        return figure, ours, CORRECTED.get((name, figure), theirs)

    def counted(tokens: int | None, past: int = 0) -> Count:
        return count(model, tokens=tokens, past=past, cache="bf16")

    one = counted(1).parameters
    head = untied_head(name)
    yield row("parameters", one.total, said["params"] + head)
    yield row("buffers", one.buffers, said.get("buffers", 0))
    recorded_groups = {**said["params_by_group"], "head": said["params_by_group"].get("head", 0) + head}
    groups = {part.replace("vision_audio", "tower"): n for part, n in recorded_groups.items() if n}
    ours = {part: n for part, n in one.by_part.items() if n}
    if "mixer" in ours:  # recorded by its module's name: as attention, ssm_conv or other
        groups, ours = together(groups), together(ours)
    if not groups.keys() & {"ssm_conv", "other"}:
        for part in sorted(groups.keys() | ours.keys()):
            yield row(f"parameters of {part}", ours.get(part, 0), groups.get(part, 0))
    if said.get("flops_clean"):
        for n, flops in said.get("flops", {}).items():  # 0 is one image, with as many tokens as there are positions
            yield row(f"flops[{n}]", counted(int(n) or None).flops.total, flops)
        if said.get("flops_decode_1tok_ctx256"):
            yield row("flops of a decode step", counted(1, 256).flops.total, said["flops_decode_1tok_ctx256"])
    read = said.get("cache_read_elems") or {}
    for n, elements in read.items():
        yield row(f"cache[{n}]", counted(int(n)).cache.bytes, 2 * elements)
    for n, elements in (said.get("cache_elems") or {}).items():
        if n not in read and "mixer" in one.by_part:  # states among them: elements, whatever their dtype
            kept = count(model, tokens=int(n), cache="bf16", state="bf16").cache.bytes
            yield row(f"cache[{n}]", kept, 2 * elements)


def untied_head(name: str) -> int:
    """Elements of a head that the config asks for and the library ties: vocabulary times width."""
    asked = config(name)
    if asked["model_type"] not in ALWAYS_TIED or asked.get("tie_word_embeddings", True):
        return 0
    return int(asked["vocab_size"] * asked["d_model"])


def together(parts: Mapping[str, int]) -> dict[str, int]:
    """The same parts, mixers of tokens of all sorts as one."""
    sorts = ("mixer", "attention", "ssm_conv", "other")
    kept = {part: n for part, n in parts.items() if part not in sorts}
    return kept | {"mixers": sum(parts.get(part, 0) for part in sorts)}


@pytest.mark.parametrize("name", list(recorded()))
def test_recorded_figures(name: str) -> None:
    if name in REFUSED:
        with pytest.raises(AssayError, match=REFUSED[name]):
            read(name)
        return
    model = read(name)
    off = [
        f"{figure}: ours {ours}, recorded {theirs}" for figure, ours, theirs in figures(name, model) if ours != theirs
    ]
    assert not off, "\n".join(off)
