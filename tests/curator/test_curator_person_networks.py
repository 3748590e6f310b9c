"""Networks under a guarantee for persons: enumerated persons, sums over chunks, planted bugs.

The guarantees are those of `core.extra.networks`, with persons in the place of rows. See
`test_curator_persons` for who is enumerated. False alarms: none, nothing is drawn but rows.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from curator_pools import pool
from test_curator_persons import ADDED, MOST, RELATIONS, SENSITIVE, by_person, largest, persons

from fairveil.core.questions import ALONE

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from fairveil.core.extra import torch_gradient  # noqa: E402
from fairveil.core.passes import totals  # noqa: E402
from fairveil.core.pricing import constant_scale  # noqa: E402
from fairveil.curator import (  # noqa: E402
    ByCell,
    Curator,
    Measurement,
    Network,
    NetworkGradient,
    NetworkHistogram,
    Poisson,
    Rows,
)
from fairveil.errors import PrivacyError  # noqa: E402
from fairveil.models import Skeleton  # noqa: E402
from fairveil.privacy import NoiseSource  # noqa: E402
from fairveil.statement.document import PrivacyStatement  # noqa: E402


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Shared(nn.Module):
    """One layer used twice: its rows' gradients are built, not products."""

    def __init__(self, width, outputs):
        super().__init__()
        self.first, self.again = nn.Linear(width, 4), nn.Linear(4, 4)
        self.last = nn.Linear(4, outputs)

    def forward(self, rows):
        hidden = torch.tanh(self.again(torch.tanh(self.first(rows))))
        return self.last(torch.tanh(self.again(hidden)))


def skeleton(rows, classes, kind="products"):
    torch.manual_seed(0)
    width = rows.layout.width
    dense = nn.Sequential(nn.Linear(width, 5), nn.Tanh(), nn.Linear(5, classes))
    return Skeleton.of(dense if kind == "products" else Shared(width, classes), width, classes)


@pytest.mark.parametrize(
    ("classes", "mode", "kind", "options"),
    [
        (2, "product", "products", {}),
        (4, "marginal", "built", {}),
        (2, "marginal", "products", {"weights": True}),
    ],
)
def test_no_person_moves_a_total_further_than_its_bound(classes, mode, kind, options):
    rows = pool(classes, **options)
    cap = rows.max_sample_weight if rows.weighted else None
    people = persons(sum(block.rows for block in rows.blocks()), np.random.default_rng(0))[::3]
    rng = np.random.default_rng(1)
    cells, net = rows.cells(mode), skeleton(rows, classes, kind)
    costs = 5 * rng.normal(size=(cells.count, classes, classes))
    model = Network(net, 3 * rng.normal(size=net.size))
    for question, least in (
        (NetworkGradient(model, 0.3), 0.8),
        (NetworkGradient(model, 0.3, cells, costs), 0.9),
        (NetworkHistogram(model, cells, "soft", by_label=True), 0.4),
    ):
        scales = [constant_scale(question, rows.layout, promise, cap, 2) for promise in RELATIONS]
        assert scales[0] == scales[1]
        moves = by_person(question, scales[0], rows, people)
        for promise, moved in zip(RELATIONS, largest(moves, 2), strict=True):
            bound = scales[0].bound.sensitivity(promise.neighbours)
            assert least * bound < moved * scales[0].unit <= bound, (question.name, promise)
    clipped = constant_scale(NetworkGradient(model, 0.3), rows.layout, ADDED, None).bound
    assert clipped.norm == pytest.approx(0.3, rel=1e-6)  # not three clips


def test_planted_a_clip_by_row_is_caught():
    """The sum of rows that are each clipped by themselves is beyond what is stated."""
    rows = pool(2)
    (whole,) = rows.blocks()
    net = skeleton(rows, 2)
    question = NetworkGradient(Network(net, net.start), 0.05)
    scale = constant_scale(question, rows.layout, ADDED, None)
    worst = 0.0
    for i in range(0, whole.rows, 6):
        total = totals([(question, [scale])], rows, [whole.take(np.full(MOST, i))])[0]
        worst = max(worst, float(np.linalg.norm(total)))
    assert worst * scale.unit > 2.5 * scale.bound.sensitivity("add-remove")


def people_of(many, seed=0):
    """Rows of persons with 1 to 7 rows each, person by person; and where each begins."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 8, many)
    ids = np.repeat(np.arange(many), counts)
    X = (rng.normal(size=(len(ids), 3)) + rng.normal(size=(many, 3))[ids]).astype(np.float32)
    y, a = rng.integers(0, 2, len(ids)), rng.integers(0, 2, len(ids))
    rows = Rows.from_arrays(X, y, [a], classes=[0, 1], groups=[[0, 1]], units=ids)
    coins = NoiseSource.seeded(0).stream("units")
    return rows.by_person(7, coins, adds_by_person=True), np.r_[0, np.cumsum(counts)]


def apart(question, scale, rows, begins):
    """Each person's rows asked by themselves, and added up."""
    (whole,) = rows.blocks()
    parts = [np.arange(a, b) for a, b in itertools.pairwise(begins)]
    return sum(totals([(question, [scale])], rows, [whole.take(part)])[0] for part in parts)


