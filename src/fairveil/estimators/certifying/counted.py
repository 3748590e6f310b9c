"""What one private count of people serves, in one place: the promise that is asked for, the count
itself, and results that are computed again from what was released, as JSON files too.

Certificates and private tables are such results; a monitor makes such counts period by period.

Guarantees (tests/estimators/test_estimators_certify.py, test_estimators_certificate_json.py,
test_estimators_private_table_json.py):
1. The people are counted once, by one event that costs at most the promise; everything else is
   computed from that release.
2. `from_json(to_json())` is the same result. A file in which any number, word or verdict was
   changed is refused; whatever a file holds, reading it gives its object and findings, or an error
   that says what is malformed, and never another.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._json import MALFORMED, Document
from ..._types import Floats
from ...core.events import NonPrivate, NoOp
from ...core.noise import NoiseSource
from ...core.promise import Promise
from ...data.elsewhere import curator_of
from ...errors import FairveilError, InputError
from ...facts import Cells
from ...fairness import BoundedGroupLoss, Notion
from ...fairness.notions import SelectionRateRatio
from ...fairness.notions import from_dict as notion_of
from ...fairness.objectives import Bound, Constraint
from ...ledger import current, given_ledger
from ...methods.counts import CountNoise, CountPlan, noise_of
from ...show.parts import Shown
from ...statement.document import PrivacyStatement, write
from ...statement.form import Finding
from ...tables import keys
from .. import fitting
from ..reading import units
from ..reading.units import Whose
from ..wrapped import DecidedPeople

ONE_ROW = "each person counts once, by one of their rows, which a coin chose whatever it holds"
OWN_DECISIONS = (
    "the model, and what it decides about a person, are taken to be public: what the model itself "
    "tells of the rows that it was fitted to is in its own statement"
)

# ------------------------------ asked
# What is asked for, checked before any row is read.


class Asked(NamedTuple):
    """Who is protected and how, the confidence of what follows, and the seed."""

    whose: Whose | None
    promise: Promise
    confidence: float
    seed: int | None


def asked(
    epsilon: float | None,
    delta: float,
    protects: str,
    *,
    confidence: object,
    schema: object,
    random_state: object,
    ledger: object,
    unit: object,
    most: int | None,
) -> Asked:
    """All of it; a ledger that would refuse is heard now."""
    whose = one_row_each(unit, most, schema, epsilon)
    promise = required_promise(epsilon, delta, protects, whose)
    sure, seed = confidence_of(confidence), fitting.seed_of(random_state)
    book = given_ledger(ledger) or current()
    if book is not None:
        book.require(promise, secure=seed is None)
    return Asked(whose, promise, sure, seed)


def one_row_each(
    unit: object, most: int | None, schema: object, epsilon: float | None
) -> Whose | None:
    """Who is protected: persons only where each counts once."""
    found = units.whose(unit, most, schema)
    if found is None:
        return None
    if found.unit.max_rows != 1 or epsilon == math.inf:
        got = found.unit.max_rows if epsilon != math.inf else "all rows, without privacy"
        remedy = (
            "Rows of one person are no independent draws: pass max_rows_per_unit=1, and a finite "
            "epsilon."
        )
        raise InputError.expected(
            "one row of each person", of="max_rows_per_unit", got=got, remedy=remedy
        )
    return found


def required_promise(
    epsilon: float | None,
    delta: float,
    protects: str,
    whose: Whose | None = None,
) -> Promise:
    """The promise; a budget must be given."""
    if epsilon is None:
        remedy = (
            "Pass epsilon=1.0, for example; float('inf') for people who are public or have "
            "consented."
        )
        raise InputError.expected("a privacy budget", of="epsilon", got=None, remedy=remedy)
    return fitting.promise_of(epsilon, delta, protects, whose)


def confidence_of(confidence: object) -> float:
    """One half or more, and less than certain."""
    remedy = "Pass confidence=0.95, for example: no finite number of people makes anything certain."
    found = _checks.fraction(confidence=confidence, low_open=True, high_open=True, remedy=remedy)
    if not 0.5 <= found <= 1.0 - 1e-9 or math.isnan(found):
        raise InputError.expected(
            "0.5 or more, and at most 1 - 1e-9", of="confidence", got=found, remedy=remedy
        )
    return float(found)


def notions_of(
    constraints: object, *, of: str = "constraints", certified: bool = False
) -> list[Notion]:
    """Notions, or their names and bounds; "selection_rate_ratio:0.8" among them. Those that ask for
    nothing are refused. `of`: the argument; `certified`: whether they may have a confidence."""
    many = isinstance(constraints, Iterable) and not isinstance(constraints, str | Notion)
    if isinstance(constraints, Bound | Constraint):
        remedy = "Pass DemographicParity(0.05): bounds on other functions cannot be certified."
        raise InputError.expected("notions of fairness", of=of, got=constraints, remedy=remedy)
    out: list[Notion] = []
    for one in constraints if many else [constraints]:  # type: ignore[attr-defined]
        out += (
            [_ratio(one)]
            if isinstance(one, str) and one.replace("-", "_").startswith(SelectionRateRatio.kind)
            else fitting.notions_of(one, certified=certified)
        )
    empty = [one.kind for one in out if one.is_vacuous]
    if not out or empty:
        remedy = (
            "Pass DemographicParity(0.05), 'equalized_odds:0.1' or 'selection_rate_ratio:0.8', for "
            "example."
        )
        raise InputError.expected("notions with a bound", of=of, got=empty or None, remedy=remedy)
    for one in out:  # losses of probabilities and numbers are no rates of decisions
        if isinstance(one, BoundedGroupLoss) and one.loss != "zero_one":
            remedy = "Certify a notion on rates of decisions."
            got = f"the {one.loss} loss"
            raise InputError.expected("a loss of decisions", of=of, got=got, remedy=remedy)
    return out


def _ratio(text: str) -> SelectionRateRatio:
    _, _, bound = text.partition(":")
    try:
        ratio = float(bound.strip().removesuffix("%")) / (
            100.0 if bound.strip().endswith("%") else 1.0
        )
    except ValueError:
        remedy = "Write selection_rate_ratio:0.8, for example."
        raise InputError.expected("a ratio", of="constraint", got=text, remedy=remedy) from None
    return SelectionRateRatio(ratio)


# ------------------------------ count
# The one release.

OF_PERSON = "group, label and decision of each person"


def count(
    people: DecidedPeople,
    promise: Promise,
    plan: CountPlan,
    codes: Any,
    parts: int,
    *,
    read: Iterable[str],
    seed: int | None,
    purpose: str,
    what: str,
    facts: Sequence[Any] | None = None,
    ledger: object = None,
    title: str = OF_PERSON,
    not_covered: Sequence[str] = (),
) -> tuple[Floats, PrivacyStatement]:
    """Count people by their codes (`parts` of them), and the statement of that. `read`: what the
    codes read of a row; `what`: is released, in words."""
    with curator_of(
        people.rows,
        promise,
        plan=plan.event if promise.is_private else None,
        noise=NoiseSource.of(seed),
        facts=people.facts if facts is None else facts,
        ledger=ledger,
        purpose=purpose,
    ) as curator:
        attached = curator.attach_codes(codes, parts, columns_read=set(read), title=title)
        counts = plan.release(curator, attached, what)
        curator.finish()
    told = [*people.not_covered, *not_covered]
    return counts, PrivacyStatement.of_run(curator, not_covered=told)


# ------------------------------ results
# What follows from counts, and its file.

NOISES = ("none", "gaussian", "discrete-laplace")


COMMON = frozenset(
    [
        "format",
        "version",
        "checksum",
        "confidence",
        "model",
        "groups",
        "classes",
        "counts",
        "noise",
        "statement",
    ]
)
TOLERANCE = 1e-6
"""By how much a number that is computed again may differ: the last steps of a search on another
processor."""
GUESSES = ("people_needed", "in_each_group")


@dataclass(frozen=True)
class CountsFile:
    """One kind of file: `what` it is in words, and the `fields` that it has beside `COMMON`."""

    what: str
    fields: frozenset[str]
    version: int = 1

    @property
    def format(self) -> str:
        """What the document says that it is."""
        return f"fairveil {self.what}"

    @property
    def document(self) -> Document:
        """How it is read."""
        return Document(
            self.what, f"Write {self.what}s with write() or to_json().", largest=1 << 26
        )

    def require_format(self, values: object) -> None:
        """An error for another document."""
        if (
            not isinstance(values, dict)
            or values.get("format") != self.format
            or values.get("version") != self.version
        ):
            raise self.malformed(f"no {self.format!r} of version {self.version}")
        if others := set(values) ^ (self.fields | COMMON):
            raise self.malformed(f"fields {sorted(others)} too many or too few")

    def line(self, value: object) -> str:
        """Words that can be printed."""
        if not isinstance(value, str) or not value.isprintable():
            raise self.malformed("words that cannot be printed")
        return value

    def malformed(self, got: str) -> InputError:
        """The error of such a file."""
        return self.document.refusal(f"a well-formed {self.what}", got)  # type: ignore[return-value]


class CountedResult(Shown):
    """What follows from one release of counts. Abstract.

    It may be written to a file, which `fairveil verify` recomputes.
    """

    FILE: ClassVar[CountsFile]
    RECOMPUTED: ClassVar[tuple[str, ...]]
    ON_TRUST: ClassVar[tuple[str, ...]]
    counts: npt.NDArray[np.float64]
    noise: CountNoise
    confidence: float
    privacy_: PrivacyStatement
    model: str
    cells: Any
    classes: Any

    def _content(self) -> dict[str, Any]:
        """The fields of its own, as plain JSON values."""
        raise NotImplementedError

    @classmethod
    def _of(cls, values: Mapping[str, Any], cells: Cells, common: dict[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        raise NotImplementedError

    def _stated(self) -> tuple[Any, Any]:
        """Results as a file states them, and computed again, as plain values; None: not stated."""
        raise NotImplementedError

    def check(self) -> list[Finding]:
        """Find every contradiction between stated values and what follows from the counts.

        Returns
        -------
        list of Finding
            Empty if there is none.
        """
        out = of_release(self.privacy_, self.noise)
        stated, again = self._stated()
        places = [] if stated is None else list(differing(stated, again, ""))
        out += [Finding(True, f"{place} does not follow from the counts") for place in places[:10]]
        return out

    def to_dict(self) -> dict[str, Any]:
        """Describe it as plain JSON values.

        Returns
        -------
        dict
            Plain JSON values, as `to_json` writes them, with a checksum.
        """
        out = {
            "format": self.FILE.format,
            "version": self.FILE.version,
            "confidence": self.confidence,
            "model": self.model,
            "groups": groups_to_dict(self.cells),
            "classes": [keys.to_json(value, of="class") for value in self.classes],
            "counts": [float(one) for one in self.counts],
            "noise": {"kind": self.noise.kind, "scale": self.noise.scale},
            **self._content(),
            "statement": self.privacy_.to_dict(),
        }
        return out | {"checksum": checksum(out)}

    @classmethod
    def examine(cls, text: str) -> tuple[Self, list[Finding]]:
        """Read what `to_json` writes, with all that contradicts it.

        Parameters
        ----------
        text : str
            The document. A malformed one is an error.

        Returns
        -------
        tuple of the result and a list of Finding
            An empty list if it agrees with itself.
        """
        file = cls.FILE
        values = file.document.json(text)
        try:
            file.require_format(values)
            found = cls._read(values)
            contradictions = found.check() + found._contradictions(values)
            if values["checksum"] != checksum(values):
                words = "the content is not what the checksum was made of"
                contradictions.append(Finding(True, words))
            return found, contradictions
        except InputError:
            raise
        # A stranger's file may be wrong in any way; each is a malformed one and never a traceback.
        except (FairveilError, *MALFORMED) as error:
            told = str(error) if isinstance(error, FairveilError) else type(error).__name__
            raise file.malformed(told) from None

    def _contradictions(self, values: Mapping[str, Any]) -> list[Finding]:
        """What else does not fit."""
        return []

    @classmethod
    def _read(cls, values: Mapping[str, Any]) -> Self:
        file, confidence, noise = cls.FILE, values["confidence"], values["noise"]
        if not isinstance(confidence, float) or not 0.5 <= confidence < 1.0:
            raise file.malformed("a confidence that is none")
        known = set(noise) == {"kind", "scale"} and noise["kind"] in NOISES
        if not known or not 0.0 <= float(noise["scale"]) < 1e12:
            raise file.malformed("noise of no known distribution")
        counts = np.array([float(one) for one in values["counts"]])
        if (np.abs(counts) > 2.0**53).any() or (counts != np.rint(counts)).any():
            raise file.malformed("counts that are no whole numbers")
        groups = values["groups"]
        names = tuple(file.line(name) for name in groups["names"])
        common = {
            "classes": tuple(keys.plain(value, of="class") for value in values["classes"]),
            "counts": counts,
            "noise": CountNoise(str(noise["kind"]), float(noise["scale"])),
            "confidence": confidence,
            "privacy_": PrivacyStatement.from_json(json.dumps(values["statement"])),
            "model": file.line(values["model"]),
        }
        return cls._of(values, Cells(columns_of(groups), names=names), common)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` writes.

        A document that is malformed, was changed, or does not follow from its counts is an error.

        Parameters
        ----------
        text : str
            The document.

        Returns
        -------
        the result
            The same, checked.
        """
        found, contradictions = cls.examine(text)
        grave = [finding.sentence for finding in contradictions if finding.grave]
        if grave:
            remedy = (
                "Ask its author for the file again; `fairveil verify FILE` lists all that does not "
                "fit."
            )
            raise InputError.expected(
                "one that follows from its counts", of=cls.FILE.what, got=grave[0], remedy=remedy
            )
        return found

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


