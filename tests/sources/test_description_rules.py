"""What descriptions of every kind refuse, whole; and figures of some by hand."""

from __future__ import annotations

import re

import pytest
from described import described

from assay.errors import SettingError, SourceError
from assay.readings.count import count
from assay.readings.tensors import tensors
from assay.sources.described_stacks import SIDES

ENCODER = """\
kind = "encoder"
vocab = 1000
width = 64
layers = 4
attention = { heads = 8 }
mlp = { width = 96 }
"""
HALVES = ENCODER.replace('"encoder"', '"encoder-decoder"')
VISION = """\
kind = "vision"
width = 64
layers = 4
attention = { heads = 8 }
mlp = { width = 96 }
patches = { image = 32, patch = 8 }
"""

# what is put in, and the whole message
ERRORS = [
    (ENCODER.replace('"encoder"', '"encodr"'),
     "kind is 'encodr'; it must be one of decoder, encoder, encoder-decoder, vision"),
    (ENCODER.replace('"encoder"', '"decoder"') + "pooler = {}",
     "pooler says nothing where kind is decoder; encoder and vision have it"),
    (ENCODER + "patches = {}", "patches says nothing where kind is encoder; vision has it"),
    (ENCODER + "wdith = 3", "wdith is no key of a description; did you mean width?"),
    (ENCODER + "mamba = { inner = 8, state = 4, rank = 2 }\nblocks = ['mamba', 'mlp']",
     "mamba goes from token to token; an encoder's layers hold attention, disentangled, mlp, moe"),
    (ENCODER.replace("8 }", "8, window = 4 }"), "attention.window says nothing where sees is all; reach does"),
    (ENCODER.replace("8 }", '8, sees = "past", reach = 4 }'),
     "attention.reach says nothing where sees is past; window does"),
    (ENCODER.replace("8 }", '8, sees = "past", window = 4 }'), "attention.window is not described in an encoder"),
    (ENCODER.replace('"encoder"', '"decoder"').replace("8 }", '8, sees = "all" }'),
     "attention.sees is 'all'; it must be past in a decoder, which keeps what it has seen"),
    (ENCODER.replace("attention", "disentangled"),
     "disentangled reads relative positions; embedding.span says how far"),
    (ENCODER + "embedding = { span_norm = true }",
     "embedding.span_norm says nothing where embedding.span is not set"),
    (ENCODER + "embedding = { tables = { type = 0 } }",
     "embedding.tables.type is 0; it must be an integer of at least 1"),
    (ENCODER + 'embedding = { tables = { "a b" = 1 } }', "embedding.tables.a b is no name of a further table"),
    (ENCODER + 'positions = "alibi"\nembedding = { positions = 9 }',
     "positions is 'alibi'; it must be \"learned\" where embedding.positions is set"),
    (ENCODER + "embedding = { bias = true }", "embedding.bias says nothing where embedding.narrow is not set"),
    (ENCODER + 'positions = "learned"', "context is missing; it must be an integer of at least 1"),
    (ENCODER + 'positions = "sinusoidal"',
     "positions is 'sinusoidal'; it must be another: an encoder by itself adds tables of its own"),
    (ENCODER + "layer_groups = 5", "layer_groups is 5; it must be an integer of at most layers, 4"),
    (ENCODER + "layer_groups = 2\npattern = ['a']\n[layer.a]",
     "layer says nothing where layer_groups is set: layers are alike"),
    (ENCODER + "tied = true\nhead = { inner = 8 }",
     "head.inner is 8; it must be the width of the embedding, 64, as the two are tied"),
    (ENCODER + 'pooler = { over = "last" }', "pooler.over is 'last'; it must be one of all, first, mean"),
    (ENCODER + 'class = "base"', "class says nothing where names is not set: it is one of a family's"),
    (ENCODER + 'names = "bert"\nclass = "causal"',
     ("class is 'causal'; it must be one of base, masked, multiple-choice, next-sentence, pretraining, "
     "question-answering, sequence-classification, token-classification")),
    (HALVES + "[encoder]\nlayers = 0", "encoder.layers is 0; it must be an integer of at least 1"),
    (HALVES + "[decoder.mlp]\nwidht = 3", "decoder.mlp.widht is no key of a description; did you mean width?"),
    (HALVES + "[encoder]\nhead = {}",
     f"encoder.head is no key of a description; known: {', '.join(SIDES['encoder'])}"),
    (HALVES + "[decoder.cross]\nwindow = 3",
     ("decoder.cross.window is no key of a description; known: heads, kv_heads, head_width, value_width, bias, scale, "
     "softcap, input_scale, output_scale")),
    (HALVES + "[decoder.cross]\nkv_heads = 3",
     "decoder.cross.heads is 8; it must be a multiple of decoder.cross.kv_heads, 3"),
    (HALVES + "[encoder.frames]\npositions = 8",
     "encoder.frames.channels is missing; it must be an integer of at least 1"),
    (HALVES + "pattern = ['a']\n[layer.a]\npositions = 'learned'",
     ("layer.a.positions is 'learned'; it must be rope, alibi, none or a table of the rotation: "
     "learned positions are all layers'")),
    (HALVES.replace('kind = "encoder-decoder"', 'kind = "encoder"') + "[decoder]",
     "decoder says nothing where kind is encoder; encoder-decoder has it"),
    (HALVES.replace('kind = "encoder-decoder"\n', "") + "cross = { heads = 2 }",
     "cross says nothing where kind is decoder; encoder-decoder has it"),
    (VISION.replace("patch = 8", "patch = 33"),
     "patches.patch is 33; it must be an integer of at most patches.image, 32"),
    (VISION.replace("image = 32", "image = [32, 4]"),
     "patches.patch is 8; it must be an integer of at most patches.image, 4"),
    (VISION.replace("image = 32", "image = [32]"),
     "patches.image has 1 items; it must be a list of 2 items, each pixels"),
    (VISION.replace("patch = 8", "patch = 8, tokens = { c1 = 1 }"),
     "patches.tokens.c1 is no name of tokens; letters alone are"),
    (VISION.replace("patch = 8", "patch = 8, tokens = { cls = 0 }"),
     "patches.tokens.cls is 0; it must be an integer of at least 1"),
    (VISION + "probe = { heads = 3, mlp = { width = 8 } }", "width is 64; it must be a multiple of probe.heads, 3"),
    (VISION + "probe = { heads = 2, mlp = { width = 8 } }\npooler = {}",
     "probe and pooler cannot both end a model of images"),
    (VISION + "vocab = 9", "vocab says nothing where kind is vision; decoder and encoder and encoder-decoder have it"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), ERRORS, ids=[message[:50] for _, message in ERRORS])
