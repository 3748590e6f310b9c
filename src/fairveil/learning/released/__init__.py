"""Groups released once: counts by public cluster, rates from them, and a search on public rows."""
