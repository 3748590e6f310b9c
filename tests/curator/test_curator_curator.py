"""The curator: nothing leaves without noise, an event, and room for it."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import plain_totals as reference
import pytest
from scipy import stats

from fairveil.core.events import Gaussian, NonPrivate, Repeated
from fairveil.core.passes import public_scales, totals
from fairveil.curator import (
    CellCounts,
    Curator,
    FeatureSums,
    GradientSum,
    GramMatrices,
    GroupLosses,
    Linear,
    Measurement,
    Poisson,
    PredictionHistogram,
    RowCount,
    RowFunction,
    Rows,
    describe,
)
from fairveil.errors import BudgetError, InputError, MissingBoundError, PrivacyError
from fairveil.facts import Cells
from fairveil.privacy import NoiseSource, Promise, epsilon
from fairveil.statement.document import PrivacyStatement

WIDE = Promise(1000.0, 1e-6)
WEIGHTS = np.linspace(-1, 1, 11)
FALSE_ALARM = 1e-7  # of every statistical test in this file; seeds are fixed


def seeded(rows, promise=WIDE, seed=0, **options):
    return Curator(rows, promise, noise=NoiseSource.seeded(seed), **options)


def noise_of(rows, question, measurement, promise=WIDE, repeats=400, batch=None):
    """What was added to the exact answer, in units of the stated standard deviation, over many
    releases."""
    exact = sum(reference.total(question, block) for block in rows.blocks())
    curator = seeded(
        rows, promise, plan=[Repeated(describe([measurement], rows.layout, promise), repeats)]
    )
    return np.array([(curator.answer([measurement])[0] - exact).ravel() for _ in range(repeats)])


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("make", "sensitivity"),
    [
        (
            lambda cells: CellCounts(cells, by_label=True),
            {"add-remove": 1.0, "replace-one": math.sqrt(2)},
        ),
        (
            lambda cells: PredictionHistogram(Linear(WEIGHTS), cells),
            {"add-remove": 1.0, "replace-one": math.sqrt(2)},
        ),
        (lambda cells: GradientSum(Linear(WEIGHTS), 0.5), {"add-remove": 0.5, "replace-one": 1.0}),
        (lambda cells: FeatureSums(cells, 1.5), {"add-remove": 1.5, "replace-one": 3.0}),
        (
            lambda cells: GroupLosses(Linear(WEIGHTS), cells),
            {"add-remove": 1.0, "replace-one": math.sqrt(2)},
        ),
    ],
)
def test_noise_has_the_stated_scale_and_1_5_times_wrong_is_rejected(
    rows_of, neighbours, make, sensitivity
):
    """Guarantee 3. Chi-square of the variance, false-alarm rate 1e-7; the same test rejects noise
    1.5 times off, both ways."""
    rows = rows_of(n=60)
    question = make(rows.cells())
    promise = Promise(1000.0, 1e-6, neighbours=neighbours)
    drawn = noise_of(rows, question, (question, 3.0), promise)
    stated = 3.0 * sensitivity[neighbours]

    def passes(sd):
        statistic = (drawn**2).sum() / sd**2
        tail = min(stats.chi2.sf(statistic, drawn.size), stats.chi2.cdf(statistic, drawn.size))
        return tail > FALSE_ALARM / 2

    assert passes(stated)
    assert not passes(stated * 1.5)
    assert not passes(stated / 1.5)


def test_every_cell_gets_noise_of_its_own(rows_of):
    """Guarantee 3. No pair of coordinates, of one question or of two in one answer, shares noise
    (the broadcast bug)."""
    rows = rows_of(n=40)
    cells = rows.cells()
    measurements = [
        (CellCounts(cells, by_label=True), 3.0),
        (GradientSum(Linear(WEIGHTS), 0.5), 3.0),
    ]
    curator = seeded(rows, plan=[Repeated(describe(measurements, rows.layout, WIDE), 500)])
    drawn = np.array(
        [np.concatenate([a.ravel() for a in curator.answer(measurements)]) for _ in range(500)]
    )
    correlations = np.corrcoef(drawn.T)
    pairs = correlations[np.triu_indices(len(correlations), 1)]
    limit = stats.norm.isf(FALSE_ALARM / len(pairs) / 2) / math.sqrt(500)
    assert np.abs(pairs).max() < limit * 1.1
    assert len(np.unique(drawn[0])) > 15


def test_gram_noise_is_symmetric_with_half_the_variance_beside_the_diagonal(rows_of):
    rows = rows_of(n=40)
    question = GramMatrices(None, 1.5)
    drawn = noise_of(rows, question, (question, 3.0), repeats=300).reshape(300, 11, 11)
    assert np.allclose(drawn, drawn.swapaxes(1, 2), atol=1e-6)
    i, j = np.triu_indices(11, 1)
    for values, sd in (
        (drawn[:, range(11), range(11)], 6.75),
        (drawn[:, i, j], 6.75 / math.sqrt(2)),
    ):
        statistic = (values**2).sum() / sd**2
        assert (
            min(stats.chi2.sf(statistic, values.size), stats.chi2.cdf(statistic, values.size))
            > FALSE_ALARM / 2
        )


def test_discrete_noise_keeps_counts_whole(rows_of):
    rows = rows_of()
    counts = CellCounts(rows.cells())
    curator = seeded(rows)
    for noise in ("discrete-laplace", "gaussian"):
        (answer,) = curator.answer([Measurement(counts, 5.0, noise)])
        assert (answer == np.rint(answer)).all()


def test_guarantee_2_one_answer_is_one_event(rows_of):
    rows = rows_of()
    curator = seeded(rows)
    curator.answer(
        [(CellCounts(rows.cells()), 3.0), (GradientSum(Linear(WEIGHTS), 1.0), 4.0)], Poisson(0.3)
    )
    curator.answer([(RowCount(), 5.0)], purpose="how many")
    assert len(curator.log) == 2
    assert curator.log.entries[1].purpose == "how many"
    assert PrivacyStatement.of_run(curator).epsilon >= epsilon(curator.log.events, 1e-6) > 0


def test_guarantee_4_a_plan_too_expensive_is_refused_before_the_rows_are_read(rows_of):
    rows, cost = rows_of(), epsilon([Gaussian(4.0)], 1e-6)
    for part in (0.3, 0.99, 1.0 - 1e-9):
        with pytest.raises(BudgetError, match="costs at most epsilon="):
            Curator(rows, Promise(part * cost, 1e-6), plan=[Gaussian(4.0)])
    Curator(rows, Promise(cost, 1e-6), plan=[Gaussian(4.0)])


def test_guarantee_4_answers_follow_the_plan(rows_of):
    rows = rows_of()
    measurement = (RowCount(), 20.0)
    curator = seeded(rows, Promise(1.0, 1e-6), plan=[Repeated(Gaussian(20.0), 2)])
    curator.answer([measurement])
    with pytest.raises(PrivacyError, match="part from the plan"):
        curator.finish()
    with pytest.raises(PrivacyError, match="plan's next event"):
        curator.answer([(RowCount(), 19.0)])
    curator = seeded(rows, Promise(1.0, 1e-6), plan=[Repeated(Gaussian(20.0), 2)])
    curator.answer([measurement])
    curator.answer([measurement])
    with pytest.raises(PrivacyError, match="the plan is done"):
        curator.answer([measurement])
    assert curator.finish() == Repeated(Gaussian(20.0), 2)
    assert len(curator.log) == 2


def test_guarantee_5_an_interrupted_run_leaves_a_log_of_what_was_released(rows_of):
    rows = rows_of()

    def interrupted(block):
        raise KeyboardInterrupt

    plan = [Repeated(Gaussian(30.0), 3)]
    curator = seeded(rows, plan=plan)
    curator.answer([(RowCount(), 30.0)])
    with pytest.raises(KeyboardInterrupt):
        curator.answer([(RowFunction(interrupted, 1, 1.0), 30.0)])
    assert curator.log.events == (Gaussian(30.0),)
    statement = PrivacyStatement.of_run(curator)
    assert statement.events == (Gaussian(30.0),)
    assert statement.plan == (Repeated(Gaussian(30.0), 3),)
    # the plan is charged whole: theory.md#t10
    assert statement.epsilon == pytest.approx(epsilon(plan, 1e-6))
    assert statement.check() == []


def test_sensitive_features_alone_the_rest_is_exact_and_free(rows_of):
    rows = rows_of(far=False)
    cells, model = rows.cells(), Linear(WEIGHTS)
    costs = np.random.default_rng(0).normal(size=(cells.count, 2, 2))
    promise = Promise(1.0, 1e-6, protects="sensitive_features")
    curator = seeded(rows, promise)
    answers = curator.answer(
        [(GradientSum(model), 5.0), (RowCount(), 1.0), (GramMatrices(None), 1.0)]
    )
    for answer, question in zip(
        answers, (GradientSum(model), RowCount(), GramMatrices(None)), strict=True
    ):
        exact = sum(reference.total(question, block) for block in rows.blocks())
        assert np.allclose(answer, exact, rtol=1e-6)
    assert len(curator.log) == 0
    assert PrivacyStatement.of_run(curator).epsilon == 0.0
    question = GradientSum(model, None, cells, costs)
    (noisy,) = curator.answer([(question, 30.0)])
    assert len(curator.log) == 1
    exact = sum(reference.total(question, block) for block in rows.blocks())
    assert not np.allclose(noisy, exact)


def test_sensitive_features_alone_only_the_costs_are_noised(rows_of):
    """With equal costs in every cell nothing reads the group in effect: no noise, though the event
    is still counted."""
    rows = rows_of()
    cells, model = rows.cells(), Linear(WEIGHTS)
    curator = seeded(rows, Promise(1.0, 1e-6, protects="sensitive_features"))
    question = GradientSum(model, None, cells, np.ones((cells.count, 2, 2)) * [0.0, 0.3])
    (answer,) = curator.answer([(question, 30.0)])
    exact = sum(reference.total(question, block) for block in rows.blocks())
    assert np.abs(answer - exact).max() < 1e-4 * np.abs(exact).max()
    assert curator.log.events == (Gaussian(30.0),)


def test_epsilon_inf_is_exact_unclipped_unsampled_and_says_so(rows_of):
    rows = rows_of()
    curator = Curator(rows, Promise(math.inf, 0.0))
    question = GradientSum(Linear(WEIGHTS), 1e-6)
    (answer,) = curator.answer([(question, 5.0)], Poisson(0.01))
    exact = sum(reference.total(GradientSum(Linear(WEIGHTS)), block) for block in rows.blocks())
    assert np.allclose(answer, exact, rtol=1e-6)
    function = RowFunction(lambda block: block.numbers.T[:, :2], 2, 1e-3)
    (answer,) = curator.answer([(function, 1.0)])
    exact = sum(block.numbers[:2].sum(axis=1) for block in rows.blocks())
    assert np.allclose(answer, exact, rtol=1e-6)
    assert curator.public_rows == 700
    assert curator.log.events == (NonPrivate(), NonPrivate())
    assert "not private" in PrivacyStatement.of_run(curator).summary().lower()
    losses = GroupLosses(Linear(np.stack([[WEIGHTS], [-WEIGHTS]])), rows.cells())
    assert curator.choose(losses, math.inf) in (0, 1)


def test_the_number_of_rows_is_private_under_add_remove(rows_of):
    rows = rows_of()
    with pytest.raises(PrivacyError, match="release_rows"):
        _ = seeded(rows).public_rows
    assert seeded(rows, public_rows=1000).public_rows == 1000
    assert seeded(rows, Promise(1.0, 1e-6, neighbours="replace-one")).public_rows == 700
    curator = seeded(rows)
    assert curator.release_rows(10.0) == curator.public_rows != 700
    assert curator.log.events == (Gaussian(10.0),)


def test_adding_a_release_does_not_change_anothers_noise(rows_of):
    """Each release draws from streams named by its number; many sources give each model what it
    would get alone."""
    rows = rows_of()
    counts, model = (
        CellCounts(rows.cells()),
        Linear(np.stack([[WEIGHTS], [-WEIGHTS], [2 * WEIGHTS]])),
    )
    alone, more = seeded(rows), seeded(rows)
    first = alone.answer([(counts, 3.0)])[0]
    assert (more.answer([(counts, 3.0), (RowCount(), 3.0)])[0] == first).all()
    sources = [NoiseSource.seeded(k) for k in range(3)]
    together = Curator(rows, WIDE, noise=sources)
    (many,) = together.answer([(GradientSum(model, 1.0), 3.0)])
    for k in range(3):
        (own,) = seeded(rows, seed=k).answer([(GradientSum(Linear(model.array[k]), 1.0), 3.0)])
        assert (many[k] == own).all()
    with pytest.raises(InputError, match="3 models"):
        together.answer([(GradientSum(Linear(np.zeros((2, 1, 11))), 1.0), 3.0)])


def test_facts_read_from_arrays_are_said():
    rows = Rows.from_arrays(np.zeros((4, 1)), ["n", "y", "n", "y"], [["f", "m", "f", "m"]])
    statement = PrivacyStatement.of_run(Curator(rows, WIDE))
    assert {fact.name for fact in statement.facts} == {"classes", "groups of sensitive_0"}
    assert all("read from the data" in fact.origin for fact in statement.facts)


def test_facts_that_were_stated_are_said_too(rows_of):
    statement = PrivacyStatement.of_run(Curator(rows_of(weights=True), WIDE, public_rows=400))
    found = {fact.name: (fact.value, fact.origin) for fact in statement.facts}
    assert found == {
        "classes": ("0, 1", "argument"),
        "groups of sensitive_0": ("a, b, c", "argument"),
        "groups of sensitive_1": ("x, y", "argument"),
        "number of rows": ("400", "argument"),
        "largest sample weight": ("1", "argument"),
    }


def test_guarantee_5_after_an_answer_that_failed_a_plan_goes_no_further(rows_of):
    """The log stays a beginning of the plan, and its statement is consistent."""
    failures = iter([None, OSError("disk full"), None])

    def journal(entry):
        failure = next(failures)
        if failure is not None:
            raise failure

    curator = seeded(
        rows_of(),
        Promise(1.0, 1e-6),
        plan=[Gaussian(20.0), Gaussian(30.0), Gaussian(40.0)],
        heard=journal,
    )
    curator.answer([(RowCount(), 20.0)])
    with pytest.raises(OSError, match="disk full"):
        curator.answer([(RowCount(), 30.0)])
    with pytest.raises(PrivacyError, match="broke off"):
        curator.answer([(RowCount(), 40.0)])
    assert curator.log.events == (Gaussian(20.0),)
    assert PrivacyStatement.of_run(curator).check() == []


def test_many_threads_keep_to_a_plan(rows_of):
    plan = [Repeated(Gaussian(60.0), 24)]
    curator = seeded(rows_of(), Promise(1.0, 1e-6), plan=plan)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: curator.answer([(RowCount(), 60.0)]), range(24)))
    assert [entry.number for entry in curator.log.entries] == list(range(24))
    curator.finish()
    assert PrivacyStatement.of_run(curator).check() == []


def test_two_curators_share_rows(rows_of):
    """Blocks remember cell ids; nobody trips over another's."""
    rows = rows_of(n=3000)
    curators = [seeded(rows, Promise(1e6, 1e-6)) for _ in range(4)]

    def counted(k):
        for names in (["sensitive_0"], ["sensitive_1"], ["sensitive_1", "sensitive_0"]):
            curators[k].answer([(CellCounts(rows.cells(names=names)), 100.0)], Poisson(0.2))

    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            list(pool.map(counted, range(4)))