def question_of(rows, clip=0.5):
    net = skeleton(rows, 2)
    return NetworkGradient(Network(net, net.start), clip)


def test_a_persons_rows_in_two_chunks_are_added_before_they_are_clipped():
    """Chunks are of 2,048 rows at most: one of 700 persons stands in two of them, at least."""
    rows, begins = people_of(700)
    question = question_of(rows)
    method = torch_gradient.engine(question.model.skeleton).method
    cuts = [part.stop for part in method.chunks(rows.exact_count)][:-1]
    assert len(set(cuts) - set(begins.tolist())) > 0
    scale = constant_scale(question, rows.layout, ADDED, None)
    (found,) = totals([(question, [scale])], rows, rows.blocks())
    assert (found == apart(question, scale, rows, begins)).all()


def test_planted_a_clip_at_the_end_of_a_chunk_is_caught(monkeypatch):
    rows, begins = people_of(700)
    question = question_of(rows)
    scale = constant_scale(question, rows.layout, ADDED, None)
    right = apart(question, scale, rows, begins)
    add = torch_gradient.Total.add

    def hasty(self, pieces, places):
        add(self, pieces, places)
        self._close()

    monkeypatch.setattr(torch_gradient.Total, "add", hasty)
    (found,) = totals([(question, [scale])], rows, rows.blocks())
    assert (found != right).any()


def test_a_row_that_fails_leaves_its_persons_other_rows_together():
    """User code fails on one row: the chunk is tried by halves, and a person is clipped once."""

    class Picky(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 1)

        def forward(self, rows):
            if bool((rows == 77.0).any()):
                raise ValueError("77")
            return self.inner(rows)

    rows, begins = people_of(30)
    (whole,) = rows.blocks()
    at = int(begins[3])
    net = Skeleton.of(Picky(), 3, 2)
    question = NetworkGradient(Network(net, net.start), 0.5)
    scale = constant_scale(question, rows.layout, ADDED, None)
    others = whole.take(np.delete(np.arange(whole.rows), at))
    (right,) = totals([(question, [scale])], rows, [others])
    whole.numbers[:, at] = 77.0
    (found,) = totals([(question, [scale])], rows, [whole])
    assert (found == right).all()


def test_one_pass_and_batches_of_persons_give_the_bits_of_two_passes():
    rows, _ = people_of(120)
    net = skeleton(rows, 2)
    model = Network(net, net.start)
    measurements = [NetworkGradient(model, 0.5), NetworkHistogram(model, rows.cells(), "hard")]
    scales = [[constant_scale(one, rows.layout, ADDED, None)] for one in measurements]
    pairs = list(zip(measurements, scales, strict=True))
    chosen = np.flatnonzero(np.random.default_rng(1).random(120) < 0.3)
    for blocks in (lambda: rows.blocks(), lambda: rows.of_units(chosen)):
        both = totals(pairs, rows, blocks())
        for one, pair in zip(both, pairs, strict=True):
            assert (one == totals([pair], rows, blocks())[0]).all()


def test_sensitive_features_of_a_person_move_a_sum_by_so_many_rows():
    rows = pool(2)
    cells, net = rows.cells(), skeleton(rows, 2)
    costs = np.random.default_rng(0).normal(size=(cells.count, 2, 2))
    question = NetworkGradient(Network(net, net.start), 0.3, cells, costs, loss="none")
    row = question.scale(rows.layout, None, promise=ALONE).bound.sensitivity("replace-one")
    person = constant_scale(question, rows.layout, SENSITIVE, None).bound.sensitivity("replace-one")
    assert person == pytest.approx(MOST * row, rel=1e-9)


def test_what_differs_by_cell_stays_refused_and_the_rest_is_answered():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 12, 40)
    X, y, a = rng.normal(size=(40, 3)), rng.integers(0, 2, 40), rng.integers(0, 2, 40)
    rows = Rows.from_arrays(X, y, [a], classes=[0, 1], groups=[[0, 1]], units=ids)
    net = skeleton(rows, 2)
    question = NetworkGradient(Network(net, net.start), 0.5)
    plan = [Curator(rows, ADDED).describe([Measurement(question, 5.0)], Poisson(0.5))]
    curator = Curator(rows, ADDED, plan=plan, noise=NoiseSource.seeded(0))
    with pytest.raises(PrivacyError, match="answered by person"):
        curator.describe([Measurement(ByCell(question, curator.cells()), 5.0)])
    assert np.isfinite(curator.answer([Measurement(question, 5.0)], Poisson(0.5))[0]).all()
    (bound,) = PrivacyStatement.of_run(curator).bounds
    assert "a person's gradients are added" in bound.reason
