"""Names of tensors in GGUF files for published ones, of models made as Llama is; experts of one layer lie together.

Names: https://github.com/ggml-org/llama.cpp/blob/master/gguf-py/gguf/constants.py.
"""

from __future__ import annotations

import re

_ENDS = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}
_LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.qkv_proj": "attn_qkv",
    "mlp.gate_up_proj": "ffn_up",
    "post_attention_layernorm": "ffn_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "block_sparse_moe.gate": "ffn_gate_inp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
    "experts.{e}.gate_proj": "ffn_gate_exps",
    "experts.{e}.up_proj": "ffn_up_exps",
    "experts.{e}.down_proj": "ffn_down_exps",
    "experts.{e}.w1": "ffn_gate_exps",
    "experts.{e}.w3": "ffn_up_exps",
    "experts.{e}.w2": "ffn_down_exps",
}


def spelling(sandwiched: bool) -> dict[str, str]:
    """The table; in a layer of four norms the one behind attention is no norm of the feed-forward layer's input."""
    return _LAYER | ({"post_attention_layernorm": "post_attention_norm"} if sandwiched else {})


def gguf_name(path: str, sandwiched: bool = False) -> str:
    """A published name as GGUF spells it; one that no table knows as it is."""
    plain = re.sub(r"^(model\.)?(language_model\.)?(model\.)?", "", path)
    stem, _, ending = plain.rpartition(".")
    if stem in _ENDS:
        return f"{_ENDS[stem]}.{ending}"
    found = re.fullmatch(
        r"layers\.(\{i\}|\d+)\.(?:mlp\.|block_sparse_moe\.)?(experts\..+)|layers\.(\{i\}|\d+)\.(.+)", stem
    )
    if found is None:
        return path
    layer, within = (found[1], found[2]) if found[1] else (found[3], found[4])
    known = spelling(sandwiched).get(within)
    return f"blk.{layer}.{known}.{ending}" if known else path
