"""Precision policies of training: in which dtype parameters, products, gradients, copies and states are.

Beside each policy stands what it holds a parameter under Adam: parameter + gradients + master copy + two moments.
"""

from __future__ import annotations

from assay.errors import among
from assay.records import dataclass


@dataclass(frozen=True)
class Precision:
    """A policy. `parameters` is the dtype of the model's own tensors, `compute` that of products and activations.

    `autocast`: parameters stay as they are, and products read copies of them in the dtype of `compute`.
    `gradients` is the dtype of what backward leaves, `main_gradients` of a copy in which several passes are added up,
    in place of them where `gradients` is None. `master` is the dtype of the copy that the
    optimizer steps, None where it steps the parameters themselves. `states` is the dtype of the optimizer's states,
    None where they have the dtype of what is stepped, as PyTorch's optimizers make them.
    """

    name: str
    says: str
    source: str
    parameters: str
    compute: str
    gradients: str | None
    autocast: bool = False
    main_gradients: str | None = None
    master: str | None = None
    states: str | None = None

    @property
    def stepped(self) -> str:
        """The dtype of what the optimizer steps: the master copy, or the parameters."""
        return self.master or self.parameters

    @property
    def kept(self) -> str:
        """The dtype of an optimizer's states that follow what is stepped."""
        return self.states or self.stepped


_ZERO = "Rajbhandari et al. 2020, arXiv:1910.02054, section 3.1"
_MEGATRON = "Megatron-LM, docs: distributed optimizer, table of bytes a parameter"

POLICIES: dict[str, Precision] = {
    policy.name: policy
    for policy in (
        Precision(
            "fp32",
            "everything in float32",
            "PyTorch's defaults: torch.optim makes states like the parameters (zeros_like)",
            "fp32",
            "fp32",
            "fp32",
        ),  # 4 + 4 + 8
        Precision(
            "bf16",
            "everything in bfloat16, the optimizer's states too",
            "torch.optim makes states like the parameters (zeros_like); torchtune, full fine-tuning recipes",
            "bf16",
            "bf16",
            "bf16",
        ),  # 2 + 2 + 4
        Precision(
            "autocast",
            "float32 parameters, products in bfloat16 on copies that autocast makes",
            "PyTorch, torch.amp: autocast casts operands of products; parameters, gradients and states stay float32",
            "fp32",
            "bf16",
            "fp32",
            autocast=True,
        ),  # 4 + 4 + 8
        Precision(
            "mixed",
            "16-bit parameters and gradients, the optimizer steps a float32 copy",
            _ZERO,
            "bf16",
            "bf16",
            "bf16",
            master="fp32",
        ),  # 2 + 2 + 4 + 8: the paper's 2 + 2 + K, K = 12
        Precision(
            "fp16",
            "half precision: parameters and gradients, a float32 copy of each, of which the optimizer steps the former",
            f"{_MEGATRON}: fp16 parameters and gradients, 20 bytes",
            "fp16",
            "fp16",
            "fp16",
            main_gradients="fp32",
            master="fp32",
        ),  # 2 + 2 + 4 + 4 + 8
        Precision(
            "megatron",
            "bfloat16 parameters, gradients added up in float32, the optimizer steps a float32 copy",
            f"{_MEGATRON}: bf16 parameters and fp32 gradients, 18 bytes",
            "bf16",
            "bf16",
            None,
            main_gradients="fp32",
            master="fp32",
        ),  # 2 + 4 + 4 + 8
        Precision(
            "bf16-states",
            "as megatron, the optimizer's moments in bfloat16",
            "DeepSeek-AI 2024, arXiv:2412.19437, section 3.3.3: moments in BF16, master weights and gradients in FP32",
            "bf16",
            "bf16",
            None,
            main_gradients="fp32",
            master="fp32",
            states="bf16",
        ),  # 2 + 4 + 4 + 4
    )
}
_ALIASES = {"amp": "autocast", "bfloat16": "bf16", "float32": "fp32", "float16": "fp16", "half": "fp16"}


def precision(name: str | Precision) -> Precision:
    """The policy of a name, or the one given. Raises SettingError."""
    if isinstance(name, Precision):
        return name
    asked: object = name
    return POLICIES[among(_ALIASES.get(asked, asked) if isinstance(asked, str) else asked, "precision", POLICIES)]
