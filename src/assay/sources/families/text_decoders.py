"""Text decoders of models that read pictures or speak: TrOCR's and Moshi's, each as a class of its own."""

from __future__ import annotations

import math

from assay.blocks import Attention, Branch, CrossAttention, Decoder, Embedding, Head, Mlp, Norm, Sines, Step
from assay.blocks.two_streams import IdleCrossLayer
from assay.sources.config import Config
from assay.sources.families.common import activation, apart, depth, family, heads, pre_norm, rms, rope, under
from assay.sources.families.opt import FAIRSEQ, FAIRSEQ_NORM, OFFSET

TROCR = {
    "Wout": "output_projection.weight",
    **under(
        "model.decoder.",
        {
            "E": "embed_tokens.weight",
            "E_position": "embed_positions.weight",
            "Ge": "layernorm_embedding.weight",
            **under(
                "layers.{i}.",
                {
                    **FAIRSEQ,
                    "cross.Wq": "encoder_attn.q_proj.weight[(g r k) d]",
                    "cross.Wk": "encoder_attn.k_proj.weight[(g k) x]",
                    "cross.Wv": "encoder_attn.v_proj.weight[(g v) x]",
                    "cross.Wo": "encoder_attn.out_proj.weight[d (g r v)]",
                    "cross.Ga": "encoder_attn_layer_norm.weight",
                },
            ),
        },
    ),
}


@apart(flops="of the decoder: without a picture, nothing is attended to across")
@family("trocr", cls="TrOCRForCausalLM", names=TROCR, harmless=("init_std", "is_decoder"))
def trocr(c: Config) -> Decoder:
    """Li et al. 2021: the decoder alone, which is given no picture: its cross-attention is stored and not run."""
    c.rename(hidden_size="d_model", num_attention_heads="decoder_attention_heads", num_hidden_layers="decoder_layers")
    d, h = c.size("d_model", 1024), c.size("decoder_attention_heads", 16)
    each = c.divides("d_model", d, "decoder_attention_heads", h)
    source = c.maybe("cross_attention_hidden_size") or d
    mlp = Mlp(
        c.size("decoder_ffn_dim", 4096),
        gated=False,
        activation=activation(c, "activation_function", "gelu"),
        bias="ud",
    )
    learned, rows = c.flag("use_learned_position_embeddings", True), c.size("max_position_embeddings", 512)
    norm = Norm("layernorm", "gain+bias", 1e-5)
    steps = (
        Step((Branch(Attention(h, h, each, bias="qkvo")),), after=norm),
        Step((Branch(mlp),), after=norm),
    )
    layer = IdleCrossLayer(steps, "", CrossAttention(h, h, each, bias="qkvo"), source)
    vocab = c.size("vocab_size", 50265)
    embedding = Embedding(
        vocab,
        d,
        positions=rows + OFFSET if learned else None,
        offset=OFFSET if learned else None,
        sinusoid=False if learned else Sines(True, True, offset=c.size("pad_token_id", 1, least=0) + 1),
        scale=math.sqrt(d) if c.flag("scale_embedding", False) else None,
        norm=FAIRSEQ_NORM if c.flag("layernorm_embedding", True) else None,
    )
    c.notes.append("cross-attention to a picture's encoder is stored and not run: this class is given no picture")
    return Decoder(
        embedding,
        (layer,) * depth(c, 12, "decoder_layers"),
        Head(vocab, d, c.flag("tie_word_embeddings", True)),
        limit=rows if learned else None,
        trained=rows,
    )


MOSHI = {
    "E": "model.embed_tokens.weight",
    "Gf": "model.norm.weight",
    "Wout": "lm_head.weight",
    **under(
        "model.layers.{i}.",
        {
            "Ga": "input_layernorm.weight",
            "Gm": "post_attention_layernorm.weight",
            **{f"W{name}": f"self_attn.{name}_proj.linear.weight" for name in "qkvo"},
            "Wg": "mlp.fc1.weight[+f d]",
            "Wu": "mlp.fc1.weight[+f d]",
            "Wd": "mlp.fc2.weight",
        },
    ),
}


@family(
    "moshi",
    cls="MoshiForCausalLM",
    names=MOSHI,
    harmless=("audio_encoder_config", "depth_decoder_config", "audio_vocab_size", "num_codebooks"),
)
def moshi(c: Config) -> Decoder:
    """Défossez et al. 2024: the text model; the audio codec and the depth decoder are other classes."""
    d = c.size("hidden_size", 4096)
    h = heads(c, d, 32)
    both = c.size("ffn_dim", 22528)
    if both % 2:
        c.fail("ffn_dim", "even: the gate and the other half together")
    norm = rms(c, 1e-8)
    mixer = Attention(*h, positions=rope(c, h.width), window=c.maybe("sliding_window", 3000))
    layer = pre_norm(mixer, Mlp(both // 2, activation=activation(c)), norm)
    rows = c.size("vocab_size", 32000)
    if c.flag("tie_word_embeddings", False):
        c.fail("tie_word_embeddings", "false: the embedding has a row more than the head")
    trained = c.maybe("max_position_embeddings", 3000)
    return Decoder(Embedding(rows + 1, d), (layer,) * depth(c, 32), Head(rows, d, norm=norm), trained=trained)
