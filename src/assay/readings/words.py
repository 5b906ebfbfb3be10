"""What letters stand for: the words of the field, and where it has none, what a letter is a dimension of."""

from __future__ import annotations

from assay.spec import AXES, Block, Model, Segment

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
    "F": {"mlp": AXES["f"]},
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


# letters that a pass binds, where a block has no size of its own for them; and those of a head, where there are heads
PASS = ("b", "n", "c", "t", "m", "M", "L", "frames", "images", "sounds", "keys", "pairs")
HEAD = ("r", "k", "v")


def is_expression(key: str) -> bool:
    """True for an origin that is made of config keys, `hidden_size/num_attention_heads`, and false for a key."""
    return any(sign in key for sign in (" ", "·", "/", "⌊", "⌈"))


def meaning(axis: str, block: Block) -> str:
    """What a letter of a block stands for: the field's word for it, else what it is a dimension of."""
    return word(axis, block) or dimension(axis, block)


def word(axis: str, block: Block) -> str:
    """What the field calls an axis: nothing where a block uses its letter for something of its own."""
    key = block.origins.get(axis, "")
    last = key.rpartition(".")[2]
    latent = next((said for end, said in LATENT.items() if last == end or last.endswith(f"_{end}")), None)
    if latent is not None and not is_expression(key):
        return latent
    if axis in block.sizes and (axis in PASS or (axis in HEAD and not {"h", "g"} & block.sizes.keys())):
        return ""
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


# what keys and kinds of layers are of, in the words that stand in both
TOWERS, HALVES = ("vision", "audio"), ("encoder", "decoder")


def depth_of(model: Model, segment: Segment) -> str:
    """The key that says how many layers of a kind there are, `of the 61 of KEY` where there are others, "" for none.

    A kind of layer is of the encoder, the tower or whatever else its name says: of the keys that say as many as there
    are layers there, it is the one that names the same, else the only one that names nothing else.
    """
    side = _side(segment.name)
    alike = [one for one in model.segments if one.layers and _side(one.name) == side]
    many = len({index for one in alike for index in one.layers})
    equal = [key for key, layers in model.depths if layers == many]
    keys = [key for key in equal if _side(key) == side]
    if not keys and side not in TOWERS:
        keys = [key for key in equal if not _side(key)] or (equal if len(model.depths) == 1 else [])
    if len(keys) != 1:
        return ""
    return keys[0] if segment.copies == many else f"of the {many} of {keys[0]}"


def _side(text: str) -> str:
    """Which of the sides a key or a kind of layer is of."""
    return next((side for side in (*TOWERS, *HALVES) if side in text), "")
