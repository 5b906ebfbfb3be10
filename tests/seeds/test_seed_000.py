"""Dimensions and attention FLOPs of transformer blocks, as an article states them: each claim beside its count.

The article's example sizes are letters; here n = 5 tokens, m = 3 target tokens, d_emb = 8, d_k = 3, d_v = 6, and where
heads matter h = 2 of width 4. Every shape is read off a block in the notation, every cost is counted.
"""

from __future__ import annotations

from typing import Any

import pytest
from drawn import block, draw, shape

from assay.errors import AssayError
from assay.kinds import check
from assay.readings.count import count
from assay.readings.tensors import tensors
from assay.spec import Block

N, M, D, K, V, F, H, W = 5, 3, 8, 3, 6, 32, 2, 4

ONE_HEAD = """
attention:
  q = linear(x[n d], Wq[d k]) -> [n k]
  k = linear(x[n d], Wk[d k]) -> [n k]
  v = linear(x[n d], Wv[d v]) -> [n v]
  kc = append(k[n k]) -> [c k]
  vc = append(v[n v]) -> [c v]
attention.scores:
  s = contract(q[n k], kc[c k]) -> [n c]
  s = scale(s[n c]) -> [n c]
  s = mask(s[n c]) -> [n c]
  p = softmax(s[n c]) -> [n c]
  o = contract(p[n c], vc[c v]) -> [n v]
attention:
  y = linear(o[n v], Wo[v d]) -> [n d]
"""

MANY_HEADS = """
norm:
  z = layernorm(x[n d], G1[d], B1[d]) -> [n d]
attention:
  q = linear(z[n d], Wq[d h w]) -> [n h w]
  k = linear(z[n d], Wk[d h w]) -> [n h w]
  v = linear(z[n d], Wv[d h w]) -> [n h w]
  kc = append(k[n h w]) -> [c h w]
  vc = append(v[n h w]) -> [c h w]
attention.scores:
  s = contract(q[n h w], kc[c h w]) -> [h n c]
  s = scale(s[h n c]) -> [h n c]
  s = mask(s[h n c]) -> [h n c]
  p = softmax(s[h n c]) -> [h n c]
  o = contract(p[h n c], vc[c h w]) -> [n h w]
attention:
  y = linear(o[n h w], Wo[h w d]) -> [n d]
other:
  u = add(x[n d], y[n d]) -> [n d]
norm:
  z2 = layernorm(u[n d], G2[d], B2[d]) -> [n d]
mlp:
  a = linear(z2[n d], W1[d f], B_1[f]) -> [n f]
  a = gelu(a[n f]) -> [n f]
  y2 = linear(a[n f], W2[f d], B_2[d]) -> [n d]
other:
  x2 = add(u[n d], y2[n d]) -> [n d]
"""

# the decoder of an encoder-decoder: m target tokens look at the memory E of n source tokens
CROSS = """
norm:
  z = layernorm(y[m d], G1[d], B1[d]) -> [m d]
attention:
  q = linear(z[m d], Wq[d h w]) -> [m h w]
  k = linear(z[m d], Wk[d h w]) -> [m h w]
  v = linear(z[m d], Wv[d h w]) -> [m h w]
  kc = append(k[m h w]) -> [c h w]
  vc = append(v[m h w]) -> [c h w]
attention.scores:
  s = contract(q[m h w], kc[c h w]) -> [h m c]
  p = softmax(s[h m c]) -> [h m c]
  o = contract(p[h m c], vc[c h w]) -> [m h w]
attention:
  a = linear(o[m h w], Wo[h w d]) -> [m d]
other:
  s1 = add(y[m d], a[m d]) -> [m d]
norm:
  z2 = layernorm(s1[m d], G2[d], B2[d]) -> [m d]
attention:
  cq = linear(z2[m d], Cq[d k]) -> [m k]
  ck = linear(e[n d], Ck[d k]) -> [n k]
  cv = linear(e[n d], Cv[d v]) -> [n v]
attention.scores:
  cs = contract(cq[m k], ck[n k]) -> [m n]
  cp = softmax(cs[m n]) -> [m n]
  co = contract(cp[m n], cv[n v]) -> [m v]
attention:
  cy = linear(co[m v], Co[v d]) -> [m d]
other:
  c1 = add(s1[m d], cy[m d]) -> [m d]
norm:
  z3 = layernorm(c1[m d], G3[d], B3[d]) -> [m d]
mlp:
  f1 = linear(z3[m d], W1[d f]) -> [m f]
  f1 = relu(f1[m f]) -> [m f]
  f2 = linear(f1[m f], W2[f d]) -> [m d]
other:
  y2 = add(c1[m d], f2[m d]) -> [m d]
"""

ENCODER = MANY_HEADS.replace("append", "keys")  # the same block, nothing masked and nothing kept


