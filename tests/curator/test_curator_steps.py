"""The steps of a long run: what is worked out once, drawn side by side or shared out changes no bit
and no bound."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import plain_totals as reference
import pytest

from fairveil.core import threads
from fairveil.core.events import Composed, Gaussian
from fairveil.core.noise import symmetric_gaussians
from fairveil.core.passes import public_scales, totals
from fairveil.core.pricing import Measurement
from fairveil.core.sums import columns_of
from fairveil.curator import (
    CellCounts,
    Curator,
    GradientSum,
    GramMatrices,
    Linear,
    Poisson,
    PredictionHistogram,
    RowCount,
    describe,
)
from fairveil.errors import InputError, PrivacyError
from fairveil.privacy import NoiseSource, Promise

WIDE = Promise(1e5, 1e-6)
WIDTH = 1 + 3 + 4 + 3


def asks_of(rows, weights, shift=0.0, other=None):
    cells = rows.cells()
    model = Linear(weights)
    costs = np.linspace(-1, 1, cells.count * 2).reshape(cells.count, 1, 2) + shift
    if model.many:
        costs = np.broadcast_to(costs, (model.models, *costs.shape))
    return [
        (GradientSum(model, 0.8, cells, costs), 3.0),
        (PredictionHistogram(model if other is None else Linear(other), cells), 4.0),
    ]


# -- noise -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_guarantee_3_each_ask_of_a_joint_answer_has_the_noise_of_its_own_stream(rows_of, relation):
    """The exact total, and noise of the stated size from the stream of the release and the place:
    what is drawn side by side is what each stream gives alone."""
    rows, promise = rows_of(n=60), Promise(1e5, 1e-6, neighbours=relation)
    cells, layout = rows.cells(), rows.layout
    counts, gram = CellCounts(cells), GramMatrices(None, 1.0)
    by_cell = np.geomspace(1.0, 1e3, cells.count)
    asked = [
        Measurement(counts, 12.5),
        Measurement(counts, 3.0, "discrete-laplace"),
        Measurement(gram, 3.0),
        Measurement(counts, by_cell),
        Measurement(GradientSum(Linear(np.zeros(WIDTH)), 1.0), 2.0**18),
    ]
    curator, source = Curator(rows, promise, noise=NoiseSource.seeded(1)), NoiseSource.seeded(1)
    for number in range(2):  # the second release is of what was laid out for the first
        for place, answer in enumerate(curator.answer(asked)):
            one, stream = asked[place], source.stream("noise", number, place)
            scale = one.question.scale(layout, None, one.order)
            (total,) = totals([(one.question, [scale])], rows, rows.blocks())
            far, n = scale.bound.sensitivity(relation) / scale.unit, total[0].size
            if place in (0, 4):
                noise = stream.rounded_gaussian(float(one.multiplier) * far, n)
            elif place == 1:
                noise = stream.discrete_laplace(3.0 * round(far), n)
            elif place == 2:
                noise = symmetric_gaussians(stream, 3.0 * far, total[0].shape)
            else:
                noise = stream.rounded_gaussian(by_cell * (scale.bound.largest / scale.unit))
            np.testing.assert_array_equal(
                answer, (total[0] + noise.reshape(total[0].shape)) * scale.unit
            )


@pytest.mark.parametrize("models", [2, 3, 9, 130])
@pytest.mark.parametrize("batch", [None, 0.3])
def test_each_model_of_a_panel_gets_what_it_gets_alone(rows_of, models, batch):
    """Side by side or one by one, with noise from a source each: bit for bit."""
    rows = rows_of(n=300)
    weights = np.random.default_rng(0).normal(size=(models, 1, WIDTH))
    rate = [] if batch is None else [Poisson(batch)]
    panel = Curator(
        rows, WIDE, noise=[NoiseSource.seeded(m if batch is None else 0) for m in range(models)]
    )
    steps = [panel.answer(asks_of(rows, weights + step), *rate) for step in range(2)]
    for m in {0, models // 2, models - 1}:
        solo = Curator(rows, WIDE, noise=NoiseSource.seeded(m if batch is None else 0))
        for step in range(2):
            alone = solo.answer(asks_of(rows, weights[m] + step), *rate)
            for many, one in zip(steps[step], alone, strict=True):
                np.testing.assert_array_equal(many[m], one)


# -- what is worked out once -----------------------------------------------------------------------


@pytest.mark.parametrize("models", [None, 4])
def test_an_ask_made_again_is_the_ask_made_anew(rows_of, models):
    """The same event, key and answer to the bit; what would change the key is refused."""
    rows = rows_of(n=200)
    shape = (WIDTH,) if models is None else (models, 1, WIDTH)
    first = [Measurement(*measurement) for measurement in asks_of(rows, np.zeros(shape))]
    weights = np.random.default_rng(1).normal(size=shape)
    anew = [Measurement(*measurement) for measurement in asks_of(rows, weights, shift=0.5)]
    model = Linear(weights)
    gradient, histogram = first[0].question, first[1].question
    again = [
        first[0].about(gradient.at(model=model, cell_costs=anew[0].question.cell_costs)),
        first[1].about(histogram.at(model=model)),
    ]
    one, other = (Curator(rows, WIDE, noise=NoiseSource.seeded(0)) for _ in range(2))
    for found, wanted in zip(one.answer(again), other.answer(anew), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert [measurement.key for measurement in again] == [measurement.key for measurement in anew]
    assert one.log.events == other.log.events
    for wrong in (Linear(np.zeros(WIDTH - 1)), Linear(np.zeros(shape), 2.0)):
        with pytest.raises(InputError, match="new question"):
            histogram.at(model=wrong)
    with pytest.raises(InputError, match="new question"):
        gradient.at(model=model, cell_costs=None)
    with pytest.raises(InputError, match="finite numbers"):
        gradient.at(model=model, cell_costs=np.full_like(gradient.cell_costs, np.nan))
    with pytest.raises(InputError, match="made by `at`"):
        first[1].about(PredictionHistogram(model, rows.cells()))


@pytest.mark.parametrize(
    "kind", [{}, {"weights": True}, {"sparse": True}, {"dtype": np.float32}, {"classes": 3}]
)
@pytest.mark.parametrize("rate", [0.01, 0.9])
def test_a_batch_read_in_place_totals_as_one_gathered(rows_of, kind, rate):
    rows = rows_of(n=3000, **kind)
    cap = rows.max_sample_weight if rows.weighted else None
    outputs = 3 if kind.get("classes") == 3 else 1
    model, cells = (
        Linear(np.random.default_rng(0).normal(size=(outputs, WIDTH)), 1.3),
        rows.cells("marginal"),
    )
    costs = np.random.default_rng(1).normal(size=(cells.count, max(2, outputs), max(2, outputs)))
    index = NoiseSource.seeded(2).stream("sampling", 0).poisson_batch(3000, rate)
    questions = [
        GradientSum(model, 0.8, cells, costs),
        PredictionHistogram(model, cells, "soft", by_label=True),
        RowCount(),
    ]
    measurements = [(question, [question.scale(rows.layout, cap)]) for question in questions]
    (gathered,) = rows.drawn(index)
    assert gathered.rows == len(index)
    for run in (None, 1, 3):
        found = totals(measurements, rows, rows.drawn(index), run)
        for one, other in zip(found, totals(measurements, rows, [gathered]), strict=True):
            np.testing.assert_array_equal(one, other)


def test_steps_with_the_same_keys_but_another_model_beside(rows_of):
    """Whether two questions share a pass hangs on the model object, which is no part of a key."""
    rows = rows_of()
    rng = np.random.default_rng(3)
    first, second, third = rng.normal(size=(3, WIDTH))
    curator = Curator(rows, WIDE, noise=NoiseSource.seeded(0))
    steps = [
        asks_of(rows, first),
        asks_of(rows, second, 0.5),
        asks_of(rows, second, 0.5, third),
        asks_of(rows, third),
    ]
    found = [curator.answer(measurements) for measurements in steps]
    for measurements, answers in zip(steps, found, strict=True):
        for (question, multiplier), answer in zip(measurements, answers, strict=True):
            exact = sum(reference.total(question, block) for block in rows.blocks())
            assert np.abs(answer - exact).max() < 8 * multiplier
    assert curator.log.events == (curator.describe(steps[0]),) * 4


@pytest.mark.parametrize("joint", [False, True])
def test_a_plan_written_out_step_by_step_is_followed_at_any_length(rows_of, joint):
    """Each step is compared with the plan's own event, equal and not the same object; another is
    refused at once."""
    rows = rows_of(n=30)
    event = describe([(RowCount(), 50.0)], rows.layout, WIDE)
    steps = [
        Composed((Gaussian(50.0), Gaussian(60.0))) if joint else Gaussian(50.0) for _ in range(400)
    ]
    measurements = (
        [(RowCount(), 50.0), (CellCounts(rows.cells()), 60.0)] if joint else [(RowCount(), 50.0)]
    )
    curator = Curator(rows, WIDE, plan=[*steps, Gaussian(51.0)], noise=NoiseSource.seeded(0))
    for _ in steps:
        curator.answer(measurements)
    with pytest.raises(PrivacyError, match="plan's next event"):
        curator.answer(measurements)
    assert len(curator.log) == 400
    curator.answer([(RowCount(), 51.0)])
    with pytest.raises(PrivacyError, match="the plan is done"):
        curator.answer(measurements)
    curator.finish()
    assert event == Gaussian(50.0)


# -- threads ---------------------------------------------------------------------------------------


def in_pieces(job, rows, wanted=None):
    def jobs():
        for a, b in threads.cut(rows, rows, wanted):
            yield rows if a == 0 else 0, lambda out, a=a, b=b: out.append(job(a, b))

    return [one for part in threads.in_line(jobs(), list, wanted) for one in part]


@pytest.mark.parametrize("wanted", [None, 1, 2, 7])
@pytest.mark.parametrize("rows", [1, 5, 40_000, 300_001])
def test_pieces_cover_every_row_once(rows, wanted):
    pieces = sorted(in_pieces(lambda a, b: (a, b), rows, wanted))
    assert pieces[0][0] == 0
    assert pieces[-1][1] == rows
    assert all(one[1] == other[0] for one, other in itertools.pairwise(pieces))


def test_a_thread_that_comes_late_is_not_waited_for(monkeypatch):
    """With every helper held up elsewhere the caller does all pieces itself; an error in a piece
    comes out."""
    monkeypatch.setattr(threads, "CORES", 2)
    threads._pool.cache_clear()
    held = threading.Event()
    try:
        late = [threads._pool(threads.os.getpid()).submit(held.wait, 600) for _ in range(2)]
        assert len(in_pieces(lambda a, b: (a, b), 100_000)) > 2
        assert not any(helper.done() for helper in late)
        with pytest.raises(ZeroDivisionError):
            in_pieces(lambda a, b: a // 0, 100_000)
    finally:
        held.set()
        threads._pool.cache_clear()


# -- bounds over public rows -----------------------------------------------------------------------


def through(p, costs, sharpness):
    if p.shape[1] == 1:
        return sharpness * p * (1 - p) * costs
    return sharpness * p * (costs - (p * costs).sum(axis=1, keepdims=True))


def sizes_and_moves(question, rows, m=0):
    """Weight x |row| x (largest residual, largest move) of each row in plain NumPy, from
    `public_scale`'s formulas."""
    sizes, moves = [], []
    for block in rows.blocks():
        alone = GradientSum(question.model, loss=question.loss, loss_weight=question.loss_weight)
        size = np.linalg.norm(reference.residuals(alone, block, m), axis=1)
        move = np.zeros(block.rows)
        row = np.linalg.norm(reference.dense(block), axis=1) * reference.row_weights(block)
        if question.cell_costs is not None:
            sharpness = question.model.sharpness
            p = reference.probabilities(
                reference.dense(block) @ question.model.array[m].T, sharpness
            )
            costs, told = reference.costs_of(question, m)
            costs = costs.reshape(-1, told, p.shape[1])
            labels = block.labels if told > 1 else np.zeros(block.rows, int)
            for members in columns_of(question.cells):
                each = [through(p, costs[a, labels], sharpness) for a in members]
                size = size + np.max([np.linalg.norm(one, axis=1) for one in each], axis=0)
                pairs = [np.linalg.norm(a - b, axis=1) for a, b in itertools.combinations(each, 2)]
                move = move + np.max(pairs, axis=0, initial=0.0)
        sizes.append(size * row)
        moves.append(move * row)
    return np.concatenate(sizes).max(), np.concatenate(moves).max()


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize("loss", ["none", "log"])
@pytest.mark.parametrize("by_label", [False, True])
@pytest.mark.parametrize("kind", [{}, {"weights": True}, {"sparse": True}])
def test_guarantee_1_of_public_scale_the_largest_over_rows(
    rows_of, classes, mode, loss, by_label, kind
):
    """Never below the plain NumPy maxima, and above by no more than rounding and the grid."""
    rows = rows_of(classes=classes, far=False, **kind)
    rng = np.random.default_rng(7)
    outputs = 1 if classes == 2 else classes
    cells = rows.cells(mode)
    model = Linear(rng.normal(size=(2, outputs, WIDTH)), sharpness=1.7)
    costs = rng.normal(size=(2, cells.count, classes if by_label else 1, classes))
    question = GradientSum(model, None, cells, costs, loss, 0.7)
    for m, scale in enumerate(public_scales(question, rows)):
        size, move = sizes_and_moves(question, rows, m)
        assert size <= scale.bound.norm <= size * (1 + 1e-7)
        assert move <= scale.bound.diameter <= move + size * 1e-7


