"""Published figures, row by row: the file, and the model that a row tells by its sizes."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from drawn import draw, read

from assay.blocks.moe import Router
from assay.spec import Model

FILE = Path(__file__).parents[2] / "shared" / "published.json"
needs_rows = pytest.mark.skipif(not FILE.exists(), reason="needs the published figures beside the repository")

Row = dict[str, Any]


def rows() -> list[Row]:
    """The rows that may be asserted."""
    if not FILE.exists():
        return []
    return [row for row in json.loads(FILE.read_text()) if row["check"] == "formula"]


# -- what rows leave out ---------------------------------------------------------------------------------------------

CLASSIC = {"mlp": "2-matrix", "norm": "LayerNorm", "biases": "all"}
LATENT = {  # DeepSeek-V2's
    "layers": 60, "dense_layers": 1, "d_model": 5120, "heads": 128, "q_lora": 1536, "kv_lora": 512, "qk_nope": 128,
    "qk_rope": 64, "v_head": 128, "d_ffn_dense": 12288, "experts": 160, "moe_ffn": 1536, "shared": 2, "top_k": 6,
    "vocab": 102400,
}  # fmt: skip
NO_BIAS = {"norm": "LayerNorm no bias", "biases": "none"}
GPT3 = {
    "small": (12, 768, 12),
    "medium": (24, 1024, 16),
    "large": (24, 1536, 16),
    "xl": (24, 2048, 16),
    "2.7b": (32, 2560, 32),
    "6.7b": (32, 4096, 32),
    "13b": (40, 5120, 40),
    "175b": (96, 12288, 96),
}
# Brown et al. 2020, Table 2.1; Touvron et al. 2023; Zhang et al. 2022; DeepSeek-AI 2024; Dai et al. 2024; GPT-2
GIVEN: dict[str, Row] = {
    r"megatron|mtnlg|korth|megascale": {**CLASSIC, "pos": "learned", "ctx": 2048, "tied": True},
    r"megascale": {"vocab": 50257},
    r"nanogpt": {**CLASSIC, **NO_BIAS, "pos": "learned", "ctx": 1024, "tied": True},
    r"\.mpt\.": CLASSIC,
    r"esti.prefill|hfu.palm": {"norms": 1},
    r"palm-?\d": {"tied": True, "parallel_block": True, "norms": 1},
    r"pythia": {"norms": 2},
    r"chinchilla": {"mlp": "2-matrix", "tied": True},
    r"kipply": {"mlp": "2-matrix", "heads": 64, "vocab": 1},
    r"kv.pertoken.opt-13b": {**CLASSIC, "layers": 40, "d_model": 5120, "heads": 40, "vocab": 50272},
    r"kv.pertoken.llama3-8b": {"layers": 32, "d_model": 4096, "heads": 32, "kv_heads": 8, "vocab": 128256},
    r"kv.pertoken.llama3-70b": {"layers": 80, "d_model": 8192, "heads": 64, "kv_heads": 8, "vocab": 128256},
    r"tab9.*mla": LATENT,
    r"tab9.small.mla": {"layers": 27},
    r"tab9.small.mha": {"layers": 27, "d_model": 2048, "heads": 16, "vocab": 102400},
    r"kv.esti": {"d_model": 18432, "vocab": 256000, "heads": 64, "tied": True},
    r"kv.esti.(baseline|optimized)": {"kv_heads": 1},
    r"flops.4k.llama2-7b": {"d_ffn": 11008, "vocab": 32000},
    r"flops.4k.deepseek-7b": {"d_ffn": 11008, "vocab": 102400},
    r"flops.4k.dsmoe-16b": {"d_ffn_dense": 10944, "vocab": 102400},
    **{
        rf"gpt3d1.gpt-3-{size}$": {
            **CLASSIC,
            "layers": layers,
            "d_model": d,
            "heads": heads,
            "vocab": 50257,
            "ctx": 2048,
            "pos": "learned",
            "tied": True,
            "d_ffn": 4 * d,
        }
        for size, (layers, d, heads) in GPT3.items()
    },
}


def dims(row: Row) -> Row:
    """The sizes of a row, completed."""
    known = dict(row["dims"] or {})
    for pattern, more in GIVEN.items():
        if re.search(pattern, row["id"]):
            overrides = "kv.esti" in pattern or pattern.startswith("tab9.small")
            known = {**known, **more} if overrides else {**more, **known}
    return known


def model_of(row: Row) -> Model:
    """The model of a row's sizes."""
    d = dims(row)
    if "d_ffn" not in d:
        d["d_ffn"] = d.get("d_ffn_dense") or d.get("dense_ffn") or (None if "experts" in d else 4 * d["d_model"])
    return drawn(json.dumps(d, sort_keys=True))


