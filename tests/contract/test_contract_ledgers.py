"""A ledger's own promises, with exact fractions worked out here; and the checks by which strangers
find what was changed: in ledgers, in statements and in signed files."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fairveil as fv
from fairveil.core.events import Approximate, Event, Gaussian, PerCell, Pure, Repeated
from fairveil.errors import FairveilError, Overspent
from fairveil.facts import Schema
from fairveil.ledger import Entry, findings
from fairveil.privacy import (
    Filter,
    NamedGroups,
    PrivacyStatement,
    Promise,
    Unit,
    calibrate,
    epsilon,
    new_key,
    sign,
    verify_signature,
)

UNITS = 1 << 60  # of a budget
PROMISE = Promise(1.0, 1e-6)


def pure(**options: Any) -> fv.Ledger:
    return fv.Ledger.create(None, "people", 1.0, 0.0, **options)


def gaussian(**options: Any) -> fv.Ledger:
    return fv.Ledger.create(None, "people", **({"epsilon": 1.0, "delta": 1e-6} | options))


def lines(ledger: fv.Ledger) -> list[Entry]:
    return list(ledger.history())


# ---- what is charged


def test_a_charge_is_never_below_the_share_that_was_spent() -> None:
    """Whole units, rounded outwards: of a pure ledger the share is a fraction that is known."""
    ledger = pure()
    for amount in (0.3, 0.1, 1 / 3, 1e-17):
        before = lines(ledger)[-1].spent
        ledger.reserve(Pure(amount)).commit()
        charged = lines(ledger)[-1].spent - before
        assert Fraction(amount) * UNITS <= charged < Fraction(amount) * UNITS + 1
    with pytest.raises(FairveilError):
        ledger.reserve(Pure(0.28))
    ledger.reserve(Pure(0.26)).commit()
    assert ledger.check() == []


def test_leaks_add_up_and_have_a_cap() -> None:
    """Delta that is lost beside the filter is a hundredth of the budget's, and is written down."""
    ledger = gaussian(kind="renyi")
    ledger.reserve(Approximate(0.001, 6e-9)).commit()
    assert lines(ledger)[-1].leaked >= Fraction(6e-9) / Fraction(1e-8) * UNITS * Fraction(999, 1000)
    assert ledger.balance().leaked_share == pytest.approx(0.6)
    with pytest.raises(Overspent):
        ledger.reserve(Approximate(0.001, 6e-9))
    ledger.reserve(Approximate(0.001, 3e-9)).commit()


def test_all_rows_of_a_person_are_charged() -> None:
    """A release about rows, in a budget of persons with three: three times its epsilon."""
    ledger = pure(unit="person", max_rows_per_unit=3)
    ledger.reserve(Pure(0.1), Promise(1.0, 0.0)).commit()
    assert lines(ledger)[-1].spent == pytest.approx(0.3 * UNITS, rel=1e-9)
    ledger.reserve(Pure(0.1), Promise(1.0, 0.0, unit=Unit("person", 3))).commit()
    assert lines(ledger)[-1].spent == pytest.approx(0.4 * UNITS, rel=1e-9)
    replaced = pure(neighbours="replace-one")
    replaced.reserve(Pure(0.1), Promise(1.0, 0.0)).commit()
    assert lines(replaced)[-1].spent == pytest.approx(0.2 * UNITS, rel=1e-9)


WHOLE = calibrate(PROMISE, lambda z: Repeated(Gaussian(z), 4), precision=1e-9).events


def test_a_plan_that_takes_the_whole_budget_takes_it_alone() -> None:
    ledger = gaussian()
    assert ledger.fits(WHOLE)
    assert not ledger.fits(WHOLE, fixed=False)
    with pytest.raises(FairveilError):
        ledger.reserve(WHOLE, fixed=False)
    assert ledger.is_untouched
    spend = ledger.reserve(WHOLE)
    assert ledger.balance().left == 0.0
    with pytest.raises(FairveilError):
        ledger.reserve(Gaussian(1e4))
    spend.refund()
    ledger.reserve(Gaussian(1000.0)).commit()
    assert not ledger.fits(WHOLE)
    with pytest.raises(FairveilError):
        ledger.reserve(WHOLE)
    assert ledger.check() == []


