"""The loss behind a head: logits in float32, their log-softmax, and what the labels pick of it.

As `cross_entropy` of float32 logits runs it, in `assay.learn` and in the public implementation (transformers,
loss/loss_utils.py) alike: the log-softmax is kept, the logits are not.
"""

from __future__ import annotations

from assay.errors import SettingError
from assay.records import replace
from assay.spec import Block, Model, Op, Segment, Tensor

PART = "head.loss"
LABELS = "labels"
AGAIN = "loss"  # what ops of a chunk run again with
CHUNKS = 3  # alike, in which all happens that ever does: a first, a last, and one as all others between


def with_loss(model: Model, shifted: bool = False) -> Model:
    """The same model with its loss behind the last op; `shifted` where labels are brought to their places first.

    Raises SettingError for a model without logits over a vocabulary.
    """
    *before, head = model.segments
    return replace(model, segments=(*before, replace(head, block=_ended(head.block, model.name, shifted))))


def _ended(block: Block, name: str, shifted: bool) -> Block:
    last = block.ops[-1]
    if not last.part.startswith("head") or last.axes[-1:] != ("V",) or len(last.axes) != 3:
        raise SettingError(f"{name} ends in {last.name}[{' '.join(last.axes)}]; a loss is known of logits [b t V]")
    logits = Tensor(last.name, last.axes)
    wide, logs = Tensor(f"{last.name}.wide", last.axes), Tensor(f"{last.name}.logs", last.axes)
    labels = Tensor(LABELS, last.axes[:-1])
    ops = (
        Op(wide.name, "cast", (logits,), last.axes, (("to", "fp32"),), PART),
        Op(logs.name, "log_softmax", (wide,), last.axes, (), PART),
        Op("loss", "nll", (logs, labels), (), (("shifted", True),) if shifted else (), PART),
    )
    return replace(block, ops=(*block.ops, *ops))


def in_chunks(model: Model, tokens: int, chunk: int) -> Model:
    """The same, its head and loss run for `chunk` of `tokens` at a time, and made again in the backward pass.

    What comes before the positions that get logits runs once. The last chunk may be smaller. Raises SettingError.
    """
    *before, head = model.segments
    cut = next((i for i, op in enumerate(head.block.ops) if "t" in op.axes), None)
    if cut is None:
        raise SettingError(f"{model.name} has no head over positions to run in chunks")
    once = replace(head, name=f"{head.name}.norm", block=replace(head.block, ops=head.block.ops[:cut]))
    ops = tuple(replace(op, again=AGAIN) for op in head.block.ops[cut:])
    rest = replace(head.block, ops=ops)
    made: list[Segment] = [*before, *([once] if cut else [])]
    whole, left = divmod(tokens, min(chunk, tokens))
    if whole:
        made.append(replace(head, block=rest, axes={**head.axes, "t": min(chunk, tokens)}, passes=whole))
    if left:
        made.append(replace(head, name=f"{head.name}.rest", block=rest, axes={**head.axes, "t": left}))
    return replace(model, segments=tuple(made))


def few_chunks(model: Model) -> Model:
    """The same, of chunks alike no more than it takes to see what each of them does."""
    chunks = (any(op.again == AGAIN for op in s.block.ops) for s in model.segments)
    few = (min(s.passes, CHUNKS) if chunk else s.passes for s, chunk in zip(model.segments, chunks, strict=True))
    return replace(model, segments=tuple(replace(s, passes=n) for s, n in zip(model.segments, few, strict=True)))