def test_errors_are_one_whole_line(text: str, message: str) -> None:
    with pytest.raises(SourceError, match=f"^{re.escape(f'mine.toml: {message}')}$"):
        described(text)


def test_halves_keep_their_weights_apart_and_share_the_words() -> None:
    made = {entry.path: entry for entry in tensors(described(HALVES + "tied = true"))}
    assert {"encoder.layers.{i}.Wq", "decoder.layers.{i}.Wq", "decoder.layers.{i}.cross.Wq", "E"} <= set(made)
    assert not {"encoder.E", "decoder.E", "layers.{i}.Wq"} & set(made)
    apart = {entry.path for entry in tensors(described(HALVES + "tied = true\nencoder = { vocab = 900 }"))}
    assert {"encoder.E", "decoder.E"} <= apart


def test_the_transformer_of_2017_by_hand() -> None:
    """Vaswani et al. 2017, table 3: six layers a side, 512 wide, 2048 within, eight heads, one table of words."""
    model = described("""
        kind = "encoder-decoder"
        vocab = 37000
        width = 512
        layers = 6
        tied = true
        norm = "layernorm"
        positions = "sinusoidal"
        residual = "post"
        attention = { heads = 8 }
        mlp = { width = 2048, gated = false, activation = "relu", bias = true }
    """)
    d, inner, vocab, n, m = 512, 2048, 37_000, 30, 50
    feed, norm = 2 * d * inner + inner + d, 2 * d
    encoder, decoder = 4 * d * d + feed + 2 * norm, 8 * d * d + feed + 3 * norm
    assert count(model, tokens=n, source=m).parameters.total == vocab * d + 6 * (encoder + decoder)
    matrices = m * (4 * d * d + 2 * d * inner) + n * (4 * d * d + 2 * d * inner) + n * 2 * d * d + m * 2 * d * d
    pairs = m * m + n * n + n * m
    assert count(model, tokens=n, source=m).flops.total == 2 * (6 * (matrices + 2 * pairs * d) + n * d * vocab)
    step = count(model, tokens=1, past=n - 1, source=m, cache="bf16")
    a_step = 6 * (4 * d * d + 2 * d * inner + 2 * d * d + 2 * (n + m) * d)  # the source is not projected again
    assert step.flops.total == 2 * (a_step + d * vocab)
    assert step.cache.bytes == 2 * 2 * 6 * d * (n + m)
    assert step.cache.fixed_bytes == 2 * 2 * 6 * d * m


