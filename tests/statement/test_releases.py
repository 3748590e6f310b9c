"""The table of releases: one line a kind, by name, and no other than the events'."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fairveil as fv
from fairveil.core.events import (
    Approximate,
    Composed,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    OnPart,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    VisiblySampled,
    ZeroConcentrated,
)
from fairveil.errors import StatementError
from fairveil.privacy import Promise
from fairveil.statement.document import (
    PrivacyStatement,
    Release,
    StatedBound,
    examine,
    releases_of,
    same_releases,
)
from fairveil.statement.form import checksum
from fairveil.statement.words import HEADS, items, table, table_lines

PROMISE = Promise(2.0, 1e-6)
JOINT = Composed((Gaussian(57.0), Gaussian(87.5)))
ANSWERS: list[tuple[tuple[str, ...], Event]] = [
    (("cell counts",), Gaussian(29.0)),
    *[(("gradient sum", "prediction histogram"), JOINT)] * 120,
    (("prediction histogram",), Gaussian(29.0)),
]
BOUNDS = [
    StatedBound("gradient sum", "L2", 2.0, "gradients are clipped to norm 2", "library default")
]


def named(**more: Any) -> PrivacyStatement:
    events = [event for _, event in ANSWERS]
    return PrivacyStatement.of(
        PROMISE, events, plan=events, releases=releases_of(ANSWERS), bounds=BOUNDS, **more
    )


def test_one_line_a_kind_with_what_was_asked_and_how_often() -> None:
    assert releases_of(ANSWERS) == (
        Release("cell counts", "Gaussian", (29.0,), "all rows", 1),
        Release("gradient sum", "Gaussian", (57.0,), "all rows", 120),
        Release("prediction histogram", "Gaussian", (87.5,), "all rows", 120),
        Release("prediction histogram", "Gaussian", (29.0,), "all rows", 1),
    )


def test_text_is_a_table_and_never_a_nest_of_brackets() -> None:
    lines = str(named()).splitlines()
    at = lines.index("Mechanisms:")
    assert [re.split(r"  +", line.strip()) for line in lines[at + 1 : at + 6]] == [
        list(HEADS),
        ["cell counts (Gaussian noise)", "29", "L2", "all rows", "1"],
        ["gradient sum (Gaussian noise)", "57", "L2 2", "all rows", "120"],
        ["prediction histogram (Gaussian noise)", "87.5", "L2", "all rows", "120"],
        ["prediction histogram (Gaussian noise)", "29", "L2", "all rows", "1"],
    ]
    assert "together (" not in str(named())
    assert "together (" not in dict(items(named()))["Mechanisms"]


def test_without_names_the_same_is_made_of_the_events() -> None:
    events = [event for _, event in ANSWERS]
    bare = PrivacyStatement.of(PROMISE, events, plan=events)
    assert "releases" not in bare.to_dict()
    assert [row[0] for row in table(bare)] == ["Gaussian noise"] * 3
    assert [row[-1] for row in table(bare)] == ["2", "120", "120"]
    assert same_releases(named().releases, bare.events)


def test_every_event_has_a_line() -> None:
    inner = Gaussian(9.0)
    events: list[Event] = [
        *(
            inner,
            Laplace(2.0),
            DiscreteLaplace(2.0, 3),
            Exponential(0.5),
            Pure(0.5),
        ),
        *(
            Approximate(0.5, 1e-9),
            ZeroConcentrated(0.1),
            PerCell(((3.0, 4.0),), (1.0,)),
            NonPrivate(),
        ),
        *(
            PoissonSampled(0.1, inner),
            VisiblySampled(0.1, inner),
            OnPart(inner, 1, 3),
            PrivateSelection(inner, 5.0, 1.0),
        ),
    ]
    lines = releases_of(((), event) for event in (*events, NoOp(), Repeated(inner, 0)))
    assert len(lines) == len(events)
    statement = PrivacyStatement.of(Promise(float("inf"), 0.0), events)
    words = "\n".join(table_lines(statement))
    for expected in (
        *(
            "a secret random batch, each row with probability 0.1",
            "that can be seen",
            "one of 3 fixed parts",
            "best of a random",
        ),
        *(
            "epsilon 0.5",
            "rho 0.1",
            "something protected, exactly",
            "3, 4",
            "discrete Laplace noise",
        ),
    ):
        assert expected in words


def test_batches_hold_several_queries_of_one_round() -> None:
    answer = PoissonSampled(0.25, JOINT)
    lines = releases_of([(("gradient sum", "prediction histogram"), answer)] * 10)
    assert [(line.name, line.times) for line in lines] == [
        ("gradient sum", 10),
        ("prediction histogram", 10),
    ]
    assert {line.rows for line in lines} == {
        "a secret random batch, each row with probability 0.25"
    }


def test_names_that_do_not_fit_one_to_one_stand_at_every_line() -> None:
    (line,) = releases_of([(("one", "two", "three"), Gaussian(3.0))])
    assert line.name == "one and two and three"
    (line,) = releases_of([(("one",), Repeated(Gaussian(3.0), 4))])
    assert (line.name, line.times) == ("one", 4)


def test_guarantee_2_a_table_of_other_releases_contradicts_its_statement() -> None:
    statement = named()
    assert statement.check() == []
    events = [event for _, event in ANSWERS]
    first = statement.releases[0]
    for wrong in (
        replace(first, times=2),
        replace(first, numbers=(290.0,)),
        replace(first, mechanism="Laplace"),
    ):
        others = (wrong, *statement.releases[1:])
        with pytest.raises(StatementError, match="releases"):
            PrivacyStatement.of(PROMISE, events, plan=events, releases=others)
        found = replace(statement, releases=others).check()
        assert [finding.sentence for finding in found] == [
            "the table of releases is not that of the events"
        ]
        assert found[0].grave


def test_files_hold_it_and_files_without_it_are_read() -> None:
    statement = named()
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    values = json.loads(statement.to_json())
    del values["releases"]
    old = json.dumps(values | {"checksum": checksum(values)})
    read, found = examine(old)
    assert not [one for one in found if one.grave]
    assert [row[1:] for row in table(read)] == [
        *(
            ("29", "L2", "all rows", "2"),
            ("57", "L2", "all rows", "120"),
            ("87.5", "L2", "all rows", "120"),
        ),
    ]
    values["releases"] = [
        {"name": "a\nb", "mechanism": "Gaussian", "numbers": [1.0], "rows": "all", "times": 1}
    ]
    with pytest.raises(StatementError):
        examine(json.dumps(values | {"checksum": checksum(values)}))


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_a_fit_names_what_it_asked() -> None:
    rng = np.random.default_rng(0)
    X, A = rng.normal(size=(300, 2)), rng.integers(2, size=300)
    y = (X.sum(axis=1) > 0).astype(int)
    clf = fv.FairClassifier(
        "demographic_parity:0.3", solver=fv.PrimalDual(rounds=5), random_state=0
    ).fit(X, y, sensitive_features=A)
    told = {row[0]: row[-1] for row in table(clf.privacy_)}
    # of the fit, and of what it is compared with
    assert int(told["gradient sum (Gaussian noise)"]) >= 5
    assert "cell counts (Gaussian noise)" in told
    post = fv.FairPostProcessor(constraints="demographic_parity:0.3", random_state=0).fit(
        X, y, sensitive_features=A
    )
    rows = [row[0] for row in table(post.privacy_)]
    assert "gradient sum (Gaussian noise)" in rows
    assert "histogram of attached codes (discrete Laplace noise)" in rows


def test_what_is_known_by_an_epsilon_is_not_a_noise_multiplier() -> None:
    statement = PrivacyStatement.of(Promise(1.0, 0.0), [Exponential(0.5)], plan=[Exponential(0.5)])
    assert table(statement) == (
        ("a choice by the exponential mechanism", "epsilon 0.5", "range", "all rows", "1"),
    )


def test_nothing_read_has_no_table() -> None:
    statement = PrivacyStatement.of(PROMISE, [])
    assert table(statement) == ()
    assert "Mechanisms: nothing that is protected was read." in str(statement)
