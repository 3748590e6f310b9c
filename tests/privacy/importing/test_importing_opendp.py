"""Measurements and odometers of OpenDP itself: the guarantee at the distance of two neighbours, and
metrics that bound none."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fairveil.errors import InputError
from fairveil.privacy.events import Approximate, Composed, NoOp, Pure, ZeroConcentrated
from fairveil.privacy.importing import Imported, from_opendp
from fairveil.privacy.importing.opendp import _event

NEEDED = "opendp.prelude"


@pytest.fixture
def dp() -> Any:
    found = pytest.importorskip(NEEDED, reason="OpenDP is not installed")
    found.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    return found


@pytest.fixture
def space(dp: Any) -> Any:
    return dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def read(spent: Any, neighbours: str = "add-remove", rows: int = 1, **more: Any) -> Imported:
    return from_opendp(spent, neighbours=neighbours, rows_per_person=rows, **more)


def test_measurements_become_their_guarantees(dp: Any, space: Any) -> None:
    """Guarantee 1, for each measure."""
    count = space >> dp.t.then_count()
    laplace, gaussian = count >> dp.m.then_laplace(2.0), count >> dp.m.then_gaussian(2.0)
    assert read(laplace).events == Pure(laplace.map(1))
    assert read(laplace, "replace-one").events == Pure(laplace.map(2))
    assert read(laplace, d_in=3).events == Pure(laplace.map(3))
    assert read(laplace, rows=3).price(0.0).epsilon == pytest.approx(laplace.map(3))
    assert read(gaussian).events == ZeroConcentrated(gaussian.map(1))
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), 1e-6)
    assert read(fixed).events == Approximate(*fixed.map(1))
    both = dp.c.make_approximate(gaussian)
    found = read(both).events
    assert found.to_dict()["kind"] in ("composed", "zero-concentrated")
    assert read(both).price(1e-6).epsilon == pytest.approx(read(gaussian).price(1e-6).epsilon)
    assert read(laplace).secure_noise
    assert "MaxDivergence" in read(laplace).notes[0]


def test_an_odometer_says_what_is_lost_so_far(dp: Any, space: Any) -> None:
    odometer = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())
    queryable = odometer([1, 2, 3])
    queryable(space >> dp.t.then_count() >> dp.m.then_laplace(2.0))
    queryable(space >> dp.t.then_count() >> dp.m.then_laplace(4.0))
    assert read(queryable, measure=dp.max_divergence(), d_in=1).events == Pure(
        queryable.privacy_loss(1)
    )
    assert queryable.privacy_loss(1) == pytest.approx(0.75)
    with pytest.raises(InputError, match="measure="):
        read(queryable)


def test_a_metric_that_bounds_no_neighbours_is_refused(dp: Any, space: Any) -> None:
    """Guarantee 2."""
    laplace = space >> dp.t.then_count() >> dp.m.then_laplace(2.0)
    with pytest.raises(InputError, match="at least 2"):
        read(laplace, "replace-one", d_in=1)
    with pytest.raises(InputError, match="at least 1"):
        read(laplace, d_in=0)
    sized = dp.vector_domain(dp.atom_domain(bounds=(0, 9)), size=10), dp.change_one_distance()
    mean = sized >> dp.t.then_metric_unbounded() >> dp.t.then_sum() >> dp.m.then_laplace(30.0)
    assert read(mean, "replace-one").events == Pure(mean.map(1))
    with pytest.raises(InputError, match="one size"):
        read(mean)
    number = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    plain = number >> dp.m.then_laplace(2.0)
    with pytest.raises(InputError, match="d_in"):
        read(plain)
    assert read(plain, d_in=1).events == Pure(plain.map(1))


def test_a_whole_curve_is_refused(dp: Any, space: Any) -> None:
    curve = dp.c.make_zCDP_to_approxDP(space >> dp.t.then_count() >> dp.m.then_gaussian(2.0))
    with pytest.raises(InputError, match="make_fix_delta"):
        read(curve)
    laplace = space >> dp.t.then_count() >> dp.m.then_laplace(2.0)
    with pytest.raises(InputError, match="says its own"):
        read(laplace, measure=dp.max_divergence())


@pytest.mark.parametrize("spent", [None, 1.0, object(), "MaxDivergence"])
def test_what_is_no_measurement_is_refused(spent: Any) -> None:
    with pytest.raises(InputError, match="Measurement"):
        read(spent)


def test_every_measure_that_is_named_has_its_event() -> None:
    assert _event("MaxDivergence", 0.5) == Pure(0.5)
    assert _event("MaxDivergence", 0.0) == NoOp()
    assert _event("Approximate(ZeroConcentratedDivergence)", (0.5, 1e-7)) == Composed(
        (ZeroConcentrated(0.5), Approximate(0, 1e-7))
    )
    assert _event("Approximate(MaxDivergence)", (math.inf, 1e-7)).kind == "non-private"
    for measure, loss in (
        ("RenyiDivergence", 1.0),
        ("Approximate(MaxDivergence)", 1.0),
        ("MaxDivergence", -1.0),
    ):
        with pytest.raises(InputError):
            _event(measure, loss)
