"""Estimators that protect persons: how they are told of them, what is refused, what the statement
and the ledger say."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.audit import audit_scores
from fairveil.curator import Rows
from fairveil.errors import InputError, LedgerError, PrivacyError, SchemaError
from fairveil.estimators.certifying import certified_fits
from fairveil.facts import Category, Ignored, Number, Schema
from fairveil.privacy import Unit
from knobs import made

TAILORED = (ways.tailored_regression, ways.tailored)
COMMON = {"epsilon": 3.0, "delta": 1e-5, "random_state": 0, "rounds": 6}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def table(people=120, most=9, seed=0):
    """Persons with 1 to `most` rows, in a shuffled table."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(people), rng.integers(1, most + 1, people))
    rng.shuffle(ids)
    n = len(ids)
    group = rng.integers(0, 2, people)[ids]
    a, b = rng.uniform(-1, 1, (2, n))
    y = (a + 0.3 * group + 0.3 * rng.normal(size=n) > 0).astype(int)
    return {
        "a": a,
        "b": b,
        "patient": np.array([f"p{i}" for i in ids]),
        "sex": np.array(["f", "m"])[group],
    }, y


def fitted(X, y, **options):
    groups = options.pop("sensitive_features", "sex")
    settings = {"randomised": False, **COMMON, **options}  # coefficients are compared
    return made(fv.FairClassifier, "demographic_parity:0.1", **settings).fit(
        X, y, sensitive_features=groups
    )


def test_a_schema_of_columns_and_one_of_facts_alone_say_the_same():
    X, y = table()
    by_name = fitted(X, y, unit="patient", max_rows_per_unit=4)
    rest = {name: values for name, values in X.items() if name != "patient"}
    assert by_name.privacy_.promise.unit == Unit("patient", 4)
    assert list(by_name.coef_names_) == ["a", "b"]
    # the column is no feature, there or not
    assert (by_name.predict(X) == by_name.predict(rest)).all()
    columns = {
        "a": Number(-1, 1),
        "b": Number(-1, 1),
        "sex": Category(("f", "m")),
        "hired": Category((0, 1)),
    }
    schema = Schema(columns, target="hired", sensitive="sex", unit="patient", max_rows_per_unit=4)
    of_schema = fitted(X, y, schema=schema)
    assert of_schema.privacy_.promise.unit == Unit("patient", 4)
    told = fitted(
        X,
        y,
        schema=Schema(columns, target="hired", sensitive="sex"),
        unit="patient",
        max_rows_per_unit=4,
    )
    assert (of_schema.coef_ == told.coef_).all()


def test_who_has_one_row_each_is_fitted_as_rows_are():
    X, y = table(most=1)
    one = fitted(X, y, unit="patient", max_rows_per_unit=1)
    rows = fitted({name: values for name, values in X.items() if name != "patient"}, y)
    assert (one.coef_ == rows.coef_).all()
    assert one.privacy_.events == rows.privacy_.events
    assert one.privacy_.promise == replace(rows.privacy_.promise, unit=Unit("patient", 1))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("estimator", [fv.FairClassifier, ways.fermi])
def test_the_statement_is_about_persons_and_checks(estimator, neighbours):
    X, y = table()
    clf = made(estimator, unit="patient", max_rows_per_unit=5, neighbours=neighbours, **COMMON)
    clf.fit(X, y, sensitive_features="sex")
    said = clf.privacy_.summary()
    assert "Unit: one person, at most 5 of their rows" in said
    assert clf.privacy_.check() == []
    assert clf.privacy_.epsilon <= 3.0
    bounds = {(bound.question, bound.norm): bound for bound in clf.privacy_.bounds}
    gradient = bounds["gradient sum", "L2"]
    assert "added, and the sum is clipped" in gradient.reason
    per_row = 1 if neighbours == "add-remove" else 2
    assert gradient.sensitivity == pytest.approx(per_row * 2.0 * 5**0.25, rel=1e-6)
    assert fv.privacy.PrivacyStatement.from_json(clf.privacy_.to_json()) == clf.privacy_


