"""Not run yet."""
