"""What a post-processed classifier costs, what of its base is charged, what is said, and whether it
can be distinguished."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from estimator_samples import short
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import fairveil as fv
import ways
from fairveil.core import cost as accounting
from fairveil.core.events import Gaussian
from fairveil.data import encode
from fairveil.errors import BudgetError, PrivacyError, SchemaError
from fairveil.estimators import wrapped
from fairveil.estimators.reading import Coded
from fairveil.facts import Category, Number, RowBlock, RowLayout, Schema
from fairveil.methods import postprocess
from fairveil.statement.form import READ_FROM_DATA
from knobs import made

RNG = np.random.default_rng(0)
ROWS = 2000
A = RNG.integers(2, size=ROWS)
X = RNG.normal(size=(ROWS, 3))
X[:, 0] += A
Y = (X.sum(axis=1) + RNG.normal(size=ROWS) > 0.5).astype(int)
ODDS = fv.EqualizedOdds(0.05)


class Given:
    """Decisions made elsewhere: the first feature."""

    def predict(self, X: Any) -> Any:
        return np.asarray(X)[:, 0].astype(int)


def fit(base: Any = None, **options: Any) -> fv.FairPostProcessor:
    options = {"constraints": ODDS, "random_state": 0, **options}
    return made(fv.FairPostProcessor, base, **options).fit(X, Y, sensitive_features=A)


def exact_counts(clf: fv.FairPostProcessor) -> Any:
    """What was asked about, without noise: rows by group, label and bin of the base's score."""
    truth = np.zeros((2, 2, 1 + len(clf.edges_)))
    np.add.at(truth, (A, Y, np.searchsorted(clf.edges_, clf.estimator_.decision_function(X))), 1.0)
    return truth


# -- guarantee 1: the price


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize(
    "relation",
    [{}, {"neighbours": "replace-one"}, {"protects": "sensitive_features"}],
    ids=["add", "replace", "groups"],
)
def test_guarantee_1_the_statement_prices_base_and_counts_within_the_promise(
    relation: dict[str, str], epsilon: float
) -> None:
    clf = fit(epsilon=epsilon, **relation)
    statement = clf.privacy_
    assert statement.check() == []
    assert 0.99 * epsilon <= statement.epsilon <= epsilon
    assert statement.epsilon == accounting.epsilon(statement.events, 1e-6, statement.neighbours)
    base = clf.estimator_.privacy_
    assert base.check() == []
    if relation.get("protects"):
        assert base.epsilon == 0
        assert len(statement.events) == 1
    else:
        assert base.epsilon <= 0.8 * epsilon
        assert statement.events[: len(base.events)] == base.events
    assert statement.from_json(statement.to_json()) == statement


def test_guarantee_1_without_constraints_the_base_has_the_whole_promise() -> None:
    clf = fit(constraints=None)
    assert 0.99 < clf.estimator_.privacy_.epsilon <= 1.0
    assert clf.privacy_.epsilon == clf.estimator_.privacy_.epsilon
    assert (clf.predict(X) == clf.estimator_.predict(X)).all()
    assert clf.guarantee_ is None
    assert not clf.constraint_report_.lines


