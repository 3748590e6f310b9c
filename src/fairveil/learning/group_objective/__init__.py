"""A function of group losses, minimised under another (Alabi): problem, plan, and the loops that
solve it."""
