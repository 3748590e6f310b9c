"""Private choices by what candidates' decisions cost, against enumerated neighbours."""

from __future__ import annotations

import gc
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from curator_pools import COMBINATIONS, WIDTH, pool
from scipy import stats

from fairveil.core.events import Exponential, NonPrivate, NoOp, Repeated
from fairveil.curator import (
    AttachedHistogram,
    Curator,
    GroupLosses,
    Linear,
    PredictionHistogram,
    describe_choice,
)
from fairveil.curator.choices import by_decisions as decisions
from fairveil.curator.choices import choice
from fairveil.curator.questions.attached import Attached
from fairveil.curator.totals import reference
from fairveil.errors import InputError, PrivacyError
from fairveil.privacy import NoiseSource, Promise

FALSE_ALARM = 1e-7
ADD = Promise(100.0, 1e-6)
REPLACE = Promise(100.0, 1e-6, neighbours="replace-one")
SENSITIVE = Promise(100.0, 1e-6, protects="sensitive_features")
NOT_PRIVATE = Promise(math.inf, 0.0)
PROMISES = [ADD, REPLACE, SENSITIVE]


def constant(k, classes, width=WIDTH):
    """A model that decides for class k, whatever the row."""
    weights = np.zeros((1 if classes == 2 else classes, width))
    weights[0 if classes == 2 else k, 0] = -1.0 if classes == 2 and k == 0 else 1.0
    return weights


def linear_candidates(classes, width=WIDTH):
    rng = np.random.default_rng(7)
    some = rng.normal(size=(12, 1 if classes == 2 else classes, width))
    return Linear(
        np.concatenate([np.stack([constant(k, classes, width) for k in range(classes)]), some])
    )


def attached_candidates(rows, classes, reads):
    """Constant ones; where they may read the group, all that decide by whether it is a given
    one."""
    seen = frozenset({"features", "sensitive"}) if reads else frozenset({"features"})

    def make(function):
        return Attached(function, rows, seen, "made elsewhere")

    out = [make(lambda block, k=k: np.full(block.rows, k)) for k in range(classes)]
    for (g, h), k, other in itertools.product(
        COMBINATIONS if reads else [], range(classes), range(classes)
    ):
        out.append(
            make(
                lambda b, g=g, h=h, k=k, o=other: np.where(
                    (b.sensitive[0] == g) & (b.sensitive[1] == h), k, o
                )
            )
        )
    return out


def contest_of(questions, rows, costs, promise):
    cap = rows.max_sample_weight if rows.weighted else None
    table = decisions.CandidateTable(tuple(questions), decisions.HistogramCache(), rows, cap)
    most = rows.exact_count if promise.rows_are_public else 1 << 33
    return table, decisions.by_decisions(table, costs, promise, most)


def rows_scores(table, costs):
    """What each row by itself adds to each candidate's score: (rows, candidates), exact."""
    (whole,) = table.rows.blocks()
    made = decisions.Costs.of(costs, table.questions[0], table.rows.layout)
    out = []
    for i in range(whole.rows):
        parts = []
        for question in table.questions:
            (sums,) = decisions.totals(
                [(question, [table.scale])], table.rows, [whole.take(np.array([i]))]
            )
            few = sums if sums.shape[-1] == 1 else sums[..., 1:]
            parts.append(few.reshape(question.models, -1))
        out.append(decisions.exact_scores(np.concatenate(parts), made, 1 << 62))
    return np.array(out)


def ranged(changes):
    """The range over candidates, the largest of all changes."""
    return max(int(change.max() - change.min()) for change in changes)


def widest(v, promise):
    if promise.neighbours == "add-remove":
        return ranged(v)
    if promise.protects == "records":
        return max(ranged(v[i] - v) for i in range(len(v)))
    people = v.reshape(-1, len(COMBINATIONS), v.shape[1])
    pairs = itertools.permutations(range(len(COMBINATIONS)), 2)
    return max(ranged(people[:, a] - people[:, b]) for a, b in pairs)


