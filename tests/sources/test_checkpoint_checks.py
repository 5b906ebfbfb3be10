"""Weight files against a config: what is missing, unexpected, of another shape; what the library itself saves."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from commandline import run
from headers import LLAMA, elements, llama_tensors, safetensors, shapes

from assay import load
from assay.errors import SettingError
from assay.readings.check import check
from assay.sources.checkpoints import read_checkpoint
from assay.sources.huggingface import read_config


def test_a_checkpoint_that_agrees(tmp_path: Path) -> None:
    model = read_config(LLAMA, "config", "model")
    for prefix in ("model.", "", "language_model.model.", "module.model."):
        held = {name: shape for name, (_, shape, _) in llama_tensors(prefix).items()}
        assert (check(model, held).agree, check(model, held).differences) == (21, ()), prefix


def test_every_sort_of_difference() -> None:
    model = read_config(LLAMA, "config", "model")
    held = {name: shape for name, (_, shape, _) in llama_tensors().items()}
    del held["model.layers.1.mlp.up_proj.weight"]
    held["model.layers.0.self_attn.q_proj.weight"] = (32, 31)
    held |= {"model.layers.0.self_attn.q_proj.bias": (32,), "model.layers.0.self_attn.rotary_emb.inv_freq": (4,)}
    held |= {"model.layers.2.eh_proj.weight": (32, 64), "model.layers.2.mlp.up_proj.weight": (96, 32)}
    found = check(model, held)
    assert [(d.what, d.name, d.expected, d.held) for d in found.differences] == [
        ("shape", "model.layers.0.self_attn.q_proj.weight", (32, 32), (32, 31)),
        ("missing", "model.layers.1.mlp.up_proj.weight", (96, 32), None),
        ("unexpected", "model.layers.0.self_attn.q_proj.bias", None, (32,)),
    ]
    # a factor of rotation is made anew, and what stands under eh_proj's layer predicts a further token
    assert (found.agree, found.recomputed, found.further) == (19, 1, 2)


def test_a_mask_is_made_anew_and_a_bias_is_not() -> None:
    model = read_config(LLAMA, "config", "model")
    held = {name: shape for name, (_, shape, _) in llama_tensors().items()}
    masks = {"h.0.attn.bias": (1, 1, 8, 8), "h.0.attn.masked_bias": ()}
    assert check(model, {**held, **masks}).recomputed == 2
    assert check(model, {**held, **masks}).differences == ()
    assert [d.name for d in check(model, {**held, "h.0.attn.bias": (32,)}).differences] == ["h.0.attn.bias"]


def test_a_tied_head_may_be_stored_or_not() -> None:
    model = read_config({**LLAMA, "tie_word_embeddings": True}, "config", "model")
    held = {name: shape for name, (_, shape, _) in llama_tensors().items()}
    assert check(model, held).differences == ()
    del held["lm_head.weight"]
    assert check(model, held).differences == ()
    assert [d.name for d in check(model, {**held, "lm_head.weight": (9, 32)}).differences] == ["lm_head.weight"]
    untied = check(read_config(LLAMA, "config", "model"), held)
    assert [(d.what, d.name) for d in untied.differences] == [("missing", "lm_head.weight")]


def test_names_alone_are_compared_by_name() -> None:
    model = read_config(LLAMA, "config", "model")
    held: dict[str, Any] = dict.fromkeys(llama_tensors())
    assert check(model, held).differences == ()
    del held["model.norm.weight"]
    assert [d.what for d in check(model, held).differences] == ["missing"]


FP8 = {"quant_method": "fp8", "weight_block_size": [16, 32]}


def test_a_quantized_checkpoint_is_compared_tensor_by_tensor() -> None:
    model = read_config({**LLAMA, "quantization_config": FP8}, "config", "model")
    held: dict[str, Any] = {}
    for name, (_, shape, _) in llama_tensors().items():
        held[name] = shape
        if "proj" in name:
            held[f"{name}_scale_inv"] = (shape[0] // 16, shape[1] // 32)
    assert check(model, held).differences == ()
    del held["model.layers.1.mlp.up_proj.weight_scale_inv"]
    assert [d.name for d in check(model, held).differences] == ["model.layers.1.mlp.up_proj.weight_scale_inv"]


def test_a_format_that_is_not_known_cannot_be_checked() -> None:
    model = read_config({**LLAMA, "quantization_config": {"quant_method": "hqq"}}, "config", "model")
    with pytest.raises(SettingError, match="model cannot be checked: its weights' format is not known"):
        check(model, {})


MOE = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_experts_per_tok": 2,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
SAVED: dict[str, dict[str, Any]] = {
    "llama": {k: v for k, v in MOE.items() if k != "num_experts_per_tok"},
    "qwen3_moe": {**MOE, "num_experts": 4, "moe_intermediate_size": 24, "head_dim": 8},
    "mixtral": {**MOE, "num_local_experts": 4},
    "phimoe": {**MOE, "num_local_experts": 4},
    "minimax_m2": {**MOE, "num_local_experts": 4, "head_dim": 8},
    "gpt_oss": {**MOE, "num_local_experts": 4, "head_dim": 8},
    "granitemoe": {**MOE, "num_local_experts": 4},
    "hy_v3": {**MOE, "num_experts": 4, "moe_intermediate_size": 24, "head_dim": 8},
    "deepseek_v3": {
        **MOE, "n_routed_experts": 4, "n_group": 2, "topk_group": 1, "kv_lora_rank": 16, "q_lora_rank": 24,
        "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16, "first_k_dense_replace": 1,
        "moe_intermediate_size": 24, "num_key_value_heads": 4,
    },
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 64, "n_positions": 16},
    "vit": {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
            "image_size": 8, "patch_size": 4},
    "gpt_neox": {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
                 "num_attention_heads": 4},
}  # fmt: skip


@pytest.mark.parametrize("model_type", SAVED)
def test_what_the_library_saves_is_what_the_config_implies(tmp_path: Path, model_type: str) -> None:
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = transformers.AutoConfig.for_model(model_type, **SAVED[model_type])
        made = getattr(transformers, "AutoModel" if model_type == "vit" else "AutoModelForCausalLM").from_config(config)
        made.save_pretrained(tmp_path)
    held = read_checkpoint(str(tmp_path))
    names = shapes(held)
    model = load(str(tmp_path))
    found = check(model, names)
    assert found.differences == ()
    assert found.agree == len(names)
    # the library's own names, where it packs what files hold one by one
    buffers = [(name, buffer) for name, buffer in made.named_buffers() if "e_score_correction" in name]
    packed = {name: tuple(tensor.shape) for name, tensor in [*made.named_parameters(), *buffers]}
    assert check(model, packed).differences == ()
    largest = max(names, key=lambda name: elements(names[name] or ()))
    cut = {name: shape for name, shape in names.items() if name != largest}
    assert [(d.what, d.name) for d in check(model, cut).differences] == [("missing", largest)]


def test_the_command_checks_a_checkpoint(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(LLAMA))
    path = str(safetensors(tmp_path / "m.safetensors", llama_tensors()))
    code, out, err = run(capsys, str(config), "--check", path)
    assert (code, err) == (0, "")
    assert "21 tensors agree · no difference" in out
    config.write_text(json.dumps({**LLAMA, "num_hidden_layers": 3}))
    code, out, err = run(capsys, str(config), "--check", path)
    assert (code, err) == (1, "")
    assert "  missing      model.layers.2.mlp.up_proj.weight  96×32" in out
    code, out, _ = run(capsys, str(config), "--check", path, "--json")
    found = json.loads(out)["check"]
    assert code == 1
    assert len(found["differences"]) == 9
    assert {one["what"] for one in found["differences"]} == {"missing"}
    code, out, err = run(capsys, str(config), "--check", str(tmp_path / "nothing.gguf"))
    assert (code, out) == (2, "")
    assert "nothing.gguf: cannot be read" in err
