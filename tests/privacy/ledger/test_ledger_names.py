"""What a ledger protects by name: columns, its own lines; and what a handle takes along."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from fairveil.core.events import Gaussian, PoissonSampled
from fairveil.core.promise import Promise
from fairveil.errors import DataNotFoundError, FairveilError, InputError, LedgerError
from fairveil.privacy.ledger import Ledger, costs
from fairveil.privacy.ledger.stores import creating
from fairveil.privacy.ledger.stores.store import MemoryStore

SMALL = Gaussian(50.0)
SENSITIVE = Promise(1.0, 1e-5, "sensitive_features")


def test_a_release_that_protects_other_columns_is_refused_for_it_publishes_the_ledger_s() -> None:

    ledger = Ledger.create(None, "people", 1.0, 1e-5, "sensitive_features")
    ledger.reserve(SMALL, columns=["sex"])
    ledger.reserve(SMALL, columns=["race", "sex"])  # more is fine
    ledger.reserve(SMALL)  # by hand: the ledger's
    # all of a record is protected, whatever is named
    ledger.reserve(SMALL, Promise(1.0, 1e-5), columns=["age"])
    before = list(ledger.history())
    for columns in (["race"], [], ["Sex"], [3]):
        with pytest.raises(FairveilError):
            ledger.reserve(SMALL, SENSITIVE, columns=columns)  # type: ignore[arg-type]
    assert list(ledger.history()) == before
    assert [one for one in ledger.check() if one.grave] == []
    named = Ledger.create(None, "others", 1.0, 1e-5, "sensitive_features", columns=["sex", "race"])
    with pytest.raises(LedgerError, match="protects race, sex"):
        named.reserve(SMALL, columns=["sex"])
    with pytest.raises(InputError, match="columns"):
        Ledger.create(None, "others", 1.0, 1e-5, columns=["sex"])
    strict = Ledger.create(None, "strict", 1.0, 1e-5, "sensitive_features", production=True)
    with pytest.raises(LedgerError, match="with names"):
        strict.reserve(SMALL, columns=["sensitive_0"])


def test_lines_under_another_name_are_no_ledger_of_that_name() -> None:
    store = MemoryStore()
    store.create("census", next(Ledger.create(None, "tiny", 100.0, 1e-5).history()))
    with pytest.raises(LedgerError, match="tiny"):
        Ledger(store, "census").reserve(SMALL)


def test_a_pickled_handle_opens_its_store_when_it_is_first_used(tmp_path: Path) -> None:
    url = tmp_path / "budget.db"
    text = pickle.dumps(Ledger.create(url, "people", 1.0, 1e-5))
    url.rename(tmp_path / "moved.db")
    copy = pickle.loads(text)
    assert copy.dataset == "people"
    assert "budget.db" in repr(copy)
    with pytest.raises(DataNotFoundError):
        copy.balance()
    (tmp_path / "moved.db").rename(url)
    copy.reserve(SMALL)
    assert copy.balance().open == 1
    copy.close()


def test_what_a_handle_is_for_stands_before_every_purpose(tmp_path: Path) -> None:
    url = tmp_path / "budget.db"
    Ledger.create(url, "people", 1.0, 1e-5).close()
    ledger = pickle.loads(pickle.dumps(Ledger.open(url, purpose="spring")))
    assert [ledger.reserve(SMALL, purpose=words) and words for words in ("counts", "")] == [
        "counts",
        "",
    ]
    assert [line.purpose for line in ledger.history(1)] == ["spring: counts", "spring"]
    ledger.close()


def test_an_address_is_no_name_of_a_data_set(tmp_path: Path) -> None:
    """Two arguments the wrong way round would write a password into every line."""
    with pytest.raises(InputError, match="the address first") as refused:
        Ledger.create(tmp_path / "census", "postgresql://me:s3cret@host/base", 1.0, 1e-5)
    assert "s3cret" not in str(refused.value)
    assert not (tmp_path / "census").exists()


def test_a_ledger_of_full_batches_says_so_and_a_balance_reads_as_words() -> None:
    ledger = Ledger.create(None, "people", 1.0, 1e-5, kind="gaussian")
    ledger.reserve(SMALL)
    with pytest.raises(LedgerError, match="sampling_rate=None"):
        ledger.reserve(PoissonSampled(0.1, Gaussian(2.0)))
    assert str(ledger.balance()).startswith(
        "people: 0.56% of epsilon = 1 at delta = 1e-5 spent, 99.44% left"
    )


def test_the_rules_of_the_database_and_the_handle_are_of_one_cap() -> None:
    assert costs.MOST == creating.MOST_CHARGED
