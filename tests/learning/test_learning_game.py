"""The game: guarantees of `learning/game/game.py`, its privacy by enumerated neighbours, and what
its bounds promise.

Judges are independent: neighbours one by one, a linear program over the whole class, exact tables
of what was played.
"""

from __future__ import annotations

import itertools
import math
from copy import copy
from typing import Any

import game_samples as g
import numpy as np
import pytest
from scipy import stats

from fairveil.audit import Tape, Witness
from fairveil.core.events import Exponential, spelled_out
from fairveil.core.promise import Promise
from fairveil.curator import Curator, GradientSum, pricing
from fairveil.curator.choices import Costs
from fairveil.errors import InputError, PrivacyError
from fairveil.fairness import EqualizedOdds
from fairveil.learning import game as game_plan
from fairveil.learning import game as games
from fairveil.learning.descent import Reason
from fairveil.learning.game import Equilibrium
from fairveil.learning.oracles import (
    Begun,
    Choice,
    Descent,
    GroupedRule,
    Labellings,
    LinearRule,
    Regression,
    Responses,
    indicators,
    reach,
    thresholds,
)
from fairveil.privacy import epsilon as price

ODDS = [EqualizedOdds(0.05)]
ALL = [
    (name, kind, aware)
    for name, kind, aware in itertools.product(
        g.PROMISES,
        ("regression", "exponential", "labellings", "descent", "begun", "responses"),
        (False, True),
    )
    if not (kind in ("labellings", "responses") and name != "groups")
    and not (kind == "responses" and aware)
    if not (kind == "begun" and name == "groups")  # of records that are protected
]


def oracle_of(kind: str, layout: Any) -> Any:
    return {
        "regression": Regression,
        "responses": Responses,
        "descent": lambda: Descent(steps=2),
        "begun": lambda: Begun(steps=2, scales=True),
        "exponential": lambda: Choice(thresholds(layout)),
        "labellings": lambda: Choice(Labellings(layout)),
    }[kind]()


class Recorded(Curator):
    """Keeps what it was asked: no answer is changed."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.tape, self.choices = Tape(), []
        self._heard = self.tape.around(Curator.answer)

    def answer(self, *given: Any, **named: Any) -> Any:
        return self._heard(self, *given, **named)

    def choose(self, questions: Any, epsilon: float, *, costs: Any = None, **named: Any) -> int:
        self.choices.append((list(questions), epsilon, np.array(costs)))
        return super().choose(questions, epsilon, costs=costs, **named)


def recorded(rows: Any, game: Any, seed: int = 0) -> Recorded:
    curator = g.curator_for(game, rows, seed, Recorded)
    game.run(curator)
    return curator


def neighbours(data: Any, relation: str, sizes: tuple[int, ...]) -> Any:
    """Every neighbour: each row left out, each replaced by every label and group with its numbers
    turned round, or each row's groups changed to every other combination."""
    X, y, A = data
    combinations = list(itertools.product(*map(range, sizes)))
    for i in range(len(y)):
        if relation == "add":
            keep = np.arange(len(y)) != i
            yield X[keep], y[keep], [a[keep] for a in A]
        elif relation == "groups":
            for group in combinations:
                yield g.with_person(data, i, group=group)
        else:
            for label, group in itertools.product((0, 1), combinations):
                yield g.with_person(data, i, x=-X[i], label=label, group=group)


def moved(tape: Tape, here: Any, there: Any, promise: Promise) -> float:
    """Sum over releases of the squared distance of the noiseless answers in deviations of the
    noise: the run's mu squared.

    An exact answer that differed would make it infinite.
    """
    witness, total = Witness(here, there, promise), 0.0
    for release in tape.heard:
        for measurement in release.measurements:
            one, two = (witness._noiseless(measurement.question, side) for side in (here, there))
            if pricing.is_free(measurement.question, promise):
                total += 0.0 if (one == two).all() else math.inf
                continue
            size = witness._noise(measurement, here, release.batch, one.shape[1:])
            total += float((((one - two) / size) ** 2).sum())
    return total


