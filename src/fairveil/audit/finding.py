"""What one audit of a whole mechanism found: bounds, the claim, and what it would have found had it
been there.

Guarantees (tests/audit/test_audit_run.py):
1. `verdict` is "not met" only where a look refuted the claim, which a true claim is with
   probability 1 - confidence at most; else it is "inconclusive": no audit proves a claim.
2. Numbers are of made-up rows, so that nothing in it is about anybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .._verdicts import NOT_MET, UNCLEAR, Verdict
from ..core import cost as accounting
from ..core.events import Gaussian
from ..core.promise import Promise
from ..errors import InputError
from ..show.charts import Curves
from ..show.parts import Facts, Part, Shown
from ..statement.document import Audit, PrivacyStatement
from . import bounds
from .claims import Claim, PointClaim
from .drawn import curves_of
from .result import is_gaussian_claim

ENOUGH = 0.95
NO_PROOF = (
    "An audit is no proof: a larger leak may need more runs, another pair of neighbours or a "
    "better attack."
)


@dataclass(frozen=True)
class Planted:
    """A bug that was planted beside: whether its own runs refuted the claim, and the least
    probability, with 95 % confidence, with which an audit of as many pairs as the real one had
    would refute it. `seconds`: until that was known."""

    name: str
    trials: int
    found: bool
    power: float
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; without the seconds, which no seed repeats."""
        return {"name": self.name, "trials": self.trials, "found": self.found, "power": self.power}


