"""Descriptions of decoders: every error whole, patterns of layers, an architecture that nobody has built."""

from __future__ import annotations

import re
import types
from dataclasses import is_dataclass
from typing import Literal, Union, get_args, get_origin

import pytest
from described import SMALLEST, described, figures, ledger, structure
from documents import ROOT, examples

from assay.errors import SourceError
from assay.readings.count import count
from assay.readings.tensors import tensors
from assay.records import annotation_of, defaults_of
from assay.sources.describable import BLOCKS
from assay.sources.described_kinds import KINDS
from assay.sources.described_layers import IN_LAYER, RESIDUALS
from assay.sources.described_stacks import SIDES
from assay.sources.fields import READERS

IN_DECODER = [name for name in BLOCKS if name != "cross"]
LAYER_KEYS = [key for key in IN_LAYER if key != "cross"]
MIXED = SMALLEST.replace("[mlp]", "[moe]\nexperts = 6\nchosen = 2")


def test_comparison_can_fail() -> None:
    """One wider by one, one windowed: each of the three comparisons sees it."""
    mine, wider = described(SMALLEST), described(SMALLEST.replace("96", "97"))
    assert structure(mine) == structure(wider)
    assert ledger(mine) != ledger(wider)
    windowed = described(SMALLEST.replace("kv_heads = 2", "kv_heads = 2\nwindow = 9"))
    assert ledger(mine) == ledger(windowed)
    assert figures(mine) != figures(windowed)
    assert structure(mine) != structure(described('residual = "post"\n' + SMALLEST))


