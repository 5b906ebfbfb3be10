"""Switch Transformers: T5 whose every second, third or fourth MLP is a mixture of experts, one for each token."""

from __future__ import annotations

from assay.blocks import Mlp
from assay.blocks.encoder_decoder import EncoderDecoder, SpareEmbedding
from assay.blocks.moe import Moe, Router
from assay.blocks.stacks import Body
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import activation, apart, family
from assay.sources.families.t5 import CLASSES, HARMLESS, crossing, defaults, depths, halves, t5_names

FEED = {
    "Wr": "router.classifier.weight",
    "Br": "router.classifier.bias",
    "Eu": "experts.expert_{e}.wi.weight[f d]",
    "Ed": "experts.expert_{e}.wo.weight[d f]",
}
SWITCH = {
    **t5_names("wi", "mlp"),
    **{f"encoder.{name}": f"encoder.block.{{i}}.layer.1.mlp.{path}" for name, path in FEED.items()},
    **{f"decoder.{name}": f"decoder.block.{{i}}.layer.2.mlp.{path}" for name, path in FEED.items()},
}
UNTIED = {
    **SWITCH,
    "encoder.E": "encoder.embed_tokens.weight",
    "decoder.E": "decoder.embed_tokens.weight",
    "Espare": "shared.weight[V d]",
}


def sparse(c: Config, side: str, layers: int) -> list[bool]:
    """Which layers have experts: one of as many as there are for each sparse layer, the second of them."""
    count = c.size(f"num_sparse_{side}_layers", 3, least=0)
    if count > layers:
        c.fail(f"num_sparse_{side}_layers", f"at most the {side}'s layers, {layers}")
    step = layers // count if count else layers
    c.inert(f"{side}_sparse_step", step)
    return [index % step == 1 or step == 1 for index in range(layers)]


@apart(flops="of each token through its expert: none is ever full")
@family(
    "switch_transformers",
    cls="SwitchTransformersForConditionalGeneration",
    names=SWITCH,
    harmless=(
        *HARMLESS,
        *("expert_capacity", "router_jitter_noise", "router_dtype", "router_ignore_padding_tokens", "router_type"),
        *("router_z_loss_coef", "router_aux_loss_coef", "add_router_probs", "batch_prioritized_routing"),
        *(
            "num_selected_experts",
            "feed_forward_proj",
            "is_gated_act",
            "router_group_size",
            "capacity_factor",
            "min_tokens_per_group",
        ),
    ),
    classes=CLASSES,
)
def switch_transformers(c: Config) -> EncoderDecoder:
    """Fedus et al. 2021, arXiv:2101.03961. No expert is ever full."""
    defaults(c, vocab_size=32128, d_model=768, d_kv=64, d_ff=2048, num_layers=12, num_decoder_layers=12, num_heads=12)
    mlp = Mlp(c.size("d_ff"), gated=False, activation=activation(c, "dense_act_fn", "relu"))
    router = Router(bias=c.flag("router_bias", False))
    routed = Moe(c.size("num_experts", 8), 1, mlp.width, router, gated=False, activation=mlp.activation)

    def feed(sparse_here: bool) -> Body:
        return routed if sparse_here else mlp

    reads, writes = depths(c)
    made = halves(
        c,
        [(feed(here),) for here in sparse(c, "encoder", reads)],
        [(crossing(c), feed(here)) for here in sparse(c, "decoder", writes)],
        SWITCH,
    )
    if c.flag("tie_word_embeddings", True):
        return made
    words = made.decoder.embedding
    spare = SpareEmbedding(words.vocab, words.width)
    return replace(made, encoder=replace(made.encoder, embedding=spare), names=UNTIED)
