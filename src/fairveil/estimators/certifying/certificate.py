"""Certificates: does it hold for the next people? Bounds on population rates and gaps of a finished
model, from private counts of people whom the model has not seen.

What is computed again from a file: every rate, bound and verdict, the people needed, the noise from
the statement's event, the statement's own epsilon. Taken on trust: that the counts were made so, the
model, and the assumptions. A signature says who stands by a file.

Guarantees (tests/estimators/test_estimators_certify.py):
1. If a notion is broken in the population, it is certified with probability at most 1 - confidence,
   over people and noise.
2. A refusal is an answer: it costs what a certificate costs, and says how many people it would
   take.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..._codec import Kind
from ..._json import Node
from ..._types import ColumnsLike, TableLike
from ...core.errors import need
from ...facts import Cells, Schema
from ...fairness import Notion
from ...fairness.notions import SelectionRateRatio, uses_groups
from ...fairness.sentences import per_cent, points, sentence
from ...methods.certificate import (
    Certified,
    Layout,
    NotionBound,
    RateInterval,
    certified,
    layout_of,
)
from ...methods.counts import CountNoise, CountPlan, plan_counts
from ...show.charts import Axis, Row, Rows
from ...show.numbers import percent
from ...show.parts import Column, Fact, Facts, Note, Part, Shown, Table
from ...statement.document import PrivacyStatement
from .. import wrapped
from ..counted import CODEC, OWN_DECISIONS, Asked, CountedFile, CountsFile, notions_of
from ..words import COUNTED, told
from . import seen

FEW = 30
CERTIFIED, REFUSED = "certified", "not certified"
ASSUMED = (
    "the people set aside are independent draws from the population that this certificate is about",
    "the model was made without them, and neither it, the notions, their bounds, the confidence "
    "nor epsilon was chosen by "
    "looking at them",
    "what the model decides about a person depends on that person's row alone",
)
"""Nothing of this can be seen from counts. Whoever relies on a certificate relies on it."""


@dataclass(frozen=True, eq=False)
class Certificate(CountedFile, Shown):
    """Bounds on population rates and gaps of a finished model, from private counts.

    People who were set aside are counted by group, label and decision. Make a certificate with
    `certify`, or by a fit with a `confidence`.

    Attributes
    ----------
    notions : tuple of notions
        What is certified.
    cells : Cells
        Groups as cells of the sensitive columns.
    classes : tuple
        Classes of decisions and labels.
    counts : ndarray
        Released counts, noisy unless epsilon is infinite.
    noise : CountNoise
        Noise of each count.
    confidence : float
        If a notion is broken in the population, it is certified with probability at most ``1 -
        confidence``.
    privacy_ : PrivacyStatement
        Statement of the release.
    model : str
        The model in words.
    assumptions : tuple of str
        Sentences that have to be true as well.
    certified : bool
        Whether all notions are certified together.
    bounds : tuple of NotionBound
        Bound of each notion.
    rates : tuple of RateInterval
        Interval of each rate that the notions compare.
    verdict : str
        A sentence a notion: certified or not, and why.

    See Also
    --------
    certify : Makes one.
    Monitor : Repeats the test period by period.
    """

    FILE: ClassVar = CountsFile(
        "certificate",
        3,
        (
            *("rates", "bounds", "verdicts", "people needed", "noise"),
            *("the statement's epsilon", "checksum"),
        ),
        (
            *("counts", "model", "assumptions", "groups", "classes"),
            "what the statement takes on trust",
        ),
    )

    notions: tuple[Notion, ...]
    cells: Cells
    classes: tuple[Hashable, ...]
    counts: npt.NDArray[np.float64]
    noise: CountNoise
    confidence: float
    privacy_: PrivacyStatement
    model: str = "a model"
    assumptions: tuple[str, ...] = ASSUMED

    @cached_property
    def layout(self) -> Layout:
        """Which counts each rate is made of."""
        return layout_of(self.notions, self.cells, self.classes)

    @cached_property
    def result(self) -> Certified:
        """All bounds, from the counts, the noise and the confidence."""
        asked = self.layout, len(self.notions), self.counts, self.noise, self.confidence
        return certified(*asked)

    @property
    def certified(self) -> bool:
        """Whether every notion is certified."""
        return self.result.holds

    @property
    def bounds(self) -> tuple[NotionBound, ...]:
        """What is certified of each notion."""
        return self.result.notions

    @property
    def rates(self) -> tuple[RateInterval, ...]:
        """Each rate that is compared, as released, with an interval at this confidence of its own."""
        return self.result.rates

    @property
    def people(self) -> float:
        """How many people were set aside, as released: noisy where the counts are."""
        return float(self.counts.sum())

    @property
    def people_needed(self) -> int | None:
        """About how many people set aside would do for all notions, at the released rates.

        None: no more are needed, or no number would do.
        """
        needed = [one.people_needed for one in self.bounds if not one.certified]
        known = [number for number in needed if number is not None]
        return max(known) if known and len(known) == len(needed) else None

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence a notion."""
        return tuple(
            self._sentence(notion, bound)
            for notion, bound in zip(self.notions, self.bounds, strict=True)
        )

    @property
    def verdict(self) -> str:
        """Certified or not, and why."""
        head = CERTIFIED if self.certified else REFUSED
        return f"{head} with {self.confidence:.6g} confidence: {'; '.join(self.sentences)}"

    def parts(self) -> Iterator[Part]:
        """The verdict, a line a notion, every rate with its interval, and what is assumed."""
        sure = f"with {percent(self.confidence)} confidence"
        facts = [Fact("verdict", sure, CERTIFIED if self.certified else REFUSED)]
        facts += [
            Fact("certified" if one.certified else "required", words)
            for words, one in zip(self.sentences, self.bounds, strict=True)
        ]
        facts += [
            Fact("people set aside", f"{self.people:,.0f}, as released"),
            Fact("privacy", str(self.privacy_.promise)),
        ]
        yield Facts(tuple(facts))
        if self.rates:
            names, values, low, high = (
                tuple(getattr(one, of) for one in self.rates)
                for of in ("name", "value", "low", "high")
            )
            title = f"Rates in the population, each with {percent(self.confidence)} confidence by itself"
            columns = Column("rate", names), Column("released", values, "percent", low, high)
            yield Table(columns, title)
            few = [one.fewest < FEW for one in self.rates]
            found = zip(names, values, low, high, few, strict=True)
            rows = tuple(Row(*one[:4], hollow=one[4]) for one in found)
            title, axis = (
                "Rates in the population, sampling and noise together",
                "rate in the population",
            )
            yield Rows(title, Axis(axis, "percent"), rows, confidence=self.confidence)
        for one in self.assumptions:
            yield Note(f"Assumed: {one}.")

    def _sentence(self, notion: Notion, bound: NotionBound) -> str:
        asked = in_words_of(notion, self.cells, self.classes)
        if bound.refused:
            return f"{asked}: not certified, {bound.refused}"
        if isinstance(notion, SelectionRateRatio):
            ratio = math.floor(1000 * max(bound.ratio or 0.0, 0.0) + 1e-9) / 1000
            found = f"the ratio is at least {ratio:g} in the population"
        else:
            found = f"at most {upwards(bound.at_most, self._gap(notion))} in the population"
        if bound.certified:
            return f"{asked}: {found}"
        few, needed = "no number of people would do at these rates", bound.people_needed
        if needed is not None:
            few = f"with these groups and this noise about {needed:,} people set aside would do"
        return f"{asked}: not certified, {found}; {few}"

    @staticmethod
    def _gap(notion: Notion) -> bool:
        return hasattr(notion, "max_gap")

    def _results(self) -> dict[str, Any]:
        def numbers(one: Any) -> dict[str, Any]:
            """A ratio of two empty rates is infinite, and no JSON number."""
            return {
                name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in asdict(one).items()
            }

        return {
            "certified": self.certified,
            "verdict": self.verdict,
            "bounds": [*map(numbers, self.bounds)],
            "rates": [*map(numbers, self.rates)],
        }