def test_one_table_of_distances_unless_each_layer_has_its_own() -> None:
    bias = ENCODER.replace("8 }", "8, relative = 16 }")
    each = ENCODER.replace("8 }", "8, relative = 16, relative_here = true }")
    totals = [count(described(text)).parameters.total for text in (ENCODER, bias, each)]
    assert [total - totals[0] for total in totals] == [0, 16 * 8, 4 * 16 * 8]


def test_an_encoder_keeps_nothing() -> None:
    for text in (ENCODER, ENCODER.replace("8 }", '8, sees = "past" }')):
        model = described(text)
        assert count(model, tokens=9).cache.bytes == 0
        with pytest.raises(SettingError, match="past is 3; mine keeps nothing between passes, so it must be 0"):
            count(model, tokens=9, past=3)


def test_layers_in_groups_are_stored_once() -> None:
    one, two, four = (count(described(ENCODER + f"layer_groups = {n}"), tokens=7) for n in (1, 2, 4))
    alike = count(described(ENCODER), tokens=7)
    assert four.parameters == alike.parameters
    assert one.flops == two.flops == alike.flops
    assert two.parameters.by_part["mlp"] == 2 * one.parameters.by_part["mlp"] == 2 * 3 * 64 * 96


def test_an_image_of_two_sides_by_hand() -> None:
    """Patches of 8 x 8 of an image of 32 x 24: 12, and two tokens before them."""
    model = described(VISION.replace("image = 32", "image = [32, 24], tokens = { cls = 2 }"))
    one = count(model)
    d, n = 64, 12 + 2
    layer = 4 * d * d + 3 * d * 96
    assert one.parameters.total == 3 * 64 * d + d + 2 * d + n * d + 4 * (layer + 2 * d) + d
    assert one.flops.total == 2 * (12 * 3 * 64 * d + 4 * (n * layer + 2 * n * n * d))
    assert count(model, images=3).flops.total == 3 * one.flops.total


def test_two_blocks_side_by_side_read_one_norm() -> None:
    text = """
        vocab = 1000
        width = 64
        layers = 3
        blocks = ["attention + mamba2", "mlp"]
        attention = { heads = 4 }
        mamba2 = { heads = 4, head_width = 32, state = 16, norm = "none" }
        mlp = { width = 96 }
    """
    made = count(described(text), tokens=1).parameters.by_part
    assert made["norm"] == 3 * 2 * 64 + 64
    assert made["attention"] == 3 * 4 * 64 * 64
    with pytest.raises(SourceError, match=r"^mine\.toml: blocks is .+; it must be a list in which no more than two"):
        described(text.replace("+ mamba2", "+ mamba2 + mlp"))