def test_no_order_of_spends_passes_the_cap() -> None:
    """Equal releases until one is refused: so many as the filter's own sum has room for."""
    for kind in ("renyi", "gaussian"):
        ledger, cap, made = gaussian(kind=kind), Filter.create(PROMISE, kind), 0
        while cap.fits(Gaussian(12.0)) and made < 2000:
            cap = cap.add(Gaussian(12.0))
            assert ledger.fits(Gaussian(12.0))
            ledger.reserve(Gaussian(12.0)).commit()
            made += 1
        assert 3 < made < 2000
        assert not ledger.fits(Gaussian(12.0))
        with pytest.raises(Overspent):
            ledger.reserve(Gaussian(12.0))
        assert ledger.balance().spent_share == pytest.approx(cap.spent / cap.budget, rel=1e-6)
        assert epsilon([Gaussian(12.0)] * made, 1e-6) <= 1.0


def test_a_spend_is_settled_once_for_what_was_released_and_no_more_than_reserved() -> None:
    ledger = gaussian()
    spend = ledger.reserve(Repeated(Gaussian(20.0), 4))
    reserved = lines(ledger)[-1].spent
    with pytest.raises(FairveilError):
        spend.commit(Repeated(Gaussian(20.0), 7))
    spend.commit(Repeated(Gaussian(20.0), 2))
    assert lines(ledger)[-1].spent == pytest.approx(reserved / 2, rel=1e-9)
    for again in (spend.commit, spend.refund):
        with pytest.raises(FairveilError):
            again()
    assert lines(ledger)[-1].spent == pytest.approx(reserved / 2, rel=1e-9)


def test_a_copy_of_a_run_does_not_go_on_after_another_did() -> None:
    ledger = gaussian()
    first = ledger.reserve(Gaussian(20.0))
    second = ledger.resume(first.id, 2)
    for sitting in (1, 2):
        with pytest.raises(FairveilError):
            ledger.resume(first.id, sitting)
    with pytest.raises(FairveilError):
        first.commit()
    second.commit()


def test_what_a_ledger_requires_it_requires_of_every_spend() -> None:
    strict = gaussian(production=True)
    for wrong in ({"secure": False}, {"read_from_data": ["bounds of age"]}):
        with pytest.raises(FairveilError):
            strict.reserve(Gaussian(20.0), **wrong)
        with pytest.raises(FairveilError):
            strict.require(PROMISE, **wrong)
    assert strict.is_untouched
    open_to_all = gaussian()
    open_to_all.reserve(Gaussian(20.0), secure=False)
    assert lines(open_to_all)[-1].values["noise"] == "seeded"
    with pytest.raises(FairveilError):
        open_to_all.reserve(Gaussian(20.0), Promise(1.0, 1e-6, "sensitive_features"))


def test_columns_that_the_ledger_protects_are_not_published_by_a_later_release() -> None:
    ledger = gaussian(protects="sensitive_features")
    ledger.reserve(Gaussian(30.0), columns=["race", "sex"]).commit()
    ledger.reserve(Gaussian(30.0), columns=["race", "sex", "faith"]).commit()
    with pytest.raises(FairveilError):
        ledger.reserve(Gaussian(30.0), columns=["sex"])


def test_a_ledger_opened_to_read_is_not_written(tmp_path: Path) -> None:
    fv.Ledger.create(tmp_path / "a.db", "people", 1.0, 1e-6).close()
    reader = fv.Ledger.open(tmp_path / "a.db", read_only=True)
    for write in (lambda: reader.reserve(Gaussian(30.0)), lambda: reader.require(PROMISE)):
        with pytest.raises(fv.errors.LedgerError, match="opened to read"):
            write()
    assert reader.is_untouched