def _check(found: dict[str, Any], node: Node) -> None:
    if not 0.5 <= found["confidence"] < 1.0:
        node["confidence"].refuse("a confidence", found["confidence"])
    require_counts(found["counts"], node["counts"])
    layout = layout_of(found["notions"], found["cells"], found["classes"])
    if found["counts"].shape != (layout.parts,):
        node["counts"].refuse("counts of its notions and groups", list(found["counts"].shape))
    if not all(one.isprintable() for one in (found["model"], *found["assumptions"])):
        node.refuse("words that can be printed", "others")


def require_counts(counts: npt.NDArray[np.float64], node: Node) -> None:
    """Whole numbers."""
    if (np.abs(counts) > 2.0**53).any() or (counts != np.rint(counts)).any():
        node.refuse("whole numbers", "others")


Certificate.CODEC = CODEC.with_kinds(Kind(Certificate, check=_check))


def in_words_of(notion: Notion, cells: Cells, classes: tuple[Hashable, ...]) -> str:
    """What is asked, in words."""
    if isinstance(notion, SelectionRateRatio):
        return f"the selection rate of any group is at least {notion.min_ratio:g} of any other's"
    return sentence(notion, cells, classes)


def upwards(share: float | None, gap: bool) -> str:
    """A bound with one decimal, rounded up.

    >>> upwards(0.04612, True), upwards(0.2, False)
    ('4.7 points', '20.0%')
    """
    number = math.ceil(1000 * (share or 0.0) - 1e-9) / 1000
    return points(number) if gap else per_cent(number)


