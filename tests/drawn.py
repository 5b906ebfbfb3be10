"""Models drawn from blocks by their sizes alone, with no config: the reader of configs is not asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from assay.blocks import Attention, Body, Branch, Decoder, Embedding, Head, Layer, Mlp, Norm, Rope, Step
from assay.blocks.moe import Moe, Router
from assay.readings.tensors import tensors
from assay.spec import Block, Model, parse_lines

ROUTER = Router()
NORMS = {
    "rms": Norm(),
    "layer": Norm("layernorm", "gain+bias"),
    "layer-no-bias": Norm("layernorm", "gain"),
    "bare": Norm(affine="none"),
}


def draw(
    *,
    layers: int,
    d: int,
    heads: int,
    vocab: int,
    ff: int | None = None,
    kv: int | None = None,
    head: int | None = None,
    gated: bool = True,
    norm: str = "rms",
    biases: bool | str = False,
    mlp_bias: bool | None = None,
    tied: bool = False,
    positions: int | None = None,
    qk_norm: str | None = None,
    arrangement: str = "pre",
    window: Callable[[int], int | None] = lambda i: None,
    chunk: Callable[[int], int | None] = lambda i: None,
    experts: int | None = None,
    chosen: int = 1,
    expert_ff: int | None = None,
    shared_ff: int | None = None,
    moe: Callable[[int], bool] = lambda i: True,
    router: Router = ROUTER,
    sinks: bool = False,
    embedding_norm: bool = False,
    name: str = "drawn",
) -> Model:
    """A decoder-only model. `biases` is True for all, or the letters of q, k, v, o that have one."""
    n = NORMS[norm]
    letters = biases if isinstance(biases, str) else "qkvo" if biases else ""
    both = (biases is True) if mlp_bias is None else mlp_bias
    head_width = head or d // heads
    dense = None if ff is None else Mlp(ff, gated, "silu" if gated else "gelu", "gud" if both else "")
    sparse = None
    if experts is not None:
        assert expert_ff is not None
        sparse = Moe(experts, chosen, expert_ff, router, bias="gud" if both else "", shared=shared_ff)

    def layer(i: int) -> Layer:
        attention = Attention(
            heads,
            kv or heads,
            head_width,
            bias=letters,
            qk_norm=None if qk_norm is None else n,
            qk_norm_over="full" if qk_norm == "full" else "head",
            positions=None if positions else Rope(),
            window=window(i),
            chunk=chunk(i),
            sinks=sinks,
        )
        mlp = sparse if sparse is not None and (dense is None or moe(i)) else dense
        assert mlp is not None
        return arrange(arrangement, attention, mlp, n)

    made: dict[Layer, Layer] = {}
    stack = tuple(made.setdefault(one := layer(i), one) for i in range(layers))
    decoder = Decoder(
        Embedding(vocab, d, positions=positions, norm=n if embedding_norm else None),
        stack,
        Head(vocab, d, tied, norm=n),
    )
    return Model(name, decoder.segments({}), layers=layers, width=d, positions=positions)


def arrange(arrangement: str, attention: Body, mlp: Body, n: Norm) -> Layer:
    """Where the norms of a layer stand."""
    if arrangement == "parallel":  # one norm for both
        return Layer((Step((Branch(attention), Branch(mlp)), before=n),))
    if arrangement == "parallel-2":  # a norm each
        return Layer((Step((Branch(attention, n), Branch(mlp, n))),))
    before, after = {"pre": (n, None), "sandwich": (n, n), "post": (None, n)}[arrangement]
    return Layer((Step((Branch(attention, before, after),)), Step((Branch(mlp, before, after),))))


def block(text: str, name: str = "block", **sizes: Any) -> Block:
    """Lines of the notation with sizes."""
    return Block(name, parse_lines(text), sizes)


def paths(model: Model, *endings: str) -> int:
    """Elements of the stored tensors whose path's last name ends so."""
    return sum(e.elements * e.times for e in tensors(model) if e.path.endswith(endings))


def weights_named(model: Model, test: Callable[[str], bool]) -> int:
    """Elements of the stored tensors that hold a weight whose name in the notation passes a test."""
    return sum(e.elements * e.times for e in tensors(model) if any(map(test, e.weights)))


def shape(of: Block, name: str) -> Sequence[str]:
    """The axes of the last result of that name."""
    return [op.axes for op in of.ops if op.name == name][-1]


GPT3_175B = {
    "model_type": "gpt2",
    "n_embd": 12288,
    "n_layer": 96,
    "n_head": 96,
    "n_positions": 2048,
    "vocab_size": 50257,
}
LLAMA3_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
LLAMA3_70B = {
    **LLAMA3_8B,
    "hidden_size": 8192,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "intermediate_size": 28672,
}
LLAMA_7B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 32000,
}


def read(config: dict[str, Any], **changed: Any) -> Model:
    """A config as the reader of configs takes it."""
    from assay.sources.huggingface import read_config

    return read_config({**config, **changed}, "config", "model")
