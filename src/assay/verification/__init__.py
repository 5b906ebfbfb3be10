"""The proof of every count: a description shrunk, run and measured, and held against what readings say of it.

    result    what was said and what was measured
    watched   a model that runs with each op as a module of its own, so that a counter tells them apart
    small     a shrunken model run forward, step by step and backward
    library   the public implementation of the same config at full size, without memory

What is said comes from readings, what is measured from the counter, which share no rule.
"""
