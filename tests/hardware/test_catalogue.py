"""The catalogue of chips, each figure against what is said elsewhere: units and clocks, buses, sparse figures."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.cli import main
from assay.hardware import DTYPES, FIGURES, Chip, chip, chips
from assay.hardware.catalogue import made
from assay.report.hardware import TOGETHER, markdown, rate

CHIPS = chips()
FILES = Path(assay.__file__).parent / "hardware" / "chips"
ASKED = """
    v100-16gb v100-32gb a100-40gb a100-80gb h100-sxm h100-pcie h200 b200 gb200 l4 l40s a10g t4 rtx-3090 rtx-4090
    rtx-5090 mi250x mi300x mi355x tpu-v4 tpu-v5e tpu-v5p tpu-v6e trainium2 gaudi3 m1 m1-max m2-ultra m3-ultra m4-max
    epyc-9654
""".split()

# (units, clock in GHz, operations that a unit does in a clock, in the dtype): none is from where the rate is from
UNITS: list[tuple[str, int, float, int, str]] = [
    ("v100-16gb", 80, 1.53, 8 * 64 * 2, "fp16"),  # multiprocessors of 8 tensor cores of 64 multiply-adds
    ("v100-16gb", 80, 1.53, 64 * 2, "fp32"),
    ("a100-80gb", 108, 1.41, 4 * 256 * 2, "bf16"),
    ("a100-80gb", 108, 1.41, 64 * 2, "fp32"),
    ("h100-sxm", 132, 1.83, 4 * 512 * 2, "bf16"),
    ("h100-sxm", 132, 1.98, 128 * 2, "fp32"),  # outside tensor cores it runs faster
    ("h100-pcie", 114, 1.62, 4 * 512 * 2, "bf16"),
    ("h100-pcie", 114, 1.755, 128 * 2, "fp32"),
    ("h800", 132, 1.83, 4 * 512 * 2, "bf16"),
    ("l4", 58, 2.04, 4 * 128 * 2, "bf16"),
    ("l40s", 142, 2.52, 4 * 128 * 2, "bf16"),
    ("l40s", 142, 2.52, 128 * 2, "fp32"),
    ("a10g", 80, 1.71, 4 * 64 * 2, "bf16"),  # half of the width where products accumulate in float32
    ("t4", 40, 1.59, 8 * 64 * 2, "fp16"),
    ("rtx-3090", 82, 1.695, 4 * 64 * 2, "bf16"),
    ("rtx-4090", 128, 2.52, 4 * 64 * 2, "bf16"),
    ("rtx-5090", 170, 2.407, 4 * 64 * 2, "bf16"),
    ("mi250x", 220, 1.7, 1024, "bf16"),  # compute units
    ("mi300x", 304, 2.1, 2048, "bf16"),
    ("mi300x", 304, 2.1, 4096, "fp8"),
    ("mi355x", 256, 2.4, 8192, "fp8"),
    ("tpu-v3", 4, 0.94, 128 * 128 * 2, "bf16"),  # matrix units
    ("tpu-v4", 8, 1.05, 128 * 128 * 2, "bf16"),
    ("tpu-v5e", 4, 1.5, 128 * 128 * 2, "bf16"),
    ("tpu-v5p", 8, 1.75, 128 * 128 * 2, "bf16"),
    ("m1", 8, 1.278, 128 * 2, "fp32"),  # cores of 128 lanes
    ("m1-max", 32, 1.296, 128 * 2, "fp32"),
    ("m2-ultra", 76, 1.398, 128 * 2, "fp32"),
    # the vendor prints no rate: this is where it is from
    ("m3-ultra", 80, 1.38, 128 * 2, "fp32"),
    ("m4-max", 40, 1.678, 128 * 2, "fp32"),
    ("epyc-9654", 96, 2.4, 32, "fp32"),
]
# the clock that its rate is of is not known; those of one die with another are held by that
CLOCKLESS = {"b200", "gb200", "h100-nvl", "gaudi3", "trainium2", "tpu-v6e"}
SAME_DIE = {"a100-40gb": "a100-80gb", "a100-pcie": "a100-80gb", "h200": "h100-sxm", "v100-32gb": "v100-16gb"}
# (bits of the bus, Gbit/s of each)
BUSES: dict[str, tuple[int, float]] = {
    "v100-16gb": (4096, 1.756), "v100-32gb": (4096, 1.756), "a100-40gb": (5120, 2.43), "a100-80gb": (5120, 3.186),
    "a100-pcie": (5120, 3.024), "h100-sxm": (5120, 5.234), "h100-pcie": (5120, 3.186), "h100-nvl": (6016, 5.234),
    "h800": (5120, 5.234), "h200": (6144, 6.25), "b200": (7680, 7.992), "l4": (192, 12.5),
    "l40s": (384, 18), "a10g": (384, 12.5), "t4": (256, 10), "rtx-3090": (384, 19.5), "rtx-4090": (384, 21),
    "rtx-5090": (512, 28), "mi250x": (8192, 3.2), "mi300x": (8192, 5.2), "mi355x": (8192, 8), "m1": (128, 4.266),
    "m1-max": (512, 6.4), "m2-ultra": (1024, 6.4), "m3-ultra": (1024, 6.4), "m4-max": (512, 8.533),
    "epyc-9654": (768, 4.8),
}  # fmt: skip
ROUNDED = {"mi355x", "m1-max", "m2-ultra"}  # printed as 8 TB/s, 400 and 800 GB/s
# what data sheets print with two zeros in four, in TFLOP/s
SPARSE: dict[str, dict[str, float]] = {
    "a100-80gb": {"tf32": 312, "fp16": 624, "bf16": 624, "int8": 1248, "int4": 2496},
    "h100-sxm": {"tf32": 989.4, "fp16": 1978.9, "bf16": 1979, "fp8": 3958, "int8": 3958},
    "h100-pcie": {"tf32": 756, "fp16": 1513, "bf16": 1513, "fp8": 3026, "int8": 3026},
    "h100-nvl": {"bf16": 1671, "fp8": 3341},
    "h200": {"tf32": 989, "bf16": 1979, "fp8": 3958},
    "b200": {"tf32": 2200, "bf16": 4500, "fp8": 9000, "fp6": 9000, "int8": 9000, "fp4": 18000},
    "gb200": {"tf32": 2500, "bf16": 5000, "fp8": 10000, "fp6": 10000, "int8": 10000, "fp4": 20000},
    "l4": {"tf32": 120, "bf16": 242, "fp8": 485, "int8": 485},
    "l40s": {"tf32": 366, "bf16": 733, "fp8": 1466},
    "rtx-4090": {"bf16": 330.4, "fp8": 660.6, "int8": 1321.2, "int4": 2642.4},
    "rtx-5090": {"fp4": 3352},
    "mi300x": {"bf16": 2614.9, "fp8": 5229.8},
    "trainium2": {},  # its sparse figure, 2563, is four times the dense one
}


@pytest.mark.parametrize("name", ASKED)
def test_chips_that_people_ask_for(name: str) -> None:
    assert chip(name).name == name


@pytest.mark.parametrize("one", CHIPS, ids=lambda one: one.name)
def test_a_chip_is_complete_and_says_where_from(one: Chip) -> None:
    assert one.memory > 0
    assert one.bandwidth > 0
    assert one.rates
    assert all(type(rate) is int for rate in (one.memory, one.bandwidth, *one.rates.values()))
    assert [d for d in DTYPES if d in one.rates] == sorted(one.rates, key=DTYPES.index)
    for figure in FIGURES:
        if getattr(one, figure) is not None:
            assert one.source(figure).address.startswith("https://")
    known = {*FIGURES, *(f"rates.{dtype}" for dtype in one.rates)}
    assert set(one.unverified) <= known
    assert one.title.isprintable()
    assert one.links is None or one.interconnect


def sold(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"GB": 2**30, "GiB": 2**30}[unit]


@pytest.mark.parametrize("one", CHIPS, ids=lambda one: one.name)
def test_memory_is_what_it_is_sold_with_less_what_the_driver_keeps(one: Chip) -> None:
    assert 0.91 < one.memory / sold(one.sold) <= 1  # error correction takes a sixteenth of GDDR6


def test_the_memory_that_one_reported() -> None:
    assert chip("h200").memory == 150_109_880_320
    measured = Path(__file__).parents[3] / "shared" / "measured" / "h200.json"
    if measured.exists():
        info = next(r for r in json.loads(measured.read_text())["records"] if r["section"] == "info")
        assert chip(info["name"]).memory == info["mem"]
        assert chip(info["name"]).bandwidth > info["copy_bytes_per_s"]


@pytest.mark.parametrize("one", CHIPS, ids=lambda one: one.name)
def test_narrower_products_are_no_slower(one: Chip) -> None:
    order = [["fp64"], ["fp32"], ["tf32"], ["fp16", "bf16"], ["fp8", "int8"], ["fp4", "int4"]]
    least = 0
    for dtypes in order:
        rates = [one.rates[dtype] for dtype in dtypes if dtype in one.rates]
        assert all(rate >= least for rate in rates)
        least = min(rates, default=least)
    if "fp16" in one.rates and "bf16" in one.rates:
        assert one.rates["fp16"] == one.rates["bf16"]


def test_each_chip_is_held_by_units_and_clocks_or_named() -> None:
    assert {name for name, *_ in UNITS} | CLOCKLESS | SAME_DIE.keys() == {one.name for one in CHIPS}


@pytest.mark.parametrize(("name", "units", "clock", "each", "dtype"), UNITS)
def test_a_rate_is_units_times_clock_times_operations(
    name: str, units: int, clock: float, each: int, dtype: str
) -> None:
    assert chip(name).rate(dtype) == pytest.approx(units * clock * 1e9 * each, rel=0.025)  # two digits printed


@pytest.mark.parametrize("name", SAME_DIE)
def test_chips_of_one_die_agree(name: str) -> None:
    assert chip(name).rates == chip(SAME_DIE[name]).rates


@pytest.mark.parametrize("name", BUSES)
def test_bandwidth_is_the_bus_times_its_rate(name: str) -> None:
    bits, rate = BUSES[name]
    assert chip(name).bandwidth == pytest.approx(bits / 8 * rate * 1e9, rel=0.025 if name in ROUNDED else 0.005)


@pytest.mark.parametrize(("name", "dtype", "printed"), [(n, d, p) for n, row in SPARSE.items() for d, p in row.items()])
def test_rates_are_half_of_what_is_printed_for_sparse_matrices(name: str, dtype: str, printed: float) -> None:
    assert 2 * chip(name).rate(dtype) / 1e12 == pytest.approx(printed, rel=0.013)  # L40S rounds by 1.2 %


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("h100", "h100-sxm"),
        ("H100", "h100-sxm"),
        ("a100", "a100-80gb"),
        ("v100", "v100-32gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("rtx4090", "rtx-4090"),
        ("Tesla T4", "t4"),
        ("TPU v5p", "tpu-v5p"),
        ("amd_instinct_mi300x", "mi300x"),
        ("cpu", "epyc-9654"),
    ],
)
def test_names_as_people_say_them(said: str, name: str) -> None:
    assert chip(said).name == name


def test_names_and_aliases_are_of_one_chip() -> None:
    for one in CHIPS:
        for said in (one.name, *one.aliases):
            assert chip(said) is one


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("h1000", "no GPU or other chip is called 'h1000'; did you mean h100-sxm"),
        ("mi300", "no GPU or other chip is called 'mi300'; did you mean mi300x"),
        ("h99", "no GPU or other chip is called 'h99'; did you mean h100-nvl or h100-pcie or h100-sxm"),
        ("zzz", "no GPU or other chip is called 'zzz'; `assay gpus` lists them"),
        ("", "no GPU or other chip is called ''; `assay gpus` lists them"),
        (7, "no GPU or other chip is called '7'; `assay gpus` lists them"),
        ("x" * 500, "no GPU or other chip is called 'x{60}'; `assay gpus` lists them"),
    ],
)
def test_no_such_chip(said: Any, message: str) -> None:
    with pytest.raises(assay.HardwareError, match=message):
        chip(said)


def test_what_a_chip_lacks() -> None:
    with pytest.raises(
        assay.HardwareError, match="NVIDIA T4 16 GB has no products in bf16; it has fp32, fp16, int8, in"
    ):
        chip("t4").rate("bf16")
    with pytest.raises(assay.HardwareError, match="Apple M1, 8 GPU cores has no power"):
        chip("m1").source("power")
    assert not chip("tpu-v4").verified("interconnect")
    assert chip("tpu-v4").verified("rates")


def test_a_figure_without_a_source_is_refused() -> None:
    data = tomllib.loads((FILES / "h100-sxm.toml").read_text())
    data["sources"][2]["gives"] = []
    with pytest.raises(assay.HardwareError, match=r"x\.toml: memory has no source"):
        made("x", data)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["gpus", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert all(len(line) <= 100 for line in lines)
    rows = {line.split()[0]: line.split() for line in lines[1 : 1 + len(CHIPS)]}
    assert rows.keys() == {one.name for one in CHIPS}
    assert rows["h100-sxm"][1:] == "79.18 GiB 3.350 TB/s 66.9 989.4 1,978.9 1,978.9 – 900.0 GB/s 700 W".split()


def test_one_chip_with_its_sources(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "a10g")
    assert (code, err) == (0, "")
    found = re.search(r"^  bf16 +70 TFLOP/s  \[(\d)\]  not verified$", out, re.MULTILINE)
    assert found
    assert f"  [{found[1]}] NVIDIA A10G Tensor Core GPU data sheet, for AWS\n      https://" in out
    assert "23,684,186,112 bytes; sold as 24 GB" in out  # 22,587 x 2^20


def test_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "H100", "--json")
    (one,) = json.loads(out)["chips"]
    assert (one["name"], one["rates"]["bf16"], one["bandwidth"]) == ("h100-sxm", 989_400_000_000_000, 3_350_000_000_000)
    _, out, _ = run(capsys, "--json")
    assert [one["name"] for one in json.loads(out)["chips"]] == [one.name for one in CHIPS]


def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "h10")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "did you mean h100" in err


def test_a_page_has_every_rate_once() -> None:
    """Rates stand in columns of bits; none is lost there, and a lone one of several says of which dtype it is."""
    assert sorted(d for dtypes in TOGETHER.values() for d in dtypes) == sorted(DTYPES)
    rates = markdown(chips()).partition("### Rates")[2].partition("### Where")[0]
    rows = {line.split(" | ")[0].strip("| `"): line for line in rates.splitlines() if line.startswith("| `")}
    assert list(rows) == [one.name for one in chips()]
    for one in chips():
        assert all(rate(value) in rows[one.name] for value in one.rates.values())
    assert rows["v100-16gb"] == "| `v100-16gb` | 7.80 | 15.7 | – | fp16 125 | – | – | – | – |"
    assert "fp4 9,000" in rows["b200"]
    assert "*int4 733*" not in rows["l40s"]
    assert "int4 *733*" in rows["l40s"]
