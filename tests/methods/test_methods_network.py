"""Private descent for networks: its guarantees, its batches, its centred costs, neighbours, and
both max players on it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from covering import pairs

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from fairveil import DemographicParity, EqualizedOdds, Promise  # noqa: E402
from fairveil.audit import Tape  # noqa: E402
from fairveil.core.events import NoOp, compose, spelled_out  # noqa: E402
from fairveil.core.passes import totals  # noqa: E402
from fairveil.core.pricing import constant_scale  # noqa: E402
from fairveil.curator import (  # noqa: E402
    FULL,
    CellCounts,
    Curator,
    Measurement,
    Network,
    NetworkGradient,
    NetworkHistogram,
    Part,
    Poisson,
    Rows,
    describe,
)
from fairveil.fairness.dependence import Dependence  # noqa: E402
from fairveil.methods import NetworkDescent, Reason, Settings, fermi, follow  # noqa: E402
from fairveil.methods.networks import centres_of, columns_of  # noqa: E402
from fairveil.methods.primal_dual import planned  # noqa: E402
from fairveil.models import Skeleton  # noqa: E402
from fairveil.privacy import NoiseSource  # noqa: E402
from fairveil.privacy import epsilon as price  # noqa: E402
from fairveil.statement.document import PrivacyStatement  # noqa: E402

PROMISES = {
    "add-remove": Promise(1.0, 1e-5),
    "replace-one": Promise(1.0, 1e-5, neighbours="replace-one"),
    "sensitive features": Promise(1.0, 1e-5, "sensitive_features"),
}
EXACT = Promise(math.inf, 1e-5)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def table(seed: int = 0, n: int = 240, classes: int = 2, groups: tuple[int, ...] = (2,)):
    """Numbers, labels and sensitive columns that go together."""
    rng = np.random.default_rng(seed)
    A = [rng.integers(0, size, n) for size in groups]
    X = rng.normal(scale=0.6, size=(n, 3))
    for j, a in enumerate(A):
        X[:, j] += a / max(groups[j] - 1, 1)
    scores = X @ rng.normal(size=(3, classes)) + rng.gumbel(size=(n, classes))
    scores += np.outer(X.sum(axis=1), np.linspace(0.0, 3.0, classes))
    return X, scores.argmax(axis=1), A


def rows_from(X, y, A, classes: int = 2, groups: tuple[int, ...] = (2,)) -> Rows:
    return Rows.from_arrays(
        X, y, A, classes=range(classes), groups=[tuple(range(size)) for size in groups]
    )


def skeleton(classes: int = 2, outputs: int | None = None) -> Skeleton:
    torch.manual_seed(3)
    module = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, outputs or classes))
    return Skeleton.of(module, 3, classes)


def settings(**given: Any) -> Settings:
    usual = {
        "rounds": 8,
        "sampling_rate": 0.25,
        "thresholds_share": 0.0,
        "counts_share": 0.05,
        "iterate": "last",
    }
    return Settings(**{**usual, **given})


def fermi_for(
    rows: Rows,
    promise: Promise,
    strength: float = 2.0,
    notion: str = "demographic_parity",
    given: Settings | None = None,
    mode: str = "product",
    net: Skeleton | None = None,
) -> NetworkDescent:
    public = rows.exact_count if promise.rows_are_public or not promise.is_private else None
    named = fermi.notion_of(notion, 1 if notion == "equal_opportunity" else None, mode)
    net = net or skeleton(len(rows.layout.classes or ()))
    cells = rows.cells(mode)
    found = fermi.search_for(
        promise,
        rows.layout,
        cells,
        named,
        strength,
        given or settings(),
        public_rows=public,
        skeleton=net,
    )
    assert isinstance(found, NetworkDescent)
    return found


def constrained_for(
    rows: Rows, promise: Promise, notions, given: Settings | None = None
) -> NetworkDescent:
    public = rows.exact_count if promise.rows_are_public or not promise.is_private else None
    net = skeleton(len(rows.layout.classes or ()))
    known = (promise, rows.layout, rows.cells(), notions, given or settings())
    return NetworkDescent(
        planned(
            *known,
            public_rows=public,
            skeleton=net,
            search=lambda plan: NetworkDescent(plan).search(),
        )
    )


def curator_for(
    rows: Rows, search: NetworkDescent, seed: int = 0, kind: type[Curator] = Curator, **more: Any
) -> Curator:
    promise, public = search.planned.promise, search.planned.public_rows
    return kind(
        rows, promise, plan=search.plan, noise=NoiseSource.seeded(seed), public_rows=public, **more
    )


def recorded(rows: Rows, search: NetworkDescent, seed: int = 0) -> tuple[Any, Tape, Curator]:
    tape = Tape()
    heard = tape.around(Curator.answer)

    class Heard(Curator):
        def answer(self, *given: Any, **named: Any) -> Any:
            return heard(self, *given, **named)

    curator = curator_for(rows, search, seed, Heard)
    return search.run(curator), tape, curator


# ---- guarantee 1: the price
# ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "rate", "player"),
    [
        ("add-remove", None, "fermi"),
        ("add-remove", 0.3, "constraints"),
        ("replace-one", None, "constraints"),
        ("replace-one", 0.25, "fermi"),
        ("sensitive features", None, "fermi"),
        ("sensitive features", 0.25, "constraints"),
        ("sensitive features", 0.3, "fermi"),
    ],
)
def test_guarantee_1_a_plan_costs_the_promise_and_the_log_is_the_plan(
    relation, rate, player
) -> None:
    promise, rows = PROMISES[relation], rows_from(*table())
    given = settings(sampling_rate=rate, rounds=10)
    search = (
        fermi_for(rows, promise, given=given)
        if player == "fermi"
        else constrained_for(rows, promise, [EqualizedOdds(0.02)], given)
    )
    assert search.plan is not None
    paid = price(search.plan, promise.delta, promise.neighbours)
    assert 0.97 * promise.epsilon <= paid <= promise.epsilon * (1 + 1e-9)
    outcome, tape, curator = recorded(rows, search)
    assert list(spelled_out(compose(curator.log.events))) == list(spelled_out(search.plan))
    assert len(curator.log) == 1 + 10 + 1
    statement = PrivacyStatement.of_run(curator)
    assert statement.check() == []
    assert statement.epsilon <= promise.epsilon * (1 + 1e-9)
    assert outcome.reason is Reason.ROUNDS
    batches = [release.batch for release in tape.heard[1:-1]]
    parts = {0.25: 4, 0.3: 3}
    if rate is None:
        assert batches == [FULL] * 10
    elif relation == "sensitive features":
        assert batches == [Part(t % parts[rate], parts[rate]) for t in range(10)]
    else:
        assert batches == [Poisson(rate)] * 10


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_where_records_are_protected_loss_and_costs_are_one_clipped_question_on_one_batch(
    relation,
) -> None:
    rows, promise = rows_from(*table()), PROMISES[relation]
    search = fermi_for(rows, promise)
    _, tape, _ = recorded(rows, search)
    for release in tape.heard[1:-1]:
        gradient, histogram = (measurement.question for measurement in release.measurements)
        assert gradient.kind is NetworkGradient
        assert histogram.kind is NetworkHistogram
        assert gradient.loss == "log"
        assert gradient.clip == search.planned.clip == 2.0
        assert gradient.cell_costs is not None
        assert gradient.model is histogram.model
        assert histogram.decisions == "soft"
        assert all(measurement.multiplier > 0 for measurement in release.measurements)


# ---- guarantee 2: what is asked
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize("player", ["fermi", "constraints"])
def test_guarantee_2_what_is_exact_does_not_read_groups(mode, player) -> None:
    promise = PROMISES["sensitive features"]
    rows = rows_from(*table(groups=(2, 3)), groups=(2, 3))
    if player == "fermi":
        search = fermi_for(rows, promise, notion="equalized_odds", mode=mode)
    else:
        search = constrained_for(rows, promise, [EqualizedOdds(0.02, groups=mode)])
    _, tape, _ = recorded(rows, search)
    exact = 0
    for release in tape.heard:
        for measurement in release.measurements:
            reads = "sensitive" in measurement.question.reads
            assert reads == (measurement.multiplier > 0)
            exact += not reads
            if measurement.question.kind is NetworkGradient:
                assert measurement.question.clip == search.planned.clip
                assert measurement.question.loss == ("none" if reads else "log")
            if not reads:
                event = describe([measurement], rows.layout, promise, release.batch)
                assert isinstance(event, NoOp)
    compared = 2  # at the end, decisions by label and labels, to compare with constants
    assert exact == 8 * (2 if player == "fermi" else 1) + compared


@pytest.mark.parametrize("relation", PROMISES)
def test_guarantee_2_fed_with_the_same_answers_it_asks_the_same_whatever_the_rows(relation) -> None:
    promise = PROMISES[relation]
    X, y, A = table()
    keep = slice(1, None) if relation == "add-remove" else slice(None)
    groups = A[0].copy()
    groups[0] = 1 - groups[0]
    one, other = rows_from(X, y, A), rows_from(X[keep], y[keep], [groups[keep]])
    net = skeleton()
    searches = [fermi_for(rows, promise, net=net) for rows in (one, other)]
    assert searches[0].plan == searches[1].plan
    _, tape, _ = recorded(one, searches[0])
    _, theirs, _ = recorded(other, searches[1])
    # the same noise on both
    moved = np.abs(tape.heard[0].answers[0] - theirs.heard[0].answers[0]).ravel()
    assert sorted(moved) == pytest.approx(
        [0.0, 1.0] if relation == "add-remove" else [1.0, 1.0], abs=1e-9
    )
    asked: list[list[Any]] = []

    class Told(Curator):
        """Other rows, the same answers."""

        def answer(self, measurements: Any, batch: Any = FULL, *, purpose: str = "") -> Any:
            super().answer(measurements, batch, purpose=purpose)
            asked.append([batch, *measurements])
            return tape.heard[len(asked) - 1].answers

    follow(curator_for(other, searches[1], 3, Told), searches[1].search())
    for (batch, *measurements), release in zip(asked, tape.heard, strict=True):
        assert batch == release.batch
        for measurement, was in zip(measurements, release.measurements, strict=True):
            if was.question.kind in (NetworkGradient, NetworkHistogram):
                own, theirs = (one.question.model.parameters for one in (measurement, was))
                assert np.array_equal(own, theirs)
            if was.question.kind is NetworkGradient:
                assert np.array_equal(measurement.question.cell_costs, was.question.cell_costs)


def pressed(search: NetworkDescent, rows: Rows) -> tuple[list[Measurement], np.ndarray]:
    """A round's asks at a W that is not 0; and the whole costs."""
    curator, method, plan = curator_for(rows, search), search.search(), search.planned
    counts, about = plan.read_counts(first := curator.answer(next(method).measurements))
    player = search.player(counts, about)
    ask = method.send(first)
    answers = curator.answer(ask.measurements, ask.batch)
    gradients = sum(one.question.kind is NetworkGradient for one in ask.measurements)
    for k in range(gradients):  # the model stays where it starts
        answers[k] = np.zeros_like(answers[k])
    play = player.step(player.begin(), plan.of_round(answers[gradients:], counts), 0)
    return method.send(answers).measurements, player.costs(play)[0]


