"""A setting that has a plain form too: `SetAside` of a share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import _checks
from .setting import Setting, setting

REPLACE = "replace"
IF_REFUSED = (REPLACE, "keep")
"""What becomes of a model that is not certified."""
SHARE = 0.3
"""The share that is set aside."""


@setting
class SetAside(Setting):
    """Rows set aside to certify a fitted model, and what becomes of one that is refused.

    Pass it as ``certify_share=``; a share alone is a number.

    Parameters
    ----------
    share : float, default=0.3
        Share of the rows that is set aside; each row by a coin of its own.
    if_refused : {"replace", "keep"}, default="replace"
        The final model if the bound cannot be certified of the fitted model. ``"replace"``: a
        mixture in which as many decisions as necessary are replaced by blind ones; it is certified.
        ``"keep"``: the model as it is, not certified.

    See Also
    --------
    certify : Certifies a finished model on other rows.

    Examples
    --------
    >>> SetAside(if_refused="keep")
    SetAside(if_refused='keep')
    """

    share: float = SHARE
    if_refused: str = REPLACE

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return {
            "share": share_of,
            "if_refused": lambda value: _checks.one_of(IF_REFUSED, if_refused=value),
        }


def share_of(value: object) -> float:
    """A share of rows, checked, by the name of the parameter that it is passed in."""
    remedy = (
        "Pass certify_share=0.3, for example: the part of the rows that the model does not see."
    )
    return _checks.fraction(certify_share=value, low_open=True, high_open=True, remedy=remedy)
