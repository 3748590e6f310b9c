"""A budget shared among groups (Alabi and Wiggins): gradients and Gram matrices with noise that
differs by group."""