def test_the_balance_tells_what_is_left_and_what_is_open() -> None:
    ledger = gaussian()
    assert ledger.balance().left == pytest.approx(1.0, rel=1e-3)
    first = ledger.reserve(Gaussian(10.0))
    balance = ledger.balance()
    assert (balance.open, balance.waiting) == (1, (first.id,))
    cap = Filter.create(PROMISE, "renyi").add(Gaussian(10.0))
    assert balance.left == pytest.approx(cap.as_release(cap.room()), rel=1e-6)
    assert balance.left < 0.9
    first.commit()
    assert ledger.balance().waiting == ()


def test_a_ledger_in_the_place_of_another_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    ledger = fv.Ledger.create(path, "people", 1.0, 1e-6)
    ledger.reserve(Gaussian(30.0)).commit()
    ledger.close()
    for file in tmp_path.glob("a.db*"):
        file.unlink()
    fv.Ledger.create(path, "people", 100.0, 1e-6).close()
    for ask in (lambda: ledger.reserve(Gaussian(1.0)), lambda: ledger.fits(Gaussian(1.0))):
        with pytest.raises(FairveilError):
            ask()


def table_of(base: sqlite3.Connection) -> str:
    """The table of lines in a ledger's file, with what keeps it from being changed taken away."""
    for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        base.execute(f"DROP TRIGGER {name}")
    (table,) = {
        name
        for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if "content" in {column[1] for column in base.execute(f"PRAGMA table_info({name})")}
    }
    return str(table)


def test_terms_that_were_changed_in_the_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    fv.Ledger.create(path, "people", 1.0, 1e-6).close()
    with closing(sqlite3.connect(path)) as base:
        table = table_of(base)
        (content,) = base.execute(f"SELECT content FROM {table} WHERE number = 0").fetchone()
        larger = content.replace('"epsilon":1.0', '"epsilon":9.0')
        assert larger != content
        base.execute(f"UPDATE {table} SET content = ? WHERE number = 0", (larger,))
        base.commit()
    with pytest.raises(FairveilError):
        print(fv.Ledger.open(path, "people").promise)


def test_every_change_of_a_ledgers_file_is_found(tmp_path: Path) -> None:
    """Of the last line but one, whose hash another line repeats, and of what comes between."""
    ledger = fv.Ledger.create(tmp_path / "a.db", "people", 1.0, 1e-6)
    for _ in range(3):
        ledger.reserve(Gaussian(40.0)).commit()
    ledger.close()
    kept = (tmp_path / "a.db").read_bytes()
    names = [name for name in lines(ledger)[3].to_dict() if name not in {"number", "hash"}]
    ledger.close()
    for name in [*names, "a line less", "a line of another hash"]:
        path = tmp_path / f"{name}.db"
        path.write_bytes(kept)
        with closing(sqlite3.connect(path)) as base:
            table = table_of(base)
            if name in names:
                number = name in {"units", "leak", "spent", "leaked"}
                change = f"SET {name} = {name} " + ("+ 1" if number else "|| '0'")
            else:
                change = f"SET hash = '{'0' * 64}'"
            if name == "a line less":
                base.execute(f"DELETE FROM {table} WHERE number = 3")
            else:
                base.execute(f"UPDATE {table} {change} WHERE number = 3")
            base.commit()
        found = fv.Ledger.open(path, "people", read_only=True).check()
        told = " ".join(one.sentence for one in found if one.grave)
        assert told, name
        if name in {"at", "who", "code", "purpose"}:
            assert "hash" in told
        if name in {"a line less", "a line of another hash"}:
            assert "follow" in told


# ---- what a check finds in lines that somebody changed

Lines = list[dict[str, Any]]


