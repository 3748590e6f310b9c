"""Planted bugs: mechanisms that are broken on purpose, to see whether an attack that found nothing
would have found them.

| bug | what is broken |
|---|---|
| `HALF_NOISE` | noise of half the deviation that is priced |
| `NO_CLIP` | gradients are let in at four times the clip that noise was made for |
| `CLIP_BY_ROW` | a person's gradients are clipped row by row, not together |
| `BATCH_SIZE` | the size of each secret batch is released too |
| `SAME_SEED` | one seed for every run (the caller's doing: nothing is changed here) |

Noise and clip are changed by functions that stand in for the curator's own, for as long as the
block lasts, and look at which context asks: in any other thread or task, and after the block, fits
are as they always are.

Guarantees (tests/audit/test_audit_planted.py):
1. Outside of the context of a block nothing is broken, also while one is open elsewhere; afterwards
   all is as it was.
2. Inside, what the name says is broken, and nothing else.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from scipy import stats

from ..curator import pricing
from ..curator.curator import Curator
from ..curator.questions.gradients import GradientSum
from ..curator.questions.networks import NetworkGradient
from ..curator.rows.block import Block, Drawn
from ..curator.rows.persons import starts_of
from ..curator.rows.sampling import Poisson
from ..curator.totals import person_pass

HALF_NOISE, NO_CLIP, BATCH_SIZE, SAME_SEED = (
    "half the noise",
    "no clip",
    "batch sizes released",
    "one seed for every run",
)
CLIP_BY_ROW = "a clip by row"
BUGS = (HALF_NOISE, NO_CLIP, CLIP_BY_ROW, BATCH_SIZE, SAME_SEED)
TIMES = 4.0
"""How much more than the clip a gradient may be where there is none."""

_BUG: ContextVar[str] = ContextVar("fairveil planted bug", default="")
_SIZES: ContextVar[list[tuple[int, float]] | None] = ContextVar(
    "fairveil batch sizes", default=None
)
_lock = threading.Lock()
_open = 0


@contextmanager
def planted(bug: str) -> Iterator[list[tuple[int, float]]]:
    """Fits of this context have the bug; gives the (size, rate) of each secret batch, as it is
    drawn."""
    sizes: list[tuple[int, float]] = []
    tokens = _BUG.set(bug), _SIZES.set(sizes)
    _install(1)
    try:
        yield sizes
    finally:
        _install(-1)
        _BUG.reset(tokens[0])
        _SIZES.reset(tokens[1])


def size_ratio(sizes: list[tuple[int, float]], here: int, there: int) -> float:
    """The log likelihood ratio of batch sizes, if so many rows are there."""
    return float(
        sum(stats.binom.logpmf(k, there, q) - stats.binom.logpmf(k, here, q) for k, q in sizes)
    )


def _install(step: int) -> None:
    """The first block puts the stand-ins in place, the last takes them away."""
    global _open
    with _lock:
        if not _open:
            _own.update({stand_in: getattr(owner, name) for owner, name, stand_in in _PLACES})
        _open += step
        for owner, name, stand_in in _PLACES:
            setattr(owner, name, stand_in if _open else _own[stand_in])


def _noise_scale(*given: object) -> Any:
    size = _own[_noise_scale](*given)
    return size / 2.0 if _BUG.get() == HALF_NOISE else size


def _scale(question: GradientSum, *given: object) -> Any:
    """Noise and grid of a shorter clip: contributions are longer than they are said to be."""
    return _own[_scale](_shorter(question), *given)


def _scale_of_network(question: NetworkGradient, *given: object) -> Any:
    """The same of a network."""
    return _own[_scale_of_network](_shorter(question), *given)


def _limit(question: GradientSum | NetworkGradient, *given: object) -> Any:
    """The same where a person's gradients are added."""
    return _own[_limit](_shorter(question), *given)


def _shorter(question: Any) -> Any:
    if _BUG.get() == NO_CLIP and question.clip is not None and math.isfinite(question.clip):
        return replace(question, clip=question.clip / TIMES)
    return question


def _is_by_person(*given: object) -> bool:
    return _BUG.get() != CLIP_BY_ROW and bool(_own[_is_by_person](*given))


def _chosen(curator: Curator, batch: object, number: int) -> Any:
    chosen = _own[_chosen](curator, batch, number)
    sizes = _SIZES.get()
    if _BUG.get() != BATCH_SIZE or sizes is None or not isinstance(batch, Poisson):
        return chosen
    blocks = list(chosen)
    sizes.append((sum(map(_who, blocks)), batch.rate))
    return iter(blocks)


def _who(drawn: Block | Drawn) -> int:
    """How many of those who are protected: persons, or rows."""
    block = drawn.block if isinstance(drawn, Drawn) else drawn
    if not drawn.rows or not len(block.persons):
        return drawn.rows
    persons = block.persons.take(drawn.index) if isinstance(drawn, Drawn) else block.persons
    return len(starts_of(persons)) - 1


_PLACES: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
    (pricing, "noise_scale", _noise_scale),
    (GradientSum, "scale", _scale),
    (NetworkGradient, "scale", _scale_of_network),
    (person_pass, "limit_of", _limit),
    (person_pass, "is_by_person", _is_by_person),
    (Curator, "_chosen", _chosen),
)
"""Where each stand-in stands: of whom, by which name."""
_own: dict[Callable[..., Any], Callable[..., Any]] = {}
"""What is there else, by stand-in."""
