"""What may still be released: the next events of a plan, or a filter's room. One answer at a time.

Guarantees (tests/curator/test_curator_curator.py):
1. What there is no room for is refused, and a refusal changes nothing.
2. What was admitted stays charged, whether its answer came or not.
3. The log of a planned run is a beginning of the plan, or finer
   (tests/privacy/test_privacy_bounding.py): after an answer that failed, a plan goes no further.
4. What an earlier sitting released is charged before anything else, and its numbers are not given
   again.
5. `admitted` lists all events that were charged, of earlier sittings and of failed answers, too;
   `failed` says that one failed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..core.cost import covers, price
from ..core.events import Event, Gaussian, NoOp, OnPart, PoissonSampled, VisiblySampled, spelled_out
from ..core.filters import Filter
from ..core.promise import Promise
from ..errors import BudgetError, InputError, PrivacyError

_GOES_ON, _ENDED, _BROKEN = (
    "one that goes on",
    "one that was ended",
    "one whose plan broke off when an answer failed",
)


class Budget:
    """A plan, priced now and followed from then on; or, without one, a filter that adds up what was
    chosen (theory.md#t10)."""

    def __init__(self, promise: Promise, plan: Event | None, cap: Filter | None) -> None:
        self.promise = promise
        self.plan = plan
        self.room: Filter | None = None
        self._state = _GOES_ON
        self._releases = 0
        self._admitted: list[Event] = []
        self.failed = False
        # One that its own thread may take again: Ctrl-C between a release and its end leaves the
        # lock with whoever keeps the traceback, and the run must be closed all the same.
        self._lock = threading.RLock()
        self._inside = False
        self._due: deque[Event] = deque()
        self._to_come: Iterator[Event] = iter(())
        self._asked: tuple[Event | None, list[Event], dict[int, Event]] = (None, [], {})
        if promise.is_private and plan is not None:
            self._open_plan(plan)
        elif promise.is_private:
            self.room = _checked(cap, promise)

    def _open_plan(self, plan: Event) -> None:
        cost = price(plan, self.promise.delta, self.promise.neighbours).epsilon
        if cost > self.promise.epsilon * (1 + 1e-12):
            raise BudgetError.expected(
                f"a plan that costs at most epsilon={self.promise.epsilon:g}",
                of="plan",
                got=cost,
                remedy="Calibrate the plan to the guarantee: fairveil.privacy.calibrate.",
            )
        self._to_come = spelled_out(plan)

    def go_on(self, earlier: Iterable[Event], first: int) -> None:
        """Charge what was released before; the next answer is number `first`."""
        with self._lock:
            for event in earlier:
                self._charge(event, "earlier")
            self._releases = first

    def close(self) -> None:
        """End the run: nothing more is admitted."""
        with self._lock:
            self._state = _ENDED

    @property
    def is_open(self) -> bool:
        """Whether answers may still come."""
        return self._state == _GOES_ON

    @contextmanager
    def release(self, event: Event) -> Iterator[int]:
        """Admit one answer and give its number, which is not given again, also when the answer
        fails."""
        with self._lock:
            if not self.is_open:
                remedy = "Make a new Curator."
                raise PrivacyError.expected(
                    "a run that goes on", of="answer", got=self._state, remedy=remedy
                )
            if self._inside:
                remedy = "User code that runs beside rows must not ask the curator."
                raise PrivacyError.expected(
                    "one answer after another", of="answer", got="one inside", remedy=remedy
                )
            # Charged before the answer is made: an answer that fails, or is interrupted, may have
            # shown something.
            self._charge(event)
            number = self._releases
            self._releases += 1
            self._inside = True
            try:
                yield number
            except BaseException as error:
                if not isinstance(event, NoOp):
                    # which is no row's doing
                    self.failed = not isinstance(error, KeyboardInterrupt)
                    # A plan's later events were priced with this one answered. A filter adds up
                    # whatever came.
                    self._state = self._state if self.plan is None else _BROKEN
                raise
            finally:
                self._inside = False

    @property
    def admitted(self) -> tuple[Event, ...]:
        """What was charged, whether its answer came or not."""
        return tuple(self._admitted)

    def _charge(self, event: Event, of: str = "answer") -> None:
        if isinstance(event, NoOp):
            return
        if self.room is not None:
            self.room = self.room.add(event)
        elif self.promise.is_private:
            self._follow(event, of)
        self._admitted.append(event)

    def _follow(self, event: Event, of: str) -> None:
        """The plan's next events, or an error that says which was due."""
        # the steps of a run are one event many times: what was found equal stays equal
        if event is not self._asked[0]:
            self._asked = (event, list(spelled_out(event)), {})
        parts, equals = self._asked[1:]
        while len(self._due) < len(parts) and (following := next(self._to_come, None)) is not None:
            self._due.append(following)
        for i, part in enumerate(parts):
            due = self._due[i] if i < len(self._due) else None
            if due is not None and equals.get(i) is due:
                continue
            if due is None or not covers(due, part, self.promise.neighbours):
                raise PrivacyError.expected(
                    ("no more answers: the plan is done" if due is None else _due_in_words(due)),
                    of=of,
                    got=part,
                    remedy="A plan is fixed in advance; leave plan=None to choose as you go.",
                )
            equals[i] = due
        for _ in parts:
            self._due.popleft()


def _due_in_words(due: Event) -> str:
    bounded = isinstance(due, Gaussian | PoissonSampled | VisiblySampled | OnPart)
    return f"the plan's next event, {due}" + (
        ", or one by cell with no less noise for anybody" if bounded else ""
    )


def _checked(cap: object, promise: Promise) -> Filter:
    if cap is None:
        return Filter.create(promise, "renyi" if promise.delta > 0 else "pure")
    if not isinstance(cap, Filter) or cap.promise != promise:
        got = str(cap.promise) if isinstance(cap, Filter) else cap
        remedy = "Make the filter of the curator's own guarantee: Filter.create(promise)."
        raise InputError.expected(f"a filter for {promise}", of="cap", got=got, remedy=remedy)
    return cap
