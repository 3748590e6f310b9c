"""User code beside rows: bounded, masked until the fit has ended, and shown only what it is said to
read."""

from __future__ import annotations

import math

import numpy as np
import plain_totals as reference
import pytest

from fairveil.core.attached import code_of, rehearse
from fairveil.core.events import Gaussian
from fairveil.curator import Curator, RowFunction
from fairveil.errors import InputError, PrivacyError
from fairveil.privacy import NoiseSource, Promise
from fairveil.statement.document import PrivacyStatement

WIDE = Promise(1000.0, 1e-6)


def answer(rows, function, width=2, clip=1.0, promise=None, **options):
    """With so little noise (a twentieth of the clip) that what is summed can be seen."""
    curator = Curator(rows, promise or WIDE, noise=NoiseSource.seeded(0))
    (value,) = curator.answer([(RowFunction(function, width, clip, **options), 0.05)])
    curator.close()
    return value, curator


def test_the_sum_of_clipped_rows(rows_of):
    rows = rows_of()
    value, curator = answer(rows, lambda block: block.numbers.T[:, :2], clip=0.5)
    exact = sum(
        reference.shortened(block.numbers.T[:, :2], 0.5).sum(axis=0) for block in rows.blocks()
    )
    assert np.allclose(value, exact, atol=0.5)
    assert PrivacyStatement.of_run(curator).user_code == "trusted"
    assert curator.trouble() == ()


def test_guarantee_1_rows_that_are_not_finite_contribute_zero(rows_of):
    rows = rows_of()

    def wild(block):
        out = np.ones((block.rows, 2))
        out[block.labels == 1] = [math.nan, 5.0]
        return out

    value, curator = answer(rows, wild, clip=math.sqrt(2))
    zeros = sum(int((block.labels == 0).sum()) for block in rows.blocks())
    assert np.allclose(value, zeros, atol=0.5)
    assert "NaN" in curator.trouble()[0]


def test_guarantee_2_an_exception_costs_only_the_rows_that_raise_it(rows_of):
    rows = rows_of()

    def breaks(block):
        if (block.labels == 1).any():
            raise ValueError("a label that I did not expect")
        return np.ones((block.rows, 1))

    value, curator = answer(rows, breaks, width=1)
    zeros = sum(int((block.labels == 0).sum()) for block in rows.blocks())
    assert np.allclose(value, zeros, atol=0.5)
    assert curator.log.events == (Gaussian(0.05),)
    assert curator.trouble() == ("ValueError: a label that I did not expect",)


def test_guarantee_2_trouble_is_told_after_the_run_and_not_before(rows_of):
    curator = Curator(rows_of(), WIDE, noise=NoiseSource.seeded(0))

    def breaks(block):
        raise ValueError(f"row {block.numbers[:, 0]}")

    question = RowFunction(breaks, 1, 1.0)
    curator.answer([(question, 1.0)])
    with pytest.raises(PrivacyError, match="a run that has ended"):
        curator.trouble()
    assert "[" not in repr(question)
    curator.close()
    assert curator.trouble()[0].startswith("ValueError: row")
    with pytest.raises(PrivacyError, match="one that was ended"):
        curator.answer([(question, 1.0)])


def test_guarantee_2_one_question_asked_of_two_curators_tells_each_its_own(rows_of):
    def breaks(block):
        raise ValueError(f"{block.rows}: row {block.numbers[:, 0]}")

    question = RowFunction(breaks, 1, 1.0)
    one, other = (Curator(rows_of(n=5, seed=k), WIDE, noise=NoiseSource.seeded(0)) for k in (0, 1))
    for _ in range(3):
        one.answer([(question, 1.0)])
    other.answer([(question, 1.0)])
    one.close()
    other.close()
    assert not set(one.trouble()[1:]) & set(other.trouble()[1:])
    assert len(one.trouble()) == 6  # the whole block, then each of five rows, once


@pytest.mark.parametrize("clip", [1e-300, 1e-15, 1e-8, 1.0, 1e8])
@pytest.mark.parametrize("size", [5e-324, 1e-160, 1.0, 1e160, 1.7e308])
@pytest.mark.parametrize("order", [1, 2])
def test_clipping_keeps_within_the_clip_at_every_size(rows_of, clip, size, order):
    (block,) = rows_of(n=50).blocks()
    values = np.random.default_rng(0).uniform(-1, 1, (50, 3)) * size
    shortened = code_of(RowFunction(lambda block: values, 3, clip)).bounded(block, order)
    sizes = (
        np.abs(shortened / clip).sum(axis=1)
        if order == 1
        else np.linalg.norm(shortened / clip, axis=1)
    )
    assert (sizes <= 1 + 1e-14).all()


