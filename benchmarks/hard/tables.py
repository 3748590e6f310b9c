"""Lines as Markdown.

In the table of winners a method's error at a gap is read off the lower hull of its points, of the unconstrained model of
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
from .lines import Line, Mean, at, hull
from .methods import NOT_PRIVATE, READ_GROUP

Key = tuple[str, str, str, float]
HEADS = (
    "method",
    "epsilon",
    "asked",
    "error @ gap",
    "mixing there",
    "best constant",
    "no noise",
    "over fairlearn",
    "who wins and by how much",
)
WORDS = {
    "demographic_parity": "demographic parity",
    "equalized_odds": "equalized odds",
    "false_negative_rate": "false negative rate",
    "false_positive_rate_parity": "false positive rates",
}


def whole(lines: list[Line]) -> Iterator[str]:
    """A table for each case, notion and protection, then the count."""
    parts: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        parts[line.case, line.notion].append(line)
    for (case, notion), some in parts.items():
        yield f"**`{case}`**: {CASES[case].words}, {WORDS.get(notion, notion)}"
        yield ""
        yield from _table(some)
        yield ""
    private = [line for line in lines if not math.isinf(line.epsilon)]
    harmed = [line for line in private if line.harm]
    yield (
        f"{len(private)} private lines, {len(harmed)} of them above mixing by more than two "
        f"standard errors and 0.1 points."
    )


def short(lines: list[Line]) -> Iterator[str]:
    """A row for each bound asked for: methods side by side, or one method by epsilon; in brackets,
    less mixing's error."""
    columns = list(
        dict.fromkeys((line.method, line.epsilon) for line in lines if line.protects != "nothing")
    )
    columns += [(line.method, line.epsilon) for line in lines if line.protects == "nothing"][:1]
    rows: dict[tuple[str, str, float], dict[tuple[str, float], Line]] = defaultdict(dict)
    for line in lines:
        rows[line.case, line.notion, line.asked][line.method, line.epsilon] = line
    epsilons = {epsilon for _, epsilon in columns if not math.isinf(epsilon)}
    heads = [
        method if len(epsilons) < 2 else f"{method}, {_epsilon(epsilon)}"
        for method, epsilon in columns
    ]
    yield "| case | notion | asked | " + " | ".join(heads) + " |"
    yield "|" + "---|" * (len(columns) + 3)
    for (case, notion, asked), found in rows.items():
        if any(line.protects != "nothing" for line in found.values()):
            cells = [_short(found.get(column)) for column in columns]
            yield (
                f"| `{case}` | {WORDS.get(notion, notion)} | {100 * asked:g} | "
                + " | ".join(cells)
                + " |"
            )


def _epsilon(epsilon: float) -> str:
    return "not private" if math.isinf(epsilon) else f"{epsilon:,g}"


def _short(line: Line | None) -> str:
    if line is None:
        return "-"
    told = _point(line.error.value, line.gap.value)
    if math.isnan(line.over_mixing.value) or math.isinf(line.epsilon):
        return told
    spread = (
        "" if math.isnan(line.over_mixing.spread) else f" ± {100 * line.over_mixing.spread:.1f}"
    )
    told += f" ({100 * line.over_mixing.value:+.1f}{spread})"
    return f"**{told}**" if line.harm else told


def _table(lines: list[Line]) -> Iterator[str]:
    protections = {line.protects for line in lines} - {"nothing"}
    heads = (*HEADS[:1], "protects", *HEADS[1:]) if len(protections) > 1 else HEADS
    yield "| " + " | ".join(heads) + " |"
    yield "|" + " --- |" * len(heads)
    for line in lines:
        cells = [line.method, *([line.protects] if len(protections) > 1 else []), *_cells(line)]
        yield "| " + " | ".join(cells) + " |"


def _cells(line: Line) -> list[str]:
    asked = f"{line.asked:g}" if line.method.startswith("fermi") else f"{100 * line.asked:g}"
    epsilon = _epsilon(line.epsilon)
    without = "-" if line.without_privacy is None else _point(*line.without_privacy)
    over = "-" if math.isnan(line.over_fairlearn) else f"{100 * line.over_fairlearn:+.1f}"
    found = f"{_with(line.error)} @ {_with(line.gap)}"
    return [
        epsilon,
        asked,
        found,
        _with(line.mixing),
        _with(line.constant),
        without,
        over,
        line.winner,
    ]


def _point(error: float, gap: float) -> str:
    return f"{100 * error:.1f} @ {100 * gap:.1f}"


def _with(mean: Mean) -> str:
    if math.isnan(mean.value):
        return "-"
    return f"{100 * mean.value:.1f}" + (
        "" if math.isnan(mean.spread) else f" ± {100 * mean.spread:.1f}"
    )


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
                _at([*((one.gap.value, one.error.value) for one in of), *ends], gap),
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


def winners(lines: list[Line]) -> Iterator[str]:
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


def _name(case: str, protects: str) -> str:
    return f"`{case}`" + ("" if protects == "records" else ", sensitive features")
