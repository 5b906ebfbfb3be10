"""A strict counter for any PyTorch code: FLOPs, saved tensors and live tensors, with rules on PyTorch's own ops.

It shares nothing with the kinds of ops that descriptions are made of, so that comparing the two proves something.
"""
