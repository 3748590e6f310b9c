"""What all fits share: promise, opening, plan, progress, and what is recorded and published."""
