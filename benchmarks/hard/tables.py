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
    yield f"{len(private)} private lines, {len(harmed)} of them above mixing by more than two standard errors and 0.1 points."


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
    epsilon = "not private" if math.isinf(line.epsilon) else f"{line.epsilon:g}"
    without = "-" if line.without_privacy is None else _point(*line.without_privacy)
    over = "-" if math.isnan(line.over_fairlearn) else f"{100 * line.over_fairlearn:+.1f}"
    found = f"{_with(line.error)} @ {_with(line.gap)}"
    return [epsilon, asked, found, _with(line.mixing), _with(line.constant), without, over, line.winner]


def _point(error: float, gap: float) -> str:
    return f"{100 * error:.1f} @ {100 * gap:.1f}"


def _with(mean: Mean) -> str:
    if math.isnan(mean.value):
        return "-"
    return f"{100 * mean.value:.1f}" + ("" if math.isnan(mean.spread) else f" ± {100 * mean.spread:.1f}")
