"""Names and shapes of tensors in GGUF files for published ones, of the architectures whose metadata are read.

Experts of one layer lie together, as norms of single heads do; what multiplies is stored output by input throughout.
Names: https://github.com/ggml-org/llama.cpp/blob/master/gguf-py/gguf/constants.py.
"""

from __future__ import annotations

import re

from assay.records import dataclass
from assay.size import Size

Shape = tuple[Size, ...]
Way = list[tuple[str, Shape]]  # tensors that together hold a published one

_ENDS = {
    **dict.fromkeys(("embed_tokens", "wte", "embed_in"), "token_embd"),
    "wpe": "position_embd",
    **dict.fromkeys(("norm", "ln_f", "final_layer_norm"), "output_norm"),
    **dict.fromkeys(("lm_head", "embed_out"), "output"),
}
_LAYER = {
    **dict.fromkeys(("input_layernorm", "ln_1"), "attn_norm"),
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    **dict.fromkeys(("self_attn.o_proj", "attn.c_proj", "attention.dense"), "attn_output"),
    **dict.fromkeys(("self_attn.q_norm", "self_attn.q_layernorm"), "attn_q_norm"),
    **dict.fromkeys(("self_attn.k_norm", "self_attn.k_layernorm"), "attn_k_norm"),
    **dict.fromkeys(("self_attn.qkv_proj", "attn.c_attn", "attention.query_key_value"), "attn_qkv"),
    "self_attn.q_a_proj": "attn_q_a",
    "self_attn.q_a_layernorm": "attn_q_a_norm",
    "self_attn.q_b_proj": "attn_q_b",
    "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
    "self_attn.kv_a_layernorm": "attn_kv_a_norm",
    "self_attn.kv_b_proj": "attn_kv_b",
    "self_attn": "attn_sinks",  # whose name is no module's
    **dict.fromkeys(("post_attention_layernorm", "pre_feedforward_layernorm", "ln_2"), "ffn_norm"),
    "post_feedforward_layernorm": "post_ffw_norm",
    "mlp.gate_proj": "ffn_gate",
    **dict.fromkeys(("mlp.up_proj", "mlp.gate_up_proj", "mlp.c_fc", "mlp.dense_h_to_4h"), "ffn_up"),
    **dict.fromkeys(("mlp.down_proj", "mlp.c_proj", "mlp.dense_4h_to_h"), "ffn_down"),
    **dict.fromkeys(("mlp.gate", "mlp.router", "block_sparse_moe.gate"), "ffn_gate_inp"),
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    **{
        f"mlp.{held}.{part}_proj": f"ffn_{part}_shexp"
        for held in ("shared_expert", "shared_experts")
        for part in ("gate", "up", "down")
    },
    **{f"experts.{part}_proj": f"ffn_{part}_exps" for part in ("gate", "up", "down")},
    **dict(
        zip(("experts.w1", "experts.w3", "experts.w2"), ("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"), strict=True)
    ),
}
_WRAPS = re.compile(r"^(model\.)?(language_model\.)?(model\.)?(transformer\.|gpt_neox\.)?")
_PLACE = re.compile(r"(?:layers|h)\.(\{i\}|\d+)\.(?:(?:mlp|block_sparse_moe)\.(?=experts\.))?(.+)")
_EACH = re.compile(r"(\.norms)?\.\{(?!i\})[^{}]+\}")  # an expert, a head: all of them are one tensor
_TURNED = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")  # GPT-2's, input first


@dataclass(frozen=True)
class Speller:
    """How a GGUF file spells published tensors, by its architecture and by what its metadata say of heads.

    `four_norms` where the norm behind attention is none of the feed-forward layer's input; `latent` the heads, and the
    widths of keys without positions and of values, where the matrix that makes both may lie in two.
    """

    architecture: str = ""
    four_norms: bool = False
    latent: tuple[int, int, int] | None = None

    def __call__(self, path: str, shape: Shape) -> list[Way]:
        """The ways in which such a file may hold a published tensor; one that no table knows as it is."""
        name = self.name(_EACH.sub("", path))
        if name is None:
            return [[(path, shape)]]
        if self.architecture == "gpt2" and path.endswith(_TURNED):
            shape = shape[::-1]
        if ".experts.gate_up_proj" in path:
            return [self._halves(name, shape)]
        if ".experts.down_proj" in path and not _EACH.search(path):
            return [[(name, shape if name.endswith(".bias") else (shape[0], *shape[:0:-1]))]]
        whole = [(name, shape)]
        if self.latent is not None and name.endswith(".attn_kv_b.weight"):
            heads, keys, values = self.latent
            stem = name.removesuffix("kv_b.weight")
            made = [(f"{stem}k_b.weight", (heads, shape[1], keys)), (f"{stem}v_b.weight", (heads, values, shape[1]))]
            return [whole, made]
        return [whole]

    def name(self, path: str) -> str | None:
        """A published name, without what numbers its experts or heads, as GGUF has it; None for one of no table."""
        plain = _WRAPS.sub("", path)
        stem, _, ending = plain.rpartition(".")
        if stem in _ENDS:
            return f"{_ENDS[stem]}.{ending}"
        found = _PLACE.fullmatch(plain)
        if found is None:
            return None
        layer, within = found[1], found[2]
        if within.endswith("e_score_correction_bias"):
            return f"blk.{layer}.exp_probs_b.bias"
        stem, _, ending = within.rpartition(".")
        if stem == "experts":  # no module: the matrices and biases of all experts
            stem, ending = within.removesuffix("_bias"), "bias" if within.endswith("_bias") else "weight"
            return f"blk.{layer}.{_LAYER.get(stem, 'ffn_gate_exps')}.{ending}"
        if ending == "sinks":
            ending = "weight"
        known = _LAYER.get(stem)
        if self.four_norms and stem == "post_attention_layernorm":
            known = "post_attention_norm"
        return f"blk.{layer}.{known}.{ending}" if known else None

    @staticmethod
    def _halves(name: str, shape: Shape) -> Way:
        """Gates and the other halves of all experts, which one tensor holds in turn; matrices there input first."""
        half = shape[-1] // 2
        own = (shape[0], half) if name.endswith(".bias") else (shape[0], half, shape[1])
        return [(name, own), (name.replace("ffn_gate_exps", "ffn_up_exps"), own)]
