"""The holder's rows: read once, bound to runs and divisions, and told to nobody."""

from __future__ import annotations

import itertools
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
    served,
    write_table,
)
from test_serving_joined import prepared

from fairveil import data
from fairveil.data import Encoding, write_store
from fairveil.errors import InputError, PrivacyError
from fairveil.facts import Schema
from fairveil.serving.datasets import View
from fairveil.serving.holder import Holder
from fairveil.serving.runs import Server

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
        for record in up[0].records.runs(("open",)):
            up[0].runs.end(record.id, "closed by a test")
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
