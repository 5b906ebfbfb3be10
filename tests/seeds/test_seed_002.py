"""The quadratic cost of attention, as a chapter counts it; where it errs the right figure stands with the reason."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from drawn import block, draw

from assay.readings.count import Flops, count
from assay.spec import Block

ATTENTION = """
attention:
  q = linear(x[n d], Wq[d h k]) -> [n h k]
  k = linear(x[n d], Wk[d h k]) -> [n h k]
  v = linear(x[n d], Wv[d h v]) -> [n h v]
  kc = append(k[n h k]) -> [c h k]
  vc = append(v[n h v]) -> [c h v]
scores:
  s = contract(q[n h k], kc[c h k]) -> [h n c]
scale:
  s = scale(s[h n c]) -> [h n c]
softmax:
  p = softmax(s[h n c]) -> [h n c]
output:
  o = contract(p[h n c], vc[c h v]) -> [n h v]
attention:
  y = linear(o[n h v], Wo[h v d]) -> [n d]
"""


def attention(**sizes: Any) -> Block:
    return block(ATTENTION, **{"d": 768, "h": 1, "k": 64, "v": 64, **sizes})


def parts(n: int, convention: str = "matmul", **sizes: Any) -> dict[str, int]:
    return dict(count(attention(**sizes), tokens=n, convention=convention).flops.by_part)


def layer(d: int, n: int, convention: str = "matmul") -> Flops:
    """One GPT-2 style block: 4 d^2 of attention, 8 d^2 of MLP, heads of 64."""
    model = draw(layers=1, d=d, heads=d // 64, ff=4 * d, vocab=10, gated=False, tied=True)
    (row,) = (row for row in count(model, tokens=n, convention=convention).rows if row.layers)
    return row.flops


def shares(k: int) -> tuple[float, float]:
    """Of scores and of softmax in one head's 2 n^2 d_k + 5 n^2 + 2 n^2 d_v."""
    of = parts(1024, "stable-softmax", k=k, v=k)
    core = of["scores"] + of["softmax"] + of["output"]
    return of["scores"] / core, of["softmax"] / core


# -- the operations --------------------------------------------------------------------------------------------------


def test_attention_is_not_n_squared_d_alone() -> None:
    """O(n^2 d) a layer, says the chapter; the projections are left out: 8 n d^2 + 4 n^2 d. Equal at n = 2 d."""
    flops = layer(768, 1024)
    assert flops.by_part["attention"] - flops.attention_scores == 8 * 1024 * 768**2 == 4_831_838_208
    assert flops.attention_scores == 4 * 1024**2 * 768 == 3_221_225_472
    assert layer(768, 1536).attention_scores * 2 == layer(768, 1536).by_part["attention"]


def test_a_matrix_of_weights_per_head() -> None:
    """n x n is stored for each head, so h n^2 in a layer."""
    softmax = next(op for op in attention().ops if op.kind == "softmax")
    assert softmax.axes == ("h", "n", "c")
    assert parts(10, "scalar", h=12)["softmax"] == 12 * (3 * 10 * 10 - 10)


def test_all_pairs_comparison() -> None:
    """n^2 pairs, each token with itself too. Called irreducible; a causal mask needs n (n + 1) / 2 of them only."""
    per_pair = 2 * 64 + 2 * 64
    flops = count(attention(d=768), tokens=100).flops
    visible = count(attention(d=768), tokens=100, convention="causal").flops
    linear = flops.by_part["attention"]
    assert flops.total - linear == 100**2 * per_pair
    assert visible.total - linear == 100 * 101 // 2 * per_pair


def test_a_score_takes_d_multiplications_and_d_less_one_additions() -> None:
    of = block("s = contract(q[n k], k[c k]) -> [n c]", k=3, c=5)
    scalar = count(of, tokens=5, convention="scalar").flops.total
    assert scalar == 75 + 50  # 25 scores of 3 multiplications and 2 additions
    assert count(of, tokens=5).flops.total == 2 * 5**2 * 3  # 2 n^2 d_k: one multiply-add is two FLOPs, not one


