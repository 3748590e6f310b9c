"""Numbers in words: rates and gaps with one decimal, bounds and what is spent rounded up, what is
left rounded down.

Guarantees (tests/privacy/test_privacy_shown.py, tests/show/test_show_parts.py):
1. What `at_most` shows is at least the value, and what `at_least` shows at most; each but for its
   last bits. So it is of `bound`, `spent` and `left`.
2. Beside `promised(limit)` a value within the limit never shows a larger number.
3. One value has one rounding: three significant digits, or the limit's own where that cuts it
   short.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

FACTOR = {"percent": 100.0, "points": 100.0}
AFTER = {"percent": "%", "points": " points"}
ON_AXIS = {"percent": "percent", "points": "percentage points"}

DIGITS = 3
WRITTEN = 6
"""Up to so many significant digits a promise is shown as somebody wrote it; one with more was
computed, and rounds up."""
SLACK = 1e-9
"""A value may exceed its limit by this fraction: the last bits of another processor, as in
`statement.checks`."""
STAMP_WORDS = {
    "not-private": "NOT PRIVATE",
    "seeded-noise": "INSECURE (seeded noise)",
    "data-dependent-bounds": "BOUNDS READ FROM THE DATA",
    "user-code-trusted": "USER CODE WAS TRUSTED",
}
"""What must not be overlooked of a privacy statement."""


def number(value: float, unit: str = "plain") -> str:
    """A value without its unit: a tenth of a point where it counts in hundredths.

    >>> number(0.16304, "percent"), number(3.14159), number(-0.0001, "points")
    ('16.3', '3.14', '0.0')
    """
    if unit not in FACTOR:
        return f"{value:.3g}"
    text = f"{value * FACTOR[unit]:.1f}"
    return "0.0" if text == "-0.0" else text


def with_unit(value: float, unit: str = "plain") -> str:
    """`number` and its unit.

    >>> with_unit(0.16304, "percent"), with_unit(0.051, "points")
    ('16.3%', '5.1 points')
    """
    return number(value, unit) + AFTER.get(unit, "")


def ends(low: float, high: float, unit: str = "plain") -> str:
    """
    >>> ends(0.021, 0.034, "points")
    '2.1 to 3.4 points'
    """
    return f"{number(low, unit)} to {with_unit(high, unit)}"


def percent(fraction: float) -> str:
    """A confidence.

    >>> percent(0.95), percent(0.995)
    ('95%', '99.5%')
    """
    return f"{100 * fraction:.6g}%"


def bound(value: float, unit: str = "plain") -> str:
    """A bound, rounded up where `number` rounds to the nearest.

    >>> bound(0.07031, "points"), bound(0.07, "points"), bound(0.01234)
    ('7.1', '7.0', '0.0124')
    """
    if unit not in FACTOR:
        place = 10.0 ** (2 - math.floor(math.log10(abs(value)))) if value else 1.0
        return f"{math.ceil(value * place - 1e-9) / place:.3g}"
    return f"{math.ceil(value * FACTOR[unit] * 10 - 1e-9) / 10:.1f}"


def at_most(value: float, *limits: float | None) -> str:
    """Three significant digits, rounded up, but no further than a limit that the value keeps.

    >>> at_most(0.68613), at_most(0.99997, 1.0), at_most(0.1234, 0.12345), at_most(1.0004, 1.0)
    ('0.687', '1', '0.12345', '1.01')
    """
    if math.isinf(value):
        return "inf"
    shown = _rounded(value, ROUND_CEILING)
    kept = [limit for limit in limits if limit is not None and value <= limit * (1 + SLACK)]
    return _plain(min([shown, *(_written(limit) for limit in kept if math.isfinite(limit))]))


def promised(limit: float) -> str:
    """A promise, as it was written; one with many digits was computed, and rounds up.

    >>> promised(1.0), promised(0.12345), promised(1 / 3), promised(float("inf"))
    ('1', '0.12345', '0.334', 'inf')
    """
    return "inf" if math.isinf(limit) else _plain(_written(limit))


def at_least(value: float) -> str:
    """Three significant digits, rounded down: of what is left, and of what an audit has shown.

    >>> at_least(0.92999), at_least(2.0)
    ('0.929', '2')
    """
    return "inf" if math.isinf(value) else _plain(_rounded(value, ROUND_FLOOR))


def _rounded(value: float, how: str) -> Decimal:
    # The shortest decimal that is this float: 0.1 is 0.1, and is not rounded up to 0.101.
    return Context(prec=DIGITS, rounding=how).create_decimal(repr(float(value)))


def _written(limit: float) -> Decimal:
    exact = Decimal(repr(float(limit))).normalize()
    few = len(exact.as_tuple().digits) <= WRITTEN
    return exact if few else _rounded(limit, ROUND_CEILING)


def _plain(value: Decimal) -> str:
    if not value:
        return "0"
    value = value.normalize()
    return f"{value:f}" if -5 <= value.adjusted() < 15 else f"{float(value):g}"


def spent(share: float) -> str:
    """A share of a budget that is gone, rounded up.

    >>> spent(0.070001), spent(0.07)
    ('7.01%', '7.00%')
    """
    return f"{math.ceil(share * 10_000 - 1e-6) / 100:.2f}%"


def left(share: float) -> str:
    """A share of a budget that is left, rounded down.

    >>> left(0.92999)
    '92.99%'
    """
    return f"{math.floor(share * 10_000 + 1e-6) / 100:.2f}%"


def delta_words(delta: float) -> str:
    """
    >>> delta_words(1e-9)
    '1e-9'
    """
    return f"{delta:g}".replace("e-0", "e-")


def printable(text: object) -> str:
    """On one line, without characters that cannot be printed."""
    shown = "".join(letter if letter.isprintable() else "�" for letter in str(text))
    return shown.strip() or "(empty)"


def axis_title(name: str, unit: str) -> str:
    """The name of an axis with its unit.

    >>> axis_title("gap", "points")
    'Gap (percentage points)'
    """
    name = printable(name[:1].upper() + name[1:])
    return f"{name} ({ON_AXIS[unit]})" if unit in ON_AXIS else name


FORMATS: dict[str, Callable[[Any], str]] = {
    "": str,
    "plain": number,
    "percent": lambda value: with_unit(value, "percent"),
    "points": lambda value: with_unit(value, "points"),
    "weight": lambda value: f"{value:.4g}",
    "count": lambda value: f"{value:,.0f}",
    "decimals": lambda value: f"{value:.4f}",
    "spent": spent,
    "left": left,
}
"""How the values of a column are shown, by the name of the column's `unit`."""
