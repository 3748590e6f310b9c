"""Certificates, as JSON files too, and how one is computed again: from counts, noise, confidence
and notions alone.

What is computed again: every rate, bound and verdict, the people needed, the noise from the
statement's event, the statement's own epsilon. Taken on trust: that the counts were made so, the
model, and the assumptions. A signature says who stands by a file.

Guarantees (tests/estimators/test_estimators_certificate_json.py):
1. `read(to_json)` gives the same certificate.
2. A file in which any count, bound, rate, verdict, confidence, notion, group or noise was changed
   is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

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
    rates_of,
)
from ...methods.counts import CountNoise
from ...show.charts import Axis, Row, Rows
from ...show.numbers import percent
from ...show.parts import Column, Fact, Facts, Note, Part, Shown, Table
from ...statement.check import Finding
from ...statement.document import PrivacyStatement, write
from ...tables import keys
from .counts_json import CountsFile, checksum, columns_of, groups_to_dict, notion_from, of_release

FILE = CountsFile(
    "certificate",
    frozenset(
        (
            *(
                "format",
                "version",
                "checksum",
                "certified",
                "verdict",
                "confidence",
                "model",
                "assumptions",
            ),
            *("notions", "groups", "classes", "counts", "noise", "bounds", "rates", "statement"),
        )
    ),
)
WITH_REPLACED = CountsFile(FILE.what, FILE.fields | {"replaced"}, version=2)
"""Of certificates of models some of whose decisions were replaced: readers of version 1 must not
take them for others."""
TOLERANCE = 1e-6
"""By how much a bound that is computed again may differ: the last steps of a search on another
processor."""
RECOMPUTED = (
    "rates",
    "bounds",
    "verdicts",
    "people needed",
    "noise",
    "the statement's epsilon",
    "checksum",
)
ON_TRUST = (
    "counts",
    "model",
    "assumptions",
    "groups",
    "classes",
    "what the statement takes on trust",
)


def to_dict(certificate: Certificate) -> dict[str, Any]:
    """Plain JSON values, with a checksum."""
    cells, replaced = certificate.cells, certificate.replaced
    out: dict[str, Any] = {
        "format": FILE.format,
        "version": FILE.version if replaced is None else WITH_REPLACED.version,
        "certified": certificate.certified,
        "verdict": certificate.verdict,
        "confidence": certificate.confidence,
        "model": certificate.model,
        "assumptions": list(certificate.assumptions),
        "notions": [notion.to_dict() for notion in certificate.notions],
        "groups": groups_to_dict(cells),
        "classes": [keys.to_json(value, of="class") for value in certificate.classes],
        "counts": [float(count) for count in certificate.counts],
        "noise": {"kind": certificate.noise.kind, "scale": certificate.noise.scale},
        "bounds": [_numbers(asdict(one)) for one in certificate.bounds],
        "rates": [_numbers(asdict(one)) for one in certificate.rates],
        "statement": certificate.privacy_.to_dict(),
    }
    out |= (
        {} if replaced is None else {"replaced": {"share": replaced.share, "by": list(replaced.by)}}
    )
    return out | {"checksum": checksum(out)}


def is_certificate(text: str) -> bool:
    """Whether a document says that it is one."""
    return FILE.is_one(text)


def examine(text: str) -> tuple[Certificate, list[Finding]]:
    """A certificate, and all that contradicts it; malformed documents are an error."""
    values = FILE.document.json(text)
    later = isinstance(values, dict) and values.get("version") == WITH_REPLACED.version
    return (WITH_REPLACED if later else FILE).examine(text, _read, _contradictions)


def read(text: str) -> Certificate:
    """A certificate that agrees with itself; an error that names the first contradiction, if there
    is one."""
    return FILE.agreeing(examine(text))


def _contradictions(certificate: Certificate, values: Mapping[str, Any]) -> list[Finding]:
    """`findings`, and whether the words are those of the bounds."""
    found = findings(certificate)
    if values["certified"] is not certificate.certified or values["verdict"] != certificate.verdict:
        found.append(Finding(True, "the verdict in words is not that of the bounds"))
    return found


def findings(certificate: Certificate) -> list[Finding]:
    """Compare what is stated with what follows from the counts."""
    out = of_release(certificate.privacy_, certificate.noise)
    if certificate.found is not None:
        fresh = certificate.recomputed
        pairs: list[tuple[str, Sequence[Any], Sequence[Any]]] = [
            ("bound", certificate.found.notions, fresh.notions),
            ("rate", certificate.found.rates, fresh.rates),
        ]
        for kind, stated, again in pairs:
            if len(stated) != len(again):
                out.append(
                    Finding(
                        True,
                        f"{len(stated)} {kind}s are stated, {len(again)} follow from the notions",
                    )
                )
                continue
            for at, (one, other) in enumerate(zip(stated, again, strict=True)):
                wrong = [
                    name
                    for name, value in asdict(one).items()
                    if not _same(value, asdict(other)[name])
                ]
                if wrong:
                    out.append(
                        Finding(
                            True,
                            f"{kind} {at + 1}: {', '.join(wrong)} do not follow from the counts",
                        )
                    )
    return out


def _same(one: Any, other: Any) -> bool:
    if (
        isinstance(one, bool)
        or isinstance(other, bool)
        or one is None
        or other is None
        or isinstance(one, str)
    ):
        return one is other or (type(one) is type(other) and one == other)
    if isinstance(one, int) and isinstance(other, int):
        return abs(one - other) <= 0.1 * max(one, other)  # people needed are a guess
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _read(values: Mapping[str, Any]) -> Certificate:
    statement, noise, confidence = FILE.statement(values), FILE.noise(values), values["confidence"]
    if not isinstance(confidence, float) or not 0.0 < confidence < 1.0:
        raise FILE.malformed("a confidence that is none")
    certificate = Certificate(
        notions=tuple(notion_from(one) for one in values["notions"]),
        cells=Cells(columns_of(values["groups"]), names=tuple(values["groups"]["names"])),
        classes=tuple(keys.plain(value, of="class") for value in values["classes"]),
        counts=np.array([float(count) for count in values["counts"]]),
        noise=noise,
        confidence=confidence,
        privacy_=statement,
        model=FILE.line(values["model"]),
        assumptions=tuple(FILE.line(one) for one in values["assumptions"]),
        found=Certified(
            tuple(NotionBound(**one) for one in values["bounds"]),
            tuple(RateInterval(**one) for one in values["rates"]),
        ),
        replaced=_replaced(values.get("replaced")),
    )
    counts = certificate.counts
    if (
        counts.shape != (certificate.layout.parts,)
        or (np.abs(counts) > 2.0**53).any()
        or (counts != np.rint(counts)).any()
    ):
        raise FILE.malformed("counts that are not those of its notions and groups")
    blind = () if certificate.replaced is None else certificate.replaced.by
    if blind and None in rates_of(certificate.layout, blind):
        raise FILE.malformed("replaced decisions whose rates are no known numbers")
    return certificate


def _replaced(values: Mapping[str, Any] | None) -> Replaced | None:
    if values is None:
        return None
    share, by = float(values["share"]), tuple(map(float, values["by"]))
    if (
        set(values) != {"share", "by"}
        or not 0.0 < share <= 1.0
        or min(by) < 0.0
        or not math.isclose(sum(by), 1.0)
    ):
        raise FILE.malformed("replaced decisions that are no share and no probabilities")
    return Replaced(share, by)


def _numbers(values: dict[str, Any]) -> dict[str, Any]:
    """Infinite numbers have no place in JSON: a ratio of two empty rates."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


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
class Certificate(Shown):
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
    found : Certified or None
        Bounds as they were stated; None: recomputed from the counts.
    replaced : Replaced or None
        Decisions that were replaced so that the rest can be certified; None: none.
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

    def check(self) -> list[Finding]:
        """Find every contradiction between stated values and what follows from the counts.

        Returns
        -------
        list of Finding
            Empty if there is none.
        """
        return findings(self)

    def to_dict(self) -> dict[str, Any]:
        """Describe it as plain JSON values.

        Returns
        -------
        dict
            Plain JSON values, as `to_json` writes them.
        """
        return to_dict(self)

    def to_json(self) -> str:
        """Write the certificate as a JSON document, which `fairveil verify` recomputes.

        Returns
        -------
        str
            The document.
        """
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read what `to_json` writes.

        A document that is malformed, was changed, or does not follow from its counts is an error.

        Parameters
        ----------
        text : str
            The document.

        Returns
        -------
        Certificate
            The same, checked.
        """
        return read(text)

    def write(self, path: str | Path) -> Path:
        """Write `to_json()` to a file: the whole file or nothing.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Path
            The file.
        """
        return write(Path(path), self.to_json())


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
