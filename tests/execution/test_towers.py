"""What is seen and heard: encoders of images, a pair that reads sound, models of text beside a tower."""

from __future__ import annotations

from typing import Any

import pytest
from execution import twins
from execution.twins import torch

import assay
from assay.kinds import KINDS

SEES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
}
DINO: dict[str, Any] = {**{key: value for key, value in SEES.items() if key != "intermediate_size"}, "mlp_ratio": 2}
POOLED, LAST, LOGITS = "pooler_output", "last_hidden_state", "logits"
VISION: dict[str, tuple[dict[str, Any], str, str]] = {
    "vit": (SEES, "ViTModel", POOLED),
    "vit, labels": (SEES | {"num_labels": 5}, "ViTForImageClassification", LOGITS),
    "deit": (SEES, "DeiTModel", POOLED),
    "deit, taught": (SEES | {"num_labels": 5}, "DeiTForImageClassificationWithTeacher", LOGITS),
    "beit": (SEES, "BeitModel", POOLED),
    "beit, labels": (SEES | {"num_labels": 5}, "BeitForImageClassification", LOGITS),
    "beit, first": (SEES | {"use_absolute_position_embeddings": True, "use_mean_pooling": False}, "BeitModel", POOLED),
    "vit_msn": (SEES, "ViTMSNModel", LAST),
    "dinov2": (DINO, "Dinov2Model", LAST),
    "dinov2, labels": (DINO | {"num_labels": 5}, "Dinov2ForImageClassification", LOGITS),
    "dinov2_with_registers": (DINO | {"num_register_tokens": 3}, "Dinov2WithRegistersModel", LAST),
    "siglip_vision_model": (SEES, "SiglipVisionModel", POOLED),
    "clip_vision_model": (SEES, "CLIPVisionModel", POOLED),
}


def images(batch: int = 2) -> Any:
    """Random images, 32 x 32."""
    return torch.randn(batch, 3, 32, 32, generator=torch.Generator().manual_seed(3))


def ours(their: Any) -> Any:
    """Our model of the library's class, with its weights."""
    own = assay.build(assay.load(their.config, cls=type(their).__name__)).eval()
    state = their.state_dict()
    own.load_state_dict({name: state[name] for name in own.state_dict()})
    return own


@pytest.mark.parametrize("case", VISION)
def test_images(case: str) -> None:
    config, cls, result = VISION[case]
    their = twins.theirs({"model_type": case.partition(",")[0], **config}, cls)
    own = ours(their)
    with torch.no_grad():
        twins.agree(own(pixels=images()), their(pixel_values=images())[result])
    assert assay.measure(own, pixels=images()).flops.forward == assay.count(own.description, batch=2).flops.total


def test_an_image_may_be_cut_before() -> None:
    own = ours(twins.theirs({"model_type": "vit", **SEES}, "ViTModel"))
    patches = images().unfold(2, 8, 8).unfold(3, 8, 8).permute(0, 2, 3, 1, 4, 5).flatten(1, 2)
    with torch.no_grad():
        assert torch.equal(own(pixels=patches), own(pixels=images()))


def test_what_a_tower_is_given_has_its_axes() -> None:
    own = assay.build(assay.load(twins.theirs({"model_type": "vit", **SEES}, "ViTModel").config), device="meta")
    with pytest.raises(assay.BuildError, match="an image has the axes b p i y z; 3 are given"):
        own(pixels=torch.zeros((3, 32, 32), device="meta"))
    with pytest.raises(assay.BuildError, match="runs on pixels: give it by that name"):
        own(torch.zeros((1, 3), dtype=torch.long, device="meta"))
    with pytest.raises(assay.BuildError, match="axis p has 4 elements, and the description says 16"):
        own(pixels=torch.zeros((1, 3, 16, 16), device="meta"))


READS: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 101,
}


@pytest.mark.parametrize(("model_type", "end"), [("clip", 2), ("clip", 7), ("siglip", None)])
def test_both_towers_of_images_and_texts(model_type: str, end: int | None) -> None:
    reads = READS | ({} if end is None else {"eos_token_id": end, "bos_token_id": 0, "pad_token_id": 1})
    config: dict[str, Any] = {"model_type": model_type, "text_config": reads, "vision_config": SEES}
    config |= {"projection_dim": 24} if model_type == "clip" else {}
    their = twins.theirs(config, "AutoModel")
    own = twins.ours(their)
    text = twins.ids(their)
    if end == 7:
        text[text == end] = 8
        text[0, 4] = text[1, 9] = text[1, 11] = end
    with torch.no_grad():
        seen, read = (f.pooler_output for f in (their.get_image_features(images()), their.get_text_features(text)))
        twins.agree(own(pixels=images()), seen)
        twins.agree(own(text), read)
    with pytest.raises(assay.BuildError, match="give tokens or pixels, not both"):
        own(text, pixels=images())


