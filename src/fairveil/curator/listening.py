"""Who may hear, beside the caller, what a curator is asked and what it answers: an audit of rows
that were made up for it.

The code that asks may be a whole estimator's, which makes its own curator. Inside
`with heard_by(listener):` curators that this context makes tell the listener their rows once, and
then each joint release: the asks, the batch and the noisy answers.

Guarantees (tests/curator/test_curator_listening.py):
1. A listener hears the context that opened the block alone: no other thread's curators.
2. It changes no bit of an answer, no event and no price; after the block nobody listens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from .._types import Floats
from ..core.rows import Batch, Rows
from .pricing import Measurement

Scalings = tuple[tuple[Floats, Floats], ...]


class Listener(Protocol):
    """What hears."""

    def opened(self, rows: Rows) -> None:
        """A curator was made of these rows."""
        ...

    def answered(
        self,
        measurements: Sequence[Measurement],
        batch: Batch,
        answers: Sequence[Floats],
        scalings: Scalings,
    ) -> None:
        """The curator that was made last answered."""
        ...


_LISTENER: ContextVar[Listener | None] = ContextVar("fairveil listener", default=None)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Curators of the block, in this context, are heard by `listener`."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def open_book(rows: Rows) -> None:
    """A curator was made."""
    listener = _LISTENER.get()
    if listener is not None:
        listener.opened(rows)


def tell(
    measurements: Sequence[Measurement], batch: Batch, answers: Sequence[Floats], scalings: Scalings
) -> None:
    """A curator answered."""
    listener = _LISTENER.get()
    if listener is not None:
        listener.answered(measurements, batch, answers, scalings)
