"""A user's table as coded rows: columns, codes, targets, groups, and what is refused before any
release."""
