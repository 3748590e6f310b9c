"""Noise and sensitivity, measured: what a fit releases has the noise that its statement says, and
one person moves it by no more than the statement says.

A fit is recorded once. Then the same releases are made again: under other seeds, where they differ
by noise alone, and on neighbouring tables under the same seed, where the noise is the same to the
bit and they differ by one person alone. Nothing here trusts a bound, a clip or a price of the
library: the noise is measured, the movement is measured, and both are held against the statement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from configurations import CONFIGURATIONS, EXTREMES, Configuration, Table, neighbour, people
from scipy.stats import chi2
from seam import Released, Tape, recording, replaying

from fairveil.core import events
from fairveil.privacy import epsilon

SEEDS, FALSE_ALARM = 10, 1e-4
FEW = 16
# Coins of these rows depend on the seed: who is set aside, or is in a batch. Noise is then not all
# that differs between seeds, so that only too little noise shows.
COINS = {"descent-certified", "odds-certified", "search", "search-replaced", "descent-batches"}
# These set rows aside: nobody is in both parts, so the dearer part is what everybody spends.
APART = {"descent-certified", "odds-certified", "search", "search-replaced"}
# Models of different clips are fitted, and their statement names one bound for all.
LARGEST = {"gradient sum": 2.0, "number moments": 2.0}


@dataclass
class Measured:
    """One question of a fit, over all of its releases with this name and multiplier."""

    name: str
    kind: str
    multiplier: float
    free: bool
    residuals: list[Any]  # of each release: seeds x coordinates, over the multiplier of each
    moved: list[float]  # of each release, by the neighbour that moves it most: the norm of that


def few(row: Configuration) -> Table:
    """A small table, each person with one row: which rows are read then hangs on no seed."""
    table = people(FEW, 3)
    for place, extreme in enumerate(EXTREMES):
        for name, value in extreme.items():
            table[name][place] = value
    return table | {"person": np.array([f"p{i}" for i in range(FEW)])}


@cache
def recorded(name: str) -> tuple[Any, tuple[Released, ...]]:
    row = CONFIGURATIONS[name]
    with recording() as tape:
        result = row.run(few(row))
    return row.statement(result), tuple(tape.entries)


def asked(release: Released) -> Any:
    return release.names, [np.asarray(one).tolist() for one in release.multipliers], release.event


def again(row: Configuration, table: Table, seed: int) -> Tape:
    """The same releases, of this table and seed."""
    first = recorded(row.name)[1]
    with replaying(list(first)) as tape:
        row.run(table, random_state=seed)
    assert [asked(one) for one in tape.entries] == [asked(one) for one in first]
    return tape


def spread(multiplier: Any, value: Any) -> Any:
    """The multiplier of each coordinate: noise may differ by cell, the first axis then."""
    vector = np.asarray(multiplier, float)
    if vector.ndim == 0:
        return np.full(value.shape, float(vector))
    return np.broadcast_to(vector.reshape(-1, *[1] * (value.ndim - 1)), value.shape)


def noise(value: Any) -> Any:
    """The coordinates whose noise is independent and of one scale: of a symmetric matrix, where
    one draw stands in two places, the diagonal."""
    if value.ndim > 1 and value.shape[-1] == value.shape[-2] > 2:
        value = np.diagonal(value, axis1=-2, axis2=-1)
    return value.ravel()


def spread_of(event: Any, at: int) -> float:
    """Batches are priced by what a row adds. Whoever is replaced moves them further: so much."""
    return float(event.spreads[at]) if isinstance(event, events.PoissonSampled) else 1.0


@cache
def measured(name: str) -> tuple[Measured, ...]:
    row = CONFIGURATIONS[name]
    table, first = few(row), recorded(name)[1]
    seeds = [again(row, table, seed) for seed in range(1, SEEDS + 1)]
    others = [again(row, neighbour(row, table, variant), 0) for variant in range(4)]
    found: dict[Any, Measured] = {}
    for place, release in enumerate(first):
        for at, question in enumerate(release.names):
            multiplier, kind = release.multipliers[at], release.noises[at]
            if kind == "choice":
                continue
            value = release.values[at]
            sizes = spread(multiplier, value)
            free = not np.any(sizes > 0)
            over = np.where(sizes > 0, sizes, 1.0)
            key = (question, kind, tuple(np.ravel(multiplier)))
            one = found.setdefault(
                key, Measured(question, kind, float(np.min(multiplier)), free, [], [])
            )
            wide = spread_of(release.event, at) if row.neighbours == "replace-one" else 1.0
            one.residuals.append(
                np.stack([noise(tape.entries[place].values[at] / over) * wide for tape in seeds])
            )
            by = [np.abs((tape.entries[place].values[at] - value) / over) for tape in others]
            norms = [np.sqrt((b**2).sum()) if kind == "gaussian" else b.sum() for b in by]
            one.moved.append(float(max(norms)))
    return tuple(found.values())


def variance_of(residuals: list[Any]) -> tuple[float, int]:
    """Pooled over releases and coordinates, and its degrees of freedom."""
    squares = sum(float(((r - r.mean(0)) ** 2).sum()) for r in residuals)
    freedom = sum(r.shape[1] for r in residuals) * (SEEDS - 1)
    return squares / freedom, freedom


def moments(kind: str, scale: float) -> tuple[float, float]:
    """Variance and kurtosis of noise of this kind: Gaussian, or two-sided geometric of this
    scale."""
    if kind == "gaussian":
        return scale**2, 3.0
    q = math.exp(-1 / scale)
    variance = 2 * q / (1 - q) ** 2
    fourth = 2 * q * (1 + 11 * q + 11 * q**2 + q**3) / ((1 + q) * (1 - q) ** 4)
    return variance, fourth / variance**2


def stated(row: Configuration, question: str) -> float:
    """The sensitivity that the statement names; of a search and a certificate, that of its own
    candidates and counts."""
    bounds = {bound.question: bound for bound in recorded(row.name)[0].bounds}
    if "search" in row.tags:
        replaced = row.neighbours == "replace-one"
        return LARGEST.get(question, math.sqrt(0.5)) * (2.0 if replaced else math.sqrt(2.0))
    if row.name in APART and question not in bounds:
        return 1.0
    return float(bounds[question].sensitivity)


def origin(row: Configuration, question: str) -> str:
    found = [b.origin for b in recorded(row.name)[0].bounds if b.question == question]
    return found[0] if found else ""


def shown_by_movement(one: Measured, largest: float) -> None:
    """Of public rows the statement names the largest bound of all rounds, and every round has one
    of its own: it is no larger than that, and no smaller than what a neighbour does."""
    for residuals, moved in zip(one.residuals, one.moved, strict=True):
        found, freedom = variance_of([residuals])
        low, high = chi2.ppf([FALSE_ALARM, 1 - FALSE_ALARM], freedom) / freedom
        assert moved <= math.sqrt(found / low) * (1 + 1e-9), f"{one.name}: less noise than it needs"
        assert found <= largest**2 * high, f"{one.name}: more noise than is stated"


def test_noise_has_the_scale_that_the_statement_says(row: Configuration) -> None:
    """Too little noise never passes, and half or double is found in every question."""
    checked = 0
    for one in measured(row.name):
        found, degrees = variance_of(one.residuals)
        if one.free or ("search" not in row.tags and stated(row, one.name) == 0.0):
            assert found == 0.0, f"{one.name}: nothing protected is read, and yet it is noisy"
            continue
        if row.name in COINS and one.kind != "gaussian":
            continue  # counts of rows that were set aside: the coins weigh more than the noise
        scale = stated(row, one.name) / (4.0 if "search" in row.tags else 1.0)
        if origin(row, one.name) == "public features":
            shown_by_movement(one, scale)
            checked += 1
            continue
        variance, kurtosis = moments(one.kind, one.multiplier * scale)
        variance /= one.multiplier**2
        freedom = degrees * 2 / (kurtosis - 1)
        low, high = chi2.ppf([FALSE_ALARM, 1 - FALSE_ALARM], freedom) / freedom
        assert found / variance >= low, f"{one.name}: less noise than is stated"
        if row.name not in COINS:
            assert found / variance <= high, f"{one.name}: more noise than is stated"
        checked += 1
    assert checked or all(one.free for one in measured(row.name)) or row.name in COINS


def test_one_person_moves_a_release_by_no_more_than_is_stated(row: Configuration) -> None:
    for one in measured(row.name):
        moved = max(one.moved)
        if one.free:
            assert moved == 0.0, f"{one.name}: free, and yet a neighbour moves it"
            continue
        bound = stated(row, one.name)
        slack = 1e-9 + 1e-9 * bound
        assert moved * one.multiplier <= bound + slack, f"{one.name}: moved further than stated"


def leaves(event: Any) -> list[Any]:
    """The plain mechanisms of an event."""
    if isinstance(event, events.Composed):
        return [leaf for one in event.events for leaf in leaves(one)]
    if isinstance(event, events.Repeated):
        return leaves(event.event) * event.count
    if isinstance(event, events.PoissonSampled | events.OnPart):
        return leaves(event.event)
    return [event]


def test_the_event_of_a_release_covers_all_of_its_questions(row: Configuration) -> None:
    """What a question leaks is one over its multiplier, squared; the event must hold the sum."""
    for release in recorded(row.name)[1]:
        noisy = [
            one
            for one in zip(release.names, release.multipliers, release.noises, strict=True)
            if np.any(np.asarray(one[1]) > 0) and (one[2] == "choice" or stated(row, one[0]) > 0)
        ]
        if release.event is None:
            assert not noisy
            continue
        leaked = sum(np.min(m) ** -2.0 for _, m, kind in noisy if kind == "gaussian")
        priced = 0.0
        for leaf in leaves(release.event):
            if isinstance(leaf, events.Gaussian):
                priced += leaf.noise_multiplier**-2.0
            elif isinstance(leaf, events.PerCell):
                wide = max(leaf.spreads) if row.neighbours == "replace-one" else 1.0
                least = min(np.min(column) for column in leaf.multipliers)
                priced += (max(wide, 1.0) / least) ** 2.0
        assert leaked <= priced * (1 + 1e-9)
        for name, m, kind in noisy:
            if kind == "choice":
                assert [leaf.epsilon for leaf in leaves(release.event)] == [m], name
            elif kind != "gaussian":
                assert [leaf.noise_multiplier for leaf in leaves(release.event)] == [m], name


def test_what_was_released_costs_no_more_than_the_statement_says(row: Configuration) -> None:
    statement, released = recorded(row.name)
    assert statement.epsilon <= row.given["epsilon"]
    if row.name in APART:
        return
    made = [release.event for release in released if release.event is not None]
    spent = epsilon(made, statement.delta, statement.promise.neighbours)
    assert spent <= statement.epsilon * (1 + 1e-9)


def test_releases_do_not_share_noise() -> None:
    """Noise of two rounds, and of two questions, is drawn anew: no two coordinates move together."""
    row = CONFIGURATIONS["descent"]
    table = few(row)
    tapes = [again(row, table, seed) for seed in range(1, 2 * SEEDS + 1)]
    drawn = np.array(
        [np.concatenate([v.ravel() for e in tape.entries for v in e.values]) for tape in tapes]
    )
    drawn = drawn[:, drawn.std(0) > 0]
    likeness = np.corrcoef(drawn.T) - np.eye(drawn.shape[1])
    assert np.abs(likeness).max() < 0.95
