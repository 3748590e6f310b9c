"""A model card has the released numbers and verdicts, and says in its first paragraph what is insecure."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairveil as fv
from fairveil.errors import InputError
from fairveil.show import People, Report, model_card

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (1500, 2))
Y, SEX = np.where(X[:, 0] > 0, "yes", "no"), RNG.choice(["f|m", "<b>"], 1500)


def fitted(epsilon: float = 2.0) -> Any:
    clf = fv.FairClassifier(
        "demographic_parity:0.2", epsilon=epsilon, random_state=0, solver=fv.PrimalDual(rounds=5)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(X, Y, sensitive_features=SEX)


CLF = fitted()
TABLE = fv.group_table(Y, CLF.predict(X), SEX)
REPORT = Report("Hiring", method="descent", statement=CLF.privacy_, people=(People(TABLE),))


def test_numbers_and_verdicts_are_those_that_were_released() -> None:
    """Guarantees 1 and 3."""
    card = model_card(CLF, report=REPORT, name="Hiring", license="mit")
    known = f"{CLF.privacy_} {CLF.constraint_report_} {TABLE} {REPORT} {REPORT.to_json()}"
    numbers = set(re.findall(r"\d+\.\d+", card))
    assert len(numbers) > 10
    assert not {one for one in numbers if one not in known}
    verdicts = {line.verdict for line in CLF.constraint_report_.lines}
    assert ("| met |" in card) <= (
        "met" in verdicts | {line.population_verdict for line in CLF.constraint_report_.lines}
    )
    assert "<b>" not in card.replace("\\<b\\>", "")
    assert card.startswith('---\nlicense: "mit"\n')


def test_what_is_insecure_or_not_private_stands_first() -> None:
    """Guarantee 2."""
    head = model_card(CLF).partition("## Model")[0]
    assert "**INSECURE (seeded noise).**" in head
    free = model_card(fitted(float("inf")))
    assert "**NOT PRIVATE.**" in free.partition("## Model")[0]
    assert "Nothing is guaranteed" in free


def test_what_is_not_of_this_model_is_refused(tmp_path: Path) -> None:
    page, twin = REPORT.write(tmp_path / "report.html")
    assert model_card(CLF, report=twin) == model_card(CLF, report=REPORT)
    with pytest.raises(InputError, match="report of this model"):
        model_card(fitted(3.0), report=twin)
    for wrong in ({"license": "two words"}, {"name": "a\nb"}, {"report": 3}):
        with pytest.raises(InputError):
            model_card(CLF, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="fitted estimator"):
        model_card(object())
    assert page.exists()