def test_dot_products_grow_with_their_length() -> None:
    """The mean square of q.k over all vectors of +-1 is d_k, so their size grows as its root: hence 1 / sqrt(d_k)."""
    for width in (1, 3, 5):
        signs = list(product((-1, 1), repeat=width))
        squares = [sum(a * b for a, b in zip(q, k, strict=True)) ** 2 for q in signs for k in signs]
        assert sum(squares) / len(squares) == width
    # the scale is one multiplication a score
    assert parts(10, "scalar")["scale"] == 10 * 10


def test_softmax_by_its_steps() -> None:
    """Exponentiate n, sum n, divide n: 3 n - 1 a row. The chapter's 5 n is what a kernel does that first finds and
    subtracts the row's maximum (5 n - 2), a convention of its own.
    """
    n = 100
    row = block("p = softmax(s[h n c]) -> [h n c]", h=1, c=n)
    assert count(row, tokens=1, convention="scalar").flops.total == 3 * n - 1
    assert (3 * n - 1) + (n - 1) + n == 5 * n - 2
    assert parts(n, "stable-softmax")["softmax"] == 5 * n * n
    assert parts(n, "stable-softmax", h=12)["softmax"] == 12 * 5 * n * n  # per head


def test_softmax_is_far_below_ten_percent() -> None:
    """Below 10 % at d_k = 64 to 128: it is 1.9 to 1.0 %."""
    assert f"{100 * shares(64)[1]:.2f}" == "1.92"
    assert f"{100 * shares(128)[1]:.2f}" == "0.97"


def test_values_cost_what_scores_cost() -> None:
    """2 n^2 d_v: n^2 weights times a vector of d_v each. Equal to the scores' cost at d_v = d_k to leading order;
    counted to the unit the two differ by n d - n^2.
    """
    of = parts(50)
    assert of["output"] == 2 * 50**2 * 64 == of["scores"]
    exact = parts(50, "scalar")
    assert exact["output"] == 50 * 64 * (2 * 50 - 1)
    assert exact["scores"] - exact["output"] == 50 * 64 - 50**2
    square = parts(64, "scalar")
    assert square["output"] == square["scores"]  # at n = d only


@pytest.mark.parametrize(
    ("k", "half", "softmax"), [(64, "49.04", "1.92"), (128, "49.52", "0.97"), (768, "49.92", "0.16")]
)
def test_shares_of_the_chart(k: int, half: str, softmax: str) -> None:
    """The chart is read as 49.8 % each and softmax below 0.4 %. By the chapter's own formula it is this."""
    score, soft = shares(k)
    assert (f"{100 * score:.2f}", f"{100 * soft:.2f}") == (half, softmax)


def test_where_the_chart_would_be_right() -> None:
    """49.8 % and below 0.4 % together need d_k = 312 to 415, or one operation a score instead of five at d_k = 64."""

    def fits(k: int) -> bool:
        score, soft = shares(k)
        return f"{100 * score:.1f}" == "49.8" and soft < 0.004

    assert [fits(k) for k in (311, 312, 415, 416)] == [False, True, True, False]
    of = parts(1024, "scalar")
    once = of["scale"]
    core = 2 * parts(1024)["scores"] + once
    assert (f"{100 * parts(1024)['scores'] / core:.2f}", f"{100 * once / core:.3f}") == ("49.81", "0.389")


def test_total_of_one_head_and_of_a_layer() -> None:
    """2 n^2 d_k + 5 n^2 + 2 n^2 d_v for a head; a layer of h heads 4 n^2 d + 5 h n^2 (+ 8 n d^2)."""
    n = 512
    one = parts(n, "stable-softmax")
    assert one["scores"] + one["softmax"] + one["output"] == 2 * n * n * 64 + 5 * n * n + 2 * n * n * 64
    whole = layer(768, n, "stable-softmax")
    assert whole.attention_scores == 4 * n * n * 768 + 5 * 12 * n * n
    assert whole.by_part["attention"] - whole.attention_scores == 8 * n * 768**2


