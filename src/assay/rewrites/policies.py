"""Execution policies: each op as the functions that an implementation runs for it.

`ours` is what `assay.build` runs: ops as they are, attention plain or in one kernel. `transformers` is how the public
implementation runs eagerly (transformers 5, its modeling files): norms in float32, keys and values repeated for every
query head, a softmax of scores in float32, GPT-2's activation composed of powers and tanh, products of weights that
lie in one tensor as one. `megatron` is how Megatron-LM ran it (Korthikanti et al. 2022, arXiv:2205.05198, section 4.1):
scale, mask and softmax of scores in one kernel, which keeps its result alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from assay.errors import KindError, SettingError, among
from assay.kinds import kind_of
from assay.kinds.dividing import biases, ends_sum
from assay.kinds.reduce import over
from assay.records import dataclass, replace
from assay.registry import entered
from assay.rewrites.fuse import fuse
from assay.spec import Axes, Block, Model, Op, Tensor

POLICIES = ("ours", "transformers", "megatron")
# what each has longer than it needs, for a caller's variables hold it: what goes into a layer (its `residual` is the
# caller's argument) until it has run, what goes into attention or MLP (their argument) until that has, and embedding,
# positions and masks (the model's own) until the last layer has
HOLDS: dict[str, tuple[str, ...]] = {"ours": (), "transformers": ("layer", "part", "layers"), "megatron": ()}
ATTENTION = ("plain", "fused")


@dataclass(frozen=True)
class Implementation:
    """What differs between families of the public implementation: how each runs what others run otherwise."""

    softmax: str = "wide"  # of scores: wide, in float32 and cast back; plain, as it comes
    gelu: str = "fused"  # the tanh form: fused in one function, or composed of several
    gain: str = "narrow"  # of a norm by the root mean square: behind the cast back, or wide, before it
    layernorm: str = "plain"  # as it comes, or wide, in float32 and cast back
    tables: str = "shared"  # cosines and sines in the dtype of the stream, or wide, in float32
    joined: bool = False  # what is turned is put before what is not even where all is
    choices: str = "wide"  # weights of experts: wide, in float32; narrow, in the dtype of the router's product
    dropout: tuple[str, ...] = ("scores",)  # where a dropout stands: scores, branches, embedding


_LLAMA = Implementation()
_GPT2 = Implementation("plain", "composed", dropout=("scores", "branches", "embedding"))
_MEGATRON = Implementation("plain", "fused", dropout=("scores", "branches", "embedding"))
# families whose modeling files were read for this, and what their own files say
READ = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "mixtral", "gemma", "gemma2", "gemma3_text"), _LLAMA),
    **dict.fromkeys(("exaone4", "granite", "nemotron", "smollm3", "stablelm", "starcoder2", "gpt_neox"), _LLAMA),
    **dict.fromkeys(("qwen3_moe", "olmoe"), Implementation(choices="narrow")),
    "olmo": Implementation(layernorm="wide", tables="wide"),
    "olmo2": Implementation(gain="wide", tables="wide"),
    "phi": Implementation(gelu="composed"),
    "phi3": Implementation(joined=True),
    "gpt_bigcode": _LLAMA,
    "gpt2": _GPT2,
}


def executed(model: Model, policy: str = "ours", attention: str = "plain", dropout: float = 0.0) -> Model:
    """The same model as a policy runs it, with a rate of `dropout` where its implementation has one.

    Of a family that is not among `READ` the public implementation is taken to run as Llama's does, and a note says so.
    Raises SettingError.
    """
    among(policy, "policy", POLICIES)
    among(attention, "attention", ATTENTION)
    rate: Any = dropout
    try:
        fits = bool(0 <= rate < 1)
    except TypeError:
        fits = False
    if not fits:
        raise SettingError(f"dropout is {dropout!r}; a rate from 0 to below 1")
    whole = fuse(model) if attention == "fused" else model
    if policy == "ours":
        if dropout:
            raise SettingError(f"dropout is {dropout}; the policy ours runs none")
        return whole
    how = _MEGATRON if policy == "megatron" else READ.get(model.family, _LLAMA)
    rules = {kind: RULES[kind] for kind in (("mask", "softmax") if policy == "megatron" else RULES)}
    rewritten: dict[int, Block] = {}

    def block(given: Block) -> Block:
        if id(given) not in rewritten:
            rewritten[id(given)] = replace(given, ops=tuple(_Written(given, how, float(dropout), rules).ops()))
        return rewritten[id(given)]

    segments = tuple(replace(s, block=block(s.block)) for s in whole.segments)
    notes = model.notes
    if model.family not in READ and policy == "transformers":
        notes = (*notes, f"how transformers executes {model.family or model.name} is taken to be as it executes Llama")
    return replace(whole, segments=segments, notes=notes)


class _Written:
    """A block as it is executed."""

    def __init__(self, block: Block, how: Implementation, dropout: float, rules: Mapping[str, Rule]) -> None:
        self.block = block
        self.how = how
        self.dropout = dropout
        self.rules = rules
        paths = Counter(block.weight(w.name).path for w in {w.name: w for op in block.ops for w in op.weights}.values())
        self.routed = ""  # what a router's product is called
        self.chosen_from = ""  # what experts are given
        self.packed = {path for path, often in paths.items() if often > 1}

    def ops(self) -> Iterator[Op]:
        """Every op as those that stand for it."""
        ops = self.block.ops
        for index, op in enumerate(ops):
            rule = self.rules.get(op.kind)
            yield from [op] if rule is None else rule(self, op)
            following = ops[index + 1] if index + 1 < len(ops) else None
            if following is not None and _joins(op, following):
                yield from self.dropped(op, "branches")
        if ops[-1].part == "embedding":
            yield from self.dropped(ops[-1], "embedding")

    def dropped(self, op: Op, where: str) -> Iterator[Op]:
        """A dropout of a result, where its implementation has one."""
        if self.dropout and where in self.how.dropout:
            yield Op(op.name, "dropout", (Tensor(op.name, op.axes),), op.axes, (("rate", self.dropout),), op.part)


def _joins(op: Op, following: Op) -> bool:
    """True where a branch ends: a product with a weight, ranks' parts of it added up, its bias too; then the stream."""
    ends = ends_sum(op) or biases(op) or (bool(op.weights) and kind_of(op).contracts)
    return op.part != "embedding" and ends and _joined(following) and op.name in {t.name for t in following.inputs}


