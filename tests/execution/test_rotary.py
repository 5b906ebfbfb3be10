"""Scaled rotations against the public implementation, on sequences longer than the original context."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from execution.twins import agree, ids, ours, same_logits, theirs, torch, transformers

import assay
from assay.errors import BuildError, SourceError
from assay.sources.huggingface import read_config
from assay.spec import Block, parse_lines

ORIGINAL, LONGEST, TOKENS = 8, 32, 45
SMALL: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": LONGEST,
    "pad_token_id": 0,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": ORIGINAL}
LONG = {
    "rope_type": "longrope",
    "short_factor": [1.0 + 0.1 * i for i in range(8)],
    "long_factor": [1.5 + 0.7 * i for i in range(8)],
}
OLDER = {key: value for key, value in LONG.items() if key != "rope_type"}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
SCALINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("llama", {"rope_scaling": {"rope_type": "linear", "factor": 2.5}}),
    "linear, older name": ("llama", {"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_theta": 500.0}),
    "yarn": ("llama", {"rope_scaling": YARN}),
    "yarn, own factor": ("llama", {"rope_scaling": YARN | {"attention_factor": 1.7}}),
    "yarn, two scales": ("llama", {"rope_scaling": YARN | {"mscale": 0.7, "mscale_all_dim": 1.3}}),
    "yarn, not truncated": ("llama", {"rope_scaling": YARN | {"truncate": False, "beta_fast": 4, "beta_slow": 0.5}}),
    "yarn, no original": ("llama", {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}),
    "yarn, base": ("qwen2", {"rope_scaling": YARN, "rope_theta": 1e6}),
    "yarn, neighbours": ("cohere", {"rope_scaling": YARN}),
    "yarn, a part": ("glm", {"rope_scaling": YARN, "head_dim": 16, "partial_rotary_factor": 0.5}),
    "llama3": ("llama", {"rope_scaling": LLAMA3 | {"original_max_position_embeddings": ORIGINAL}}),
    "llama3, no original": ("llama", {"rope_scaling": LLAMA3}),
    "proportional": ("llama", {"rope_scaling": {"rope_type": "proportional", "partial_rotary_factor": 0.25}}),
    "of one kind of layer": (
        "gemma3_text",
        {"rope_scaling": {"rope_type": "linear", "factor": 8.0}, "head_dim": 16, "sliding_window": 7}
        | {"sliding_window_pattern": 2},
    ),
    "of each kind of layer": (
        "olmo3",
        {
            "layer_types": ["sliding_attention", "full_attention"],
            "sliding_window": 7,
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
                "full_attention": YARN | {"rope_theta": 5000.0},
            },
        },
    ),
    "multimodal, of text": ("qwen2", {"rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}),
}


@pytest.mark.parametrize("name", SCALINGS)
def test_scaled_rotations(name: str) -> None:
    model_type, changes = SCALINGS[name]
    if "mrope" in str(changes):  # which the library reads under today's name of the same rotation
        their, own = same_logits({"model_type": model_type, **SMALL}, tokens=TOKENS)
        other = built({"model_type": model_type, **SMALL, **changes}, own)
        given = ids(their, TOKENS)
        with torch.no_grad():
            assert torch.equal(other(given), own(given))
        return
    same_logits({"model_type": model_type, **SMALL, **changes}, tokens=TOKENS)


def built(config: dict[str, Any], like: Any) -> Any:
    """Our model of a config as a file has it, with weights of another."""
    made = assay.build(read_config(config, "config.json", "model")).eval()
    made.load_state_dict(like.state_dict())
    return made


def steps(model: Any, given: Any, first: int) -> Any:
    """Logits of a pass over the first tokens and of one for each further one, by the library, with its cache."""
    cache = transformers.DynamicCache(config=model.config)
    found = [model(given[:, :first], cache=cache, use_cache=True).logits]
    found += [model(given[:, i : i + 1], cache=cache, use_cache=True).logits for i in range(first, given.shape[1])]
    return torch.cat(found, 1)


def our_steps(own: Any, given: Any, first: int) -> Any:
    """The same by us."""
    cache = own.cache()
    found = [own(given[:, :first], cache=cache)]
    found += [own(given[:, i : i + 1], cache=cache) for i in range(first, given.shape[1])]
    return torch.cat(found, 1)


GROWING: dict[str, dict[str, Any]] = {
    "dynamic": {"model_type": "llama", **SMALL, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
    "dynamic, a part": {"model_type": "phi", **SMALL, "partial_rotary_factor": 0.5}
    | {"rope_scaling": {"type": "dynamic", "factor": 3.0}},
    "longrope": {"model_type": "phi3", **SMALL, "original_max_position_embeddings": 12, "rope_scaling": LONG},
    "longrope, older name": {"model_type": "phi3", **SMALL, "original_max_position_embeddings": 12}
    | {"rope_scaling": OLDER | {"type": "su", "original_max_position_embeddings": 12}},
    "longrope, own factor": {
        "model_type": "llama",
        **SMALL,
        "rope_scaling": LONG | {"factor": 3.0, "original_max_position_embeddings": 12, "attention_factor": 1.3},
    },
}


@pytest.mark.parametrize("tokens", [7, 12, 13, 32, 33, 50])
@pytest.mark.parametrize("name", GROWING)
def test_frequencies_that_depend_on_the_length(name: str, tokens: int) -> None:
    """At once for a sequence that fits and for longer ones; a step beyond the length turns new keys alone by it."""
    their = theirs(deepcopy(GROWING[name]))
    own = ours(their)
    given = ids(their, tokens)
    with torch.no_grad():
        expected = their(given).logits
        agree(own(given), expected)
        agree(built(GROWING[name], own)(given), expected)
        agree(our_steps(own, given, 5), steps(theirs(deepcopy(GROWING[name])), given, 5))


def test_longer_sequences_are_turned_otherwise() -> None:
    """The lengths above are ones that matter: the same tokens have other logits in a longer sequence."""
    for name in ("dynamic", "longrope"):
        their = theirs(deepcopy(GROWING[name]))
        own, given = ours(their), ids(their, 50)
        with torch.no_grad():
            assert (own(given)[:, :9] - own(given[:, :9])).abs().max() > 1e-3


BLOCK = """
attention:
  x = rope(x[b n h k], theta=100.0, scaling={table}{style}) -> [b n h k]
