"""The compiled loops over rows, and all that calls torch: exact integer sums of bounded
contributions, no noise, no prices."""
