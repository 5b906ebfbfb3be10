"""Where a model may come from, in which order, and what is said when nothing answers."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

import assay
from assay.sources import hub

GPT2: dict[str, Any] = {
    "model_type": "gpt2",
    "n_embd": 24,
    "n_head": 3,
    "n_layer": 2,
    "vocab_size": 50,
    "n_positions": 16,
}
COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER = "f" * 40
DESCRIPTION = """
vocab = 50
width = 24
layers = 3
[attention]
heads = 3
[mlp]
width = 96
"""


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a cache of the test's own, and no setting of the machine's."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME", "TRANSFORMERS_OFFLINE", "HF_ENDPOINT"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def config(depth: int = 2) -> str:
    return json.dumps({**GPT2, "n_layer": depth})


def cache(folder: Path, repository: str, depth: int, commit: str = COMMIT, ref: str | None = "main") -> Path:
    """A repository as the hub's client lays it out: a blob, a link to it, and a branch."""
    root = folder / f"models--{repository.replace('/', '--')}"
    blob = root / "blobs" / f"{depth:040x}"
    snapshot = root / "snapshots" / commit
    for parent in (blob.parent, snapshot):
        parent.mkdir(parents=True, exist_ok=True)
    blob.write_text(config(depth))
    (snapshot / "config.json").symlink_to(blob)
    if ref is not None:
        (root / "refs" / ref).parent.mkdir(parents=True, exist_ok=True)
        (root / "refs" / ref).write_text(commit)
    return root


def test_a_file_and_its_name() -> None:
    Path("tiny").mkdir()
    Path("tiny/config.json").write_text(config())
    Path("other.json").write_text(config(3))
    model = assay.load("tiny/config.json")
    assert (model.name, model.layers, model.family, model.cls) == ("tiny", 2, "gpt2", "GPT2LMHeadModel")
    assert model.source == "tiny/config.json"
    assert (assay.load("tiny").name, assay.load(Path("tiny")).layers) == ("tiny", 2)
    assert (assay.load("other.json").name, assay.load("./other.json").layers) == ("other", 3)


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.json").write_text(config(4))
    assert assay.load("~/mine.json").layers == 4


def test_a_description() -> None:
    Path("mine.toml").write_text("\ufeff" + DESCRIPTION)
    model = assay.load("mine.toml")
    assert (model.name, model.layers, model.width) == ("mine", 3, 24)
    assert assay.count(assay.load("mine.toml", cls="base")).parameters.by_part.get("head", 0) == 0
    with pytest.raises(assay.SettingError, match=r"^class is 'masked'; mine\.toml is a description of a decoder"):
        assay.load("mine.toml", cls="masked")
    Path("empty.toml").write_text("")
    with pytest.raises(assay.SourceError, match=r"empty\.toml: empty; a description is TOML text"):
        assay.load("empty.toml")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("-").write_text("{}")  # a file of that name is written ./-
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(config(5).encode())))
    model = assay.load("-")
    assert (model.layers, model.source) == (5, "standard input")


def test_a_path_stands_before_a_preset_and_a_preset_before_the_cache(tmp_path: Path) -> None:
    preset = assay.load("gpt-2")
    assert preset.layers == 12
    cache(tmp_path / "hf" / "hub", "gpt-2", 7)
    assert assay.load("gpt-2").layers == 12
    Path("gpt-2").mkdir()  # a folder that holds no config stands for none
    assert assay.load("gpt-2").layers == 12
    Path("gpt-2/config.json").write_text(config(9))
    assert assay.load("gpt-2").layers == 9


