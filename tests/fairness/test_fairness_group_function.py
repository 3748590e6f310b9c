"""f and g as one function: Corollary 4.2's promise, constants of the joint function, users'
functions, texts."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from fairveil.errors import FairveilError, InputError
from fairveil.facts import Cells
from fairveil.fairness import objectives
from fairveil.fairness.functions import (
    BoltzmannOfGaps,
    GroupFunction,
    Joint,
    Largest,
    Outer,
    SoftLargest,
    Total,
    Worst,
    corollary_4_2,
    diameter,
    span,
    stacked,
)
from fairveil.fairness.notions import EqualizedOdds
from fairveil.fairness.objectives import (
    Bound,
    Constraint,
    Custom,
    Frame,
    Gap,
    Gini,
    GMean,
    SmoothedOddsOfPairs,
    parse_constraint,
    parse_objective,
)

FRAME = Frame(Cells((("f", "m"),)), ("no", "yes"), np.array([[0.3, 0.1], [0.4, 0.2]]), 0.01)


def convex(rng: np.random.Generator, size: int) -> GroupFunction:
    """The largest of a few planes, or a smooth form of it, at a random level."""
    lines = stacked(list(rng.standard_normal((4, size))), (size,))
    kind: Outer = Largest() if rng.random() < 0.5 else SoftLargest(20.0)
    return GroupFunction((size,), lines, kind, offsets=rng.standard_normal(4) * 0.3)


# ---- Corollary 4.2
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["losses of disjoint groups", "losses in a box"])
def test_alpha_for_the_joint_function_is_alpha_for_both(shape: str) -> None:
    """Every decision whose h is within alpha of the least has f within alpha and g at most
    alpha."""
    rng = np.random.default_rng(0)
    judged = 0
    for _ in range(200):
        size = int(rng.integers(2, 6))
        boxed = shape.endswith("box")
        decisions = (
            rng.random((60, size)) if boxed else rng.dirichlet(np.ones(size + 1), 60)[:, :size]
        )
        f, g = convex(rng, size), convex(rng, size)
        g = g.less(float(np.quantile(g.value(decisions), 0.3)))
        alpha = float(rng.choice([0.02, 0.1, 0.5]))
        h = Joint(f, g, corollary_4_2(f, alpha, per_row=size if boxed else 1))
        values, feasible = h.value(decisions), g.value(decisions) <= 0.0
        good = values <= values.min() + alpha
        assert (
            f.value(decisions)[good] <= f.value(decisions)[feasible].min() + alpha + 1e-12
        ).all()
        assert (g.value(decisions)[good] <= alpha + 1e-12).all()
        judged += int((good & ~feasible).sum())
    assert judged > 20  # decisions that break the constraint, by less than alpha


def test_too_small_a_penalty_breaks_the_promise() -> None:
    """f falls by its whole range where g is broken: with G = 1 the least h breaks g by far more
    than alpha."""
    alpha = 0.05
    f = GroupFunction((2,), stacked([np.array([-3.0, 0.0])], (2,)), Total())
    g = GroupFunction((2,), stacked([np.array([1.0, 0.0])], (2,)), Total())
    decisions = np.stack([np.linspace(0.0, 1.0, 21), np.zeros(21)], axis=1)
    small, enough = (
        Joint(f, g, penalty).value(decisions) for penalty in (1.0, corollary_4_2(f, alpha))
    )
    assert g.value(decisions)[small.argmin()] == 1.0
    assert (g.value(decisions)[enough <= enough.min() + alpha] <= alpha).all()
    with pytest.raises(InputError, match="alpha"):
        corollary_4_2(f, 0.0)


@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_the_diameter_and_the_span_are_never_too_small(mode: Any) -> None:
    cells = Cells((("f", "m"), ("x", "y")), mode=mode)
    rng, rows = np.random.default_rng(1), 12
    farthest = {2: 0.0, 0: 0.0}
    f = GroupFunction((4,), stacked(list(rng.standard_normal((3, 4))), (4,)), Largest())
    values = []
    for trial in range(400):
        codes = (
            rng.integers(2, size=(2, rows))
            if trial % 2
            else np.tile(rng.integers(2, size=(2, 1)), rows)
        )
        ids = cells.ids(codes)
        ends = []
        for losses in (
            (rng.random(rows) < rng.random()).astype(float),
            np.full(rows, float(trial % 3 > 0)),
        ):
            sums = np.zeros(4)
            for line in ids:
                np.add.at(sums, line, losses / rows)
            counts = np.zeros((4, 1, 2))
            for line in ids:
                np.add.at(counts, (line, 0, losses.astype(int)), 1.0 / rows)
            ends.append((sums, counts))
            values.append(float(f.value(sums)))
        farthest[0] = max(farthest[0], float(np.linalg.norm(ends[0][0] - ends[1][0])))
        farthest[2] = max(farthest[2], float(np.linalg.norm(ends[0][1] - ends[1][1])))
    assert farthest[0] <= diameter((4,), cells.per_row)
    assert farthest[2] <= diameter((4, 1, 2), cells.per_row)
    assert farthest[2] >= 0.99 * diameter((4, 1, 2), cells.per_row)
    assert max(values) - min(values) <= span(f, cells.per_row)
    assert diameter((1,)) == 1.0


# ---- h and the worst of several
# ------------------------------------------------------------------------------------------


def test_the_joint_functions_constants_hold() -> None:
    rng = np.random.default_rng(2)
    v, w = rng.random((300, 4)), rng.random((300, 4))
    w[150:] = v[150:] + 1e-3 * rng.standard_normal((150, 4))
    apart = np.linalg.norm(v - w, axis=1)
    for width, several in itertools.product((0.0, 0.05), (False, True)):
        f = GroupFunction((4,), stacked(list(rng.standard_normal((3, 4))), (4,)), SoftLargest(5.0))
        g: Any = GroupFunction(
            (4,), stacked(list(rng.standard_normal((3, 4))), (4,)), SoftLargest(5.0)
        ).less(0.3)
        if several:
            g = Worst((g, GroupFunction((4,), stacked([np.ones(4)], (4,)), Total()).less(2.0)))
        h = Joint(f, g, 7.0, width)
        values, others, slopes = h.value(v), h.value(w), h.gradient(v)
        assert ((g.value(v) > 0).any(), (g.value(v) < 0).any()) == (True, True)
        low, high = h.slopes
        assert (low <= slopes).all()
        assert (slopes <= high).all()
        assert (np.linalg.norm(slopes, axis=1) <= h.lipschitz).all()
        assert (others >= values + (slopes * (w - v)).sum(axis=1) - 1e-9).all()
        assert h.convex
        smooth = width > 0 and not several
        assert math.isfinite(h.smoothness) == smooth
        if smooth:
            assert (
                np.linalg.norm(h.gradient(w) - slopes, axis=1) <= h.smoothness * apart * (1 + 1e-9)
            ).all()
        sharp = Joint(f, g, 7.0).value(v)
        assert (values <= sharp + 1e-12).all()
        assert (values >= sharp - 7.0 * width / 2 - 1e-12).all()


def test_without_a_constraint_the_joint_function_is_the_objective() -> None:
    f = objectives.GMean().at(FRAME)
    h = Joint(f, None, 5.0)
    point = np.random.default_rng(3).dirichlet(np.ones(8)).reshape(2, 2, 2)
    assert h.value(point) == f.value(point)
    assert (h.gradient(point) == f.gradient(point)).all()
    assert (h.lipschitz, h.smoothness, h.convex, h.trusted) == (
        f.lipschitz,
        f.smoothness,
        True,
        False,
    )
    assert corollary_4_2(f, 0.1) == pytest.approx(1 + span(f) / 0.1)


def test_what_is_not_convex_or_not_proved_stays_so_in_company() -> None:
    smooth, own = (
        SmoothedOddsOfPairs(20.0).at(FRAME),
        Custom(np.sum, np.ones_like, 2.0).at(FRAME),
    )
    f = objectives.Error().at(FRAME)
    assert not Joint(f, smooth, 2.0).convex
    assert not Worst((f, smooth)).convex
    assert Joint(f, own, 2.0).trusted
    assert Worst((own, f)).trusted
    assert f.monotone
    assert not smooth.monotone


def test_the_least_of_a_convex_program_is_found_by_a_linear_program() -> None:
    """Values of `Largest` objectives are those of an independent solver: the least group loss over
    mixtures of decisions."""
    rng = np.random.default_rng(4)
    points = rng.dirichlet(np.ones(8), 30).reshape(30, 2, 2, 2)
    f = objectives.LargestGroupLoss().at(FRAME)
    rates = f.rates(points)
    found = linprog(
        [*[0.0] * 30, 1.0], np.c_[rates.T, -np.ones(2)], np.zeros(2), [[*[1.0] * 30, 0.0]], [1.0]
    )
    mixture = np.tensordot(found.x[:30], points, axes=1)
    assert float(f.value(mixture)) == pytest.approx(found.fun)
    assert found.fun <= float(f.value(points).min())


# ---- users' functions
# --------------------------------------------------------------------------------------------------


def square(v: Any) -> float:
    return float(v @ v)


def test_what_a_user_states_rightly_is_taken_and_marked_as_trusted() -> None:
    found = Custom(square, lambda v: 2 * v, 2 * math.sqrt(2), 2.0, monotone=True).at(FRAME)
    assert found.trusted
    assert found.convex
    assert found.slopes[0].min() >= 0.0
    largest = Custom(np.max, lambda v: np.eye(len(v))[np.argmax(v)], 1.0, rates="frequencies").at(
        FRAME
    )
    assert largest.lines.shape == (8, 8)
    assert largest.slopes[0].min() == -1.0


WRONG = {
    "twice the gradient": (Custom(square, lambda v: 4 * v, 9.0, 4.0), "gradient"),
    "no gradient, a kink": (Custom(np.max, np.zeros_like, 1.0), "gradient"),
    "no gradient, not convex": (
        Custom(lambda v: -np.max(v), np.zeros_like, 1.0, convex=False),
        "gradient",
    ),
    "a tangent that is above": (Custom(square, lambda v: 4 * v, 9.0), "subgradient"),
    "slopes": (Custom(square, lambda v: 2 * v, 1.0, 2.0), "slopes of at most 1"),
    "bend": (Custom(square, lambda v: 2 * v, 3.0, 1.0), "turn by at most 1"),
    "a kink stated smooth": (
        Custom(np.max, lambda v: np.eye(len(v))[np.argmax(v)], 1.0, 3.0),
        "turn by at most 3",
    ),
    "concave": (Custom(lambda v: -square(v), lambda v: -2 * v, 3.0, 2.0), "convex"),
    "Boltzmann stated convex": (
        Custom(
            lambda v: float(BoltzmannOfGaps(9.0).value(v)),
            lambda v: BoltzmannOfGaps(9.0).gradient(v),
            2.0,
        ),
        "convex",
    ),
    "falling": (
        Custom(lambda v: -float(np.sum(v)), lambda v: -np.ones_like(v), 2.0, 0.0, monotone=True),
        "non-decreasing",
    ),
    "NaN at 0": (
        Custom(lambda v: float(np.log(v).sum()) if v.min() <= 0 else 0.0, np.zeros_like, 1.0),
        "finite",
    ),
    "NaN gradient": (Custom(lambda v: 0.0, lambda v: v * math.nan, 1.0), "finite"),
    "raises": (Custom(lambda v: {}["rate"], np.zeros_like, 1.0), "KeyError"),
    "a gradient of one number": (
        Custom(square, lambda v: 1.0, 3.0),
        "gradient with a number for each rate",
    ),
    "no number": (Custom(lambda v: "much", np.zeros_like, 1.0), "ValueError"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_a_user_states_wrongly_is_refused(name: str) -> None:
    objective, words = WRONG[name]
    with pytest.raises(InputError, match=words):
        objective.at(FRAME)


@pytest.mark.parametrize(
    "arguments",
    [
        {"lipschitz": -1.0},
        {"lipschitz": math.inf},
        {"lipschitz": 1.0, "smoothness": -1.0},
        {"lipschitz": 1.0, "rates": "counts"},
        {"lipschitz": 1.0, "value": 3},
    ],
)
def test_a_users_objective_needs_functions_and_constants(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Custom(**({"value": square, "gradient": np.zeros_like} | arguments))


# ---- names, bounds and texts
# ---------------------------------------------------------------------------------------------


def test_names_and_texts_are_objectives_and_constraints() -> None:
    assert [
        str(parse_objective(name)) for name in ("error", "equalized-odds", "largest_group_loss")
    ] == [
        "error",
        "equalized_odds",
        "largest_group_loss",
    ]
    assert parse_objective(GMean(0.1)) == GMean(0.1)
    given = ["equalized_odds:0.1", "gmean:0.3", Gini().at_most(0.2), [EqualizedOdds(0.2)][0]]
    constraint = parse_constraint(given)
    assert (len(constraint.bounds), len(constraint.notions)) == (2, 2)
    values = [function.value(np.full((2, 2, 2), 0.125)) for function in constraint.at(FRAME)]
    assert len(values) == 3
    assert parse_constraint(None).is_vacuous
    assert str(parse_constraint(None)) == "none"
    assert parse_constraint(constraint).bounds == constraint.bounds
    assert not constraint.is_vacuous


@pytest.mark.parametrize("given", ["accuracy", 3, None, EqualizedOdds(0.1), ["error"]])
def test_what_is_no_objective_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match="objective"):
        parse_objective(given)


@pytest.mark.parametrize(
    "given",
    [
        "gmean",
        "gmean:much",
        "gini:2",
        "gini:nan",
        "hmean:-0.1",
        "fairness:0.1",
        3,
        [3],
        GMean(),
        [None],
    ],
)
def test_what_is_no_constraint_is_refused(given: Any) -> None:
    with pytest.raises(FairveilError):
        parse_constraint(given)


def test_a_mean_of_at_least_is_a_shortfall_of_at_most() -> None:
    bound = GMean().at_least(0.7)
    assert isinstance(bound, Bound)
    assert bound.bound == pytest.approx(0.3)
    everyone_right = np.zeros((2, 2, 2))
    for y in range(2):
        everyone_right[:, y, y] = FRAME.shares[:, y]
    assert float(bound.at(FRAME).value(everyone_right)) == pytest.approx(-0.3)
    with pytest.raises(InputError):
        GMean().at_least(1.5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: GMean(0.0),
        lambda: objectives.HMean(2.0),
        lambda: Gap("fairness"),
        lambda: Gap(sharpness=0.0).at(FRAME),
        lambda: Gini().at(FRAME),
        lambda: Gini(-np.eye(2)).at_most(0.1).at(FRAME),
        lambda: objectives.WeightedError(np.eye(3)).at(FRAME),
        lambda: objectives.WeightedError([["a", "b"], ["c", "d"]]).at(FRAME),
        lambda: objectives.WeightedError({("yes", "no"): "much"}).at(FRAME),
        lambda: objectives.WeightedError({("yes", "maybe"): 1.0}).at(FRAME),
        lambda: objectives.WeightedError({"yes": 1.0}).at(FRAME),
        lambda: objectives.WeightedError(groups={"q": 1.0}).at(FRAME),
        lambda: objectives.WeightedError(groups={"f": "much"}).at(FRAME),
        lambda: objectives.WeightedError(groups={"f": math.inf}).at(FRAME),
        lambda: objectives.FalseNegatives("maybe").at(FRAME),
        lambda: objectives.LargestGroupLoss([[0.0, math.nan], [1.0, 0.0]]).at(FRAME),
        lambda: Gap().at(Frame(Cells((("all",),)), ("no", "yes"), np.full((1, 2), 0.5))),
        lambda: objectives.Error().at_most(-1.0),
    ],
)
def test_bad_input_is_an_input_error(make: Any) -> None:
    with pytest.raises(InputError):
        make()


def test_a_constraint_of_several_is_its_parts() -> None:
    constraint = Constraint((GMean().at_least(0.9), Gini().at_most(0.3)), (EqualizedOdds(0.1),))
    points = np.random.default_rng(5).dirichlet(np.ones(8), 20).reshape(20, 2, 2, 2)
    worst = Worst(tuple(constraint.at(FRAME))).value(points)
    parts = [GMean().at_least(0.9), Gini().at_most(0.3), Gap("equalized_odds").at_most(0.1)]
    assert worst == pytest.approx(np.max([part.at(FRAME).value(points) for part in parts], axis=0))
