"""Fits, counts and searches with a holder: the same model and numbers to the bit, the same
statement, signed; and no row on this side. What no server does is refused with its reason."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doors import PERSONS, SCHEMA, WIDE, Place, place_in, remote_data
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fairveil as fv
import ways
from fairveil.core.events import Gaussian
from fairveil.core.promise import Unit
from fairveil.curator import Curator
from fairveil.data import Encoding
from fairveil.data.elsewhere import DescribedRule, curator_of
from fairveil.errors import InputError, Overspent, PrivacyError, SignatureError
from fairveil.facts import Cells
from fairveil.models import LinearModel
from fairveil.serving import RemoteData
from fairveil.serving.runs import Server, rule_of
from fairveil.serving.wire import MESSAGES, Reader, packed, rule_described, unpacked
from fairveil.statement import signing
from fairveil.statement.signing import verify_signature
from knobs import made

PAGE = Path(__file__).parent.parent.parent / "docs" / "remote.md"
PARITY = fv.DemographicParity(0.2, confidence=0.9)
BY = fv.FairClassifier
World = tuple[Place, RemoteData, Server, str]
TERMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "wide": {"schema": WIDE},
    "persons": {"schema": PERSONS, "unit": "person"},
}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Holders of tables of each kind, served when they are first asked for."""
    with ExitStack() as stack:
        known: dict[str, World] = {}

        def world(name: str) -> World:
            if name not in known:
                place = place_in(tmp_path_factory.mktemp(name), epsilon=300.0, **TERMS[name])
                known[name] = (place, *stack.enter_context(remote_data(place)))
            return known[name]

        yield world


@pytest.fixture
def plain(worlds: Any) -> World:
    found: World = worlds("plain")
    return found


