"""What a release costs between data sets that are several neighbours apart: group privacy, where it
has a closed form.

If every answer is G_mu between neighbours, it is G_(k mu) between data sets that are k neighbours
apart (Dong, Roth and Su 2022, Theorem 2.14); what is epsilon-differentially private is k
epsilon-differentially private there. For other mechanisms no such form is used.

Guarantees (tests/privacy/importing/test_importing_rows.py,
tests/ledger/test_ledger_terms.py):
1. The event that is returned costs no less than the release does between data sets so far apart.
"""

from __future__ import annotations

import math

from ...core import cost
from ...core import inventory as leaves
from ...core.events import Event, Gaussian, NoOp, Pure, compose
from ...core.promise import Neighbours

LAST_DIGITS = 1e-15


def in_a_row(event: Event, neighbours: Neighbours, times: int) -> Event | None:
    """The event that bounds these, released under `neighbours`, between data sets `times`
    neighbours apart; None where there is no closed form.

    >>> in_a_row(Gaussian(4.0), "add-remove", 2).noise_multiplier <= 2.0
    True
    >>> in_a_row(Pure(0.5), "replace-one", 2)
    Pure(epsilon=1.0)
    """
    total = leaves.inventory(event, neighbours)
    if times == 1:
        return event
    exact = total.private and cost.whole_error(total, neighbours) == 0
    if exact and not total.others:
        if total.gaussian <= 0:
            return NoOp()
        return Gaussian(1.0 / times / math.sqrt(total.gaussian) * (1 - LAST_DIGITS))
    epsilon, leak = cost.addition(total, neighbours) if exact else (math.inf, 1.0)
    if leak > 0 or math.isinf(epsilon):
        return None
    return (
        compose([Pure(times * epsilon * (1.0 if times == 2 else 1 + LAST_DIGITS))])
        if epsilon > 0
        else NoOp()
    )
