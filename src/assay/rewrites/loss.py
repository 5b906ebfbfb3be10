"""The loss behind a head: logits, of words in float32, their log-softmax, and what the labels pick of it.

As `cross_entropy` runs it, in `assay.learn` and in the public implementation (transformers,
loss/loss_utils.py) alike: the log-softmax is kept, the logits are not.
"""

from __future__ import annotations

from assay.errors import SettingError
from assay.records import replace
from assay.size import surely_above
from assay.spec import Axes, Model, Op, Segment, Tensor

PART = "head.loss"
LABELS = "labels"
OF_ALL = ("ForSequenceClassification", "ForImageClassification")  # one label for all that is read
OF_EACH = ("ForTokenClassification",)
AGAIN = "loss"  # what ops of a chunk run again with
CHUNKS = 3  # alike, in which all happens that ever does: a first, a last, and one as all others between


def with_loss(model: Model, shifted: bool = False) -> Model:
    """The same model with its loss behind the last op; `shifted` where labels are brought to their places first.

    Raises SettingError for a model of whose result no loss is known.
    """
    *before, head = model.segments
    last = head.block.ops[-1]
    if not last.part.startswith("head") or not last.axes or not _known(model, last.axes):
        known = "logits of words [b t V], and of two labels or more, of each text or image [b l] or token [b t l]"
        raise SettingError(f"{model.name} ends in {last.name}[{' '.join(last.axes)}]; a loss is known of {known}")
    wide = last.axes[-1] == "V"
    block = replace(head.block, ops=(*head.block.ops, *_cross_entropy(last, wide, shifted and wide)))
    return replace(model, segments=(*before, replace(head, block=block)))


def _known(model: Model, axes: Axes) -> bool:
    """True for results that a cross-entropy is taken of: of words whatever the class, of labels by what it is for.

    As the public implementation's classes do (transformers, loss/loss_utils.py); one label is no class but a number,
    decoders pick one of their tokens first, and answers to questions are two losses.
    """
    labels = model.segments[-1].block.sizes.get("l")
    if axes[-1] != "l" or labels is None or not surely_above(labels, 1):
        return axes[-1] == "V" and len(axes) == 3
    return axes == ("b", "l") if model.cls.endswith(OF_ALL) else _of_each(model) and axes == ("b", "t", "l")


def _of_each(model: Model) -> bool:
    """True for an encoder's class of tokens, whose logits keep their dtype: a decoder's do not."""
    return model.cls.endswith(OF_EACH) and "past" not in model.settings


def _cross_entropy(logits: Op, wide: bool, shifted: bool) -> tuple[Op, ...]:
    """The ops; of words in float32, whatever dtype their logits have."""
    axes, made = logits.axes, Tensor(logits.name, logits.axes)
    cast: tuple[Op, ...] = ()
    if wide:
        cast = (Op(f"{logits.name}.wide", "cast", (made,), axes, (("to", "fp32"),), PART),)
        made = Tensor(f"{logits.name}.wide", axes)
    logs = Op(f"{logits.name}.logs", "log_softmax", (made,), axes, (), PART)
    picked = (Tensor(logs.name, axes), Tensor(LABELS, axes[:-1]))
    return *cast, logs, Op("loss", "nll", picked, (), (("shifted", True),) if shifted else (), PART)


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
