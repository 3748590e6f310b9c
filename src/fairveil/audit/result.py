"""What an audit found, what it contradicts, and how a privacy statement carries it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from .._verdicts import NOT_MET, UNCLEAR, Verdict
from ..core import cost as accounting
from ..core.events import Event, Gaussian, compose
from ..core.inventory import inventory
from ..core.promise import Neighbours
from ..errors import InputError
from ..show.parts import Note, Part, Shown
from ..statement.document import Audit, PrivacyStatement
from . import bounds
from .claims import Claim, EventsClaim, GaussianClaim, PointClaim, claim_of

WORDS: dict[Verdict, str] = {
    NOT_MET: "the audit found more leakage than the claim allows",
    UNCLEAR: "the audit found no more leakage than the claim allows, which is no proof of it",
}


@dataclass(frozen=True)
class Errors:
    """A test, fixed before these runs were looked at, and how often it erred in `trials` runs of
    each data set.

    It says "neighbour" when the score is above `threshold` (at or below it, when `above` is false).
    """

    threshold: float
    above: bool
    false_alarms: int
    misses: int
    trials: int


@dataclass(frozen=True)
class AuditResult(Shown):
    """Lower bounds on what a mechanism gives away, each right with probability `confidence` (not
    jointly).

    `tail` is the test behind `epsilon_lower`, `middle` the one behind `total_variation_lower` and
    what follows from it; `chosen_from` runs of each data set chose the tests and are in neither
    count, unless a test was fixed in advance. They also chose whether `epsilon_lower` is worked out
    from the two rates or from their average (`from_average`), which is known better: best where a
    mechanism's privacy is lost all at once, or runs are few.
    """

    delta: float
    confidence: float
    tail: Errors
    middle: Errors
    from_average: bool
    chosen_from: int
    claimed: Claim | None = None

    @property
    def trials(self) -> int:
        """All runs of each data set that a bound counts."""
        return max(self.tail.trials, self.middle.trials)

    @property
    def threshold(self) -> float:
        """The threshold behind `epsilon_lower`."""
        return self.tail.threshold

    @property
    def epsilon_lower(self) -> float:
        """The mechanism, whatever it is, has at least this epsilon at `delta`."""
        return self.epsilon_lower_at(self.delta)

    def epsilon_lower_at(self, delta: float) -> float:
        """The same at another delta."""
        if self.from_average:
            mistakes = self.tail.false_alarms + self.tail.misses
            average = bounds.most_average(mistakes, self.tail.trials, self.confidence)
            return float(bounds.epsilon_of_average(average, delta))
        each = (1.0 + self.confidence) / 2.0  # two rates, each with half of the risk
        fpr = bounds.most_probable(self.tail.false_alarms, self.tail.trials, each)
        fnr = bounds.most_probable(self.tail.misses, self.tail.trials, each)
        return float(bounds.epsilon_of(fpr, fnr, delta))

    @property
    def total_variation_lower(self) -> float:
        """Releases of the two data sets are at least this far apart in total variation: delta at
        epsilon 0 of any mechanism."""
        test = self.middle
        return 1.0 - 2.0 * float(
            bounds.most_average(test.false_alarms + test.misses, test.trials, self.confidence)
        )

    @property
    def mu_lower(self) -> float:
        """A mechanism that is mu-GDP has at least this mu."""
        return bounds.mu_of(self.total_variation_lower)

    @property
    def gaussian_epsilon_lower(self) -> float:
        """The epsilon at `delta` of a Gaussian mechanism of `mu_lower`. Of other mechanisms it says
        nothing."""
        mu = self.mu_lower
        return accounting.epsilon(Gaussian(1.0 / mu), self.delta) if mu > 1e-12 else 0.0

    def contradicts(self, claim: Claim | PrivacyStatement | float | None = None) -> bool:
        """Whether the claim (by default the one audited) is refuted. A true claim is, with
        probability 1 - confidence at most.

        A point is held against `epsilon_lower`, a curve (Gaussian, or the accountant's of some
        events) against `total_variation_lower`: one bound a claim, so the risk is not added up.
        """
        if claim is None and self.claimed is None:
            raise InputError.expected(
                "a claim",
                of="contradicts",
                got=None,
                remedy="Pass an epsilon, or audit with claimed=.",
            )
        held = self.claimed if claim is None else claim_of(claim, self.delta)
        if isinstance(held, PointClaim):
            return self.epsilon_lower_at(held.delta) > held.epsilon
        assert held is not None
        return self.total_variation_lower > held.total_variation

    @property
    def verdict(self) -> Verdict | None:
        """Of the audited claim: "not met" where it is refuted, else "inconclusive", as no attack
        proves a claim; None without one."""
        return None if self.claimed is None else NOT_MET if self.contradicts() else UNCLEAR

    def for_statement(self, attack: str, *, gaussian: bool = False) -> Audit:
        """The line of a privacy statement: `attack` in words; `gaussian` reads the bound as a
        Gaussian mechanism's."""
        words = (
            f"{attack} ({self.trials} runs of each data "
            f"set{', read as Gaussian noise' if gaussian else ''})"
        )
        return Audit(
            self.gaussian_epsilon_lower if gaussian else self.epsilon_lower, self.confidence, words
        )

    def to_dict(self) -> dict[str, Any]:
        """Every number, as plain JSON values."""
        return {
            "delta": self.delta,
            "confidence": self.confidence,
            "epsilon_lower": self.epsilon_lower,
            "total_variation_lower": self.total_variation_lower,
            "mu_lower": _number(self.mu_lower),
            "gaussian_epsilon_lower": _number(self.gaussian_epsilon_lower),
            "tail": {name: _number(value) for name, value in asdict(self.tail).items()},
            "middle": {name: _number(value) for name, value in asdict(self.middle).items()},
            "from_average": self.from_average,
            "chosen_from": self.chosen_from,
            "claimed": None if self.claimed is None else self.claimed.words,
            "contradicts": None if self.claimed is None else self.contradicts(),
            "verdict": self.verdict,
            "verdict_words": None if self.verdict is None else WORDS[self.verdict],
        }

    def parts(self) -> Iterator[Part]:
        """A sentence a bound."""
        yield from map(Note, self.summary().splitlines())

    def summary(self) -> str:
        """In words."""
        lines = [
            f"Audit with {self.trials} runs of each data set; each bound holds at confidence "
            f"{self.confidence:g}.",
            f"Any mechanism: epsilon is at least {self.epsilon_lower:.3g} at delta {self.delta:g}.",
            f"Any mechanism: the total variation distance is at least "
            f"{self.total_variation_lower:.3g}.",
            f"A Gaussian mechanism: mu is at least {self.mu_lower:.3g}, so epsilon at least "
            f"{self.gaussian_epsilon_lower:.3g}.",
        ]
        if self.claimed is not None:
            verdict = (
                "contradicted"
                if self.contradicts()
                else "not contradicted, which does not prove it"
            )
            lines.append(f"Claimed: {self.claimed.words}: {verdict}.")
        return "\n".join(lines)


