"""Networks, whose gradients torch finds, and rows in shards: what few runs load."""
