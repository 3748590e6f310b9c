"""What a ledger charges: never less than its filter, and under another relation never less than
what its own neighbours see."""

from __future__ import annotations

import itertools
import json
import math
import random
from dataclasses import replace
from fractions import Fraction

import pytest

from fairveil.core import events as ev
from fairveil.core.cost import epsilon as epsilon_of
from fairveil.core.promise import Promise
from fairveil.errors import FairveilError, InputError, LedgerError
from fairveil.ledger import Ledger, Terms
from fairveil.ledger.lines import WHOLE, Cost
from fairveil.privacy.calibration import calibrate

ADD_REMOVE = Promise(1.0, 1e-5)
REPLACE_ONE = Promise(1.0, 1e-5, neighbours="replace-one")
SENSITIVE = Promise(1.0, 1e-5, "sensitive_features")
SMALL, SAMPLED = ev.Gaussian(20.0), ev.PoissonSampled(0.02, ev.Gaussian(1.5))
NOISY = ev.Composed((ev.Gaussian(35.0), ev.Approximate(0.01, 1e-9)))
SELECTED = ev.PrivateSelection(ev.Gaussian(60.0), 3.0, 1.0)
ROUNDS: dict[str, list[ev.Event]] = {
    "gaussian": [SMALL, ev.PerCell(((40.0, 25.0),), (1.0,)), NOISY],
    "renyi": [
        *(SAMPLED, ev.Repeated(ev.Gaussian(90.0), 7), ev.Approximate(0.01, 1e-9), SELECTED),
        *(SMALL, ev.ZeroConcentrated(0.002), ev.Laplace(20.0), ev.Exponential(0.1)),
    ],
    "pure": [ev.Laplace(20.0), ev.Pure(0.02), ev.Approximate(0.01, 1e-7), ev.DiscreteLaplace(30.0)],
}
KINDS = pytest.mark.parametrize("kind", list(ROUNDS))


def terms(promise: Promise = ADD_REMOVE, kind: str | None = None) -> Terms:
    return Terms("people", promise, kind=kind)


@pytest.mark.parametrize("promise", [ADD_REMOVE, REPLACE_ONE, SENSITIVE])
@KINDS
def test_a_cost_is_the_filters_rounded_up_by_less_than_one_unit(
    kind: str, promise: Promise
) -> None:
    ours, each = terms(promise, kind), ROUNDS[kind]
    for event in (*each, ev.Composed(tuple(each)), *(ev.Repeated(one, 3) for one in each)):
        cost = ours.cost(event, promise)
        amount, leak = ours.filter.cost(event)
        for units, exact, budget in (
            (cost.units, amount, ours.filter.budget),
            (cost.leak, leak, ours.filter.allowance),
        ):
            share = Fraction(exact) / Fraction(budget)
            assert 0 <= Fraction(units, WHOLE) - share < Fraction(1, WHOLE)
        assert cost.units > 0


@KINDS
def test_whatever_fits_together_is_within_the_promise(kind: str) -> None:
    ours, chance = terms(kind=kind), random.Random(1)
    spent, leaked, admitted = 0, 0, []
    for _ in range(4000):
        event = chance.choice(ROUNDS[kind])
        cost = ours.cost(event, ADD_REMOVE)
        if cost.within(spent, leaked):
            spent, leaked = spent + cost.units, leaked + cost.leak
            admitted.append(event)
    assert spent > 0.97 * WHOLE or leaked > 0.97 * WHOLE
    assert 0.4 < epsilon_of(admitted, 1e-5) <= 1.0 + 1e-9


def test_what_is_free_costs_nothing_and_what_is_beyond_says_so() -> None:
    ours, pure = terms(), terms(Promise(1.0, 0.0))
    assert ours.cost(ev.NoOp(), ADD_REMOVE) == ours.cost([], ADD_REMOVE) == Cost(0, 0)
    assert ours.cost(ev.Gaussian(1e-3), ADD_REMOVE) == Cost(2 * WHOLE, 0)
    assert ours.cost(ev.Pure(1e-12), ADD_REMOVE).units >= 1
    with pytest.raises(LedgerError, match="finite epsilon"):
        ours.cost(ev.NonPrivate(), ADD_REMOVE)
    with pytest.raises(LedgerError, match="delta above 0"):
        pure.cost(ev.Gaussian(5.0), pure.promise)
    # No delta is set aside: what leaks any never fits.
    assert not pure.cost(ev.Approximate(0.1, 1e-12), pure.promise).within(0, 0)


@KINDS
def test_what_fits_alone_is_what_the_tight_price_says_under_the_same_relation_only(
    kind: str,
) -> None:
    ours, whole = terms(kind=kind), calibrate(ADD_REMOVE, ev.Gaussian, precision=1e-9).events
    assert ours.fits_alone(whole, ADD_REMOVE)
    assert not ours.fits_alone([whole, ev.Pure(1e-4)], ADD_REMOVE)
    assert not ours.fits_alone(whole, REPLACE_ONE)
    assert not terms(REPLACE_ONE, kind).fits_alone(whole, ADD_REMOVE)
    assert not terms(SENSITIVE, kind).fits_alone(whole, REPLACE_ONE)