def sums(
    measurements: list[Measurement], rows: Rows, promise: Promise
) -> list[tuple[np.ndarray, float]]:
    """Each question's total without noise, in its units, and how far a neighbour may move it."""
    out = []
    for measurement in measurements:
        scale = constant_scale(measurement.question, rows.layout, promise, None)
        total = totals([(measurement.question, [scale])], rows, rows.blocks())[0][0] * scale.unit
        out.append((total, scale.bound.sensitivity(promise.neighbours)))
    return out


@pytest.mark.parametrize(
    ("notion", "mode", "sizes"),
    pairs(fermi.NOTIONS, ["product", "marginal"], [(2, (2,)), (3, (2, 3))]),
)
def test_a_change_of_group_moves_private_questions_within_their_bounds_and_exact_ones_not_at_all(
    notion, mode, sizes
) -> None:
    promise, (classes, groups) = PROMISES["sensitive features"], sizes
    X, y, A = table(n=10, classes=classes, groups=groups)
    rows = rows_from(X, y, A, classes, groups)
    search = fermi_for(rows, promise, 50.0, notion, settings(clip=0.3), mode)
    measurements, _ = pressed(search, rows)
    reads = ["sensitive" in measurement.question.reads for measurement in measurements]
    # the loss and the centre; the costs beside it; histogram; its sums over groups
    assert reads == [False, True, True, False]
    before = sums(measurements, rows, promise)
    # what float32 and the grid add is in the bound
    assert before[1][1] == pytest.approx(2 * 0.3, rel=2e-5)
    assert before[2][1] == pytest.approx(
        math.sqrt(2 * (len(groups) if mode == "marginal" else 1)), rel=2e-5
    )
    most = np.zeros(4)
    for i in range(len(y)):
        for values in itertools.product(*(range(size) for size in groups)):
            B = [a.copy() for a in A]
            for b, value in zip(B, values, strict=True):
                b[i] = value
            after = sums(measurements, rows_from(X, y, B, classes, groups), promise)
            for k, ((one, bound), (two, _)) in enumerate(zip(before, after, strict=True)):
                moved = float(np.linalg.norm(one - two))
                # torch's own last bits, which the statement speaks of
                assert moved <= bound * (1 + 1e-6)
                most[k] = max(most[k], moved / max(bound, 1e-300))
                assert reads[k] or np.array_equal(one, two)
    # centred, two groups pull in opposite directions: the bound is reached where both are clipped
    if groups == (2,):
        used = y == 1 if notion == "equal_opportunity" else y == y
        assert used.any()
        assert most[1] > 0.9
    assert most[2] > 0.3


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_no_neighbour_moves_a_round_further_than_its_noise_says(relation) -> None:
    promise = PROMISES[relation]
    X, y, A = table(n=10)
    rows = rows_from(X, y, A)
    search = fermi_for(
        rows, promise, 50.0, "equalized_odds", settings(clip=0.3, sampling_rate=None)
    )
    measurements, _ = pressed(search, rows)
    before, most = sums(measurements, rows, promise), np.zeros(2)
    others = []
    for i in range(len(y)):
        keep = np.arange(len(y)) != i
        if relation == "add-remove":
            others.append(rows_from(X[keep], y[keep], [A[0][keep]]))
            continue
        for label, group, size in itertools.product((0, 1), (0, 1), (-20.0, 20.0)):
            X2, y2, B = X.copy(), y.copy(), A[0].copy()
            X2[i], y2[i], B[i] = size * np.sign(X[i]), label, group
            others.append(rows_from(X2, y2, [B]))
    for other in others:
        for k, ((one, bound), (two, _)) in enumerate(
            zip(before, sums(measurements, other, promise), strict=True)
        ):
            moved = float(np.linalg.norm(one - two))
            assert moved <= bound * (1 + 1e-6)
            most[k] = max(most[k], moved / bound)
    assert most[0] > 1 / 1.5
    assert most[1] > 0.4


