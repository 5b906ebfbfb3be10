"""Checkpoints as the library writes them, read by the names of files; and what is wrong with others, in one line."""

from __future__ import annotations

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
