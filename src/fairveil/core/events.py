"""What was done to the data, as an immutable tree that can be priced before and after it is done.

Multipliers, not scales. Everywhere but inside `PoissonSampled`, a noise multiplier is the noise's
scale (standard deviation of a Gaussian, scale of a Laplace) divided by the *sensitivity under the
relation of the promise*: the most that one neighbour moves the total, in L2 for Gaussians and L1
for Laplace. The relation has then done its work, and unsampled events cost the same under every
relation. Inside `PoissonSampled`, where a person may be present, absent or replaced by another, it
is the scale divided by the largest norm c of *one row's contribution*, and `spreads` says how far a
replaced row moves the total in units of c (2 for signed vectors, sqrt 2 for histograms):
theory.md#t2, #t3.

An event holds only public numbers, and may be printed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from . import checks
from .errors import need

FORMAT_VERSION = 1
SMALLEST, LARGEST = 1e-100, 1e100  # of multipliers: their squares and sums stay finite
MOST_SENSITIVITY = 1 << 20  # of integers: their privacy loss is priced value by value
MOST_TIMES = 1 << 60
MOST_PARTS = 1 << 16  # of one joint release
MOST_CUTS = 1 << 33  # of a partition: as many as the rows that there may be


@dataclass(frozen=True, repr=False)
class brief:  # noqa: N801, since it is called as a function
    """What came, cut to a length that a message can hold; put into words only where it is said, for
    a plan's words are long, and plans hold plans."""

    value: object

    def __repr__(self) -> str:
        text = repr(self.value)
        return repr(text if len(text) <= 200 else text[:197] + "...")


def _need(holds: object, words: str, of: str, got: object, fix: str) -> None:
    need(holds, words, of=of, got=brief(got), fix=fix)


def _multiplier(value: object) -> float:
    fix = "A multiplier is the noise over the sensitivity. Multiplier 0 is no noise: that is "
    fix += "NonPrivate(), or NoOp() when nothing protected is read."
    number = checks.positive(noise_multiplier=value, remedy=fix)
    words = f"a number from {SMALLEST:g} to {LARGEST:g}"
    _need(SMALLEST <= number <= LARGEST, words, "noise_multiplier", value, fix)
    return number


def _event(value: Any) -> Event:
    fix = "Pass Gaussian(1.0), for example."
    _need(isinstance(value, Event), "an event", "event", value, fix)
    return value  # type: ignore[no-any-return]


def _spreads(values: Iterable[object]) -> tuple[float, ...]:
    return tuple(checks.non_negative(spread=one) for one in values)


FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "noise_multiplier": _multiplier,
    "event": _event,
    "epsilon": lambda value: checks.positive(epsilon=value),
    "rho": lambda value: checks.positive(rho=value),
    "mean": lambda value: checks.positive(mean=value),
    "rate": lambda value: checks.fraction(rate=value, low_open=True),
    "delta": lambda value: checks.fraction(delta=value, high_open=True),
    "count": lambda value: checks.whole(count=value),
    "part": lambda value: checks.whole(part=value),
    "parts": lambda value: checks.whole(at_least=1, parts=value),
    "column": lambda value: checks.whole(column=value),
    "sensitivity": lambda value: checks.whole(at_least=1, sensitivity=value),
    "shape": lambda value: checks.non_negative(shape=value, allow_inf=True),
}
"""What a field of this name is, in every event: a check that gives it as a number of Python."""


