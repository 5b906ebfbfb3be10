"""What every family keeps between steps, element by element, against the public implementation run on two tokens.

Two tokens lie within every window; what a window drops is tried by hand where it belongs (`test_visible_pairs`,
`test_columns`).
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from library import inputs, needs_library, prepare
from samples import Sample, samples

from assay.readings.count import count
from assay.sources.huggingface import read_config
from assay.spec import Model

pytestmark = [pytest.mark.slow, needs_library]

TOKENS = 2
# classes that give no cache, or want more than tokens; the tests of their families have their sums by hand
UNSEEN = {
    "openai-gpt": "the library keeps nothing",
    "recurrent_gemma": "states are kept in the layers",
    "rwkv": "a state of its own",
    "xlstm": "a table of tensors",
    "longcat_flash": "heads of two widths in one cache",
    "prophetnet": "a cache of its own",
    "switch_transformers": "keeps nothing while every expert is run",
    "whisper": "wants a sound of full length",
    "gemma4_unified_assistant": "its keys are another model's",
    "minimax": "its states are in no layer of the cache",
    "deepseek_v4": "an open window holds two streams, of which one is read again",
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl", "glm4v", "glm4v_moe"), "rotations of three parts, unlike a small head"),
    "llama4": "gives no cache",
    "idefics": "wants an image, whose keys it does not keep",
    "qwen3_5_moe": "asks a recurrent layer for its length",
}
ITSELF = ("_sliding_window_tensor",)


def kept(sample: Sample) -> int:
    """Elements of the library's cache behind a short prefill."""
    import torch
    import transformers

    prepare(sample.config)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        made = transformers.AutoConfig.for_model(**sample.config)
        made._attn_implementation, made._experts_implementation = "eager", "batched_mm"
        cls = getattr(transformers, sample.auto)
        model = cls.from_config(made) if sample.auto.startswith("Auto") else cls._from_config(made)
        given = model.eval()(**inputs(made, TOKENS, TOKENS), use_cache=True)
    return elements(given.past_key_values, set())


def elements(held: Any, seen: set[int]) -> int:
    """Elements of all tensors that a cache holds, each once."""
    import torch

    if isinstance(held, torch.Tensor):
        fresh = id(held) not in seen
        seen.add(id(held))
        return held.numel() if fresh else 0
    if isinstance(held, list | tuple):
        return sum(elements(one, seen) for one in held)
    if isinstance(held, dict):
        return sum(elements(one, seen) for one in held.values())
    if hasattr(held, "self_attention_cache"):
        return elements([held.self_attention_cache, held.cross_attention_cache], seen)
    if hasattr(held, "layers"):
        return elements(held.layers, seen)
    if type(held).__module__.startswith("transformers"):
        return elements([value for name, value in vars(held).items() if name not in ITSELF], seen)
    return 0


def ours(model: Model) -> int:
    """The same as we count it, all of one dtype."""
    source = TOKENS if "source" in model.settings else None
    return int(count(model, tokens=TOKENS, source=source, cache="fp32", state="fp32").cache.bytes) // 4


@pytest.mark.parametrize("model_type", [one for one in samples() if one not in UNSEEN])
def test_the_cache_is_the_librarys(model_type: str) -> None:
    sample = samples()[model_type][0]
    model = read_config(sample.config, "config", "model")
    if "past" in model.settings:
        assert kept(sample) == ours(model)
    else:
        assert ours(model) == 0


def test_exceptions_are_families() -> None:
    assert set(UNSEEN) <= set(samples())