STEPS, FEW = fv.PrimalDual(rounds=10), fv.PrimalDual(rounds=3)
FITS: dict[str, tuple[str, Any]] = {
    "rate-constrained": ("plain", lambda: BY("demographic_parity:0.1", solver=STEPS)),
    "sampled": (
        "plain",
        lambda: BY("equalized_odds:0.2", solver=fv.PrimalDual(rounds=10, sampling_rate=0.3)),
    ),
    "additive": ("plain", lambda: BY("demographic_parity:0.1", solver=STEPS, model="additive")),
    "fermi": ("plain", lambda: ways.fermi(solver=STEPS)),
    "tailored": ("plain", lambda: ways.tailored(solver=fv.Tailored(rounds=10))),
    "game": ("plain", lambda: ways.game("demographic_parity:0.1", rounds=3)),
    "group objective": ("plain", lambda: ways.objective()),
    "certified": ("plain", lambda: BY(PARITY, solver=fv.PrimalDual(rounds=5))),
    "certified objective": ("plain", lambda: ways.objective(constraint=PARITY)),
    "regressor": ("wide", lambda: ways.objective_regression()),
    "regressor, tailored": ("wide", lambda: ways.tailored_regression()),
    "regressor, additive": (
        "wide",
        lambda: ways.tailored_regression(solver=fv.Tailored(rounds=5), model="additive"),
    ),
    "persons": (
        "persons",
        lambda: made(
            BY,
            "demographic_parity:0.1",
            solver=fv.PrimalDual(rounds=5),
            public_rows=1500,
            unit="person",
            max_rows_per_unit=2,
        ),
    ),
    "persons, all rows": (
        "persons",
        lambda: ways.tailored(solver=fv.Tailored(rounds=5), unit="person", max_rows_per_unit=4),
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_with_a_holder_is_the_local_fit_to_the_bit(name: str, worlds: Any) -> None:
    kind, make = FITS[name]
    place, data, _, _ = worlds(kind)
    here, elsewhere = (make().set_params(random_state=3) for _ in range(2))
    here.fit(place.rows)
    elsewhere.fit(data)
    ask = "predict" if kind == "wide" else "predict_proba"
    assert getattr(here, ask)(place.rows).tobytes() == getattr(elsewhere, ask)(place.rows).tobytes()
    if hasattr(here, "coef_"):
        assert here.coef_.tobytes() == elsewhere.coef_.tobytes()
    assert here.groups_ == elsewhere.groups_
    if "certified" not in name:
        for field in ("events", "plan", "bounds", "releases"):
            assert getattr(here.privacy_, field) == getattr(elsewhere.privacy_, field), field
    for field in ("promise", "epsilon", "noise", "stamps"):
        assert getattr(here.privacy_, field) == getattr(elsewhere.privacy_, field), field
    told = {fact.name: fact.value for fact in elsewhere.privacy_.facts}
    assert told.get("bounds of the target") == ("0 to 10" if kind == "wide" else None)
    if "certified" in name:
        assert "each row with probability 0.7" in told["rows read"]
        if name != "certified objective":  # a mixture draws decisions, by the holder's coins
            counts = [one.certificate_.counts.tobytes() for one in (here, elsewhere)]
            assert counts[0] == counts[1]
    assert place.ledger().balance().open == 0


def test_the_statement_is_signed_by_the_holder_and_names_the_ledger(
    plain: World, tmp_path: Path
) -> None:
    place, data, _, token = plain
    signer = signing.fingerprint(signing.public_key(place.public_key))
    clf = ways.fermi(solver=FEW).fit(data)
    assert clf.privacy_.ledger is not None
    assert place.ledger().check([clf.privacy_.ledger]) == []
    assert clf.privacy_.noise == "secure"
    changed = clf.privacy_.to_json().replace('"epsilon": 1.0', '"epsilon": 0.5')
    with pytest.raises(SignatureError, match="the signed statement"):
        data._checked(changed, data._signed[clf.privacy_.to_json()][1])
    path = data.write_statement(clf.privacy_, tmp_path / "statement.json")
    assert verify_signature(path, place.public_key).signer == signer
    assert fv.PrivacyStatement.from_json(path.read_text()) == clf.privacy_
    here = ways.fermi(solver=FEW).fit(place.rows)
    with pytest.raises(InputError, match="that this holder signed"):
        data.write_statement(here.privacy_, tmp_path / "other.json")
    signing.new_key(tmp_path / "other.key")
    with pytest.raises(SignatureError, match="the door of the holder of this key"):
        fv.remote(data.address, "applicants", token=token, key=tmp_path / "other.pub")


def test_the_budget_is_the_holders_and_groups_may_be_named(plain: World) -> None:
    place, data, _, _ = plain
    before = place.ledger().balance().spent_share
    here, elsewhere = (
        BY("demographic_parity:0.2", solver=FEW, random_state=1).fit(rows, sensitive_features="sex")
        for rows in (place.rows, data)
    )
    assert here.coef_.tobytes() == elsewhere.coef_.tobytes()
    assert place.ledger().balance().spent_share > before
    with pytest.raises(Overspent):
        ways.fermi(solver=FEW, epsilon=900.0).fit(data)
    rows = data.rows(Encoding(SCHEMA).layout, SCHEMA, False)
    with pytest.raises(InputError, match="rows that are here"):  # and learns not from no rows
        Curator(rows, fv.Promise(1.0, 1e-6))


def test_frontiers_and_searches_are_the_local_ones_to_the_bit(plain: World, tmp_path: Path) -> None:
    """Of all candidates: every answer reaches the analyst, so no other price is true
    (theory.md#search)."""
    place, data, _, _ = plain
    how: dict[str, Any] = {"gaps": [0.1, None], "epsilons": [1.0], "seeds": 2, "progress": False}
    here, elsewhere = (
        fv.frontier(rows, estimator=BY(solver=FEW), **how) for rows in (place.rows, data)
    )
    assert len(here.models) == 4
    for key, model in here.models.items():
        found = elsewhere.models[key].predict_proba(place.rows)
        assert model.predict_proba(place.rows).tobytes() == found.tobytes()
    told = {"epsilon": 3.0, "way": "auto", "random_state": 3}
    one, grid = ways.fermi(solver=FEW), {"solver__clip": [0.5, 2.0]}
    first, second = (fv.PrivateSearchCV(one, grid, **told).fit(rows) for rows in (place.rows, data))
    assert second.price_.way == "all"
    assert first.best_params_ == second.best_params_
    scores = [found.cv_results_["mean_test_score"].tobytes() for found in (first, second)]
    assert scores[0] == scores[1]
    assert first.privacy_.epsilon == second.privacy_.epsilon
    with remote_data(place_in(tmp_path, seeded=False)) as (secret, _, _):
        # its usual seeds are left out: one model a point
        how.pop("seeds")
        found = fv.frontier(secret, estimator=BY(solver=FEW), **how)
        assert len(found.models) == 2
        assert all(model.privacy_.noise == "secure" for model in found.models.values())


def test_a_model_of_one_part_is_certified_on_the_other_alone(plain: World, tmp_path: Path) -> None:
    _, data, _, _ = plain
    kept, aside = data.parted(0.3)
    model = ways.fermi(solver=FEW).fit(kept)
    how: dict[str, Any] = {"constraints": "demographic_parity:0.5", "epsilon": 1.0}
    assert fv.certify(model, aside, **how).counts.sum() > 0
    for seen in (kept, data, *data.parted(0.3)):
        with pytest.raises(InputError, match="whom the model has not seen"):
            fv.certify(model, seen, **how)
    with pytest.raises(InputError, match="a whole data set"):
        kept.parted(0.5)
    with remote_data(place_in(tmp_path / "a", neighbours="replace-one")) as (public, _, _):
        sizes = [one.exact_rows or 0 for one in public.parted(0.4)]
        assert (sum(sizes), min(sizes) > 0) == (1500, True)
    place = place_in(tmp_path / "b", epsilon=1.5)
    with remote_data(place) as (poor, _, _):
        with pytest.raises(Overspent):  # no room for its certificate: nothing begins
            BY(PARITY, solver=FEW).fit(poor)
        assert place.ledger().balance().spent_share == 0.0


# -- persons ---


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({}, "a schema of rows"),
        ({"unit": "town", "max_rows_per_unit": 2}, "the holder's column 'person'"),
        ({"unit": "person"}, "the most rows of one person"),
    ],
)
def test_who_is_protected_is_the_holders_to_say(how: Any, words: str, worlds: Any) -> None:
    place, data, _, _ = worlds("persons")
    before = place.ledger().balance().to_dict()["entries"]
    with pytest.raises((InputError, PrivacyError), match=words):
        made(ways.fermi, solver=FEW, **how).fit(data)
    rows = data.rows(Encoding(PERSONS).layout, PERSONS, False)
    for unit in (None, Unit("town", 2), Unit("person", None)):  # past this side's own checks
        with pytest.raises((InputError, PrivacyError)):
            curator_of(rows, fv.Promise(1.0, 1e-6, unit=unit), plan=Gaussian(9.0))
    assert place.ledger().balance().to_dict()["entries"] == before


