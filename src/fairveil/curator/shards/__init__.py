"""Shards of rows at work: one that answers requests, and those that ask many."""
