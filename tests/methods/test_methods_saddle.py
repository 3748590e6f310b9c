"""Private descent-ascent for a user's saddle functions: the guarantees in
`methods/saddle.py`, and known solutions."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import stats

import fairveil as fv
from fairveil import Promise
from fairveil.core import pricing
from fairveil.core.events import Gaussian, NoOp, OnPart, PoissonSampled, Repeated, spelled_out
from fairveil.core.passes import totals
from fairveil.curator import Curator, Measurement, Part, Poisson, Rows, describe
from fairveil.errors import InputError, PrivacyError
from fairveil.methods import Reason, SaddleDescent, SaddleProblem, Smoothness, descend
from fairveil.methods.saddle import handed_of
from fairveil.privacy import NoiseSource
from fairveil.statement.document import PrivacyStatement

FALSE_ALARM = 1e-7
NONE = Promise(math.inf, 0.0)
ADD = Promise(1.0, 1e-5)
REPLACE = Promise(1.0, 1e-5, neighbours="replace-one")
SENSITIVE = Promise(1.0, 1e-5, "sensitive_features")
N = 240


def make_rows(n: int = N, seed: int = 0, **options) -> Rows:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    X = np.clip(rng.normal(size=(n, 2)) + a[:, None], -2, 3)
    return Rows.from_arrays(
        X, (X[:, 0] > 0).astype(int), [a], classes=(0, 1), groups=[(0, 1)], **options
    )


def targets(block, width):
    """What the mean is found of: numbers, moved by the group where it may be read."""
    own = block.sensitive[0].astype(float)[:, np.newaxis] if block.sensitive.size else 0.0
    return block.numbers.T[:, :width] + own


def means(width: int = 2, **options) -> SaddleProblem:
    """f = w (theta - x) - |w|^2 / 2: Phi = |theta - mean x|^2 / 2, w = theta - mean x."""
    options = {
        "clip_theta": 2.0,
        "clip_w": 4.0,
        "theta": np.ones(width),
        "w": np.zeros(width),
        **options,
    }
    return SaddleProblem(
        lambda block, theta, w: np.broadcast_to(w, (block.rows, width)),
        lambda block, theta, w: theta - targets(block, width) - w,
        **options,
    )


CONSTANTS = Smoothness(theta=0.0, w=1.0, cross=1.0, concavity=1.0)


def search_for(
    rows: Rows, promise: Promise, problem: SaddleProblem | None = None, **options
) -> SaddleDescent:
    options = {"rounds": 8, "public_rows": N, "step_theta": 0.05, "step_w": 0.2, **options}
    return SaddleDescent.of(promise, rows.layout, problem or means(), **options)


def one_by_one(events) -> list:
    """Two equal releases of a round are written as one that is repeated."""
    return [inner for event in events for inner in spelled_out(event)]


def run(rows: Rows, search: SaddleDescent, seed: int = 0):
    curator = Curator(rows, search.promise, plan=search.plan, noise=NoiseSource.seeded(seed))
    return search.run(curator), curator


# -- the problems are solved -----------------------------------------------------------------------


def test_without_noise_the_theorems_steps_find_the_saddle() -> None:
    rows = make_rows()
    (block,) = rows.blocks()
    search = search_for(rows, NONE, step_theta=None, step_w=None, smoothness=CONSTANTS, rounds=600)
    found, curator = run(rows, search)
    assert np.allclose(found.theta, targets(block, 2).mean(axis=0), atol=1e-9)
    assert np.allclose(found.w, 0.0, atol=1e-9)
    assert (found.reason, found.rounds) == (Reason.ROUNDS, 600)
    assert curator.trouble() == ()


def test_without_noise_a_stationary_point_of_a_problem_that_is_not_convex() -> None:
    """f = w (sin theta - x) - w^2 / 2 with mean x = 2: Phi = (sin theta - 2)^2 / 2 is stationary
    where cos theta = 0."""
    x = np.random.default_rng(0).normal(2.0, 1.0, (50, 1))
    rows = Rows.from_arrays(x - x.mean() + 2.0, np.zeros(50, int), [], classes=(0, 1))
    problem = SaddleProblem(
        lambda block, theta, w: np.broadcast_to(w * np.cos(theta), (block.rows, 1)),
        lambda block, theta, w: np.sin(theta) - block.numbers.T - w,
        theta=[0.3],
        w=[0.0],
        clip_theta=1.0,
        clip_w=1.0,
        radius_w=3.0,
    )
    smooth = Smoothness(theta=3.0, w=1.0, cross=1.0, concavity=1.0)
    found, _ = run(
        rows, SaddleDescent.of(NONE, rows.layout, problem, rounds=2500, smoothness=smooth)
    )
    assert np.allclose(found.theta, math.pi / 2, atol=1e-6)
    assert np.allclose(found.w, -1.0, atol=1e-6)


@pytest.mark.parametrize(
    "options", [{"sampling_rate": 0.5}, {"parts": 2}, {"public_rows": None}], ids=str
)
def test_without_privacy_all_rows_are_asked_and_none_is_clipped(options) -> None:
    rows = make_rows()
    problem = means(clip_theta=1e-6, clip_w=1e-6)
    found, curator = run(rows, search_for(rows, NONE, problem, **options))
    other, _ = run(rows, search_for(rows, NONE))
    assert np.allclose(found.theta, other.theta, rtol=1e-9)
    assert search_for(rows, NONE, **options).plan is None
    assert PrivacyStatement.of_run(curator).epsilon == math.inf


def test_with_little_noise_it_comes_near() -> None:
    rows = make_rows()
    (block,) = rows.blocks()
    for promise in (Promise(100.0, 1e-5), Promise(100.0, 1e-5, neighbours="replace-one")):
        search = search_for(
            rows,
            promise,
            rounds=80,
            step_theta=0.1,
            step_w=0.5,
            iterate="average",
            smoothness=CONSTANTS,
        )
        found, _ = run(rows, search)
        assert np.allclose(found.theta, targets(block, 2).mean(axis=0), atol=0.15)


# -- 1: the plan -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("promise", "options"),
    [
        (ADD, {}),
        (ADD, {"sampling_rate": 0.1}),
        (ADD, {"public_rows": None}),
        (ADD, {"public_rows": None, "sampling_rate": 0.1}),
        (REPLACE, {}),
        (REPLACE, {"sampling_rate": 0.1}),
        (REPLACE, {"parts": 4}),
        (REPLACE, {"parts": 3, "public_rows": None}),
        (SENSITIVE, {}),
        (SENSITIVE, {"parts": 4, "public_rows": None}),
        (ADD, {"smoothness": CONSTANTS}),
        (ADD, {"ascent_share": 0.9}),
    ],
    ids=str,
)
def test_guarantee_1_the_log_is_the_plan_and_the_plan_keeps_the_promise(promise, options) -> None:
    rows = make_rows()
    search = search_for(rows, promise, **options)
    again = search_for(make_rows(seed=5), promise, **options)
    assert again.plan == search.plan  # made of public values alone
    _, curator = run(rows, search)
    statement = PrivacyStatement.of_run(curator)
    assert statement.check() == []
    assert 0.999 * promise.epsilon <= statement.epsilon <= promise.epsilon * (1 + 1e-12)
    bought = promise is ADD and "public_rows" in options
    assert len(curator.log) == 8 + bought
    assert one_by_one(curator.log.events) == one_by_one([search.plan])
    assert statement.user_code == "trusted"
    # bounds of the count and the two sums: rounds leave nothing behind
    assert len(curator._bounds.known) <= 3


@pytest.mark.parametrize("which", ["theta", "w", "both"])
def test_guarantee_1_what_reads_nothing_protected_is_exact_and_takes_no_budget(which) -> None:
    rows, public = make_rows(), frozenset({"features", "label"})
    reads = {
        "theta": {"columns_read": public, "ascent_reads": {"sensitive", "features"}},
        "w": {"columns_read": {"sensitive", "features"}, "ascent_reads": public},
        "both": {"columns_read": public},
    }[which]
    search = search_for(rows, SENSITIVE, means(**reads))
    z = search_for(rows, SENSITIVE).plan
    assert isinstance(z, Repeated)
    _, curator = run(rows, search)
    assert PrivacyStatement.of_run(curator).check() == []
    if which == "both":
        assert isinstance(search.plan, NoOp) or not list(spelled_out(search.plan))
        assert len(curator.log) == 0
        return
    assert isinstance(search.plan, Repeated)
    assert isinstance(search.plan.event, Gaussian)
    both = math.sqrt(z.count / search.plan.count) * joint(z.event)  # of a round's two sums
    assert math.isclose(search.plan.event.noise_multiplier, 1.0 / both, rel_tol=1e-9)


def test_guarantee_1_the_theorems_share_is_the_least_for_its_bound() -> None:
    rows, smooth = make_rows(), Smoothness(theta=1.0, w=4.0, cross=2.0, concavity=1.0)
    problem = means(clip_theta=3.0, clip_w=0.5)

    def bound(search: SaddleDescent) -> float:
        first, second = (measurement.multiplier for measurement in search.asked)
        return 2 * (3.0 * first) ** 2 + smooth.weight_of_ascent * 2 * (0.5 * second) ** 2

    best = bound(search_for(rows, ADD, problem, smoothness=smooth))
    others = [
        bound(search_for(rows, ADD, problem, smoothness=smooth, ascent_share=k / 20))
        for k in range(1, 20)
    ]
    assert best <= min(others) * (1 + 1e-9)
    assert min(others) <= best * 1.05


# -- 2: neighbours ---------------------------------------------------------------------------------


def joint(event) -> float:
    """1 / z of one round."""
    if isinstance(event, OnPart | PoissonSampled):
        return joint(event.event)
    parts = one_by_one([event])
    return math.sqrt(sum(part.noise_multiplier**-2 for part in parts))


WILD = np.array([0.0, 1e-300, 0.5, -0.5, 3.0, -3.0, 1e5, -1e5, 1e300, -1e300])


def wild(width: int):
    """Far rows, infinite ones, wrong ones: gradients in every direction and of every size."""

    def gradients(block, theta, w):
        sign = 1.0 - 2.0 * block.sensitive[0].astype(float)
        with np.errstate(all="ignore"):
            return (np.tile(block.numbers.T, (1, width)) * sign[:, np.newaxis])[
                :, :width
            ] * np.array([1e10, 1.0, -1e-3])[:width]

    return gradients


def wild_problem() -> SaddleProblem:
    return SaddleProblem(wild(3), wild(2), np.zeros(3), np.zeros(2), clip_theta=0.7, clip_w=5.0)


@pytest.mark.parametrize(
    ("promise", "options"),
    [
        (ADD, {}),
        (ADD, {"sampling_rate": 0.5}),
        (REPLACE, {}),
        (REPLACE, {"sampling_rate": 0.5}),
        (SENSITIVE, {}),
        (REPLACE, {"parts": 2}),
    ],
    ids=str,
)
def test_guarantee_2_no_neighbour_moves_the_joint_sum_further_than_its_event_says(
    promise, options
) -> None:
    """All neighbours over a pool: moves of both sums, in units of their noise, against 1 / z of the
    round's one event."""
    values = [(x, y, a) for x, y in itertools.product(WILD, WILD) for a in (0, 1)]
    X, a = np.array([v[:2] for v in values]), np.array([v[2] for v in values])
    rows = Rows.from_arrays(X, np.zeros(len(X), int), [a], classes=(0, 1), groups=[(0, 1)])
    search = search_for(rows, promise, wild_problem(), ascent_share=0.4, **options)
    batch = search.batch
    event = describe(search.asked, rows.layout, promise, batch)
    (block,) = rows.blocks()
    parts = []
    for measurement in search.asked:
        scale = pricing.constant_scale(measurement.question, rows.layout, promise, None)
        asked = [(measurement.question, [scale])]
        alone_each = ([block.take(np.array([i]))] for i in range(block.rows))
        each = np.array([totals(asked, rows, one)[0][0] for one in alone_each], np.float64)
        parts.append(
            each
            / pricing.noise_scale(measurement, scale, promise, batch, (measurement.question.width,))
        )
    v = np.concatenate(parts, axis=1)
    alone = np.linalg.norm(v, axis=1).max()
    if promise is SENSITIVE:
        moved = np.linalg.norm(v[0::2] - v[1::2], axis=1).max()
    else:
        moved = (
            max(np.linalg.norm(v - row, axis=1).max() for row in v) if promise is REPLACE else alone
        )
    limit = joint(event) * (2.0 if promise is REPLACE and isinstance(batch, Poisson) else 1.0)
    assert isinstance(event, PoissonSampled) == isinstance(batch, Poisson)
    assert moved <= limit
    assert alone <= joint(event) * (
        1.0 if promise is ADD or isinstance(batch, Poisson) else 0.5
    ) * (1 + 1e-9)
    assert moved >= 0.95 * limit  # and it is not loose