def test_what_is_asked_does_not_change_under_the_asker(rows_of):
    rows = rows_of()
    weights, costs = WEIGHTS.copy(), np.ones((6, 2, 2)) * [0.0, 1.0]
    question = GradientSum(Linear(weights), 1.0, rows.cells(), costs)
    before = seeded(rows).answer([(question, 3.0)])[0]
    weights[:], costs[:] = 9.0, 9.0
    assert (seeded(rows).answer([(question, 3.0)])[0] == before).all()
    with pytest.raises(ValueError, match="read-only"):
        question.model.array[:] = 0.0


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: Curator(np.zeros((2, 2)), WIDE),
        lambda rows: Curator(rows, 1.0),
        lambda rows: Curator(rows, WIDE, cap=3),
        lambda rows: Curator(rows, WIDE, noise=42),
        lambda rows: Curator(rows, WIDE, noise=[1]),
        lambda rows: Curator(rows, WIDE, noise=[]),
        lambda rows: Curator(rows, WIDE, public_rows=0),
        lambda rows: Curator(rows, WIDE, threads=0),
        lambda rows: Linear("abc"),
        lambda rows: Linear([[1.0], [1.0, 2.0]]),
        lambda rows: seeded(rows).answer([(RowCount(), 1.0)], 0.1),
        lambda rows: seeded(rows).answer([(RowCount(), "20")]),
        lambda rows: seeded(rows).choose(CellCounts(rows.cells()), 1.0),
        lambda rows: seeded(rows).choose(GroupLosses(Linear(WEIGHTS)), 1.0, cell_weights=["a"]),
        lambda rows: seeded(rows).choose(
            GroupLosses(Linear(WEIGHTS)), 1.0, cell_weights=[1.0, 2.0]
        ),
        lambda rows: seeded(rows).choose(
            GroupLosses(Linear(WEIGHTS)), 1.0, cell_weights=[math.nan]
        ),
    ],
)
def test_errors_are_of_the_family(rows_of, make):
    with pytest.raises(InputError, match="expected"):
        make(rows_of())


