"""Constraint systems against direct definitions written with loops over rows, and costs against
finite differences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from covering import pairs
from fairveil.errors import InputError
from fairveil.facts import Cells
from fairveil.fairness import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRate,
    ErrorRateParity,
    Event,
    FalseNegativeRate,
    FalsePositiveRateParity,
    PredictionRate,
    RateConstraint,
    resolve,
)
from fairveil.metrics import histograms

# ---- the independent judge: rows and loops, nothing shared with the library
# ------------------------------------------


def tempered_softmax(scores, temperature=1.0):
    powers = np.exp((scores - scores.max(axis=-1, keepdims=True)) / temperature)
    return powers / powers.sum(axis=-1, keepdims=True)


def row_costs(cell_costs, labels, cell_ids):
    """What each row's prediction of each class costs: the sum over the cells that the row is in."""
    at = np.zeros(cell_ids.shape[1], dtype=np.intp) if labels is None else labels
    return sum(cell_costs[line, at] for line in cell_ids)


def score_gradient(probabilities, costs, temperature):
    """Of a softmax of scores over a temperature, by the scores."""
    mean = (probabilities * costs).sum(axis=-1, keepdims=True)
    return probabilities * (costs - mean) / temperature


def share(rows, hit):
    rows = list(rows)
    return sum(1 for row in rows if hit(row)) / len(rows) if rows else math.nan


def row_groups(columns, mode):
    """A list of blocks; a block is a list of predicates on a row's sensitive values."""
    if mode == "product":
        return [[lambda s, key=key: s == key for key in itertools.product(*columns)]]
    return [[lambda s, j=j, v=v: s[j] == v for v in column] for j, column in enumerate(columns)]


def differences(rows, columns, mode, compare, measure):
    """measure(list of rows) -> {what: rate}. All signed differences, both ways, as a sorted
    list."""
    out = []
    for block in row_groups(columns, mode):
        if len(block) < 2:
            continue  # nobody to be compared with
        for i, inside in enumerate(block):
            mine = measure([r for r in rows if inside(r[0])])
            if compare == "rest":
                theirs = [measure([r for r in rows if not inside(r[0])])]
            else:
                theirs = [
                    measure([r for r in rows if other(r[0])])
                    for j, other in enumerate(block)
                    if j != i
                ]
            for other in theirs:
                for what in mine:
                    out.append(mine[what] - other[what])
                    if compare == "rest":
                        out.append(other[what] - mine[what])
    return out


def parity(classes):
    return lambda rows: {k: share(rows, lambda r, k=k: r[2] == k) for k in classes}


def odds(classes):
    return lambda rows: {
        (y, k): share([r for r in rows if r[1] == y], lambda r, k=k: r[2] == k)
        for y in classes
        for k in classes
    }


def opportunity(positive):
    return lambda rows: {
        0: share([r for r in rows if r[1] == positive], lambda r: r[2] == positive)
    }


def false_positive(positive):
    return lambda rows: {
        0: share([r for r in rows if r[1] != positive], lambda r: r[2] == positive)
    }


def wrong(rows):
    return {0: share(rows, lambda r: r[1] != r[2])}


def draw(seed, classes, columns, rows=400):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(len(column), size=rows) for column in columns])
    labels, decisions = rng.integers(len(classes), size=rows), rng.integers(len(classes), size=rows)
    listed = [
        (
            tuple(column[c] for column, c in zip(columns, codes[:, i], strict=True)),
            classes[labels[i]],
            classes[decisions[i]],
        )
        for i in range(rows)
    ]
    return codes, labels, decisions, listed


def exact(system, cells, codes, labels, decisions):
    ids = cells.ids(codes)
    return system.exact_values(
        histograms.hard_histogram(decisions, labels, ids, system.shape),
        histograms.cell_counts(labels, ids, system.shape),
    )


COLUMNS = {
    2: ((("f", "m"),), (("f",), ("x", "y"))),
    12: ((tuple(f"g{i}" for i in range(12)),), (("a", "b", "c"), ("w", "x", "y", "z"))),
}
CLASSES = {2: ("no", "yes"), 5: (10, 20, 30, 40, 50)}
GAPS = {
    "parity": (lambda c, **o: DemographicParity(0.07, **o), lambda c: parity(c)),
    "odds": (lambda c, **o: EqualizedOdds(0.07, **o), lambda c: odds(c)),
    "opportunity": (lambda c, **o: EqualOpportunity(0.07, c[1], **o), lambda c: opportunity(c[1])),
    "false-positive": (
        lambda c, **o: FalsePositiveRateParity(0.07, c[1], **o),
        lambda c: false_positive(c[1]),
    ),
    "error": (lambda c, **o: ErrorRateParity(0.07, **o), lambda c: wrong),
}


