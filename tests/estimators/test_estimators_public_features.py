"""Where sensitive features alone are protected: no feature is one of them, and what else counts as
public is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from estimator_samples import Columns, short
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import fairveil as fv
import ways
from fairveil.curator import Curator
from fairveil.data import EncodedRows, Encoding, encode
from fairveil.errors import InputError, PrivacyError
from fairveil.facts import Category, Number, RowBlock, RowLayout, Schema

SENSITIVE = "sensitive_features"
NAMES = ["age", "sex", "hours", "job", "hired"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One item for each answer of a curator."""
    calls: list[int] = []
    answer = Curator.answer

    def counted(self: Curator, *args: Any, **options: Any) -> Any:
        calls.append(1)
        return answer(self, *args, **options)

    monkeypatch.setattr(Curator, "answer", counted)
    return calls


def flipped(people: Columns) -> Columns:
    """A neighbour: the first row is in the other group."""
    sex = people["sex"].copy()
    sex[0] = "f" if sex[0] == "m" else "m"
    return {**people, "sex": sex}


GIVEN: dict[str, Any] = {
    "name": lambda table: "sex",
    "series": lambda table: table["sex"],
    "polars series": lambda table: pl.Series("sex", table["sex"].to_numpy()),
    "frame": lambda table: table[["sex"]],
    "arrow": lambda table: pa.table({"sex": table["sex"].to_numpy()}),
    "mapping": lambda table: {"sex": table["sex"].to_numpy()},
    "list of series": lambda table: [table["sex"]],
}


@pytest.mark.parametrize("protects", ["records", SENSITIVE])
@pytest.mark.parametrize("how", GIVEN)
def test_a_column_of_x_is_no_feature_however_it_is_given_as_sensitive(
    people: Columns, how: str, protects: str
) -> None:
    fits = []
    for columns in (people, flipped(people)):
        table = pd.DataFrame(columns)[NAMES]
        X = table.drop(columns="hired")
        clf = short(protects=protects).fit(X, table["hired"], sensitive_features=GIVEN[how](table))
        assert clf.coef_names_ == ("age", "hours", "job=clerk", "job=none", "job=smith")
        assert clf.feature_names_in_.tolist() == ["age", "sex", "hours", "job"]
        assert (clf.predict_proba(X) == clf.predict_proba(X.drop(columns="sex"))).all()
        fits.append(clf)
    if protects == SENSITIVE:  # without a constraint nothing reads groups: not a bit may differ
        assert fits[0].coef_.tobytes() == fits[1].coef_.tobytes()
        assert fits[0].privacy_.epsilon == 0


def test_a_column_given_as_sensitive_stays_a_feature_where_that_is_asked(people: Columns) -> None:
    table = pd.DataFrame(people)[["hours", "sex"]]
    clf = short(sensitive_as_feature=True).fit(
        table, people["hired"], sensitive_features=table["sex"]
    )
    assert clf.coef_names_ == ("hours", "sex=f", "sex=m")


def with_column(people: Columns, values: Any, kind: str) -> Any:
    """Two numbers, and a third that is a copy: in an array, a sparse array or a table."""
    X = np.column_stack([people["age"] / 50, people["hours"] / 30, values])
    return {"array": X, "float32": X.astype(np.float32), "sparse": sparse.csr_array(X)}[kind]