def test_a_plan_may_be_one_event_and_a_multiplier_any_number(rows_of):
    curator = seeded(rows_of(), Promise(1.0, 1e-6), plan=Repeated(Gaussian(20.0), 2))
    curator.answer([(RowCount(), 20)])
    curator.answer([(RowCount(), np.array(20.0))])
    curator.finish()


def test_bad_questions_are_refused_before_anything_is_released(rows_of):
    rows = rows_of()
    curator = seeded(rows)
    for measurements, error, message in [
        ([(GradientSum(Linear(WEIGHTS)), 1.0)], MissingBoundError, "clip"),
        ([(FeatureSums(rows.cells()), 1.0)], MissingBoundError, "clip"),
        ([(GroupLosses(Linear(WEIGHTS), None, "log"), 1.0)], MissingBoundError, "clip"),
        ([(GradientSum(Linear(WEIGHTS[:-1]), 1.0), 1.0)], InputError, "weights of shape"),
        (
            [(GradientSum(Linear(WEIGHTS), 1.0, rows.cells(), np.ones((3, 3, 3))), 1.0)],
            InputError,
            "cell_costs",
        ),
        ([(CellCounts(rows.cells()), np.ones(5))], InputError, "6 multipliers"),
        ([], InputError, "at least one question"),
    ]:
        with pytest.raises(error, match=message):
            curator.answer(measurements)
    for message, make in [
        ("NaN", lambda: Linear(np.array([np.nan]))),
        (r"got \(0, 1, 4\)", lambda: Linear(np.empty((0, 1, 4)))),
        ("sharpness", lambda: Linear(WEIGHTS, sharpness=0.0)),
        (
            "finite numbers",
            lambda: GradientSum(Linear(WEIGHTS), 1.0, rows.cells(), np.full((6, 2, 2), np.inf)),
        ),
        (
            "decisions",
            lambda: PredictionHistogram(Linear(WEIGHTS), None, "medium").shape(rows.layout),
        ),
    ]:
        with pytest.raises(InputError, match=message):
            make()
    assert len(curator.log) == 0


