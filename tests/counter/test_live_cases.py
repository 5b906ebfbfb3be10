"""Public fault reports of counters of live modules: the module of the report, measured, and the figure that is right.

Cases of the same file that no run of a module can answer stand in OUT with the reason.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.utils.checkpoint import checkpoint

import assay.counter.attention  # noqa: F401 (registers its rules)
from assay import Measurement, measure
from assay.counter.rules import RULES, Call

F = torch.nn.functional
FILE = Path(__file__).parents[3] / "shared" / "cases" / "cases.json"
SCORES = F.scaled_dot_product_attention

CASES: dict[str, tuple[Callable[[], Any], Any, tuple[str, ...]]] = {}

MASK = "an op's shapes do not tell what its mask lets through: the convention `causal` of a description does"
RATE = "rates and hours, no counting"
BYTES = "bytes of an optimizer's or a format's bookkeeping: nothing a run of the module holds"
PLAN = "a plan over many devices: no single module runs it"
OUT = {
    "F22": MASK,
    "F24": MASK,
    "F26": MASK,
    "F28": MASK,
    "F29": MASK,
    "F36": RATE,
    "F38": RATE,
    "F39": RATE,
    "F40": RATE,
    "T03": RATE,
    "M02": BYTES,
    "M03": PLAN,
    "M04": BYTES,
    "M06": BYTES,
    "M11": PLAN,
    "M12": "no figure: it depends on a dispatcher",
    "M14": "a unit, not a count",
    "M16": BYTES,
    "M17": BYTES,
    "P17": "packed weights are counted as they are stored; their shapes before packing stand in the config",
}


def case(name: str, right: Any, *printed: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a case; `printed` are the report's words, the figures with thousands set off where not given."""

    def add(ours: Callable[[], Any]) -> Callable[[], Any]:
        values = right if isinstance(right, tuple) else (right,)
        assert name not in CASES
        CASES[name] = ours, right, printed or tuple(f"{value:,}" for value in values)
        return ours

    return add


def meta(*shape: int, grad: bool = False, dtype: Any = torch.float32) -> Any:
    return torch.empty(*shape, device="meta", requires_grad=grad, dtype=dtype)


def attention(heads: int, keys: int, n: int, c: int, width: int, **how: Any) -> Measurement:
    """One sequence on meta: n queries of each head, c keys of each key head."""
    q, k, v = meta(1, heads, n, width, grad=True), *(meta(1, keys, c, width, grad=True) for _ in range(2))
    return measure(SCORES, q, k, v, enable_gqa=heads != keys, **how)


# --- parameters ---


class Scaled(torch.nn.Module):  # type: ignore[misc]
    """A block without biases, with three scalars of its own."""

    def __init__(self, d: int, f: int) -> None:
        super().__init__()
        self.maps = torch.nn.ModuleList(
            torch.nn.Linear(a, b, bias=False) for a, b in ((d, 3 * d), (d, d), (d, f), (f, d))
        )
        self.scales = torch.nn.Parameter(torch.empty(3))

    def forward(self, x: Any) -> Any:
        qkv, out, up, down = self.maps
        x = x + out(qkv(x).chunk(3, -1)[2]) * self.scales[0]
        return x * self.scales[1] + down(up(x)) * self.scales[2]


@case("P06", 162_201_636)
def untied_gpt2() -> Any:
    with torch.device("meta"):
        blocks = (Scaled(768, 3072) for _ in range(12))
        net = torch.nn.Sequential(torch.nn.Embedding(50304, 768), *blocks, torch.nn.Linear(768, 50304, bias=False))
    return measure(net, torch.zeros(1, 4, dtype=torch.long, device="meta")).parameters


@case("P24", (1_050_624, 1_050_624), "1,050,624 for any head count")
def heads_do_not_matter() -> Any:
    x = torch.zeros(1, 2, 512)
    return tuple(measure(torch.nn.MultiheadAttention(512, heads), x, x, x).parameters for heads in (1, 64))


# --- attention ---


@case("F03", 12_582_912)
def attention_on_the_cpu() -> Any:
    return measure(SCORES, *(torch.zeros(1, 12, 64, 64) for _ in range(3))).flops.total


@case("F04", 12_960)
def attention_once() -> Any:
    return measure(SCORES, *(torch.zeros(2, 5, 9, 4) for _ in range(3))).flops.total


@case("F06", 134_217_728)
def fewer_key_heads() -> Any:
    return attention(32, 8, 128, 128, 64).flops.total


@case("F07", 12_884_901_888)
def training_with_fewer_key_heads() -> Any:
    return 32 * attention(32, 8, 8192, 8192, 128, backward=True).flops.total // 8192


@case("F15", 113_246_208)
def dense_scores_of_gpt2() -> Any:
    return 12 * attention(12, 12, 1024, 1024, 64, is_causal=True, backward=True).flops.total // 1024


