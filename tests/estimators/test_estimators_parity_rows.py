"""Offsets after a base as a member of the house: bases, rows with and without labels, schemas,
weights, plans and files."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fairveil as fv
import knobs
from fairveil.core import cost as accountant
from fairveil.errors import ChecksumError, FairveilError, InputError, PrivacyError
from fairveil.facts import Category, Number, Schema
from fairveil.statement.form import READ_FROM_DATA

ROWS = 3000
RNG = np.random.default_rng(0)
SEX = RNG.choice(["f", "m"], ROWS)
TABLE = pd.DataFrame(
    {
        "a": RNG.uniform(-0.7, 0.7, ROWS) + 0.3 * (SEX == "m"),
        "b": RNG.uniform(-1, 1, ROWS),
        "sex": SEX,
    }
)
Y = np.where(TABLE["a"] + 0.4 * (SEX == "m") + 0.3 * RNG.normal(size=ROWS) > 0, "yes", "no")
SCHEMA = Schema(
    {
        "a": Number(-1, 1),
        "b": Number(-1, 1),
        "sex": Category(("f", "m", "x")),
        "y": Category(("no", "yes")),
    },
    target="y",
    sensitive=("sex",),
    rows=ROWS,
)
FEATURES = TABLE[["a", "b"]]
BASE = LogisticRegression().fit(FEATURES, Y)
# nobody is of group x
pytestmark = pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")


def made(base: Any = None, **options: Any) -> fv.FairPostProcessor:
    return knobs.made(
        fv.FairPostProcessor,
        base,
        "demographic_parity:0.1",
        **{"rounds": 5, "random_state": 0, "epsilon": 3.0, **options},
    )


def same(one: Any, other: Any, table: Any = TABLE, **how: Any) -> bool:
    found = [clf.predict_proba(table[:200], **how) for clf in (one, other)]
    return bool((found[0] == found[1]).all())


def test_a_base_that_is_fitted_here_is_one_plan_with_the_rounds() -> None:
    clf = made(epsilon=1.0).fit(TABLE, Y, sensitive_features=["sex"])
    statement = clf.privacy_
    assert 0.99 < statement.epsilon <= 1.0
    assert statement.check() == []
    assert any("fitted here" in fact.value for fact in statement.facts)
    alone = made(BASE, public_base=True, epsilon=1.0).fit(TABLE, sensitive_features=["sex"])
    assert clf.noise_ > 1.5 * alone.noise_
    assert list(clf.classes_) == ["no", "yes"]


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_the_share_of_the_base_is_the_bases(share: float) -> None:
    clf = made(base_share=share, epsilon=1.0).fit(TABLE, Y, sensitive_features=["sex"])
    assert clf.estimator_.epsilon == pytest.approx(share)
    assert accountant.epsilon(clf.privacy_.events, 1e-6) <= 1.0


def test_a_base_that_is_charged_and_was_seen_is_refused() -> None:
    base = fv.FairClassifier(solver=fv.PrimalDual(rounds=3), random_state=0).fit(
        TABLE, Y, sensitive_features=["sex"]
    )
    with pytest.raises(PrivacyError, match="unfitted: then both are one plan"):
        made(base).fit(TABLE, sensitive_features=["sex"])
    made(base, public_base=True).fit(TABLE, sensitive_features=["sex"])
    free = fv.FairClassifier(
        solver=fv.PrimalDual(rounds=3), random_state=0, protects="sensitive_features"
    ).fit(FEATURES, Y)
    made(free, protects="sensitive_features").fit(TABLE, sensitive_features=["sex"])


def test_guarantee_1_labels_are_not_read() -> None:
    options: dict[str, Any] = {"public_base": True}
    one = made(BASE, **options).fit(TABLE, sensitive_features=["sex"])
    other = made(BASE, **options).fit(TABLE, np.array(["what"] * ROWS), sensitive_features=["sex"])
    assert (one.offsets_ == other.offsets_).all()
    with pytest.raises(FairveilError, match="y"):
        made().fit(TABLE, sensitive_features=["sex"])  # a base that is fitted here needs them


@pytest.mark.parametrize("labelled", [True, False])
def test_guarantee_2_a_schema_says_the_groups(labelled: bool) -> None:
    table = TABLE.assign(y=Y, unused=1.0) if labelled else TABLE.assign(unused=1.0)
    clf = made(BASE, public_base=True, schema=SCHEMA).fit(table)
    assert READ_FROM_DATA not in {fact.origin for fact in clf.privacy_.facts}
    assert clf.cells_.columns == (("f", "m", "x"),)
    assert clf.moved_.tolist() == [True, True, False]
    assert list(clf.feature_names_in_) == ["a", "b"]
    law = clf.predict_proba(table[:50])
    assert (law == clf.predict_proba(FEATURES[:50], sensitive_features=SEX[:50])).all()
    beside = made(BASE, public_base=True, schema=SCHEMA).fit(FEATURES, sensitive_features=SEX)
    assert (beside.offsets_ == clf.offsets_).all()
    named = made(schema=SCHEMA).fit(table.assign(y=Y))
    assert named.offsets_.shape == (3, 2)


def test_weights_count_and_are_clipped_at_their_cap() -> None:
    weights = np.where(SEX == "f", 5.0, 1.0)
    capped = made(BASE, public_base=True, max_sample_weight=2.0)
    clf = capped.fit(TABLE, sensitive_features=["sex"], sample_weight=weights)
    plain = made(BASE, public_base=True).fit(TABLE, sensitive_features=["sex"])
    assert clf.noise_ == pytest.approx(2.0 * plain.noise_)
    exact = made(BASE, epsilon=math.inf, rounds=40).fit(
        TABLE, sensitive_features=["sex"], sample_weight=weights
    )
    assert exact.gap_ < 0.11
    assert exact.score(TABLE, Y, weights, sensitive_features=["sex"]) > 0.7


def test_a_report_says_whether_the_gap_was_met() -> None:
    clf = made(BASE, public_base=True, rounds=40).fit(TABLE, sensitive_features=["sex"])
    report = clf.constraint_report_
    assert {line.bound for line in report.lines} == {0.1}
    assert max(line.value for line in report.lines) == pytest.approx(clf.gap_)
    assert len(report.required) == 1
    with pytest.warns(fv.errors.ConstraintNotMet, match="a constraint is not met"):
        fv.FairPostProcessor(
            BASE,
            "demographic_parity:0",
            epsilon=math.inf,
            solver=fv.Offsets(rounds=2, temperature=1e-4),
        ).fit(TABLE, sensitive_features=["sex"])


def test_a_plan_is_that_of_the_fit() -> None:
    clf = made(schema=SCHEMA)
    planned = clf.plan(rows=ROWS)
    fitted = made(schema=SCHEMA).fit(TABLE.assign(y=Y))
    search = clf._search(planned_read())
    assert fitted.noise_ == pytest.approx(search.deviation)
    names = [release.name for release in planned.releases]
    assert "decisions by group" in names
    assert any(name.startswith("base: ") for name in names)
    assert str(planned)


def planned_read() -> Any:
    from fairveil.estimators.reading import Unread

    return Unread(SCHEMA, ROWS).read


@pytest.mark.parametrize("foreign", [True, False])
@pytest.mark.parametrize("randomised", [True, False])
def test_a_saved_estimator_decides_the_same_bits(
    tmp_path: Path, foreign: bool, randomised: bool
) -> None:
    clf = made(BASE if foreign else None, public_base=foreign, randomised=randomised)
    clf.fit(TABLE, Y, sensitive_features=["sex"])
    fv.save(clf, tmp_path / "m")
    loaded = fv.load(tmp_path / "m", **({"estimator": BASE} if foreign else {}))
    assert same(clf, loaded, sensitive_features=SEX[:200])
    assert same(clf, loaded)  # by the names of the fit
    for name in ("offsets_", "rates_", "moved_"):
        assert (getattr(loaded, name) == getattr(clf, name)).all()
    assert (loaded.gap_, loaded.noise_, loaded.cells_, loaded.groups_) == (
        clf.gap_,
        clf.noise_,
        clf.cells_,
        clf.groups_,
    )
    assert loaded.constraint_report_ == clf.constraint_report_
    assert loaded.privacy_ == clf.privacy_
    if foreign:
        with pytest.raises(InputError, match="base classifier"):
            fv.load(tmp_path / "m")


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    clf = made(BASE, public_base=True).fit(TABLE, sensitive_features=["sex"])
    fv.save(clf, tmp_path / "m")
    for change in (
        {"rates": {"shape": [1, 1], "values": [0.5]}},
        {"noise": "much"},
        {"moved": {"shape": [2], "values": [1, 0]}},
    ):
        place = shutil.copytree(tmp_path / "m", tmp_path / next(iter(change)))
        content = json.loads((place / "estimator.json").read_text())
        content |= change
        (place / "estimator.json").write_text(json.dumps(content))
        with pytest.raises(InputError, match=next(iter(change))):
            fv.load(place, estimator=BASE)
    raw = (
        (tmp_path / "m" / "model.json")
        .read_text()
        .replace('"temperature": 0.02', '"temperature": 0.03')
    )
    (tmp_path / "m" / "model.json").write_text(raw)
    with pytest.raises(ChecksumError):
        fv.load(tmp_path / "m", estimator=BASE)


def test_the_saved_model_alone_decides_coded_rows() -> None:
    base = fv.FairClassifier(model="linear")
    clf = made(base, schema=SCHEMA).fit(TABLE.assign(y=Y))
    from fairveil.data import encode

    (block,) = encode(TABLE.assign(y=Y), SCHEMA).blocks()
    law = clf.model_.predict_proba(block)
    assert (law == clf.predict_proba(TABLE)).all()
    assert (
        clf.model_.predict_codes(block, 1) == (clf.predict(TABLE, random_state=1) == "yes")
    ).all()
    with pytest.raises(InputError, match="law"):
        made(BASE, public_base=True).fit(TABLE, sensitive_features=["sex"]).model_.predict_proba(
            block
        )


def test_persons_need_a_public_number_of_rows() -> None:
    with pytest.raises(InputError, match="max_rows_per_unit"):
        made(unit="a").fit(TABLE, Y, sensitive_features=["sex"])


def test_one_group_is_refused() -> None:
    with pytest.raises(InputError, match="two groups"):
        made(BASE, public_base=True).fit(TABLE, sensitive_features=np.array(["f"] * ROWS))