HEARS: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 40,
    "vocab_size": 101,
    "num_mel_bins": 8,
    "max_source_positions": 12,
    "max_target_positions": 30,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
}


def test_sound() -> None:
    """Whisper: frames, two convolutions, an encoder; a decoder step by step, and what it generates."""
    their = twins.theirs({"model_type": "whisper", **HEARS}, "AutoModelForSpeechSeq2Seq")
    own = twins.ours(their)
    frames = torch.randn(2, 24, 8, generator=torch.Generator().manual_seed(3))
    target = twins.ids(their, 7)

    def expected(tokens: Any) -> Any:
        return their(input_features=frames.transpose(1, 2), decoder_input_ids=tokens).logits

    with torch.no_grad():
        twins.agree(own(target, frames), expected(target))
        cache = own.cache()
        steps = [own(target[:, :3], frames, cache=cache)]
        steps += [own(target[:, i : i + 1], cache=cache) for i in range(3, 7)]
        twins.agree(torch.cat(steps, 1), expected(target))
        text = target[:, :1]
        for _ in range(8):
            text = torch.cat((text, expected(text)[:, -1:].argmax(-1)), 1)
    assert own.generate(target[:, :1], 8, frames).tolist() == text.tolist()
    said = assay.count(own.description, batch=2, tokens=7, source=24).flops.total
    assert assay.measure(own, target, frames).flops.forward == said