def test_guarantee_2_the_noise_of_both_sums_is_what_the_event_says() -> None:
    """False alarms below 2e-7: sums of squares of 500 normals; a deviation wrong by 1.5 is found
    with certainty."""
    rows, width = make_rows(), 500
    zeros = lambda block, theta, w: np.zeros((block.rows, width))  # noqa: E731
    problem = SaddleProblem(
        zeros, zeros, np.zeros(width), np.zeros(width), clip_theta=0.5, clip_w=3.0
    )
    for options in ({}, {"sampling_rate": 0.25}):
        search = search_for(rows, ADD, problem, rounds=5, ascent_share=0.2, **options)
        found, _ = run(rows, search)
        size = N * options.get("sampling_rate", 1.0)
        for x, measurement, step, clip in zip(
            (found.theta, found.w), search.asked, (0.05, 0.2), (0.5, 3.0), strict=True
        ):
            deviation = step / size * measurement.multiplier * clip * math.sqrt(5)
            assert (
                stats.chi2.ppf(FALSE_ALARM / 2, width)
                < (x**2).sum() / deviation**2
                < stats.chi2.isf(FALSE_ALARM / 2, width)
            )


# -- 3: the final model ----------------------------------------------------------------------------


def test_guarantee_3_rows_that_answer_alike_give_the_same_result() -> None:
    rows, other = make_rows(), make_rows(seed=9)
    search = search_for(rows, ADD, sampling_rate=0.3)
    heard = Curator(rows, ADD, plan=search.plan, noise=NoiseSource.seeded(0))
    replies, listened = [], heard.answer
    heard.answer = lambda *args, **kwargs: replies.append(listened(*args, **kwargs)) or replies[-1]  # type: ignore[method-assign]
    found = search.run(heard)
    curator = Curator(other, ADD, plan=search.plan, noise=NoiseSource.seeded(5))
    answered = curator.answer
    curator.answer = lambda *args, **kwargs: (answered(*args, **kwargs), replies.pop(0))[1]  # type: ignore[method-assign]
    same = search.run(curator)
    assert np.array_equal(found.theta, same.theta)
    assert np.array_equal(found.w, same.w)