def test_guarantee_1_a_fitted_base_of_ours_is_composed_and_counts_get_what_is_left() -> None:
    base = short(epsilon=0.6).fit(X, Y)
    clf = fit(base)
    assert clf.estimator_ is base
    assert base.privacy_.epsilon < 0.6001 < clf.privacy_.epsilon <= 1.0
    clf_again = fit(short(epsilon=0.95).fit(X, Y))
    assert clf.released_ is not None
    assert clf_again.released_ is not None
    assert clf_again.released_.noise.sd > clf.released_.noise.sd  # less is left
    with pytest.raises(
        BudgetError, match=r"base classifier's price.*epsilon 3\.\d+ at delta 5e-07"
    ):
        fit(short(epsilon=3.0).fit(X, Y))
    with pytest.raises(BudgetError, match="inf"):
        fit(short(epsilon=math.inf).fit(X, Y))


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_guarantee_1_a_base_beyond_the_promise_is_refused_also_where_nothing_else_is_charged() -> (
    None
):
    """Without constraints nothing is asked; of the population alone exact counts are, where groups
    are protected."""
    with pytest.raises(BudgetError, match=r"base classifier's price.*epsilon 3 at"):
        fit(short(epsilon=3.0).fit(X, Y), constraints=None)
    groups = {"protects": "sensitive_features"}
    dear, fair = (
        short("demographic_parity:0.1", epsilon=epsilon, **groups).fit(X, Y, sensitive_features=A)
        for epsilon in (3.0, 1.0)
    )
    with pytest.raises(BudgetError, match=r"base classifier's price.*epsilon 3 at"):
        fit(dear, constraints=fv.FalseNegativeRate(0.3), **groups)
    whole = fit(fair, constraints=fv.FalseNegativeRate(0.3), **groups).privacy_
    assert whole.check() == []
    assert 0.99 < whole.epsilon <= 1.0


def test_guarantee_1_bases_under_another_relation_are_refused_unless_they_never_read_the_groups() -> (
    None
):
    with pytest.raises(PrivacyError, match="add-remove"):
        fit(short(neighbours="replace-one").fit(X, Y))
    free = short().fit(X, Y)  # records protected, and the groups never seen
    clf = fit(free, protects="sensitive_features")
    assert len(clf.privacy_.events) == 1
    assert wrapped.FITTED_ELSEWHERE in clf.privacy_.not_covered
    with pytest.raises(PrivacyError, match="same guarantee"):
        fit(
            short("demographic_parity:0.1").fit(X, Y, sensitive_features=A),
            protects="sensitive_features",
        )
    same = short("demographic_parity:0.1", epsilon=0.5, protects="sensitive_features").fit(
        X, Y, sensitive_features=A
    )
    both = fit(same, protects="sensitive_features")
    assert both.privacy_.events[:-1] == same.privacy_.events
    assert 0.5 < both.privacy_.epsilon <= 1.0


def test_guarantee_1_an_unfitted_base_of_ours_is_given_its_share() -> None:
    base = short("demographic_parity:0.2", random_state=None)
    for relation in ({}, {"protects": "sensitive_features"}):
        clf = fit(base, **relation)
        inside = clf.estimator_
        assert inside is not base
        assert (inside.epsilon, inside.delta) == (0.8, 0.8e-6)
        assert inside.solver == replace(base.solver, randomised=None)  # its score is wanted
        assert inside.random_state is not None
        assert inside.privacy_.epsilon <= 0.8
        assert 0.98 < clf.privacy_.epsilon <= 1.0
    assert base.epsilon == 3.0


def test_guarantee_1_classifiers_of_others_under_records() -> None:
    with pytest.raises(PrivacyError, match="private itself"):
        fit(LogisticRegression())
    base = LogisticRegression().fit(X, Y)
    with pytest.raises(PrivacyError, match="public_base=True"):
        fit(base)
    with pytest.raises(PrivacyError, match="fitted base"):
        fit(LogisticRegression(), public_base=True)
    with pytest.raises(PrivacyError, match="fitted base"):
        fit(None, public_base=True)
    clf = fit(base, public_base=True)
    assert wrapped.SAID_TO_BE_PUBLIC in clf.privacy_.not_covered
    assert "user-code-trusted" in clf.privacy_.stamps
    assert clf.privacy_.check() == []
    assert fit(base, epsilon=math.inf).privacy_.epsilon == math.inf


def test_guarantee_1_what_is_not_covered_is_said() -> None:
    said = fit(LogisticRegression().fit(X, Y), protects="sensitive_features").privacy_
    assert wrapped.FITTED_ELSEWHERE in said.not_covered
    assert any("reads a person's group" in sentence for sentence in said.not_covered)
    assert "seeded-noise" in said.stamps
    ours = fit(protects="sensitive_features", random_state=None).privacy_
    assert ours.stamps == ()
    assert {fact.name for fact in ours.facts if "read from the data" in fact.origin} >= {
        "classes",
        "groups of sensitive_0",
    }
    assert fit(LogisticRegression(), protects="sensitive_features").privacy_.user_code == "trusted"


