"""A training step of what reads more than a text: sources, images, and choices for a whole text."""

from __future__ import annotations

from typing import Any

import pytest

import assay

PLAIN: dict[str, Any] = {"policy": "ours", "precision": "fp32", "device": "cpu", "workspace": 0}
LAYERS = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
TEXT = {"model_type": "llama", "hidden_size": 32, "vocab_size": 110, **LAYERS}
SIGHT = {"model_type": "siglip_vision_model", "hidden_size": 24, "image_size": 32, "patch_size": 8, **LAYERS}
SEEING: dict[str, dict[str, Any]] = {
    "llava": {"vision_feature_layer": -2, "vision_config": SIGHT, "text_config": TEXT, "image_token_index": 100},
    "idefics3": {"scale_factor": 2, "vision_config": SIGHT, "text_config": TEXT, "image_token_id": 100},
}


@pytest.mark.parametrize("attention", ["plain", "fused"])
@pytest.mark.parametrize(("name", "source"), [("t5-small", 100), ("whisper-tiny", 1000)])
def test_a_source_that_is_no_target(name: str, source: int, attention: str) -> None:
    """What autograd keeps beside the loss is `assay.training`'s; ids of the encoder, of the decoder and labels."""
    model = assay.load(name)
    step = assay.training_memory(model, 2, 32, source=source, attention=attention, **PLAIN)
    kept = assay.training(model, 2, 32, source=source, attention=attention)
    assert step.saved == kept.saved
    assert step.work.flops == kept.forward + kept.backward - (step.work.again if attention == "fused" else 0)
    read = 8 * source if name == "t5-small" else 4 * 80 * source
    assert step.timeline[0].parts["inputs"] == 2 * (read + 8 * (32 + 32))
    assert step.setting.source == source
    assert step.saved != assay.training_memory(model, 2, 32, attention=attention, **PLAIN).saved


@pytest.mark.parametrize("name", SEEING)
def test_images_in_a_text(name: str) -> None:
    """Autograd, of a model that was built, keeps as much; pixels, cut into patches there, are inputs here."""
    torch = pytest.importorskip("torch")
    model = assay.load({"model_type": name, **SEEING[name]})
    net = assay.build(model, seed=0)
    pixels = torch.randn(2, 3, 32, 32)
    each = net(pixels=pixels).shape[1]
    text = torch.full((2, each + 7), 5)
    text[0, 2 : 2 + each] = text[1, 4 : 4 + each] = 100
    ran = assay.measure(net, text, pixels=pixels, backward=True)
    kept = assay.training(model, 2, each + 7, images=1, attention="fused")
    step = assay.training_memory(model, 2, each + 7, images=1, attention="fused", **PLAIN)
    assert (kept.forward, kept.backward) == (ran.flops.forward, ran.flops.backward)
    assert step.saved == kept.saved == ran.saved.activations - 4 * 2 * 3 * 32 * 32
    assert step.work.flops + step.work.again == ran.flops.forward + ran.flops.backward
    # pixels, the ids of the text and its labels
    assert step.timeline[0].parts["inputs"] == 4 * 2 * 3 * 32 * 32 + 2 * 8 * 2 * (each + 7)


@pytest.mark.parametrize("name", SEEING)
def test_a_tower_without_images_keeps_nothing(name: str) -> None:
    torch = pytest.importorskip("torch")
    model = assay.load({"model_type": name, **SEEING[name]})
    ran = assay.measure(assay.build(model, seed=0), torch.zeros(2, 9, dtype=torch.long), backward=True)
    assert assay.training(model, 2, 9, attention="fused").saved == ran.saved.activations
    assert assay.training_memory(model, 2, 9, attention="fused", **PLAIN).saved == ran.saved.activations


