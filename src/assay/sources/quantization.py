"""A config's `quantization_config` as a scheme: which matrices are stored in which format, or why that is not known.

Layouts are those of published files, as the libraries that write them name their tensors: AutoGPTQ and GPTQModel,
AutoAWQ, bitsandbytes, compressed-tensors, NVIDIA's Model Optimizer, FBGEMM, the fp8 of DeepSeek-V3 and the MXFP4 of
gpt-oss. What stays as it is: embeddings, norms, biases, routers, convolutions, and the head unless a format is meant
for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from assay.formats import Format, Rule, Scheme, make
from assay.records import replace
from assay.sources.config import Config
from assay.sources.shown import short

EVERYWHERE = ("attention", "mixer", "mlp", "experts", "tower")
_NARROW = {"float16": "fp16", "fp16": "fp16", "float32": "fp32", "fp32": "fp32"}
# files of these publishers keep the scales of fp8 blocks in bf16, all others in fp32
_BF16_SCALES = ("qwen",)
# their files leave matrices as they are, and keep experts in fp4, by rules that no key of the config states
_RULES_OF_THEIR_OWN = ("deepseek_v4", "deepseek_ref")
# the indexer's weights of heads stay as they are in files of these types, whatever their configs name
_INDEXED = ("deepseek_v32", "glm_moe_dsa")


def read_scheme(c: Config, key: str, model_type: str, plain: str | None) -> Scheme | None:
    """The scheme of the table under `key`, None where there is none. Raises SourceError for values that cannot be.

    `plain` is the dtype of what is not quantized, which scales of some formats share.
    """
    table = c.table(key)
    if table is None:
        return None
    scheme = scheme_of(Config(table, c.where, f"{c.prefix}{key}."), model_type, plain)
    if c.prefix:  # of the text model alone
        return replace(scheme, parts=tuple(part for part in scheme.parts if part != "tower"))
    return scheme


def scheme_of(held: Config, model_type: str, plain: str | None) -> Scheme:
    """The scheme of a table with the keys of a `quantization_config`. Raises SourceError for values that cannot be."""
    method = held.word("quant_method", "" if held.data.get("quant_algo") is None else "modelopt")
    if method == "fp8" and held.has("quantized_layers"):
        method = "modelopt"
    read = METHODS.get(method)
    if read is None:
        if not method and held.has("bits") and held.has("group_size"):
            return unknown("no quant_method is named, as in files of MLX")
        return unknown(f"quant_method is {short(method)}" if method else "no quant_method is named")
    return read(held, model_type, _NARROW.get(plain or "", "bf16"))


def unknown(why: str) -> Scheme:
    """A scheme of which no bytes can be told."""
    return Scheme("unknown", unknown=why)


def pattern(name: str, kept: Format | None = None) -> Rule:
    """A rule for a module named in a config: itself and what lies in it, `*` for anything, `re:` an expression.

    The number of a layer is set apart, so that rules of many layers that say the same are one.
    """
    if name.startswith("re:"):
        return _expression(name[3:], kept)
    names, layer, numbered = _split(name)
    return Rule(names, kept, layer, numbered)


# the number of a layer, in modules of any name that lie in a list of them
_NUMBER = re.compile(r"(?:^|\.)(?:layers?|blocks|h)\.(\d+)(?=\.|$)")


@lru_cache(maxsize=8192)  # a config may name the modules of each layer
def _split(name: str) -> tuple[str, int | None, bool]:
    """The expression for a module, the number of its layer, and whether other numbers are left in it."""
    number = _NUMBER.search(name)
    if number is None:
        names, numbered = _named(name)
        return names, None, numbered
    names, _ = _named(f"{name[: number.start(1)]}{{i}}{name[number.end(1) :]}")
    return names, int(number[1]), False


@lru_cache(maxsize=1024)
def _named(name: str) -> tuple[str, bool]:
    """The expression for a module with {i} for its layer, and whether it has other numbers."""
    plain = re.sub(r"^(model\.)?(language_model\.)?(model\.)?", "", name.removesuffix(".weight"))
    plain = re.sub(r"(?<=experts\.)\d+(?=\.|$)", "{e}", plain)
    body = ".*".join(re.escape(piece) for piece in plain.split("*"))
    return rf"(?:.*\.)?{body}(?:\..*)?", re.search(r"\.\d", plain) is not None


def distinct(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules, each once, in order; those of one file share their formats."""
    return tuple({(rule.names, rule.layer, id(rule.format)): rule for rule in rules}.values())