def test_attribute_privacy_of_persons_counts_all_of_their_rows():
    X, y = table(most=4)
    counts = np.unique(X["patient"], return_counts=True)[1]
    options = {"protects": "sensitive_features", "unit": "patient"}
    clf = fitted(X, y, max_rows_per_unit=int(counts.max()), **options)
    by_row = fitted(
        {name: values for name, values in X.items() if name != "patient"},
        y,
        protects="sensitive_features",
    )
    moved = [{b.question: b.sensitivity for b in one.privacy_.bounds} for one in (clf, by_row)]
    assert moved[0]["cell counts"] == pytest.approx(
        counts.max() * moved[1]["cell counts"], rel=1e-9
    )
    assert "whose each row is ('patient')" in clf.privacy_.summary()
    with pytest.raises(InputError, match=f"at least {counts.max()}, the most rows of one person"):
        fitted(X, y, max_rows_per_unit=int(counts.max()) - 1, **options)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"unit": "patient"}, "max_rows_per_unit: expected the most rows of one person"),
        ({"unit": "doctor", "max_rows_per_unit": 3}, "unit: expected a column of X, got 'doctor'"),
        (
            {"unit": "sex", "max_rows_per_unit": 3},
            "unit: expected a column that is no sensitive feature",
        ),
    ],
)
def test_what_is_told_wrongly_is_refused_before_a_row_is_read(options, what):
    X, y = table()
    clf = made(fv.FairClassifier, **{**COMMON, **options})
    with pytest.raises(InputError, match=what):
        clf.fit(X, y, sensitive_features="sex")
    assert not hasattr(clf, "privacy_")


@pytest.mark.parametrize("missing", [None, "", math.nan])
def test_a_row_of_nobody_is_refused_without_a_name_in_the_error(missing):
    X, y = table()
    names = X["patient"].astype(object)
    names[5] = missing
    with pytest.raises(InputError, match="a person for every row") as caught:
        fitted({**X, "patient": names}, y, unit="patient", max_rows_per_unit=3)
    assert not any(name in str(caught.value) for name in set(X["patient"]))


def test_an_array_has_no_names_of_columns():
    X, y = table()
    numbers = np.stack([X["a"], X["b"]], axis=1)
    with pytest.raises(InputError, match="no such column"):
        fitted(numbers, y, unit="patient", max_rows_per_unit=3, sensitive_features=X["sex"])


def test_a_unit_has_no_other_role_in_a_schema():
    columns = {
        "a": Number(-1, 1),
        "patient": Ignored(),
        "sex": Category(("f", "m")),
        "hired": Category((0, 1)),
    }
    schema = Schema(columns, target="hired", sensitive="sex", unit="patient", max_rows_per_unit=4)
    assert Schema.from_toml(schema.to_toml()) == schema
    assert Schema.from_json(schema.to_json()) == schema
    assert "persons, identified by patient, at most 4 rows each" in schema.describe()
    assert schema.fingerprint != Schema(columns, target="hired", sensitive="sex").fingerprint
    for wrong in ("a", "sex", "hired"):
        with pytest.raises(SchemaError, match="a column that is ignored"):
            Schema(columns, target="hired", sensitive="sex", unit=wrong)
    with pytest.raises(SchemaError, match="none without a unit"):
        Schema(columns, target="hired", max_rows_per_unit=3)
    for wrong in (0, 1.5, "12"):
        with pytest.raises(SchemaError):
            Schema(columns, target="hired", unit="patient", max_rows_per_unit=wrong)
    X, y = table()
    with pytest.raises(SchemaError, match="a column that is ignored"):
        fitted(
            X,
            y,
            schema=Schema(columns, target="hired", sensitive="sex"),
            unit="a",
            max_rows_per_unit=3,
        )


def test_a_schema_without_a_unit_is_written_as_before():
    plain = Schema({"a": Number(-1, 1), "hired": Category((0, 1))}, target="hired")
    assert "unit" not in plain.to_toml()
    assert "max_rows_per_unit" not in plain.to_json()


