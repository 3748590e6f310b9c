"""Epsilons in words: a bound rounds up, what is left rounds down, and nothing that is spent stands
above its limit.

Guarantees (tests/privacy/test_privacy_shown.py):
1. What `at_most` shows is at least the value, and what `at_least` shows at most; each but for its
   last bits.
2. Beside `promised(limit)` a value within the limit never shows a larger number.
3. One value has one rounding: three significant digits, or the limit's own where that cuts it
   short.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

DIGITS = 3
WRITTEN = 6
"""Up to so many significant digits a promise is shown as somebody wrote it; one with more was
computed, and rounds up."""
SLACK = 1e-9
"""A value may exceed its limit by this fraction: the last bits of another processor, as in
`statement.checks`."""


def at_most(value: float, *limits: float | None) -> str:
    """Three significant digits, rounded up, but no further than a limit that the value keeps.

    >>> (
    ...     at_most(0.68613),
    ...     at_most(0.99997, 1.0),
    ...     at_most(0.1234, 0.12345),
    ...     at_most(0.60000000001, 0.6),
    ... )
    ('0.687', '1', '0.12345', '0.6')
    >>> at_most(1.0004, 1.0), at_most(float("inf"))
    ('1.01', 'inf')
    """
    if math.isinf(value):
        return "inf"
    shown = _rounded(value, DIGITS, ROUND_CEILING)
    for limit in limits:
        if limit is not None and not math.isinf(limit) and value <= limit * (1 + SLACK):
            shown = min(shown, _written(limit))
    return _plain(shown)


def promised(limit: float) -> str:
    """What was promised, as it was written; three digits, rounded up, where it was computed.

    >>> promised(1.0), promised(0.12345), promised(1 / 3), promised(float("inf"))
    ('1', '0.12345', '0.334', 'inf')
    """
    return "inf" if math.isinf(limit) else _plain(_written(limit))


def at_least(value: float) -> str:
    """Three significant digits, rounded down: of what is left, and of what an audit has shown.

    >>> at_least(0.92999), at_least(2.0)
    ('0.929', '2')
    """
    return "inf" if math.isinf(value) else _plain(_rounded(value, DIGITS, ROUND_FLOOR))


def _rounded(value: float, digits: int, how: str) -> Decimal:
    # The shortest decimal that is this float: 0.1 is 0.1, and is not rounded up to 0.101.
    return Context(prec=digits, rounding=how).create_decimal(repr(float(value)))


def _written(limit: float) -> Decimal:
    exact = Decimal(repr(float(limit))).normalize()
    return (
        exact if len(exact.as_tuple().digits) <= WRITTEN else _rounded(limit, DIGITS, ROUND_CEILING)
    )


def _plain(value: Decimal) -> str:
    if not value:
        return "0"
    value = value.normalize()
    return f"{value:f}" if -5 <= value.adjusted() < 15 else f"{float(value):g}"
