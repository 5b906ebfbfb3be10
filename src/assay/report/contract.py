"""The object that `--json` prints: its keys are stable, its integers exact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from assay.readings.count import Count, Flops, Row
from assay.readings.published import Formula, active
from assay.readings.setting import Setting
from assay.size import Size, same
from assay.spec import Model

if TYPE_CHECKING:  # a report without it does not wait for it
    from assay.readings.generate import Generated

# the parts of a model, in the order that a report shows them
PARTS = ("embedding", "attention", "mixer", "mlp", "experts", "router", "norm", "head", "tower", "other")


def ordered(parts: Mapping[str, Size], weights: Mapping[str, Size]) -> dict[str, Size]:
    """A table by part in the order of PARTS; a part with weights and no figure is 0, one with neither is left out."""
    both = {**dict.fromkeys(weights, 0), **parts}
    kept = {part: size for part, size in both.items() if part in weights or not same(size, 0)}
    return {part: kept[part] for part in (*(p for p in PARTS if p in kept), *(p for p in kept if p not in PARTS))}


def document(
    version: str,
    model: Model,
    counted: Count,
    generated: Generated | None = None,
    published: tuple[Formula, ...] = (),
    notes: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The report as one object of JSON."""
    weights, flops, kept = counted.parameters, counted.flops, counted.cache
    ways = active(model, counted)
    made: dict[str, Any] = {
        "assay": version,
        "model": {
            **model_object(model),
            "layers": model.layers,
            "width": model.width,
            "ignored_keys": list(model.ignored),
            "allowed_keys": list(model.allowed),
        },
        "setting": setting_object(counted.setting),
        "parameters": {
            "total": weights.total,
            "active": weights.active,
            "active_without_input_embedding": ways.without_input,
            "active_without_embedding_and_head": ways.without_both,
            "embedding": weights.embedding,
            "non_embedding": weights.non_embedding,
            "buffers": weights.buffers,
            "by_part": ordered(weights.by_part, {}),
        },
        "flops": {**flops_object(flops, weights.by_part), "per_token": counted.flops_per_token},
        "cache": {
            "bytes": kept.bytes,
            "marginal_bytes_per_token": kept.marginal_bytes_per_token,
            "fixed_bytes": kept.fixed_bytes,
        },
        "weights": {"bytes": counted.weight_bytes, "format": stored_in(model, counted)},
        "blocks": [row_object(row) for row in counted.rows],
        "published": [formula_object(formula) for formula in published],
        "notes": list(notes),
    }
    if generated is not None:
        made["generate"] = generated_object(generated, weights.by_part)
    return made


def stored_in(model: Model, counted: Count) -> str | None:
    """What the weights are stored in: one dtype, or the formats of the model's scheme; None where they are unknown."""
    asked = counted.setting
    if counted.weight_bytes is None:
        return None
    if not asked.quantized or model.scheme is None:
        return asked.weights
    rest = f", the rest {asked.weights}" if model.scheme.total is None else ""
    return f"{model.scheme.says}{rest}"


def model_object(model: Model) -> dict[str, Any]:
    """Which model it is, as every object says."""
    return {"name": model.name, "family": model.family, "class": model.cls, "source": model.source}


def setting_object(asked: Setting) -> dict[str, Any]:
    """What was asked, every default filled."""
    return {
        "batch": asked.batch,
        "tokens": asked.tokens,
        "past": asked.past,
        "context": asked.context,
        "source": asked.source,
        "images": asked.images,
        "image_tokens": asked.image_tokens,
        "sounds": asked.sounds,
        "logits": asked.logits,
        "latent": asked.latent,
        "convention": asked.convention,
        "weights": asked.weights,
        "cache": asked.cache,
        "state": asked.state,
    }


def flops_object(flops: Flops, weights: Mapping[str, Size]) -> dict[str, Any]:
    """FLOPs in total, visible, of attention scores, and by part."""
    return {
        "total": flops.total,
        "visible_total": flops.visible_total,
        "attention_scores": flops.attention_scores,
        "by_part": ordered(flops.by_part, weights),
    }


def row_object(row: Row) -> dict[str, Any]:
    """A distinct block, all its layers together."""
    return {
        "name": row.name,
        "layers": list(row.layers),
        "times": len(row.layers) or 1,
        "parameters": row.parameters.total,
        "active": row.parameters.active,
        "flops": row.flops.total,
        "cache_bytes": row.cache.bytes,
    }


def formula_object(formula: Formula) -> dict[str, Any]:
    """A published formula beside the count."""
    return {
        "name": formula.name,
        "formula": formula.text,
        "source": formula.source,
        "work": formula.work,
        "flops_per_token": formula.value,
        "ratio": formula.value / formula.ours if formula.ours else None,
    }


def generated_object(made: Generated, weights: Mapping[str, Size]) -> dict[str, Any]:
    """A prefill and the cached steps behind it, beside the same without a cache."""
    return {
        "tokens": made.new,
        "flops": made.total,
        "prefill": flops_object(made.prefill, weights),
        "steps": flops_object(made.steps, weights),
        "cache_bytes": made.cache.bytes,
        "without_cache": {
            "flops": made.uncached_total,
            "prefill": flops_object(made.restart, weights),
            "steps": flops_object(made.again, weights),
        },
    }
