"""What a pass is given: all of it is read, in the shape that it has; anything else is one line."""

from __future__ import annotations

from typing import Any

import pytest
from execution.families import SMALL
from execution.twins import torch

import assay

TOKENS = 9
IDS = torch.randint(0, 100, (2, TOKENS), generator=torch.Generator().manual_seed(0))
PAIR = {"model_type": "t5", "d_model": 32, "d_kv": 8, "num_layers": 2, "num_heads": 4, "d_ff": 64, "vocab_size": 100}


def made(attention: str = "fused", **config: Any) -> Any:
    """A small model with weights of its own."""
    return assay.build(assay.load({"model_type": "llama", **SMALL, **config}), seed=0, attention=attention)


HEADS = SMALL["num_attention_heads"]
BIASES = [(), (1,), (9, 9), (1, 9), (9, 1), (HEADS, 9, 9), (HEADS, 1, 1), (2, 1, 9, 9), (2, HEADS, 1, 9), (1, 1, 1, 1)]


@pytest.mark.parametrize("attention", ["fused", "plain"])
@pytest.mark.parametrize("shape", BIASES, ids=str)
def test_a_bias_of_any_shape_that_broadcasts(shape: tuple[int, ...], attention: str) -> None:
    own = made(attention)
    bias = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    whole = bias.expand(2, HEADS, TOKENS, TOKENS)
    each = own(IDS, bias=bias)
    assert torch.allclose(each, own(IDS, bias=whole), atol=1e-6)
    if shape[-1:] == (9,):  # what is the same for all keys goes away in a softmax
        assert (each - own(IDS)).abs().max() > 1e-3


@pytest.mark.parametrize("attention", ["fused", "plain"])
def test_a_bias_over_all_keys_where_a_window_keeps_some(attention: str) -> None:
    own = made(attention, model_type="mistral", sliding_window=4)
    bias = torch.randn((HEADS, TOKENS, TOKENS), generator=torch.Generator().manual_seed(1))
    whole, cache = own(IDS, bias=bias), own.cache()
    first = own(IDS[:, :6], cache=cache, bias=bias[:, :6, :6])
    rest = [own(IDS[:, i : i + 1], cache=cache, bias=bias[:, i : i + 1, : i + 1]) for i in range(6, TOKENS)]
    assert torch.allclose(torch.cat((first, *rest), 1), whole, atol=1e-5)


@pytest.mark.parametrize("attention", ["fused", "plain"])
def test_a_mask_of_each_query_hides_keys(attention: str) -> None:
    own = made(attention)
    see = torch.ones(2, 1, TOKENS, TOKENS, dtype=torch.bool)
    see[:, :, 5:, :3] = False
    other = IDS.clone()
    other[:, :3] = (other[:, :3] + 1) % 100
    # one layer: what later tokens see of the first ones is what the mask lets through
    own = made(attention, num_hidden_layers=1)
    assert torch.equal(own(other, mask=see)[:, 5:], own(IDS, mask=see)[:, 5:])
    assert not torch.allclose(own(other)[:, 5:], own(IDS)[:, 5:])
    padding = torch.ones(2, TOKENS, dtype=torch.bool)
    padding[1, :4] = False
    wide = padding[:, None, None, :].expand(2, 1, TOKENS, TOKENS)
    assert torch.allclose(own(IDS, mask=wide)[:, 4:], own(IDS, mask=padding)[:, 4:], atol=1e-6)


