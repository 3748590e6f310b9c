"""The promise: what is asked of a release, before any data are read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from .. import _checks
from ..errors import InputError
from .units import Unit

Protects = Literal["records", "sensitive_features"]
Neighbours = Literal["add-remove", "replace-one"]

PROTECTS: tuple[Protects, ...] = ("records", "sensitive_features")
"""What a promise may protect."""

NEIGHBOURS: tuple[Neighbours, ...] = ("add-remove", "replace-one")
"""What a neighbouring data set may be."""


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
        attributes alone; features and labels are then public.
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
        way_out = "Pass epsilon=1.0, for example; epsilon=float('inf') asks for no privacy at all."
        _checks.normalise(
            self, epsilon=_checks.positive(epsilon=epsilon, allow_inf=True, remedy=way_out)
        )
        way_out = "Pass delta=1e-6, say: well below one over the rows."
        _checks.normalise(self, delta=_checks.fraction(delta=delta, high_open=True, remedy=way_out))
        _checks.normalise(self, protects=_checks.one_of(PROTECTS, protects=protects))
        if neighbours is None:
            neighbours = "add-remove" if self.protects == "records" else "replace-one"
        _checks.normalise(self, neighbours=_checks.one_of(NEIGHBOURS, neighbours=neighbours))
        given: object = unit
        if given is not None and not isinstance(given, Unit):
            remedy = "Pass Unit('patient', max_rows=12), or None to protect rows."
            raise InputError.expected(
                "a Unit, or None", of="unit", got=type(given).__name__, remedy=remedy
            )
        _checks.normalise(self, unit=unit)
        if self.protects == "sensitive_features" and self.neighbours == "add-remove":
            raise InputError.expected(
                "'replace-one' when only sensitive features are protected",
                of="neighbours",
                got=neighbours,
                remedy=(
                    "The rows themselves are public then: pass neighbours=None, or "
                    "protects='records'."
                ),
            )

    @property
    def is_private(self) -> bool:
        """Whether there is a guarantee: False where epsilon is infinite, and no noise is added."""
        return not math.isinf(self.epsilon)

    @property
    def rows_are_public(self) -> bool:
        """Whether the number of rows may be used as it is.

        It may not under add/remove-one, nor where a replaced person may have more rows, or fewer.
        """
        return self.units_are_public and (
            self.protects == "sensitive_features" or self.unit is None
        )

    @property
    def units_are_public(self) -> bool:
        """Whether the number of those who are protected may be used as it is.

        They are persons, or rows where there is no unit.
        """
        return self.neighbours == "replace-one"

    @property
    def rows_per_unit(self) -> int:
        """How many rows of one who is protected may be read: one, unless there is a unit.

        Without privacy none is counted.
        """
        if self.unit is None or not self.is_private:
            return 1
        if self.unit.max_rows is None:
            remedy = "Pass max_rows_per_unit=12, for example."
            raise InputError.expected(
                "the most rows of one person", of="max_rows_per_unit", got=None, remedy=remedy
            )
        return self.unit.max_rows

    @property
    def features_are_public(self) -> bool:
        """Whether features and labels may be used as they are.

        They may where sensitive attributes alone are protected, or nothing is.
        """
        return self.protects == "sensitive_features" or not self.is_private

    def __str__(self) -> str:
        what = {"records": "records", "sensitive_features": "sensitive features only"}[
            self.protects
        ]
        whose = (
            self.neighbours
            if self.unit is None
            else f"{self.neighbours}, {self.unit} ({self.unit.name})"
        )
        if not self.is_private:
            return f"not private (epsilon=inf), {what}, {whose}"
        return f"epsilon={self.epsilon:g}, delta={self.delta:g}, {what}, {whose}"

    def to_dict(self) -> dict[str, Any]:
        """Describe the guarantee as plain JSON values.

        Returns
        -------
        dict
            Plain JSON values; an infinite epsilon is written "inf".
        """
        return {
            "epsilon": self.epsilon if self.is_private else "inf",
            "delta": self.delta,
            "protects": self.protects,
            "neighbours": self.neighbours,
            **({} if self.unit is None else {"unit": self.unit.to_dict()}),
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Promise:
        """Read what `to_dict` gives, with the same checks as the constructor.

        Parameters
        ----------
        values : dict
            Plain values.

        Returns
        -------
        Promise
            The guarantee.
        """
        expected = {"epsilon", "delta", "protects", "neighbours"}
        if set(values) - {"unit"} != expected:
            raise InputError.expected(
                f"exactly {sorted(expected)}",
                of="promise",
                got=sorted(values),
                remedy="Write promises with to_dict().",
            )
        epsilon = math.inf if values["epsilon"] == "inf" else values["epsilon"]
        unit = Unit.from_dict(values["unit"]) if "unit" in values else None
        return Promise(epsilon, values["delta"], values["protects"], values["neighbours"], unit)
