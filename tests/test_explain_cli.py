"""`assay explain`, `assay crossovers` and `assay regimes` as a person and as a program meet them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import answer, document

import assay
from assay.cli import main
from assay.report.legend import origin

sympy = pytest.importorskip("sympy")

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}
# plain, windows, latent with experts, encoder and decoder, recurrent, hybrid, frames, sparse
SHAPES = "gpt-2 gemma-2-9b deepseek-v3 t5-small mamba-2-130m qwen3-next-80b-a3b whisper-tiny modernbert-base".split()


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    code = main(words)
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("preset", SHAPES)
def test_every_shape_fits_a_terminal(capsys: pytest.CaptureFixture[str], preset: str) -> None:
    for words in (
        ["explain", preset],
        ["explain", preset, "flops", "--convention", "scalar"],
        ["explain", preset, "activations"],
    ):
        for line in answer(capsys, *words).splitlines():
            assert len(line) <= 100, line
            assert line == line.rstrip()


@pytest.mark.parametrize("preset", ["gemma-2-9b", "qwen3-next-80b-a3b"])
def test_every_shape_fits_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, preset: str
) -> None:
    for command in ("explain", "crossovers", "regimes"):
        monkeypatch.setattr(f"assay.commands.{command}.width_of_stdout", lambda: 80)
        lines = answer(capsys, command, preset).splitlines()
        assert 60 < max(map(len, lines)) <= 80, command


def test_a_figure_in_letters_and_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    out = answer(capsys, "explain", "gpt-2", "flops", "--tokens", "1000")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "q = linear(xa, Wq, Bq) 2ndgrk 2 × 1,000 × 768 × 12 × 1 × 64 1,179,648,000" in lines
    assert "= 8nd² + 4n²d" in lines
    assert "= 16nd²" in lines
    assert "= L(24nd² + 4n²d) + 2nVd" in lines
    assert f"= {assay.count(assay.load('gpt-2'), tokens=1000).flops.total:,}" in lines
    assert "closed forms use that here r = 1, v = k, g = h, hk = d, f = 4d" in lines


def test_three_figures_if_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    out = answer(capsys, "explain", "llama-3-8b")
    assert [line for line in out.splitlines() if " of Llama 3 8B" in line] == [
        "parameters of Llama 3 8B",
        "FLOPs of Llama 3 8B · tokens 2,048",
        "cache bytes of Llama 3 8B · tokens 2,048",
    ]
    assert "cache" not in answer(capsys, "explain", "bert-base")  # an encoder keeps nothing
    assert [made["figure"] for made in document(capsys, "explain", "gpt-2")["figures"]] == [
        "parameters",
        "flops",
        "cache",
    ]


def test_letters_name_their_config_keys(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    letters = answer(capsys, "explain", str(path), "flops").partition("letters\n")[2]
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in letters.splitlines()}
    assert rows == {
        "L": "3 layers num_hidden_layers",
        "n": "2,048 tokens processed now --tokens",
        "V": "100 vocabulary vocab_size",
        "d": "64 model width hidden_size",
        "h": "4 query heads num_attention_heads",
        "g": "2 key/value heads num_key_value_heads",
        "r": "2 query heads per key/value head = h/g",
        "k": "16 query/key head width = d/h",
        "v": "16 value head width = d/h",
        "f": "96 MLP inner width intermediate_size",
    }


def test_a_part_that_stood_before_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    out = answer(capsys, "explain", "deepseek-v3", "parameters")
    assert "  attention   as in dense: 187,105,280" in out.splitlines()


# typed from the config classes of the families
KEYS: dict[str, dict[str, str]] = {
    "gpt2": {"L": "n_layer", "d": "n_embd", "h": "n_head", "k": "= d/h", "f": "= 4d", "V": "vocab_size"},
    "qwen2": {"g": "num_key_value_heads", "h": "num_attention_heads", "f": "intermediate_size", "d": "hidden_size"},
    "mixtral": {"e": "num_local_experts", "g": "num_key_value_heads", "f": "intermediate_size"},
    "deepseek_v3": {
        "z": "kv_lora_rank",
        "l": "q_lora_rank",
        "o": "qk_nope_head_dim",
        "p": "qk_rope_head_dim",
        "v": "v_head_dim",
        "s": "= moe_intermediate_size·n_shared_experts",
        "f_1": "intermediate_size",
        "f_2": "moe_intermediate_size",
    },
    "gemma2": {"k": "head_dim", "d": "hidden_size"},
    "t5": {"d": "d_model", "k": "d_kv", "f": "d_ff", "h": "num_heads"},
    "bert": {"f": "intermediate_size", "d": "hidden_size"},
    "mamba2": {"S": "state_size", "Q": "head_dim", "G": "n_groups", "H": "= num_heads/n_groups"},
    "qwen3_next": {"J": "linear_num_key_heads", "K": "linear_conv_kernel_dim", "S": "linear_key_head_dim"},
    "whisper": {"f_1": "encoder_ffn_dim", "f_2": "decoder_ffn_dim", "h_2": "decoder_attention_heads"},
    "vit": {"P": "= image_size/patch_size·(image_size/patch_size) + 1", "y": "patch_size", "i": "num_channels"},
}


@pytest.mark.parametrize("family", KEYS)
def test_letters_name_the_keys_of_their_families(family: str) -> None:
    made = assay.explain(assay.load({"model_type": family}), "parameters")
    found = {letter.symbol.name: origin(letter, made.model, made.legend) for letter in made.legend}
    assert {letter: found.get(letter) for letter in KEYS[family]} == KEYS[family]


# of layers that have sizes of their own, of lists, of sizes that a class makes of others, of renamed keys
GEMMA4 = {"head_dim": 16, "global_head_dim": 32, "num_key_value_heads": 4, "num_global_key_value_heads": 2}
OTHERS: dict[str, tuple[dict[str, object], dict[str, str]]] = {
    "gemma4_text": (
        {**GEMMA4, "num_attention_heads": 8, "attention_k_eq_v": True},
        {"k_1": "head_dim", "k_2": "global_head_dim", "g_2": "num_global_key_value_heads", "r_2": "= h/g₂"},
    ),
    "dots3_note_text": ({}, {"z_1": "kv_lora_rank", "z_2": "swa_kv_lora_rank", "h_2": "swa_num_attention_heads"}),
    "mimo_v2_flash": ({}, {"g_2": "= 2·num_key_value_heads", "r_2": "= h/g₂"}),
    "glm4_moe": ({"hidden_size": 100, "num_attention_heads": 8, "head_dim": 12}, {"k": "head_dim"}),
    "gemma3n_text": ({"intermediate_size": [64] * 35}, {"f": "intermediate_size"}),
    "kimi_linear": ({"num_experts": 16}, {"e": "num_experts"}),
    "bart": ({"encoder_layers": 3, "decoder_layers": 3}, {"L_1": "encoder_layers", "L_2": "decoder_layers"}),
    "t5": ({"num_layers": 4}, {"L_1": "of the 4 of num_layers", "L_2": "of the 4 of num_layers"}),
    "qwen2_audio": (
        {"audio_config": {"encoder_layers": 32}},
        {"L_1": "audio_config.encoder_layers", "L_2": "text_config.num_hidden_layers"},
    ),
    "xlstm": ({}, {"Q": "= hidden_size·v_dim_factor/num_heads"}),
}


@pytest.mark.parametrize("family", OTHERS)
def test_letters_name_the_keys_that_they_are_of(family: str) -> None:
    given, keys = OTHERS[family]
    made = assay.explain(assay.load({"model_type": family, **given}), "parameters")
    found = {letter.symbol.name: origin(letter, made.model, made.legend) for letter in made.legend}
    assert {letter: found.get(letter) for letter in keys} == keys


def test_a_size_that_the_file_lacks_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    out = answer(capsys, "explain", "mamba-2-130m", "flops")
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "K 4 columns of the convolution mamba2.kernel (default)" in rows
    assert "S 128 width of the state mamba2.state" in rows
    set_ = answer(capsys, "explain", "mamba-2-130m", "flops", "--set", "mamba2.kernel=5")
    assert "K 5 columns of the convolution mamba2.kernel" in [" ".join(line.split()) for line in set_.splitlines()]
    letters = document(capsys, "explain", "mamba-2-130m", "flops")["letters"]
    assert {one["letter"] for one in letters if one["by_default"]} == {"G", "H", "K"}


def test_a_letter_of_a_matrix_is_no_head(capsys: pytest.CaptureFixture[str]) -> None:
    made = assay.explain(assay.load({"model_type": "llava"}), "flops", "vision projector", images=1)
    says = {letter.symbol.name: letter.says for letter in made.legend}
    assert says["k"] == "a dimension of Wp2, Wp2_bias"


def test_positions_of_a_source_are_of_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    out = answer(capsys, "explain", "whisper-tiny", "flops", "attention.scores", "--source", "2999")
    assert "m 1,500 positions of the source = ⌈--source/2⌉" in [" ".join(line.split()) for line in out.splitlines()]
    assert out.splitlines()[0] == "attention.scores: FLOPs of Whisper tiny · tokens 448 · source 2,999"


def test_how_latent_attention_runs_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for way in ("expanded", "absorbed"):
        for command in (["explain", "deepseek-v3", "flops", "attention"], ["regimes", "deepseek-v3"]):
            out = " ".join(answer(capsys, *command, "--latent", way).split())
            assert f"latent attention {way}" in out
    assert "latent attention" not in answer(capsys, "regimes", "gpt-2")


def test_weights_of_several_formats_have_no_formula(capsys: pytest.CaptureFixture[str]) -> None:
    said = "Weights of several formats have no formula in letters"
    assert said in answer(capsys, "crossovers", "deepseek-v3")
    assert said not in answer(capsys, "crossovers", "deepseek-v3", "--weights", "bf16")


def test_keys_stand_upright_in_formulas() -> None:
    """Of a config key within $ signs, no word below the line."""
    made = assay.explain(assay.load({"model_type": "deepseek_v3"}), "parameters", "experts")
    key = r"$= \mathtt{moe\_intermediate\_size} \cdot \mathtt{n\_shared\_experts}$"
    assert key in made.markdown()
    assert key in made.latex()


@pytest.mark.parametrize("family", ["llava", "gemma3", "llama4", "t5gemma2"])
def test_letters_of_many_kinds_of_layers_keep_their_keys(family: str) -> None:
    model = assay.load({"model_type": family})
    lines = str(assay.explain(model, "flops", images=1)).splitlines()
    assert max(map(len, lines)) <= 100
    legend = lines[lines.index("letters") + 1 :]
    keys = ("text_config.hidden_size (default)", "decoder.hidden_size (default)")
    assert any(line.endswith(keys) for line in legend)
    assert any(line.endswith("--tokens") for line in legend)


@pytest.mark.parametrize("preset", SHAPES)
def test_markdown(capsys: pytest.CaptureFixture[str], preset: str) -> None:
    out = answer(capsys, "explain", preset, "flops", "--format", "markdown")
    assert out.startswith("## FLOPs of ")
    assert not out.count("$") % 2
    columns = 0
    for line in out.splitlines():
        if line.startswith("|"):
            columns = columns or line.count("|")
            assert line.count("|") == columns
        else:
            columns = 0


@pytest.mark.parametrize("preset", SHAPES)
def test_latex(capsys: pytest.CaptureFixture[str], preset: str) -> None:
    out = answer(capsys, "explain", preset, "flops", "--convention", "causal", "--format", "latex")
    assert out.count("{") == out.count("}")
    assert out.count(r"\begin{align*}") == out.count(r"\end{align*}") > 0
    assert r"\left(" not in out or out.count(r"\left(") == out.count(r"\right)")
    assert all(c.isascii() or c == "·" for line in out.splitlines() if not line.startswith("%") for c in line), out


def test_latex_of_the_plain_block(capsys: pytest.CaptureFixture[str]) -> None:
    out = answer(capsys, "explain", "gpt-2", "flops", "--format", "latex")
    assert r"L\left(24 n d^{2} + 4 n^{2} d\right) + 2 n V d = 291{,}648{,}307{,}200" in out


def test_json_holds_formulas_that_sympy_reads(capsys: pytest.CaptureFixture[str]) -> None:
    made = document(capsys, "explain", "mixtral-8x7b", "flops", "--tokens", "77")
    letters = {one["letter"]: one["value"] for one in made["letters"]}
    names = {name: sympy.Symbol(name) for name in letters}
    value = {names[name]: number for name, number in letters.items()}
    for key in ("formula", "closed"):
        assert sympy.sympify(made[key], locals=names).subs(value) == made["value"]
    assert made["value"] == assay.count(assay.load("mixtral-8x7b"), tokens=77).flops.total
    assert made["text"] == "L(6nadf + 2ned + 4nd² + 4ndgk + 4n²d) + 2nVd"
    steps = [step for stage in made["stages"] for part in stage["parts"] for step in part["steps"]]
    assert steps[0]["op"] == "q = linear(xa[b n d], Wq[d g r k]) -> [b n g r k]"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["explain", "gpt-2", "--format", "word"], "format is 'word'; known: terminal, markdown, latex"),
        (["explain", "gpt-2", "mlp", "head"], "'mlp' and 'head' are two parts; name one"),
        (["explain", "gpt-2", "tail"], "part is 'tail'; GPT-2 has embedding, "),
        (["explain"], "MODEL is missing"),
        (["explain", "bert-base", "cache"], "BERT base has no cache in this setting"),
        (["crossovers"], "MODEL is missing"),
        (["crossovers", "rwkv-4-169m"], "has no attention scores"),
        (["regimes", "gpt-2", "--context", "many"], "--context is 'many'; it must be an integer"),
        (["regimes", "gpt-2", "--context", ""], "--context is ''; it must be a list such as 1,8, a range such as "),
        (
            ["regimes", "llama-3-8b", "--context", "1:9999:+1"],
            "--context has 9,999 lengths; regimes takes at most 1,000",
        ),
        (["regimes", "gpt-2", "--context", "4k"], "position table of 1024 rows"),
    ],
)
def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert said in refusal(capsys, *words)


@pytest.mark.parametrize("words", [["explain", "gpt-2"], ["crossovers", "gpt-2"]])
def test_conventions_are_listed(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert "stable-softmax" in answer(capsys, *words, "--convention", "list")


def without_sympy(*words: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.modules['sympy'] = None; from assay.cli import main; sys.exit(main({list(words)!r}))"
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True)


def test_without_sympy() -> None:
    done = without_sympy("explain", "gpt-2")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "assay: formulas need SymPy; pip install sympy\n"
    numbers = without_sympy("crossovers", "gpt-2")
    assert numbers.returncode == 0
    assert "1,536" in numbers.stdout
    assert "formulas need SymPy; pip install sympy" in numbers.stdout
    assert without_sympy("regimes", "gpt-2").returncode == 0


@pytest.mark.parametrize(
    "preset", ["gpt-2", "gemma-2-9b", "deepseek-v3", "t5-small", "qwen3-next-80b-a3b", "bert-base"]
)
def test_crossovers_fit_a_terminal(capsys: pytest.CaptureFixture[str], preset: str) -> None:
    for line in [*answer(capsys, "crossovers", preset).splitlines(), *answer(capsys, "regimes", preset).splitlines()]:
        assert len(line) <= 100, line
        assert line == line.rstrip()


def test_crossovers_say_what_they_compare(capsys: pytest.CaptureFixture[str]) -> None:
    out = answer(capsys, "crossovers", "gpt-2")
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "attention with its projections = MLP 1,536 1,536 2d" in rows
    assert "scores = all weights of the layers 4,608 4,608 6d" in rows
    assert "attention FLOPs of attention, its projections and scores" in rows
    assert "Some of these lengths are beyond GPT-2: its position table ends at 1,024 tokens." in rows


def test_crossovers_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    made = document(capsys, "crossovers", "llama-3-8b", "--batch", "8")
    kept = {"weights": "bf16", "cache": "bf16", "state": "fp32"}
    assert made["setting"] == {"batch": 8, "convention": "matmul", "latent": "expanded", **kept}
    rows = {(one["name"], one["pass"]): one for one in made["crossovers"]}
    assert rows["scores-weights", "decode"]["tokens"] == 28628
    assert rows["scores-weights", "decode"]["exact"] == "28628"
    assert rows["scores-weights", "decode"]["formula_text"] == "V/(2L) + d + gk + 3f/2"
    assert {one["left"] for one in made["crossovers"]} <= made["amounts"].keys()


def test_regimes(capsys: pytest.CaptureFixture[str]) -> None:
    out = answer(capsys, "regimes", "llama-3-8b", "--context", "256,8192,128Ki")
    rows = [line.split() for line in out.splitlines()]
    assert [row for row in rows if row[:1] == ["8,192"]] == [
        ["8,192", "38.2", "%", "61.8", "%", "MLP", "94.8", "%", "5.2", "%", "scores"]
    ]
    assert "compute: MLP        n ≤ 447: 256               448 ≤ n ≤ 16,383: 8,192" in out
    assert "compute: attention  nowhere                    n ≥ 16,384: 131,072" in out


def test_regimes_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    made = document(capsys, "regimes", "llama-3-8b", "--context", "8k")
    assert (made["attention_leads_from"], made["scores_lead_from"]) == (16384, 448)
    assert [(one["tokens"], one["compute"], one["memory"]) for one in made["regimes"]] == [(8000, "MLP", "scores")]


def test_regimes_stay_within_a_position_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert [one["tokens"] for one in document(capsys, "regimes", "gpt-2")["regimes"]] == [512]


def test_explanations_print_themselves() -> None:
    made = assay.explain(assay.load("gpt-2"), "parameters", "mlp")
    assert str(made).splitlines()[0] == "mlp: parameters of GPT-2"
    assert "= 8d² + 5d" in str(made)
    assert made.markdown().startswith("## mlp: parameters of GPT-2")
    assert r"8 d^{2} + 5 d" in made.latex()
