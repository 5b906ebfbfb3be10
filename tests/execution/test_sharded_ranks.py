"""Ranks that run beside each other, each its own part: together they give what the whole model gives, gradients too."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from execution.families import LATENT, SMALL

import assay
from assay.rewrites.plan import Plan
from assay.rewrites.shard import shard

torch = pytest.importorskip("torch")

from assay.execution.ranks import among, ranks_here  # noqa: E402

CONFIGS: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 101},
    "llama": SMALL,
    "qwen2": SMALL,
    "qwen3": SMALL | {"head_dim": 16},
    "gemma2": SMALL | {"head_dim": 8, "sliding_window": 5},
    "phi3": SMALL | {"pad_token_id": 0},
    "gpt_neox": {k: v for k, v in SMALL.items() if k != "num_key_value_heads"},
    "falcon": {k: v for k, v in SMALL.items() if k not in ("num_key_value_heads", "intermediate_size")}
    | {"new_decoder_architecture": True, "num_kv_heads": 2},
    "mixtral": SMALL | {"num_local_experts": 4},
    "gpt_oss": SMALL | {"head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 5},
    "deepseek_v3": LATENT | {"num_hidden_layers": 2},
    "bert": {k: v for k, v in SMALL.items() if k != "num_key_value_heads"},
}
RECURRENT: dict[str, Any] = {"hidden_size": 32, "vocab_size": 101, "num_hidden_layers": 2, "pad_token_id": None}
ATTENTION = {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48}
DELTA = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 6,
    "linear_conv_kernel_dim": 4,
}
MAMBA = {"state_size": 5, "expand": 2, "conv_kernel": 4}
MIXERS: dict[str, dict[str, Any]] = {
    "mamba": MAMBA,
    "falcon_mamba": MAMBA,
    "mamba2": MAMBA | {"num_heads": 8, "head_dim": 8, "n_groups": 4, "chunk_size": 4},
    "qwen3_5_text": ATTENTION | DELTA | {"head_dim": 8, "layer_types": ["linear_attention", "full_attention"]},
    "lfm2": ATTENTION | {"layer_types": ["conv", "full_attention"], "conv_L_cache": 3},
    "recurrent_gemma": ATTENTION
    | {"hidden_size": 64, "num_hidden_layers": 3, "lru_width": 64, "attention_window_size": 5}
    | {"num_key_value_heads": 1, "head_dim": 16},
    "rwkv": {"attention_hidden_size": 32, "context_length": 64},
    "xlstm": {"hidden_size": 128, "embedding_dim": 128, "num_blocks": 2, "num_heads": 4},
}
CONFIGS |= {name: RECURRENT | sizes for name, sizes in MIXERS.items()}
SHARED, EACH = ("g", "G", "J"), ("r", "H")  # heads that several ranks may hold, and those of each of them
B, N = 2, 8


class Threads:
    """Ranks that are threads: what each gives lies in a box that all look into."""

    def __init__(self, rank: int, count: int, box: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self.count, self.box, self.barrier = rank, count, box, barrier

    def all(self, tensor: Any) -> list[Any]:
        """What each rank gives."""
        self.box[self.rank] = tensor.detach().clone()
        self.barrier.wait()
        found = list(self.box)
        self.barrier.wait()
        return found


def beside_each_other(count: int, run: Callable[[Threads], Any]) -> list[Any]:
    """A function on each of some ranks."""
    barrier = threading.Barrier(count, timeout=20)
    box: list[Any] = [None] * count
    results: list[Any] = [None] * count

    def work(rank: int) -> None:
        try:
            with among(ranks := Threads(rank, count, box, barrier)):
                results[rank] = run(ranks)
        except BaseException as error:
            results[rank] = error
            barrier.abort()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, threading.BrokenBarrierError):
            raise result
    return results


def views(net: Any) -> dict[tuple[int, str], tuple[Any, Any]]:
    """Every weight of every layer along its axes: the operand, and how to see it."""
    found: dict[tuple[int, str], tuple[Any, Any]] = {}
    for place, layer in enumerate(net.plan):
        for op in layer.block.ops:
            for weight in op.weights:
                see = layer.weights.view(net, weight, layer.layer, [(axis,) for axis in weight.axes])
                found.setdefault((place, weight.name), (weight, see))
    return found


def part(whole: Any, axes: tuple[str, ...], here: dict[str, int], full: dict[str, int], ranks: Threads) -> Any:
    """What a rank holds of a weight: its own heads, widths and rows, by hand."""
    rank, count = ranks.rank, ranks.count
    for dim, axis in enumerate(axes):
        size, all_of_it = here[axis], full[axis]
        if size == all_of_it:
            continue
        start = rank * size
        if axis == "V":
            least, more = divmod(all_of_it, count)
            start = rank * least + min(rank, more)
        elif axis in SHARED and count > all_of_it:
            start = rank * all_of_it // count
        elif axis in EACH:
            groups = next((full[one] for one in axes if one in SHARED), 1)
            start = rank % (count // groups) * size
        whole = whole.narrow(dim, start, size)
    return whole


def divided(model: assay.Model, plan: Plan, ranks: Threads) -> assay.Model:
    """The model of a rank: the first ranks have a row of the vocabulary more where it does not divide."""
    found = [rank for rank in shard(model, plan) for _ in range(rank.count)]
    return found[ranks.rank].model


def run_whole(config: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The module, its logits, and the ids."""
    net = assay.build(assay.load(config), seed=0, attention="plain", dtype=torch.float64)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)  # biases and gains that are not all alike
    ids = torch.randint(0, 101, (B, N))
    return net, net(ids), ids


