"""Commands about decisions, budgets, tables and servers: what they show and write, and how they end."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from people_who_do_not_exist import Command, Done, applicants, write_csv

import fairveil as fv
from fairveil.cli import modelling
from fairveil.core.events import Gaussian
from fairveil.facts import Category, Schema

LINES = re.compile(r"(?:error: [^\n]+\n)+hint: [^\n]+\n")
ROLES = ("--target", "hired", "--sensitive", "sex")


def ok(done: Done, code: int = 0) -> Done:
    assert done.code == code, (done.out, done.err)
    return done


@pytest.fixture
def decided(tmp_path: Path) -> Path:
    """3,000 people, of whom men are hired more often, by a column."""
    rows = [[*row, "yes" if row[1] > 50 else "no"] for row in applicants(3000, 5)]  # type: ignore[operator]
    return write_csv(tmp_path / "d.csv", rows, ["age", "score", "city", "sex", "hired", "decided"])


MADE = (*ROLES, "--prediction", "decided")


# audit


def test_an_audit_is_what_the_library_measures(fairveil: Command, decided: Path) -> None:
    asked = ("--constraint", "demographic_parity:0.5", "--constraint", "error_rate_parity:0.0001")
    done = ok(fairveil("audit", decided, *MADE, *asked), 1)
    columns = np.genfromtxt(decided, delimiter=",", names=True, dtype=None, encoding="utf-8")
    gap = fv.demographic_parity_gap(
        columns["hired"], columns["decided"], sensitive_features=columns["sex"]
    )
    assert f"smallest group): {100 * gap:.1f} points (95% interval" in done.out
    assert re.search(r"met: Demographic parity gap, required: at most 50\.0 points", done.out)
    assert re.findall(r"these rows +(.*)", done.out) == [
        "met: demographic parity",
        "not met: error rate parity",
    ]
    assert "nothing in this table is private" in done.out
    told = json.loads(ok(fairveil("audit", decided, *MADE, *asked, "--json"), 1).out)
    gaps = {one["notion"]: one for one in told["gaps"]}
    assert gaps["demographic parity"]["held_out"] == pytest.approx(gap)
    assert gaps["demographic parity"]["held_out_verdict"] == "met"
    assert set(gaps) == {"demographic parity", "error rate parity", "equalized odds"}
    assert told["statement"] is None


def test_audits_are_written_by_the_ending_of_the_file(
    fairveil: Command, decided: Path, schema: Path, tmp_path: Path
) -> None:
    both = ("--out", "a.html", "--out", "a.json")
    ok(fairveil("audit", decided, "--schema", schema, "--prediction", "decided", *both))
    assert "nothing in this table is private" in (tmp_path / "a.html").read_text()
    assert json.loads((tmp_path / "a.json").read_text())["statement"] is None
    ok(fairveil("audit", decided, *MADE, *both), 2)
    ok(fairveil("audit", decided, *MADE, "--out", "b.txt"), 2)


def test_a_gap_that_is_undefined_is_no_pass(fairveil: Command, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", [["f", "yes", "yes"]] * 9, ["sex", "hired", "decided"])
    ask = ("--constraint", "demographic_parity:0.5")
    assert (
        "undefined"
        in ok(fairveil("audit", path, *MADE, "--constraint", "equalized_odds:1%"), 1).out
    )
    assert fairveil("audit", path, *MADE, *ask).code in (0, 1)


def test_rates_of_a_randomized_model_are_expected_ones(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    words = ("--method", "oracle-game", "--constraint", "demographic_parity:0.01", "--epsilon", 20)
    ok(fairveil("fit", table, "--schema", schema, *words, "--seed", 1, "--out", "m"))
    done = ok(fairveil("predict", "m", table, "--proba", "--seed", 3))
    assert "drawn from their distribution, by --seed 3" in done.err
    assert done.out.splitlines()[0] == "prediction,probability[no],probability[yes]"
    assert (
        "expected rates: this classifier is randomized"
        in ok(fairveil("audit", table, "--model", "m")).out
    )
    (told,) = json.loads(ok(fairveil("audit", table, "--model", "m", "--json")).out)["tables"]
    assert told["expected"] is True
    kept = ok(fairveil("predict", "m", table, "--keep", "city", "--keep", "hired", "--seed", 3))
    assert kept.out.splitlines()[0] == "city,hired,prediction"
    for words in (("--keep", "karma"), ("--seed", -1)):
        ok(fairveil("predict", "m", table, *words), 2)


# certify, monitor, attack, verify and sign


def test_a_search_for_alternatives_is_fixed_first_and_verified_after(
    fairveil: Command, tmp_path: Path
) -> None:
    rows = [
        [*row, *("yes" if row[1] + 10 * by * (row[3] == "male") > 50 else "no" for by in (1, 0))]  # type: ignore[operator]
        for row in applicants(3000, 5)
    ]
    names = ["age", "score", "city", "sex", "hired", "now", "fair"]
    table = write_csv(tmp_path / "d.csv", rows, names)
    ok(fairveil("ledger", "create", "b.db", "people", "--epsilon", 4, "--delta", "1e-6"))
    ok(fairveil("sign", "--new-key", "h.key"))
    asked: tuple[object, ...]
    asked = (table, *ROLES, "--prediction", "now", "--tolerance", 0.06, "--epsilon", 2)
    first = ("--plan", "plan.json", "--key", "h.key", "--ledger", "b.db")
    files = ("--out", "r.json", "--out", "r.html")
    done = ok(fairveil("lda", *asked, "--candidate", "fair=fair", *first, *files))
    assert done.out.startswith("verdict      fair is a less discriminatory alternative")
    digest = re.search(r"sha256:[0-9a-f]{64}", done.out)
    assert digest is not None
    ok(fairveil("ledger", "show", "b.db", "--out", "lines.json"))
    assert digest[0] in (tmp_path / "lines.json").read_text()
    assert "What further search could find" in (tmp_path / "r.html").read_text()
    said = ok(fairveil("verify", "r.json", "--key", "h.pub"))
    assert said.out.startswith("Consistent: every interval and verdict follows")
    assert "Signed by" in said.out
    ok(fairveil("verify", "plan.json"), 2)  # no record
    record = (tmp_path / "r.json").read_text().replace('"tolerance": 0.06', '"tolerance": 0.09')
    (tmp_path / "r.json").write_text(record)
    assert "CONTRADICTION" in ok(fairveil("verify", "r.json"), 1).out
    same = ("--candidate", "same=now", "--seed", 1)
    ok(fairveil("lda", *asked, *same), 1)
    for wrong in (("--candidate", "fair"), ("--reference", "x")):
        done = ok(fairveil("lda", *asked, *same, *wrong), 2)
        assert LINES.fullmatch(done.refusal), done.err


def test_a_certificate_says_what_holds_and_is_charged_either_way(
    fairveil: Command, decided: Path, tmp_path: Path
) -> None:
    ok(fairveil("ledger", "create", "b.db", "people", "--epsilon", 4, "--delta", "1e-6"))
    paid = ("--epsilon", 1, "--ledger", "b.db", *MADE)
    files = ("--out", "c.json", "--out", "c.html")
    loose = ("--constraint", "demographic_parity:0.6", "--confidence", 0.99)
    done = ok(fairveil("certify", "-", decided, *loose, *paid, *files))
    assert re.match("verdict +certified: with 99% confidence", done.out)
    assert "Assumed: " in done.out
    assert "Certificate" in (tmp_path / "c.html").read_text()
    found = json.loads(ok(fairveil("verify", "c.json", "--json")).out)
    assert (found["consistent"], found["certified"]) == (True, True)
    done = ok(
        fairveil("certify", "-", decided, "--constraint", "demographic_parity:0.001", *paid), 1
    )
    assert re.match("verdict +not certified", done.out)
    assert fv.Ledger.open(tmp_path / "b.db").balance().committed == 2
    both = (*loose, *MADE, "--epsilon", 1)
    ok(fairveil("certify", "m", decided, *both), 2)
    ok(fairveil("certify", "-", decided, *MADE, "--epsilon", 1), 2)


BEGIN = ("--constraint", "demographic_parity:10%", "--group", "sex:f,m", "--classes", "0,1")


def test_a_monitor_begins_counts_and_raises_an_alarm(fairveil: Command, tmp_path: Path) -> None:
    rows = [["fm"[i % 2], int((i // 2) % 100 < (30, 80)[i % 2]), f"p{i}"] for i in range(2000)]
    may = write_csv(tmp_path / "may.csv", rows, ["sex", "decided", "patient"])
    assert ok(fairveil("monitor", "m.json", *BEGIN, "--epsilon", 1)).out.startswith(
        "verdict  no alarm"
    )
    period = ("--period", "May", "--prediction", "decided")
    done = ok(fairveil("monitor", "m.json", may, *period), 1)
    assert done.out.startswith("verdict  alarm in May")
    assert json.loads(ok(fairveil("monitor", "m.json", "--json"), 1).out)
    assert "a period that is new" in ok(fairveil("monitor", "m.json", may, *period), 2).err
    for wrong in (BEGIN[:2], (*BEGIN[:3], "sex", *BEGIN[4:]), (*BEGIN[:5], ","), BEGIN):
        ok(fairveil("monitor", "new.json", *wrong), 2)
    assert not (tmp_path / "new.json").exists()


MECHANISM = """
import numpy as np