def one_head(**sizes: Any) -> Block:
    return block(ONE_HEAD, **{"d": D, "k": K, "v": V, **sizes})


def many_heads(text: str = MANY_HEADS, **sizes: Any) -> Block:
    return block(text, **{"d": D, "h": H, "w": W, "f": F, **sizes})


def cross(**sizes: Any) -> Block:
    return block(CROSS, **{"d": D, "h": H, "w": W, "k": K, "v": V, "f": F, "m": M, **sizes})


def concrete(of: Block, name: str, **more: int) -> tuple[int, ...]:
    """The size of the last result of that name."""
    sizes = {**of.sizes, "n": N, "c": N, **more}
    return tuple(sizes[axis] for axis in shape(of, name))


def core(n: int, k: int, v: int, convention: str = "matmul") -> int:
    """The FLOPs between q, k, v and the heads' output of one head."""
    return int(count(one_head(k=k, v=v), tokens=n, convention=convention).flops.attention_scores)


# -- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("q", (5, 3)),  # Q = X W_Q is n x d_k
        ("k", (5, 3)),  # K = X W_K is n x d_k
        ("v", (5, 6)),  # V = X W_V is n x d_v
        ("s", (5, 5)),  # Q K^T is n x n, scaled, with the bias B n x n
        ("p", (5, 5)),  # so is A = softmax(...)
        ("o", (5, 6)),  # A V is n x d_v
        ("y", (5, 8)),  # W_O brings it back to n x d_emb
    ],
)
def test_shapes_of_one_head(name: str, printed: tuple[int, ...]) -> None:
    assert concrete(one_head(), name) == printed


def test_weights_of_one_head() -> None:
    stored = {w.name: tuple(one_head().sizes[a] for a in w.axes) for op in one_head().ops for w in op.weights}
    # W_Q, W_K are d_emb x d_k, W_V is d_emb x d_v, W_O is d_v x d_emb
    assert stored == {"Wq": (8, 3), "Wk": (8, 3), "Wv": (8, 6), "Wo": (6, 8)}


def test_query_and_key_width_must_match() -> None:
    with pytest.raises(AssayError, match=r"kc\[c v\].*was kc\[c k\]"):
        block(ONE_HEAD.replace("contract(q[n k], kc[c k])", "contract(q[n k], kc[c v])"))


def test_softmax_acts_on_each_row() -> None:
    """n rows: n divisors, n (n - 1) additions, n^2 divisions and exponentials; so 3 n^2 - n."""
    rows = block("s = softmax(x[n c]) -> [n c]", c=N)
    assert count(rows, tokens=N, convention="scalar").flops.total == 3 * N * N - N
    turned = block("s = softmax(x[n c], over=n) -> [n c]", c=7)  # columns would have other sums
    assert count(turned, tokens=N, convention="scalar").flops.total == 3 * N * 7 - 7


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("q", (5, 2, 4)),  # each head's Q_r is n x d_h
        ("k", (5, 2, 4)),
        ("v", (5, 2, 4)),
        ("o", (5, 2, 4)),  # Concat is n x h d_h = n x d_emb: the same numbers, side by side
        ("y", (5, 8)),  # the output projection keeps n x d_emb
        ("u", (5, 8)),  # U = X + MHA(LN1(X))
        ("a", (5, 32)),  # X W_1 is n x d_ff
        ("y2", (5, 8)),  # FF(X) is n x d_emb
        ("x2", (5, 8)),  # X' = U + FF(LN2(U))
        ("z", (5, 8)),  # LN(X) keeps n x d_emb
    ],
)
@pytest.mark.parametrize("text", [MANY_HEADS, ENCODER], ids=["decoder", "encoder"])
def test_shapes_of_a_pre_norm_block(name: str, printed: tuple[int, ...], text: str) -> None:
    assert concrete(many_heads(text), name) == printed


