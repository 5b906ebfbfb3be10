"""Published claims that are wrong or mislead, with the right values as they are counted when the page is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from pages import table

import assay
from assay.readings.count import Count
from assay.readings.ops import list_ops
from assay.readings.setting import Setting
from assay.spec import Model

Row = tuple[str, str, str, str]  # the claim, what is printed, what is right, why


@lru_cache
def model(name: str) -> Model:
    return assay.load(name)


def counted(name: str, **setting: Any) -> Count:
    return assay.count(model(name), **setting)


def one_layer(name: str, **setting: Any) -> Count:
    """One layer of a model whose layers are all alike."""
    return assay.count(assay.load(name, sizes={"layers": 1}), **setting)


def crossing(name: str, figure: str, way: str = "prefill", **asked: Any) -> int:
    """The length at which one side of a comparison comes to the other."""
    (found,) = [c for c in assay.crossovers(model(name), **asked) if c.comparison.name == figure and c.way == way]
    assert found.at is not None
    return found.at


def times(value: float) -> str:
    return f"{value:.2f} ×"


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %"


def block() -> Iterator[Row]:
    """Parameters and FLOPs of the decoder block."""
    m = "llama-3-8b"
    parts = counted(m, tokens=8192)
    p = parts.parameters
    decode = {t: counted(m, tokens=1, context=t) for t in (2048, 8192, 131072)}
    first, mean = (crossing(m, "scores-weights", convention=c) for c in ("matmul", "causal"))
    eighth = decode[8192].flops
    yield (
        "parameters and FLOPs of a token follow from six values of the config",
        "six",
        f"eight: Llama 3 8B has {p.total:,} parameters, with a tied head {p.total - p.head:,}",
        "it also depends on whether the MLP is gated and the head tied, and for FLOPs on the context",
    )
    yield (
        "below “a few thousand” tokens the weights dominate the cost of Llama 3 8B, beyond that the context",
        "a few thousand",
        f"{first:,} for the last token, {mean:,} for the average of a causal prompt",
        f"at 8,192 tokens scores are {percent(eighth.attention_scores, eighth.total)} of a token's FLOPs",
    )
    twice = 2 * p.total
    yield (
        "products with weights cost 2N, less the look-up, plus the head",
        f"{twice:,} for Llama 3 8B",
        f"{eighth.total - eighth.attention_scores:,}",
        "the N of an untied model already includes the head: 2(N − V d); gains of norms are in no product",
    )
    width = model(m).width
    mlp = p.by_part["mlp"] // 32
    yield (
        "a gated MLP is narrower, so that it has no more parameters than a plain one, as in Llama 3 8B",
        "8d²",
        f"{mlp:,} a layer, {mlp / (8 * width**2):.4f} times 8d²",
        "that would take f = 8d/3; Llama 3 has f = 3.5d",
    )
    scalar = {t: _small(m, t) for t in (2048, 8192, 131072)}
    yield (
        "norms, softmax, rotation and activations are a few percent of the products",
        "a few %",
        ", ".join(f"{100 * share:.2f} % at {t:,}" for t, share in scalar.items()),
        "with every operation counted (`--convention scalar`); their share of the time is larger",
    )
    scores, embedding = (percent(part, twice) for part in (_causal(m, 8192), 2 * p.embedding))
    yield (
        "at 8k tokens, three times forward exceeds 6ND because of attention",
        "7 %",
        f"attention adds {scores}, the embedding in N takes {embedding} off",
        "N includes a table that is only looked up",
    )
    yield (
        "Kaplan et al. have 2 L n d for attention, because the average query sees half the context",
        "2N + 2 L n d",
        f"their N is without embeddings: {p.non_embedding:,}, not {p.total:,}",
        "in their paper the 2 is for the multiply-add; it makes no causal argument, though the value would fit one",
    )
    yield (
        "the factor three of training assumes that masked blocks are skipped",
        "3 ×",
        "3 × either way",
        "two backward products for each forward one, masked or not; only half the context assumes skipping",
    )
    yield (
        "training keeps about S·d values for each of a dozen tensors of a block (Korthikanti et al. 2022)",
        "12 and more × S·d",
        f"S·d(34 + 5hS/d) bytes: scores pass the rest at S = 6.8k, {34 * 128 // 5} tokens for heads of 128",
        "that paper's quadratic term is left out; it is gone only where scores are recomputed",
    )
    norms = counted("gpt-3-175b", tokens=1).parameters.by_part["norm"]
    yield (
        "every norm, LayerNorm included, has d parameters",
        f"{norms // 2:,} in GPT-3",
        f"{norms:,}",
        "LayerNorm has a gain and a bias, 2d; RMSNorm has d",
    )
    v3 = counted("deepseek-v3", tokens=1).parameters
    yield (
        "E experts have E times the parameters and k times the FLOPs of one MLP",
        "E, k",
        f"DeepSeek-V3: {v3.total:,} in all, {v3.active:,} active, {v3.active - v3.embedding:,} without the input table",
        "true only if each expert is as wide as the MLP it replaces; today's are narrower",
    )


def _small(name: str, tokens: int) -> float:
    """Operations that are no product, each one, against the products, of the last of so many tokens."""
    products, small = 0, 0
    plain, scalar = (
        list_ops(model(name), Setting(tokens=1, past=tokens - 1, convention=c)) for c in ("matmul", "scalar")
    )
    for block_, all_of_it in zip(plain, scalar, strict=True):
        products += block_.flops
        rows = zip(block_.rows, all_of_it.rows, strict=True)
        small += block_.times * sum(every.flops for row, every in rows if not row.flops)
    return small / products


def _causal(name: str, tokens: int) -> float:
    """Scores of the mean token of a causal sequence."""
    return float(counted(name, tokens=tokens, convention="causal").flops.attention_scores) / tokens


def quadratic() -> Iterator[Row]:
    """The bottleneck of attention."""
    g = one_layer("gpt-2", tokens=1024).flops
    yield (
        "a layer of attention costs n²d",
        "O(n²d)",
        f"8nd² + 4n²d: {g.by_part['attention'] - g.attention_scores:,} + {g.attention_scores:,} at d = 768, n = 1,024",
        "the four projections are left out; n²d leads for n > 2d",
    )
    soft = {k: _softmax(k) for k in (64, 128, 768)}
    yield (
        "the softmax is less than 0.4 % of attention's core, QKᵀ and AV 49.8 % each",
        "< 0.4 %",
        ", ".join(f"{100 * s:.2f} % at a head width of {k}" for k, s in soft.items()),
        "5 / (4k + 5); no model has a single head of 768",
    )
    yield (
        "exponentials, sum and division take 5n operations for a row of n",
        "5n",
        "3n − 1",
        "5n − 2 if the largest element is found and subtracted, as in a stable softmax",
    )
    yield (
        "all n² scores are needed",
        "n²",
        "n(n + 1)/2 in a decoder",
        "scores above the diagonal are masked whatever they are",
    )
    yield (
        "AV makes n² multiplications of a weight with a value",
        "n²",
        "n² v",
        "each weight multiplies a vector of v elements",
    )
    yield (
        "a multiplication and an addition are two, counted as one fused operation",
        "2",
        "2 for each multiply-add",
        "one instruction, two FLOPs",
    )
    long = {"n": 4096, "d": 768}
    of = _flops(**long)
    wide, longer = (_flops(**{**long, key: 2 * value}) / of for key, value in (("d", 768), ("n", 4096)))
    yield (
        "at n = 4,096 and d = 768 the quadratic term dominates completely",
        "n²/d > 20,000",
        f"{percent(4 * long['n'] ** 2 * long['d'], of)} of the block",
        "n² and d are factors of one product; n is to be compared with 2d (attention) or 6d (the block)",
    )
    yield (
        "twice as wide is twice as slow, twice as long four times",
        "2 ×, 4 ×",
        f"{times(wide)} and {times(longer)} at n = 4,096, d = 768",
        "between 2 and 4 either way; both 3 × at n = 6d; below that, doubling the width costs more",
    )
    yield (
        "so the speed of inference follows",
        "speed",
        "that of a prefill",
        "a decode step is bound by the bytes it reads, which grow as d² + n d",
    )


def _softmax(width: int) -> float:
    """Its share of the core of attention with heads of a width."""
    text = """
    attention.scores:
    s = contract(q[n k], k[c k]) -> [n c]
    p = softmax(s[n c]) -> [n c]
    o = contract(p[n c], v[c k]) -> [n k]
    """
    core = assay.block(text)
    of = {
        c: assay.count(core, tokens=1024, context=1024, k=width, c=1024, convention=c).flops.total
        for c in ("matmul", "stable-softmax")
    }
    return float(1 - of["matmul"] / of["stable-softmax"])


def _flops(n: int, d: int) -> int:
    """One layer like GPT-2's, of another width and length."""
    sizes = {"layers": 1, "width": d, "mlp.width": 4 * d, "attention.heads": d // 64, "context": 16384}
    flops = assay.count(assay.load("gpt-2", sizes=sizes), tokens=n).flops
    return int(flops.total - flops.by_part["head"])


def crossover() -> Iterator[Row]:
    """Where attention overtakes the MLP, and memory."""
    g = "gpt-2"
    ends = {name: crossing(name, "matrix-hidden") for name in (g, "llama-7b")}
    both, alone, weights = (crossing(g, name) for name in ("attention-mlp", "scores-mlp", "scores-layers"))
    yield (
        "attention and the MLP cost the same at 4d",
        "4d",
        f"2d with the projections ({both:,} for d = 768), 4d without ({alone:,})",
        "8nd² + 4n²d = 16nd²",
    )
    yield ("24nd² and 4n²d are equal at 2d to 4d", "2d to 4d", f"6d: {weights:,} for d = 768", "24nd² = 4n²d")
    yield (
        "a FLOP is a multiply-add",
        "1",
        "2",
        "every formula of the article has 2 for each; with 1 they would all halve",
    )
    yield (
        "below 4d the MLP's hidden activations are larger than the scores",
        "4d",
        f"below f/h tokens: {ends[g]:,} in GPT-2, {ends['llama-7b']:,} in LLaMA 7B",
        "each of h heads has a matrix of its own: hn² against nf",
    )
    yield ("rotation, mask and softmax are O(n²) each", "O(n²)", "O(nd), O(hn²), O(hn²)", "heads have their own scores")
    yield ("scores of a block are n² elements", "n²", "h n²", "one matrix for each of h heads")
    yield (
        "biases and norms are Θ(Ld)",
        "Θ(Ld)",
        "parameters Θ(Ld), FLOPs Θ(Lnd)",
        "every token is normalized",
    )
    yield (
        "activations per token: nd, hn², 4nd; the cache per batch",
        "per token; per batch",
        "per sequence",
        "each expression already contains n, and none contains the batch",
    )
    plain = assay.load("llama-7b", sizes={"layers": 1, "mlp.width": 4 * 4096})
    attention = assay.count(plain, tokens=2048).flops.by_part["attention"]
    yield ("attention of a block of LLaMA 7B at 2,048", "3.43 · 10¹¹", f"{attention:,}", "truncated, not rounded")
    yield (
        "attention outgrows the MLP as n²",
        "n²",
        "their ratio grows as n: 1/2 + n/4d",
        "both have a factor n; their difference grows as n²",
    )
    cache = counted("llama-7b", tokens=1, context=128_000, cache="fp16")
    whole = cache.cache.bytes + counted("llama-7b", tokens=1, weights="fp16").weight_bytes
    yield (
        "the cache of LLaMA 7B at 128,000 tokens is larger than the 80 GB of a card",
        "67 GB > 80 GB",
        f"{cache.cache.bytes:,} B; with the fp16 weights {whole:,} B",
        "67 GB fit; cache and weights together exceed 80 GB",
    )
    score = 2 * 32 * 8192**2
    yield (
        "scores of 32 heads at 8,192 tokens in 32 blocks",
        "128 GB",
        f"{32 * score:,} B: {32 * score / 1e9:.1f} GB, or {32 * score / 2**30:.0f} GiB",
        "GiB here, GB for the caches of the same page",
    )
    new = {t: counted("llama-7b", tokens=1, context=t).flops.attention_scores for t in (2048, 4096)}
    exact = sum(counted("llama-7b", tokens=1, context=t).flops.attention_scores for t in range(2049, 4097))
    yield (
        "N tokens after a prompt cost N(24d² + 4Td) a block",
        f"attention of LLaMA 7B, 2,048 after 2,048: {2048 * new[2048] // 32:,} or {2048 * new[4096] // 32:,}",
        f"{exact // 32:,}",
        "T grows with each token: 24Nd² + 4d(N·T₀ + N(N + 1)/2)",
    )
    per = {s: counted(s, tokens=1, context=1).cache.marginal_bytes_per_token for s in ("llama-7b", "llama-13b")}
    yield (
        "the cache is quadratic in depth times width",
        "quadratic",
        f"linear: {per['llama-7b']:,} B a token of LLaMA 7B, {per['llama-13b']:,} of 13B",
        "2 L d elements a token without grouped heads: 32 × 4,096 and 40 × 5,120",
    )
    seventy = {
        "as printed": _cache_of({"attention.kv_heads": 64}),
        "as built": counted("llama-2-70b", tokens=1, context=32768, cache="fp16").cache.bytes,
    }
    yield (
        "the cache of a 70B LLaMA at 32,768 tokens follows from h = 64",
        f"{seventy['as printed']:,} B",
        f"{seventy['as built']:,} B",
        "64 are query heads; 8 key/value heads are kept",
    )


def _cache_of(sizes: dict[str, int]) -> int:
    of = assay.load("llama-2-70b", sizes=sizes)
    return int(assay.count(of, tokens=1, context=32768, cache="fp16").cache.bytes)


def papers() -> Iterator[Row]:
    """Papers, model cards, repositories."""

    def total(name: str) -> int:
        return int(counted(name, tokens=1).parameters.total)

    yield (
        "GPT-2, first release",
        "117M, 345M",
        f"{total('gpt-2'):,} and {total('gpt-2-medium'):,}",
        "corrected by its authors to 124M and 355M",
    )
    yield (
        "Llama 3.1 report, widths of the MLP",
        "6,144; 12,288; 20,480",
        f"14,336; 28,672; 53,248: {total('llama-3.1-8b'):,}, {total('llama-3.1-70b'):,}, {total('llama-3.1-405b'):,}",
        "the printed widths give half of the stated parameters",
    )
    kimi = counted("kimi-k2", tokens=1).parameters
    yield (
        "Kimi K2",
        "1.04T, 32.6B active",
        f"{kimi.total:,}; active {kimi.active:,}, without the input table {kimi.active - kimi.embedding:,}",
        "61 layers as described; 1.04T would be one layer more; no convention gives 32.6B exactly",
    )
    v3 = counted("deepseek-v3", tokens=1).parameters
    yield (
        "DeepSeek-V3, notes on its weights",
        "36.7B active, both vocabulary matrices in",
        f"{v3.active:,} with both, {v3.active - v3.embedding:,} with the head alone",
        "the stated value is that of the head alone",
    )
    qwen = counted("qwen2.5-14b", tokens=1).parameters
    yield (
        "Qwen2.5 14B, its card",
        "14.7B, 13.1B without embeddings",
        f"{qwen.total:,} and {qwen.non_embedding:,}",
        "truncated, not rounded",
    )
    large = counted("t5-large", tokens=1).parameters
    table_of = 32128 * model("t5-large").width
    yield (
        "T5 large",
        "770M",
        f"{large.total:,}; {large.total + table_of:,} with a head of its own",
        "the head is tied, and the paper counts the other sizes without it",
    )
    seventy = total("llama-2-70b")
    yield (
        "Llama 2 70B, metadata of its files",
        "68,976,653,312",
        f"{seventy:,}",
        f"{68_976_653_312 - seventy:,} elements are buffers: 64 rotary frequencies in each of 80 layers",
    )
    latent, grouped = (counted(n, tokens=1).cache.marginal_bytes_per_token for n in ("deepseek-v2", "deepseek-67b"))
    yield (
        "DeepSeek-V2, its cache against DeepSeek 67B's",
        "93.3 % less",
        f"{100 * (1 - latent / grouped):.1f} % less: {latent:,} for {grouped:,} B a token in 16 bits",
        f"{100 * (1 - latent * 6 / 16 / grouped):.1f} % compares 6-bit elements with 16-bit ones",
    )
    whisper = [total(f"whisper-{size}") for size in ("tiny", "base", "large-v3-turbo")]
    yield (
        "Whisper tiny, base, turbo",
        "39M, 74M, 809M or 798M",
        ", ".join(f"{n:,}" for n in whisper),
        "two sources differ about turbo; rounding explains neither tiny nor base",
    )
    kv405 = counted("llama-3.1-405b", tokens=1, context=128_000, cache="fp16").cache
    yield (
        "a table of caches: Llama 3.1 405B at 128,000 tokens, fp16",
        "123.05 “GB”",
        f"{kv405.bytes:,} B = {kv405.bytes / 2**30:.2f} GiB; {kv405.marginal_bytes_per_token:,} B a token",
        "16 key/value heads for the 8 of the released config; GiB called GB",
    )


ARTICLES: dict[str, Callable[[], Iterator[Row]]] = {
    "“The transformer block” (Sonawane)": block,
    "“Quadratic attention bottleneck: compute analysis”": quadratic,
    "“Compute and memory: O(T²d) attention, O(Td²) FFN”": crossover,
    "Papers, model cards, repositories": papers,
}


def errata() -> str:
    """A table for each source."""
    head = ("claim", "printed", "right", "because")
    return "\n\n".join(f"## {title}\n\n{table(head, rows())}" for title, rows in ARTICLES.items())