def same_sets(found, expected):
    """Equal as sets of numbers (binary systems leave the first class out, rests of two groups are
    written once)."""
    assert not np.isnan(found).any() or np.isnan(expected).any()
    found, expected = (
        {round(float(v), 9) + 0.0 for v in values if not math.isnan(v)}
        for values in (found, expected)
    )
    assert found == expected


@pytest.mark.parametrize(
    ("compare", "mode", "two", "groups", "classes", "name"),
    pairs(["pairs", "rest"], ["product", "marginal"], [False, True], [2, 12], [2, 5], sorted(GAPS)),
)
def test_gap_notions_equal_their_definitions(name, classes, groups, two, mode, compare):
    """Also through every basis: marginal groups over product cells and over marginal cells give the
    same numbers."""
    known, columns = CLASSES[classes], COLUMNS[groups][two]
    make, judge = GAPS[name]
    notion = make(known, groups=mode, compare=compare)
    codes, labels, decisions, rows = draw(classes * 100 + groups, known, columns, rows=900)
    expected = differences(rows, columns, mode, compare, judge(known))
    for basis in ["product"] if mode == "product" else ["product", "marginal"]:
        cells = Cells(columns, mode=basis)
        system = resolve(notion, cells, known)
        found = exact(system, cells, codes, labels, decisions)
        same_sets(found, expected)
        assert system.excess(found) == pytest.approx(found - 0.07)


@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize("classes", [2, 5])
def test_false_negative_rates_and_group_losses_equal_their_definitions(classes, mode):
    known, columns = CLASSES[classes], COLUMNS[12][1]
    codes, labels, decisions, rows = draw(7, known, columns, rows=900)
    cells, positive = Cells(columns, mode=mode), known[-1]

    def missed(chosen):
        return share([r for r in chosen if r[1] == positive], lambda r: r[2] != positive)

    groups = [member for block in row_groups(columns, mode) for member in block]
    each = [[r for r in rows if inside(r[0])] for inside in groups]
    for notion, expected in (
        (FalseNegativeRate(0.3, positive=positive, groups=mode), [missed(rows)]),
        (
            FalseNegativeRate(0.3, "each", positive, groups=mode),
            [missed(chosen) for chosen in each],
        ),
        (FalseNegativeRate(0.3, cells.keys[3], positive, groups=mode), [missed(each[3])]),
        (BoundedGroupLoss(0.3, groups=mode), [wrong(chosen)[0] for chosen in each]),
    ):
        system = resolve(notion, cells, known)
        assert exact(system, cells, codes, labels, decisions) == pytest.approx(expected)
        assert (system.bounds == 0.3).all()


def test_a_swapped_label_group_or_class_is_seen():
    """The judge itself: each of three plausible slips changes some value."""
    known, columns = CLASSES[5], COLUMNS[12][0]
    codes, labels, decisions, _ = draw(3, known, columns)
    cells = Cells(columns)
    system = resolve(EqualizedOdds(0.1), cells, known)
    right = exact(system, cells, codes, labels, decisions)
    ids = cells.ids(codes)
    histogram = histograms.hard_histogram(decisions, labels, ids, system.shape)
    counts = histograms.cell_counts(labels, ids, system.shape)
    for slip in (
        histogram[[1, 0, *range(2, 12)]],
        histogram[:, [1, 0, 2, 3, 4]],
        histogram[..., [1, 0, 2, 3, 4]],
    ):
        assert not np.allclose(system.exact_values(slip, counts), right, equal_nan=True)


