"""Passes forward measured on a GPU: the peak of each, said op by op."""

from __future__ import annotations

from typing import Any

import pytest
from measurements import PASSED, model, passed, title

import assay

PEAKS = [record for record in PASSED if record["section"] == "infer_peak"]
PREFILLS = [record for record in PASSED if record["section"] == "hf"]


def named(record: dict[str, Any]) -> str:
    """A record of one length may be there twice, with all logits and with the last."""
    return title(record) + (", all logits" if record.get("logits_to_keep") == 0 else "")


def parameters(record: dict[str, Any]) -> int:
    """Bytes of them, of 2 each."""
    return 2 * int(assay.count(model(record["model"]), tokens=1).parameters.total)


@pytest.mark.parametrize("record", PEAKS, ids=named)
def test_the_peak_of_a_pass_is_as_measured(record: dict[str, Any]) -> None:
    one = passed(record)
    assert abs(one.error) < 0.05  # what is promised
    assert abs(one.error) < 0.0001  # what mechanisms give


@pytest.mark.parametrize("record", [r for r in PEAKS if r["n"] == 4096], ids=named)
def test_what_a_pass_adds_is_so_to_the_byte_where_tensors_fill_whole_blocks(record: dict[str, Any]) -> None:
    """Beside parameters as many bytes were there before every pass."""
    one = passed(record)
    assert record["weights_bytes"] - parameters(record) == 359_424
    assert one.said - parameters(record) == one.measured - record["weights_bytes"]


@pytest.mark.parametrize("record", PEAKS, ids=named)
def test_what_stays_is_weights_cache_and_logits(record: dict[str, Any]) -> None:
    held = assay.memory(model(record["model"]), record["b"], record["n"], weights="bf16")
    logits = record["b"] * (1 if record["logits_to_keep"] else record["n"]) * 128256 * 2
    assert held.part("weights") == parameters(record)
    beside = record["kept_bytes"] - record["weights_bytes"] - held.cache - logits
    assert 0 <= beside < 3 * 2**20  # blocks of 2 MiB are not always full


def test_prefills_of_another_run_are_above_by_what_that_process_held_beside() -> None:
    """One number for every batch and length: none of it hangs on the pass."""
    beside = [one.measured - one.said for one in map(passed, PREFILLS)]
    assert len(beside) == 4
    assert max(beside) - min(beside) < 1024
    assert 0 < min(beside) < 0.07 * min(one.measured for one in map(passed, PREFILLS))


def test_a_cache_that_is_not_copied_and_what_is_let_go_early_make_it_less() -> None:
    record = PEAKS[0]
    sizes = (model(record["model"]), record["b"], record["n"])
    totals = [assay.memory(*sizes, weights="bf16", policy=policy).total for policy in ("serving", "transformers")]
    assert totals[0] < totals[1]
