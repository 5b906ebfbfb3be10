"""The function of each kind in PyTorch, a file for each file of kinds."""