def test_guarantee_3_the_uniform_iterate_is_one_of_the_iterates_drawn_before_the_run() -> None:
    rows = make_rows()
    walk = [run(rows, search_for(rows, ADD, iterate=t))[0] for t in range(1, 9)]
    for seed in range(6):
        search = search_for(rows, ADD, iterate="uniform", generator=np.random.default_rng(seed))
        found, _ = run(rows, search)
        assert np.array_equal(found.theta, walk[search.handed - 1].theta)
        assert np.array_equal(found.w, walk[search.handed - 1].w)
    last, _ = run(rows, search_for(rows, ADD))
    average, _ = run(rows, search_for(rows, ADD, iterate="average", averaged=0.5))
    assert np.array_equal(last.theta, walk[-1].theta)
    assert np.allclose(average.theta, np.mean([one.theta for one in walk[4:]], axis=0))
    assert np.allclose(average.w, np.mean([one.w for one in walk[4:]], axis=0))
    assert not average.theta.flags.writeable


def test_the_uniform_iterate_is_uniform() -> None:
    """Chi-square of 8,000 draws of 8 iterates: false alarm 1e-7."""
    generator = np.random.default_rng(1)
    counts = np.bincount([handed_of("uniform", 8, generator) for _ in range(8000)], minlength=9)
    assert counts[0] == 0
    assert stats.chisquare(counts[1:]).pvalue > FALSE_ALARM