HEARING = {
    "model_type": "gemma4_audio",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "conv_kernel_size": 3,
    "subsampling_conv_channels": [8, 6],
    "output_proj_dims": 20,
    "use_clipped_linears": False,
}
LOOKING = {**LAYERS, "model_type": "gemma4_vision", "hidden_size": 32, "num_key_value_heads": 2, "head_dim": 12}
GEMMA: dict[str, Any] = {
    "model_type": "gemma4",
    "text_config": {**TEXT, "model_type": "gemma4_text", "head_dim": 8, "hidden_size_per_layer_input": 0},
    "vision_config": {**LOOKING, "patch_size": 4, "use_clipped_linears": False},
    "audio_config": HEARING,
}
SEES = assay.load({key: value for key, value in GEMMA.items() if key != "audio_config"})
HEARS = assay.load({key: value for key, value in GEMMA.items() if key != "vision_config"})


@pytest.mark.parametrize("attention", ["plain", "fused"])
def test_sounds_beside_images(attention: str) -> None:
    """Each tower as where it is the only one, and both together no more than that."""
    both = assay.load(GEMMA)
    reads = assay.load({key: value for key, value in GEMMA.items() if not key.startswith(("audio", "vision"))})

    def figures(model: assay.Model, **asked: Any) -> list[int]:
        kept = assay.training(model, 2, 40, attention=attention, image_tokens=asked.pop("size", None), **asked)
        run = assay.train(model, tokens=80, context=40, image_tokens=kept.setting.image_tokens, **asked)
        assert run.forward == kept.forward
        assert attention == "fused" or run.backward == kept.backward  # a kernel makes scores again
        assert kept.saved is not None
        return [int(figure) for figure in (kept.forward, kept.backward, kept.saved, kept.inputs)]

    alone, seen, heard = figures(reads), figures(SEES, images=2, size=9), figures(HEARS, images=3)
    assert figures(both) == figures(SEES) == figures(HEARS) == alone
    assert figures(both, images=2, size=9) == seen
    assert figures(both, sounds=3) == heard
    sums = [one + other - text for one, other, text in zip(seen, heard, alone, strict=True)]
    assert figures(both, images=2, size=9, sounds=3) == sums
    step = assay.training_memory(both, 2, 40, images=2, image_tokens=9, sounds=3, attention=attention, **PLAIN)
    assert step.saved == sums[2]


def test_work_of_a_sound_by_hand() -> None:
    """Backward, twice the forward work of all products but those with what is given, which needs no gradient."""
    text, heard = assay.training(HEARS, 1, 16), assay.training(HEARS, 1, 16, images=1)
    tower = heard.forward - text.forward
    assert tower == assay.count(HEARS, 1, 16, images=1).flops.by_part["tower"]
    first = 2 * (1500 * 4) * 9 * 8  # a kernel of 3 x 3 at half of 3,000 frames and half of 8 tones, to 8 channels
    distances = 2 * 2 * 13 * 32 * 32  # a matrix of 13 distances, which are given, in each of two layers
    assert heard.backward - text.backward == 2 * tower - first - distances


def test_fit_is_told_of_sources_and_images() -> None:
    told: list[tuple[assay.Model, dict[str, Any]]] = [
        (assay.load("t5-small"), {"source": 100}),
        (assay.load({"model_type": "llava", **SEEING["llava"]}), {"images": 2}),
    ]
    for model, asked in told:
        found = assay.fit(model, "h100", train=True, batch=2, context=64, **asked)
        step = assay.training_memory(model, 2, 64, workspace=0, **asked)
        assert found.need.bytes == step.peak.bytes


@pytest.mark.parametrize(
    ("name", "asked", "says"),
    [
        ("gpt-2", {"source": 9}, "source is 9; GPT-2 has no encoder to give it to"),
        ("gpt-2", {"images": 1}, "images is 1; GPT-2 has no tower to see them"),
        ("t5-small", {"sounds": 1}, "sounds is 1; T5 small has no tower to hear them"),
        ("t5-small", {"image_tokens": 4}, "image tokens is 4; T5 small has no tower"),
        ("t5-small", {"source": 0}, "source is 0; it must be an integer of at least 1"),
    ],
)
def test_what_a_model_cannot_be_given(name: str, asked: dict[str, Any], says: str) -> None:
    model = assay.load(name)
    with pytest.raises(assay.AssayError, match=says):
        assay.training_memory(model, 1, 8, **asked)
    with pytest.raises(assay.AssayError, match=says):
        assay.fit(model, "h100", train=True, context=8, **asked)