def differing(one: Any, other: Any, place: str) -> Iterator[str]:
    """The places where two plain values differ."""
    if isinstance(one, dict) and isinstance(other, dict) and set(one) == set(other):
        for name in one:
            yield from differing(one[name], other[name], f"{place}, {name}" if place else str(name))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (a, b) in enumerate(zip(one, other, strict=True), 1):
            yield from differing(a, b, f"{place} {at}")
    elif type(one) in (int, float) and type(other) in (int, float):
        near = 0.1 if place.endswith(GUESSES) else TOLERANCE
        if not math.isclose(one, other, rel_tol=near, abs_tol=TOLERANCE):
            yield place
    elif type(one) is not type(other) or one != other:
        yield place


def checksum(values: Mapping[str, Any]) -> str:
    """SHA-256 of the content in one spelling. Shows an accident, proves no author."""
    content = {name: value for name, value in values.items() if name != "checksum"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def groups_to_dict(cells: Cells) -> dict[str, Any]:
    """The groups that were counted."""
    columns = [[keys.to_json(value, of="group") for value in column] for column in cells.columns]
    return {"names": list(cells.names), "columns": columns}


def columns_of(groups: Mapping[str, Any]) -> tuple[tuple[Any, ...], ...]:
    """The values of each sensitive column, of `groups_to_dict`."""
    return tuple(
        tuple(keys.plain(value, of="group") for value in column) for column in groups["columns"]
    )


def of_release(statement: PrivacyStatement, noise: CountNoise) -> list[Finding]:
    """What in a statement contradicts one release of counts with this noise."""
    out = [Finding(one.grave, f"statement: {one.sentence}") for one in statement.check()]
    if len(statement.events) > 1:
        out.append(Finding(True, "the statement lists more than the one release of these counts"))
    event = statement.events[0] if len(statement.events) == 1 else NoOp()
    law = noise_of(event, statement.promise.neighbours)
    private = statement.is_private and not isinstance(event, NonPrivate)
    same = (
        law is not None
        and law.kind == noise.kind
        and math.isclose(law.scale, noise.scale, rel_tol=1e-9)
    )
    if not same or (not private and noise.kind != "none"):
        other = "another release" if law is None else f"{law.kind} {law.scale:g}"
        said = f"the noise is said to be {noise.kind} {noise.scale:g}, the statement says {other}"
        out.append(Finding(True, said))
    return out


def notion_from(values: object) -> Notion:
    """A notion, ratios of selection rates among them."""
    if isinstance(values, dict) and values.get("notion") == SelectionRateRatio.kind:
        return SelectionRateRatio.from_dict(values)
    return notion_of(values)
