"""Figures as people write them, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import SettingError
from assay.report.units import (
    binary_bytes,
    decimal_bytes,
    digits,
    flop,
    layer_ranges,
    parse_number,
    parse_size,
    plural,
    share,
    short,
    shorten,
    times,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2048", 2048),
        (" 7 ", 7),
        ("131,072", 131072),
        ("1_000", 1000),
        ("8k", 8000),
        ("8K", 8000),
        ("1.5k", 1500),
        ("0.5Ki", 512),
        ("128Ki", 131072),
        ("2Mi", 2097152),
        ("3M", 3_000_000),
        ("2G", 2 * 10**9),
        ("2B", 2 * 10**9),
        ("15T", 15 * 10**12),
        ("4 k", 4000),
    ],
)
def test_sizes_as_written(text: str, value: int) -> None:
    assert parse_size(text, "--tokens") == value


@pytest.mark.parametrize(
    "text",
    ["", "k", "-1", "+1", "1.5", "0.3Ki", "1e3", "0x10", "1,00", "1__0", "nan", "inf", "١٢", "1m", "5 kk", "1k1", "½"],
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match=r"--tokens is .*; it must be an integer of at least 1"):
        parse_size(text, "--tokens")


def test_the_least_and_the_largest() -> None:
    assert parse_size("0", "--past", 0) == 0
    with pytest.raises(SettingError, match="--past is 0; it must be an integer of at least 1"):
        parse_size("0", "--past", 1)
    assert parse_size("1" + "0" * 30, "--batch") == 10**30
    with pytest.raises(SettingError, match=r"at most 10\^30"):
        parse_size("2" + "0" * 30, "--batch")


@given(st.integers(1, 10**30))
def test_an_integer_printed_reads_back(value: int) -> None:
    assert parse_size(digits(value), "x") == value


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (short(0), "0"),
        (short(999), "999"),
        (short(8_030_261_248), "8.030 B"),
        (short(999_960), "1.000 M"),
        (short(999_940), "999.9 k"),
        (short(1_000_000_000_000_000), "1.000e+15"),
        (flop(16_083_058_688), "16.08 GFLOP"),
        (flop(32_938_104_193_024), "32.94 TFLOP"),
        (flop(772_056_023_040_000_000_000_000), "772.1 ZFLOP"),
        (flop(10**30), "1.000e+30 FLOP"),
        (decimal_bytes(131_072), "131.1 kB"),
        (binary_bytes(131_072), "128.0 KiB"),
        (binary_bytes(1023), "1023 B"),
        (binary_bytes(1024**3), "1.000 GiB"),
        (share(1, 3), "33.3 %"),
        (share(1, 10**6), "<0.1 %"),
        (share(0, 5), "0.0 %"),
        (share(0, 0), ""),
        (times(103, 100), "1.030 times"),
        (times(10**6 + 1, 10**6), "1.000 times"),
        (times(123456, 10), "12,346 times"),
        (times(999.96, 1), "1000 times"),
        (plural(1, "token"), "1 token"),
        (plural(2048, "token"), "2,048 tokens"),
        (layer_ranges(()), ""),
        (layer_ranges((3,)), "3"),
        (layer_ranges((0, 1, 2, 5)), "0–2, 5"),
        (layer_ranges((0, 2, 4, 6)), "0, 2, … 6"),
        (layer_ranges((0, 2, 3)), "0, 2–3"),
        (shorten("a\nb\033"), "a?b?"),
        (shorten("abcdef", 4), "abc…"),
    ],
)
def test_figures_as_printed(shown: str, text: str) -> None:
    assert shown == text


@given(st.integers(1, 10**29))
def test_four_digits_are_within_half_of_the_last(value: int) -> None:
    number, prefix = decimal_bytes(value).split()
    powers = {p: 1000**i for i, p in enumerate(["B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"])}
    assert float(number) * powers[prefix] == pytest.approx(value, rel=5.01e-4)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2),
        ("2.5", 2.5),
        ("60k", 60_000),
        ("1.36M", 1_360_000),
        ("1e24", 10**24),
        ("3.8E25", 38 * 10**24),
        ("1.5e+1", 15),
        ("1,234.5", 1234.5),
        ("989.4T", 989_400_000_000_000),
        ("0.001", 0.001),
        ("1e-3", 0.001),
        ("250e-1", 25),
    ],
)
def test_numbers_as_written(text: str, value: float) -> None:
    found = parse_number(text, "--budget")
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("text", "value"), [("40%", 0.4), ("0.4", 0.4), ("100 %", 1), ("12.5%", 0.125)])
def test_shares_as_written(text: str, value: float) -> None:
    assert parse_number(text, "--mfu", percent=True) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "0.0",
        "-1",
        "+1",
        "0e-3",
        "1e-400",
        "1e-",
        "1e31",
        "2e30",
        "nan",
        "inf",
        "1,00",
        "٣",
        "1m",
        "40%",
        "1.2.3",
        "e5",
        ".5",
    ],
)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(
        SettingError, match=r"--budget is .*; it must be a number above 0, such as 2\.5, 60k or 3\.8e25"
    ):
        parse_number(text, "--budget")