# what is put in (after which line, or instead of it) and the whole message
TEMPERS = "one of log, next_log, excess_log, power, lengths; a finite number; a finite number"
ERRORS: list[tuple[str, str, str]] = [
    ("", "", "vocab is missing; it must be an integer of at least 1"),
    (SMALLEST, "x = ", "not TOML: Invalid value (at end of document)"),
    (SMALLEST + "width = 97\n", "", "not TOML: Cannot overwrite a value (at line 11, column 11)"),
    (
        SMALLEST.replace("[attention]", "[atention]"),
        "",
        "atention is no key of a description; did you mean attention?",
    ),
    (SMALLEST.replace("heads = 8", "head = 8"), "", "attention.head is no key of a description; did you mean heads?"),
    (SMALLEST, "[norm]\nzzz = 1", "norm.zzz is no key of a description; known: kind, affine, eps, unit_offset"),
    (SMALLEST.replace("heads = 8\n", ""), "", "attention.heads is missing; it must be an integer of at least 1"),
    (SMALLEST.replace("heads = 8", "heads = 0"), "", "attention.heads is 0; it must be an integer of at least 1"),
    (SMALLEST.replace("= 8", "= true"), "", "attention.heads is true; it must be an integer of at least 1"),
    (SMALLEST.replace("= 8", "= 8.0"), "", "attention.heads is 8.0; it must be an integer of at least 1"),
    (SMALLEST.replace("= 8", '= "8"'), "", "attention.heads is '8'; it must be an integer of at least 1"),
    (SMALLEST.replace("= 2", "= 3"), "", "attention.heads is 8; it must be a multiple of attention.kv_heads, 3"),
    (
        SMALLEST.replace("= 64", "= 65"),
        "",
        "width is 65; it must be a multiple of attention.heads, 8, where attention.head_width is not given",
    ),
    (
        SMALLEST.replace("= 1000", "= 10000000000000"),
        "",
        "vocab is 10000000000000; it must be an integer of at most 1000000000000",
    ),
    (SMALLEST.replace("layers = 6", "layers = 600000"), "",
     "layers is 600000; it must be an integer of at most 100000"),
    (SMALLEST, 'bias = "gx"', "mlp.bias is 'gx'; it must be true, false or some of the letters gud"),
    (SMALLEST, "gated = 1", "mlp.gated is 1; it must be true or false"),
    (
        SMALLEST,
        'activation = "swiglu_clamp"\ngated = false',
        "mlp.gated is false; it must be true with the activation swiglu_clamp",
    ),
    (
        SMALLEST,
        '[norm]\nkind = "batchnorm"',
        "norm.kind is 'batchnorm'; it must be one of layernorm, rmsnorm",
    ),
    ('norm = "rms"\n' + SMALLEST, "", "norm is 'rms'; it must be one of layernorm, rmsnorm, or a table"),
    (
        'positions = "rotary"\n' + SMALLEST,
        "",
        "positions is 'rotary'; it must be one of alibi, learned, none, rope, sinusoidal, or a table",
    ),
    ('positions = "learned"\n' + SMALLEST, "", "context is missing; it must be an integer of at least 1"),
    (
        "positions = { width = 9 }\n" + SMALLEST,
        "",
        "positions.width is 9; it must be an even integer of at most the head width, 8",
    ),
    ("positions = { theta = nan }\n" + SMALLEST, "", "positions.theta is nan; it must be a finite number"),
    (
        'residual = "prae"\n' + SMALLEST,
        "",
        f"residual is 'prae'; it must be one of {', '.join(sorted(RESIDUALS))}",
    ),
    ("attention = 3\n" + SMALLEST.replace("[attention]", "[head]").split("[head]")[0], "",
     "attention is 3; it must be a table"),
    ('blocks = ["attention"]\n' + SMALLEST, "", "mlp is in no layer; blocks says which of them a layer has"),
    ("blocks = []\n" + SMALLEST, "", f"a layer has no blocks; describe some of {', '.join(IN_DECODER)}"),
    (
        SMALLEST,
        "[moe]\nexperts = 4\nchosen = 2\nwidth = 8",
        "a layer has mlp and moe; list in blocks the one that it has",
    ),
    (SMALLEST, "[layer.local]", "pattern is missing; it must be a list of local"),
    ('pattern = ["lokal"]\n' + SMALLEST, "[layer.local]",
     "pattern holds 'lokal', no [layer.lokal]; did you mean local?"),
    ('pattern = ["a * 0"]\n' + SMALLEST, "[layer.a]",
     "pattern holds 'a * 0'; a count must be an integer of at least 1, at most layers"),
    ('pattern = ["a * 99999999999999"]\n' + SMALLEST, "[layer.a]",
     "pattern holds 'a * 99999999999999'; a count must be an integer of at least 1, at most layers"),
    ('first = ["a * 4"]\nlast = ["a * 3"]\n' + SMALLEST, "[layer.a]",
     "layers is 6; it must be at least the 7 of first and last"),
    ('pattern = ["a"]\n' + SMALLEST, "[layer.a]\n[layer.b]", "layer.b is in none of first, pattern and last"),
    ('pattern = ["a"]\n' + SMALLEST, "[layer.a]\nvocab = 3",
     f"layer.a.vocab is no key of a description; known: {', '.join(LAYER_KEYS)}"),
    ('pattern = ["a"]\n' + SMALLEST, "[layer.a.attention]\nwindow = 0",
     "layer.a.attention.window is 0; it must be an integer of at least 1"),
    ('pattern = ["a"]\n' + SMALLEST, "[layer.a.attention]\nwindw = 4",
     "layer.a.attention.windw is no key of a description; did you mean window?"),
    ('pattern = ["a"]\n' + SMALLEST, '[layer.a]\npositions = "learned"',
     ("layer.a.positions is 'learned'; it must be rope, alibi, none or a table of the rotation: "
      "learned positions are all layers'")),
    ("tied = true\n" + SMALLEST, "[embedding]\nnarrow = 8\n[head]\nnarrow = 9",
     "head.narrow is 9; it must be that of the embedding, 8, as the two are tied"),
    ('names = "lama"\n' + SMALLEST, "", "names is 'lama', no model_type that is known; did you mean llama?"),
    (SMALLEST, '[names]\nlike = "lama"', "names.like is 'lama', no model_type that is known; did you mean llama?"),
    (SMALLEST, '[names]\nWqq = "q"', "names.Wqq is no key of a description; did you mean Wq?"),
    (MIXED.replace("chosen = 2", "chosen = 7"), "", "moe.chosen is 7; it must be an integer of at most moe.experts, 6"),
    (MIXED, "router = { groups = 4 }", "moe.router.groups is 4; it must be a divisor of moe.experts, 6"),
    (MIXED, "router = { groups = 2, keep_groups = 3 }",
     "moe.router.keep_groups is 3; it must be an integer of at most moe.router.groups, 2"),
    (MIXED, "router = 3", "moe.router is 3; it must be a table"),
    (MIXED, "shared_gate = true", "moe.shared_gate says nothing where moe.shared is not set"),
    (SMALLEST.replace("heads = 8", 'heads = 8\nqk_norm_over = "full"'), "",
     "attention.qk_norm_over says nothing where attention.qk_norm is not set"),
    (SMALLEST.replace("heads = 8", "heads = 8\nwindow = 3\nchunk = 4"), "",
     """attention.chunk is 4; it must be "none" where attention.window is set"""),
    (SMALLEST.replace("heads = 8", "heads = 8\ntemper = [1, 2]"), "",
     f"attention.temper is [1, 2]; it must be a list: {TEMPERS}"),
    ('positions = "learned"\n' + SMALLEST, "[embedding]\npositions = 2\noffset = 2",
     "embedding.offset is 2; it must be an integer of at least 1, below the 2 rows of positions"),
    (SMALLEST, "[embedding]\noffset = 2", "embedding.offset says nothing where positions are not learned"),
    (SMALLEST, "[embedding]\nsines = { halves = true }",
     "embedding.sines says nothing where positions are not sinusoidal"),
    ('positions = "sinusoidal"\n' + SMALLEST, "[embedding]\nsines = { half = true }",
     "embedding.sines.half is no key of a description; did you mean halves?"),
    ('blocks = ["mamba2", "mlp"]\n' + SMALLEST, "[mamba2]\nheads = 4\nhead_width = 8\nstate = 8\ngroups = 3",
     "mamba2.heads is 4; it must be a multiple of mamba2.groups, 3"),
    ('dtype = "half"\n' + SMALLEST, "", "dtype is 'half'; it must be one of bf16, fp16, fp32, fp8"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "more", "message"), ERRORS, ids=[message[:40] for _, _, message in ERRORS])