# -- 4: user code ----------------------------------------------------------------------------------


def test_guarantee_4_a_function_that_fails_on_a_row_is_not_heard_of_before_the_end() -> None:
    rows = make_rows()

    def breaks(block, theta, w):
        if (block.labels == 1).any():
            raise ValueError("a label that I did not expect")
        return np.full((block.rows, 2), 5.0)

    problem = SaddleProblem(
        breaks, means().ascent, np.zeros(2), np.zeros(2), clip_theta=math.sqrt(2), clip_w=1.0
    )
    search = search_for(rows, ADD, problem)
    curator = Curator(rows, ADD, plan=search.plan, noise=NoiseSource.seeded(0))
    told: list[bool] = []

    def progress(done: int, rounds: int) -> None:
        with pytest.raises(PrivacyError, match="a run that has ended"):
            curator.trouble()
        told.append(True)

    search.run(curator, progress)
    assert len(told) == 8
    assert PrivacyStatement.of_run(curator).check() == []
    assert "ValueError: a label that I did not expect" in curator.trouble()


@pytest.mark.parametrize(
    ("gradient", "words"),
    [
        (
            lambda block, theta, w: np.zeros((block.rows, 3)),
            r"expected shape \(\d, 2\), got \(\d, 3\)",
        ),
        (lambda block, theta, w: np.zeros(2), "expected shape"),
        (lambda block, theta, w: block.nothing, "AttributeError"),
        (lambda block: 0, "TypeError"),
    ],
)
@pytest.mark.parametrize("which", ["descent", "ascent"])
def test_guarantee_4_what_fails_on_rows_of_zeros_is_refused_before_any_data_are_read(
    gradient, words, which
) -> None:
    problem = means()
    functions = {"descent": problem.descent, "ascent": problem.ascent, which: gradient}
    problem = SaddleProblem(
        **functions, theta=np.zeros(2), w=np.zeros(2), clip_theta=1.0, clip_w=1.0
    )
    with pytest.raises(InputError, match=words):
        search_for(make_rows(), ADD, problem)
    assert search_for(make_rows(), ADD, problem, rehearse=False).plan is not None


