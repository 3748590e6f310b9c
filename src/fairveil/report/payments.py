"""How an estimator's `tailoring_` shared a budget among groups, and what each group's people spend:
for a page.

All of it is released or public: shares are made of constants and answers, epsilons of the events.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import _checks
from .contents import GroupPayment, Payments

if TYPE_CHECKING:
    from ..estimators.tailored import TailoringReport

AT_ONE_DELTA = (
    "Each ε is at the δ of the whole fit, of people who are in that group in one of two "
    "neighbouring tables."
)
AFTER_THE_FACT = (
    "Shares depend on released answers, so a group's own ε is that of this outcome. The table "
    "shows the smaller of it and the "
    "guarantee that was fixed in advance for everybody (or for the group). The smaller one holds "
    "at twice δ."
)
ROUNDED = "Standard errors and numbers of rows are as they were released, with noise."


def payments(tailoring: object) -> Payments:
    """The `tailoring_` of a `TailoredClassifier` or a `TailoredRegressor`, for
    `Report(payments=...)`.

    >>> from fairveil.estimators.tailored import TailoringReport
    >>> nan = float("nan")
    >>> told = TailoringReport(
    ...     ("f", "m"),
    ...     "equal",
    ...     "equal shares",
    ...     (0.5, 0.5),
    ...     (nan, nan),
    ...     (70.0, 30.0),
    ...     (1.0, 1.0),
    ...     True,
    ... )
    >>> payments(told).lines[0]
    GroupPayment(group='f', share=0.5, epsilon=1.0, standard_error=None, count=70.0)
    """
    from ..estimators.tailored import TailoringReport

    remedy = (
        "Pass clf.tailoring_ of a TailoredClassifier or a TailoredRegressor; others share no "
        "budget among groups."
    )
    tailoring = _checks.instance(TailoringReport, "tailoring", tailoring, remedy, "a tailoring_")
    return _of(tailoring)


def _of(found: TailoringReport) -> Payments:
    lines = tuple(GroupPayment(**one) for one in found.table())
    measured = any(not math.isnan(number) for number in (*found.errors, *found.counts))
    conditions = (
        AT_ONE_DELTA,
        *(() if found.fixed else (AFTER_THE_FACT,)),
        *((ROUNDED,) if measured else ()),
    )
    return Payments(f"{found.rule} ({found.why})", lines, conditions)