def test_a_wrong_shape_is_masked_too(rows_of):
    value, curator = answer(rows_of(), lambda block: np.ones((block.rows, 3)))
    assert np.abs(value).max() < 0.5
    assert "expected shape" in curator.trouble()[0]


@pytest.mark.parametrize(
    ("reads", "hidden"),
    [
        ({"features"}, ("labels", "sensitive")),
        ({"label"}, ("numbers", "codes", "sensitive")),
        ({"sensitive"}, ("labels",)),
    ],
)
def test_it_is_not_given_what_it_is_not_said_to_read(rows_of, reads, hidden):
    seen = {}

    def spy(block):
        seen.update({name: np.size(getattr(block, name)) for name in hidden})
        seen["weights"] = np.size(block.weights)
        seen["cells"] = len(block._cells)
        return np.zeros((block.rows, 1))

    answer(rows_of(weights=True), spy, width=1, columns_read=frozenset(reads))
    assert seen == dict.fromkeys((*hidden, "weights", "cells"), 0)


def test_it_cannot_change_the_rows(rows_of):
    rows = rows_of()
    before = [block.numbers.copy() for block in rows.blocks()]

    def meddle(block):
        block.numbers[:] = 0.0
        return np.ones((block.rows, 1))

    _, curator = answer(rows, meddle, width=1)
    assert all((a == block.numbers).all() for a, block in zip(before, rows.blocks(), strict=True))
    assert "read-only" in curator.trouble()[0]


def test_with_public_rows_a_function_of_features_alone_is_free(rows_of):
    promise = Promise(1.0, 1e-6, protects="sensitive_features")
    value, curator = answer(rows_of(), lambda block: np.ones((block.rows, 1)), 1, promise=promise,
                            columns_read=frozenset({"features"}))  # fmt: skip
    assert value == 700.0
    assert len(curator.log) == 0


def test_bad_arguments():
    for options in (
        {"width": 0, "clip": 1.0},
        {"width": 1, "clip": math.inf},
        {"width": 1, "clip": -1.0},
    ):
        with pytest.raises(InputError):
            code_of(RowFunction(lambda block: block, **options))
    with pytest.raises(InputError, match="columns_read"):
        code_of(RowFunction(lambda block: block, 1, 1.0, frozenset({"features", "age"})))


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
def test_a_rehearsal_tells_a_transposed_result_whatever_the_width(rows_of, width):
    """With two rows a result of shape (2, rows) fitted where the width was two."""
    layout = rows_of().layout
    rehearse(RowFunction(lambda block: np.zeros((block.rows, width)), width, 1.0), layout)
    for shape in (
        lambda rows: (width, rows),
        lambda rows: (rows,),
        lambda rows: (1, width),
        lambda rows: (width, width),
    ):
        wrong = RowFunction(lambda block, shape=shape: np.zeros(shape(block.rows)), width, 1.0)
        with pytest.raises(InputError, match=r"finite numbers of shape \(rows, "):
            rehearse(wrong, layout)


def test_a_rehearsal_has_another_number_of_rows_than_anything_is_long(rows_of):
    layout, seen = rows_of().layout, []

    def spy(block):
        seen.append(block.rows)
        return np.zeros((block.rows, 3))

    rehearse(RowFunction(spy, 3, 1.0), layout, unlike=(2, 4, 5))
    assert seen[0] not in {
        2,
        3,
        4,
        5,
        layout.numbers,
        len(layout.code_sizes),
        len(layout.sensitive),
    }
    rehearse(RowFunction(spy, 3, 1.0), layout, rows=3)
    assert seen[1] == 3


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_rehearsal_refuses_what_is_not_finite_on_zeros(rows_of, value):
    question = RowFunction(
        lambda block: np.full((block.rows, 2), value), 2, 1.0, title="my function"
    )
    with pytest.raises(InputError, match=r"my function.*NaN or infinite"):
        rehearse(question, rows_of().layout)
