"""The command as a person and as a program meet it: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from commandline import CONFIG, LAYER, TOTAL, document, page, run, written


@pytest.fixture
def config(tmp_path: Path) -> str:
    return written(tmp_path)


def test_report_has_the_figures_people_came_for(capsys: pytest.CaptureFixture[str], config: str) -> None:
    out = page(capsys, config, "--tokens", "10")
    flops = 10 * 2 * (3 * (LAYER - 2 * 64) + 100 * 64) + 3 * 4 * 10 * 10 * 64
    top = out.split("\n\n")[1]
    assert f"{TOTAL:,}" in top
    assert f"{flops:,}" in top
    assert f"{flops // 10:,}" in top
    assert f"{2 * TOTAL:,} B" in top
    assert f"{2 * 3 * 2 * 32 * 10:,} B" in top  # K and V of 3 layers, 32 wide, 10 positions, 2 bytes
    assert f"{2 * 3 * 2 * 32:,} B" in top


def test_every_printed_byte_figure_says_its_unit(capsys: pytest.CaptureFixture[str]) -> None:
    top = page(capsys, "llama-3-8b").split("\n\n")[1]
    weights = next(line for line in top.splitlines() if line.strip().startswith("weights"))
    assert "16.06 GB" in weights
    assert "16,060,522,496 B" in weights
    assert "14.96 GiB" in weights


@pytest.mark.parametrize(
    ("words", "formats", "states"),
    [
        (("whisper-tiny",), "in bf16, at", ""),  # the fixed part is keys and values of the source
        (("t5-small", "--state", "fp16"), "in bf16, at", ""),
        (("jamba-v0.1",), "in bf16 and fp32, at", "; states in fp32"),
        (("mamba-2.8b", "--state", "bf16"), "in bf16, at", ""),
    ],
)
def test_what_is_kept_is_said_in_the_formats_that_are_there(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], formats: str, states: str
) -> None:
    lines = [" ".join(line.split()) for line in page(capsys, *words).split("\n\n")[1].splitlines()]
    top = " ".join(lines)
    assert formats in top
    assert f"whatever the context{states}" in top
    assert ("states in" in top) == bool(states)


def test_integers_understood_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    out = page(capsys, "llama-3-8b", "--tokens", "1k", "--context", "128Ki", "--batch", "1.5k")
    assert "batch 1,500 · tokens 1,000 · past 130,072 · context 131,072" in out


def test_dense_far_from_visible_puts_the_visible_first(capsys: pytest.CaptureFixture[str]) -> None:
    near = page(capsys, "llama-3-8b", "--tokens", "2048").split("\n\n")[1]
    far = page(capsys, "llama-3-8b", "--tokens", "64Ki").split("\n\n")[1]
    assert near.index("FLOPs in all") < near.index("visible in all")
    assert far.index("visible in all") < far.index("FLOPs in all")
    assert "visible" not in page(capsys, "llama-3-8b", "--tokens", "64Ki", "--convention", "causal").split("\n\n")[1]


def test_each_block_that_differs_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    out = page(capsys, "gemma-2-9b")
    assert "0, 2, … 40     21" in out
    assert "1, 3, … 41     21" in out


def test_json_keeps_its_contract(capsys: pytest.CaptureFixture[str], config: str) -> None:
    made = document(capsys, config, "--batch", "2", "--tokens", "3", "--past", "4", "--logits", "last")
    assert made["model"] | {"source": "", "name": ""} == {
        "name": "",
        "family": "llama",
        "class": "LlamaForCausalLM",
        "source": "",
        "layers": 3,
        "width": 64,
        "ignored_keys": made["model"]["ignored_keys"],
        "allowed_keys": [],
    }
    assert "bos_token_id" in made["model"]["ignored_keys"]
    assert made["setting"] == {
        "batch": 2,
        "tokens": 3,
        "past": 4,
        "context": 7,
        "source": None,
        "images": 0,
        "image_tokens": None,
        "sounds": 0,
        "logits": "last",
        "latent": "expanded",
        "convention": "matmul",
        "weights": "fp16",
        "cache": "fp16",
        "state": "fp32",
    }
    parameters, flops = made["parameters"], made["flops"]
    assert parameters["total"] == parameters["active"] == TOTAL
    assert parameters["embedding"] == 6400
    assert parameters["non_embedding"] == TOTAL - 12800
    assert list(parameters["by_part"]) == ["embedding", "attention", "mlp", "norm", "head"]
    assert sum(parameters["by_part"].values()) == TOTAL
    assert list(flops["by_part"]) == ["embedding", "attention", "mlp", "norm", "head"]
    assert flops["by_part"]["norm"] == flops["by_part"]["embedding"] == 0
    assert flops["by_part"]["head"] == 2 * 2 * 64 * 100  # of two sequences, the last position each
    assert sum(flops["by_part"].values()) == flops["total"]
    assert flops["attention_scores"] == 3 * 4 * 2 * 3 * 7 * 64
    assert flops["per_token"] * 6 == pytest.approx(flops["total"], rel=1e-15)
    assert made["cache"] == {"bytes": 2 * 7 * 384, "marginal_bytes_per_token": 384, "fixed_bytes": 0}
    assert made["weights"] == {"bytes": 2 * TOTAL, "format": "fp16"}
    assert sum(block["parameters"] for block in made["blocks"]) == TOTAL


def test_json_is_exact_at_any_size(capsys: pytest.CaptureFixture[str], config: str) -> None:
    huge = document(capsys, config, "--batch", str(10**25), "--tokens", "1")
    assert huge["flops"]["total"] == 10**25 * document(capsys, config, "--tokens", "1")["flops"]["total"]
    assert isinstance(huge["flops"]["total"], int)
    assert isinstance(huge["cache"]["bytes"], int)


def test_active_parameters_by_each_published_convention(capsys: pytest.CaptureFixture[str], config: str) -> None:
    untied = document(capsys, config)["parameters"]
    assert untied["active_without_input_embedding"] == TOTAL - 6400
    assert untied["active_without_embedding_and_head"] == TOTAL - 12800
    tied = document(capsys, "gpt-2")[
        "parameters"
    ]  # the head multiplies by the table: only positions are looked up alone
    assert tied["total"] - tied["active_without_input_embedding"] == 1024 * 768


def test_deepseek_v3_is_37_or_38_billion_active(capsys: pytest.CaptureFixture[str]) -> None:
    """37B of the model card leaves out the input table."""
    made = document(capsys, "deepseek-v3")["parameters"]
    assert made["active"] == 37_552_282_624
    assert made["active_without_input_embedding"] == 36_625_603_584


def test_published_formulas_stand_beside_ours(capsys: pytest.CaptureFixture[str]) -> None:
    made = {row["name"]: row for row in document(capsys, "gpt-3-175b")["published"]}
    ours = document(capsys, "gpt-3-175b")["flops"]["per_token"]
    assert set(made) == {"2N", "Kaplan", "Chinchilla", "6ND", "PaLM", "Megatron"}
    for row in made.values():
        assert row["ratio"] == pytest.approx(row["flops_per_token"] / (ours * (3 if row["work"] == "training" else 1)))
    d, layers, c, v = 12288, 96, 2048, 50257
    assert made["Megatron"]["flops_per_token"] == 72 * layers * d**2 + 12 * layers * c * d + 6 * v * d
    assert made["Megatron"]["ratio"] == pytest.approx(1, abs=1e-9)  # its formula leaves nothing out of a GPT-3 forward
    assert made["Chinchilla"]["flops_per_token"] == 4 * v * d + layers * (24 * d**2 + 4 * c * d + 3 * 96 * c)


def test_generate_is_a_prefill_and_steps(capsys: pytest.CaptureFixture[str], config: str) -> None:
    made = document(capsys, config, "--tokens", "5", "--generate", "3")["generate"]

    def flops(*words: str) -> int:
        total = document(capsys, config, *words)["flops"]["total"]
        assert isinstance(total, int)
        return total

    steps = [flops("--tokens", "1", "--past", str(5 + i)) for i in range(3)]
    again = [flops("--tokens", str(6 + i)) for i in range(3)]
    assert made["prefill"]["total"] == flops("--tokens", "5")
    assert made["steps"]["total"] == sum(steps)
    assert made["flops"] == flops("--tokens", "5") + sum(steps)
    assert made["without_cache"]["flops"] == flops("--tokens", "5") + sum(again)
    assert made["cache_bytes"] == 8 * 384
    out = page(capsys, config, "--tokens", "5", "--generate", "1M")
    assert "Generate 1,000,000 tokens after 5" in out


def test_ops_agree_with_the_report(capsys: pytest.CaptureFixture[str], config: str) -> None:
    report = document(capsys, config, "--tokens", "7")
    made = document(capsys, "ops", config, "--tokens", "7")
    assert [block["name"] for block in made["blocks"]] == ["embedding", "layer", "head"]
    assert (
        sum(block["times"] * op["flops"] for block in made["blocks"] for op in block["ops"])
        == (report["flops"]["total"])
    )
    assert sum(block["times"] * op["parameters"] for block in made["blocks"] for op in block["ops"]) == TOTAL
    out = page(capsys, "ops", config, "--tokens", "7")
    assert "q = linear(xa[b n d], Wq[d g r k]) -> [b n g r k]" in out
    assert "xa 1×7×64, Wq 64×2×2×16 → 1×7×2×2×16" in out
    assert f"{TOTAL:,} parameters · {report['flops']['total']:,} FLOP" in out


def test_attention_alone_as_the_articles_cost_it(capsys: pytest.CaptureFixture[str]) -> None:
    made = document(capsys, "ops", "attention", "--tokens", "5", "--qk-width", "3", "--v-width", "3")
    assert made["flops"] == {"matmul": 300, "scalar": 380, "stable-softmax": 425}
    assert [op["flops"]["scalar"] for op in made["ops"]] == [125, 25, 25, 70, 135]
    assert made["formula"]["matmul"] == "2n²(d_k + d_v)"
    assert made["formula"]["scalar"] == "2n²(d_k + d_v) + 4n² - n(d_v + 1)"
    assert made["formula_of_equal_widths"]["matmul"] == "4n²d"
    assert made["formula_of_equal_widths"]["scalar"] == "4n²d + 4n² - n(d + 1)"
    letters = document(capsys, "ops", "attention", "--tokens", "n", "--qk-width", "64", "--v-width", "64")
    assert letters["flops"]["matmul"] == "256n²"
    assert letters["flops"]["scalar"] == "260n² - 65n"
    heads = document(
        capsys, "ops", "attention", "--tokens", "n", "--heads", "12", "--qk-width", "64", "--v-width", "64"
    )
    assert heads["flops"]["matmul"] == "3072n²"
    out = page(capsys, "ops", "attention", "--tokens", "n", "--qk-width", "64", "--v-width", "64")
    assert "4n²d\n" in out
    page(capsys, "ops", "attention")


def test_attention_alone_without_sympy(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sympy", None)
    made = document(capsys, "ops", "attention", "--tokens", "5", "--qk-width", "3", "--v-width", "3")
    assert made["flops"]["scalar"] == 380
    assert made["formula"] == {"matmul": None, "scalar": None, "stable-softmax": None}
    out = page(capsys, "ops", "attention", "--tokens", "5", "--qk-width", "3", "--v-width", "3")
    assert "pip install sympy" in out
    code, out, err = run(capsys, "ops", "attention", "--tokens", "n", "--qk-width", "3", "--v-width", "3")
    assert (code, out) == (2, "")
    assert err == "assay: sizes that are letters or not given are symbols: SymPy is not installed; pip install sympy\n"


def test_tensors_are_the_ledger(capsys: pytest.CaptureFixture[str], config: str) -> None:
    made = document(capsys, "tensors", config)
    assert made["total"] == made["parameters"] == TOTAL
    rows = {row["path"]: row for row in made["tensors"]}
    query = rows["model.layers.{i}.self_attn.q_proj.weight"]
    assert (query["shape"], query["times"], query["elements"]) == ([64, 64], 3, 3 * 64 * 64)
    assert (query["count"], query["part"], query["layers"]) == (64 * 64, "attention", "0–2")
    out = page(capsys, "tensors", config)
    assert "model.layers.{i}.self_attn.k_proj.weight" in out
    assert f"{TOTAL:,}" in out


def test_models_are_listed_with_their_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    made = {row["preset"]: row for row in document(capsys, "models")["models"]}
    assert len(made) >= 40
    assert made["llama-3-8b"]["parameters"] == {"total": 8_030_261_248, "active": 8_030_261_248}
    assert made["llama-3-8b"]["marginal_cache_bytes_per_token"] == 131_072
    assert all(row["source"] for row in made.values())
    out = page(capsys, "models")
    assert "8.030 B" in next(line for line in out.splitlines() if line.startswith("llama-3-8b "))


def test_models_are_listed_by_kind(capsys: pytest.CaptureFixture[str]) -> None:
    lines = page(capsys, "models").splitlines()
    titles = [line for line in lines if " " * 2 not in line and line and "preset" not in line]
    assert titles == [
        "decoders",
        "decoders with recurrent layers",
        "encoders",
        "encoder-decoders",
        "models of images",
    ]
    places = {line.split()[0]: at for at, line in enumerate(lines) if line}
    order = ["llama-3-8b", "mamba-2.8b", "bert-base", "t5-small", "vit-b-16"]
    assert sorted(order, key=places.__getitem__) == order


@pytest.mark.parametrize(
    ("words", "some", "none"),
    [
        (["qwen3"], {"qwen3-8b", "qwen3-next-80b-a3b"}, {"qwen2-7b", "llama-3-8b"}),
        (["encoder"], {"bert-base", "modernbert-large"}, {"t5-small", "gpt-2"}),
        (["Mistral", "7B"], {"mistral-7b"}, {"mistral-nemo-12b", "llama-7b"}),
        (["encoder-decoder", "whisper"], {"whisper-tiny"}, {"t5-small"}),
        (["bert", "base"], {"bert-base", "roberta-base"}, {"bert-large"}),
    ],
)
def test_words_choose_presets(
    capsys: pytest.CaptureFixture[str], words: list[str], some: set[str], none: set[str]
) -> None:
    made = {row["preset"] for row in document(capsys, "models", *words)["models"]}
    assert some <= made
    assert not none & made


def test_conventions_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["llama-3-8b"], [], ["ops"]):
        out = page(capsys, *words, "--convention", "list")
        assert all(name in out for name in ("matmul", "causal", "scalar", "stable-softmax"))


def test_tokens_are_cut_to_a_position_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, "gpt-2")["setting"]["tokens"] == 1024


def test_notes_say_what_a_reader_has_to_know(capsys: pytest.CaptureFixture[str], config: str) -> None:
    notes = document(capsys, config, "--context", "600")["notes"]
    assert "context 600 is beyond the 512 positions that the model claims" in notes
    assert any(note.startswith("config keys that change no figure: ") and "bos_token_id" in note for note in notes)
    assert not any("dtype" in note for note in notes)
    said = document(capsys, "llama-3-8b")["notes"]
    assert any("no dtype is named, so weights are counted in bf16" in note for note in said)


def test_quantized_weights_are_never_two_bytes_in_silence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**CONFIG, "quantization_config": {"quant_method": "hqq"}}))
    out = page(capsys, str(path))
    weights = next(line for line in out.splitlines() if line.strip().startswith("weights"))
    assert "unknown" in weights
    assert "exact" not in weights
    assert "the config quantizes weights in a format that is not known: quant_method is 'hqq'" in out
    assert document(capsys, str(path))["weights"]["bytes"] is None
    chosen = page(capsys, str(path), "--weights", "fp8")
    assert "unknown" not in chosen
    assert f"{TOTAL:,} B" in chosen


def test_latent_attention_with_a_past_prints_the_other_form_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("deepseek-v3", "--tokens", "1", "--past", "4095")
    absorbed = document(capsys, *words, "--latent", "absorbed")["flops"]["total"]
    expanded = document(capsys, *words)["flops"]["total"]
    assert absorbed < expanded
    assert f"{absorbed:,}  exact  latent attention absorbed" in page(capsys, *words)
    assert f"{expanded:,}  exact  latent attention expanded" in page(capsys, *words, "--latent", "absorbed")
    assert "latent" not in page(capsys, "deepseek-v3").split("\n\n")[1]
    assert "latent" not in page(capsys, "llama-3-8b", "--latent", "absorbed")  # which has none