@pytest.mark.parametrize("estimator", TAILORED, ids=lambda one: one.__name__)
def test_budgets_by_group_are_of_persons_who_are_in_one_group(estimator):
    """Of some persons one of three rows says another group: all of them count where two are. A
    group's epsilon is told of persons."""
    X, y = table(most=3)
    _, number = np.unique(X["patient"], return_inverse=True)
    options = {"unit": "patient", "max_rows_per_unit": 3, "epsilon": 3.0, "delta": 1e-5}
    options |= {"solver": fv.Tailored(rounds=5), "random_state": 0}
    options |= {"target_bounds": (0, 1)} if estimator is ways.tailored_regression else {}
    sex = np.array(["f", "m"])[number % 2]
    clf = estimator(**options).fit({**X, "sex": sex}, y, sensitive_features="sex")
    assert clf.privacy_.check() == []
    assert clf.privacy_.promise.unit == Unit("patient", 3)
    assert "one person, at most 3 of their rows" in clf.privacy_.summary()
    assert len(clf.tailoring_.epsilons) == 2
    assert max(clf.tailoring_.epsilons) == pytest.approx(clf.privacy_.epsilon)
    odd = sex.copy()
    for person in np.flatnonzero(np.bincount(number) == 3):  # one of three rows
        odd[np.flatnonzero(number == person)[1]] = "m" if person % 2 == 0 else "f"
    again = estimator(**options).fit({**X, "sex": odd}, y, sensitive_features="sex")
    assert (again.coef_ == clf.coef_).all()
    assert again.tailoring_.to_json() == clf.tailoring_.to_json()


def test_a_schema_of_persons_is_not_read_as_one_of_rows():
    X, y = table()
    columns = {"a": Number(-1, 1), "sex": Category(("f", "m")), "hired": Category((0, 1))}
    schema = Schema(columns, target="hired", sensitive="sex", unit="patient", max_rows_per_unit=4)
    rows = {**X, "hired": y}
    options = {"constraints": "demographic_parity:0.1", "epsilon": 1.0, "schema": schema}
    with pytest.raises(InputError, match="one row of each person"):
        fv.certify(y, rows, y, **options)
    with pytest.raises(InputError, match="one row of each person"):
        fv.private_audit(y, rows, y, epsilon=1.0, schema=schema)
    with pytest.raises(InputError, match="at least 9, the most rows of one person"):
        fv.release_groups(rows, y, epsilon=1.0, schema=schema)
    assert (
        fv.certify(y, rows, y, **{**options, "schema": schema.without_unit()}).privacy_.promise.unit
        is None
    )


def test_a_certificate_counts_each_person_once():
    X, y = table(people=3000, most=4)
    options = {
        "constraints": "demographic_parity:0.4",
        "epsilon": 1.0,
        "sensitive_features": "sex",
        "random_state": 0,
    }
    found = fv.certify(
        lambda rows: (np.asarray(rows["a"]) > 0).astype(int),
        X,
        y,
        unit="patient",
        max_rows_per_unit=1,
        **options,
    )
    assert found.privacy_.promise.unit == Unit("patient", 1)
    assert found.privacy_.check() == []
    assert abs(found.counts.sum() - 3000) < 200  # persons, of 7,500 rows
    assert any("each person counts once" in sentence for sentence in found.assumptions)
    assert found.certified
    columns = {
        "a": Number(-1, 1),
        "b": Number(-1, 1),
        "sex": Category(("f", "m")),
        "hired": Category((0, 1)),
    }
    schema = Schema(columns, target="hired", sensitive="sex", unit="patient", max_rows_per_unit=1)
    rows = {**X, "hired": y}
    again = fv.certify(y, rows, y, schema=schema, **{**options, "sensitive_features": None})
    assert again.privacy_.promise.unit == Unit("patient", 1)
    for wrong in ({"max_rows_per_unit": 2}, {"max_rows_per_unit": 1, "epsilon": math.inf}):
        with pytest.raises(InputError, match="one row of each person"):
            fv.certify(y, X, y, unit="patient", **{**options, **wrong})
    with pytest.raises(InputError, match="no sensitive feature"):
        fv.certify(y, X, y, unit="sex", max_rows_per_unit=1, **options)
    with pytest.raises(InputError, match="values, one a row"):
        fv.certify(y, X, y, unit=["a", "b", "c"], max_rows_per_unit=1, **options)