# -- counts of finished models ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(worlds: Any) -> dict[str, Any]:
    """Fitted beside the rows, by the holder's schema; an analyst may have them from anywhere."""
    how: dict[str, Any] = {"solver": STEPS, "random_state": 3, "randomised": False}
    found = {
        "linear": made(BY, "demographic_parity:0.1", **how),
        "additive": made(BY, "demographic_parity:0.1", model="additive", **how),
    }
    # a copy's own rows are not known
    return {name: copy.copy(one.fit(worlds("plain")[0].rows)) for name, one in found.items()}


def counted(how: str, rows: Any, models: Any, folder: Path) -> tuple[Any, ...]:
    """What is released of a way to count, or to correct, as plain values."""
    fixed: dict[str, Any] = {"epsilon": 1.0, "random_state": 5}
    if how.startswith("certificate"):
        model = models[how.split()[1]]
        both = ["demographic_parity:0.3", "equalized_odds:0.3"]
        both = both[:1] if how.endswith("one") else both
        found = fv.certify(model, rows, constraints=both, **fixed)
        return found.counts.tobytes(), found.certified, found.privacy_.events
    if how == "period":
        named: dict[str, Any] = {"groups": {"sex": ["f", "m"]}, "classes": ["no", "yes"]}
        folder.mkdir(exist_ok=True)
        path = folder / f"{id(rows)}.json"
        watch = fv.Monitor.create(path, "equalized_odds:0.3", epsilon=1.0, **named)
        return (watch.add("May", models["linear"], rows, random_state=5).counts,)
    if how == "table":
        audit = fv.private_audit(models["linear"], rows, **fixed)
        return audit.counts.tobytes(), str(audit.difference("selection_rate[yes]"))
    if how == "odds":
        base = ways.post_processor(constraints="equalized_odds:0.1", **fixed)
        return (base.fit(rows).model_.mixing.tobytes(),)
    if how == "odds of a base":
        fixed |= {"constraints": "demographic_parity:0.1", "epsilon": 2.0}
        found = made(fv.FairPostProcessor, models["linear"], **fixed).fit(rows)
        return (found.model_.mixing.tobytes(),)
    base, public = (None, {}) if how == "offsets" else (models["linear"], {"public_base": True})
    solver = fv.Offsets(rounds=6)
    found = made(
        fv.FairPostProcessor, base, "demographic_parity:0.1", solver=solver, **fixed, **public
    ).fit(rows)
    return found.offsets_.tobytes(), found.rates_.tobytes(), found.privacy_.events