@pytest.mark.parametrize("rows", [1 << 18, 64])
@pytest.mark.parametrize("kind", ["array", "float32", "sparse"])
def test_a_copy_of_the_sensitive_column_is_refused_before_anything_is_asked(
    people: Columns, kind: str, rows: int, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairveil.estimators.coding.BLOCK_ROWS", rows)
    y, sex, region = people["hired"], people["sex"], people["region"]
    _, regions = np.unique(region, return_inverse=True)
    copies: list[tuple[Any, Any]] = [
        (sex == "m", sex),
        (np.where(sex == "m", -3.0, 0.25), sex),
        (regions, region),
        (regions == 1, region),  # one of three indicators
        (regions[::1] != 0, {"sex": sex, "region": region}),
    ]
    for values, groups in copies:
        with pytest.raises(PrivacyError, match=r"'x2'.*follows from the group"):
            short(protects=SENSITIVE).fit(
                with_column(people, values, kind), y, sensitive_features=groups
            )
    assert not asked
    near = sex == "m"
    near[-1] = ~near[-1]
    short(protects=SENSITIVE).fit(with_column(people, near, kind), y, sensitive_features=sex)
    short(protects=SENSITIVE).fit(
        with_column(people, np.ones(len(y)), kind), y, sensitive_features=sex
    )
    # records: covered by the noise
    short().fit(with_column(people, sex == "m", kind), y, sensitive_features=sex)
    assert asked


def test_a_copy_is_found_beyond_the_first_rows_and_among_words(people: Columns) -> None:
    rows = 3000
    groups = np.repeat([0, 1], [1500, 1500])  # the first rows alone show one group
    X = np.column_stack([np.linspace(-1, 1, rows), groups])
    y = np.arange(rows) % 2
    with pytest.raises(PrivacyError, match="'x1'"):
        short(protects=SENSITIVE).fit(X, y, sensitive_features=groups)
    table = pd.DataFrame(
        {
            "hours": people["hours"],
            "pronoun": np.where(people["sex"] == "f", "she", "he"),
            "age": people["age"],
        }
    )
    with pytest.raises(PrivacyError, match=r"'pronoun'.*group"):
        short(protects=SENSITIVE).fit(table, people["hired"], sensitive_features=people["sex"])


def test_columns_that_identify_rows_and_rare_flags_are_no_copies(people: Columns) -> None:
    rows = len(people["hours"])
    X = np.column_stack([people["hours"] / 30, np.arange(rows) == 7])
    # more are refused
    short(protects=SENSITIVE).fit(X[:16], people["hired"][:16], sensitive_features=np.arange(16))
    groups = np.where(np.arange(rows) == 7, "rare", people["region"])
    short(protects=SENSITIVE).fit(X, people["hired"], sensitive_features=groups)


def test_with_a_schema_a_declared_feature_may_be_no_copy_either(
    people: Columns, schema: Schema
) -> None:
    copied = {**people, "union": people["sex"] == "f"}
    with pytest.raises(PrivacyError, match="'union'"):
        short(protects=SENSITIVE, schema=schema).fit(pd.DataFrame(copied))
    assert short(protects=SENSITIVE, schema=schema).fit(pd.DataFrame(people)).privacy_.epsilon == 0


class Bare:
    """Coded rows of somebody else's, without an encoding."""

    def __init__(self, copy: bool) -> None:
        self.layout = RowLayout(
            1, (2,), classes=(0, 1), sensitive=((0, 1),), sensitive_names=("sex",)
        )
        rng = np.random.default_rng(0)
        groups = rng.integers(2, size=200).astype(np.uint16)
        codes = (groups if copy else rng.integers(2, size=200)).astype(np.uint8)
        self._block = RowBlock(
            rng.normal(size=(1, 200)),
            codes[np.newaxis],
            np.arange(200, dtype=np.int32) % 2,
            groups[np.newaxis],
        )

    def blocks(self) -> Any:
        return iter([self._block])


def test_coded_rows_with_sensitive_features_are_refused(
    people: Columns, schema: Schema, asked: list[int]
) -> None:
    coded = encode(people, schema, sensitive_as_feature=True)
    with pytest.raises(PrivacyError, match=r"\['sex'\].*sensitive_as_feature"):
        short(protects=SENSITIVE).fit(coded)
    # the one that is left out of the groups was declared sensitive too
    both = schema.with_roles(sensitive=["sex", "job"])
    with pytest.raises(PrivacyError, match="'job'"):
        short(protects=SENSITIVE).fit(
            encode(people, both, sensitive_as_feature=True), sensitive_features="sex"
        )
    with pytest.raises(PrivacyError, match="'code0'"):
        short(protects=SENSITIVE).fit(Bare(copy=True))
    assert not asked
    short().fit(coded)
    short(protects=SENSITIVE).fit(encode(people, schema))
    short(protects=SENSITIVE).fit(Bare(copy=False))


@pytest.mark.parametrize("kind", ["by a schema", "as it comes", "after a base", "unlabelled"])
def test_weights_that_follow_from_the_group_are_refused(
    people: Columns, asked: list[int], kind: str
) -> None:
    """Weights are public there: those that balance groups would tell each person's."""
    X, y, sex = np.c_[people["age"], people["hours"]], people["hired"], people["sex"]
    balanced = np.where(sex == "m", 0.5, 1.0)
    fitted = LogisticRegression().fit(X, y)
    options: dict[str, Any] = {"protects": SENSITIVE, "epsilon": 1.0, "random_state": 0}
    columns = {"age": Number(0, 100), "hours": Number(0, 60), "sex": Category(("f", "m"))}
    labels = Category(tuple(np.unique(y).tolist()))
    schema = Schema({**columns, "hired": labels}, target="hired", sensitive="sex")
    made: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "by a schema": (short(protects=SENSITIVE), (encode(people, schema),)),
        "as it comes": (short(protects=SENSITIVE), (X, y)),
        "after a base": (ways.post_processor(fitted, "equalized_odds:0.1", **options), (X, y)),
        "unlabelled": (
            ways.post_processor(fitted, "demographic_parity:0.1", solver=fv.Offsets(), **options),
            (X,),
        ),
    }
    estimator, rows = made[kind]
    groups = {} if kind == "by a schema" else {"sensitive_features": sex}
    with pytest.raises(PrivacyError, match="weights that do not depend on sensitive column"):
        estimator.fit(*rows, sample_weight=balanced, **groups)
    assert not asked
    estimator.fit(*rows, sample_weight=np.where(y == y[0], 0.5, 1.0), **groups)


