"""Codes made elsewhere, counted inside."""

from __future__ import annotations

import math

import numpy as np
import pytest
from curator_pools import attribute_move, largest_moves, pool

from fairveil.core.events import DiscreteLaplace
from fairveil.curator import AttachedCodes, CodeHistogram, Curator, Measurement, describe, pricing
from fairveil.curator.totals.passes import totals
from fairveil.errors import InputError, PrivacyError
from fairveil.privacy import NoiseSource, Promise

NOT_PRIVATE = Promise(math.inf, 0.0)
SENSITIVE = Promise(1.0, 1e-6, protects="sensitive_features")
CODES = 7


def by_code(block):
    return (block.codes[0] + 2 * block.codes[1]) % CODES


def by_group(block):
    return (block.sensitive.sum(axis=0) + block.codes[0]) % CODES


@pytest.mark.parametrize("weights", [False, True])
def test_rows_are_counted_by_cell_label_and_code(rows_of, weights):
    rows = rows_of(classes=3, weights=weights)
    curator = Curator(rows, NOT_PRIVATE)
    (block,) = rows.blocks()
    attached = curator.attach_codes(by_code, CODES)
    cells, both = rows.cells(), rows.cells("marginal")
    measurements = [
        CodeHistogram(attached, cells, True),
        CodeHistogram(attached, both),
        CodeHistogram(attached),
    ]
    measurements += [CodeHistogram(attached, cells, True, group=g) for g in range(cells.count)]
    found = curator.answer([(question, 0) for question in measurements])
    w = block.weights if weights else np.ones(block.rows)
    wanted = np.zeros((cells.count, 3, CODES))
    np.add.at(wanted, (block.cells(cells)[0], block.labels, by_code(block)), w)
    marginal = np.zeros((both.count, CODES))
    for line in block.cells(both):
        np.add.at(marginal, (line, by_code(block)), w)
    assert np.allclose(found[0], wanted)
    assert np.allclose(found[1], marginal)
    assert np.allclose(found[2][0], wanted.sum(axis=(0, 1)))
    assert np.allclose(np.concatenate(found[3:]), wanted)
    assert curator.statement().user_code == "trusted"


def test_guarantee_1_the_handle_shows_no_code(rows_of):
    attached = Curator(rows_of(), NOT_PRIVATE).attach_codes(by_code, CODES)
    assert not hasattr(attached, "__dict__")
    assert {name for name in dir(attached) if not name.startswith("_")} == {
        "count",
        "columns_read",
        "is_of",
        "of",
        "title",
    }


def test_guarantee_2_whatever_is_returned_is_a_code_and_a_failing_row_spoils_no_other(rows_of):
    rows = rows_of()
    (block,) = rows.blocks()

    def wild(part):
        out = np.full(part.rows, 1e300)
        out[::2], out[::3], out[::5] = -math.inf, math.nan, -1e300
        return out

    curator = Curator(rows, NOT_PRIVATE)
    codes = curator.attach_codes(wild, CODES).of(block, 0, block.rows)
    assert set(codes.tolist()) == {0, CODES - 1}
    curator.close()
    assert curator.trouble()

    def fails(part):
        if (part.codes[0] == 1).any():
            raise ValueError("one")
        return by_code(part)

    found = Curator(rows, NOT_PRIVATE).attach_codes(fails, CODES).of(block, 0, block.rows)
    assert (found == np.where(block.codes[0] == 1, 0, by_code(block))).all()


def asked(rows, cells):
    free = AttachedCodes(by_code, rows, CODES, frozenset({"features"}), "codes")
    bound = AttachedCodes(by_group, rows, CODES, frozenset({"features", "sensitive"}), "groups")
    out = [
        CodeHistogram(model, cells, by_label)
        for model in (free, bound)
        for by_label in (False, True)
    ]
    if cells.mode == "product":
        out += [CodeHistogram(model, cells, True, cells.count - 1) for model in (free, bound)]
    return out


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(
    ("mode", "names"), [("product", None), ("product", ["sensitive_1"]), ("marginal", None)]
)
@pytest.mark.parametrize("order", [1, 2])
def test_guarantee_3_no_neighbour_moves_a_histogram_further_than_its_bound(
    weights, mode, names, order
):
    """All neighbours of a pool under every relation, to within ten percent: halving a bound fails,
    doubling it too."""
    rows = pool(3, weights=weights)
    cap = rows.max_sample_weight if weights else None
    for question in asked(rows, rows.cells(mode, names)):
        scale = question.scale(rows.layout, cap, order)
        alone, replaced = largest_moves(question, scale, rows)
        changed = pricing.constant_scale(question, rows.layout, SENSITIVE, cap, order)
        moved = attribute_move(question, changed, rows)
        for move, of, relation in (
            (alone, scale, "add-remove"),
            (replaced, scale, "replace-one"),
            (moved, changed, "replace-one"),
        ):
            bound = of.bound.sensitivity(relation)
            assert move * of.unit <= bound, (question, relation)
            assert move * of.unit >= 0.9 * bound, (question, relation)


