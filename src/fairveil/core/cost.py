"""What a release costs: events in, epsilon or delta out, by the least of the valid routes.

1. One-sided: a price is never below the true cost of the described events. Grids round up, tails
   count as infinite losses, roots come from above.
2. One batch is one event; two `PoissonSampled` are two batches (theory.md#one-batch).
3. The relation changes sampled and per-cell events only: elsewhere it is already in the multiplier
   (theory.md#multipliers).
4. For plans fixed in advance. To cap mechanisms that are chosen after seeing earlier answers use
   `filters` (T10).

Routes: closed form (Gaussians: Balle and Wang 2018, Dong, Roth and Su 2022), privacy-loss
distributions (Sommer, Meiser and Mohammadi 2019; Koskela, Jalko and Honkela 2020), Renyi (Mironov
2017), addition of epsilons. `docs/accounting.md` has the theorem behind every event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

from . import checks, compose, curves, renyi
from .compose import Losses
from .curves import Profile, gaussian_delta
from .errors import need
from .events import (
    Approximate,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NoOp,
    OnPart,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    VisiblySampled,
    ZeroConcentrated,
    joint_parts,
)
from .inventory import Inventory, as_event, inventory, lone, one_batch
from .promise import Neighbours, relation

Events = Event | Iterable[Event]


@dataclass(frozen=True)
class Price:
    """What events cost: (epsilon, delta) under a relation, and the route that showed it."""

    epsilon: float
    delta: float
    neighbours: Neighbours
    route: str


def epsilon(events: Events, delta: float, neighbours: str = "add-remove") -> float:
    """The epsilon of these events at this delta; inf when they are not private at it.

    >>> from fairveil.core.events import Gaussian, Repeated
    >>> round(epsilon(Repeated(Gaussian(10.0), 100), 1e-6), 4)
    4.8866
    """
    return price(events, delta, neighbours).epsilon


def price(events: Events, delta: float, neighbours: str = "add-remove") -> Price:
    """The least epsilon over all valid routes, and the route that gave it."""
    target = checks.fraction(delta=delta, high_open=True, remedy="Pass delta=1e-6, for example.")
    return _price(as_event(events), target, relation(neighbours))


def delta(events: Events, epsilon: float, neighbours: str = "add-remove") -> float:
    """The delta of these events at this epsilon, at most 1.

    >>> from fairveil.core.events import Laplace
    >>> delta(Laplace(1.0), 1.0)
    0.0
    """
    at = checks.non_negative(epsilon=epsilon, allow_inf=True)
    return _delta(as_event(events), at, relation(neighbours))


def curve(
    events: Events,
    neighbours: str = "add-remove",
    *,
    deltas: Sequence[float] | None = None,
    epsilons: Sequence[float] | None = None,
) -> tuple[tuple[float, float], ...]:
    """(epsilon, delta) pairs along the whole curve, by increasing epsilon: at the given deltas, or
    the given epsilons.

    Delta never rises with epsilon along it. Without either, deltas are 1e-1, 1e-2, ... 1e-12.
    """
    one = deltas is None or epsilons is None
    fix = "Call it twice for two curves."
    need(one, "deltas or epsilons, not both", of="curve", got="both", fix=fix)
    event, out = as_event(events), list[tuple[float, float]]()
    if epsilons is not None:
        for at in sorted(epsilons):
            # Each value is an upper bound, perhaps by another route; the true delta never rises, so
            # a bound at a smaller epsilon holds here, too.
            out.append((at, min(delta(event, at, neighbours), out[-1][1] if out else 1.0)))
        return tuple(out)
    given = [10.0**-k for k in range(1, 13)] if deltas is None else deltas
    for at in sorted(given, reverse=True):
        out.append((max(epsilon(event, at, neighbours), out[-1][0] if out else 0.0), at))
    return tuple(out)


def routes_of(events: Events, delta: float, neighbours: str = "add-remove") -> dict[str, float]:
    """Every valid route by name, with the epsilon that it gives: each is an upper bound on the true
    one."""
    target = checks.fraction(delta=delta, high_open=True)
    under = relation(neighbours)
    total = inventory(as_event(events), under)
    found = valid(total, under)
    if total.private and not (found and found[0].name == NOTHING):
        found = [*found, moments(total, under), by_losses(total, under)]
    return {route.name: _with_sampler_error(route, target) for route in found}


@lru_cache(maxsize=4096)
def _price(event: Event, target: float, neighbours: Neighbours) -> Price:
    total = inventory(event, neighbours)
    best = Price(math.inf, target, neighbours, NO_ROUTE)
    for route in _worthwhile(total, neighbours, target):
        found = _with_sampler_error(route, target)
        if found < best.epsilon:
            best = Price(found, target, neighbours, route.name)
    if math.isinf(best.epsilon) and total.private and target > 0:
        # The grid has no room for losses as large, or deltas as small, as these: moments have no
        # grid.
        found = _with_sampler_error(moments(total, neighbours), target)
        return Price(found, target, neighbours, RENYI)
    return best


def _worthwhile(total: Inventory, neighbours: Neighbours, target: float) -> Iterable[Route]:
    """The routes that can be the least: an exact one ends the search."""
    found = valid(total, neighbours)
    yield from found
    if not total.private or not total.others or target == 0:
        return
    if has_competition(total):
        yield moments(total, neighbours)
    if not only_moments(total):
        yield by_losses(total, neighbours)


def _with_sampler_error(route: Route, target: float) -> float:
    """The least e with delta(e) + (1 + e^e) x total variation <= target (theory.md#t7), from above.

    Substituting again and again rises to the least solution; the last substitution, at a slightly
    larger e, certifies it.
    """
    error = route.total_variation
    if error == 0:
        return route.epsilon(target)
    guess = 0.0
    for _ in range(60):
        ahead = guess * (1 + 1e-7) + 1e-12
        room = target - sampler_charge(ahead, error)
        if room <= 0:
            return math.inf
        found = route.epsilon(room)
        if found <= ahead:
            return ahead
        guess = found
    return math.inf


@lru_cache(maxsize=4096)
def _delta(event: Event, at: float, neighbours: Neighbours) -> float:
    total = inventory(event, neighbours)
    if math.isinf(at):
        if not total.private:
            return 1.0
        # A sampler's error leaves no bound at epsilon inf itself; delta never rises, so that of a
        # finite epsilon holds.
        finite = whole_error(total, neighbours) > 0
        return _delta(event, 700.0, neighbours) if finite else certain_loss(total, neighbours)
    best = 1.0
    for route in _worthwhile(total, neighbours, 1.0):
        best = min(best, _delta_with_sampler_error(route, at))
        if best == 0 and total.total_variation == 0:
            break
    return best


def _delta_with_sampler_error(route: Route, at: float) -> float:
    """delta(e) + (1 + e^e) x total variation, at the best e not above: it is convex in e^e."""
    error = route.total_variation

    def charged(e: float) -> float:
        return min(1.0, route.delta(e) + sampler_charge(e, error))

    if error == 0:
        return route.delta(at)
    low, high = 0.0, at
    for _ in range(40):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, two) if charged(one) <= charged(two) else (one, high)
    return min(charged(at), charged(low), charged(high))


# The ways to a total. Each is valid alone; the least wins. Every route answers two questions about an
# `Inventory`, `epsilon(delta)` and `delta(epsilon)`; sampler errors (theory.md#t7) are added on top,
# for every route alike.

CLOSED_FORM = "closed form"
LOSS_DISTRIBUTION = "privacy-loss distribution"
RENYI = "Renyi"
ADDITION = "addition"
NOTHING = "nothing read"
NO_ROUTE = "none"

FINE = 0.03
"""The grid's step over the deviation of one loss: rounding adds step^2/6 to the variance, 1.5e-4 of
it."""
TOTAL_FINE = 1e-3
"""The same over the deviation of the total."""
OUTWARDS = 1.0 + 2.0**-48
"""More than the last digits of a few elementary functions."""


@dataclass(frozen=True, eq=False)
class Route:
    """A named way from delta to epsilon and back; `sampled_error` is charged by T7 beside the
    inventory's own."""

    name: str
    epsilon: Callable[[float], float]
    delta: Callable[[float], float]
    total_variation: float


def valid(total: Inventory, neighbours: Neighbours) -> list[Route]:
    """Every route that can price this inventory, the quickest first. Empty when something was
    released without noise."""
    if not total.private:
        return []
    error = total.total_variation
    if not total.others and total.gaussian == 0:
        return [Route(NOTHING, lambda delta: 0.0, lambda epsilon: 0.0, error)]
    out = []
    if not total.others:
        mu = math.sqrt(total.gaussian)
        one = partial(gaussian_epsilon, mu)
        out.append(Route(CLOSED_FORM, one, lambda epsilon: gaussian_delta(epsilon, mu), error))
    pure, leak = addition(total, neighbours)
    if not math.isinf(pure):
        out.append(
            Route(
                ADDITION,
                lambda delta: pure if delta >= leak else math.inf,
                lambda epsilon: leak if epsilon >= pure else 1.0,
                whole_error(total, neighbours),
            )
        )
    return out


def whole_error(total: Inventory, neighbours: Neighbours) -> float:
    """The samplers' total variation, with that of samplers inside visible batches and private
    selections (theory.md#t7)."""
    errors = [total.total_variation]
    for event, count in total.others:
        if isinstance(event, VisiblySampled | PrivateSelection):
            runs = event.mean if isinstance(event, PrivateSelection) else 1.0
            errors.append(
                count * runs * whole_error(inventory(event.event, neighbours), neighbours)
            )
    return min(1.0, math.fsum(errors))


def certain_loss(total: Inventory, neighbours: Neighbours) -> float:
    """The probability of an infinite loss: delta as epsilon grows without end."""
    lost = [0.0]
    for event, count in total.others:
        if isinstance(event, Approximate):
            lost.append(count * event.delta)
        elif isinstance(event, VisiblySampled | PrivateSelection):
            runs = event.mean if isinstance(event, PrivateSelection) else event.rate
            lost.append(count * runs * certain_loss(inventory(event.event, neighbours), neighbours))
    return min(1.0, math.fsum(lost))


def sampler_charge(epsilon: float, error: float) -> float:
    """(1 + e^epsilon) x error, at most 1: what a total variation adds to delta (theory.md#t7).

    >>> sampler_charge(0.0, 1e-9), sampler_charge(2000.0, 1e-306), sampler_charge(2000.0, 0.0)
    (2e-09, 1.0, 0.0)
    """
    if error == 0:
        return 0.0
    if epsilon < 700:
        return min(1.0, (1 + math.exp(epsilon)) * error)
    return min(1.0, error + math.exp(min(0.0, epsilon + math.log(error))))


def moments(total: Inventory, neighbours: Neighbours) -> Route:
    """The Renyi route."""
    curve = renyi.total(total, neighbours)
    return Route(
        RENYI,
        lambda delta: renyi.epsilon_of(curve, delta) if delta > 0 else math.inf,
        lambda epsilon: renyi.delta_of(curve, epsilon),
        curve.total_variation,
    )


def by_losses(total: Inventory, neighbours: Neighbours) -> Route:
    """The route by privacy-loss distributions; what is known by its moments only enters by the
    profile that they imply."""
    error = total.total_variation + _hidden_error(total, neighbours)

    def epsilon(delta: float) -> float:
        if delta <= 0:
            return math.inf
        ways = _composition(total, neighbours, _tail(delta))
        return max(compose.epsilon_of(way, delta) for way in ways)

    def delta(epsilon: float) -> float:
        ways = _composition(total, neighbours, 1e-20)
        return max(compose.delta_of(way, epsilon) for way in ways)

    return Route(LOSS_DISTRIBUTION, epsilon, delta, min(1.0, error))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon with `gaussian_delta(epsilon, mu) <= delta`, from above (Balle and Wang
    2018).

    >>> gaussian_epsilon(1.0, 1.0), gaussian_epsilon(1.0, 0.0)
    (0.0, inf)
    """
    if mu == 0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    if delta <= 0:
        return math.inf
    # The loss is normal, of mean mu^2/2 and deviation mu: it is beyond this end with probability
    # below delta.
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta)) + 1e-12
    if gaussian_delta(high, mu) > delta:
        return math.inf
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, mu) > delta else (low, middle)
    return high


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu with `gaussian_delta(epsilon, mu) <= delta`, from below; 0 at delta 0."""
    if delta <= 0:
        return 0.0
    low, high = 0.0, 1e-3
    while gaussian_delta(epsilon, high) <= delta:
        low, high = high, 2 * high
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(epsilon, middle) <= delta else (low, middle)
        if high < 1e-300:
            return 0.0
    return low


def addition(total: Inventory, neighbours: Neighbours) -> tuple[float, float]:
    """Basic composition: epsilons and deltas of mechanisms with a pure part add up. The sums are
    exact, and rounded up once."""
    if total.gaussian > 0:
        return math.inf, 0.0
    pairs = [(_pure(event, neighbours), count) for event, count in total.others]
    deltas = _up(sum((Fraction(delta) * count for (_, delta), count in pairs), Fraction()))
    if any(math.isinf(epsilon) for (epsilon, _), _ in pairs):
        return math.inf, deltas
    sums = (Fraction(epsilon) * count for (epsilon, _), count in pairs)
    return _up(sum(sums, Fraction())), deltas


def _up(value: Fraction) -> float:
    """The least float that is not below."""
    try:
        found = float(value)
    except OverflowError:
        return math.inf
    return found if Fraction(found) >= value else math.nextafter(found, math.inf)


def _pure(event: Event, neighbours: Neighbours) -> tuple[float, float]:
    """(epsilon, delta) of one mechanism by itself; epsilon inf when it has Gaussian parts."""
    match event:
        case Pure() | Exponential():
            return event.epsilon, 0.0
        case Approximate():
            return event.epsilon, event.delta
        case Laplace() | DiscreteLaplace():
            return _up(1 / Fraction(event.noise_multiplier)), 0.0
        case PoissonSampled():
            batch = one_batch(event, neighbours)
            pure = max(batch.alone.pure, batch.replaced.pure if batch.replaced else 0.0)
            # A pure guarantee on a secret batch: log(1 + q (e^epsilon - 1)).
            within = math.log1p(batch.rate * math.expm1(pure)) if pure < 700 else pure
            return within * OUTWARDS, 0.0
        case VisiblySampled():
            inside, leak = addition(inventory(event.event, neighbours), neighbours)
            return inside, event.rate * leak
        case PrivateSelection():
            inside, leak = addition(inventory(event.event, neighbours), neighbours)
            bounded = not math.isinf(event.shape) and leak == 0
            # Papernot and Steinke (2022), for truncated negative binomial numbers of pure runs.
            return ((2 + event.shape) * inside * OUTWARDS if bounded else math.inf), 0.0
    joint = lone(event)
    return (math.inf if joint is None else joint.pure), 0.0


def has_competition(total: Inventory) -> bool:
    """Whether Renyi can beat the loss distributions: moments known only, or choices, whose
    sup-profile composes loosely."""

    def loose(event: Event) -> bool:
        parts = joint_parts(event.event) if isinstance(event, PoissonSampled) else ()
        by_moments = _by_moments(event) or isinstance(event, Exponential | VisiblySampled)
        return by_moments or any(isinstance(part, DiscreteGaussian) for part in parts)

    return any(loose(event) for event, _ in total.others)


def only_moments(total: Inventory) -> bool:
    """Whether nothing but moments is known, so that loss distributions have nothing to add."""
    return all(_by_moments(event) for event, _ in total.others)


def _by_moments(event: Event) -> bool:
    return isinstance(event, ZeroConcentrated | DiscreteGaussian | PrivateSelection)


def _hidden_error(total: Inventory, neighbours: Neighbours) -> float:
    return math.fsum(
        count * renyi.curve(event, neighbours).total_variation
        for event, count in total.others
        if isinstance(event, PrivateSelection | VisiblySampled)
    )


def _tail(delta: float) -> float:
    """Mass that may be called infinite: a millionth of delta, in whole decades so that near deltas
    share their grids."""
    return float(10.0 ** (math.floor(math.log10(delta)) - 6)) if delta > 1e-290 else 1e-297


@lru_cache(maxsize=4)
def _composition(
    total: Inventory, neighbours: Neighbours, tail: float
) -> tuple[compose.Parts, compose.Parts]:
    """Every mechanism's losses on one grid that suits the whole, in both directions."""
    uses: list[tuple[Profile, int, Event | None]] = []
    unknown = renyi.FREE
    for event, count in total.others:
        if _by_moments(event):
            unknown = unknown + renyi.curve(event, neighbours).times(count)
        else:
            uses.append((_profile(event, neighbours), count, event))
    if total.gaussian > 0:
        uses.append((curves.gaussian(math.sqrt(total.gaussian)), 1, None))
    if unknown.values[0] > 0 or unknown.leak > 0:
        uses.append((renyi.profile_of(unknown), 1, None))
    uses = [use for use in uses if compose.costs_anything(use[0])]
    if not uses:
        return compose.Parts(1.0, ()), compose.Parts(1.0, ())
    times = sum(count for _, count, _ in uses)
    # Each use may lose this much: together no more than the tail that was asked for.
    tail = tail / 10.0 ** math.ceil(math.log10(times))
    step = _step([(profile, count) for profile, count, _ in uses], tail)
    while True:
        pairs = [
            (compose.on_grid(profile, step, tail), count)
            if event is None
            else (_kept(event, neighbours, step, tail), count)
            for profile, count, event in uses
        ]
        ways = compose.both_ways(pairs, step)
        cells = max(compose.window_cells(way, 1e-10) for way in ways)
        if cells <= compose.MOST_CELLS:
            return ways
        # Losses are rounded up to the grid, so a coarser one costs more and never less.
        step *= 1.1 * cells / compose.MOST_CELLS


def _step(uses: list[tuple[Profile, int]], tail: float) -> float:
    """Small against one loss and against the total, not so small that the cells run out; a bounded
    loss falls on the grid."""
    times = sum(count for _, count in uses)
    variance = math.fsum(count * compose.variance(profile, tail) for profile, count in uses)
    step = min(FINE * math.sqrt(variance / times), TOTAL_FINE * math.sqrt(variance))
    if step > 0:
        step = float(2.0 ** (math.floor(4 * math.log2(step)) / 4))
    reached = [
        compose.reach(side, tail, profile.top)
        for profile, _ in uses
        for side in (profile.forward, profile.backward)
    ]
    step = max(step, math.fsum(reached) / compose.MOST_CELLS, max(reached) * 1e-6)
    bounded = [profile.top for profile, _ in uses if profile.top <= max(reached)]
    least = min(bounded, default=0.0)
    if least <= step:
        return step
    cells = math.ceil(least / step)
    step = least / cells
    # A bound that fell short of its own cell would be put one cell higher.
    while step * cells < least:
        step = math.nextafter(step, math.inf)
    return step


@lru_cache(maxsize=8)
def _kept(event: Event, neighbours: Neighbours, step: float, tail: float) -> tuple[Losses, Losses]:
    return compose.on_grid(_profile(event, neighbours), step, tail)


@lru_cache(maxsize=128)
def _profile(event: Event, neighbours: Neighbours) -> Profile:
    """The profile of one mechanism of an inventory that is not known by its moments only."""
    match event:
        case PoissonSampled():
            return renyi.batch_profile(event, neighbours)
        case Exponential():
            return curves.bounded_range(event.epsilon)
        case Pure():
            return curves.pure(event.epsilon)
        case Approximate():
            return curves.pure(event.epsilon, event.delta)
        case VisiblySampled():
            return curves.visible(_inner_profile(event.event, neighbours), event.rate)
    joint = lone(event)
    return (
        curves.joint(joint.mu, joint.s, joint.atoms)
        if joint
        else renyi.profile_of(renyi.curve(event, neighbours))
    )


def _inner_profile(event: Event, neighbours: Neighbours) -> Profile:
    """Of what is asked of a visible batch: exact for Gaussians or one mechanism, else what its
    moments imply."""
    inside = inventory(event, neighbours)
    if not inside.others:
        mu = math.sqrt(inside.gaussian)
        return curves.gaussian(mu) if mu > 0 else curves.joint(0.0, 0.0)
    (only, times), lone_one = inside.others[0], len(inside.others) == 1 and inside.gaussian == 0
    if lone_one and times == 1 and not _by_moments(only):
        return _profile(only, neighbours)
    return renyi.profile_of(renyi.total(inside, neighbours))


def in_a_row(event: Event, neighbours: Neighbours, times: int) -> Event | None:
    """The event that bounds these, released under `neighbours`, between data sets `times` neighbours
    apart; None where there is no closed form. G_mu between neighbours is G_(k mu) there (Dong, Roth
    and Su 2022, Theorem 2.14), and what is epsilon-private is k epsilon-private.

    >>> from fairveil.core.events import Gaussian, Pure
    >>> in_a_row(Gaussian(4.0), "add-remove", 2).noise_multiplier <= 2.0
    True
    >>> in_a_row(Pure(0.5), "replace-one", 2)
    Pure(epsilon=1.0)
    """
    total = inventory(event, neighbours)
    if times == 1:
        return event
    if not total.private or whole_error(total, neighbours) > 0:
        return None
    if not total.others:
        mu = math.sqrt(total.gaussian)
        return Gaussian(1.0 / times / mu * (1 - 1e-15)) if mu > 0 else NoOp()
    epsilon, leak = addition(total, neighbours)
    if leak > 0 or math.isinf(epsilon):
        return None
    exact = 1.0 if times == 2 else 1 + 1e-15
    return Pure(times * epsilon * exact) if epsilon > 0 else NoOp()


# A plan may say the worst person's noise where the log says everybody's. Shares of a budget by group
# may be made of answers that were released before. Then a plan cannot name them; it says the bound
# that they keep, `Gaussian(z)`, and the log says what was done, `PerCell(...)`. Whatever was seen
# before, such a release is at most 1/z-Gaussian private, and 1/z is a constant: that is all that
# adaptive composition asks for (theory.md#t1, #t9).

COVERED = 1e-12
"""What the square of a release may be above its bound: the last bits of a sum."""


@lru_cache(maxsize=4096)
def covers(planned: Event, done: Event, neighbours: Neighbours | None) -> bool:
    """Whether an answer that was planned is a bound on the one that was given: the same, or no less
    noise for anybody.

    Without a relation nothing is known of people, and only the same is.
    A planned `PerCell` bounds itself alone: a plan's are composed person by person, and what is
    worse for one and better for another would not be in its price. Of a secret batch the price is
    everybody's worst, so there it may stand for another.

    >>> covers(Gaussian(2.0), PerCell(((2.0, 3.0),), (2.0,)), "add-remove")
    True
    >>> covers(Gaussian(2.0), PerCell(((2.0, 1.0),), (2.0,)), "add-remove")
    False
    """
    if planned == done or neighbours is None:
        return planned == done
    match planned, done:
        case PoissonSampled(), PoissonSampled():
            return planned.rate == done.rate and _on_one_batch(planned, done, neighbours)
        case VisiblySampled(), VisiblySampled():
            same = planned.rate == done.rate
            return same and _at_most(planned.event, done.event, neighbours)
        case OnPart(), OnPart():
            same = (planned.part, planned.parts) == (done.part, done.parts)
            return same and _at_most(planned.event, done.event, neighbours)
        case Gaussian(), PerCell():
            return _at_most(planned, done, neighbours)
    return False


def _at_most(planned: Event, done: Event, neighbours: Neighbours) -> bool:
    """Of what is made of unsampled Gaussians; those that are planned are the same for everybody."""
    if not _made_of((Gaussian,), planned) or not _made_of((Gaussian, PerCell), done):
        return False
    room = inventory(planned, neighbours).gaussian
    return inventory(done, neighbours).gaussian <= room * (1 + COVERED)


def _made_of(leaf: tuple[type[Event], ...], event: Event) -> bool:
    if isinstance(event, Composed):
        return all(_made_of(leaf, inner) for inner in event.events)
    return _made_of(leaf, event.event) if isinstance(event, Repeated) else isinstance(event, leaf)


def _on_one_batch(planned: PoissonSampled, done: PoissonSampled, neighbours: Neighbours) -> bool:
    """c and d of theory.md#t3, neither of them larger: both are all that the price depends on."""
    intended, given = one_batch(planned, neighbours), one_batch(done, neighbours)
    pairs = [(intended.alone, given.alone)]
    if intended.replaced is not None and given.replaced is not None:
        pairs.append((intended.replaced, given.replaced))
    return all(
        a.is_gaussian and b.is_gaussian and b.mu**2 <= a.mu**2 * (1 + COVERED) for a, b in pairs
    )
