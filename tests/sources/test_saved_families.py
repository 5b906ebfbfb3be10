"""What the public implementation saves of a small model of every family, against what its config implies."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from library import needs_library
from samples import CAUSAL, samples
from thirds import thirds

from assay.readings.check import Difference, check
from assay.readings.tensors import tensors
from assay.sources.checkpoints import read_checkpoint
from assay.sources.families import FAMILIES
from assay.sources.huggingface import read_config

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
# a tower of 300 million parameters is not written: its names are those of `test_mobile_families`
UNWRITTEN = ("gemma3n",)


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
@pytest.mark.parametrize("model_type", thirds(sorted(set(FAMILIES) - set(UNWRITTEN))))
def test_saved_files_hold_what_the_config_implies(model_type: str, tmp_path: Path) -> None:
    if model_type not in samples():
        pytest.skip("no class of the library")
    try:
        config = saved(model_type, tmp_path)
    except (ImportError, ValueError, AttributeError, KeyError) as error:
        pytest.skip(f"the library does not build it by itself: {error!r}")
    model = read_config(config, "config", "model")
    tensors = read_checkpoint(str(tmp_path)).tensors
    held = {tensor.name: tensor.shape for tensor in tensors if tensor.shape is not None}
    skipped = UNLIKE.get(model_type, ())
    found = [one for one in check(model, held).differences if not any(part in one.name for part in skipped)]
    assert not found, "\n".join(map(told, found))
    lost = next(name for name in sorted(held) if len(held[name]) == 2 and not any(part in name for part in skipped))
    less = check(model, {name: shape for name, shape in held.items() if name != lost})
    grown = check(model, {**held, lost: (*held[lost], 2)})
    missed = [(one.name, one.expected) for one in less.differences if one.what == "missing"]
    assert held[lost] in [shape for _, shape in missed], f"{lost} is gone: {missed}"  # under whichever of its names
    assert lost in {one.name for one in grown.differences if one.what == "shape"}


def test_what_a_file_keeps_under_its_other_name_alone() -> None:
    """A shared bias, a shared table; a tensor of no elements; the same of another shape is missing all the same."""
    sizes = {
        "vocab_size": 9,
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 4,
    }
    model = read_config({"model_type": "roberta", **sizes}, "config", "model")
    whole = {entry.path.replace("{i}", "0"): entry.shape for entry in tensors(model)}
    shared = {name: shape for name, shape in whole.items() if name != "lm_head.bias"}
    assert check(model, whole).differences == ()
    assert check(model, {**shared, "lm_head.decoder.bias": (9,)}).differences == ()
    assert check(model, {**whole, "roberta.embeddings.spare": (0, 8)}).differences == ()
    (missing, unexpected) = check(model, {**shared, "lm_head.decoder.bias": (8,)}).differences
    assert (missing.what, missing.name) == ("missing", "lm_head.bias")
    assert (unexpected.what, unexpected.name) == ("unexpected", "lm_head.decoder.bias")


def test_projections_that_files_pack_have_one_matrix() -> None:
    """Lara's queries, keys, values, gates and two gates of a head, in one: 2 x 2 x 5 + 2 x 6 x 7 + 2 x 6 rows."""
    delta = {"linear_num_key_heads": 2, "linear_num_value_heads": 6, "linear_key_head_dim": 5}
    config = {"model_type": "lara_mini", **delta, "linear_value_head_dim": 7, "num_hidden_layers": 1}
    entries = tensors(read_config(config, "config", "model"))
    (packed,) = (one for entry in entries for one in entry.checkpoint if "in_proj" in one.path)
    assert packed.path == "model.layers.{i}.linear_attn.in_proj.weight"
    assert packed.shape == (2 * 2 * 5 + 2 * 6 * 7 + 2 * 6, 1024)
    assert packed.matrices == (1, *packed.shape)


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "switch_transformers", "num_sparse_encoder_layers": 3, "encoder_sparse_step": 4},
        {"model_type": "gemma4_text", "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 262144},
        {"model_type": "esm", "vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32, "rope_theta": 10000.0},
    ],
    ids=lambda config: str(config["model_type"]),
)
def test_keys_that_the_library_writes_beside(config: dict[str, Any]) -> None:
    assert read_config(config, "config", "model").family == config["model_type"]


@needs_library
def test_names_of_files_that_hold_a_model_of_images_and_sounds() -> None:
    """Inkling's text model was published within one: the library's renamings lead from our names to its own."""
    from transformers.conversion_mapping import get_checkpoint_conversion_mapping

    renamings = get_checkpoint_conversion_mapping("inkling_mm_model")
    sample = samples()["inkling_text"][0]
    entries = tensors(read_config(sample.config, "config", "model"))
    found = set()
    for entry in entries:
        for one in entry.checkpoint:
            name = one.path.replace("{i}", "3")
            for renaming in renamings:
                name, _ = renaming.rename_source_key(name)
            found.add(name)
    wanted = {entry.path.replace("model.", "model.language_model.", 1).replace("{i}", "3") for entry in entries}
    # of halves in one tensor the library's table has the first name
    assert found == {name for name in wanted if ".up_proj" not in name}
    shapes = {one.path: one.shape for entry in entries for one in entry.checkpoint}
    assert shapes["model.llm.layers.{i}.mlp.w13_dn.weight"] == (160, 64)
    assert shapes["model.llm.layers.{i}.mlp.shared_experts.shared_w13_weight"] == (2, 48, 64)
    assert shapes["model.llm.layers.{i}.mlp.experts.w13_weight"] == (8, 48, 64)