def attach(statement: PrivacyStatement, result: AuditResult, attack: str) -> PrivacyStatement:
    """The statement with this audit in it; `check()` then reports a bound above what is stated.

    The bound is read as a Gaussian mechanism's where all that was planned is unsampled Gaussian
    noise, which is what the statement then says of it; else it is `epsilon_lower`.
    """
    if result.delta != statement.delta:
        raise InputError.expected(
            f"an audit at the statement's delta, {statement.delta:g}",
            of="result",
            got=result.delta,
            remedy="Audit with delta=statement.delta.",
        )
    return replace(statement, audit=result.for_statement(attack, gaussian=_is_gaussian(statement)))


def is_gaussian_claim(claim: Claim) -> bool:
    """Whether what is claimed is unsampled Gaussian noise and nothing else."""
    if isinstance(claim, EventsClaim):
        return _all_gaussian(
            compose([claim.events] if isinstance(claim.events, Event) else claim.events),
            claim.neighbours,
        )
    return isinstance(claim, GaussianClaim)


def _is_gaussian(statement: PrivacyStatement) -> bool:
    return statement.plan is not None and _all_gaussian(
        compose(statement.plan), statement.promise.neighbours
    )


def _all_gaussian(event: Event, neighbours: str) -> bool:
    total = inventory(event, cast(Neighbours, neighbours))
    return not total.others and total.total_variation == 0.0 and total.private


def _number(value: float) -> float | str:
    return str(value) if math.isinf(value) else value