# -- scaling ---------------------------------------------------------------------------------------------------------


def test_doubling_the_length() -> None:
    """Four times, says the chapter: so the core. The attention layer x 3.45, the block x 2.94 at n = 4,096."""
    a, b = layer(768, 4096), layer(768, 8192)
    assert b.attention_scores == 4 * a.attention_scores
    assert f"{b.by_part['attention'] / a.by_part['attention']:.2f}" == "3.45"
    assert f"{b.total / a.total:.2f}" == "2.94"
    assert f"{layer(768, 2048).total / layer(768, 1024).total:.3f}" == "2.364"


def test_doubling_the_width() -> None:
    """Twice, says the chapter: so the core. The attention layer x 2.55, the block x 3.06 at n = 4,096."""
    a, b = layer(768, 4096), layer(1536, 4096)
    assert b.attention_scores == 2 * a.attention_scores
    assert f"{b.by_part['attention'] / a.by_part['attention']:.2f}" == "2.55"
    assert f"{b.total / a.total:.3f}" == "3.059"
    assert f"{layer(1536, 1024).total / layer(768, 1024).total:.3f}" == "3.636"


def test_n_squared_beside_d() -> None:
    """4,096^2 = 16,777,216 is 21,845 times 768, but both are factors of one product. What n^2 d stands beside is n d^2:
    72.7 % of the attention layer and 47.1 % of the block, the smaller half.
    """
    assert 4096**2 == 16_777_216
    assert 4096**2 / 768 > 20_000
    flops = layer(768, 4096)
    assert f"{100 * flops.attention_scores / flops.by_part['attention']:.2f}" == "72.73"
    assert f"{100 * flops.attention_scores / flops.total:.2f}" == "47.06"


def test_widening_is_not_less_damaging_than_lengthening() -> None:
    """Below n = 6 d (4,608 at d = 768) widening costs more; equal there, three times each."""
    at = 6 * 768
    assert layer(768, 2 * at).total == layer(1536, at).total == 3 * layer(768, at).total
    assert layer(1536, 4096).total > layer(768, 2 * 4096).total
    assert layer(1536, 5120).total < layer(768, 2 * 5120).total


def test_decoding_is_linear_in_length() -> None:
    """The ratios above are of prefill. One cached token costs 24 d^2 + 4 c d a block: never four times."""
    model = draw(layers=1, d=768, heads=12, ff=3072, vocab=10, gated=False, tied=True)
    cost = [
        next(r for r in count(model, tokens=1, past=c - 1).rows if r.layers).flops.total for c in (1024, 2048, 3072)
    ]
    assert cost[0] == 24 * 768**2 + 4 * 1024 * 768
    assert cost[2] - cost[1] == cost[1] - cost[0] == 4 * 1024 * 768


@pytest.mark.parametrize(
    ("n", "scores", "softmax", "projections", "ffn"),
    [
        (128, 25_165_824, 983_040, 603_979_776, 1_207_959_552),
        (512, 402_653_184, 15_728_640, 2_415_919_104, 4_831_838_208),
        (1024, 1_610_612_736, 62_914_560, 4_831_838_208, 9_663_676_416),
        (2048, 6_442_450_944, 251_658_240, 9_663_676_416, 19_327_352_832),
        (4096, 25_769_803_776, 1_006_632_960, 19_327_352_832, 38_654_705_664),
        (8192, 103_079_215_104, 4_026_531_840, 38_654_705_664, 77_309_411_328),
        (16384, 412_316_860_416, 16_106_127_360, 77_309_411_328, 154_618_822_656),
    ],
)
def test_announced_table_of_gpt2(n: int, scores: int, softmax: int, projections: int, ffn: int) -> None:
    """FLOPs of one layer at d = 768, 12 heads: announced at the end of the chapter, which leaves the table out."""
    of = parts(n, "stable-softmax", h=12)
    wanted = {"attention": projections, "scores": scores, "softmax": softmax, "output": scores}
    assert {part: flops for part, flops in of.items() if flops} == wanted
    assert layer(768, n).by_part["mlp"] == ffn