def test_errors_are_one_whole_line(text: str, more: str, message: str) -> None:
    with pytest.raises(SourceError, match=f"^{re.escape(f'mine.toml: {message}')}$"):
        described(text + more)


def test_too_deep_is_no_traceback() -> None:
    with pytest.raises(SourceError, match=r"^mine\.toml: not TOML"):
        described("x = " + "[" * 100_000)


@pytest.mark.parametrize(
    ("patterns", "order"),
    [
        ('pattern = ["a", "b"]', "ababababab"),
        ('pattern = ["a * 3", "b"]', "aaabaaabaa"),
        ('first = ["b * 2"]\npattern = ["a"]\nlast = ["b"]', "bbaaaaaaab"),
        ('first = ["b * 10"]\npattern = ["a"]', ""),
        ('first = ["a * 5"]\nlast = ["b * 5"]', "aaaaabbbbb"),
    ],
)
def test_patterns_repeat_and_are_cut(patterns: str, order: str) -> None:
    text = f"{patterns}\n{SMALLEST.replace('layers = 6', 'layers = 10')}[layer.a]\n[layer.b.attention]\nwindow = 3\n"
    if not order:
        with pytest.raises(SourceError, match=r"^mine\.toml: layer\.a is in none of first, pattern and last$"):
            described(text)
        return
    kinds = {i: segment.name for segment in described(text).segments for i in segment.layers}
    assert "".join(kinds[i] for i in range(10)) == order


def test_kinds_of_layers_combine() -> None:
    """Each is laid over what is common, the later over the earlier."""
    model = described(
        'pattern = ["near + wide", "wide"]\n'
        + SMALLEST
        + "[layer.near]\nattention = { window = 5 }\nmlp = { width = 7 }\n[layer.wide.mlp]\nwidth = 128\n"
    )
    near, wide = (segment.block for segment in model.segments if segment.layers)
    assert (near.sizes["w"], near.sizes["f"], near.sizes["g"]) == (5, 128, 2)
    assert "w" not in wide.sizes
    assert [segment.name for segment in model.segments] == ["embedding", "near+wide", "wide", "head"]


def test_none_takes_back_what_is_common() -> None:
    text = SMALLEST.replace("kv_heads = 2", "kv_heads = 2\nwindow = 4")
    model = described('pattern = ["a", "b"]\n' + text + '[layer.a]\n[layer.b.attention]\nwindow = "none"\n')
    assert ["w" in segment.block.sizes for segment in model.segments if segment.layers] == [True, False]


