"""Least squares from noisy Gram matrices: by group, in a ball, in hulls of candidates."""
