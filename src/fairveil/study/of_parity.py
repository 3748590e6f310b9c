"""Frontiers of `ParityPostProcessor`: offsets for every epsilon, gap and seed after one base,
fitted one by one.

The grid and its price are known before the first question: after a public base a fit's events hang
on epsilon and on the number of rounds alone.

Guarantees (tests/study/test_study_frontier_parity.py):
1. Each model is the estimator's own fit with that `random_state`, and its statement names the price
   of all of them.
2. Nothing is asked where the ledger has no room for all.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.events import Event
from ..core.promise import Promise
from ..errors import ConstraintNotMet, InputError
from ..estimators import ParityPostProcessor
from ..estimators.fitting import promises
from ..estimators.fitting.recorded import require_room
from ..fairness import DemographicParity
from ..learning.descent import Progress
from ..statement.document import PrivacyStatement
from .families import Family
from .held_out import histogram_of
from .result_contents import Key
from .runs import Run
from .together import defined, held_out_words, measured, promise_of_all, statement_of_all, tuning_of

Found = tuple[tuple[Run, ...], PrivacyStatement, int | None, dict[Key, Any]]


def of_parity(
    template: ParityPostProcessor,
    rows: tuple[Any, Any, Any],
    epsilons: Sequence[float],
    seeds: Sequence[int | None],
    family: Family,
    test: Any,
    tick: Progress | None,
) -> Found:
    """All runs, one statement of all, how many rows were held out, and the models."""
    _require(template, family)
    keys = [
        (e, gap, seed)
        for e in epsilons
        for gap in family.bounds
        for seed in (seeds if math.isfinite(e) else seeds[:1])
    ]
    models = {
        key: _with(template, epsilon=key[0], max_gap=key[1], random_state=key[2]) for key in keys
    }
    planned = [_planned(one, rows) for one in models.values()]
    events = [event for _, event in planned]
    whole = promise_of_all([promise for promise, _ in planned], events)
    ledger = promises.ledger_of(template, planned[0][0])
    if ledger is not None:
        require_room(ledger, events, planned[0][0], template._purpose)
    held = None if test is None else len(np.asarray(test[1]))
    tuning, beside = tuning_of(keys, whole), () if held is None else (held_out_words(held),)
    runs = []
    for done, (key, one) in enumerate(models.items(), 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConstraintNotMet)  # said once of all
            one.fit(rows[0], rows[1], sensitive_features=rows[2])
        stated = one.privacy_
        one.privacy_ = dataclasses.replace(
            stated, tuning=tuning, not_covered=(*stated.not_covered, *beside)
        )
        runs.append(_run(key, one, family, test))
        if tick is not None:
            tick(done, len(models))
    return (
        tuple(runs),
        statement_of_all([one.privacy_ for one in models.values()], events, whole),
        held,
        models,
    )


def _require(template: ParityPostProcessor, family: Family) -> None:
    parity = all(
        type(notion) is DemographicParity for notions in family.notions for notion in notions
    )
    if not parity or None in family.bounds:
        remedy = "Leave constraint=DemographicParity, and give every gap as a number."
        got = family.name if not parity else "a gap of None"
        raise InputError.expected(
            "gaps of demographic parity", of="constraint", got=got, remedy=remedy
        )
    if not template.public_base or template.estimator is None:
        remedy = "Fit the base to other rows, and pass ParityPostProcessor(base, public_base=True)."
        raise InputError.expected(
            "a fitted base that is public", of="estimator", got="another", remedy=remedy
        )


def _planned(one: ParityPostProcessor, rows: tuple[Any, Any, Any]) -> tuple[Promise, Event]:
    """What its fit keeps, and what it will ask: rows are read for their shape alone."""
    promise, wishes = one._told()
    asked = one._asked(*rows, None, wishes)
    return promise, one._plan_of(promise, (), asked.training).event


def _with(template: ParityPostProcessor, **parameters: Any) -> ParityPostProcessor:
    return ParityPostProcessor(**{**template.get_params(deep=False), **parameters})


def _run(key: Key, one: ParityPostProcessor, family: Family, test: Any) -> Run:
    report, gap = one.constraint_report_, key[1]
    noise = max((line.noise for line in report.lines), default=0.0)
    run = Run(
        key[0], gap, key[2], defined(one.gap_), noise, report.met, report.reason, report.rounds
    )
    if test is None:
        return run
    judge = family.judge(gap, one.cells_, tuple(one.classes_.tolist()))
    return measured(run, judge, histogram_of(one, *test))