def test_tensors_carry_their_own_names_or_those_given() -> None:
    paths = {entry.path for entry in tensors(described(SMALLEST))}
    assert {"E", "layers.{i}.Wq", "layers.{i}.Ga", "Gf", "Wout"} <= paths
    named = described(SMALLEST + '[names]\nlike = "llama"\nWq = "blocks.{i}.query"\n')
    assert {"model.embed_tokens.weight", "blocks.{i}.query"} <= {entry.path for entry in tensors(named)}
    assert (named.family, named.cls) == ("llama", "LlamaForCausalLM")


def test_a_correction_is_stored_and_no_parameter() -> None:
    text = SMALLEST.replace("[mlp]", "[moe]\nexperts = 5\nchosen = 2\nrouter = { correction = true }")
    one = count(described(text), tokens=1).parameters
    without = count(described(text.replace("true", "false")), tokens=1).parameters
    assert (one.buffers, without.buffers) == (6 * 5, 0)
    assert one.total == without.total


def test_scans_between_attention_by_hand() -> None:
    """A hybrid: three layers of a state-space scan, then one of attention (Dao & Gu 2024 for the shapes)."""
    model = described(
        'vocab = 1000\nwidth = 64\nlayers = 8\npattern = ["scan * 3", "attend"]\nmlp = { width = 96 }\n'
        "[layer.scan.mamba2]\nheads = 4\nhead_width = 32\nstate = 16\ngroups = 2\n[layer.attend.attention]\nheads = 4\n"
    )
    d, inner, shared = 64, 4 * 32, 2 * 2 * 16  # shared: writes and reads of both groups
    mixer = d * (2 * inner + shared + 4) + (inner + shared) * (4 + 1) + 3 * 4 + inner * d
    one = count(model, tokens=1).parameters
    assert (one.by_part["mixer"], one.by_part["attention"]) == (6 * mixer, 2 * 4 * d * d)
    assert one.by_part["norm"] == 8 * 2 * d + 6 * inner + d


def test_what_a_report_says_of_a_model() -> None:
    model = described(
        'name = "Mine"\nsource = "https://example.org"\nnote = "n"\ndtype = "fp16"\ncontext = 77\n' + SMALLEST
    )
    assert (model.name, model.source, model.notes, model.dtype) == ("Mine", "https://example.org", ("n",), "fp16")
    assert (model.trained, model.positions) == (77, None)
    assert (described(SMALLEST).name, described(SMALLEST).source) == ("mine", "mine.toml")


@pytest.mark.parametrize("name", BLOCKS)
def test_every_field_of_a_block_can_be_described(name: str) -> None:
    """A field of a type that no rule reads would surface here, not with a user."""
    for field in defaults_of(BLOCKS[name].block):
        hint = annotation_of(BLOCKS[name].block, field)
        if field in BLOCKS[name].hidden:
            continue
        options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        for option in options:
            known = option in READERS or option is type(None) or is_dataclass(option)
            assert known or get_origin(option) in (Literal, tuple), f"{name}.{field}: {hint}"


DOCUMENT = ROOT / "docs" / "descriptions.md"


def test_document_names_every_key() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for key in {key for kind in KINDS.values() for key in kind.keys} | {key for keys in SIDES.values() for key in keys}:
        assert f"`{key}`" in text or f"`[{key}]`" in text, key


def test_architecture_that_nobody_has_built() -> None:
    """Of the document's example, each figure by hand."""
    (text,) = [e.code for e in examples(DOCUMENT.read_text(encoding="utf-8")) if e.title == "lighthouse.toml"]
    model = described(text)
    d, vocab, layers = 2048, 50_000, 24
    wide, narrow = 16 * 128, 4 * 128  # all heads' queries; all groups' keys
    values = 4 * 192
    attention = d * (wide + narrow + values) + 16 * 192 * d + 2 * 128
    sparse = d * 32 + 32 * 3 * d * 768 + 3 * d * 1024
    norms = 2 * 2 * d
    assert count(model, tokens=1).parameters.total == (
        vocab * d + d + layers * (attention + norms) + 2 * 3 * d * 6144 + 22 * sparse
    )
    beams = sum(1 for segment in model.segments for _ in segment.layers if segment.name.startswith("beam"))
    assert beams == 6
    held = (4 * (128 + 192)) * 2  # elements of a position's keys and values, two bytes each
    assert count(model, tokens=1, past=9999, cache="bf16").cache.bytes == held * (6 * 10_000 + 18 * 512)
