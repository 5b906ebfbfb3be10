"""State-space models without attention: Mamba, Falcon Mamba, Mamba-2; and where their mixers keep their weights."""

from __future__ import annotations

import math
from typing import Any

from assay.blocks import Body, Branch, Decoder, Layer, Norm, Step
from assay.blocks.recurrent import Mamba, Mamba2
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, rms, stack, under

# input and gate are one matrix; time step, writes and reads another
MAMBA = {
    "mixer.Wx": "in_proj.weight[+I d]",
    "mixer.Wz": "in_proj.weight[+I d]",
    "mixer.Bx": "in_proj.bias[+I]",
    "mixer.Bz": "in_proj.bias[+I]",
    "mixer.Kx": "conv1d.weight",
    "mixer.Lx": "conv1d.bias",
    "mixer.Wt": "x_proj.weight[+R I]",
    "mixer.WB": "x_proj.weight[+S I]",
    "mixer.WC": "x_proj.weight[+S I]",
    "mixer.Wdt": "dt_proj.weight",
    "mixer.Bdt": "dt_proj.bias",
    "mixer.A": "A_log[I S]",
    "mixer.D": "D",
    "mixer.Wo": "out_proj.weight",
    "mixer.Bo": "out_proj.bias",
}
# gate, input, writes, reads and time step are one matrix, and so are the kernels of those that are convolved
MAMBA2 = {
    **{f"mixer.W{letter}": "in_proj.weight[+(G H Q) d]" for letter in "zx"},
    **{f"mixer.W{letter}": "in_proj.weight[+(G S) d]" for letter in "BC"},
    "mixer.Wt": "in_proj.weight[+(G H) d]",
    **{f"mixer.B{letter}": "in_proj.bias[+(G H Q)]" for letter in "zx"},
    **{f"mixer.B{letter}": "in_proj.bias[+(G S)]" for letter in "BC"},
    "mixer.Bt": "in_proj.bias[+(G H)]",
    "mixer.Kx": "conv1d.weight[+(G H Q) 1 K]",
    **{f"mixer.K{letter}": "conv1d.weight[+(G S) 1 K]" for letter in "BC"},
    "mixer.Lx": "conv1d.bias[+(G H Q)]",
    **{f"mixer.L{letter}": "conv1d.bias[+(G S)]" for letter in "BC"},
    "mixer.Dt": "dt_bias",
    "mixer.A": "A_log",
    "mixer.D": "D",
    "Gmixer": "norm.weight",
    "mixer.Wo": "out_proj.weight",
    "mixer.Bo": "out_proj.bias",
}
BACKBONE = {
    "E": "backbone.embeddings.weight",
    "Gf": "backbone.norm_f.weight",
    "Wout": "lm_head.weight",
    "Ga": "backbone.layers.{i}.norm.weight",
}
IN_LAYER = "backbone.layers.{i}.mixer."

# ranges of initial values, how a scan is run
HARMLESS = """
    time_step_min time_step_max time_step_floor time_step_init_scheme time_step_scale time_step_limit
    use_mambapy use_falcon_mambapy use_associative_scan use_mamba_kernels mamba_ssm_cache_dtype
    chunk_size mamba_chunk_size use_mem_eff_path
    mamba_dt_min mamba_dt_max mamba_dt_limit mamba_dt_init_floor
""".split()
# older keys: the table's padding and kernels that were fused
_OLDER = ("fused_add_norm", "pad_vocab_size_multiple")


def rank(c: Config, key: str, width: int) -> int:
    """The rank of the time step: a sixteenth of the width, rounded up, where it is `auto`."""
    if c.data.get(key, "auto") == "auto":
        c.skip(key)
        return (width + 15) // 16
    return c.size(key)


def older(c: Config) -> None:
    """Keys of the first implementation."""
    c.rename(d_model="hidden_size", n_layer="num_hidden_layers", d_inner="intermediate_size")
    c.inert("ssm_cfg", {})
    c.inert("rms_norm", True)
    c.inert("norm_before_gate", False, True)  # the public implementation gates first, whatever it says


def share(c: Config, key: str, whole: int, what: str) -> int:
    """What each of `key` gets of a whole. Raises SourceError where that leaves a rest."""
    parts = c.size(key)
    if whole % parts:
        c.fail(key, f"a divisor of {what}, {whole}")
    return whole // parts