def test_head_width_is_the_model_width_over_the_heads() -> None:
    for heads, width, d in ((12, 64, 768), (32, 128, 4096), (96, 128, 12288)):
        model = draw(layers=1, d=d, heads=heads, ff=4 * d, vocab=10, gated=False)
        wo = next(e for e in tensors(model) if "Wo" in e.weights)
        assert (d // heads, wo.shape) == (width, (d, d))  # h d_h = d_emb, the width of Concat


def test_weights_of_the_feed_forward_network() -> None:
    stored = {w.name: tuple(many_heads().sizes[a] for a in w.axes) for op in many_heads().ops for w in op.weights}
    assert stored["W1"] == (8, 32)  # d_emb x d_ff
    assert stored["W2"] == (32, 8)  # d_ff x d_emb
    # a common design: d_ff is about 4 d_emb; LLaMA-7B has 2.6875, Llama 3 8B 3.5
    assert (3072 / 768, 49152 / 12288, 11008 / 4096, 14336 / 4096) == (4, 4, 2.6875, 3.5)


def test_feed_forward_network_does_not_mix_positions() -> None:
    """Its cost is n times that of one token, and no axis of keys occurs in it."""
    at = [count(many_heads(), tokens=n).flops.by_part["mlp"] for n in (1, 7)]
    assert at[1] == 7 * at[0]
    assert not any("c" in op.axes for op in many_heads().ops if op.part == "mlp")


def test_norm_parameters() -> None:
    """LayerNorm: gain and bias of d_emb each, shared by all positions. RMSNorm: a gain alone."""
    layer = block("y = layernorm(x[n d], G[d], B[d]) -> [n d]", d=D)
    rms = block("y = rmsnorm(x[n d], G[d]) -> [n d]", d=D)
    assert count(layer, tokens=1).parameters.total == 2 * D == count(layer, tokens=99).parameters.total
    assert count(rms, tokens=1).parameters.total == D
    # each layer has its own, and a pre-norm stack ends in one norm more, which the article does not mention
    model = draw(layers=3, d=D, heads=2, ff=32, vocab=10, norm="layer")
    assert count(model, tokens=1).parameters.by_part["norm"] == (2 * 3 + 1) * 2 * D


def test_layer_norm_by_its_formula() -> None:
    """Mean (d - 1 adds, 1 divide), centre d, squares d, variance (d - 1, 1), + eps, root, divide, times, plus."""
    row = block("y = layernorm(x[n d], G[d], B[d]) -> [n d]", d=D)
    by_hand = (D - 1 + 1) + D + D + (D - 1 + 1) + 1 + 1 + (1 + D) + D + D
    assert count(row, tokens=1, convention="scalar").flops.total == by_hand
    row = block("y = rmsnorm(x[n d], G[d]) -> [n d]", d=D)
    by_hand = D + (D - 1 + 1) + 1 + 1 + (1 + D) + D  # squares, mean, + eps, root, 1 / root, times, gain
    assert count(row, tokens=1, convention="scalar").flops.total == by_hand


# -- encoder-decoder -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("q", (3, 2, 4)),
        ("s1", (3, 8)),  # S = Y + MaskedMHA(LN1(Y)) is m x d_emb
        ("cq", (3, 3)),  # cross-attention: Q from the decoder, m x d_k
        ("ck", (5, 3)),  # K from the encoder memory, n x d_k
        ("cv", (5, 6)),  # V n x d_v
        ("cs", (3, 5)),  # scores m x n
        ("co", (3, 6)),  # m x d_v
        ("cy", (3, 8)),  # after its projection m x d_emb
        ("c1", (3, 8)),
        ("y2", (3, 8)),  # Y' = C + FF(LN3(C))
    ],
)
def test_shapes_of_a_decoder_block_with_cross_attention(name: str, printed: tuple[int, ...]) -> None:
    assert concrete(cross(), name) == printed


def test_a_decoder_block_has_three_sublayers() -> None:
    """With d_k = d_v = d and d_ff = 4 d: 4 d^2 + 4 d^2 + 8 d^2 weights."""
    full = cross(k=D, v=D, f=4 * D)
    norms = 3 * 2 * D
    assert count(full, tokens=N).parameters.total - norms == 16 * D * D
    assert [op.name for op in full.ops if op.kind == "add"] == ["s1", "c1", "y2"]


def test_cross_attention_costs_m_times_n() -> None:
    total = count(cross(), tokens=N).flops.attention_scores
    itself = H * 4 * M * M * W
    assert total - itself == 2 * M * N * (K + V)


def test_lengths_of_source_and_target_are_free() -> None:
    for source, target in ((5, 3), (3, 5), (1, 9)):
        assert concrete(cross(m=target), "cs", n=source) == (target, source)


def test_causal_mask_leaves_half() -> None:
    """Query i sees keys j <= i: n (n + 1) / 2 of n^2; an encoder's scores are all used."""
    dense = count(many_heads(), tokens=N)
    assert dense.flops.attention_scores == 4 * N * N * D
    visible = count(many_heads(), tokens=N, convention="causal").flops.attention_scores
    assert visible == 4 * D * N * (N + 1) // 2
    everything = count(many_heads(ENCODER), tokens=N, convention="causal").flops.attention_scores
    assert everything == 4 * N * N * D


# -- FLOPs -----------------------------------------------------------------------------------------------------------


def test_scores() -> None:
    """Leading order 2 n^2 d_k; exactly n^2 (2 d_k - 1)."""
    alone = block("s = contract(q[n k], k[c k]) -> [n c]", k=K, c=N)
    assert count(alone, tokens=N).flops.total == 2 * N * N * K == 150
    assert count(alone, tokens=N, convention="scalar").flops.total == N * N * (2 * K - 1) == 125


