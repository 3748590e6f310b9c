"""The post-processors, as they are written and read back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._json import Node
from ...learning.postprocessing import counting as postprocess
from ...learning.postprocessing import mixing_bounds
from ...models import Model, PostProcessedModel, ShiftedModel
from ..post_processing.odds_post_processor import OddsPostProcessor
from ..post_processing.parity_post_processor import ParityPostProcessor
from ..reports.constraint_report import ConstraintLine, ConstraintReport
from ..saving import values as files_json
from ..wrapped import answers as base_answers
from .kind import broken


def post_content(estimator: OddsPostProcessor) -> dict[str, Any]:
    return {
        **_after_a_base(estimator),
        "predict_method": estimator.predict_method_,
        "released": None
        if estimator.released_ is None
        else postprocess.to_dict(estimator.released_),
        "guarantee": None if estimator.guarantee_ is None else estimator.guarantee_.to_dict(),
    }


def parity_content(estimator: ParityPostProcessor) -> dict[str, Any]:
    found = {
        "rates": estimator.rates_.tolist(),
        "noise": estimator.noise_,
        "moved": estimator.moved_.tolist(),
    }
    return {**_after_a_base(estimator), "found": found}


def _after_a_base(estimator: OddsPostProcessor | ParityPostProcessor) -> dict[str, Any]:
    report = estimator.constraint_report_
    return {
        "base": type(estimator.estimator_).__name__,
        "sensitive": [list(estimator.sensitive_names_), estimator.groups_named_],
        "report": {"reason": report.reason, "lines": [_line(line) for line in report.lines]},
    }


def _line(line: ConstraintLine) -> list[Any]:
    numbers = files_json.numbers([line.bound, line.value, line.noise, line.pressure])
    return [line.target, *numbers, {"sampling": files_json.numbers(line.sampling)[0]}]


def _read_line(line: Node, lines: int) -> ConstraintLine:
    """Earlier versions wrote no sixth part, or one that follows from the others."""
    target, *numbers = line.list(6 if len(line.list()) == 6 else 5)
    bound, value, noise, pressure = (one.number(words=True) for one in numbers[:4])
    told = len(numbers) == 5 and isinstance(numbers[4].value, dict)
    drawn = numbers[4].only(("sampling",))["sampling"].number(words=True) if told else math.nan
    return ConstraintLine(target.text(), bound, value, noise, pressure, lines, sampling=drawn)


def revive_post(
    estimator: OddsPostProcessor, content: Node, model: Model | None, base: object
) -> None:
    if not isinstance(model, PostProcessedModel):
        raise broken("a post-processed model", type(model).__name__)
    released, guarantee = content["released"], content["guarantee"]
    _revive_shared(estimator, content, 0)
    estimator.released_ = (
        None if released.is_null else postprocess.from_dict(files_json.released_fields(released))
    )
    estimator.guarantee_ = (
        None
        if guarantee.is_null
        else mixing_bounds.MixingGuarantee.from_dict(
            files_json.guarantee_fields(
                guarantee, ("bounds", "values", "noise", "value_bounds"), unknown=True
            )
        )
    )
    asked = content["predict_method"].text()
    if asked not in ((base_answers.DECIDED,) if model.edges is None else base_answers.SCORES):
        content["predict_method"].refuse("how the base of this model is asked", asked)
    estimator._set_base(base, model, asked)


def revive_parity(
    estimator: ParityPostProcessor, content: Node, model: Model | None, base: object
) -> None:
    if not isinstance(model, ShiftedModel):
        raise broken("a shifted model", type(model).__name__)
    found = content["found"].only(("rates", "noise", "moved"))
    shape, lines = model.offsets.shape, found["rates"].list(len(model.offsets))
    rates = [[number.number() for number in line.list(shape[1])] for line in lines]
    estimator.rates_, estimator.noise_ = np.array(rates, np.float64), found["noise"].number()
    estimator.moved_ = np.array([one.truth() for one in found["moved"].list(shape[0])], np.bool_)
    _revive_shared(estimator, content, int(estimator._solver.rounds))
    estimator._set_model(base, model)


def _revive_shared(
    estimator: OddsPostProcessor | ParityPostProcessor, content: Node, rounds: int
) -> None:
    report, (names, in_X) = (
        content["report"].only(("reason", "lines")),
        content["sensitive"].list(2),
    )
    written = report["lines"].list()
    lines = tuple(_read_line(line, len(written)) for line in written)
    estimator.constraint_report_ = ConstraintReport(lines, rounds, report["reason"].text())
    estimator.sensitive_names_, estimator.groups_named_ = names.texts(), in_X.truth()
