"""What a query sees: nothing of the future, of padding or beyond a window; and biases that a caller gives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from execution.test_dense_decoders import ROWS, greedy, theirs_greedy
from execution.twins import agree, ids, ours, theirs, torch

import assay
from assay.errors import BuildError
from assay.sources.huggingface import read_config
from assay.spec import Block, parse_lines

SCORES = """
attention:
  k = {keys} -> [b c g k]
attention.scores:
  s = contract(q[b n g r k], k[b c g k]) -> [b g r n c]
  s = mask(s[b g r n c]) -> [b g r n c]
  p = softmax(s[b g r n c]) -> [b g r n c]
"""
Sees = Callable[[int, int], bool]
KEYS: dict[str, tuple[str, Sees]] = {
    "causal": ("append(k[b n g k])", lambda q, k: k <= q),
    "window": ("append(k[b n g k], window=4)", lambda q, k: q - 4 < k <= q),
    "near": ("append(k[b n g k], near=4)", lambda q, k: q - 4 < k <= q),
    "chunk": ("append(k[b n g k], chunk=4)", lambda q, k: k <= q and k // 4 == q // 4),
    "all": ("keys(k[b n g k])", lambda q, k: True),
    "causal, of this pass": ("keys(k[b n g k], causal=True)", lambda q, k: k <= q),
    "last": ("keys(k[b n g k], last=3)", lambda q, k: q - 3 < k <= q),
    "reach": ("keys(k[b n g k], reach=2)", lambda q, k: abs(q - k) <= 2),
    "block": ("keys(k[b n g k], block=4)", lambda q, k: k // 4 == q // 4),
    "block, offset": ("keys(k[b n g k], block=4, offset=2)", lambda q, k: (k + 2) // 4 == (q + 2) // 4),
}
TOKENS = 11


def scored(keys: str) -> Any:
    """The weights that queries give to keys, which are given."""
    return assay.build(Block("scores", parse_lines(SCORES.format(keys=keys)), {"g": 2, "r": 3, "k": 8}))


def operands(tokens: int = TOKENS, seed: int = 0) -> dict[str, Any]:
    rng = torch.Generator().manual_seed(seed)
    return {
        "q": 9 * torch.randn(2, tokens, 2, 3, 8, generator=rng),  # scores so large that small weights would be none
        "k": torch.randn(2, tokens, 2, 8, generator=rng),
    }


def table(sees: Sees, queries: range, keys: range) -> Any:
    """True where a query sees a key, pair by pair."""
    return torch.tensor([[sees(q, k) for k in keys] for q in queries])


@pytest.mark.parametrize("name", KEYS)
def test_weights_are_zero_where_nothing_is_seen_and_nowhere_else(name: str) -> None:
    keys, sees = KEYS[name]
    p = scored(keys)(torch.zeros(2, TOKENS, dtype=torch.long), **operands())
    seen = table(sees, range(TOKENS), range(TOKENS))
    assert (p[..., ~seen] == 0.0).all()
    assert (operands()["q"].abs().max() > 20).item()
    even = scored(keys)(torch.zeros(2, TOKENS, dtype=torch.long), q=0 * operands()["q"], k=operands()["k"])
    torch.testing.assert_close(even, (seen / seen.sum(-1, keepdim=True)).expand_as(even))


@pytest.mark.parametrize("first", [1, 3, 4, 5])
@pytest.mark.parametrize("name", [name for name, (keys, _) in KEYS.items() if keys.startswith("append")])
def test_weights_of_later_passes(name: str, first: int) -> None:
    """Two tokens at a time behind a cache: of the keys at hand, the last ones, what the whole table says."""
    keys, sees = KEYS[name]
    module, given = scored(keys), operands()
    cache = module.cache()
    bounds = [0, first, *range(first + 2, TOKENS, 2), TOKENS]
    for start, end in pairwise(bounds):
        part = {"q": 0 * given["q"][:, start:end], "k": given["k"][:, start:end]}
        p = module(torch.zeros(2, end - start, dtype=torch.long), cache=cache, **part)
        seen = table(sees, range(start, end), range(end - p.shape[-1], end))
        torch.testing.assert_close(p, (seen / seen.sum(-1, keepdim=True)).expand_as(p))
        assert (p[..., ~seen] == 0.0).all()


@pytest.mark.parametrize("attention", ["fused", "plain"])
@pytest.mark.parametrize("name", ["gpt2", "llama-0", "gemma2-0", "bloom", "falcon-sequential", "cohere2-0", "doge"])
def test_future_tokens_change_nothing_before_them(name: str, attention: str) -> None:
    """Bit by bit."""
    model = read_config(dict(ROWS[name]), "config.json", "model")
    module = assay.build(model, seed=0, attention=attention)
    rng = torch.Generator().manual_seed(0)
    given = torch.randint(3, 90, (2, 12), generator=rng)
    other = given.clone()
    other[:, 7:] = torch.randint(3, 90, (2, 5), generator=rng)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0.0, 0.3, generator=rng)
        before, after = module(given), module(other)
    assert torch.equal(before[:, :7], after[:, :7])
    assert not torch.equal(before[:, 7:], after[:, 7:])


PADDED = """
    gpt2 gpt_bigcode gptj codegen gpt_neo gpt_neox opt opt-narrow xglm biogpt bloom mpt phi phi3 stablelm persimmon
    nanochat llama-0 smollm3-1 glm-0 mistral-0 qwen2-0 qwen3-1 gemma2-0 gemma3_text-0 olmo2-0 exaone4-0 granite_swa-1
    cohere2-0 diffllama-0 modernbert-decoder-2 nemotron-0 ministral3-0 apertus-0 openai-gpt starcoder2 hrm_text-0
    falcon falcon-sequential