@case("F16", 7, "flash kernels execute 7*L*d*S")
def flash_recomputes_scores() -> Any:
    """Half of what is run dense: seven products of n x n, in units of n n d."""
    q, k, v = (torch.zeros(1, 4, 16, 8, requires_grad=True) for _ in range(3))
    return measure(SCORES, q, k, v, is_causal=True, backward=True).flops.total / 2 / (16 * 16 * 4 * 8)


@case("F30", 23_068_672)
def packed_sequences() -> Any:
    starts = torch.tensor([0, 4096, 6144, 7168, 8192])
    tensors = [meta(8192, 1, 1) for _ in range(3)]
    call = Call("aten::_flash_attention_forward", tensors, {"cum_seq_q": starts, "cum_seq_k": starts}, None)
    return RULES[call.name](call) // 4


@case("F41", 32_768)
def a_token_of_context() -> Any:
    return attention(64, 8, 1, 1000, 128).flops.total // 1000


@case("F08", (952_647_680, 1_905_295_360))
def multi_head_attention() -> Any:
    net, x = torch.nn.MultiheadAttention(512, 4), torch.zeros(580, 1, 512)
    found = {measure(net, x, x, x, need_weights=weights).flops.total for weights in (True, False)}
    with torch.no_grad():
        found.add(measure(net.eval(), x, x, x).flops.total)
    (total,) = found
    return total // 2, total


@case("F09", (240_000_000, 40_400))
def one_head() -> Any:
    net, x = torch.nn.MultiheadAttention(100, 1, batch_first=True).eval(), torch.zeros(1, 1000, 100)
    with torch.no_grad():
        found = measure(net, x, x, x, need_weights=False)
    return found.flops.total // 2, found.parameters


# --- training ---


@case("F19", 12, "x = 12 without recomputation")
def denominator_of_the_logits() -> Any:
    """72 l h h V / (x l h) is what the head costs forward and backward."""
    return 72 * 64 * 300 * 10 / measure(torch.nn.Linear(64, 300, bias=False), rows(10, 64), backward=True).flops.total


@case("F20", 6, "always 6*B*s*h*V")
def the_head_is_neither_gated_nor_run_again() -> Any:
    head = torch.nn.Linear(64, 300, bias=False)
    return measure(head, rows(10, 64), backward=True).flops.total / (10 * 64 * 300)


def rows(n: int, width: int) -> Any:
    return torch.ones(n, width, requires_grad=True)


class Adapted(torch.nn.Module):  # type: ignore[misc]
    """A frozen map and an adapter of rank r beside it."""

    def __init__(self, d: int, r: int) -> None:
        super().__init__()
        self.frozen = torch.nn.Linear(d, d, bias=False).requires_grad_(False)
        self.down = torch.nn.Linear(d, r, bias=False)
        self.up = torch.nn.Linear(r, d, bias=False)

    def forward(self, x: Any) -> Any:
        return self.frozen(x) + self.up(self.down(x))


@case("F32", (4.0, 6.0), "4*N_frozen + 6*N_lora")
def adapters() -> Any:
    """FLOPs a token of each frozen and each adapter's parameter, below other adapters."""
    tree = measure(
        torch.nn.Sequential(*(Adapted(32, 4) for _ in range(3))), rows(10, 32), backward=True
    ).flops.by_module
    return tree["1.frozen"] / (10 * 32 * 32), (tree["1.down"] + tree["1.up"]) / (10 * 2 * 32 * 4)


class MegatronLayer(torch.nn.Module):  # type: ignore[misc]
    """A layer as the papers of Megatron-LM count it: tokens first, fused qkv, two matrices of 4h, three dropouts."""

    def __init__(self, h: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(h) for _ in range(2))
        self.qkv, self.out = torch.nn.Linear(h, 3 * h), torch.nn.Linear(h, h)
        self.up, self.down = torch.nn.Linear(h, 4 * h), torch.nn.Linear(4 * h, h)

    def forward(self, x: Any) -> Any:
        s, b, h = x.shape
        d = h // self.heads
        parts = self.qkv(self.norms[0](x)).chunk(3, -1)
        q, k, v = (one.view(s, b, self.heads, d).view(s, b * self.heads, d).transpose(0, 1) for one in parts)
        weights = self.dropout((torch.bmm(q, k.transpose(1, 2)) * d**-0.5).softmax(-1))
        x = x + self.dropout(self.out(torch.bmm(weights, v).transpose(0, 1).reshape(s, b, h)))
        return x + self.dropout(self.down(F.gelu(self.up(self.norms[1](x)))))

    @staticmethod
    def dropout(x: Any) -> Any:
        return torch.native_dropout(x, 0.1, True)[0]


