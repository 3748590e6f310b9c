"""Methods side by side at one gap: a line a case, notion and epsilon.

A method's error at a gap is read off the lower hull of its points, of the unconstrained model of
the same protection and of the best constant answer: what a mixture of its models and those two
reaches. So every method has an error at every gap, at most that of mixing, and a model above mixing
is passed over. An exclamation mark says that there is one, beyond two standard errors. A method
that reads the group at prediction stands beside the others, and is not among those that may be
best.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from .cases import CASES
from .methods import NOT_PRIVATE, READ_GROUP
from .summary import Line, at, hull
from .tables import WORDS

Key = tuple[str, str, str, float]


@dataclass(frozen=True)
class Spot:
    """What one method comes to at one gap: its own error, and mixing's. `free`: that of the model
    without constraints, at its own gap."""

    gap: float
    error: float
    mixing: float
    harm: bool
    free: float


def spots(lines: list[Line]) -> dict[Key, dict[str, Spot]]:
    """Of every private method, at the gap in the middle of those that the case asks for."""
    parts: dict[Key, dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        if line.method not in NOT_PRIVATE and not math.isnan(line.free[0]):
            parts[line.case, line.notion, line.protects, line.epsilon][line.method].append(line)
    found: dict[Key, dict[str, Spot]] = {}
    for key, methods in parts.items():
        gap = _middle(key[0], key[1])
        some = next(iter(methods.values()))[0]
        ends = [(some.free[1], some.free[0]), (0.0, _constant(methods))]
        mixing = _at(ends, gap)
        found[key] = {
            method: Spot(
                gap,
                _at([*_points(of), *ends], gap),
                mixing,
                any(line.harm for line in of),
                some.free[0],
            )
            for method, of in methods.items()
        }
    return found


def fairlearns(lines: list[Line]) -> dict[tuple[str, str], float]:
    """The error of fairlearn's reduction at the same gaps, some of whose answers a constant takes
    the place of."""
    points: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for line in lines:
        if line.method == "fairlearn":
            points[line.case, line.notion] += [
                (line.gap.value, line.error.value),
                (0.0, line.constant.value),
            ]
    return {key: _at(some, _middle(*key)) for key, some in points.items()}


def table(lines: list[Line]) -> Iterator[str]:
    """Markdown: errors at one gap a case, the least in bold."""
    found, peers = spots(lines), fairlearns(lines)
    methods = list(dict.fromkeys(method for some in found.values() for method in some))
    names = [f"{name}, reads the group" if name in READ_GROUP else name for name in methods]
    yield (
        f"| case | notion | epsilon | gap | mixing | {' | '.join(names)} | fairlearn, not private "
        f"| best, and by how much |"
    )
    yield "|" + " --- |" * (len(methods) + 7)
    for (case, notion, protects, epsilon), some in found.items():
        first = next(iter(some.values()))
        blind = {method: spot.error for method, spot in some.items() if method not in READ_GROUP}
        cells = [_cell(some.get(method), blind) for method in methods]
        start = [
            _name(case, protects),
            WORDS.get(notion, notion),
            _epsilon(epsilon),
            f"{100 * first.gap:g}",
            _number(first.mixing),
        ]
        end = [
            _number(peers.get((case, notion), math.nan)),
            _winner({**blind, "mixing": first.mixing}),
        ]
        yield "| " + " | ".join([*start, *cells, *end]) + " |"


def parted(lines: list[Line], method: str = "descent", exact: float = 10_000.0) -> Iterator[str]:
    """Markdown: a method's error at one gap without privacy, then its bias (next to no noise
    against none), then what noise adds. In brackets: what it adds to the model without constraints,
    which spends its whole budget on one model. What is left is what hearing the groups costs."""
    found, peers = spots(lines), fairlearns(lines)
    epsilons = sorted({key[3] for key in found if key[3] < exact}, reverse=True)
    heads = [
        "case",
        "notion",
        "gap",
        "fairlearn",
        "epsilon inf",
        f"bias: epsilon {exact:,.0f}",
        *(f"noise: {e:g}" for e in epsilons),
    ]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + " --- |" * len(heads)
    for case, notion, protects in dict.fromkeys(key[:3] for key in found):
        at_epsilon = {
            key[3]: some[method]
            for key, some in found.items()
            if key[:3] == (case, notion, protects) and method in some
        }
        if math.inf not in at_epsilon or exact not in at_epsilon:
            continue
        free, near = at_epsilon[math.inf], at_epsilon[exact].error
        noise = [_noise(at_epsilon.get(e), at_epsilon[exact]) for e in epsilons]
        start = [
            _name(case, protects),
            WORDS.get(notion, notion),
            f"{100 * free.gap:g}",
            _number(peers.get((case, notion), math.nan)),
        ]
        yield (
            "| "
            + " | ".join([*start, _number(free.error), f"{100 * (near - free.error):+.1f}", *noise])
            + " |"
        )


def _noise(spot: Spot | None, near: Spot) -> str:
    if spot is None:
        return "-"
    return f"{100 * (spot.error - near.error):+.1f} ({100 * (spot.free - near.free):+.1f})"


def _name(case: str, protects: str) -> str:
    return f"`{case}`" + ("" if protects == "records" else ", sensitive features")


def _epsilon(epsilon: float) -> str:
    return "not private" if math.isinf(epsilon) else f"{epsilon:,g}"


def _points(lines: list[Line]) -> list[tuple[float, float]]:
    return [(line.gap.value, line.error.value) for line in lines]


def _middle(case: str, notion: str) -> float:
    bounds = next(bounds for name, bounds in CASES[case].asked if name == notion)
    return bounds[len(bounds) // 2]


def _constant(found: dict[str, list[Line]]) -> float:
    known = [
        line.constant.value
        for of in found.values()
        for line in of
        if not math.isnan(line.constant.value)
    ]
    return min(known, default=1.0)


def _at(points: list[tuple[float, float]], gap: float) -> float:
    return at(hull([(x, y) for x, y in points if not math.isnan(y)]), gap)


def _cell(spot: Spot | None, blind: dict[str, float]) -> str:
    if spot is None:
        return "-"
    text = _number(spot.error) + (" !" if spot.harm else "")
    return (
        f"**{text}**"
        if spot.error in blind.values() and spot.error <= min(blind.values()) + 5e-4
        else text
    )


def _winner(errors: dict[str, float]) -> str:
    ranked = sorted(errors.items(), key=lambda item: item[1])
    if len(ranked) < 2:
        return "-"
    (first, least), (second, next_) = ranked[:2]
    return (
        f"{first}, {100 * (next_ - least):.1f} below {second}"
        if next_ - least > 1e-3
        else f"{first} and {second}"
    )


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f}"
