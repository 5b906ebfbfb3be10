"""Idefics 2: SigLIP's encoder, a gated MLP, a perceiver that makes few tokens of an image, a text model."""

from __future__ import annotations

from assay.blocks import Mlp, Norm
from assay.blocks.images import ResamplingAttention
from assay.blocks.mlp import feed_forward
from assay.blocks.towers import Drawn, Multimodal, Tower
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.clip import VISION, siglip_vision
from assay.sources.families.common import activation, depth, family, pre_norm, under
from assay.sources.families.llava import CROPS
from assay.sources.families.multimodal import CLASSES, beside, moved, text_of
from assay.spec import ops

SEEN = under("model.vision_model.", VISION) | under(
    "model.connector.modality_projection.",
    {"Wp1": "gate_proj.weight", "Wp2": "up_proj.weight", "Wp3": "down_proj.weight"},
)
LATENTS = under(
    "model.connector.perceiver_resampler.",
    {
        "Latent": "latents",
        **under(
            "layers.{i}.",
            {
                "Ga": "input_latents_norm.weight",
                "Gseen": "input_context_norm.weight",
                **{f"W{letter}": f"self_attn.{letter}_proj.weight" for letter in "qkvo"},
                "Gm": "post_attention_layernorm.weight",
                "Wg": "mlp.gate_proj.weight",
                "Wu": "mlp.up_proj.weight",
                "Wd": "mlp.down_proj.weight",
            },
        ),
        "Gf": "norm.weight",
    },
)


def seeing(c: Config, text: Config, out: int) -> Tower:
    """The encoder without a probe, each position through a gated MLP as wide as the text model's."""
    c.absent(image_size=224, patch_size=32, vision_use_head=False)
    c.inert("vision_use_head", False)
    tower = siglip_vision(c)
    names, act = "Wp1 Wp2 Wp3", activation(text)
    made = feed_forward("tower", "x", "y", names, "f", True, act, "")
    *into, last = made
    last = replace(last, inputs=(last.inputs[0], replace(last.inputs[1], axes=("f", "e"))), axes=("b", "n", "e"))
    sizes = {"d": tower.width, "f": text.size("intermediate_size", 14336), "e": out}
    return replace(tower, ends=(*tower.ends, Drawn("projector", (*into, last), sizes)), names=SEEN)


def resampler(c: Config, text: Config, width: int, seen: int) -> Tower:
    """Learned vectors, as wide as the text model, that attend to an image in each of a few layers."""
    c.absent(resampler_n_latents=64, resampler_n_heads=16, resampler_head_dim=96, num_key_value_heads=4)
    c.skip("model_type")
    own = c.size("hidden_size", 4096) == width  # else the class takes the text model's width, and its eps
    norm = Norm(eps=(c if own else text).positive("rms_norm_eps", 1e-6))
    c.skip("rms_norm_eps")
    latents, heads, groups = c.size("resampler_n_latents"), c.size("resampler_n_heads"), c.size("num_key_value_heads")
    c.divides("resampler_n_heads", heads, "num_key_value_heads", groups)
    attention = ResamplingAttention(heads, groups, c.size("resampler_head_dim"), norm=norm, sees="all")
    layer = pre_norm(attention, Mlp(4 * width, activation=activation(c)), norm)
    start = Drawn(
        "embedding",
        tuple(ops("embedding", "x = gather(at[n], Latent[Q d]) -> [n d]", "x = repeat(x[n d]) -> [b n d]")),
        {"d": width, "Q": latents},
    )
    end = Drawn("norm", tuple(norm.ops("x", "x", "f")), {"d": width})
    axes = {"n": latents, "m": seen, "j": seen + latents}
    layers = (layer,) * depth(c, 3, "resampler_depth")
    return Tower(start, layers, (end,), width, axes, LATENTS, called="resampler")


@family("idefics2", cls="Idefics2ForConditionalGeneration", names={}, classes=CLASSES)
def idefics2(c: Config) -> Multimodal:
    """Laurençon et al. 2024, arXiv:2405.02246."""
    text = text_of(c, "mistral", tied=False, whole={"max_position_embeddings": 32768, "rms_norm_eps": 1e-5})
    inner, out = c.child("text_config"), text[0].width
    tower = seeing(c.child("vision_config"), inner, out)
    few = resampler(c.child("perceiver_config"), inner, out, int(tower.axes["n"]))
    c.notes.append(CROPS)
    return replace(beside(c, text, [tower, few]), names=moved(text[1], "model.text_model."))
