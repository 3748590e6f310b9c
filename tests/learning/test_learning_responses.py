"""The oracle of public rows, what it foretells, and the mixture that it settles on: guarantees of
`responses` and `settled`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import game_samples as g
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairveil.core.promise import Promise
from fairveil.curator import Curator
from fairveil.errors import InputError
from fairveil.facts import Cells
from fairveil.fairness import DemographicParity, EqualizedOdds, FalsePositiveRateParity
from fairveil.learning.game import SETTLED
from fairveil.learning.oracles import LinearRule, Regression, Responses, directions, memberships
from fairveil.learning.public_rows import PublicRows

ODDS = [EqualizedOdds(0.05)]


def telling(n: int = 1500, seed: int = 0) -> Any:
    """One feature tells the group; the other says the opposite of the label in one of them."""
    rng = np.random.default_rng(seed)
    A, u = rng.integers(2, size=n), rng.normal(size=n)
    X = np.clip(np.column_stack([A * 1.2 - 0.6 + 0.1 * rng.normal(size=n), 0.3 * u]), -1, 1)
    chances = 1 / (1 + np.exp(-(1.5 + 3 * u) * (2 * A - 1)))
    return X, (rng.random(n) < chances).astype(int), [A]


def grid_tables(rows: Any) -> Any:
    """How 1,600 linear rules decide, exactly: the class of the judge."""
    cuts, first = directions(rows.layout, 40, 40), np.array([1.0, 0.0, 0.0])
    rules = [
        LinearRule((line - edge * first)[np.newaxis])
        for line in cuts.directions
        for edge in cuts.edges
    ]
    return np.array([g.exact_table(rows, rule, rows.cells()) for rule in rules])


@pytest.mark.parametrize("notion", [EqualizedOdds(0.05), FalsePositiveRateParity(0.05)])
def test_without_noise_nothing_is_left_to_the_optimum_where_features_tell_the_group(
    notion: Any,
) -> None:
    """The judge is an exact program over 1,600 rules. The regression oracle was 15 points and 8
    above it."""
    rows = g.rows_from(*telling())
    best = g.program(grid_tables(rows), [notion], rows.cells())
    outcome = g.played(rows, g.a_game(rows, g.EXACT, [notion], Responses()))
    error, excess = g.mixture(rows, outcome, [notion], rows.cells())
    assert excess < 1e-3
    assert error < best + 0.005
    assert np.allclose(outcome.values - outcome.bounds <= 1e-3, True)
    far = g.mixture(
        rows,
        g.played(rows, g.a_game(rows, g.EXACT, [notion], Regression())),
        [notion],
        rows.cells(),
    )
    assert far[0] > best + 0.05


def test_much_epsilon_comes_close_to_no_noise() -> None:
    rows = g.rows_from(*telling())
    found = []
    for promise in (g.EXACT, Promise(1e4, 1e-6, "sensitive_features")):
        found.append(
            g.mixture(
                rows, g.played(rows, g.a_game(rows, promise, ODDS, Responses())), ODDS, rows.cells()
            )
        )
    assert abs(found[1][0] - found[0][0]) < 0.01
    assert found[1][1] < 0.01


def test_guarantee_2_no_mixture_of_what_was_met_is_better_without_noise() -> None:
    rows = g.rows_from(*g.sample(4, 600, groups=(3,)), groups=(3,))
    game = g.a_game(rows, g.EXACT, ODDS, Responses(), rounds=20)
    seen: list[Any] = []
    outcome = game.run(g.curator_for(game, rows), watch=seen.append)
    rules = [atom.rule for atom in seen[-1].prepared.atoms.values()]
    tables = np.array([g.exact_table(rows, rule, rows.cells()) for rule in rules])
    error, excess = g.mixture(rows, outcome, ODDS, rows.cells())
    assert error < g.program(tables, ODDS, rows.cells()) + 1e-3  # shares are rounded to 1 / 10,000
    assert excess < 1e-3


def test_a_group_without_rows_constrains_nothing_without_noise() -> None:
    X, y, A = g.sample(1, 500)
    few = g.rows_from(X, y, A, groups=(2,))
    more = g.rows_from(X, y, A, groups=(3,))
    laws = [
        g.played(rows, g.a_game(rows, g.EXACT, ODDS, Responses(), rounds=15))
        for rows in (few, more)
    ]
    one, other = (np.asarray(g.mixture(few, law, ODDS, few.cells())) for law in laws)
    assert one == pytest.approx(other, abs=0.01)
    undefined = np.array(["group 2" in name or "2" in name.split() for name in laws[1].names])
    assert np.isnan(laws[1].values).any() or undefined.any()


@pytest.mark.parametrize("notion", [DemographicParity(0.02), EqualizedOdds(0.02)])
def test_it_is_never_above_mixing_as_it_foretells_itself(notion: Any) -> None:
    """The rule without constraints and the constants are among what it mixes: the program's error
    is at most theirs."""
    rows = g.rows_from(*g.sample(2, 800, groups=(4,)), groups=(4,))
    for seed in range(3):
        game = g.a_game(rows, g.GROUPS, [notion], Responses(), rounds=15)
        seen: list[Any] = []
        outcome = game.run(g.curator_for(game, rows, seed), watch=seen.append)
        state = seen[-1]
        told, fixed = state.prepared, state.fixed
        keys = list(told.atoms)
        values, errors = (
            told.values(fixed, state.noise),
            np.array([atom.error for atom in told.atoms.values()]),
        )
        shares = np.zeros(len(keys))
        for rule, play in zip(outcome.rules, outcome.plays, strict=True):
            shares[keys.index(rule.key)] += play / sum(outcome.plays)
        free, constants = (
            keys.index(told.free),
            [j for j, atom in enumerate(told.atoms.values()) if atom.certain],
        )
        for k in constants:
            for share in np.linspace(0, 1, 201):
                mixed = (1 - share) * values[free] + share * values[k]
                if (mixed <= fixed.system.bounds + 1e-9).all():
                    assert shares @ errors <= (1 - share) * errors[free] + share * errors[k] + 1e-3
                    break


def test_cells_within_their_noise_are_left_alone() -> None:
    """A cell of 12 rows, whose rates were counted with noise of more than itself, used to rule the
    whole mixture."""
    rng = np.random.default_rng(0)
    n = 4000
    A = np.where(np.arange(n) < 12, 2, rng.integers(2, size=n))
    X = np.clip(rng.normal(scale=0.4, size=(n, 2)), -1, 1)
    y = (X.sum(axis=1) + 0.2 * rng.normal(size=n) > 0).astype(int)
    rows = g.rows_from(X, y, [A], groups=(3,))
    fair = [EqualizedOdds(0.1)]
    errors = []
    for oracle in (Responses(), Regression()):
        game = g.a_game(rows, Promise(0.5, 1e-6, "sensitive_features"), fair, oracle)
        errors.append(
            np.mean(
                [
                    g.mixture(rows, g.played(rows, game, seed), fair, rows.cells())[0]
                    for seed in range(3)
                ]
            )
        )
    free = g.played(rows, g.a_game(rows, g.EXACT, [], Responses()))
    alone = g.mixture(rows, free, fair, rows.cells())[0]
    assert errors[0] < alone + 0.01 < errors[1]


def test_guarantee_1_what_is_found_follows_from_answers_and_public_rows() -> None:
    """Every answer told again, with the groups of all rows changed: the same to the bit. And
    nothing is asked in a round but the audit."""
    X, y, A = g.sample(1, 200)
    told: list[Any] = []

    class Teller(Curator):
        def answer(self, *given: Any, **named: Any) -> Any:
            told.append(super().answer(*given, **named))
            return told[-1]

    class Again(Curator):
        at = -1

        def answer(self, *given: Any, **named: Any) -> Any:
            Again.at += 1
            return told[Again.at]

        def finish(self) -> Any:
            return None

    rows, other = g.rows_from(X, y, A), g.rows_from(X, y, [1 - A[0]])
    game = g.a_game(rows, g.GROUPS, ODDS, Responses(), rounds=8)
    first = game.run(g.curator_for(game, rows, 5, Teller))
    again = game.run(g.curator_for(game, other, 6, Again))
    assert [rule.key for rule in first.rules] == [rule.key for rule in again.rules]
    assert first.plays == again.plays
    assert np.array_equal(first.values, again.values)
    assert first.guarantee == again.guarantee
    regression = g.a_game(rows, g.GROUPS, ODDS, Regression(), rounds=8)
    (asked, none), (known, _) = (
        one.oracle.asked(one.ground, one.counts_multiplier) for one in (game, regression)
    )
    assert not none
    assert [one.event for one in asked] == [one.event for one in known]


def test_settled_guarantees_the_mixture_is_counted_once_with_noise_of_its_own() -> None:
    """120 fits of one game: values are off by the stated noise (a deviation estimated from 120
    draws is within 25 % of the truth but for 1e-4), and what is certain of 95 % of fits holds as
    often, less five deviations of that share."""
    rows = g.rows_from(*g.sample(3, 400))
    game = g.a_game(rows, g.GROUPS, ODDS, Responses(), rounds=2)
    audits = 1 / game.settled_multiplier**2 + game.rounds / game.audit_multiplier**2
    assert 1 / game.settled_multiplier**2 == pytest.approx(SETTLED * audits, rel=1e-9)
    away, kept = [], 0
    for seed in range(120):
        found = g.played(rows, game, seed)
        tables = np.array([g.exact_table(rows, rule, rows.cells()) for rule in found.rules])
        table = np.tensordot(np.array(found.plays) / sum(found.plays), tables, axes=1)
        value = game.system.exact_values(table, table.sum(axis=-1))
        away.append(((found.values - value) / found.spread)[0])
        assert found.guarantee is not None
        assert math.isinf(found.guarantee.nu)
        kept += float((value - game.system.bounds).max()) <= found.guarantee.gap_excess
    assert 0.75 < np.std(away) < 1.3
    assert abs(np.mean(away)) < 5 / math.sqrt(120)
    assert kept >= 120 * 0.95 - 5 * math.sqrt(120 * 0.95 * 0.05)


def test_memberships_are_the_logistic_regression_of_the_group() -> None:
    rng = np.random.default_rng(1)
    n = 4000
    z, labels = rng.normal(size=(n, 2)), rng.integers(2, size=n)
    A = (rng.random(n) < 1 / (1 + np.exp(-(z[:, 0] + labels)))).astype(int)
    cells = Cells(((0, 1),))
    at = [[(a == A) & (labels == y) for y in (0, 1)] for a in (0, 1)]
    counts = np.array([[mask.sum() for mask in line] for line in at], float)
    means = np.array([[z[mask].mean(axis=0) for mask in line] for line in at])
    found = memberships(z, labels, np.ones(n), means, counts, cells, 0.0)
    for y in (0, 1):
        mask = labels == y
        model = LogisticRegression(C=1.0, tol=1e-8).fit(z[mask], A[mask])
        assert np.abs(found[mask, 1] - model.predict_proba(z[mask])[:, 1]).max() < 0.01
        assert np.allclose(found[mask].sum(axis=0), counts[:, y], rtol=0.01)
    marginal = Cells(((0, 1), ("x", "y", "z")), mode="marginal")
    wide = memberships(
        z, labels, np.ones(n), np.zeros((5, 1, 2)), np.full((5, 1), 3.0), marginal, 10.0
    )
    assert np.allclose(wide[:, :2].sum(axis=1), 1.0)
    assert np.allclose(wide[:, 2:], 1 / 3, atol=0.01)


def test_the_best_cut_is_that_of_brute_force() -> None:
    rng = np.random.default_rng(0)
    design = np.column_stack([np.ones(60), rng.integers(0, 7, size=(60, 1)).astype(float)])
    costs = rng.normal(size=(60, 2))
    rows = PublicRows(
        design, np.eye(2), rng.integers(2, size=60), np.ones((60, 1)), np.full(60, 1 / 60), 2, False
    )
    best = rows.cut(np.array([[0.0, 1.0]]), costs)
    at = np.arange(60)
    price = costs[at, rows.decided(best)].sum()
    every = [costs[at, (design[:, 1] > edge).astype(int)].sum() for edge in np.arange(-0.5, 8)]
    assert price == pytest.approx(min(every))


def test_it_refuses_ground_without_public_rows() -> None:
    rows = g.rows_from(*g.sample(1, 60))
    with pytest.raises(InputError, match="public features"):
        g.a_game(rows, g.RECORDS, ODDS, Responses(), public_rows=60)
    with pytest.raises(InputError, match="public features"):
        g.a_game(rows, g.GROUPS, ODDS, Responses(), group_aware=True)


def test_many_rows_are_thinned_and_nothing_else_changes() -> None:
    rows = g.rows_from(*telling(3000))
    game = g.a_game(rows, g.GROUPS, ODDS, Responses(), rounds=10)
    thin = replace(game, oracle=replace(game.oracle, most=3 * 1000))
    assert thin.plan == game.plan
    one, other = (
        g.mixture(rows, g.played(rows, each), ODDS, rows.cells())[0] for each in (game, thin)
    )
    assert abs(one - other) < 0.08