@dataclass(frozen=True)
class Event:
    """One node of the tree. Abstract: use a leaf or a combination below."""

    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, value in checks.fields_of(self).items():
            if name in FIELDS:
                checks.normalise(self, **{name: FIELDS[name](value)})

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, `kind` first."""
        out: dict[str, Any] = {"kind": self.kind}
        return out | {name: _plain(value) for name, value in checks.fields_of(self).items()}


def _plain(value: object) -> Any:
    if isinstance(value, Event):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


# One mechanism on all rows: noise, choices, and what is known by its guarantee alone.


@dataclass(frozen=True)
class NoOp(Event):
    """Nothing that is protected was read. Free."""

    kind: ClassVar[str] = "no-op"


@dataclass(frozen=True)
class NonPrivate(Event):
    """Something protected was released without noise: epsilon is inf."""

    kind: ClassVar[str] = "non-private"


@dataclass(frozen=True)
class _Noise(Event):
    noise_multiplier: float


@dataclass(frozen=True)
class Gaussian(_Noise):
    """A vector with Gaussian noise, standard deviation = multiplier x L2 sensitivity
    (theory.md#t1).

    Also of the Gaussian rounded to the grid of exact sums, which is its post-processing
    (theory.md#noise).
    """

    kind: ClassVar[str] = "gaussian"


@dataclass(frozen=True)
class Laplace(_Noise):
    """A vector with Laplace noise, scale = multiplier x L1 sensitivity (dominated by one
    coordinate: theory.md#t5)."""

    kind: ClassVar[str] = "laplace"


@dataclass(frozen=True)
class DiscreteLaplace(Event):
    """Integers with discrete Laplace noise P(x) ~ exp(-|x| / scale), scale = multiplier x
    sensitivity, an integer L1."""

    kind: ClassVar[str] = "discrete-laplace"
    noise_multiplier: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        fix = "Round to coarser integers, or describe it as Pure(1 / noise_multiplier)."
        words, moved = f"a sensitivity of at most {MOST_SENSITIVITY}", self.sensitivity
        need(moved <= MOST_SENSITIVITY, words, of="DiscreteLaplace.sensitivity", got=moved, fix=fix)


@dataclass(frozen=True)
class _ByEpsilon(Event):
    epsilon: float


@dataclass(frozen=True)
class Exponential(_ByEpsilon):
    """One choice by the exponential mechanism: epsilon-bounded range (theory.md#t6)."""

    kind: ClassVar[str] = "exponential"


@dataclass(frozen=True)
class Pure(_ByEpsilon):
    """Any mechanism known only to be epsilon-differentially private."""

    kind: ClassVar[str] = "pure"


@dataclass(frozen=True)
class Approximate(Event):
    """Any mechanism known only to be (epsilon, delta)-differentially private."""

    kind: ClassVar[str] = "approximate"
    epsilon: float
    delta: float

    def __post_init__(self) -> None:  # delta may be all that it loses
        checks.normalise(self, epsilon=checks.non_negative(epsilon=self.epsilon))
        checks.normalise(self, delta=FIELDS["delta"](self.delta))


@dataclass(frozen=True)
class ZeroConcentrated(Event):
    """Any mechanism known only to be rho-zero-concentrated differentially private."""

    kind: ClassVar[str] = "zero-concentrated"
    rho: float


@dataclass(frozen=True)
class PerCell(Event):
    """One joint Gaussian release over disjoint cells with a noise multiplier for each cell
    (tailored budgets; theory.md#cells).

    `multipliers[j][k]` is the standard deviation of part j in cell k over the largest norm c_j of
    one row's contribution to that part (in that cell, where norms differ by cell); `spreads[j]` is
    how far one row can move part j *within* its cell, in units of c_j (2 for signed vectors, 1 for
    losses in [0, c]; 0 where a neighbour can only change cell, as when sensitive features alone are
    protected).
    `crossings[j]` says what happens when a person moves from one cell to another, whose multipliers
    are m and m': the squared move of part j is 1/m^2 + 1/m'^2 + 2 crossing/(m m'). 0: cells have
    coordinates of their own, or contributions that are positive semi-definite; 1: one sum for all
    cells, to which contributions may point in opposite directions; -1: one sum, and the same
    contribution at the other cell's size (sensitive features alone). () is 0 for all. `column`: the
    number of the partition that the cells make, such as the place of the sensitive column that they
    are of; the curator gives it. A person is in one cell of each. Under add-remove a person costs
    what her cell costs; under replace-one she may also move from one cell to another. The price is
    the worst over people: of several releases over the cells of one column it is one person's, who
    was in all of them.
    """

    kind: ClassVar[str] = "per-cell"
    multipliers: tuple[tuple[float, ...], ...]
    spreads: tuple[float, ...]
    crossings: tuple[int, ...] = ()
    column: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        parts = tuple(tuple(_multiplier(m) for m in part) for part in self.multipliers)
        spreads, one_length = _spreads(self.spreads), len({len(part) for part in parts}) == 1
        right = parts and parts[0] and one_length and len(spreads) == len(parts)
        words = "one non-empty row of multipliers a part, all of one length, and one spread a part"
        fix = "PerCell(((2.0, 1.0),), (2.0,)) is one part over two cells."
        _need(right, words, "PerCell", (self.multipliers, self.spreads), fix)
        given: object = self.crossings
        crossings = tuple(given) if isinstance(given, tuple | list) else (math.nan,)
        right = all(type(one) is int and one in (-1, 0, 1) for one in crossings)
        right = right and len(crossings) in (0, len(parts))
        words = f"{len(parts)} of -1, 0 and 1, one a part, or () for 0"
        fix = "0 where cells have coordinates of their own; 1 where all are added to one vector."
        _need(right, words, "PerCell.crossings", given, fix)
        crossings = crossings if any(crossings) else ()
        checks.normalise(self, multipliers=parts, spreads=spreads, crossings=crossings)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.multipliers[0])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what is as it is for most releases is left out."""
        usual = {name: _plain(value) for name, value in LATER[self.kind].items()}
        return {
            name: value
            for name, value in super().to_dict().items()
            if name not in usual or value != usual[name]
        }


LATER: Mapping[str, Mapping[str, object]] = {"per-cell": {"crossings": (), "column": 0}}
"""Fields that files need not hold."""


# Several events as one.


@dataclass(frozen=True)
class Composed(Event):
    """All of these, on the same data, adaptively. Inside a sampled event: all on the same batch,
    one joint release."""

    kind: ClassVar[str] = "composed"
    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        given: Any = self.events
        several = isinstance(given, Iterable) and not isinstance(given, Event)
        _need(several, "several events", "events", given, "Pass a list of events.")
        checks.normalise(self, events=tuple(_event(value) for value in given))


@dataclass(frozen=True)
class Repeated(Event):
    """One event, `count` times over."""

    kind: ClassVar[str] = "repeated"
    event: Event
    count: int

    def __post_init__(self) -> None:
        super().__post_init__()
        most, fix = "at most 2^60 times", "Nothing is done that often."
        _need(self.count <= MOST_TIMES, most, "count", self.count, fix)


def compose(events: Iterable[Event]) -> Event:
    """One event for several: runs of equal neighbours are folded into `Repeated`, no-ops dropped,
    singletons unwrapped.

    >>> compose([Gaussian(2.0), Gaussian(2.0), NoOp()])
    Repeated(event=Gaussian(noise_multiplier=2.0), count=2)
    """
    folded: list[tuple[Event, int]] = []
    for event in events:
        inner, count = (event.event, event.count) if isinstance(event, Repeated) else (event, 1)
        if isinstance(inner, NoOp) or count == 0:
            continue
        # Only neighbours: the order of a plan is the order in which it is followed.
        if folded and folded[-1][0] == inner:
            folded[-1] = (inner, folded[-1][1] + count)
        else:
            folded.append((inner, count))
    parts = tuple(event if count == 1 else Repeated(event, count) for event, count in folded)
    if not parts:
        return NoOp()
    return parts[0] if len(parts) == 1 else Composed(parts)


def as_event(events: Event | Iterable[Event]) -> Event:
    """One event for an event or several."""
    if isinstance(events, Event):
        return events
    given: Any = events
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
    fix = "Pass fairveil.privacy.events.Gaussian(1.0), or a list."
    need(several, "an event or several", of="events", got=events, fix=fix)
    return compose(Composed(tuple(events)).events)


def spelled_out(event: Event) -> Iterator[Event]:
    """The answers that an event of composition and repetition stands for, one by one. No-ops cost
    nothing and are left out, however often they are repeated."""
    if isinstance(event, Composed):
        for inner in event.events:
            yield from spelled_out(inner)
    elif isinstance(event, Repeated):
        for _ in range(0 if _is_nothing(event.event) else event.count):
            yield from spelled_out(event.event)
    elif not isinstance(event, NoOp):
        yield event


def _is_nothing(event: Event) -> bool:
    if isinstance(event, Composed):
        return all(_is_nothing(inner) for inner in event.events)
    if isinstance(event, Repeated):
        return event.count == 0 or _is_nothing(event.event)
    return isinstance(event, NoOp)


def joint_parts(event: Event) -> tuple[Event, ...]:
    """The leaves of one joint release: the event itself, or what a `Composed` or `Repeated` of
    leaves spells out, no-ops too."""
    if isinstance(event, Composed):
        return tuple(part for inner in event.events for part in joint_parts(inner))
    return joint_parts(event.event) * event.count if isinstance(event, Repeated) else (event,)


def _count_parts(event: Event) -> int:
    """How many leaves `joint_parts` would spell out, without spelling them out."""
    if isinstance(event, Composed):
        return sum(_count_parts(inner) for inner in event.events)
    return _count_parts(event.event) * event.count if isinstance(event, Repeated) else 1


def with_noise(event: Event, z: float) -> Event:
    """The event with z times the noise: every noise multiplier times z, every epsilon over it, rho
    over z^2. What has no noise to scale, such as `Approximate`, is as it is."""
    match event:
        case Composed():
            return Composed(tuple(with_noise(inner, z) for inner in event.events))
        case PerCell():
            parts = tuple(tuple(m * z for m in part) for part in event.multipliers)
            return replace(event, multipliers=parts)
        case Exponential() | Pure():
            return replace(event, epsilon=event.epsilon / z)
        case ZeroConcentrated():
            return replace(event, rho=event.rho / z**2)
        case Repeated() | PoissonSampled() | VisiblySampled() | OnPart() | PrivateSelection():
            return replace(event, event=with_noise(event.event, z))
        case Gaussian() | Laplace() | DiscreteLaplace():
            return replace(event, noise_multiplier=event.noise_multiplier * z)
    return event


def made_of(event: Event, kinds: tuple[type[Event], ...]) -> bool:
    """Whether all that is composed and repeated is of these kinds."""
    if isinstance(event, Composed):
        return all(made_of(inner, kinds) for inner in event.events)
    return made_of(event.event, kinds) if isinstance(event, Repeated) else isinstance(event, kinds)


# Events on some of the rows, and the best of several runs.

GAUSSIANS: tuple[type[Event], ...] = (Gaussian, PerCell)
NOISE: tuple[type[Event], ...] = (*GAUSSIANS, Laplace, DiscreteLaplace)


@dataclass(frozen=True)
class PoissonSampled(Event):
    """A joint release on one secret Poisson batch: every row is in it with probability `rate`,
    independently.

    `event` is Gaussian noise or a `Composed` of it (one joint release). Multipliers are over the
    largest norm c_j of one row's contribution; `spreads` (replace-one only; default 2 each) are d_j
    / c_j. Two `PoissonSampled` are two batches, drawn independently: never describe two answers
    from one batch that way (theory.md#one-batch).
    """

    kind: ClassVar[str] = "poisson-sampled"
    rate: float
    event: Event
    spreads: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        of, parts = "PoissonSampled.event", _count_parts(self.event)
        fix = "Repeat the sampled event: every repetition draws its own batch."
        _need(parts <= MOST_PARTS, f"at most {MOST_PARTS} parts on one batch", of, "more", fix)
        words, gaussian = "Gaussian noise, or a Composed of it", made_of(self.event, GAUSSIANS)
        fix = "Compose sampled events outside; inside is one joint release on one batch."
        _need(gaussian, words, of, self.event, fix)
        if self.spreads is not None:
            spreads, words = _spreads(self.spreads), f"{parts} spreads in [0, 2], one a part"
            fix = "Two contributions of norm at most c are at most 2c apart."
            right = len(spreads) == parts and all(one <= 2 for one in spreads)
            _need(right, words, "spreads", self.spreads, fix)
            checks.normalise(self, spreads=spreads)


@dataclass(frozen=True)
class VisiblySampled(Event):
    """Gaussian noise on a Poisson batch whose membership the observer may see (theory.md#t4).
    Multipliers are over sensitivities.

    Replace-one only, where who is present is public and a batch is drawn whatever their values:
    under add-remove the batch itself would give a new member away, and pricing refuses it.
    """

    kind: ClassVar[str] = "visibly-sampled"
    rate: float
    event: Event

    def __post_init__(self) -> None:
        super().__post_init__()
        words, fix = "Gaussian noise, or a Composed of it", "Compose sampled events outside."
        gaussian = made_of(self.event, (*GAUSSIANS, NoOp))
        _need(gaussian, words, "VisiblySampled.event", self.event, fix)


@dataclass(frozen=True)
class OnPart(Event):
    """A release on one fixed part of a partition of the rows into `parts`, drawn by place alone
    (theory.md#t8).

    Replace-one only: who is present is public and keeps her place, so of one partition she is in
    one part, always the same one, and parts compose in parallel. An epoch over all parts costs one
    release on all rows. Under add-remove pricing refuses it: a row that comes moves others from
    part to part. Multipliers are over sensitivities, as on all rows.
    """

    kind: ClassVar[str] = "on-part"
    event: Event
    part: int
    parts: int

    def __post_init__(self) -> None:
        super().__post_init__()
        words = f"a part below the number of parts, at most {MOST_CUTS} of them"
        fix = "Parts are numbered from 0: OnPart(Gaussian(2.0), 0, 10) is the first of ten."
        there, got = self.part < self.parts <= MOST_CUTS, (self.part, self.parts)
        _need(there, words, "OnPart", got, fix)
        # Parallel composition is proved for plain noise on a part (docs/theory/sampling.md, T8).
        words = "a noise event, or a Composed or Repeated of noise events"
        fix = "Compose parts, batches and choices outside."
        noise = made_of(self.event, (*NOISE, NoOp))
        _need(noise, words, "OnPart.event", self.event, fix)


@dataclass(frozen=True)
class PrivateSelection(Event):
    """The best of a random number of runs of `event` (its private score included), the number drawn
    from a truncated negative binomial of this `mean` and `shape` (1: geometric; 0: logarithmic;
    inf: Poisson)."""

    kind: ClassVar[str] = "private-selection"
    event: Event
    mean: float
    shape: float

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("mean", self.mean), ("shape", self.shape)):
            few, fix = not MOST_TIMES < value < math.inf, "Nothing is run that often."
            _need(few, "at most 2^60", f"PrivateSelection.{name}", value, fix)
        # A truncated negative binomial number is 1 at least, and so is its mean.
        once, words = self.mean >= 1 or math.isinf(self.shape), "a mean of at least 1"
        fix = "Pass shape=inf for a Poisson number of runs, which may be 0."
        _need(once, words, "PrivateSelection.mean", self.mean, fix)


# Events as plain values, and back.

KINDS: Mapping[str, type[Event]] = {
    cls.kind: cls
    for cls in (
        *(NoOp, NonPrivate, Gaussian, Laplace, DiscreteLaplace, Exponential),
        *(Pure, Approximate, ZeroConcentrated, PerCell, Composed, Repeated),
        *(PoissonSampled, VisiblySampled, OnPart, PrivateSelection),
    )
}


def to_json_dict(event: Event) -> dict[str, Any]:
    """An event with the version of its format, for files."""
    return {"version": FORMAT_VERSION, "event": event.to_dict()}


def from_json_dict(values: object) -> Event:
    """The inverse of `to_json_dict`; refuses unknown versions, kinds and fields."""
    right = isinstance(values, Mapping) and set(values) == {"version", "event"}
    words, of = "an object with 'version' and 'event'", "events file"
    _need(right, words, of, values, "Write it with to_json_dict().")
    given: Any = values
    fix, version = "Read it with the version of Fairveil that wrote it.", given["version"]
    _need(version == FORMAT_VERSION, f"version {FORMAT_VERSION}", of, version, fix)
    return from_dict(given["event"])


def from_dict(values: object) -> Event:
    """The inverse of `Event.to_dict`."""
    found: Mapping[str, Any] = values if isinstance(values, Mapping) else {}
    kind, fix = str(found.get("kind")), "Write events with to_dict()."
    words = f"an object whose 'kind' is one of {sorted(KINDS)}"
    _need(kind in KINDS, words, "event", values, fix)
    names = {field.name for field in fields(KINDS[kind])}
    given = {name: value for name, value in found.items() if name != "kind"}
    right = set(given) | set(LATER.get(kind, ())) == names
    need(right, f"the fields {sorted(names)}", of=f"event {kind!r}", got=sorted(given), fix=fix)
    return KINDS[kind](**{name: _revive(name, value) for name, value in given.items()})


def _revive(name: str, value: Any) -> Any:
    if name == "event":
        return from_dict(value)
    if name not in ("events", "multipliers", "spreads", "crossings") or value is None:
        return math.inf if value == "inf" else value
    _need(isinstance(value, list), "a list", name, value, "Write events with to_dict().")
    if name == "events":
        return tuple(map(from_dict, value))
    return tuple(tuple(item) if isinstance(item, list) else item for item in value)