def weighed(logits: Any, start: int = 0) -> Any:
    """A loss that tells every logit from every other."""
    columns = torch.arange(start, start + logits.shape[-1], dtype=logits.dtype)
    return (logits * torch.cos(columns)).sum() + (logits**2 * torch.sin(columns)).sum()


class gradients:  # noqa: N801 (a context)
    """Within it, parameters are their gradients."""

    def __init__(self, net: Any) -> None:
        self.net = net
        self.kept: dict[str, Any] = {}

    def __enter__(self) -> None:
        for name, parameter in self.net.named_parameters():
            self.kept[name] = parameter.data
            parameter.data = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad

    def __exit__(self, *error: object) -> None:
        for name, parameter in self.net.named_parameters():
            parameter.data = self.kept[name]


class Side:
    """What one rank made: its logits, and each weight's gradient with the whole model's beside it."""

    def __init__(self, logits: Any) -> None:
        self.logits = logits
        self.compared: dict[tuple[int, str], tuple[Any, Any, bool]] = {}  # and whether all ranks hold the same of it


@pytest.mark.parametrize("sequence", [False, True], ids=["whole tokens", "divided tokens"])
@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", CONFIGS)
def test_ranks_together_are_the_model(family: str, count: int, sequence: bool) -> None:
    config = {"model_type": family, **CONFIGS[family]}
    net, logits, ids = run_whole(config)
    weighed(logits).backward()
    model, plan = assay.load(config), Plan(tensor=count, sequence=sequence)
    known = {key: see().detach() for key, (_, see) in views(net).items()}
    with gradients(net):
        changes = {key: see().clone() for key, (_, see) in views(net).items()}

    def run(ranks: Threads) -> Side:
        torch.set_num_threads(1)
        own = assay.build(divided(model, plan, ranks), seed=0, attention="plain", dtype=torch.float64)

        def mine(key: tuple[int, str], weight: Any, whole: Any) -> Any:
            here, full = (one.plan[key[0]].weights.sizes for one in (own, net))
            return part(whole, weight.axes, here, full, ranks)

        with torch.no_grad():
            for key, (weight, see) in views(own).items():
                see().copy_(mine(key, weight, known[key]))
                assert torch.equal(see(), mine(key, weight, known[key])), f"{weight} is no view of what is stored"
        made = Side(own(ids))
        start = sum(int(size) for size in ranks.all(torch.tensor([made.logits.shape[-1]]))[: ranks.rank])
        weighed(made.logits, start).backward()
        with gradients(own):
            for key, (weight, see) in views(own).items():
                wanted = mine(key, weight, changes[key])
                made.compared[key] = see().clone(), wanted, wanted.shape == changes[key].shape
        return made

    sides = beside_each_other(count, run)
    together = torch.cat([side.logits for side in sides], -1)
    assert torch.allclose(together, logits, atol=1e-5 if family in MIXERS else 1e-10)
    for key in sides[0].compared:
        _same_gradients(key, [side.compared[key] for side in sides], repeated=count > 2, sequence=sequence)


def _same_gradients(key: tuple[int, str], sides: list[tuple[Any, Any, bool]], repeated: bool, sequence: bool) -> None:
    """Of a divided weight each rank has the gradient of its part. Of one that several hold each has it whole, or what
    its own tokens or heads add to it: then these are summed, as they are over data ranks.
    """
    for gradient, wanted, alike in sides:
        if alike or repeated:
            holders = [one for one in sides if torch.equal(one[1], wanted)]
            summed = sum(one[0] for one in holders)
            assert any(_close(one, wanted) for one in (gradient, summed)), key
        else:
            assert _close(gradient, wanted), key


def _close(one: Any, other: Any) -> bool:
    """To the precision of the float32 states of scans."""
    one, other = one.detach(), other.detach()
    return bool((one - other).abs().max() <= 1e-6 * max(1.0, float(other.abs().max())))


def test_a_rank_alone_is_told_what_it_lacks() -> None:
    (rank,) = shard(assay.load({"model_type": "llama", **SMALL, "vocab_size": 100}), Plan(tensor=2))
    with pytest.raises(assay.BuildError, match=r"2 ranks exchange what they make, and torch\.distributed is not init"):
        assay.build(rank.model)


def test_another_number_of_ranks_is_refused() -> None:
    def run(ranks: Threads) -> None:
        with pytest.raises(assay.BuildError, match="the description is of 4 ranks, and 2 run"):
            ranks_here(4)

    beside_each_other(2, run)
