"""What the public implementation saves of a small model of every family, against what its config implies."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from library import has_library
from samples import CAUSAL, samples

from assay.readings.check import Difference, check
from assay.sources.checkpoints import read_checkpoint
from assay.sources.families import FAMILIES
from assay.sources.huggingface import read_config

needs_library = pytest.mark.skipif(not has_library(), reason="torch and transformers are not installed")

# names that the library writes anew otherwise than the files it read had them, or does not write: what is not compared
UNLIKE = {
    # sines and cosines, kept as tables and saved by nobody
    "marian": ("embed_positions",),
    # two old names that became one: a norm of keys and values within attention, and of what is compressed
    "deepseek_v4": (".attn.kv_norm.", ".attn.norm."),
    # the name of sparse layers is put where dense ones had another
    "kimi_linear": ("mlp", "block_sparse_moe"),
    # the tower's old word for layers is put into the text model
    "kimi_k25": ("language_model.model.", "vision_tower.patch_embed.proj", "vision_tower.encoder.patch_embed.proj"),
    # one convolution is split in three of the same size, whatever queries, keys and values have; a norm is renamed
    # in layers of attention too
    "olmo_hybrid": ("_conv1d", "post_attention_layernorm", "feedforward_layer_norm"),
    # the experts without work are saved as well
    "longcat_flash": ("experts",),
}
# the names of published files are not described: those of the implementation are
OWN_NAMES = ("inkling_text", "inkling2_text", "inkling2_loop_text")


def saved(model_type: str, folder: Path) -> Any:
    """The library's model of a small config, saved; its config as it is written beside."""
    import torch
    import transformers

    sample = next(one for one in samples()[model_type] if (model_type, one.auto) != ("mllama", CAUSAL))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = transformers.AutoConfig.for_model(**sample.config)
        torch.manual_seed(0)
        cls = getattr(transformers, sample.auto)
        model = cls.from_config(made) if sample.auto.startswith("Auto") else cls._from_config(made)
        model.save_pretrained(folder)
    return json.loads((folder / "config.json").read_text())


def told(one: Difference) -> str:
    return f"{one.what} {one.name}: {one.expected} here, {one.held} there"


@needs_library
@pytest.mark.parametrize("model_type", sorted(set(FAMILIES) - set(OWN_NAMES)))
def test_saved_files_hold_what_the_config_implies(model_type: str, tmp_path: Path) -> None:
    if model_type not in samples():
        pytest.skip("no class of the library")
    try:
        config = saved(model_type, tmp_path)
    except (ImportError, ValueError, AttributeError, KeyError) as error:
        pytest.skip(f"the library does not build it by itself: {error!r}")
    model = read_config(config, "config", "model")
    held = {tensor.name: tensor.shape for tensor in read_checkpoint(str(tmp_path)).tensors}
    skipped = UNLIKE.get(model_type, ())
    found = [one for one in check(model, held).differences if not any(part in one.name for part in skipped)]
    assert not found, "\n".join(map(told, found))
    lost = next(name for name in sorted(held) if len(held[name]) == 2 and not any(part in name for part in skipped))
    less = check(model, {name: shape for name, shape in held.items() if name != lost})
    grown = check(model, {**held, lost: (*held[lost], 2)})
    missed = [(one.name, one.expected) for one in less.differences if one.what == "missing"]
    assert held[lost] in [shape for _, shape in missed], f"{lost} is gone: {missed}"  # under whichever of its names
    assert lost in {one.name for one in grown.differences if one.what == "shape"}
