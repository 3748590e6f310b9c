"""What X, y and the groups may be: every container gives the same model, and errors name what is
wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from estimator_samples import Columns, short
from scipy import sparse

import fairveil as fv
from fairveil.data import encode
from fairveil.errors import InputError, KindError, OtherGroups, PrivacyError, SchemaError

NUMBERS = ("age", "hours")
FEATURES = ("age", "hours", "job", "union")
PARITY = fv.DemographicParity(0.3)


def chosen(people: Columns, names: tuple[str, ...]) -> Columns:
    return {name: people[name] for name in names}


def as_objects(table: Columns) -> Any:
    out = np.empty((len(table["age"]), len(table)), dtype=object)
    for j, column in enumerate(table.values()):
        out[:, j] = column.tolist()
    return out


FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame,
    "pandas, other index": lambda table: pd.DataFrame(
        table, index=np.arange(len(table["age"]))[::-1]
    ),
    "pandas, categorical": lambda table: pd.DataFrame(table).astype({"job": "category"}),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "mapping": dict,
    "objects": as_objects,
    "lists": lambda table: as_objects(table).tolist(),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_table_of_numbers_and_words_gives_the_same_bits(people: Columns, kind: str) -> None:
    y, A = people["hired"], people["sex"]
    first = short(PARITY).fit(pd.DataFrame(chosen(people, FEATURES)), y, sensitive_features=A)
    X = FRAMES[kind](chosen(people, FEATURES))
    clf = short(PARITY).fit(X, y, sensitive_features=A)
    assert clf.model_.weights.tobytes() == first.model_.weights.tobytes()
    assert (
        clf.predict_proba(X) == first.predict_proba(pd.DataFrame(chosen(people, FEATURES)))
    ).all()
    assert clf.n_features_in_ == 4
    assert clf.coef_.shape == (1, 2 + 1 + 3)
    if kind not in ("objects", "lists"):
        assert clf.coef_names_ == ("age", "hours", "union", "job=clerk", "job=none", "job=smith")
        assert clf.feature_names_in_.tolist() == list(FEATURES)


@pytest.mark.parametrize(
    "kind", ["list", "float32", "fortran", "csr", "csc", "pandas", "unnamed pandas"]
)
def test_every_array_of_numbers_gives_the_same_bits(people: Columns, kind: str) -> None:
    X = np.round(np.column_stack([people["age"], people["hours"]]) / 32) / 4  # exact in float32
    y, A = people["hired"], people["sex"]
    first = short(PARITY).fit(X, y, sensitive_features=A)
    make: dict[str, Any] = {
        "list": np.ndarray.tolist,
        "float32": lambda x: x.astype(np.float32),
        "fortran": np.asfortranarray,
        "csr": sparse.csr_array,
        "csc": sparse.csc_matrix,
        "pandas": lambda x: pd.DataFrame(x, columns=["a", "b"]),
        "unnamed pandas": pd.DataFrame,
    }
    clf = short(PARITY).fit(make[kind](X), y, sensitive_features=A)
    assert clf.coef_.tobytes() == first.coef_.tobytes()
    assert (clf.decision_function(make[kind](X)) == first.decision_function(X)).all()


@pytest.mark.parametrize(
    "labels",
    [["yes", "no"], [True, False], [1, 0], [7, -3], [1.0, 0.0], ["b", "a"]],
    ids=lambda pair: str(pair),
)
def test_labels_of_any_kind_come_back_as_they_were(people: Columns, labels: list[Any]) -> None:
    X = np.column_stack([people["age"] / 50, people["hours"] / 30])
    y = np.where(people["hired"] == "yes", *(np.array(labels)[j] for j in (0, 1)))
    first = short().fit(X, people["hired"])
    for given in (
        y,
        y.tolist(),
        pd.Series(y),
        pl.Series(y),
        pa.array(y),
        y.astype(object),
        pd.Series(y).to_frame(),
    ):
        clf = short().fit(X, given)
        assert clf.classes_.tolist() == sorted(labels)
        assert clf.coef_.tobytes() == first.coef_.tobytes()
        assert set(clf.predict(X).tolist()) <= set(labels)
        assert clf.score(X, given) == first.score(X, people["hired"])
        assert clf.predict(X).dtype.kind == np.array(labels).dtype.kind


def test_groups_as_columns_frames_mappings_and_names_are_the_same(people: Columns) -> None:
    table = pd.DataFrame(chosen(people, ("age", "sex", "hours", "region")))
    X, y = table[["age", "hours"]], people["hired"]
    both = table[["sex", "region"]]
    notion = fv.DemographicParity(0.6)
    first = short(notion).fit(X, y, sensitive_features=both)
    assert first.groups_ == tuple((a, b) for a in ("f", "m") for b in ("east", "north", "west"))
    for A in (
        both.to_numpy(),
        {"sex": people["sex"], "region": people["region"]},
        [people["sex"], people["region"]],
        [pl.Series("sex", people["sex"]), pa.array(people["region"])],
        pl.DataFrame(both.to_dict("list")),
        pa.table(both.to_dict("list")),
        pd.DataFrame(both.to_numpy()),  # columns named 0 and 1
    ):
        assert (
            short(notion).fit(X, y, sensitive_features=A).coef_.tobytes() == first.coef_.tobytes()
        )
    by_name = short(notion).fit(table, y, sensitive_features=["sex", "region"])
    assert by_name.coef_.tobytes() == first.coef_.tobytes()
    assert by_name.coef_names_ == ("age", "hours")
    assert by_name.n_features_in_ == 4
    shifted = both.set_index(np.arange(len(both)) + 5)
    assert (
        short(notion).fit(X, y, sensitive_features=shifted).coef_.tobytes() == first.coef_.tobytes()
    )


def test_a_list_of_texts_that_are_no_columns_is_a_column_of_groups(people: Columns) -> None:
    X = pd.DataFrame(chosen(people, NUMBERS))
    listed = short(PARITY).fit(X, people["hired"], sensitive_features=people["sex"].tolist())
    assert listed.groups_ == ("f", "m")


def test_predict_needs_no_sensitive_columns_and_does_not_mind_them(people: Columns) -> None:
    table = pd.DataFrame(chosen(people, ("age", "sex", "hours")))
    clf = short(PARITY).fit(table, people["hired"], sensitive_features="sex")
    expected = clf.predict_proba(table)
    assert (clf.predict_proba(table[["age", "hours"]]) == expected).all()
    assert (clf.predict_proba(pl.DataFrame(chosen(people, ("age", "hours")))) == expected).all()
    with pytest.warns(UserWarning, match="valid feature names"):
        assert (
            clf.predict_proba(as_objects(chosen(people, ("age", "sex", "hours")))) == expected
        ).all()
    assert (clf.predict_proba(table[["age", "hours"]].to_numpy()) == expected).all()
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(table.rename(columns={"age": "years"}))


def test_sensitive_columns_are_features_only_on_request(people: Columns) -> None:
    table = pd.DataFrame(chosen(people, ("age", "sex", "hours")))
    clf = short(PARITY, sensitive_as_feature=True).fit(
        table, people["hired"], sensitive_features="sex"
    )
    assert clf.coef_names_ == ("age", "hours", "sex=f", "sex=m")
    with pytest.raises(PrivacyError, match="sensitive_as_feature"):
        short(PARITY, sensitive_as_feature=True, protects="sensitive_features").fit(
            table, people["hired"], sensitive_features="sex"
        )


def test_many_blocks_are_as_one(
    people: Columns, schema: fv.facts.Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    y, A = people["hired"], people["sex"]
    weights = np.linspace(0.1, 1.0, len(y))
    frame = pd.DataFrame(people)
    numbers = np.column_stack([people["age"], people["hours"]]) / 50
    tables: list[tuple[Any, dict[str, Any]]] = [
        (frame[list(FEATURES)], {}),
        (numbers, {}),
        (sparse.csr_array(numbers), {}),
        (frame[list(FEATURES)], {"schema": schema}),
    ]
    for X, options in tables:
        fits = []
        for rows in (1 << 18, 64):
            for module in ("coding", "reading"):
                monkeypatch.setattr(f"fairveil.estimators.{module}.BLOCK_ROWS", rows)
            clf = short(PARITY, **options).fit(X, y, sensitive_features=A, sample_weight=weights)
            fits.append((clf.coef_.tobytes(), clf.predict_proba(X).tobytes()))
        assert fits[0] == fits[1]


# By a schema


def test_a_schema_codes_tables_alone_and_gives_coefficients_in_the_units_of_the_input(
    people: Columns, schema: fv.facts.Schema
) -> None:
    table = pd.DataFrame(people)
    clf = short(PARITY, schema=schema).fit(table)
    assert clf.classes_.tolist() == ["no", "yes"]
    assert clf.groups_ == ("f", "m")
    names = (
        "age",
        "hours",
        "job=none",
        "job=clerk",
        "job=smith",
        "job=other",
        "union=False",
        "union=True",
    )
    assert clf.coef_names_ == names
    one_hot = np.column_stack(
        [
            *(people["age"], people["hours"]),
            *(people["job"] == word for word in ("none", "clerk", "smith", "other")),
            *(~people["union"], people["union"]),
        ]
    )
    assert np.allclose(
        one_hot @ clf.coef_[0] + clf.intercept_[0], clf.decision_function(table), atol=1e-12
    )
    unseen = table.assign(job="priest", age=1000)
    assert np.isfinite(clf.decision_function(unseen)).all()


def test_by_a_schema_rows_coded_by_hand_and_in_advance_give_the_same_bits(
    people: Columns, schema: fv.facts.Schema
) -> None:
    table = pd.DataFrame(people)
    first = short(PARITY, schema=schema).fit(table)
    coded = short(PARITY).fit(encode(people, schema))
    assert coded.model_.weights.tobytes() == first.model_.weights.tobytes()
    assert coded.score(encode(people, schema)) == first.score(table, people["hired"])
    beside = short(PARITY, schema=schema).fit(
        table[list(FEATURES)], people["hired"], sensitive_features=people["sex"]
    )
    assert beside.model_.weights.tobytes() == first.model_.weights.tobytes()
    by_array = short(PARITY, schema=schema).fit(
        table[list(FEATURES)].to_numpy(), people["hired"], sensitive_features={"sex": people["sex"]}
    )
    assert by_array.model_.weights.tobytes() == first.model_.weights.tobytes()
    assert (
        by_array.predict(table[list(FEATURES)].to_numpy()).tolist() == first.predict(table).tolist()
    )

    numbers = schema.without("job", "union")
    by_schema = short(PARITY, schema=numbers, epsilon=np.inf).fit(table)
    scaled = np.column_stack([(people["age"] - 50.0) / 50.0, (people["hours"] - 40.0) / 40.0])
    by_hand = short(PARITY, epsilon=np.inf).fit(
        scaled, people["hired"], sensitive_features=people["sex"]
    )
    assert by_hand.model_.weights.tobytes() == by_schema.model_.weights.tobytes()


def test_a_schema_is_strict(people: Columns, schema: fv.facts.Schema) -> None:
    table = pd.DataFrame(people)
    with pytest.raises(SchemaError, match=r"sex.*'x'"):
        short(PARITY, schema=schema).fit(table.assign(sex="x"))
    with pytest.raises(SchemaError, match="age"):
        short(schema=schema).fit(table.drop(columns="age"))
    with pytest.raises(SchemaError, match="religion"):
        short(PARITY, schema=schema).fit(table, sensitive_features="religion")
    with pytest.raises(InputError, match="target"):
        short(schema=schema.without("hired")).fit(table, people["hired"])
    with pytest.raises(InputError, match="schema"):
        short(schema="schema.toml").fit(table)
    with pytest.raises(InputError, match="sensitive"):
        short(PARITY, schema=schema).fit(table, sensitive_features=table[["sex", "region"]])
    with pytest.raises(InputError, match="groups"):
        short(PARITY, schema=schema).fit(table.drop(columns="sex"))


# Errors


def test_errors_of_tables_name_the_column(people: Columns) -> None:
    table = pd.DataFrame(chosen(people, FEATURES))
    y = people["hired"]
    clf = short().fit(table, y)
    with pytest.raises(InputError, match=r"job.*'priest'"):
        clf.predict(table.assign(job="priest"))
    with pytest.raises(InputError, match="hours"):
        short().fit(table.assign(hours=np.nan), y)
    with pytest.raises(InputError, match="job"):
        short().fit(table.assign(job=table["job"].where(table.index > 0)), y)
    with pytest.raises(KindError, match="age"):
        short().fit(table.assign(age=pd.Timestamp("2020-01-01")), y)
    with pytest.raises(InputError, match="numbers"):
        clf.predict(table.assign(age="old"))
    with pytest.raises(InputError, match="age"):
        clf.predict({"years": people["age"], **chosen(people, FEATURES[1:])})
    with pytest.raises(InputError, match="collect"):
        short().fit(pl.LazyFrame(chosen(people, FEATURES)), y)
    with pytest.raises(InputError, match="4 columns"):
        short().fit(table.to_numpy(), y).coding_.raw_blocks(table.to_numpy()[:, :2]).__next__()


def test_errors_of_labels_and_groups_say_what_is_wrong(people: Columns) -> None:
    X = np.column_stack([people["age"], people["hours"]])
    y, A = people["hired"], people["sex"]
    with pytest.raises(InputError, match=r"y:.*None"):
        short().fit(X)
    with pytest.raises(InputError, match="one class"):
        short().fit(X, np.zeros(len(X)))
    with pytest.raises(InputError, match="continuous"):
        short().fit(X, people["hours"])
    with pytest.raises(InputError, match="one length"):
        short().fit(X, y[:-1])
    with pytest.raises(InputError, match="one length"):
        short(PARITY).fit(X, y, sensitive_features=A[:-1])
    with pytest.raises(InputError, match=r"sensitive_0.*missing"):
        short(PARITY).fit(X, y, sensitive_features=np.where(A == "f", np.nan, 1.0))
    with pytest.raises(InputError, match=r"sex.*missing"):
        short(PARITY).fit(X, y, sensitive_features={"sex": [None, *A[1:]]})
    with pytest.raises(InputError, match="array has no names"):
        short(PARITY).fit(X, y, sensitive_features="sex")
    with pytest.raises(InputError, match="gender"):
        short(PARITY).fit(pd.DataFrame(people), y, sensitive_features="gender")
    with pytest.raises(InputError, match="sensitive columns only"):
        short(PARITY).fit(pd.DataFrame({"sex": A}), y, sensitive_features="sex")
    with pytest.raises(InputError, match="distinct values"):
        short(PARITY).fit(
            np.zeros((70000, 1)), np.arange(70000) % 2, sensitive_features=np.arange(70000)
        )


def test_coded_rows_bring_their_own_labels_and_groups(
    people: Columns, schema: fv.facts.Schema
) -> None:
    rows = encode(people, schema)
    with pytest.raises(InputError, match="from the rows"):
        short().fit(rows, people["hired"])
    with pytest.raises(InputError, match="from the rows"):
        short(PARITY).fit(rows, sensitive_features=people["sex"])
    with pytest.raises(InputError, match="region"):
        short(PARITY).fit(rows, sensitive_features="region")
    assert short(PARITY).fit(rows, sensitive_features="sex").groups_ == ("f", "m")
    with pytest.raises(InputError, match="label"):
        short().fit(encode(people, schema, with_target=False))
    other = encode(people, schema.without("job"))
    with pytest.raises(InputError, match=r"expected rows of the features .*'job'"):
        short().fit(rows).predict(other)


def test_a_mostly_empty_matrix_is_kept_sparse_and_gives_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fairveil.estimators import reading

    rng = np.random.default_rng(0)
    X = np.eye(12)[rng.integers(0, 12, 400)]
    y, A = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    seen = []
    thinned = reading._thinned
    monkeypatch.setattr(reading, "_thinned", lambda block: seen.append(thinned(block)) or seen[-1])
    sparse_inside = short(PARITY).fit(X, y, sensitive_features=A)
    assert sparse.issparse(seen[0].numbers)
    monkeypatch.setattr(reading, "THIN", 0.0)
    dense_inside = short(PARITY).fit(X, y, sensitive_features=A)
    assert not sparse.issparse(seen[1].numbers)
    assert sparse_inside.coef_.tobytes() == dense_inside.coef_.tobytes()


def test_groups_that_a_schema_does_not_declare_are_warned_of(
    people: Columns, schema: fv.facts.Schema
) -> None:
    """By name, and as a column that has the name of another one."""
    table = pd.DataFrame(people)
    with pytest.warns(OtherGroups, match=r"sensitive ones, sex, got job.*sex is no fea") as caught:
        clf = short(PARITY, schema=schema).fit(table, sensitive_features="job")
    assert clf.groups_ == ("none", "clerk", "smith", "other")
    (said,) = (one for one in caught if one.category is OtherGroups)
    assert said.filename == __file__
    of_sex = pd.Series(people["sex"], name="union")  # the schema's union is another column
    with pytest.warns(OtherGroups, match=r"got union.*read as sex"):
        short(PARITY, schema=schema).fit(table, sensitive_features=of_sex)
    after = fv.FairPostProcessor(
        None,
        "demographic_parity:0.05",
        solver=fv.Offsets(),
        schema=schema,
        epsilon=5.0,
        random_state=0,
    )
    with pytest.warns(OtherGroups) as caught:  # and not by its base again
        after.fit(table, sensitive_features="union")
    assert len([one for one in caught if one.category is OtherGroups]) == 1
    for declared in ("sex", ["sex"], table["sex"], people["sex"], pd.Series(people["sex"])):
        short(PARITY, schema=schema).fit(table, sensitive_features=declared)


def test_a_frame_is_scored_by_what_its_numerals_are_worth(people: Columns) -> None:
    """A codebook lists classes and groups as texts, a frame holds numbers: neither a fit nor a score
    depends on that."""
    table = pd.DataFrame(
        {
            "age": people["age"],
            "sex": np.where(people["sex"] == "f", 1, 2),
            "hired": np.where(people["hired"] == "yes", 1.0, 2.0),
        }
    )
    listed: dict[str, Any] = {"age": fv.data.Number(0, 100)}
    listed |= dict.fromkeys(("sex", "hired"), fv.data.Category(("1", "2")))
    schema = fv.Schema(listed, target="hired", sensitive="sex")
    clf = short(PARITY, schema=schema).fit(table)
    as_texts = short(PARITY, schema=schema).fit(table.astype(str))
    assert clf.coef_.tobytes() == as_texts.coef_.tobytes()
    score = clf.score(table, table["hired"].astype(str))
    assert score == np.mean(clf.predict(table).astype(float) == table["hired"]) > 0.3
    for y in (table["hired"], table["hired"].astype(int), [f"{one:.0f}" for one in table["hired"]]):
        assert clf.score(table, y) == score
    assert clf.score(table, ["another"] * len(table)) == 0.0
