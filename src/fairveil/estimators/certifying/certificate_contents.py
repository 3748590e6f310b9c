"""A certificate: what holds for people who were not in the table, with a confidence and a price."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...facts import Cells
from ...fairness import Notion
from ...fairness.notions import SelectionRateRatio
from ...fairness.sentences import per_cent, points, sentence
from ...methods.certificate import (
    Certified,
    Layout,
    NotionBound,
    RateInterval,
    Replaced,
    certified,
    layout_of,
)
from ...methods.counts import CountNoise
from ...show.charts import Axis, Row, Rows
from ...show.numbers import percent
from ...show.parts import Column, Fact, Facts, Note, Part, Shown, Table
from ...statement.document import PrivacyStatement

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
class CertificateContents(Shown):
    """The counts, what they were made of, and all that follows from them. See `Certificate`."""

    notions: tuple[Notion, ...]
    cells: Cells
    classes: tuple[Hashable, ...]
    counts: npt.NDArray[np.float64]
    noise: CountNoise
    confidence: float
    privacy_: PrivacyStatement
    model: str = "a model"
    assumptions: tuple[str, ...] = ASSUMED
    found: Certified | None = field(default=None, repr=False)
    replaced: Replaced | None = None

    @cached_property
    def layout(self) -> Layout:
        """Which counts each rate is made of."""
        return layout_of(self.notions, self.cells, self.classes)

    @cached_property
    def recomputed(self) -> Certified:
        """All bounds again, from the counts, the noise and the confidence."""
        asked = (self.layout, len(self.notions))
        return certified(*asked, self.counts, self.noise, self.confidence, self.replaced)

    @property
    def result(self) -> Certified:
        """The bounds as they were stated."""
        return self.recomputed if self.found is None else self.found

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
        after = "" if self.replaced is None else f" (of what is handed out: {self.handed_out})"
        return f"{head} with {self.confidence:.6g} confidence: {'; '.join(self.sentences)}{after}"

    @property
    def handed_out(self) -> str:
        """What is certified, where decisions of the model were replaced; else nothing to say."""
        return "" if self.replaced is None else self.replaced.in_words(self.classes)

    def parts(self) -> Iterator[Part]:
        """The verdict, a line a notion, every rate with its interval, and what is assumed."""
        after = f", of what is returned: {self.handed_out}" if self.handed_out else ""
        sure = f"with {percent(self.confidence)} confidence{after}"
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
            low, high = (tuple(getattr(one, end) for one in self.rates) for end in ("low", "high"))
            names, values = (
                tuple(getattr(one, of) for one in self.rates) for of in ("name", "value")
            )
            rows = tuple(
                Row(one.name, one.value, one.low, one.high, hollow=one.fewest < FEW)
                for one in self.rates
            )
            title = f"Rates in the population, each with {percent(self.confidence)} confidence by itself"
            yield Table(
                (Column("rate", names), Column("released", values, "percent", low, high)), title
            )
            axis = Axis("rate in the population", "percent")
            yield Rows(
                "Rates in the population, sampling and noise together",
                axis,
                rows,
                confidence=self.confidence,
            )
        for one in self.assumptions:
            yield Note(f"Assumed: {one}.")

    def _sentence(self, notion: Notion, bound: NotionBound) -> str:
        asked = asked_of(notion, self.cells, self.classes)
        if bound.refused:
            few = (
                ""
                if bound.in_each_group is None
                else f"; about {bound.in_each_group:,} people of each group would do"
            )
            return f"{asked}: not certified, {bound.refused}{few}"
        if isinstance(notion, SelectionRateRatio):
            ratio = math.floor(1000 * max(bound.ratio or 0.0, 0.0) + 1e-9) / 1000
            found = f"the ratio is at least {ratio:g} in the population"
        else:
            found = f"at most {upwards(bound.at_most, self._gap(notion))} in the population"
        if bound.certified:
            return f"{asked}: {found}"
        few = "no number of people would do at these rates"
        if bound.people_needed is not None:
            few = (
                f"with these groups and this noise about {bound.people_needed:,} people set aside "
                f"would do"
            )
        return f"{asked}: not certified, {found}; {few}"

    @staticmethod
    def _gap(notion: Notion) -> bool:
        return hasattr(notion, "max_gap")


def asked_of(notion: Notion, cells: Cells, classes: tuple[Hashable, ...]) -> str:
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
