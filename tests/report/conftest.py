"""A full report with made-up numbers: every section, groups that are small, undefined and
hostile."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairveil.core.events import Gaussian
from fairveil.facts import Cells
from fairveil.figures import Floor, FrontierFigure, GapFigure, Point, Series
from fairveil.metrics import GroupTable, group_table
from fairveil.privacy import PrivacyStatement, Promise
from fairveil.privacy.ledger import Ledger
from fairveil.privacy.statement.parts import PublicFact
from fairveil.report import Coefficient, GroupPayment, GroupSection, LedgerSection, Payments, Report
from fairveil.report import ledger as ledger_section

HOSTILE = "<script>alert('x')</script> & \"<b>\""


@pytest.fixture(scope="session")
def table() -> GroupTable:
    """Four groups: two large, one of three rows without a positive label, one declared and
    empty."""
    rng = np.random.default_rng(7)
    group = np.array(["f"] * 400 + ["m"] * 600 + [HOSTILE] * 3)
    y = rng.random(1003) < 0.3
    y[-3:] = False
    decided = np.where(rng.random(1003) < 0.85, y, ~y)
    labels, decisions = (np.where(which, ">50K", "<=50K") for which in (y, decided))
    return group_table(labels, decisions, group, groups=Cells((("f", "m", HOSTILE, "none"),)))


@pytest.fixture(scope="session")
def statement() -> PrivacyStatement:
    """Full passes with Gaussian noise."""
    plan = [Gaussian(20.0), *[Gaussian(60.0)] * 100]
    facts = [
        PublicFact("rows", "30000", "argument"),
        PublicFact("sex", "f, m", "read from the data, not covered"),
    ]
    return PrivacyStatement.of(
        Promise(1.0, 1e-9), plan, plan=plan, facts=facts, not_covered=["the split into two parts"]
    )


@pytest.fixture(scope="session")
def frontier() -> FrontierFigure:
    """Three own curves, six published ones, a floor: split by epsilon."""
    series = []
    for k, epsilon in enumerate((0.5, 1.0, math.inf)):
        points = [
            Point(
                0.153 + 0.03 * (0.2 - g) ** 1.5 + 0.004 / (k + 1),
                g,
                0.15,
                0.19,
                max(g - 0.01, 0),
                g + 0.01,
                g,
                15,
            )
            for g in (0.02, 0.05, 0.1, 0.15)
        ]
        protects = "nothing" if math.isinf(epsilon) else "records"
        series.append(Series("Ours", epsilon, protects, tuple(points)))  # type: ignore[arg-type]
        if protects == "records":
            for number in (1, 2, 3):
                spots = tuple(
                    Point(point.error + 0.01 * number, point.gap + 0.013) for point in points
                )
                name = f"Paper {number} ({HOSTILE})"
                series.append(
                    Series(
                        name,
                        epsilon,
                        "sensitive_features",
                        spots,
                        published=True,
                        source="their table",
                    )
                )
    return FrontierFigure(
        "demographic parity",
        "Adult",
        tuple(series),
        Floor(((0.15, 0.0061), (0.2, 0.0057))),
        ("A note.",),
    )


@pytest.fixture(scope="session")
def budget() -> LedgerSection:
    """Two relations, hostile words, a spend of each state."""
    ledger = Ledger.create(None, HOSTILE, 3.0, 1e-6, neighbours="replace-one", who=HOSTILE)
    both = [Promise(1.0, 1e-6, neighbours=relation) for relation in ("add-remove", "replace-one")]
    spends = [
        ledger.reserve(Gaussian(11.0 + k), both[k % 2], purpose=f"{HOSTILE} {k % 3}")
        for k in range(7)
    ]
    for spend in spends[:4]:
        spend.commit(Gaussian(30.0))
    spends[4].refund()
    ledger.resume(spends[5].id, 1)
    return ledger_section(ledger)


@pytest.fixture(scope="session")
def full(
    table: GroupTable, statement: PrivacyStatement, frontier: FrontierFigure, budget: LedgerSection
) -> Report:
    """Every section."""
    together = FrontierFigure("equalized odds", "Credit", frontier.series[:3])
    return Report(
        f"Income {HOSTILE}",
        subject="A made-up census.",
        statement=statement,
        statement_file="statement of mine.json",
        gaps=(
            GapFigure("demographic parity", 0.05, 0.0471, 0.0493, 0.0391, 0.0597),
            GapFigure("error rate", None, 0.021),
        ),
        tables=(GroupSection(table),),
        frontiers=(frontier, together),
        payments=Payments(
            "standard-error",
            (
                GroupPayment("f", 0.0312, 0.4172, 0.1043, 18991.3),
                GroupPayment(HOSTILE, 0.9688, 1.0),
            ),
            ("A sentence about them.",),
        ),
        ledger=budget,
        coefficients=(Coefficient("age", 0.03125, "per year"), Coefficient("region <i>", -1.5)),
        not_covered=("The choice of columns.",),
        verify=("make bench",),
        notes=("One more word.",),
        created="1 May 2025",
    )
