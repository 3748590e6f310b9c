"""Bounds that hold for people who were not in the table, from one private count and exact tails."""