def test_images_that_no_text_is_described_to_read() -> None:
    """Idefics' layers look at a tower's result under a name of their own."""
    sight = {"embed_dim": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4}
    more = {"image_size": 24, "patch_size": 8}
    model = assay.load({**TEXT, "model_type": "idefics", "num_hidden_layers": 4, "vision_config": sight | more})
    assert assay.training_memory(model, 1, 8).saved
    said = "images is 1; how the text of config reads what its tower makes"
    for ask in (
        lambda: assay.training_memory(model, 1, 8, images=1),
        lambda: assay.training(model, 1, 8, images=1),
        lambda: assay.train(model, tokens=80, context=8, images=1),
    ):
        with pytest.raises(assay.SettingError, match=said):
            ask()


@pytest.mark.parametrize("policy", ["ours", "transformers"])
def test_an_adapter_of_a_language_for_a_whole_text(policy: str) -> None:
    """Its rows are sorted by language, one product a language, not by what each token chose in one kernel."""
    model = assay.load({**TEXT, "model_type": "xmod", "languages": ["en_XX", "de_DE"], "architectures": []})
    one, two = (assay.training_memory(model, 2, n, policy=policy, attention="fused").saved for n in (32, 64))
    assert 1.9 < two / one < 2.1


def test_what_nobody_knows_is_one_line_that_names_the_model() -> None:
    small = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "vocab_size": 110, "block_size": 16}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_global_tokens": 4}
    model = assay.load({"model_type": "pegasus_x", **small, **heads})
    assert assay.training_memory(model, 1, 32, attention="plain").saved
    with pytest.raises(assay.SettingError, match="what a step of config holds is not known: what training keeps"):
        assay.training_memory(model, 1, 32)


def test_a_matrix_stored_in_rows_and_columns() -> None:
    """A kernel stored by rows and columns is one axis to a product; a tower that has one is trained as any other."""
    sight = {"hidden_size": 24, "num_heads": 4, "depth": 2, "patch_size": 4, "spatial_merge_size": 2, "image_size": 16}
    sight |= {"intermediate_size": 40, "out_hidden_size": 32, "temporal_patch_size": 2}
    text = {**TEXT, "model_type": "glm4v_text", "num_key_value_heads": 2}
    model = assay.load({"model_type": "glm4v", "vision_config": sight, "text_config": text})
    step = assay.training_memory(model, 2, 16, images=1, image_tokens=4, **PLAIN)
    kept = assay.training(model, 2, 16, images=1, image_tokens=4, attention="fused")
    blind = assay.training(model, 2, 16, attention="fused").saved
    assert blind is not None
    assert step.saved == kept.saved
    assert step.saved > blind


def test_layers_that_run_in_turns_that_nobody_says() -> None:
    """What they keep depends on it; the work does not."""
    model = assay.load({"model_type": "funnel", "block_sizes": [2, 2, 2], "block_repeats": [1, 2, 2]})
    why = "block 1 runs 2 times, others too: in which turns is not known"
    with pytest.raises(assay.SettingError, match=f"what a step of config holds is not known: {why}"):
        assay.training_memory(model, 1, 8)
    with pytest.raises(assay.SettingError, match=f"what a step of config keeps is not known: {why}"):
        assay.training(model, 1, 8)
    assert assay.train(model, tokens=80, context=8).forward == 10 * assay.count(model, 1, 8).flops.total


def test_layers_told_by_their_pass_before() -> None:
    """Gradients come back through what each pass has left for the next."""
    model = assay.load({"model_type": "inkling2_loop_text"})
    step, run = assay.training_memory(model, 1, 8, **PLAIN), assay.train(model, tokens=8, context=8)
    assert run.backward == 2 * run.forward
    assert step.work.flops + step.work.again == assay.training(model, 1, 8, attention="fused").flops
