"""The function of each kind in PyTorch: files as those of kinds, with those of recurrences in three by subject."""