def test_guarantee_4_it_cannot_change_where_the_walk_is() -> None:
    def meddles(block, theta, w):
        theta[:] = 7.0
        return np.zeros((block.rows, 2))

    problem = SaddleProblem(
        meddles, means().ascent, np.zeros(2), np.zeros(2), clip_theta=1.0, clip_w=1.0
    )
    with pytest.raises(InputError, match="read-only"):
        search_for(make_rows(), ADD, problem)
    _, curator = run(make_rows(), search_for(make_rows(), ADD, problem, rehearse=False))
    assert "read-only" in curator.trouble()[0]


# -- 5: balls, and going on ------------------------------------------------------------------------


def watched(function, sizes):
    """The same gradients; the lengths of theta and w are noted."""

    def noted(block, theta, w):
        sizes.append((np.linalg.norm(theta), np.linalg.norm(w)))
        return function(block, theta, w)

    return noted


@pytest.mark.parametrize("promise", [NONE, ADD], ids=str)
def test_guarantee_5_theta_and_w_stay_in_their_balls(promise) -> None:
    rows = make_rows()
    problem = means(radius_theta=0.3, radius_w=0.1, theta=np.zeros(2), w=np.array([0.1, 0.0]))
    search = search_for(rows, promise, problem, step_theta=3.0, step_w=3.0)
    curator, sizes = Curator(rows, promise, plan=search.plan, noise=NoiseSource.seeded(0)), []
    seen = dataclasses.replace(problem, descent=watched(problem.descent, sizes))
    found = dataclasses.replace(search, problem=seen).run(curator)
    sizes.append((np.linalg.norm(found.theta), np.linalg.norm(found.w)))
    assert max(size for size, _ in sizes) <= 0.3 * (1 + 1e-12)
    assert max(size for _, size in sizes) <= 0.1 * (1 + 1e-12)
    assert max(size for _, size in sizes) >= 0.1 * (1 - 1e-12)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clip_theta": -1.0}, "clip_theta"),
        ({"clip_w": 0.0}, "clip_w"),
        ({"clip_w": math.inf}, "clip_w"),
        ({"radius_w": 0.0}, "radius_w"),
        ({"radius_theta": -2.0}, "radius_theta"),
        ({"radius_theta": 0.5}, "theta"),  # it starts at (1, 1)
        ({"theta": np.zeros((2, 2))}, "theta"),
        ({"theta": "abc"}, "theta"),
        ({"w": []}, "w"),
        ({"w": [math.nan, 0.0]}, "NaN"),
        ({"columns_read": {"age"}}, "columns_read"),
        ({"ascent_reads": {"age"}}, "columns_read"),
    ],
    ids=str,
)
def test_problems_that_are_none_are_refused(options, words) -> None:
    with pytest.raises(InputError, match=words):
        means(**options)


