"""Settings of post-processors: `Thresholds`, `Offsets`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import _checks
from .setting import Setting, setting

SLACKS = ("none", "theorem")
BASE = "Pass base_share=0.8, for example."


@setting
class Thresholds(Setting):
    """Settings of thresholds, or tables of decisions, from one private histogram.

    Pass it as ``solver=`` to `OddsPostProcessor`.

    Parameters
    ----------
    bins : int or array of float, default=None
        Bins of the score: how many, or their rising edges. Both are public and fixed in advance.
        None: a number that follows the noise, the groups and, where it is public, the number of
        rows.
    group_aware : bool, default=True
        Whether each group has its own threshold or table, which reads the group at prediction.
        False: one for everybody.
    slack : {"none", "theorem"}, default="none"
        ``"none"``: constraints hold at the released counts. ``"theorem"``: bounds are loosened by
        the size of the noise, so that the best table without noise stays feasible. This is Theorem
        3.1 of the paper, and `max_gap` is then exceeded.
    base_share : float, default=0.8
        Share of epsilon and delta for a base that is fitted here and reads protected data. The
        counts get the rest.

    See Also
    --------
    Offsets : Of `ParityPostProcessor`.

    Examples
    --------
    >>> Thresholds(bins=32)
    Thresholds(bins=32)
    """

    bins: Any = None
    group_aware: bool = True
    slack: str = "none"
    base_share: float = 0.8

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return {"slack": lambda value: _checks.one_of(SLACKS, slack=value), "base_share": _share}


@setting
class Offsets(Setting):
    """Settings of offsets by group, found by noisy steps.

    Pass it as ``solver=`` to `ParityPostProcessor`.

    Parameters
    ----------
    rounds : int, default=40
        Number of noisy steps.
    temperature : float, default=0.02
        Distance between two probabilities within which the decision is drawn at random. Smaller is
        nearer to the largest one.
    base_share : float, default=0.8
        Share of epsilon and delta for a base that is fitted here and reads protected data. The
        counts get the rest.

    See Also
    --------
    Thresholds : Of `OddsPostProcessor`.

    Examples
    --------
    >>> Offsets(rounds=20)
    Offsets(rounds=20)
    """

    rounds: int = 40
    temperature: float = 0.02
    base_share: float = 0.8

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return {
            "rounds": lambda value: _checks.whole(
                at_least=2, rounds=value, remedy="Pass rounds=40, for example."
            ),
            "temperature": lambda value: _checks.positive(temperature=value),
            "base_share": _share,
        }


def _share(value: object) -> float:
    return _checks.fraction(base_share=value, low_open=True, high_open=True, remedy=BASE)
