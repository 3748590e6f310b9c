"""Spends around any code: refused before it runs, charged however it ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairveil.core.events import Gaussian, Laplace, NonPrivate
from fairveil.core.promise import Promise
from fairveil.errors import FairveilError, InputError, LedgerError, Overspent
from fairveil.privacy.importing import Imported
from fairveil.privacy.ledger import Ledger
from fairveil.privacy.ledger.stores.entries import COMMITTED, REFUNDED, RESERVED

SMALL = Gaussian(50.0)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger.create(None, "people", 1.0, 1e-5)


def kinds(ledger: Ledger) -> list[str]:
    return [line.kind for line in ledger.history(1)]


def test_guarantee_1_all_is_charged_before_the_first_line_of_the_block(ledger: Ledger) -> None:
    with ledger.spend([SMALL, SMALL], purpose="two tables") as spend:
        assert kinds(ledger) == [RESERVED]
        inside = ledger.balance()
    assert inside.spent > 0
    direct = Ledger.create(None, "others", 1.0, 1e-5)
    direct.reserve([SMALL, SMALL], fixed=False).commit()
    assert ledger.balance().spent_share == direct.balance().spent_share == inside.spent_share
    line = ledger.standing(spend.id).reserved
    assert (line.purpose, line.values["noise"]) == ("two tables", "seeded")


def test_guarantee_1_a_block_without_room_does_not_run(ledger: Ledger) -> None:
    ran = []
    with pytest.raises(Overspent), ledger.spend(Gaussian(0.5), purpose="too much"):
        ran.append("the block")
    assert not ran
    assert ledger.is_untouched


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit, SystemExit])
def test_guarantee_2_an_error_of_the_block_is_charged_and_comes_out(
    error: type[BaseException], ledger: Ledger
) -> None:
    with pytest.raises(error), ledger.spend(SMALL, purpose="broken off"):
        raise error
    assert kinds(ledger) == [RESERVED, COMMITTED]
    assert list(ledger.history())[-1].values["complete"] is False
    assert ledger.balance().spent > 0


def test_guarantee_2_a_block_settles_what_it_released_itself(ledger: Ledger) -> None:
    with ledger.spend([SMALL] * 4, purpose="at most four") as spend:
        spend.commit([SMALL])
    one = Ledger.create(None, "others", 1.0, 1e-5)
    one.reserve(SMALL, fixed=False).commit()
    assert ledger.balance().spent_share == one.balance().spent_share
    with ledger.spend(SMALL, purpose="nothing") as spend:
        spend.refund()
    assert kinds(ledger) == [RESERVED, COMMITTED, RESERVED, REFUNDED]
    assert ledger.balance().spent_share == one.balance().spent_share
    assert not ledger.check()


def test_guarantee_2_a_process_that_dies_inside_leaves_it_charged(
    tmp_path: Path, in_child: Callable[[Callable[[], object]], Callable[[], str]]
) -> None:
    path = tmp_path / "budget.db"
    Ledger.create(path, "people", 1.0, 1e-5).close()

    def die() -> None:
        with Ledger.open(path).spend(SMALL, purpose="dies"):
            os._exit(3)

    assert in_child(die)() == ""
    left = Ledger.open(path)
    assert kinds(left) == [RESERVED]
    assert left.balance().open == 1
    assert left.balance().spent > 0
    left.close()


def test_guarantee_3_an_untouched_ledger_is_taken_whole_only_by_what_was_fixed_in_advance(
    ledger: Ledger,
) -> None:
    exact = [Laplace(2.0), Laplace(2.0)]
    with pytest.raises(Overspent), ledger.spend(exact, purpose="all of it"):
        pass
    assert ledger.is_untouched
    with ledger.spend(exact, purpose="all of it", fixed_in_advance=True):
        pass
    assert ledger.balance().left_share == 0


def test_guarantee_4_nothing_is_written_before_the_block(ledger: Ledger) -> None:
    block = ledger.spend(SMALL, purpose="later")
    assert ledger.is_untouched
    with block:
        pass
    assert kinds(ledger) == [RESERVED, COMMITTED]


def test_blocks_inside_one_another_are_two_spends(ledger: Ledger) -> None:
    with ledger.spend(SMALL, purpose="outer"), ledger.spend(SMALL, purpose="inner"):
        pass
    two = Ledger.create(None, "others", 1.0, 1e-5)
    for _ in range(2):
        two.reserve(SMALL, fixed=False).commit()
    assert ledger.balance().spent_share == two.balance().spent_share


def test_relations_and_noise_are_those_of_the_ledger_unless_told() -> None:
    replaced = Ledger.create(None, "people", 1.0, 1e-5, neighbours="replace-one")
    for neighbours in ("add-remove", None, "replace-one"):
        with replaced.spend(SMALL, purpose="of one relation", neighbours=neighbours) as spend:
            pass
        promise = Promise.from_dict(replaced.standing(spend.id).reserved.values["promise"])
        assert promise.neighbours == (neighbours or "replace-one")
    persons = Ledger.create(None, "persons", 1.0, 1e-5, unit="patient")
    for neighbours in (None, "add-remove"):
        with persons.spend(SMALL, purpose="of persons", neighbours=neighbours) as spend:
            pass
        assert (
            Promise.from_dict(persons.standing(spend.id).reserved.values["promise"]).unit
            == persons.promise.unit
        )
    strict = Ledger.create(None, "strict", 1.0, 1e-5, production=True)
    with pytest.raises(LedgerError, match="secure noise"), strict.spend(SMALL, purpose="seeded"):
        pass
    assert strict.is_untouched
    with strict.spend(SMALL, purpose="secure", secure=True):
        pass
    assert not strict.is_untouched


@pytest.mark.parametrize(
    "bad",
    [
        {"purpose": ""},
        {"purpose": "  "},
        {"purpose": None},
        {"purpose": "two\nlines"},
        {"neighbours": "all"},
        {"neighbours": "replace-one"},
        {"secure": 1},
        {"fixed_in_advance": "yes"},
        {"events": None},
        {"events": NonPrivate()},
        {"events": [SMALL, 3]},
    ],
)
def test_a_bad_argument_is_an_error_and_changes_nothing(
    bad: dict[str, Any], ledger: Ledger
) -> None:
    given: dict[str, Any] = {"events": SMALL, "purpose": "counts", **bad}
    ran = []
    with pytest.raises(FairveilError), ledger.spend(given.pop("events"), **given):
        ran.append("the block")
    assert not ran
    assert ledger.is_untouched


def test_a_library_s_fit_is_charged_before_it_runs(ledger: Ledger) -> None:
    planned = Imported.of(SMALL, "add-remove", "a library 1.0", rows_per_person=2)
    with planned.spend(ledger, "spring model") as spend:
        assert ledger.standing(spend.id).reserved.purpose == "spring model (with a library 1.0)"
    recorded = Ledger.create(None, "others", 1.0, 1e-5)
    planned.record(recorded)
    assert ledger.balance().spent_share == recorded.balance().spent_share
    with pytest.raises(InputError, match="purpose"), planned.spend(ledger, ""):
        pass
    ran = []
    large = Imported.of(Gaussian(0.5), "add-remove", "a library 1.0", rows_per_person=1)
    with pytest.raises(Overspent), large.spend(ledger, "too large"):
        ran.append("the block")
    assert not ran


@pytest.mark.parametrize("url", [":memory:", b":memory:", Path(":memory:"), "file::memory:"])
def test_sqlite_s_name_of_memory_is_no_file(
    url: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for use in (lambda: Ledger.create(url, "people", 1.0, 1e-5), lambda: Ledger.open(url)):
        with pytest.raises(InputError, match="None for one in memory"):
            use()
    assert not list(tmp_path.iterdir())