@pytest.mark.parametrize("kind", ["scale", "mask"])
def test_scaling_and_bias_cost_n_squared_each(kind: str) -> None:
    alone = block(f"s = {kind}(s[n c]) -> [n c]", c=N)
    assert count(alone, tokens=N, convention="scalar").flops.total == N * N


def test_values() -> None:
    """Leading order 2 n^2 d_v; exactly n d_v (2 n - 1)."""
    alone = block("o = contract(p[n c], v[c v]) -> [n v]", v=V, c=N)
    assert count(alone, tokens=N).flops.total == 2 * N * N * V == 300
    assert count(alone, tokens=N, convention="scalar").flops.total == N * V * (2 * N - 1) == 270


@pytest.mark.parametrize("n", [1, 5, 128, 4096])
@pytest.mark.parametrize(("k", "v"), [(3, 6), (64, 64), (128, 96)])
def test_core_attention(n: int, k: int, v: int) -> None:
    """2 n^2 (d_k + d_v); with every scalar operation one, the same + 4 n^2 - n (d_v + 1)."""
    assert core(n, k, v) == 2 * n * n * (k + v)
    summed = n * n * (2 * k - 1) + n * n + n * n + (3 * n * n - n) + n * v * (2 * n - 1)
    assert core(n, k, v, "scalar") == summed == 2 * n * n * (k + v) + 4 * n * n - n * (v + 1)


def test_lower_order_terms() -> None:
    """Scale, mask and softmax are 5 n^2 beside 4 n^2 d_h: 2 % at a width of 64, 1 % at 128."""
    n = 4096
    for width, percent in ((64, "1.95"), (128, "0.98")):
        products = core(n, width, width)
        beside = n * n + n * n + 3 * n * n - n
        assert f"{100 * beside / products:.2f}" == percent
    assert f"{core(64, 64, 64, 'scalar') / core(64, 64, 64):.4f}" == "1.0117"


def test_each_head_reads_the_whole_representation() -> None:
    """The projected q, k and v are divided among the heads, not the input: 3 d^2 weights, whatever h."""
    for heads in (1, 2, 4):
        split = many_heads(h=heads, w=D // heads)
        weights = {w.name: w for op in split.ops for w in op.weights}
        assert all(weights[name].axes[0] == "d" for name in ("Wq", "Wk", "Wv"))
        assert count(split, tokens=1).parameters.by_part["attention"] == 4 * D * D


def test_equal_widths_give_4_n_squared_d() -> None:
    assert core(512, 64, 64) == 4 * 512**2 * 64


@pytest.mark.parametrize("heads", [1, 2, 4, 8, 16])
def test_heads_do_not_change_the_leading_cost(heads: int) -> None:
    """h 4 n^2 d_h = 4 n^2 d_emb for any split; beside it the softmax's own cost does grow with h."""
    split = many_heads(h=heads, w=16 // heads, d=16)
    assert count(split, tokens=N).flops.attention_scores == 4 * N * N * 16
    scalar = count(split, tokens=N, convention="scalar").flops.attention_scores
    assert scalar == 4 * N * N * 16 + heads * (4 * N * N - N) - N * 16


def test_projections_are_separate() -> None:
    """Four dense projections cost 8 n d^2; the layer 8 n d^2 + 4 n^2 d."""
    flops = count(many_heads(), tokens=N).flops
    assert flops.by_part["attention"] - flops.attention_scores == 8 * N * D * D
    assert flops.by_part["attention"] == 8 * N * D * D + 4 * N * N * D
    # the first term is linear in n, the second quadratic
    twice = count(many_heads(), tokens=2 * N).flops
    assert twice.attention_scores == 4 * flops.attention_scores
    assert twice.by_part["attention"] - twice.attention_scores == 2 * (8 * N * D * D)


def test_formulas_in_closed_form() -> None:
    """The article's boxes, from the same code with symbols."""
    sympy = pytest.importorskip("sympy")
    n, k, v, d = sympy.symbols("n k v d", positive=True, integer=True)
    scores = count(one_head(d=d, k=k, v=v), tokens=n).flops.attention_scores
    assert sympy.expand(scores - 2 * n**2 * (k + v)) == 0
    exact = count(one_head(d=d, k=k, v=v), tokens=n, convention="scalar").flops.attention_scores
    assert sympy.expand(exact - (2 * n**2 * (k + v) + 4 * n**2 - n * (v + 1))) == 0
    layer = count(one_head(d=d, k=d, v=d), tokens=n).flops.total
    assert sympy.expand(layer - (8 * n * d**2 + 4 * n**2 * d)) == 0


def test_blocks_are_well_formed() -> None:
    for of in (one_head(), many_heads(), many_heads(ENCODER), cross()):
        check(of.ops)