"""


@pytest.mark.parametrize(
    ("sections", "interleaved", "style"),
    [((2, 3, 3), False, ""), ((4, 2, 2), True, ""), ((1, 2, 5), False, ", style=interleaved")],
)
def test_positions_in_time_height_and_width(sections: tuple[int, ...], interleaved: bool, style: str) -> None:
    """Each pair by the position that its section names, against angles that are summed up pair by pair here."""
    table = (("mrope_section", sections), ("mrope_interleaved", interleaved))
    block = Block("turned", parse_lines(BLOCK.format(table=table, style=style)), {"h": 2, "k": 16})
    turned = assay.build(block)
    x = torch.randn(2, 5, 2, 16, generator=torch.Generator().manual_seed(0))
    at = torch.randint(0, 9, (3, 2, 5), generator=torch.Generator().manual_seed(1))
    given = turned(torch.zeros(2, 5, dtype=torch.long), positions=at, x=x)
    for pair in range(8):
        if interleaved:  # t h w t h w t t: one of each as long as both others have one left
            axis = (0, 1, 2, 0, 1, 2, 0, 0)[pair]
        else:
            axis = next(i for i in range(3) if pair < sum(sections[: i + 1]))
        angle = at[axis] * 100.0 ** (-2 * pair / 16)
        first, second = (2 * pair, 2 * pair + 1) if style else (pair, pair + 8)
        a, b = x[..., first], x[..., second]
        cos, sin = angle.cos()[..., None], angle.sin()[..., None]
        torch.testing.assert_close(given[..., first], a * cos - b * sin)
        torch.testing.assert_close(given[..., second], b * cos + a * sin)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"rope_type": "spiral"}, "q = rope.*rotary scaling spiral is not run; default, "),
        ({"rope_type": "linear"}, "rotary scaling linear needs factor, a number"),
        ({"rope_type": "yarn", "factor": "big"}, "rotary scaling yarn needs factor, a number"),
        ({"rope_type": "longrope", "short_factor": [1.0]}, "rotary scaling longrope needs short_factor, a list of 8"),
        ({"rope_type": "llama3", "factor": 8.0}, "rotary scaling llama3 needs low_freq_factor, a number"),
        ({"rope_type": "yarn", "factor": 2.0, "beta_fast": "32"}, "rotary scaling yarn needs beta_fast, a number"),
        ({"rope_type": "yarn", "factor": 2.0, "attention_factor": "x"}, "yarn has values that give no frequencies"),
        ({"rope_type": "linear", "factor": 0}, "rotary scaling linear has values .*: some are not finite"),
        ({"mrope_section": [1, 2, 3]}, "mrope_section shares out 6 pairs of 8"),
    ],
)
def test_what_is_not_run_is_refused_when_building(table: dict[str, Any], message: str) -> None:
    model = read_config({"model_type": "llama", **SMALL, "rope_scaling": table}, "config.json", "model")
    with pytest.raises(BuildError, match=message):
        assay.build(model)


def test_odd_heads_are_not_turned() -> None:
    """A block may have any width; a config's is refused where it is read."""
    block = Block("turned", parse_lines(BLOCK.format(table=(), style="")), {"h": 2, "k": 9})
    with pytest.raises(BuildError, match=r"x = rope\(.*: 9 elements are not turned in pairs"):
        assay.build(block)
    with pytest.raises(SourceError, match=r"head_dim is 9; .* rotations turn pairs: it is 9"):
        read_config({"model_type": "llama", **SMALL, "head_dim": 9}, "config.json", "model")


def test_places_of_patches_are_not_those_of_tokens() -> None:
    config = {"model_type": "pixtral", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    config |= {"num_attention_heads": 4, "image_size": 32, "patch_size": 8}
    with pytest.raises(BuildError, match=r"rope\(.*axial rotary positions are not run yet; known: halves, backward, "):
        assay.build(read_config(config, "config.json", "model"))
