"""Settings of fits whose budget is shared among groups: `GroupDescent`, `GroupLimits`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ... import _checks
from ...learning.allocation import SPENDS
from ...learning.tailoring.steps import ITERATES, REGIONS, STEP_SIZES
from .descents import Descent
from .setting import Setting, setting

OBJECTIVES = ("groups", "people")
MODES = ("product", "marginal")


@setting
class GroupDescent(Setting):
    """Settings of gradient descent whose noise differs by group.

    Pass it as ``solver=`` to `TailoredClassifier` or `TailoredRegressor`, which take a `Descent`
    too.

    Parameters
    ----------
    rounds : int, default=None
        Number of rounds of gradients. None: 100 for linear models, or 600 without privacy. For
        modules it is 400, or 150 where sensitive features alone are protected.
    clip : float, default=None
        Largest norm of a row's gradient. None: 2 for modules; for linear models it is chosen from
        public facts.
    sampling_rate : float, default=None
        Share of the rows in each secret random batch. None: all rows for linear models. For modules
        it is a twentieth, or what gives 256 rows if that is more. It is all rows where sensitive
        features alone are protected.
    learning_rate : float, default=None
        Step size. None: 0.1 over the largest weight of a row for a module; for a linear model it
        follows the noise.
    device : str, default=None
        Device on which a module is trained, such as ``"cuda"``. None: a GPU where there is one.
    radius : float, default=None
        Largest norm of the coefficients of a linear model; a regression's are of codes in [-1, 1].
        None: no limit.
    region : {"ball", "box"}, default="ball"
        Set of coefficients that descent searches; its size is `radius`.
    step_size : {"steady", "decaying"}, default="steady"
        ``"decaying"`` follows appendix E of the paper, and needs a `radius`. ``"steady"``: one step
        size for all rounds.
    iterate : {"average", "last"}, default=None
        Which model is returned: the average of the late rounds, or the last. None: the average
        for linear models, the last for modules.
    penalty : float, default=None
        G in f + G max(0, g), for a linear model with a bound on losses. None: 5.

    See Also
    --------
    Moments : Least squares from sums that are released once.

    Examples
    --------
    >>> GroupDescent(rounds=50, radius=5.0)
    GroupDescent(rounds=50, radius=5.0)
    """

    widens: ClassVar[type[Setting] | None] = Descent

    rounds: int | None = None
    clip: float | None = None
    sampling_rate: float | None = None
    learning_rate: float | None = None
    device: str | None = None
    radius: float | None = None
    region: str = "ball"
    step_size: str = "steady"
    iterate: str | None = None
    penalty: float | None = None

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return {
            "rounds": lambda value: _checks.whole(at_least=1, rounds=value),
            "clip": lambda value: _checks.positive(clip=value),
            "sampling_rate": lambda value: _checks.fraction(sampling_rate=value, low_open=True),
            "learning_rate": lambda value: _checks.positive(learning_rate=value),
            "radius": lambda value: _checks.positive(radius=value),
            "region": lambda value: _checks.one_of(REGIONS, region=value),
            "step_size": lambda value: _checks.one_of(STEP_SIZES, step_size=value),
            "iterate": lambda value: _checks.one_of(ITERATES, iterate=value),
            "penalty": lambda value: _checks.positive(penalty=value),
        }


@setting
class GroupLimits(Setting):
    """Which groups share a budget, how they weigh, and what their people may spend.

    Pass it as ``limits=`` to `TailoredClassifier` or `TailoredRegressor`.

    Parameters
    ----------
    groups : {"product", "marginal"}, default="product"
        Groups of several sensitive columns: every combination of values, or every value of each
        column.
    objective : {"groups", "people"}, default="groups"
        ``"groups"`` minimizes the mean of the groups' losses. ``"people"`` minimizes the mean loss,
        in which large groups weigh more.
    spend : {"person", "total"}, default="person"
        ``"person"``: epsilon bounds the cost to any one person. ``"total"``: the groups' shares of
        the last stage add up to what is left of epsilon, as in the paper.
    min_epsilon : float or mapping of groups to float, default=None
        Smallest epsilon that a group's people spend over the whole fit. For add/remove-one. None:
        no limit.
    max_epsilon : float or mapping of groups to float, default=None
        Largest epsilon that a group's people spend over the whole fit. For add/remove-one. None: no
        limit.

    See Also
    --------
    TailoredClassifier : Takes it, and so does `TailoredRegressor`.

    Examples
    --------
    >>> GroupLimits(objective="people", max_epsilon=2.0)
    GroupLimits(objective='people', max_epsilon=2.0)
    """

    groups: str = "product"
    objective: str = "groups"
    spend: str = "person"
    min_epsilon: Any = None
    max_epsilon: Any = None

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return {
            "groups": lambda value: _checks.one_of(MODES, groups=value),
            "objective": lambda value: _checks.one_of(OBJECTIVES, objective=value),
            "spend": lambda value: _checks.one_of(SPENDS, spend=value),
        }