@dataclass(frozen=True, eq=False)
class PrivacyAudit(Shown):
    """The result of `fairveil.audit.run`.

    `total_variation_lower`, `mechanism_epsilon_lower`: releases on both tables are at least this
    far apart, and any mechanism has at least this epsilon at the claim's delta, each with
    `confidence`, whenever the audit stopped. `trials`: pairs of runs; `pilot`: pairs before them.
    `distances`: of every pair of tables that was tried, how far apart a run was, in deviations of
    its noise. `gaussian_lower`: how far apart releases are at least if noise is Gaussian of some
    one scale, from the noise that was seen; 0 where none was, or where the audit stopped early.
    `refuted_by`: "noise" where it is less than the plan says, "releases" where they tell too much,
    else "". `same_plan`: whether the audited fits planned what the statement that was handed in
    says; None without one. `band`: points (false alarms, misses) that the mechanism's own curve is
    at or below.
    """

    target: str
    promise: Promise
    claim: Claim
    refuted: bool
    refuted_by: str
    total_variation_lower: float
    gaussian_lower: float
    mechanism_epsilon_lower: float
    confidence: float
    trials: int
    pilot: int
    pair: str
    distances: tuple[tuple[str, float], ...]
    planted: tuple[Planted, ...]
    same_plan: bool | None
    seed: int
    seconds: float
    stopped: str
    band: tuple[tuple[float, float], ...]
    claimed_curve: tuple[tuple[float, float], ...]

    @property
    def verdict(self) -> Verdict:
        """ "not met", or "inconclusive"."""
        return NOT_MET if self.refuted else UNCLEAR

    @property
    def mu_lower(self) -> float:
        """A mechanism that is mu-GDP has at least this mu."""
        return bounds.mu_of(self.shown)

    @property
    def shown(self) -> float:
        """The total variation distance that was shown: from the noise, if that was seen, else from
        releases alone."""
        return self.gaussian_lower or self.total_variation_lower

    @property
    def possible(self) -> float | None:
        """The share of the claimed mu that this pair of tables shows at most; None where that is
        not known."""
        claimed, nearest = bounds.mu_of(self.claim.total_variation), dict(self.distances)[self.pair]
        return min(1.0, nearest / claimed) if self.gaussian_lower and claimed > 0 else None

    @property
    def share(self) -> float:
        """The lower bound as a share of the claim: of epsilon where Gaussian noise, or a point, was
        claimed; of the total variation distance where another curve was."""
        if self.is_gaussian or isinstance(self.claim, PointClaim):
            return self.epsilon_lower / self.promise.epsilon
        return self.shown / self.claim.total_variation

    @property
    def is_gaussian(self) -> bool:
        """Whether the bound is read as one of Gaussian noise."""
        return is_gaussian_claim(self.claim)

    @property
    def epsilon_lower(self) -> float:
        """The mechanism's epsilon is at least this, at the claim's delta."""
        if not self.is_gaussian:
            return self.mechanism_epsilon_lower
        mu = self.mu_lower
        return accounting.epsilon(Gaussian(1.0 / mu), self.promise.delta) if mu > 1e-12 else 0.0

    @property
    def would_have_found(self) -> str:
        """The smallest planted leak that an audit of as many runs finds with 95 % probability; ""
        where none is."""
        folds = [
            one
            for one in self.planted
            if one.name.endswith("-fold epsilon") and one.power >= ENOUGH
        ]
        return folds[0].name if folds else ""

    def attach(self, statement: PrivacyStatement) -> PrivacyStatement:
        """The statement with this audit in it; `check()` then reports a bound above what it
        states."""
        if self.promise != statement.promise:
            remedy = "Audit the estimator, or the folder, that the statement is of."
            got = str(self.promise)
            raise InputError.expected(
                f"an audit of {statement.promise}", of="statement", got=got, remedy=remedy
            )
        words = f"{self.trials} pairs of runs on made-up neighbours, {self.pair}"
        kind = ", read as Gaussian noise" if self.is_gaussian else ""
        return replace(
            statement,
            audit=Audit(
                self.epsilon_lower, self.confidence, f"audit of {self.target}: {words}{kind}"
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Every number, as plain JSON values."""
        return {
            "target": self.target,
            "promise": self.promise.to_dict(),
            "verdict": self.verdict,
            "refuted": self.refuted,
            "epsilon_lower": self.epsilon_lower,
            "share_of_claim": self.share,
            "confidence": self.confidence,
            "pair": self.pair,
            "pairs": dict(self.distances),
            "trials": self.trials,
            "pilot": self.pilot,
            "stopped": self.stopped,
            "same_plan_as_statement": self.same_plan,
            "seed": self.seed,
            "claim": self.claim.words,
            "refuted_by": self.refuted_by or None,
            "total_variation_lower": self.total_variation_lower,
            "total_variation_lower_by_noise": self.gaussian_lower,
            "possible_share_of_mu": self.possible,
            "total_variation_claimed": self.claim.total_variation,
            "mechanism_epsilon_lower": self.mechanism_epsilon_lower,
            "read_as_gaussian": self.is_gaussian,
            "planted": [one.to_dict() for one in self.planted],
            "would_have_found": self.would_have_found or None,
            "no_proof": NO_PROOF,
        }

    def facts(self) -> list[tuple[str, str]]:
        """(label, words), the verdict first."""
        head = "claim refuted" if self.refuted else "claim not refuted"
        if self.refuted_by == "noise":
            head += ": there is less noise than the plan says, or it comes again"
        lines = [
            ("verdict", f"{self.verdict}: {head}, at {100 * self.confidence:g} % confidence"),
            ("claimed", f"{self.promise}"),
            ("measured", self._measured),
            (
                "runs",
                f"{self.trials} pairs, {self.pilot} before them to fix the tests; {self.stopped}",
            ),
            ("neighbours", self.pair),
        ]
        if self.possible is not None:
            lines.append(
                (
                    "at most",
                    f"{100 * self.possible:.0f} % of the claimed mu shows in this pair, in any "
                    f"number of runs",
                )
            )
        if self.same_plan is not None:
            words = (
                "the same as in the statement"
                if self.same_plan
                else "another than in the statement: these rows are fewer"
            )
            lines.append(("plan", words))
        for one in self.planted:
            found = "found" if one.found else "not found"
            lines.append(
                (
                    "planted",
                    f"{one.name}: {found} in {one.trials} pairs; power at least "
                    f"{100 * one.power:.0f} %",
                )
            )
        if not self.planted and not self.refuted:
            lines.append(("power", "not known: no bug was planted, or no time was left for it"))
        if self.planted:
            known = f"a {self.would_have_found} would have been found with 95 % probability"
            lines.append(
                (
                    "power",
                    known
                    if self.would_have_found
                    else "too few runs to find even a 3-fold epsilon: run longer",
                )
            )
        lines.append(("note", NO_PROOF))
        return lines

    @property
    def _measured(self) -> str:
        of_claim = f"{100 * self.share:.0f} % of the claim"
        if self.is_gaussian:
            return f"epsilon at least {self.epsilon_lower:.3g} read as Gaussian noise ({of_claim})"
        if isinstance(self.claim, PointClaim):
            return f"epsilon at least {self.epsilon_lower:.3g} ({of_claim})"
        shown = f"total variation distance at least {self.shown:.3g} ({of_claim})"
        return f"{shown}; epsilon at least {self.epsilon_lower:.3g}"

    def summary(self) -> str:
        """In words, one fact a line."""
        return "\n".join(f"{label:<10}  {words}" for label, words in self.facts())

    __str__ = summary

    def parts(self) -> Iterator[Part]:
        """The facts, and the claimed and the measured trade-off curve."""
        yield Facts.of(self.facts())
        yield self.chart()

    def chart(self) -> Curves:
        """The claimed trade-off curve, and what the runs allow at most."""
        title = (
            f"Audit of {self.target}: epsilon at least {self.epsilon_lower:.3g} of "
            f"{self.promise.epsilon:.3g} claimed"
        )
        return curves_of(title, self.claimed_curve, self.band, self.confidence, self.trials)
