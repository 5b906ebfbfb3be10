"""NeoMME: one encoder of words and image patches in one sequence."""

from __future__ import annotations

from assay.blocks import Branch, Layer, Mlp, Norm, Step
from assay.blocks.encoders import Encoder
from assay.blocks.initial import ExclusiveAttention, FactoredHead, Mixed, ValuedEmbedding
from assay.blocks.towers import Multimodal, Tower
from assay.records import dataclass
from assay.sources.config import Config
from assay.sources.families.common import BASE, MASKED, Class, activation, by_kind, depth, family, heads, rope, under
from assay.sources.families.dense import FULL, SLIDING, biased, layer_types
from assay.sources.families.multimodal import any_size, base
from assay.spec import Op, ops

NAMES = {
    "E": "model.embed_tokens.word_embeddings.weight",
    "Ein": "model.embed_tokens.embedding_projection.weight",
    "E_value": "model.value_embeddings.weight[V (g v)]",
    **under(
        "model.layers.{i}.",
        {
            "Mix": "lambdas",
            **{f"W{letter}": f"self_attn.{letter}_proj.weight" for letter in "qkv"},
            "Share": "self_attn.exclusive_self_attention.alpha[(g r)]",
            "Wz": "self_attn.output_projection.gate_proj.weight",
            "Wo": "self_attn.output_projection.o_proj.weight",
            "Wu": "mlp.up_proj.weight",
            "Wd": "mlp.down_proj.weight",
        },
    ),
}
STEM = under(
    "model.patch_embeddings.",
    {"Gpatch": "norm.weight", "Wup": "up_proj.weight", "Wdown": "down_proj.weight", "Wdown_bias": "down_proj.bias"},
)


@dataclass(frozen=True)
class Stem:
    """A patch's pixels, normed, through two matrices. Axes: f pixels of all channels, e between the matrices."""

    side: int
    width: int

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"f": 3 * self.side * self.side, "e": 2 * self.width, "d": self.width}

    def ops(self) -> list[Op]:
        """From `pixels[b n f]` to `x[b n d]`."""
        made = Norm("layernorm", "gain+bias", 1e-5).ops("pixels", "x", "patch", "b n f", "f")
        return made + ops(
            "embedding",
            "x = linear(x[b n f], Wup[f e]) -> [b n e]",
            "x = gelu(x[b n e]) -> [b n e]",
            "x = linear(x[b n e], Wdown[e d], Wdown_bias[d]) -> [b n d]",
        )


def _windows(c: Config, kinds: list[str]) -> list[int | None]:
    """How far each layer's tokens see to either side: every other sliding layer further, or as the config lists."""
    near, sliding = c.size("sliding_window", 256), [i for i, kind in enumerate(kinds) if kind == SLIDING]
    far = set(sliding[1::2]) if not c.has("per_layer_config") else set()
    made: list[int | None] = [(1024 if i in far else int(near)) if i in sliding else None for i in range(len(kinds))]
    listed = c.table("per_layer_config") or {}
    for index, value in listed.items():
        at = int(index) if index.isdigit() else -1
        inner = Config(value if isinstance(value, dict) else {}, c.where, f"{c.prefix}per_layer_config.{index}.")
        if not 0 <= at < len(kinds) or set(inner.data) != {"sliding_window"}:
            c.fail("per_layer_config", "an object with a sliding_window, an integer or null, for numbers of layers")
        own = inner.maybe("sliding_window")
        made[at] = None if own is None else int(own)
    return made


def _masked(c: Config, made: Multimodal) -> FactoredHead:
    words = made.text.embedding
    return FactoredHead(words.vocab, words.width, words.narrow or 0, c.flag("tie_word_embeddings", True))


@family(
    "neomme",
    cls="NeoMMEForMaskedLM",
    names=NAMES,
    classes=(
        Class(
            MASKED, "ForMaskedLM", _masked, {"Wnarrow": "unembedding_projection.weight[d j]", "Wout": "lm_head.weight"}
        ),
        Class(BASE, "Model", base),
    ),
    harmless=("embedding_dim", "document_token_id", "image_token_id"),
)
def neomme(c: Config) -> Multimodal:
    """NeoMME 2026: patches through two matrices stand among the words; each layer reads the embeddings once more."""
    d, n = c.size("hidden_size", 1024), depth(c, 17)
    h = heads(c, d, 16, 4, 64)
    norm = Norm(affine="none", eps=c.positive("norm_eps", 1e-6))
    kinds = layer_types(c, [FULL if (i + 1) % 6 == 0 or i == n - 1 else SLIDING for i in range(n)])
    full = [i for i, kind in enumerate(kinds) if kind == FULL]
    if not full:
        c.fail("layer_types", f"a list with at least one {FULL}")
    bias = biased(c, "attention_bias", "qkvo")
    scale = c.positive("residual_multiplier", (2 * n) ** -0.5)
    inner, act = c.size("intermediate_size", 3584), activation(c, default="relu2")
    mlp = Mlp(inner, gated=False, activation=act, bias=biased(c, "mlp_bias", "ud"))
    turned = {FULL: rope(c, h.width, 1e6, 0.25, FULL), SLIDING: rope(c, h.width, 1e4, 1.0, SLIDING)}

    def layer(sort: tuple[str, int | None, bool]) -> Layer:
        kind, reach, valued = sort
        attention = ExclusiveAttention(
            *h,
            bias=bias,
            qk_norm=norm,
            positions=turned[kind],
            gate="element",
            sees="all",
            reach=reach,
            valued=valued,
        )
        first = Step((Branch(Mixed(attention, norm)),), scale=scale)
        return Layer((first, Step((Branch(mlp, norm),), scale=scale)), kind)

    valued = [i in (full[0], full[-1]) for i in range(n)]
    sorts = list(zip(kinds, _windows(c, kinds), valued, strict=True))
    vocab, rank = c.size("vocab_size", 131072), c.size("embedding_rank", 256)
    words = ValuedEmbedding(vocab, d, rank, norm=norm, groups=h.kv, value_width=h.width)
    text = Encoder(words, by_kind(sorts, layer), None, trained=c.maybe("max_position_embeddings", 16384), final=norm)
    side = c.size("patch_size", 32)
    axes = {"n": "patches", "o": "image_tokens"}
    tower = Tower(Stem(side, d), (), (), d, axes, STEM, called="vision", part="tower")
    return Multimodal(text, (tower,), any_size(side, 1), NAMES)