TEXT: dict[str, Any] = READS | {"num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TURNED = TEXT | {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]}}
QWEN = {"image_token_id": 99, "video_token_id": 100, "vision_start_token_id": 98, "vision_end_token_id": 97}
PATCHED = {"depth": 2, "hidden_size": 32, "num_heads": 4, "patch_size": 8}
CLIP, SIGLIP = ({"model_type": f"{name}_vision_model", **SEES} for name in ("clip", "siglip"))
TURNS = "axial rotary positions"
BESIDE: dict[str, tuple[dict[str, Any], str | None]] = {
    "llava": ({"vision_config": CLIP, "text_config": TEXT | {"model_type": "llama"}, "image_token_index": 100}, None),
    "llava_next": (
        {"vision_config": CLIP, "text_config": TEXT | {"model_type": "llama"}, "image_token_index": 100},
        None,
    ),
    "paligemma": (
        {
            "vision_config": SIGLIP,
            "text_config": TEXT | {"model_type": "gemma", "head_dim": 8},
            "image_token_index": 100,
            "projection_dim": 32,
        },
        None,
    ),
    "gemma3": (
        {
            "vision_config": SIGLIP,
            "text_config": TEXT | {"model_type": "gemma3_text", "head_dim": 8, "sliding_window": 5},
            "mm_tokens_per_image": 4,
            "image_token_index": 100,
        },
        None,
    ),
    "mistral3": (
        {
            "vision_config": {"model_type": "pixtral", **SEES},
            "text_config": TEXT | {"model_type": "mistral"},
            "image_token_index": 100,
            "spatial_merge_size": 2,
        },
        TURNS,
    ),
    "idefics3": (
        {
            "vision_config": SEES,
            "text_config": TEXT | {"model_type": "llama"},
            "image_token_id": 100,
            "scale_factor": 2,
        },
        None,
    ),
    "internvl": (
        {
            "vision_config": SEES | {"image_size": [32, 32], "patch_size": [8, 8]},
            "text_config": TEXT | {"model_type": "qwen2"},
            "image_token_id": 100,
        },
        None,
    ),
    "aya_vision": (
        {
            "vision_config": SIGLIP,
            "text_config": TEXT | {"model_type": "cohere2", "sliding_window": 5},
            "image_token_index": 100,
        },
        None,
    ),
    "qwen2_vl": (
        {"vision_config": PATCHED | {"embed_dim": 32, "mlp_ratio": 2}, "text_config": TURNED, **QWEN},
        TURNS,
    ),
    "qwen2_5_vl": (
        {
            "vision_config": PATCHED | {"intermediate_size": 48, "out_hidden_size": 32, "fullatt_block_indexes": [1]},
            "text_config": TURNED,
            **QWEN,
        },
        TURNS,
    ),
    "qwen3_vl": (
        {
            "vision_config": PATCHED
            | {
                "intermediate_size": 48,
                "out_hidden_size": 32,
                "num_position_embeddings": 16,
                "deepstack_visual_indexes": [0, 1],
            },
            "text_config": TURNED | {"head_dim": 8},
            **QWEN,
        },
        TURNS,
    ),
}


@pytest.mark.parametrize("model_type", BESIDE)
def test_text_beside_a_tower(model_type: str) -> None:
    """Without an image the text model is what runs; a tower that is not run says why when it is asked for."""
    config, why = BESIDE[model_type]
    their = twins.theirs({"model_type": model_type, **config}, "AutoModelForImageTextToText")
    own = twins.ours(their)
    text = torch.randint(3, 90, (2, 13), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = their(input_ids=text).logits
        twins.agree(own(text), expected)
        cache = own.cache()
        steps = [own(text[:, :6], cache=cache), *(own(text[:, i : i + 1], cache=cache) for i in range(6, 13))]
        twins.agree(torch.cat(steps, 1), expected)
    assert assay.measure(own, text).flops.forward == assay.count(own.description, batch=2, tokens=13).flops.total
    if why is not None:
        with pytest.raises(assay.BuildError, match=f"is run without its tower: .*{why}"):
            own(pixels=images())


@pytest.mark.parametrize("model_type", [name for name, (_, why) in BESIDE.items() if why is None])
def test_a_tower_beside_a_text(model_type: str) -> None:
    their = twins.theirs({"model_type": model_type, **BESIDE[model_type][0]}, "AutoModelForImageTextToText")
    own = twins.ours(their)
    with torch.no_grad():
        if model_type == "llava_next":  # which joins the tiles of an image afterwards
            strategy = their.config.vision_feature_select_strategy
            tiles = their.model.vision_tower(images(), output_hidden_states=True)
            hidden = tiles.hidden_states[their.config.vision_feature_layer]
            expected = their.model.multi_modal_projector(hidden[:, 1:] if strategy == "default" else hidden)
        else:
            tiled = model_type == "idefics3"  # an image is several there
            features = their.get_image_features(images()[:, None] if tiled else images())
            expected = features.pooler_output if hasattr(features, "pooler_output") else features
            expected = torch.stack(list(expected)) if isinstance(expected, (tuple, list)) else expected
        twins.agree(own(pixels=images()), expected)


IN_A_TEXT = ("llava", "idefics3", "internvl", "aya_vision")


@pytest.mark.parametrize("model_type", IN_A_TEXT)
def test_images_in_a_text(model_type: str) -> None:
    """What a tower makes stands in the places of an image's tokens, in the first pass; the work is what is counted."""
    key = "image_token_id" if model_type in ("idefics3", "internvl") else "image_token_index"
    config = BESIDE[model_type][0] | {key: 100}
    their = twins.theirs({"model_type": model_type, **config}, "AutoModelForImageTextToText")
    own = twins.ours(their)
    each = own(pixels=images()).shape[1]
    text = torch.randint(3, 90, (2, each + 7), generator=torch.Generator().manual_seed(1))
    text[0, 2 : 2 + each] = text[1, 4 : 4 + each] = 100
    with torch.no_grad():
        given = images()[:, None] if model_type == "idefics3" else images()
        expected = their(input_ids=text, pixel_values=given).logits
        twins.agree(own(text, pixels=images()), expected)
        assert (own(text) - expected).abs().max() > 1e-2
        cache = own.cache()
        steps = [own(text[:, : each + 5], cache=cache, pixels=images())]
        steps += [own(text[:, i : i + 1], cache=cache) for i in range(each + 5, each + 7)]
        twins.agree(torch.cat(steps, 1), expected)
    said = assay.count(own.description, batch=2, tokens=each + 7, images=1).flops.total
    assert assay.measure(own, text, pixels=images()).flops.forward == said
    made = own.generate(text, 4, pixels=images())
    assert torch.equal(made, own.generate(text, 4, pixels=images(), cached=False))


def test_as_many_places_as_an_image_makes_tokens() -> None:
    own = assay.build(assay.load({"model_type": "llava", **BESIDE["llava"][0]}), seed=0)
    text = torch.full((1, 5), 100)
    with pytest.raises(assay.BuildError, match=r"5 tokens are 100, .* there are to be 16, 16 for each of 1"):
        own(text, pixels=images(1))
    with pytest.raises(assay.BuildError, match="reads no beams"):
        own.generate(text, 2, beams=torch.ones(1))


SOUND: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "num_mel_bins": 10,
}
GROUPED: dict[str, tuple[dict[str, Any], str]] = {
    "voxtral": ({**SOUND, "max_source_positions": 20}, "AutoModelForMultimodalLM"),
    "glmasr": ({**SOUND, "num_key_value_heads": 2, "max_position_embeddings": 20}, "AutoModelForMultimodalLM"),
    "audioflamingo3": ({**SOUND, "max_source_positions": 20}, "AudioFlamingo3ForConditionalGeneration"),
}


@pytest.mark.parametrize("model_type", GROUPED)
def test_a_sound_beside_a_text(model_type: str) -> None:
    """Positions side by side, or their mean."""
    heard, auto = GROUPED[model_type]
    reads = TEXT | ({"model_type": "qwen2"} if model_type == "audioflamingo3" else {})
    their = twins.theirs({"model_type": model_type, "audio_config": heard, "text_config": reads}, auto)
    own = twins.ours(their)
    frames = torch.randn(2, 40, 10, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        more = [torch.ones(2, 40, dtype=torch.long)] if model_type != "voxtral" else []  # no frame is padding
        expected = their.get_audio_features(frames.transpose(1, 2), *more)
        expected = getattr(expected, "pooler_output", expected)
        found = own(frames=frames)
        twins.agree(found, expected.reshape(found.shape))


EAR = {"encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 40, "d_model": 32, "num_mel_bins": 10}
HEARD: dict[str, tuple[dict[str, Any], str]] = {
    **GROUPED,
    "qwen2_audio": ({**EAR, "max_source_positions": 20}, "AutoModelForMultimodalLM"),
    "moss_transcribe_diarize": ({**SOUND, "max_source_positions": 20}, "AutoModelForMultimodalLM"),
}
WHOLE = torch.ones(2, 40, dtype=torch.long)  # no frame is padding
MORE: dict[str, dict[str, Any]] = {
    "voxtral": {},
    "qwen2_audio": {"feature_attention_mask": WHOLE},
    "moss_transcribe_diarize": {"input_features_mask": WHOLE, "audio_chunk_mapping": torch.arange(2)},
}


@pytest.mark.parametrize("model_type", HEARD)
def test_sounds_in_a_text(model_type: str) -> None:
    """As with images, the work of a step and what it keeps, too."""
    heard, auto = HEARD[model_type]
    config = {"model_type": model_type, "audio_config": heard, "audio_token_id": 100}
    if model_type == "qwen2_audio":
        config["audio_token_index"] = config.pop("audio_token_id")
    reads = TEXT | ({"model_type": "qwen2"} if model_type in ("audioflamingo3", "qwen2_audio") else {})
    their = twins.theirs({**config, "text_config": reads | {"head_dim": 8}}, auto)
    own = twins.ours(their)
    frames = torch.randn(2, 40, 10, generator=torch.Generator().manual_seed(3))
    each = own(frames=frames).shape[1]
    text = torch.randint(3, 90, (2, each + 7), generator=torch.Generator().manual_seed(1))
    text[0, 2 : 2 + each] = text[1, 4 : 4 + each] = 100
    more = {"attention_mask": torch.ones_like(text), **MORE.get(model_type, {"input_features_mask": WHOLE})}
    with torch.no_grad():
        expected = their(input_ids=text, input_features=frames.transpose(1, 2), **more).logits
        twins.agree(own(text, frames=frames), expected)
        assert (own(text) - expected).abs().max() > 1e-2
    ran = assay.measure(own, text, frames=frames, backward=True)
    step = assay.training(own.description, 2, each + 7, images=1, attention="fused")
    assert (step.forward, step.backward) == (ran.flops.forward, ran.flops.backward)
    assert step.saved == ran.saved.activations


def test_squares_that_do_not_fit_are_refused() -> None:
    config, _ = BESIDE["idefics3"]
    uneven = config | {"vision_config": SEES | {"image_size": 24}}  # 3 rows of patches, 2 of which make one
    own = assay.build(assay.load({"model_type": "idefics3", **uneven}), device="meta")
    with pytest.raises(
        assay.BuildError, match=r"is run without its tower: .* no square grid .*; 9 positions, 4 in a square"
    ):
        own(pixels=torch.zeros((1, 3, 24, 24), device="meta"))


def test_an_operand_has_the_axes_that_it_was_made_with() -> None:
    from assay.blocks.stacks import make_block
    from assay.spec import ops

    lines = ops("other", "y = linear(x[b n d], W[d g k]) -> [b n g k]", "y = scale(y[b n k g], by=2.0) -> [b n k g]")
    block = make_block("mixed", lines, {"d": 4, "g": 2, "k": 3}, {})
    with pytest.raises(assay.BuildError, match=r"y\[b n k g\] is made along other axes, or in another order"):
        assay.build(block)


def test_every_kind_runs_or_says_why_not() -> None:
    from assay.execution.sites import NOT_RUN, RULES

    assert all(why.strip() for why in NOT_RUN.values())
    assert not set(NOT_RUN) & set(RULES)
    assert set(KINDS) == set(RULES) | set(NOT_RUN)


def test_learned_queries_are_of_the_tower_that_reads_them() -> None:
    """Idefics 2 resamples what its projector makes: queries begin anew, behind it."""
    from assay.execution.sensed import towers
    from assay.rewrites.shrink import shrink

    found = towers(shrink(assay.load({"model_type": "idefics2"})))
    ends = {name: (tower.segments[0].name, tower.segments[-1].name) for name, tower in found.items()}
    assert ends == {
        "pixels": ("vision embedding", "vision projector"),
        "memory": ("resampler embedding", "resampler norm"),
    }
