"""A training run: FLOPs of all its tokens, and on some chips its days, energy and price; or what a budget buys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from assay.errors import SettingError
from assay.hardware import Chip
from assay.readings.binding import as_model
from assay.readings.count import Count, count
from assay.readings.laws import LAWS, Optimum
from assay.readings.machines import DAY, Machines, machines
from assay.readings.optimizers import optimizer as optimizer_of
from assay.readings.printed import listed, said
from assay.readings.published import Formula, formulas
from assay.readings.setting import Setting, check_positions
from assay.readings.training import CONVENTIONS, trace
from assay.readings.updates import update_flops
from assay.records import dataclass, field, replace
from assay.rewrites.recompute import recompute as marked
from assay.size import Size, first_above, is_integer, lift, per, rate, shown, surely_above, whole
from assay.spec import Block, Model

Lengths = tuple[tuple[Size, Size], ...]  # (length, how many sequences of it)


@dataclass(frozen=True)
class TrainingRun:
    """What training on so many tokens costs, in FLOPs under `setting.convention`.

    `forward` and `backward` are the model's own work; `again` is what recomputation adds, and `update` what the
    optimizer does in all its steps of `step_tokens`, None where these were not given. `visible` is `forward` and
    `backward` over the pairs that masks let through. `published` are formulas of papers for the same run, `ours` beside
    them. `on` are the machines, None where none were given. `optimal` is what laws make of the same budget.
    """

    tokens: Size
    lengths: Lengths
    forward: Any
    backward: Any
    again: Any
    visible: Any
    setting: Setting
    recompute: str | int = "none"
    update: Any = None
    optimizer: str | None = None
    step_tokens: Size | None = None
    published: tuple[Formula, ...] = field(default=(), repr=False)
    on: Machines | None = None
    optimal: tuple[Optimum, ...] = field(default=(), repr=False)

    @property
    def flops(self) -> Any:
        """Model FLOPs: forward and backward."""
        return self.forward + self.backward

    @property
    def hardware_flops(self) -> Any:
        """Model FLOPs and what is computed again."""
        return self.flops + self.again

    @property
    def flops_per_token(self) -> Any:
        """Model FLOPs of a token; an int where that divides."""
        return per(self.flops, self.tokens)

    @property
    def mean_context(self) -> Any:
        """The length at which one sequence after another costs what these lengths do: their squares over themselves."""
        longer = sum((length * length * many for length, many in self.lengths), start=0)
        return per(longer, _total(self.lengths))

    def __str__(self) -> str:
        rows: list[tuple[str, Any, str]] = [
            ("forward FLOPs", self.forward, self.setting.convention),
            ("backward FLOPs", self.backward, ""),
            ("recomputed FLOPs", self.again, ""),
        ]
        if self.on is not None:
            rows += [("MFU", shown(self.on.mfu, ".1%"), ""), ("GPU-days", shown(self.on.gpu_days, ",.1f"), "")]
        return listed(said(tokens=self.tokens, mean_context=self.mean_context), rows)


def train(
    model: Model | Block,
    *,
    tokens: object = None,
    context: object = None,
    lengths: Mapping[int, int] | Iterable[int] | None = None,
    gpu: Chip | str | None = None,
    gpus: object = 1,
    mfu: Any = None,
    tokens_per_second: Any = None,
    peak_flops: Any = None,
    dtype: str | None = None,
    price: Any = None,
    power: Any = None,
    pue: Any = 1,
    recompute: str | int = "none",
    optimizer: str = "adamw",
    step_tokens: object = None,
    budget: Any = None,
    gpu_days: Any = None,
    convention: str = "matmul",
    source: object = None,
    images: object = None,
    image_tokens: object = None,
    sounds: object = None,
    **sizes: object,
) -> TrainingRun:
    """A training run of a model on `tokens` tokens, or on as many as a `budget` of FLOPs or `gpu_days` buys.

    `context` are the tokens of a sequence. `lengths` in its place are those of packed sequences that do not see each
    other, a list or a mapping from length to how many: the mixture is the whole run's. On `gpus` chips called `gpu`,
    or of `peak_flops` each, either `mfu` is reached, a fraction of the peak in `dtype` (bf16, fp16 where a chip has no
    bf16), or `tokens_per_second` were measured of all together. `price` is of one chip an hour, in any currency;
    `power` in watts (the chip's), times `pue` for the building. `recompute` is none, attention (its core), layer, or
    how many layers run again together. `optimizer` steps once in `step_tokens`. Sizes may be ints, arrays or symbols.
    Raises SettingError, SizeError and HardwareError.
    """
    of = as_model(model, sizes, train)
    if lengths is not None and context is not None:
        raise SettingError("lengths and context cannot both be given: lengths are those of sequences")
    if sum(given is not None for given in (tokens, budget, gpu_days)) != 1:
        raise SettingError("give one of tokens, budget (FLOPs) and gpu_days")
    optimizer_of(optimizer)
    asked = {"convention": convention, "source": source, "images": images}
    asked |= {"image_tokens": image_tokens, "sounds": sounds}
    given = _lengths(lengths) if lengths is not None else ((None if context is None else lift(context, "context"), 1),)
    for length, _ in given:
        if length is not None:
            check_positions(of, length, "context" if lengths is None else "a length")
    mixed = _Mixture(of, given, recompute, asked)
    told = {"gpus": gpus, "mfu": mfu, "tokens_per_second": tokens_per_second, "peak_flops": peak_flops, "dtype": dtype}
    if tokens is None:
        run = mixed.run(_affordable(mixed, budget, gpu_days, gpu, told))
        run = replace(run, optimal=tuple(one.optimum(run.flops) for one in LAWS.values()))
    else:
        run = mixed.run(lift(tokens, "tokens"))
    if step_tokens is not None:
        every = lift(step_tokens, "step_tokens")
        if surely_above(every, run.tokens):
            one, most = first_above(every, run.tokens)
            raise SettingError(f"step_tokens is {one}; the whole run has {most} tokens")
        update = per(update_flops(of, optimizer) * run.tokens, every)
        run = replace(run, update=update, optimizer=optimizer, step_tokens=every)
    return replace(run, on=machines(run, gpu, price=price, power=power, pue=pue, **told))


def _affordable(mixed: _Mixture, budget: Any, gpu_days: Any, gpu: Chip | str | None, told: dict[str, Any]) -> Size:
    """The tokens that a budget of FLOPs buys, or so many days of one chip: a whole number where it is one."""
    if budget is not None:
        bought = rate(budget, "budget") / mixed.run(1).flops
    else:
        days = rate(gpu_days, "gpu_days")
        on = machines(mixed.run(1), gpu, **told)
        if on is None:
            raise SettingError("gpu_days needs a gpu, and mfu or tokens_per_second")
        bought = days * DAY * on.tokens_per_second / on.gpus
    if surely_above(1, bought):
        raise SettingError("the budget does not pay for one token")
    return whole(bought)


class _Sequence(NamedTuple):
    """A length, how many sequences of it, and the FLOPs of one."""

    length: Size
    many: Size
    forward: Size
    backward: Size
    again: Size
    visible: Size
    setting: Setting
    counted: Count


class _Mixture:
    """Sequences of several lengths, each traced once; all of them together are what a run repeats."""

    def __init__(
        self, model: Model, lengths: Iterable[tuple[Any, Size]], recompute: str | int, asked: dict[str, Any]
    ) -> None:
        self.model = model
        self.recompute = recompute
        twice = marked(model, recompute)
        self.rows: list[_Sequence] = []
        for length, many in lengths:
            counted = count(model, tokens=length, logits="all", **asked)
            step = counted.setting
            if step.convention not in CONVENTIONS:
                raise SettingError(
                    f"convention is {step.convention!r}; a backward pass is known in {' and '.join(CONVENTIONS)}"
                )
            forward, backward, again = _priced(twice, step)
            seen = _priced(model, replace(step, convention="causal"))
            row = _Sequence(step.tokens, many, forward, backward, again, seen[0] + seen[1], step, counted)
            self.rows.append(row)
        self.lengths = tuple((row.length, row.many) for row in self.rows)
        self.tokens = _total(self.lengths)

    def per_token(self, figure: Callable[[_Sequence], Any], tokens: Size = 1) -> Any:
        """The mean of a figure of sequences for a token, for so many tokens."""
        return per(sum((row.many * figure(row) for row in self.rows), start=0) * tokens, self.tokens)

    def _spread(self, values: Mapping[int, Any], tokens: Size) -> Any:
        """Values a token of each row, for so many tokens of all of them."""
        return self.per_token(lambda row: row.length * values[id(row)], tokens)

    def run(self, tokens: Size) -> TrainingRun:
        """The run of so many tokens of this mixture."""
        return TrainingRun(
            tokens,
            self.lengths,
            self.per_token(lambda row: row.forward, tokens),
            self.per_token(lambda row: row.backward, tokens),
            self.per_token(lambda row: row.again, tokens),
            self.per_token(lambda row: row.visible, tokens),
            self.rows[0].setting,
            self.recompute,
            published=tuple(self._published(tokens)),
        )

    def _published(self, tokens: Size) -> Iterator[Formula]:
        """Formulas of papers for the run; those of a forward pass three times, but 2N, which makes 6ND so."""
        ours = self.per_token(lambda row: row.forward + row.backward, tokens)
        by_row = {id(row): {one.name: one for one in formulas(self.model, row.counted)} for row in self.rows}
        for name, one in by_row[id(self.rows[0])].items():
            if name == "2N":
                continue
            times = 3 if one.work == "forward" else 1
            values = {key: rows[name].value for key, rows in by_row.items()}
            value = self._spread(values, times * tokens)
            text = f"3 ({one.text})" if times > 1 else one.text
            yield replace(one, text=text, work="training", value=value, ours=ours)


def _priced(model: Model, asked: Setting) -> tuple[Size, Size, Size]:
    """FLOPs of a sequence, forward, backward, and forward once more of the ops that are marked so."""
    forward: Size = 0
    backward: Size = 0
    again: Size = 0
    for _, layer in trace(model, asked, stored=False):
        for op in layer:
            forward, backward = forward + op.forward, backward + op.backward
            again += op.forward if op.op.again else 0
    return forward, backward, again


def _lengths(given: Mapping[int, int] | Iterable[int]) -> Lengths:
    """Lengths and how many there are of each, those that occur twice together."""
    pairs = given.items() if isinstance(given, Mapping) else ((length, 1) for length in given)
    kept: dict[Any, Any] = {}
    for length, many in pairs:
        n = lift(length, "a length")
        key = n if is_integer(n) else id(n)
        before = kept[key][1] if key in kept else 0
        kept[key] = (n, before + lift(many, "a number of sequences"))
    if not kept:
        raise SettingError("lengths are empty")
    return tuple(kept.values())


def _total(lengths: Lengths) -> Size:
    return sum((length * many for length, many in lengths), start=0)