def test_weights_are_said_to_be_public(people: Columns) -> None:
    X = people["hours"][:, np.newaxis] / 30
    weights = np.linspace(0.1, 1.0, len(X))

    def said(weights: Any, **options: Any) -> list[tuple[str, str]]:
        clf = short(**options).fit(
            X, people["hired"], sensitive_features=people["sex"], sample_weight=weights
        )
        assert not clf.privacy_.check()
        return [
            (fact.value, fact.origin)
            for fact in clf.privacy_.facts
            if fact.name == "sample weights"
        ]

    assert said(weights, protects=SENSITIVE) == [
        ("public: must not depend on the sensitive columns", "argument")
    ]
    assert said(None, protects=SENSITIVE) == said(weights) == []
    clf = short(protects=SENSITIVE).fit(
        X, people["hired"], sensitive_features=people["sex"], sample_weight=weights
    )
    assert (
        "features, labels, sample weights and the number of rows are treated as public"
        in clf.privacy_.summary()
    )


def test_scaling_by_public_features_is_not_unsafe(people: Columns) -> None:
    X = np.column_stack([people["age"], people["hours"]])

    def scaled(**options: Any) -> Any:
        clf = short(unsafe_data_dependent_bounds=True, **options)
        return clf.fit(X, people["hired"], sensitive_features=people["sex"]).privacy_

    public, private = scaled(protects=SENSITIVE), scaled()
    assert "data-dependent-bounds" in private.stamps
    assert "unsafe" in private.not_covered[0]
    assert "data-dependent-bounds" not in public.stamps
    assert public.not_covered == ()
    assert [fact.origin for fact in public.facts if fact.name == "scale of the numbers"] == [
        "public features"
    ]
    assert not public.check()


@pytest.mark.parametrize("bad", [1.5, -3e38])
def test_coded_rows_beyond_their_bounds_are_refused_before_anything_is_asked(
    bad: float, asked: list[int]
) -> None:
    from fairveil.facts import Category, Number

    declared = Schema({"x": Number(-4, 4), "y": Category((0, 1))}, target="y")
    numbers = np.linspace(-1, 1, 2000, dtype=np.float32)[np.newaxis]
    labels = np.arange(2000, dtype=np.int32) % 2
    encoding = Encoding(declared, precision="float32")

    def rows(first: float) -> EncodedRows:
        moved = numbers.copy()
        moved[0, 0] = first
        empty = np.empty((0, 2000))
        return EncodedRows(
            encoding, (RowBlock(moved, empty.astype(np.uint8), labels, empty.astype(np.uint16)),)
        )

    with pytest.raises(InputError, match=r"\[-1, 1\]"):
        short().fit(rows(bad))
    assert not asked
    short().fit(rows(1.0))
    assert (
        fv.FairClassifier(protects=SENSITIVE, solver=fv.PrimalDual(rounds=2))
        .fit(rows(1.5))
        .privacy_.epsilon
        == 0
    )
