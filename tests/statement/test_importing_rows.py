"""What was imported, in a ledger: relations, rows of a person, room; and as a document, strictly
read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairveil.core.events import Gaussian, Laplace, NonPrivate, PoissonSampled, Pure, Repeated
from fairveil.errors import (
    BudgetError,
    DataNotFoundError,
    FairveilError,
    InputError,
    LedgerError,
    Overspent,
)
from fairveil.ledger import Ledger
from fairveil.statement.importing import Imported, from_opacus, in_a_row, read_import


def spent(event: Any, neighbours: str = "add-remove", rows: int = 1, **more: Any) -> Imported:
    return Imported.of(event, neighbours, "a library 1.0", rows_per_person=rows, **more)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger.create(None, "people", 1.0, 1e-6)


def test_a_record_is_charged_once_and_named(ledger: Ledger) -> None:
    spend = spent(Gaussian(20.0)).record(ledger, "spring model")
    lines = list(ledger.history())
    assert [line.kind for line in lines] == ["created", "reserved", "committed"]
    assert lines[1].purpose == "spring model (imported from a library 1.0)"
    assert lines[1].values["noise"] == "seeded"
    assert lines[1].spend == spend.id
    direct = Ledger.create(None, "others", 1.0, 1e-6)
    direct.reserve(Gaussian(20.0)).commit()
    assert ledger.balance().spent_share == direct.balance().spent_share > 0
    assert not ledger.check()


def test_rows_of_one_person_are_all_charged() -> None:
    """Guarantee 3 of `imported`, and 1 of `in_a_row`: k neighbours in a row."""
    assert spent(Gaussian(30.0), rows=3).price(1e-6).epsilon == pytest.approx(
        spent(Gaussian(10.0)).price(1e-6).epsilon
    )
    assert (
        spent(Gaussian(30.0), rows=3).price(1e-6).epsilon
        >= spent(Gaussian(10.0)).price(1e-6).epsilon
    )
    assert spent([Laplace(4.0), Pure(0.25)], rows=2).price(0.0).epsilon >= 1.0
    for times in range(1, 8):
        bound = in_a_row(Pure(0.1), "replace-one", times)
        assert isinstance(bound, Pure)
        assert bound.epsilon >= 0.1 * times
    for event in (PoissonSampled(0.1, Gaussian(1.0)), NonPrivate()):
        assert in_a_row(event, "add-remove", 2) is None
        with pytest.raises(InputError, match="several rows"):
            spent(event, rows=2)


def test_a_relation_that_the_ledger_cannot_add_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="number of rows"):
        spent(Gaussian(20.0), "replace-one").record(ledger)
    assert ledger.is_untouched
    replaced = Ledger.create(None, "people", 1.0, 1e-6, neighbours="replace-one")
    spent(Gaussian(40.0)).record(replaced)
    twice = Ledger.create(None, "people", 1.0, 1e-6)
    twice.reserve(Gaussian(20.0)).commit()
    assert replaced.balance().spent_share == pytest.approx(twice.balance().spent_share)
    with pytest.raises(LedgerError, match="replace-one"):
        spent(PoissonSampled(0.1, Gaussian(2.0))).record(replaced)


def test_no_noise_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="without noise"):
        spent(NonPrivate()).record(ledger)
    assert ledger.is_untouched


def test_a_ledger_in_production_takes_secure_noise_alone() -> None:
    strict = Ledger.create(None, "people", 1.0, 1e-6, production=True)
    with pytest.raises(LedgerError, match="secure noise"):
        spent(Gaussian(20.0)).record(strict)
    spent(Gaussian(20.0), secure_noise=True).record(strict)
    assert not strict.is_untouched


def test_what_does_not_fit_has_happened_and_is_said_so(ledger: Ledger) -> None:
    with pytest.raises(BudgetError, match="has happened"):
        spent(Gaussian(1.0)).record(ledger)
    assert ledger.is_untouched


def test_an_untouched_ledger_is_given_whole_only_to_what_was_fixed_in_advance(
    ledger: Ledger,
) -> None:
    """Guarantee 4: the tight price of (1, 1e-6) is no bound of steps that were chosen after seeing
    earlier ones."""

    exact = [Laplace(2.0), Laplace(2.0)]
    with pytest.raises(BudgetError, match="has happened"):
        spent(exact).record(ledger)
    with pytest.raises(Overspent):
        ledger.reserve(exact, fixed=False)
    assert ledger.fits(exact)
    assert not ledger.fits(exact, fixed=False)
    spent(exact).record(ledger, fixed_in_advance=True)
    assert ledger.balance().left_share == 0


@pytest.mark.parametrize(
    ("library", "rows"),
    [("", 1), ("two\nlines", 1), ("x" * 101, 1), ("a", 0), ("a", 1 << 21), ("a", 1.5)],
)
def test_bad_arguments_are_refused(library: str, rows: Any) -> None:
    with pytest.raises(InputError):
        Imported.of(Pure(0.1), "add-remove", library, rows_per_person=rows)


# documents


def test_what_was_written_reads_back(tmp_path: Path) -> None:
    found = from_opacus(
        [(1.0, 0.01, 500)], sampling="poisson", neighbours="add-remove", rows_per_person=1
    )
    path = found.write(tmp_path / "spent.json")
    assert read_import(path) == found
    with pytest.raises(InputError, match="not there yet"):
        found.write(path)
    assert [file.name for file in tmp_path.iterdir()] == ["spent.json"]


HEAD: dict[str, Any] = {
    "format": "fairveil-import",
    "version": 1,
    "neighbours": "add-remove",
    "rows_per_person": 1,
}


def written(folder: Path, **fields: Any) -> Path:
    path = folder / "spent.json"
    path.write_text(json.dumps({**HEAD, **fields}), "utf-8")
    return path


def test_documents_of_other_libraries_are_read(tmp_path: Path) -> None:
    opacus = {"history": [[1.0, 0.01, 500]], "sampling": "poisson"}
    found = read_import(
        written(
            tmp_path, opacus=opacus, library="opacus 1.6.0", notes=["by hand"], secure_noise=True
        )
    )
    assert found.events == Repeated(PoissonSampled(0.01, Gaussian(1.0)), 500)
    assert (found.library, found.notes[0], found.secure_noise) == ("opacus 1.6.0", "by hand", True)
    shuffled = {"history": [[4.0, 0.5, 4]], "sampling": "shuffled", "passes": 2}
    assert read_import(
        written(tmp_path, opacus=shuffled, neighbours="replace-one")
    ).events == Repeated(Gaussian(2.0), 2)
    tree = {"event": {"class_name": "GaussianDpEvent", "noise_multiplier": 3.0}}
    assert read_import(written(tmp_path, dp_accounting=tree)).events == Gaussian(3.0)
    over = {**tree, "multipliers": "sensitivity"}
    assert read_import(
        written(tmp_path, dp_accounting=over, neighbours="replace-one")
    ).events == Gaussian(3.0)
    assert read_import(
        written(tmp_path, event=Gaussian(6.0).to_dict(), rows_per_person=2)
    ).events == in_a_row(Gaussian(6.0), "add-remove", 2)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"event": Pure(1.0).to_dict(), "opacus": {}},
        {"event": Pure(1.0).to_dict(), "more": 1},
        {"event": Pure(1.0).to_dict(), "version": 2},
        {"event": Pure(1.0).to_dict(), "format": "other"},
        {"event": Pure(1.0).to_dict(), "neighbours": "all"},
        {"event": Pure(1.0).to_dict(), "rows_per_person": "1"},
        {"event": Pure(1.0).to_dict(), "secure_noise": 1},
        {"event": Pure(1.0).to_dict(), "notes": "one"},
        {"event": Pure(1.0).to_dict(), "library": "two\nlines"},
        {"event": {"kind": "gaussian"}},
        {"event": []},
        {"opacus": {"history": [[1.0, 0.1, 2.5]], "sampling": "poisson"}},
        {"opacus": {"history": [[1.0, 0.1]], "sampling": "poisson"}},
        {"opacus": {"history": []}},
        {"dp_accounting": {"event": "GaussianDpEvent"}},
        {"dp_accounting": {"event": {"class_name": "ComposedDpEvent", "events": {}}}},
        {"diffprivlib": {"spent_budget": [[1.0, 0.0]], "tools": ["mean"]}},
    ],
)
def test_a_malformed_document_is_refused(fields: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(FairveilError):
        read_import(written(tmp_path, **fields))


def test_what_is_no_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataNotFoundError):
        read_import(tmp_path / "none.json")
    for content in (b"", b"[" * 100_000, b'{"format": NaN}', b"\xff", b'{"a": 1, "a": 2}'):
        (tmp_path / "spent.json").write_bytes(content)
        with pytest.raises(FairveilError):
            read_import(tmp_path / "spent.json")
