"""The small configs of every family, from the tables of their own tests; others drawn from them at random.

A drawn config differs from a small one in a few of the keys that our reader asks for, those that are absent among
them: sizes, switches, patterns of layers. What a reader refuses, and what the library cannot build, is drawn again.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from sparse_configs import FLAUBERT, GEMMA4_UNIFIED

from assay.errors import AssayError, SourceError
from assay.sources.config import Config
from assay.sources.families import FAMILIES
from assay.sources.huggingface import read_config

Data = dict[str, Any]
Row = tuple[Data, str, bool]  # a config, the factory, whether FLOPs are compared

FOLDER = Path(__file__).parent / "sources"
CAUSAL, MASKED, BASE, SEQ2SEQ = (f"AutoModel{end}" for end in ("ForCausalLM", "ForMaskedLM", "", "ForSeq2SeqLM"))
SPEECH, SEEN, HEARD = (f"AutoModelFor{end}" for end in ("SpeechSeq2Seq", "ImageTextToText", "MultimodalLM"))


@dataclass(frozen=True)
class Sample:
    """A small config, the library's factory that builds it, the file that tests it, whether its FLOPs are run."""

    config: Data
    auto: str
    file: str
    flops: bool


def _module(name: str) -> Any:
    """The tests of one sort of families."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return importlib.import_module(f"test_{name}_families")


def _tables() -> Iterator[tuple[str, Data, str, bool]]:
    """File, config, factory and whether FLOPs are compared, of every table of small configs."""
    for name, rows in (*_decoders().items(), *_others().items()):
        for config, auto, flops in rows:
            yield name, config, auto, flops


def _decoders() -> dict[str, list[Row]]:
    dense, classic, moe, latent, sparse, recurrent = map(
        _module, ("dense", "classic", "moe", "latent", "sparse", "recurrent")
    )
    types = [(kind, i) for kind, options in dense.OPTIONS.items() for i in range(len(options))]
    sized = [{"model_type": kind, **moe.SIZES, **differs} for kind, differs in moe.VARIED]
    return {
        dense.__name__: [(dense.small(kind, i), CAUSAL, True) for kind, i in types],
        classic.__name__: [(config, CAUSAL, True) for config in classic.VARIED.values()],
        moe.__name__: [*((config, CAUSAL, True) for config in sized), (moe.LLAMA4, CAUSAL, False)],
        latent.__name__: [(config, CAUSAL, True) for config in latent.VARIED],
        sparse.__name__: [
            *((config, CAUSAL, tokens > 0) for config, tokens in sparse.VARIED.values()),
            (FLAUBERT, MASKED, False),
        ],
        recurrent.__name__: [
            *((case.config, CAUSAL, False) for case in recurrent.CASES),
            (recurrent.ZAYA, CAUSAL, False),
        ],
    }


def _others() -> dict[str, list[Row]]:
    encoders, pairs, sound, mobile, flamingo = map(_module, ("encoder", "encdec", "sound", "mobile", "flamingo"))
    vision, clip, tower, vbert, image = map(_module, ("vision", "clip", "tower", "vbert", "image"))
    music = {**sound.SOUNDS["audioflamingo3, small"][0], "model_type": "musicflamingo"}
    music["audio_config"] = {**music["audio_config"], "model_type": "audioflamingo3_encoder"}
    unified = {
        "model_type": "gemma4_unified",
        "text_config": GEMMA4_UNIFIED,
        "vision_config": None,
        "audio_config": None,
    }
    bases = [(kind, stem + end) for kind, stem, ends in encoders.CLASSES for end in ends if ends[end] == BASE]
    return {
        encoders.__name__: [
            *((config, MASKED, True) for config in encoders.VARIED),
            *((config, MASKED, False) for config in encoders.STORED),
            *((encoders.small(kind, architectures=[cls]), BASE, False) for kind, cls in bases),
        ],
        pairs.__name__: [
            *((config, SEQ2SEQ, True) for config in pairs.SMALL),
            *((config, SEQ2SEQ, False) for config in pairs.TENSORS_ONLY),
            *((config, SPEECH, True) for config in pairs.SPEECH),
            (pairs.whisper(), SPEECH, True),
        ],
        sound.__name__: [
            *((config, auto, False) for config, auto in sound.SOUNDS.values()),
            (music, "MusicFlamingoForConditionalGeneration", False),
            *((config, HEARD, False) for config in sound.SPEECH.values()),
            ({**sound.SPEECH["granite_speech, small"], "model_type": "granite_speech_plus"}, HEARD, False),
        ],
        mobile.__name__: [(config, SEEN, False) for config in mobile.MOBILE.values()],
        flamingo.__name__: [(config, SEEN, False) for config in flamingo.FLAMINGO.values()],
        vision.__name__: [(config, auto, False) for config, auto in vision.VISION.values()],
        clip.__name__: [
            *((config, BASE, False) for config in clip.PAIRS.values()),
            *((config, auto, tokens > 0) for config, auto, tokens in clip.HALVES.values()),
        ],
        tower.__name__: [
            *((config, SEEN, False) for config in tower.TOWERS.values()),
            ({**tower.TOWERS["idefics3, small"], "model_type": "smolvlm"}, SEEN, False),
            (unified, SEEN, False),
        ],
        vbert.__name__: [(config, MASKED, True) for config in vbert.ENCODED.values()],
        image.__name__: [
            (image.TILES, CAUSAL, False),
            (image.WHOLE, SEEN, False),
            *((config, CAUSAL, True) for config in image.EARLY.values()),
        ],
    }


@lru_cache(maxsize=1)
def samples() -> dict[str, list[Sample]]:
    """Small configs by model_type; those that a table has at their defaults' full size are not among them."""
    found: dict[str, list[Sample]] = {}
    for file, config, auto, flops in _tables():
        if len(config) > 1:
            found.setdefault(config["model_type"], []).append(Sample(config, auto, file, flops))
    return found