@pytest.mark.parametrize(
    "change", [{"plan": (), "epsilon": 0.0}, {"epsilon": 0.01}, {"events": (Gaussian(0.5),)}]
)
def test_guarantee_1_a_base_whose_statement_contradicts_itself_is_refused(
    change: dict[str, Any],
) -> None:
    base = short(epsilon=0.5).fit(X, Y)
    base.privacy_ = dataclasses.replace(base.privacy_, **change)
    with pytest.raises(PrivacyError, match="agrees with itself"):
        fit(base)


def test_what_was_read_from_the_data_is_said_also_where_the_base_was_told_it_by_a_schema() -> None:
    import pandas as pd

    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    number = fv.facts.Number(-10, 10)
    schema = fv.facts.Schema({"a": number, "b": number, "y": fv.facts.Category((0, 1))}, target="y")
    base = short(epsilon=0.3, schema=schema).fit(table, Y)
    facts = (
        fv.FairPostProcessor(base, ODDS, random_state=0)
        .fit(table, Y, sensitive_features=A)
        .privacy_.facts
    )
    assert set(base.privacy_.facts) <= set(facts)
    assert fv.privacy.PublicFact("groups of sensitive_0", "0, 1", READ_FROM_DATA) in facts
    own = short(epsilon=0.3).fit(table, Y)
    with_groups = dataclasses.replace(
        schema, columns={**schema.columns, "s": fv.facts.Category((0, 1))}, sensitive=("s",)
    )
    told = (
        fv.FairPostProcessor(own, ODDS, random_state=0, schema=with_groups)
        .fit(table, Y, sensitive_features=A)
        .privacy_.facts
    )
    assert {fact.origin for fact in told if fact.name == "classes"} == {"schema", READ_FROM_DATA}


@pytest.mark.parametrize("fitted", [True, False])
@pytest.mark.parametrize("frozen", [True, False])
def test_guarantee_2_a_base_that_reads_the_group_at_prediction_is_refused(
    fitted: bool, frozen: bool
) -> None:
    """Its decisions are no public function of the features: exact totals of them would show a
    change of one group.

    Coded rows carry the groups with them, so nothing else stops such a base from reading them.
    """
    rows = coded_rows()
    game = ways.game(
        ODDS,
        protects="sensitive_features",
        solver=fv.OracleGame(group_aware=True),
        epsilon=0.5,
        rounds=50,
        random_state=1,
    )
    base = game.fit(rows, sensitive_features=["sex"]) if fitted else game
    clf = fv.FairPostProcessor(
        FrozenEstimator(base) if frozen else base,
        ODDS,
        protects="sensitive_features",
        random_state=0,
    )
    with pytest.raises(
        fv.errors.InputError,
        match="group_aware=True" if fitted or not frozen else "fitted|group_aware",
    ):
        clf.fit(rows, sensitive_features=["sex"])


def coded_rows() -> Any:
    """Two numbers and the groups, as a source of coded rows."""
    layout = RowLayout(2, (), (0, 1), (("f", "m"),), ("sex",))
    numbers = np.ascontiguousarray(np.tanh(X[:, :2]).T)
    return Coded(
        layout,
        (
            RowBlock(
                numbers,
                np.empty((0, ROWS), np.uint8),
                Y.astype(np.int32),
                A.astype(np.uint16)[None],
            ),
        ),
    )


def test_guarantee_1_a_classifier_of_others_that_looks_like_ours_is_trusted_code() -> None:
    class Theirs(fv.FairClassifier):  # type: ignore[misc]
        pass

    said = fit(Theirs(solver=fv.PrimalDual(rounds=15), random_state=0), epsilon=3.0).privacy_
    assert said.user_code == "trusted"
    assert fit(short(random_state=None)).privacy_.user_code == "none"


