"""Figures from papers, model cards and public repositories, each within the tolerance of its last printed digit.

`dims` of a row become a model drawn from blocks, `quantity` and `setting` the figure. What a row leaves out stands in
GIVEN; what is not of this kind of model, or no count at all, is listed with the reason and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from drawn import block, draw
from published_rows import Row, dims, found, model_of, needs_rows, rows

from assay.hardware import chip
from assay.readings.count import Count, count

pytestmark = needs_rows

# -- figures ---------------------------------------------------------------------------------------------------------

GPUS = {  # dense FLOP/s that the rows divide by
    "a100": chip("a100").rate("bf16"),
    "h100": chip("h100").rate("bf16"),
    "h100.fp8": chip("h100").rate("fp8"),
    "v4": chip("tpu-v4").rate("bf16"),
}


def counted(row: Row, **setting: Any) -> Count:
    """The row's model at a setting, one token where none is given."""
    return count(model_of(row), **{"tokens": 1, **setting})


def six_n(row: Row, *, positions: bool = True) -> int:
    """6 N, of the active parameters."""
    p = counted(row).parameters
    return int(6 * (p.active - (0 if positions else dims(row)["ctx"] * dims(row)["d_model"])))


def palm(row: Row, length: int, *, positions: bool = True) -> int:
    """6 N + 12 L H Q T (Chowdhery et al. 2022, appendix B): N of all parameters, attention over all pairs."""
    scores = counted(row, past=length - 1).flops.attention_scores
    return six_n(row, positions=positions) + 3 * int(scores)


def causal(row: Row, length: int) -> float:
    """Training FLOPs per token where only visible pairs count."""
    return float(3 * counted(row, tokens=length, convention="causal").flops_per_token)


def training(row: Row) -> float:
    """The setting's tokens times 6 N, and attention where the source counts it."""
    (tokens,) = found(row, r"([\d.]+[BT]) tokens")
    return tokens * (palm(row, 2048) if "palm" in row["id"] else six_n(row))


def chinchilla(row: Row) -> float:
    """Hoffmann et al. 2022, appendix F: no embedding, no logits, 3 a softmax element; N with relative positions."""
    d, length = dims(row), 2048
    plain, soft = (counted(row, tokens=length, convention=c).flops for c in ("matmul", "stable-softmax"))
    forward = plain.total - plain.by_part["head"] + (soft.total - plain.total) * 3 / 5
    relative = d["layers"] * d["d_model"] * d["heads"] * d["head_dim"]
    return float(3 * forward / (6 * (counted(row).parameters.total + relative) * length))


def mfu(row: Row) -> float:
    """Tokens a second times FLOPs per token over the peak, in percent."""
    key = row["id"]
    if ".mpt." in key:
        n, *_ = found(row, r"^(\d+) ")
        (speed,) = found(row, r"(\d+) tok/s total")
        peak = GPUS["a100" if "a100" in key else "h100.fp8" if key.endswith("fp8") else "h100"]
        assert counted(row).parameters.total == dims(row)["params"]
        return 100 * speed * palm(row, dims(row)["seq"]) / (n * peak)
    if "korth" in key:
        n, batch, seconds = found(row, r"(\d+) GPUs, GBS (\d+).*iteration ([\d.]+) s")
        spent = 3 * int(counted(row, batch=int(batch), tokens=2048).flops.total)
        return 100 * spent / (seconds * n * GPUS["a100"])
    if "nanogpt" in key:
        n, length, seconds = found(row, r"(\d+) sequences x(\d+) in ([\d.]+) s")
        return 100 * n * length * palm(row, 1024, positions=False) / (seconds * GPUS["a100"])
    if "megascale" in key:
        n, speed = found(row, r"(\d+) A100.*, ([\d.]+k) tok/s")
        return 100 * speed * palm(row, 2048) / (n * GPUS["a100"])
    per_token = six_n(row) if key.endswith("noattn") else palm(row, 2048)
    return 100 * 238_300 * per_token / (6144 * GPUS["v4"])  # PaLM: 238.3 k tokens a second


def length(row: Row) -> int:
    """The s of a setting."""
    return int(found(row, r"s=?(\d{4,})")[0])


