"""What an audit in one run found: right guesses about canaries, and the noise that was heard.

Guarantees (tests/audit/test_audit_canaries.py):
1. `verdict` is "not met" only where guesses, noise or distances refuted the claim; else it is
   "inconclusive".
2. Numbers are of made-up rows, so that nothing in it is about anybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from .._verdicts import NOT_MET, UNCLEAR, Verdict
from ..core import cost as accounting
from ..core.events import Gaussian
from ..core.promise import Promise
from ..errors import InputError
from ..show.charts import Axis, Curve, Curves, Rule
from ..show.parts import Facts, Part, Shown
from ..statement.document import Audit, PrivacyStatement
from . import canary_bounds as bounds
from .claims import Claim
from .result import is_gaussian_claim

NO_PROOF = "An audit is no proof: a larger leak may need more canaries, others, or a better guess."
GUESSES, NOISE, DISTANCE = "guesses", "noise", "distance"
WHY = {
    "": "claim not refuted",
    GUESSES: "claim refuted: too many guesses are right",
    NOISE: "claim refuted: there is less noise than the plan says",
    DISTANCE: "claim refuted: a canary moved the releases further than the plan allows",
}
DRAWN = 21


@dataclass(frozen=True)
class OneRunAudit(Shown):
    """The result of `fairveil.audit.one_run`.

    `right` of `guesses` guesses about `canaries` coins were right. `epsilon_lower`: any mechanism
    has at least this epsilon at the claim's delta; `gaussian_epsilon_lower`: one of Gaussian noise
    has. `numbers`: how many released numbers had noise that was heard; 0 for a function, or where
    batches are secret. `furthest`: of the claimed mu, the share by which the furthest canary moved
    the run; None where that is not known. `refuted_by`: "guesses", "noise", "distance" or "".
    `planted`: bugs, and whether their own run refuted the claim.
    """

    target: str
    promise: Promise
    claim: Claim
    canaries: int
    guesses: int
    right: int
    confidence: float
    refuted_by: str
    planted: tuple[tuple[str, bool], ...]
    seed: int
    numbers: int = 0
    furthest: float | None = None

    @property
    def refuted(self) -> bool:
        """Whether the claim was refuted."""
        return self.refuted_by != ""

    @property
    def verdict(self) -> Verdict:
        """ "not met", or "inconclusive"."""
        return NOT_MET if self.refuted else UNCLEAR

    @property
    def epsilon_lower(self) -> float:
        """Of any mechanism, at the claim's delta."""
        given = self.canaries, self.guesses, self.right
        return bounds.epsilon_lower(*given, self.promise.delta, 1.0 - self.confidence)

    @property
    def gaussian_epsilon_lower(self) -> float:
        """Of Gaussian noise, at the claim's delta."""
        mu = bounds.mu_lower(self.canaries, self.guesses, self.right, 1.0 - self.confidence)
        if mu <= 1e-9 or self.promise.delta <= 0:
            return 0.0
        return accounting.epsilon(Gaussian(1.0 / mu), self.promise.delta)

    def attach(self, statement: PrivacyStatement) -> PrivacyStatement:
        """The statement with this audit in it; `check()` reports a bound above what it states."""
        if self.promise != statement.promise:
            remedy = "Audit the estimator, or the folder, that the statement is of."
            expected = f"an audit of {statement.promise}"
            got = str(self.promise)
            raise InputError.expected(expected, of="statement", got=got, remedy=remedy)
        words = f"one run with {self.canaries} made-up canaries, {self._right}"
        shown = Audit(self.epsilon_lower, self.confidence, f"audit of {self.target}: {words}")
        return replace(statement, audit=shown)

    def to_dict(self) -> dict[str, Any]:
        """Every number, as plain JSON values."""
        return {
            "target": self.target,
            "promise": self.promise.to_dict(),
            "claim": self.claim.words,
            "verdict": self.verdict,
            "refuted": self.refuted,
            "refuted_by": self.refuted_by or None,
            "epsilon_lower": self.epsilon_lower,
            "gaussian_epsilon_lower": self._read_as_gaussian,
            "confidence": self.confidence,
            "canaries": self.canaries,
            "guesses": self.guesses,
            "right": self.right,
            "numbers_with_heard_noise": self.numbers,
            "furthest_canary_share_of_mu": self.furthest,
            "planted": [{"name": name, "found": found} for name, found in self.planted],
            "seed": self.seed,
            "no_proof": NO_PROOF,
        }

    def facts(self) -> list[tuple[str, str]]:
        """(label, words), the verdict first."""
        measured, gaussian = f"epsilon at least {self.epsilon_lower:.3g}", self._read_as_gaussian
        if gaussian is not None:
            measured += f", {gaussian:.3g} read as Gaussian noise"
        sure = 100 * self.confidence
        about = f"{self.right} of {self.guesses} right, about {self.canaries} canaries in one run"
        lines = [
            (
                "verdict",
                f"{self.verdict}: {WHY[self.refuted_by]}, at {sure:g} % confidence",
            ),
            ("claimed", f"{self.promise}"),
            ("measured", measured),
            ("guesses", about),
        ]
        if self.numbers:
            lines.append(("noise", f"heard of {self.numbers} released numbers"))
        if self.furthest is not None:
            words = f"{100 * self.furthest:.0f} % of the claimed mu shows of the furthest canary"
            lines.append(("at most", words))
        for name, found in self.planted:
            lines.append(("planted", f"{name}: {'found' if found else 'not found'}, in one run"))
        return [*lines, ("note", NO_PROOF)]

    def summary(self) -> str:
        """In words, one fact a line."""
        return "\n".join(f"{label:<10}  {words}" for label, words in self.facts())

    __str__ = summary

    def parts(self) -> Iterator[Part]:
        """The facts, and how probable so many right guesses are at most."""
        yield Facts.of(self.facts())
        yield self.chart()

    @property
    def _right(self) -> str:
        return f"{self.right} of {self.guesses} guesses right"

    @property
    def _read_as_gaussian(self) -> float | None:
        return self.gaussian_epsilon_lower if is_gaussian_claim(self.claim) else None

    def chart(self) -> Curves:
        """How probable so many right guesses are at most, and how many were."""
        least = self.guesses // 2
        at = np.unique(
            np.linspace(least, self.guesses, min(DRAWN, self.guesses - least + 1)).round()
        )
        points = bounds.points_of(self.claim)
        claimed, blind = [], []
        for right in at.astype(int).tolist():
            highest = bounds.most_probable(self.canaries, self.guesses, right, points)
            claimed.append((float(right), highest))
            blind.append((float(right), float(stats.binom.sf(right - 1, self.guesses, 0.5))))
        return Curves(
            title=f"Audit of {self.target} in one run: {self._right}",
            across=Axis("right guesses, at least"),
            up=Axis("probability, at most"),
            curves=(
                Curve("if the claim is true", tuple(claimed)),
                Curve("blind guesses", tuple(blind)),
            ),
            rules=(Rule("right in this run", float(self.right), across=True),),
            notes=(
                f"Guesses refute the claim where its curve is below {1 - self.confidence:.2g}.",
            ),
        )