def full() -> tuple[Lines, list[Any]]:
    """The lines of a ledger with spends of every kind, and their receipts."""
    ledger = gaussian(who="me@here")
    spends = [ledger.reserve(Repeated(Gaussian(30.0), 4), purpose="broke off")]
    spends[0].commit(Repeated(Gaussian(30.0), 2), complete=False)
    spends.append(ledger.reserve(Gaussian(40.0), secure=False))
    ledger.resume(spends[-1].id, 1).commit()
    spends.append(ledger.reserve(Gaussian(25.0)))
    spends[-1].refund()
    spends.append(ledger.reserve(Approximate(0.01, 1e-9)))
    return [line.to_dict() for line in ledger.history()], [spend.receipt for spend in spends]


def is_found(entries: Lines, receipts: Any = ()) -> bool:
    """Whether lines are refused, or a check of them finds something grave."""
    try:
        return any(one.grave for one in findings(map(Entry.from_dict, entries), receipts))
    except FairveilError:
        return True


def chained(entries: Lines, *, sums: bool = True) -> Lines:
    """Written anew from the first line on, as by somebody who knows how a hash is made."""
    out: Lines = []
    spent = leaked = 0
    for number, line in enumerate(entries):
        spent, leaked = spent + line["units"], leaked + line["leak"]
        line = line | {"number": number, "previous": out[-1]["hash"] if out else line["previous"]}
        line |= {"spent": spent, "leaked": leaked} if sums else {}
        out.append(Entry.from_dict(line).sealed().to_dict())
    return out


def changed(line: dict[str, Any], **values: Any) -> dict[str, Any]:
    """With these values in its content."""
    content = json.loads(line["content"]) | values
    return line | {"content": json.dumps(content, separators=(",", ":"), sort_keys=True)}


def test_every_change_of_a_line_is_found() -> None:
    entries, _ = full()
    assert not is_found(entries)
    for place, line in enumerate(entries):
        for name, value in line.items():
            others = [value + 1] if isinstance(value, int) else [f"{value}0", value[:-1]]
            for other in others:
                if other == value:
                    continue
                forged = [*entries[:place], line | {name: other}, *entries[place + 1 :]]
                assert is_found(forged), (place, name)
        if 0 < place < len(entries) - 1:
            without = entries[:place] + entries[place + 1 :]
            renamed = [line | {"number": at} for at, line in enumerate(without)]
            resealed = [Entry.from_dict(line).sealed().to_dict() for line in renamed]
            for forged in (without, renamed, resealed):
                assert is_found(forged), place


def forged(change: Callable[[Lines], Lines], *, sums: bool = True) -> bool:
    return is_found(chained(change(full()[0]), sums=sums))


