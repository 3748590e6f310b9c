"""The cases: which rows, which groups, which constraints are asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from fairveil import data
from fairveil.facts import Cells, RowBlock
from frontier import communities
from frontier.splits import Coded, split

from .drawn import Law

T = TypeVar("T")
HELD_OUT = 40_000
"""Rows that synthetic cases are measured on."""
PARITY, ODDS, MISSES = "demographic_parity", "equalized_odds", "false_negative_rate"


@dataclass(frozen=True)
class Case:
    """One case. `asked`: the notions and the bounds asked for by default, the tightest last.

    `law` and `rows`: synthetic people; else `source` and `sensitive`: a set that `fairveil data`
    finds.
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
                _whole(self.law.rows(min(count, most or count), 2 * seed + place))
                for place, count in enumerate((self.rows, HELD_OUT))
            )
            return train, test
        train, test = split(_whole(_source(self.source, self.sensitive, folder)), seed)
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


def _source(name: str, sensitive: tuple[str, ...], folder: str | None) -> data.EncodedRows:
    if name in communities.CUTS:
        return communities.rows(name, folder)
    return data.get(name, folder, sensitive=sensitive).rows


def _whole(source: data.EncodedRows) -> Coded:
    """All rows as one block; a part of a set is trained on, so its size is released."""
    blocks = list(source.blocks())
    joined = RowBlock(
        np.concatenate([block.numbers for block in blocks], axis=1),
        np.concatenate([block.codes for block in blocks], axis=1),
        np.concatenate([_there(block.labels) for block in blocks]),
        np.concatenate([_there(block.sensitive) for block in blocks], axis=1),
    )
    return Coded(
        replace(source.encoding, schema=replace(source.encoding.schema, rows=None)), joined
    )


def _there(given: T | None) -> T:
    assert given is not None
    return given


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
        sensitive=(communities.SENSITIVE,),
    ),
)
CASES = {case.name: case for case in (*_DRAWN, *_REAL)}
"""Every case by its name."""
