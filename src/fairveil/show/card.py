"""A model card for the Hugging Face hub: metadata in YAML, then what is released of a fit.

What nobody stated is left out: a license, a data set's name, intended uses.

Guarantees (tests/show/test_show_card.py):
1. Every number on a card stands in the statement, the report or the certificate, rounded as those
   round it.
2. A model that is not private, or whose noise was seeded, says so in the first paragraph.
3. A constraint's verdict is the report's own: a card says "met" only where the report does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .._json import Document
from .._reading import MIB, read_bytes
from ..errors import InputError
from .numbers import STAMP_WORDS, at_most, ends, with_unit
from .parts import Facts, Note, Table, template, told
from .report import FORMAT, Report

PATTERNS = {
    "name": re.compile(r"[A-Za-z0-9][\w.\-/ ]{0,95}"),
    "license": re.compile(r"[a-z0-9][a-z0-9.\-]{0,63}"),
    "dataset": re.compile(r"[A-Za-z0-9][\w.\-/ ]{0,95}"),
}
REPORT = Document("report", "Take the report.json that `fairveil fit` wrote.")
LEFT_OUT = ("Mechanisms", "Bounds", "Taken as public", "Versions", "Not covered")


def model_card(
    estimator: Any,
    *,
    certificate: Any = None,
    report: Any = None,
    name: str | None = None,
    license: str | None = None,
    dataset: str | None = None,
) -> str:
    """Write a model card as the text of a README.md.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of this library.
    certificate : Certificate, default=None
        Of this model. None: the fit's own, if it has one.
    report : Report or path, default=None
        Its report, or the JSON file of one.
    name : str, default=None
        The model's name; without it the card is named after the method.
    license : str, default=None
        An identifier of the hub, for example "apache-2.0". Left out unless given.
    dataset : str, default=None
        The name of the data set. Without it the metadata have no `model-index`, which asks for one.

    Returns
    -------
    str
        The card.
    """
    statement = getattr(estimator, "privacy_", None)
    if statement is None or not hasattr(statement, "stamps"):
        remedy, got = "Pass a fitted estimator, or fairveil.load(folder).", type(estimator).__name__
        raise InputError.expected("a fitted estimator", of="model", got=got, remedy=remedy)
    wrong = [one for one in statement.check() if one.grave]
    if wrong:
        expected, remedy = "a statement that agrees with itself", "Look at fairveil verify."
        raise InputError.expected(expected, of="statement", got=str(wrong[0]), remedy=remedy)
    given: dict[str, object] = {"name": name, "license": license, "dataset": dataset}
    for of, value in given.items():
        if value is not None and not (isinstance(value, str) and PATTERNS[of].fullmatch(value)):
            remedy = f"Leave {of} out, or pass such a one."
            expected = f"a {of} of letters, digits, dots and dashes"
            raise InputError.expected(expected, of=of, got=value, remedy=remedy)
    page = _read(report)
    if page.get("statement", statement.to_dict()) != statement.to_dict():
        remedy = "Pass the report that was written with this model, or none."
        got = "another statement"
        raise InputError.expected("the report of this model", of="report", got=got, remedy=remedy)
    kept = getattr(estimator, "certificate_", None) if certificate is None else certificate
    said = getattr(estimator, "constraint_report_", None) or getattr(estimator, "gap_report_", None)
    cells, promise = getattr(estimator, "cells_", None), statement.promise
    whose = "one row" if promise.unit is None else str(promise.unit)
    title = name or type(estimator).__name__
    text: str = template("card.md", line=line).render(
        head=_metadata(estimator, page, title, license, dataset),
        title=title,
        statement=statement,
        stamps=STAMP_WORDS,
        page=page,
        kind=type(estimator).__name__,
        classes=list(getattr(estimator, "classes_", ())),
        names=list(getattr(estimator, "feature_names_in_", ())),
        width=getattr(estimator, "n_features_in_", 0),
        cells=[] if cells is None else list(zip(cells.names, cells.columns, strict=True)),
        reads_groups=getattr(getattr(estimator, "model_", None), "reads_groups", False),
        privacy={
            one.label: one.words
            for part in statement.parts()
            if isinstance(part, Facts)
            for one in part.facts
        },
        left_out=LEFT_OUT,
        fairness=[] if said is None else list(_markdown(said.parts())),
        certificate=[] if kept is None else list(_markdown(kept.parts())),
        evaluation=list(_evaluation(page)),
        spent=at_most(statement.epsilon, promise.epsilon),
        whose=whose if promise.protects == "records" else f"the sensitive columns of {whose}",
    )
    return text


def _read(report: Any) -> Mapping[str, Any]:
    """The content of a report's JSON."""
    if report is None or isinstance(report, Report):
        return {"method": None} if report is None else report.to_dict()
    if not isinstance(report, str | os.PathLike):
        remedy, got = "Pass the path of report.json.", type(report).__name__
        raise InputError.expected("a path", of="report", got=got, remedy=remedy)
    raw = read_bytes(Path(report), what="a report", most=64 * MIB, remedy="Pass report.json.")
    content = REPORT.node(raw).mapping()
    if content.get("format") != FORMAT:
        raise REPORT.refusal(f"an object whose 'format' is {FORMAT!r}", content.get("format"))
    return content


