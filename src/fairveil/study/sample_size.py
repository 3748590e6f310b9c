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

from collections.abc import Iterator, Sequence
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
WHOLE = "f and g are convex"
ONES = (1.0, 1.0)


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
    one = _setting(
        alpha, groups, epsilon, delta, failure, rows_in, neighbours, lipschitz, smoothness
    )
    sets = _decisions(candidates, dimension, vc, neighbours)
    lines = [
        *(_sampling(one, decisions) for decisions in sets),
        _calls(one),
        *(_oracle(one, decisions) for decisions in sets),
        *(_loop(one, decisions) for decisions in sets),
        _smooth(one),
        *(
            line
            for decisions in sets
            if isinstance(decisions, Convex)
            for line in _descents(one, decisions)
        ),
        *_floors(one),
    ]
    return SampleSizePlan(**asdict(one), penalty=one.penalty, lines=tuple(lines))


def _sampling(one: Setting, decisions: Decisions) -> SampleSizeLine:
    formula = f"n = 2 B a Q / (epsilon alpha), {QUANTILES[type(decisions)]}"
    paper = (
        "K P / (epsilon alpha^2)" if isinstance(decisions, Convex) else "K VC / (epsilon alpha^2)"
    )
    about, rows = f"exponential mechanism, {decisions}", bounds.sampling_rows(one, decisions)
    return SampleSizeLine(
        "Theorem 5.2",
        about,
        UPPER,
        rows,
        None,
        formula,
        paper,
        _assumes(decisions, "f and g are Lipschitz"),
    )


def _calls(one: Setting) -> SampleSizeLine:
    formula = "T = 4 B^2 d^2 / alpha^2 - 1: Frank-Wolfe on the Moreau envelope"
    paper = "K^4 / alpha^2 (its proof: K^4 / alpha^4)"
    about, assumes = (
        "exact linear oracle, no privacy",
        f"{WHOLE}; mixtures of decisions are decisions",
    )
    return SampleSizeLine(
        "Theorem 5.5", about, UPPER, None, bounds.oracle_calls(one), formula, paper, assumes
    )


def _oracle(one: Setting, decisions: Decisions) -> SampleSizeLine:
    formula = (
        f"n = 2 a Q / (epsilon tau) for w l within tau |w|, tau = alpha; "
        f"{QUANTILES[type(decisions)]}"
    )
    paper = (
        f"sqrt(K) ({'P' if isinstance(decisions, Convex) else 'VC'} + ln(1/failure)) / (epsilon "
        f"tau)"
    )
    about, rows = f"one private oracle call, {decisions}", bounds.oracle_rows(one, decisions)
    return SampleSizeLine(
        "Theorem 5.10",
        about,
        UPPER,
        rows,
        1,
        formula,
        paper,
        _assumes(decisions, "w was released before"),
    )


def _loop(one: Setting, decisions: Decisions) -> SampleSizeLine:
    rows, rounds = bounds.loop_rows(one, decisions)
    formula = (
        "least n over mu, T and shares of the budget: envelope + steps + oracle + noise of T "
        "releases <= alpha"
    )
    size = "P" if isinstance(decisions, Convex) else "VC"
    paper = f"K^4 {size} / (epsilon alpha^3) (its proof: alpha^4; its mechanism is not private)"
    assumes = _assumes(
        decisions,
        f"{WHOLE}; mixtures of decisions are decisions; losses are released with noise each round",
    )
    return SampleSizeLine(
        "Corollary 5.11",
        f"loop as corrected, {decisions}",
        UPPER,
        rows,
        rounds,
        formula,
        paper,
        assumes,
    )


def _smooth(one: Setting) -> SampleSizeLine:
    formula = (
        "T = 2 d^2 b / (alpha (1 - part)) - 1, b = b_f + G (b_g + L_g^2 G / (2 alpha part)), the "
        "best part of alpha"
    )
    assumes = f"{WHOLE} with Lipschitz gradients; mixtures of decisions are decisions"
    calls = bounds.smooth_calls(one)
    about, paper = (
        "Frank-Wolfe, no privacy",
        "K (b_f + G b_g) log T / T <= alpha (the kink of max(0, g) is left out)",
    )
    return SampleSizeLine("Corollary B.5", about, UPPER, None, calls, formula, paper, assumes)


