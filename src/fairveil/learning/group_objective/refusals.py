"""What searches over group losses refuse: bounds on another loss, and slopes not to be trusted."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InputError
from ...fairness import BoundedGroupLoss
from ...fairness.functions import GroupFunction
from ...fairness.objectives import Constraint


def require_loss(constraint: Constraint, loss: str) -> None:
    """A bound on another loss than that which is counted is refused."""
    for notion in constraint.notions:
        if isinstance(notion, BoundedGroupLoss) and notion.loss != loss:
            remedy = f"Pass loss={notion.loss!r}, or BoundedGroupLoss(..., loss={loss!r})."
            raise InputError.expected(
                f"bounds on the {loss} loss", of="constraint", got=notion.loss, remedy=remedy
            )
        if loss != "zero_one" and not isinstance(notion, BoundedGroupLoss):
            remedy = "Rates are of decisions: leave loss='zero_one'."
            raise InputError.expected(
                f"bounds on the {loss} loss", of="constraint", got=str(notion), remedy=remedy
            )


def refuse_bent(named: Sequence[tuple[object, GroupFunction]], *, monotone: bool) -> None:
    """An error where slopes may lead anywhere: not convex, or falling where a loss grows."""
    for what, function in named:
        if not function.convex:
            remedy = (
                "Pass method='exponential', which needs no convexity, or its convex form "
                "(smooth='exponential')."
            )
            raise InputError.expected(
                "a convex function", of=str(what), got="one that is not", remedy=remedy
            )
        if monotone and not function.monotone:
            remedy = "Bound errors instead: loss='zero_one'."
            got = "one that falls where a group's loss grows"
            raise InputError.expected(
                "a function that grows with every loss", of=str(what), got=got, remedy=remedy
            )
