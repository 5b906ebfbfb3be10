"""CLIP and SigLIP: an image and a text as a vector each, and how near these are (Radford et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.blocks import Embedding, Layer, Norm
from assay.blocks.encoders import Encoder
from assay.blocks.mlp import Mlp
from assay.blocks.stacks import Ending
from assay.blocks.towers import Causal, Drawn, Multimodal, Patches, Probe, Tower
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import BASE, Class, activation, depth, family, under
from assay.sources.families.vision import plain, seeing, square
from assay.spec import Op, Sight, ops

LAYER = under(
    "encoder.layers.{i}.",
    {
        "Ga": "layer_norm1.weight",
        **{
            f"W{letter}": f"self_attn.{name}_proj.weight"
            for letter, name in zip("qkvo", "q k v out".split(), strict=True)
        },
        "Gm": "layer_norm2.weight",
        "Wu": "mlp.fc1.weight",
        "Wd": "mlp.fc2.weight",
    },
)
VISION = LAYER | {
    "Cls": "embeddings.class_embedding",
    "Wpatch": "embeddings.patch_embedding.weight[d i y z]",
    "Wpatch_bias": "embeddings.patch_embedding.bias",
    "E_position": "embeddings.position_embedding.weight",
    "Ge": "pre_layrnorm.weight",  # so it is spelled
    "Gf": "post_layernorm.weight",
}
VISION |= under(
    "head.",
    {
        "probe.Probe": "probe[1 1 d]",
        "probe.Wq": "attention.in_proj_weight[+(g r k) d]",
        "probe.Wk": "attention.in_proj_weight[+(g k) d]",
        "probe.Wv": "attention.in_proj_weight[+(g v) d]",
        "probe.Bq": "attention.in_proj_bias[+(g r k)]",
        "probe.Bk": "attention.in_proj_bias[+(g k)]",
        "probe.Bv": "attention.in_proj_bias[+(g v)]",
        "probe.Wo": "attention.out_proj.weight",
        "probe.Gp": "layernorm.weight",
        "probe.Wu": "mlp.fc1.weight",
        "probe.Wd": "mlp.fc2.weight",
    },
)
VISION2 = VISION | {"Wpatch": "embeddings.patch_embedding.weight[d (y z i)]"}
TEXT = LAYER | {
    "E": "embeddings.token_embedding.weight",
    "E_position": "embeddings.position_embedding.weight",
    "Gf": "final_layer_norm.weight",
}
CLIP = under("text_model.", TEXT) | {"Wproject": "text_projection.weight", "Scale": "logit_scale[ ]"}
HEADED = TEXT | {"Wproject": "head.weight", "Wproject_bias": "head.bias"}
SIGLIP = under("text_model.", HEADED) | {
    "Scale": "logit_scale[1]",
    "Shift": "logit_bias[1]",
}
IMAGE = {"Wimage": "visual_projection.weight"}
NESTED = ("model_type", "tie_word_embeddings", "projection_dim", "pad_token_id", "bos_token_id", "eos_token_id")


def eps(c: Config, default: float) -> Norm:
    """LayerNorm with the config's eps."""
    return Norm("layernorm", "gain+bias", c.positive("layer_norm_eps", default))


def nested(c: Config, key: str) -> Config:
    """A tower's config; an older copy of it, where one is kept beside, is what counts."""
    if c.has(f"{key}_dict"):
        older = c.child(key)
        older.skip(*older.data)
        return c.child(f"{key}_dict")
    c.skip(f"{key}_dict")
    return c.child(key)


def pooled_first(norm: Norm, projection: int | None, width: int) -> Drawn:
    """The first token's norm, and its projection where there is one."""
    made = [*ops("head", "y = first(x[b n d]) -> [b d]"), *norm.ops("y", "y", "f", "b d")]
    if projection is not None:
        made += ops("head", "y = linear(y[b d], Wimage[d j]) -> [b j]")
    return Drawn("head", tuple(made), {"d": width, "j": projection})


def clip_vision(c: Config, projection: int | None = None) -> Tower:
    """CLIP's vision transformer: a norm before the layers, and behind them of the first token alone."""
    c.absent(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, num_channels=3)
    c.absent(image_size=224, patch_size=32, hidden_act="quick_gelu")
    c.skip(*NESTED)
    width, layers, norm = c.size("hidden_size"), depth(c), eps(c, 1e-5)
    patches, kernel = square(c)
    start = Patches(
        c.size("num_channels"), kernel, width, patches, (("Cls", 1),), bias=False, positions=patches + 1, norm=norm
    )
    layer = plain(c, norm, seeing(c, "qkvo"))
    end = pooled_first(norm, projection, width)
    return Tower(start, (layer,) * layers, (end,), width, {"n": start.length}, called="vision")


