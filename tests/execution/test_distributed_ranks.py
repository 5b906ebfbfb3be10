"""Ranks in processes of their own, which exchange through a process group of PyTorch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

WIDTH = 20  # and nothing else is
# weights differ along the model's width alone, so that any part of them is like the whole
RANK = f"""
import json, sys
import torch
import assay

rank, file, sequence = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "True"
torch.distributed.init_process_group("gloo", init_method=f"file://{{file}}", rank=rank, world_size=2)
whole = assay.load(
    {{"model_type": "llama", "hidden_size": {WIDTH}, "intermediate_size": 24, "num_hidden_layers": 2, "head_dim": 8,
      "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 32}}
)
(part,) = assay.shard(whole, assay.Plan(tensor=2, sequence=sequence))
ids = torch.arange(8).reshape(1, 8)
made = []
for model in (whole, part.model):
    net = assay.build(model)
    with torch.no_grad():
        for name, weight in net.named_parameters():
            along = 0.3 * torch.sin(torch.arange({WIDTH}) + sum(map(ord, name)))
            weight.copy_(1 + along if weight.dim() == 1 else along if weight.shape[1] == {WIDTH} else along[:, None])
    logits = net(ids)
    logits.pow(2).sum().backward()
    grads = {{name: [weight.grad.abs().sum().item(), weight.numel()] for name, weight in net.named_parameters()}}
    made.append([logits.abs().mean().item(), grads])
print(json.dumps(made))
"""


def ranks(folder: Path, sequence: bool) -> list[Any]:
    """What each of two processes prints: of the whole model, run alone, and of its part, run with the other."""
    script = folder / "rank.py"
    script.write_text(RANK)
    command = [sys.executable, str(script)]
    running = [
        subprocess.Popen([*command, str(rank), str(folder / "meet"), str(sequence)], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    return [json.loads(rank.communicate(timeout=300)[0]) for rank in running]


@pytest.mark.parametrize("sequence", [pytest.param(False, marks=pytest.mark.slow), True])
def test_two_processes_make_what_one_makes(tmp_path: Path, sequence: bool) -> None:
    (whole, first), (_, second) = ranks(tmp_path, sequence)
    assert first[0] == pytest.approx(whole[0], rel=1e-5) == second[0]
    for name, (grad, elements) in whole[1].items():
        (one, here), (other, _) = first[1][name], second[1][name]
        if here < elements or sequence:  # its own rows or columns; or its own tokens
            assert one + other == pytest.approx(grad, rel=1e-4, abs=1e-2), name  # nearly 0 behind equal scores
        else:
            assert one == other == pytest.approx(grad, rel=1e-4), name
    held = [sum(elements for _, elements in grads.values()) for grads in (whole[1], first[1])]
    assert held[0] / 2 < held[1] < held[0]
