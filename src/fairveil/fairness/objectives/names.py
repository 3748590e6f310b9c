"""Objectives and constraints by their names, and as the plain values that are written of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from ... import _checks
from ...errors import InputError
from .. import bounds as limits
from .. import objectives_json
from ..notions import NOTIONS, parse
from ..notions import from_dict as notion_from_dict
from ..rates import Notion, RateConstraint
from ..resolution import as_list
from .constraint import Constraint
from .objective import KINDS, Bound, Objective
from .of_errors import Error, FalseNegatives, FalsePositives, GMean, HMean, RateOf, WeightedError
from .of_gaps import GAPS, Gap, SmoothedOdds, SmoothedOddsOfPairs, SmoothedOddsOfRates
from .of_groups import Gini, GroupLoss, LargestGroupLoss, MeanGroupLoss, SumOfErrorRates

NAMES: Mapping[str, Callable[[], Objective]] = {
    "error": Error,
    "gmean": GMean,
    "hmean": HMean,
    "largest_group_loss": LargestGroupLoss,
    "mean_group_loss": MeanGroupLoss,
    "sum_of_error_rates": SumOfErrorRates,
    "false_negative_rate": FalseNegatives,
    "false_positive_rate": FalsePositives,
    "gini": Gini,
    **{name: (lambda name=name: Gap(name)) for name in GAPS},  # type: ignore[misc]
}


KINDS.update(
    {
        cls.kind: cls
        for cls in (
            Error,
            WeightedError,
            RateOf,
            FalseNegatives,
            FalsePositives,
            GMean,
            HMean,
            Gap,
            SmoothedOdds,
            LargestGroupLoss,
            GroupLoss,
            MeanGroupLoss,
            SumOfErrorRates,
            SmoothedOddsOfPairs,
            SmoothedOddsOfRates,
            Gini,
        )
    }
)


def from_dict(values: object) -> Objective | Bound | Constraint:
    """The inverse of every `to_dict` here; refuses unknown objectives and fields."""
    named = set(values) if isinstance(values, Mapping) else set()
    given: Mapping[str, Any] = values if isinstance(values, Mapping) else {}
    if named == {"bounds", "notions"} and all(
        isinstance(listed, list) for listed in given.values()
    ):
        bounds = tuple(from_dict(one) for one in given["bounds"])
        if all(isinstance(one, Bound) for one in bounds):
            return Constraint(bounds, tuple(map(notion_from_dict, given["notions"])))  # type: ignore[arg-type]
    if named == {"bound", "of"}:
        of = from_dict(given["of"])
        if isinstance(of, Objective):
            return Bound(of, _checks.non_negative(bound=given["bound"]))
    kind = given.get("objective")
    cls = KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        expected = f"an object whose 'objective' is one of {', '.join(KINDS)}, or a bound of one"
        raise InputError.expected(
            expected, of="objective", got=values, remedy="Write it with to_dict()."
        )
    names = {one.name for one in fields(cls)}  # type: ignore[arg-type]
    if named != names | {"objective"}:
        remedy = "Write it with to_dict()."
        raise InputError.expected(
            f"the fields {sorted(names)}", of=cls.kind, got=sorted(named), remedy=remedy
        )
    return cls(**{name: objectives_json.read(given[name], of=name) for name in names})


NOT_WRITTEN = (
    "It stands for a function of the user's, which is not written: set it anew with set_params "
    "before a fit."
)
"""What a loaded estimator has in its place is the word "given"."""


def parse_objective(given: object) -> Objective:
    """An objective, or its name."""
    if isinstance(given, Objective):
        return given
    name = given.replace("-", "_") if isinstance(given, str) else given
    if not isinstance(name, str) or name not in NAMES:
        # a Gini index is bounded, never minimized
        known = ", ".join(one for one in NAMES if one != Gini.kind)
        expected, remedy = (
            f"an objective, or a name out of {known}",
            "Pass objective='error', for example.",
        )
        if isinstance(given, Bound | Constraint | Notion) or (
            isinstance(given, str) and ":" in given
        ):
            remedy = (
                "A bound is a constraint=; as an objective name what is to be small: "
                "objective='equalized_odds', for example."
            )
        raise InputError.expected(
            expected, of="objective", got=given, remedy=NOT_WRITTEN if given == "given" else remedy
        )
    return NAMES[name]()


def parse_constraint(given: object) -> Constraint:
    """None, one or several: bounds, notions of fairness, or texts such as "equalized_odds:0.1" and
    "gmean:0.3"."""
    single = isinstance(given, str | Notion | Bound | Constraint | Mapping) or not isinstance(
        given, Iterable
    )
    listed: Any = [] if given is None else [given] if single else given
    bounds: list[Bound] = []
    notions: list[Notion] = []
    for item in listed:
        one = _parsed(item) if isinstance(item, str) else item
        if isinstance(one, Bound):
            bounds.append(one)
        elif isinstance(one, Constraint):
            bounds, notions = [*bounds, *one.bounds], [*notions, *one.notions]
        elif isinstance(one, Notion):
            notions += as_list(one)
        else:
            remedy = (
                'Pass "equalized_odds:0.1", EqualizedOdds(0.1) or '
                "objectives.GMean().at_least(0.7), for example."
            )
            raise InputError.expected(
                "a bound or a notion of fairness", of="constraint", got=item, remedy=remedy
            )
    return Constraint(tuple(bounds), tuple(notions))


def _parsed(text: str) -> Bound | Notion:
    name, _, rest = (part.strip() for part in text.partition(":"))
    name = name.replace("-", "_")
    head = name.partition(",")[0].strip()
    if (head in NAMES or head in NOTIONS) and not rest and "max_" not in name:
        remedy = (
            f"Write {head}:0.1 or {head}:10%, for example: how much is allowed is yours to say."
        )
        raise InputError.expected(
            "a name, ':' and a bound", of="constraint", got=text, remedy=remedy
        )
    if name in NAMES and name not in NOTIONS:
        try:
            bound = float(rest) if (part := limits.share(rest)) is None else part
        except ValueError:
            remedy = f"Write {name}:0.2 or {name}:20%, for example."
            raise InputError.expected(
                "a name, ':' and a number", of="constraint", got=text, remedy=remedy
            ) from None
        asked = NAMES[name]()
        if asked.decisions_only or isinstance(asked, Gini):
            limits.require_below_one(bound, text, name, "max_rate")
        return asked.at_most(bound)
    if text == "given":
        raise InputError.expected(
            "a bound or a notion of fairness", of="constraint", got=text, remedy=NOT_WRITTEN
        )
    if head not in NOTIONS:
        known = ", ".join(
            dict.fromkeys([*NAMES, *(kind for kind in NOTIONS if kind != RateConstraint.kind)])
        )
        expected, remedy = (
            f"a name out of {known}, then ':' and a bound",
            "Pass demographic_parity:0.05, for example.",
        )
        raise InputError.expected(expected, of="constraint", got=text, remedy=remedy)
    return parse(text)
