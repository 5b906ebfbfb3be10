"""Learning: losses fall to a bound, what was learned is said, runs repeat and go on as if they had never stopped."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import assay

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """So small a model is fastest on one thread, and its sums are the same each time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    if not EXAMPLES.is_dir():
        pytest.skip("the examples are not beside the tests")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    for name in ("reverse", "recite"):
        monkeypatch.delitem(sys.modules, name, raising=False)


SIZES: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 31,
}


def counting(step: int, size: int = 8) -> assay.Batch:
    """Numbers that go up by three each time, modulo 31."""
    rng = torch.Generator().manual_seed(step)
    numbers = (torch.randint(0, 31, (size, 1), generator=rng) + 3 * torch.arange(9)) % 31
    return assay.Batch(numbers[:, :-1], numbers[:, 1:])


def small(seed: int = 0) -> Any:
    return assay.build(assay.load(SIZES), seed=seed)


@pytest.mark.slow
@pytest.mark.usefixtures("examples")
def test_a_pair_learns_to_translate(tmp_path: Path) -> None:
    reverse = import_module("reverse")

    model = reverse.build(tmp_path)
    history = assay.learn(model, reverse.batch, 500, recipe=assay.Recipe(rate=3e-3, warmup=50))
    assert history.losses[0] > 3.0  # ln 29 is 3.37: nothing is known yet
    assert history.mean() < 0.05
    words = ["assay", "gold", "x", "tensor", "backward", "aa"]
    assert [reverse.translate(model, word) for word in words] == [reverse.expected(word) for word in words]


@pytest.mark.slow
@pytest.mark.usefixtures("examples")
def test_a_decoder_learns_a_text(tmp_path: Path) -> None:
    recite = import_module("recite")

    model = recite.build(tmp_path)
    history = assay.learn(model, recite.batch, 400, recipe=assay.Recipe(rate=4e-3))
    assert history.mean() < 0.15
    beginning = "Beautiful is "
    at = recite.TEXT.index(beginning)
    assert recite.recite(model, beginning, 60) == recite.TEXT[at : at + len(beginning) + 60]


def test_the_loss_falls() -> None:
    history = assay.learn(small(), counting, 100, recipe=assay.Recipe(rate=1e-2))
    assert history.losses[0] == pytest.approx(3.434, abs=0.1)  # ln 31: nothing is known yet
    assert history.mean() < 0.1


def test_runs_repeat() -> None:
    first, again, other = (assay.learn(small(seed), counting, 12).losses for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    whole = small()
    expected = assay.learn(whole, counting, 20)

    def stopping(step: int) -> assay.Batch:
        if step == 13:
            raise InterruptedError("the lights went out")
        return counting(step)

    with pytest.raises(InterruptedError, match="lights went out"):
        assay.learn(small(), stopping, 20, save=tmp_path, every=5)
    assert json.loads((tmp_path / "training.json").read_text())["step"] == 10
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".safetensors", ".safetensors"]
    resumed = small(seed=9)  # whatever it was: the folder says what it is
    history = assay.learn(resumed, counting, 20, save=tmp_path, resume=True)
    assert history.losses == expected.losses
    for name, tensor in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], tensor), name


def test_nothing_learns_from_what_is_ignored() -> None:
    batch = counting(0)
    model = small()
    from assay.execution.learn import loss_of

    other = batch.targets.clone()
    given = assay.Batch(batch.tokens, torch.full_like(other, -100).index_copy(1, torch.tensor([3]), other[:, 3:4]))
    expected = torch.nn.functional.cross_entropy(model(batch.tokens)[:, 3], batch.targets[:, 3])
    assert loss_of(model, given).item() == pytest.approx(expected.item(), rel=1e-6)


def test_targets_shifted_right() -> None:
    assert assay.shifted(torch.tensor([[5, 6, 7], [8, 9, 4]]), 1).tolist() == [[1, 5, 6], [1, 8, 9]]


def test_the_rate_of_a_step() -> None:
    recipe = assay.Recipe(rate=1.0, warmup=4, floor=0.1)
    assert [recipe.at(step, 104) for step in (0, 1, 3, 4)] == [0.25, 0.5, 1.0, 1.0]
    assert recipe.at(54, 104) == pytest.approx(0.55)  # half way: the mean of 1 and 0.1
    assert recipe.at(104, 104) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"steps": 3, "every": 1}, "need a folder"),
        ({"steps": 3, "resume": True}, "need a folder"),
        ({"steps": 3, "every": 0, "save": "x"}, "every 0"),
    ],
)
def test_what_cannot_be_asked(options: dict[str, Any], says: str) -> None:
    with pytest.raises(assay.SettingError, match=says):
        assay.learn(small(), counting, **options)


def test_folders_that_keep_no_run(tmp_path: Path) -> None:
    with pytest.raises(assay.BuildError, match="no run is kept there"):
        assay.learn(small(), counting, 3, save=tmp_path, resume=True)
    assay.learn(small(), counting, 3, save=tmp_path)
    with pytest.raises(assay.BuildError, match="a run of 3 steps is kept there"):
        assay.learn(small(), counting, 5, save=tmp_path, resume=True)
    kept = tmp_path / "training.json"
    kept.write_text(kept.read_text().replace('"losses": [', '"losses": [1.0, '))
    with pytest.raises(assay.BuildError, match="files are of different steps, 3, 3 and 4"):
        assay.learn(small(), counting, 3, save=tmp_path, resume=True)


def test_a_run_that_diverges_ends() -> None:
    model = small()
    with torch.no_grad():
        model.get_parameter("lm_head.weight").fill_(float("inf"))
    with pytest.raises(assay.BuildError, match="the loss of step 0 is"):
        assay.learn(model, counting, 3)


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        ({"rate": -1.0}, "rate is -1.0; it must be above 0"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"clip": 0.0}, "clip is 0.0; it must be above 0"),
        ({"warmup": -1}, "warmup is -1; it must be at least 0"),
        ({"decay": -0.1}, "decay is -0.1; it must be at least 0"),
        ({"floor": 2.0}, "floor is 2.0; it must be from 0 to 1"),
        ({"betas": (0.9, 1.0)}, r"betas is \(0.9, 1.0\); it must be from 0 on and below 1"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_recipes_that_are_none(recipe: dict[str, Any], says: str) -> None:
    with pytest.raises(assay.SettingError, match=says):
        assay.Recipe(**recipe)


def test_a_run_goes_on_by_its_own_recipe(tmp_path: Path) -> None:
    assay.learn(small(), counting, 3, save=tmp_path)
    with pytest.raises(assay.BuildError, match=r"a run by .*'rate': 0\.003.* is kept there, not by .*'rate': 0\.5"):
        assay.learn(small(), counting, 3, save=tmp_path, resume=True, recipe=assay.Recipe(rate=0.5))


def test_what_does_not_learn() -> None:
    with pytest.raises(assay.BuildError, match=r"it trains what assay\.build made, not Linear"):
        assay.learn(torch.nn.Linear(2, 2), counting, 1)
    with pytest.raises(assay.BuildError, match="a batch is a Batch, not tuple"):
        assay.learn(small(), lambda step: (1, 2), 1)  # type: ignore[arg-type, return-value]


def test_targets_of_another_shape() -> None:
    batch = counting(0)
    with pytest.raises(assay.BuildError, match=r"targets have the shape \[\d+, 3\]; there are logits of \[\d+, \d+\]"):
        assay.learn(small(), lambda step: assay.Batch(batch.tokens, batch.targets[:, :3]), 1)
