"""The cases: which rows, which groups, which constraints are asked for. A synthetic distribution is
fixed by its case; a seed draws rows of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairveil import data
from fairveil.facts import Category, Cells, Column, Number, Schema
from sets import SENSITIVE, Coded, load, split, whole

HELD_OUT = 40_000
"""Rows that synthetic cases are measured on."""
PARITY, ODDS, MISSES = "demographic_parity", "equalized_odds", "false_negative_rate"

BOUND = 4.0  # of every number, in its own standard deviations


@dataclass(frozen=True)
class Law:
    """Groups of these shares, and labels by a linear score of `width` normal features, the group
    being one of its causes.

    `lift`: how far the first group's merit lies above the last one's. `apart`: how far features
    tell groups apart otherwise. `steep`: of labels in the score; the smaller, the more of them are
    chance. `level`: moves the share of positive labels.
    """

    shares: tuple[float, ...]
    width: int = 12
    lift: float = 0.8
    apart: float = 0.5
    steep: float = 2.0
    level: float = -0.7
    classes: int = 2
    number: int = 7

    @property
    def schema(self) -> Schema:
        """Public facts; how many rows there are is released."""
        columns: dict[str, Column] = {f"x{j}": Number(-BOUND, BOUND) for j in range(self.width)}
        groups = Category(tuple(f"group {c}" for c in range(len(self.shares))))
        return Schema(
            {**columns, "group": groups, "y": Category(tuple(range(self.classes)))},
            sensitive=("group",),
            target="y",
        )

    def rows(self, count: int, seed: int) -> data.EncodedRows:
        """So many people."""
        fixed = np.random.default_rng(self.number)
        away = fixed.normal(size=(len(self.shares), self.width)) / np.sqrt(self.width)
        weights = fixed.normal(size=(self.width, self.classes - 1))
        weights /= np.linalg.norm(weights, axis=0)
        rng = np.random.default_rng((self.number, seed))
        group = rng.choice(len(self.shares), count, p=self.shares)
        merit = np.linspace(0.5, -0.5, len(self.shares)) * self.lift
        X = (
            rng.normal(size=(count, self.width))
            + self.apart * away[group]
            + merit[group, np.newaxis] * weights[:, 0]
        )
        scores = np.hstack([np.zeros((count, 1)), self.steep * X @ weights + self.level])
        y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
        names = np.array(self.schema.columns["group"].values)  # type: ignore[union-attr]
        return data.encode(
            {**{f"x{j}": X[:, j] for j in range(self.width)}, "group": names[group], "y": y},
            self.schema,
        )


@dataclass(frozen=True)
class Case:
    """One case. `asked`: the notions and the bounds asked for by default, the tightest last.

    `law` and `rows`: synthetic people; else `source` and `sensitive`: a set of `named`.
    """

    name: str
    words: str
    asked: tuple[tuple[str, tuple[float, ...]], ...]
    law: Law | None = None
    rows: int = 0
    source: str = ""
    sensitive: tuple[str, ...] = ()
    marginal: bool = False

    def parts(
        self, seed: int, folder: str | None = None, most: int | None = None
    ) -> tuple[Coded, Coded]:
        """Rows to train on and rows to measure on. `most`: of either, for a quick look."""
        if self.law is not None:
            train, test = (
                whole(self.law.rows(min(count, most or count), 2 * seed + place))
                for place, count in enumerate((self.rows, HELD_OUT))
            )
            return train, test
        train, test = split(load(self.source, folder, sensitive=self.sensitive), seed)
        return train[np.arange(train.block.rows)[:most]], test[np.arange(test.block.rows)[:most]]

    def cells(self, rows: Coded) -> Cells:
        """Its groups."""
        return Cells(
            rows.layout.sensitive, "marginal" if self.marginal else "product", self.sensitive
        )

    def constraint(self, notion: str, bound: float) -> str:
        """As estimators take it."""
        return f"{notion}:{bound:g}" + (
            ",groups=marginal" if self.marginal and notion != MISSES else ""
        )


CENSUS = 29_349
WIDE = (0.10, 0.05, 0.02)
_DRAWN = (
    Case("two-groups", "synthetic, 2 groups", ((PARITY, WIDE),), Law((0.5, 0.5)), CENSUS),
    Case(
        "three-groups",
        "synthetic, 3 groups, one of 4 %",
        ((PARITY, WIDE),),
        Law((0.5, 0.46, 0.04)),
        CENSUS,
    ),
    Case(
        "four-groups",
        "synthetic, 4 groups, one of 4 %",
        ((PARITY, WIDE),),
        Law((0.5, 0.3, 0.16, 0.04)),
        CENSUS,
    ),
    Case(
        "five-groups",
        "synthetic, 5 groups, one of 4 %",
        ((PARITY, WIDE),),
        Law((0.4, 0.25, 0.2, 0.11, 0.04)),
        CENSUS,
    ),
    Case(
        "six-groups",
        "synthetic, 6 groups, 4,000 rows",
        ((PARITY, (0.1, 0.05)),),
        Law((1 / 6,) * 6),
        4_000,
    ),
    Case(
        "nine-groups",
        "synthetic, 9 groups, 4 classes",
        ((PARITY, (0.2, 0.1)),),
        Law((1 / 9,) * 9, classes=4),
        30_000,
    ),
    Case(
        "small",
        "synthetic, 3 groups, 4,000 rows",
        ((ODDS, (0.1, 0.05)), (PARITY, (0.1, 0.05))),
        Law((0.5, 0.3, 0.2), steep=0.7, level=-0.1),
        4_000,
    ),
    Case(
        "rare",
        "synthetic, 9.5 % positive, 60,000 rows",
        ((MISSES, (0.3, 0.2)), (PARITY, (0.05, 0.02))),
        Law((0.5, 0.5), steep=1.4, level=-3.1),
        60_000,
    ),
    Case(
        "encoded",
        "synthetic, 3,000 rows, features that tell the group",
        ((ODDS, (0.1, 0.05)), ("false_positive_rate_parity", (0.1, 0.05))),
        Law((0.6, 0.4), width=6, lift=1.4, apart=2.0),
        3_000,
    ),
)
_REAL = (
    Case(
        "adult-parity",
        "Adult by sex",
        ((PARITY, (0.1, 0.05, 0.02)),),
        source="adult",
        sensitive=("sex",),
    ),
    Case(
        "adult-odds",
        "Adult by sex",
        ((ODDS, (0.08, 0.05, 0.03)),),
        source="adult",
        sensitive=("sex",),
    ),
    Case(
        "adult-race", "Adult by race", ((PARITY, (0.1, 0.05)),), source="adult", sensitive=("race",)
    ),
    Case(
        "adult-race-odds",
        "Adult by race",
        ((ODDS, (0.2, 0.1)),),
        source="adult",
        sensitive=("race",),
    ),
    Case(
        "adult-odds-many",
        "Adult by sex and by race",
        ((ODDS, (0.08,)),),
        source="adult",
        sensitive=("sex", "race"),
        marginal=True,
    ),
    Case(
        "adult-product",
        "Adult by sex x race",
        ((PARITY, (0.15, 0.1)),),
        source="adult",
        sensitive=("sex", "race"),
    ),
    Case(
        "law-race",
        "Law School by race",
        ((PARITY, (0.05, 0.02)), (ODDS, (0.1, 0.05))),
        source="law_school",
        sensitive=("race",),
    ),
    Case(
        "credit-education",
        "Credit by education",
        ((PARITY, (0.05, 0.02)),),
        source="credit",
        sensitive=("EDUCATION",),
    ),
    Case(
        "credit-marriage",
        "Credit by marital status",
        ((PARITY, (0.05, 0.02)),),
        source="credit",
        sensitive=("MARRIAGE",),
    ),
    Case(
        "communities",
        "Communities, by share of black residents",
        ((PARITY, (0.2, 0.1)), (ODDS, (0.2, 0.1))),
        source="communities",
        sensitive=(SENSITIVE,),
    ),
)
CASES = {case.name: case for case in (*_DRAWN, *_REAL)}
"""Every case by its name."""