@pytest.mark.parametrize("costs", [False, True])
def test_guarantee_1_of_public_scale_without_cells_and_for_squared_loss(rows_of, costs):
    rows = rows_of(classes=2, far=False)
    model = Linear(np.linspace(-1, 1, WIDTH))
    question = (
        GradientSum(model, None, None, np.ones((1, 1, 2)) * [0.0, 0.3])
        if costs
        else GradientSum(model)
    )
    (scale,) = public_scales(question, rows)
    size, _ = sizes_and_moves(question, rows)
    assert size <= scale.bound.norm <= size * (1 + 1e-7)
    rows = rows_of(regression=True, far=False)
    question = GradientSum(
        Linear(np.linspace(-1, 1, WIDTH)[np.newaxis]), loss="squared", loss_weight=0.3
    )
    for exact in (False, True):
        (scale,) = public_scales(question, rows, exact=exact)
        size, _ = sizes_and_moves(question, rows)
        assert size <= scale.bound.norm <= size * (1 + 1e-7)


@pytest.mark.parametrize("classes", [2, 5])
def test_guarantee_2_of_public_scale_order_ranges_and_threads_change_no_bit(rows_of, classes):
    order = np.random.default_rng(5).permutation(700)
    rng = np.random.default_rng(8)
    outputs = 1 if classes == 2 else classes
    model = Linear(rng.normal(size=(outputs, WIDTH)), sharpness=0.6)
    found = set()
    for rows in (rows_of(classes=classes), rows_of(classes=classes, order=order)):
        cells = rows.cells()
        question = GradientSum(
            model, None, cells, np.linspace(-1, 1, cells.count * classes).reshape(-1, 1, classes)
        )
        for run in (None, 1, 2, 5):
            (scale,) = public_scales(question, rows, threads=run)
            found.add((scale.bound.norm, scale.bound.diameter, scale.exponent))
    assert len(found) == 1


