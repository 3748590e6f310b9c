"""Promises about persons: values, documents, statements, and what a ledger takes of whom."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from fairveil.core.cost import in_a_row
from fairveil.core.events import Gaussian, PoissonSampled, Pure
from fairveil.errors import InputError, LedgerError
from fairveil.ledger import Ledger, Terms
from fairveil.privacy import Filter, PrivacyStatement, Promise, Unit, epsilon

PATIENT = Unit("patient", 12)
ADDED = Promise(1.0, 1e-6, unit=PATIENT)
REPLACED = Promise(1.0, 1e-6, neighbours="replace-one", unit=PATIENT)
ROWS = Promise(1.0, 1e-6)


def test_a_promise_without_a_unit_is_written_as_before():
    assert set(ROWS.to_dict()) == {"epsilon", "delta", "protects", "neighbours"}
    assert Promise.from_dict(ROWS.to_dict()) == ROWS
    assert "unit" not in str(ROWS)
    assert "person" not in str(ROWS)


@pytest.mark.parametrize(
    "promise", [ADDED, REPLACED, Promise(1.0, 0.0, "sensitive_features", unit=Unit("id", 1))]
)
def test_a_promise_with_a_unit_reads_back(promise):
    written = json.loads(json.dumps(promise.to_dict()))
    assert Promise.from_dict(written) == promise
    assert Promise.from_dict(written) != replace(promise, unit=None)
    assert replace(promise, epsilon=2.0).unit == promise.unit


@pytest.mark.parametrize(
    "unit",
    [
        {},
        {"name": "a"},
        {"name": "a", "max_rows": 0},
        {"name": "", "max_rows": 1},
        {"name": "a\n", "max_rows": 1},
        "patient",
        3,
    ],
)
def test_units_that_nobody_wrote_are_refused(unit):
    with pytest.raises(InputError):
        Promise.from_dict({**ROWS.to_dict(), "unit": unit})


def test_which_numbers_are_public():
    assert [ROWS.units_are_public, ROWS.rows_are_public] == [False, False]
    assert [REPLACED.units_are_public, REPLACED.rows_are_public] == [True, False]
    alone = Promise(1.0, 1e-6, "sensitive_features", unit=PATIENT)
    assert [alone.units_are_public, alone.rows_are_public] == [True, True]
    assert Promise(1.0, 1e-6, neighbours="replace-one").rows_are_public
    assert ADDED.rows_per_unit == 12
    assert ROWS.rows_per_unit == 1
    assert Promise(math.inf, 0.0, unit=Unit("patient")).rows_per_unit == 1
    with pytest.raises(InputError, match="max_rows_per_unit"):
        Promise(1.0, 1e-6, unit=Unit("patient")).rows_per_unit  # noqa: B018


def test_a_filter_of_rows_takes_nothing_of_persons():
    assert Filter.create(ADDED).promise != ROWS
    with pytest.raises(InputError):
        PrivacyStatement.of(ADDED, [Gaussian(9.0)], cap=Filter.create(ROWS))


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        (ADDED, "with all rows of one person added or removed (add-remove)"),
        (REPLACED, "how many persons there are is public, and how many rows is private"),
        (Promise(1.0, 1e-6, "sensitive_features", unit=PATIENT), "whose each row is ('patient')"),
    ],
)
def test_a_statement_says_whose_guarantee_it_is(promise, words):
    statement = PrivacyStatement.of(promise, [Gaussian(9.0)], plan=[Gaussian(9.0)])
    said = statement.summary()
    assert "Unit: one person, at most 12 of their rows" in said
    assert words in said
    assert statement.check() == []
    read = PrivacyStatement.from_json(statement.to_json())
    assert read == statement
    assert read.promise.unit == PATIENT


def test_a_statement_of_persons_without_a_cap_is_no_statement():
    promise = Promise(1.0, 1e-6, unit=Unit("patient"))
    found = PrivacyStatement.of(promise, [Gaussian(9.0)], plan=[Gaussian(9.0)]).check()
    assert any(one.grave and "largest number of rows" in one.sentence for one in found)


def test_a_statement_of_rows_still_says_so_and_an_unknown_field_is_refused():
    statement = PrivacyStatement.of(ROWS, [Gaussian(9.0)], plan=[Gaussian(9.0)])
    assert "Unit: one row is one person" in statement.summary()
    changed = json.loads(statement.to_json())
    changed["promise"]["unit"] = {"name": "patient", "max_rows": 2}  # a promise that nobody made
    with pytest.raises(Exception, match="checksum"):
        PrivacyStatement.from_json(json.dumps(changed))


def ledger_of(promise, **options):
    unit = promise.unit
    whose = {} if unit is None else {"unit": unit.name, "max_rows_per_unit": unit.max_rows}
    return Ledger.create(
        None, "clinic", 5.0, 1e-5, promise.protects, promise.neighbours, **(whose | options)
    )


def test_a_ledger_of_persons_takes_these_persons_whatever_their_cap():
    ledger = ledger_of(replace(ADDED, unit=Unit("patient")))
    for cap in (1, 12, 700):
        ledger.reserve([Gaussian(20.0)], replace(ADDED, unit=Unit("patient", cap))).commit()
    assert ledger.check() == []
    assert "patient" in str(dict(ledger.terms.promise.to_dict()))
    assert Terms.from_dict(json.loads(json.dumps(ledger.terms.to_dict()))) == ledger.terms
    with pytest.raises(LedgerError, match="by doctor"):
        ledger.reserve([Gaussian(20.0)], replace(ADDED, unit=Unit("doctor", 12)))


def test_a_ledger_of_persons_refuses_rows_where_nobody_said_how_many():
    ledger = ledger_of(replace(ADDED, unit=Unit("patient")))
    with pytest.raises(LedgerError, match="max_rows_per_unit"):
        ledger.reserve([Gaussian(20.0)], ROWS)
    assert ledger.terms.promise.unit == Unit("patient")


def test_a_ledger_of_rows_refuses_persons():
    for promise in (ADDED, REPLACED):
        with pytest.raises(LedgerError, match="keep a ledger for each"):
            ledger_of(
                ROWS if promise is ADDED else Promise(1.0, 1e-6, neighbours="replace-one")
            ).reserve([Gaussian(20.0)], promise)


@pytest.mark.parametrize(
    ("ours", "theirs", "relation", "times"),
    [
        (ADDED, ROWS, "add-remove", 12),
        (REPLACED, ROWS, "add-remove", 24),
        (
            Promise(1.0, 1e-6, "sensitive_features", unit=PATIENT),
            Promise(1.0, 1e-6, "sensitive_features"),
            "replace-one",
            12,
        ),
        (Promise(1.0, 1e-6, "sensitive_features", unit=PATIENT), ROWS, "add-remove", 24),
        (
            Promise(1.0, 1e-6, "sensitive_features", unit=PATIENT),
            Promise(1.0, 1e-6, neighbours="replace-one"),
            "replace-one",
            12,
        ),
    ],
)
def test_rows_are_charged_to_persons_as_so_many_neighbours(ours, theirs, relation, times):
    """Group privacy of what has a closed form: a Gaussian of mu is one of k mu, epsilon is k
    epsilon."""
    terms = Terms("clinic", replace(ours, epsilon=50.0))
    whole = Terms("clinic", replace(ours, epsilon=50.0))
    for event in (Gaussian(60.0), Pure(0.01)):
        grouped = in_a_row(event, relation, times)
        assert terms.cost(event, theirs) == whole.cost(grouped, ours)
    assert epsilon(in_a_row(Gaussian(60.0), relation, times), 1e-6, "add-remove") == pytest.approx(
        epsilon(Gaussian(60.0 / times), 1e-6, "add-remove"), rel=1e-9
    )
    with pytest.raises(LedgerError, match="let it protect persons"):
        terms.cost(PoissonSampled(0.1, Gaussian(5.0)), theirs)
    assert not terms.fits_alone([Gaussian(1e6)], theirs)


def test_a_person_replaced_may_have_other_rows_so_rows_replaced_say_nothing():
    with pytest.raises(LedgerError, match="keep a ledger for each"):
        ledger_of(REPLACED).reserve([Gaussian(20.0)], Promise(1.0, 1e-6, neighbours="replace-one"))


def test_a_cap_without_a_unit_is_no_terms():
    with pytest.raises(InputError, match="max_rows_per_unit"):
        Ledger.create(None, "clinic", 1.0, 1e-6, max_rows_per_unit=12)
