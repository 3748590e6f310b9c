"""The promise: what is asked of a release, before any data are read.

A promise without a unit is about rows. With a unit it is about persons: a neighbouring table has
all rows of one person more, or fewer, or another person's in their place. A person may have any
number of rows: `max_rows` of them are kept, and the guarantee is for all of them, since the rest
are never read.

Guarantees
    1. Only sensitive features with replace-one are promised together; records take either relation.
    2. Promises of different units are different promises: no filter, statement or ledger takes one
       for the other.
    3. The document of a promise without a unit is what it was before there were units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from . import checks
from .errors import InputError, need

Protects = Literal["records", "sensitive_features"]
Neighbours = Literal["add-remove", "replace-one"]

PROTECTS: tuple[Protects, ...] = ("records", "sensitive_features")
"""What a promise may protect."""

NEIGHBOURS: tuple[Neighbours, ...] = ("add-remove", "replace-one")
"""What a neighbouring data set may be."""

MOST = 1 << 20
"""Rows of one person at most: sums over a person's rows stay exact in floats of 53 bits."""
LONGEST_NAME = 200


def relation(neighbours: str) -> Neighbours:
    """One of the two relations."""
    chosen = checks.one_of(NEIGHBOURS, neighbours=neighbours)
    return "add-remove" if chosen == "add-remove" else "replace-one"


@dataclass(frozen=True)
class Unit:
    """One person, distinguished by `name`, with at most `max_rows` of their rows. None: a ledger's,
    which takes any number.

    >>> str(Unit("patient", 12))
    'one person, at most 12 of their rows'
    """

    name: str = "person"
    max_rows: int | None = None

    def __post_init__(self) -> None:
        name: object = self.name
        right = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME
        right = right and name.isprintable() and not name.isspace()  # type: ignore[attr-defined]
        fix = "Name the column that tells persons apart: unit='patient'."
        need(right, "the name of a column", of="unit", got=name, fix=fix)
        if self.max_rows is not None:
            fix = "Pass max_rows_per_unit=12, for example: the most that one person adds to a sum."
            most = checks.whole(at_least=1, max_rows_per_unit=self.max_rows, remedy=fix)
            need(most <= MOST, f"at most {MOST:,}", of="max_rows_per_unit", got=most, fix=fix)
            checks.normalise(self, max_rows=most)

    def __str__(self) -> str:
        if self.max_rows is None:
            return "one person, all of their rows"
        rows = "one" if self.max_rows == 1 else f"at most {self.max_rows}"
        return f"one person, {rows} of their rows"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"name": self.name, "max_rows": self.max_rows}

    @staticmethod
    def from_dict(values: object) -> Unit:
        """The inverse of `to_dict`."""
        found: Any = values if isinstance(values, dict) else {}
        right, fix = set(found) == {"name", "max_rows"}, "Write promises with to_dict()."
        got = sorted(map(str, found)) if isinstance(values, dict) else values
        need(right, "name and max_rows", of="unit", got=got, fix=fix)
        return Unit(found["name"], found["max_rows"])