def test_a_private_table_counts_each_person_once():
    X, y = table(people=2000, most=4)
    options = {"sensitive_features": "sex", "epsilon": 2.0, "random_state": 0}
    found = fv.private_audit(None, X, y, unit="patient", max_rows_per_unit=1, **options)
    assert found.privacy_.promise.unit == Unit("patient", 1)
    assert found.privacy_.check() == []
    assert abs(np.asarray(found.counts).sum() - 2000) < 100
    assert any("each person counts once" in sentence for sentence in found.privacy_.not_covered)
    with pytest.raises(InputError, match="one row of each person"):
        fv.private_audit(None, X, y, unit="patient", max_rows_per_unit=3, **options)


def test_groups_that_are_released_once_protect_all_rows_of_a_person():
    """A person's groups change in all of their rows: the counts of one group move by k, and noise
    is made for it."""
    X, y = table(people=150, most=4)
    options = {
        "sensitive_features": "sex",
        "clusters": 4,
        "random_state": 0,
        "unit": "patient",
        "max_rows_per_unit": 4,
    }
    usual = fv.release_groups(X, y, epsilon=1.0, **options)
    event = usual.privacy.events[0]
    assert (event.sensitivity, usual.counts.noise.scale) == (4, event.noise_multiplier * 4)
    assert usual.privacy.promise.unit == Unit("patient", 4)
    assert usual.privacy.check() == []
    here = fv.release_groups(X, y, epsilon=1e6, **options).counts.raw[0]
    worst = 0.0
    names, counts = np.unique(X["patient"], return_counts=True)
    for person in names[counts == 4][:12]:
        at = X["patient"] == person
        changed = np.where(at, np.where(X["sex"] == "f", "m", "f"), X["sex"])
        there = fv.release_groups({**X, "sex": changed}, y, epsilon=1e6, **options).counts.raw[0]
        worst = max(worst, float(np.abs(there - here).sum()))
    assert worst == pytest.approx(4.0, abs=1e-3)
    clf = fv.FairClassifier("demographic_parity:0.2", protects="sensitive_features")
    clf.fit(X, y, sensitive_features=usual)
    assert len(clf.predict(X, random_state=0)) == len(y)
    rest = {name: values for name, values in X.items() if name != "patient"}
    by_values = fv.release_groups(rest, y, epsilon=1.0, **{**options, "unit": X["patient"]})
    assert (by_values.counts.raw == usual.counts.raw).all()
    with pytest.raises(PrivacyError, match="not drawn by chance"):
        fv.release_groups(
            X,
            y,
            epsilon=1.0,
            reports=fv.facts.Reports.randomized_response(("f", "m"), 0.2),
            **options,
        )


def test_codes_of_a_certificate_stay_with_their_rows():
    """The curator reads persons in another order: with hardly any noise the rate is that of the
    rows that it kept."""
    X, _ = table(people=500, most=4)
    decided = (X["a"] > 0.2).astype(int)
    options = {
        "constraints": "demographic_parity:0.9",
        "epsilon": 1e6,
        "sensitive_features": "sex",
        "random_state": 0,
    }
    found = fv.certify(
        decided,
        {"sex": X["sex"]},
        decided,
        unit={"patient": X["patient"]},
        max_rows_per_unit=1,
        **options,
    )
    by_group = {rate.name: rate for rate in found.rates}
    for name, rate in by_group.items():
        group = X["sex"] == ("f" if "f" in name.split() else "m")
        assert abs(rate.value - decided[group].mean()) < 0.15, name


CERTIFIED = {
    "rates": lambda **o: made(
        fv.FairClassifier,
        fv.DemographicParity(0.3, confidence=0.9),
        solver=fv.PrimalDual(rounds=6),
        **o,
    ),
    "after a base": lambda **o: made(
        fv.FairPostProcessor, constraints=fv.DemographicParity(0.3, confidence=0.9), **o
    ),
    "penalty": lambda **o: made(
        ways.fermi, certify="demographic_parity:0.3", solver=fv.PrimalDual(rounds=6), **o
    ),
}