def test_guarantee_1_of_public_scale_rows_that_overflow_are_told(rows_of):
    rows = rows_of()
    costs = np.full((6, 1, 2), 1e305) * [-0.5, 0.5]
    costs[::2] *= -1
    with pytest.raises(InputError, match="overflow"):
        public_scales(GradientSum(Linear(np.zeros(WIDTH)), None, rows.cells(), costs, "none"), rows)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_the_grid_of_exact_answers_holds_any_model(rows_of, classes, mode):
    """Its norm is never below a row's gradient, and its answers are as fine as they were with
    maxima over rows."""
    rows = rows_of(classes=classes)
    cells = rows.cells(mode)
    rng = np.random.default_rng(9)
    outputs = 1 if classes == 2 else classes
    for stretch in (0.0, 1e-3, 1.0, 1e3):
        model = Linear(rng.normal(size=(outputs, WIDTH)) * stretch, sharpness=2.5)
        costs = rng.normal(size=(cells.count, classes, classes)) * 3
        for loss in ("none", "log"):
            question = GradientSum(model, None, cells, costs, loss, 0.8)
            (exact,) = public_scales(question, rows, exact=True)
            size, _ = sizes_and_moves(question, rows)
            assert exact.bound.norm >= size * (1 - 1e-12)
            total = totals([(question, [exact])], rows, rows.blocks())[0][0] * exact.unit
            wanted = sum(reference.total(question, block) for block in rows.blocks())
            assert np.abs(total - wanted).max() < 1e-9 * rows.largest_row