def longest(row: Row) -> float:
    """Tokens that 30 % of 64 chips' 32 GiB hold; a cache whose one head every chip keeps is there 64 times."""
    (batch,) = found(row, r"batch (\d+)")
    copies = 64 if ".baseline." in row["id"] else 1
    return float(0.3 * 64 * 32 * 2**30 / (batch * counted(row).cache.marginal_bytes_per_token * copies))


def active(row: Row) -> int:
    """Both embeddings counted, the head's alone (gpt-oss), or neither (MiniMax-Text-01)."""
    p = counted(row).parameters
    neither = "minimax-text" in row["id"]
    return int(p.active - (p.embedding if neither or "gpt-oss" in row["id"] else 0) - (p.head if neither else 0))


def part(*names: str) -> Callable[[Row], float]:
    """Parameters of some parts."""
    return lambda row: sum(counted(row).parameters.by_part[name] for name in names)


def projections(row: Row) -> float:
    """Of keys and values, one token, all layers."""
    d = dims(row)
    of = block("k = linear(x[n d], Wk[d e]) -> [n e]\nv = linear(x[n d], Wv[d e]) -> [n e]", d=d["d_model"])
    return float(d["layers"] * count(of, tokens=1, e=d["d_model"]).flops.total)


def four_bit(row: Row) -> float:
    """Experts at 4.25 bits, the rest at 16."""
    p = counted(row).parameters
    experts = p.by_part["experts"]
    return float(experts * 4.25 / 8 + 2 * (p.total - experts))


def reduction(row: Row) -> float:
    """A latent cache of 6-bit elements against the 16-bit one of grouped queries, in percent."""
    grouped = draw(layers=95, d=8192, heads=64, kv=8, head=128, ff=22016, vocab=102400)
    before = count(grouped, tokens=1).cache.marginal_bytes_per_token
    return float(100 * (1 - counted(row).cache.marginal_bytes_per_token * 6 / 16 / before))


def served(row: Row) -> float:
    """int8 weights and caches of a batch."""
    batch, context = found(row, r"batch (\d+) x (\d+)")
    of = counted(row, batch=int(batch), past=int(context) - 1, weights="int8", cache="int8")
    return float(of.weight_bytes + of.cache.bytes)


FIGURES: dict[str, Callable[[Row], float]] = {
    "total parameters": lambda r: counted(r).parameters.total,
    "non-embedding parameters": lambda r: counted(r).parameters.non_embedding,
    "non-embedding parameters (text)": lambda r: counted(r).parameters.non_embedding,
    "embedding parameters": lambda r: counted(r).parameters.embedding,
    "active parameters": active,
    "MLP parameters (experts+router)": part("experts", "router"),
    "attention parameters": part("attention"),
    "embed+unembed parameters": part("embedding", "head"),
    "parameters, 12 L d^2": part("attention", "mlp"),
    "forward FLOPs, one 1024 sequence": lambda r: counted(r, tokens=1024).flops.total,
    "fwd+bwd FLOPs, one 1024 sequence": lambda r: 3 * counted(r, tokens=1024).flops.total,
    "fwd+bwd FLOPs by PaLM formula": lambda r: 1024 * palm(r, 1024, positions=False),
    "model FLOPs per token": lambda r: palm(r, 2048),
    "training FLOPs per token": lambda r: causal(r, length(r)),
    "FLOPs per token implied by (TFLOP/s/GPU)/(tok/s/GPU)": lambda r: causal(r, length(r)),
    "training FLOPs per 4K tokens": lambda r: 3 * counted(r, tokens=4096).flops.total,
    "total training FLOPs": training,
    "training FLOPs": training,
    "training PF-days": lambda r: training(r) / (1e15 * 86400),
    "FLOPs (their formula) / 6ND": chinchilla,
    "K,V projection FLOPs for one token": projections,
    "KV cache per token": lambda r: counted(r).cache.marginal_bytes_per_token / (2 if "elements" in r["unit"] else 1),
    "KV cache elements per token": lambda r: counted(r).cache.marginal_bytes_per_token / 2,
    "KV cache reduction vs DeepSeek 67B": reduction,
    "KV bytes per token, int8": lambda r: counted(r, cache="int8").cache.marginal_bytes_per_token,
    "max context length": longest,
    "checkpoint bf16": lambda r: float(counted(r, weights="bf16").weight_bytes or 0),
    "checkpoint size": four_bit,
    "weights+KV": served,
    "MFU": mfu,
    "MFU (with attention)": mfu,
    "MFU (no attention)": mfu,
}

