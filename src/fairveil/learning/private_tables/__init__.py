"""Tables of rates by group with noise: what is counted, every rate with its interval, and gaps
between groups."""
