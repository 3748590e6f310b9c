"""Histograms of decisions whose probabilities were moved by group: what a neighbour moves, by
enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from curator_pools import attribute_move, largest_moves, pool

from fairveil.curator import AttachedHistogram, Curator, pricing
from fairveil.curator.questions.attached import Attached, ShiftedHistogram
from fairveil.errors import InputError
from fairveil.models.shifted import softened
from fairveil.privacy import Promise

EXACT = Promise(math.inf, 0.0)
SENSITIVE = Promise(1.0, 1e-6, protects="sensitive_features")


def probabilities(block):
    """Every corner of the simplex, its middle, and what is no point of it."""
    p = np.eye(3)[(block.codes[0] + block.codes[1]) % 3] * 0.9 + 0.05
    p[block.codes[0] == 3] = 1.0 / 3.0
    p[block.codes[1] == 2] *= 1e6
    return p


def by_group(block):
    return np.eye(3)[block.sensitive.sum(axis=0) % 3]


def offsets_of(cells, far):
    return np.random.default_rng(3).normal(size=(cells.count, 3)) * (1e6 if far else 0.4)


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("decisions", ["soft", "hard"])
@pytest.mark.parametrize("names", [None, ["sensitive_1"]])
@pytest.mark.parametrize("order", [1, 2])
def test_guarantee_1_no_neighbour_moves_it_further_than_its_scale(far, decisions, names, order):
    """Every relation; at cold temperatures to within ten percent, so a bound of half the size
    fails."""
    rows = pool(3)
    cells = rows.cells("product", names)
    for read, reads in ((probabilities, ("features",)), (by_group, ("features", "sensitive"))):
        model = Attached(read, rows, frozenset(reads), "model")
        question = ShiftedHistogram(
            model, cells, decisions=decisions, offsets=offsets_of(cells, far), temperature=0.01
        )
        scale = question.scale(rows.layout, None, order)
        changed = pricing.constant_scale(question, rows.layout, SENSITIVE, None, order)
        alone, replaced = largest_moves(question, scale, rows)
        moves = ((alone, scale, "add-remove"), (replaced, scale, "replace-one"))
        moves = (*moves, (attribute_move(question, changed, rows), changed, "replace-one"))
        for move, of, relation in moves:
            bound = of.bound.sensitivity(relation)
            assert 0.9 * bound <= move * of.unit <= bound, (decisions, relation)


def test_guarantee_2_without_offsets_it_is_the_histogram_of_the_model(rows_of):
    rows = rows_of(classes=3)
    with Curator(rows, EXACT) as curator:
        cells = curator.cells()
        attached = curator.attach(probabilities)
        same = ShiftedHistogram(attached, cells, decisions="hard", offsets=np.zeros((6, 3)))
        found, wanted = curator.answer(
            [(same, 0), (AttachedHistogram(attached, cells, decisions="hard"), 0)]
        )
    assert (found == wanted).all()


def test_soft_and_hard_decisions_are_those_of_a_plain_computation(rows_of):
    rows = rows_of(classes=3)
    (block,) = rows.blocks()
    p = probabilities(block)
    p /= np.maximum(1.0, p.sum(axis=1, keepdims=True))
    with Curator(rows, EXACT) as curator:
        cells = curator.cells()
        offsets = offsets_of(cells, far=False)
        ids = block.cells(cells)[0]
        attached = curator.attach(probabilities)
        asked = [
            ShiftedHistogram(attached, cells, decisions=d, offsets=offsets, temperature=0.2)
            for d in ("soft", "hard")
        ]
        soft, hard = curator.answer([(one, 0) for one in asked])
    wanted = np.zeros((2, 6, 3))
    np.add.at(wanted[0], ids, softened(p - offsets[ids], 0.2))
    np.add.at(wanted[1], ids, np.eye(3)[(p - offsets[ids]).argmax(axis=1)])
    assert np.allclose(soft, wanted[0], atol=1e-4)
    assert (hard == wanted[1]).all()


def test_softmax_does_not_overflow():
    assert softened(np.array([[1e8, 0.0], [0.0, -1e8]]), 1e-3).tolist() == [[1.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cells": None}, "do not overlap"),
        ({"by_label": True}, "do not overlap"),
        ({"offsets": np.zeros((2, 3))}, "finite offsets"),
        ({"offsets": np.full((6, 3), math.nan)}, "finite offsets"),
        ({"temperature": 0.0}, "temperature"),
    ],
)
def test_what_is_no_question_is_refused(rows_of, options, message):
    rows = rows_of(classes=3)
    curator = Curator(rows, EXACT)
    given = {
        "attached": curator.attach(probabilities),
        "cells": curator.cells(),
        "offsets": np.zeros((6, 3)),
        **options,
    }
    with pytest.raises(InputError, match=message):
        ShiftedHistogram(**given)


def test_marginal_groups_are_refused(rows_of):
    rows = rows_of(classes=3)
    with pytest.raises(InputError, match="do not overlap"):
        ShiftedHistogram(
            Curator(rows, EXACT).attach(probabilities),
            rows.cells("marginal"),
            offsets=np.zeros((5, 3)),
        )
