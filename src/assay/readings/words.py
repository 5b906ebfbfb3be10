"""What letters stand for: the words of the field, and where it has none, what a letter is a dimension of."""

from __future__ import annotations

from assay.spec import AXES, Block

SAYS = {
    **AXES,
    "L": "layers",
    "frames": "the source before it is divided into positions",
    "images": "images or sounds of a sequence",
    "sounds": "sounds of a sequence",
    "image_tokens": "tokens that an image makes",
    "keys": AXES["c"],
    "pairs": "pairs that the mask lets through",
    "chunk": "chunk",
    "m": "source tokens",
}
# letters that blocks of other parts use for other things
WITHIN = {
    "e": {"experts": AXES["e"], "router": AXES["e"]},
    "a": {"experts": AXES["a"], "router": AXES["a"]},
    "s": {"experts": "width of shared experts"},
    "P": {"embedding": AXES["P"]},
    "w": {"attention": "window"},
    "G": {"mixer": "groups of heads"},
    "J": {"mixer": "key heads"},
    "H": {"mixer": "heads of each group"},
    "Q": {"mixer": "head width"},
    "S": {"mixer": "width of the state"},
    "K": {"mixer": "columns of the convolution"},
    "I": {"mixer": "channels"},
    "R": {"mixer": "rank of the time step"},
}
# what latent attention calls its widths, by the last word of the key that says them
LATENT = {
    "kv_lora_rank": "latent of keys and values",
    "latent": "latent of keys and values",
    "q_lora_rank": "rank of queries",
    "query_rank": "rank of queries",
    "qk_nope_head_dim": "head width without positions",
    "plain": "head width without positions",
    "qk_rope_head_dim": "head width with positions",
    "rotary": "head width with positions",
}


def is_expression(key: str) -> bool:
    """True for an origin that is made of config keys, `hidden_size/num_attention_heads`, and false for a key."""
    return any(sign in key for sign in (" ", "·", "/", "⌊"))


def meaning(axis: str, block: Block) -> str:
    """What a letter of a block stands for: the field's word for it, else what it is a dimension of."""
    return word(axis, block) or dimension(axis, block)


def word(axis: str, block: Block) -> str:
    """What the field calls an axis: nothing where a block uses its letter for something of its own."""
    key = block.origins.get(axis, "")
    latent = LATENT.get(key.rpartition(".")[2])
    if latent is not None and not is_expression(key):
        return latent
    if axis.startswith("P_"):
        return f"rows of the table of {axis[2:]}s"
    parts = WITHIN.get(axis)
    if parts is None and axis in SAYS:
        return SAYS[axis]
    for op in block.ops:
        named = [*op.axes, *(a for tensor in op.inputs for a in tensor.axes), *(value for _, value in op.attrs)]
        part = op.part.partition(".")[0]
        if parts is not None and part in parts and axis in named:
            return parts[part]
    return ""


def dimension(axis: str, block: Block) -> str:
    """What an axis that the field has no word for is a dimension of: weights, else results, else what ops read."""
    weights = (tensor.name for op in block.ops for tensor in op.weights if axis in tensor.axes)
    results = (op.name for op in block.ops if axis in op.axes)
    others = (op.name for op in block.ops if any(axis in t.axes for t in op.inputs) or axis in dict(op.attrs).values())
    names = next(filter(None, (list(dict.fromkeys(some)) for some in (weights, results, others))), [])
    return (
        f"a dimension of {', '.join(names[:2])}{' …' if len(names) > 2 else ''}" if names else f"a size of {block.name}"
    )