@lru_cache(maxsize=200)
def drawn(text: str) -> Model:
    """The same, of the sizes as JSON."""
    d = json.loads(text)
    if "kv_lora" in d:
        return latent(d)
    if "linear_layers" in d or "lightning_layers" in d:
        return hybrid(d)
    experts = d.get("experts")
    sparse: Row = {}
    dense = d["d_ffn"]
    if experts:
        width = d.get("moe_ffn") or d["d_ffn"]
        first, every = d.get("dense_layers", 0), d.get("moe_every", 1)
        if not (first or every > 1):
            dense = None
        sparse = {
            "experts": experts,
            "chosen": d["top_k"],
            "expert_ff": width,
            "shared_ff": d["shared"] * width if d.get("shared") else None,
            "moe": lambda i: i >= first and (i + 1) % every == 0,
            "router": Router(bias="router" in d.get("biases", "")),
        }
    norm = d.get("norm", "RMSNorm")
    arrangement = "sandwich" if "x4" in norm else "pre"
    if d.get("parallel_block"):
        arrangement = "parallel" if d["norms"] == 1 else "parallel-2"
    qk = "full" if d.get("qk_norm") == "full-width" else "head" if d.get("qk_norm") or "qk-norm" in norm else None
    biases = d.get("biases", "none")
    window = d.get("sliding_window")
    return draw(
        layers=d["layers"],
        d=d["d_model"],
        heads=d["heads"],
        vocab=d["vocab"],
        ff=dense,
        kv=d.get("kv_heads"),
        head=d.get("head_dim"),
        gated="2-matrix" not in d.get("mlp", ""),
        norm="rms" if norm.startswith("RMS") else "layer-no-bias" if "no bias" in norm else "layer",
        biases="qkv" if biases.startswith("qkv") else biases != "none",
        tied=d.get("tied", False),
        positions=(d.get("ctx") if "seq" not in d else d["seq"]) if d.get("pos") == "learned" else None,
        qk_norm=qk,
        arrangement=arrangement,
        window=lambda i: window if window and i % 2 == 0 else None,
        sinks=bool(d.get("attn_sinks")),
        embedding_norm=bool(d.get("emb_layernorm")),
        **sparse,
    )


def latent(d: Row) -> Model:
    """DeepSeek's layer has sizes of its own."""
    return read(
        {
            "model_type": "deepseek_v2",
            "num_hidden_layers": d["layers"],
            "first_k_dense_replace": d["dense_layers"],
            "hidden_size": d["d_model"],
            "num_attention_heads": d["heads"],
            "q_lora_rank": d["q_lora"] or None,
            "kv_lora_rank": d["kv_lora"],
            "qk_nope_head_dim": d["qk_nope"],
            "qk_rope_head_dim": d["qk_rope"],
            "v_head_dim": d["v_head"],
            "intermediate_size": d["d_ffn_dense"],
            "n_routed_experts": d["experts"],
            "moe_intermediate_size": d["moe_ffn"],
            "n_shared_experts": d["shared"],
            "num_experts_per_tok": d["top_k"],
            "vocab_size": d["vocab"],
        }
    )


def hybrid(d: Row) -> Model:
    """Linear attention but in every so many layers, the last of them; what is not given is the config class's own."""
    full = d.get("full_layers") or d["softmax_layers"]
    every = d["layers"] // full
    given = {
        "num_hidden_layers": d["layers"],
        "hidden_size": d["d_model"],
        "num_attention_heads": d["heads"],
        "num_key_value_heads": d["kv_heads"],
        "head_dim": d["head_dim"],
        "num_experts": d["experts"],
        "num_experts_per_tok": d["top_k"],
        "vocab_size": d["vocab"],
        "layer_types": ["linear_attention" if (i + 1) % every else "full_attention" for i in range(d["layers"])],
    }
    if "lightning_layers" in d:
        return read({"model_type": "minimax", "intermediate_size": d["moe_ffn"], **given})
    widths = {"moe_intermediate_size": d["moe_ffn"], "shared_expert_intermediate_size": d["shared_ffn"]}
    return read({"model_type": "qwen3_next", **widths, **given})


SUFFIX = {"K": 1e3, "B": 1e9, "T": 1e12}


def found(row: Row, pattern: str) -> tuple[float, ...]:
    """Numbers of the setting; a K, B or T behind one multiplies."""
    match = re.search(pattern, row["setting"])
    assert match, f"{row['id']}: {pattern} not in {row['setting']!r}"
    return tuple(float(g.rstrip("KBTk")) * SUFFIX.get(g[-1].upper(), 1) for g in match.groups())
