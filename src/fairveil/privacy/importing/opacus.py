"""The history of an opacus accountant as events: one (noise multiplier, sample rate, steps) a run
of equal steps.

opacus counts a step when its optimizer takes one, and prices every step as one secret Poisson batch
between data sets that differ by one row added or removed. It does so as well where
`poisson_sampling=False`, and the loader shuffles: the caller says which it was.

| sampling | event | under |
|---|---|---|
| "poisson" | `PoissonSampled(rate, Gaussian(multiplier))`, `steps` times | either relation: rows are clipped |
| "shuffled" | `Gaussian(least multiplier / 2)`, once a pass that was begun | replace-one alone (theory.md#t8) |

Guarantees (tests/privacy/importing/test_importing_opacus.py):
1. Every step of the history is an event, at its own multiplier and rate.
2. Without Poisson sampling nothing is gained from batches, and under add-remove nothing is
   promised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ... import _checks
from ...core.events import Event, Gaussian, NonPrivate, NoOp, PoissonSampled, Repeated, compose
from ...core.promise import relation as checked_relation
from .imported import Imported, plain_number, refusal, version_of

SAMPLING = ("poisson", "shuffled")
RATE_NOTE = (
    "The sample rate of opacus is one over the number of batches: it was taken to be public."
)
PASSES_NOTE = "Batches were no Poisson samples: every pass was charged as one release on all rows."
SLACK = 1e-9
"""Relative rounding of steps x rate."""


def from_opacus(
    spent: object,
    *,
    sampling: str,
    neighbours: str,
    rows_per_person: int,
    passes: int | None = None,
    secure_noise: bool = False,
) -> Imported:
    """What an opacus accountant has counted.

    `spent`: a `PrivacyEngine`, an accountant, its `state_dict()`, or the history itself.
    `sampling`: "poisson" where the loader was made with `poisson_sampling=True` (opacus's own
    choice), else "shuffled". `passes`: with "shuffled", how many passes over the rows were begun.
    `secure_noise`: whether `secure_mode=True`.

    >>> spent = from_opacus(
    ...     [(1.0, 0.01, 500)], sampling="poisson", neighbours="add-remove", rows_per_person=1
    ... )
    >>> spent.events
    Repeated(event=PoissonSampled(rate=0.01, event=Gaussian(noise_multiplier=1.0), spreads=None), count=500)
    """
    relation = checked_relation(neighbours)
    chosen = _checks.one_of(SAMPLING, sampling=sampling)
    history = _history(spent)
    if chosen == "poisson":
        if passes is not None:
            raise refusal(
                "none where sampling is 'poisson'",
                "passes",
                passes,
                "Steps are counted by the accountant.",
            )
        event = compose(Repeated(_step(z, rate), steps) for z, rate, steps in history)
        notes: tuple[str, ...] = (RATE_NOTE,)
    else:
        if relation != "replace-one":
            remedy = (
                "A row that comes moves others from batch to batch: name replace-one, or sample by "
                "Poisson."
            )
            raise refusal(
                "'replace-one' where batches are shuffled", "neighbours", neighbours, remedy
            )
        event, notes = _by_passes(history, passes), (PASSES_NOTE,)
    library = version_of("opacus")
    return Imported.of(
        event,
        relation,
        library,
        rows_per_person=rows_per_person,
        notes=notes,
        secure_noise=secure_noise,
    )


def _step(multiplier: float, rate: float) -> Event:
    if multiplier == 0 and rate > 0:
        return NonPrivate()
    return PoissonSampled(rate, Gaussian(multiplier)) if rate > 0 else NoOp()


def _by_passes(history: Sequence[tuple[float, float, int]], passes: int | None) -> Event:
    """A row is in one batch a pass, so it moves one noisy sum of the pass, by at most twice the
    clipping norm."""
    if passes is None:
        remedy = "Say how many passes over the rows were begun; one that broke off counts."
        raise refusal("a whole number where sampling is 'shuffled'", "passes", "none", remedy)
    count = _checks.whole(at_least=1 if history else 0, passes=passes)
    taken = sum(rate * steps for _, rate, steps in history)
    if taken / (1 + SLACK) > count:
        remedy = "A pass has one step a batch: count the passes again."
        raise refusal(f"at least the {taken:.4g} passes of the history", "passes", count, remedy)
    least = min((multiplier for multiplier, _, _ in history), default=0.0)
    if not history:
        return NoOp()
    return Repeated(Gaussian(least / 2.0), count) if least > 0 else NonPrivate()


def _history(spent: object) -> list[tuple[float, float, int]]:
    accountant = getattr(spent, "accountant", spent)  # of an engine
    found = (
        accountant.get("history")
        if isinstance(accountant, Mapping)
        else getattr(accountant, "history", accountant)
    )
    remedy = (
        "Pass the PrivacyEngine, its accountant, accountant.state_dict() or accountant.history."
    )
    if isinstance(found, str | bytes) or not isinstance(found, Sequence):
        raise refusal("a history of opacus", "spent", spent, remedy)
    out = []
    for entry in found:
        if isinstance(entry, str | bytes) or not isinstance(entry, Sequence) or len(entry) != 3:
            raise refusal(
                "(noise multiplier, sample rate, steps)", "history", repr(entry)[:80], remedy
            )
        multiplier, rate, steps = map(plain_number, entry)
        out.append(
            (
                _checks.non_negative(noise_multiplier=multiplier),
                _checks.fraction(sample_rate=rate),
                _checks.whole(steps=steps),
            )
        )
    return out
