"""Checkpoints as the library writes them, read by the names of files; and what is wrong with others, in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from execution import twins
from execution.families import CAUSAL, CLASSES, CONFIGS, PAIRED, SMALL
from execution.twins import torch

import assay

safetensors = pytest.importorskip("safetensors.torch")


def written(model_type: str, folder: Path, **more: Any) -> Any:
    """The library's model of a small config, saved to a folder."""
    their = twins.theirs({"model_type": model_type, **CONFIGS[model_type]}, CLASSES[model_type])
    their.save_pretrained(folder, **more)
    return their


def outputs(model: Any, own: Any) -> tuple[Any, Any]:
    """What both make of the same tokens."""
    given = twins.ids(model)
    paired = model.config.is_encoder_decoder
    with torch.no_grad():
        expected = model(given, decoder_input_ids=given) if paired else model(given)
        return own(given, given) if paired else own(given), expected.logits


@pytest.mark.parametrize("model_type", CONFIGS)
def test_a_folder_is_a_model(model_type: str, tmp_path: Path) -> None:
    their = written(model_type, tmp_path)
    own = assay.build(assay.load(tmp_path))
    assert own.load(tmp_path) == ()
    twins.agree(*outputs(their, own))


@pytest.mark.parametrize("model_type", ["llama", "qwen3_moe"])
def test_files_of_an_index(model_type: str, tmp_path: Path) -> None:
    their = written(model_type, tmp_path, max_shard_size="40KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    own = assay.build(assay.load(tmp_path))
    assert own.load(tmp_path) == ()
    twins.agree(*outputs(their, own))


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    model = assay.load({"model_type": "llama", **SMALL})
    first, second = assay.build(model, seed=1), assay.build(model, seed=2)
    given = torch.arange(9)[None]
    assert not torch.equal(first(given), second(given))
    first.save(tmp_path / "model.safetensors")
    assert second.load(tmp_path / "model.safetensors") == ()
    assert torch.equal(first(given), second(given))


def test_tensors_that_nothing_needs_are_named(tmp_path: Path) -> None:
    own = assay.build(assay.load({"model_type": "llama", **SMALL}), seed=1)
    state = {name: tensor.clone() for name, tensor in own.state_dict().items()}
    safetensors.save_file(state | {"model.extra": torch.ones(2)}, str(tmp_path / "model.safetensors"))
    assert own.load(tmp_path) == ("model.extra",)


NORM = "model.norm.weight"


def without(state: dict[str, Any]) -> dict[str, Any]:
    return {name: tensor for name, tensor in state.items() if name != NORM}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without, rf"{NORM} of shape 32 is not there"),
        (lambda state: state | {NORM: torch.ones(33)}, rf"{NORM} has shape 33; it must be 32"),
        (
            lambda state: {"a": torch.ones(1)},
            r"model.embed_tokens.weight of shape 101x32 is not there, nor are 20 more",
        ),
    ],
)
def test_what_does_not_fit(change: Any, says: str, tmp_path: Path) -> None:
    own = assay.build(assay.load({"model_type": "llama", **SMALL}), seed=1)
    state = {name: tensor.clone() for name, tensor in own.state_dict().items()}
    safetensors.save_file(change(state), str(tmp_path / "model.safetensors"))
    with pytest.raises(assay.BuildError, match=says):
        own.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("model.safetensors", "no header", "no safetensors file can be read there"),
        ("model.safetensors.index.json", "{}", "weight_map is missing"),
        ("model.safetensors.index.json", '{"weight_map": {"a": "gone.safetensors"}}', "gone.safetensors"),
        ("notes.txt", "", "no safetensors file is there"),
    ],
)
def test_bad_files(name: str, text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    own = assay.build(assay.load({"model_type": "llama", **SMALL}), seed=1)
    with pytest.raises(assay.BuildError, match=says):
        own.load(tmp_path)


@pytest.mark.parametrize("model_type", CAUSAL)
def test_greedy_text_is_the_library_s(model_type: str) -> None:
    their = twins.theirs({"model_type": model_type, **CONFIGS[model_type]})
    own = twins.ours(their)
    given = twins.ids(their, 6)[:1]
    expected = their.generate(given, max_new_tokens=8, do_sample=False, eos_token_id=None, pad_token_id=0)
    assert own.generate(given, 8).tolist() == expected.tolist()
    assert own.generate(given, 8, cached=False).tolist() == expected.tolist()


@pytest.mark.parametrize("model_type", PAIRED)
def test_greedy_text_of_pairs(model_type: str) -> None:
    their = twins.theirs({"model_type": model_type, **CONFIGS[model_type]}, CLASSES[model_type])
    own = twins.ours(their)
    given = twins.ids(their, 7)[:1]
    expected = their.generate(given, max_new_tokens=8, do_sample=False, eos_token_id=None, num_beams=1)
    start = torch.tensor([[their.config.decoder_start_token_id]])
    assert own.generate(start, 8, given).tolist() == expected.tolist()
    assert own.generate(start, 8, given, cached=False).tolist() == expected.tolist()


def test_text_ends_and_draws() -> None:
    own = assay.build(assay.load({"model_type": "llama", **SMALL}), seed=3)
    given = torch.tensor([[5, 6, 7], [8, 9, 10]])
    plain = own.generate(given, 12)
    stop = int(plain[0, 5])
    ended = own.generate(given, 12, stop=stop)
    at = plain[0].tolist().index(stop, 3)
    assert ended[0, : at + 1].tolist() == plain[0, : at + 1].tolist()
    assert set(ended[0, at:].tolist()) == {stop}
    drawn = [own.generate(given, 12, temperature=2.0, seed=seed).tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert own.generate(given, 12, temperature=1.0, top=1, seed=4).tolist() == plain.tolist()
    with pytest.raises(assay.SettingError, match="temperature -1"):
        own.generate(given, 2, temperature=-1)
    with pytest.raises(assay.BuildError, match="does not generate"):
        assay.build(assay.load("bert-base"), device="meta").generate(given.to("meta"), 2)


def test_padded_texts_go_on_as_alone() -> None:
    own = assay.build(assay.load({"model_type": "llama", **SMALL}), seed=3)
    short, long = [11, 12, 13], [21, 22, 23, 24, 25]
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    both = own.generate(torch.tensor([[0, 0, *short], long]), 6, mask=mask)
    assert both[0, 2:].tolist() == own.generate(torch.tensor([short]), 6)[0].tolist()
    assert both[1].tolist() == own.generate(torch.tensor([long]), 6)[0].tolist()


def named(change: Any) -> Any:
    """A change of every tensor's name."""
    return lambda state: {change(name): tensor for name, tensor in state.items()}


BART = {"model_type": "bart", **CONFIGS["bart"]}
ENCODER = {"model_type": "bert", **CONFIGS["bert"]}
LLAMA = {"model_type": "llama", **SMALL}


@pytest.mark.parametrize(
    ("config", "change"),
    [
        (LLAMA, named(lambda name: name.removeprefix("model."))),
        (LLAMA, named(lambda name: f"language.{name}")),
        ({"model_type": "gpt2", **CONFIGS["gpt2"]}, named(lambda name: name.removeprefix("transformer."))),
        (
            BART,
            lambda state: {k.removeprefix("model."): v for k, v in state.items() if k != "final_logits_bias"},
        ),
        (
            ENCODER,
            named(
                lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                    "LayerNorm.bias", "LayerNorm.beta"
                )
            ),
        ),
    ],
    ids=["no first word", "one more word", "gpt2 as published", "bart as published", "names of TensorFlow"],
)
def test_names_as_files_have_them(config: dict[str, Any], change: Any, tmp_path: Path) -> None:
    first, second = (assay.build(assay.load(config), seed=seed) for seed in (1, 2))
    with torch.no_grad():
        for buffer in second.buffers():
            buffer.fill_(5.0)  # what files may lack is set all the same
    state = {name: tensor.clone() for name, tensor in first.state_dict().items()}
    changed = change(state)
    assert changed.keys() != state.keys()
    safetensors.save_file(changed, str(tmp_path / "model.safetensors"))
    assert second.load(tmp_path) == ()
    loaded = second.state_dict()
    assert all(torch.equal(tensor, loaded[name]) for name, tensor in first.state_dict().items())


def test_a_file_says_which_tensors_are_one(tmp_path: Path) -> None:
    model = assay.load(LLAMA | {"tie_word_embeddings": True})
    first, second = assay.build(model, seed=1), assay.build(model, seed=2)
    state = {name: tensor.clone() for name, tensor in first.state_dict().items()}
    state["lm_head.weight"] = state.pop("model.embed_tokens.weight")
    path = tmp_path / "model.safetensors"
    safetensors.save_file(state, str(path), metadata={"model.embed_tokens.weight": "lm_head.weight"})
    assert second.load(path) == ()
    assert torch.equal(first(torch.arange(9)[None]), second(torch.arange(9)[None]))


def test_an_index_by_its_own_path(tmp_path: Path) -> None:
    first, second = (assay.build(assay.load(LLAMA), seed=seed) for seed in (1, 2))
    first.save(tmp_path / "part-1.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    names = first.state_dict()
    index.write_text(json.dumps({"weight_map": dict.fromkeys(names, "part-1.safetensors")}))
    assert second.load(index) == ()
    assert torch.equal(first(torch.arange(9)[None]), second(torch.arange(9)[None]))
    index.write_text(json.dumps({"weight_map": dict.fromkeys(names, "../part-1.safetensors")}))
    with pytest.raises(assay.BuildError, match="it must name files of its folder"):
        second.load(index)


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn], ids=str)
def test_numbers_that_need_a_scale_are_no_weights(dtype: Any, tmp_path: Path) -> None:
    own = assay.build(assay.load(LLAMA), seed=1)
    state = {name: tensor.clone() for name, tensor in own.state_dict().items()}
    name = "model.layers.0.self_attn.k_proj.weight"
    safetensors.save_file(state | {name: state[name].to(dtype)}, str(tmp_path / "model.safetensors"))
    said = str(dtype).removeprefix("torch.")
    with pytest.raises(assay.BuildError, match=f"{name} is of {said}: quantized weights are not run"):
        own.load(tmp_path)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    own = assay.build(assay.load(LLAMA), seed=1)
    with pytest.raises(assay.BuildError, match="it cannot be written"):
        own.save(tmp_path / "no" / "folder" / "model.safetensors")
