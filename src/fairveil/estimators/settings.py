"""What estimators take as settings: frozen values that check themselves, a class a method."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import wraps
from numbers import Real
from typing import Any, ClassVar, Self, TypeVar, cast, dataclass_transform

import numpy as np

from .. import _checks
from ..errors import InputError, KindError, complaint
from ..methods.allocation import LEAST_NOISE, SPENDS
from ..methods.tailoring import ITERATES, REGIONS, STEP_SIZES

# ------------------------------ setting
# What all settings are: frozen values that check themselves, written as they would be typed; and
# the mixin of the estimators that take them.
#
# A class has the knobs that its methods read and no others, so that a value which nothing reads
# cannot be passed. Knobs are given by name.
#
#     SETTINGS = {"solver": (PrimalDual, Fermi)}     # a parameter, and the classes that it takes, the usual one first
#
# A search reaches `solver__rounds`: a settings value is frozen, so it is replaced. A parameter that
# is None has the usual settings.

Kind = TypeVar("Kind", bound="type[Setting]")
Value = TypeVar("Value", bound="Setting")


class Setting:
    """A frozen value of knobs. Abstract."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        pairs = zip(values(self).values(), values(other).values(), strict=True)
        return all(
            np.array_equal(one, two)
            if isinstance(one, np.ndarray) and isinstance(two, np.ndarray)
            else one is two or bool(one == two)
            for one, two in pairs
        )

    def __hash__(self) -> int:
        return hash(repr(self))

    def __post_init__(self) -> None:
        for name, check in self._rules().items():
            if getattr(self, name) is not None:
                check(getattr(self, name))

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        """What each knob must be, where it is not None."""
        return {}

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in changed(self).items())
        return f"{type(self).__name__}({said})"


@dataclass_transform(frozen_default=True, kw_only_default=True)
def setting(cls: Kind) -> Kind:
    """A class decorator: a frozen dataclass of knobs, and an error that names a knob which is not
    there."""
    made: Any = dataclass(frozen=True, kw_only=True, repr=False, eq=False)(cls)
    plain, known = made.__init__, tuple(one.name for one in fields(made))

    @wraps(plain)
    def init(self: object, **given: object) -> None:
        for name in given:
            if name not in known:
                remedy = f"It has {', '.join(known)}."
                text = complaint(
                    expected="a knob that it reads",
                    of=made.__name__,
                    got=name,
                    remedy=remedy,
                    among=known,
                )
                raise KindError(text)
        plain(self, **given)

    made.__init__ = init
    return made  # type: ignore[no-any-return]


def knobs(kind: type[Setting]) -> dict[str, Any]:
    """Names and defaults of the knobs of a class."""
    return {one.name: one.default for one in fields(kind)}  # type: ignore[arg-type]


def values(given: Setting) -> dict[str, Any]:
    """All knobs, by name."""
    return {name: getattr(given, name) for name in knobs(type(given))}


def changed(given: Setting) -> dict[str, Any]:
    """The knobs that are not their defaults."""
    usual = knobs(type(given))
    return {name: value for name, value in values(given).items() if not same(value, usual[name])}


def same(one: object, other: object) -> bool:
    """Whether two values of a knob are the same: plain ones by their value, others by being one."""
    kinds = int | float | str | np.generic
    return one is other or (
        isinstance(one, kinds) and isinstance(other, kinds) and bool(one == other)
    )


