"""`fairveil ledger`: what is begun, shown, listed, checked and exported; what is wrong is one line
and changes nothing."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from people_who_do_not_exist import Command, Done

import fairveil as fv
from fairveil.cli.printing import bar
from fairveil.core.events import Gaussian, Pure
from fairveil.facts import Schema
from fairveil.ledger import Ledger

TERMS = ("--epsilon", "2", "--delta", "1e-6")


@pytest.fixture(autouse=True)
def nothing_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRVEIL_LEDGER", raising=False)


@pytest.fixture
def budget(tmp_path: Path) -> Ledger:
    """Two relations; one spend given back, one not settled."""
    ledger = Ledger.create(
        tmp_path / "budget.db", "census", 2.0, 1e-6, neighbours="replace-one", who="somebody@work"
    )
    both = [
        fv.Promise(1.0, 1e-6, neighbours=relation) for relation in ("replace-one", "add-remove")
    ]
    spends = [
        ledger.reserve(Gaussian(15.0 + k), both[k % 2], purpose=f"Counts {k}") for k in range(4)
    ]
    spends[0].commit()
    spends[1].commit(Gaussian(40.0))
    spends[2].refund()
    return ledger


def said(done: Done) -> Any:
    assert done.err == ""
    return json.loads(done.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def refused(done: Done, words: str) -> None:
    assert done.code == 2
    assert words in done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 2
    assert not done.out


# create


def test_a_budget_is_begun_as_it_was_said(fairveil: Command, schema: Path, tmp_path: Path) -> None:
    more = (
        "--protects",
        "sensitive-features",
        "--production",
        "--schema",
        schema,
        "--kind",
        "zcdp",
    )
    done = fairveil("ledger", "create", "budget.db", "census", *TERMS, *more)
    assert done.code == 0, done.err
    assert "Begun: census in" in done.out
    assert stat.S_IMODE((tmp_path / "budget.db").stat().st_mode) == 0o600
    terms = Ledger.open(tmp_path / "budget.db").terms
    assert terms.promise == fv.Promise(2.0, 1e-6, "sensitive_features")
    assert (terms.kind, terms.production, terms.fingerprint) == (
        "zcdp",
        True,
        Schema.load(schema).fingerprint,
    )
    assert terms.columns == Schema.load(schema).sensitive
    one = ("--protects", "sensitive-features", "--sensitive", "race")
    assert fairveil("ledger", "create", "budget.db", "race", *TERMS, *one).code == 0
    assert Ledger.open(tmp_path / "budget.db", "race").terms.columns == ("race",)
    other = ("--neighbours", "replace-one", "--order", "8")
    assert fairveil("ledger", "create", "budget.db", "other", *TERMS, *other).code == 0
    terms = Ledger.open(tmp_path / "budget.db", "other").terms
    assert (terms.promise.neighbours, terms.kind, terms.production) == (
        "replace-one",
        "renyi",
        False,
    )
    assert terms.order == pytest.approx(8.0, rel=0.1)


def test_an_exported_budget_is_restored_whole(
    fairveil: Command, budget: Ledger, tmp_path: Path
) -> None:
    assert fairveil("ledger", "export", "budget.db", "-o", "kept.json").code == 0
    done = fairveil("ledger", "create", "again.db", "--from", "kept.json")
    assert done.code == 0, done.err
    assert list(Ledger.open(tmp_path / "again.db").history()) == list(budget.history())
    refused(fairveil("ledger", "create", "again.db", "--from", "kept.json"), "has no ledger of")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("new.db", "census"), "expected to be said"),
        (("new.db", "census", "--epsilon", "1"), "expected to be said"),
        (("new.db", "--epsilon", "1", "--delta", "0"), "expected to be said"),
        (("new.db", "census", "--epsilon", "inf", "--delta", "0"), "expected a finite epsilon"),
        (("new.db", "census", "--epsilon", "1", "--delta", "2"), "expected"),
        (("new.db", "census", *TERMS, "--kind", "tight"), "expected"),
        (
            ("new.db", "census", *TERMS, "--order", "8", "--kind", "zcdp"),
            "expected nothing, got 8 (--order)",
        ),
        (("new.db", "census", *TERMS, "--protects", "nobody"), "expected"),
        (("new.db", "census", *TERMS, "--schema", "none.toml"), "none.toml"),
        (("new.db", " ", *TERMS), "expected a name"),
        (("nowhere/new.db", "census", *TERMS), "a folder to put the ledger in"),
        (("budget.db", "census", *TERMS), "has no ledger of"),
        (("words.txt", "census", *TERMS), "expected the file of a ledger"),
        (("new.db", "--from", "none.json"), "expected a file that can be read"),
        (("new.db", "--from", "."), "expected a file that can be read"),
        (("new.db", "--from", "words.txt"), "expected a JSON document"),
        (("new.db", "--from", "bytes.bin"), "expected text in UTF-8"),
        (("new.db", "census", "--from", "words.txt"), "expected nothing beside --from"),
        (("new.db", "--delta", "0", "--from", "words.txt"), "expected nothing beside --from"),
        (("new.db", "--production", "--from", "words.txt"), "expected nothing beside --from"),
    ],
)
def test_what_cannot_be_begun_leaves_nothing(
    fairveil: Command, budget: Ledger, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    (tmp_path / "words.txt").write_text("no ledger at all", "utf-8")
    (tmp_path / "bytes.bin").write_bytes(b"{\xff")
    before, lines = set(tmp_path.iterdir()), list(budget.history())
    refused(fairveil("ledger", "create", *arguments), says)
    assert set(tmp_path.iterdir()) == before
    assert list(budget.history()) == lines
    assert budget.check() == [one for one in budget.check() if not one.grave]


# show


def test_what_is_left_is_shown_in_words_and_as_a_bar(fairveil: Command, budget: Ledger) -> None:
    done = fairveil("ledger", "show", "budget.db")
    assert done.code == 0
    balance = budget.balance()
    said_left = re.search(
        r"^left +([0-9.]+)%, as one release epsilon = ([0-9.]+) at delta = 1e-6$",
        done.out,
        re.MULTILINE,
    )
    assert said_left
    assert 0 <= balance.left_share - float(said_left[1]) / 100 < 1e-4, "rounded down"
    assert 0 <= balance.left - float(said_left[2]) < 1e-2  # three digits, rounded down
    full = done.out.partition("[")[2].partition("]")[0]
    assert set(full) == {"#", "."}
    assert len(full) == 40
    assert full.count("#") - 1 < 40 * balance.spent_share <= full.count("#")
    for words in (
        "epsilon = 2 at delta = 1e-6",
        "records, add-remove",
        "kept apart",
        "Of 3 releases 1 is not settled",
        "Counts 3",
    ):
        assert words in done.out
    assert balance.waiting[0] in done.out
    assert done.out.isascii(), "plain characters where it is no terminal"


def test_a_terminal_gets_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert bar(0.001, 4) in ("█░░░", "[#...]")
    assert bar(1.0, 4) in ("████", "[####]")


def test_every_number_of_a_budget_as_json(fairveil: Command, budget: Ledger) -> None:
    (told,) = said(fairveil("ledger", "show", "budget.db", "--json"))["ledgers"]
    assert told["balance"] == json.loads(json.dumps(budget.balance().to_dict()))
    assert told["terms"] == budget.terms.to_dict()
    assert told["begun"]["who"] == "somebody@work"
    (waiting,) = told["open"]
    assert (waiting["purpose"], waiting["state"], waiting["entry"]) == ("Counts 3", "reserved", 4)


def test_several_budgets_have_a_line_each_or_are_asked_for_by_name(
    fairveil: Command, budget: Ledger, tmp_path: Path
) -> None:
    Ledger.create(tmp_path / "budget.db", "wages", 1.0, 0.0)
    done = fairveil("ledger", "show", "budget.db")
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines] == ["dataset", "census", "wages"]
    assert [
        one["dataset"] for one in said(fairveil("ledger", "show", "budget.db", "--json"))["ledgers"]
    ] == ["census", "wages"]
    assert fairveil("ledger", "show", "budget.db", "--dataset", "wages").out.startswith("wages in ")
    refused(
        fairveil("ledger", "show", "budget.db", "--html", "page.html"),
        "expected one of 'census', 'wages'",
    )
    assert not (tmp_path / "page.html").exists()


def test_a_page_is_written_with_its_twin_or_not_at_all(
    fairveil: Command, budget: Ledger, tmp_path: Path
) -> None:
    done = fairveil("ledger", "show", "budget.db", "--html", "page.html")
    assert done.code == 0
    assert "Written: page.html" in done.out
    twin = json.loads((tmp_path / "page.json").read_text("utf-8"))
    (ledger,) = twin["results"].values()
    assert len(ledger["Releases, the newest first"]) == len(list(budget.history())) // 2
    assert "Counts 3" in (tmp_path / "page.html").read_text("utf-8")
    refused(fairveil("ledger", "show", "budget.db", "--html", "page.html"), "--force")
    assert (
        fairveil("ledger", "show", "budget.db", "--html", "page.html", "--force", "--json").code
        == 0
    )


# history


def test_lines_are_listed_from_either_end(fairveil: Command, budget: Ledger) -> None:
    def numbers(*arguments: object) -> list[int]:
        done = fairveil("ledger", "history", "budget.db", *arguments)
        assert done.code == 0
        found = said(fairveil("ledger", "history", "budget.db", *arguments, "--json"))["entries"]
        assert [line.split()[0] for line in done.out.splitlines()[1:]] == [
            str(one["number"]) for one in found
        ]
        return [one["number"] for one in found]

    assert numbers() == list(range(8))
    assert numbers("--last", 2) == [6, 7]
    assert numbers("--first", 3) == [3, 4, 5, 6, 7]
    assert numbers("--first", 3, "--limit", 2) == [3, 4]
    assert numbers("--limit", 2) == [0, 1]
    assert numbers("--purpose", "counts 1") == [2, 6]
    assert numbers("--purpose", "counts", "--last", 1) == [7]
    assert numbers("--purpose", "counts", "--first", 2, "--limit", 2) == [2, 3]
    assert numbers("--purpose", "karma") == []


def test_a_line_says_who_when_what_and_how_much(fairveil: Command, budget: Ledger) -> None:
    told = said(fairveil("ledger", "history", "budget.db", "--json"))
    for line, one in zip(budget.history(), told["entries"], strict=True):
        assert {name: one[name] for name in line.to_dict()} == line.to_dict(), (
            "its hash can be made again"
        )
        assert one["share"] == line.units / 2**60
    refunded = fairveil("ledger", "history", "budget.db", "--last", 1).out.splitlines()[1]
    for words in (
        "somebody@work",
        "refunded",
        "Counts 2",
        f"{100 * told['entries'][-1]['share']:.4g}%",
    ):
        assert words in refunded


@pytest.mark.parametrize(
    "wrong",
    [
        ("--last", 0),
        ("--first", -1),
        ("--limit", 0),
        ("--last", 3, "--first", 2),
        ("--last", 3, "--limit", 2),
    ],
)
def test_a_range_that_is_none_is_refused(
    fairveil: Command, budget: Ledger, wrong: tuple[object, ...]
) -> None:
    refused(fairveil("ledger", "history", "budget.db", *wrong), f"({wrong[0]})")


# check


def edit(path: Path, statement: str) -> None:
    """As somebody who may alter the tables."""
    base = sqlite3.connect(path)
    for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        base.execute(f"DROP TRIGGER {name}")
    base.execute(statement)
    base.commit()
    base.close()


def test_a_budget_that_agrees_is_said_to(fairveil: Command, budget: Ledger) -> None:
    done = fairveil("ledger", "check", "budget.db")
    assert done.code == 0
    assert "Consistent." in done.out
    assert "note: 1 spends are not settled" in done.out
    told = said(fairveil("ledger", "check", "budget.db", "--json"))
    assert told["consistent"] is True
    last = list(budget.history())[-1]
    assert [(one["dataset"], one["entries"], one["last"]) for one in told["ledgers"]] == [
        ("census", 8, last.hash)
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE fairveil_ledger SET purpose = 'another' WHERE number = 3",
        "UPDATE fairveil_ledger SET who = x'00ff' WHERE number = 3",
        "UPDATE fairveil_ledger SET content = '{}' WHERE number = 0",
        "UPDATE fairveil_ledger SET content = replace(content, '2.0', '9.0') WHERE number = 0",
        "DELETE FROM fairveil_ledger WHERE number = 6",
        "DELETE FROM fairveil_ledger WHERE number = 0",
    ],
)
def test_an_edited_line_is_found(
    fairveil: Command, budget: Ledger, tmp_path: Path, statement: str
) -> None:
    Ledger.create(tmp_path / "budget.db", "untouched", 1.0, 0.0)
    budget.close()
    edit(
        tmp_path / "budget.db",
        f"{statement}{' AND' if 'WHERE' in statement else ' WHERE'} dataset = 'census'",
    )
    done = fairveil("ledger", "check", "budget.db")
    assert done.code == 1, done.err
    assert "CONTRADICTION" in done.out
    assert "Inconsistent." in done.out
    assert "untouched in budget.db: 1 line," in done.out
    told = said(fairveil("ledger", "check", "budget.db", "--json", "--dataset", "census"))
    assert told["consistent"] is False
    assert fairveil("ledger", "check", "budget.db", "--dataset", "untouched").code == 0


def test_an_export_is_checked_as_its_ledger_is(
    fairveil: Command, budget: Ledger, tmp_path: Path
) -> None:
    assert fairveil("ledger", "export", "budget.db", "--out", "kept.json").code == 0
    assert fairveil("ledger", "check", "kept.json").code == 0
    assert fairveil("ledger", "check", "kept.json", "--dataset", "census").code == 0
    refused(fairveil("ledger", "check", "kept.json", "--dataset", "wages"), "expected 'census'")
    text = (tmp_path / "kept.json").read_text("utf-8")
    (tmp_path / "edited.json").write_text(text.replace("Counts 1", "Counts 9"), "utf-8")
    assert fairveil("ledger", "check", "edited.json").code == 1
    (tmp_path / "broken.json").write_text(text[:-40], "utf-8")
    refused(fairveil("ledger", "check", "broken.json"), "expected a JSON document")
    values = json.loads(text)
    values["entries"] = values["entries"][1:]
    (tmp_path / "headless.json").write_text(json.dumps(values), "utf-8")
    assert fairveil("ledger", "check", "headless.json").code == 1


def statement_of(budget: Ledger, path: Path, recorded: float, stated: float) -> Path:
    """Of a release whose noise is stated as other than recorded, or as recorded."""
    spend = budget.reserve(Gaussian(recorded))
    spend.commit()
    promise, plan = fv.Promise(2.0, 1e-6, neighbours="replace-one"), [Gaussian(stated)]
    return fv.PrivacyStatement.of(promise, plan, plan=plan, ledger=spend.receipt).write(path)


def test_statements_are_looked_up(fairveil: Command, budget: Ledger, tmp_path: Path) -> None:
    right = statement_of(budget, tmp_path / "right.json", 30.0, 30.0)
    wrong = statement_of(budget, tmp_path / "wrong.json", 30.0, 29.0)
    assert fairveil("ledger", "export", "budget.db", "-o", "kept.json").code == 0
    for place in ("budget.db", "kept.json"):
        done = fairveil("ledger", "check", place, "--statement", right)
        assert done.code == 0, done.out
        assert f"{right}: line 8 of census" in done.out
        told = said(
            fairveil("ledger", "check", place, "--json", "--statement", right, "--statement", wrong)
        )
        assert told["consistent"] is False
        assert [[one["grave"] for one in each["findings"]] for each in told["statements"]] == [
            [],
            [True],
        ]
    bare = fv.PrivacyStatement.of(fv.Promise(1.0, 1e-6), [], plan=[]).write(tmp_path / "bare.json")
    assert "it has no receipt" in fairveil("ledger", "check", "budget.db", "--statement", bare).out
    (tmp_path / "folder").mkdir()
    os.link(right, tmp_path / "folder/statement.json")
    twice = fairveil("ledger", "check", "budget.db", "--statement", "folder", "--statement", right)
    assert twice.code == 0
    assert "note: folder has the same receipt" in twice.out
    Ledger.create(tmp_path / "budget.db", "wages", 1.0, 0.0)
    other = fairveil("ledger", "check", "budget.db", "--dataset", "wages", "--statement", right)
    assert other.code == 1
    assert "'census', which is not among those that were checked" in other.out


def test_a_statement_that_cannot_be_read_is_refused_by_name(
    fairveil: Command, budget: Ledger, tmp_path: Path
) -> None:
    (tmp_path / "words.txt").write_text("no statement", "utf-8")
    refused(fairveil("ledger", "check", "budget.db", "--statement", "words.txt"), "expected")
    refused(fairveil("ledger", "check", "budget.db", "--statement", "none.json"), "none.json")
    refused(fairveil("ledger", "check", "budget.db", "--statement", "."), "statement.json")


def test_a_ledger_that_forgot_a_statement_is_found_out(
    fairveil: Command, budget: Ledger, tmp_path: Path
) -> None:
    """An older copy, put back: all of it fits together, but for the receipt."""
    (tmp_path / "older.json").write_text(budget.export(), "utf-8")
    right = statement_of(budget, tmp_path / "right.json", 30.0, 30.0)
    done = fairveil("ledger", "check", "older.json", "--statement", right)
    assert done.code == 1
    assert "lines were taken off" in done.out


# export


def test_an_export_is_whole_and_the_owners_alone(
    fairveil: Command, budget: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fairveil("ledger", "export", "budget.db").out == budget.export()
    done = fairveil("ledger", "export", "budget.db", "--dataset", "census", "-o", "kept.json")
    assert done.code == 0
    assert (tmp_path / "kept.json").read_text("utf-8") == budget.export()
    assert stat.S_IMODE((tmp_path / "kept.json").stat().st_mode) == 0o600
    refused(fairveil("ledger", "export", "budget.db", "-o", "kept.json"), "--force")
    assert fairveil("ledger", "export", "budget.db", "-o", "kept.json", "--force").code == 0
    before = {file: file.read_bytes() for file in tmp_path.glob("*.json")}

    def broken(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", broken)
    refused(fairveil("ledger", "export", "budget.db", "-o", "kept.json", "--force"), "disk full")
    refused(fairveil("ledger", "export", "budget.db", "-o", "more.json"), "disk full")
    assert {
        file: file.read_bytes() for file in tmp_path.iterdir() if ".json" in file.name
    } == before


# Addresses


@pytest.mark.parametrize("command", ["show", "history", "check", "export"])
def test_a_place_that_holds_no_ledger_is_refused(
    fairveil: Command, tmp_path: Path, command: str
) -> None:
    refused(fairveil("ledger", command), "set FAIRVEIL_LEDGER")
    refused(fairveil("ledger", command, "none.db"), "expected the file of a ledger")
    refused(fairveil("ledger", command, "."), "expected the file of a ledger")
    sqlite3.connect(tmp_path / "other.db").execute(
        "create table people (age int)"
    ).connection.close()
    refused(fairveil("ledger", command, "other.db"), "another program's database")
    refused(fairveil("ledger", command, "mysql://me:secret@host/db"), "expected an address")
    assert {file.name for file in tmp_path.iterdir()} <= {
        "other.db",
        "other.db-wal",
        "other.db-shm",
    }


@pytest.mark.parametrize("command", ["show", "history", "check", "export"])
def test_a_data_set_that_is_not_there_is_refused_with_those_that_are(
    fairveil: Command, budget: Ledger, tmp_path: Path, command: str
) -> None:
    refused(
        fairveil("ledger", command, "budget.db", "--dataset", "wages"), "expected one of 'census'"
    )
    Ledger.create(tmp_path / "budget.db", "wages", 1.0, 0.0)
    if command in ("history", "export"):
        refused(fairveil("ledger", command, "budget.db"), "expected one of 'census', 'wages'")
    files = {file.name for file in tmp_path.iterdir()}
    assert files <= {"budget.db", "budget.db-wal", "budget.db-shm"}


def test_an_address_may_stand_in(
    fairveil: Command, budget: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRVEIL_LEDGER", str(tmp_path / "budget.db"))
    assert fairveil("ledger", "create", "wages", *TERMS).code == 0
    assert Ledger.datasets(tmp_path / "budget.db") == ["census", "wages"]
    assert fairveil("ledger", "create", "another.db", "wages", *TERMS).code == 0
    for command in ("show", "history", "check", "export"):
        assert fairveil("ledger", command, "--dataset", "wages").code == 0
        assert str(tmp_path) not in fairveil("ledger", command, "--help").out
    (tmp_path / "kept.json").write_text(Ledger.open(tmp_path / "another.db").export(), "utf-8")
    refused(fairveil("ledger", "create", "--from", "kept.json"), "has no ledger of")
    assert fairveil("ledger", "create", "third.db", "--from", "kept.json").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("ledger", "show", "{url}"),
        ("ledger", "check", "{url}", "--json"),
        ("ledger", "create", "{url}", "census", *TERMS),
        ("ledger", "{url}"),
        ("ledger", "history", "x.db", "--last", "{url}"),
        ("ledger", "show", "x.db", "{url}"),
        ("{url}",),
    ],
)
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@127.0.0.1:1/db",
        "postgres://me:hun@ter2@127.0.0.1:1/db?password=hunter2",
    ],
)
def test_no_error_shows_a_password(fairveil: Command, arguments: tuple[str, ...], url: str) -> None:
    done = fairveil(*(word.format(url=url) for word in arguments))
    assert done.code == 2
    for word in ("hunter2", "ter2"):
        assert word not in done.out + done.err
    assert "Traceback" not in done.err


def test_a_server_serves_every_command_and_no_line_shows_its_password(
    fairveil: Command, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The password holds an @, and is wrong once."""
    monkeypatch.setenv("FAIRVEIL_LEDGER", postgres_url)
    name = f"people of {tmp_path.name}"
    of = ("--dataset", name)
    done = [fairveil("ledger", "create", name, *TERMS)]
    Ledger.open(postgres_url, name).reserve(Gaussian(20.0), purpose="counts")
    done += [fairveil("ledger", command, *of) for command in ("show", "history", "check", "export")]
    done += [
        fairveil("ledger", "show", *of, "--json"),
        fairveil("ledger", "show", *of, "--html", "page.html"),
    ]
    done += [
        fairveil("ledger", "check", *of, "--json"),
        fairveil("ledger", "history", *of, "--json"),
    ]
    assert [one.code for one in done] == [0] * 9
    wrong = fairveil("ledger", "show", postgres_url.replace("s3cret%40word", "gu3ss%40ed"))
    refused(wrong, "expected a server that answers")
    texts = [one.out + one.err for one in (*done, wrong)] + [
        file.read_text("utf-8") for file in tmp_path.glob("page.*")
    ]
    assert len(texts) == 12
    for word in ("s3cret", "gu3ss", "word@", "%40"):
        assert not any(word in text for text in texts)


