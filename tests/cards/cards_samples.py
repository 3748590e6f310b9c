"""A fitted model with everything beside it, and parsers of what cards are written in."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

import fairveil as fv
from fairveil.report import GapFigure, GroupSection, Report
from fairveil.report.numbers import to_dict

ROWS = 3000


def people(seed: int = 0, rows: int = ROWS) -> tuple[dict[str, Any], Any, Any]:
    rng = np.random.default_rng(seed)
    X = {"age": rng.uniform(-1, 1, rows), "hours": rng.uniform(-1, 1, rows)}
    return (
        X,
        np.where(X["age"] + rng.normal(0, 0.3, rows) > 0, "yes", "no"),
        rng.choice(["f", "m"], rows),
    )


@functools.cache
def model(
    epsilon: float = 2.0, seed: int | None = 0, constraint: str | None = "demographic_parity:0.2"
) -> Any:
    X, y, sex = people()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = fv.RateConstrainedClassifier(constraint, epsilon=epsilon, random_state=seed)
        return clf.fit(X, y, sensitive_features=sex)


@functools.cache
def certificate() -> Any:
    X, y, sex = people(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fv.certify(
            model(),
            X,
            y,
            sensitive_features=sex,
            constraints="demographic_parity:0.2",
            epsilon=1.0,
            random_state=0,
        )


@functools.cache
def twin() -> dict[str, Any]:
    """The numbers of a report with held-out people."""
    clf = model()
    X, y, sex = people(2, 400)
    section = GroupSection(fv.group_table(y, clf.predict(X), sex), of="held-out people")
    gap = GapFigure(
        "demographic parity",
        target=0.2,
        training_noisy=0.01,
        held_out=0.03,
        held_out_low=0.0,
        held_out_high=0.1,
    )
    return to_dict(
        Report(
            "Hiring",
            subject="Made-up people.",
            statement=clf.privacy_,
            gaps=[gap],
            tables=[section],
        ),
        twin="r.json",
    )


FACTS: dict[str, Any] = {
    "url_slug": "hiring-2026",
    "name": "Hiring",
    "data_curators": ["A firm"],
    "intended_use": "Advice to recruiters.",
    "data_product_region": "Nowhere",
    "description": "A linear classifier: of made-up people.",
    "publication_date": "2026-01-31",
    "registry_authors": ["Somebody"],
}
