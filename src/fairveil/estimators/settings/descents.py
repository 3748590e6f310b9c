"""Settings of private descents: `Descent`, `PenaltyDescent`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ... import _checks
from .setting import Setting, setting

ITERATES = ("last", "average", "uniform")


@setting
class Descent(Setting):
    """Settings of private gradient descent.

    Pass it as ``solver=``; every number that is left out is the library's.

    Parameters
    ----------
    rounds : int, default=None
        Number of rounds of gradient descent. None: 240 for constraints and 120 for a penalty.
        Modules: 400, or 150 where sensitive features alone are protected. Without privacy a linear
        model is fitted until it converges.
    clip : float, default=None
        Largest Euclidean norm of one row's gradient; longer gradients are clipped. None: 2 for
        modules. For linear models it is chosen from public facts and the released number of rows.
    temperature : float, default=None
        Temperature of the soft decisions that the gradient of a constraint acts on. None: 1.
    sampling_rate : float, default=None
        Share of the rows in each secret random batch. None: all rows for linear models. For modules
        it is a twentieth, or what gives 256 rows if that is more. It is all rows where sensitive
        features alone are protected.
    learning_rate : float, default=None
        Step size of a module's descent. None: 0.1.
    device : str, default=None
        Device on which a module is trained, such as ``"cuda"``. None: a GPU where there is one.

    See Also
    --------
    PenaltyDescent : The same, against a penalty on dependence.

    Examples
    --------
    >>> Descent(rounds=50, clip=1.0)
    Descent(rounds=50, clip=1.0)
    """

    rounds: int | None = None
    clip: float | None = None
    temperature: float | None = None
    sampling_rate: float | None = None
    learning_rate: float | None = None
    device: str | None = None

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return {
            "rounds": lambda value: _checks.whole(at_least=1, rounds=value),
            "clip": lambda value: _checks.positive(clip=value),
            "temperature": lambda value: _checks.positive(temperature=value),
            "sampling_rate": _rate,
            "learning_rate": lambda value: _checks.positive(learning_rate=value),
        }


@setting
class PenaltyDescent(Descent):
    """Settings of private descent-ascent against a penalty on dependence.

    Pass it as ``solver=`` to `FermiClassifier`, which takes a `Descent` too.

    Parameters
    ----------
    iterate : {"last", "average", "uniform"}, default=None
        Which model of the descent is returned: the last one, the average of the late ones, or one
        drawn in advance. The paper's theorem is about ``"uniform"``. All cost the same. None: the
        average for linear models, the last for modules.
    radius : float, default=None
        Radius of the ball in which W is kept, a public constant. None: 2 sqrt(classes x columns).
    least_share : float, default=0.01
        Share of the rows that a group is taken to have at least, a public constant.

    See Also
    --------
    Descent : The same, for constraints.

    Examples
    --------
    >>> PenaltyDescent(rounds=50, iterate="last")
    PenaltyDescent(rounds=50, iterate='last')
    """

    widens: ClassVar[type[Setting] | None] = Descent

    iterate: str | None = None
    radius: float | None = None
    least_share: float = 0.01

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return Descent._rules(self) | {
            "iterate": lambda value: _checks.one_of(ITERATES, iterate=value),
            "radius": lambda value: _checks.positive(radius=value),
            "least_share": lambda value: _checks.fraction(least_share=value, low_open=True),
        }


def _rate(value: object) -> float:
    return _checks.fraction(
        sampling_rate=value, low_open=True, remedy="Leave it None to ask all rows."
    )
