"""Released counts: their noise, the exact laws of it, and the true counts that are possible beside them."""