def _descents(one: Setting, decisions: Convex) -> tuple[SampleSizeLine, SampleSizeLine]:
    """Theorem E.6 of the tailoring paper: its own count, and that of a mechanism which is
    private."""
    printed, (rows, rounds) = (
        bounds.descent_rows(one, decisions),
        bounds.corrected_descent_rows(one, decisions),
    )
    formulas = (
        "least n = T with 2 sqrt(P) Q (2 + ln T) / sqrt(T) <= failure alpha, Q^2 = B^2 + P a^2 "
        "(b_f + G b_g)^2 / (2 rho n)",
        "least n over T and o: 2 sqrt(P) Q (2 + ln T) / sqrt(T) <= failure (alpha - G o / 2), Q^2 "
        "= B^2 + P T (m B + b a)^2 / "
        "(2 rho n^2), b = b_f + G (b_g + L_g^2 / o), m = 2 (add-remove: 1)",
    )
    paper = "max(K P / alpha^4, K P / rho), T = n"
    box = (
        "decisions are a box of P sides of length 1; a row's losses have gradients of spectral "
        "norm at most 1"
    )
    whole = f"{box}; f and g have Lipschitz gradients; h of the losses is convex in the decision"
    about = f"descent as printed, not private, {decisions}", f"descent as corrected, {decisions}"
    return (
        SampleSizeLine("Theorem E.6", about[0], UPPER, printed, printed, formulas[0], paper, whole),
        SampleSizeLine(
            "Theorem E.6, corrected",
            about[1],
            UPPER,
            rows,
            rounds,
            formulas[1],
            f"{paper} (its mechanism is not private)",
            whole,
        ),
    )


def _floors(one: Setting) -> tuple[SampleSizeLine, SampleSizeLine]:
    assumes = (
        "decisions and rows fill the unit ball of K dimensions: of fewer decisions it says nothing"
    )
    pure, approximate = bounds.pure_floor(one), bounds.approximate_floor(one)
    formulas = "K / (epsilon alpha)", "sqrt(K) / (epsilon alpha)"
    about = "any pure mechanism", "any mechanism, delta = o(1/n)"
    return (
        SampleSizeLine(
            "Theorem 6.1", about[0], LOWER, pure, None, formulas[0], formulas[0], assumes
        ),
        SampleSizeLine(
            "Theorem 6.2", about[1], LOWER, approximate, None, formulas[1], formulas[1], assumes
        ),
    )


QUANTILES = {
    Listed: "Q = ln(candidates / failure)",
    Shattering: "Q = v ln(e n / v) + ln(1 / failure)",
    Convex: "Q = the upper quantile of Gamma(dimension) at failure",
}


def _assumes(decisions: Decisions, more: str) -> str:
    if isinstance(decisions, Convex):
        return (
            f"{more}; losses are convex in the decision, f and g (and w) non-decreasing; the "
            f"distribution is sampled exactly"
        )
    if isinstance(decisions, Shattering):
        return f"{more}; the sensitive features alone are protected, and decisions do not read them"
    return f"{more}; the list does not depend on the rows"


def _setting(
    alpha: object,
    groups: Any,
    epsilon: object,
    delta: object,
    failure: object,
    rows_in: object,
    neighbours: object,
    lipschitz: object,
    smoothness: object,
) -> Setting:
    if isinstance(groups, Cells):
        groups, rows_in = groups.count, groups.per_row if rows_in is None else rows_in
    groups = _checks.whole(at_least=1, groups=groups)
    rows_in = _checks.whole(at_least=1, rows_in=1 if rows_in is None else rows_in)
    if rows_in > groups:
        remedy = "Pass rows_in=groups if every row counts in every group."
        raise InputError.expected(
            f"at most {groups} groups", of="rows_in", got=rows_in, remedy=remedy
        )
    return Setting(
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


def _decisions(
    candidates: object, dimension: object, vc: object, neighbours: str
) -> list[Decisions]:
    sets: list[Decisions] = []
    if candidates is not None:
        sets.append(Listed(_checks.whole(at_least=1, candidates=candidates)))
    if dimension is not None:
        sets.append(Convex(_checks.whole(at_least=1, dimension=dimension)))
    if vc is not None:
        sets.append(Shattering(_checks.whole(at_least=1, vc=vc)))
        if neighbours != "replace-one":
            remedy = (
                "With sensitive features alone protected no row comes or goes: pass "
                "neighbours='replace-one'."
            )
            raise InputError.expected(
                "neighbours='replace-one'", of="vc", got=neighbours, remedy=remedy
            )
    if not sets:
        remedy = (
            "Pass candidates=100 for a finite list, dimension=5 for a convex set, or vc=3 for a "
            "class."
        )
        raise InputError.expected("what is chosen from", of="candidates", got=None, remedy=remedy)
    return sets


def _pair(name: str, given: Any) -> tuple[float, float]:
    try:
        first, second = given
    except (TypeError, ValueError):
        remedy = f"Pass {name}=(1.0, 1.0), for example."
        raise InputError.expected(
            "two numbers, f's and g's", of=name, got=given, remedy=remedy
        ) from None
    return _checks.non_negative(**{name: first}), _checks.non_negative(**{name: second})
