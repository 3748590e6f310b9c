"""Rows set aside: a coin each, secret unless a seed is given, and independent of all other rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from people_who_do_not_exist import Command

import fairveil as fv
from fairveil.cli import coins, samples
from fairveil.cli.samples import ColumnSample
from fairveil.core.noise import NoiseSource

Mask = npt.NDArray[np.bool_]
FIT = (
    "--target",
    "hired",
    "--sensitive",
    "sex",
    "--holdout",
    "0.3",
    "--unsafe-data-dependent-bounds",
    "--epsilon",
    "20",
)


def some(rows: int) -> ColumnSample:
    return ColumnSample({"y": np.arange(rows)}, "y", ())


def held(rows: int, share: float, seed: int | None = None) -> frozenset[int]:
    return frozenset(some(rows).split(share, seed)[1].columns["y"].tolist())


# -- guarantee 1: secret and independent


def test_guarantee_1_coins_come_from_a_secure_source_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[NoiseSource] = []
    secure = NoiseSource.secure

    def counted() -> NoiseSource:
        made.append(secure())
        return made[-1]

    def refused(*given: Any) -> Any:
        raise AssertionError("not a secure generator")

    monkeypatch.setattr(NoiseSource, "secure", staticmethod(counted))
    monkeypatch.setattr(np.random, "default_rng", refused)
    coins.set_aside(100, 0.3, None)
    coins.set_aside(100, 0.3, None)
    assert len(made) == 2
    assert all(source.is_secure for source in made)
    with pytest.raises(fv.errors.PrivacyError, match="not used before"):
        made[0].stream("sampling", 0)  # the stream was drawn from, and none is drawn from twice


def test_guarantee_1_no_two_splits_are_alike() -> None:
    """200 coins that come to the same twice: a chance of 0.5^200."""
    assert len({held(200, 0.5) for _ in range(20)}) == 20


def test_guarantee_1_every_subset_of_rows_is_as_likely_as_independent_coins_make_it() -> None:
    """All 16 subsets of four rows, so also: each row alone, each pair, and how many. Chi-square,
    false alarms below 1e-9.

    Constant coins, coins by place and a fixed number of rows all leave subsets out.
    """
    draws, share = 4000, 0.3
    counts: dict[frozenset[int], int] = {}
    for _ in range(draws):
        out = frozenset(np.flatnonzero(coins.set_aside(4, share, None)).tolist())
        counts[out] = counts.get(out, 0) + 1
    square = 0.0
    for size in range(5):
        for subset in itertools.combinations(range(4), size):
            expected = draws * share**size * (1 - share) ** (4 - size)
            square += (counts.get(frozenset(subset), 0) - expected) ** 2 / expected
    assert square < 80.0  # 15 degrees of freedom: beyond with probability 7e-11


def test_guarantee_1_the_coins_of_the_rest_do_not_depend_on_whether_a_row_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Under add-remove: of a table and of one without its second row, the other rows' lots have one
    distribution."""
    laws = []
    for rows, kept in ((3, [0, 2]), (2, [0, 1])):
        seen: dict[tuple[bool, ...], float] = {}
        for _ in range(4000):
            lots = tuple(coins.set_aside(rows, 0.4, None)[kept].tolist())
            seen[lots] = seen.get(lots, 0) + 1 / 4000
        laws.append(seen)
    for lots in itertools.product((False, True), repeat=2):
        # 7 deviations of the difference
        assert abs(laws[0].get(lots, 0) - laws[1].get(lots, 0)) < 0.08


def test_guarantee_1_a_share_of_nothing_sets_nothing_aside() -> None:
    assert not coins.set_aside(50, 0.0, None).any()
    with pytest.raises(fv.errors.InputError, match="rows in both parts"):
        some(50).split(0.0, None)


def test_guarantee_2_a_seed_gives_the_same_coins_again_and_others_than_another() -> None:
    assert held(200, 0.5, 3) == held(200, 0.5, 3)
    assert held(200, 0.5, 3) != held(200, 0.5, 4)


# -- the commands


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int | None, Mask]]:
    """The seed and the coins of each split."""
    out: list[tuple[int | None, Mask]] = []
    real: Callable[..., Mask] = coins.set_aside

    def watched(rows: int, share: float, seed: int | None) -> Mask:
        out.append((seed, real(rows, share, seed)))
        return out[-1][1]

    monkeypatch.setattr(samples, "set_aside", watched)
    return out


@pytest.mark.parametrize(
    "command",
    [("fit",), ("frontier", "--gaps", "0.1", "--epsilons", "20")],
    ids=["fit", "frontier"],
)
def test_a_command_without_a_seed_draws_secret_coins_anew_and_says_so(
    fairveil: Command,
    others: Path,
    tmp_path: Path,
    drawn: list[tuple[int | None, Mask]],
    command: tuple[str, ...],
) -> None:
    for out in ("one", "two"):
        done = fairveil(
            command[0],
            others,
            *command[1:],
            *(FIT if command[0] == "fit" else FIT[:-2]),
            "--out",
            out,
        )
        assert done.code == 0, done.err
    assert [seed for seed, _ in drawn] == [None, None]
    assert (drawn[0][1] != drawn[1][1]).any()
    statement = fv.PrivacyStatement.from_json((tmp_path / "one/statement.json").read_text("utf-8"))
    (said,) = (
        sentence for sentence in statement.not_covered if sentence.startswith("rows held out")
    )
    assert (
        "probability 0.3 by a secret coin of its own that reads no data and hangs on no other row"
        in said
    )
    assert statement.noise == "secure"


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_seeded_command_says_what_its_coins_hang_on_and_is_flagged(
    fairveil: Command, others: Path, tmp_path: Path, neighbours: str
) -> None:
    done = fairveil("fit", others, *FIT, "--seed", 5, "--neighbours", neighbours, "--out", "model")
    assert done.code == 0, done.err
    statement = fv.PrivacyStatement.from_json(
        (tmp_path / "model/statement.json").read_text("utf-8")
    )
    (said,) = (
        sentence for sentence in statement.not_covered if sentence.startswith("rows held out")
    )
    assert "by a coin that the seed and its place in the table decide" in said
    assert ("a row more or less moves the coins of those after it" in said) == (
        neighbours == "add-remove"
    )
    assert "seeded-noise" in statement.stamps