def _expression(text: str, kept: Format | None) -> Rule:
    """A regular expression of a file, which it matches from the beginning of a name: `model.` is taken off there."""
    try:
        re.compile(text)
    except re.error:
        return Rule(re.escape(text), kept)
    text = re.sub(r"^\^?(?:(?:language_)?model\\?\.)+", "", text)
    return Rule(f"(?:{text}).*", kept, numbered=re.search(r"\d", text) is not None)


def skipped(c: Config, *keys: str) -> tuple[Rule, ...]:
    """The modules that a config leaves as they are. Raises SourceError for what is no list of names."""
    names: list[str] = []
    for key in keys:
        names += c.sequence(key, lambda v: isinstance(v, str), "module names") or []
    return _patterns(tuple(names))


@lru_cache(maxsize=64)
def _patterns(names: tuple[str, ...]) -> tuple[Rule, ...]:
    return distinct(pattern(one) for name in names for one in _layers(name))


def _layers(name: str) -> list[str]:
    """`layers.1*`, which fits layers 1, 10 to 19 and so on, as a name for each of these layers."""
    found = None if "*" not in name or name.startswith("re:") else re.search(r"(?<=layers\.)(\d+)\*", name)
    if found is None:
        return [name]
    first = int(found[1])
    tens = range(10 * first, 10 * first + 10) if first else ()
    hundreds = range(100 * first, 100 * first + 100) if 0 < first < 10 else ()
    layers = (first, *tens, *hundreds)
    return [f"{name[: found.start()]}{layer}{name[found.end() - 1 :].replace('*', '.*', 1)}" for layer in layers]


def fp8(c: Config, model_type: str, plain: str) -> Scheme:
    """FP8 in blocks with a scale each (DeepSeek-V3, arXiv:2412.19437), or with one scale a matrix."""
    if model_type in _RULES_OF_THEIR_OWN:
        return unknown(f"which matrices of {model_type} stay as they are is not in its config")
    block = c.sequence("weight_block_size", lambda v: _whole(v) and v > 0, "an integer of at least 1", 2)
    rest = skipped(c, "modules_to_not_convert")
    if model_type in _INDEXED:
        rest = distinct([*rest, pattern("indexer.weights_proj")])
    still = c.word("activation_scheme", "dynamic") == "static"
    if block is None:
        more = " activation_scale:fp32[]" if still else ""
        made = make("fp8, a scale a matrix", f"weight:fp8[o i] weight_scale_inv:fp32[]{more}")
    else:
        rows, columns = block
        scale = "bf16" if model_type.startswith(_BF16_SCALES) else "fp32"
        text = f"weight:fp8[o i] weight_scale_inv:{scale}[o/{rows} i/{columns}]"
        made = make(f"fp8 in blocks of {rows}×{columns}", text)
    return Scheme(made.says, rest, made, buffers="fp32")


def fbgemm_fp8(c: Config, model_type: str, plain: str) -> Scheme:
    """FP8 with an fp32 scale for each output (FBGEMM)."""
    made = make("fp8, a scale a row", "weight:fp8[o i] weight_scale:fp32[o 1]")
    return Scheme(made.says, skipped(c, "modules_to_not_convert"), made)


def gptq(c: Config, model_type: str, plain: str) -> Scheme:
    """GPTQ (arXiv:2210.17323): weights packed along the inputs in int32, a scale and a zero point for each group."""
    if c.data.get("dynamic") or c.word("checkpoint_format", "gptq") not in ("gptq", "gptq_v2"):
        return unknown("quant_method is gptq with rules of its own or another checkpoint_format")
    bits, group = c.size("bits", most=32), _group(c)
    sizes = f"1 o*{bits}/32", "1 o"
    if group:
        sizes = f"i/{group} o*{bits}/32", f"i/{group} o"
    text = f"qweight:int32[i*{bits}/32 o] qzeros:int32[{sizes[0]}] scales:fp16[{sizes[1]}] g_idx:int32[i]"
    made = make(f"GPTQ, {bits} bits{f' in groups of {group}' if group else ''}", text)
    parts = (*EVERYWHERE, "head") if c.flag("lm_head", False) else EVERYWHERE
    return Scheme(made.says, skipped(c, "modules_to_not_convert"), made, parts)


def awq(c: Config, model_type: str, plain: str) -> Scheme:
    """AWQ (arXiv:2306.00978): weights packed along the outputs in int32, a scale and a zero point for each group."""
    version = c.word("version", "gemm").lower()
    if version != "gemm":
        return unknown(f"quant_method is awq, version {short(version)}")
    bits, group = c.size("bits" if c.has("bits") else "w_bit", 4, most=32), _group(c, "group_size", "q_group_size")
    rows = f"i/{group}" if group else "1"
    text = f"qweight:int32[i o*{bits}/32] qzeros:int32[{rows} o*{bits}/32] scales:fp16[{rows} o]"
    made = make(f"AWQ, {bits} bits{f' in groups of {group}' if group else ''}", text)
    return Scheme(made.says, skipped(c, "modules_to_not_convert"), made)