@pytest.mark.parametrize("kind", CERTIFIED)
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_a_certified_fit_never_has_a_person_on_both_sides(kind, relation, monkeypatch):
    X, y = table(people=400, most=6)
    read, parts = [], {}
    kept = Rows.by_person

    def watched(self, most, coins, **more):
        read.append((most, set(parts[len(self.persons)][self.persons])))
        return kept(self, most, coins, **more)

    rows_at = certified_fits.rows_at

    def split(given, at):
        if given is y:
            parts[len(at)] = names_in_order(X["patient"][at])
        return rows_at(given, at)

    monkeypatch.setattr(Rows, "by_person", watched)
    monkeypatch.setattr(certified_fits, "rows_at", split)
    options = {
        "epsilon": 5.0,
        "delta": 1e-5,
        "random_state": 1,
        "neighbours": relation,
        "max_rows_per_unit": 4,
    }
    clf = CERTIFIED[kind](unit="patient", **options).fit(X, y, sensitive_features="sex")
    trained = set.union(*(who for most, who in read if most == 4))
    counted = set.union(*(who for most, who in read if most == 1))
    assert trained | counted == set(X["patient"])
    assert not trained & counted
    assert 60 < len(counted) < 180  # 400 coins of .3
    assert clf.certificate_.privacy_.promise.unit == Unit("patient", 1)
    assert clf.privacy_.promise.unit == Unit("patient", 4)
    assert abs(clf.certificate_.counts.sum() - len(counted)) < 40
    assert any("all of their rows" in sentence for sentence in clf.privacy_.notes)
    assert any("each person counts once" in sentence for sentence in clf.certificate_.assumptions)


def names_in_order(names):
    """The names of persons by the number that they have: by first appearance."""
    return np.array(list(dict.fromkeys(names.tolist())))


def test_planted_coins_of_rows_put_persons_on_both_sides(monkeypatch):
    """The hold-out of rows, for persons: nearly everybody with several rows is in both parts."""
    X, y = table(people=400, most=6)
    monkeypatch.setattr(
        Rows,
        "persons",
        property(lambda self: None if self._persons is None else np.arange(len(self._persons))),
    )
    sides = []
    rows_at = certified_fits.rows_at

    def split(given, at):
        if given is y:
            sides.append(set(X["patient"][at]))
        return rows_at(given, at)

    monkeypatch.setattr(certified_fits, "rows_at", split)
    CERTIFIED["rates"](
        unit="patient", max_rows_per_unit=4, epsilon=5.0, delta=1e-5, random_state=1
    ).fit(X, y, sensitive_features="sex")
    assert len(sides[0] & sides[1]) > 200


def test_what_certified_fits_refuse_of_persons():
    X, y = table()
    own = fv.DemographicParity(0.3, confidence=0.9)
    for options in ({"protects": "sensitive_features"}, {"epsilon": math.inf}):
        with pytest.raises(InputError, match="counts one row of each person"):
            made(fv.FairClassifier, own, unit="patient", max_rows_per_unit=9, **options).fit(
                X, y, sensitive_features="sex"
            )
    columns = {
        "a": Number(-1, 1),
        "b": Number(-1, 1),
        "sex": Category(("f", "m")),
        "hired": Category((0, 1)),
    }
    schema = Schema(columns, target="hired", sensitive="sex", unit="patient", max_rows_per_unit=4)
    clf = made(fv.FairClassifier, own, schema=schema, **COMMON).fit({**X, "hired": y})
    assert clf.certificate_.privacy_.promise.unit == Unit("patient", 1)


