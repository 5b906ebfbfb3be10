"""Configs that name no `model_type`, told by their keys: those that the first authors of Mamba publish."""

from __future__ import annotations

from assay.sources.config import Config

MAMBA, MAMBA2 = "mamba", "mamba2"


def model_type_of(c: Config) -> str | None:
    """The type whose config this is under other names; its keys are then today's. None where it is not known.

    Gu and Dao 2023, arXiv:2312.00752; Dao and Gu 2024, arXiv:2405.21060. Raises SourceError.
    """
    if c.table("ssm_cfg") is None:
        return None
    own = c.child("ssm_cfg")
    layer = own.word("layer", "Mamba1", ("Mamba1", "Mamba2"))
    c.rename(d_model="hidden_size", n_layer="num_hidden_layers", tie_embeddings="tie_word_embeddings")
    c.inert("d_intermediate", 0)
    c.inert("attn_layer_idx", [])
    c.inert("attn_cfg", {})
    c.inert("rms_norm", True)
    c.skip("fused_add_norm")
    width, multiple = c.size("hidden_size"), c.size("pad_vocab_size_multiple", 8)
    found: dict[str, int] = {
        "vocab_size": -(-c.size("vocab_size") // multiple) * multiple,  # rows of the table: padded
        "state_size": own.size("d_state", 16 if layer == "Mamba1" else 128),
        "conv_kernel": own.size("d_conv", 4),
        "expand": own.size("expand", 2),
    }
    if layer == "Mamba1":
        if own.has("dt_rank") and own.data["dt_rank"] != "auto":
            found["time_step_rank"] = own.size("dt_rank")
        c.data = {"tie_word_embeddings": True, **c.data, **found, "ssm_cfg": None}
        return MAMBA
    each, inner = own.size("headdim", 64), found["expand"] * width
    if inner % each:
        own.fail("headdim", f"a divisor of the inner width, {inner}")
    found |= {"head_dim": each, "num_heads": inner // each, "n_groups": own.size("ngroups", 1)}
    c.data = {"tie_word_embeddings": True, **c.data, **found, "ssm_cfg": None}
    return MAMBA2