def kept(table, seed, epsilon):
    return len(table["sex"]) + np.random.default_rng(seed).laplace() / epsilon
"""


def test_an_attack_is_written_by_the_ending_of_the_file(
    fairveil: Command, schema: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine_of_this_test.py").write_text(MECHANISM)
    claim = ("--schema", schema, "--epsilon", 1, "--delta", 0, "--trials", 50)
    target = ("attack", "mine_of_this_test:kept", *claim)
    files = ("--out", "a.json", "--out", "a.html")
    done = ok(fairveil(*target, *files))
    assert "Written: a.html" in done.out
    assert "<svg" in (tmp_path / "a.html").read_text()
    assert "rows that were made up" in (tmp_path / "a.html").read_text()
    assert json.loads((tmp_path / "a.json").read_text())
    assert json.loads(ok(fairveil(*target, "--json")).out)
    for wrong in (
        (*target, "--statement", "told.json"),
        (*target, "--out", "a.json"),
        ("attack", "mine:nothing", *claim),
        ("attack", "nowhere"),
    ):
        assert LINES.fullmatch(ok(fairveil(*wrong), 2).err)


def test_verify_says_what_holds_and_who_signed(
    fairveil: Command, others: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok(fairveil("fit", others, "--schema", schema, "--seed", 1, "--out", "m"))
    assert "Consistent: the events cost no more" in ok(fairveil("verify", "m")).out
    monkeypatch.setenv("FAIRVEIL_KEY_PASSPHRASE", "a word")
    assert "encrypted" in ok(fairveil("sign", "--new-key", "h.key")).out
    assert "other files" in ok(fairveil("sign", "m", "--key", "h.key", "--note", "hello")).out
    done = ok(fairveil("verify", "m", "--key", "h.pub"))
    assert "with the note 'hello', together with" in done.out
    assert "was not checked: pass --key" in ok(fairveil("verify", "m")).out
    told = json.loads(ok(fairveil("verify", "m", "--key", "h.pub", "--json")).out)
    assert (told["consistent"], told["signature"]["valid"]) == (True, True)
    monkeypatch.delenv("FAIRVEIL_KEY_PASSPHRASE")
    refused = ok(fairveil("sign", "m", "--key", "h.key", "--force"), 2)
    assert "no terminal to ask at" in refused.err
    content = json.loads((tmp_path / "m/statement.json").read_text())
    content["epsilon"] /= 2
    (tmp_path / "m/statement.json").write_text(json.dumps(content))
    done = ok(fairveil("verify", "m", "--key", "h.pub"), 1)
    assert "CONTRADICTION" in done.out
    assert "NOT SIGNED" in done.out
    for text in ("", "[]", '{"fairveil certificate"', "\x1b[31m"):
        (tmp_path / "x.json").write_text(text)
        assert LINES.fullmatch(ok(fairveil("verify", "x.json"), 2).err)


# ledger


def test_a_ledger_shows_lists_checks_and_keeps_copies(
    fairveil: Command, others: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = ("--epsilon", 4, "--delta", "1e-6", "--schema", schema)
    done = ok(fairveil("ledger", "create", "b.db", "people", *begin))
    assert "guarantee  epsilon = 4 at delta = 1e-6" in done.out
    assert "use         fairveil fit ... --ledger " in done.out
    ok(fairveil("ledger", "create", "b.db", "people", *begin), 2)
    monkeypatch.setenv("FAIRVEIL_LEDGER", "b.db")
    fit = ("fit", others, "--schema", schema, "--epsilon", 1, "--purpose", "a spring model")
    done = ok(fairveil(*fit, "--out", "m"))
    assert "recorded    line 1 of people in b.db; " in done.out.replace(str(tmp_path) + "/", "")
    ok(fairveil("ledger", "create", "second", "--epsilon", 1, "--delta", "1e-6"))
    assert len(ok(fairveil("ledger", "show")).out.splitlines()) == 2
    shown = ok(fairveil("ledger", "show", "--dataset", "people", "--out", "b.html")).out
    assert "about " in shown
    assert "Written: b.html" in shown
    told = json.loads(ok(fairveil("ledger", "show", "--dataset", "people", "--json")).out)
    assert told["ledgers"][0]["balance"]["committed"] == 1
    people = ("--dataset", "people")
    checked = ("ledger", "check", *people, "--statement", "m")
    done = ok(fairveil(*checked, "--statement", "m/statement.json"))
    assert "has the same receipt: it holds one release" in done.out
    assert "Consistent." in done.out
    assert json.loads(ok(fairveil(*checked, "--json")).out)["consistent"] is True
    with sqlite3.connect(tmp_path / "copy.db") as base, sqlite3.connect(tmp_path / "b.db") as own:
        own.backup(base)
        base.execute("update fairveil_ledger set who = 'another' where number = 1")
    ok(fairveil("ledger", "check", "b.db", "--statement", "m"))
    done = ok(fairveil("ledger", "check", "copy.db", "--statement", "m"), 1)
    assert "CONTRADICTION" in done.out
    assert done.out.splitlines()[-1] == "Inconsistent."
    refused = ok(fairveil(*fit, "--dataset", "second", "--epsilon", 3, "--out", "n"), 2)
    assert re.search(
        r"hint: The largest epsilon that fits, of all together, is [\d.]+", refused.err
    )
    assert not (tmp_path / "n").exists()


def test_a_ledger_says_what_is_not_settled(fairveil: Command, tmp_path: Path) -> None:
    ledger = fv.Ledger.create(tmp_path / "b.db", "people", 4.0, 1e-6)
    ledger.reserve(Gaussian(9.0), purpose="it hangs")
    shown = ok(fairveil("ledger", "show", "b.db")).out
    assert "1 is not settled" in shown
    assert "it hangs" in shown


# schemas, stores and released groups


def test_a_schema_is_drafted_filled_in_and_checked(
    fairveil: Command, table: Path, tmp_path: Path
) -> None:
    done = ok(fairveil("schema", "init", table, "--target", "hired", "--out", "s.toml"))
    assert "(5 columns, 6 blanks)" in done.out
    refused = ok(fairveil("schema", "check", "s.toml"), 1)
    assert [line[:6] for line in refused.err.splitlines()] == ["error:"] * 6 + ["hint: "]
    assert "edit s.toml, then run: fairveil schema check s.toml" in refused.err
    assert LINES.fullmatch(ok(fairveil("fit", table, "--schema", "s.toml", "--out", "m"), 2).err)
    public = ("--target", "hired", "--sensitive", "sex", "--public", "--out", "p.toml")
    assert "0 blanks" in ok(fairveil("schema", "init", table, *public)).out
    known = Schema.load(tmp_path / "p.toml")
    assert (known.rows, known.columns["sex"]) == (4000, Category(("female", "male")))
    done = ok(fairveil("schema", "check", "p.toml", table))
    assert "has them all; no other column" in done.out
    write_csv(tmp_path / "o.csv", [[1, "f"]], ["agee", "sex"])
    refused = ok(fairveil("schema", "check", "p.toml", "o.csv"), 1)
    assert "expected a column age, got none of that name" in refused.err
    assert "Did you mean agee?" in refused.err
    (tmp_path / "p.toml").write_text("columns = [")
    ok(fairveil("schema", "check", "p.toml"), 1)
    ok(fairveil("schema", "check", "nowhere.toml"), 2)
    ok(fairveil("schema", "init", table, "--target", "hird", "--out", "x.toml"), 2)


def test_a_coded_store_is_read_like_its_table(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    fv.data.encode(table, Schema.load(schema), tmp_path / "store")
    words = ("--schema", schema, "--constraint", "demographic_parity:0.2", "--seed", 1, "--out")
    for place, out in ((table, "one"), ("store", "two")):
        ok(fairveil("fit", place, *words, out))
    models = [fv.load(tmp_path / out) for out in ("one", "two")]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-9)
    ok(fairveil("predict", "one", "store", "--out", "a.csv"))
    ok(fairveil("predict", "one", table, "--out", "b.csv"))
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    assert "a coded store" in ok(fairveil("audit", "store", *MADE), 2).err


def test_groups_are_released_once_and_signed(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    ok(fairveil("sign", "--new-key", "h.key"))
    words = ("release-groups", table, "--schema", schema, "--seed", 1, "--key", "h.key")
    done = ok(fairveil(*words, "--note", "once", "--out", "g.json"))
    assert "groups      " in done.out
    assert "clusters    " in done.out
    assert fv.estimators.ReleasedGroups.load(tmp_path / "g.json").privacy.check() == []
    done = ok(fairveil("verify", "g.json", "--key", "h.pub"))
    assert "with the note 'once'" in done.out
    assert ok(fairveil("verify", "g.json")).out.startswith("Consistent: the release costs")
    ok(fairveil(*words, "--out", "g.json"), 2)


# export, serve, demo


def test_a_model_is_exported_as_a_query_or_a_card(
    fairveil: Command, others: Path, schema: Path, tmp_path: Path
) -> None:
    ok(fairveil("fit", others, "--schema", schema, "--seed", 1, "--out", "m"))
    ok(fairveil("export", "m", "--table", "people", "--keep", "city", "--out", "m.sql"))
    assert "people" in (tmp_path / "m.sql").read_text()
    ok(fairveil("export", "m", "--out", "card.md"))
    assert "differential-privacy" in (tmp_path / "card.md").read_text()
    ok(fairveil("export", "m", "--certificate", "c.json", "--out", "x.sql"), 2)
    ok(fairveil("export", "m", "--keep", "city", "--out", "x.md"), 2)
    assert not (tmp_path / "x.md").exists()


def test_tokens_and_runs_of_a_server(fairveil: Command, tmp_path: Path) -> None:
    columns = {"sex": Category(("f", "m")), "y": Category(("no", "yes"))}
    schema = Schema(columns, target="y", sensitive=("sex",))
    schema.save(tmp_path / "s.toml")
    (tmp_path / "t.csv").write_text("sex,y\nf,no\nm,yes\n")
    fv.Ledger.create(tmp_path / "b.db", "t", 1.0, 1e-6, schema=schema).close()
    (tmp_path / "holder.toml").write_text(
        '[door]\nname = "O"\nfolder = "door"\n[datasets.t]\nrows = "t.csv"\n'
        'schema = "s.toml"\nledger = "b.db"\n'
    )
    holder = ("--config", "holder.toml")
    assert "Would serve: t" in ok(fairveil("serve", *holder, "--check")).out
    secret = ok(fairveil("serve", *holder, "--issue", "R. Weber", "--role", "holder")).out.strip()
    listed = ok(fairveil("serve", *holder, "--list")).out
    assert "holder  R. Weber" in listed
    assert secret not in listed
    first = next(line for line in listed.splitlines() if "R. Weber" in line).split()[1]
    assert "Revoked" in ok(fairveil("serve", *holder, "--revoke", first)).out
    assert "ended" in ok(fairveil("serve", *holder, "--list")).out
    ok(fairveil("serve", *holder, "--revoke", first), 2)
    ok(fairveil("serve", *holder, "--stop", "nothing"), 2)
    named = ("serve", *holder, "--issue", "x")
    for wrong in (("--days", -1), ("--role", "boss"), ("--issue", "a\nb")):
        ok(fairveil(*named, *wrong), 2)


def test_the_demo_certifies_one_model_and_draws_the_rest(
    fairveil: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modelling, "PEOPLE", 4000)
    monkeypatch.setattr(modelling, "GAPS", (0.1,))
    monkeypatch.setattr(modelling, "EPSILONS", (1.0, 3.0))
    done = ok(fairveil("demo", "--seed", 0))
    assert "people who do not exist" in done.out
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "ertified" in page
    assert "fair, not private" in page
    whole = fv.PrivacyStatement.from_json((tmp_path / "demo/all_models.json").read_text())
    one = fv.PrivacyStatement.from_json((tmp_path / "demo/statement.json").read_text())
    assert one.epsilon <= 1.0 < whole.epsilon
    for name in ("statement", "all_models"):
        ok(fairveil("verify", f"demo/{name}.json"))
    (tmp_path / "demo" / "mine.txt").write_text("mine")
    ok(fairveil("demo", "--seed", 0), 2)
