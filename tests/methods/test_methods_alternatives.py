"""Less discriminatory alternatives from counts: how often an interval, a verdict or a bound on further
search is wrong, held against a population that is known."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from fairveil._verdicts import MET, NOT_MET
from fairveil.methods.alternatives import (
    DIFFERENCE,
    RATIO,
    SELECTION,
    TRUE_POSITIVE,
    SearchRule,
    _any_model,
    _Ends,
    draws_above,
    largest_value,
    search,
)
from fairveil.methods.counts import EXACT, CountNoise

NOISE = CountNoise("discrete-laplace", 2.0)


def _population(rng: np.random.Generator, candidates: int, groups: int) -> np.ndarray:
    """Probabilities of (group, label, base, candidate) for each candidate; base and label alike."""
    shape = (groups, 2, 2)
    law = rng.dirichlet(np.ones(groups * 4) * 3.0).reshape(shape)
    turn = rng.uniform(0.0, 0.3, (candidates, *shape))  # chance that a candidate decides otherwise
    after = np.stack([1.0 - turn, turn], axis=-1)
    after[:, :, :, 1] = after[:, :, :, 1, ::-1]
    return law[np.newaxis, ..., np.newaxis] * after


def _counts(
    rng: np.random.Generator, law: np.ndarray, people: int, noise: CountNoise
) -> np.ndarray:
    drawn = np.stack([rng.multinomial(people, one.ravel()) for one in law]).astype(float)
    if noise.kind != "none":
        q = 1.0 - np.exp(-1.0 / noise.scale)
        drawn += rng.geometric(q, drawn.shape) - rng.geometric(q, drawn.shape)
    return drawn.reshape(law.shape)


def _truth(law: np.ndarray, rule: SearchRule) -> list[tuple[float, list[float], float]]:
    """Loss above the base's, rates and value of the base and of each candidate."""
    _, y, b, c = np.indices(law.shape[1:])

    def loss(one: np.ndarray, decided: Any) -> float:
        first, second = rule.costs
        wrongly = one[(y == 0) & (decided == 1)].sum()
        return float(first * wrongly + second * one[(y == 1) & (decided == 0)].sum())

    def rates(one: np.ndarray, decided: Any) -> list[float]:
        event = (y == 1) | (rule.rate == SELECTION)
        return [
            float(one[g][(event & (decided == 1))[g]].sum() / one[g][event[g]].sum())
            for g in range(len(one))
        ]

    def value(found: list[float]) -> float:
        pairs = [
            (g, r)
            for g, r in itertools.permutations(range(len(found)), 2)
            if rule.reference in (None, r)
        ]
        if rule.compare == RATIO:
            return min(found[g] / found[r] for g, r in pairs)
        return min(found[g] - found[r] for g, r in pairs)

    before = loss(law[0], b)
    out = [(before, rates(law[0], b), value(rates(law[0], b)))]
    return out + [(loss(one, c) - before, rates(one, c), value(rates(one, c))) for one in law]


RULES = (
    (SearchRule(0.03, confidence=0.5), EXACT),
    (SearchRule(0.03, (1.0, 3.0), TRUE_POSITIVE, DIFFERENCE, confidence=0.5), EXACT),
    (SearchRule(0.05, reference=1, confidence=0.5), NOISE),
)


@pytest.mark.parametrize(("rule", "noise"), RULES, ids=("ratio", "costs", "reference"))
def test_everything_holds_together_with_the_confidence(rule: SearchRule, noise: CountNoise) -> None:
    """At a confidence of one half, so that a level that is not shared, or an end on the wrong side,
    is seen in few draws; every candidate is a near miss somewhere."""
    rng, wrong, times, shown = np.random.default_rng(3), 0, 60 if noise is EXACT else 8, 0
    for _ in range(times):
        law = _population(rng, 2, 2)
        found = search(_counts(rng, law, 2500, noise), noise, rule)
        base, *others = _truth(law, rule)
        worth = [one.ratio if rule.compare == RATIO else one.gap for one in found.candidates]
        sign = 1.0 if rule.compare == RATIO else -1.0
        fails = found.base.loss.high < base[0]
        for one, told, (more, rates, value) in zip(found.candidates, worth, others, strict=True):
            fails |= not one.loss.low <= more <= one.loss.high
            fails |= any(
                not end.low <= rate <= end.high for end, rate in zip(one.rates, rates, strict=True)
            )
            fails |= not told.low - 1e-12 <= sign * value <= (told.high or np.inf) + 1e-12
            fails |= one.equal_use == MET and more > rule.tolerance
            fails |= one.equal_use == NOT_MET and more <= rule.tolerance
            fails |= one.fairer == MET and value <= base[2]
            fails |= one.fairer == NOT_MET and value > base[2]
            shown += one.fairer != "inconclusive"
        wrong += fails
    assert wrong <= 0.5 * times + 3.0 * np.sqrt(times) / 2.0
    assert wrong < times
    assert shown > 0


