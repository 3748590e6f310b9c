"""How many rows to collect before a private constrained group objective can be promised to within
alpha.

>>> plan = plan_sample_size(0.1, groups=4, candidates=100)
>>> [line["rows"] for line in plan.table() if line["theorem"] == "Theorem 5.2"]
[3154]

The theorems say what *suffices* whatever the data are; with data as they come far fewer rows mostly
do (benchmarks/results/group_objectives.md). Between the upper and the lower bounds
nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .. import _checks
from ..core.promise import NEIGHBOURS
from ..errors import InputError
from ..facts import Cells
from ..show.parts import Column, Note, Part, Shown, Table
from . import sample_bounds as bounds
from .sample_bounds import Convex, Decisions, Listed, Setting, Shattering

UPPER = "upper bound, constants ours"
LOWER = "lower bound, order only: constant 1"
ONES = (1.0, 1.0)
WHOLE = "f and g are convex"
MIXED = "mixtures of decisions are decisions"
QUANTILES = {
    Listed: "Q = ln(candidates / failure)",
    Shattering: "Q = v ln(e n / v) + ln(1 / failure)",
    Convex: "Q = the upper quantile of Gamma(dimension) at failure",
}
ASSUMED = {
    Listed: "the list does not depend on the rows",
    Shattering: "the sensitive features alone are protected, and decisions do not read them",
    Convex: "losses are convex in the decision, f and g (and w) non-decreasing; the distribution "
    "is sampled exactly",
}
BOX = (
    "decisions are a box of P sides of length 1; a row's losses have gradients of spectral norm at "
    "most 1; f and g have Lipschitz gradients; h of the losses is convex in the decision"
)
BALL = "decisions and rows fill the unit ball of K dimensions: of fewer decisions it says nothing"


@dataclass(frozen=True)
class SampleSizeLine:
    """What one theorem asks for. `rows`, `calls`: None where it is not about them. `paper`: the
    order that the paper states."""

    theorem: str
    about: str
    bound: str
    rows: int | None
    calls: int | None
    formula: str
    paper: str
    assumes: str


@dataclass(frozen=True)
class SampleSizePlan(Shown):
    """What `plan_sample_size` found, with what it was asked."""

    alpha: float
    epsilon: float
    delta: float
    failure: float
    groups: int
    rows_in: int
    neighbours: str
    lipschitz: tuple[float, float]
    smoothness: tuple[float, float]
    penalty: float
    lines: tuple[SampleSizeLine, ...]

    def table(self) -> list[dict[str, Any]]:
        """One mapping of plain values for each theorem."""
        return [asdict(line) for line in self.lines]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    def parts(self) -> Iterator[Part]:
        """What was asked, and a line a theorem."""
        yield Note(
            f"Within alpha {self.alpha:g} of the best f, g at most alpha, but for a chance of "
            f"{self.failure:g}: epsilon {self.epsilon:g}, delta {self.delta:g}, {self.neighbours}; "
            f"K = {self.groups}, each row in {self.rows_in}; Lipschitz constants "
            f"{self.lipschitz[0]:g} and {self.lipschitz[1]:g}, G = {self.penalty:.4g}."
        )
        yield Table(
            (
                Column("theorem", tuple(line.theorem for line in self.lines)),
                Column("about", tuple(line.about for line in self.lines)),
                Column("rows", tuple(line.rows for line in self.lines), "count", missing="-"),
                Column(
                    "oracle calls", tuple(line.calls for line in self.lines), "count", missing="-"
                ),
                Column("bound", tuple(line.bound for line in self.lines)),
            )
        )


def plan_sample_size(
    alpha: float,
    *,
    groups: int | Cells,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    candidates: int | None = None,
    dimension: int | None = None,
    vc: int | None = None,
    failure: float = 0.1,
    rows_in: int | None = None,
    neighbours: str = "replace-one",
    lipschitz: Sequence[float] = ONES,
    smoothness: Sequence[float] = ONES,
) -> SampleSizePlan:
    """How many rows the theorems on min f subject to g <= 0 need, and the lower bounds.

    Parameters
    ----------
    alpha : float
        How far f may be above the best feasible decision's, and g above 0.
    groups : int or Cells
        K, how many group losses there are; for frequencies of decisions cells x labels x classes.
    epsilon : float, default=1.0
        Privacy budget.
    delta : float, default=1e-6
        Slack that is added to the epsilon bound: one row changes the probability of any results by
        a factor of at most e^epsilon, plus delta. The exponential mechanism spends no delta.
    candidates : int, default=None
        Number of decisions in a finite list. None: no finite list.
    dimension : int, default=None
        Dimension P of a convex set of decisions, with losses that are convex and f and g
        non-decreasing. None: no such set.
    vc : int, default=None
        VC dimension of a class of decisions, where sensitive features alone are protected. None: no
        such class.
    failure : float, default=0.1
        Probability with which the result may be further off.
    rows_in : int, default=None
        Number of groups that each row is in. None: 1, or one a sensitive column of `Cells`. The
        paper counts K.
    neighbours : {"replace-one", "add-remove"}, default="replace-one"
        Adjacency relation. For ``"add-remove"`` n is a public scale.
    lipschitz : pair of float, default=(1.0, 1.0)
        Lipschitz constants (L2) of f and g as functions of the K losses. Rates are divided by
        shares: the gap between groups with shares p and q has sqrt(1/p^2 + 1/q^2).
    smoothness : pair of float, default=(1.0, 1.0)
        Lipschitz constants of their gradients, which Corollary B.5 alone uses.

    Returns
    -------
    SampleSizePlan
        Print it, or take `table()`.

    Notes
    -----
    Derivations are in `fairveil.study.sample_bounds`. Theorem E.6 is of the paper on tailored
    budgets, and is in the table where `dimension` is given. All others are of the paper on
    reductions.

    References
    ----------
    .. [1] Alabi 2019. "The Cost of a Reductions Approach to Private Fair Optimization."
    .. [2] Alabi and Wiggins. "Privacy Budget Tailoring in Private Data Analysis." OpenReview
           SnPEhMyuYX.
    """
    if isinstance(groups, Cells):
        rows_in = groups.per_row if rows_in is None else rows_in
        groups = groups.count
    groups = _checks.whole(at_least=1, groups=groups)
    rows_in = _checks.whole(at_least=1, rows_in=1 if rows_in is None else rows_in)
    if rows_in > groups:
        remedy = "Pass rows_in=groups if every row counts in every group."
        raise InputError.expected(
            f"at most {groups} groups", of="rows_in", got=rows_in, remedy=remedy
        )
    one = Setting(
        _checks.positive(alpha=alpha),
        _checks.positive(epsilon=epsilon),
        _checks.fraction(delta=delta, low_open=True, high_open=True),
        _checks.fraction(failure=failure, low_open=True, high_open=True),
        groups,
        rows_in,
        _checks.one_of(NEIGHBOURS, neighbours=neighbours),
        _pair("lipschitz", lipschitz),
        _pair("smoothness", smoothness),
    )
    sets: list[Decisions] = []
    if candidates is not None:
        sets.append(Listed(_checks.whole(at_least=1, candidates=candidates)))
    if dimension is not None:
        sets.append(Convex(_checks.whole(at_least=1, dimension=dimension)))
    if vc is not None:
        sets.append(Shattering(_checks.whole(at_least=1, vc=vc)))
    if vc is not None and neighbours != "replace-one":
        remedy = "No row comes or goes where sensitive features alone are protected."
        raise InputError.expected(
            "neighbours='replace-one'", of="vc", got=neighbours, remedy=remedy
        )
    if not sets:
        remedy = "Pass candidates=100 for a list, dimension=5 for a convex set, or vc=3."
        raise InputError.expected("what is chosen from", of="candidates", got=None, remedy=remedy)
    return SampleSizePlan(**asdict(one), penalty=one.penalty, lines=tuple(_lines(one, sets)))


def _lines(one: Setting, sets: Sequence[Decisions]) -> Iterator[SampleSizeLine]:
    """One a theorem, and a set of decisions that it is about."""

    def upper(theorem: str, about: str, rows: int | None, calls: int | None, *words: str) -> Any:
        return SampleSizeLine(theorem, about, UPPER, rows, calls, *words)

    for chosen in sets:
        yield upper(
            "Theorem 5.2",
            f"exponential mechanism, {chosen}",
            bounds.sampling_rows(one, chosen),
            None,
            f"n = 2 B a Q / (epsilon alpha), {QUANTILES[type(chosen)]}",
            f"K {_size(chosen)} / (epsilon alpha^2)",
            f"f and g are Lipschitz; {ASSUMED[type(chosen)]}",
        )
    yield upper(
        "Theorem 5.5",
        "exact linear oracle, no privacy",
        None,
        bounds.oracle_calls(one),
        "T = 4 B^2 d^2 / alpha^2 - 1: Frank-Wolfe on the Moreau envelope",
        "K^4 / alpha^2 (its proof: K^4 / alpha^4)",
        f"{WHOLE}; {MIXED}",
    )
    for chosen in sets:
        yield upper(
            "Theorem 5.10",
            f"one private oracle call, {chosen}",
            bounds.oracle_rows(one, chosen),
            1,
            f"n = 2 a Q / (epsilon tau) for w l within tau |w|, tau = alpha; "
            f"{QUANTILES[type(chosen)]}",
            f"sqrt(K) ({_size(chosen)} + ln(1/failure)) / (epsilon tau)",
            f"w was released before; {ASSUMED[type(chosen)]}",
        )
    for chosen in sets:
        yield upper(
            "Corollary 5.11",
            f"loop as corrected, {chosen}",
            *bounds.loop_rows(one, chosen),
            "least n over mu, T and shares of the budget: envelope + steps + oracle + noise of T "
            "releases <= alpha",
            f"K^4 {_size(chosen)} / (epsilon alpha^3) (its proof: alpha^4; its mechanism is not "
            f"private)",
            f"{WHOLE}; {MIXED}; losses are released with noise each round; {ASSUMED[type(chosen)]}",
        )
    yield upper(
        "Corollary B.5",
        "Frank-Wolfe, no privacy",
        None,
        bounds.smooth_calls(one),
        "T = 2 d^2 b / (alpha (1 - part)) - 1, b = b_f + G (b_g + L_g^2 G / (2 alpha part)), the "
        "best part of alpha",
        "K (b_f + G b_g) log T / T <= alpha (the kink of max(0, g) is left out)",
        f"{WHOLE} with Lipschitz gradients; {MIXED}",
    )
    for chosen in sets:
        if isinstance(chosen, Convex):
            yield from _descents(one, chosen, upper)
    for theorem, about, rows, formula in (
        ("Theorem 6.1", "any pure mechanism", bounds.pure_floor(one), "K / (epsilon alpha)"),
        (
            "Theorem 6.2",
            "any mechanism, delta = o(1/n)",
            bounds.approximate_floor(one),
            "sqrt(K) / (epsilon alpha)",
        ),
    ):
        yield SampleSizeLine(theorem, about, LOWER, rows, None, formula, formula, BALL)


def _descents(
    one: Setting, chosen: Convex, upper: Callable[..., SampleSizeLine]
) -> Iterator[SampleSizeLine]:
    """Theorem E.6 of the tailoring paper: its own count, and that of a mechanism which is
    private."""
    printed, paper = bounds.descent_rows(one, chosen), "max(K P / alpha^4, K P / rho), T = n"
    yield upper(
        "Theorem E.6",
        f"descent as printed, not private, {chosen}",
        printed,
        printed,
        "least n = T with 2 sqrt(P) Q (2 + ln T) / sqrt(T) <= failure alpha, Q^2 = B^2 + P a^2 "
        "(b_f + G b_g)^2 / (2 rho n)",
        paper,
        BOX,
    )
    yield upper(
        "Theorem E.6, corrected",
        f"descent as corrected, {chosen}",
        *bounds.corrected_descent_rows(one, chosen),
        "least n over T and o: 2 sqrt(P) Q (2 + ln T) / sqrt(T) <= failure (alpha - G o / 2), Q^2 "
        "= B^2 + P T (m B + b a)^2 / (2 rho n^2), b = b_f + G (b_g + L_g^2 / o), m = 2 "
        "(add-remove: 1)",
        f"{paper} (its mechanism is not private)",
        BOX,
    )


def _size(chosen: Decisions) -> str:
    return "P" if isinstance(chosen, Convex) else "VC"


def _pair(name: str, given: Any) -> tuple[float, float]:
    try:
        first, second = given
    except (TypeError, ValueError):
        remedy = f"Pass {name}=(1.0, 1.0), for example."
        raise InputError.expected(
            "two numbers, f's and g's", of=name, got=given, remedy=remedy
        ) from None
    return _checks.non_negative(**{name: first}), _checks.non_negative(**{name: second})
