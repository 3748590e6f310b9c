"""Networks, whose gradients torch finds, and rows that lie elsewhere: what few runs load."""
