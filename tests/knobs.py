"""Estimators made from knobs by their own names, wherever in the settings these are:
`made(ways.fermi, rounds=8)`."""

from __future__ import annotations

from ways import built as made

__all__ = ["made"]