ONES = torch.ones
REFUSED = [
    ({"bias": ONES(3, 9)}, "bias: axis tokens has 3 elements; 1 or 9 are allowed"),
    ({"bias": ONES(9, 8)}, "bias: axis keys has 8 elements; 1 or 9 are allowed"),
    ({"bias": ONES(5, HEADS, 9, 9)}, "bias: axis batch has 5 elements; 1 or 2 are allowed"),
    ({"bias": ONES(3, 9, 9)}, rf"layer 0: scores\[.*\]: bias: axis heads has 3 elements; 1 or {HEADS} are allowed"),
    ({"bias": ONES(1, 1, 1, 9, 9)}, "bias has 5 axes; at most 4 are allowed"),
    ({"bias": ONES(9, 9).bool()}, "bias is of truths"),
    ({"mask": ONES(2, 8)}, "mask: axis tokens has 8 elements; there are 9"),
    ({"mask": ONES(2, 10)}, "mask: axis tokens has 10 elements; there are 9"),
    ({"mask": ONES(3, 9)}, "mask: axis batch has 3 elements; there are 2 texts"),
    ({"mask": ONES(9)}, "mask has 1 axes; it has 2, batch and tokens"),
    ({"mask": ONES(2, 1, 9, 9)}, "mask is of float32; of 4 axes it is of truths, and numbers are a bias"),
    ({"positions": torch.arange(8)}, r"positions have the shape \[8\]; \[9\] or \[2, 9\] or \[3, 2, 9\] are allowed"),
    ({"positions": torch.arange(27).view(3, 9)}, r"positions have the shape \[3, 9\]"),
    ({"source": IDS}, "reads no source"),
    ({"kind": IDS}, "reads no kind"),
]


@pytest.mark.parametrize("attention", ["fused", "plain"])
@pytest.mark.parametrize(("given", "says"), REFUSED, ids=lambda one: next(iter(one)) if isinstance(one, dict) else "")
def test_what_does_not_fit_is_named(given: dict[str, Any], says: str, attention: str) -> None:
    own = made(attention)
    own(IDS)  # a pass of this size has been checked; what comes with it has not
    with pytest.raises(assay.BuildError, match=says):
        own(IDS, **given)


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        (IDS.float(), "tokens is of float32; token ids are integers"),
        (IDS > 3, "tokens is of bool; token ids are integers"),
        (IDS[0], "tokens has 1 axes; token ids have 2, batch and tokens"),
        (IDS[None], "tokens has 3 axes; token ids have 2, batch and tokens"),
        (IDS + 100, r"gather\(.*: rows \d+ to \d+ are asked for; there are 101, from 0 on"),
    ],
    ids=["float", "bool", "one axis", "three axes", "beyond the table"],
)
def test_tokens_that_are_none(tokens: Any, says: str) -> None:
    with pytest.raises(assay.BuildError, match=says):
        made()(tokens)


def test_a_cache_is_of_as_many_texts() -> None:
    own = made()
    cache = own.cache()
    own(IDS, cache=cache)
    own(IDS[:1], cache=own.cache())
    with pytest.raises(assay.BuildError, match="tokens: axis batch has 1 elements; there are 2 texts"):
        own(IDS[:1, :1], cache=cache)


def test_a_source_and_its_mask() -> None:
    own = assay.build(assay.load(PAIR), seed=0)
    own(IDS, IDS[:, :5])
    with pytest.raises(assay.BuildError, match="source: axis batch has 1 elements; there are 2 texts"):
        own(IDS, IDS[:1, :5])
    with pytest.raises(assay.BuildError, match="source_mask: axis tokens has 4 elements; there are 5"):
        own(IDS, IDS[:, :5], source_mask=ONES(2, 4))
    cache = own.cache()
    own(IDS, IDS[:, :5], cache=cache)
    with pytest.raises(assay.BuildError, match="source_mask: axis tokens has 4 elements; there are 5"):
        own(IDS[:, :1], cache=cache, source_mask=ONES(2, 4))


def test_what_nothing_reads_is_no_bias() -> None:
    own = assay.build(assay.load("mamba-130m"), device="meta")
    ids = torch.zeros(1, 4, dtype=torch.long, device="meta")
    with pytest.raises(assay.BuildError, match="has no scores that a bias is added to"):
        own(ids, bias=torch.zeros(4, 4, device="meta"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"dtype": "bf16"}, "dtype is 'bf16'; it must be a floating type of PyTorch"),
        ({"dtype": torch.int32}, "dtype is torch.int32; it must be a floating type"),
        ({"device": "nowhere"}, "device is 'nowhere': "),
        ({"seed": "x"}, "seed is 'x'; it must be an integer"),
        ({"attention": "flash"}, "attention is 'flash'; known: fused, plain"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_what_it_is_built_with(options: dict[str, Any], says: str) -> None:
    with pytest.raises(assay.BuildError, match=says):
        assay.build(assay.load({"model_type": "llama", **SMALL}), **options)