@pytest.mark.parametrize(
    ("protects", "neighbours"),
    [("records", "add-remove"), ("records", "replace-one"), ("sensitive_features", None)],
)
def test_a_network_protects_persons_as_a_linear_model_does(protects, neighbours):
    torch = pytest.importorskip("torch")
    X, y = table()

    clf = ways.tailored(model=torch.nn.Linear(2, 2), unit="patient", max_rows_per_unit=3)
    with pytest.raises(PrivacyError, match="with a module"):
        clf.fit(X, y, sensitive_features="sex")

    def fit(estimator, *given, **options):
        torch.manual_seed(0)
        whom = {"unit": "patient", "max_rows_per_unit": 9, "model": torch.nn.Linear(2, 1)}
        shared = {**COMMON, **whom, "protects": protects, "neighbours": neighbours, **options}
        return made(estimator, *given, **shared).fit(X, y, sensitive_features="sex")

    for clf in (
        fit(fv.FairClassifier, "demographic_parity:0.1", randomised=False),
        fit(ways.fermi, "demographic_parity", 2.0),
    ):
        assert clf.privacy_.promise.unit == Unit("patient", 9)
        assert clf.privacy_.check() == []
        gradients = [one for one in clf.privacy_.bounds if one.question.startswith("gradient")]
        # 2 x the fourth root of 9; where loss and features are public, nine clips of a row each
        norm = 2.0 * math.sqrt(3.0) if protects == "records" else 9 * 2.0
        both = 1.0 if neighbours == "add-remove" else 2.0
        assert max(one.sensitivity for one in gradients) == pytest.approx(both * norm, rel=1e-4)


def test_a_base_that_protects_persons_is_not_priced_with_rows():
    X, y = table()
    rest = {name: values for name, values in X.items() if name != "patient"}
    base = made(fv.FairClassifier, unit="patient", max_rows_per_unit=3, **COMMON)
    for whom in ({}, {"unit": "patient", "max_rows_per_unit": 3}):
        with pytest.raises(PrivacyError, match="a base without a unit of its own"):
            made(
                fv.FairPostProcessor, base, constraints="equalized_odds:0.1", epsilon=3.0, **whom
            ).fit(X, y, sensitive_features="sex")
    base.fit(X, y, sensitive_features="sex")
    options = {
        "constraints": "equalized_odds:0.1",
        "epsilon": 9.0,
        "delta": 1e-4,
        "random_state": 0,
    }
    with pytest.raises(PrivacyError, match="add-remove, by patient"):
        made(fv.FairPostProcessor, base, **options).fit(rest, y, sensitive_features="sex")
    others = {**rest, "doctor": X["patient"]}
    with pytest.raises(PrivacyError, match="add-remove, by doctor"):
        made(fv.FairPostProcessor, base, unit="doctor", max_rows_per_unit=3, **options).fit(
            others, y, sensitive_features="sex"
        )
    other = made(fv.FairPostProcessor, base, unit="patient", max_rows_per_unit=6, **options).fit(
        X, y, sensitive_features="sex"
    )
    # both guarantees are of all rows of a person
    assert other.privacy_.promise.unit == Unit("patient", 6)
    assert other.privacy_.check() == []


def test_a_base_of_its_own_facts_protects_the_persons_around_it():
    X, y = table()
    base = fv.FairClassifier(schema=Schema(max_sample_weight=0.5), solver=fv.PrimalDual(rounds=3))
    clf = fv.FairPostProcessor(
        base,
        "equalized_odds:0.1",
        epsilon=3.0,
        schema=Schema(unit="patient", max_rows_per_unit=3),
        random_state=0,
    ).fit(X, y, sensitive_features="sex")
    assert clf.estimator_.privacy_.promise.unit == Unit("patient", 3)
    assert clf.estimator_.schema.max_sample_weight == 0.5
    assert clf.privacy_.check() == []


def test_a_schemas_number_is_of_all_rows_so_those_that_are_read_are_counted():
    X, y = table()
    of_rows, of_persons = (
        fitted(X, y, schema=Schema(rows=600, **who)).outcome_.rows
        for who in ({}, {"unit": "patient", "max_rows_per_unit": 3})
    )
    assert of_rows == 600
    assert of_persons != 600


def test_a_ledger_keeps_persons_and_rows_apart():
    X, y = table()
    rest = {name: values for name, values in X.items() if name != "patient"}
    ledger = fv.Ledger.create(None, "clinic", 5.0, 1e-4, unit="patient")
    fitted(X, y, unit="patient", max_rows_per_unit=3, ledger=ledger)
    assert ledger.check() == []
    with pytest.raises(LedgerError, match="expected a promise for records, add-remove, by patient"):
        fitted(rest, y, ledger=ledger)
    others = {**rest, "doctor": X["patient"]}
    with pytest.raises(LedgerError, match="got 'records, add-remove, by doctor'"):
        fitted(others, y, unit="doctor", max_rows_per_unit=3, ledger=ledger)
    with pytest.raises(LedgerError, match="expected a promise for records, add-remove, got"):
        fitted(
            X,
            y,
            unit="patient",
            max_rows_per_unit=3,
            ledger=fv.Ledger.create(None, "rows", 5.0, 1e-4),
        )


