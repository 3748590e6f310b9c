"""Models that others finished: whether they may be used, what their making cost, and what they
decide."""