UNITS = {
    "": 1, "M": 1e6, "B": 1e9, "T": 1e12, "FLOP": 1, "GFLOP/token": 1e9, "TFLOP/token": 1e12, "TFLOP": 1e12,
    "PF-day": 1, "ratio": 1, "bytes": 1, "K elements": 1e3, "KB": 1e3, "KiB": 2**10, "GiB": 2**30, "GB": 1e9,
    "tokens": 1, "%": 1,
}  # fmt: skip

# -- out of scope ----------------------------------------------------------------------------------------------------

BY_SIZES = {  # a key of the sizes that tells another kind of model
    "enc_layers": "encoder-decoder",
    "types": "encoder",
    "patch": "vision",
    "mtp": "counts a multi-token-prediction module, not its embeddings",
}
# runs, which are held in test_published_training.py
TRAINED = (
    r"mfu.megatron24|mfu.llama3|mfu.maxtext|mfu.esti.prefill|^hfu|tflops.bloom|time.megatron21|time.mtnlg|^days"
    r"|book.l3-70b.days|gpt3d1.(bert-base|roberta)"
)
BY_ID = {
    TRAINED: "a training run",
    r"gpt3d1.(t5|bert|roberta)": "6 N D of a rounded N, no sizes given",
    r"mfu.megascale.megascale": "its window is not given",
}
BY_QUANTITY = {
    "activation": r"activation|5as/h|selective recompute|throughput gain",
    "memory of training": r"model-state memory|model states|GPU memory|full checkpoint",
    "time": r"tokens/s|tok/s|decode|GPU-h|GB/s|step",
    "bandwidth rounded to 1.5 TB/s": r"FLOPs:bytes",
    "rows of a table, no figure": r"rows of the table",
}


def out_of_scope(row: Row) -> str | None:
    """Why a row is not a count of a decoder-only attention model, or None."""
    for pattern, reason in BY_ID.items():
        if re.search(pattern, row["id"]):
            return reason
    for key, reason in BY_SIZES.items():
        if key in (row["dims"] or {}):
            return reason
    if row["quantity"] in FIGURES:
        return None
    for reason, pattern in BY_QUANTITY.items():
        if re.search(pattern, row["quantity"]):
            return reason
    raise AssertionError(f"{row['id']}: {row['quantity']!r} is neither covered nor listed")


COVERED = [row for row in rows() if out_of_scope(row) is None]


@pytest.mark.parametrize("row", COVERED, ids=[row["id"] for row in COVERED])
def test_figure(row: Row) -> None:
    unit = 1 if row["quantity"].startswith("KV bytes") else UNITS[row["unit"]]
    assert FIGURES[row["quantity"]](row) / unit == pytest.approx(row["value"], rel=row["tol_rel"])


def test_nothing_drops_silently() -> None:
    """How many rows are covered, and how many are left out for which reason."""
    assert len(COVERED) == 203
    assert Counter(reason for row in rows() if (reason := out_of_scope(row))) == {
        "activation": 26,
        "a training run": 32,
        "time": 15,
        "6 N D of a rounded N, no sizes given": 8,
        "memory of training": 11,
        "encoder-decoder": 10,
        "bandwidth rounded to 1.5 TB/s": 1,
        "vision": 6,
        "its window is not given": 4,
        "counts a multi-token-prediction module, not its embeddings": 3,
        "encoder": 2,
        "rows of a table, no figure": 1,
    }


def test_an_unknown_quantity_is_an_error() -> None:
    with pytest.raises(AssertionError, match="neither covered nor listed"):
        out_of_scope({"id": "x", "quantity": "taste", "dims": None})


def test_a_wrong_size_is_seen() -> None:
    """The tolerance is tight enough to tell one MLP width from the next."""
    (row,) = (row for row in COVERED if row["id"] == "params.llama2-70b")
    wrong = {**row, "dims": {**row["dims"], "d_ffn": row["dims"]["d_ffn"] + 1}}
    assert counted(row).parameters.total == row["value"] != counted(wrong).parameters.total
    with pytest.raises(AssertionError, match="6897"):
        test_figure(wrong)