@pytest.mark.parametrize(
    "how",
    [
        *("certificate linear", "certificate additive", "certificate linear one", "period"),
        *("table", "odds", "odds of a base", "offsets", "offsets of a base"),
    ],
)
def test_counts_with_a_holder_are_those_beside_the_rows(
    how: str, plain: World, models: Any, tmp_path: Path
) -> None:
    place, data, _, _ = plain
    found = [counted(how, rows, models, tmp_path / "watched") for rows in (place.rows, data)]
    assert found[0] == found[1]


def test_persons_are_counted_by_person_and_outcomes_without_a_model(worlds: Any) -> None:
    place, data, _, _ = worlds("persons")
    how: dict[str, Any] = {"unit": "person", "max_rows_per_unit": 2}
    clf = made(ways.fermi, solver=FEW, public_rows=1500, **how).fit(data)
    how |= {"max_rows_per_unit": 1, "epsilon": 1.0, "random_state": 5}
    here, elsewhere = (fv.private_audit(clf, rows, **how) for rows in (place.rows, data))
    assert here.counts.tobytes() == elsewhere.counts.tobytes()
    found = fv.private_audit(None, worlds("plain")[1], epsilon=1.0, random_state=5)
    assert abs(found.counts.sum() - 1500) < 60
    assert found.counts.min() > 100  # all groups and outcomes have people


def test_which_columns_a_code_reads_is_found_from_its_table() -> None:
    """A hostile analyst says that codes of groups read features alone: under attribute privacy they
    would be free."""
    layout = Encoding(SCHEMA).layout
    model = LinearModel(np.zeros((1, layout.width)), [0.0], classes=("no", "yes"), layout=layout)
    cells = Cells((("f", "m"),), names=("sex",))
    by_group = np.arange(4).reshape(2, 1, 2)
    by_label = np.arange(4).reshape(1, 2, 2).repeat(2, axis=0)
    for table, read in (
        (by_group, {"features", "sensitive"}),
        (by_label, {"features", "label"}),
        (by_label[:, :1], {"features"}),
    ):
        told = rule_described(DescribedRule(model, 2, None, cells, table))
        content = unpacked(packed({**told, "count": 4}))
        kinds = {name: MESSAGES["attach"][name] for name in (*told, "count")}
        assert rule_of(layout, **Reader(layout).fields(content, kinds)).columns_read == read


# -- refused ---------------------------------------------------------------------------------------


def linear() -> Any:
    """A finished model of another library."""
    numbers = np.random.default_rng(0).normal(size=(20, 5))
    return LogisticRegression().fit(numbers, numbers[:, 0] > 0)


def certified(model: Any, data: Any) -> Any:
    return fv.certify(model, data, constraints="demographic_parity:0.3", epsilon=1.0)


def of_another_coding(data: Any) -> Any:
    rng = np.random.default_rng(0)
    told = rng.normal(size=(400, 3)), rng.integers(2, size=400)
    groups = rng.integers(2, size=400)
    other = ways.fermi(solver=FEW, random_state=0).fit(*told, sensitive_features=groups)
    return certified(other, data)