# ---- centred costs
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notion", "shape", "classes"),
    pairs(
        ["demographic_parity", "equalized_odds"],
        [("product", (2,)), ("product", (2, 3)), ("marginal", (2, 3))],
        [2, 4],
    ),
)
def test_exact_and_private_parts_together_are_the_whole_gradient(notion, shape, classes) -> None:
    mode, groups = shape
    promise = PROMISES["sensitive features"]
    rows = rows_from(*table(n=60, classes=classes, groups=groups), classes=classes, groups=groups)
    search = fermi_for(rows, promise, 3.0, notion, settings(clip=1e5), mode)
    measurements, costs = pressed(search, rows)
    parts = [measurements[0].question, measurements[1].question]
    loss_scale = 1 / (1 + 0.35 * 3.0)
    whole = NetworkGradient(
        parts[0].model, None, rows.cells(mode), costs, loss_weight=np.array([loss_scale])
    )
    curator = Curator(rows, EXACT)
    exact, private, right = (curator.answer([(question, 0.0)])[0] for question in (*parts, whole))
    assert np.linalg.norm(private) > 0.01 * np.linalg.norm(right)
    assert np.linalg.norm(exact + private - right) <= 1e-5 * np.linalg.norm(right)


def test_the_centre_is_the_mean_of_each_columns_costs_by_released_counts() -> None:
    rows = rows_from(*table(groups=(2, 3)), groups=(2, 3))
    costs = np.random.default_rng(0).normal(size=(5, 2, 3))
    cells = rows.cells("marginal")
    assert columns_of(cells) == [slice(0, 2), slice(2, 5)]
    assert columns_of(rows.cells()) == [slice(0, 6)]
    counts = np.random.default_rng(1).integers(5, 50, size=(5, 2)).astype(float)
    for column, centre in zip(columns_of(cells), centres_of(costs, cells, counts), strict=True):
        off = (costs[column] - centre) * counts[column][..., np.newaxis]
        assert off.sum(axis=0) == pytest.approx(0.0, abs=1e-9)


