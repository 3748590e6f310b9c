"""A Hugging Face model card: metadata in YAML as the hub's specification of it asks, then sections
made of released facts.

What nobody stated is left out: a license, a data set's name, intended uses. Numbers are those of
the statement, the constraint report, the certificate and the report's held-out people; each says of
whom it is and whether the guarantee covers it.

Guarantees (tests/cards/test_model_card.py):
1. Every number on a card stands in the statement, the report or the certificate, rounded as those
   round it.
2. A model that is not private, or whose noise was seeded, says so in the first paragraph.
3. A constraint's verdict is the report's own: a card says "met" only where the report does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import InputError
from ..estimators.reading.fitted_parts import classes_of, names_of_features, parts_of
from ..models.model import Model
from ..privacy.shown import at_most
from ..privacy.statement.words import STAMP_WORDS
from .told import Told, told_of
from .yaml_text import yaml_text

LIBRARY = "fairveil"
TAGS = ("differential-privacy", "fairness", "tabular-classification")
REGRESSION = "tabular-regression"
NAME = re.compile(r"[A-Za-z0-9][\w.\-/ ]{0,95}")
LICENSE = re.compile(r"[a-z0-9][a-z0-9.\-]{0,63}")
EXACT = (
    "These are exact numbers of held-out people: the privacy guarantee of the fit does not cover "
    "those people."
)
WORDS = ("name", "license", "dataset")


def model_card(
    estimator: object,
    *,
    certificate: object = None,
    report: object = None,
    name: str | None = None,
    license: str | None = None,
    dataset: str | None = None,
) -> str:
    """The card as the text of a README.md.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of this library.
    certificate : Certificate or path, default=None
        Of this model.
    report : path or dict, default=None
        The JSON twin of its report.
    name : str, default=None
        The model's name; without it the card is named after the method.
    license : str, default=None
        An identifier of the hub, for example "apache-2.0". Left out unless given.
    dataset : str, default=None
        The name of the data set. Without it the metadata have no `model-index`, which asks for one.
    """
    told = told_of(estimator, certificate, report)
    _checked(name, NAME, "name", "a name of letters, digits, spaces, dots and dashes")
    _checked(license, LICENSE, "license", "an identifier such as apache-2.0")
    _checked(dataset, NAME, "dataset", "a name of letters, digits, spaces, dots and dashes")
    title = name or type(estimator).__name__
    head = yaml_text(metadata(told, title, license, dataset))
    return f"---\n{head}---\n\n# {title}\n\n" + "\n".join(_sections(told)).rstrip() + "\n"


def _checked(value: object, pattern: re.Pattern[str], of: str, expected: str) -> None:
    if value is not None and not (isinstance(value, str) and pattern.fullmatch(value)):
        raise InputError.expected(
            expected, of=of, got=value, remedy=f"Leave {of} out, or pass such a one."
        )


def metadata(told: Told, name: str, license: str | None, dataset: str | None) -> dict[str, Any]:
    """The head of a card, as plain values."""
    task = TAGS[2] if hasattr(told.estimator, "classes_") else REGRESSION
    out: dict[str, Any] = {"library_name": LIBRARY, "tags": [*TAGS[:2], task]}
    if license is not None:
        out = {"license": license, **out}
    metrics = list(_metrics(told))
    if metrics:
        out["metrics"] = list(dict.fromkeys(one["type"] for one in metrics))
    if dataset is not None and metrics:
        result = {
            "task": {"type": task},
            "dataset": {"type": dataset, "name": dataset},
            "metrics": metrics,
        }
        out["model-index"] = [{"name": name, "results": [result]}]
    return out


def _metrics(told: Told) -> Iterator[dict[str, Any]]:
    held = told.held_out
    if held is not None:
        accuracy = _number(held, "overall", "rates", "accuracy", "value")
        if accuracy is not None:
            yield {"type": "accuracy", "value": accuracy, "name": "Accuracy of held-out people"}
    for gap in (told.report or {}).get("gaps", ()):
        value = _number(gap, "held_out")
        if value is not None:
            yield {
                "type": "fairness-gap",
                "value": value,
                "name": f"{gap.get('notion')} gap of held-out people",
            }
    if told.statement.is_private:
        yield {
            "type": "epsilon",
            "value": told.statement.epsilon,
            "name": f"Epsilon at delta {told.statement.delta:g}",
        }


def _number(content: Mapping[str, Any], *path: str) -> float | None:
    here: Any = content
    for part in path:
        here = here.get(part) if isinstance(here, Mapping) else None
    return (
        float(here)
        if isinstance(here, int | float) and not isinstance(here, bool) and math.isfinite(here)
        else None
    )


# Sections


def _sections(told: Told) -> Iterator[str]:
    yield from _warnings(told)
    yield from ("## Model", "", *_model(told), "")
    yield from ("## Privacy", "", *_privacy(told), "")
    yield from ("## Fairness", "", *_fairness(told), "")
    evaluation = list(_evaluation(told))
    if evaluation:
        yield from ("## Evaluation", "", *evaluation, "")
    yield from ("## Limits", "", *_limits(told))


def _warnings(told: Told) -> Iterator[str]:
    for stamp in told.statement.stamps:
        yield f"**{STAMP_WORDS[stamp]}.**"
    if told.statement.stamps:
        yield ""


def _model(told: Told) -> Iterator[str]:
    clf = told.estimator
    method = (told.report or {}).get("method")
    yield f"- Method: {_line(method) if isinstance(method, str) else type(clf).__name__}"
    if classes := classes_of(clf):
        yield f"- Classes: {', '.join(map(_line, classes))}"
    names = [_line(one) for one in names_of_features(clf)]
    yield (
        f"- Columns: {', '.join(names)}"
        if names
        else f"- Columns: {clf.n_features_in_} without names"
    )
    parts = parts_of(clf)
    cells = parts.cells
    if cells is not None:
        listed = (
            f"{_line(name)} ({', '.join(map(_line, values))})"
            for name, values in zip(cells.names, cells.columns, strict=True)
        )
        yield f"- Groups: {'; '.join(listed)}"
    read = isinstance(parts.model, Model) and parts.model.reads_groups
    yield f"- Group at prediction: {'read, the model is group-aware' if read else 'not read'}"


def _privacy(told: Told) -> Iterator[str]:
    for heading, words in told.items.items():
        if heading not in ("Mechanisms", "Bounds", "Taken as public", "Versions"):
            yield f"- {heading}: {_line(words)}"
    yield ""
    yield (
        "`statement.json` beside the model has all of it; `fairveil verify statement.json` "
        "computes epsilon again."
    )


def _fairness(told: Told) -> Iterator[str]:
    report = told.constraints
    if report is None or not report.lines:
        yield "No constraint was required of this model."
    else:
        for one in report.required:
            yield f"- Required: {_line(one)}."
        yield (
            f"- For the people that the training rows were drawn from, at 95% confidence: "
            f"{report.verdict}."
        )
        yield f"- On the training rows: {report.training_verdict}."
        yield ""
        yield (
            "| constraint | bound | noisy value in training | noise (standard deviation) | "
            "population | training rows |"
        )
        yield "|---|---|---|---|---|---|"
        for line in report.lines:
            value = "undefined" if math.isnan(line.value) else f"{line.value:.4f}"
            cells = (
                _line(line.target),
                f"{line.bound:.4g}",
                value,
                f"{line.noise:.4f}",
                line.population_verdict,
                line.verdict,
            )
            yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
    if told.certificate is not None:
        yield ""
        yield f"Certificate: {_line(told.certificate.verdict)}."
        for one in told.certificate.assumptions:
            yield f"- Assumed: {_line(one)}."


def _evaluation(told: Told) -> Iterator[str]:
    held = told.held_out
    if held is None:
        return
    yield EXACT
    yield ""
    yield "| group | people | error | 95% interval |"
    yield "|---|---|---|---|"
    for group in (held.get("overall", {}), *held.get("groups", ())):
        error = [_number(group, "rates", "error", part) for part in ("value", "low", "high")]
        rows = _number(group, "rows")
        if rows is not None and None not in error:
            value, low, high = (f"{100 * (one or 0.0):.1f}%" for one in error)
            yield f"| {_line(group.get('name'))} | {rows:,.0f} | {value} | {low} to {high} |"
    for gap in (told.report or {}).get("gaps", ()):
        numbers = [_number(gap, part) for part in ("held_out", "held_out_low", "held_out_high")]
        if None not in numbers:
            value, low, high = (f"{100 * (one or 0.0):.1f}" for one in numbers)
            yield ""
            words = (
                f"{value} percentage points, 95% interval {low} to {high}: "
                f"{gap.get('held_out_verdict')}"
            )
            yield f"{str(gap.get('notion')).capitalize()} gap of held-out people: {words}."


def _limits(told: Told) -> Iterator[str]:
    statement = told.statement
    if statement.is_private:
        spent = at_most(statement.epsilon, statement.promise.epsilon)
        whose = "one row" if statement.promise.unit is None else str(statement.promise.unit)
        of = (
            whose
            if statement.promise.protects == "records"
            else f"the sensitive columns of {whose}"
        )
        yield (
            f"- The guarantee is ({spent}, {statement.delta:g})-differential privacy for {of}, and "
            f"for nothing else."
        )
    else:
        yield "- Nothing is guaranteed to the people in the training rows."
    yield f"- Not covered: {_line(told.items['Not covered'])}"
    yield (
        "- Verdicts are about people like those of the training rows. For others nothing was "
        "measured."
    )


def _line(value: object) -> str:
    """A value on one line, which cannot begin markup of its own."""
    text = " ".join(str(value).split())
    return re.sub(r"([<>*_`\[\]])", r"\\\1", text)