def test_a_preset_of_a_decoder_may_lose_its_head() -> None:
    whole, base = assay.load("llama-3-8b"), assay.load("llama-3-8b", cls="base")
    assert assay.load("llama-3-8b", cls="causal") == whole
    assert (whole.cls, base.cls) == ("LlamaForCausalLM", "LlamaModel")
    totals = [assay.count(model, tokens=1).parameters.total for model in (whole, base)]
    assert totals[0] - totals[1] == 128_256 * 4096
    said = r"^class is 'base'; bert-base\.toml is a description of an encoder, whose class is the one that it says$"
    with pytest.raises(assay.SettingError, match=said):
        assay.load("bert-base", cls="base")


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"])
def test_cached_repository(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    below = {"HF_HOME": "hub", "XDG_CACHE_HOME": "huggingface/hub"}.get(variable, "")
    cache(tmp_path / "cache" / below, "org/tiny-x.1", 6)
    with pytest.raises(assay.UnknownModel, match="not in the local cache"):
        assay.load("org/tiny-x.1")
    monkeypatch.setenv(variable, str(tmp_path / "cache"))
    model = assay.load("org/tiny-x.1")
    assert (model.layers, model.name) == (6, "org/tiny-x.1")
    assert assay.load(f"{model.source}").name == "org/tiny-x.1"


HOMES = [
    {"HF_HUB_CACHE": "/a", "HUGGINGFACE_HUB_CACHE": "/b", "HF_HOME": "/c", "XDG_CACHE_HOME": "/d"},
    {"HUGGINGFACE_HUB_CACHE": "~/b", "HF_HOME": "/c", "XDG_CACHE_HOME": "/d"},
    {"HF_HOME": "/c", "XDG_CACHE_HOME": "/d"},
    {"XDG_CACHE_HOME": "/d"},
    {},
]


@pytest.mark.parametrize(
    ("variables", "folder"),
    list(
        zip(HOMES, ["/a", "/home/x/b", "/c/hub", "/d/huggingface/hub", "/home/x/.cache/huggingface/hub"], strict=True)
    ),
)
def test_the_cache_is_where_the_hub_client_has_it(
    variables: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/x")
    monkeypatch.delenv("HF_HOME")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert hub.cache_folder() == folder
    pytest.importorskip("huggingface_hub")
    script = "from huggingface_hub import constants; print(constants.HF_HUB_CACHE)"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == folder


def test_revisions(tmp_path: Path) -> None:
    root = tmp_path / "hf" / "hub"
    cache(root, "org/name", 3)
    cache(root, "org/name", 4, OTHER, "refs/pr/7")
    assert assay.load("org/name").layers == 3
    assert assay.load("org/name@main").layers == 3
    assert assay.load(f"org/name@{OTHER}").layers == 4
    assert assay.load("org/name@refs/pr/7").name == "org/name@refs/pr/7"
    with pytest.raises(assay.UnknownModel, match="org/name@v2: no file, no preset, and not in the local cache"):
        assay.load("org/name@v2")
    (root / "models--org--name" / "refs" / "main").write_text("../../../../here")
    with pytest.raises(assay.UnknownModel, match="not in the local cache"):
        assay.load("org/name")


def test_a_name_alone_is_found_in_the_cache_and_never_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache(tmp_path / "hf" / "hub", "distilgpt2", 6)
    assert assay.load("distilgpt2").layers == 6
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(hub, "fetch", None)
    with pytest.raises(assay.UnknownModel, match="presets like it: gpt-2"):
        assay.load("gpt2")


def test_a_broken_cache_says_so(tmp_path: Path) -> None:
    root = cache(tmp_path / "hf" / "hub", "org/name", 3)
    next((root / "blobs").iterdir()).unlink()
    with pytest.raises(assay.SourceError, match=r"config\.json: a link to .*, where nothing is"):
        assay.load("org/name")


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
@pytest.mark.parametrize("value", ["1", "true", "YES", "On"])
def test_offline_settings(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(hub, "fetch", None)
    with pytest.raises(assay.UnknownModel, match=rf"org/name: no file, no preset, .*/hf/hub\); {variable} is set"):
        assay.load("org/name")


class Hub(BaseHTTPRequestHandler):
    """A hub of one repository, a redirect, a gate, a dead end, and a long wait."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/org/moved/resolve/main/config.json":
            self.send_response(307)
            self.send_header("Location", "/org/name/resolve/main/config.json")
            self.end_headers()
            return
        if "/slow/" in self.path:
            threading.Event().wait(3)
        status = (
            401 if "/gated/" in self.path else 404 if "/none/" in self.path else 500 if "/ill/" in self.path else 200
        )
        self.send_response(status)
        self.end_headers()
        self.wfile.write(config(8).encode() if status == 200 else b"")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    Hub.asked = []
    with HTTPServer(("127.0.0.1", 0), Hub) as held:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{held.server_port}/")
        thread = threading.Thread(target=held.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield Hub
        held.shutdown()
        thread.join()


def test_fetched_from_the_hub(server: type[Hub]) -> None:
    model = assay.load("org/name")
    assert (model.layers, model.name, model.source) == (8, "org/name", "org/name on the hub")
    assert assay.load("org/moved").layers == 8
    assert assay.load("org/name@refs/pr/1").layers == 8
    assert server.asked == [
        "/org/name/resolve/main/config.json",
        "/org/moved/resolve/main/config.json",
        "/org/name/resolve/main/config.json",
        "/org/name/resolve/refs%2Fpr%2F1/config.json",
    ]


def test_the_cache_is_asked_before_the_hub(server: type[Hub], tmp_path: Path) -> None:
    cache(tmp_path / "hf" / "hub", "org/name", 3)
    assert assay.load("org/name").layers == 3
    assert server.asked == []


@pytest.mark.parametrize(
    ("name", "said"),
    [("gated", "gave 401: it needs a login"), ("none", "gave 404: no such repository"), ("ill", "gave status 500")],
)
def test_the_hub_refuses(server: type[Hub], name: str, said: str) -> None:
    with pytest.raises(
        assay.UnknownModel, match=rf"org/{name}: .* not in the local cache \(.*\); http://.*config.json {said}"
    ):
        assay.load(f"org/{name}")


def test_the_hub_has_a_bounded_time(server: type[Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    assert hub.SECONDS == 5
    monkeypatch.setattr(hub, "SECONDS", 0.05)
    with pytest.raises(assay.UnknownModel, match=r"gave no (answer in 0.05 s|connection \(timed out\))"):
        assay.load("org/slow")


def test_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody listens
    with pytest.raises(assay.UnknownModel, match=r"gave no connection .*; the path of a config.json works without it"):
        assay.load("org/name")
    monkeypatch.setenv("HF_ENDPOINT", "file:///etc")
    with pytest.raises(assay.UnknownModel, match="HF_ENDPOINT is 'file:///etc', which must begin with https://"):
        assay.load("org/name")


def test_a_dict_is_left_as_it_was() -> None:
    held = {**GPT2, "_name_or_path": "org/tiny", "id2label": {0: "a", 1: "b"}, "eos_token_id": (1, 2)}
    before = dict(held)
    model = assay.load(held)
    assert (model.name, model.source, model.layers) == ("org/tiny", "config", 2)
    assert held == before
    assert assay.load(GPT2).name == "config"


def test_an_object_with_to_dict() -> None:
    class Tiny:
        def to_dict(self) -> dict[str, Any]:
            return dict(GPT2)

    model = assay.load(Tiny())
    assert (model.source, model.layers) == ("Tiny", 2)


def test_config_objects_of_the_library() -> None:
    transformers = pytest.importorskip("transformers")
    for model_type in ("gpt2", "llama", "gemma2", "qwen3_moe", "gpt_oss"):
        held = transformers.AutoConfig.for_model(model_type)
        from_object = assay.count(assay.load(held), tokens=1)
        assert from_object == assay.count(assay.load(json.loads(held.to_json_string(use_diff=False))), tokens=1)
        assert assay.load(held).source == type(held).__name__


def test_keys_let_through() -> None:
    odd = {**GPT2, "memory": {"slots": 4}, "flavour": "x"}
    with pytest.raises(
        assay.SourceError, match=r"--allow memory --allow flavour \(in Python allow=\['memory', 'flavour'\]\)"
    ):
        assay.load(odd)
    with pytest.raises(assay.SourceError, match="config: flavour is 'x': not known for gpt2"):
        assay.load(odd, allow=["memory"])
    model = assay.load(odd, allow={"memory", "flavour"})
    assert model.notes == (
        "memory is {'slots': 4}: let through, and not in the figures",
        "flavour is 'x': let through, and not in the figures",
    )
    assert {"memory", "flavour"} <= set(model.ignored)
    assert model.allowed == ("memory", "flavour")
    assert assay.load({**GPT2, "flavour": "x"}, allow="flavour").layers == 2


@pytest.mark.parametrize("key", ["text_config.flavour", "flavour"])
def test_nested_keys_let_through(key: str) -> None:
    odd = {"model_type": "gemma3", "text_config": {"flavour": "x", "use_cache": True}, "use_cache": True}
    with pytest.raises(assay.SourceError, match=r"text_config\.flavour is 'x'.*--allow text_config\.flavour"):
        assay.load(odd)
    model = assay.load(odd, allow=[key])
    assert model.allowed == ("text_config.flavour",)
    assert {"use_cache", "text_config.use_cache", "text_config.flavour"} <= set(model.ignored)
    assert "text_config.flavour is 'x': let through, and not in the figures" in model.notes


def test_keys_that_change_nothing_are_listed() -> None:
    model = assay.load({**GPT2, "auto_map": {"AutoConfig": "x.Y"}, "add_cross_attention": False, "odd": None})
    assert model.ignored == ("auto_map", "add_cross_attention", "odd")
    assert model.allowed == ()
    assert model.notes == ()


def test_quantization_and_dtype_are_kept() -> None:
    model = assay.load(
        {**GPT2, "torch_dtype": "torch.float16", "quantization_config": {"quant_method": "awq", "bits": 4}}
    )
    assert (model.dtype, model.quantization) == ("float16", {"quant_method": "awq", "bits": 4})
    assert assay.load({**GPT2, "dtype": "bfloat16", "torch_dtype": "float32"}).dtype == "bfloat16"
    assert assay.load({**GPT2, "torch_dtype": "auto"}).dtype is None


def test_a_dtype_that_nobody_knows_is_refused_where_bytes_are_asked_for() -> None:
    model = assay.load({**GPT2, "torch_dtype": "float7"})
    with pytest.raises(assay.SettingError, match="config: dtype is 'float7'; known: fp64, fp32, bf16"):
        assay.count(model)
    assert assay.count(model, weights="fp32").setting.weights == "fp32"