def _joined(op: Op) -> bool:
    return kind_of(op).sums and len(op.activations) > 1


Rule = Callable[[_Written, Op], Iterator[Op]]
RULES: dict[str, Rule] = {}


def executes(*kinds: str) -> Callable[[Rule], Rule]:
    """A rule is how ops of these kinds are executed. Raises KindError where one of them has a rule already."""
    return entered(RULES, kinds, lambda kind: KindError(f"the kind {kind!r} is executed in two ways"))


class _Line:
    """Ops one after another, each named after the one that they stand for; the last has its name."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.made: list[Op] = []

    def __call__(self, kind: str, *inputs: Tensor, axes: Axes | None = None, **attrs: object) -> Tensor:
        """One more op; its result."""
        name = f"{self.op.name}.{len(self.made) + 1}"
        given = axes or inputs[0].axes
        self.made.append(Op(name, kind, inputs, given, tuple(attrs.items()), self.op.part))
        return Tensor(name, given)

    def ops(self) -> Iterator[Op]:
        """All of them."""
        *before, last = self.made
        yield from before
        yield replace(last, name=self.op.name, axes=self.op.axes)


@executes("rmsnorm")
def rmsnorm(written: _Written, op: Op) -> Iterator[Op]:
    """float32, square, mean, reciprocal root, product; cast back before the gain, or behind one plus the gain."""
    line, x = _Line(op), op.activations[0]
    rows = tuple(a for a in op.axes if a not in over(op))
    wide = line("cast", x, axes=op.axes, to="fp32")
    mean = line("mean", line("power", wide, by=2), axes=rows)
    unit = line("mul", wide, line("rsqrt", mean, eps=op.attr("eps", 1e-6)), axes=op.axes)
    if not op.weights:
        line("cast", unit, like=x.name)
    elif op.attr("unit_offset"):
        gain = line("scale", line("cast", op.weights[0], to="fp32"), by=1.0, plus=1.0)
        line("cast", line("mul", unit, gain), like=x.name)
    elif written.how.gain == "wide":
        line("cast", line("mul", unit, op.weights[0]), like=x.name)
    else:
        line("mul", line("cast", unit, like=x.name), op.weights[0])
    return line.ops()


@executes("layernorm")
def layernorm(written: _Written, op: Op) -> Iterator[Op]:
    """As it comes, or in float32 and cast back."""
    if written.how.layernorm == "plain":
        yield op
        return
    line, x = _Line(op), op.activations[0]
    line("cast", line("layernorm", line("cast", x, to="fp32"), *op.weights, **dict(op.attrs)), like=x.name)
    yield from line.ops()


@executes("softmax")
def softmax(written: _Written, op: Op) -> Iterator[Op]:
    """Of scores in float32 and cast back; of choices in float32, and left so."""
    scores = op.part.endswith(".scores")
    if op.weights or (scores and written.how.softmax == "plain"):
        yield op
    else:
        line, x = _Line(op), op.activations[0]
        if not scores and written.how.choices == "narrow":
            written.routed = f"{op.name}.1"
            x = line("view", x)
        made = line("softmax", line("cast", x, to="fp32"), **dict(op.attrs))
        if scores:
            line("cast", made, like=x.name)
        yield from line.ops()
    if scores:
        yield from written.dropped(op, "scores")


@executes("mask")
def mask(_: _Written, op: Op) -> Iterator[Op]:
    """A sum with a mask that is there before the layers."""
    yield replace(op, attrs=(*op.attrs, ("added", True))) if len(op.inputs) == 1 else op


@executes("rope")
def rope(written: _Written, op: Op) -> Iterator[Op]:
    """Cosines and sines made once for all layers."""
    joined = (("joined", True),) if written.how.joined else ()
    yield replace(op, attrs=(*op.attrs, ("tables", written.how.tables), *joined))


@executes("attend")
def attend(_: _Written, op: Op) -> Iterator[Op]:
    """Keys and values as they are, but repeated for every query head where a mask is given."""
    yield replace(op, attrs=(*op.attrs, ("grouped", "unmasked")))


@executes("contract")
def contract(written: _Written, op: Op) -> Iterator[Op]:
    """Keys and values repeated for every query head, each its own copy."""
    if op.weights or not op.part.endswith(".scores"):
        yield op
        return
    x, y = op.inputs
    more = tuple(a for a in op.axes if a in x.axes and a not in y.axes and a != "n")
    if all(written.block.sizes.get(a, 1) == 1 for a in more):
        yield op
        return
    heads = tuple(a for a in op.axes if a != "n" and (a in y.axes or a in more) and a in x.axes)
    axes = (*heads, *(a for a in y.axes if a not in heads))
    spread, own = Tensor(f"{op.name}.spread", axes), Tensor(f"{op.name}.own", axes)
    yield Op(spread.name, "repeat", (y,), axes, (), op.part)
    yield Op(own.name, "copy", (spread,), axes, (), op.part)
    yield replace(op, inputs=(x, own))


@executes("linear")
def linear(written: _Written, op: Op) -> Iterator[Op]:
    """Weights that lie in one tensor are one product."""
    path = written.block.weight(op.weights[0].name).path
    yield replace(op, attrs=(*op.attrs, ("packed", path))) if path in written.packed else op


@executes("gelu_tanh")
def gelu_tanh(written: _Written, op: Op) -> Iterator[Op]:
    """0.5 x (1 + tanh(c (x + 0.044715 x^3))), composed."""
    if written.how.gelu == "fused":
        yield op
        return
    line, x = _Line(op), op.activations[0]
    half = line("scale", x, by=0.5)
    cube = line("scale", line("power", x, by=3), by=0.044715)
    inner = line("tanh", line("scale", line("add", x, cube), by=0.7978845608028654))
    line("mul", half, line("scale", inner, by=1.0, plus=1.0))
    yield from line.ops()


@executes("select")
def select(written: _Written, op: Op) -> Iterator[Op]:
    """Rows sorted by expert and multiplied in one kernel (torch's grouped_mm); as it comes where a text has one choice.

    So X-MOD's adapters run, language by language.
    """
    made = {a for w in op.weights for a in w.axes}
    if not {a for a in op.axes if a not in made} <= set(op.activations[1].axes):
        yield op
        return
    written.chosen_from = written.chosen_from or op.activations[0].name
    yield replace(op, attrs=(*op.attrs, ("sorted", True)))


@executes("combine")
def combine(written: _Written, op: Op) -> Iterator[Op]:
    """Put back where rows came from, and cast to the dtype of what experts were given."""
    line, (x, w) = _Line(op), op.inputs
    if written.routed:
        w = line("cast", w, like=written.routed)
    made = line("combine", x, w, axes=op.axes, **dict(op.attrs), sorted=True)
    if written.chosen_from:
        line("cast", made, like=written.chosen_from)
    yield from line.ops()