def test_a_frozen_classifier_of_ours_is_the_classifier_itself() -> None:
    import pandas as pd

    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "sex": A})
    groups = {"protects": "sensitive_features"}
    base = short("demographic_parity:0.1", epsilon=0.5, **groups).fit(
        table, Y, sensitive_features="sex"
    )
    one, other = (
        made(fv.FairPostProcessor, given, ODDS, random_state=0, **groups).fit(
            table, Y, sensitive_features="sex"
        )
        for given in (base, FrozenEstimator(base))
    )
    assert (one.mixing_ == other.mixing_).all()
    assert one.privacy_ == other.privacy_
    with pytest.raises(fv.errors.InputError, match="FrozenEstimator"):
        fit(FrozenEstimator(short()))


def test_where_features_are_public_none_is_the_group_over_again() -> None:
    copy = np.column_stack([X, A * 2.0])
    for base in (None, LogisticRegression()):
        with pytest.raises(PrivacyError, match="x3"):
            fv.FairPostProcessor(base, ODDS, protects="sensitive_features").fit(
                copy, Y, sensitive_features=A
            )
    import pandas as pd

    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "sex": A})
    reads = LogisticRegression().fit(table, Y)
    with pytest.raises(PrivacyError, match="sex"):
        fv.FairPostProcessor(reads, ODDS, protects="sensitive_features").fit(
            table, Y, sensitive_features="sex"
        )
    public = fv.FairPostProcessor(reads, ODDS, public_base=True).fit(
        table, Y, sensitive_features="sex"
    )
    assert public.predict(table).shape == (ROWS,)


def test_a_copy_is_found_beside_missing_values_in_dates_in_the_index_and_among_objects() -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    words = np.where(A == 1, "m", "f").astype(object)
    words[5] = None
    table = pd.DataFrame({"a": X[:, 0], "b": np.where(rng.random(ROWS) < 0.1, np.nan, X[:, 1])})
    days = pd.to_datetime(np.where(A == 1, "2020-01-01", "2021-01-01"))
    objects = np.empty(ROWS, object)
    objects[:] = [(group,) for group in A]
    holey = np.column_stack([table, A * 3.0])
    for wrong, found in (
        (table.assign(copy=words), "copy"),
        (table.assign(copy=np.where(np.arange(ROWS) < 9, np.nan, A)), "copy"),
        (table.assign(copy=days), "copy"),
        (table.assign(copy=objects), "copy"),
        (table.assign(copy=days).astype(object).to_numpy(), "x2"),
        (holey, "x2"),
        (holey.tolist(), "x2"),
        (table.set_index(pd.Index(A)), "the index"),
        ({"a": X[:, 0], "copy": words}, "copy"),
    ):
        with pytest.raises(PrivacyError, match=f"column '{found}', whose value follows"):
            fv.FairPostProcessor(Given(), ODDS, protects="sensitive_features").fit(
                wrong, Y, sensitive_features=A
            )
    honest = table.assign(
        noisy=np.where(rng.random(ROWS) < 0.1, 1 - A, A), number=np.arange(ROWS), same=1, none=None
    )
    clf = fv.FairPostProcessor(
        Given(), "demographic_parity:0.1", protects="sensitive_features", random_state=0
    )
    honest["a"] = (X[:, 0] > 0).astype(int)
    assert clf.fit(honest.set_index("number"), Y, sensitive_features=A).privacy_.epsilon <= 1.0


def test_a_weak_delta_is_warned_of_where_the_number_of_rows_is_public() -> None:
    with pytest.warns(fv.errors.WeakDelta):
        fit(LogisticRegression(), protects="sensitive_features", delta=0.01)
    # add-remove: the number is nobody's to know
    with pytest.warns(fv.errors.WeakDelta, match="assumes fewer than 100 rows"):
        fit(LogisticRegression().fit(X, Y), public_base=True, delta=0.01)


# -- guarantees 2, 3, 4: what is fitted