@pytest.mark.parametrize("compare", ["pairs", "rest"])
def test_every_value_stands_under_its_own_name(compare):
    """Which group, label and class a number belongs to: a permutation of the constraints would be
    caught."""
    known, columns = CLASSES[5], COLUMNS[12][0]
    codes, labels, decisions, rows = draw(13, known, columns, rows=2000)
    cells = Cells(columns)
    system = resolve(EqualizedOdds(0.1, compare=compare), cells, known)
    found = dict(zip(system.names, exact(system, cells, codes, labels, decisions), strict=True))

    def rate(where, y, k):
        inside = where.split()[-1]
        wanted = where.startswith("outside")
        return share(
            [r for r in rows if ((r[0][0] == inside) != wanted) and r[1] == y], lambda r: r[2] == k
        )

    seen = 0
    for a, b in itertools.permutations(columns[0], 2):
        pairs = [(f"group {a}", f"group {b}")]
        if compare == "rest":
            pairs = (
                [(f"group {a}", f"outside group {a}"), (f"outside group {a}", f"group {a}")]
                if b == columns[0][a == "g0"]
                else []
            )
        for one, other in pairs:
            for y, k in itertools.product(known, known):
                name = (
                    f"P(prediction = {k} | {one}, label {y}) - P(prediction = {k} | {other}, label "
                    f"{y}) <= 0.1"
                )
                assert found[name] == pytest.approx(rate(one, y, k) - rate(other, y, k))
                seen += 1
    assert seen == len(system)


def test_user_made_constraints_take_any_set_of_groups_and_labels():
    known, columns = ("no", "yes"), (("f", "m"), ("x", "y", "z"))
    codes, labels, decisions, rows = draw(11, known, columns)
    odd = Event((("f", "x"),), ("yes",), also=(Event((("m", "z"),), ("no",)),))
    constraint = RateConstraint(
        ((2.0, PredictionRate("yes", odd)), (-0.8, ErrorRate(Event()))), 0.2, name="odd one"
    )
    cells = Cells(columns)
    inside = [r for r in rows if (r[0], r[1]) in {(("f", "x"), "yes"), (("m", "z"), "no")}]
    expected = 2 * share(inside, lambda r: r[2] == "yes") - 0.8 * wrong(rows)[0]
    system = resolve(constraint, cells, known)
    assert system.names == ("odd one",)
    assert exact(system, cells, codes, labels, decisions) == pytest.approx([expected])
    marginal = Event((("sensitive_1", "y"),), outside=True)
    system = resolve(
        RateConstraint(((1.0, PredictionRate("yes", marginal)),), 0.2, groups="marginal"),
        cells,
        known,
    )
    expected = share([r for r in rows if r[0][1] != "y"], lambda r: r[2] == "yes")
    assert exact(system, cells, codes, labels, decisions) == pytest.approx([expected])


def soft_problem(seed, mode, classes=3):
    rng = np.random.default_rng(seed)
    columns, known = (("f", "m"), ("x", "y", "z")), tuple(range(classes))
    codes = np.stack([rng.integers(len(column), size=60) for column in columns])
    cells = Cells(columns, mode=mode)
    notions = [
        DemographicParity(0.1, groups=mode),
        ErrorRateParity(0.1, groups=mode, compare="rest"),
        EqualOpportunity(0.1, 1, groups="marginal"),
        FalseNegativeRate(0.2, positive=2),
    ]
    system = resolve(notions, cells, known)
    return (
        system,
        cells.ids(codes),
        rng.integers(classes, size=60),
        rng.normal(size=(60, classes)),
        rng.exponential(size=len(system)),
    )


@pytest.mark.parametrize("floor", [None, 25.0])
@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_cell_costs_are_the_gradient_of_the_lagrangian(mode, floor):
    """Central differences through softmax scores, temperature 0.7; counts noisy but fixed."""
    system, ids, labels, scores, duals = soft_problem(5, mode)
    counts = histograms.cell_counts(labels, ids, system.shape) + np.random.default_rng(6).uniform(
        0.1, 1, system.shape[:2]
    )

    def lagrangian(s):
        soft = histograms.soft_histogram(tempered_softmax(s, 0.7), labels, ids, system.shape)
        return float(duals @ system.excess(system.exact_values(soft, counts, floor)))

    costs = row_costs(system.cell_costs(duals, counts, floor), labels, ids)
    gradient = score_gradient(tempered_softmax(scores, 0.7), costs, 0.7)
    step, numeric = 1e-5, np.zeros_like(scores)
    for place in np.ndindex(scores.shape):
        up, down = scores.copy(), scores.copy()
        up[place] += step
        down[place] -= step
        numeric[place] = (lagrangian(up) - lagrangian(down)) / (2 * step)
    assert np.abs(numeric).max() > 1e-3
    assert gradient == pytest.approx(numeric, abs=1e-8)


