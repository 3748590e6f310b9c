"""Monitors beside confidence sequences of PyPI's confseq: delay to an alarm after a drift, and
widths without one.

    pip install confseq        # it compiles: cmake and the headers of Boost must be there
    python benchmarks/confidence_sequences.py [--runs N]

Without confseq it says so and ends. It prints Markdown. The people are those of
`benchmarks/certificates.py monitors`: two groups, a bound of 10 points, a false alarm of 5 % over
the whole run, a gap of 5 points for 10 periods and then another. confseq looks at every decision,
without privacy: a sequence of each group at half of the permitted miss (predictable plug-in
empirical Bernstein), and an alarm where the difference of their ends is above the bound. "From the
drift" starts it at the drift, which a user does not know. Widths are the bound on a gap of 5 points
less 5 points.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

import fairveil as fv
from certificates import LAPLACE, head, row
from fairveil.facts import Cells
from fairveil.learning.certificates.certificate import Evidence
from fairveil.learning.certificates.evidence import Bet, e_value, p_value
from fairveil.learning.certificates.parts import Layout, layout_of
from fairveil.learning.certificates.plan import NONE
from fairveil.learning.counts.noise import CountNoise

Floats = npt.NDArray[np.float64]
MISS, BOUND, BEFORE, AFTER = 0.05, 0.1, 10, 30
LAYOUT: Layout = layout_of([fv.DemographicParity(BOUND)], Cells((("f", "m"),)), (0, 1))


def sequences() -> Callable[..., Any] | None:
    """confseq's sequence for bounded means; None without it."""
    vars(np).setdefault("float_", np.float64)  # 0.0.11 names it, and numpy 2 has it no more
    try:
        from confseq.predmix import predmix_empbern_twosided_cs
    except ImportError:
        return None
    return predmix_empbern_twosided_cs  # type: ignore[no-any-return]


def decisions(people: int, gap: float, rng: np.random.Generator) -> Floats:
    """(periods, groups, people of a group): 0 or 1."""
    rates = np.full((BEFORE + AFTER, 2, 1), 0.3)
    rates[:, 1] += 0.05
    rates[BEFORE:, 1] = 0.3 + gap
    return (rng.random((BEFORE + AFTER, 2, people // 2)) < rates).astype(np.float64)


def counts_of(period: Floats, noise: CountNoise, rng: np.random.Generator) -> Floats:
    table = np.zeros((2, 2, 2))
    table[:, 0, 1] = period.sum(axis=1)
    table[:, 0, 0] = period.shape[1] - table[:, 0, 1]
    counts = np.bincount(LAYOUT.part_of.ravel(), table.ravel(), LAYOUT.parts).astype(np.float64)
    if noise.kind == "none":
        return counts
    q = 1.0 - math.exp(-1.0 / noise.scale)
    return counts + rng.geometric(q, LAYOUT.parts) - rng.geometric(q, LAYOUT.parts)


def by_bets(told: Floats, noise: CountNoise, rng: np.random.Generator) -> int | None:
    """The period of the alarm of `fv.Monitor`, from 1."""
    bet = Bet()
    for period in told:
        bet = bet.after(e_value(p_value(LAYOUT, counts_of(period, noise, rng), noise)))
        if bet.highest >= 1.0 / MISS:
            return bet.periods
    return None


def ends(told: Floats, sequence: Callable[..., Any]) -> tuple[Floats, Floats]:
    """Ends of the gap (periods,), at each period's end; half of the miss for each group."""
    found = [sequence(told[:, group].ravel(), alpha=MISS / 2) for group in (0, 1)]
    at = np.arange(1, len(told) + 1) * told.shape[2] - 1
    (low, high), (other_low, other_high) = (
        (np.asarray(a)[at], np.asarray(b)[at]) for a, b in found
    )
    return np.maximum.accumulate(other_low - high), np.minimum.accumulate(other_high - low)


def by_sequence(told: Floats, sequence: Callable[..., Any]) -> int | None:
    above = np.flatnonzero(ends(told, sequence)[0] > BOUND)
    return int(above[0]) + 1 if above.size else None


def delays(runs: int, sequence: Callable[..., Any]) -> None:
    print(
        f"\nAn alarm after a drift, {runs} runs: found within 30 periods; delay in periods, median "
        f"and worst tenth\n"
    )
    names = ("fv.Monitor, epsilon 1", "fv.Monitor, no noise", "confseq", "confseq from the drift")
    head("people a period", "gap after the drift", "early alarms of all four", *names)
    for people, gap in product((1000, 3000), (0.15, 0.2, 0.3)):
        rng, early = np.random.default_rng(0), [0] * 4
        found: list[list[float]] = [[], [], [], []]
        for _ in range(runs):
            told = decisions(people, gap, rng)
            late = by_sequence(told[BEFORE:], sequence)
            alarms = [
                by_bets(told, LAPLACE, rng),
                by_bets(told, NONE, rng),
                by_sequence(told, sequence),
            ]
            alarms.append(None if late is None else late + BEFORE)
            for at, alarm in enumerate(alarms):
                early[at] += alarm is not None and alarm <= BEFORE
                found[at].append(math.inf if alarm is None else alarm - BEFORE)
        row(f"{people:,}", f"{100 * gap:.0f} points", "/".join(map(str, early)), *map(shown, found))


def shown(waited: list[float]) -> str:
    done = [one for one in waited if math.isfinite(one)]
    middle, tenth = (float(np.quantile(np.array(waited), at, method="higher")) for at in (0.5, 0.9))
    words = ", ".join("none" if math.isinf(one) else f"{one:.0f}" for one in (middle, tenth))
    return f"{len(done)} of {len(waited)}; {words}"


def widths(runs: int, sequence: Callable[..., Any]) -> None:
    print(
        f"\nHow far above a gap of 5 points its upper bound lies after so many periods, {runs} "
        f"runs, in points\n"
    )
    head("people a period", "periods", "fv.Monitor, epsilon 1", "fv.Monitor, no noise", "confseq")
    for people in (1000, 3000):
        rng = np.random.default_rng(1)
        told = [decisions(people, 0.05, rng)[:BEFORE] for _ in range(runs)]
        of_sequence = np.array([ends(one, sequence)[1] for one in told])
        for t in (1, 3, 10):
            ours = [
                np.mean([_bound(one[t - 1], t, noise, rng) for one in told])
                for noise in (LAPLACE, NONE)
            ]
            cells = [
                f"{100 * (float(value) - 0.05):.1f}"
                for value in (*ours, of_sequence[:, t - 1].mean())
            ]
            row(f"{people:,}", t, *cells)


def _bound(period: Floats, t: int, noise: CountNoise, rng: np.random.Generator) -> float:
    """The upper bound on the gap of period t, so that all periods' bounds hold together."""
    found = Evidence(LAYOUT.rates, counts_of(period, noise, rng), noise, 1.0 - MISS / (t * (t + 1)))
    return max(found.at_most(line) for line in LAYOUT.lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    sequence = sequences()
    if sequence is None:
        print(
            "skipped: confseq is not there; pip install confseq (it compiles, and needs cmake and "
            "the headers of Boost)"
        )
        return
    delays(runs, sequence)
    widths(runs, sequence)


if __name__ == "__main__":
    main()
