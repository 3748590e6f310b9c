"""Post-processors that protect persons: their counts against enumerated persons, their bases, and
what is handed to these."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.audit import Tape
from fairveil.core import pricing
from fairveil.core.events import DiscreteLaplace, Gaussian
from fairveil.curator import Curator
from fairveil.errors import InputError
from fairveil.facts import Schema
from fairveil.privacy import Unit
from knobs import made

MOST = 3
LOUD = {"epsilon": 1e8, "delta": 1e-5, "random_state": 0}
USUAL = {"epsilon": 3.0, "delta": 1e-5, "random_state": 0}
WHOM = {"unit": "patient", "max_rows_per_unit": MOST}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Sign:
    """A public base: a function of one column. It refuses a column of names."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        assert "patient" not in X
        return (np.asarray(X["a"]) > 0).astype(int)

    def predict_proba(self, X):
        decided = self.predict(X)[:, np.newaxis]
        return np.concatenate([1 - decided, decided], axis=1) * 0.98 + 0.01


def people_of(most=MOST):
    """Persons with so many rows in one of all places, and in several."""
    places = list(itertools.product((-1.0, 1.0), ("f", "m", "x"), (0, 1)))
    return [[one] * most for one in places] + [
        list(pair) for pair in itertools.combinations(places[:4], 2)
    ]


def table(*people):
    rng = np.random.default_rng(2)
    rows, ids = [], []
    for person in range(24):
        for _ in range(1 + person % MOST):
            rows.append((float(rng.uniform(-1, 1)), "fmx"[person % 3], int(rng.integers(2))))
            ids.append(person)
    for number, person in enumerate(people):
        rows += person
        ids += [100 + number] * len(person)
    a, sex, y = zip(*rows, strict=True)
    return {"a": np.array(a), "patient": np.array(ids), "sex": np.array(sex)}, np.array(y)


def counted(estimator, *people):
    """The first counts of a fit, with hardly any noise."""
    X, y = table(*people)
    tape = Tape()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Curator, "answer", tape.around(Curator.answer))
        estimator.fit(X, y, sensitive_features="sex")
    return tape.heard[0].answers[0].ravel()


def makers(relation):
    who = (
        {"protects": "sensitive_features"}
        if relation == "sensitive features"
        else {"neighbours": relation}
    )
    return {
        "odds": lambda **noise: made(
            fv.FairPostProcessor,
            Sign(),
            constraints="equalized_odds:0.1",
            public_base=True,
            predict_method="predict",
            **WHOM,
            **who,
            **noise,
        ),
        "parity": lambda **noise: made(
            fv.FairPostProcessor,
            Sign(),
            constraints="demographic_parity:0.1",
            public_base=True,
            solver=fv.Offsets(rounds=4),
            **WHOM,
            **who,
            **noise,
        ),
    }


def moves(make, relation):
    """What each pair of neighbours moves the counts by."""
    people = people_of()
    if relation == "sensitive features":
        changed = [
            [(a, {"f": "m", "m": "x", "x": "f"}[sex], y) for a, sex, y in one] for one in people
        ]
        return [
            counted(make(**LOUD), one) - counted(make(**LOUD), other)
            for one, other in zip(people, changed, strict=True)
        ]
    nobody, found = counted(make(**LOUD)), [counted(make(**LOUD), one) for one in people]
    alone = [one - nobody for one in found]
    return alone if relation == "add-remove" else [one - other for one in found for other in found]


@pytest.mark.parametrize("relation", ["add-remove", "replace-one", "sensitive features"])
@pytest.mark.parametrize("kind", ["odds", "parity"])
def test_no_person_moves_the_counts_further_than_their_noise_is_made_for(kind, relation):
    make = makers(relation)[kind]
    found = moves(make, relation)
    X, y = table(people_of()[0])
    fit = make(**USUAL).fit(X, y, sensitive_features="sex")
    event = fit.privacy_.events[-1]
    if isinstance(event, DiscreteLaplace):
        noise, order, stated = (
            fit.released_.noise.scale / event.noise_multiplier,
            1,
            event.sensitivity,
        )
        assert noise == pytest.approx(stated)
    else:
        assert isinstance(event, Gaussian)
        noise, order = (
            (fit.released_.noise.scale if kind == "odds" else fit.noise_) / event.noise_multiplier,
            2,
        )
    worst = max(float(np.linalg.norm(one, order)) for one in found)
    assert worst <= noise * (1 + 1e-5)
    assert worst >= 0.97 * noise
    assert noise == pytest.approx(
        MOST * {"add-remove": 1.0}.get(relation, 2.0 if order == 1 else math.sqrt(2.0))
    )


def test_planted_the_bound_of_one_row_is_caught(monkeypatch):
    """As if a person moved counts by no more than a row does: what is stated is then below what
    persons do."""
    make = makers("add-remove")["parity"]
    monkeypatch.setattr(pricing, "of_person", lambda scale, rows: scale)
    X, y = table()
    stated = {
        bound.sensitivity
        for bound in make(**USUAL).fit(X, y, sensitive_features="sex").privacy_.bounds
    }
    assert max(float(np.linalg.norm(one)) for one in moves(make, "add-remove")) > 2.5 * max(stated)


@pytest.mark.parametrize(
    "asked",
    [{}, {"constraints": "demographic_parity:0.05", "solver": fv.Offsets()}],
)
def test_a_base_that_is_fitted_with_the_counts_protects_the_same_persons(asked, tmp_path):
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.repeat(np.arange(300), rng.integers(1, 7, 300)))
    sex = np.array(["f", "m"])[rng.integers(0, 2, 300)[ids]]
    a = rng.uniform(-1, 1, len(ids))
    X, y = (
        {"a": a, "patient": np.array([f"p{i}" for i in ids]), "sex": sex},
        (a > 0.1 * (sex == "f")).astype(int),
    )
    by_name = ways.post_processor(
        **asked, schema=Schema(unit="patient", max_rows_per_unit=4), **USUAL
    ).fit(X, y, sensitive_features="sex")
    assert (
        by_name.privacy_.promise.unit
        == by_name.estimator_.privacy_.promise.unit
        == Unit("patient", 4)
    )
    assert any(
        "a person's gradients are added" in bound.reason for bound in by_name.privacy_.bounds
    )
    assert by_name.privacy_.check() == []
    assert by_name.privacy_.epsilon <= 3.0
    law = by_name.predict_proba(X, sensitive_features=sex)
    rest = {name: values for name, values in X.items() if name != "patient"}
    assert (law == by_name.predict_proba(rest, sensitive_features=sex)).all()
    loaded = fv.load(fv.save(by_name, tmp_path / "model"))
    assert (loaded.predict_proba(X, sensitive_features=sex) == law).all()
    for values in fv.save(by_name, tmp_path / "values").rglob("*"):
        assert not values.is_file() or b"p17" not in values.read_bytes()
    with pytest.raises(InputError, match="no sensitive feature"):
        ways.post_processor(**asked, schema=Schema(unit="sex", max_rows_per_unit=4), **USUAL).fit(
            X, y, sensitive_features="sex"
        )