def test_numeric_targets_and_class_questions_do_not_mix(rows_of):
    rows = rows_of(regression=True)
    curator = seeded(rows)
    for question in (
        GradientSum(Linear(WEIGHTS), 1.0),
        GroupLosses(Linear(WEIGHTS)),
        PredictionHistogram(Linear(WEIGHTS), by_label=True),
        CellCounts(None, by_label=True),
    ):
        with pytest.raises(InputError, match="class labels"):
            curator.answer([(question, 1.0)])
    unlabelled = Rows.from_arrays(np.zeros((3, 1)), None, [["a", "b", "a"]])
    for question in (
        GradientSum(Linear(np.zeros(2)), 1.0),
        GradientSum(Linear(np.zeros(2)), 1.0, loss="squared"),
    ):
        with pytest.raises(InputError, match="labels"):
            Curator(unlabelled, WIDE).answer([(question, 1.0)])


OPPOSITE = np.array([[[0, 1.0]], [[0, -1.0]]])
SENSITIVE = Promise(1000.0, 1e-6, protects="sensitive_features")


def attribute_rows(X, groups, y=None):
    y = np.zeros(len(X), int) if y is None else y
    return Rows.from_arrays(
        X,
        y,
        [groups],
        classes=list(range(int(np.max(y)) + 1 if np.max(y) > 1 else 2)),
        groups=[[0, 1]],
    )


