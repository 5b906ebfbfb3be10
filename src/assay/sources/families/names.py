"""Where weights are stored, as far as many implementations agree: pieces of tables, below the path of a layer."""

from __future__ import annotations

from assay.sources.families.common import under

TABLES = {"E": "model.embed_tokens.weight", "Gf": "model.norm.weight", "Wout": "lm_head.weight"}
PROJECTIONS = {
    "Wq": "self_attn.q_proj.weight",
    "Wk": "self_attn.k_proj.weight",
    "Wv": "self_attn.v_proj.weight",
    "Wo": "self_attn.o_proj.weight",
}
# the norm before attention is that of the whole layer where attention and MLP stand side by side
NORMS = {"Ga": "input_layernorm.weight", "Gs0": "input_layernorm.weight", "Gm": "post_attention_layernorm.weight"}
HEAD_NORMS = {"Gqn": "self_attn.q_norm.weight", "Gkn": "self_attn.k_norm.weight"}
GATED = {"Wg": "mlp.gate_proj.weight", "Wu": "mlp.up_proj.weight", "Wd": "mlp.down_proj.weight"}


def llama(prefix: str = "model.") -> dict[str, str]:
    """Words, the last norm and the layers of a model built like Llama, below a prefix."""
    layer = {"Ga": "input_layernorm.weight", "Gm": "post_attention_layernorm.weight"}
    tables = {"E": f"{prefix}embed_tokens.weight", "Gf": f"{prefix}norm.weight"}
    return tables | under(prefix + "layers.{i}.", PROJECTIONS | HEAD_NORMS | GATED | layer)


def behind(path: str, biases: bool = False) -> dict[str, str]:
    """Queries, keys and values behind each other in the matrix `path`.weight, and in the vector `path`.bias."""
    axes = {"q": "g r k", "k": "g k", "v": "g v"}
    found = {f"W{letter}": f"{path}.weight[+({rows}) d]" for letter, rows in axes.items()}
    return found | ({f"B{letter}": f"{path}.bias[+({rows})]" for letter, rows in axes.items()} if biases else {})


def interleaved(path: str) -> dict[str, str]:
    """The same with the queries, the key and the value of each key/value head together."""
    axes = {"q": "g + r k", "k": "g + k", "v": "g + v"}
    found = {f"W{letter}": f"{path}.weight[({rows}) d]" for letter, rows in axes.items()}
    return found | {f"B{letter}": f"{path}.bias[({rows})]" for letter, rows in axes.items()}


def gate_and_up(path: str, biases: bool = False) -> dict[str, str]:
    """The gate and the up projection behind each other in the matrix `path`.weight, and in the vector `path`.bias."""
    found = dict.fromkeys(("Wg", "Wu"), f"{path}.weight[+f d]")
    return found | ({f"{weight}_bias": f"{path}.bias[+f]" for weight in ("Wg", "Wu")} if biases else {})
