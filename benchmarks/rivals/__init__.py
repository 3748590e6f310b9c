"""Methods of this library and of others, one process a fit: what `benchmarks/field.py` runs."""