def test_looking_changes_nothing(fairveil: Command, budget: Ledger, tmp_path: Path) -> None:
    before = list(budget.history())
    budget.close()
    for command in ("show", "history", "check", "export"):
        assert fairveil("ledger", command, "budget.db").code == 0
    assert list(budget.history()) == before


def test_a_budget_of_delta_0_and_one_that_is_used_up_are_shown(
    fairveil: Command, tmp_path: Path
) -> None:
    ledger = Ledger.create(tmp_path / "pure.db", "wages", 1.0, 0.0)
    ledger.reserve(Pure(1.0)).commit()
    done = fairveil("ledger", "show", "pure.db")
    assert re.search(r"^left +0%, as one release epsilon = 0 at delta = 0$", done.out, re.MULTILINE)
    assert f"[{'#' * 40}] 100% spent" in done.out


# fit and frontier

PARITY = ("--constraint", "demographic_parity:0.05")


def test_a_fit_is_recorded_and_its_statement_found(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    ledger = Ledger.create(tmp_path / "budget.db", "applicants", 2.0, 1e-6)
    where = ("--ledger", "budget.db", "--dataset", "applicants", "--purpose", "spring")
    for method in ("rate-constrained", "post-processing"):
        fit = (
            "fit",
            table,
            "--schema",
            schema,
            *PARITY,
            "--epsilon",
            0.5,
            "--method",
            method,
            "--out",
            method,
        )
        done = fairveil(*fit, *where)
        assert done.code == 0, done.err
        assert "recorded    line " in done.out
    kinds = [(line.kind, line.purpose) for line in ledger.history()]
    assert kinds[1:3] == [
        (kind, "spring: RateConstrainedClassifier.fit") for kind in ("reserved", "committed")
    ]
    assert kinds[-1] == ("committed", "spring: OddsPostProcessor.fit")
    models = ("--statement", "rate-constrained", "--statement", "post-processing/statement.json")
    found = fairveil("ledger", "check", "budget.db", *models)
    assert found.code == 0, found.out
    assert "it is of several spends: lines 3, 5" in found.out
    page = json.loads((tmp_path / "rate-constrained/report.json").read_text("utf-8"))
    recorded = "Recorded as line 1 of the ledger of applicants."
    assert recorded in [fact["words"] for fact in page["decision"]]
    assert "budget.db" not in (tmp_path / "rate-constrained/estimator.json").read_text("utf-8")


def test_a_fit_without_room_is_refused_and_writes_nothing(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(tmp_path / "budget.db", "applicants", 1.0, 1e-6)
    ledger.reserve(Gaussian(10.0)).commit()
    lines, before = list(ledger.history()), {file.name for file in tmp_path.iterdir()}
    monkeypatch.setenv("FAIRVEIL_LEDGER", "budget.db")
    fit = ("fit", table, "--schema", schema, *PARITY, "--out", "model")
    refused(fairveil(*fit, "--epsilon", 0.99), "the largest epsilon that fits is 0.8")
    refused(fairveil(*fit, "--epsilon", "inf"), "expected a finite epsilon")
    refused(fairveil(*fit, "--dataset", "wages"), "expected one of 'applicants'")
    refused(fairveil(*fit, "--purpose", "two\nlines"), "expected")
    refused(fairveil(*fit, "--purpose", "a" * 450), "expected at most 400 letters")
    refused(fairveil(*fit, "--ledger", "none.db"), "expected the file of a ledger")
    assert list(ledger.history()) == lines
    assert {file.name for file in tmp_path.iterdir()} == before
    monkeypatch.delenv("FAIRVEIL_LEDGER")
    refused(fairveil(*fit, "--purpose", "spring"), "expected a ledger beside it")
    refused(fairveil(*fit, "--dataset", "applicants"), "expected a ledger beside it")


def test_a_frontier_is_recorded_whole(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    ledger = Ledger.create(tmp_path / "budget.db", "applicants", 3.0, 1e-6)
    sweep = (
        "frontier",
        table,
        "--schema",
        schema,
        "--gaps",
        "0.2,0.05",
        "--ledger",
        "budget.db",
        "--purpose",
        "sweep",
    )
    done = fairveil(*sweep, "--epsilons", "0.2,0.3", "--out", "f")
    assert done.code == 0, done.err
    assert "recorded    line " in done.out
    assert all(
        line.purpose.startswith("sweep: ") for line in ledger.history() if line.kind == "reserved"
    )
    assert fairveil("ledger", "check", "budget.db", "--statement", "f").code == 0
    spent = ledger.balance().spent_share
    refused(fairveil(*sweep, "--epsilons", "2,3", "--out", "g"), "largest epsilon that fits")
    assert ledger.balance().spent_share == spent
    assert not (tmp_path / "g").exists()
