"""The library's errors. Each says what was expected, of what, what came, and the way out.

Those of the trusted room are defined there.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from .core.errors import LONGEST as LONGEST
from .core.errors import BudgetError as BudgetError
from .core.errors import Complaint as Complaint
from .core.errors import DataNotFoundError as DataNotFoundError
from .core.errors import FairveilError as FairveilError
from .core.errors import InputError as InputError
from .core.errors import LedgerError as LedgerError
from .core.errors import MissingBoundError as MissingBoundError
from .core.errors import PrivacyError as PrivacyError
from .core.errors import complaint as complaint
from .core.errors import nearest as nearest


class KindError(InputError, TypeError):
    """A value is neither a number nor a word."""


class SchemaError(InputError):
    """A schema is malformed, or a table does not fit its schema."""


class JoinError(InputError):
    """Two tables cannot be joined by id: an id occurs twice, or is missing."""


class Overspent(BudgetError):  # noqa: N818  # what happened, as in ConstraintNotMet
    """A ledger has no room for what was asked. Epsilons at the ledger's delta, as one release each;
    `largest_epsilon`: of a release like the one asked, at its own delta; all of them but `asked`
    are 0 where nothing is left."""

    def __init__(
        self, message: str, *, spent: float, asked: float, left: float, largest_epsilon: float
    ) -> None:
        super().__init__(message)
        self.spent, self.asked, self.left, self.largest_epsilon = (
            spent,
            asked,
            left,
            largest_epsilon,
        )

    @property
    def figures(self) -> dict[str, float]:
        """All four, by their names."""
        return {
            "spent": self.spent,
            "asked": self.asked,
            "left": self.left,
            "largest_epsilon": self.largest_epsilon,
        }

    def __reduce__(self) -> tuple[object, ...]:
        """Errors of workers come back to the process that asked: by keyword arguments too."""
        return (functools.partial(type(self), str(self), **self.figures), ())


class LedgerAway(LedgerError):  # noqa: N818  # what happened, as in Overspent
    """The store of a ledger does not answer now, or is in use for too long. Nothing is known to be
    wrong with it: try again."""


class WentOnElsewhere(LedgerError):  # noqa: N818  # what happened, as in Overspent
    """A copy of a run's journal went on, or was settled: the run is in two places, and one spend is
    too little for both."""


class DoorError(FairveilError, RuntimeError):
    """A holder's door did not answer, or does not let this token in."""


class _NotHeld(DoorError):  # noqa: N818  # what happened, as in Overspent
    """The server has not the run in memory."""


class StatementError(InputError):
    """A privacy statement is malformed or contradicts itself."""


class SignatureError(StatementError):
    """A signature is missing, malformed, of another key, or not of what it was held against."""


class ChecksumError(FairveilError, ValueError):
    """A file is not, byte for byte, the file that was expected."""


class FairveilWarning(UserWarning):
    """The root of the library's warnings. `in_shell`: the same in the words of the command line,
    where those are others."""

    in_shell: str | None = None


class ConstraintNotMet(FairveilWarning):
    """The model that was found does not meet a fairness constraint, and noise does not explain by
    how much."""


class WorseThanBaseline(FairveilWarning):
    """The model is worse than what costs nothing: one answer for everybody, or no constraint and
    some such answers."""


class NoBetterThanConstant(WorseThanBaseline):
    """The model is not shown to be better than one answer for everybody, or nothing was learnt at
    all."""


class NotEnforced(FairveilWarning):
    """A constraint did not steer a fit: noise hides it, or what the search found gave way to what
    costs nothing."""


class OtherGroups(FairveilWarning):
    """The sensitive columns that a fit was given are not those that its schema declares."""


class NoGroups(FairveilWarning):
    """A model was to be fair to groups, and no groups were given: nothing was asked of it."""


class WeakDelta(FairveilWarning):
    """Delta is so large that a mechanism which publishes some rows outright would keep the
    promise."""


class WeakEpsilon(FairveilWarning):
    """Epsilon is so large that the guarantee says little about any one person."""


class UnstatedBounds(FairveilWarning):
    """No public bounds were stated of protected numbers. A target was taken to be in [-1, 1], and
    clipped to it; of features nothing tells the fit how large they are, and it clips what each row
    adds."""


class RawUnits(FairveilWarning):
    """Public numbers came in units far from 1, and this fit does not scale them."""


class RowsOnDisk(FairveilWarning):
    """Rows do not fit memory: a coded copy of them is made on the disk, and deleted after use."""


class UnprotectedStep(FairveilWarning):
    """A step of a pipeline was fitted to the rows before the model, without privacy: the guarantee
    does not cover it."""


class NoSteps(FairveilWarning):
    """An additive model was asked for, and the table has too many numbers for its rows: the model
    is linear."""


class ExposedKey(FairveilWarning):
    """Other users of the machine may read or change a private key."""


class NotSettled(FairveilWarning):
    """A ledger could not be told how a release ended: the release stays charged as it was
    reserved."""


class NotWritten(FairveilWarning):
    """A part of an estimator is not saved with it, and must be handed in again for what needs
    it."""


class Complaints(str):
    """The text of an error about several things at once, and the complaint of each."""

    parts: tuple[str, ...]

    def __new__(cls, text: str) -> Complaints:
        return super().__new__(cls, text)


def within(place: str, error: Exception) -> str:
    """The text of an error, with the place around it named first.

    >>> within(
    ...     "column 'age'",
    ...     InputError(
    ...         complaint(expected="low < high", of="bounds", got=(2, 1), remedy="Swap them.")
    ...     ),
    ... )
    "column 'age', bounds: expected low < high, got (2, 1). Swap them."
    """
    inner = error.args[0] if error.args else str(error)
    if isinstance(inner, Complaints):
        whole = Complaints(f"{place}: {inner}")
        whole.parts = tuple(within(place, InputError(part)) for part in inner.parts)
        return whole
    if not isinstance(inner, Complaint):
        return f"{place}, {inner}"
    text = Complaint(f"{place}, {inner}")
    vars(text).update(vars(inner), of=f"{place}, {inner.of}")
    return text


def together(errors: Sequence[Exception]) -> Exception:
    """One error for several: itself where there is one; else of the kind of the first, with the
    words of all."""
    if len(errors) == 1:
        return errors[0]
    said: list[str] = []
    for error in errors:
        text = error.args[0] if error.args else str(error)
        said += text.parts if isinstance(text, Complaints) else [text]
    text = Complaints(
        f"{len(said)} things are wrong. "
        + " ".join(f"({at}) {one}" for at, one in enumerate(said, 1))
    )
    text.parts = tuple(said)
    return (
        SchemaError(text)
        if any(isinstance(error, SchemaError) for error in errors)
        else type(errors[0])(text)
    )
