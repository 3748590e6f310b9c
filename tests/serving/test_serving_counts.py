"""Counts of finished models through the door: certificates, tables, post-processing. The same
numbers as beside the rows."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doors import Place, place_in, remote_data
from sklearn.linear_model import LogisticRegression

import fairveil as fv
from fairveil.curator.elsewhere import DescribedRule
from fairveil.errors import InputError
from fairveil.facts import Cells
from fairveil.models import LinearModel
from fairveil.serving import RemoteData
from fairveil.serving.door.attaching import rule_of
from fairveil.serving.wire.described import rule_described
from fairveil.serving.wire.messages import Packing, unpacked
from knobs import made


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_in(tmp_path_factory.mktemp("holder"), epsilon=60.0)


@pytest.fixture(scope="module")
def data(place: Place) -> Iterator[RemoteData]:
    with remote_data(place) as found:
        yield found[0]


@pytest.fixture(scope="module")
def models(place: Place) -> dict[str, Any]:
    """Fitted beside the rows, by the holder's schema; an analyst may have them from anywhere."""

    def make(**how: Any) -> Any:
        return made(
            fv.RateConstrainedClassifier,
            "demographic_parity:0.1",
            solver=fv.Descent(rounds=10),
            random_state=3,
            **how,
        )

    found = {
        "linear": make(randomised=False),
        "additive": make(randomised=False, model="additive"),
        "fermi": fv.FermiClassifier(solver=fv.Descent(rounds=5), random_state=1),
    }
    # a copy's own rows are not known
    return {name: copy.copy(model.fit(place.rows)) for name, model in found.items()}


@pytest.mark.parametrize("name", ["linear", "additive", "fermi"])
def test_a_certificate_through_the_door_is_that_beside_the_rows(
    name: str, place: Place, data: RemoteData, models: Any
) -> None:
    how: dict[str, Any] = {
        "constraints": ["demographic_parity:0.3", "equalized_odds:0.3"],
        "epsilon": 1.0,
        "random_state": 5,
    }
    here, there = (fv.certify(models[name], rows, **how) for rows in (place.rows, data))
    assert here.counts.tobytes() == there.counts.tobytes()
    assert here.certified == there.certified
    assert here.privacy_.events == there.privacy_.events


@pytest.mark.parametrize("constraints", ["demographic_parity:0.3", "equalized_odds:0.3"])
def test_a_constraint_alone_and_a_period_are_counted_as_beside_the_rows(
    constraints: str, place: Place, data: RemoteData, models: Any, tmp_path: Path
) -> None:
    """Selection rates read no label: the door's rule must not either."""
    counts = []
    for at, rows in enumerate((place.rows, data)):
        found = fv.certify(
            models["linear"], rows, constraints=constraints, epsilon=1.0, random_state=5
        )
        fixed: dict[str, Any] = {
            "groups": {"sex": ["f", "m"]},
            "classes": ["no", "yes"],
            "epsilon": 1.0,
        }
        watch = fv.Monitor.create(tmp_path / f"{at}.json", constraints, **fixed)
        period = watch.add("May", models["linear"], rows, random_state=5)
        assert watch.privacy_ is not None
        counts.append((found.counts.tolist(), period.counts, watch.privacy_.epsilon))
        if rows is data:
            assert place.ledger().check([watch.privacy_.ledger]) == []  # type: ignore[list-item]
    assert counts[0] == counts[1]
    assert min(counts[1][0]) > 10  # every part has people


def test_a_private_table_through_the_door_is_that_beside_the_rows(
    place: Place, data: RemoteData, models: Any
) -> None:
    here, there = (
        fv.private_audit(models["linear"], rows, epsilon=1.0, random_state=5)
        for rows in (place.rows, data)
    )
    assert here.counts.tobytes() == there.counts.tobytes()
    assert str(here.difference("selection_rate[yes]")) == str(
        there.difference("selection_rate[yes]")
    )


def test_outcomes_are_counted_without_a_model(data: RemoteData) -> None:
    found = fv.private_audit(None, data, epsilon=1.0, random_state=5)
    assert abs(found.counts.sum() - 1500) < 60
    assert found.counts.min() > 100  # all groups and outcomes have people


