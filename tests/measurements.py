"""Memory measured on a GPU beside what is said of it: the records, and our figures for each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

import assay
from assay.spec import Model

FILE = Path(__file__).parent / "measured" / "h200.json"
DATA: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
RECORDS: list[dict[str, Any]] = DATA["records"]
PASSED = [record for record in RECORDS if record["section"] in ("infer_peak", "hf")]
TRAINED = [record for record in RECORDS if record["section"] == "train"]
ATTENTION = {"sdpa": "fused", "eager": "plain"}
FIGURES = {  # what a record calls it, what a table does, and within what it must be
    "resident_bytes": ("resident", 0.01),
    "body_saved_bytes": ("saved by the layers", 0.03),
    "after_forward_bytes": ("end of forward", 0.05),
    "peak_bytes": ("peak", 0.05),
}


@dataclass(frozen=True)
class Compared:
    """One figure: what it is of, what we say, what was measured."""

    name: str
    figure: str
    said: int
    measured: int

    @property
    def error(self) -> float:
        """Of what was measured."""
        return self.said / self.measured - 1


@cache
def model(name: str) -> Model:
    """A model by the sizes that the records give it."""
    d = DATA["dims"][name]
    if d["family"] == "gpt2":
        sizes = {"n_embd": d["d"], "n_layer": d["layers"], "n_head": d["heads"], "n_positions": 1024}
    else:
        sizes = {
            "hidden_size": d["d"],
            "num_hidden_layers": d["layers"],
            "num_attention_heads": d["heads"],
            "num_key_value_heads": d["kv_heads"],
            "head_dim": d["head_dim"],
            "intermediate_size": d["ff"],
            "max_position_embeddings": 131072,
            "tie_word_embeddings": d["tied"],
        }
    return assay.load({"model_type": d["family"], "vocab_size": d["vocab"], **sizes})


def title(record: dict[str, Any]) -> str:
    """Which record it is, as a table names it."""
    words = [record["model"], f"{record['b']} × {record['n']:,}"]
    if record["section"] == "train":
        again = ", every layer again" if record["checkpoint"] else ""
        words += [f"{record['precision']}, {record['attn']}{again}"]
    return ", ".join(words)


def trained(record: dict[str, Any]) -> Iterator[Compared]:
    """The figures of a training step.

    Where what was resident is parameters and two states alone, the workspace was taken out of all figures.
    """
    bare = record["resident_bytes"] == 6 * record["params"] and record["precision"] == "bf16"
    step = assay.training_memory(
        model(record["model"]),
        record["b"],
        record["n"],
        precision=record["precision"],
        attention=ATTENTION[record["attn"]],
        recompute="layer" if record["checkpoint"] else "none",
        workspace=0 if bare else None,
    )
    said = {
        "resident_bytes": step.resident,
        "body_saved_bytes": step.saved,
        "after_forward_bytes": step.moment("end of forward").bytes,
        "peak_bytes": step.peak.bytes,
    }
    for key, size in said.items():
        yield Compared(title(record), key, size, record[key])


def passed(record: dict[str, Any]) -> Compared:
    """The peak of a pass forward; nothing of the matrix library is in these records."""
    held = assay.memory(
        model(record["model"]),
        record["b"],
        record["n"],
        logits="all" if record.get("logits_to_keep") == 0 else "last",
        policy="transformers",
        weights="bf16",
    )
    measured = record["peak_bytes" if record["section"] == "infer_peak" else "prefill_peak_bytes"]
    return Compared(f"{title(record)}", "peak_bytes", held.total, measured)


def signed(error: float) -> str:
    """An error in percent; without a sign where it rounds to none."""
    said = f"{error:+.3%}"
    return said if said.strip("+-0.%") else said[1:]


def inference_table() -> str:
    """Every record of a pass forward."""
    lines = ["| model, batch × tokens | logits | said | measured | error |", "|---|---|---:|---:|---:|"]
    for record in PASSED:
        one = passed(record)
        logits = "all" if record.get("logits_to_keep") == 0 else "last"
        kept = f"{one.said / 1e9:.3f} GB | {one.measured / 1e9:.3f} GB | {signed(one.error)}"
        lines.append(f"| {one.name} | {logits} | {kept} |")
    return "\n".join(lines)


def training_table() -> str:
    """Every record of a training step, with the errors of its figures; the worst and the mean of each figure."""
    rows = [(title(record), list(trained(record))) for record in TRAINED]
    heads = [said for said, _ in FIGURES.values()]
    lines = ["| model, batch × tokens, precision, attention | " + " | ".join(heads) + " | measured peak |"]
    lines.append("|---|" + "---:|" * (len(heads) + 1))
    for name, figures in rows:
        errors = [signed(figure.error) for figure in figures]
        lines.append(f"| {name} | {' | '.join(errors)} | {figures[-1].measured / 1e9:.2f} GB |")
    for word, fold in (("worst", max), ("mean", mean)):
        each = [fold(abs(figures[i].error) for _, figures in rows) for i in range(len(heads))]
        lines.append(f"| **{word}, without sign** | " + " | ".join(f"**{error:.3%}**" for error in each) + " | |")
    return "\n".join(lines)
