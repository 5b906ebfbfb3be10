"""Dense decoders run: logits, work and greedy generation are the public implementation's, with every option turned."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from classic_configs import VARIED as CLASSIC
from execution.families import SMALL
from execution.twins import agree, ids, same_logits, theirs, torch, transformers
from moe_configs import SIZES
from moe_configs import VARIED as MOE
from sources.test_dense_families import OPTIONS, small
from sparse_configs import GEMMA4, GEMMA4_EXPERTS, GEMMA4_UNIFIED
from sparse_configs import VARIED as SPARSE

import assay
from assay.errors import BuildError
from assay.sources.huggingface import read_config

# options of execution that no size hangs on, and that the tables of sizes leave out
SIX = {"hidden_size": 48, "num_hidden_layers": 2, "vocab_size": 97}
MORE: dict[str, dict[str, Any]] = {
    "gemma4_text": {**GEMMA4, "vocab_size_per_layer_input": GEMMA4["vocab_size"]},
    "gemma4_text, experts": GEMMA4_EXPERTS,
    "gemma4_unified_text": GEMMA4_UNIFIED,
    "bloom, six heads": {"model_type": "bloom", **SIX, "n_head": 6},
    "mpt, six heads": {"model_type": "mpt", "d_model": 48, "n_heads": 6, "n_layers": 2, "vocab_size": 97},
    "falcon, six heads": {"model_type": "falcon", **SIX, "num_attention_heads": 6, "alibi": True},
    "gptj, whole": {"model_type": "gptj", "n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 97, "rotary_dim": 8},
    "glm, odd": {
        "model_type": "glm",
        **SIX,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 12,
        "partial_rotary_factor": 0.5,
        "intermediate_size": 40,
        "pad_token_id": 0,
    },
}


def rows() -> dict[str, dict[str, Any]]:
    """Small configs by name: those that hold counts to the public implementation, and more."""
    dense = {f"{kind}-{i}": small(kind, i) for kind, options in OPTIONS.items() for i in range(len(options))}
    others = {name: config for name, (config, _) in SPARSE.items() if config["model_type"] in ("trocr", "moshi")}
    gains = next(config for kind, config in MOE if kind == "doge")
    return dense | CLASSIC | others | {"doge": {"model_type": "doge", **SIZES, **gains}} | MORE


REFUSED = {  # what is not run, and what is said of it when it is to be built
    "cpmant": (CLASSIC["cpmant"], "a prompt whose tokens all see each other is not run yet"),
    "doge, experts": (
        {"model_type": "doge", **SIZES, **next(c for kind, c in MOE if kind == "doge" and c.get("is_moe"))},
        "picking rows of a tensor along any but its last axis",
    ),
}
UNLIKE = ("dbrx",)  # whose base of the rotation, in attn_config, the library does not read
ROWS = {name: config for name, config in rows().items() if name not in (*REFUSED, *UNLIKE)}


def greedy(own: Any, given: Any, new: int) -> Any:
    """`new` tokens behind those given, each the likeliest, with a cache."""
    cache, made, step = own.cache(), given, given
    for _ in range(new):
        step = own(step, cache=cache, logits="last").argmax(-1)[:, -1:]
        made = torch.cat((made, step), 1)
    return made


def theirs_greedy(their: Any, given: Any, new: int) -> Any:
    """The same by the library."""
    their.generation_config.eos_token_id = None
    their.generation_config.pad_token_id = 0
    return their.generate(given, max_new_tokens=new, do_sample=False)


@pytest.mark.parametrize("name", ROWS)
def test_equals_the_library(name: str) -> None:
    """Logits at once and step by step, as one kernel and op by op; FLOPs as counted; the same tokens generated."""
    config = ROWS[name]
    # eager code of the library adds Falcon's distances twice: once to the scores and once with the mask
    their, own = same_logits(dict(config), attention="sdpa" if config.get("alibi") else "eager")
    given = ids(their)
    with torch.no_grad():
        expected = their(given).logits
        plain = assay.build(read_config(dict(config), "config.json", "model"), attention="plain").eval()
        plain.load_state_dict(own.state_dict())
        agree(plain(given), expected)
        assert torch.equal(greedy(own, given[:, :6], 9), theirs_greedy(their, given[:, :6], 9))
    for module in (own, plain):
        counted = assay.count(own.description, batch=2, tokens=13).flops.total
        assert assay.measure(module, given).flops.forward == counted


def test_a_wrong_description_has_other_logits() -> None:
    """The comparison sees a constant: one scale of the scores less."""
    their, own = same_logits(dict(ROWS["gemma2-0"]))
    their.config.query_pre_attn_scalar = 10
    other = assay.build(assay.load(their.config)).eval()
    other.load_state_dict(own.state_dict())
    given = ids(their)
    with torch.no_grad(), pytest.raises(AssertionError, match="differ by"):
        agree(other(given), own(given))


KEYS: dict[str, Any] = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
PARTS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
LLAMA = KEYS | {"intermediate_size": 48, "max_position_embeddings": 16, "pad_token_id": 0, "rms_norm_eps": 1e-6}
FAR = {"num_key_value_heads": 2, "head_dim": 8, "eos_token_id": 2}

# a type hosted with its weights, and one of the library that computes the same: what is cut and renamed between them
HOSTED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "baichuan": (
        LLAMA | {"model_type": "baichuan"},
        LLAMA | {"model_type": "llama"},
        {"self_attn.W_pack": PARTS},
    ),
    "qwen": (
        KEYS | {"model_type": "qwen", "intermediate_size": 96, "kv_channels": 8, "no_bias": True, "seq_length": 16},
        LLAMA | {"model_type": "qwen2", "num_key_value_heads": 4},
        {
            "transformer.wte": "model.embed_tokens",
            "transformer.ln_f": "model.norm",
            "transformer.h.": "model.layers.",
            "attn.c_attn": PARTS,
            "ln_1": "input_layernorm",
            "ln_2": "post_attention_layernorm",
            "mlp.w2": "mlp.gate_proj",
            "mlp.w1": "mlp.up_proj",
            "attn.c_proj": "self_attn.o_proj",
            "mlp.c_proj": "mlp.down_proj",
        },
    ),
    "minicpm": (
        LLAMA | {"model_type": "minicpm", "scale_emb": 12, "dim_model_base": 8, "scale_depth": 1.4},
        LLAMA
        | {"model_type": "granite", "embedding_multiplier": 12.0, "attention_multiplier": 8**-0.5}
        | {"residual_multiplier": 1.4 / 2**0.5, "logits_scaling": 4.0, "tie_word_embeddings": True},
        {},
    ),
    "internlm2": (
        LLAMA | {"model_type": "internlm2", "num_key_value_heads": 2, "bias": True},
        LLAMA | {"model_type": "llama", "num_key_value_heads": 2, "attention_bias": True},
        {
            "model.tok_embeddings": "model.embed_tokens",
            "output": "lm_head",
            "attention_norm": "input_layernorm",
            "attention.wqkv": (2, *PARTS),
            "attention.wo": "self_attn.o_proj",
            "feed_forward.w1": "mlp.gate_proj",
            "ffn_norm": "post_attention_layernorm",
            "feed_forward.w3": "mlp.up_proj",
            "feed_forward.w2": "mlp.down_proj",
        },
    ),
    "chatglm": (
        {"model_type": "chatglm", "padded_vocab_size": 97, "hidden_size": 32, "num_layers": 2, "kv_channels": 8}
        | {"num_attention_heads": 4, "ffn_hidden_size": 48, "multi_query_attention": True, "multi_query_group_num": 2}
        | {"add_qkv_bias": True, "layernorm_epsilon": 1e-6, "seq_length": 64},
        LLAMA | FAR | {"model_type": "glm", "attention_bias": True},
        {
            "transformer.embedding.word_embeddings": "model.embed_tokens",
            "transformer.output_layer": "lm_head",
            "transformer.encoder.final_layernorm": "model.norm",
            "transformer.encoder.layers.": "model.layers.",
            "self_attention.query_key_value": PARTS,
            "self_attention.dense": "self_attn.o_proj",
            "mlp.dense_h_to_4h": "mlp.gate_up_proj",
            "mlp.dense_4h_to_h": "mlp.down_proj",
        },
    ),
}


def translated(name: str, renamed: dict[str, Any], state: dict[str, Any]) -> Any:
    """The library's weights that stand under a name of ours: those behind each other in one of ours, perhaps each
    group's part of them together.
    """
    groups, parts = 1, [""]
    for mine, library in renamed.items():
        if mine not in name:
            continue
        if isinstance(library, tuple):
            groups = library[0] if isinstance(library[0], int) else 1
            parts, name = [part for part in library if isinstance(part, str)], name.replace(mine, "*")
        else:
            name = name.replace(mine, library)
    cut = [state[name.replace("*", part)].unflatten(0, (groups, -1)) for part in parts]
    return torch.cat(cut, 1).flatten(0, 1)


@pytest.mark.parametrize("name", HOSTED)
def test_types_hosted_with_their_weights_equal_others_of_the_library(name: str) -> None:
    ours_config, theirs_config, renamed = HOSTED[name]
    their = theirs(dict(theirs_config))
    own = assay.build(read_config(ours_config, "config.json", name)).eval()
    state = {k: v for k, v in own.state_dict().items() if k.endswith("inv_freq")}  # stored, and computed again
    missing = own.state_dict().keys() - state.keys()
    own.load_state_dict({key: translated(key, renamed, their.state_dict()) for key in missing} | state)
    given = ids(their)
    with torch.no_grad():
        agree(own(given), their(given).logits)
        assert torch.equal(greedy(own, given[:, :5], 6), theirs_greedy(their, given[:, :5], 6))


def test_initial_gains_and_slopes() -> None:
    """Each tensor of a gain is one, of each head too; activations begin with the slopes of the library's."""
    stable = assay.build(read_config(ROWS["stablelm"], "config.json", "model"), seed=0)
    gains = {name: value for name, value in stable.state_dict().items() if "norm" in name and "weight" in name}
    assert any(".norms.3." in name for name in gains)
    assert all((value == 1).all() for value in gains.values())
    built = assay.build(read_config(ROWS["apertus-0"], "config.json", "model"), seed=0).state_dict()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**ROWS["apertus-0"]))
    slopes = {name: value for name, value in library.state_dict().items() if "act_fn" in name}
    assert len(slopes) == 4 * ROWS["apertus-0"]["num_hidden_layers"]
    for name, value in slopes.items():
        torch.testing.assert_close(built[name], value.float(), rtol=1e-2, atol=1e-7)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_run_is_refused_when_it_is_built(name: str) -> None:
    config, message = REFUSED[name]
    with pytest.raises(BuildError, match=rf"layer 0: .* = .*: {message}"):
        assay.build(read_config(dict(config), "config.json", "model"))


@pytest.mark.parametrize("jitter", [0.01, 0.3])
def test_scores_near_a_choice(jitter: float) -> None:
    """Phi-3.5-MoE: each of two experts by its share of the scores near it; the wider, the more of them count."""
    from assay.verification.small import prove

    config = {"model_type": "phimoe", **SMALL, "num_local_experts": 6, "router_jitter_noise": jitter}
    _, own = same_logits(config)
    proof = prove(own.description)
    assert [figure for figure in proof.figures if not figure.alike] == []
    assert (proof.differing, proof.without) == ((), ())