@pytest.mark.parametrize("relation", [{}, {"protects": "sensitive_features"}])
def test_guarantee_2_and_3_everything_follows_from_the_released_counts(
    relation: dict[str, str],
) -> None:
    clf = fit(**relation)
    released = clf.released_
    truth = exact_counts(clf)
    assert released is not None
    assert clf.guarantee_ is not None
    assert (released.raw != truth).any(axis=(1, 2)).all()
    if relation:
        assert released.totals is not None
        assert (released.totals == truth.sum(axis=0)).all()  # public: they do not read the groups
    else:
        assert released.totals is None
        assert released.rows is None
    system = fv.fairness.resolve(ODDS, clf.cells_, (0, 1))
    again = postprocess.best_table(released, system, 0.95, with_slack=False, heaviest=1.0).table
    assert (again == clf.mixing_).all()
    assert postprocess.guarantee(released, system, again, 0.95) == clf.guarantee_
    known = {
        "estimator_",
        "model_",
        "privacy_",
        "guarantee_",
        "constraint_report_",
        "released_",
        "cells_",
        "groups_",
        "predict_method_",
    }
    known |= {"rates_", "noise_", "moved_"}  # None: of offsets alone
    assert clf.rates_ is clf.noise_ is clf.moved_ is None
    shape = {"classes_", "n_features_in_", "sensitive_names_", "groups_named_", "baselines_"}
    assert {name for name in vars(clf) if name.endswith("_")} == known | shape


def test_guarantee_2_seeds_are_not_shared_between_base_and_counts() -> None:
    base = short(random_state=0).fit(X, Y)
    clf = fit(base, epsilon=5.0)
    own = (
        fv.privacy.NoiseSource.seeded(0)
        .stream("noise", 0, 0)
        .discrete_laplace(clf.released_.noise.scale, clf.released_.raw.size)
    )
    assert ((clf.released_.raw - exact_counts(clf)).ravel() != own).any()
    assert len({wrapped.derived_seed(0, k) for k in range(4)} | {0}) == 5


def test_guarantee_4_a_fit_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clf = fit(protects="sensitive_features")
    before = dict(vars(clf))
    for wrong in (
        {"y": Y[:5]},
        {"y": np.ones(ROWS)},
        {"sensitive_features": np.zeros(ROWS)},
        {"sensitive_features": None},
    ):
        with pytest.raises(fv.errors.FairveilError):
            clf.fit(X, **{"y": Y, "sensitive_features": A, **wrong})
        assert vars(clf) == before

    def broken(*given: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(postprocess, "guarantee", broken)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, Y, sensitive_features=A)
    assert vars(clf) == before


# -- the whole estimator under attack


@pytest.mark.parametrize("told", [True, False])
def test_a_base_that_reads_as_a_feature_what_is_protected_now_is_refused(told: bool) -> None:
    """Its guarantee was for another column: this one was public to it, and is in its coefficients
    without noise."""
    rng = np.random.default_rng(0)
    table = {name: rng.choice(["a", "b"], 400) for name in ("race", "sex")}
    table["x"] = rng.uniform(-1, 1, 400)
    table["y"] = (table["x"] + 2 * (table["race"] == "b") > 1).astype(int)
    columns = {"x": Number(-1, 1), "y": Category((0, 1))}
    columns |= {name: Category(("a", "b")) for name in ("race", "sex")}
    of_sex, of_race = (Schema(columns, target="y", sensitive=name) for name in ("sex", "race"))
    alone = {"epsilon": 1.0, "protects": "sensitive_features", "random_state": 0}
    base = ways.classifier(
        "demographic_parity:0.3",
        solver=fv.PrimalDual(rounds=2),
        schema=of_sex if told else None,
        **alone,
    )
    rows, others = (encode(table, schema) for schema in (of_sex, of_race))
    base.fit(rows)
    post = ways.post_processor(base, "demographic_parity:0.3", schema=of_race, **alone)
    with pytest.raises(PrivacyError, match="does not read what is protected"):
        post.fit(others)
    with pytest.raises(SchemaError, match="the features"):  # of the same shape, and not the same
        base.predict(others)
    assert len(base.predict(rows)) == 400