def test_a_post_processor_through_the_door_is_that_beside_the_rows(
    place: Place, data: RemoteData
) -> None:
    def fitted(rows: Any) -> Any:
        return fv.OddsPostProcessor(
            constraints="equalized_odds:0.1", epsilon=2.0, random_state=4
        ).fit(rows)

    here, there = fitted(place.rows), fitted(data)
    assert here.model_.mixing.tobytes() == there.model_.mixing.tobytes()
    assert here.privacy_.epsilon == there.privacy_.epsilon


def test_a_fitted_base_is_post_processed_too(place: Place, data: RemoteData, models: Any) -> None:
    how: dict[str, Any] = {
        "constraints": "demographic_parity:0.1",
        "epsilon": 2.0,
        "random_state": 4,
    }
    here, there = (
        made(fv.OddsPostProcessor, models["linear"], **how).fit(rows) for rows in (place.rows, data)
    )
    assert here.model_.mixing.tobytes() == there.model_.mixing.tobytes()


def test_offsets_through_the_door_are_those_beside_the_rows(
    place: Place, data: RemoteData, models: Any
) -> None:
    def fitted(rows: Any, base: Any = None, **how: Any) -> Any:
        clf = made(
            fv.ParityPostProcessor,
            base,
            0.1,
            epsilon=2.0,
            solver=fv.Offsets(rounds=6),
            random_state=4,
            **how,
        )
        return clf.fit(rows)

    for base, how in ((None, {}), (models["linear"], {"public_base": True})):
        here, there = fitted(place.rows, base, **how), fitted(data, base, **how)
        assert here.offsets_.tobytes() == there.offsets_.tobytes()
        assert here.rates_.tobytes() == there.rates_.tobytes()
        assert here.privacy_.events == there.privacy_.events
    with pytest.raises(InputError, match="linear base"):
        fitted(data, models["additive"], public_base=True)


def test_code_that_would_run_beside_the_rows_is_refused(place: Place, data: RemoteData) -> None:
    table = np.random.default_rng(0).normal(size=(50, 2))
    foreign = LogisticRegression().fit(table, table[:, 0] > 0)
    for model in (foreign, lambda X: np.zeros(1500)):
        with pytest.raises(InputError, match="a fitted linear or additive model of Fairveil"):
            fv.certify(model, data, constraints="demographic_parity:0.1", epsilon=1.0)


def test_a_model_of_another_coding_is_refused(data: RemoteData) -> None:
    rng = np.random.default_rng(0)
    other = fv.FermiClassifier(solver=fv.Descent(rounds=3), random_state=0).fit(
        rng.normal(size=(400, 3)),
        rng.integers(2, size=400),
        sensitive_features=rng.integers(2, size=400),
    )
    with pytest.raises(InputError, match="a model of the holder's schema"):
        fv.certify(other, data, constraints="demographic_parity:0.1", epsilon=1.0)


def test_which_columns_a_code_reads_is_found_from_its_table() -> None:
    """A hostile analyst says that codes of groups read features alone: under attribute privacy they
    would be free."""
    layout_of = place_layout()
    model = LinearModel(
        np.zeros((1, layout_of.width)), [0.0], classes=("no", "yes"), layout=layout_of
    )
    cells = Cells((("f", "m"),), names=("sex",))
    by_group = np.arange(4).reshape(2, 1, 2)
    by_label = np.arange(4).reshape(1, 2, 2).repeat(2, axis=0)
    for table, read in (
        (by_group, {"features", "sensitive"}),
        (by_label, {"features", "label"}),
        (by_label[:, :1], {"features"}),
    ):
        packing = Packing()
        told = rule_described(DescribedRule(model, 2, None, cells, table), packing)
        message = unpacked(packing.packed({**told, "count": 4, "title": "", "handle": "codes"}))
        rule = rule_of(message.content, message, layout_of, np.random.default_rng)
        assert rule.columns_read == read


def place_layout() -> Any:
    from doors import SCHEMA

    from fairveil.data import Encoding

    return Encoding(SCHEMA).layout
