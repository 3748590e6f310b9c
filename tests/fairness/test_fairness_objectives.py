"""Objectives: gradients by finite differences, every stated constant by sampling, means of recalls
by direct formulas."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from fairveil.errors import InputError
from fairveil.facts import Cells
from fairveil.fairness import objectives
from fairveil.fairness.functions import (
    BoltzmannOfGaps,
    GeometricShortfall,
    GroupFunction,
    HarmonicShortfall,
    Inequality,
    Largest,
    SoftLargest,
    Total,
    gini,
    overshoot,
    stacked,
)
from fairveil.fairness.notions import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    Event,
    PredictionRate,
)
from fairveil.fairness.objectives import Frame, parse_constraint

TWO, THREE = ("no", "yes"), ("a", "b", "c")
FRAMES: dict[str, tuple[Cells, tuple[str, ...]]] = {
    "2 groups": (Cells((("f", "m"),)), TWO),
    "2 x 2 groups": (Cells((("f", "m"), ("x", "y"))), TWO),
    "2 + 2 groups": (Cells((("f", "m"), ("x", "y")), mode="marginal"), TWO),
    "2 groups, 3 classes": (Cells((("f", "m"),)), THREE),
    "2 + 2 groups, 3 classes": (Cells((("f", "m"), ("x", "y")), mode="marginal"), THREE),
}
ROWS = 60
COSTS = np.array([[0.0, 1.0, 2.0], [5.0, 0.0, 0.5], [1.0, 1.0, -1.0]])


@dataclass(frozen=True)
class World:
    """Rows with groups and labels, and the frame that their exact, or noisy, shares make."""

    cells: Cells
    classes: tuple[str, ...]
    groups: Any  # (rows, per_row): the cells of a row
    labels: Any
    frame: Frame

    def losses(self, decisions: Any, rows: Any = None, n: int = ROWS) -> Any:
        """l: joint frequencies, from a loop over rows."""
        out = np.zeros(self.frame.shape)
        for i in range(len(self.labels)) if rows is None else rows:
            for cell in self.groups[i]:
                out[cell, self.labels[i], decisions[i]] += 1.0 / n
        return out

    def sampled(self, rng: np.random.Generator, count: int) -> Any:
        """l of random decisions: some constant, some by group, some nearly all right."""
        k = len(self.classes)
        found = []
        for j in range(count):
            decisions = rng.integers(k, size=ROWS)
            if j % 3 == 1:
                right = rng.random(ROWS) < rng.random()
                decisions = np.where(right, self.labels, decisions)
            if j % 3 == 2:
                decisions = rng.integers(k, size=self.cells.count)[self.groups[:, 0]]
            found.append(self.losses(decisions))
        return np.array(found)


def world(name: str, floor: float = 0.05, *, noisy: bool = False, empty: bool = False) -> World:
    cells, classes = FRAMES[name]
    rng = np.random.default_rng(sum(map(ord, name)))
    codes = np.array([rng.integers(size, size=ROWS) for size in cells.sizes])
    if empty:
        nobody = codes[0] == 0 if cells.per_row > 1 else (codes == 0).all(axis=0)
        codes[0, nobody] = 1
    often = np.array([1.0, 2.0, 9.0])[: len(classes)]
    groups, labels = cells.ids(codes).T, rng.choice(len(classes), ROWS, p=often / often.sum())
    shares = np.zeros((cells.count, len(classes)))
    for row, label in zip(groups, labels, strict=True):
        shares[row, label] += 1.0 / ROWS
    if noisy:
        shares = np.maximum(shares + 0.03 * rng.standard_normal(shares.shape), 0.0)
    return World(cells, classes, groups, labels, Frame(cells, classes, shares, floor))


CASES = {
    "error": objectives.Error(),
    "weighted error": objectives.WeightedError({("yes", "no"): 5.0}),
    "weighted table": objectives.WeightedError(COSTS),
    "rate": objectives.RateOf(PredictionRate("yes", Event(labels=("yes",)))),
    "misses": objectives.FalseNegatives(),
    "false alarms": objectives.FalsePositives(),
    "gmean": objectives.GMean(),
    "smoother gmean": objectives.GMean(0.1),
    "hmean": objectives.HMean(),
    "odds": objectives.Gap("equalized_odds"),
    "smooth odds": objectives.Gap("equalized_odds", 30.0),
    "parity": objectives.Gap("demographic_parity"),
    "largest group loss": objectives.LargestGroupLoss(),
    "smooth largest group loss": objectives.LargestGroupLoss(sharpness=25.0),
    "largest group cost": objectives.LargestGroupLoss(COSTS),
    "mean of the groups' losses": objectives.MeanGroupLoss(),
    "sum of error rates": objectives.SumOfErrorRates(),
    "Definition 1.14": objectives.SmoothedOddsOfPairs(10.0),
    "Example 8.10": objectives.SmoothedOddsOfRates(10.0),
}
BINARY = ("weighted error", "rate", "misses", "false alarms")
BINARY = (*BINARY, "Definition 1.14", "Example 8.10")
TERNARY = ("weighted table", "largest group cost")


def functions(one: World) -> dict[str, GroupFunction]:
    """Every objective and constraint at a frame, Gini's level set and a user's own among them."""
    found = {}
    mode = one.cells.mode
    for title, objective in CASES.items():
        if (title in BINARY and len(one.classes) == 3) or (
            title in TERNARY and len(one.classes) == 2
        ):
            continue
        found[title] = (
            replace(objective, groups=mode) if hasattr(objective, "notion") else objective
        ).at(one.frame)
    found["gini"] = objectives.Gini().at_most(0.2).at(one.frame)
    found["a user's"] = objectives.Custom(
        lambda v: float(v @ v), lambda v: 2.0 * v, 2.0 * math.sqrt(4), 2.0
    ).at(one.frame)
    if len(one.classes) == 2:
        notions = [EqualizedOdds(0.1, groups=mode), DemographicParity(0.05, groups=mode)]
        found["notions"] = parse_constraint(notions).at(one.frame)[0]
    return found


# ---- objectives
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("kind", ["exact shares", "noisy shares", "empty group"])
def test_no_sample_breaks_a_constant(name: str, kind: str) -> None:
    one = world(
        name,
        floor=0.02 if kind == "empty group" else 0.05,
        noisy=kind == "noisy shares",
        empty=kind == "empty group",
    )
    rng = np.random.default_rng(1)
    losses, other = one.sampled(rng, 50), one.sampled(rng, 50)
    for title, function in functions(one).items():
        above = (
            float(function.rates(np.concatenate([losses, other])).max()) > 1.0 and "mean" in title
        )
        _hold(function, losses, other, rng, smooth=not above)  # numbers above 1 count as 1: a kink


def _hold(
    function: Any, losses: Any, other: Any, rng: np.random.Generator, *, smooth: bool = True
) -> None:
    values, others, gradients, at_others = (
        function.value(losses),
        function.value(other),
        function.gradient(losses),
        function.gradient(other),
    )
    assert values.shape == (len(losses),)
    assert gradients.shape == losses.shape
    low, high = function.slopes
    assert low.shape == high.shape == function.shape
    scale = 1.0 + float(np.abs(gradients).max())
    assert (low <= gradients + 1e-9 * scale).all()
    assert (gradients <= high + 1e-9 * scale).all()
    axes = tuple(range(1, losses.ndim))
    away = other - losses
    apart = np.sqrt((away**2).sum(axis=axes))
    assert (np.sqrt((gradients**2).sum(axis=axes)) <= function.lipschitz * (1 + 1e-9)).all()
    assert (np.abs(others - values) <= function.lipschitz * apart * (1 + 1e-9) + 1e-12).all()
    rise = np.maximum(away, 0.0), np.minimum(away, 0.0)
    assert (others - values <= (high * rise[0] + low * rise[1]).sum(axis=axes) + 1e-9 * scale).all()
    if function.convex:
        assert (others >= values + (gradients * away).sum(axis=axes) - 1e-9 * scale).all()
        assert (function.value((losses + other) / 2) <= (values + others) / 2 + 1e-9 * scale).all()
    if math.isfinite(function.smoothness) and smooth:
        turned = np.sqrt(((at_others - gradients) ** 2).sum(axis=axes))
        assert (turned <= function.smoothness * apart * (1 + 1e-9) + 1e-9).all()
    _differentiated(function, 0.5 * losses + 0.5 * other, rng)
    if function.monotone:
        assert (function.value(losses + rng.random(losses.shape) / ROWS) >= values - 1e-12).all()


def _differentiated(function: Any, losses: Any, rng: np.random.Generator) -> None:
    """Along random lines, where the two one-sided differences agree (no kink) so does the gradient;
    somewhere they do."""
    step, found = 1e-7, 0
    gradients = function.gradient(losses)
    size = 1.0 + float(np.abs(gradients).max())
    for _ in range(3):
        line = rng.random(function.shape)  # away from 0: losses stay possible
        there, here, back = (function.value(losses + move * line) for move in (step, 0.0, -step))
        right, left, slope = (
            (there - here) / step,
            (here - back) / step,
            (gradients * line).reshape(len(losses), -1).sum(axis=1),
        )
        bend = function.smoothness if math.isfinite(function.smoothness) else 0.0
        allowed = 1e-5 * size + 4.0 * bend * step * line.size
        same = np.abs(right - left) < allowed
        found += int(same.sum())
        assert (np.abs((right + left) / 2 - slope)[same] < 2.0 * allowed).all()
    assert found


@pytest.mark.parametrize("name", FRAMES)
def test_one_row_moves_the_value_within_the_slopes(name: str) -> None:
    """A row comes to its cells, its label and any class: the change lies between sums of slopes /
    n0."""
    one = world(name)
    rng = np.random.default_rng(2)
    all_functions = functions(one).values()
    slopes = [[end / ROWS for end in function.slopes] for function in all_functions]
    decisions = rng.integers(len(one.classes), size=ROWS)
    for size in (0, 1, 20, ROWS - 1):
        before = one.losses(decisions, rng.permutation(ROWS)[:size])
        places = [
            [(cell, one.labels[i], k) for cell in one.groups[i]]
            for i in range(0, ROWS, 5)
            for k in range(len(one.classes))
        ]
        after = np.repeat(before[np.newaxis], len(places), axis=0)
        for j, each in enumerate(places):
            for place in each:
                after[j][place] += 1.0 / ROWS
        for function, (low, high) in zip(all_functions, slopes, strict=True):
            change = function.value(after) - function.value(before)
            most, least = (
                np.array([sum(end[place] for place in each) for each in places])
                for end in (high, low)
            )
            assert (least - 1e-9 <= change).all()
            assert (change <= most + 1e-9).all()


@pytest.mark.parametrize("name", FRAMES)
def test_values_are_those_of_loops_over_rows(name: str) -> None:
    one = world(name, floor=1e-12)
    k = len(one.classes)
    rng = np.random.default_rng(3)
    decisions = rng.integers(k, size=ROWS)
    losses = one.losses(decisions)
    wrong = decisions != one.labels
    assert float(objectives.Error().at(one.frame).value(losses)) == pytest.approx(wrong.mean())
    recalls = np.array([(decisions[one.labels == y] == y).mean() for y in range(k)])
    s = 0.01
    g_mean, h_mean = np.prod(recalls + s) ** (1 / k), k / (1 / (recalls + s)).sum()
    assert float(objectives.GMean().at(one.frame).value(losses)) == pytest.approx(1 + s - g_mean)
    assert float(objectives.HMean().at(one.frame).value(losses)) == pytest.approx(1 + s - h_mean)
    inside = [(one.groups == c).any(axis=1) for c in range(one.cells.count)]
    means = np.array([wrong[member].mean() for member in inside])
    assert float(objectives.LargestGroupLoss().at(one.frame).value(losses)) == pytest.approx(
        means.max()
    )
    blocks = [range(4)] if one.cells.per_row == 1 else [range(2), range(2, 4)]
    blocks = [block for block in blocks if max(block) < one.cells.count] or [range(one.cells.count)]
    chances = np.array([[(decisions[member] == y).mean() for y in range(k)] for member in inside])
    gaps = [
        np.abs(chances[a] - chances[b]).max()
        for block in blocks
        for a, b in itertools.combinations(block, 2)
    ]
    assert float(
        objectives.Gap("demographic_parity", groups=one.cells.mode).at(one.frame).value(losses)
    ) == pytest.approx(max(gaps))
    if k == 2:
        odds = np.array(
            [[(decisions[m & (one.labels == y)] == 1).mean() for y in range(2)] for m in inside]
        )
        gaps = [
            np.abs(odds[a] - odds[b]).max()
            for block in blocks
            for a, b in itertools.combinations(block, 2)
        ]
        assert float(
            objectives.Gap("equalized_odds", groups=one.cells.mode).at(one.frame).value(losses)
        ) == pytest.approx(max(gaps))
        assert float(objectives.FalseNegatives().at(one.frame).value(losses)) == pytest.approx(
            1 - recalls[1]
        )
        assert float(objectives.FalsePositives().at(one.frame).value(losses)) == pytest.approx(
            1 - recalls[0]
        )


def test_regression_knows_objectives_by_group_alone() -> None:
    cells = Cells((("f", "m"), ("x", "y")))
    frame = Frame(cells, (), np.array([0.5, 0.3, 0.2, 0.0]), 0.05)
    rng = np.random.default_rng(4)
    losses = rng.random((50, 4)) * np.maximum(frame.shares, 0.001)
    wanted = losses / np.maximum(frame.shares, 0.05)
    found = objectives.LargestGroupLoss().at(frame)
    assert found.value(losses) == pytest.approx(wanted.max(axis=-1))
    assert objectives.Error().at(frame).value(losses) == pytest.approx(losses.sum(axis=-1))
    weighted = objectives.WeightedError(groups={("f", "x"): 3.0})
    assert weighted.at(frame).value(losses) == pytest.approx(losses @ [3.0, 1.0, 1.0, 1.0])
    for function in (found, objectives.Gini().at_most(0.3).at(frame), weighted.at(frame)):
        _hold(function, losses, losses[::-1], rng)
    (bounded,) = parse_constraint(BoundedGroupLoss(0.2, loss="squared")).at(frame)
    assert bounded.value(losses) == pytest.approx(wanted.max(axis=-1) - 0.2)
    for refused in (objectives.GMean(), objectives.Gap(), objectives.FalsePositives()):
        with pytest.raises(InputError, match="decisions among classes"):
            refused.at(frame)
    with pytest.raises(InputError, match="bounds on losses"):
        parse_constraint(EqualizedOdds(0.1)).at(frame)


def test_an_empty_group_has_the_floors_slopes_and_a_rate_of_nothing() -> None:
    one = world("2 groups", floor=0.02, empty=True)
    assert one.frame.shares[0].sum() == 0.0
    losses = one.sampled(np.random.default_rng(5), 5)
    found = objectives.LargestGroupLoss().at(one.frame)
    assert (found.rates(losses)[:, 0] == 0.0).all()
    assert found.slopes[1].max() == 50.0
    assert objectives.Gap("equalized_odds").at(one.frame).lipschitz >= 50.0


# ---- functions of rates
# -------------------------------------------------------------------------------------------------

OUTERS = {
    "total": Total(),
    "largest": Largest(),
    "soft largest": SoftLargest(10.0),
    "sharp soft largest": SoftLargest(200.0),
    "Boltzmann": BoltzmannOfGaps(5.0),
    "sharp Boltzmann": BoltzmannOfGaps(100.0),
    "geometric": GeometricShortfall(),
    "smoother geometric": GeometricShortfall(0.3),
    "harmonic": HarmonicShortfall(),
    "smoother harmonic": HarmonicShortfall(0.3),
    "inequality": Inequality(0.25),
}


@pytest.mark.parametrize("name", OUTERS)
@pytest.mark.parametrize("m", [1, 2, 4, 9])
@pytest.mark.parametrize("mixed", [False, True])
def test_functions_of_rates_hold_their_constants(name: str, m: int, mixed: bool) -> None:
    """With lines of both signs, too: there the ranges of slopes are sums of worst cases."""
    rng = np.random.default_rng(m)
    lines = np.eye(m) if not mixed else rng.standard_normal((m, 3)) * (rng.random((m, 3)) < 0.7)
    if mixed and ("metric" in name or "monic" in name or name == "inequality"):
        lines = np.abs(lines) / max(float(np.abs(lines).sum(axis=1).max()), 1e-9)
    function = GroupFunction(
        (lines.shape[1],), stacked(list(lines), (lines.shape[1],)), OUTERS[name]
    )
    v, w = rng.random((300, lines.shape[1])), rng.random((300, lines.shape[1]))
    v[:100] = rng.random((100, lines.shape[1])) ** 8
    v[0], w[0] = 0.0, 1.0
    w[200:] = np.clip(v[200:] + 1e-3 * rng.standard_normal(v[200:].shape), 0.0, 1.0)
    _hold(function, v, w, rng)


@pytest.mark.parametrize("name", [name for name in OUTERS if "oltzmann" not in name])
def test_stated_constants_are_not_far_from_what_happens(name: str) -> None:
    """Lengths of gradients, at vectors that a search finds, come within a factor of 2 of the
    constant."""
    function, m = OUTERS[name], 3
    corners = np.array(list(itertools.product([0.0, 0.5, 1.0], repeat=m)))
    found = float(np.linalg.norm(function.gradient(corners), axis=-1).max())
    assert function.steepness(m) / 2.0 <= found <= function.steepness(m) * (1 + 1e-9)


@pytest.mark.parametrize("m", [2, 3, 4, 10, 60])
def test_boltzmann_overshoot_is_reached_and_never_passed(m: int) -> None:
    function = BoltzmannOfGaps(1.0)
    ahead = np.ones((4001, m))
    ahead[:, 0] += np.linspace(0.0, 12.0, len(ahead))
    rng = np.random.default_rng(m)
    anywhere = np.abs(rng.standard_normal((4000, m)) * rng.random((4000, 1)) * 8)
    negative = [
        np.maximum(-function.gradient(v), 0.0).sum(axis=-1).max() for v in (ahead, anywhere)
    ]
    assert max(negative) <= overshoot(m)
    assert negative[0] == pytest.approx(overshoot(m), rel=1e-4)
    gradients = function.gradient(anywhere)
    assert gradients.sum(axis=-1) == pytest.approx(np.ones(len(anywhere)))


def test_the_papers_smooth_maximum_is_neither_convex_nor_of_lipschitz_constant_one() -> None:
    """(alpha, eta)-smoothed equalized odds (Definition 1.14) is assumed convex and 1-Lipschitz by
    Corollary 8.9."""
    smax = BoltzmannOfGaps(1.0)
    assert not smax.convex
    u, v = np.array([2.0, 0.0]), np.array([6.0, 0.0])  # phi(x, 0) = x / (1 + e^-x)
    middle = float(smax.value((u + v) / 2))
    assert middle == pytest.approx(4.0 / (1.0 + math.exp(-4.0)))
    assert middle > (float(smax.value(u)) + float(smax.value(v))) / 2 + 0.01
    sharp = BoltzmannOfGaps(50.0)  # four rates, one 0.057 ahead of the rest: between 0 and 1
    rates = np.array([0.557, 0.5, 0.5, 0.5])
    gradient = sharp.gradient(rates)
    assert float(np.linalg.norm(gradient)) > 1.2
    step = 1e-6 * gradient / np.linalg.norm(gradient)
    assert float(sharp.value(rates + step) - sharp.value(rates)) > 1.2e-6
    assert sharp.lipschitz(stacked(list(np.eye(4)), (4,))) > 1.2
    assert SoftLargest(50.0).convex
    assert SoftLargest(50.0).steepness(4) == 1.0


def test_smooth_maxima_lie_on_their_sides_of_the_maximum() -> None:
    v = np.random.default_rng(6).random((500, 5))
    largest = v.max(axis=-1)
    for eta in (1.0, 30.0, 1e4):
        over = SoftLargest(eta).value(v) - largest
        assert (over >= 0.0).all()
        assert (over <= math.log(5) / eta + 1e-12).all()
        under = largest - BoltzmannOfGaps(eta).value(v)
        assert (under >= -1e-12).all()
        assert (under <= math.log(5) / eta + 1e-12).all()
    assert SoftLargest(1e6).value(np.array([1e4, -1e4])) == 1e4


@pytest.mark.parametrize("function", [GeometricShortfall(0.05), HarmonicShortfall(0.05)])
def test_recalls_above_one_count_as_one_and_convexity_stays(function: Any) -> None:
    """Shares that divide are noisy: a recall may come out above 1."""
    rng = np.random.default_rng(7)
    v, w = 1.6 * rng.random((400, 3)), 1.6 * rng.random((400, 3))
    assert function.value(np.array([1.3, 0.5, 1.0])) == function.value(np.array([1.0, 0.5, 1.0]))
    assert (
        function.value(w)
        >= function.value(v) + (function.gradient(v) * (w - v)).sum(axis=-1) - 1e-12
    ).all()
    assert (function.gradient(v)[v > 1.0] == 0.0).all()


@pytest.mark.parametrize("m", [2, 3, 6])
def test_ginis_level_set_is_that_of_the_index(m: int) -> None:
    v = np.random.default_rng(m).random((400, m)) ** 2
    direct = np.abs(v[:, :, None] - v[:, None, :]).sum(axis=(1, 2)) / (2 * m * v.sum(axis=1))
    assert gini(v) == pytest.approx(direct)
    for theta in (0.05, 0.2, 0.45):
        inside = Inequality(theta).value(v) <= 0.0
        assert (inside == (direct <= theta)).all()
    u, w = np.zeros(m), np.zeros(m)
    u[0], w[0], w[1] = 1.0, 0.1, 0.1  # the index itself is not convex
    middle = float(gini((u + w) / 2))
    assert middle > (float(gini(u)) + float(gini(w))) / 2 + 1e-3 or m == 2


# ---- means of recalls
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", range(2, 11))
def test_means_of_recalls_are_the_formulas_of_a_confusion_matrix(size: int) -> None:
    """Examples 8.2 and 8.3 by rows, at smoothing so small that it does not show."""
    rng = np.random.default_rng(size)
    confusion = rng.dirichlet(np.ones(size * size)).reshape(size, size)
    classes = tuple(range(size))
    frame = Frame(Cells((("all",),)), classes, confusion.sum(axis=1)[np.newaxis])
    recalls = np.diag(confusion) / confusion.sum(axis=1)
    smoothing = 1e-9
    g_mean = math.prod(recalls) ** (1 / size)
    h_mean = size / sum(1 / recall for recall in recalls)
    assert 1 - float(
        objectives.GMean(smoothing).at(frame).value(confusion[np.newaxis])
    ) == pytest.approx(g_mean, abs=1e-6)
    assert 1 - float(
        objectives.HMean(smoothing).at(frame).value(confusion[np.newaxis])
    ) == pytest.approx(h_mean, abs=1e-6)
    assert h_mean <= g_mean <= recalls.mean()


def test_smoothing_moves_a_mean_by_no_more_than_itself_and_never_downwards() -> None:
    recalls = np.random.default_rng(8).random((300, 4))
    for s in (0.001, 0.05, 0.3):
        exact = recalls.prod(axis=1) ** 0.25, 4 / (1 / recalls).sum(axis=1)
        for kind, mean in zip(
            (GeometricShortfall(s), HarmonicShortfall(s)),
            exact,
            strict=True,
        ):
            lifted = 1.0 + s - kind.value(recalls)
            assert (lifted >= mean + s - 1e-12).all()


def test_the_column_reading_of_example_8_3_is_not_concave() -> None:
    """Dividing by columns makes precisions: their harmonic mean, at fixed shares of labels, is
    below its chord."""

    def by_columns(confusion: Any) -> float:
        precisions = np.diag(confusion) / confusion.sum(axis=0)
        return float(2 / (1 / precisions).sum())

    def by_rows(confusion: Any) -> float:
        recalls = np.diag(confusion) / confusion.sum(axis=1)
        return float(2 / (1 / recalls).sum())

    one, other = np.array([[0.02, 0.88], [0.08, 0.02]]), np.array([[0.88, 0.02], [0.05, 0.05]])
    # the same labels, so mixtures of decisions mix these
    assert one.sum(axis=1) == pytest.approx(other.sum(axis=1))
    assert by_columns((one + other) / 2) < (by_columns(one) + by_columns(other)) / 2 - 0.25
    assert by_rows((one + other) / 2) >= (by_rows(one) + by_rows(other)) / 2