def test_the_jacobian_is_the_linear_program_s_matrix():
    system, ids, labels, scores, duals = soft_problem(8, "product")
    counts = histograms.cell_counts(labels, ids, system.shape)
    soft = histograms.soft_histogram(tempered_softmax(scores), labels, ids, system.shape)
    jacobian = system.jacobian(counts, 1.0)
    assert jacobian @ soft.ravel() == pytest.approx(system.exact_values(soft, counts, 1.0))
    assert duals @ jacobian == pytest.approx(system.cell_costs(duals, counts, 1.0).ravel())


def test_as_the_temperature_falls_the_surrogate_becomes_the_exact_value():
    system, ids, labels, scores, _ = soft_problem(9, "product")
    counts = histograms.cell_counts(labels, ids, system.shape)
    hard = system.exact_values(
        histograms.hard_histogram(scores.argmax(axis=1), labels, ids, system.shape), counts, 1.0
    )
    errors = []
    for temperature in (1.0, 0.1, 0.001):
        soft = histograms.soft_histogram(
            tempered_softmax(scores, temperature), labels, ids, system.shape
        )
        errors.append(np.abs(system.exact_values(soft, counts, 1.0) - hard).max())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.01


def test_an_empty_event_is_undefined_without_a_floor_and_takes_no_part():
    cells = Cells((("f", "m", "x"),))
    system = resolve(DemographicParity(0.1), cells, (0, 1))
    counts = np.array([[4.0, 0.0], [5.0, 0.0], [0.0, 0.0]])
    histogram = np.zeros(system.shape)
    histogram[0, 0], histogram[1, 0] = (3, 1), (1, 4)
    values = system.exact_values(histogram, counts)
    touched = np.array(["group x" in name for name in system.names])
    assert np.isnan(values[touched]).all()
    assert sorted(values[~touched]) == pytest.approx([-0.55, 0.55])
    assert np.isnan(system.excess(values)[touched]).all()
    duals = np.arange(1.0, 7.0)
    costs = system.cell_costs(duals, counts)
    assert np.isfinite(costs).all()
    assert (costs[2] == 0).all()
    kept = np.where(touched, 0.0, duals)
    assert costs[:2] == pytest.approx(system.cell_costs(kept, counts, 0.5)[:2])
    floored = system.exact_values(histogram, counts, 10.0)
    assert np.isfinite(floored).all()
    assert np.abs(floored[touched]).max() == pytest.approx(0.4)


def test_clipping_projects_each_rate_not_the_difference():
    system = resolve(DemographicParity(0.1), Cells((("f", "m"),)), (0, 1)).without_labels()
    noisy, counts = np.array([[[0.0, 12.0]], [[3.0, -1.0]]]), np.array([[10.0], [10.0]])
    assert system.exact_values(noisy, counts) == pytest.approx([1.3, -1.3])
    assert system.exact_values(noisy, counts, clip=True) == pytest.approx([1.0, -1.0])


def test_many_models_at_once_give_the_bits_of_one_alone():
    system, _, _, _, _ = soft_problem(12, "product", classes=4)
    rng = np.random.default_rng(0)
    for lead in ((7,), (3, 20)):
        soft, counts = (
            rng.normal(50, 9, (*lead, *system.shape)),
            rng.uniform(1, 90, (*lead, *system.shape[:2])),
        )
        duals = rng.exponential(size=(*lead, len(system)))
        values, costs = (
            system.exact_values(soft, counts, 5.0),
            system.cell_costs(duals, counts, 5.0),
        )
        shared = system.exact_values(soft, counts[(0,) * len(lead)], 5.0)
        for at in np.ndindex(lead):
            assert (values[at] == system.exact_values(soft[at], counts[at], 5.0)).all()
            assert (costs[at] == system.cell_costs(duals[at], counts[at], 5.0)).all()
            assert (
                shared[at] == system.exact_values(soft[at], counts[(0,) * len(lead)], 5.0)
            ).all()


