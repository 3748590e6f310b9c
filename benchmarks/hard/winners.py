"""Methods side by side at one gap: a line a case, notion and epsilon.

A method's error at a gap is read off the lower hull of its points, of the unconstrained model of the same protection and of the
best constant answer: what a mixture of its models and those two reaches. So every method has an error at every gap, at most
that of mixing, and a model above mixing is passed over. An exclamation mark says that there is one, beyond two standard errors.
A method that reads the group at prediction stands beside the others, and is not among those that may be best.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from .cases import CASES
from .methods import NOT_PRIVATE, READ_GROUP
from .summary import Line, at, hull
from .tables import WORDS

Key = tuple[str, str, str, float]


def table(lines: list[Line]) -> Iterator[str]:
    """Markdown: errors at the gap in the middle of those that the case asks for, the least in bold."""
    private = [line for line in lines if line.method not in NOT_PRIVATE]
    methods = list(dict.fromkeys(line.method for line in private))
    parts: dict[Key, dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
    for line in private:
        if not math.isnan(line.free[0]):
            parts[line.case, line.notion, line.protects, line.epsilon][line.method].append(line)
    peers = {(line.case, line.notion): [] for line in lines}
    for line in lines:
        if line.method == "fairlearn":
            peers[line.case, line.notion].append(line)
    names = [f"{name}, reads the group" if name in READ_GROUP else name for name in methods]
    yield f"| case | notion | epsilon | gap | mixing | {' | '.join(names)} | fairlearn, not private | best, and by how much |"
    yield "|" + " --- |" * (len(methods) + 7)
    for (case, notion, protects, epsilon), found in parts.items():
        gap = _middle(case, notion)
        some = next(iter(found.values()))[0]
        ends = [(some.free[1], some.free[0]), (0.0, _constant(found))]
        errors = {method: _at([*_points(of), *ends], gap) for method, of in found.items()}
        harmed = {method for method, of in found.items() if any(line.harm for line in of)}
        mixing = _at(ends, gap)
        blind = {method: error for method, error in errors.items() if method not in READ_GROUP}
        cells = [_cell(errors.get(method), method in harmed, blind) for method in methods]
        peer = peers[case, notion]
        beside = _at(_points(peer), gap) if peer else math.nan
        words = "not private" if math.isinf(epsilon) else f"{epsilon:g}"
        name = f"`{case}`" + ("" if protects == "records" else ", sensitive features")
        yield (
            f"| {name} | {WORDS.get(notion, notion)} | {words} | {100 * gap:g} | {_number(mixing)} | "
            + " | ".join([*cells, _number(beside), _winner({**blind, "mixing": mixing})])
            + " |"
        )


def _points(lines: list[Line]) -> list[tuple[float, float]]:
    return [(line.gap.value, line.error.value) for line in lines]


def _middle(case: str, notion: str) -> float:
    bounds = next(bounds for name, bounds in CASES[case].asked if name == notion)
    return bounds[len(bounds) // 2]


def _constant(found: dict[str, list[Line]]) -> float:
    known = [line.constant.value for of in found.values() for line in of if not math.isnan(line.constant.value)]
    return min(known, default=1.0)


def _at(points: list[tuple[float, float]], gap: float) -> float:
    return at(hull([(x, y) for x, y in points if not math.isnan(y)]), gap)


def _cell(error: float | None, harmed: bool, blind: dict[str, float]) -> str:
    if error is None:
        return "-"
    text = f"{_number(error)}" + (" !" if harmed else "")
    return f"**{text}**" if error in blind.values() and error <= min(blind.values()) + 5e-4 else text


def _winner(errors: dict[str, float]) -> str:
    ranked = sorted(errors.items(), key=lambda item: item[1])
    if len(ranked) < 2:
        return "-"
    (first, least), (second, next_) = ranked[:2]
    return f"{first}, {100 * (next_ - least):.1f} below {second}" if next_ - least > 1e-3 else f"{first} and {second}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f}"
