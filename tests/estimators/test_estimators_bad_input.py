"""What is wrong with X, y, groups, weights and knobs is an `InputError` that says so, before
anything is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from estimator_samples import Columns, short
from scipy import sparse

import fairveil as fv
from fairveil.errors import InputError

PARITY = fv.DemographicParity(0.3)


@pytest.fixture(name="X")
def two_numbers(people: Columns) -> Any:
    return np.column_stack([people["age"] / 50, people["hours"] / 30])


@pytest.mark.parametrize("huge", [1e308, -1e200])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_numbers_whose_deviation_overflows_cannot_be_scaled_by_it(
    people: Columns, X: Any, huge: float, kind: Any
) -> None:
    X[0, 0] = huge
    with pytest.raises(InputError, match="squares are finite"):
        short(unsafe_data_dependent_bounds=True).fit(kind(X), people["hired"])


def test_single_precision_does_not_overflow_where_double_does_not(people: Columns, X: Any) -> None:
    X[0, 0] = 3e38
    clf = short(unsafe_data_dependent_bounds=True).fit(
        sparse.csr_array(X.astype(np.float32)), people["hired"]
    )
    assert np.isfinite(clf.coding_.standard.deviations).all()


@pytest.mark.parametrize("kind", [float, object])
def test_groups_and_classes_are_finite(people: Columns, X: Any, kind: Any) -> None:
    codes = (people["sex"] == "m").astype(float)
    codes[3] = np.inf
    with pytest.raises(InputError, match=r"sensitive.*infinite"):
        short(PARITY).fit(X, people["hired"], sensitive_features=codes.astype(kind))
    with pytest.raises(InputError, match=r"^y: .*infin"):
        short().fit(X, codes.astype(kind))
    mixed = people["sex"].astype(object)
    mixed[3] = np.inf
    with pytest.raises(InputError, match=r"sensitive.*infinite"):
        short(PARITY).fit(X, people["hired"], sensitive_features={"sex": mixed})


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_labels_are_refused(people: Columns, X: Any, missing: Any) -> None:
    labels: list[Any] = [missing, *(people["hired"] == "yes").tolist()[1:]]
    words: list[Any] = [missing, *people["hired"].tolist()[1:]]
    given: list[Any] = [words, np.array(words, object), pd.Series(words), np.array(labels, object)]
    if missing is not pd.NA:
        given += [
            np.array(labels, dtype=float),
            pa.array(words, from_pandas=True),
            pd.array(labels, dtype="boolean"),
        ]
    for y in given:
        with pytest.raises(InputError, match=r"^y: "):
            short().fit(X, y)
    with pytest.raises(InputError, match=r"^y: .*1d array"):
        short().fit(X, np.zeros((len(X), 2)))


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, lambda X, columns: pa.table(list(X.T), names=columns)]
)
def test_two_columns_of_one_name_are_refused(
    people: Columns, X: Any, frame: Any, schema: fv.facts.Schema
) -> None:
    y, twice = people["hired"], frame(X, columns=["a", "a"])
    with pytest.raises(InputError, match=r"^X: .*distinct.*\['a'\]"):
        short().fit(twice, y)
    with pytest.raises(InputError, match=r"^X: .*distinct"):
        short(schema=schema).fit(twice, y)
    with pytest.raises(InputError, match=r"^sensitive_features: .*distinct"):
        short(PARITY).fit(X, y, sensitive_features=twice)
    with pytest.raises(InputError, match=r"^X: .*distinct"):
        short().fit(frame(X, columns=["a", "b"]), y).predict(twice)


def test_arrays_that_scikit_learn_refuses_are_refused_in_our_words(people: Columns, X: Any) -> None:
    for wrong, words in (
        (X * np.nan, "NaN"),
        (X * np.inf, "infinity"),
        (X[:, :0], "0 feature"),
        (X[0], "Expected 2D"),
    ):
        with pytest.raises(InputError, match=rf"^X: .*{words}"):
            short().fit(wrong, people["hired"])


def test_a_sampling_rate_that_is_too_small_for_the_accountant_is_refused(
    people: Columns, X: Any
) -> None:
    for rate in (1e-300, 9e-10):
        with pytest.raises(InputError, match=r"sampling_rate: expected at least 1e-09"):
            short(sampling_rate=rate).fit(X, people["hired"])


def test_the_length_of_weights_is_told_beside_that_of_x(people: Columns, X: Any) -> None:
    y = people["hired"]
    with pytest.raises(InputError, match="got 'X: 800, sample_weight: 3'"):
        short().fit(X, y, sample_weight=np.ones(3))
    with pytest.raises(InputError, match="got 'X: 800, sample_weight: 3'"):
        short().fit(X, y).score(X, y, sample_weight=np.ones(3))


def test_a_name_that_is_nearly_a_column_is_suggested(people: Columns) -> None:
    X = pd.DataFrame({name: people[name] for name in ("age", "hours", "sex")})
    with pytest.raises(InputError, match=r"names out of .*got 'Sex'\. Did you mean 'sex'\?"):
        short(PARITY).fit(X, people["hired"], sensitive_features="Sex")
    with pytest.raises(InputError, match=r"each column once, .*got \['sex', 'sex'\]"):
        short(PARITY).fit(X, people["hired"], sensitive_features=["sex", "sex"])


def test_one_row_of_a_frame_is_no_table(people: Columns) -> None:
    X = pd.DataFrame({name: people[name] for name in ("age", "hours")}) / 50
    clf = short().fit(X, people["hired"])
    with pytest.raises(InputError, match=r"a column or a row.*X\.iloc\[\[0\]\]"):
        clf.predict(X.iloc[0])
    assert clf.predict(X.iloc[[0]]).shape == (1,)