@pytest.mark.parametrize("groups", [2, 40], ids=["dense", "sparse"])
@pytest.mark.parametrize("classes", [2, 3])
def test_fixed_counts_give_the_same_values_and_costs_and_a_model_its_own_bits(classes, groups):
    """Small and large systems alike, with an event smaller than the floor."""
    rng = np.random.default_rng(classes)
    system = resolve(
        [EqualizedOdds(0.1), ErrorRateParity(0.1)], Cells((tuple(range(groups)),)), range(classes)
    )
    counts = rng.uniform(0.0, 50.0, size=(7, *system.shape[:2]))
    counts[:, 0] = -3.0
    histogram = counts[..., np.newaxis] * rng.normal(size=(7, *system.shape))
    duals = rng.exponential(size=(7, len(system)))
    fixed = system.at(counts, 2.5)
    assert (fixed.pull is None) == (groups == 40)
    np.testing.assert_allclose(
        fixed.values(histogram), system.exact_values(histogram, counts, 2.5), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(
        fixed.cell_costs(duals), system.cell_costs(duals, counts, 2.5), rtol=1e-12, atol=1e-12
    )
    for m in range(7):
        alone = system.at(counts[m : m + 1], 2.5)
        assert np.array_equal(fixed.values(histogram)[m], alone.values(histogram[m : m + 1])[0])
        assert np.array_equal(fixed.cell_costs(duals)[m], alone.cell_costs(duals[m : m + 1])[0])


def test_nothing_asked_is_a_system_without_constraints():
    cells = Cells((("f", "m"),))
    for notions in (None, []):
        system = resolve(notions, cells, (0, 1))
        assert len(system) == 0
        assert system.exact_values(np.ones(system.shape), np.ones(system.shape[:2])).shape == (0,)
        assert (system.cell_costs([], np.ones(system.shape[:2])) == 0).all()
        assert not system.needs_labels
    assert (
        len(
            resolve(
                [DemographicParity(None), ErrorRateParity(0.2)], cells, (0, 1), keep_vacuous=False
            )
        )
        == 2
    )


def test_labels_are_asked_for_only_where_they_are_looked_at():
    cells = Cells((("f", "m"),))
    free = resolve([DemographicParity(0.1)], cells, (0, 1, 2))
    assert not free.needs_labels
    narrow, counts = np.arange(6.0).reshape(2, 1, 3) + 1, np.array([[8.0], [16.0]])
    wide = np.concatenate([narrow / 2, narrow / 4, narrow / 4], axis=1)
    assert free.without_labels().exact_values(narrow, counts) == pytest.approx(
        free.exact_values(wide, np.repeat(counts / 3, 3, 1))
    )
    for notion in (
        EqualizedOdds(0.05),
        ErrorRateParity(0.05),
        EqualOpportunity(0.05, positive=1),
        FalseNegativeRate(0.1, positive=1),
    ):
        system = resolve(notion, cells, (0, 1, 2))
        assert system.needs_labels
        with pytest.raises(InputError, match="ignore labels"):
            system.without_labels()


def test_unknown_groups_classes_and_double_counting_are_refused():
    cells, known = Cells((("f", "m"), ("x", "y"))), (0, 1)
    with pytest.raises(InputError, match=r"known group, got 'q'\. Known groups: \('f', 'x'\)"):
        resolve(FalseNegativeRate(0.1, "q"), cells, known)
    with pytest.raises(InputError, match=r"known class, got 'yes'\. Known classes: 0, 1"):
        resolve(RateConstraint(((1.0, PredictionRate("yes")),), 0.1), cells, known)
    marginal = Cells(cells.columns, mode="marginal")
    with pytest.raises(InputError, match="product cells"):
        resolve(DemographicParity(0.05, groups="product"), marginal, known)
    both = Event((("sensitive_0", "f"), ("sensitive_1", "x")))
    constraint = RateConstraint(((1.0, PredictionRate(1, both)),), 0.1, groups="marginal")
    with pytest.raises(InputError, match="count twice"):
        resolve(constraint, marginal, known)
    # a union of product cells counts everyone once
    assert len(resolve(constraint, cells, known)) == 1
    with pytest.raises(InputError, match="positive: expected a class"):
        resolve(EqualOpportunity(0.05), cells, (0, 1, 2))
    with pytest.raises(InputError, match="notion of fairness"):
        resolve("demographic_parity", cells, known)
    system = resolve(DemographicParity(0.05), cells, known)
    with pytest.raises(InputError, match=r"shape \(\.\.\., 4, 2, 2\)"):
        system.exact_values(np.ones((4, 2)), np.ones((4, 2)))
