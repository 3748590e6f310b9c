"""The holder's side: holder.toml, read strictly before anything is opened; rows that are read once,
bound to runs and divisions, and told to nobody; and what analysts may have coded otherwise."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doors import (
    PERSONS,
    SCHEMA,
    WHOLE,
    WIDE,
    Analyst,
    Place,
    Refused,
    place_in,
    remote_data,
    served,
    write_table,
)

import fairveil as fv
import ways
from fairveil import data
from fairveil.core.events import Gaussian
from fairveil.core.promise import Promise, Unit
from fairveil.curator import FeatureSums, GramMatrices, Measurement, RowCount
from fairveil.data import Encoding
from fairveil.errors import FairveilError, InputError, PrivacyError
from fairveil.estimators.coding import CODINGS, SchemaCoding
from fairveil.facts import Schema
from fairveil.serving.holder import Holder
from fairveil.serving.runs import Server
from fairveil.serving.wire import View

# -- holder.toml -----------------------------------------------------------------------------------

GOOD = """[door]
name = "O"
folder = "door"
[datasets.applicants]
rows = "applicants.csv"
schema = "applicants.toml"
ledger = "budget.db"
"""


def test_places_are_relative_to_the_file(tmp_path: Path) -> None:
    place_in(tmp_path)
    holder = Holder.load(tmp_path / "holder.toml")
    assert holder.folder == tmp_path / "door"
    assert holder.datasets[0].rows == str(tmp_path / "applicants.csv")
    (tmp_path / "other.toml").write_text(
        GOOD.replace('"budget.db"', '"postgresql://me@db/budgets"')
    )
    assert Holder.load(tmp_path / "other.toml").datasets[0].ledger == "postgresql://me@db/budgets"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[door]\n",
        GOOD.replace("[door]", "[dooor]"),
        GOOD + "more = 1\n",
        GOOD.replace('name = "O"', "name = 3"),
        GOOD.replace("datasets.applicants", 'datasets."../x"'),
        GOOD.replace("datasets.applicants", 'datasets."A b"'),
        GOOD.replace('folder = "door"', 'folder = "door"\nport = 70000'),
        GOOD.replace('folder = "door"', 'folder = "door"\naddress = "0.0.0.0"'),
        GOOD.replace('folder = "door"', 'folder = "door"\naddress = "example.org"'),
        GOOD + "[limits]\nrun_minutes = 0\n",
        GOOD + "[limits]\nunknown = 1\n",
        GOOD.partition("[datasets")[0] + "[datasets]\n",
        GOOD.replace("applicants.toml", "nowhere.toml"),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_written(text: str, tmp_path: Path) -> None:
    place_in(tmp_path)
    (tmp_path / "holder.toml").write_text(text)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FairveilError):
        Holder.load(tmp_path / "holder.toml")
    assert sorted(tmp_path.rglob("*")) == before


def test_https_or_a_named_proxy_may_leave_this_machine(tmp_path: Path) -> None:
    place_in(tmp_path)
    (tmp_path / "holder.toml").write_text(
        GOOD.replace('folder = "door"', 'folder = "door"\naddress = "0.0.0.0"\nbehind_proxy = true')
    )
    assert Holder.load(tmp_path / "holder.toml").behind_proxy


def test_a_table_that_does_not_fit_its_schema_is_refused_before_it_is_served(
    tmp_path: Path,
) -> None:
    place = place_in(tmp_path)
    with (tmp_path / "applicants.csv").open("a") as table:
        table.write("0.1,0.1,nowhere,f,yes\n")
    with pytest.raises(InputError):
        place.door()
    holder = Holder.load(place.config)
    with pytest.raises(InputError):
        Server(holder)  # the records were let go of


# -- rows ------------------------------------------------------------------------------------------


def changed(place: Place, change: Callable[[list[list[str]]], list[list[str]]]) -> None:
    """Lines of the table, cell by cell, become others."""
    table = place.folder / "applicants.csv"
    head, *lines = table.read_text().splitlines()
    told = [",".join(cells) for cells in change([line.split(",") for line in lines])]
    table.write_text("\n".join([head, *told]) + "\n")


def copied(lines: list[list[str]]) -> list[list[str]]:
    return [[a, b, "x" if sex == "f" else "y", sex, *r] for a, b, _, sex, *r in lines]


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
def test_what_tells_a_protected_column_is_not_public(protects: str, tmp_path: Path) -> None:
    """Features are answered exactly where they are public; groups are none then."""
    place = place_in(tmp_path, protects=protects)
    place.door().close()
    plain = place.config.read_text()
    place.config.write_text(f"{plain}sensitive_as_feature = true\n")
    if protects == "records":
        place.door().close()
    else:
        with pytest.raises(InputError, match="groups that are no features"):
            place.door()
    place.config.write_text(plain)
    changed(place, copied)
    if protects == "records":
        place.door().close()
    else:
        with pytest.raises(PrivacyError, match=r"a copy of sensitive column 'sex'.*'town'"):
            place.door()


def test_a_table_that_goes_wrong_under_a_server_changes_nothing(tmp_path: Path) -> None:
    """Rows are read once: no number or place of rows, no path and no cell reaches an analyst."""
    place = place_in(tmp_path)
    with served(place) as up:
        (place.folder / "applicants.csv").unlink()
        one = Analyst(*up)
        for view in (WHOLE, {**WHOLE, "steps": STEPS}, part(one.divide(), 0)):
            one.ask(one.open(view=view))


def test_groups_and_features_are_the_holders_to_say(tmp_path: Path) -> None:
    place = place_in(tmp_path, schema=WIDE)
    place.config.write_text(f"{place.config.read_text()}sensitive_as_feature = true\n")
    with remote_data(place) as (rows, _, _):
        layout = Encoding(WIDE, True).layout
        with pytest.raises(InputError, match="which columns are features"):
            rows.rows(layout, WIDE, False)
        with pytest.raises(InputError, match=r"the holder's \['sex'\]"):
            rows.rows(layout, WIDE.with_roles(sensitive=("town",)), True)
        how: dict[str, Any] = {"solver": fv.PrimalDual(rounds=2), "random_state": 1}
        here = data.open(place.folder / "applicants.csv", WIDE, sensitive_as_feature=True)
        fits = [ways.objective_regression(**how, sensitive_as_feature=True) for _ in range(2)]
        assert fits[0].fit(here).coef_.tobytes() == fits[1].fit(rows).coef_.tobytes()


# -- what is free depends on nothing protected -----------------------------------------------------

RELATIONS = [("records", "add-remove"), ("records", "replace-one"), ("sensitive_features", None)]


def steps_of(schema: Schema) -> str:
    made = fv.Additive(interactions=[("a", "town")]).shapes(SchemaCoding(Encoding(schema)), 1500)
    return json.dumps(CODINGS.write(made))


STEPS = steps_of(SCHEMA)
VIEWS: dict[str, list[Any]] = {
    "steps": [STEPS],
    "target_as_number": [False, True],
    "one_group": [True],
    "division": [None],
    "part": [0, 1],
}


def told(one: Analyst, view: dict[str, Any], promise: Promise) -> list[Any]:
    """All that a run of this view answers without noise, or the error of opening it."""
    try:
        run = one.open(Gaussian(200.0), promise, view=view)
    except Refused as refused:
        return [refused.word]
    found: list[Any] = []
    for question in (RowCount(), FeatureSums(None), GramMatrices(None)):
        try:
            (answer,) = one.ask(run, Measurement(question, 0.0))
            found.append(np.asarray(answer).tolist())
        except Refused as refused:
            found.append(refused.word)
    one.act(run, "close", {})
    return found


@pytest.mark.parametrize("schema", [SCHEMA, WIDE, PERSONS], ids=["classes", "number", "persons"])
@pytest.mark.parametrize("relation", RELATIONS, ids=["add-remove", "replace-one", "groups"])
def test_what_is_free_depends_on_nothing_protected(
    schema: Schema, relation: Any, tmp_path: Path
) -> None:
    """Every way in which an analyst may have the rows coded, against every guarantee that a ledger
    may give: two holders, who differ in the sex of one row, answer the same."""
    assert set(VIEWS) == {field.name for field in dataclasses.fields(View)}
    unit = None if schema.unit is None else Unit("person", 20)
    promise = Promise(1.0, 1e-6, *relation, unit=unit)
    terms = {"protects": relation[0], "neighbours": relation[1], "unit": schema.unit}
    places = [
        place_in(tmp_path / name, epsilon=50.0, schema=schema, **terms) for name in ("a", "b")
    ]

    def other(lines: list[list[str]]) -> list[list[str]]:
        lines[0][3] = {"f": "m", "m": "f"}[lines[0][3]]
        return lines

    changed(places[1], other)
    answered = 0
    with served(places[0]) as up, served(places[1]) as second:
        both = Analyst(*up), Analyst(*second)
        for name, value in [(name, value) for name, told in VIEWS.items() for value in told]:
            views = [{**WHOLE, name: value} for _ in both]
            if name == "part":
                for view, one in zip(views, both, strict=True):
                    view["division"] = one.divide("11" * 32, 0.5)
            found, same = (told(*pair, promise) for pair in zip(both, views, strict=True))
            assert found == same, name
            answered += any(isinstance(answer, list) for answer in found)
    assert answered or not promise.rows_are_public


# -- runs and divisions are of the rows that they began with ---------------------------------------


def reordered(lines: list[list[str]]) -> list[list[str]]:
    return lines[::-1]


def others(lines: list[list[str]]) -> list[list[str]]:
    return lines[:200]


def part(division: str, number: Any) -> dict[str, Any]:
    return {**WHOLE, "division": division, "part": number}


@pytest.mark.parametrize("change", [reordered, others])
def test_runs_and_divisions_are_of_the_rows_that_they_began_with(
    change: Any, tmp_path: Path
) -> None:
    """Coins are thrown by place: of another table those set aside would be rows of the fit."""
    place = place_in(tmp_path)
    kept = (place.folder / "applicants.csv").read_text()
    with served(place) as up:
        one = Analyst(*up)
        division = one.divide()
        runs = [one.open(), one.open(view=part(division, 0))]
        for run in runs:
            one.ask(run)
    changed(place, change)
    with served(place) as up:
        one.server, one.url = up
        for call in (
            lambda: one.resume(runs[0]),
            lambda: one.resume(runs[1]),
            lambda: one.open(view=part(division, 1)),
        ):
            with pytest.raises(Refused, match="not those") as refused:
                call()
            assert refused.value.word == "rows-changed"
        assert one.divide() != division
        assert one.open()
    (place.folder / "applicants.csv").write_text(kept)  # the holder mends it
    with served(place) as up:
        one.server, one.url = up
        for run in runs:
            one.resume(run)
            one.ask(run)
            one.act(run, "close", {})
        assert one.open(view=part(division, 1))


@pytest.mark.parametrize("seed", [None, "07" * 32])
def test_a_division_is_its_tokens_and_its_coins_are_told_as_they_are(
    seed: str | None, tmp_path: Path
) -> None:
    with served(place_in(tmp_path)) as up:
        one, two = Analyst(*up), Analyst(*up)
        division = one.divide(seed)
        both = [up[0].datasets["applicants"]._places(division, number) for number in (0, 1)]
        assert np.array_equal(np.sort(np.concatenate(both)), np.arange(1500))
        assert abs(len(both[1]) - 450) < 120  # 6 deviations of 18: a false alarm in 1e9
        run = one.open(view=part(division, 1))
        facts = {fact.name: fact.value for fact in one.statement(run).facts}
        coin = "secret" if seed is None else "seeded"
        words = f"each row with probability 0.3, by a {coin} coin of its own"
        assert facts["rows read"] == words
        for analyst, forged in (
            (two, part(division, 0)),
            (one, part("0" * 32, 0)),
            (one, part(division.replace("0.3", "0.9", 1), 0)),
            (one, part(division.replace("certificate", "search"), 0)),
            (one, part(division, 2)),
            (one, part("../../' OR 1=1 --", 1)),
        ):
            with pytest.raises(Refused) as refused:
                analyst.open(view=forged)
            assert refused.value.status == 404
        for number in (-1, 0.5, "0", None):
            with pytest.raises(Refused) as refused:
                one.open(view=part(division, number))
            assert refused.value.status == 422
        for share in (0.0, 1.0, "0.5"):
            with pytest.raises(Refused) as refused:
                one.divide(share=share)
            assert refused.value.status == 422


def test_no_seed_reaches_secret_coins_and_no_person_is_parted(tmp_path: Path) -> None:
    with (
        served(place_in(tmp_path / "one", seeded=False)) as up,
        pytest.raises(Refused, match="secret"),
    ):
        Analyst(*up).divide(seed="00" * 32)
    place = place_in(tmp_path / "two", schema=PERSONS, unit="person")
    with served(place) as up:
        one = Analyst(*up)
        view = part(one.divide(), 0)
        with pytest.raises(Refused, match="persons"):
            one.open(promise=up[0].datasets["applicants"].promise, view=view)


def test_digests_tell_nothing_without_the_servers_secret(tmp_path: Path) -> None:
    """The same rows of two servers have other digests; of one that is opened again the same."""
    place, digests = place_in(tmp_path), []
    for folder in ("door", "other", "door"):
        text = place.config.read_text()
        config = place.folder / "here.toml"
        config.write_text(text.replace('"door"', f'"{folder}"', 1))
        server = Server(Holder.load(config))
        digests.append(server.datasets["applicants"].digest)
        server.close()
    assert digests[0] == digests[2] != digests[1]
    write_table(place.folder / "applicants.csv", seed=9)
    server = place.door()
    assert server.datasets["applicants"].digest != digests[0]
    server.close()


def test_the_number_of_rows_is_told_where_it_is_public(tmp_path: Path) -> None:
    public: dict[str, Any] = {"neighbours": "replace-one"}
    for terms, told in (({}, None), (public, 1500)):
        with served(place_in(tmp_path / str(told), **terms)) as up:
            facts = json.loads(Analyst(*up).sent("GET", "datasets", "applicants"))
            assert facts["exact_rows"] == told
            assert str(tmp_path) not in json.dumps(facts)


def test_a_ledger_of_rows_does_not_serve_persons(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a ledger of persons"):
        place_in(tmp_path, schema=PERSONS).door()


@pytest.mark.parametrize("unmatched", ["group", "drop"])
def test_a_statement_says_how_served_rows_were_joined(unmatched: str, tmp_path: Path) -> None:
    """The store that is served keeps it; where the data left somebody out, production refuses."""
    bare = SCHEMA.without("sex")
    held = dataclasses.replace(
        SCHEMA, columns={**bare.columns, "sex": data.Category(("f", "m"), missing="m")}
    )
    for production in (False, True):
        place = place_in(
            tmp_path / f"{production}",
            schema=held,
            seeded=False,
            protects="sensitive_features",
            production=production,
        )
        head, *lines = (place.folder / "applicants.csv").read_text().splitlines()
        at = head.split(",").index("sex")
        numbered = [f"id,{head}", *(f"{n},{line}" for n, line in enumerate(lines))]
        (place.folder / "company.csv").write_text("\n".join(numbered))
        groups = [f"{n},{line.split(',')[at]}" for n, line in enumerate(lines[:900])]
        (place.folder / "register.csv").write_text("\n".join(["id,sex", *groups]))
        tables = place.folder / "company.csv", place.folder / "register.csv"
        joined = data.load_joined(*tables, held, id="id", unmatched=unmatched)
        data.write_store(joined, place.folder / "joined.store")
        place.config.write_text(place.config.read_text().replace("applicants.csv", "joined.store"))
        promise = Promise(1.0, 1e-6, protects="sensitive_features")
        with served(place) as (door, url):
            one = Analyst(door, url)
            if production and unmatched == "drop":
                with pytest.raises(Refused, match="unmatched ids"):
                    one.open(promise=promise)
                continue
            run = one.open(promise=promise)
            told = [fact for fact in one.statement(run).facts if fact.name == "unmatched ids"]
            assert told == [fact for fact in joined.facts if fact.name == "unmatched ids"]
