"""K-EXAONE and Kolibri: windowed layers have positions, full layers none; experts beside a shared one."""

from __future__ import annotations

from collections.abc import Callable

from assay.blocks import Decoder, Mlp
from assay.blocks.moe import Moe, Router
from assay.sources.config import Config
from assay.sources.families.common import (
    activation,
    by_kind,
    depth,
    family,
    heads,
    label,
    rms,
    rope,
    sandwich,
    stack,
    windows,
)
from assay.sources.families.dense import FULL, SLIDING, window_of
from assay.sources.families.experts import FURTHER, SHARED, layered, pool, routed, sandwiched, sparse_layers, turning


@family("exaone_moe", cls="ExaoneMoeForCausalLM", names=SHARED, harmless=FURTHER)
def exaone_moe(c: Config) -> Decoder:
    """LG AI Research 2026 (K-EXAONE): windows with positions, full layers without."""
    d = c.size("hidden_size", 4096)
    h = heads(c, d, 32, 32)
    n = depth(c, 32)
    norm, positions = rms(c, 1e-5), rope(c, h.width)
    kinds = windows(c, n, pattern(c, n, c.maybe("sliding_window", 4096) is not None))
    window = window_of(c, kinds, 4096)
    until = c.size("first_k_dense_replace", 1, least=0)
    sparse = sparse_layers(c, n, lambda i: i >= until)
    mlp = Mlp(c.size("intermediate_size", 16384), activation=activation(c))
    moe = routed(c, "num_experts", 64, 8, 1024, ("num_shared_experts", 1), scale=2.5)

    attention = turning(h, positions, window, None if window else positions, qk_norm=norm)
    return stack(c, layered(kinds, sparse, attention, mlp, moe, norm), d, norm, vocab=102400, trained=2048)


def pattern(c: Config, n: int, slides: bool) -> Callable[[int], str]:
    """Layer i's kind by `sliding_window_pattern`: every so many layers are full, or letters L and G in turn."""
    key = "sliding_window_pattern"
    value = c.data.get(key, 4)
    if isinstance(value, str):
        letters = c.word(key, None)
        if not letters or set(letters) - set("LG"):
            c.fail(key, "an integer of at least 1, letters L and G, or null")
        full = [letters[i % len(letters)] == "G" or i == n - 1 for i in range(n)]
    else:
        step = c.maybe(key, 4) or 1
        full = [(i + 1) % step == 0 for i in range(n)]
    return lambda i: SLIDING if slides and not full[i] else FULL


KOLIBRI = {
    **SHARED,
    **sandwiched("post_self_attn_layernorm.weight", "post_attention_layernorm.weight", "post_mlp_layernorm.weight"),
}


@family("kolibri1", cls="Kolibri1ForCausalLM", names=KOLIBRI, harmless=("intermediate_size",))
def kolibri1(c: Config) -> Decoder:
    """Four norms a layer; the correction is added to logits, not to scores."""
    c.rename(num_local_experts="num_experts")
    d = c.size("hidden_size", 2560)
    h = heads(c, d, 48, 4, 128)
    n = depth(c, 50)
    norm, positions = rms(c), rope(c, h.width)
    kinds = windows(c, n, lambda i: SLIDING if (i + 1) % 5 else FULL)
    window = window_of(c, kinds, 513)
    e, a = pool(c, "num_experts", 384, 6)
    router = Router("sigmoid-of-chosen", correction=True, normalize=c.flag("norm_topk_prob", False))
    shared = c.size("shared_expert_intermediate_size", 512)
    width = c.size("moe_intermediate_size", 512)
    moe = Moe(e, a, width, router, activation=activation(c), shared=shared)

    attention = turning(h, positions, window, None if window else positions, qk_norm=norm)
    layers = by_kind(kinds, lambda kind: sandwich(attention(kind), moe, norm, label(kind)))
    return stack(c, layers, d, norm, vocab=128000, trained=262144)