# types whose config class is published beside the weights, and has no table of small configs
REMOTE: dict[str, Data] = {
    "baichuan": {"num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 64},
}


def unrun() -> dict[str, dict[str, list[str]]]:
    """Of each model_type that does not run, or whose towers do not, why: with its defaults, else a small config's."""
    from assay.sources import load
    from assay.verification.runs import runs

    published = {config["model_type"]: config for config, *_ in _module("classic").PUBLISHED.values()}
    found: dict[str, dict[str, list[str]]] = {}
    for name in sorted(FAMILIES):
        own = {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 101, **REMOTE.get(name, {})}
        others = [one.config for one in samples().get(name, [])]
        for config in ({}, *others, published.get(name, {}), own):
            try:
                model = load({**config, "model_type": name})
            except SourceError:
                continue
            made = runs(model)
            break
        else:
            raise AssertionError(f"no config of {name} is at hand")
        if made.why is not None:
            found[name] = {"model": [made.why]}
        elif made.without:
            found[name] = {"towers": sorted(set(made.without))}
    return found


# where the library has no tied head, or what it shares between layers hangs on the same key, a config is followed
OWN_HEADS = frozenset("nemotron_h kimi_linear bailing_hybrid xlstm zamba zamba2 t5 mt5 umt5 longt5".split())
FIXED = frozenset("is_decoder add_cross_attention".split())


def asked(config: Data) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The keys that our reader asks for, each behind the keys of its tables, with the value that it took."""
    c = Config(config, "config")
    try:
        FAMILIES[config["model_type"]].read(c)
    except AssayError:
        return
    yield from _asked(c, ())


def _asked(c: Config, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in c.read.items():
        if isinstance(c.data.get(key), dict):
            continue
        yield (*path, c.written.get(key, key)), value
    for key, child in c.children.items():
        yield from _asked(child, (*path, key))


def drawn(config: Data, random: Random) -> Data | None:
    """A neighbour of a config: one to four of its keys at other values. None where our reader refuses it."""
    made = _copy(config)
    for _ in range(random.randint(1, 4)):
        keys = [(path, value) for path, value in asked(made) if _moves(config["model_type"], path[-1], value)]
        if not keys:
            return None
        path, value = random.choice(keys)
        _set(made, path, _other(value, random))
    return None if made == config or not _reads(made) else made


def _moves(model_type: str, key: str, value: Any) -> bool:
    if key.endswith(("_id", "_ids", "_index", "eps")) or key in FIXED:
        return False
    if key == "tie_word_embeddings" and model_type in OWN_HEADS:
        return False
    return isinstance(value, bool | int) or (isinstance(value, list) and len(value) > 1)


def _other(value: Any, random: Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, list):
        return [random.choice(value) for _ in value]
    if value > 2000:  # a real model's size, absent from the small config
        return random.randint(1, 128)
    near = [value + 1, value - 1, value + 2, 2 * value, value // 2, random.randint(1, 2 * abs(value) + 2)]
    return max(0, random.choice(near))


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(one) for key, one in value.items()}
    return [_copy(one) for one in value] if isinstance(value, list) else value


def _set(config: Data, path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        config = config.setdefault(key, {})
    if path[-1] in DEPTHS:  # what is said of each layer is said of so many
        _stretch(config, config.get(path[-1]), value)
    config[path[-1]] = value


DEPTHS = "num_hidden_layers num_layers n_layer n_layers encoder_layers decoder_layers depth num_decoder_layers".split()


def _stretch(config: Data, before: Any, after: int) -> None:
    for key, value in config.items():
        if isinstance(value, list) and len(value) == before and after > 0:
            config[key] = [value[i % before] for i in range(after)]


def _reads(config: Data) -> bool:
    try:
        read_config(config, "config", "model")
    except AssayError:
        return False
    return True


LIVE, KEPT = "test_drawn_families", "test_kept_families"  # both run every family that the library can build
RECORDED = "test_truth"


# single tests of a type that the tables above leave out: module, function, figures, types
HAND = """
    classic    test_baichuan_is_llama_with_one_matrix_for_three  parameters,tensors,flops  baichuan
    encoder    test_adapters_of_each_language                    parameters,flops          xmod
    moe        test_llama4_flops_are_those_of_the_chosen_experts flops                     llama4_text
    recurrent  test_zaya_by_hand                                 flops,cache               zaya
    sparse     test_v4_counts_by_hand                            flops                     deepseek_v4
    sparse     test_entries_and_open_windows_are_kept            cache                     deepseek_v4
    sparse     test_longcat_counts_by_hand                       flops                     longcat_flash
    sparse     test_inkling_counts_but_for_padding               flops                     inkling_text
    sparse     test_inkling2_counts_but_for_padding              flops                     inkling2_text
    tower      test_gemma4_tower_by_hand                         flops                     gemma4
    image      test_flops_of_layers_that_look_at_images          flops                     mllama
    sound      test_flops_of_queries_to_a_sound                  flops                     granite_speech
    tower      test_flops_of_towers_of_any_size                  flops                     qwen3_5 glm4v
    tower      test_flops_of_a_tower_whose_places_are_resized    flops                     lfm2_vl
    clip       test_images_of_any_shape_are_filled_up            flops                     siglip2_vision_model
    clip       test_flops_of_text_alone                          flops                     siglip_text_model
    clip       test_flops_of_a_text_and_an_image                 flops                     clip
    sound      test_flops_of_a_conformer_of_chunks               flops                     gemma4
    mobile     test_flops_of_an_image                            flops                     gemma3n
    flamingo   test_flops_with_images                            flops                     idefics
    flamingo   test_keys_of_images_are_made_once                 cache                     idefics
"""
SAME = {"kimi_k2": "deepseek_v3", "new": "gte"}  # the same reader, under another type


def _by_hand() -> Iterator[tuple[str, str, list[str]]]:
    for line in HAND.strip().splitlines():
        module, function, figures, *types = line.split()
        home = _module(module)
        getattr(home, function)
        for model_type in types:
            yield model_type, f"{home.__name__}::{function}", figures.split(",")


def _recorded() -> Iterator[tuple[str, list[str]]]:
    """What the recorded configs hold each family to, where they are at hand."""
    truth = importlib.import_module(RECORDED)
    for name in truth.recorded():
        if name in truth.REFUSED:
            continue
        said = truth.truth()[name]
        flops = ["flops"] if said["flops_clean"] and said.get("flops") else []
        cache = ["cache"] if said.get("cache_read_elems") else []
        yield said["model_type"], ["parameters", *flops, *cache]


def _in_tables() -> Iterator[tuple[str, str, list[str]]]:
    """What the tables of some family tests hold beside the live comparison."""
    recurrent, classic, vision, tower, sound = map(_module, ("recurrent", "classic", "vision", "tower", "sound"))
    for case in recurrent.CASES:  # FLOPs and states are summed by hand
        yield case.model_type, recurrent.__name__, ["flops", "cache"]
    for config, *_ in classic.PUBLISHED.values():
        yield config["model_type"], classic.__name__, ["parameters"]
    for config, _ in sound.SOUNDS.values():
        if len(config) > 1:
            yield config["model_type"], sound.__name__, ["flops"]
    for case, (config, _) in vision.VISION.items():
        if "," in case:
            yield config["model_type"], vision.__name__, ["flops"]
    for case in tower.PIXELS:
        yield tower.TOWERS[case]["model_type"], tower.__name__, ["flops"]


def witnesses() -> dict[str, dict[str, list[str]]]:
    """The tests that hold each figure of each model_type: live against the library, by hand, or as published."""
    held: dict[str, dict[str, set[str]]] = {}

    def holds(model_type: str, test: str, *figures: str) -> None:
        for figure in figures:
            held.setdefault(model_type, {}).setdefault(figure, set()).add(test)

    for model_type, found in samples().items():
        for one in found:
            holds(model_type, one.file, "parameters", "tensors", *(["flops"] if one.flops else []))
        holds(model_type, LIVE, "parameters", "tensors")
        if model_type not in _module("kept").UNSEEN:
            holds(model_type, KEPT, "cache")
    for model_type, test, figures in (*_in_tables(), *_by_hand()):
        holds(model_type, test, *figures)
    for model_type, figures in _recorded():
        holds(model_type, RECORDED, *figures)
    for model_type, other in SAME.items():
        held[model_type] = {**held.get(model_type, {}), **held[other]}
    return {
        name: {figure: sorted(tests) for figure, tests in sorted(figures.items())}
        for name, figures in sorted(held.items())
    }
