"""How long a run takes on some machines, what it draws and what it costs; and what share of their peak it reaches."""

from __future__ import annotations

from typing import Any, Protocol

from assay.errors import SettingError, among
from assay.hardware import DTYPES, Chip, chip
from assay.records import dataclass
from assay.size import Size, fraction, is_integer, lift, rate, shown, surely_above

DAY = 86400
PREFERRED = ("bf16", "fp16")  # the dtype of products where none is asked for


class Run(Protocol):
    """What machines do: so many tokens, and the FLOPs of all of them."""

    @property
    def tokens(self) -> Size:
        """Tokens of the whole run."""

    @property
    def flops(self) -> Any:
        """The model's own work."""

    @property
    def hardware_flops(self) -> Any:
        """The same with what is computed again."""

    @property
    def visible(self) -> Any:
        """The model's own work over the pairs that masks let through."""


@dataclass(frozen=True)
class Machines:
    """A run on `gpus` chips of `peak` FLOP/s each in `dtype`.

    `mfu` is model FLOPs utilization (Chowdhery et al. 2022), `hfu` the same with what is computed again.
    `tokens_per_second` is that of all chips together, `seconds` how long it takes. `power` is in watts a chip, `energy`
    in joules of all with `pue`, the building's overhead; `price` is of one chip an hour and `cost` of the run. None
    where nothing was given.
    """

    chip: Chip | None
    gpus: Size
    dtype: str
    peak: Any
    mfu: Any
    hfu: Any
    tokens_per_second: Any
    seconds: Any
    measured: bool = False
    power: Any = None
    pue: Any = 1
    energy: Any = None
    price: Any = None
    cost: Any = None

    @property
    def days(self) -> Any:
        """How long it takes."""
        return self.seconds / DAY

    @property
    def gpu_days(self) -> Any:
        """The same of all chips, added up."""
        return self.seconds * self.gpus / DAY

    @property
    def gpu_hours(self) -> Any:
        """The same in hours."""
        return self.seconds * self.gpus / 3600


def machines(
    run: Run,
    gpu: Chip | str | None,
    *,
    gpus: object = 1,
    mfu: Any = None,
    tokens_per_second: Any = None,
    peak_flops: Any = None,
    dtype: str | None = None,
    price: Any = None,
    power: Any = None,
    pue: Any = 1,
) -> Machines | None:
    """A run on machines; None where none are given. Raises SettingError, SizeError and HardwareError."""
    found = gpu if gpu is None or isinstance(gpu, Chip) else chip(gpu)
    if found is None and peak_flops is None:
        given = {"mfu": mfu, "tokens_per_second": tokens_per_second, "price": price, "power": power, "dtype": dtype}
        extra = [name for name, value in given.items() if value is not None]
        extra += [name for name, value in {"gpus": gpus, "pue": pue}.items() if not (is_integer(value) and value == 1)]
        if extra:
            raise SettingError(
                f"{' and '.join(extra)} {'need' if extra[1:] else 'needs'} a chip: name a gpu, or give peak_flops"
            )
        return None
    if found is not None and peak_flops is not None:
        raise SettingError("gpu and peak_flops are two ways to say one thing; give one")
    many = lift(gpus, "gpus")
    named, peak = _peak(found, peak_flops, dtype)
    speed, used = _speed(run, many * peak, mfu, tokens_per_second)
    hfu = used * run.hardware_flops / run.flops
    worked = hfu * run.visible / run.flops  # a kernel may leave out what the mask hides
    if surely_above(worked, 1):
        said = "mfu" if mfu is not None else "tokens_per_second"
        raise SettingError(
            f"{said} is {shown(mfu if mfu is not None else speed, ',')}; with what is computed again that is "
            f"{shown(100 * worked, '.0f')} % of the peak of all these machines"
        )
    seconds = run.tokens / speed
    watts = _optional(power, "power") or (found.power if found is not None else None)
    overhead = rate(pue, "pue")
    if surely_above(1, overhead):
        raise SettingError(f"pue is {pue}; it is what a building draws over what its machines do, at least 1")
    paid = _optional(price, "price")
    return Machines(
        found,
        many,
        named,
        peak,
        used,
        hfu,
        speed,
        seconds,
        tokens_per_second is not None,
        watts,
        overhead,
        None if watts is None else watts * overhead * many * seconds,
        paid,
        None if paid is None else paid * many * seconds / 3600,
    )


def _optional(value: Any, name: str) -> Any:
    return None if value is None else rate(value, name)


def _peak(found: Chip | None, peak: Any, dtype: str | None) -> tuple[str, Any]:
    """The dtype of products, and FLOP/s in it."""
    if dtype is not None:
        among(dtype, "dtype", DTYPES)
    if found is None:
        return dtype or "given", rate(peak, "peak_flops")
    named = dtype or next((d for d in PREFERRED if d in found.rates), PREFERRED[0])
    return named, found.rate(named)


def _speed(run: Run, peak: Any, mfu: Any, tokens_per_second: Any) -> tuple[Any, Any]:
    """Tokens a second, and the share of the peak that they are."""
    if (mfu is None) == (tokens_per_second is None):
        said = "both are given" if mfu is not None else "none is given"
        raise SettingError(f"a run needs mfu, a fraction such as 0.4, or a measured tokens_per_second; {said}")
    if mfu is not None:
        used = fraction(mfu, "mfu")
        return peak * used * run.tokens / run.flops, used
    speed = rate(tokens_per_second, "tokens_per_second")
    used = speed * run.flops / run.tokens / peak
    seen = speed * run.visible / run.tokens / peak
    if surely_above(seen, 1):
        raise SettingError(
            f"tokens_per_second is {shown(speed, ',')}, {shown(100 * seen, '.0f')} % of the peak of all these machines"
        )
    return speed, used