@dataclass(frozen=True, init=False)
class Promise:
    """An (epsilon, delta)-guarantee: what is protected, and for which adjacency relation.

    With ``epsilon=inf`` nothing is private, and everything made under it says so.

    Parameters
    ----------
    epsilon : float
        Privacy budget. Smaller is more private. ``float('inf')`` gives no privacy.
    delta : float
        Slack that is added to the epsilon bound: one row changes the probability of any results by
        a factor of at most e^epsilon, plus delta. Choose it well below ``1 / n_rows``.
    protects : {"records", "sensitive_features"}, default="records"
        What is protected. ``"records"``: all of a row. ``"sensitive_features"``: the sensitive
        attributes alone; features and labels are then public. The relation may follow a colon:
        ``"records:replace-one"``.
    neighbours : {"add-remove", "replace-one"}, default=None
        Adjacency relation. ``"add-remove"``: one record is added or removed, so the number of
        records is private. ``"replace-one"``: one record is replaced. For sensitive features it is
        replace-one of the sensitive attributes of one row. None: ``"add-remove"`` for records.
    unit : Unit, default=None
        Who is protected where one person may have several rows: neighbours then differ in one
        person, with all of their rows (theory.md#units). None: rows.

    Examples
    --------
    >>> Promise(1.0, 1e-6).neighbours
    'add-remove'
    >>> Promise(1.0, 1e-6, "records:replace-one").neighbours
    'replace-one'
    >>> Promise(1.0, 1e-6, protects="sensitive_features").neighbours
    'replace-one'
    """

    epsilon: float
    delta: float
    protects: Protects
    neighbours: Neighbours
    unit: Unit | None = None

    def __init__(
        self,
        epsilon: float,
        delta: float,
        protects: str = "records",
        neighbours: str | None = None,
        unit: Unit | None = None,
    ) -> None:
        fix = "Pass epsilon=1.0, for example; epsilon=float('inf') asks for no privacy at all."
        epsilon = checks.positive(epsilon=epsilon, allow_inf=True, remedy=fix)
        fix = "Pass delta=1e-6, say: well below one over the rows."
        delta = checks.fraction(delta=delta, high_open=True, remedy=fix)
        if neighbours is None and ":" in str(protects):
            what, _, neighbours = str(protects).partition(":")
            if what not in PROTECTS or neighbours not in NEIGHBOURS:
                checks.one_of(("records", "records:replace-one", PROTECTS[1]), protects=protects)
            protects = what
        protects = checks.one_of(PROTECTS, protects=protects)
        if neighbours is None:
            neighbours = "add-remove" if protects == "records" else "replace-one"
        neighbours = relation(neighbours)
        if unit is not None:
            fix = "Pass Unit('patient', max_rows=12), or None to protect rows."
            checks.instance(Unit, "unit", unit, fix, "a Unit, or None")
        if protects == "sensitive_features" and neighbours == "add-remove":
            words = "'replace-one' when only sensitive features are protected"
            fix = "The rows themselves are public then: pass neighbours=None, or "
            fix += "protects='records'."
            raise InputError.expected(words, of="neighbours", got=neighbours, remedy=fix)
        checks.normalise(self, epsilon=epsilon, delta=delta, protects=protects)
        checks.normalise(self, neighbours=neighbours, unit=unit)

    @property
    def is_private(self) -> bool:
        """Whether there is a guarantee: False where epsilon is infinite, and no noise is added."""
        return not math.isinf(self.epsilon)

    @property
    def rows_are_public(self) -> bool:
        """Whether the number of rows may be used as it is: not under add-remove, nor where a replaced
        person may have more rows, or fewer."""
        return self.units_are_public and (
            self.protects == "sensitive_features" or self.unit is None
        )

    @property
    def units_are_public(self) -> bool:
        """Whether the number of those who are protected (persons, or rows where there is no unit) may
        be used as it is."""
        return self.neighbours == "replace-one"

    @property
    def rows_per_unit(self) -> int:
        """How many rows of one who is protected may be read: one, unless there is a unit; without
        privacy none is counted."""
        if self.unit is None or not self.is_private:
            return 1
        most, fix = self.unit.max_rows, "Pass max_rows_per_unit=12, for example."
        need(most, "the most rows of one person", of="max_rows_per_unit", got=most, fix=fix)
        return most or 1

    @property
    def features_are_public(self) -> bool:
        """Whether features and labels may be used as they are: where sensitive attributes alone are
        protected, or nothing is."""
        return self.protects == "sensitive_features" or not self.is_private

    def __str__(self) -> str:
        what = "records" if self.protects == "records" else "sensitive features only"
        unit = "" if self.unit is None else f", {self.unit} ({self.unit.name})"
        if not self.is_private:
            return f"not private (epsilon=inf), {what}, {self.neighbours}{unit}"
        return f"epsilon={self.epsilon:g}, delta={self.delta:g}, {what}, {self.neighbours}{unit}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; an infinite epsilon is written "inf"."""
        return {
            "epsilon": self.epsilon if self.is_private else "inf",
            "delta": self.delta,
            "protects": self.protects,
            "neighbours": self.neighbours,
            **({} if self.unit is None else {"unit": self.unit.to_dict()}),
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Promise:
        """The inverse of `to_dict`, with the checks of the constructor.

        Parameters
        ----------
        values : dict
            Plain values.

        Returns
        -------
        Promise
            The guarantee.
        """
        names = {"epsilon", "delta", "protects", "neighbours"}
        fix = "Write promises with to_dict()."
        given = set(values) - {"unit"}
        need(given == names, f"exactly {sorted(names)}", of="promise", got=sorted(values), fix=fix)
        epsilon = math.inf if values["epsilon"] == "inf" else values["epsilon"]
        unit = Unit.from_dict(values["unit"]) if "unit" in values else None
        return Promise(epsilon, values["delta"], values["protects"], values["neighbours"], unit)