class RunAgain(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        return checkpoint(self.layer, x, use_reentrant=True)


@case("T01", ("51.06", "38.44"), "51.06", "38.44")
def training_with_recomputation() -> Any:
    """300e9 tokens: 44 layers of four forwards' work each, or three, and the head."""
    h, s, tokens = 6144, 2048, 300 * 10**9
    with torch.device("meta"):
        layer, head = MegatronLayer(h, 64), torch.nn.Linear(h, 51200, bias=False)
        x = torch.empty(s, 1, h, requires_grad=True)
    again, once = (measure(net, x, backward=True).flops.total for net in (RunAgain(layer), layer))
    ends = measure(head, x, backward=True).flops.total
    return tuple(f"{(44 * work + ends) // s * tokens / 1e21:.2f}" for work in (again, once))


# --- saved activations ---


@case("M07", 956_301_312)
def activations_of_a_layer() -> Any:
    """s b h (34 + 5 a s / h) in 16 bits, beside it the statistics of both norms: two floats a token each."""
    s, b, h, a = 2048, 1, 4096, 32
    with torch.device("meta"):
        layer = MegatronLayer(h, a).half()
    found = measure(layer, meta(s, b, h, grad=True, dtype=torch.half))
    (mean,) = {torch.native_layer_norm(meta(2, 8, dtype=torch.half), [8], None, None, 1e-5)[1].element_size()}
    return found.saved_bytes - 2 * 2 * s * b * mean


@case("M08", 2, "2*s*b*h per norm")
def activations_of_a_norm() -> Any:
    s, b, h = 16, 2, 64
    norm = torch.nn.LayerNorm(h, device="meta", dtype=torch.half)
    return measure(norm, meta(s, b, h, grad=True, dtype=torch.half)).saved.inputs / (s * b * h)


# --- whole models, as the public implementation writes them ---


def library(kind: str, auto: str = "AutoModelForCausalLM", **config: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    with warnings.catch_warnings(), torch.device("meta"):
        warnings.simplefilter("ignore")
        made = transformers.AutoConfig.for_model(kind, **config)
        return getattr(transformers, auto).from_config(made, dtype=torch.bfloat16)


def llama(d: int, f: int, layers: int, heads: int, keys: int, vocabulary: int) -> Any:
    return library(
        "llama",
        hidden_size=d,
        intermediate_size=f,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=keys,
        vocab_size=vocabulary,
        tie_word_embeddings=False,
    )


def ids(batch: int, n: int) -> Any:
    return torch.zeros(batch, n, dtype=torch.long, device="meta")


@case("F01", "35.14 TMACs = 70.27 TFLOPs", "35.14 TMACs = 70.27 TFLOPs")
def llama3_8b() -> Any:
    with torch.no_grad():
        total = measure(llama(4096, 14336, 32, 32, 8, 128256), ids(1, 4096)).flops.total
    assert total == 2 * (30_739_080_937_472 + 4_398_046_511_104)  # of the report's derivation
    return f"{total / 2e12:.2f} TMACs = {total / 1e12:.2f} TFLOPs"


@case("F14", 8_422_042_894_336)
def llava_prefill() -> Any:
    with torch.no_grad():
        return measure(llama(4096, 11008, 32, 32, 32, 32000), ids(1, 622)).flops.total


@case("F25", 41_006_200_258_560)
def llama2_7b_training() -> Any:
    return measure(llama(4096, 11008, 32, 32, 32, 32000), ids(4, 256), labels=ids(4, 256), backward=True).flops.total


@case("P08", 76_961_152)
def flan_t5_small() -> Any:
    """Its head is not the embedding; the library ties them on meta, so the head is given a matrix of its own."""
    net = library(
        "t5",
        "AutoModelForSeq2SeqLM",
        d_model=512,
        d_kv=64,
        d_ff=1024,
        num_heads=6,
        num_layers=8,
        num_decoder_layers=8,
        vocab_size=32128,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
    )
    net.lm_head.weight = torch.nn.Parameter(torch.empty_like(net.lm_head.weight))
    with torch.no_grad():
        return measure(net, input_ids=ids(1, 3), decoder_input_ids=ids(1, 2)).parameters


@case("P22", 1_315_758_080)
def opt_1_3b() -> Any:
    net = library(
        "opt",
        hidden_size=2048,
        word_embed_proj_dim=2048,
        ffn_dim=8192,
        num_hidden_layers=24,
        num_attention_heads=32,
        vocab_size=50272,
        max_position_embeddings=2048,
    )
    return sum(one.parameters for one in measure(net, ids(1, 3)).modules if not one.path)


@pytest.mark.parametrize("name", CASES)
def test_the_right_figure(name: str) -> None:
    ours, right, _ = CASES[name]
    assert ours() == right


def read() -> dict[str, dict[str, str]]:
    if not FILE.exists():
        pytest.skip(f"no {FILE.name}: the reports are not part of the project")
    return {one["id"]: one for one in json.loads(FILE.read_text())}


def test_the_figures_are_the_reports() -> None:
    reports = read()
    for name, (_, _, printed) in CASES.items():
        text = reports[name]["right"] + " " + reports[name]["derivation"]
        assert [words for words in printed if words not in text] == [], name


def test_every_report_is_run_or_out_with_a_reason() -> None:
    """All reports about work, training and memory; of those about parameters, the ones that counted a live module."""
    assert not CASES.keys() & OUT.keys()
    listed = {name for name in read() if name[0] in "FTM"} | {"P06", "P08", "P17", "P22", "P24"}
    assert listed == CASES.keys() | OUT.keys()
