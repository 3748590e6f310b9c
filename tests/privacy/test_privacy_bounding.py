"""A plan may say the worst person's noise, and the log everybody's."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

from fairveil.core import mechanisms as leaves
from fairveil.core.cost import covers
from fairveil.core.events import (
    Composed,
    Event,
    Gaussian,
    Laplace,
    NoOp,
    OnPart,
    PerCell,
    PoissonSampled,
    Repeated,
    VisiblySampled,
)
from fairveil.core.promise import NEIGHBOURS, Neighbours
from fairveil.curator import CellCounts, Curator, Journal, Poisson, Rows, describe
from fairveil.errors import PrivacyError
from fairveil.privacy import NoiseSource, PrivacyStatement, Promise
from fairveil.statement import form
from fairveil.statement.rule import is_prefix as is_beginning

PROMISES = {
    "add-remove": Promise(20.0, 1e-6),
    "replace-one": Promise(20.0, 1e-6, neighbours="replace-one"),
    "sensitive features": Promise(20.0, 1e-6, protects="sensitive_features"),
}
FINER = [4.0, 6.0, 9.0]
both = pytest.mark.parametrize("neighbours", NEIGHBOURS)
every_promise = pytest.mark.parametrize("name", PROMISES)
CELLS = PerCell(((4.0, 6.0, 9.0), (7.0, 8.0, 7.0)), (2.0, 1.0))


def bound_of(event: PerCell, neighbours: Neighbours) -> Gaussian:
    return Gaussian(leaves.inventory(event, neighbours).gaussian ** -0.5)


def less(event: Gaussian) -> Gaussian:
    """A bound that is too small by one part in a thousand."""
    return Gaussian(event.noise_multiplier * 1.001)


@both
def test_an_event_covers_itself_and_what_has_no_less_noise_for_anybody(
    neighbours: Neighbours,
) -> None:
    bound = bound_of(CELLS, neighbours)
    assert covers(bound, CELLS, neighbours)
    assert not covers(less(bound), CELLS, neighbours)
    assert not covers(CELLS, bound, neighbours)
    assert not covers(Gaussian(4.0), Gaussian(5.0), neighbours)
    assert covers(Laplace(2.0), Laplace(2.0), neighbours)
    assert not covers(Laplace(2.0), Gaussian(200.0), neighbours)


@both
def test_on_a_secret_batch_c_and_d_are_bounds(neighbours: Neighbours) -> None:
    c, d = (math.sqrt(leaves.inventory(CELLS, one).gaussian) for one in NEIGHBOURS)
    spreads = None if neighbours == "add-remove" else (min(2.0, d / c), 2.0)
    wide = PoissonSampled(0.1, Composed((Gaussian(1 / c), Gaussian(8.0))), spreads)
    done = PoissonSampled(0.1, Composed((CELLS, Gaussian(8.0))))
    assert covers(wide, done, neighbours)
    assert not covers(PoissonSampled(0.2, wide.event, spreads), done, neighbours)
    assert not covers(
        PoissonSampled(0.1, Composed((Gaussian(1.001 / c), Gaussian(8.0))), spreads),
        done,
        neighbours,
    )
    assert not covers(Gaussian(0.1), done, neighbours)


def test_under_replace_one_a_secret_batch_needs_the_spread_too() -> None:
    done = PoissonSampled(0.1, PerCell(((2.0, 2.0),), (2.0,), (1,)))
    assert covers(PoissonSampled(0.1, Gaussian(2.0)), done, "replace-one")
    assert not covers(PoissonSampled(0.1, Gaussian(2.0), (1.0,)), done, "replace-one")


def test_on_a_visible_batch_and_on_a_part() -> None:
    bound = bound_of(CELLS, "replace-one")
    for wrap in (lambda event: VisiblySampled(0.1, event), lambda event: OnPart(event, 1, 3)):
        joint = Composed((bound, Gaussian(9.0)))
        assert covers(wrap(joint), wrap(Composed((CELLS, Gaussian(9.0)))), "replace-one")
        assert not covers(
            wrap(Composed((less(bound), Gaussian(9.0)))),
            wrap(Composed((CELLS, Gaussian(9.0)))),
            "replace-one",
        )
    planned, done = (OnPart(Composed((one, Laplace(9.0))), 1, 3) for one in (bound, CELLS))
    assert not covers(planned, done, "replace-one")
    assert not covers(OnPart(bound, 0, 3), OnPart(CELLS, 1, 3), "replace-one")
    assert not covers(VisiblySampled(0.2, bound), VisiblySampled(0.1, CELLS), "replace-one")


@both
def test_a_planned_release_by_cell_bounds_itself_alone(neighbours: Neighbours) -> None:
    """Two such releases may be good for other people: their price together is no bound for two that
    are bad for the same."""
    one, two = PerCell(((3.0, 90.0),), (1.0,)), PerCell(((90.0, 3.0),), (1.0,))
    apart, same = (
        leaves.inventory(Composed(events), neighbours).gaussian
        for events in ((one, two), (one, one))
    )
    assert bound_of(one, neighbours) == bound_of(two, neighbours)
    assert (apart < same) == (neighbours == "add-remove")
    assert not covers(one, two, neighbours)
    assert not covers(OnPart(one, 0, 2), OnPart(two, 0, 2), neighbours)
    assert not covers(VisiblySampled(1.0, one), VisiblySampled(1.0, two), neighbours)


def is_prefix(log: Any, plan: Any, neighbours: str) -> bool:
    """Whether these events are how those begin, as a checker of statements reads them."""
    both = [form.event(Composed(tuple(one)).to_dict()) for one in (log, plan)]
    return is_beginning(both[0], both[1], neighbours)


@both
def test_a_finer_log_begins_the_plan(neighbours: Neighbours) -> None:
    bound = bound_of(CELLS, neighbours)
    plan = (Gaussian(30.0), Repeated(Composed((bound, Gaussian(40.0))), 4))
    log: list[Event] = [Gaussian(30.0), *[CELLS, Gaussian(40.0)] * 4]
    for length in range(len(log) + 1):
        assert is_prefix((NoOp(), *log[:length]), plan, neighbours)
    assert not is_prefix((*log, CELLS), plan, neighbours)
    coarser = (Gaussian(30.0), PerCell(((3.9, 6.0, 9.0), (7.0, 8.0, 7.0)), (2.0, 1.0)))
    assert not is_prefix(coarser, plan, neighbours)


# With a curator
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def rows() -> Rows:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 60)
    return Rows.from_arrays(
        rng.normal(size=(60, 2)), rng.integers(0, 2, 60), [a], classes=(0, 1), groups=[(0, 1, 2)]
    )


def planned(rows: Rows, promise: Promise, rounds: int = 3) -> list[Event]:
    """One common release, then rounds of which only the worst person's noise is known
    in advance."""
    event = describe([(CellCounts(rows.cells()), FINER)], rows.layout, promise)
    assert isinstance(event, PerCell)
    return [Gaussian(20.0), *[bound_of(event, promise.neighbours)] * rounds]


def curator_of(rows: Rows, promise: Promise, **options) -> Curator:
    return Curator(
        rows, promise, plan=planned(rows, promise), noise=NoiseSource.seeded(0), **options
    )


@every_promise
def test_a_log_by_cell_follows_a_plan_of_bounds_to_its_end(rows, name: str) -> None:
    promise = PROMISES[name]
    curator = curator_of(rows, promise)
    counts = CellCounts(rows.cells())
    curator.answer([(counts, 20.0)])
    for multipliers in (FINER, FINER[::-1], FINER):
        curator.answer([(counts, multipliers)])
    curator.finish()
    assert [type(event) for event in curator.log.events] == [Gaussian, PerCell, PerCell, PerCell]
    curator.log.reconcile(planned(rows, promise), promise.neighbours)
    with pytest.raises(PrivacyError, match="number 1"):
        curator.log.reconcile(planned(rows, promise))
    statement = PrivacyStatement.of_run(curator)
    assert statement.check() == []
    assert PrivacyStatement.from_json(statement.to_json()) == statement


@every_promise
@pytest.mark.parametrize("cell", range(3))
def test_one_group_above_the_bound_is_refused_and_nothing_is_charged(
    rows, name: str, cell: int
) -> None:
    curator = curator_of(rows, PROMISES[name])
    counts = CellCounts(rows.cells())
    curator.answer([(counts, 20.0)])
    coarser = [3.9 if k == cell else 4.0 for k in range(3)]
    with pytest.raises(
        PrivacyError,
        match=r"^answer: expected the plan's next event.* or one by cell with no less noise",
    ):
        curator.answer([(counts, coarser)])
    assert len(curator.log) == 1
    for _ in range(3):
        curator.answer([(counts, FINER)])
    with pytest.raises(PrivacyError, match="the plan is done"):
        curator.answer([(counts, [90.0, 90.0, 90.0])])


@every_promise
def test_a_run_goes_on_after_a_finer_log(rows, name: str, tmp_path) -> None:
    """The journal says what was done, not only what was planned."""
    promise, counts = PROMISES[name], CellCounts(rows.cells())
    path = tmp_path / "j"
    one = curator_of(rows, promise, earlier=Journal(path))
    one.answer([(counts, 20.0)])
    one.answer([(counts, FINER)])
    one.close()
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    told = [line["event"]["kind"] for line in lines if "number" in line]
    assert told == ["gaussian", "per-cell"]
    two = curator_of(rows, promise, earlier=Journal(path))
    assert two.log.events == one.log.events
    two.answer([(counts, 20.0)])
    two.answer([(counts, FINER)])  # both are given again
    two.answer([(counts, FINER[::-1])])
    two.answer([(counts, two.log.events[1].multipliers[0])])
    two.finish()
    assert PrivacyStatement.of_run(two).check() == []
    assert [type(entry.event) for entry in Journal(path).entries] == [
        Gaussian,
        PerCell,
        PerCell,
        PerCell,
    ]


@every_promise
def test_an_earlier_log_that_is_coarser_is_refused(rows, name: str, tmp_path) -> None:
    promise, counts = PROMISES[name], CellCounts(rows.cells())
    path = tmp_path / "j"
    one = curator_of(rows, promise, earlier=Journal(path))
    one.answer([(counts, 20.0)])
    one.answer([(counts, FINER)])
    one.close()
    path.write_bytes(path.read_bytes().replace(b"[[4.0,6.0,9.0]]", b"[[3.9,3.9,9.0]]"))
    with pytest.raises(PrivacyError, match=r"^earlier: expected the plan's next event"):
        curator_of(rows, promise, earlier=Journal(path))
    path.write_bytes(path.read_bytes().replace(b'"number":1', b'"number":0'))
    with pytest.raises(PrivacyError, match="a journal as it was written"):
        Journal(path)


def test_a_torn_line_of_a_finer_answer_ends_the_run(rows, tmp_path) -> None:
    promise, counts = PROMISES["add-remove"], CellCounts(rows.cells())
    path = tmp_path / "j"
    one = curator_of(rows, promise, earlier=Journal(path))
    one.answer([(counts, 20.0)])
    one.answer([(counts, FINER)])
    one.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b"per-cell")])
    with pytest.raises(PrivacyError, match="expected whole lines, got 'one that was cut short'"):
        curator_of(rows, promise, earlier=Journal(path))


@pytest.mark.parametrize("name", ["add-remove", "replace-one"])
def test_on_secret_batches_too(rows, name: str) -> None:
    promise, counts = PROMISES[name], CellCounts(rows.cells())
    even, finer = (
        describe([(counts, m)], rows.layout, promise, Poisson(0.5)) for m in ([4.0] * 3, FINER)
    )
    curator = Curator(rows, promise, plan=[Repeated(even, 3)], noise=NoiseSource.seeded(0))
    for multipliers in itertools.islice(itertools.permutations(FINER), 3):
        curator.answer([(counts, multipliers)], Poisson(0.5))
    curator.finish()
    assert finer in curator.log.events
    assert PrivacyStatement.of_run(curator).check() == []
