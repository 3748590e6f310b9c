"""A model card for the Hugging Face hub: metadata in YAML, then the decision statement of the page and
what is released of a fit, in Markdown. What nobody stated is left out: a license, intended uses.

Guarantees (tests/show/test_show_card.py):
1. Every number on a card stands in the statement, the report or the certificate, rounded as those
   round it.
2. A model that is not private, or whose noise was seeded, says so in the first paragraph.
3. A constraint's verdict is the report's own: a card says "met" only where the report does.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .._json import Document
from .._reading import MIB, read_bytes
from ..core.errors import need
from .numbers import STAMP_WORDS, at_most
from .parts import Fact, Facts, markdown_of, marked
from .report import FORMAT, Report

PLAIN = re.compile(r"[A-Za-z0-9][\w.\-/ ]{0,95}")
REPORT = Document("report", "Take the report.json that `fairveil fit` wrote.")
LEFT_OUT = ("Mechanisms", "Bounds", "Taken as public", "Versions", "Not covered")


def model_card(
    estimator: Any,
    *,
    certificate: Any = None,
    report: Any = None,
    name: str | None = None,
    license: str | None = None,
) -> str:
    """Write a model card as the text of a README.md.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of this library.
    certificate : Certificate, default=None
        Of this model. None: the fit's own, if it has one.
    report : Report or path, default=None
        Its report, or the JSON file of one. None: `report_`, which knows no held-out people.
    name : str, default=None
        The model's name; without it the card is named after the method.
    license : str, default=None
        An identifier of the hub, for example "apache-2.0". Left out unless given.

    Returns
    -------
    str
        The card.
    """
    statement, kind = getattr(estimator, "privacy_", None), type(estimator).__name__
    fix = "Pass a fitted estimator, or fairveil.load(folder)."
    need(hasattr(statement, "stamps"), "a fitted estimator", of="model", got=kind, fix=fix)
    assert statement is not None
    wrong = [str(one) for one in statement.check() if one.grave]
    whole, fix = "a statement that agrees with itself", "Look at fairveil verify."
    need(not wrong, whole, of="statement", got="; ".join(wrong), fix=fix)
    for of, value in {"name": name, "license": license}.items():
        plain = isinstance(value, str) and PLAIN.fullmatch(value) is not None
        plain = plain and (of == "name" or " " not in str(value))
        fix = f"Leave {of} out, or pass such a one."
        expected = f"a {of} of letters, digits, dots and dashes"
        need(value is None or plain, expected, of=of, got=value, fix=fix)
    page = _read(estimator.report_ if report is None else report)
    same, fix = page["statement"] == statement.to_dict(), "Pass the one written with this model."
    need(same, "the report of this model", of="report", got="another statement", fix=fix)
    kept = getattr(estimator, "certificate_", None) if certificate is None else certificate
    said = getattr(estimator, "constraint_report_", None) or getattr(estimator, "gap_report_", None)
    of = "classification" if hasattr(estimator, "classes_") else "regression"
    head = {} if license is None else {"license": license}
    head |= {"library_name": "fairveil"}
    tags = {"tags": ["differential-privacy", "fairness", f"tabular-{of}"]}
    stamps = [f"**{STAMP_WORDS[stamp]}.**\n" for stamp in statement.stamps]
    decided = [Fact(one["label"], one["words"], one["verdict"]) for one in page["decision"]]
    lines = [
        "---",
        *(
            f"{key}: {json.dumps(value, ensure_ascii=False)}"
            for key, value in (head | tags).items()
        ),
        f"---\n\n# {name or kind}\n",
        *stamps,
        *("## Decision\n", *markdown_of([Facts(tuple(decided))])),
        "\nWhat is said of held-out people is exact: the guarantee does not cover those people.",
        *("\n## Model\n", *markdown_of([Facts.of(_model(estimator, page["method"]))])),
        *("\n## Privacy\n", *_privacy(statement)),
        *("\n## Fairness\n", *([] if said is None else markdown_of(said.parts()))),
        *([] if kept is None else ["\n### Certificate\n", *markdown_of(kept.parts())]),
    ]
    return "\n".join(lines) + "\n"


def _read(report: Any) -> Mapping[str, Any]:
    """The content of a report's JSON."""
    if isinstance(report, Report):
        return report.to_dict()
    got, fix = type(report).__name__, "Pass the path of report.json."
    need(isinstance(report, str | os.PathLike), "a path", of="report", got=got, fix=fix)
    raw = read_bytes(Path(report), what="a report", most=64 * MIB, remedy="Pass report.json.")
    content = REPORT.node(raw).mapping()
    if content.get("format") != FORMAT or not {"statement", "decision", "method"} <= {*content}:
        raise REPORT.refusal(f"an object whose 'format' is {FORMAT!r}", content.get("format"))
    return content


def _model(estimator: Any, method: str | None) -> Iterator[tuple[str, str]]:
    """What it reads, and what it says."""
    names, cells = getattr(estimator, "feature_names_in_", ()), getattr(estimator, "cells_", None)
    yield "Method", method or type(estimator).__name__
    if hasattr(estimator, "classes_"):
        yield "Classes", ", ".join(map(str, estimator.classes_))
    width = f"{getattr(estimator, 'n_features_in_', 0)} without names"
    yield "Columns", ", ".join(map(str, names)) or width
    for column, values in () if cells is None else zip(cells.names, cells.columns, strict=True):
        yield "Groups", f"{column} ({', '.join(map(str, values))})"
    reads = getattr(getattr(estimator, "model_", None), "reads_groups", False)
    yield "Group at prediction", "read, the model is group-aware" if reads else "not read"


def _privacy(statement: Any) -> Iterator[str]:
    """The facts of the statement, and whom it protects from what."""
    facts = [one for part in statement.parts() if isinstance(part, Facts) for one in part.facts]
    yield from markdown_of([Facts(tuple(one for one in facts if one.label not in LEFT_OUT))])
    promise = statement.promise
    whose = "one row" if promise.unit is None else str(promise.unit)
    whose = whose if promise.protects == "records" else f"the sensitive columns of {whose}"
    spent = f"({at_most(statement.epsilon, promise.epsilon)}, {statement.delta:g})"
    kept = f"The guarantee is {spent}-differential privacy for {marked(whose)}, and nothing else."
    yield f"- {kept if statement.is_private else 'Nothing is guaranteed to people of the table.'}"
    for one in facts:
        if one.label == "Not covered":
            yield f"- Not covered: {marked(one.words)}"
    yield "\n`fairveil verify statement.json`, which is beside the model, computes epsilon again."
