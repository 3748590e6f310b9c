"""Released counts: their noise, its exact distributions, and the true counts that are possible
beside them."""