@pytest.mark.parametrize(
    ("X", "make"),
    [
        # arithmetic that overflows must be an error, not a bound of zero
        (
            [1.0] * 9 + [1e200],
            lambda c: GradientSum(Linear(np.array([0, 1.0])), None, c, OPPOSITE, "none"),
        ),
        ([1.0] * 9 + [1e200], lambda c: FeatureSums(c)),
        ([1.0] * 9 + [1e200], lambda c: GroupLosses(Linear(np.array([0, 1e200])), c, "squared")),
        # probabilities too small to square must not give a bound of zero
        (
            [1.0] * 10,
            lambda c: PredictionHistogram(
                Linear(np.array([-10.0, 0.0]), sharpness=50.0), c, "soft"
            ),
        ),
        # scores next to the threshold, which another order of additions puts on the other side
        ([1e16, 1.0] * 5, lambda c: GroupLosses(Linear(np.array([-1.0, 1e-16])), c)),
        ([800.0] * 10, lambda c: GroupLosses(Linear(np.array([0.0, 1.0])), c, "log")),
    ],
)
def test_a_bound_from_public_rows_is_never_lost_to_rounding(X, make):
    """Either an error, or noise that hides the group: two groups never give answers that differ by
    more than noise explains."""
    X = np.array(X)[:, np.newaxis]
    tables = [attribute_rows(X, np.array([k] + [0] * 9)) for k in (0, 1)]
    question = make(tables[0].cells())
    if getattr(question, "loss", "") == "squared":
        one = {"regression": True, "groups": [[0, 1]]}
        tables = [
            Rows.from_arrays(X, np.zeros(10), [np.array([k] + [0] * 9)], **one) for k in (0, 1)
        ]
    refused = ""
    try:
        answers = [
            [seeded(t, SENSITIVE, seed=s).answer([(question, 20.0)])[0] for s in range(20)]
            for t in tables
        ]
    except InputError as error:
        refused = str(error)
    if refused:
        assert "finite" in refused
        fresh = seeded(tables[0], SENSITIVE)
        with pytest.raises(InputError):
            fresh.answer([(question, 20.0)])
        assert fresh._books.budget.room.spent == 0.0
        return
    noise = np.std(answers[0], axis=0).max()
    moved = np.abs(np.mean(answers[0], axis=0) - np.mean(answers[1], axis=0)).max()
    assert noise > 0
    assert moved < noise