def test_whose_rows_they_are_is_never_written(tmp_path):
    X, y = table()
    by_name = fitted(X, y, unit="patient", max_rows_per_unit=3)
    folder = fv.save(by_name, tmp_path / "name")
    assert not any(b"p17" in file.read_bytes() for file in folder.iterdir())
    loaded = fv.load(folder)
    assert loaded.schema == by_name.schema
    assert loaded.privacy_ == by_name.privacy_
    assert (loaded.predict(X) == by_name.predict(X)).all()


def test_a_plan_says_how_far_a_person_moves_what_is_released():
    columns = {"a": Number(-1, 1), "sex": Category(("f", "m")), "hired": Category((0, 1))}
    schema = Schema(columns, target="hired", sensitive="sex", unit="patient", max_rows_per_unit=7)
    clf = fv.FairClassifier("demographic_parity:0.1", epsilon=1.0)
    plan = clf.plan(schema, rows=10_000)
    moved = {one["release"]: one["sensitivity"] for one in plan.to_dict()["releases"]}
    assert moved["rows by group"] == pytest.approx(7.0)
    assert moved["gradients, each round"] == pytest.approx(2.0 * 7**0.25)
    assert "one person, at most 7 of their rows" in str(plan)
    plan = ways.tailored(epsilon=1.0).plan(schema, rows=10_000)
    moved = {one["release"]: one["sensitivity"] for one in plan.to_dict()["releases"]}
    assert moved["rows by group"] == pytest.approx(7.0)
    assert moved["gradients, each round"] == pytest.approx(2.0 * 7**0.25)


def test_without_privacy_nobody_s_rows_are_dropped():
    X, y = table()
    rest = {name: values for name, values in X.items() if name != "patient"}
    options = {"epsilon": math.inf, "rounds": None}
    assert (fitted(X, y, unit="patient", **options).coef_ == fitted(rest, y, **options).coef_).all()


def test_an_audit_of_whole_fits_stays_below_the_claim_and_finds_a_clip_by_row(monkeypatch):
    """150 fits of each table. A right claim is contradicted with probability below 1e-6; 40 rows of
    one person, each clipped by itself, are 40 times as far as stated."""
    rng = np.random.default_rng(1)
    alone = 2_000  # so that the released number of rows can be told from none
    ids, n = np.r_[np.arange(alone), np.full(40, alone)], alone + 40
    X, y = (
        np.r_[rng.uniform(-0.1, 0.1, (alone, 2)), np.full((40, 2), 50.0)],
        np.r_[rng.integers(0, 2, alone), np.ones(40, int)],
    )
    table = {"a": X[:, 0], "b": X[:, 1], "who": ids}

    def scores(rows, first):
        out = []
        for seed in range(first, first + 150):
            clf = fv.FairClassifier(
                epsilon=4.0,
                delta=1e-5,
                solver=fv.PrimalDual(rounds=2, clip=1.0),
                schema=Schema(unit="who", max_rows_per_unit=40),
                random_state=seed,
            )
            clf.fit({name: values[:rows] for name, values in table.items()}, y[:rows])
            out.append(float(clf.outcome_.weights.sum() * clf.outcome_.rows))
        return out, clf.privacy_

    here, statement = scores(alone, 0)
    there, _ = scores(n, 1000)
    assert not audit_scores(
        here, there, delta=1e-5, confidence=0.999999, claimed=statement
    ).contradicts(statement)
    kept = Rows.by_person

    def by_row(self, most, coins, *, adds_by_person, **more):
        return kept(self, most, coins, adds_by_person=False, **more)

    monkeypatch.setattr(Rows, "by_person", by_row)
    there, _ = scores(n, 1000)
    assert audit_scores(
        here, there, delta=1e-5, confidence=0.999999, claimed=statement
    ).contradicts(statement)