def siglip_vision(c: Config) -> Tower:
    """SigLIP's vision transformer: no token of its own; a probe that attends to all of them."""
    c.absent(image_size=224, patch_size=16, num_channels=3)
    patches, kernel = square(c)
    return probed(c, Patches(c.size("num_channels"), kernel, c.size("hidden_size", 768), patches, positions=patches))


def siglip2_vision(c: Config) -> Tower:
    """SigLIP 2's (Tschannen et al. 2025, arXiv:2502.14786): images of any shape that have at most `num_patches`.

    They are filled up to that number; the table of positions is of that many rows and resized for each shape.
    """
    c.absent(patch_size=16, num_channels=3)
    c.skip("image_size")
    patches, side = c.size("num_patches", 256), c.size("patch_size")
    first = Patches(c.size("num_channels"), (side, side), c.size("hidden_size", 768), patches, positions=patches)
    return probed(c, first)


def probed(c: Config, start: Patches) -> Tower:
    """SigLIP's layers, its last norm, and the probe where there is one."""
    c.absent(intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, hidden_act="gelu_pytorch_tanh")
    c.absent(hidden_size=768)
    c.skip(*NESTED, "projection_size")
    width, layers, norm = start.width, depth(c), eps(c, 1e-6)
    layer = plain(c, norm, seeing(c, "qkvo"))
    ends: list[Ending] = [Drawn("norm", tuple(norm.ops("x", "x", "f")), {"d": width})]
    if c.flag("vision_use_head", True):
        mlp = Mlp(c.size("intermediate_size"), gated=False, activation=activation(c), bias="ud")
        ends.append(Probe(c.size("num_attention_heads"), width, mlp, norm))
    return Tower(start, (layer,) * layers, tuple(ends), width, {"n": start.length}, called="vision")


def beside(tower: Tower, names: dict[str, str], prefix: str) -> Tower:
    """A tower beside a text model, its weights' names below a prefix; a probe's are told from the layers'."""
    return replace(tower, names=under(prefix, names), part="tower")


def text_model(c: Config, layer: Layer, norm: Norm, vector: Sequence[Op], projection: int | None) -> Encoder:
    """An encoder of text whose last or end token is its vector."""
    rows, width, longest = c.size("vocab_size"), c.size("hidden_size"), c.size("max_position_embeddings")
    c.skip(*NESTED)
    made = (*norm.ops("x", "x", "f"), *vector)
    return Encoder(
        Embedding(rows, width, positions=longest),
        (layer,) * depth(c),
        Drawn("head", made, {"d": width, "j": projection}),
        limit=longest,
    )


def clip_text(c: Config, projection: int | None) -> Encoder:
    """CLIP's encoder of text, whose tokens see those before them; its end token's vector, projected or not."""
    c.absent(hidden_size=512, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=8)
    c.absent(vocab_size=49408, max_position_embeddings=77, hidden_act="quick_gelu")
    norm, flat = eps(c, 1e-5), seeing(c, "qkvo")
    attention = Causal(flat.heads, flat.kv_heads, flat.head_width, bias="qkvo")
    end = c.data.get("eos_token_id", 49407)  # of older files, which say 2, it is the largest token of a text
    token = end if isinstance(end, int) and end != 2 else "largest"
    vector = ops("head", f"y = first(x[b n d], token={token}) -> [b d]")
    if projection is not None:
        vector += ops("head", "y = linear(y[b d], Wproject[d j]) -> [b j]")
    return text_model(c, plain(c, norm, attention), norm, vector, projection)


def siglip_text(c: Config) -> Encoder:
    """SigLIP's encoder of text, whose tokens see all of it; its last token's vector, projected."""
    c.absent(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12)
    c.absent(vocab_size=32000, max_position_embeddings=64, hidden_act="gelu_pytorch_tanh")
    norm, projection = eps(c, 1e-6), c.maybe("projection_size") or c.size("hidden_size")
    vector = ops(
        "head", "y = first(x[b n d], at=-1) -> [b d]", "y = linear(y[b d], Wproject[d j], Wproject_bias[j]) -> [b j]"
    )
    return text_model(c, plain(c, norm, seeing(c, "qkvo")), norm, vector, projection)


@family(
    "clip",
    cls="CLIPModel",
    names=CLIP,
    harmless=("logit_scale_init_value",),
    classes=(Class(BASE, "Model", lambda c, made: made.text.head),),
)
def clip(c: Config) -> Multimodal:
    """Radford et al. 2021, arXiv:2103.00020: both vectors are projected to one width and compared."""
    text, seen = nested(c, "text_config"), nested(c, "vision_config")
    common = c.size("projection_dim", 512)
    tower = clip_vision(seen, common)
    told = replace(beside(tower, VISION, "vision_model."), names=under("vision_model.", VISION) | IMAGE)
    return compared(clip_text(text, common), told, CLIP, common, "s = mul(s[b z], Scale[]) -> [b z]")