@pytest.mark.parametrize("planted", ["twice", "neighbour"])
def test_guarantee_3_a_planted_bug_is_caught(planted, monkeypatch):
    """A job that counts a row twice, or lets one row's code depend on the row before it."""
    rows = pool(2)
    honest = CodeHistogram.job

    def wrong(self, scale, layout):
        job = honest(self, scale, layout)
        return lambda block, a, b: tuple(2 * part for part in job(block, a, b))

    def other(self, block, a, b):
        return (np.roll(by_code(block), 1) if block.rows > 1 else by_code(block) + 1)[a:b] % CODES

    question = CodeHistogram(
        AttachedCodes(by_code, rows, CODES, frozenset({"features"}), "codes"), rows.cells()
    )
    scale = question.scale(rows.layout, None, 1)
    (whole,) = rows.blocks()
    if planted == "twice":
        monkeypatch.setattr(CodeHistogram, "job", wrong)
        assert largest_moves(question, scale, rows)[0] > scale.bound.sensitivity("add-remove")
        return
    monkeypatch.setattr(AttachedCodes, "of", other)
    at = np.arange(whole.rows)
    sums = [
        totals([(question, [scale])], rows, [whole.take(part)])[0][-1].ravel()
        for part in (at, at[1:])
    ]
    alone = [
        totals([(question, [scale])], rows, [whole.take(part)])[0][-1].ravel() for part in (at[:1],)
    ]
    # a sum over rows would have left that row's own code alone
    assert np.abs(sums[0] - sums[1] - alone[0]).sum() > 0


def test_one_group_alone_costs_half_the_laplace_noise_where_rows_are_public():
    rows = pool(3)
    fixed = AttachedCodes(by_code, rows, CODES, frozenset({"features"}), "codes")
    reads = AttachedCodes(by_group, rows, CODES, frozenset({"features", "sensitive"}), "groups")
    both, one = rows.cells(), rows.cells(names=["sensitive_1"])
    for codes, cells, group, promise, steps in (
        (fixed, both, 1, SENSITIVE, 1),
        (reads, both, 1, SENSITIVE, 1),
        (reads, one, 1, SENSITIVE, 2),
        (fixed, both, None, SENSITIVE, 2),
        (fixed, both, 1, Promise(1.0, 1e-6, neighbours="replace-one"), 2),
        (fixed, both, None, Promise(1.0, 1e-6), 1),
    ):
        measurement = Measurement(
            CodeHistogram(codes, cells, True, group=group), 3.0, "discrete-laplace"
        )
        assert describe([measurement], rows.layout, promise) == DiscreteLaplace(3.0, steps)


def test_codes_that_read_no_group_are_free_and_others_are_not(rows_of):
    curator = Curator(rows_of(classes=3), SENSITIVE, noise=NoiseSource.seeded(0))
    curator.answer([(CodeHistogram(curator.attach_codes(by_code, CODES), by_label=True), 0)])
    assert len(curator.log) == 0
    reads = curator.attach_codes(by_group, CODES, columns_read=("features", "sensitive"))
    curator.answer([(CodeHistogram(reads), 30.0)])
    assert len(curator.log) == 1


def test_codes_of_another_curator_and_impossible_numbers_are_refused(rows_of):
    attached = Curator(rows_of(), NOT_PRIVATE).attach_codes(by_code, CODES)
    other = Curator(rows_of(seed=1), NOT_PRIVATE)
    with pytest.raises(InputError, match="handle of this curator"):
        other.answer([(CodeHistogram(attached), 1.0)])
    for count in (0, 1 << 17, 2.5):
        with pytest.raises(InputError, match="count"):
            other.attach_codes(by_code, count)
    with pytest.raises(InputError, match="do not overlap"):
        CodeHistogram(attached, group=0)


def test_guarantee_4_an_array_of_codes_is_taken_where_rows_are_public_alone(rows_of):
    rows = rows_of()
    (block,) = rows.blocks()
    given = by_code(block).astype(int)
    curator = Curator(rows, SENSITIVE)
    assert (curator.attach_codes(given, CODES).of(block, 0, block.rows) == given).all()
    assert curator.statement().user_code == "none"
    for wrong in (given[:-1], given.astype(float), given[:, np.newaxis]):
        with pytest.raises(InputError, match="one code a row"):
            curator.attach_codes(wrong, CODES)
    with pytest.raises(PrivacyError, match="public features"):
        Curator(rows, Promise(1.0, 1e-6)).attach_codes(given, CODES)
