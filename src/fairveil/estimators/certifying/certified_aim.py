"""What a certified fit aims at: inside each bound by its margin, as far as there is room; and what
is known in advance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np

from ...facts import Schema
from ...facts.columns import Boolean, Category
from ...fairness import Notion
from ...fairness.notions import RateConstraint, SelectionRateRatio
from ...learning.game import Equilibrium
from ...learning.objectives import Found
from ...learning.outcome import Outcome
from ..reading.fitted_parts import parts_of

CHANCE, LEAST, BLIND = 0.8, 0.2, 0.5
"""The chance that margins are for, the least part of a bound that is aimed at, and the part of it
without a public number of rows."""


@dataclass(frozen=True)
class CertifiedAim:
    """What a certified fit aimed at: the `share` of rows set aside, about how many `people` (None:
    not public), and for each notion its bound, the `margin` that a certificate needs with this
    `chance`, and the `aim` of the fit."""

    share: float
    people: int | None
    chance: float
    confidence: float
    bounds: tuple[float, ...]
    margins: tuple[float, ...]
    aims: tuple[float, ...]

    @property
    def wide_enough(self) -> bool:
        """Whether the certificate will be granted with about the chance; else set aside more, or
        allow a larger bound."""
        return self.people is not None and all(
            m < (1.0 - LEAST) * b for m, b in zip(self.margins, self.bounds, strict=True)
        )


def notion_confidence(notion: Notion) -> float | None:
    """The confidence with which a notion is to be certified."""
    return None if notion.confidence is None else float(notion.confidence)


def plain(notion: Notion) -> Notion:
    """The notion without its confidence."""
    return (
        notion if notion_confidence(notion) is None else replace(cast(Any, notion), confidence=None)
    )


def bound_of(notion: Any) -> float:
    """What it allows; of a ratio, how far below 1."""
    if isinstance(notion, SelectionRateRatio):
        return 1.0 - notion.min_ratio
    name = (
        "bound"
        if isinstance(notion, RateConstraint)
        else next(f.name for f in fields(notion) if f.name.startswith("max_"))
    )
    return float(getattr(notion, name))


def tightened(notion: Any, margin: float) -> Notion:
    """The notion with a bound that lies the margin inside; a ratio by about as much: at rates of
    one half its unit is twice."""
    bound = bound_of(notion)
    if isinstance(notion, SelectionRateRatio):
        return replace(notion, min_ratio=1.0 - _within(bound, 2.0 * margin), confidence=None)
    name = next(f.name for f in fields(notion) if f.name.startswith("max_"))
    return cast(Notion, replace(notion, **{name: _within(bound, margin), "confidence": None}))


def _within(bound: float, margin: float) -> float:
    return BLIND * bound if math.isinf(margin) else max(bound - margin, LEAST * bound)


def shares_stated(schema: Schema | None, names: Sequence[str]) -> list[float] | None:
    """The stated shares of product cells; None where a column has none."""
    if schema is None:
        return None
    columns = [schema.columns.get(name) for name in names]
    shares = [one.shares if isinstance(one, Category | Boolean) else None for one in columns]
    if not shares or any(share is None for share in shares):
        return None
    out = np.ones(1)
    for share in shares:
        out = np.outer(out, np.asarray(share)).ravel()
    return list(map(float, out))


def shares_of_target(schema: Schema | None) -> tuple[float, ...] | None:
    """The stated shares of the labels."""
    target = None if schema is None or schema.target is None else schema.columns[schema.target]
    return target.shares if isinstance(target, Category | Boolean) else None


def labels_of(inner: object, classes: Sequence[Any], schema: Schema | None) -> list[float] | None:
    """The shares of the labels, from what the fit released or the schema states; None where neither
    says."""
    parts = parts_of(inner)
    outcome, released = parts.outcome, parts.released
    comparison = outcome.comparison if isinstance(outcome, Outcome | Equilibrium) else None
    counts = np.zeros(0)
    if comparison is not None:
        counts = comparison.table.counts.sum(axis=1)
    elif released is not None:
        counts = released.counts.sum(axis=(0, 2))
    elif isinstance(outcome, Found):
        counts = outcome.counts.sum(axis=0)
    sizes = np.maximum(counts, 0.0)
    if len(sizes) == len(classes) and sizes.sum() > 0.0:
        return [float(one) for one in sizes / sizes.sum()]
    stated = shares_of_target(schema)
    return None if stated is None or len(stated) != len(classes) else list(stated)