def test_many_classes_do_not_outgrow_their_public_bound():
    """Saturated softmax over nine classes: sums in another order once gave a bound 13 percent too
    small."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    rows = attribute_rows(X, rng.integers(0, 2, 30), rng.integers(0, 9, 30) % 9)
    K = len(rows.layout.classes)
    model = Linear(rng.normal(size=(K, 3)) * 40, sharpness=30.0)
    question = GradientSum(model, None, rows.cells(), rng.normal(size=(2, 1, K)), "none")
    (scale,) = public_scales(question, rows)
    (block,) = rows.blocks()
    for i in range(30):
        totals_ = []
        for group in (0, 1):
            row = block.take(np.array([i]))
            row.sensitive = np.array([[group]], np.uint16)
            row._cells.clear()
            totals_.append(totals([(question, [scale])], rows, [row])[0])
        assert np.linalg.norm(totals_[0] - totals_[1]) * scale.unit <= scale.bound.sensitivity(
            "replace-one"
        )


@pytest.mark.parametrize("promise", [WIDE, SENSITIVE], ids=str)
def test_vectors_of_multipliers_are_for_answers_by_cell_only(rows_of, promise):
    rows = rows_of()
    costs = np.ones((6, 2, 2))
    questions = [
        GradientSum(Linear(WEIGHTS), 1.0, rows.cells(), costs),
        RowFunction(lambda block: block.sensitive[0][:, np.newaxis], 1, 1.0),
    ]
    if promise is WIDE:
        questions += [CellCounts(None, by_label=True), PredictionHistogram(Linear(WEIGHTS), None)]
    for question in questions:
        with pytest.raises(InputError):
            seeded(rows, promise).answer(
                [(question, np.array([0.001] * question.shape(rows.layout)[0]))]
            )


def test_guarantee_6_under_replace_one_the_batch_size_gets_noise(rows_of):
    """The number of rows is public; how many of them a secret batch drew is not."""
    rows = rows_of()
    promise = Promise(1000.0, 1e-6, neighbours="replace-one")
    curator = seeded(rows, promise)
    assert curator.answer([(RowCount(), 0.0)])[0] == 700.0
    with pytest.raises(PrivacyError, match="multiplier above 0"):
        curator.answer([(RowCount(), 0.0)], Poisson(0.3))
    event = curator.describe([(RowCount(), 5.0)], Poisson(0.3))
    assert event.spreads == (0.0,)
    measurement = [(RowCount(), 1000.0)]
    (noisy,) = curator.answer(measurement, Poisson(0.3))
    assert abs(noisy[0] - 210) > 100


def test_answers_asked_at_once_are_all_charged(rows_of):
    rows = rows_of()
    curator = seeded(rows, Promise(1.0, 1e-6))
    before = curator._books.budget.room
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: curator.answer([(RowCount(), 60.0)]), range(32)))
    assert len({entry.number for entry in curator.log.entries}) == 32
    assert curator._books.budget.room.spent == pytest.approx(
        before.spent + 32 * before.add(Gaussian(60.0)).spent
    )


@pytest.mark.parametrize(
    "promise", [WIDE, Promise(1000.0, 1e-6, neighbours="replace-one"), SENSITIVE], ids=str
)
def test_choosing_never_fails_for_the_size_of_a_total(promise):
    """Equal weights leave a change of group nothing to move; the totals are large all the same."""
    rng = np.random.default_rng(0)
    rows = attribute_rows(
        rng.normal(size=(5000, 1)), rng.integers(0, 2, 5000), rng.integers(0, 2, 5000)
    )
    question = GroupLosses(Linear(np.array([[[0, 1.0]], [[0, -50.0]]])), rows.cells(), "log", 30.0)
    for weights in (None, [1.0, 1.0 + 2.0**-23], [2.0**24, 2.0**24]):
        assert seeded(rows, promise).choose(question, 1.0, cell_weights=weights) in (0, 1)


@pytest.mark.parametrize(
    ("measurements", "message"),
    [
        (lambda rows: [RowCount()], "pairs"),
        (lambda rows: [(RowCount(), "a")], "multiplier"),
        (lambda rows: [(CellCounts(Cells((("q", "r"),), names=("other",))), 5.0)], "cells"),
        (
            lambda rows: [
                (
                    GradientSum(Linear(WEIGHTS), 1.0, rows.cells(), np.ones((6, 2, 2)), "squared"),
                    5.0,
                )
            ],
            "log loss",
        ),
        (
            lambda rows: [
                Measurement(
                    GroupLosses(Linear(WEIGHTS), rows.cells(), "log", 2.0), 5.0, "discrete-laplace"
                )
            ],
            "whole rows",
        ),
    ],
)
@pytest.mark.parametrize("promise", [WIDE, SENSITIVE], ids=str)
def test_what_cannot_be_answered_is_not_charged(rows_of, measurements, message, promise):
    rows = rows_of()
    curator = seeded(rows, promise)
    spent = curator._books.budget.room.spent
    with pytest.raises(InputError, match=message):
        curator.answer(measurements(rows))
    assert curator._books.budget.room.spent == spent


SUMS = np.random.default_rng(6).normal(size=(2, 3, 11))


@pytest.mark.parametrize("promise", [WIDE, SENSITIVE, Promise(math.inf, 0.0)], ids=str)
def test_sums_along_another_basis_are_of_that_basis(rows_of, promise):
    """Two bases of one shape in one run: the events and what is prepared are the same, the answers
    are not."""
    rows = rows_of(far=False)
    curator = seeded(rows, promise)
    (block,) = rows.blocks()
    for basis in (*SUMS, SUMS[0]):  # their sums are 20 apart and more
        question = FeatureSums(rows.cells(), 2.0, by_label=True, basis=basis)
        assert question.key == FeatureSums(rows.cells(), 2.0, by_label=True, basis=SUMS[1]).key
        (answer,) = curator.answer([(question, 0.2 if promise.is_private else 0.0)])
        clip = 2.0 if promise.is_private else None
        exact = reference.total(FeatureSums(rows.cells(), clip, by_label=True, basis=basis), block)
        assert answer.shape == (6, 2, 3)
        assert np.abs(answer - exact).max() < (4.0 if promise.is_private else 1e-6)  # 7 deviations
    given = np.ones((1, 11))
    question = FeatureSums(None, 1.0, basis=given)
    given[:] = 7.0
    assert (question.basis == 1.0).all()
    with pytest.raises(ValueError, match="read-only"):
        question.basis[0, 0] = 2.0


@pytest.mark.parametrize("sparse", [False, True])
def test_sums_along_a_basis_have_the_public_bound_of_what_they_add(rows_of, sparse):
    """sqrt(2 L) max |basis x|, by hand, to nine digits, without a clip: over all rows, whatever
    group they are in."""
    rows = rows_of(far=False, sparse=sparse)
    largest = max(
        np.linalg.norm(reference.dense(block) @ SUMS[0].T, axis=1).max() for block in rows.blocks()
    )
    for mode, lines in (("product", 1), ("marginal", 2)):
        (scale,) = public_scales(
            FeatureSums(rows.cells(mode), None, by_label=True, basis=SUMS[0]), rows
        )
        assert scale.bound.sensitivity("replace-one") == pytest.approx(
            math.sqrt(2 * lines) * largest, rel=1e-6
        )
        assert scale.bound.sensitivity("replace-one") >= math.sqrt(2 * lines) * largest


@pytest.mark.parametrize(
    "basis", [np.zeros((0, 11)), np.ones(11), np.full((1, 11), np.nan), "a", np.ones((2, 10))]
)
def test_a_basis_is_finite_numbers_of_the_rows_width(rows_of, basis):
    with pytest.raises(InputError, match="basis"):
        seeded(rows_of()).answer([(FeatureSums(None, 1.0, basis=basis), 5.0)])


@pytest.mark.parametrize("size", [1.0, 1e9, 1e120])
def test_what_reads_no_group_is_exact_and_free_where_rows_are_public(size):
    """Without a clip, however large: no sum leaves its integers, and each is right to eleven digits
    of its largest row."""
    rng = np.random.default_rng(9)
    n = 3000
    X = size * rng.uniform(0.5, 1.0, (n, 2)) * rng.choice([1.0, 1.0, 1.0, -1.0], (n, 1))
    y, group = rng.integers(0, 2, n), rng.integers(0, 2, n)
    rows = Rows.from_arrays(X, y, [group], classes=[0, 1], groups=[[0, 1]])
    promise = Promise(1.0, 1e-6, protects="sensitive_features")
    basis = rng.normal(size=(4, 3))
    model = Linear(np.array([0.0, 1.0 / size, -0.5 / size]))
    questions = [
        FeatureSums(None, by_label=True),
        FeatureSums(None, by_label=True, basis=basis),
        GramMatrices(None),
        PredictionHistogram(model, None, "hard", by_label=True),
        PredictionHistogram(model, None, "soft", by_label=True),
        CellCounts(None, by_label=True),
    ]
    curator = seeded(rows, promise)
    answers = curator.answer([(question, 0.0) for question in questions])
    assert len(curator.log) == 0
    assert PrivacyStatement.of_run(curator).epsilon == 0.0
    R = np.column_stack([np.ones(n), X])
    by_label = [(y == label) for label in (0, 1)]
    largest = np.linalg.norm(R, axis=1).max()
    sums = np.array([[math.fsum(R[rows_in, j]) for j in range(3)] for rows_in in by_label])
    assert np.abs(answers[0][0] - sums).max() <= n * largest * 2.0**-43
    assert (
        np.abs(answers[1][0] - sums @ basis.T).max()
        <= n * largest * np.linalg.norm(basis) * 2.0**-40
    )
    assert np.abs(answers[2][0] - R.T @ R).max() <= n * largest**2 * 2.0**-40
    decided = (X @ model.array[0, 0, 1:]) > 0
    assert (answers[3][0, :, 0] == [decided[rows_in].sum() for rows_in in by_label]).all()
    p = 1 / (1 + np.exp(-(X @ model.array[0, 0, 1:])))
    assert np.allclose(answers[4][0, :, 0], [p[rows_in].sum() for rows_in in by_label], rtol=1e-9)
    assert (answers[5][0] == np.bincount(y)).all()
