"""What families with experts have in common: where experts are stored, which layers have them, how they are chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from assay.blocks import Attention, Body, Layer, Norm, Rope
from assay.blocks.moe import Moe, Router
from assay.errors import SourceError
from assay.sources.config import Config
from assay.sources.families.common import Heads, activation, by_kind, label, pre_norm, under
from assay.sources.families.dense import LLAMA, SLIDING

LAYER = "model.layers.{i}."
# what configs say of modules that predict further tokens, which no forward pass of the model runs
FURTHER = ("num_nextn_predict_layers", "num_mtp_layers", "num_mtp_modules")


def packed(at: str = "mlp.", router: str = "gate.weight", **more: str) -> dict[str, str]:
    """Names of routed experts whose gate and up matrices lie behind each other, experts first, and of a router."""
    names = {
        "Wr": router,
        "Eg": "experts.gate_up_proj[e +f d]",
        "Eu": "experts.gate_up_proj[e +f d]",
        "Ed": "experts.down_proj[e d f]",
    }
    return under(LAYER + at, {**names, **more})


def beside(at: str = "mlp.shared_experts.") -> dict[str, str]:
    """Names of shared experts, stored as a dense layer is."""
    return under(LAYER + at, {"Sg": "gate_proj.weight", "Su": "up_proj.weight", "Sd": "down_proj.weight"})


def sandwiched(after_attention: str, before_mlp: str, after_mlp: str) -> dict[str, str]:
    """Names of the norms of a layer that has four."""
    return under(LAYER, {"Gpa": after_attention, "Gm": before_mlp, "Gpm": after_mlp})


CORRECTION = {"Cr": "~gate.e_score_correction_bias"}
MIXTRAL = {**LLAMA, **packed()}
SHARED = {**LLAMA, **packed(**CORRECTION), **beside()}


def chosen(c: Config, key: str, default: int | None, experts: int, of: str) -> int:
    """How many experts a token passes: at most all. Raises SourceError naming both keys."""
    k = c.size(key, default)
    if k > experts:
        raise SourceError(f"{c.where}: {c.path(key)} is {k}; it must be at most {c.path(of)}, {experts}")
    return k


def pool(
    c: Config, of: str, experts: int | None = None, k: int | None = None, key: str = "num_experts_per_tok"
) -> tuple[int, int]:
    """Experts under the key `of`, and how many of them a token passes; the numbers are the config class's defaults."""
    e = c.size(of, experts)
    return e, chosen(c, key, k, e, of)


def grouped(
    c: Config,
    experts: int,
    k: int,
    of: str,
    *,
    groups: int = 1,
    keep: int = 1,
    norm: bool = True,
    scale: float = 1.0,
) -> Router:
    """Sigmoid scores, a correction for the choice, the best groups first (DeepSeek-AI 2024, section 2.1.2).

    `of` is the key of `experts`; the keywords are the config class's defaults.
    """
    usual_choice(c)
    g = c.size("n_group", groups)
    kept = c.size("topk_group", keep)
    per = c.divides(of, experts, "n_group", g)
    if kept > g:
        c.fail("topk_group", f"at most {c.path('n_group')}, {g}")
    if g > 1 and (per < 2 or k > kept * per):
        c.fail("n_group", f"a split into groups of at least 2 experts, {k} or more of them in {kept} groups")
    return Router(
        "sigmoid",
        correction=True,
        normalize=c.flag("norm_topk_prob", norm),
        groups=g,
        keep_groups=kept,
        scale=c.number("routed_scaling_factor", scale),
    )


def routed(
    c: Config,
    of: str,
    experts: int | None,
    k: int | None,
    width: int,
    shared: tuple[str, int | None] | None,
    **router: Any,
) -> Moe:
    """Experts under GLM's names, `of` the key of their number, `shared` the key of the number of shared ones.

    The numbers and the keywords of the router are the config class's defaults.
    """
    e, a = pool(c, of, experts, k)
    inner = c.size("moe_intermediate_size", width)
    beside = None if shared is None else inner * c.size(*shared, least=0) or None
    return Moe(e, a, inner, grouped(c, e, a, of, **router), activation=activation(c), shared=beside)


def usual_choice(c: Config) -> None:
    """Keys of DeepSeek's kin that say what `grouped` does anyway. Raises SourceError for another choice."""
    c.inert("scoring_func", "sigmoid", "noaux_tc")
    c.inert("topk_method", "noaux_tc")
    c.skip("ep_size", "seq_aux", "aux_loss_alpha")


def sparse_layers(c: Config, layers: int, default: Callable[[int], bool], key: str = "mlp_layer_types") -> list[bool]:
    """Which layers have experts: `mlp_layer_types`, or what the config class derives for layer i."""
    listed = c.sequence(key, lambda v: v in ("dense", "sparse"), "one of dense, sparse", layers)
    return [kind == "sparse" for kind in listed] if listed is not None else [default(i) for i in range(layers)]


def stepped(c: Config, layers: int, experts: int, dense: Sequence[int] = ()) -> list[bool]:
    """Every `decoder_sparse_step`-th layer but those of `mlp_only_layers` (Qwen2-MoE)."""
    step = c.size("decoder_sparse_step", 1)
    listed = c.sequence("mlp_only_layers", is_index, "indices of layers")
    only = set(dense if listed is None else listed)
    return [experts > 0 and i not in only and (i + 1) % step == 0 for i in range(layers)]


def window_of(c: Config, kinds: Sequence[str], default: int | None) -> int | None:
    """`sliding_window`, which must be an integer where a layer of `kinds` has one; null otherwise."""
    if SLIDING in kinds:
        return c.size("sliding_window", default)
    c.skip("sliding_window")
    return None


def is_index(value: object) -> bool:
    """True for an integer that may be a layer's index."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def turning(
    h: Heads, positions: Rope, window: int | None, full: Rope | None = None, **more: Any
) -> Callable[[str], Attention]:
    """The attention of a kind of layer: with a window and positions, or without a window and with those of `full`."""

    def attention(kind: str) -> Attention:
        slides = kind == SLIDING
        turned = positions if slides else full
        return Attention(*h, positions=turned, window=window if slides else None, **more)

    return attention


def layered(
    kinds: Sequence[str],
    sparse: Sequence[bool],
    attention: Callable[[str], Body],
    mlp: Body,
    moe: Body | None,
    norm: Norm,
    arrange: Callable[[Body, Body, Norm, str], Layer] = pre_norm,
) -> tuple[Layer, ...]:
    """A layer for each kind of attention and whether it has experts, its parts as `arrange` puts them."""

    def layer(sort: tuple[str, bool]) -> Layer:
        kind, routed = sort
        words = label(kind, "experts" if routed else "dense")
        return arrange(attention(kind), moe if routed and moe is not None else mlp, norm, words)

    return by_kind(list(zip(kinds, sparse, strict=True)), layer)


def alike(sparse: Sequence[bool], attention: Body, mlp: Body, moe: Body | None, norm: Norm) -> tuple[Layer, ...]:
    """The same with one attention in all layers."""
    return layered([""] * len(sparse), sparse, lambda _: attention, mlp, moe, norm)