@told(COUNTED)
def certify(
    model: object,
    X: TableLike,
    y: ColumnsLike = None,
    *,
    sensitive_features: ColumnsLike = None,
    constraints: object = None,
    confidence: float = 0.95,
    epsilon: float | None = None,
    delta: float = 0.0,
    protects: str = "records",
    schema: Schema | None = None,
    random_state: object = None,
    ledger: object = None,
    assumptions: Iterable[str] = (),
    unit: object = None,
    max_rows_per_unit: int | None = None,
) -> Certificate:
    """Certify that constraints hold in the population, from private counts of people set aside.

    The people are counted by group, label and decision, once, with noise. Bounds on the
    population's rates and gaps follow by exact tails of sampling and noise together. See
    docs/certificates.md.

    Parameters
    ----------
    model : fitted model, callable or array
        An estimator of this library or another, a function of the features, or one decision for
        each person. It must have been made without these people.
    X : table or array
        Features of the people set aside; None where `model` is an array of decisions.
    y : array, default=None
        Their known outcomes. None: demographic parity and ratios of selection rates need none.
    constraints : notion, str or list of these, default=None
        What is to be certified, for example ``DemographicParity(0.05)``, ``"equalized_odds:0.1"``
        or ``"selection_rate_ratio:0.8"``. It must be given.
    confidence : float, default=0.95
        If a constraint is broken in the population, it is certified with probability at most ``1 -
        confidence``.
    assumptions : iterable of str, default=()
        Further sentences about how the people were drawn, to be printed beside the certificate.
    Returns
    -------
    Certificate
        With `certified`, `bounds`, `verdict`, `rates`, `assumptions`, `privacy_` and `to_json()`.

    Raises
    ------
    InputError
        If an argument or the table cannot be used.
    Overspent
        If the ledger's budget does not suffice for the cost.

    See Also
    --------
    private_audit : Shows rates and gaps without a verdict.
    Monitor : Watches them over time.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=4000)
    >>> hired = rng.random(4000) < 0.3
    >>> found = certify(
    ...     hired,
    ...     None,
    ...     sensitive_features=A,
    ...     constraints="demographic_parity:0.1",
    ...     epsilon=1.0,
    ...     random_state=0,
    ... )
    >>> found.certified
    True
    """
    who = confidence, schema, random_state, ledger, unit, max_rows_per_unit
    asked = Asked.of(epsilon, delta, protects, *who)
    return certified_by(asked, model, X, y, sensitive_features, constraints, assumptions)


def certified_by(
    asked: Asked,
    model: object,
    X: TableLike,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    constraints: object,
    assumptions: Iterable[str],
    plan: CountPlan | None = None,
) -> Certificate:
    """`certify`; with a `plan`, of people whose counts are part of another release, which has been
    charged."""
    notions = notions_of(constraints)
    seen.refuse(model, X)
    people = asked.people(model, X, y, sensitive_features, schema=asked.schema)
    compared = [one for one in notions if isinstance(one, SelectionRateRatio) or uses_groups(one)]
    expected = f"groups, which {type(compared[0]).__name__} compares" if compared else ""
    there, of = not compared or people.rows.layout.sensitive, "sensitive_features"
    need(there, expected, of=of, got=None, fix=wrapped.WITH_GROUPS)
    layout = layout_of(notions, people.cells, people.classes)
    require_compared(layout, notions, people.cells)
    names = [notion.kind.replace("_", " ") for notion in notions]
    wrapped.require_labels(people.labelled, layout.needs_labels, names)
    asked.warn(people)
    groups = layout.needs_groups or people.by_group
    plan = plan_counts(asked.promise, reads_groups=groups) if plan is None else plan
    counts, statement = asked.count(
        people,
        plan,
        people.parts(layout.part_of),
        layout.parts,
        labels=layout.needs_labels,
        groups=layout.needs_groups,
        purpose="certify",
        what="people set aside by group, label and decision",
        not_covered=[OWN_DECISIONS],
    )
    assumed = *ASSUMED, *asked.beside, *map(str, assumptions)
    found = tuple(notions), people.cells, people.classes, counts, plan.noise, asked.confidence
    return Certificate(*found, statement, people.model, assumed)


def require_compared(layout: Layout, notions: Sequence[Notion], cells: Cells) -> None:
    """A comparison of groups where there is one group would be certified whatever the model
    does."""
    compared = {line.notion for line in layout.lines}
    for at, notion in enumerate(notions):
        fix = "Pass people of all groups, or schema=, which lists groups of whom nobody is there."
        expected = f"at least two groups, which {type(notion).__name__} compares"
        of, got = "sensitive_features", list(cells.keys)
        need(at in compared, expected, of=of, got=got, fix=fix)
