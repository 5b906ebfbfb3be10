"""The same random weights in the public implementation and in ours: what both make of the same tokens."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import assay

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TOLERANCE = 1e-5  # of logits in float32, of the largest of them


def theirs(config: dict[str, Any], auto: str = "AutoModelForCausalLM", seed: int = 0, attention: str = "eager") -> Any:
    """The library's model of a small config, in float32, with random weights none of which is as it was initialized."""
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = transformers.AutoConfig.for_model(**config)
        made._attn_implementation = attention
        cls = getattr(transformers, auto)
        model = cls.from_config(made) if auto.startswith("Auto") else cls._from_config(made)
    with torch.no_grad():
        for tensor in (
            *(p for p in model.parameters() if p.requires_grad),  # a table of sines stays one
            *(b for b in model.buffers() if b.dtype.is_floating_point and b.dim() == 1),
        ):
            if tensor.dim() > 1:
                tensor.normal_(0.0, 0.1)
        for parameter in model.parameters():
            if parameter.dim() <= 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model.float().eval()


def ours(model: Any) -> Any:
    """Our model of the same config, with its weights. Fails where a parameter of ours is not one of theirs."""
    built = assay.build(assay.load(model.config))
    state = model.state_dict()
    missing = [name for name in built.state_dict() if name not in state]
    assert not missing, f"not in the library's model: {missing[:5]}"
    built.load_state_dict({name: state[name] for name in built.state_dict()})
    return built.eval()


def ids(model: Any, tokens: int = 13, batch: int = 2, seed: int = 1) -> Any:
    """Random token ids."""
    rng = torch.Generator().manual_seed(seed)
    vocab = model.config.get_text_config().vocab_size
    return torch.randint(3, vocab, (batch, tokens), generator=rng)


def agree(a: Any, b: Any, tolerance: float = TOLERANCE) -> None:
    """Raise AssertionError unless all logits agree, relative to the largest of them, which is no small number."""
    assert a.shape == b.shape, f"{tuple(a.shape)} against {tuple(b.shape)}"
    largest = b.abs().max().item()
    assert largest > 1e-2, "nothing to compare: all logits are next to zero"
    difference = (a - b).abs().max().item() / max(1.0, largest)
    assert difference <= tolerance, f"logits differ by {difference:.2e}"


def same_logits(
    config: dict[str, Any], auto: str = "AutoModelForCausalLM", tokens: int = 13, attention: str = "eager"
) -> tuple[Any, Any]:
    """Both models of a config, after their logits agreed: for all tokens at once, and ours step by step as well."""
    their = theirs(config, auto, attention=attention)
    own = ours(their)
    given = ids(their, tokens)
    with torch.no_grad():
        expected = their(given).logits
        agree(own(given), expected)
        cache = own.cache()
        first = tokens // 2
        steps = [own(given[:, :first], cache=cache)]
        steps += [own(given[:, i : i + 1], cache=cache) for i in range(first, tokens)]
        agree(torch.cat(steps, 1), expected)
    return their, own


def same_pair(config: dict[str, Any], source: int = 11, target: int = 9) -> None:
    """An encoder-decoder's logits agree, in one pass and step by step, and it does the work that is counted."""
    their = theirs(config, "AutoModelForSeq2SeqLM")
    own = ours(their)
    heard, said = ids(their, source), ids(their, target, seed=2)
    with torch.no_grad():
        expected = their(input_ids=heard, decoder_input_ids=said).logits
        agree(own(said, heard), expected)
        cache = own.cache()
        steps = [own(said[:, :4], heard, cache=cache)]
        steps += [own(said[:, i : i + 1], cache=cache) for i in range(4, target)]
        agree(torch.cat(steps, 1), expected)
    counted = assay.count(own.description, batch=2, tokens=target, source=source).flops.total
    assert assay.measure(own, said, heard).flops.forward == counted
