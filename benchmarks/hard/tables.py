"""Lines as Markdown."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from .cases import CASES
from .summary import Line, Mean

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