def test_gradients_are_functions() -> None:
    with pytest.raises(InputError, match="ascent"):
        SaddleProblem(lambda block, theta, w: 0, 3, [0.0], [0.0], 1.0, 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("promise", "options", "words"),
    [
        (ADD, {"rounds": 0}, "rounds"),
        (ADD, {"step_theta": None}, "step"),
        (ADD, {"step_theta": 0.0}, "step_theta"),
        (ADD, {"step_w": -1.0}, "step_w"),
        (ADD, {"step_w": math.inf}, "step_w"),
        (ADD, {"sampling_rate": 0.0}, "rate"),
        (ADD, {"sampling_rate": 1.5}, "rate"),
        (ADD, {"sampling_rate": 0.9 / N}, "at least one row"),
        (REPLACE, {"parts": N + 1}, "at least one row"),
        (REPLACE, {"parts": 2, "sampling_rate": 0.5}, "choose one"),
        (SENSITIVE, {"sampling_rate": 0.5}, "parts=2"),
        (ADD, {"public_rows": 0}, "public_rows"),
        (ADD, {"iterate": "best"}, "iterate"),
        (ADD, {"iterate": 0}, "iterate"),
        (ADD, {"iterate": 9}, "iterate"),
        (ADD, {"averaged": 0.0}, "averaged"),
        (ADD, {"ascent_share": 1.0}, "ascent_share"),
        (Promise(1.0, 0.0), {"public_rows": None}, "delta"),
    ],
    ids=str,
)
def test_runs_that_cannot_be_are_refused(promise, options, words) -> None:
    with pytest.raises(InputError, match=words):
        search_for(make_rows(), promise, **options)


def test_parts_are_refused_where_the_number_of_rows_is_private() -> None:
    with pytest.raises(PrivacyError, match="Full"):
        search_for(make_rows(), ADD, parts=2)


@pytest.mark.parametrize(
    "constants",
    [
        (-1.0, 1.0, 1.0, 1.0),
        (1.0, 0.0, 1.0, 1.0),
        (1.0, 1.0, -1.0, 1.0),
        (1.0, 1.0, 1.0, 0.0),
        (1.0, 1.0, 1.0, 2.0),
        (0.0, 1.0, 0.0, 1.0),
    ],
)
def test_constants_that_no_function_has_are_refused(constants) -> None:
    with pytest.raises(InputError):
        Smoothness(*constants)


def test_public_names() -> None:
    assert fv.methods.descent.descend is descend
    assert fv.methods.SaddleDescent is SaddleDescent
    rows = make_rows()
    search = search_for(rows, REPLACE, parts=4)
    assert next(search.search()).batch == search.batch == Part(0, 4)
    assert all(isinstance(measurement, Measurement) for measurement in search.asked)


# -- functions that are wrong are refused before any release ---------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_a_transposed_gradient_is_refused_whatever_the_lengths_of_theta_and_w(width: int) -> None:
    rows = Rows.from_arrays(np.zeros((N, width)), np.zeros(N, int), [], classes=(0, 1))
    for wrong in ("descent", "ascent"):
        functions = {
            "descent": lambda block, theta, w: np.zeros((block.rows, len(theta))),
            "ascent": lambda block, theta, w: np.zeros((block.rows, len(w))),
        }
        good = functions[wrong]
        options = {
            "theta": np.zeros(width),
            "w": np.zeros(3 - width % 2),
            "clip_theta": 1.0,
            "clip_w": 1.0,
        }
        search_for(rows, ADD, SaddleProblem(**functions, **options))
        functions[wrong] = lambda block, theta, w, good=good: good(block, theta, w).T
        with pytest.raises(InputError, match="of shape"):
            search_for(rows, ADD, SaddleProblem(**functions, **options))


def test_rows_of_a_rehearsal_are_as_many_as_neither_parameter_is_long() -> None:
    seen = []

    def spy(block, theta, w):
        seen.append(block.rows)
        return np.zeros((block.rows, 2))

    problem = SaddleProblem(
        spy,
        lambda block, theta, w: np.zeros((block.rows, 3)),
        theta=np.zeros(2),
        w=np.zeros(3),
        clip_theta=1.0,
        clip_w=1.0,
    )
    search_for(make_rows(), ADD, problem)
    assert len(seen) == 1
    assert seen[0] not in (2, 3)


def test_nan_on_rows_of_zeros_is_refused_unless_there_is_no_rehearsal() -> None:
    def divides(block, theta, w):
        with np.errstate(all="ignore"):
            return (
                np.broadcast_to(theta, (block.rows, 2))
                / np.linalg.norm(block.numbers, axis=0)[:, np.newaxis]
                * 0.0
            )

    problem = SaddleProblem(
        divides,
        lambda block, theta, w: np.zeros((block.rows, 1)),
        theta=np.ones(2),
        w=np.zeros(1),
        clip_theta=1.0,
        clip_w=1.0,
    )
    with pytest.raises(InputError, match="NaN or infinite"):
        search_for(make_rows(), ADD, problem)
    assert search_for(make_rows(), ADD, problem, rehearse=False).rounds == 8