""".split()


def padded(length: int, missing: int, left: bool) -> Any:
    """Two texts of which the second is shorter."""
    mask = torch.ones(2, length, dtype=torch.long)
    mask[1, slice(0, missing) if left else slice(length - missing, length)] = 0
    return mask


def positions(mask: Any) -> Any:
    """Those of the tokens that are none of padding, from 0 on."""
    return (mask.cumsum(-1) - 1).clamp(min=0)


def called(their: Any, given: Any, mask: Any) -> Any:
    """Logits of the library, with positions that skip padding where the class takes any."""
    named = {"input_ids": given, "attention_mask": mask}
    code = type(their).forward
    while hasattr(code, "__wrapped__"):
        code = code.__wrapped__
    if "position_ids" in code.__code__.co_varnames or code.__code__.co_flags & 8:
        named["position_ids"] = positions(mask)
    return their(**named).logits


@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
@pytest.mark.parametrize("name", PADDED)
def test_padded_batches_equal_the_library(name: str, left: bool) -> None:
    config = ROWS[name]
    their = theirs(dict(config), attention="sdpa" if config.get("alibi") else "eager")
    own = ours(their)
    given, mask = ids(their, 12), padded(12, 4, left)
    there = mask.bool()
    with torch.no_grad():
        alone = own(given[1:, 4:] if left else given[1:, :8])
        found = own(given, mask=mask, positions=positions(mask))
        agree(found[1:][there[1:]][None], alone)
        agree(found[there], called(their, given, mask)[there])
        plain = assay.build(own.description, attention="plain").eval()
        plain.load_state_dict(own.state_dict())
        agree(plain(given, mask=mask, positions=positions(mask))[there], found[there])
        if not left:
            return
        cache = own.cache()
        at = positions(mask)
        steps = [own(given[:, :6], cache=cache, mask=mask[:, :6], positions=at[:, :6])]
        steps += [own(given[:, [i]], cache=cache, mask=mask[:, : i + 1], positions=at[:, [i]]) for i in range(6, 12)]
        agree(torch.cat(steps, 1)[there], found[there])


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("name", ["gpt2", "llama-0", "gemma-0", "gpt_neox"])
def test_a_bias_of_the_caller_equals_the_library(name: str, heads: int) -> None:
    """Any numbers added to scores, for each query and key, of all heads or of each; the causal mask stays."""
    their = theirs(dict(ROWS[name]))
    own, given = ours(their), ids(their, 9)
    bias = torch.randn(2, heads, 9, 9, generator=torch.Generator().manual_seed(3))
    hidden = torch.full((9, 9), torch.finfo(torch.float32).min).triu(1)
    with torch.no_grad():
        expected = their(given, attention_mask=bias + hidden).logits
        agree(own(given, bias=bias), expected)
        plain = assay.build(own.description, attention="plain").eval()
        plain.load_state_dict(own.state_dict())
        agree(plain(given, bias=bias), expected)
        assert (own(given, bias=bias) - own(given)).abs().max() > 1e-3


def test_greedy_generation_behind_padding_equals_the_library() -> None:
    for name in ("gpt2", "llama-0", "opt", "gemma2-0"):
        their = theirs(dict(ROWS[name]))
        own, given, mask = ours(their), ids(their, 7), padded(7, 3, True)
        their.generation_config.eos_token_id, their.generation_config.pad_token_id = None, 0
        with torch.no_grad():
            expected = their.generate(given, attention_mask=mask, max_new_tokens=6, do_sample=False)
            assert torch.equal(own.generate(given, 6, mask=mask), expected)
            assert torch.equal(greedy(own, given, 6), theirs_greedy(their, given, 6))


def test_positions_of_each_text_where_they_are_learned() -> None:
    """A table's rows are those of the positions that each text of a batch has."""
    their = theirs(dict(ROWS["gpt2"]))
    own, given = ours(their), ids(their, 5)
    at = torch.tensor([[0, 1, 2, 3, 4], [7, 9, 11, 13, 15]])
    with torch.no_grad():
        agree(own(given, positions=at), their(given, position_ids=at).logits)
        agree(own(given, positions=at[1]), their(given, position_ids=at[1:]).logits)