# ---- privacy
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "kind", "aware", "in_vain"),
    [(*one, alone) for one in ALL for alone in (False, True) if one[1] == "begun" or not alone],
)
def test_guarantee_2_no_neighbour_is_further_away_than_the_promise_in_all_releases(
    relation: str, kind: str, aware: bool, in_vain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts, sums, Gram matrices and sums together, decisions, gradients: at the parameters of a
    run, for all neighbours, the squared distances of all Gaussian releases add up to no more than
    the plan's. Choices: the range of the costs' changes. Whether the game is played or its rounds
    go on without constraints (`in_vain`)."""
    monkeypatch.setattr(games.Game, "in_vain", lambda *_: in_vain)
    promise, sizes = g.PROMISES[relation], (3,) if aware else (2,)
    data = g.sample(3, n=24, groups=sizes)
    data[0][0] = [30.0, -30.0]  # a row at every clip
    rows = g.rows_from(*data, groups=sizes)
    game = g.a_game(
        rows,
        promise,
        ODDS,
        oracle_of(kind, rows.layout),
        rounds=4,
        group_aware=aware,
        public_rows=30,
    )
    curator = recorded(rows, game)
    questions = {type(ask.question) for ask in curator.tape.heard[-2].measurements}
    assert kind != "begun" or (questions == {GradientSum}) == in_vain
    pays = (
        game.plan is not None
        and 1 / game.counts_multiplier**2 + game.rounds / game.audit_multiplier**2
    )
    inner = game.oracle
    if kind == "regression":
        pays += 1 / inner.multiplier**2 * (1 if relation == "groups" else 2)
    if kind == "responses":
        pays += 1 / inner.regression.multiplier**2 + 1 / game.settled_multiplier**2
    if kind == "begun":
        pays += 1 / inner.once**2 + 1 / game.free_multiplier**2
    if kind in ("descent", "begun"):
        pays += game.rounds * inner.steps / inner.multiplier**2
    found, ranges = [], []
    for other in neighbours(data, relation, sizes):
        there = g.rows_from(*other, groups=sizes)
        found.append(moved(curator.tape, rows, there, promise))
        for questions, _, costs in curator.choices[-1:]:
            scores = [_scores(questions, costs, side) for side in (rows, there)]
            ranges.append(float(np.ptp(scores[0] - scores[1])) / reach(game.ground, costs))
    assert max(found) <= pays * (1 + 1e-9)
    least = {
        ("descent", "replace"): 0.1,
        ("begun", "replace"): 0.1,
        ("begun", "add"): 0.15,
        ("regression", "replace"): 0.2,
    }.get((kind, relation), 0.25)
    assert max(found) >= least * pays
    if kind in ("exponential", "labellings"):
        assert len(curator.choices) == game.rounds
        assert 0.5 <= max(ranges) <= 1 + 1e-9
        assert {epsilon for _, epsilon, _ in curator.choices} == {inner.epsilon}


def _scores(questions: Any, costs: Any, rows: Any) -> Any:
    """Each candidate's cost, from exact histograms. What all candidates share does not matter."""
    tables = Curator(rows, g.EXACT).answer([(question, 0.0) for question in questions])
    each = zip(questions, tables, strict=True)
    lines = [
        np.asarray(table).reshape(question.models, *costs.shape[:2], -1) for question, table in each
    ]
    table = np.concatenate(lines)
    assert table.shape[-1] == 1
    return (table[..., 0] * (costs[..., 1] - costs[..., 0])).sum(axis=(1, 2))


@pytest.mark.parametrize("relation", list(g.PROMISES))
@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_the_reach_of_a_choice_is_the_curators(relation: str, mode: str) -> None:
    for classes in (2, 4):
        rows = g.rows_from(*g.sample(0, 60, classes, (3, 2)), classes, (3, 2))
        notions = [EqualizedOdds(0.05, groups=mode)]
        ground = g.ground_of(rows, g.PROMISES[relation], notions, mode, public_rows=60)
        costs = np.random.default_rng(1).normal(size=(ground.groups, classes, classes))
        model = LinearRule(np.zeros((ground.outputs, 3))).decisions(ground.cells, True)
        made = Costs.of(costs, model, rows.layout)
        wanted = (
            made.reach(g.PROMISES[relation], rows.layout, reads_groups=False) / 2**made.exponent
        )
        assert reach(ground, costs) == pytest.approx(wanted, rel=1e-12)
        if relation == "groups" and mode == "product":
            by_hand = max(
                np.ptp(costs[a, y] - costs[b, y])
                for a, b in itertools.permutations(range(ground.groups), 2)
                for y in range(classes)
            )
            assert reach(ground, costs) == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize(("relation", "kind", "aware"), ALL)
@pytest.mark.parametrize("budget", [0.3, 6.0])
def test_guarantee_1_the_log_is_the_plan_event_for_event_and_costs_at_most_the_promise(
    relation: str, kind: str, aware: bool, budget: float
) -> None:
    promise = Promise(budget, 1e-5, g.PROMISES[relation].protects, g.PROMISES[relation].neighbours)
    rows = g.rows_from(*g.sample(1, 80))
    for rounds, notions in ((3, ODDS), (2, [])):
        aware_now = aware and bool(notions)
        game = g.a_game(
            rows,
            promise,
            notions,
            oracle_of(kind, rows.layout),
            rounds=rounds,
            group_aware=aware_now,
            public_rows=80,
        )
        curator = g.curator_for(game, rows)
        game.run(curator)
        curator.log.reconcile([game.plan])
        spent = price(curator.log.events, 1e-5, promise.neighbours)
        assert spent <= budget * (1 + 1e-12)
        if notions:
            assert spent >= 0.98 * budget
        with pytest.raises(PrivacyError):
            curator.answer([(game.ground.counts, 5.0)])


@pytest.mark.parametrize(("relation", "kind", "aware"), ALL)
@pytest.mark.parametrize("constrained", [True, False])
def test_guarantee_1_what_is_asked_does_not_depend_on_what_is_answered(
    relation: str, kind: str, aware: bool, constrained: bool
) -> None:
    """Runs without rows, with three kinds of made-up answers: large ones, for which the game is
    played, small ones, for which its rounds go on, and noise."""
    rows, notions = g.rows_from(*g.sample(1, 80)), ODDS if constrained else []
    game = g.a_game(
        rows,
        g.PROMISES[relation],
        notions,
        oracle_of(kind, rows.layout),
        rounds=4,
        group_aware=aware and constrained,
        public_rows=80,
    )
    rng, reasons = np.random.default_rng(2), set()
    for made_up in (
        lambda shape, number: np.full(shape, 1e9),
        lambda shape, number: np.full(shape, 0.5),
        lambda shape, number: rng.normal(scale=300.0, size=shape),
    ):
        trace = game.ground.trace(made_up)
        reasons.add(game.run(trace).reason)
        assert list(spelled_out(trace.plan)) == list(spelled_out(game.plan))
    assert (Reason.HIDDEN in reasons) == (kind == "begun" and constrained)


def test_guarantee_1_a_plan_is_made_of_public_values_alone() -> None:
    for relation, promise in g.PROMISES.items():
        for kind in ("regression", "exponential", "descent", "begun")[
            : 3 if relation == "groups" else 4
        ]:
            plans = []
            for seed in (0, 1):
                rows = g.rows_from(*g.sample(seed, 90))
                plans.append(
                    g.a_game(
                        rows, promise, ODDS, oracle_of(kind, rows.layout), public_rows=100
                    ).plan
                )
            assert plans[0] == plans[1], (relation, kind)


@pytest.mark.parametrize("where", ["answer", "choose", "watch"])
def test_guarantee_3_a_game_that_is_interrupted_leaves_a_beginning_of_its_plan_and_a_closed_curator(
    where: str,
) -> None:
    rows = g.rows_from(*g.sample(1, 80))
    game = g.a_game(rows, g.GROUPS, ODDS, Choice(thresholds(rows.layout)), rounds=6)

    class Breaks(Curator):
        left = 4

        def _tick(self, of: str) -> None:
            if of == where:
                Breaks.left -= 1
                if Breaks.left == 0:
                    raise KeyboardInterrupt

        def answer(self, *given: Any, **named: Any) -> Any:
            self._tick("answer")
            return super().answer(*given, **named)

        def choose(self, *given: Any, **named: Any) -> int:
            self._tick("choose")
            return super().choose(*given, **named)

    def watch(state: Any) -> None:
        if where == "watch" and state.round == 3:
            raise KeyboardInterrupt

    curator = g.curator_for(game, rows, of=Breaks)
    with pytest.raises(KeyboardInterrupt):
        game.run(curator, watch=watch)
    assert 0 < len(curator.log.events) < 13
    choices = [event for event in curator.log.events if isinstance(event, Exponential)]
    assert choices
    assert all(event.epsilon == game.oracle.epsilon for event in choices)
    with pytest.raises(PrivacyError):
        curator.answer([(game.ground.counts, game.counts_multiplier)])
    assert price(curator.log.events, 1e-5, "replace-one") < price(game.plan, 1e-5, "replace-one")


@pytest.mark.parametrize("kind", ["regression", "exponential", "labellings", "descent", "begun"])
@pytest.mark.parametrize("aware", [False, True])
def test_guarantee_2_what_is_found_follows_from_what_was_answered(kind: str, aware: bool) -> None:
    """Every answer and choice is told again, by somebody who holds no rows: the same rules, values,
    bounds, to the bit."""
    rows = g.rows_from(*g.sample(1, 200))
    promise = g.RECORDS if kind == "begun" else g.GROUPS
    game = g.a_game(rows, promise, ODDS, oracle_of(kind, rows.layout), rounds=8, group_aware=aware)
    told: list[Any] = []

    class Teller(Curator):
        def answer(self, *given: Any, **named: Any) -> Any:
            told.append(super().answer(*given, **named))
            return told[-1]

        def choose(self, *given: Any, **named: Any) -> int:
            told.append(super().choose(*given, **named))
            return told[-1]

    class Again(Curator):
        at = -1

        def answer(self, *given: Any, **named: Any) -> Any:
            Again.at += 1
            return told[Again.at]

        def choose(self, *given: Any, **named: Any) -> int:
            Again.at += 1
            return told[Again.at]

        def finish(self) -> Any:
            return None

    first = game.run(g.curator_for(game, rows, 5, Teller))
    other = g.rows_from(*g.sample(9, 200))
    again = game.run(g.curator_for(game, other, 6, Again))
    assert same(first, again)
    assert not same(first, game.run(g.curator_for(game, rows, 6)))


def same(one: Equilibrium, other: Equilibrium) -> bool:
    return (
        [rule.key for rule in one.rules] == [rule.key for rule in other.rules]
        and one.plays == other.plays
        and all(
            np.array_equal(getattr(one, name), getattr(other, name))
            for name in ("values", "duals", "counts", "spread")
        )
        and one.guarantee == other.guarantee
    )


# ---- the game
# --------------------------------------------------------------------------------------------------


def test_the_indicators_are_the_maximally_discriminatory_classifiers() -> None:
    rows = g.rows_from(*g.sample(1, 60, groups=(3,)), groups=(3,))
    cells = rows.cells()
    tables = [g.exact_table(rows, rule, cells) for rule in indicators(cells, 2)]
    assert len(tables) == 6
    for j, table in enumerate(tables):
        own, alone = j // 2, j % 2 == 0
        for a in range(3):
            expected = (a == own) == alone
            assert (table[a, :, int(not expected)] == 0).all()


def test_rounds_follow_the_promise_within_their_limits() -> None:
    rows = g.rows_from(*g.sample(1, 2000))
    found = []
    for epsilon in (0.01, 0.5, 3.0, 50.0):
        promise = Promise(epsilon, 1e-5, "sensitive_features")
        found.append(g.a_game(rows, promise, ODDS, Regression()).rounds)
    assert found == sorted(found)
    assert found[0] == game_plan.FEWEST
    assert found[-1] == game_plan.MOST
    assert g.a_game(rows, g.EXACT, ODDS, Regression()).rounds == game_plan.MOST
    assert g.a_game(rows, g.GROUPS, [], Regression()).rounds == 1
    # no public number of rows
    assert g.a_game(rows, g.RECORDS, ODDS, Regression()).rounds == 2 * game_plan.FEWEST
    assert g.a_game(rows, g.GROUPS, ODDS, Regression(), rounds=7).rounds == 7


def test_without_constraints_the_game_is_one_fit() -> None:
    rows = g.rows_from(*g.sample(1, 300))
    outcome = g.played(rows, g.a_game(rows, g.GROUPS, [], Regression()))
    assert (outcome.rounds, len(outcome.rules), outcome.names, outcome.guarantee) == (
        1,
        1,
        (),
        None,
    )
    assert outcome.reason is Reason.ROUNDS
    assert outcome.broken == ()


def test_group_aware_games_need_product_groups() -> None:
    rows = g.rows_from(*g.sample(1, 60, groups=(2, 2)), groups=(2, 2))
    with pytest.raises(InputError, match="product groups"):
        g.a_game(
            rows,
            g.GROUPS,
            [EqualizedOdds(0.1, groups="marginal")],
            Regression(),
            "marginal",
            group_aware=True,
        )


def test_what_is_measured_has_noise_that_no_comparison_saw() -> None:
    """Rules are kept if they look cheaper than an indicator. Judged by the same noise they would
    look better than they are, by a part of a deviation in each round, and no number of rounds would
    average it away. False alarms: 1e-6."""
    rows = g.rows_from(*g.sample(2, 1500))
    promise = Promise(0.1, 1e-5, "sensitive_features")
    game = g.a_game(
        rows, promise, ODDS, Choice(thresholds(rows.layout)), rounds=600, group_aware=True
    )
    curator, off = g.curator_for(game, rows, 1), []
    state = games.Play.begin(game, curator)
    while state.round < game.rounds:
        before, duals = copy(state), game.auditor.duals(state.leaning)
        before.played = dict(state.played)
        state.step()
        rule = next(
            one for key, (one, n) in state.played.items() if before.played.get(key, (one, 0))[1] < n
        )
        if isinstance(rule, GroupedRule):
            continue  # an indicator: how it decides is in the counts
        chosen = g.exact_table(rows, rule, rows.cells())[..., 1]
        told = (
            state.fixed.values(np.stack([state.counts - chosen, chosen], axis=-1))
            - game.system.bounds
        )
        off.append(state.seen.product - before.seen.product - float(duals @ told))
    curator.finish()
    assert 100 < len(off) < 600
    assert abs(np.sum(off)) / math.sqrt(np.sum(np.square(off))) < stats.norm.isf(0.5e-6)


@pytest.mark.parametrize(
    ("rows", "epsilon", "bound"), [(2_000, 0.5, 2.0), (2_000, 8.0, 5.0), (200_000, 1.0, 5.0)]
)
def test_the_dual_bound_is_as_large_as_noise_that_is_foretold_allows(
    rows: int, epsilon: float, bound: float
) -> None:
    """Public facts alone: the ground has no rows. Noise x bound stays below 0.05 between the ends,
    2 and 5."""
    small = g.rows_from(*g.sample(0, 60))
    promise = Promise(epsilon, 1e-6)
    ground = g.ground_of(small, promise, [EqualizedOdds(0.05)], public_rows=rows)
    assert game_plan.plan(ground, Regression()).dual_bound == bound
    between = game_plan.plan(
        g.ground_of(small, Promise(1.0, 1e-6), [EqualizedOdds(0.05)], public_rows=4_000),
        Regression(),
    )
    assert 2.0 < between.dual_bound < 5.0
    assert game_plan.plan(ground, Regression(), dual_bound=3.5).dual_bound == 3.5
    aware = g.ground_of(small, promise, [EqualizedOdds(0.05)], public_rows=rows, group_aware=True)
    # as many as groups: Corollary 4.6.1
    assert game_plan.plan(aware, Regression()).dual_bound == 2.0


def test_without_a_public_number_of_rows_the_dual_bound_is_the_least() -> None:
    ground = g.ground_of(g.rows_from(*g.sample(0, 60)), g.RECORDS, [EqualizedOdds(0.05)])
    assert game_plan.plan(ground, Regression()).dual_bound == 2.0
