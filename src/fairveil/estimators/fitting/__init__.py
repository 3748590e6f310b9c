"""What all fits share: guarantee, opening, plan, progress, and what is recorded and published."""