def network(data: Any) -> Any:
    torch = pytest.importorskip("torch")
    return BY(model=torch.nn.Linear(5, 1), solver=FEW, schema=fv.Schema(rows=1500)).fit(data)


def searched(data: Any, one: Any, name: str, **how: Any) -> Any:
    return fv.PrivateSearchCV(one, {name: [0.5, 2.0]}, epsilon=3.0, **how).fit(data)


def ledger() -> Any:
    return fv.Ledger.create(None, "m", 9.0, 1e-6)


def steps() -> Any:
    return make_pipeline(FunctionTransformer(), BY(solver=FEW))


def by(d: Any, **how: Any) -> Any:
    return made(BY, solver=FEW, **how).fit(d)


def with_arrays(d: Any, **how: Any) -> Any:
    return BY(solver=FEW).fit(d, **how)


OURS, NONE = "a fitted linear or additive model of Fairveil", "None beside remote data"
SEARCH, ARRAYS = "PrivateSearchCV", "y, groups and weights as arrays"
STEP = "fairclassifier__solver__clip"
SCHEMA_ONLY = "the holder's schema"
REFUSED: dict[str, tuple[str, Any, str]] = {
    "network": ("torch modules", network, "runs code that is not the holder's"),
    "choice": (
        'method="exponential"',
        lambda d: ways.objective(method="exponential").fit(d),
        "by a function",
    ),
    "foreign": ("models of other libraries", lambda d: certified(linear(), d), OURS),
    "function": (
        "models of other libraries",
        lambda d: certified(lambda X: np.zeros(1500), d),
        OURS,
    ),
    "coding": (SCHEMA_ONLY, of_another_coding, "a model of the holder's schema"),
    "selection": (
        f'{SEARCH}(way="selection")',
        lambda d: searched(d, BY(solver=FEW), "solver__clip", way="selection"),
        "a search of all",
    ),
    "pipeline": ("of a pipeline", lambda d: searched(d, steps(), STEP), "no steps before remote"),
    "groups": ("release_groups", lambda d: fv.release_groups(d, epsilon=1.0), "features and label"),
    "persons": ("`unit`", lambda d: by(d, unit="town", max_rows_per_unit=3), "one row a person"),
    "weights": (ARRAYS, lambda d: with_arrays(d, sample_weight=np.ones(3)), NONE),
    "another": (ARRAYS, lambda d: with_arrays(d, sample_weight="a"), NONE),
    "labels": (ARRAYS, lambda d: with_arrays(d, y=np.ones(3)), NONE),
    "group arrays": (ARRAYS, lambda d: with_arrays(d, sensitive_features=np.zeros(3)), NONE),
    "regressor": (
        "a target of classes",
        lambda d: ways.objective_regression().fit(d),
        "a target that is a number",
    ),
    "bounds": (
        "unsafe_data_dependent_bounds",
        lambda d: by(d, unsafe_data_dependent_bounds=True),
        "a door can do",
    ),
    "no privacy": ("epsilon=inf", lambda d: by(d, epsilon=float("inf")), "expected"),
    "relation": ("", lambda d: BY(protects="records:replace-one").fit(d), "add-remove"),
    "groups alone": ("", lambda d: BY(protects="sensitive_features").fit(d), "a public number"),
    "ledger": ("ledger=", lambda d: by(d, ledger=ledger()), "the holder's"),
    "checkpoint": ("checkpoint=", lambda d: by(d, checkpoint="folder"), "a checkpoint of the"),
    "schema": (SCHEMA_ONLY, lambda d: by(d, schema=SCHEMA.without("town")), SCHEMA_ONLY),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_server_does_is_refused_with_its_reason(name: str, plain: World) -> None:
    place, data, _, _ = plain
    written, call, words = REFUSED[name]
    before = place.ledger().balance().spent_share
    with pytest.raises((InputError, PrivacyError), match=words):
        call(data)
    after = place.ledger().balance()
    assert (after.open, after.spent_share) == (0, before)
    assert written in PAGE.read_text("utf-8") or written == "the holder's schema"