def bitsandbytes(c: Config, model_type: str, plain: str) -> Scheme:
    """LLM.int8() (arXiv:2208.07339), or NF4 and FP4 with a maximum for each 64 weights (QLoRA, arXiv:2305.14314)."""
    rest = skipped(c, "llm_int8_skip_modules")
    if c.flag("load_in_8bit", False):
        made = make("LLM.int8(), a scale a row", "weight:int8[o i] SCB:fp32[o] weight_format:uint8[]")
        return Scheme(made.says, rest, made)
    if not (c.flag("load_in_4bit", False) or c.flag("_load_in_4bit", False)):
        return unknown("quant_method is bitsandbytes with neither load_in_4bit nor load_in_8bit")
    kind = c.word("bnb_4bit_quant_type", "fp4", ("nf4", "fp4"))
    return four_bit(kind, c.flag("bnb_4bit_use_double_quant", False), rest)


def four_bit(kind: str, double: bool, rest: tuple[Rule, ...] = ()) -> Scheme:
    """The 4-bit formats of bitsandbytes; `double` quantizes the maxima in turn, 256 of them together."""
    maxima = "weight.absmax:fp32[oi/64]"
    if double:
        maxima = "weight.absmax:uint8[oi/64] weight.nested_absmax:fp32[oi/16384] weight.nested_quant_map:fp32[256]"
    text = f"weight:uint8[oi/2 1] {maxima} weight.quant_map:fp32[16]"
    made = make(f"{kind} in blocks of 64{', scales quantized too' if double else ''}", text)
    return Scheme(made.says, rest, made)


def mxfp4(c: Config, model_type: str, plain: str) -> Scheme:
    """MXFP4 (OCP Microscaling 1.0): 32 weights of 4 bits share a power of two. Experts alone, as in gpt-oss."""
    made = make("MXFP4, experts alone", "_blocks:uint8[o i/32 16] _scales:uint8[o i/32]")
    return Scheme(made.says, skipped(c, "modules_to_not_convert"), made, ("experts",))


def compressed(c: Config, model_type: str, plain: str) -> Scheme:
    """compressed-tensors: groups of modules, each with a number format and a strategy for its scales."""
    groups = c.table("config_groups") or {}
    rules = list(skipped(c, "ignore"))
    found: list[tuple[bool, Format, list[str]]] = []
    for name in groups:
        group = c.child("config_groups").child(name)
        made = _group_format(group, c.word("format", "dense"), plain)
        if made is None:
            return unknown(f"quant_method is compressed-tensors, format {short(c.data.get('format'))}")
        targets = group.sequence("targets", lambda v: isinstance(v, str), "module names or classes") or []
        found.append(("Linear" in targets, made, [t for t in targets if t != "Linear"]))
    if not found:
        return unknown("quant_method is compressed-tensors with no config_groups")
    rules += [pattern(target, made) for _, made, named in found for target in named]
    default = next((made for general, made, _ in found if general), None)
    says = " and ".join(dict.fromkeys(made.says for _, made, _ in found))
    return Scheme(says, distinct(rules), default, (*EVERYWHERE, "head"))


def _group_format(group: Config, given: str, plain: str) -> Format | None:
    weights = group.child("weights")
    kept = group.word("format", given)
    if not weights.has("num_bits"):
        return None
    bits, kind = weights.size("num_bits", most=16), weights.word("type", "int", ("int", "float"))
    strategy = weights.word("strategy", "group" if weights.has("group_size") else "tensor")
    size = weights.maybe("group_size") if strategy == "group" or "fp4" in kept else None
    scaled = {"tensor": "1", "channel": "o 1", "group": f"o i/{size}"}.get(strategy)
    if strategy == "block":
        block = weights.sequence("block_structure", lambda v: _whole(v) and v > 0, "an integer of at least 1", 2)
        scaled = f"o/{block[0]} i/{block[1]}" if block else None
    even = weights.flag("symmetric", True)
    said = f"{kind}{bits}, {f'groups of {size}' if size else f'a scale a {strategy}'}"
    if kept in ("nvfp4-pack-quantized", "mxfp4-pack-quantized"):
        return _fp4(kept, size or 16, group.table("input_activations") is not None)
    if kept == "pack-quantized" and scaled and bits <= 8:
        zero = "" if even or strategy == "tensor" else f" weight_zero_point:int32[o/{32 // bits} {_last(scaled)}]"
        index = " weight_g_idx:int32[i]" if weights.data.get("actorder") in ("group", "static", True) and size else ""
        text = f"weight_packed:int32[o i/{32 // bits}] weight_scale:{plain}[{scaled}] weight_shape:int64[2]"
        return make(said, text + zero + index)
    if kept in ("float-quantized", "int-quantized", "naive-quantized") and scaled and bits == 8:
        still = group.table("input_activations") or {}
        static = f" input_scale:{plain}[1]" if still and not still.get("dynamic") else ""
        zero = "" if even else f" weight_zero_point:int8[{scaled}]"
        dtype = "fp8" if kind == "float" else "int8"
        return make(said, f"weight:{dtype}[o i] weight_scale:{plain}[{scaled}]{zero}{static}")
    return None


