"""Ledgers, and fits that fail: what was released is charged, and nothing else changes."""

from __future__ import annotations

import copy
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from configurations import CONFIGURATIONS, ESTIMATORS, Configuration, Table, people
from observing import shown
from seam import failing, recording, replaying

import fairveil as fv
import ways
from fairveil.errors import LedgerError, PrivacyError

CAP = {"epsilon": 20.0, "delta": 1e-4}


class BrokenError(Exception):
    """What ends a fit."""


class Interrupted(KeyboardInterrupt):
    """A user who does."""


def ledger_of(row: Configuration, **options: Any) -> fv.Ledger:
    """A budget of the row's relation, with room for a few of its fits."""
    unit: dict[str, Any] = {} if row.unit is None else {"unit": row.unit}
    about = {"protects": row.protects, "neighbours": row.neighbours, "kind": "renyi"}
    return fv.Ledger.create(None, row.name, **(CAP | about | unit | options))


def fits_in(row: Configuration) -> int:
    """How often one fit reserves: post-processing first fits its base, a fit of its own."""
    certified = row.name == "odds-certified"  # its certificate is a third
    return 2 + certified if row.name.startswith(("odds", "parity")) else 1


def lines_of(row: Configuration) -> list[str]:
    return ["created", *["reserved", "committed"] * fits_in(row)]


def kinds(ledger: fv.Ledger) -> list[str]:
    return [line.kind for line in ledger.history()]


def spent(ledger: fv.Ledger) -> float:
    return float(ledger.balance().spent_share)


@dataclass
class Charged:
    """A ledger with two fits of a row: the first was given it, the second was made in its block."""

    result: Any  # of the first
    ledger: fv.Ledger
    once: float  # the spent share after the first
    lines: list[str]  # then


@cache
def charged(name: str) -> Charged:
    row = CONFIGURATIONS[name]
    ledger = ledger_of(row)
    result = row.run(people(), ledger=ledger)
    found = Charged(result, ledger, spent(ledger), kinds(ledger))
    with ledger.recording():
        row.run(people(), random_state=1)
    return found


def test_a_fit_is_one_line_of_the_ledger_at_its_price(row: Configuration) -> None:
    made = charged(row.name)
    assert made.lines == lines_of(row)
    statement = row.statement(made.result)
    assert statement.ledger is not None
    assert made.ledger.check([statement.ledger]) == []
    assert 0 < made.once < 1
    if statement.plan is None or fits_in(row) > 1:
        return
    # The same events, reserved by hand, cost the same.
    other = ledger_of(row)
    with other.reserve(statement.plan, statement.promise, secure=False):
        pass
    assert made.once == pytest.approx(spent(other), rel=1e-9)


def test_two_fits_add_up_and_a_block_records_what_is_fitted_inside(row: Configuration) -> None:
    made = charged(row.name)
    assert kinds(made.ledger) == [*lines_of(row), *lines_of(row)[1:]]
    assert spent(made.ledger) == pytest.approx(2 * made.once, rel=1e-9)


def test_a_ledger_without_room_refuses_before_a_release(row: Configuration, table: Table) -> None:
    ledger = ledger_of(row, epsilon=0.05, delta=1e-7)
    with recording() as tape, pytest.raises(fv.errors.FairveilError):
        row.run(table, ledger=ledger)
    assert not [one for one in tape.entries if one.event is not None]
    assert spent(ledger) == 0.0
    assert "reserved" not in kinds(ledger) or fits_in(row) > 1  # a base that is free


def test_a_ledger_of_records_takes_no_fit_that_leaves_them_public(
    row: Configuration, table: Table
) -> None:
    """And one of sensitive columns charges a fit about whole records, which protects more."""
    if row.protects == "records":
        return
    for neighbours in ("add-remove", "replace-one"):
        ledger = ledger_of(row, protects="records", neighbours=neighbours)
        with recording() as tape, pytest.raises(fv.errors.FairveilError):
            row.run(table, ledger=ledger)
        assert not [one for one in tape.entries if one.event is not None]
        assert spent(ledger) == 0.0