def alone(c: Config, mixer: Body, width: int, norm: Norm) -> Decoder:
    """Layers of a mixer each, with no feed-forward layers between them."""
    return stack(c, (Layer((Step((Branch(mixer, norm),)),)),) * depth(c), width, norm)


def mamba_stack(c: Config, norms: Norm | None) -> Decoder:
    """Mamba's layers, `norms` before time step, writes and reads where there are some."""
    c.absent(vocab_size=50280, hidden_size=768, state_size=16, num_hidden_layers=32, expand=2, conv_kernel=4)
    c.absent(tie_word_embeddings=True)
    older(c)
    width, expand = c.size("hidden_size"), c.size("expand")
    mixer = Mamba(
        c.maybe("intermediate_size") or expand * width,
        c.size("state_size"),
        rank(c, "time_step_rank", width),
        c.size("conv_kernel"),
        c.flag("use_conv_bias", True),
        c.flag("use_bias", False),
        norms,
        activation(c),
    )
    return alone(c, mixer, width, rms(c, 1e-5, "layer_norm_epsilon"))


@family("mamba", cls="MambaForCausalLM", names={**BACKBONE, **under(IN_LAYER, MAMBA)}, harmless=(*HARMLESS, *_OLDER))
def mamba(c: Config) -> Decoder:
    """Gu & Dao 2023, arXiv:2312.00752."""
    return mamba_stack(c, None)


@family(
    "falcon_mamba",
    cls="FalconMambaForCausalLM",
    names={**BACKBONE, **under(IN_LAYER, MAMBA)},
    harmless=(*HARMLESS, *_OLDER),
)
def falcon_mamba(c: Config) -> Decoder:
    """Zuo et al. 2024, arXiv:2410.05355: norms without a gain before time step, writes and reads."""
    return mamba_stack(c, Norm(affine="none", eps=c.positive("mixer_rms_eps", 1e-6)))


@family(
    "mamba2",
    cls="Mamba2ForCausalLM",
    names={**BACKBONE, **under(IN_LAYER, MAMBA2)},
    harmless=(*HARMLESS, *_OLDER, "time_step_rank"),
)
def mamba2(c: Config) -> Decoder:
    """Dao & Gu 2024, arXiv:2405.21060."""
    c.absent(vocab_size=32768, hidden_size=4096, state_size=128, num_hidden_layers=64, expand=2, conv_kernel=4)
    c.absent(num_heads=128, head_dim=64, n_groups=8)
    older(c)
    c.skip("intermediate_size")  # follows from heads and their width
    width, norm = c.size("hidden_size"), rms(c, 1e-5, "layer_norm_epsilon")
    if c.size("num_heads") * c.size("head_dim") != c.size("expand") * width:
        c.fail("num_heads", f"expand x hidden_size / head_dim: {c.size('expand') * width} / {c.size('head_dim')}")
    mixer = mamba2_mixer(c, "num_heads", "head_dim", "state_size", "n_groups", "conv_kernel", norm)
    return alone(c, mixer, width, norm)


def mamba2_mixer(
    c: Config,
    heads: str,
    head_width: str,
    state: str,
    groups: str,
    kernel: str,
    norm: Norm,
    *,
    conv_bias: str = "use_conv_bias",
    bias: str = "use_bias",
    act: str = "hidden_act",
) -> Mamba2:
    """Mamba-2's mixer, each argument the key that it is under."""
    c.divides(heads, c.size(heads), groups, c.size(groups))
    return Mamba2(
        c.size(heads),
        c.size(head_width),
        c.size(state),
        c.size(groups),
        c.size(kernel),
        c.flag(conv_bias, True),
        c.flag(bias, False),
        norm,
        activation(c, act),
        *step_limits(c),
    )


def step_limits(c: Config) -> tuple[float | None, float | None]:
    """The bounds of `time_step_limit`, None where a bound does not bind: a step is above zero."""
    said = c.data.get("time_step_limit") or (0.0, math.inf)
    bounds = [_bound(value) for value in said] if isinstance(said, list | tuple) else []
    if len(bounds) != 2 or None in bounds:
        c.fail("time_step_limit", "a list of two numbers, the second perhaps Infinity")
    c.skip("time_step_limit")
    least, most = bounds
    return least or None, None if most == math.inf else most


def _bound(value: Any) -> float | None:
    """A number, or what stands for one in a file that has no infinity."""
    if isinstance(value, dict):
        value = math.inf if value.get("__float__") == "Infinity" else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None
