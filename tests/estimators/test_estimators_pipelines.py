"""Steps of pipelines that learn from rows: found by name, warned of, and named in the statement."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

import fairveil as fv
import ways
from fairveil.errors import LedgerError, UnprotectedStep
from knobs import made

RNG = np.random.default_rng(0)
ROWS = 300
X = RNG.normal(size=(ROWS, 3))
A = RNG.integers(2, size=ROWS)
Y = (X.sum(axis=1) > 0).astype(int)


def fair(**options: Any) -> Any:
    return made(
        fv.FairClassifier,
        "demographic_parity:0.3",
        solver=fv.PrimalDual(rounds=2),
        random_state=0,
        **options,
    )


def warned(fit: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(one.message) for one in caught if one.category is UnprotectedStep]


def fitted(*steps: tuple[str, Any], **options: Any) -> tuple[list[str], Any]:
    pipe = Pipeline([*steps, ("clf", fair(**options))])
    said = warned(lambda: pipe.fit(X, Y, clf__sensitive_features=A))
    return said, pipe[-1].privacy_


def test_a_scaler_before_the_model_is_named_in_a_warning_and_in_the_statement() -> None:
    said, statement = fitted(("scale", StandardScaler()))
    assert len(said) == 1
    assert "'scale' (StandardScaler)" in said[0]
    sentence = (
        "the pipeline step 'scale' (StandardScaler) was fitted to the training rows before this "
        "fit, without privacy"
    )
    assert sentence in statement.not_covered
    assert sentence in statement.summary()
    assert not statement.check()


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        PCA(2),
        SimpleImputer(),
        SelectKBest(k=2),
        FeatureUnion([("a", StandardScaler()), ("b", PCA(1))]),
    ],
    ids=lambda step: type(step).__name__,
)
def test_what_learns_is_named(step: Any) -> None:
    said, statement = fitted(("first", step))
    assert len(said) == 1
    assert any(
        sentence.startswith("the pipeline step 'first") for sentence in statement.not_covered
    )


@pytest.mark.parametrize(
    "step",
    [
        FunctionTransformer(np.tanh),
        Normalizer(),
        "passthrough",
        None,
        FrozenEstimator(StandardScaler().fit(np.ones((2, 3)))),
        ColumnTransformer(
            [("keep", "passthrough", [0, 1]), ("squash", FunctionTransformer(np.tanh), [2])]
        ),
    ],
    ids=str,
)
def test_what_learns_nothing_is_not(step: Any) -> None:
    said, statement = fitted(("first", step))
    assert said == []
    assert not any("pipeline" in sentence for sentence in statement.not_covered)


def test_an_encoder_learns_its_categories_unless_they_are_stated() -> None:
    table = np.stack([A, 1 - A], axis=1)
    for kind in (OneHotEncoder, OrdinalEncoder):
        for options, named in (({}, True), ({"categories": [[0, 1], [0, 1]]}, False)):
            pipe = make_pipeline(kind(**options), fair())
            assert (
                bool(
                    warned(
                        lambda pipe=pipe: pipe.fit(table, Y, fairclassifier__sensitive_features=A)
                    )
                )
                is named
            )


def test_inside_of_transformers_of_columns_and_of_other_pipelines() -> None:
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), [0, 1]), ("rest", FunctionTransformer(np.tanh), [2])]
    )
    _, statement = fitted(
        ("inner", Pipeline([("squash", Normalizer()), ("columns", columns)])), ("reduce", PCA(2))
    )
    named = [sentence for sentence in statement.not_covered if "pipeline" in sentence]
    assert [sentence.split(" (")[0] for sentence in named] == [
        "the pipeline step 'inner.columns.numbers'",
        "the pipeline step 'reduce'",
    ]


def test_pipelines_around_pipelines() -> None:
    inner = Pipeline([("reduce", PCA(2)), ("clf", fair())])
    outer = Pipeline([("scale", StandardScaler()), ("inner", inner)])
    (said,) = warned(lambda: outer.fit(X, Y, inner__clf__sensitive_features=A))
    assert said.index("'scale'") < said.index("'reduce'")


def test_in_searches_and_clones() -> None:
    pipe = clone(Pipeline([("scale", StandardScaler()), ("clf", fair(epsilon=2.0))]))
    search = GridSearchCV(pipe, {"clf__solver__rounds": [2, 3]}, cv=2)
    said = warned(lambda: search.fit(X, Y, clf__sensitive_features=A))
    assert len(said) == 5  # four of the search and the last one
    assert any(
        "'scale'" in sentence for sentence in search.best_estimator_[-1].privacy_.not_covered
    )
    found = cross_validate(
        pipe, X, Y, params={"clf__sensitive_features": A}, cv=2, return_estimator=True
    )
    assert all(
        any("'scale'" in sentence for sentence in one[-1].privacy_.not_covered)
        for one in found["estimator"]
    )


def test_an_estimator_inside_of_a_selector_knows_the_steps_before_it_alone() -> None:
    steps = [("scale", StandardScaler()), ("select", SelectFromModel(plain()))]
    pipe = Pipeline([*steps, ("reduce", PCA(1)), ("last", LogisticRegression())])
    (said,) = warned(lambda: pipe.fit(X, Y))
    assert "'scale'" in said
    assert "'reduce'" not in said


def plain() -> Any:
    return fv.FairClassifier(solver=fv.PrimalDual(rounds=2), random_state=0)


def test_a_target_that_was_scaled_by_its_own_values() -> None:
    model = ways.objective_regression(
        target_bounds=(-3, 3), random_state=0, solver=fv.GroupObjective(rounds=2)
    )
    outer = TransformedTargetRegressor(model, transformer=StandardScaler())
    (said,) = warned(lambda: outer.fit(X, X[:, 0]))
    assert "'transformer' (StandardScaler)" in said
    assert any("'transformer'" in sentence for sentence in outer.regressor_.privacy_.not_covered)


def test_a_post_processor_names_a_step_once() -> None:
    pipe = Pipeline(
        [
            ("scale", StandardScaler()),
            ("clf", fv.FairPostProcessor(constraints="demographic_parity:0.3")),
        ]
    )
    assert len(warned(lambda: pipe.fit(X, Y, clf__sensitive_features=A))) == 1
    assert sum("'scale'" in sentence for sentence in pipe[-1].privacy_.not_covered) == 1


def test_public_features_may_be_read() -> None:
    for options in ({"protects": "sensitive_features"}, {"epsilon": float("inf")}):
        said, statement = fitted(("scale", StandardScaler()), **options)
        assert said == []
        assert not any("pipeline" in sentence for sentence in statement.not_covered)


def test_sensitive_columns_that_went_through_a_step_are_not_public() -> None:
    import pandas as pd

    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(sex=A)
    keep = ColumnTransformer(
        [("scale", StandardScaler(), ["a", "b", "c"])], remainder="passthrough"
    )
    pipe = Pipeline(
        [
            ("columns", keep.set_output(transform="pandas")),
            ("clf", fair(protects="sensitive_features")),
        ]
    )
    (said,) = warned(lambda: pipe.fit(table, Y, clf__sensitive_features=["remainder__sex"]))
    assert "'columns.scale'" in said


def test_a_fit_by_itself_and_one_after_a_pipeline_name_nothing() -> None:
    fitted(("scale", StandardScaler()))
    clf = fair()
    assert warned(lambda: clf.fit(X, Y, sensitive_features=A)) == []
    assert not any("pipeline" in sentence for sentence in clf.privacy_.not_covered)


def test_a_transformer_without_tags_counts_as_one_that_learns() -> None:
    class Bare:
        def fit(self, X: Any, y: Any = None) -> Any:
            return self

        def transform(self, X: Any) -> Any:
            return X

        def fit_transform(self, X: Any, y: Any = None) -> Any:
            return X

    class Named(TransformerMixin, BaseEstimator):
        def fit(self, X: Any, y: Any = None) -> Any:
            return self

        def transform(self, X: Any) -> Any:
            return X

    from fairveil.estimators.cautions import learning

    assert [step.kind for step in learning("one", Bare())] == ["Bare"]
    assert [step.kind for step in learning("two", Named())] == ["Named"]


def test_names_are_printed_on_one_line() -> None:
    said, statement = fitted(("sca\nle\x1b", StandardScaler()))
    assert "sca?le?" in said[0]
    assert not statement.check()


@pytest.mark.filterwarnings("ignore::fairveil.errors.FairveilWarning")  # its noise is secure
def test_a_ledger_in_production_refuses_them() -> None:
    schema = fv.data.Schema(
        {"x": fv.data.Number(-3, 3), "y": fv.data.Category((0, 1)), "a": fv.data.Category((0, 1))},
        target="y",
        sensitive="a",
    )
    book = fv.Ledger.create(None, "people", epsilon=5.0, delta=1e-5, production=True)
    clf = fv.FairClassifier(
        "demographic_parity:0.3", solver=fv.PrimalDual(rounds=2), schema=schema, ledger=book
    )
    scaled = StandardScaler().set_output(transform="pandas")
    import pandas as pd

    pipe = Pipeline([("scale", scaled), ("clf", clf)])
    with (
        pytest.raises(LedgerError, match="by pipeline step 'scale'"),
        pytest.warns(UnprotectedStep),
    ):
        pipe.fit(pd.DataFrame({"x": X[:, 0]}), Y, clf__sensitive_features={"a": A})
    assert book.balance().spent_share == 0
    clf.fit({"x": X[:, 0].clip(-3, 3)}, Y, sensitive_features={"a": A})
    assert book.balance().spent_share > 0