def _fp4(kept: str, size: int, activations: bool) -> Format:
    if kept.startswith("mx"):
        return make(f"MXFP4 in groups of {size}", f"weight_packed:uint8[o i/2] weight_scale:uint8[o i/{size}]")
    inputs = " input_global_scale:fp32[1]" if activations else ""
    text = f"weight_packed:uint8[o i/2] weight_scale:fp8[o i/{size}] weight_global_scale:fp32[1]{inputs}"
    return make(f"NVFP4 in groups of {size}", text)


def _last(dims: str) -> str:
    return dims.split()[-1]


_MODELOPT = {
    "FP8": ("fp8, a scale a matrix", "weight:fp8[o i] weight_scale:fp32[] input_scale:fp32[]"),
    "NVFP4": (
        "NVFP4 in groups of {g}",
        "weight:uint8[o i/2] weight_scale:fp8[o i/{g}] weight_scale_2:fp32[] input_scale:fp32[]",
    ),
    "W4A16_NVFP4": (
        "NVFP4 in groups of {g}, weights alone",
        "weight:uint8[o i/2] weight_scale:fp8[o i/{g}] weight_scale_2:fp32[]",
    ),
}


def modelopt(c: Config, model_type: str, plain: str) -> Scheme:
    """NVIDIA's Model Optimizer: NVFP4 (16 weights of 4 bits share an fp8 scale, all of them an fp32 one), FP8."""
    algorithm = c.word("quant_algo", "")
    rest = skipped(c, "ignore", "exclude_modules", "modules_to_not_convert")
    if algorithm in _MODELOPT:
        made = _algorithm(algorithm, c)
        return Scheme(made.says, rest, made, (*EVERYWHERE, "head"))
    layers = c.table("quantized_layers")
    if algorithm != "MIXED_PRECISION" or not layers or c.word("quant_method", "modelopt") != "modelopt":
        return unknown(f"quant_algo is {short(algorithm)}")
    rules: list[Rule] = []
    known: dict[str, Format] = {}  # what a layer's table says, as it is written: few of many differ
    for name, said in layers.items():
        text = str(said)
        if text not in known:
            held = c.child("quantized_layers").child(name)
            chosen = held.word("quant_algo", "")
            if chosen not in _MODELOPT:
                return unknown(f"quant_algo of {short(name)} is {short(chosen)}")
            known[text] = _algorithm(chosen, held if held.has("group_size") else c)
        rules.append(pattern(name, known[text]))
    says = dict.fromkeys(made.says for made in known.values())
    return Scheme(" and ".join(says), distinct([*rest, *rules]), None, (*EVERYWHERE, "head"))


def _algorithm(name: str, c: Config) -> Format:
    return _model_optimizers(name, int(c.size("group_size", 16)))


@lru_cache(maxsize=64)
def _model_optimizers(name: str, group: int) -> Format:
    says, text = _MODELOPT[name]
    return make(says.format(g=group), text.format(g=group))


def _group(c: Config, *keys: str) -> int | None:
    """The size of a group, None for one group of all inputs. Raises SourceError."""
    key = next((key for key in keys if c.has(key)), "group_size")
    return None if c.data.get(key) == -1 else c.size(key, 128)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


METHODS: dict[str, Callable[[Config, str, str], Scheme]] = {
    "fp8": fp8,
    "fbgemm_fp8": fbgemm_fp8,
    "gptq": gptq,
    "awq": awq,
    "bitsandbytes": bitsandbytes,
    "mxfp4": mxfp4,
    "compressed-tensors": compressed,
    "compressed_tensors": compressed,
    "modelopt": modelopt,
}