def compared(text: Encoder, tower: Tower, names: Mapping[str, str], width: int, *lines: str) -> Multimodal:
    """Both halves, and products of their vectors, each `width` wide."""
    made = ops("head", "s = contract(text[b j], image[z j]) -> [b z]", *lines)
    axes = {"j": width}
    seen, read = (
        Drawn("vector", tuple(ops("head", f"{it} = view(y[b j]) -> [b j]")), axes) for it in ("image", "text")
    )
    return Multimodal(
        text,
        (replace(tower, ends=(*tower.ends, seen)),),
        Sight(images=1),
        names,
        (read, Drawn("similarity", tuple(made), axes)),
    )


COMPARED = Class(BASE, "Model", lambda c, made: made.text.head)


def paired(c: Config, text: Config, seen: Config, tower: Tower) -> Multimodal:
    """Both of SigLIP's halves, each pair of a text and an image scored by itself."""
    read = siglip_text(text)
    projection = text.maybe("projection_size") or text.size("hidden_size")
    if projection != tower.width:
        text.fail("projection_size", f"{seen.path('hidden_size')}, {tower.width}: texts and images are compared")
    shifted = "s = add(s[b z], Shift[]) -> [b z]"
    return compared(read, tower, SIGLIP, projection, "s = mul(s[b z], Scale[]) -> [b z]", shifted)


@family("siglip", cls="SiglipModel", names=SIGLIP, classes=(COMPARED,))
def siglip(c: Config) -> Multimodal:
    """Zhai et al. 2023, arXiv:2303.15343: every text token sees all, and each pair is scored by itself."""
    text, seen = c.child("text_config"), c.child("vision_config")
    return paired(c, text, seen, beside(siglip_vision(seen), VISION, "vision_model."))


@family("siglip2", cls="Siglip2Model", names=SIGLIP, classes=(COMPARED,))
def siglip2(c: Config) -> Multimodal:
    """Tschannen et al. 2025, arXiv:2502.14786."""
    text, seen = c.child("text_config"), c.child("vision_config")
    return paired(c, text, seen, beside(siglip2_vision(seen), VISION2, "vision_model."))


def alone(tower: Tower, names: Mapping[str, str]) -> Tower:
    """A tower by itself, whose images are all of one size."""
    length = int(tower.axes["n"])
    return replace(tower, names=names, called="", sight=Sight(images=1, alone=length))


WITH = "ModelWithProjection"
PROJECTED = "projected"
AS_MADE = Class(BASE, "Model", lambda c, made: made)


@family(
    "clip_vision_model",
    cls="CLIPVisionModel",
    names=VISION,
    classes=(
        AS_MADE,
        Class(PROJECTED, WITH, lambda c, made: seen_projected(c)),
    ),
)
def clip_vision_model(c: Config) -> Tower:
    """The half of CLIP that sees images, by itself."""
    return alone(clip_vision(c), VISION)


def seen_projected(c: Config) -> Tower:
    """The same with its projection to the width that both halves have."""
    return alone(clip_vision(c, c.size("projection_dim", 512)), under("vision_model.", VISION) | IMAGE)


@family(
    "clip_text_model",
    cls="CLIPTextModel",
    names=TEXT,
    classes=(
        AS_MADE,
        Class(PROJECTED, WITH, lambda c, made: replace(read_projected(c), names=CLIP)),
    ),
)
def clip_text_model(c: Config) -> Encoder:
    """The half of CLIP that reads text, by itself: what many models of images are told with."""
    return clip_text(c, None)


def read_projected(c: Config) -> Encoder:
    """The same with its projection."""
    return clip_text(c, c.size("projection_dim", 512))


@family("siglip_vision_model", cls="SiglipVisionModel", names=VISION, classes=(AS_MADE,))
def siglip_vision_model(c: Config) -> Tower:
    """The half of SigLIP that sees images, by itself."""
    return alone(siglip_vision(c), VISION)


@family("siglip2_vision_model", cls="Siglip2VisionModel", names=VISION2, classes=(AS_MADE,))
def siglip2_vision_model(c: Config) -> Tower:
    """The half of SigLIP 2 that sees images, by itself."""
    return alone(siglip2_vision(c), VISION2)


@family("siglip_text_model", cls="SiglipTextModel", names=HEADED, classes=(AS_MADE,))
@family("siglip2_text_model", cls="Siglip2TextModel", names=HEADED, classes=(AS_MADE,))
def siglip_text_model(c: Config) -> Encoder:
    """The half of SigLIP, or of SigLIP 2, that reads text, by itself."""
    return siglip_text(c)
