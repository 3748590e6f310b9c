"""The holder's side: holder.toml, read strictly before anything is opened; rows that are read once,
bound to runs and divisions, and told to nobody; an attribute that lies in another table."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
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
from fairveil.data import Encoding, write_store
from fairveil.errors import FairveilError, InputError, PrivacyError
from fairveil.facts import Category, Schema
from fairveil.ledger import Ledger
from fairveil.serving import RemoteData
from fairveil.serving.holder import Holder
from fairveil.serving.runs import Server
from fairveil.serving.wire import View
from fairveil.statement import signing
from knobs import made

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
        GOOD.replace('folder = "door"', 'folder = "door"\ncertificate = "c.pem"'),
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

AS_FEATURE = {**WHOLE, "sensitive_as_feature": True}
OTHER_GROUPS = {**WHOLE, "sensitive": ["town"]}


def changed(place: Place, change: Callable[[list[list[str]]], list[list[str]]]) -> None:
    """Lines of the table, cell by cell, become others."""
    table = place.folder / "applicants.csv"
    head, *lines = table.read_text().splitlines()
    told = [",".join(cells) for cells in change([line.split(",") for line in lines])]
    table.write_text("\n".join([head, *told]) + "\n")


def copied(lines: list[list[str]]) -> list[list[str]]:
    return [[a, b, "x" if sex == "f" else "y", sex, *r] for a, b, _, sex, *r in lines]


def weighed(lines: list[list[str]]) -> list[list[str]]:
    return [[*one[:6], "0.5" if one[3] == "f" else "1", one[7]] for one in lines]


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
@pytest.mark.parametrize(
    ("change", "schema", "weights", "words"),
    [
        (copied, SCHEMA, None, "a copy of sensitive column 'sex'.*'town'"),
        (weighed, WIDE, "weight", "weights that do not depend on"),
    ],
)
def test_what_tells_a_protected_column_is_not_public(
    protects: str, change: Any, schema: Schema, weights: Any, words: str, tmp_path: Path
) -> None:
    """Features, and weights, are answered exactly where they are public."""
    place = place_in(tmp_path, protects=protects, schema=schema, weights=weights)
    place.door().close()
    changed(place, change)
    if protects == "records":
        place.door().close()
    else:
        with pytest.raises(PrivacyError, match=words):
            place.door()


def test_a_table_that_goes_wrong_under_a_server_changes_nothing(tmp_path: Path) -> None:
    """Rows are read once: no number or place of rows, no path and no cell reaches an analyst."""
    place = place_in(tmp_path)
    with served(place) as up:
        (place.folder / "applicants.csv").unlink()
        for view in (WHOLE, AS_FEATURE, OTHER_GROUPS):
            run = Analyst(*up).open(view=view)
            assert run


def test_a_view_is_the_table_read_so(tmp_path: Path) -> None:
    """Its columns have the codes that the schema of the view gives them, to the bit."""
    place = place_in(tmp_path)
    server = place.door()
    dataset = server.datasets["applicants"]
    for names, as_feature in itertools.product((None, ("town",), ("sex", "town")), (False, True)):
        view = View(names, as_feature)
        schema = dataset.schema_of(view)
        wanted = data.open(place.folder / "applicants.csv", schema, sensitive_as_feature=as_feature)
        found = dataset._derived(view)
        assert found.layout == wanted.layout == dataset.layout_of(view)
        for one, other in zip(found.blocks(), wanted.blocks(), strict=True):
            for name in ("numbers", "codes", "sensitive", "labels"):
                assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert dataset.layout_of(View()) == Encoding(SCHEMA).layout
    server.close()


def test_a_view_that_a_store_or_a_join_cannot_have_is_refused_by_public_words(
    tmp_path: Path,
) -> None:
    kept = place_in(tmp_path / "store")
    write_store(data.open(kept.folder / "applicants.csv", SCHEMA), kept.folder / "rows.store")
    kept.config.write_text(kept.config.read_text().replace("applicants.csv", "rows.store"))
    for place in (kept, prepared(tmp_path / "joined")):
        with served(place) as up:
            promise = up[0].datasets["applicants"].promise
            for view in (AS_FEATURE, OTHER_GROUPS):
                with pytest.raises(Refused, match="sensitive"):
                    Analyst(*up).open(promise=promise, view=view)


def reordered(lines: list[list[str]]) -> list[list[str]]:
    return lines[::-1]


def others(lines: list[list[str]]) -> list[list[str]]:
    return lines[:200]


def part(division: str, number: Any) -> dict[str, Any]:
    return {**WHOLE, "part": {"division": division, "number": number}}


@pytest.mark.parametrize("change", [reordered, others])
def test_runs_and_divisions_are_of_the_rows_that_they_began_with(
    change: Any, tmp_path: Path
) -> None:
    """Coins are thrown by place: of another table those set aside would be rows of the fit."""
    place = place_in(tmp_path)
    kept = (place.folder / "applicants.csv").read_text()
    with served(place) as up:
        one = Analyst(*up)
        division = one.divide("a-division")
        runs = [one.open(), one.open(view=part(division, 0))]
        for run in runs:
            one.ask(run)
    changed(place, change)
    with served(place) as up:
        one = Analyst(*up, token=one.token)
        for call in (
            lambda: one.ask(runs[0]),
            lambda: one.ask(runs[1]),
            lambda: one.open(view=part(division, 1)),
            lambda: one.divide("a-division"),
        ):
            with pytest.raises(Refused, match="not those") as refused:
                call()
            assert refused.value.word == "rows-changed"
        assert one.divide("another-division") != division
        assert one.open()
    (place.folder / "applicants.csv").write_text(kept)  # the holder mends it
    with served(place) as up:
        one = Analyst(*up, token=one.token)
        for run in runs:
            one.ask(run)
            one.act(run, "close", {})
        assert one.open(view=part(division, 1))


@pytest.mark.parametrize("seed", [None, "07" * 32])
def test_a_division_is_its_tokens_and_its_coins_are_told_as_they_are(
    seed: str | None, tmp_path: Path
) -> None:
    with served(place_in(tmp_path)) as up:
        one, two = Analyst(*up), Analyst(*up)
        division = one.divide("a-division", seed)
        assert one.divide("a-division", seed) == division
        with pytest.raises(Refused, match="another request"):
            one.divide("a-division", seed, 0.25)
        both = [up[0].datasets["applicants"].part((division, number)) for number in (0, 1)]
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
            (one, part("../../' OR 1=1 --", 1)),
        ):
            with pytest.raises(Refused) as refused:
                analyst.open(view=forged)
            assert refused.value.status == 404
        for number in (2, -1, 0.5, "0", None):
            with pytest.raises(Refused) as refused:
                one.open(view=part(division, number))
            assert refused.value.status == 422
        for share in (0.0, 1.0, "0.5"):
            with pytest.raises(Refused) as refused:
                one.divide(share=share)
            assert refused.value.status == 422
        up[0].records.forget(1e12)  # a run is open
        assert one.open(view=part(division, 0))
        for record in up[0].records.runs("open"):
            up[0].end(record.id, "closed by a test")
        up[0].records.forget(1e12)
        with pytest.raises(Refused) as refused:
            one.open(view=part(division, 0))
        assert refused.value.status == 404


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


# -- an attribute elsewhere ------------------------------------------------------------------------

JOINED = Schema(
    {**SCHEMA.columns, "sex": Category(("f", "m", "unknown"), missing="unknown")},
    target="hired",
    sensitive="sex",
    rows=1500,
)
CONFIG = """[door]
name = "Office"
folder = "door"
signing_key = "holder.key"
port = 0
[datasets.applicants]
rows = "company.csv"
attribute = "register.csv"
id = "person"
schema = "applicants.toml"
ledger = "budget.db"
seeded = true
features_served = true
"""


def prepared(folder: Path, *, protects: str = "sensitive_features", config: str = CONFIG) -> Place:
    """The company's table, the holder's register of four in five of them and of others, and the
    table that both make."""
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder / "all.csv")
    table, rng = pd.read_csv(folder / "all.csv"), np.random.default_rng(0)
    table["person"] = rng.permutation(10**6)[: len(table)]
    table.drop(columns="sex").to_csv(folder / "company.csv", index=False)
    held = table[["person", "sex"]].sample(frac=0.8, random_state=0)
    others = pd.DataFrame({"person": range(10**6, 10**6 + 50), "sex": "f"})
    pd.concat([others, held]).to_csv(folder / "register.csv", index=False)
    table.loc[~table["person"].isin(held["person"]), "sex"] = "unknown"
    table.drop(columns="person").to_csv(folder / "whole.csv", index=False)
    (folder / "applicants.toml").write_text(JOINED.to_toml())
    Ledger.create(str(folder / "budget.db"), "applicants", 40.0, 1e-4, protects=protects).close()
    signing.new_key(folder / "holder.key")
    (folder / "holder.toml").write_text(config)
    return Place(folder, fv.data.open(folder / "whole.csv", JOINED))


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return prepared(tmp_path_factory.mktemp("holder"))


@pytest.fixture(scope="module")
def joined(company: Place) -> Iterator[RemoteData]:
    with remote_data(company) as (found, _, _):
        yield found


HOW: dict[str, Any] = {"protects": "sensitive_features", "epsilon": 1.0, "random_state": 3}


def fit(rows: Any) -> Any:
    return made(ways.fermi, solver=fv.PrimalDual(rounds=10), **HOW).fit(rows)


def test_guarantee_1_a_fit_is_that_on_the_joined_table_to_the_bit(
    company: Place, joined: RemoteData
) -> None:
    here, there = fit(company.rows), fit(joined)
    assert here.groups_ == there.groups_ == ("f", "m", "unknown")
    assert here.predict_proba(company.rows).tobytes() == there.predict_proba(company.rows).tobytes()
    for field in ("promise", "epsilon", "events", "plan", "bounds", "releases"):
        assert getattr(here.privacy_, field) == getattr(there.privacy_, field), field
    facts = {fact.name: fact.value for fact in there.privacy_.facts}
    assert "by id" in facts["joined sex"]
    assert "unknown" in facts["unmatched ids"]


@pytest.mark.parametrize("how", [HOW, {}], ids=["sensitive features", "records"])
def test_guarantee_2_the_attribute_is_no_feature(how: dict[str, Any], joined: RemoteData) -> None:
    with pytest.raises((InputError, PrivacyError), match="sensitive_as_feature"):
        made(
            fv.FairClassifier,
            solver=fv.PrimalDual(rounds=5),
            sensitive_as_feature=True,
            **how,
        ).fit(joined)


def test_guarantee_2_a_ledger_of_records_is_refused(tmp_path: Path) -> None:
    place = prepared(tmp_path, protects="records")
    with pytest.raises(InputError, match="sensitive features alone"), served(place):
        pass


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('id = "person"\n', ""),
        ('attribute = "register.csv"\n', ""),
        ('id = "person"', 'id = "a"'),
        ('id = "person"', 'id = "person"\nunmatched = "keep"'),
        ('id = "person"', "id = 3"),
    ],
)
def test_a_join_that_is_not_whole_is_refused_before_anything_is_opened(
    old: str, new: str, tmp_path: Path
) -> None:
    (tmp_path / "applicants.toml").write_text(JOINED.to_toml())
    (tmp_path / "holder.toml").write_text(CONFIG.replace(old, new))
    with pytest.raises(FairveilError):
        Holder.load(tmp_path / "holder.toml")
    (tmp_path / "applicants.toml").write_text(SCHEMA.to_toml())
    (tmp_path / "holder.toml").write_text(CONFIG)
    with pytest.raises(FairveilError, match="a value for unmatched ids"):
        Holder.load(tmp_path / "holder.toml")
