"""The public implementation as a witness: `transformers` on the meta device, no weights, no network."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest
from mobilenet import stand_in

from assay.readings.tensors import tensors
from assay.spec import Model

Ledger = dict[str, tuple[tuple[int, ...], int]]


def collapse(name: str) -> str:
    """A parameter's name with its first number, the layer, as {i}; of layers in blocks the second.

    A resampler's blocks are layers of two parts.
    """
    if "{i}" in name:
        return name
    if re.search(r"(?<!resampler\.)\bblocks\.\d+\.\d+\.", name):
        return re.sub(r"(\bblocks\.\d+)\.\d+\.", r"\1.{i}.", name)
    return re.sub(r"\.\d+\.", ".{i}.", name, count=1)


def prepare(config: dict[str, Any]) -> None:
    """What the library needs besides to build the model of a config."""
    if config["model_type"] == "gemma3n":
        stand_in()


def built(config: dict[str, Any], auto: str = "AutoModelForCausalLM") -> Any:
    """The library's model of a config, on the meta device."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    prepare(config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = transformers.AutoConfig.for_model(**config)
        with torch.device("meta"):
            cls = getattr(transformers, auto)
            return cls.from_config(made) if auto.startswith("Auto") else cls._from_config(made)


def their_ledger(model: Any) -> Ledger:
    """Name with the layer collapsed -> (shape, occurrences), shared parameters once.

    A tied table has the name of the embedding, also where the head comes first, unless both halves share it.
    """
    ledger: Ledger = {}
    try:
        table = model.get_input_embeddings()
    except NotImplementedError:
        table = None
    names = {id(p): name for name, p in reversed(list(model.named_parameters(remove_duplicate=False)))}
    for path, module in model.named_modules():
        holds = module is table and path and hasattr(module, "weight")
        if holds and not names[id(module.weight)].endswith("shared.weight"):
            names[id(module.weight)] = f"{path}.weight"
    for name, parameter in ((names[id(p)], p) for p in model.parameters()):
        if not parameter.numel():  # of no experts, say
            continue
        key = collapse(name)
        shape = tuple(parameter.shape)
        while key in ledger and ledger[key][0] != shape:  # layers of one name and different shapes
            key += "'"
        ledger[key] = (shape, ledger.get(key, (shape, 0))[1] + 1)
    return ledger


def spelled(path: str, copies: int) -> list[str]:
    """A path that stands for a tensor of each head or expert, as the names of all of them."""
    pattern = r"\{(?!i\})[^{}]+\}"
    return [re.sub(pattern, str(j), path) for j in range(copies)] if re.search(pattern, path) else [path]


def our_ledger(model: Model) -> Ledger:
    """The same of our description."""
    ledger: Ledger = {}
    for entry in tensors(model):
        if entry.buffer:
            continue
        paths = spelled(entry.path, entry.times // max(1, len(entry.layers)))
        for key in map(collapse, paths):
            while key in ledger and ledger[key][0] != entry.shape:
                key += "'"
            ledger[key] = (entry.shape, ledger.get(key, (entry.shape, 0))[1] + entry.times // len(paths))
    return ledger


def differences(ours: Ledger, theirs: Ledger) -> list[str]:
    """Every tensor that one side lacks or has in another shape or number, one line each."""
    lines = []
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            lines.append(f"{name}: ours {ours.get(name)}, theirs {theirs.get(name)}")
    return lines


@lru_cache(maxsize=1)
def has_library() -> bool:
    """True where torch and transformers can be imported."""
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError:
        return False
    return True


needs_library = pytest.mark.skipif(not has_library(), reason="needs torch and transformers")


def inputs(config: Any, tokens: int, source: int | None = None) -> dict[str, Any]:
    """What the library's model is called with: an encoder-decoder has `source` tokens, or frames of sound, besides."""
    import torch

    ids = torch.zeros((1, tokens), dtype=torch.long)
    if config.model_type == "voxtral_realtime":  # a stretch of sound for each word
        frames = torch.zeros((1, config.audio_config.num_mel_bins, config.audio_length_per_tok * tokens))
        return {"input_ids": ids, "input_features": frames, "num_delay_tokens": config.default_num_delay_tokens}
    if not config.is_encoder_decoder:
        return {"input_ids": ids}
    m = tokens if source is None else source
    if hasattr(config, "feature_projection_input_dim"):
        features = torch.zeros((1, m, config.feature_projection_input_dim))
        return {"input_features": features, "decoder_input_ids": ids}
    if hasattr(config, "num_mel_bins"):
        return {"input_features": torch.zeros((1, config.num_mel_bins, m)), "decoder_input_ids": ids}
    return {"input_ids": torch.zeros((1, m), dtype=torch.long), "decoder_input_ids": ids}


def runnable(config: dict[str, Any], auto: str = "AutoModelForCausalLM") -> Any:
    """The library's model of a small config, with weights.

    Eager attention and batched experts, for the stock counter has no rule for the fused ones.
    """
    transformers = pytest.importorskip("transformers")
    prepare(config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = transformers.AutoConfig.for_model(**config)
        made._attn_implementation = "eager"
        made._experts_implementation = "batched_mm"
        cls = getattr(transformers, auto)
        build = cls.from_config if auto.startswith("Auto") else cls._from_config
        return build(made, attn_implementation="eager").eval().requires_grad_(False)


def flops_of(run: Callable[..., Any], *given: Any, **named: Any) -> int:
    """2 per multiply-add, counted by PyTorch while a model, or a part of one, is called."""
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    with warnings.catch_warnings(), FlopCounterMode(display=False) as counter, torch.no_grad():
        warnings.simplefilter("ignore")
        run(*given, **named)
    return int(counter.get_total_flops())


def their_flops(
    config: dict[str, Any], tokens: int, auto: str = "AutoModelForCausalLM", source: int | None = None
) -> int:
    """The same of a prefill of the library's model of a small config."""
    model = runnable(config, auto)
    return flops_of(model, **inputs(model.config, tokens, source), use_cache=False)


def check_against_library(
    config: dict[str, Any], tokens: int = 0, auto: str = "AutoModelForCausalLM", source: int | None = None
) -> None:
    """Our reading of a config equals the library's model: every tensor, the total, FLOPs where `tokens` is given."""
    from assay.readings.count import count
    from assay.sources.huggingface import read_config

    ours, theirs = read_config(config, "config", "model"), built(config, auto)
    found = differences(our_ledger(ours), their_ledger(theirs))
    assert not found, "\n".join(found)
    counted = count(ours, tokens=max(tokens, 1), source=source)
    total = sum(p.numel() for p in theirs.parameters())
    assert counted.parameters.total == total, f"parameters: ours {counted.parameters.total}, theirs {total}"
    if tokens:
        flops = their_flops(config, tokens, auto, source)
        assert counted.flops.total == flops, f"FLOPs: ours {counted.flops.total}, theirs {flops}"
