"""CPM-Ant: a learned prompt before the text, and a bias for each distance and pair of segments."""

from __future__ import annotations

from assay.blocks import Decoder, Head, Mlp, Norm
from assay.blocks.prompted import PromptedDecoder, PromptedEmbedding, WholeAttention
from assay.sources.config import Config
from assay.sources.families.common import depth, family, pre_norm, under

CPMANT = under(
    "cpmant.",
    {
        "E": "input_embedding.weight",
        "E_segment": "segment_embedding.weight",
        "Rel": "position_bias.relative_attention_bias[u (g r)]",
        "Gf": "encoder.output_layernorm.weight",
        **under(
            "encoder.layers.{i}.",
            {
                "Ga": "self_att.layernorm_before_attention.weight",
                **{f"W{letter}": f"self_att.self_attention.project_{letter}.weight" for letter in "qkv"},
                "Wo": "self_att.self_attention.attention_out.weight",
                "Gm": "ffn.layernorm_before_ffn.weight",
                "Wg": "ffn.ffn.w_in.w_0.weight",
                "Wu": "ffn.ffn.w_in.w_1.weight",
                "Wd": "ffn.ffn.w_out.weight",
            },
        ),
    },
) | {"Wout": "lm_head.weight"}


@family(
    "cpmant",
    cls="CpmAntForCausalLM",
    names=CPMANT,
    harmless=("dropout_p", "init_std", "tie_word_embeddings"),
)
def cpmant(c: Config) -> Decoder:
    """OpenBMB 2022: in the first pass all of prompt and text see each other; the head is never tied."""
    c.absent(vocab_size=30720, hidden_size=4096, num_attention_heads=32, dim_head=128, dim_ff=10240, eps=1e-6)
    c.absent(num_hidden_layers=48, prompt_types=32, prompt_length=32, segment_types=32)
    c.absent(position_bias_num_buckets=512, position_bias_max_distance=2048)
    d, heads, vocab = c.size("hidden_size"), c.size("num_attention_heads"), c.size("vocab_size")
    prompt, segments = c.size("prompt_length"), c.size("segment_types", least=3)  # the text is of the third sort
    types = c.size("prompt_types", least=3)  # and so is the prompt before it
    far, buckets = c.size("position_bias_max_distance"), segments * segments + c.size("position_bias_num_buckets")
    attention = WholeAttention(heads, heads, c.size("dim_head"), relative=buckets, relative_far=far)
    norm = Norm(eps=c.positive("eps", 1e-6))
    layer = pre_norm(attention, Mlp(c.size("dim_ff"), activation="gelu"), norm)
    words = PromptedEmbedding(vocab, d, rows=vocab + types * prompt, segments=segments)
    c.notes.append(f"a prompt of {int(prompt)} positions of its own stands before the text and is kept in the cache")
    return PromptedDecoder(words, (layer,) * depth(c), Head(vocab, d, norm=norm), prompt=int(prompt))
