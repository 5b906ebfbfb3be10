"""A block as one rank runs it: its ops over what is left of their axes, and what ranks exchange between them.

A tensor is whole on each rank, a part of its own, or, where tokens are divided, some of the tokens. A product that sums
over a divided axis leaves parts of a sum, which ranks add; what many ranks read whole gets its gradient from all.
"""

from __future__ import annotations

from assay.errors import SettingError
from assay.kinds.dividing import HERE, adds_up, alone, looks_up_tokens, plain, routes, statistics, sums_over
from assay.kinds.reduce import over
from assay.records import replace
from assay.rewrites.plan import Plan
from assay.rewrites.split import Split, of_those_here
from assay.spec import Attrs, Axes, Block, Op, Tensor, Weight

ROWS = "nt"  # the tokens that are a rank's own
# given: whole, to products of which ranks have parts alone, so that each has a part of its gradient
WHOLE, OWN, SOME, PART, GIVEN = "whole", "own", "some", "part", "given"
_INDEX = ("ids", "at", "type")  # they have no gradient


class Exchange:
    """The ops of one block as they are rewritten. `states` says how tensors are held, from block to block.

    `carried` are names that blocks leave for each other.
    """

    def __init__(
        self, block: Block, split: Split, plan: Plan, states: dict[str, str], name: str, carried: frozenset[str]
    ) -> None:
        self.block = block
        self.split = split
        self.plan = plan
        self.states = states
        self.name = name
        self.carried = carried
        self.ops: list[Op] = []
        self.index = 0
        self.stored: dict[str, Weight] = dict(block.stored)
        self.axes: dict[str, Axes] = {}
        self.made: dict[tuple[str, str], str] = {}  # of a tensor, another way to hold it
        self.sent: set[str] = set()  # tensors whose rows are those of the experts that are here
        self.group: Attrs = (("ranks", plan.tensor), ("over", "tensor"))

    def run(self) -> Block:
        """The block of one rank."""
        for index, op in enumerate(self.block.ops):
            self.index = index
            self._op(op)
        for name in [name for name in self.axes if self.states[name] == PART and self._leaves(name)]:
            self._summed(name)
        if self.plan.sequence and self.states.get("x") == WHOLE and "x" in self.axes:
            self._scattered("x")
        if self.states.get("x") == OWN:
            raise SettingError(
                f"how tensor ranks divide {self.name} is not known: they would divide its residual stream"
            )
        experts = {} if self.split.experts is None else {HERE: self.split.experts}
        sizes = {**self.block.sizes, **self.split.sizes, **experts}
        return replace(self.block, ops=tuple(self.ops), stored=self.stored, sizes=sizes)

    def _leaves(self, name: str) -> bool:
        """True for what another block reads, or nobody has read yet: parts of a sum may have been read as they are."""
        if name in self.carried:
            return True
        made = max(index for index, op in enumerate(self.ops) if op.name == name)
        return not any(name in {t.name for t in op.activations} for op in self.ops[made + 1 :])

    # --- one op ---

    def _op(self, op: Op) -> None:
        if routes(op) and self.split.experts is not None:
            self._routed(op)
            return
        self._run(op)
        if any(t.name in self.sent for t in op.activations):
            self.sent.add(op.name)
        else:
            self.sent.discard(op.name)

    def _run(self, op: Op) -> None:
        inputs = op.activations
        for tensor in inputs:
            self._met(tensor)
        states = {self.states[t.name] for t in inputs}
        if PART in states and not adds_up(op):
            for tensor in inputs:
                if self.states[tensor.name] == PART:
                    self._summed(tensor.name)
            states = {self.states[t.name] for t in inputs}
        own = OWN in states or PART in states or any(self.split.of(w) for w in op.weights)
        if own:
            self._divided(op)
        elif SOME in states and self._alone(op):
            self._some(op)
        else:
            state = GIVEN if SOME in states and self._read_apart(op) else WHOLE
            self._emit(replace(op, inputs=tuple(self._whole(t, state == WHOLE) for t in op.inputs)), state)

    def _read_apart(self, op: Op) -> bool:
        """True where products with divided weights alone read what an op makes."""
        found = False
        for later in self.block.ops[self.index + 1 :]:
            if op.name in {t.name for t in later.activations}:
                found = True
                if not any(map(self.split.of, later.weights)):
                    return False
            if later.name == op.name:
                return found
        return found

    def _met(self, tensor: Tensor) -> None:
        """A tensor that comes from another block."""
        if tensor.name in self.axes:
            return
        state = self.states.get(tensor.name, WHOLE)
        if tensor.name == "x" and self.plan.sequence and "n" in tensor.axes:
            state = SOME
        if self.split.of(tensor):
            state = OWN
        self.states[tensor.name] = state
        self.axes[tensor.name] = _rows(tensor.axes) if state == SOME else tensor.axes

    def _emit(self, op: Op, state: str) -> None:
        self.ops.append(op)
        self.states[op.name] = state
        self.axes[op.name] = op.axes
        for key in [key for key in self.made if key[0] == op.name]:
            del self.made[key]

    def _alone(self, op: Op) -> bool:
        """True where a rank's own tokens are all that it takes."""
        return alone(op) and "n" in op.axes

    def _some(self, op: Op) -> None:
        """Of a rank's own tokens."""

        def some(tensor: Tensor) -> Tensor:
            if tensor.is_weight:
                return tensor
            if self.states[tensor.name] == WHOLE and "n" in tensor.axes:
                return self._other(tensor, "some", "scatter", _rows(tensor.axes), self.group)
            if self.states[tensor.name] == WHOLE:
                return tensor
            return Tensor(tensor.name, _rows(tensor.axes))

        self._emit(replace(op, inputs=tuple(map(some, op.inputs)), axes=_rows(op.axes)), SOME)

    def _whole(self, tensor: Tensor, alike: bool) -> Tensor:
        """A tensor with all tokens; where every rank goes on `alike` its gradient is whole on each."""
        if tensor.is_weight or self.states[tensor.name] != SOME:
            return tensor
        if not alike:
            return self._gathered(tensor, "all", self.group)
        return self._gathered(tensor, "whole", (*self.group, ("alike", True)))

    def _gathered(self, tensor: Tensor, way: str, attrs: Attrs) -> Tensor:
        return self._other(Tensor(tensor.name, _rows(tensor.axes)), way, "all_gather", tensor.axes, attrs)

    def _other(self, tensor: Tensor, way: str, kind: str, axes: Axes, attrs: Attrs) -> Tensor:
        """The same tensor held otherwise, made once."""
        name = self.made.get((tensor.name, way))
        if name is None:
            name = f"{tensor.name}_{way}"
            part = next((op.part for op in reversed(self.ops) if op.name == tensor.name), "other")
            self.ops.append(Op(name, kind, (tensor,), axes, attrs, part))
            self.made[tensor.name, way] = name
        return Tensor(name, axes)

    def _divided(self, op: Op) -> None:
        """Of a rank's own part of heads, widths or rows."""
        self._agree(op)

        def read(tensor: Tensor) -> Tensor:
            if tensor.is_weight or self.states[tensor.name] in (OWN, PART, GIVEN):
                return tensor
            if self.states[tensor.name] == SOME:
                return self._gathered(tensor, "all", self.group)
            if tensor.name in _INDEX or (routes(op) and tensor == op.activations[1]):
                return tensor
            return self._other(tensor, "copy", "copies", tensor.axes, self.group)

        summed = {a for t in op.inputs for a in t.axes if a in self.split} - set(op.axes)
        self._one_side(op)
        self._carried(op, bool(summed))
        parts = any(self.states[t.name] == PART for t in op.activations)
        state = PART if summed or parts else OWN
        if looks_up_tokens(op):  # the rows that others hold are zero here
            op = replace(op, attrs=(*op.attrs, self.group[0]))
        bias = op.weights[1:] if state == PART and (plain(op) or routes(op)) else ()
        inputs = tuple(read(t) for t in op.inputs if t not in bias)
        self._emit(replace(op, inputs=inputs), state)
        if bias:  # added once, to the sum
            self._summed(op.name)
            self._biased(op, bias[0])

    def _biased(self, op: Op, bias: Tensor) -> None:
        """A bias added, of the experts that are chosen where there are several."""
        made = Tensor(op.name, op.axes)
        if routes(op):
            index = op.activations[1]
            chosen = Tensor(f"{op.name}_bias", (*index.axes, *bias.axes[1:]))
            self._run(Op(chosen.name, "gather", (index, bias), chosen.axes, (), op.part))
            self._run(Op(op.name, "add", (made, chosen), op.axes, (), op.part))
        else:
            self._run(Op(op.name, "add", (made, bias), op.axes, (), op.part))

    def _carried(self, op: Op, summed: bool) -> None:
        """A divided axis is in an operand and in the result, or summed over: nothing else is known of it."""
        given = {a for t in op.inputs for a in t.axes}
        made = [a for a in op.axes if a in self.split and a not in given]
        if made or (summed and not sums_over(op)):
            raise SettingError(f"how tensor ranks divide {op} of {self.name} is not known")

    def _one_side(self, op: Op) -> None:
        """A matrix is divided along its rows or along its columns: of both a rank would hold too little."""
        given = {a for t in op.activations for a in t.axes}
        for weight in op.weights:
            mine = [a for a in weight.axes if a in self.split]
            if any(a not in op.axes for a in mine) and any(a in op.axes and a not in given for a in mine):
                raise SettingError(
                    f"how tensor ranks divide {weight} of {self.name} is not known: both of its sides would be"
                )

    def _agree(self, op: Op) -> None:
        """A norm over an axis of which ranks hold parts: they add up the statistics of a row."""
        if not statistics(op) or not any(axis in self.split for axis in over(op)):
            return
        x = op.activations[0]
        rows = tuple(a for a in x.axes if a not in over(op))
        for index in range(statistics(op)):
            self.ops.append(Op(f"{op.name}_row{index}", "all_reduce", (x,), rows, self.group, op.part))

    # --- between ranks ---

    def _summed(self, name: str) -> None:
        """Parts of a sum added: on each rank whole, or each rank's own tokens of it."""
        axes, part = self.axes[name], self.ops[-1].part
        if self.plan.sequence and "n" in axes:
            op = Op(name, "reduce_scatter", (Tensor(name, axes),), _rows(axes), self.group, part)
            self._emit(op, SOME)
        else:
            self._emit(Op(name, "all_reduce", (Tensor(name, axes),), axes, self.group, part), WHOLE)

    def _scattered(self, name: str) -> None:
        """Each rank's own tokens of what all have."""
        axes = self.axes[name]
        if "n" not in axes:
            raise SettingError(f"sequence is not known for {self.name}, whose residual stream is not one of tokens")
        self._emit(Op(name, "scatter", (Tensor(name, axes),), _rows(axes), self.group, self.ops[-1].part), SOME)

    def _routed(self, op: Op) -> None:
        """A product with chosen experts of this rank: tokens go to them before the first, back after the last."""
        x, index = op.activations
        group: Attrs = (("ranks", self.plan.expert), ("over", "expert"))
        here = of_those_here(op, self.stored, self.block)
        back = x.name in self.sent
        if not back:
            name, axes = f"{x.name}_sent", tuple(dict.fromkeys((*index.axes, *x.axes)))
            if (x.name, "sent") not in self.made:
                self._run(Op(name, "all_to_all", (x, index), axes, group, op.part))
                self.made[x.name, "sent"] = name
            inputs = tuple(Tensor(name, axes) if t == x else t for t in here.inputs)
            here = replace(here, inputs=inputs)
        self._run(here)
        self.sent.add(op.name)
        if back:
            self._run(Op(op.name, "all_to_all", (Tensor(op.name, op.axes),), op.axes, group, op.part))
            self.sent.discard(op.name)


def _rows(axes: Axes) -> Axes:
    return tuple(ROWS if axis == "n" else axis for axis in axes)
