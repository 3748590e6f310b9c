"""A figure's numbers as Markdown, for docs/benchmarks.md."""

from __future__ import annotations

import math
from typing import Any

VERDICTS = (
    "below",
    "below, within the band",
    "not below: our curve ends at a larger gap",
    "not below: our widest point has less gap and more error",
    "not below",
    "not compared: under the floor",
)
PROTECTED = {
    "records": "record-level privacy, add-remove",
    "sensitive_features": "attribute-level privacy, replace-one",
}


def section(result: dict[str, Any]) -> str:
    """The points, what was asked and got, and how many published points lie above."""
    scaling = (
        "declared bounds"
        if result["scaling"] == "honest"
        else "the training rows' own means and deviations (unsafe)"
    )
    held_out = result["evaluation"] == "held-out"
    copies = "" if result["copies"] == 1 else f", trained on {result['copies']} copies of each row"
    rows = f"{result['splits']} splits, {result['test_rows']:,} test rows"
    if not held_out:
        rows = (
            f"Trained and measured on the same {result['test_rows']:,} rows, {result['splits']} "
            f"seeds of the noise"
        )
    where, over = ("Held-out error", "splits") if held_out else ("Error", "seeds")
    head = (
        f"### {result['figure']}, {result['method']}, {PROTECTED[result['protects']]}, scaled by "
        f"{scaling}\n\n"
        f"{rows}{copies}, delta = {result['delta']}. "
        f"{where} in percent (its spread over {over}) @ mean {'held-out ' if held_out else ''}gap "
        f"in points."
    )
    parts = [head, _points(result)]
    if result["published"]["points"]:
        parts += [_published(result)]
    for name, words in (
        ("same_splits", "on the same splits"),
        ("stored", "stored, one other split"),
    ):
        lines = [line for line in result["fairlearn"][name] if line["epsilon"] in (0.1, 1.0)]
        if lines:
            parts.append(
                f"fairlearn's ExponentiatedGradient, not private, {words}:\n\n" + _fairlearn(lines)
            )
    return "\n\n".join(parts) + "\n"


def _points(result: dict[str, Any]) -> str:
    lines = result["points"]
    asked = list(dict.fromkeys(line["asked"] for line in lines))
    rows = []
    for epsilon in dict.fromkeys(line["epsilon"] for line in lines):
        cells = {line["asked"]: line for line in lines if line["epsilon"] == epsilon}
        rows.append(
            [
                "not private" if math.isinf(epsilon) else f"{epsilon:g}",
                *(_cell(cells[bound]) for bound in asked),
            ]
        )
    strength = result["sweep"] == "strength"
    words = [
        f"strength {bound:g}" if strength else f"asked {100 * bound:g}"
        for bound in asked
        if bound is not None
    ]
    return _table(["epsilon", "strength 0" if strength else "no constraint", *words], rows)


def _cell(line: dict[str, Any]) -> str:
    error, gap = line["error"], line["gap"]
    return f"{100 * error['mean']:.1f} ({100 * error['spread']:.1f}) @ {100 * gap['mean']:.1f}"


def _published(result: dict[str, Any]) -> str:
    constant = result["published"]["constant_error"]
    theirs = constant["theirs, about"]
    words = f"A constant answer errs by {100 * constant['ours']:.1f}% on these test rows"
    words += "." if theirs is None else f", by about {100 * theirs:.1f}% on theirs."
    tables = {"": result["published"]["tally"]}
    if result["method"] != "rate-constrained":
        tables = {
            f", {method}": tally for method, tally in result["published"]["tally_by_method"].items()
        }
    rows = []
    for whose, of in tables.items():
        rows += [
            [name + whose, *(str(tally.get(verdict, 0)) for verdict in VERDICTS)]
            for name, tally in of.items()
        ]
    names = [
        "epsilon",
        "below",
        "within the band",
        "we end at a larger gap",
        "less gap, more error",
        "not below",
        "under the floor",
    ]
    counted = (
        words + " Published points, ours against theirs at equal gap:\n\n" + _table(names, rows)
    )
    return counted + (_point_by_point(result) if result["sweep"] == "strength" else "")


def _point_by_point(result: dict[str, Any]) -> str:
    """The points of the same method that do not lie above ours by the whole band: a line each."""
    constant = result["published"]["constant_error"]
    rows = []
    for line in result["published"]["points"]:
        if (
            "FERMI" in line["method"]
            and line["verdict"] != "below"
            and line["our_epsilon"] == line["published_epsilon"]
        ):
            mixed = line["ours_mixed_with_constant"]
            gain = (constant["theirs, about"] or math.nan) - line["error"], constant["ours"] - mixed
            difference, half = 100 * line["difference"], 100 * (line["high"] - line["difference"])
            rows.append(
                [
                    f"{line['our_epsilon']:g}",
                    f"{100 * line['error']:.1f} @ {100 * line['gap']:.1f}",
                    f"{100 * line['ours']:.1f} ({difference:+.1f} +- {half:.1f})",
                    f"{100 * mixed:.1f}",
                    "; ".join(f"{100 * value:.1f}" for value in gain)
                    if math.isfinite(gain[0])
                    else "",
                    line["verdict"],
                ]
            )
    if not rows:
        return "\n\nEvery point of DP-FERMI lies above ours, by the whole band."
    names = [
        "epsilon",
        "DP-FERMI's",
        "our error there (difference, 95 %)",
        "mixed with a constant",
        "gain over a constant: theirs; ours, mixed",
        "verdict",
    ]
    return "\n\nThe points of DP-FERMI that do not lie above ours by the whole band:\n\n" + _table(
        names, rows
    )


def _fairlearn(lines: list[dict[str, Any]]) -> str:
    rows = [
        [
            f"{line['epsilon']:g}",
            f"{line['bound']:g}",
            f"{100 * line['gap']:.1f}",
            f"{100 * line['error']:.2f}",
            f"{100 * line['ours']:.2f}",
            f"{100 * line['difference']:+.2f} [{100 * line['low']:+.2f}, "
            f"{100 * line['high']:+.2f}]",
            line["verdict"],
        ]
        for line in lines
    ]
    return _table(
        [
            "our epsilon",
            "its bound",
            "gap",
            "its error",
            "our error",
            "difference, 95 %",
            "verdict",
        ],
        rows,
    )


def asked_and_got(result: dict[str, Any]) -> str:
    """What was asked for, the mean gap in training, and the mean held-out gap with the 95 % band of
    the mean; in points."""
    held_out = result["evaluation"] == "held-out"
    rows = []
    for line in result["points"]:
        if line["asked"] is None or math.isinf(line["epsilon"]):
            continue
        reached = f"{100 * line['gap']['mean']:.2f} +- {100 * line['gap']['half_95']:.2f}"
        cells = [f"{line['epsilon']:g}", f"{100 * line['asked']:g}"]
        cells += [f"{100 * line['training_gap']['mean']:.2f}"] if held_out else []
        cells += [
            reached,
            f"{100 * (line['gap']['mean'] - line['asked']):+.2f}",
            f"{100 * line['certainly_broken']:.0f}%",
        ]
        rows.append(cells)
    got = ["training", "held out", "held out - asked"] if held_out else ["got", "got - asked"]
    return _table(["epsilon", "asked", *got, "fits that say it is not met"], rows) + "\n"


def _table(names: list[str], rows: list[list[str]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
