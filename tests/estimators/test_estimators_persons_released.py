"""All that a fit for persons releases, against enumerated neighbours: tables with one person more,
fewer, or another.

A fit is kept on a tape. Its questions are then asked again, without noise, of both tables of each
pair (`Witness`). The answers are at most mu apart, the plan's, in deviations of the noise that was
promised; and they come near it. Persons have k rows in all corners of the schema: alike, which is
the worst (theory.md#units), and mixed, in groups of both kinds.
"""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.audit import Tape, Witness
from fairveil.core import pricing
from fairveil.core.books import heard_by
from fairveil.core.cost import gaussian_mu
from fairveil.curator import Curator
from fairveil.facts import Category, Ignored, Number, Schema
from knobs import made

MOST = 3
CLASSES = Schema(
    {
        "a": Number(-1, 1),
        "b": Number(-1, 1),
        "patient": Ignored(),
        "sex": Category(("f", "m")),
        "y": Category((0, 1)),
    },
    target="y",
    sensitive="sex",
    unit="patient",
    max_rows_per_unit=MOST,
)
NUMBERS = Schema(
    {**CLASSES.columns, "y": Number(-1, 1)},
    target="y",
    sensitive="sex",
    unit="patient",
    max_rows_per_unit=MOST,
)
COMMON = {"epsilon": 3.0, "delta": 1e-5, "random_state": 0}
FITS = {
    "game": made(ways.game, "demographic_parity:0.1", rounds=3, **COMMON),
    "game, descent": made(ways.game, "equalized_odds:0.1", oracle="descent", rounds=2, **COMMON),
    "group": made(
        ways.objective,
        constraint="equalized_odds:0.1",
        solver=fv.GroupObjective(rounds=3),
        **COMMON,
    ),
    "group, log loss": made(
        ways.objective, loss="log", solver=fv.GroupObjective(rounds=3), **COMMON
    ),
    "group, a choice": made(ways.objective, method="exponential", **COMMON),
    "group, least squares": made(
        ways.objective_regression,
        "largest_group_loss",
        solver=fv.GroupObjective(rounds=3),
        **COMMON,
    ),
    "tailored": ways.tailored(solver=fv.Tailored(rounds=2, clip=0.5), **COMMON),
    "tailored, apart": ways.tailored(
        "size", solver=fv.Tailored(rounds=2, clip=0.5), bound=1.0, **COMMON
    ),
    "tailored, least squares": ways.tailored_regression(
        "standard-error", solver=fv.Tailored(by="moments", rounds=3), **COMMON
    ),
}
RELATIONS = ("add-remove", "replace-one")


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def somebody(rng):
    """Persons in the corners: alike in all rows, and mixed ones."""
    corners = list(itertools.product((-1.0, 1.0), (-1.0, 1.0), ("f", "m"), (0, 1)))
    alike = [[corner] * MOST for corner in corners]
    mixed = [[corners[i] for i in rng.integers(0, len(corners), size)] for size in (1, 2, 3)]
    return [*alike, *mixed]


def table(*people):
    """Twenty persons of one to three rows, and these at the end."""
    rng = np.random.default_rng(4)
    rows, ids = [], []
    for person in range(20):
        for _ in range(1 + person % MOST):
            rows.append((*rng.uniform(-1, 1, 2), "fm"[person % 2], int(rng.integers(2))))
            ids.append(person)
    for number, person in enumerate(people):
        rows += person
        ids += [100 + number] * len(person)
    a, b, sex, y = zip(*rows, strict=True)
    return {
        "a": np.array(a),
        "b": np.array(b),
        "patient": np.array(ids),
        "sex": np.array(sex),
        "y": np.array(y),
    }


class _OpenedError(Exception):
    pass


class _Rows:
    """Hears of the rows of a fit, and ends it before the first question."""

    def opened(self, rows):
        self.rows = rows
        raise _OpenedError

    def answered(self, *told):
        raise AssertionError


def rows_of(estimator, *people):
    """The rows as the fit's curator reads them."""
    listener = _Rows()
    with heard_by(listener), pytest.raises(_OpenedError):
        estimator.fit(table(*people))
    return listener.rows


def estimator_of(name, relation):
    estimator = FITS[name]
    schema = NUMBERS if name.endswith("squares") else CLASSES
    who = (
        {"protects": "sensitive_features"}
        if relation == "sensitive features"
        else {"protects": f"records:{relation}"}
    )
    return type(estimator)(**{**estimator.get_params(deep=False), "schema": schema, **who})


def furthest(name, relation, monkeypatch):
    """The largest distance between tables of neighbours in what one fit released, and the mu of its
    Gaussian releases."""
    estimator = estimator_of(name, relation)
    people, tape = somebody(np.random.default_rng(0)), Tape()
    with monkeypatch.context() as patched:
        patched.setattr(Curator, "answer", tape.around(Curator.answer))
        estimator.fit(table(people[0]))
    promise = estimator.privacy_.promise
    assert promise.rows_per_unit == MOST
    if relation == "sensitive features":
        pairs = [([p], [[(a, b, "fm"[sex == "f"], y) for a, b, sex, y in p]]) for p in people]
    elif relation == "add-remove":
        pairs = [([], [p]) for p in people]
    else:
        pairs = [([people[0]], [p]) for p in people]
    known = {}
    found = []
    for pair in pairs:
        sides = [known.setdefault(repr(one), None) or rows_of(estimator, *one) for one in pair]
        known |= {repr(one): side for one, side in zip(pair, sides, strict=True)}
        found.append(Witness(*sides, promise).distance(tape))
    if name.startswith("tailored"):  # all Gaussian, some with noise by group: its price says mu
        return max(found), gaussian_mu(estimator.privacy_.epsilon, promise.delta)
    gaussian = [one for one in estimator.privacy_.releases if one.mechanism == "Gaussian"]
    return max(found), math.sqrt(sum(one.times / one.numbers[0] ** 2 for one in gaussian))


CASES = [
    *itertools.product(FITS, ("add-remove",)),
    *itertools.product(
        ("game", "group, log loss", "group, least squares", "tailored", "tailored, apart"),
        ("replace-one",),
    ),
    *itertools.product(
        ("game", "group", "group, least squares", "tailored, least squares"),
        ("sensitive features",),
    ),
]


@pytest.mark.parametrize(("name", "relation"), CASES)
def test_no_person_moves_what_a_fit_releases_further_than_its_plan_says(
    name, relation, monkeypatch
):
    distance, mu = furthest(name, relation, monkeypatch)
    assert distance <= mu * (1.0 + 1e-9)
    assert distance >= 0.8 * mu


@pytest.mark.parametrize(("name", "relation"), [("game", "replace-one"), ("group", "add-remove")])
def test_nor_what_rounds_of_games_and_loops_release(name, relation, monkeypatch):
    distance, mu = furthest(name, relation, monkeypatch)
    assert 0.5 * mu <= distance <= mu * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("name", "relation"), [("game", "add-remove"), ("group, least squares", "replace-one")]
)
def test_planted_the_bound_of_one_row_is_caught(name, relation, monkeypatch):
    """As if a person moved a sum by no more than a row does. Rounds of a game count decisions:
    gradients of a person are clipped together."""
    monkeypatch.setattr(pricing, "of_person", lambda scale, rows: scale)
    distance, mu = furthest(name, relation, monkeypatch)
    assert distance > 1.5 * mu
