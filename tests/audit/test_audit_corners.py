"""Pairs of tables from a schema: neighbours under their relation, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from fairveil.audit.corners import MOST_PAIRS, pairs_of
from fairveil.data import encode
from fairveil.errors import InputError
from fairveil.facts import Boolean, Category, Number, Schema

COLUMNS = {
    "age": Number(17, 90),
    "job": Category(("a", "b", "c")),
    "sex": Category(("f", "m")),
    "hired": Boolean(),
}
SCHEMA = Schema(COLUMNS, target="hired", sensitive=("sex",))
WAGES = Schema(
    {"age": Number(17, 90), "sex": Category(("f", "m")), "wage": Number(0, 9)},
    target="wage",
    sensitive=("sex",),
)
RELATIONS = [
    ("records", "add-remove"),
    ("records", "replace-one"),
    ("sensitive_features", "replace-one"),
]


def row(table, at):
    return tuple(values[at] for values in table.values())


@pytest.mark.parametrize("schema", [SCHEMA, WAGES])
@pytest.mark.parametrize(("protects", "neighbours"), RELATIONS)
def test_guarantee_1_tables_are_neighbours_and_of_the_schema(schema, protects, neighbours) -> None:
    pairs = pairs_of(schema, protects, neighbours, others=7, seed=3)
    wanted = 16 if protects == "sensitive_features" else 8 if neighbours == "add-remove" else 15
    assert len({pair.name for pair in pairs}) == len(pairs) == wanted
    for pair in pairs:
        sizes = [len(pair.here["age"]), len(pair.there["age"])]
        assert sizes == ([7, 8] if neighbours == "add-remove" else [8, 8])
        for table in (pair.here, pair.there):
            encode(table, schema)
            assert all(row(table, at) == row(pair.common, at) for at in range(7))
        if neighbours == "replace-one":
            one, other = row(pair.here, 7), row(pair.there, 7)
            differ = {name for name, a, b in zip(pair.here, one, other, strict=True) if a != b}
            if protects == "sensitive_features":
                assert differ == {"sex"}
            else:
                apart = set(schema.columns)
                if "the same corner" in pair.name:
                    apart = {"sex", schema.target}
                elif "in the same class" in pair.name:
                    apart -= {schema.target}
                assert differ == apart


@pytest.mark.parametrize("schema", [SCHEMA, WAGES])
@pytest.mark.parametrize(("protects", "neighbours"), RELATIONS)
def test_guarantee_1_persons_are_neighbours_with_all_of_their_rows(
    schema, protects, neighbours
) -> None:
    """The attacked person has as many rows as are read of one, all alike; everybody else has one."""
    schema = schema.with_unit("patient", 5)
    for pair in pairs_of(schema, protects, neighbours, others=7, seed=3):
        sides = [pair.there, *([] if neighbours == "add-remove" else [pair.here])]
        for table in sides:
            assert encode(table, schema).layout.numbers
            assert len({row(table, at) for at in range(7, 12)}) == 1
            assert len(set(table["patient"].tolist())) == 8
            assert len(table["patient"]) == 12
        assert all(row(pair.here, at) == row(pair.there, at) for at in range(7))
        if neighbours == "add-remove":
            assert len(pair.here["age"]) == 7
        else:
            assert row(pair.here, 7) != row(pair.there, 7)
            assert pair.here["patient"][7] == pair.there["patient"][7]


def test_most_ordinary_rows_are_in_another_class_than_the_person() -> None:
    """So that a model errs about the person: at least 80 % of 400, who are 90 % and half of the
    rest in the mean."""
    for pair in pairs_of(SCHEMA, "records", "add-remove", others=400):
        person = pair.there[SCHEMA.target][-1]
        assert np.mean([value != person for value in pair.common[SCHEMA.target]]) > 0.8


def test_guarantee_2_a_seed_repeats_and_another_does_not() -> None:
    ages = [
        pairs_of(SCHEMA, "records", "add-remove", seed=seed)[0].common["age"] for seed in (1, 1, 2)
    ]
    assert np.array_equal(ages[0], ages[1])
    assert not np.array_equal(ages[0], ages[2])


def test_many_corners_are_thinned_and_no_groups_are_refused() -> None:
    many = Schema({"c": Category(tuple(range(30))), "y": Boolean()}, target="y", sensitive=("c",))
    assert len(pairs_of(many, "records", "add-remove")) == MOST_PAIRS
    with pytest.raises(InputError, match="sensitive column"):
        pairs_of(
            Schema({"age": Number(0, 1), "y": Boolean()}, target="y"),
            "sensitive_features",
            "replace-one",
        )