class Settled:
    """The mixin of estimators whose parameters may be settings, before `BaseEstimator`."""

    SETTINGS: ClassVar[Mapping[str, tuple[type[Setting], ...]]] = {}
    PLAIN: ClassVar[tuple[str, ...]] = ("certify",)
    """Parameters that have a plain form, too: a share, or what is to be certified."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this estimator.

        Parameters
        ----------
        deep : bool, default=True
            Whether parameters inside of others are there too, such as ``solver__rounds``.

        Returns
        -------
        dict
            Values by name.
        """
        found: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        if deep:
            for slot in self.SETTINGS:
                inside = self._held(slot)
                if inside is not None:
                    found |= {f"{slot}__{name}": value for name, value in values(inside).items()}
        return found

    def set_params(self, **params: object) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params : dict
            Values by name. ``solver__rounds=5`` replaces the settings; where ``solver`` is None,
            the usual ones are made first.

        Returns
        -------
        self
            This estimator.

        Raises
        ------
        InputError
            If there is no such parameter.
        """
        inside: dict[str, dict[str, Any]] = {}
        for name in list(params):
            slot, _, knob = name.partition("__")
            if knob and slot in self.SETTINGS:
                inside.setdefault(slot, {})[knob] = params.pop(name)
        super().set_params(**params)  # type: ignore[misc]
        for slot, knobs_of in inside.items():
            setattr(self, slot, self._replaced(slot, knobs_of))
        return self

    # -- inside ------------------------------------------------------------------------------------

    def _usual(self, slot: str) -> type[Setting]:
        """The class of the settings that None stands for."""
        return self.SETTINGS[slot][0]

    def _setting(self, slot: str, kind: type[Value]) -> Value:
        """The settings in a parameter, checked; `kind`: what is expected here."""
        given = getattr(self, slot)
        if given is None:
            given = kind() if slot in self.PLAIN else self._usual(slot)()
        elif not isinstance(given, Setting) and slot in self.PLAIN:
            knob = "share" if isinstance(given, Real) else "notions"
            given = cast(Any, kind)(**{knob: given})
        if not isinstance(given, kind):
            known = [one.__name__ for one in self.SETTINGS[slot] if issubclass(one, kind)]
            remedy = f"Pass {slot}=fv.{known[0]}(...), or leave it out."
            got = repr(given) if isinstance(given, Setting) else type(given).__name__
            expected = f"{' or '.join(f'{one}(...)' for one in known)}"
            raise InputError.expected(expected, of=slot, got=got, remedy=remedy, quote=False)
        return given

    def _held(self, slot: str) -> Setting | None:
        """What deep parameters are of; None of a plain form, and of what is no settings value."""
        given = getattr(self, slot)
        if given is None and slot not in self.PLAIN:
            return self._usual(slot)()
        return given if isinstance(given, Setting) else None

    def _replaced(self, slot: str, given: Mapping[str, Any]) -> Setting:
        """The settings in a parameter with other knobs."""
        held: Any = self._setting(
            slot, Setting if slot not in self.PLAIN else self.SETTINGS[slot][0]
        )
        if getattr(self, slot) is None:  # the usual class, else the first that has these knobs
            kinds = (type(held), *self.SETTINGS[slot])
            held = next((kind() for kind in kinds if set(given) <= set(knobs(kind))), held)
        known = knobs(type(held))
        for name in given:
            if name not in known:
                kind = type(held).__name__
                remedy = f"{kind} has {', '.join(known)}."
                raise InputError.expected(
                    f"a knob of {kind}", of=slot, got=name, remedy=remedy, among=known
                )
        return cast(Setting, replace(held, **given))


def built(kind: Any, *given: Any, **options: Any) -> Any:
    """An estimator with these options: parameters as they are, and knobs, by their own names, in
    their settings."""
    names = inspect.signature(kind).parameters
    estimator = kind(*given, **{name: value for name, value in options.items() if name in names})
    inside = {
        placed(estimator, name): value for name, value in options.items() if name not in names
    }
    return estimator.set_params(**inside)


def placed(estimator: Settled, name: str) -> str:
    """The deep name of a knob: `solver__clip` of `clip`; any other name as it is."""
    for slot, kinds in estimator.SETTINGS.items():
        if any(name in knobs(kind) for kind in kinds):
            return f"{slot}__{name}"
    return name


def stated(estimator: Settled, knob: str) -> Any:
    """What a caller said of a knob, in settings or as a parameter; None where nobody did."""
    inside = (getattr(estimator, slot, None) for slot in estimator.SETTINGS)
    found = next(
        (one for one in inside if isinstance(one, Setting) and knob in knobs(type(one))), None
    )
    return vars(estimator).get(knob) if found is None else getattr(found, knob)


# ------------------------------ solvers
# One class a paper's system: what `FairClassifier` and `FairRegressor` take as `solver=`.

ITERATED = ("last", "average", "uniform")
GAME_ORACLES = ("responses", "regression", "exponential", "labellings", "descent")
ORACLES = ("responses", "regression", "descent")
METHODS = ("linear-oracle", "frank-wolfe", "exponential")
LOSSES = ("zero_one", "log")
MODES = ("product", "marginal")
WAYS = ("descent", "moments")


@setting
class PrimalDual(Setting):
    """Private primal-dual descent for bounds on rates of decisions (RaCO-DP).

    Pass it as ``solver=`` to `FairClassifier`; every number that is left out is the library's.
    See docs/rate_constrained.md.

    Parameters
    ----------
    rounds : int, default=None
        Number of rounds of gradient descent. None: 240 for constraints. Modules: 400, or 150 where
        sensitive features alone are protected. Without privacy a linear model is fitted until it
        converges.
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
    randomised : bool, default=False
        Whether the fit may publish a mixture of models, which decides by drawing one of them
        for each row. False: one model, which is a constant or a model without constraints where
        released numbers say that this keeps the constraints better or errs less. True: also
        mixtures of these. `baselines_` says which; it costs no further privacy. None: the model
        that was found, whatever it is.

    See Also
    --------
    Fermi : Trades the error against a penalty, where no bound is required.

    References
    ----------
    .. [1] Yaghini, Cebere, Menart, Bellet and Papernot 2025. "Private Rate-Constrained Optimization
       with Applications to Fair Learning." arXiv:2505.22703. Corrected as docs/theory/papers.md
       tells.

    Examples
    --------
    >>> PrimalDual(rounds=50, clip=1.0)
    PrimalDual(rounds=50, clip=1.0)
    """

    rounds: int | None = None
    clip: float | None = None
    temperature: float | None = None
    sampling_rate: float | None = None
    learning_rate: float | None = None
    device: str | None = None
    randomised: bool | None = False

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return _of_descent() | {
            "temperature": lambda value: _checks.positive(temperature=value),
            "randomised": lambda value: _checks.truth(randomised=value),
        }


@setting
class Fermi(Setting):
    """Private descent-ascent against a penalty on dependence (DP-FERMI).

    Minimizes the mean loss plus `strength` times the exponential Rényi mutual information of
    prediction and group. `constraints` names what is to be independent, without a bound:
    ``"demographic_parity"``, ``"equalized_odds"``, ``"equal_opportunity"``, or a notion such as
    ``EqualOpportunity(None, positive="yes")``. With ``"equalized_odds"`` every label has a matrix W
    of its own. None: demographic parity. See docs/fermi.md.

    Parameters
    ----------
    strength : float, default=1.0
        Weight of the penalty; 0 is no penalty. A gap falls about as 1 / strength once it is small.
    rounds : int, default=None
        Number of rounds of gradient descent. None: 120 for linear models. Modules: 400, or 150
        where sensitive features alone are protected.
    clip : float, default=None
        Largest Euclidean norm of one row's gradient; longer gradients are clipped. None: 2 for
        modules. For linear models it is chosen from public facts and the released number of rows.
    temperature : float, default=None
        Temperature of the soft decisions that the gradient of the penalty acts on. None: 1.
    sampling_rate : float, default=None
        Share of the rows in each secret random batch. None: as for `PrimalDual`.
    learning_rate : float, default=None
        Step size of a module's descent. None: 0.1.
    device : str, default=None
        Device on which a module is trained, such as ``"cuda"``. None: a GPU where there is one.
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
    PrimalDual : Keeps a bound on a gap.

    References
    ----------
    .. [1] Lowy, Gupta and Razaviyayn 2023. "Stochastic Differentially Private and Fair Learning."
       arXiv:2210.08781. Corrected as docs/theory/papers.md tells.

    Examples
    --------
    >>> Fermi(strength=5.0, rounds=50)
    Fermi(strength=5.0, rounds=50)
    """

    strength: float = 1.0
    rounds: int | None = None
    clip: float | None = None
    temperature: float | None = None
    sampling_rate: float | None = None
    learning_rate: float | None = None
    device: str | None = None
    iterate: str | None = None
    radius: float | None = None
    least_share: float = 0.01

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return _of_descent() | {
            "strength": lambda value: _checks.non_negative(strength=value),
            "temperature": lambda value: _checks.positive(temperature=value),
            "iterate": lambda value: _checks.one_of(ITERATED, iterate=value),
            "radius": lambda value: _checks.positive(radius=value),
            "least_share": lambda value: _checks.fraction(least_share=value, low_open=True),
        }


@setting
class OracleGame(Setting):
    """Private game between a learner and an auditor (Jagielski et al., sec. 4).

    The auditor holds the constraints, and the learner responds with cost-sensitive classifiers: the
    model is a mixture of its plays. See docs/oracle_game.md.

    Parameters
    ----------
    oracle : {"responses", "regression", "exponential", "labellings", "descent"}, default=None
        How the learner responds. ``"responses"``: searches on public rows, whose groups are
        estimated from sums released once; a linear program makes the mixture. ``"regression"``:
        linear regression of costs, from the same sums. ``"exponential"``: the exponential mechanism
        over `candidates`. ``"labellings"``: the same over labellings that cuts of public scores
        induce, for two classes. ``"descent"``: private gradient descent. None: ``"responses"``
        where features are public, ``"descent"`` where records are protected, and ``"regression"``
        for rules that read the group or for few numbers without public bounds.
    rounds : int, default=None
        Number of rounds. None: chosen from epsilon and delta, between 50 and 500; at most 80 for
        ``"responses"``, and 120 for ``"descent"`` with records protected.
    dual_bound : float, default=None
        Size of the auditor's simplex. A larger one comes closer to the bounds, for more error and
        noise. None: 2 to 5, the more the less noise public facts foretell; with `group_aware` the
        number of groups.
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
    GroupObjective : Functions of group losses, by similar oracles.

    References
    ----------
    .. [1] Jagielski, Kearns, Mao, Oprea, Roth, Sharifi-Malvajerdi and Ullman 2019. "Differentially
       Private Fair Learning." arXiv:1812.02696. Corrected as docs/theory/papers.md tells.
    .. [2] Agarwal, Beygelzimer, Dudík, Langford and Wallach 2018. "A Reductions Approach to Fair
       Classification." arXiv:1803.02453.

    Examples
    --------
    >>> OracleGame(group_aware=True)
    OracleGame(group_aware=True)
    """

    oracle: str | None = None
    rounds: int | None = None
    dual_bound: float | None = None
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


@setting
class GroupObjective(Setting):
    """Private linear oracles for a function of group losses, subject to another (Alabi).

    `objective` and `constraints` say the functions. Classifiers are a mixture of decisions, one
    decision of a list, or one linear model; regressions are least squares from Gram matrices that
    are released once. See docs/group_objective.md.

    Parameters
    ----------
    method : {"linear-oracle", "frank-wolfe", "exponential"}, default="linear-oracle"
        Of classifiers. ``"linear-oracle"`` and ``"frank-wolfe"`` (Algorithm 4) find a mixture by
        linear oracles. ``"exponential"`` chooses one decision of a finite list; it works at
        ``delta=0`` and for functions that are not convex.
    decisions : str, array or list of classifiers, default=None
        What classifiers decide among. ``"thresholds"``: one column against one number.
        ``"directions"``: 100 x 100 linear rules in a ball, of two classes, fixed without the data.
        ``"labellings"``: those that cuts of public scores induce, for two classes where sensitive
        features are protected. An array (m, 1 + width): weights of linear rules, the intercept
        first. A list: fitted classifiers, which are trusted to be made without these rows. None:
        linear rules; with ``"exponential"`` thresholds.
    loss : {"zero_one", "log"}, default="zero_one"
        Of classifiers. ``"zero_one"``: errors of decisions. ``"log"``: the log loss of
        probabilities, for one linear model and objectives that grow with every group's loss.
        ``"error"`` is then the mean loss, and ``BoundedGroupLoss(0.4, loss="log")`` a constraint.
    oracle : {"responses", "regression", "descent"}, default=None
        How a linear rule is found. ``"responses"``: by searches on public rows, whose groups are
        estimated from sums that are released once. ``"regression"``: by regression of costs, from
        such sums. ``"descent"``: by private gradient descent. None: the choice follows public facts
        (docs/group_objective.md).
    rounds : int, default=None
        Number of rounds. None: 100, or 60 of responses, or 20 where public facts foretell little
        noise; 200 for regressions, where they cost no privacy. Without noise it runs until no
        decision is better. A list of at most so many decisions is measured once instead.
    clip : float, default=None
        Largest norm of a row in released sums, where records are protected. None: 1 for each number
        and category column. With ``loss="log"`` it is of a row's gradient in the group that weighs
        most. None is then 2, and 1 where features are public. Of a regression's rows (1, x, y), in
        the units of `radius`: None is 1.5 sqrt(2 + columns), and up to 4 sqrt(2 + columns) where
        noise is small.
    radius : float, default=None
        Of regressions: the largest norm of the coefficients, intercept included, where y and dense
        numbers are in their released standard deviations. None: no limit, but 10 where losses may
        get negative weights.
    penalty : float, default=None
        G in f + G max(0, g). None: 20 for mixtures, 5 for ``"frank-wolfe"``, and that of Corollary
        4.2, or a smaller one, for ``"exponential"`` and regressions.
    alpha : float, default=None
        With ``"exponential"``: how far f and g may be above the best; not beside a `penalty`. None:
        the penalty is chosen without it.
    confidence : float, default=0.9
        With ``"exponential"``: the probability, over the noise, with which `certain_` holds.

    References
    ----------
    .. [1] Alabi 2019. "The Cost of a Reductions Approach to Private Fair Optimization." Corrected
       as docs/theory/papers.md tells.

    Examples
    --------
    >>> GroupObjective(oracle="regression", rounds=40)
    GroupObjective(oracle='regression', rounds=40)
    """

    method: str = "linear-oracle"
    decisions: Any = None
    loss: str = "zero_one"
    oracle: str | None = None
    rounds: int | None = None
    clip: float | None = None
    radius: float | None = None
    penalty: float | None = None
    alpha: float | None = None
    confidence: float = 0.9

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return {
            "method": lambda value: _checks.one_of(METHODS, method=value),
            "loss": lambda value: _checks.one_of(LOSSES, loss=value),
            "oracle": lambda value: _checks.one_of(ORACLES, oracle=value),
            "rounds": lambda value: _checks.whole(at_least=1, rounds=value),
            "clip": lambda value: _checks.positive(clip=value),
            "radius": lambda value: _checks.positive(radius=value),
            "penalty": lambda value: _checks.positive(penalty=value),
            "alpha": lambda value: _checks.positive(alpha=value),
            "confidence": lambda value: _checks.fraction(
                confidence=value, low_open=True, high_open=True
            ),
        }


@setting
class Tailored(Setting):
    """A privacy budget that is shared among groups (Alabi and Wiggins).

    Minimizes the mean over groups of the group's mean loss, subject to bounds on each if
    `constraints` has them, such as ``"largest_group_loss:0.4"``. A group with a larger share has
    less noise in its sums, and a weaker guarantee. See docs/tailoring.md.

    Parameters
    ----------
    allocation : str or mapping of groups to float, default="least-noise"
        How the budget is shared. ``"least-noise"``: the least noise in the minimized function.
        ``"standard-error"``: by the squared standard errors of a private precursor, stage one, as
        in the paper. ``"equal"``. ``"size"``: by one over released sizes. A mapping has shares of
        any scale.
    stage_one_share : float, default=0.2
        Share of the squared budget that releases of standard errors may cost.
    groups : {"product", "marginal"}, default="product"
        Groups of several sensitive columns: every combination of values, or every value of each
        column.
    spend : {"person", "total"}, default="person"
        ``"person"``: epsilon bounds the cost to any one person. ``"total"``: the groups' shares of
        the last stage add up to what is left of epsilon, as in the paper.
    min_epsilon : float or mapping of groups to float, default=None
        Smallest epsilon that a group's people spend over the whole fit. For add/remove-one. None:
        no limit.
    max_epsilon : float or mapping of groups to float, default=None
        Largest epsilon that a group's people spend over the whole fit. For add/remove-one. None: no
        limit.
    by : {"descent", "moments"}, default=None
        How a regression is found: by rounds of gradients, or from Gram matrices that are released
        once, which keep bounds on losses as well as noise allows. None: moments for bounded losses,
        else descent, which has noise of residuals and not of rows. Classifiers descend.
    rounds : int, default=None
        Number of rounds of gradients. None: 100 for linear models, or 600 without privacy. For
        modules it is 400, or 150 where sensitive features alone are protected. With ``"moments"``
        200 calls of the linear oracle, which cost no privacy.
    clip : float, default=None
        Largest norm of a row's gradient. None: 2 for modules; for linear models it is chosen from
        public facts. With ``"moments"`` it is of a row (1, x, y), as for `GroupObjective`.
    sampling_rate : float, default=None
        Share of the rows in each secret random batch. None: as for `PrimalDual`.
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

    References
    ----------
    .. [1] Alabi and Wiggins. "Privacy Budget Tailoring in Private Data Analysis." OpenReview
       SnPEhMyuYX. Corrected as docs/theory/papers.md tells.

    Examples
    --------
    >>> Tailored(rounds=50, radius=5.0)
    Tailored(rounds=50, radius=5.0)
    """

    allocation: Any = LEAST_NOISE
    stage_one_share: float = 0.2
    groups: str = "product"
    spend: str = "person"
    min_epsilon: Any = None
    max_epsilon: Any = None
    by: str | None = None
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
        return _of_descent() | {
            "stage_one_share": lambda value: _checks.fraction(
                stage_one_share=value, low_open=True, high_open=True
            ),
            "groups": lambda value: _checks.one_of(MODES, groups=value),
            "spend": lambda value: _checks.one_of(SPENDS, spend=value),
            "by": lambda value: _checks.one_of(WAYS, by=value),
            "radius": lambda value: _checks.positive(radius=value),
            "region": lambda value: _checks.one_of(REGIONS, region=value),
            "step_size": lambda value: _checks.one_of(STEP_SIZES, step_size=value),
            "iterate": lambda value: _checks.one_of(ITERATES, iterate=value),
            "penalty": lambda value: _checks.positive(penalty=value),
        }


def _of_descent() -> dict[str, Callable[[Any], object]]:
    return {
        "rounds": lambda value: _checks.whole(at_least=1, rounds=value),
        "clip": lambda value: _checks.positive(clip=value),
        "sampling_rate": lambda value: _checks.fraction(
            sampling_rate=value, low_open=True, remedy="Leave it None to ask all rows."
        ),
        "learning_rate": lambda value: _checks.positive(learning_rate=value),
    }


# ------------------------------ keeping
# A setting that has a plain form too: `SetAside` of a share.

SHARE = 0.3
"""The share that is set aside."""


@setting
class SetAside(Setting):
    """Rows set aside to certify a fitted model, and what is certified of it.

    Pass it as ``certify=``; a share alone is a number, and what is certified may be passed alone.

    Parameters
    ----------
    share : float, default=0.3
        Share of the rows that is set aside; each row by a coin of its own.
    notions : notion, str or list of these, default=None
        What is certified without being aimed at. None: the constraints that have a `confidence`.

    See Also
    --------
    certify : Certifies a finished model on other rows.

    Examples
    --------
    >>> SetAside(share=0.4)
    SetAside(share=0.4)
    """

    share: float = SHARE
    notions: object = None

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return {
            "share": share_of,
        }


def share_of(value: object) -> float:
    """A share of rows, checked, by the name of the parameter that it is passed in."""
    remedy = "Pass certify=0.3, for example: the part of the rows that the model does not see."
    return _checks.fraction(share=value, low_open=True, high_open=True, remedy=remedy)


# ------------------------------ post_processing
# Settings of post-processors: `Thresholds`, `Offsets`.

SLACKS = ("none", "theorem")
ANSWERS = ("auto", "decision_function", "predict_proba", "predict")
BASE = "Pass base_share=0.8, for example."


@setting
class Thresholds(Setting):
    """Settings of thresholds, or tables of decisions, from one private histogram.

    Pass it as ``solver=`` to `FairPostProcessor`.

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
    confidence : float, default=0.95
        Probability, over the noise, with which the bounds in `guarantee_` hold.
    predict_method : {"auto", "decision_function", "predict_proba", "predict"}, default="auto"
        Output of the base that is changed. ``"auto"``: its score, if it has one and two classes.
        ``"predict_proba"`` is read as a logit, and ``"predict"`` gives decisions.
    base_share : float, default=0.8
        Share of epsilon and delta for a base that is fitted here and reads protected data. The
        counts get the rest.

    See Also
    --------
    Offsets : For demographic parity of many classes, or on rows without labels.

    Examples
    --------
    >>> Thresholds(bins=32)
    Thresholds(bins=32)
    """

    bins: Any = None
    group_aware: bool = True
    slack: str = "none"
    confidence: float = 0.95
    predict_method: str = "auto"
    base_share: float = 0.8

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        remedy = "Pass confidence=0.95, for example."
        return {
            "slack": lambda value: _checks.one_of(SLACKS, slack=value),
            "confidence": lambda value: _checks.fraction(
                confidence=value, low_open=True, high_open=True, remedy=remedy
            ),
            "predict_method": lambda value: _checks.one_of(ANSWERS, predict_method=value),
            "base_share": _share,
        }


@setting
class Offsets(Setting):
    """Settings of offsets by group, found by noisy steps.

    Pass it as ``solver=`` to `FairPostProcessor`. They keep demographic parity of any number of
    classes.

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
    Thresholds : For other constraints.

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


# ------------------------------ kinds
# Every class of settings, by its name: in files, and at the front door.

SETTINGS: dict[str, type[Setting]] = {
    one.__name__: one
    for one in (
        *(PrimalDual, Fermi, OracleGame, GroupObjective, Tailored),
        *(Thresholds, Offsets, SetAside),
    )
}
