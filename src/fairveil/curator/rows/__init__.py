"""Rows as the curator holds them: checked arrays, coded blocks in a public order, batches of them,
and whose each row is."""
