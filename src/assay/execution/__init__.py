"""A description that runs: the ops of a model as PyTorch, one function a kind.

    storage   where weights lie: parameters by their published names, seen along the axes of the notation
    sites     what an op's function knows before it runs, and what it is told when it runs
    rules     the function of each kind
    module    the whole: layers in order, shapes checked against the description

Nothing here is imported before PyTorch is asked for.
"""