def test_a_candidate_that_moves_few_people_is_told_by_those() -> None:
    """Of 4,000 people 60 of the group with fewer are selected more: each interval alone overlaps
    with the base's, the paired movement does not."""
    table = np.zeros((1, 2, 2, 2, 2))
    table[0, 0] = [[[1200, 30], [0, 200]], [[240, 30], [0, 300]]]
    table[0, 1] = [[[900, 0], [0, 300]], [[300, 0], [0, 500]]]
    found = search(table, EXACT, SearchRule(0.02))
    (one,) = found.candidates
    assert one.ratio.low < found.base.ratio.high
    assert (one.equal_use, one.fairer, found.taken) == (MET, MET, 0)
    back = search(table.swapaxes(3, 4), EXACT, SearchRule(0.02))
    assert back.candidates[0].fairer == NOT_MET
    assert back.taken is None
    # the same by the totals over groups, which are public where sensitive features alone are not
    alone = search(table, EXACT, SearchRule(0.02), table.sum(axis=1))
    assert alone.candidates == found.candidates


def test_small_groups_are_listed_and_not_compared() -> None:
    table = np.zeros((1, 3, 2, 2, 2))
    table[0, :2] = 500.0
    table[0, 2, 0, 0, 0] = 30.0
    rule = SearchRule(0.01, smallest=0.02)
    assert search(table, EXACT, rule).compared == (0, 1)
    assert search(table, EXACT, rule).base.ratio.low > 0.8
    assert search(table, EXACT, SearchRule(0.01)).base.ratio.high < 0.8
    table[0, 1:] = 0.0  # nobody to compare with
    alone = search(table, EXACT, SearchRule(0.01, smallest=0.02, draws=(0,)))
    assert alone.compared == (0,)
    assert (alone.candidates[0].fairer, alone.taken) == ("inconclusive", None)
    assert (alone.further.any_model, alone.further.beyond) == (None, None)


# -- further search --------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["uniform", "atoms"])
def test_further_draws_are_rarely_above_what_was_seen(law: str) -> None:
    """All k at once, of continuous values and of values that come again."""
    rng, draws, miss = np.random.default_rng(0), 20, 0.2
    values = rng.uniform(size=(20000, draws))
    above = 1.0 - values  # of a further draw, above each
    if law == "atoms":
        values = np.ceil(values * 5.0)
        above = 1.0 - values / 5.0
    ordered = np.sort(above, axis=1)
    wrong = (ordered > np.array(draws_above(draws, miss))).any(axis=1).mean()
    assert wrong <= miss + 0.01
    if law == "uniform":
        assert wrong > miss / 2.0  # the bound is not idle
        first = (ordered[:, 0] > draws_above(draws, miss)[0]).mean()
        assert first == pytest.approx(miss / 2.0, abs=0.01)


def test_what_is_said_of_further_draws_holds_of_noisy_evaluations() -> None:
    """Twelve draws from a procedure with three kinds of models, one of which is not of equal use:
    the chance that a further draw is better than the value told is at most the one told."""
    rng, times, wrong, told = np.random.default_rng(5), 12, 0, 0
    rule = SearchRule(0.05, confidence=0.5, draws=tuple(range(12)))
    kinds = np.zeros((3, 2, 2, 2, 2))
    for at, up in enumerate((0.02, 0.1, 0.6)):  # of the first group more are selected
        for y, b in itertools.product((0, 1), (0, 1)):
            turned = 0.0 if b else up
            kinds[at, 0, y, b, [b, 1 - b]] = 0.5 * (0.35, 0.15)[b] * np.array([1 - turned, turned])
            kinds[at, 1, y, b, b] = 0.5 * (0.2, 0.3)[b]
    shares = np.array([0.6, 0.1, 0.3])
    _, *truth = _truth(kinds, rule)
    for _ in range(times):
        law = kinds[rng.choice(3, 12, p=shares)]
        found = search(_counts(rng, law, 3000, EXACT), EXACT, rule)
        fails = False
        for one in (*found.further.redrawn, found.further.beyond):
            assert one is not None
            value = -np.inf if one.value is None else one.value
            chance = sum(
                share
                for share, (more, _, own) in zip(shares, truth, strict=True)
                if more <= rule.tolerance and own > value
            )
            fails |= chance > one.at_most + 1e-12
            told += one.at_most < 0.5
        wrong += fails
    assert wrong <= 0.5 * times
    assert told > 0


