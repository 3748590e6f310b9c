"""Exact totals of questions: how far one row moves them, which pass adds them, and a plain
reference to compare with."""