def _metadata(
    estimator: Any, page: Mapping[str, Any], name: str, license: str | None, dataset: str | None
) -> dict[str, Any]:
    """The head of a card; JSON is YAML, a line a field."""
    kind = "classification" if hasattr(estimator, "classes_") else "regression"
    out: dict[str, Any] = {} if license is None else {"license": license}
    tags = ["differential-privacy", "fairness", f"tabular-{kind}"]
    out |= {"library_name": "fairveil", "tags": tags}
    metrics = list(_metrics(estimator.privacy_, page))
    if metrics:
        out["metrics"] = list(dict.fromkeys(one["type"] for one in metrics))
    if dataset is not None and metrics:
        about = {"type": dataset, "name": dataset}
        result = {"task": {"type": tags[2]}, "dataset": about, "metrics": metrics}
        out["model-index"] = [{"name": name, "results": [result]}]
    return out


def _metrics(statement: Any, page: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for table in page.get("tables", ())[:1]:
        value, words = table["overall"]["rates"]["accuracy"]["value"], f"Accuracy of {table['of']}"
        if value is not None:
            yield {"type": "accuracy", "value": value, "name": words}
    for one in page.get("gaps", ()):
        if one["held_out"] is not None:
            words = f"{one['name']} of held-out people"
            yield {"type": "fairness-gap", "value": one["held_out"], "name": words}
    if statement.is_private:
        words = f"Epsilon at delta {statement.delta:g}"
        yield {"type": "epsilon", "value": statement.epsilon, "name": words}


def _evaluation(page: Mapping[str, Any]) -> Iterator[str]:
    """Errors and gaps of held-out people."""
    for table in page.get("tables", ())[:1]:
        yield from ("| group | people | error |", "|---|---|---|")
        for group in (table["overall"], *table["groups"]):
            error, name = group["rates"]["error"], group["group"]
            shown = "undefined"
            if error["value"] is not None:
                low_high = ends(error["low"], error["high"], "percent")
                shown = f"{with_unit(error['value'], 'percent')} ({low_high})"
            who = "everyone" if name is None else line(name).replace("|", "/")
            yield f"| {who} | {group['rows']:,} | {shown} |"
        yield ""
    for one in page.get("gaps", ()):
        if one["held_out"] is not None:
            shown = with_unit(one["held_out"], one["unit"])
            if one["held_out_low"] is not None:
                shown += f" ({ends(one['held_out_low'], one['held_out_high'], one['unit'])})"
            verdict = f": {one['held_out_verdict']}" if one["held_out_verdict"] else ""
            yield f"- {line(one['name'])} of held-out people: {shown}{verdict}"


def _markdown(parts: Any) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Note):
            yield f"- {line(part.words)}"
        elif isinstance(part, Facts):
            yield from (f"- {one.label}: {line(told(one))}" for one in part.facts)
        elif isinstance(part, Table) and part.columns[0].values:
            heads = tuple(column.head for column in part.columns)
            yield from ("", f"{part.title}:" if part.title else "", "")
            for row in (heads, ("---",) * len(heads), *part.lines()):
                yield f"| {' | '.join(line(cell).replace('|', '/') for cell in row)} |"
            yield ""


def line(value: object) -> str:
    """A value on one line, which cannot begin markup of its own."""
    return re.sub(r"([<>*_`\[\]])", r"\\\1", " ".join(str(value).split()))
