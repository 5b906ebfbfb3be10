"""Encoder-decoders of random sizes against the public implementation, twenty of each family."""

from __future__ import annotations

from typing import Any

import pytest
from encdec import bart, long, paired, prophetnet, seamless, t5, t5gemma, whisper
from library import check_against_library, needs_library

pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = [
    pytest.mark.slow,
    needs_library,
]

COUNTED = ("bart", "mbart", "plbart", "mvp", "pegasus", "marian", "blenderbot", "blenderbot-small", "m2m_100", "fsmt")
PADDED = ("led", "bigbird_pegasus", "pegasus_x", "nllb-moe")
T5S = ("t5", "mt5", "umt5", "longt5", "switch_transformers")
OTHERS = ("whisper", "prophetnet", "t5gemma", "encoder-decoder", "seamless_m4t", "seamless_m4t_v2")

SMALL = st.integers(1, 3)
INNER = st.integers(1, 70)


@st.composite
def barts(draw: st.DrawFn, model_type: str) -> dict[str, Any]:
    """Sizes of both halves, scales and what one family alone has."""
    heads, other = draw(st.sampled_from([(1, 2), (2, 4), (3, 1)]))
    said: dict[str, Any] = {
        "d_model": 12 * draw(st.integers(1, 4)),
        "vocab_size": draw(st.integers(60, 120)),
        "encoder_layers": draw(SMALL),
        "decoder_layers": draw(SMALL),
        "encoder_attention_heads": heads,
        "decoder_attention_heads": other,
        "encoder_ffn_dim": draw(INNER),
        "decoder_ffn_dim": draw(INNER),
        "scale_embedding": draw(st.booleans()),
        "activation_function": draw(st.sampled_from(["gelu", "relu", "silu", "gelu_new"])),
        "tie_word_embeddings": draw(st.booleans()),
    }
    if model_type == "led":
        said |= {"attention_window": 2 * draw(SMALL), "max_encoder_position_embeddings": draw(st.integers(20, 40))}
        del said["scale_embedding"]
    if model_type == "bigbird_pegasus":
        said |= {"use_bias": draw(st.booleans()), "block_size": draw(SMALL), "max_position_embeddings": 30}
    if model_type == "pegasus_x":
        said |= {"block_size": 2 * draw(SMALL), "num_global_tokens": draw(SMALL)}
    if model_type == "nllb-moe":
        said |= {"num_experts": draw(st.integers(2, 4)), "router_bias": draw(st.booleans())}
        said |= {f"{side}_sparse_step": draw(st.integers(0, 3)) for side in ("encoder", "decoder")}
    if model_type == "marian" and draw(st.booleans()):
        said |= {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": draw(st.integers(60, 120))}
    if model_type == "fsmt":
        said |= {"src_vocab_size": draw(st.integers(60, 120)), "tie_word_embeddings": False}
    return (long if model_type in PADDED else bart)(model_type, **said)


@st.composite
def t5s(draw: st.DrawFn, model_type: str) -> dict[str, Any]:
    """Heads of any width, an MLP with a gate or without."""
    said: dict[str, Any] = {
        "d_model": draw(st.integers(4, 40)),
        "d_kv": draw(st.integers(1, 12)),
        "num_heads": draw(st.integers(1, 5)),
        "d_ff": draw(INNER),
        "num_layers": draw(SMALL),
        "num_decoder_layers": draw(SMALL),
        "vocab_size": draw(st.integers(20, 120)),
        "relative_attention_num_buckets": 2 * draw(st.integers(2, 9)),
    }
    if model_type == "switch_transformers":
        said |= {"num_experts": draw(SMALL), "router_bias": draw(st.booleans())}
        said |= {"num_sparse_encoder_layers": draw(st.integers(0, said["num_layers"]))}
        said |= {"num_sparse_decoder_layers": draw(st.integers(0, said["num_decoder_layers"]))}
        return t5(model_type, **said)
    said |= {"feed_forward_proj": draw(st.sampled_from(["relu", "gelu", "gated-gelu", "gated-silu"]))}
    if model_type == "longt5":
        said |= {"local_radius": draw(st.integers(1, 9)), "global_block_size": draw(SMALL)}
        said |= {"encoder_attention_type": draw(st.sampled_from(["local", "transient-global"]))}
    return t5(model_type, **said)


@st.composite
def others(draw: st.DrawFn, model_type: str) -> dict[str, Any]:
    """The families that name their sizes in words of their own."""
    if model_type == "whisper":
        said = {"num_mel_bins": draw(INNER), "max_source_positions": draw(st.integers(2, 20))}
        return whisper(**said, encoder_layers=draw(SMALL), decoder_ffn_dim=draw(INNER))
    if model_type == "prophetnet":
        said = {"ngram": draw(SMALL), "num_buckets": 2 * draw(st.integers(2, 9)), "encoder_ffn_dim": draw(INNER)}
        return prophetnet(**said, num_decoder_layers=draw(SMALL), tie_word_embeddings=draw(st.booleans()))
    if model_type == "t5gemma":
        return t5gemma(4 * draw(st.integers(2, 12)), tie_word_embeddings=draw(st.booleans()))
    if model_type == "encoder-decoder":
        # the others' decoders call the tied table by the head's name
        encoder = draw(st.sampled_from(["bert", "roberta", "xlm-roberta", "camembert"]))
        decoder = draw(st.sampled_from(["bert", "roberta"]))
        return paired(encoder, decoder, num_hidden_layers=draw(SMALL), intermediate_size=draw(INNER))
    kernel = draw(st.integers(1, 3))
    said = {"speech_encoder_intermediate_size": draw(INNER), "decoder_ffn_dim": draw(INNER)}
    said |= {"conv_depthwise_kernel_size": 2 * kernel - 1, "adaptor_kernel_size": kernel + 1, "adaptor_stride": kernel}
    return seamless(model_type, **said, speech_encoder_layers=draw(SMALL), decoder_layers=draw(SMALL))


EACH = settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def drawn(model_type: str) -> st.SearchStrategy[dict[str, Any]]:
    """Small configs of a family."""
    if model_type in OTHERS:
        return others(model_type)
    return t5s(model_type) if model_type in T5S else barts(model_type)


@pytest.mark.parametrize("model_type", [*COUNTED, *PADDED, *T5S, *OTHERS])
def test_drawn_models_are_the_librarys(model_type: str) -> None:
    speaks = model_type in ("whisper", "seamless_m4t", "seamless_m4t_v2")
    auto = "AutoModelForSpeechSeq2Seq" if speaks else "AutoModelForSeq2SeqLM"
    tokens = 0 if model_type in (*PADDED, "longt5") else 5

    @EACH
    @given(config=drawn(model_type), source=st.integers(2, 16))
    def check(config: dict[str, Any], source: int) -> None:
        if model_type == "whisper":
            source = 2 * config["max_source_positions"]
        check_against_library(config, tokens=tokens, source=source, auto=auto)

    check()