TAMPERED = [
    (("up_proj", "gate_proj"), (55, 40), r"z = linear\(.*: axis f has 55 elements, and the description says 56"),
    (
        ("gate_proj",),
        (56, 39),
        r"z = linear\(.*: model\.layers\.1\.mlp\.gate_proj\.weight: axis d has 39 elements, .* 40",
    ),
    (("down_proj",), (40, 56, 1), r"= linear\(.*: model\.layers\.1\.mlp\.down_proj\.weight: it has 3 axes, .* says 2"),
]


@pytest.mark.parametrize(("names", "shape", "message"), TAMPERED)
def test_a_shape_that_is_not_the_descriptions_names_the_op_the_axis_and_both_sizes(
    names: tuple[str, ...], shape: tuple[int, ...], message: str
) -> None:
    module = assay.build(read_config(dict(ROWS["llama-1"]), "config.json", "model"))
    for name in names:
        module.get_submodule(f"model.layers.1.mlp.{name}").weight = torch.nn.Parameter(torch.zeros(shape))
    with pytest.raises(BuildError, match=f"^layer 1: .*{message}"):
        module(torch.zeros(1, 4, dtype=torch.long))


def test_what_a_caller_gives_of_another_shape_is_named() -> None:
    module = scored("append(k[b n g k])")
    wrong = operands()
    wrong["q"] = wrong["q"][:, :, :, :2]
    message = r"scores: s = contract\(q\[b n g r k\], k\[b c g k\]\) -> \[b g r n c\]: axis r has 2 elements, .* says 3"
    with pytest.raises(BuildError, match=message):
        module(torch.zeros(2, TOKENS, dtype=torch.long), **wrong)