CELLS = [("product", None), ("product", ["sensitive_0"]), ("marginal", None)]


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize(("mode", "names"), CELLS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weights", [False, True])
def test_guarantee_1_no_neighbour_moves_scores_further_apart_than_the_reach(
    promise, mode, names, classes, weights
):
    """Candidates of models, of handles, and of both; the reach is attained where every decision can
    be had."""
    rows = pool(classes, weights=weights, far=False)
    cells = rows.cells(mode, names)
    rng = np.random.default_rng(2)
    for by_label, reads in itertools.product((False, True), repeat=2):
        questions = [PredictionHistogram(linear_candidates(classes), cells, by_label=by_label)]
        some = attached_candidates(rows, classes, reads)
        questions += [AttachedHistogram(model, cells, by_label, "hard") for model in some]
        for labels in {1, classes if by_label else 1}:
            costs = rng.normal(size=(cells.count, labels, classes)) + 50.0 * rng.normal(
                size=(cells.count, labels, 1)
            )
            table, contest = contest_of(questions, rows, costs, promise)
            v = rows_scores(table, costs)
            moved = widest(v, promise)
            assert moved <= contest.reach
            tight = 0.9 if mode == "product" and not weights else 0.55
            assert moved >= tight * contest.reach, (by_label, reads)
            assert (contest.exact() == v.sum(axis=0)).all()


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_guarantee_1_holds_for_the_scores_that_the_mechanism_sees(promise):
    """Rounded to steps, and in total over the other rows."""
    rows = pool(3, far=False)
    cells = rows.cells()
    costs = np.random.default_rng(5).normal(size=(cells.count, 3, 3))
    questions = [PredictionHistogram(linear_candidates(3), cells, by_label=True)]
    table, contest = contest_of(questions, rows, costs, promise)
    v = rows_scores(table, costs)
    base = contest.exact()
    before, steps = choice.scores(base, contest.reach, contest.largest)
    assert contest.reach / steps >= 2.0 ** (contest.reach.bit_length() - choice.SCORE_BITS) * 0.99
    for i in range(len(v)):
        start = i - i % len(COMBINATIONS)
        others = {
            ADD: [-v[i]],
            REPLACE: [v[j] - v[i] for j in range(0, len(v), 7)],
            SENSITIVE: [v[j] - v[i] for j in range(start, start + len(COMBINATIONS))],
        }[promise]
        for other in others:
            change = choice.scores(base + other, contest.reach, contest.largest)[0] - before
            assert int(change.max()) - int(change.min()) <= steps


def test_what_all_candidates_share_does_not_enter_the_range_or_the_choice():
    """A cost that is the same for every class of a cell and label, as large as costs may be."""
    rows = pool(3, far=False)
    cells = rows.cells()
    rng = np.random.default_rng(5)
    costs = np.round(rng.normal(size=(cells.count, 3, 3)) * 2**20) / 2**20
    shared = np.round(rng.uniform(-1, 1, size=(cells.count, 3, 1)) * 2**23)
    questions = [PredictionHistogram(linear_candidates(3), cells, by_label=True)]
    for promise in PROMISES:
        one, other = (contest_of(questions, rows, c, promise)[1] for c in (costs, costs + shared))
        assert one.reach == other.reach
        assert one.largest == other.largest
        assert (one.exact() == other.exact()).all()


def test_the_unit_of_costs_does_not_matter():
    """Costs of a mean, a millionth of a sum's, are as fine."""
    rows = pool(3, far=False)
    costs = np.random.default_rng(5).normal(size=(6, 3, 3))
    questions = [PredictionHistogram(linear_candidates(3), rows.cells(), by_label=True)]
    one, other = (
        contest_of(questions, rows, c, SENSITIVE)[1] for c in (costs, np.ldexp(costs, -300))
    )
    assert one.reach == other.reach
    assert (one.exact() == other.exact()).all()
    assert other.stated == math.ldexp(one.stated, -300)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weights", [False, True])
def test_guarantee_2_scores_are_the_costs_of_all_decisions(rows_of, classes, weights):
    """Against rational arithmetic over the readable reference, up to what all candidates share."""
    rows = rows_of(classes=classes, weights=weights)
    cells = rows.cells("marginal")
    model = linear_candidates(classes)
    question = PredictionHistogram(model, cells, by_label=True)
    for size in (1.0, 2.0**23, 1e-200, 1e150):
        costs = np.random.default_rng(1).uniform(-size, size, (cells.count, classes, classes))
        table, contest = contest_of([question], rows, costs, ADD)
        found = contest.exact()
        assert (found.dtype == object) == weights
        (block,) = rows.blocks()
        made = decisions.Costs.of(costs, question, rows.layout)
        more = costs - costs[..., :1]
        rounded = made.integers
        assert (
            np.abs(np.ldexp(rounded, -made.exponent) - more).max() <= 2.0**-40 * np.abs(more).max()
        )
        wanted = []
        for m in range(model.models):
            p = reference.predictions(question, block, m)
            decided = (p[:, 0] > 0.5).astype(int) if classes == 2 else p.argmax(axis=1)
            w = (
                np.ones(700, int)
                if not weights
                else np.rint(np.ldexp(block.weights, table.scale.exponent)).astype(int)
            )
            each = [
                int(a)
                for a in sum(rounded[line, block.labels, decided] for line in block.cells(cells))
            ]
            wanted.append(sum(Fraction(a) * int(b) for a, b in zip(each, w, strict=True)))
        assert [int(a - found[0]) for a in found] == [a - wanted[0] for a in wanted]


def test_guarantee_2_the_same_scores_from_integers_of_any_size(rows_of):
    rows = rows_of(classes=3)
    cells = rows.cells()
    costs = decisions.Costs.of(np.random.default_rng(1).normal(size=(cells.count, 1, 3)) * 2**20,
                               question := PredictionHistogram(linear_candidates(3), cells), rows.layout)  # fmt: skip
    counts = decisions.CandidateTable((question,), decisions.HistogramCache(), rows, None).counts()
    small, large = (decisions.exact_scores(counts, costs, most) for most in (700, 1 << 40))
    assert small.dtype == np.int64
    assert large.dtype == object
    assert (small == large).all()
    for exact in (small, large):
        values, steps = choice.scores(
            exact, costs.reach(ADD, rows.layout, reads_groups=False), 1 << 80
        )
        assert values.dtype == np.int64
        assert (
            values
            == choice.scores(small, costs.reach(ADD, rows.layout, reads_groups=False), 1 << 80)[0]
        ).all()
        assert steps >= 2.0


def test_guarantee_3_histograms_are_totalled_once_for_as_long_as_a_question_is_held(
    rows_of, monkeypatch
):
    rows = rows_of(classes=2)
    curator = Curator(rows, NOT_PRIVATE)
    question = PredictionHistogram(linear_candidates(2, 11), rows.cells(), by_label=True)
    other = AttachedHistogram(
        curator.attach(lambda block: block.codes[0] > 1), rows.cells(), True, "hard"
    )
    asked = []
    real = decisions.totals
    monkeypatch.setattr(
        decisions, "totals", lambda pairs, *rest: asked.append(pairs) or real(pairs, *rest)
    )
    rng = np.random.default_rng(8)
    rounds = [rng.normal(size=(6, 2, 2)) for _ in range(5)]
    first = [curator.choose([question, other], math.inf, costs=costs) for costs in rounds]
    assert len(asked) == 2
    again = [
        Curator(rows, NOT_PRIVATE).choose([question, _of(rows, other)], math.inf, costs=costs)
        for costs in rounds
    ]
    assert first == again
    count = len(asked)
    curator.rescale(np.full(3, 2.0), np.full(3, 1.0))
    question_again = PredictionHistogram(question.model, question.cells, by_label=True)
    assert curator.choose(question, math.inf, costs=rounds[0]) == curator.choose(
        question_again, math.inf, costs=rounds[0]
    )
    assert len(asked) == count + 2
    del question, question_again, other
    asked.clear()
    gc.collect()
    assert len(curator._decided._tables) == 0


def _of(rows, question):
    """The same question of a handle of another curator over the same rows."""
    return AttachedHistogram(question.attached, question.cells, question.by_label, "hard")


def test_a_choice_by_decisions_is_the_exponential_mechanism(rows_of):
    """Chi-square against exp(-epsilon score / range) / Z, false-alarm rate 1e-7; a rate 1.5 times
    off is rejected."""
    rows = rows_of(n=40)
    cells = rows.cells()
    question = PredictionHistogram(
        Linear(np.random.default_rng(4).normal(size=(5, 1, 11))), cells, by_label=True
    )
    costs = (
        np.array([[0.0, 1.0], [1.0, 0.0]])
        * np.array([1.0, 0.5, 1.0, 0.25, 1.0, 1.0])[:, np.newaxis, np.newaxis]
    )
    exact = np.array([(reference.total(question, next(rows.blocks()), m)[..., 0] * (costs[..., 1] - costs[..., 0])).sum()
                      for m in range(5)])  # fmt: skip
    repeats = 3000
    curator = Curator(
        rows, ADD, plan=[Repeated(Exponential(0.2), repeats)], noise=NoiseSource.seeded(5)
    )
    counts = np.bincount(
        [curator.choose(question, 0.2, costs=costs) for _ in range(repeats)], minlength=5
    )

    def tail(rate):
        p = np.exp(-rate * (exact - exact.min()))
        return stats.chisquare(counts, repeats * p / p.sum()).pvalue

    assert tail(0.2) > FALSE_ALARM
    assert tail(0.3) < FALSE_ALARM
    assert tail(0.2 / 1.5) < FALSE_ALARM


def test_one_question_or_several_number_candidates_in_order(rows_of):
    rows = rows_of(classes=3)
    model = linear_candidates(3, 11)
    curator = Curator(rows, NOT_PRIVATE)
    whole = PredictionHistogram(model, rows.cells())
    parts = [
        PredictionHistogram(Linear(model.array[i : i + 5]), rows.cells()) for i in range(0, 15, 5)
    ]
    for k in range(6):
        costs = np.random.default_rng(k).normal(size=(6, 1, 3))
        assert curator.choose(whole, math.inf, costs=costs) == curator.choose(
            parts, 1.0, costs=costs
        )
    assert curator.log.entries[0].questions == ("choice by prediction histogram",)


def test_events_of_choices_are_known_in_advance(rows_of):
    rows = rows_of(classes=3)
    cells = rows.cells()
    model = linear_candidates(3, 11)
    losses, groups, whole = (
        GroupLosses(model, cells),
        PredictionHistogram(model, cells),
        PredictionHistogram(model, None),
    )
    for question, promise, event in (
        (losses, ADD, Exponential(0.5)),
        (groups, REPLACE, Exponential(0.5)),
        ([groups, groups], SENSITIVE, Exponential(0.5)),
        (whole, ADD, Exponential(0.5)),
        (whole, SENSITIVE, NoOp()),
        ([whole, groups], SENSITIVE, Exponential(0.5)),
        (whole, NOT_PRIVATE, NonPrivate()),
    ):
        assert describe_choice(question, 0.5, promise) == event
        if isinstance(question, list) and whole in question:
            continue
        curator = Curator(rows, promise, noise=NoiseSource.seeded(0))
        assert curator.describe_choice(question, 0.5) == event
        of = question[0] if isinstance(question, list) else question
        costs = (
            None
            if of is losses
            else np.random.default_rng(3).normal(size=(6 if of.cells else 1, 1, 3))
        )
        curator.choose(question, 0.5, costs=costs)
        assert curator.log.events == (() if event == NoOp() else (event,))
        if isinstance(event, Exponential) and of is not losses:
            (bound,) = curator.statement().bounds
            assert (bound.question, bound.norm) == ("choice by prediction histogram", "range")
            made = decisions.Costs.of(costs, of, rows.layout)
            assert bound.sensitivity == pytest.approx(
                made.reach(promise, rows.layout, reads_groups=False) / 2**made.exponent, rel=1e-9
            )
    free = [
        Curator(rows, SENSITIVE).choose(whole, epsilon, costs=[[[0.0, 1.0, 2.0]]])
        for epsilon in (1e-9, math.inf)
    ]
    assert free == [0, 0]  # decides for class 0, which is cheapest, always; the first of the best
    with pytest.raises(PrivacyError, match="finite epsilon"):
        describe_choice(groups, math.inf, SENSITIVE)


@pytest.mark.parametrize(
    ("make", "costs", "weights", "message"),
    [
        (
            lambda m, c, a: PredictionHistogram(m, c, "soft"),
            np.zeros((6, 1, 3)),
            None,
            "hard decisions",
        ),
        (lambda m, c, a: AttachedHistogram(a, c), np.zeros((6, 1, 3)), None, "hard decisions"),
        (
            lambda m, c, a: AttachedHistogram(a, c, False, "hard", 1),
            np.zeros((1, 1, 3)),
            None,
            "one group alone",
        ),
        (
            lambda m, c, a: [PredictionHistogram(m, c), PredictionHistogram(m)],
            np.zeros((6, 1, 3)),
            None,
            "same cells",
        ),
        (
            lambda m, c, a: [PredictionHistogram(m, c), AttachedHistogram(a, c, True, "hard")],
            np.zeros((6, 1, 3)),
            None,
            "same",
        ),
        (lambda m, c, a: PredictionHistogram(m, c), None, None, "costs"),
        (lambda m, c, a: PredictionHistogram(m, c), np.zeros((6, 3, 3)), None, "shape"),
        (lambda m, c, a: PredictionHistogram(m, c), np.full((6, 1, 3), np.nan), None, "finite"),
        (lambda m, c, a: PredictionHistogram(m, c), np.full((6, 1, 3), 1e200), None, "2\\^500"),
        (lambda m, c, a: PredictionHistogram(m, c), "a", None, "costs"),
        (lambda m, c, a: PredictionHistogram(m, c), np.zeros((6, 1, 3)), [1.0], "cell_weights"),
        (lambda m, c, a: GroupLosses(m, c), np.zeros((6, 1, 3)), None, "costs"),
        (
            lambda m, c, a: [GroupLosses(m, c), PredictionHistogram(m, c)],
            np.zeros((6, 1, 3)),
            None,
            "question",
        ),
        (lambda m, c, a: [], np.zeros((6, 1, 3)), None, "question"),
    ],
)
def test_what_cannot_be_chosen_by_is_refused_before_anything_is_charged(
    rows_of, make, costs, weights, message
):
    rows = rows_of(classes=3)
    curator = Curator(rows, ADD)
    attached = curator.attach(lambda block: block.codes[0] % 3)
    question = make(linear_candidates(3, 11), rows.cells(), attached)
    with pytest.raises(InputError, match=message):
        curator.choose(question, 1.0, costs=costs, cell_weights=weights)
    assert len(curator.log) == 0


def test_equal_costs_leave_a_change_of_group_nothing_to_move(rows_of):
    """The range is zero: chosen as good as exactly, never a division by zero, and charged all the
    same."""
    rows = rows_of(classes=3)
    curator = Curator(rows, SENSITIVE, noise=NoiseSource.seeded(1))
    question = PredictionHistogram(linear_candidates(3, 11), rows.cells())
    costs = np.broadcast_to([0.5, 0.25, 1.0], (6, 1, 3))
    assert curator.choose(question, 1.0, costs=costs) == 1
    assert curator.log.events == (Exponential(1.0),)
