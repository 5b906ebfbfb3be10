"""Losses: of words, of labels; of which results none is known."""

from __future__ import annotations

import re
from typing import Any

import pytest

import assay

PLAIN: dict[str, Any] = {"policy": "ours", "device": "cpu", "workspace": 0}
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
READS = {**SMALL, "vocab_size": 101, "num_labels": 5}
SORTS = ("Sequence", "Token")
SEES = {**SMALL, "image_size": 32, "patch_size": 8, "num_labels": 5}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "BertForSequenceClassification": ("bert", READS),
    "DebertaV2ForSequenceClassification": ("deberta-v2", READS),
    "ViTForImageClassification": ("vit", SEES),
    "BertForTokenClassification": ("bert", READS),
}


@pytest.mark.parametrize(
    ("attention", "precision"), [("plain", "fp32"), ("fused", "fp32"), ("fused", "bf16"), ("plain", "autocast")]
)
@pytest.mark.parametrize("cls", CASES)
def test_a_loss_of_labels_keeps_what_autograd_keeps(cls: str, attention: str, precision: str) -> None:
    torch = pytest.importorskip("torch")
    name, config = CASES[cls]
    model = assay.load({"model_type": name, **config}, cls=cls)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    net = assay.build(model, seed=0, attention=attention, dtype=dtype)
    seen = "image_size" in config
    given = {"pixels": torch.randn(2, 16, 3, 8, 8, dtype=dtype)} if seen else {"tokens": torch.randint(3, 90, (2, 12))}
    labels = torch.randint(0, 5, net(**given).shape[:-1])

    def loss() -> Any:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "autocast"):
            return torch.nn.functional.cross_entropy(net(**given).flatten(0, -2), labels.flatten())

    ran = assay.measure(loss, backward=True)
    asked = {"attention": attention, "precision": precision, **PLAIN}
    step = assay.training_memory(model, 2, None if seen else 12, **asked)
    assert step.saved + step.loss == ran.saved.activations
    assert step.timeline[0].parts["inputs"] == sum(tensor.nbytes for tensor in given.values()) + 8 * labels.numel()
    assert step.work.flops + step.work.again == ran.flops.forward + ran.flops.backward


def test_a_loss_of_labels_by_hand() -> None:
    """Of two texts of 12 tokens and 5 labels: log-probabilities, and a sum of weights."""
    texts, tokens = (assay.load({"model_type": "bert", **READS}, cls=f"BertFor{of}Classification") for of in SORTS)
    pooled = 2 * 32 * 4  # behind its tanh
    assert assay.training_memory(texts, 2, 12, precision="fp32", **PLAIN).loss == pooled + 2 * 5 * 4 + 4
    assert assay.training_memory(tokens, 2, 12, precision="fp32", **PLAIN).loss == 2 * 12 * 5 * 4 + 4


@pytest.mark.parametrize(
    ("config", "cls", "ends"),
    [
        ({"model_type": "bert", **READS, "num_labels": 1}, "BertForSequenceClassification", "logits[b l]"),
        ({"model_type": "gpt2", "num_labels": 5}, "GPT2ForSequenceClassification", "logits[b t l]"),
        ({"model_type": "bert"}, "BertForQuestionAnswering", "logits[b t l]"),
        ({"model_type": "electra"}, "ElectraForPreTraining", "logits[b t l]"),
        ({"model_type": "dinov2"}, None, "x[b n d]"),
        ({"model_type": "clip"}, None, "s[b z]"),
    ],
)
def test_results_of_which_no_loss_is_known(config: dict[str, Any], cls: str | None, ends: str) -> None:
    said = rf"config ends in {re.escape(ends)}; a loss is known of logits of words \[b t V\], and of two labels or more"
    with pytest.raises(assay.SettingError, match=said):
        assay.training_memory(assay.load(config, cls=cls))


def test_labels_are_not_in_chunks() -> None:
    model = assay.load({"model_type": "bert", **READS}, cls="BertForSequenceClassification")
    with pytest.raises(assay.SettingError, match="config has no head over positions to run in chunks"):
        assay.training_memory(model, 2, 12, logits_chunk=4)
