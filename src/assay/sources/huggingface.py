"""A config.json as a model: the family by `model_type`, every key accounted for, nothing guessed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from assay.errors import SourceError
from assay.sources.config import Config
from assay.sources.families import FAMILIES
from assay.spec import Model

# keys of any config that change no tensor and no operation of the model itself
HARMLESS = frozenset(
    """
    _name_or_path transformers_version torch_dtype dtype model_type architectures auto_map use_cache
    bos_token_id eos_token_id pad_token_id sep_token_id unk_token_id decoder_start_token_id initializer_range
    attention_dropout hidden_dropout embd_pdrop attn_pdrop resid_pdrop output_router_logits router_aux_loss_coef
    """.split()
)


def read_config(data: Mapping[str, Any], where: str, name: str, allow: Collection[str] = ()) -> Model:
    """The model that a config describes. Raises SourceError naming file, key, value and what is allowed."""
    c = Config(data, where)
    model_type = c.word("model_type", None)
    found = FAMILIES.get(model_type)
    if found is None:
        raise SourceError(f"{where}: model_type is {model_type!r}; known: {', '.join(sorted(FAMILIES))}")
    made = found.read(c)
    unknown = [key for key in c.unread() if key not in HARMLESS and key not in found.harmless and key not in allow]
    unknown = [key for key in unknown if data[key] is not None]
    if unknown:
        raise SourceError(
            f"{where}: {', '.join(unknown)}: not known for {model_type}, and might change the model; --allow KEY lets one pass"
        )
    kept = data.get("dtype", data.get("torch_dtype"))
    return Model(
        name,
        made.segments(found.names),
        family=model_type,
        cls=found.cls,
        source=where,
        layers=made.depth,
        width=made.width,
        positions=made.limit,
        trained=made.trained,
        dtype=kept if isinstance(kept, str) else None,
        ignored=tuple(c.unread()),
    )