def test_every_pair_of_protections_and_relations() -> None:
    once = [(ADD_REMOVE, ADD_REMOVE), (REPLACE_ONE, REPLACE_ONE), (SENSITIVE, SENSITIVE)]
    twice = [(REPLACE_ONE, ADD_REMOVE), (SENSITIVE, ADD_REMOVE)]
    factors = {**dict.fromkeys([*once, (SENSITIVE, REPLACE_ONE)], 1), **dict.fromkeys(twice, 2)}
    kinds = (("gaussian", SMALL, 2), ("renyi", SMALL, 2), ("pure", ev.Pure(0.01), 1))
    for ours, asked in itertools.product((ADD_REMOVE, REPLACE_ONE, SENSITIVE), repeat=2):
        of_other_size = Promise(0.3, 1e-9, asked.protects, asked.neighbours)
        for kind, event, exponent in kinds:
            cap = terms(ours, kind)
            if (ours, asked) not in factors:
                with pytest.raises(LedgerError, match="a ledger for each"):
                    cap.cost(event, of_other_size)
                continue
            least = cap.cost(event, ours).units * factors[ours, asked] ** exponent
            found = cap.cost(event, of_other_size).units
            assert least * (1 - 1e-15) <= found <= least * (1 + 1e-12)


@pytest.mark.parametrize("ours", [REPLACE_ONE, SENSITIVE])
def test_add_remove_events_that_are_neither_gaussian_nor_pure_are_refused(ours: Promise) -> None:
    """(epsilon, delta) twice is not (2 epsilon, 2 delta). Nor do the others double."""
    cap, leak = terms(ours), ev.Approximate(0.01, 1e-12)
    for event in (
        *(ev.Approximate(0.1, 1e-9), ev.ZeroConcentrated(0.001), leak),
        *(ev.PoissonSampled(0.1, ev.Gaussian(30.0)), ev.Composed((ev.Gaussian(40.0), leak))),
        ev.Composed((ev.Gaussian(40.0), ev.Laplace(50.0))),
        *(ev.PrivateSelection(ev.Composed((ev.Pure(0.01), leak)), 3.0, 1.0), ev.NonPrivate()),
    ):
        with pytest.raises(LedgerError, match="in a row"):
            cap.cost(event, ADD_REMOVE)
    for told in (ev.VisiblySampled(0.1, SMALL), ev.OnPart(SMALL, 0, 2)):
        with pytest.raises(InputError, match="where presence is protected"):
            cap.cost(told, ADD_REMOVE)
    # Pure all the way down, in a secret batch and in a private selection: two in a row has a price.
    for pure in (
        *(ev.Exponential(0.01), ev.PrivateSelection(ev.Pure(0.01), 3.0, 1.0)),
        ev.Composed((ev.Pure(0.01), ev.Laplace(40.0))),
    ):
        twice = ev.Pure(2 * epsilon_of(pure, 0.0))
        assert cap.cost(pure, ADD_REMOVE) == cap.cost(twice, ours)


@KINDS
def test_terms_are_read_as_they_were_written_and_nothing_else_is(kind: str) -> None:
    made = Terms("people", ADD_REMOVE, production=True, kind=kind)
    ours = replace(made, fingerprint="0f" * 32)
    by_column = Terms("people", SENSITIVE, kind=kind, columns=["sex", "race", "sex"])  # type: ignore[arg-type]
    assert by_column.columns == ("race", "sex")
    for one in (ours, by_column):
        assert Terms.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    values = ours.to_dict()
    told = values["promise"]
    wrong: dict[str, list[object]] = {
        "dataset": ["", " a", "a\nb", "a\u202e", 3, None, "x" * 201, "\ud800"],
        "promise": [None, [], {}, {**told, "epsilon": "inf"}, {**told, "epsilon": math.nan}, "x"],
        "kind": ["moments", None, [], 1],
        "order": ["x", [], True, math.inf, -1.0] if kind == "renyi" else ["x", 2.0, []],
        "production": [1, 0, "yes", None],
        "fingerprint": [1, [], True],
        "columns": ["sex", [], [3], ["sex"], {"sex": 1}, True],
    }
    bad = [{**values, name: value} for name, each in wrong.items() for value in each]
    listed = ("sex", [], [3], ["sex", "race"], ["race", "race"], ["a\nb"], {"sex": 1}, True)
    bad += [{**by_column.to_dict(), "columns": columns} for columns in listed]
    for other in (*bad, {**values, "more": 1}, {}, None, [], "terms", 3):
        with pytest.raises(LedgerError):
            Terms.from_dict(other)


def test_terms_that_cannot_be() -> None:
    for name in ("", "two\nlines", "bell\x07", " space", "x" * 201, None, 3, "postgresql://a:b@c"):
        with pytest.raises(InputError, match="printable letters"):
            Ledger.create(None, name, 1.0, 1e-5)  # type: ignore[arg-type]
    for how in ({"epsilon": math.inf}, {"production": "no"}, {"schema": "s"}, {"columns": ["sex"]}):
        with pytest.raises(FairveilError):
            Ledger.create(None, "people", **{"epsilon": 1.0, "delta": 1e-6, **how})  # type: ignore[arg-type]
    event: ev.Event = ev.Gaussian(100.0)
    for _ in range(150):  # it could be written, and not read again
        event = ev.Composed((event,))
    ledger = Ledger.create(None, "people", 1.0, 1e-5)
    with pytest.raises(LedgerError, match="levels"):
        ledger.reserve(event)
    assert ledger.is_untouched
