"""Released groups where recorded ones were flipped or drawn: what is estimated, said, saved and
refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fairveil as fv
from fairveil.errors import InputError
from fairveil.facts import Category, Number, Schema

RNG = np.random.default_rng(0)
ROWS = 6000
A = RNG.integers(2, size=ROWS)
X = RNG.normal(size=(ROWS, 2)) + 0.8 * A[:, None]
Y = (X.sum(axis=1) + RNG.normal(size=ROWS) > 1).astype(int)
ASKED = fv.facts.Reports.randomized_response(("f", "m"), 1.1)
FLIPPED = np.array(["f", "m"])[np.where(RNG.uniform(size=ROWS) < ASKED.rates[0][1], 1 - A, A)]
DECISIONS = (X.sum(axis=1) > 1).astype(int)
TRUE_GAP = abs(DECISIONS[A == 1].mean() - DECISIONS[A == 0].mean())


def test_the_gap_of_true_groups_is_estimated_from_flipped_ones() -> None:
    """The flips halve the gap of the reports. The estimate is nearer to the truth, which its bars
    reach."""
    released = fv.release_groups(
        X, Y, sensitive_features=FLIPPED, reports=ASKED, epsilon=1.0, random_state=0
    )
    lines = released.rates(X, Y, DECISIONS, "demographic_parity:0.05")
    bare = fv.release_groups(X, Y, sensitive_features=FLIPPED, epsilon=1.0, random_state=0)
    reported = max(
        abs(line.value) for line in bare.rates(X, Y, DECISIONS, "demographic_parity:0.05")
    )
    estimated = max(abs(line.value) for line in lines)
    assert reported < 0.75 * TRUE_GAP
    assert abs(estimated - TRUE_GAP) < abs(reported - TRUE_GAP)
    assert max(line.high for line in lines) >= TRUE_GAP
    assert released.memberships(X, Y).sum(axis=1) == pytest.approx(1.0)


def test_the_statement_has_both_epsilons_and_the_price_is_that_of_the_reports() -> None:
    released = fv.release_groups(
        X, Y, sensitive_features=FLIPPED, reports=ASKED, epsilon=0.5, random_state=0
    )
    (fact,) = (fact for fact in released.privacy.facts if fact.name == "recorded groups")
    assert "epsilon 1.1 of each report" in fact.value
    assert "0.247 of a true group" in fact.value
    assert 0.4999 < released.privacy.epsilon <= 0.5
    assert released.privacy.check() == []


def test_a_release_of_reports_is_saved_and_read(tmp_path: Path) -> None:
    released = fv.release_groups(
        X, Y, sensitive_features=FLIPPED, reports=ASKED, epsilon=1.0, random_state=0
    )
    again = fv.estimators.ReleasedGroups.load(released.write(tmp_path / "file.json"))
    assert again.counts.reports == ASKED
    assert again.memberships(X, Y).tobytes() == released.memberships(X, Y).tobytes()
    assert fv.estimators.ReleasedGroups.examine((tmp_path / "file.json").read_text())[1] == []
    clf = fv.FairClassifier("demographic_parity:0.1", protects="sensitive_features")
    clf.fit(X, Y, sensitive_features=released)
    law = clf.predict_proba(X)[:, 1]
    assert abs(law[A == 1].mean() - law[A == 0].mean()) < 0.75 * TRUE_GAP


def test_distributions_are_drawn_and_their_sums_are_estimated() -> None:
    share = 1 / (1 + np.exp(-2 * (X[:, 0] - 0.4)))
    soft = fv.estimators.SoftGroups(np.stack([1 - share, share], axis=1), ("f", "m"))
    released = fv.release_groups(X, Y, sensitive_features=soft, epsilon=1.0, random_state=0)
    assert (
        "drawn from that person's distribution"
        in {fact.name: fact.value for fact in released.privacy.facts}["recorded groups"]
    )
    lines = released.rates(X, Y, DECISIONS, "demographic_parity:0.05")
    rates = [(part * DECISIONS).sum() / part.sum() for part in (share, 1 - share)]
    assert max(line.high for line in lines) >= abs(rates[0] - rates[1])
    assert max(line.high - line.low for line in lines) < 0.2


def test_a_schema_declares_groups_that_nobody_reports() -> None:
    schema = Schema(
        {
            "a": Number(-6, 6),
            "b": Number(-6, 6),
            "sex": Category(("m", "f", "x")),
            "y": Category((0, 1)),
        },
        target="y",
        sensitive="sex",
    )
    table = {"a": X[:, 0], "b": X[:, 1]}
    reports = fv.facts.Reports.randomized_response(("f", "m", "x"), 2.0)
    released = fv.release_groups(
        table,
        Y,
        sensitive_features={"sex": FLIPPED},
        schema=schema,
        reports=reports,
        epsilon=1.0,
        random_state=0,
    )
    assert released.groups == ("m", "f", "x")
    assert released.counts.reports is not None
    assert released.counts.reports.groups == released.groups
    soft = fv.estimators.SoftGroups(np.tile([0.5, 0.5, 0.0], (ROWS, 1)), ("f", "m", "x"))
    drawn = fv.release_groups(
        table, Y, sensitive_features=soft, schema=schema, epsilon=1.0, random_state=0
    )
    assert drawn.groups == ("m", "f", "x")
    assert abs(drawn.counts.estimates[0].sum() / ROWS - 0.5) < 0.1


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="the groups"):
        fv.release_groups(X, Y, sensitive_features=A, reports=ASKED)
    soft = fv.estimators.SoftGroups(np.full((ROWS, 2), 0.5), ("f", "m"))
    with pytest.raises(InputError, match="None beside distributions"):
        fv.release_groups(X, Y, sensitive_features=soft, reports=ASKED)
    with pytest.raises(InputError, match="rows"):
        fv.release_groups(X[:-1], Y[:-1], sensitive_features=soft)


def test_stated_groups_are_listed_whoever_is_drawn() -> None:
    """No group of a list is left out because nobody drew it: whether somebody did is private."""
    shares = np.tile([0.5, 0.5, 0.0], (ROWS, 1))
    other = shares.copy()
    other[7] = [0.0, 0.0, 1.0]  # one row's distribution changes
    told = []
    for one in (shares, other):
        soft = fv.estimators.SoftGroups(one, ("m", "f", "x"))
        made = fv.release_groups(X, Y, sensitive_features=soft, epsilon=1.0, random_state=0)
        table = fv.private_audit(Y, sensitive_features=soft, epsilon=1.0, random_state=0)
        assert made.groups == ("m", "f", "x")
        facts = [*made.privacy.facts, *table.privacy_.facts]
        assert not [one for one in facts if "group" in one.name and "read" in one.origin]
        told.append([(one.name, one.value, one.origin) for one in facts])
    assert told[0] == told[1]
