"""MobileNet-V5 as timm builds it: the vision tower of Gemma 3n, for images of 768 x 768 pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from assay.blocks.mobile import EdgeResidual, Fusion, InvertedResidual, MobileAttention, Stem
from assay.blocks.rewritten import begun
from assay.blocks.towers import Drawn
from assay.sources.families.common import under

SIDE, STEM = 768, 64  # pixels, and channels of the first kernel
OUT, TOKENS = 2048, 16  # channels, rows and columns of what the tower makes
# stages: channels, and blocks. e4 is an edge residual whose kernel makes four times the channels, i4.3.0 an inverted
# residual with a kernel of 3 x 3 before and none between, a12.64.2 attention of 12 heads of 64 with every other row and
# column as keys; "* n" repeats. The first block of a stage has a stride of two.
STAGES = (
    (128, ("e4", "e4 * 2")),
    (256, ("i6.3.5", "i4.5.0 i4.3.0 * 2")),
    (640, ("i6.5.5", "i4.5.0 * 7", "i1.0.0", "a12.64.2 i2.0.0 * 14")),
    (1280, ("i6.5.5", "a16.96.1 i2.0.0 * 19")),
)

STEMS = {"Wstem": "conv_stem.conv.weight[d i q s]", "Wstem_bias": "conv_stem.conv.bias", "Gstem": "conv_stem.bn.weight"}
EDGE = {
    "Wexp": "conv_exp.weight[f d q s]",
    "Gexp": "bn1.weight",
    "Wproj": "conv_pwl.weight[j f 1 1]",
    "Gproj": "bn2.weight",
}
MOBILE = {
    "Wstart": "dw_start.conv.weight[d 1 q s]",
    "Gstart": "dw_start.bn.weight",
    "Wexp": "pw_exp.conv.weight[f d 1 1]",
    "Gexp": "pw_exp.bn.weight",
    "Wmid": "dw_mid.conv.weight[f 1 o p]",
    "Gmid": "dw_mid.bn.weight",
    "Wproj": "pw_proj.conv.weight[j f 1 1]",
    "Gproj": "pw_proj.bn.weight",
    "Gain": "layer_scale.gamma",
    "Ga": "norm.weight",
    "Wq": "attn.query.proj.weight[(g r k) d 1 1]",
    "Dk": "attn.key.down_conv.weight[d 1 q s]",
    "Gk": "attn.key.norm.weight",
    "Wk": "attn.key.proj.weight[(g k) d 1 1]",
    "Dv": "attn.value.down_conv.weight[d 1 q s]",
    "Gv": "attn.value.norm.weight",
    "Wv": "attn.value.proj.weight[(g v) d 1 1]",
    "Wo": "attn.output.proj.weight[d (g r v) 1 1]",
}
FUSED = {
    "Wexp": "msfa.ffn.pw_exp.conv.weight[f l 1 1]",
    "Gexp": "msfa.ffn.pw_exp.bn.weight",
    "Wproj": "msfa.ffn.pw_proj.conv.weight[j f 1 1]",
    "Gproj": "msfa.ffn.pw_proj.bn.weight",
    "Gfused": "msfa.norm.weight",
}
NAMES = {
    **STEMS,
    **{f"stage0.{weight}": f"blocks.0.{{i}}.{path}" for weight, path in EDGE.items()},
    **{f"stage{i}.{weight}": f"blocks.{i}.{{i}}.{path}" for i in (1, 2, 3) for weight, path in MOBILE.items()},
    **{f"fused.{weight}": path for weight, path in FUSED.items()},
}

Made = EdgeResidual | InvertedResidual | MobileAttention


def spelled(blocks: tuple[str, ...]) -> Iterator[str]:
    """Each block of a stage in turn, what is repeated written out."""
    for group in blocks:
        several, star, times = group.partition(" * ")
        yield from several.split() * (int(times) if star else 1)


def block(word: str, side: int, width: int, out: int, stride: int) -> Made:
    """A block by its word, see STAGES."""
    sort, numbers = word[0], [int(number) for number in word[1:].split(".")]
    if sort == "e":
        return EdgeResidual(side, width, out, numbers[0] * width, stride)
    if sort == "i":
        times, before, between = numbers
        return InvertedResidual(side, width, out, times * width, stride, start=before, middle=between)
    heads, each, apart = numbers
    return MobileAttention(heads, 1, each, sees="all", side=side, width=out, stride=apart)


@lru_cache(maxsize=4)
def mobilenet_v5(prefix: str) -> tuple[Stem, tuple[Drawn, ...], Mapping[str, str]]:
    """The first kernel, all that follows it, and the names of their weights below `prefix`."""
    drawn: list[Drawn] = []
    side, width = SIDE // 2, STEM
    ends: list[tuple[int, int]] = []
    for number, (out, blocks) in enumerate(STAGES):
        where: dict[Made, list[int]] = {}
        for index, word in enumerate(spelled(blocks)):
            first = index == 0
            where.setdefault(block(word, side, width, out, 2 if first else 1), []).append(index)
            side, width = (-(-side // 2) if first else side), out
        for made, at in where.items():
            ops = begun(made.ops(), f"stage{number}.")
            drawn.append(Drawn(f"{number}, {made.says}", tuple(ops), made.sizes(), tuple(at)))
        ends.append((side, width))
    near, far = ends[-2:]
    fusion = Fusion(near, far, 2 * (near[1] + far[1]), OUT, TOKENS)
    drawn.append(Drawn(fusion.says, tuple(begun(fusion.ops(), "fused.")), fusion.sizes()))
    return Stem(SIDE, STEM), tuple(drawn), under(prefix, NAMES)
