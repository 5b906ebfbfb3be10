"""ProphetNet: an encoder like BART's, and a decoder that predicts several tokens from each position."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Embedding, Mlp, Norm
from assay.blocks.encoder_decoder import EncoderDecoder, SpareEmbedding
from assay.blocks.encoders import Encoder
from assay.blocks.prophet import StreamHead, StreamLayer, Streams
from assay.sources.config import Config
from assay.sources.families.bart import crossing, layer, projections, sides
from assay.sources.families.common import BASE, SEQ2SEQ, Class, activation, depth, family, under

_WORDS = "query_proj key_proj value_proj out_proj"
_FEED = {"Wu": "feed_forward.intermediate.weight", "Wd": "feed_forward.output.weight"}
_SELF = {**projections("self_attn", _WORDS), "Gt0": "self_attn_layer_norm.weight"}
_AROUND = {"E_position": "position_embeddings.weight", "Ge": "embeddings_layer_norm.weight"}
PROPHETNET = {
    **sides(
        under(
            "prophetnet.encoder.",
            {**_AROUND, **under("layers.{i}.", {**_SELF, **_FEED, "Gt1": "feed_forward_layer_norm.weight"})},
        ),
        under(
            "prophetnet.decoder.",
            {
                **_AROUND,
                "Engram": "ngram_embeddings.weight",
                **under(
                    "layers.{i}.",
                    {
                        **_SELF,
                        **_FEED,
                        **projections("cross_attn", _WORDS, "cross."),
                        "Wrel": "self_attn.relative_pos_embeddings.weight[(u g r) d]",
                        "Brel": "self_attn.relative_pos_embeddings.bias[(u g r)]",
                        "Gt1": "cross_attn_layer_norm.weight",
                        "Gt2": "feed_forward_layer_norm.weight",
                    },
                ),
            },
        ),
    ),
    "E": "prophetnet.word_embeddings.weight",
    "Wout": "lm_head.weight",
}
UNTIED = {
    **PROPHETNET,
    **{f"{side}.E": f"prophetnet.{side}.word_embeddings.weight" for side in ("encoder", "decoder")},
    "Espare": "prophetnet.word_embeddings.weight[V d]",
}


def attention(c: Config, side: str) -> Attention:
    """Heads of one half, as wide together as the model."""
    heads = c.size(f"num_{side}_attention_heads", 16)
    each = c.divides("hidden_size", c.size("hidden_size"), f"num_{side}_attention_heads", heads)
    return Attention(heads, heads, each, bias="qkvo", sees="all" if side == "encoder" else "past")


@family(
    "prophetnet",
    cls="ProphetNetForConditionalGeneration",
    names=PROPHETNET,
    harmless=("is_encoder_decoder", "relative_max_distance", "disable_ngram_loss", "eps", "pad_token_id"),
    classes=(
        Class(SEQ2SEQ, "ForConditionalGeneration", lambda c, made: made.decoder.head),
        Class(BASE, "Model", lambda c, made: None, bare=True),
    ),
)
def prophetnet(c: Config) -> EncoderDecoder:
    """Qi et al. 2020, arXiv:2001.04063."""
    c.rename(num_attention_heads="num_encoder_attention_heads")
    c.absent(vocab_size=30522, hidden_size=1024, max_position_embeddings=512, ngram=2)
    c.inert("add_cross_attention", True)
    rows, width, norm = c.size("vocab_size"), c.size("hidden_size"), Norm("layernorm", "gain+bias", 1e-5)
    longest, count = c.size("max_position_embeddings"), c.size("ngram")
    act = activation(c, "activation_function", "gelu")
    read, write = attention(c, "encoder"), attention(c, "decoder")
    reading = layer((read, Mlp(c.size("encoder_ffn_dim", 4096), False, act, "ud")), norm, pre=False)
    writing = StreamLayer(
        (),
        attention=write,
        cross=crossing(write),
        mlp=Mlp(c.size("decoder_ffn_dim", 4096), False, act, "ud"),
        norm=norm,
        count=count,
        buckets=c.size("num_buckets", 32),
    )
    tied = c.flag("tie_word_embeddings", True)
    words = Embedding if tied else SpareEmbedding
    return EncoderDecoder(
        Encoder(
            words(rows, width, positions=longest, norm=norm),
            (reading,) * depth(c, 12, "num_encoder_layers"),
            None,
            limit=longest,
        ),
        Decoder(
            Streams(rows, width, positions=longest, norm=norm, count=count),
            (writing,) * depth(c, 12, "num_decoder_layers"),
            StreamHead(rows, width, tied, count),
            limit=longest,
        ),
        names=None if tied else UNTIED,
    )
