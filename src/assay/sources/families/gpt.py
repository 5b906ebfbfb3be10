"""GPT, GPT-2 and what keeps their layer: LayerNorm with bias, a table or sines of positions, an MLP of two matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from assay.blocks import Attention, Branch, Decoder, Embedding, Head, Layer, Mlp, Norm, Sines, Step
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import activation, by_kind, depth, family, layernorm, pre_norm, under
from assay.sources.families.names import behind, interleaved

# keys of the heads for other tasks, and of how scores are computed and not of what they are
SUMMARY = ("summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout")
HARMLESS = (
    *(*SUMMARY, "n_ctx", "reorder_and_upcast_attn"),
    *("apply_query_key_layer_scaling", "normalize_attention_scores"),
)

# the names of today's configs, which GPT-2's class reads too
TODAY = {
    "hidden_size": "n_embd",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
    "max_position_embeddings": "n_positions",
}


def names(
    layer: Mapping[str, str], embedding: str = "transformer.wte.weight", head: str = "lm_head.weight"
) -> dict[str, str]:
    """Tables, the last norm and a layer's weights under GPT-2's names."""
    return {
        "E": embedding,
        "E_position": "transformer.wpe.weight",
        "Gf": "transformer.ln_f.weight",
        "Wout": head,
        **under("transformer.h.{i}.", layer),
    }


# Conv1D keeps weights input first; queries, keys and values lie behind each other along the output
CONV1D = {
    "Wq": "attn.c_attn.weight[d +(g r k)]",
    "Wk": "attn.c_attn.weight[d +(g k)]",
    "Wv": "attn.c_attn.weight[d +(g v)]",
    "Bq": "attn.c_attn.bias[+(g r k)]",
    "Bk": "attn.c_attn.bias[+(g k)]",
    "Bv": "attn.c_attn.bias[+(g v)]",
    "Wo": "attn.c_proj.weight[(g r v) d]",
    "Wu": "mlp.c_fc.weight[d f]",
    "Wd": "mlp.c_proj.weight[f d]",
}
PRE_NORM = {"Ga": "ln_1.weight", "Gm": "ln_2.weight"}
GPT2 = names(CONV1D | PRE_NORM)


def inner_width(c: Config, width: int, key: str = "n_inner") -> int:
    """The MLP's width, four times the model's where the key is null or absent."""
    return c.maybe(key) or 4 * width


def score_scale(c: Config, head_width: int) -> float | None:
    """1 / sqrt(k), None, or 1 where `scale_attn_weights` is false."""
    return None if c.flag("scale_attn_weights", True) else 1.0


def learned(c: Config, layers: tuple[Layer, ...], width: int, norm: Norm | None, vocab: int, rows: int) -> Decoder:
    """A table of `n_positions` learned positions, a tied head."""
    positions = c.size("n_positions", rows)
    size = c.size("vocab_size", vocab)
    head = Head(size, width, c.flag("tie_word_embeddings", True), norm=norm)
    return Decoder(Embedding(size, width, positions=positions), layers, head, limit=positions, trained=positions)


@family("gpt2", cls="GPT2LMHeadModel", names=GPT2, harmless=HARMLESS)
def gpt2(c: Config) -> Decoder:
    """Radford et al. 2019."""
    c.rename(**TODAY)
    d = c.size("n_embd", 768)
    h = c.size("n_head", 12)
    k = c.divides("n_embd", d, "n_head", h)
    mlp = Mlp(inner_width(c, d), gated=False, activation=activation(c, "activation_function", "gelu_new"), bias="ud")
    norm = layernorm(c)
    scale = score_scale(c, k)

    def layer(by: float | None) -> Layer:
        return pre_norm(Attention(h, h, k, bias="qkvo", scale=by), mlp, norm)

    count = depth(c, 12, "n_layer")
    if c.flag("scale_attn_by_inverse_layer_idx", False):  # every layer has a scale of its own
        layers = tuple(layer((scale or 1 / math.sqrt(k)) / (i + 1)) for i in range(count))
    else:
        layers = (layer(scale),) * count
    # matrices that end in the residual stream are smaller, by the root of how many there are
    spread = c.data.get("initializer_range", 0.02)
    if isinstance(spread, float):
        c.starts["c_proj.weight"] = spread / math.sqrt(2 * count)
    return learned(c, layers, d, norm, 50257, 1024)


@family(
    "openai-gpt",
    cls="OpenAIGPTLMHeadModel",
    names=names(CONV1D | {"Gt0": "ln_1.weight", "Gt1": "ln_2.weight"}, "transformer.tokens_embed.weight")
    | {"E_position": "transformer.positions_embed.weight"},
    harmless=(*SUMMARY, "n_ctx", "n_special", "predict_special_tokens"),
)
def openai_gpt(c: Config) -> Decoder:
    """Radford et al. 2018: norms behind the residual sum, none at the end."""
    c.rename(**TODAY)
    d = c.size("n_embd", 768)
    h = c.size("n_head", 12)
    attention = Attention(h, h, c.divides("n_embd", d, "n_head", h), bias="qkvo")
    act = {"relu": "relu", "silu": "silu", "swish": "silu", "gelu": "gelu_tanh"}
    mlp = Mlp(4 * d, gated=False, activation=act[c.word("afn", "gelu", act)], bias="ud")
    norm = layernorm(c)
    layer = Layer((Step((Branch(attention),), after=norm), Step((Branch(mlp),), after=norm)))
    return learned(c, (layer,) * depth(c, 12, "n_layer"), d, None, 40478, 512)


# one key/value head: queries of all heads first; else each head's query, key and value together
MULTI_QUERY = {
    **behind("attn.c_attn", biases=True),
    "Wo": "attn.c_proj.weight",
    "Wu": "mlp.c_fc.weight",
    "Wd": "mlp.c_proj.weight",
}
BIGCODE = names(MULTI_QUERY | PRE_NORM)


PER_HEAD = BIGCODE | under("transformer.h.{i}.", interleaved("attn.c_attn"))


@family(
    "gpt_bigcode",
    cls="GPTBigCodeForCausalLM",
    names=BIGCODE,
    harmless=(
        *HARMLESS,
        *("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "inference_runner", "max_batch_size"),
        *("max_sequence_length", "pad_key_length", "pre_allocate_kv_cache", "validate_runner_input"),
    ),
)
def gpt_bigcode(c: Config) -> Decoder:
    """Allal et al. 2023 (SantaCoder): GPT-2 with one key/value head."""
    c.rename(**TODAY)
    d = c.size("n_embd", 768)
    h = c.size("n_head", 12)
    k = c.divides("n_embd", d, "n_head", h)
    shared = c.flag("multi_query", True)
    c.inert("num_key_value_heads", 1 if shared else int(h))
    attention = Attention(h, 1 if shared else h, k, bias="qkvo", scale=score_scale(c, k))
    act = activation(c, "activation_function", "gelu_pytorch_tanh")
    norm = layernorm(c)
    layer = pre_norm(attention, Mlp(inner_width(c, d), gated=False, activation=act, bias="ud"), norm)
    made = learned(c, (layer,) * depth(c, 12, "n_layer"), d, norm, 50257, 1024)
    return made if shared else replace(made, names=PER_HEAD)


NEO = names(
    PRE_NORM
    | {
        "Wq": "attn.attention.q_proj.weight",
        "Wk": "attn.attention.k_proj.weight",
        "Wv": "attn.attention.v_proj.weight",
        "Wo": "attn.attention.out_proj.weight",
        "Wu": "mlp.c_fc.weight",
        "Wd": "mlp.c_proj.weight",
    }
)


def expanded(c: Config, count: int) -> list[str]:
    """`attention_types`, [[[kinds], times], …], as the kind of each layer; `attention_layers` repeats it."""

    def fits(item: object) -> bool:
        return (
            isinstance(item, list)
            and len(item) == 2
            and isinstance(item[0], list)
            and all(kind in ("global", "local") for kind in item[0])
            and type(item[1]) is int
            and 0 <= item[1] <= count
        )

    shape = f"[[kinds], times] with kinds global or local, {count} in all"
    given = c.sequence("attention_types", fits, shape)
    runs: list[Any] = given if given is not None else [[["global", "local"], 12]]
    kinds = [kind for run, times in runs for _ in range(times) for kind in run]
    if len(kinds) != count:
        c.fail("attention_types", f"a list of {shape}")
    c.inert("attention_layers", kinds)
    return kinds


@family("gpt_neo", cls="GPTNeoForCausalLM", names=NEO, harmless=(*SUMMARY, "embed_dropout", "resid_dropout"))
def gpt_neo(c: Config) -> Decoder:
    """Black et al. 2021: full and windowed layers in turn; scores are not scaled.

    The public implementation keeps every key and masks those that have left the window: so does its cache.
    """
    c.rename(num_attention_heads="num_heads", num_hidden_layers="num_layers")
    d = c.size("hidden_size", 2048)
    h = c.size("num_heads", 16)
    k = c.divides("hidden_size", d, "num_heads", h)
    count = depth(c, 24, "num_layers")
    window = c.size("window_size", 256)
    width = inner_width(c, d, "intermediate_size")
    mlp = Mlp(width, gated=False, activation=activation(c, "activation_function", "gelu_new"), bias="ud")
    norm = layernorm(c)

    def layer(kind: str) -> Layer:
        local = window if kind == "local" else None
        attention = Attention(h, h, k, bias="o", scale=1.0, window=local, keep_all=True)
        return pre_norm(attention, mlp, norm, kind)

    positions = c.size("max_position_embeddings", 2048)
    vocab = c.size("vocab_size", 50257)
    return Decoder(
        Embedding(vocab, d, positions=positions),
        by_kind(expanded(c, count), layer),
        Head(vocab, d, c.flag("tie_word_embeddings", True), norm=norm),
        limit=positions,
        trained=positions,
    )


CTRL = {
    "E": "transformer.w.weight",
    "Gf": "transformer.layernorm.weight",
    "Wout": "lm_head.weight",
    **under(
        "transformer.h.{i}.",
        {
            "Ga": "layernorm1.weight",
            "Wq": "multi_head_attention.Wq.weight",
            "Wk": "multi_head_attention.Wk.weight",
            "Wv": "multi_head_attention.Wv.weight",
            "Wo": "multi_head_attention.dense.weight",
            "Gm": "layernorm2.weight",
            "Wu": "ffn.0.weight",
            "Wd": "ffn.2.weight",
        },
    ),
}


@family("ctrl", cls="CTRLLMHeadModel", names=CTRL, harmless=(*SUMMARY, "n_ctx", "output_past"))
def ctrl(c: Config) -> Decoder:
    """Keskar et al. 2019: sinusoidal positions, a bias at the head."""
    c.rename(**TODAY)
    d = c.size("n_embd", 1280)
    h = c.size("n_head", 16)
    attention = Attention(h, h, c.divides("n_embd", d, "n_head", h), bias="qkvo")
    mlp = Mlp(c.size("dff", 8192), gated=False, activation="relu", bias="ud")
    layer = pre_norm(attention, mlp, Norm("layernorm", "gain+bias", 1e-6))
    vocab = c.size("vocab_size", 246534)
    return Decoder(
        Embedding(vocab, d, scale=math.sqrt(d), sinusoid=Sines(halves=True)),
        (layer,) * depth(c, 48, "n_layer"),
        Head(vocab, d, c.flag("tie_word_embeddings", True), bias=True, norm=layernorm(c, default=1e-6)),
        trained=c.size("n_positions", 256),
    )