def edited(place: int, edit: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[..., Lines]:
    return lambda entries: [*entries[:place], edit(entries[place]), *entries[place + 1 :]]


FORGERIES: dict[str, tuple[Callable[[Lines], Lines], bool]] = {
    "a charge of half": (edited(1, lambda line: line | {"units": line["units"] // 2}), True),
    "a charge of nothing": (edited(3, lambda line: line | {"units": 0}), True),
    "a leak of nothing": (edited(8, lambda line: line | {"leak": 0}), True),
    "sums that are too small": (
        edited(3, lambda line: line | {"spent": line["spent"] // 2}),
        False,
    ),
    "more than the cap": (edited(1, lambda line: line | {"units": UNITS + (1 << 30)}), True),
    "a sitting twice": (lambda entries: [*entries[:5], entries[4], *entries[5:]], True),
    "a refund that leaves a part": (edited(7, lambda line: line | {"units": -1}), True),
    "seeded noise in production": (
        edited(0, lambda line: changed(line, production=True)),
        True,
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_lines_that_agree_by_their_hashes_are_priced_again(name: str) -> None:
    change, sums = FORGERIES[name]
    assert not forged(lambda entries: entries)
    if name == "sums that are too small":  # of one line; the next goes on from what is true
        assert is_found(chained(change(full()[0]), sums=False))
        return
    assert forged(change, sums=sums)


def test_a_release_that_published_a_protected_column_is_found() -> None:
    ledger = gaussian(protects="sensitive_features")
    for _ in range(2):
        ledger.reserve(Gaussian(30.0), columns=["race", "sex"]).commit()
    entries = [line.to_dict() for line in ledger.history()]
    assert not is_found(entries)
    entries[3] = changed(entries[3], columns=["sex"])
    assert is_found(chained(entries))


def test_a_ledger_that_was_written_anew_does_not_fit_receipts() -> None:
    entries, receipts = full()
    assert not is_found(entries, receipts)
    other = chained(edited(1, lambda line: line | {"purpose": "another"})(entries))
    for written in (other, entries[:5]):
        assert not is_found(written)
        assert is_found(written, receipts)


# ---- what a check finds in statements

PLAN: list[Event] = [Gaussian(20.0), PerCell(((40.0, 120.0),), (2.0,))]
FILTER = Filter.create(PROMISE, "gaussian")


def stated(**options: Any) -> PrivacyStatement:
    return PrivacyStatement.of(
        PROMISE,
        PLAN,
        plan=PLAN,
        groups=[NamedGroups(("few", "many"), limits=(1.0, None))],
        **options,
    )


def grave(statement: PrivacyStatement) -> list[str]:
    return [one.sentence for one in statement.check() if one.grave]


def with_group(statement: PrivacyStatement, **values: Any) -> PrivacyStatement:
    first, *rest = statement.groups
    return dataclasses.replace(statement, groups=(dataclasses.replace(first, **values), *rest))


def bounds(origin: str) -> tuple[Any, ...]:
    """As a fit states them."""
    fit = fv.FairClassifier(schema=Schema(unsafe_data_dependent_bounds=True), random_state=0)
    fit.fit([[0.0], [2.0], [4.0], [9.0]] * 5, [0, 1, 0, 1] * 5)
    return tuple(dataclasses.replace(one, origin=origin) for one in fit.privacy_.bounds)


def audit(value: float) -> Any:
    from fairveil.statement.document import Audit

    return Audit(value, 0.95, "an attack")


REPLACE = dataclasses.replace
FALSE: dict[str, Callable[[], PrivacyStatement]] = {
    "epsilon below its events": lambda: REPLACE(stated(), epsilon=stated().epsilon * 0.98),
    "epsilon beyond its promise": lambda: REPLACE(stated(), promise=Promise(0.1, 1e-6)),
    "another relation": lambda: REPLACE(
        stated(), promise=Promise(1.0, 1e-6, neighbours="replace-one")
    ),
    "seeded noise without its flag": lambda: REPLACE(stated(noise="seeded"), stamps=()),
    "user code without its flag": lambda: REPLACE(stated(user_code="trusted"), stamps=()),
    "a flag that nothing needs": lambda: REPLACE(stated(), stamps=("seeded-noise",)),
    "a log that is not its plan": lambda: REPLACE(stated(), events=(Gaussian(19.0),)),
    "a log that is longer than its plan": lambda: REPLACE(
        stated(), events=(*stated().events, Gaussian(500.0))
    ),
    "a log beyond its filter": lambda: REPLACE(
        PrivacyStatement.of(PROMISE, [Gaussian(20.0)], cap=FILTER), events=(Gaussian(2.0),)
    ),
    "an audit that refutes it": lambda: stated(audit=audit(stated().epsilon * 1.01)),
    "a group that is told too little": lambda: with_group(
        stated(), epsilon=stated().groups[0].epsilon * 0.98
    ),
    "a group's limit that is passed": lambda: with_group(stated(), limit=0.05),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_statement_that_is_false_is_found_out(name: str) -> None:
    assert stated().check() == []
    assert stated(noise="seeded").check() == []
    assert stated(audit=audit(stated().epsilon * 0.9)).check() == []
    assert grave(FALSE[name]())


def test_bounds_read_from_the_data_are_flagged() -> None:
    flagged = stated(bounds=bounds("read from the data, not covered"))
    assert "data-dependent-bounds" in flagged.stamps
    assert flagged.check() == []
    assert grave(REPLACE(flagged, stamps=()))


def test_a_table_of_other_releases_is_found_out() -> None:
    table = fv.FairClassifier(random_state=0).fit(
        [[0.0], [0.2], [0.4], [0.9]] * 5, [0, 1, 0, 1] * 5
    )
    statement = table.privacy_
    assert statement.releases
    assert statement.check() == []
    assert grave(REPLACE(statement, releases=statement.releases[1:]))


def test_an_interrupted_run_costs_its_plan_and_one_without_a_plan_its_filter() -> None:
    half = PrivacyStatement.of(PROMISE, PLAN[:1], plan=PLAN)
    assert half.epsilon == stated().epsilon == epsilon(PLAN, 1e-6)
    free = PrivacyStatement.of(PROMISE, PLAN[:1], cap=FILTER)
    assert free.epsilon == 1.0
    assert free.check() == []
    found = [one.sentence for one in REPLACE(free, cap=None).check()]
    assert any("inf" in sentence for sentence in found), found


# ---- signatures


@pytest.fixture
def signed(tmp_path: Path) -> Path:
    pytest.importorskip("cryptography")
    new_key(tmp_path / "ours.key")
    new_key(tmp_path / "theirs.key")
    (tmp_path / "model").mkdir()
    model = fv.FairClassifier(random_state=0).fit(
        [[0.0], [0.2], [0.4], [0.9]] * 5, [0, 1, 0, 1] * 5
    )
    fv.save(model, tmp_path / "model", overwrite=True)
    model.privacy_.write(tmp_path / "statement.json")
    REPLACE(stated(), tuning="another").write(tmp_path / "other.json")
    sign(tmp_path / "model", tmp_path / "ours.key")
    sign(tmp_path / "statement.json", tmp_path / "ours.key")
    return tmp_path


def test_a_signature_is_of_one_key_and_one_text(signed: Path) -> None:
    ours, theirs = signed / "ours.pub", signed / "theirs.pub"
    for name in ("statement.json", "model"):
        verify_signature(signed / name, ours)
        with pytest.raises(FairveilError):
            verify_signature(signed / name, theirs)
    (proof,) = [path for path in signed.glob("statement*") if path.name != "statement.json"]
    text = (signed / "other.json").read_text()
    (signed / "statement.json").write_text(text)
    with pytest.raises(FairveilError):
        verify_signature(signed / "statement.json", ours)
    assert proof.exists()


def test_a_signature_is_made_by_the_key_whose_name_it_has(signed: Path) -> None:
    """Of a signature of theirs under our name, and of ours with one digit changed."""
    (proof,) = [path for path in signed.glob("statement*") if path.name != "statement.json"]
    mine = json.loads(proof.read_text())
    (signature,) = mine["signatures"]
    digits = signature["sig"]
    signature["sig"] = ("A" if digits[0] != "A" else "B") + digits[1:]
    proof.write_text(json.dumps(mine))
    with pytest.raises(FairveilError):
        verify_signature(signed / "statement.json", signed / "ours.pub")


def test_no_file_of_a_signed_folder_is_changed_or_missing(signed: Path) -> None:
    files = [path for path in (signed / "model").rglob("*") if path.is_file()]
    kept = {path: path.read_bytes() for path in files}
    statement = [path for path in files if "signature" in path.name or "statement" in path.name]
    for path in [path for path in files if path not in statement]:
        path.write_bytes(kept[path] + b" ")
        with pytest.raises(FairveilError):
            verify_signature(signed / "model", signed / "ours.pub")
        path.unlink()
        with pytest.raises(FairveilError):
            verify_signature(signed / "model", signed / "ours.pub")
        path.write_bytes(kept[path])
    verify_signature(signed / "model", signed / "ours.pub")