# ---- batches, outputs and classes
# ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_a_batch_that_is_empty_is_a_round_of_noise(relation) -> None:
    promise, rows = PROMISES[relation], rows_from(*table(n=20))
    search = fermi_for(rows, promise, given=settings(sampling_rate=0.01, rounds=5))
    sizes = [
        len(NoiseSource.seeded(0).stream("sampling", number).poisson_batch(20, 0.01))
        for number in range(1, 6)
    ]
    assert 0 in sizes
    outcome, curator = (found := recorded(rows, search))[0], found[2]
    assert np.isfinite(outcome.weights).all()
    assert list(spelled_out(compose(curator.log.events))) == list(spelled_out(search.plan))


def soft_information(
    rows: Rows, net: Skeleton, weights, notion: str = "demographic_parity", mode: str = "product"
) -> float:
    """The exact mutual information of a network's soft predictions and the groups."""
    cells, classes = rows.cells(mode), net.classes
    by_label = notion != "demographic_parity"
    asked = NetworkHistogram(Network(net, weights), cells, "soft", by_label=by_label)
    answer, counts = Curator(rows, EXACT).answer([(asked, 0.0), (CellCounts(cells, by_label), 0.0)])
    labels = classes if by_label else 1
    counts = counts.reshape(cells.count, labels)
    histogram = answer.reshape(cells.count, labels, -1)
    if classes == 2:
        histogram = np.concatenate([counts[..., np.newaxis] - histogram, histogram], axis=-1)
    chosen = (1,) if notion == "equal_opportunity" else tuple(range(labels))
    dependence = Dependence.of(cells, chosen, weighted=notion != "equal_opportunity")
    return float(dependence.information(histogram, counts))


