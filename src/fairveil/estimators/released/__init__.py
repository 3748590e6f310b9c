"""Estimators on groups released once."""
