"""Settings of searches by oracles: `LinearOracle`, `Exponential`, `OracleGame`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import _checks
from .setting import Setting, setting

ORACLES = ("responses", "regression", "descent")


@setting
class LinearOracle(Setting):
    """Settings of a search for a mixture by private linear oracles.

    Pass it as ``solver=`` to `GroupObjectiveClassifier`.

    Parameters
    ----------
    oracle : {"responses", "regression", "descent"}, default=None
        How a linear rule is found. ``"responses"``: by searches on public rows, whose groups are
        estimated from sums that are released once. ``"regression"``: by regression of costs, from
        such sums. ``"descent"``: by private gradient descent. None: the choice follows public facts
        (docs/group_objective.md).
    rounds : int, default=None
        Number of rounds. None: 100, or 60 of responses, or 20 where public facts foretell little
        noise. Without noise it runs until no decision is better. A list of at most so many
        decisions is measured once instead.
    clip : float, default=None
        Largest norm of a row in released sums, where records are protected. None: 1 for each number
        and category column. With ``loss="log"`` it is of a row's gradient in the group that weighs
        most. None is then 2, and 1 where features are public.
    penalty : float, default=None
        G in f + G max(0, g). None: 20 for mixtures and 5 for ``method="frank-wolfe"``.

    See Also
    --------
    Exponential : Chooses one decision of a list.

    Examples
    --------
    >>> LinearOracle(oracle="regression", rounds=40)
    LinearOracle(oracle='regression', rounds=40)
    """

    oracle: str | None = None
    rounds: int | None = None
    clip: float | None = None
    penalty: float | None = None

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return {
            "oracle": lambda value: _checks.one_of(ORACLES, oracle=value),
            "rounds": lambda value: _checks.whole(at_least=1, rounds=value),
            "clip": lambda value: _checks.positive(clip=value),
            "penalty": lambda value: _checks.positive(penalty=value),
        }


@setting
class Exponential(Setting):
    """Settings of a private choice of one decision, by the exponential mechanism.

    Pass it as ``solver=`` to `GroupObjectiveClassifier` with ``method="exponential"``.

    Parameters
    ----------
    penalty : float, default=None
        G in f + G max(0, g). None: that of Corollary 4.2 for `alpha`, or a smaller one.
    alpha : float, default=None
        How far f and g may be above the best; not beside a `penalty`. None: the penalty is chosen
        without it.
    confidence : float, default=0.9
        Probability, over the noise, with which `certain_` holds.

    See Also
    --------
    LinearOracle : Finds a mixture.

    Examples
    --------
    >>> Exponential(alpha=0.1)
    Exponential(alpha=0.1)
    """

    penalty: float | None = None
    alpha: float | None = None
    confidence: float = 0.9

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return {
            "penalty": lambda value: _checks.positive(penalty=value),
            "alpha": lambda value: _checks.positive(alpha=value),
            "confidence": lambda value: _checks.fraction(
                confidence=value, low_open=True, high_open=True
            ),
        }


@setting
class OracleGame(Setting):
    """Settings of the private game between a learner and an auditor.

    Pass it as ``solver=`` to `OracleGameClassifier`.

    Parameters
    ----------
    candidates : {"thresholds"} or list of classifiers, default="thresholds"
        What ``oracle="exponential"`` chooses among. ``"thresholds"``: one column against one number
        between -1 and 1, as a schema codes it. A list: fitted classifiers, which are trusted to be
        made without these rows; the statement says so.
    group_aware : bool, default=False
        Whether rules read the group, at prediction too: an intercept for each group, and the
        maximally discriminatory classifiers of section 4.1 of the paper.
    clip : float, default=None
        Largest norm of a row in released sums, where records are protected. None: 1 for each number
        and category column.
    confidence : float, default=0.95
        Probability, over the noise, with which `guarantee_` holds.

    See Also
    --------
    LinearOracle : Of group objectives, with similar oracles.

    Examples
    --------
    >>> OracleGame(group_aware=True)
    OracleGame(group_aware=True)
    """

    candidates: Any = "thresholds"
    group_aware: bool = False
    clip: float | None = None
    confidence: float = 0.95

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return {
            "clip": lambda value: _checks.positive(clip=value),
            "confidence": lambda value: _checks.fraction(
                confidence=value, low_open=True, high_open=True
            ),
        }
