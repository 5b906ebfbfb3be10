"""The door: what is asked for without PyTorch gets one line that says how to install it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.errors import BuildError, among
from assay.spec import Block, Model

if TYPE_CHECKING:
    from assay.execution.module import Executable

ATTENTION = ("fused", "plain")


def need_torch() -> None:
    """Raise BuildError where PyTorch is not installed."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise BuildError(
            "running a model needs PyTorch, which is not installed: pip install torch safetensors"
        ) from None


def build(
    model: Model | Block,
    *,
    dtype: Any = None,
    device: Any = None,
    seed: int | None = None,
    attention: str = "fused",
    **sizes: object,
) -> Executable:
    """A `torch.nn.Module` that runs the ops of a model, or of a block with `sizes` for its open axes.

    Parameters have the names of the public implementation and the usual initialization: gains one, biases zero, the
    rest normal with the family's standard deviation, reproducible by `seed`. `attention` is fused, in one kernel
    wherever one can run it, or plain, op by op as described. `dtype` and `device` are PyTorch's.
    Raises BuildError for what cannot be run, and where PyTorch is not installed.
    """
    need_torch()
    among(attention, "attention", ATTENTION, BuildError)
    import torch

    from assay.execution.initial import initialize
    from assay.execution.module import Executable
    from assay.readings.binding import as_model

    if dtype is None:
        dtype = torch.float32
    elif not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise BuildError(f"dtype is {dtype!r}; it must be a floating type of PyTorch, such as torch.bfloat16")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise BuildError(f"seed is {seed!r}; it must be an integer")
    whole = as_model(model, sizes, build)
    made = Executable(whole, dtype, _device(device), attention == "fused")
    initialize(made, seed)
    return made


def _device(device: Any) -> Any:
    """PyTorch's device, where tensors can be made on it."""
    import torch

    try:
        made = torch.device("cpu" if device is None else device)
        torch.empty(0, device=made)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise BuildError(f"device is {device!r}: {str(error).splitlines()[0]}") from None
    return made