def loss_of(rows: Rows, net: Skeleton, weights, X, y) -> float:
    net.load(weights)
    with torch.no_grad():
        z = net.module(torch.tensor(X, dtype=torch.float32)).double()
    z = z if z.shape[1] > 1 else torch.cat([torch.zeros_like(z), z], dim=1)
    return float(nn.functional.cross_entropy(z, torch.tensor(y)))


@pytest.mark.parametrize(
    ("classes", "outputs", "notion", "batches"),
    [
        (2, 1, fermi.NOTIONS[0], None),
        (2, 2, fermi.NOTIONS[1], 0.2),
        (5, 5, fermi.NOTIONS[2], 0.2),
    ],
)
def test_without_noise_the_penalty_lowers_the_information_and_the_loss_is_learnt(
    classes, outputs, notion, batches
) -> None:
    X, y, A = table(n=600, classes=classes)
    rows, net = rows_from(X, y, A, classes), skeleton(classes, outputs)
    given = settings(rounds=150, sampling_rate=batches)
    plain, fair = (
        s.run(curator_for(rows, s))
        for s in (fermi_for(rows, EXACT, k, notion, given, net=net) for k in (0.0, 8.0))
    )
    before, after = (
        soft_information(rows, net, outcome.weights, notion) for outcome in (plain, fair)
    )
    assert before > 0.01
    assert after < 0.6 * before
    start, end = (loss_of(rows, net, weights, X, y) for weights in (net.start, plain.weights))
    assert end < start - 0.1


