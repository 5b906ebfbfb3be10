"""`assay verify`: models held against their run, and a wrong rule found by the op that has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import assay
from assay.cli import main
from assay.kinds import KINDS
from assay.kinds import training as columns
from assay.readings import plans
from assay.records import replace
from assay.sources.families import FAMILIES
from assay.verification import library
from assay.verification.small import prove

PRESETS = ("llama-3-8b", "gpt-2", "mixtral-8x7b")
FEW = ("mistral", "qwen3_moe", "gemma2", "bert", "bart", "t5", "gpt_oss", "falcon")


@pytest.mark.parametrize("name", PRESETS)
def test_presets(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", name]) == 0
    out = capsys.readouterr().out
    assert "nothing differs" in out
    assert "all alike" in out


@pytest.mark.parametrize("model_type", FEW)
def test_families(model_type: str) -> None:
    held(model_type)


@pytest.mark.slow
@pytest.mark.parametrize("model_type", sorted(FAMILIES.keys() - set(FEW)))
def test_every_family_that_runs(model_type: str) -> None:
    held(model_type)


def held(model_type: str) -> None:
    """Nothing differs. Skips what has no defaults, and what does not run."""
    try:
        proof = prove(assay.load({"model_type": model_type}))
    except assay.AssayError as error:
        pytest.skip(str(error))
    assert [figure for figure in proof.figures if not figure.alike] == []
    assert proof.differing == ()
    assert len(proof.ops) > 20
    assert any(figure.name.endswith("saved activations") for figure in proof.figures)
    # a tower may be one product of pixels, which keeps nothing that was made
    text = [
        figure for figure in proof.figures if figure.name.split()[0] in ("parameters", "prefill", "training", "saved")
    ]
    assert all(figure.measured for figure in text)


def verified(name: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["verify", name, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_wrong_count_of_work_names_its_op(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = KINDS["contract"]

    def thrice(op: Any, extent: Any) -> Any:
        return {sort: 3 * amount for sort, amount in right.work(op, extent).items()}

    monkeypatch.setitem(KINDS, "contract", replace(right, work=thrice))
    monkeypatch.setattr(plans, "_PLANS", {})
    code, found = verified("llama-3-8b", capsys)
    assert code == 1
    (proof,) = found["models"][0]["proofs"]
    differing = {figure["name"] for figure in proof["figures"] if figure["difference"]}
    assert differing >= {"prefill FLOPs", "decode step FLOPs", "training FLOPs forward", "training FLOPs backward"}
    assert {one["op"].split("(")[0] for one in proof["differing"]} == {"s = contract", "o = contract"}
    first = proof["differing"][0]
    assert (first["layer"], first["figure"], first["said"]) == ("layer 0", "prefill FLOPs", 3 * first["measured"])


def test_a_wrong_rule_of_what_is_kept_names_its_op(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(columns.SAVES, "silu", lambda at, x: at.tape.linear_in(x))
    code, found = verified("llama-3-8b", capsys)
    assert code == 1
    (proof,) = found["models"][0]["proofs"]
    (figure,) = [figure for figure in proof["figures"] if figure["difference"]]
    assert figure["name"] == "saved activations"
    assert {(one["op"].split("(")[0], one["figure"]) for one in proof["differing"]} == {
        ("z = silu", "bytes kept for backward")
    }
    assert [one["layer"] for one in proof["differing"]] == ["layer 0", "layer 1"]
    assert figure["difference"] == sum(one["measured"] - one["said"] for one in proof["differing"])


def test_a_wrong_shape_names_its_op(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from assay.execution.sites import RULES

    monkeypatch.setitem(RULES, "silu", lambda site: lambda call, x: x[..., :-1])
    assert main(["verify", "llama-3-8b"]) == 1
    out = capsys.readouterr().out
    assert "z = silu" in out
    assert "said and measured differ" in out


def test_wrong_parameters_are_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import assay.verification.small as small

    def one_more(*given: Any, **named: Any) -> Any:
        made = build(*given, **named)
        made.hold("more", assay_torch().zeros(7), parameter=True)
        return made

    build = assay.build
    monkeypatch.setattr(small, "build", one_more)
    assert main(["verify", "gpt-2"]) == 1
    row = next(line for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["parameters"])
    assert row.endswith(" 7")


def assay_torch() -> Any:
    import torch

    return torch


def test_what_cannot_run_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from assay.execution.sites import RULES

    monkeypatch.delitem(RULES, "silu")
    assert main(["verify", "llama-3-8b"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "layer 0: z = silu(z[b n f]) -> [b n f]: the kind silu has no function in PyTorch" in captured.err


def test_a_tower_is_run_by_itself() -> None:
    proof = prove(assay.load({"model_type": "vit"}))
    assert proof.alike
    assert [figure.name for figure in proof.figures] == [
        "parameters",
        "pixels FLOPs",
        "pixels training FLOPs forward",
        "pixels training FLOPs backward",
        "pixels saved activations",
    ]
    forward, backward = (figure.measured for figure in proof.figures[2:4])
    assert forward is not None
    assert backward is not None
    assert forward < backward < 2 * forward  # pixels need no gradient


def test_all_of_a_word_is_a_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--all", "gpt", "neo"]) == 0
    out = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.startswith("gpt_neo")}
    assert rows.keys() == {"gpt_neo", "gpt_neox", "gpt_neox_japanese"} & FAMILIES.keys()
    assert all(set(cells) == {"="} for cells in rows.values())
    assert "no difference" in out


def test_no_such_type(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--all", "qqq"]) == 2
    assert "no model_type has 'qqq' in its name" in capsys.readouterr().err


@pytest.mark.parametrize("layers", [8, pytest.param(80, marks=pytest.mark.slow)])
def test_the_public_implementation_at_full_size(
    layers: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("transformers")
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama", "num_hidden_layers": layers, "hidden_size": 8192}))
    code, found = verified(str(path), capsys)
    _, theirs = found["models"][0]["proofs"]
    assert theirs["figures"], theirs["without"]
    assert {f["name"]: f["difference"] for f in theirs["figures"]} == {
        "parameters": 0,
        "prefill FLOPs": 0,
        "decode step FLOPs": 0,
        "training FLOPs backward": 0,
    }
    assert code == 0
    assert theirs["compared"] == layers * 9 + 3


@pytest.mark.parametrize(("batch", "tokens"), [(2, 10), (3, 7), (1, 9)])
def test_the_difference_to_the_public_llama_is_explained_to_the_byte(batch: int, tokens: int) -> None:
    """Theirs repeats keys and values for every query head, and ours lays tables out twice and keeps a mask."""
    transformers = pytest.importorskip("transformers")
    layers, heads, groups, width = 3, 4, 2, 8
    config = {
        "model_type": "llama",
        "hidden_size": heads * width,
        "intermediate_size": 48,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "vocab_size": 101,
    }
    made = transformers.AutoConfig.for_model(**config)
    net = transformers.AutoModelForCausalLM.from_config(made, attn_implementation="eager").eval()
    theirs = assay.measure(net, assay_torch().zeros(batch, tokens, dtype=assay_torch().long), backward=True)
    ours = assay.training(assay.load(config), batch, tokens)
    repeated = layers * 2 * batch * tokens * (heads - groups) * width * 4
    tables, mask = 2 * tokens * width * 4, tokens * tokens
    assert ours.saved is not None
    assert theirs.saved.activations - ours.saved == repeated - tables - mask
    assert theirs.flops.backward == ours.backward


def test_what_the_public_implementation_is_not_compared_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 96}))
    for words, says in (
        (["gpt-2"], "a description names none, a config.json does"),
        ([str(path), "--set", "vocab_size=64"], "it is of the config as it stands"),
    ):
        assert main(["verify", *words, "--json"]) == 0
        (found,) = json.loads(capsys.readouterr().out)["models"]
        (own,) = found["proofs"]
        assert [says in line for line in own["without"]] == [True]
    monkeypatch.setattr(library, "installed", lambda: None)
    assert main(["verify", str(path)]) == 0
    assert "the public implementation is not compared: transformers is not installed" in capsys.readouterr().out
    assert main(["verify", str(path), "--alone"]) == 0
    assert "public implementation" not in capsys.readouterr().out


def test_a_config_on_standard_input_is_one(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    config = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 96}
    text = json.dumps({**config, "num_attention_heads": 4, "vocab_size": 96}).encode()
    monkeypatch.setattr("assay.sources.files.read_standard_input", lambda: text)
    assert main(["verify", "-", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["models"]
    assert [len(proof["figures"]) > 0 for proof in found["proofs"]] == [True, True]


LLAMA = {"model_type": "llama", "num_hidden_layers": 2, "vocab_size": 96}
BERT = {"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 96}
SHRUNK: dict[str, dict[str, Any]] = {
    "sections of turned pairs": {**LLAMA, "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}},
    "a factor for each pair": {
        **LLAMA,
        "max_position_embeddings": 128,
        "rope_scaling": {
            "rope_type": "longrope",
            "short_factor": [1.0 + i / 64 for i in range(64)],
            "long_factor": [2.0 + i / 64 for i in range(64)],
            "original_max_position_embeddings": 32,
        },
    },
    "an encoder whose end the decoder does not read": {
        "model_type": "encoder-decoder",
        "encoder": BERT,
        "decoder": {**BERT, "is_decoder": True, "add_cross_attention": True},
    },
    "positions on a page": {"model_type": "layoutlm", "num_hidden_layers": 2, "vocab_size": 96},
    "an adapter that a whole text chooses": {"model_type": "xmod", "num_hidden_layers": 2, "vocab_size": 96},
    "sounds of any length": {"model_type": "voxtral_realtime"},
}


@pytest.mark.parametrize("case", SHRUNK)
def test_what_a_small_model_keeps_of_a_large_one(case: str) -> None:
    try:
        proof = prove(assay.load(SHRUNK[case]))
    except assay.BuildError as error:
        raise AssertionError(str(error)) from error
    assert [figure for figure in proof.figures if not figure.alike] == []
    assert proof.differing == ()
    assert proof.without == ()
