"""A handle is of one ledger: another one that was put in its place is not charged by the terms of
the first."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import Place

from fairveil.core.events import Pure
from fairveil.errors import LedgerError
from fairveil.privacy.ledger import Ledger

SMALL = Pure(0.1)


def forget_it(place: Place) -> None:
    """All of its tables, or its file, are gone."""
    if place.kind == "sqlite":
        os.unlink(str(place.url))
        return
    import psycopg

    with psycopg.connect(place.url, autocommit=True) as link:
        schema = link.execute("SELECT current_schema()").fetchone()
        assert schema is not None
        name = psycopg.sql.Identifier(schema[0])
        link.execute(psycopg.sql.SQL("DROP SCHEMA {} CASCADE").format(name))
        link.execute(psycopg.sql.SQL("CREATE SCHEMA {}").format(name))


def test_guarantee_6_another_ledger_under_its_name_is_not_charged(lasting: Place) -> None:
    before = Ledger.create(lasting.url, "d", 10.0, 0.0)
    spend = before.reserve(SMALL)
    sleeping = pickle.dumps(before)
    forget_it(lasting)
    small = Ledger.create(lasting.url, "d", 1.0, 0.0)
    measurements: list[Callable[[], object]] = [
        lambda: before.reserve(Pure(5.0)),
        spend.commit,
        spend.refund,
        lambda: before.resume(spend.id, 1),
        before.balance,
        lambda: before.fits(SMALL),
        lambda: pickle.loads(sleeping).reserve(Pure(5.0)),
        lambda: pickle.loads(sleeping).balance(),
    ]
    for ask in measurements:
        with pytest.raises(
            LedgerError, match=r"another one, which was put in its place.*Ledger\.open"
        ):
            ask()
    assert [line.number for line in small.history()] == [0]
    again = Ledger.open(lasting.url, "d")
    again.reserve(SMALL)
    assert again.promise.epsilon == 1.0
    assert not small.check()[0].grave


def test_guarantee_6_a_link_that_is_changed(tmp_path: Path) -> None:
    for name, epsilon in (("one.db", 10.0), ("two.db", 1.0)):
        Ledger.create(tmp_path / name, "d", epsilon, 0.0).close()
    os.symlink(tmp_path / "one.db", tmp_path / "link.db")
    handle = Ledger.open(tmp_path / "link.db", "d")
    handle.reserve(SMALL)
    os.unlink(tmp_path / "link.db")
    os.symlink(tmp_path / "two.db", tmp_path / "link.db")
    with pytest.raises(LedgerError, match="another one, which was put in its place"):
        handle.reserve(Pure(5.0))
    assert Ledger.open(tmp_path / "two.db").balance().entries == 1


def test_a_file_that_is_renamed_over_an_open_one_in_a_block_is_not_lost_in_silence(
    tmp_path: Path,
) -> None:
    handle = Ledger.create(tmp_path / "one.db", "d", 10.0, 0.0)
    Ledger.create(tmp_path / "two.db", "d", 1.0, 0.0).close()
    with (
        pytest.raises(LedgerError, match="a file that stays where it is"),
        handle._store.writing("d"),
    ):
        os.replace(tmp_path / "two.db", tmp_path / "one.db")
    # The log is still that of the first: SQLite reads its lines into the file that has the name
    # now.
    again = Ledger.open(tmp_path / "one.db")
    with suppress(LedgerError):
        handle.reserve(Pure(5.0))
    assert not [found for found in again.check() if found.grave]
    assert again.balance().spent_share <= 5.0 / again.promise.epsilon


def test_the_same_ledger_restored_from_its_export_is_the_same(lasting: Place) -> None:
    before = Ledger.create(lasting.url, "d", 10.0, 0.0)
    before.reserve(SMALL).commit()
    document = before.export()
    before.close()
    forget_it(lasting)
    Ledger.restore(lasting.url, document)
    before.reserve(SMALL)
    assert before.balance().entries == 4