@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_a_failure_at_a_release_changes_nothing_and_charges_so_many(
    row: Configuration, table: Table, place: str, fitted: Any, released: Any
) -> None:
    """The first time of an estimator that was fitted, which stays as it was."""
    entries, estimates = released(row), row.name in ESTIMATORS
    priced = [at for at, one in enumerate(entries, 1) if one.event is not None]
    at = {"first": priced[0], "middle": priced[len(priced) // 2], "last": priced[-1]}[place]
    ledger, again = ledger_of(row), place == "first" and estimates and "search" not in row.tags
    args, kwargs = row.arguments(table)
    estimator = row.estimator(ledger=ledger)
    if again:
        estimator = copy.deepcopy(fitted(row)).set_params(ledger=ledger)
    before = shown(estimator) if estimates else None
    error: BaseException = Interrupted() if place == "first" else BrokenError()
    # a search whose first runs were released says so in one constant sentence
    ended = (type(error), PrivacyError) if "search" in row.tags else type(error)
    with failing(at, error), pytest.raises(ended):
        estimator.fit(*args, **kwargs)
    if before is not None and "search" not in row.tags:  # a search keeps the receipt of its spend
        assert shown(estimator) == before
    assert again or not [name for name in vars(estimator) if name.endswith("_")]
    assert 0 < spent(ledger) <= charged(row.name).once * (1 + 1e-9)
    made = [one.event for one in entries[:at] if one.event is not None]
    if "search" in row.tags or row.name in APART:
        return
    other = ledger_of(row)
    with other.reserve(made, row.statement(fitted(row)).promise, secure=False):
        pass
    assert spent(ledger) >= spent(other) * (1 - 1e-9)


APART = {"descent-certified", "odds-certified"}


def test_a_failed_search_leaves_an_earlier_one_as_it_was(table: Table) -> None:
    row = CONFIGURATIONS["search"]
    clf = row.run(table)
    before = shown(clf)
    args, kwargs = row.arguments(table)
    with failing(1, BrokenError()), pytest.raises(BrokenError):
        clf.fit(*args, **kwargs)
    assert shown(clf) == before


def test_an_infinite_budget_is_refused_by_a_ledger(
    estimator_row: Configuration, table: Table
) -> None:
    ledger = ledger_of(estimator_row)
    with pytest.raises(fv.errors.FairveilError):
        estimator_row.run(table, ledger=ledger, epsilon=float("inf"))
    assert spent(ledger) == 0.0


def test_a_production_ledger_refuses_seeds_and_data_dependent_facts(
    row: Configuration, table: Table
) -> None:
    strict = ledger_of(row, production=True)
    with recording() as tape, pytest.raises(fv.errors.FairveilError):
        row.run(table, ledger=strict)  # a seed
    assert not [one for one in tape.entries if one.event is not None]
    if not row.schema:
        with pytest.raises(fv.errors.FairveilError):
            row.run(table, ledger=strict, random_state=None)
        assert spent(strict) == 0.0


# -- killed and resumed --------------------------------------------------------------------------

KEPT = [
    name
    for name, row in ESTIMATORS.items()
    if not name.startswith(("odds", "parity", "search")) and "certified" not in name
]


@pytest.mark.parametrize("name", KEPT)
def test_a_fit_that_was_killed_goes_on_and_is_charged_once(
    name: str, table: Table, tmp_path: Path
) -> None:
    row = CONFIGURATIONS[name]
    with recording() as tape:
        whole = row.run(table, checkpoint=str(tmp_path / "whole"))
    priced = [at for at, one in enumerate(tape.entries, 1) if one.event is not None]
    at = priced[-2] if len(priced) > 2 else priced[-1]
    slot = str(tmp_path / "fit")
    ledger = ledger_of(row)
    with failing(at, Killed()), pytest.raises(Killed):
        row.run(table, checkpoint=slot, ledger=ledger)
    try:
        gone_on = row.run(table, checkpoint=slot, ledger=ledger)
    except fv.errors.FairveilError as error:
        # A run that ended before its first state, or after its last answer, says so.
        if "charged" not in str(error):
            raise
        return
    statement, other = row.statement(gone_on), row.statement(whole)
    assert statement.epsilon == other.epsilon
    assert statement.check() == []
    assert spent(ledger) == pytest.approx(charged(name).once, rel=1e-9)
    with pytest.raises(fv.errors.FairveilError):
        row.run(table, checkpoint=slot)  # a finished folder takes no other run


class Killed(BaseException):
    """What ends a process."""


@pytest.mark.parametrize("name", ["descent", "objective-exponential", "tailored-alone"])
def test_a_folder_of_another_run_is_refused_and_stays_as_it_was(
    name: str, table: Table, tmp_path: Path
) -> None:
    row = CONFIGURATIONS[name]
    with failing(2, Killed()), pytest.raises(Killed):
        row.run(table, checkpoint=str(tmp_path))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for change in ({"epsilon": 1.0}, {"delta": row.given["delta"] + 1e-7}):
        with recording() as tape, pytest.raises(fv.errors.FairveilError):
            row.run(table, checkpoint=str(tmp_path), **change)
        assert not tape.entries
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_replayed_answers_are_the_model() -> None:
    """The seam itself: a replay on the same table is the fit to the bit."""
    row = CONFIGURATIONS["descent"]
    with recording() as tape:
        first = row.run()
    with replaying(tape.entries):
        again = row.run(random_state=9)
    same = {"coef_", "intercept_"}
    assert all(getattr(first, n).tobytes() == getattr(again, n).tobytes() for n in same)


def test_a_process_that_dies_leaves_its_reservation(tmp_path: Path) -> None:
    """Killed without a word between two releases: the plan stays charged whole."""
    program = f"""
import os, sys
sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(Path(__file__).parents[1])!r}]
import fairveil as fv
from configurations import CONFIGURATIONS
from seam import recording
import seam
ledger = fv.Ledger.create({str(tmp_path / "b.db")!r}, "people", epsilon=20.0, delta=1e-4)
through = seam._through
def dies(release):
    if len(seam._TAPE[-1].entries) == 3:
        os._exit(17)
    return through(release)
seam._through = dies
with recording():
    CONFIGURATIONS["descent"].run(ledger=ledger)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 17
    ledger = fv.Ledger.open(tmp_path / "b.db", "people")
    assert kinds(ledger) == ["created", "reserved"]
    whole = ledger_of(CONFIGURATIONS["descent"])
    CONFIGURATIONS["descent"].run(ledger=whole)
    assert ledger.balance().left == pytest.approx(whole.balance().left, rel=1e-9)


def test_one_fit_has_one_ledger(table: Table) -> None:
    row = ESTIMATORS["parity-grades"]
    outer, inner = ledger_of(row), ledger_of(row)
    base = fv.FairClassifier(None, solver=fv.PrimalDual(rounds=4), ledger=inner)
    model = ways.post_processor(
        base, "demographic_parity:0.05", solver=fv.Offsets(rounds=4), **row.given, ledger=outer
    )
    args, kwargs = row.arguments(table)
    with pytest.raises(LedgerError, match="ledger"):
        model.fit(*args, **kwargs)
    assert kinds(outer) == kinds(inner) == ["created"]