def test_one_output_is_two_where_the_first_is_held_at_zero() -> None:
    """Two classes: the logit of the second alone, or of both with the first's weights at zero, ask
    the same."""
    rows = rows_from(*table(n=80))
    torch.manual_seed(0)
    one = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    two = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    with torch.no_grad():
        two[0].load_state_dict(one[0].state_dict())
        two[2].weight.zero_()
        two[2].bias.zero_()
        two[2].weight[1:] = one[2].weight
        two[2].bias[1:] = one[2].bias
    nets = [Skeleton.of(module, 3, 2) for module in (one, two)]
    searches = [
        fermi_for(rows, EXACT, 2.0, given=settings(sampling_rate=None), net=net) for net in nets
    ]
    gradients, histograms = [], []
    for search in searches:
        measurements, _ = pressed(search, rows)
        answers = Curator(rows, EXACT).answer(
            [(measurement.question, 0.0) for measurement in measurements]
        )
        gradients.append(answers[0] + answers[1])
        histograms.append(answers[2])
    places = [net.places["0.weight"] for net in nets]
    hidden = [g[slice(*place)] for g, place in zip(gradients, places, strict=True)]
    assert hidden[0] == pytest.approx(hidden[1], rel=1e-4, abs=1e-5)
    assert histograms[0] == pytest.approx(histograms[1], rel=1e-5)


@pytest.mark.parametrize(
    ("epsilon", "protects"),
    [(math.inf, "records"), (30.0, "records"), (30.0, "sensitive_features")],
)
def test_the_duals_of_constraints_press_on_a_network(epsilon, protects) -> None:
    X, y, A = table(n=1500)
    rows, promise = rows_from(X, y, A), Promise(epsilon, 1e-5, protects)
    given = settings(rounds=120, sampling_rate=0.25, learning_rate=0.2, dual_horizon=120)
    plain, fair = (
        constrained_for(rows, promise, notions, given)
        for notions in ([], [DemographicParity(0.05)])
    )
    gaps = []
    for search in (plain, fair):
        outcome = search.run(curator_for(rows, search))
        asked = NetworkHistogram(
            Network(search.planned.skeleton, outcome.weights), rows.cells(), "hard"
        )
        (answer,) = Curator(rows, EXACT).answer([(asked, 0.0)])
        yes = answer.ravel() / np.bincount(A[0])
        gaps.append(abs(yes[0] - yes[1]))
    assert gaps[0] > 0.2
    assert gaps[1] < 0.6 * gaps[0]
    assert outcome.duals.max() > 0
    if epsilon == math.inf:
        assert np.abs(outcome.values).max() == pytest.approx(gaps[1], abs=1e-9)


def test_without_noise_a_short_run_presses_too() -> None:
    """A network does all its rounds, with noise or without, so its duals' ascent is made for that
    many."""
    rows = rows_from(*table(n=400))
    search = constrained_for(rows, EXACT, [DemographicParity(0.01)], settings(rounds=15))
    assert search.run(curator_for(rows, search)).duals.max() > 0


@pytest.mark.parametrize("relation", PROMISES)
def test_without_a_penalty_nothing_is_asked_about_groups(relation) -> None:
    promise, rows = PROMISES[relation], rows_from(*table())
    search = fermi_for(rows, promise, 0.0)
    outcome, tape, _ = recorded(rows, search)
    assert all(
        "sensitive" not in measurement.question.reads
        for release in tape.heard
        for measurement in release.measurements
    )
    assert outcome.names == ()
    if relation == "sensitive features":
        assert not list(spelled_out(search.plan))
    else:
        assert 0.97 <= price(search.plan, 1e-5, promise.neighbours) <= 1 + 1e-9


def test_which_iterate_is_returned() -> None:
    """The noise is the same, so the walks are; an iterate is what the next round asks about."""
    rows, promise, single = rows_from(*table()), PROMISES["add-remove"], {}
    net = skeleton()

    def outcome_of(iterate):
        given = settings(iterate=iterate, averaged=0.5)
        found, tape, _ = recorded(rows, fermi_for(rows, promise, given=given, net=net))
        return found.weights, [one.measurements[0].question for one in tape.heard[1:-1]]

    for iterate in (0, 4, 5, 6, 7):
        single[iterate], rounds = outcome_of(iterate)
        assert np.array_equal(rounds[0].model.parameters, net.start)
        if iterate < 7:
            assert np.array_equal(single[iterate], rounds[iterate + 1].model.parameters)
    average = np.mean([single[k] for k in (4, 5, 6, 7)], axis=0)
    assert outcome_of("average")[0] == pytest.approx(average, rel=1e-12)
    assert not np.array_equal(outcome_of("last")[0], single[7])  # its steps fade
