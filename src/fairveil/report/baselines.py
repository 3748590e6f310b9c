"""What a model is held against: the best constant answer, mixing, the same fit without a
constraint.

Two sources. An estimator's `baselines_`: released values of the training rows, with their noise. A
group table: the best constant on the same rows, exactly.

A table's model and constant are compared row by row: of n rows, b are wrong by the model alone and
a by the constant alone,

    d = (b - a) / n,  with Bonett and Price's interval of a difference of paired proportions (2012),
    one row added to each.

`a` and `b` are made of the table's own rates: a constant k errs where the label is not k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from ..errors import InputError
from ..metrics import GroupTable
from ..tables.keys import shown
from .contents import Baseline, Baselines
from .rates import printable

SAME = "the same"


@dataclass(frozen=True)
class AgainstConstant:
    """A model and the best constant on the same rows: `answer`, its `error`, and the model's error
    minus that, with its interval. `verdict`: "better", "worse", "cannot be told", or "the same": it
    decides every row as the constant does."""

    answer: str
    error: float
    difference: float
    low: float
    high: float
    verdict: str


def baselines(found: object) -> Baselines:
    """The `baselines_` of a fitted estimator, for `Report(baselines=...)`.

    Nothing here is private data: every number is released, or made of released ones.
    """
    told: Any = found
    try:
        lines = tuple(
            Baseline(
                one.name,
                printable(one.remark) if one.remark else "",
                _known(one.error),
                _known(one.difference),
                _known(one.noise),
                one.verdict,
                one in told.worse,
                one.fair,
            )
            for one in told.lines
        )
        return Baselines(
            _known(told.error),
            _known(told.noise),
            told.unit,
            lines,
            told.handed_out,
            printable(told.remark) if told.remark else "",
        )
    except AttributeError:
        remedy = "Pass clf.baselines_ of a fitted estimator."
        got = type(found).__name__
        raise InputError.expected("a baselines_", of="baselines", got=got, remedy=remedy) from None


def against_constant(table: GroupTable) -> AgainstConstant | None:
    """Held against the constant that errs least on these very rows; None where rows have weights,
    or there are none."""
    everyone = table.overall
    rows = everyone.rows
    error = everyone.rates["error"].value
    if not rows or math.isnan(error) or abs(everyone.weight - rows) > 1e-9 * rows:
        return None
    best = max(range(len(table.classes)), key=lambda at: everyone.labels[at])
    right = [
        0.0 if not count else count * everyone.rates[_right(table, at)].value
        for at, count in enumerate(everyone.labels)
    ]
    alone = everyone.labels[best] - right[best]  # wrong by the model alone
    saved = sum(right) - right[best]  # wrong by the constant alone
    constant = 1.0 - everyone.labels[best] / rows
    answer = printable(table.classes[best])
    if alone + saved < 1e-9 * rows:
        return AgainstConstant(answer, constant, 0.0, 0.0, 0.0, SAME)
    low, high = _paired(alone, saved, rows, table.confidence)
    difference = (alone - saved) / rows
    verdict = "worse" if low > 0 else "better" if high < 0 else "cannot be told"
    return AgainstConstant(answer, constant, difference, low, high, verdict)


def _known(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _right(table: GroupTable, at: int) -> str:
    return f"true_positive_rate[{shown(table.classes[at])}]"


def _paired(alone: float, saved: float, rows: int, confidence: float) -> tuple[float, float]:
    """The interval of (alone - saved) / rows."""
    p, q, size = (alone + 1) / (rows + 2), (saved + 1) / (rows + 2), rows + 2
    reach = NormalDist().inv_cdf(0.5 + confidence / 2) * math.sqrt(
        max(p + q - (p - q) ** 2, 0.0) / size
    )
    return max(-1.0, p - q - reach), min(1.0, p - q + reach)