def test_the_part_of_each_look_adds_up() -> None:
    looks = [SearchRule(0.0, draws=(0,), look=t) for t in range(1, 2000)]
    assert sum(one.miss for one in looks) < 0.05
    assert sum(one.miss for one in looks) > 0.0499
    one = looks[0]
    groups, candidates = 3, 4
    ends = candidates * 2 * (2 + 3 * groups) + 6 * groups + 1
    assert one.of_draws + ends * one.level(candidates, groups) == pytest.approx(one.miss)


@pytest.mark.parametrize("compare", [RATIO, DIFFERENCE])
@pytest.mark.parametrize("reference", [None, 0])
def test_no_model_is_beyond_the_bound_and_one_reaches_it(
    compare: str, reference: int | None
) -> None:
    """Every model is a number of people more and of people less in each group. The bound of known
    shares is found again by trying all of these on a grid."""
    rng = np.random.default_rng(1)
    rule = SearchRule(0.0, (1.0, 2.0), compare=compare, reference=reference)
    grid = np.linspace(0.0, 1.0, 401)
    for _ in range(6):
        p = rng.dirichlet([4.0, 4.0])
        q = p * np.sort(rng.uniform(0.1, 0.9, 2))[:: rng.choice([-1, 1])]
        most = rng.uniform(0.0, 0.15)
        boxes = {g: [p[g], p[g], q[g], q[g]] for g in range(2)}
        bound = largest_value(boxes, rule, most)
        cost = [
            np.maximum(rate * p[g] - q[g], 0.0) + 2.0 * np.maximum(q[g] - rate * p[g], 0.0)
            for g, rate in enumerate((grid, grid))
        ]
        allowed = cost[0][:, np.newaxis] + cost[1] <= most
        first, second = grid[:, np.newaxis], grid
        with np.errstate(divide="ignore", invalid="ignore"):
            up, down = (
                (second / first, first / second)
                if compare == RATIO
                else (second - first, first - second)
            )
        value = up if reference == 0 else np.fmin(up, down)
        best = np.nanmax(np.where(allowed & (first > 0) & (second > 0), value, -np.inf))
        top = 1.0 if compare == RATIO else 0.0
        if bound is None:
            assert best > top - 0.02
        else:
            assert best < bound + 1e-6
            assert best > bound - 0.02
        # what ends rule out is no more than what any shares between them do
        wide = {g: [0.8 * p[g], 1.25 * p[g], 0.8 * q[g], 1.25 * q[g]] for g in range(2)}
        of_ends = largest_value(wide, rule, most)
        for sizes, good in itertools.product(itertools.product((0, 1), repeat=2), repeat=2):
            inside = {
                g: [wide[g][size]] * 2 + [wide[g][2 + some]] * 2
                for g, size, some in zip(range(2), sizes, good, strict=True)
            }
            of_shares = largest_value(inside, rule, most)
            assert of_ends is None or (of_shares is not None and of_shares <= of_ends + 1e-6)


def test_the_bound_on_any_model_covers() -> None:
    """Labels that differ much, and a base that errs little: the bound of the true shares is at most
    the one told, but with the chance that is left."""
    rng, rule, times, wrong = np.random.default_rng(2), SearchRule(0.01, confidence=0.5), 40, 0
    law = np.zeros((1, 2, 2, 2, 2))
    law[0, 0] = [[[0.38, 0.01], [0.01, 0.0]], [[0.0, 0.01], [0.0, 0.09]]]
    law[0, 1] = [[[0.19, 0.0], [0.01, 0.0]], [[0.01, 0.0], [0.0, 0.29]]]
    sizes, good = law[0].sum(axis=(1, 2, 3)), law[0][:, 1].sum(axis=(1, 2))
    truth = largest_value(
        {g: [sizes[g]] * 2 + [good[g]] * 2 for g in range(2)}, rule, _truth(law, rule)[0][0] + 0.01
    )
    for _ in range(times):
        found = search(_counts(rng, law, 2000, EXACT), EXACT, rule).further.any_model
        wrong += found is not None and truth is not None and found < truth
    assert truth is not None
    assert truth < 0.8
    assert wrong <= 0.5 * times
    labelled = SearchRule(0.01, rate=TRUE_POSITIVE)
    ends = _Ends(_counts(rng, law, 2000, EXACT), EXACT, None, 0.01)
    assert _any_model(ends, labelled, (0, 1), 0.0) is None
