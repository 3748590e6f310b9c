"""`fairveil demo`: the main job on made-up people: one model at epsilon 1 with its certificate and,
below it, a sweep with its own price."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import click
import numpy as np

from .. import data
from .._waiting import waiting
from ..estimators import FairClassifier, save
from ..fairness import DemographicParity
from ..show.frontier import Floor
from ..show.parts import Note, listed
from ..show.report import People, Report
from ..study import Frontier, frontier
from .files import print_facts, require_folder, staged, warnings_as_notes, written
from .frame import Ask
from .models import Shown
from .results import facts, figures_of, table_of
from .rows import Sample

GAPS = (0.15, 0.1, 0.05, 0.02)
EPSILONS = (0.5, 1.0, 3.0)
CHOSEN = (1.0, 0.05)
"""The certified model, on top of the page: epsilon and gap fixed here, before any data are seen."""
CONFIDENCE = 0.95
SHARE = 0.25
DELTA = 5e-10
PEOPLE = 30_000
MARK = "frontier.json"


def show(ask: Ask) -> None:
    """Fit, measure and write; see `modelling.demo`."""
    require_folder(ask.out, MARK, force=True)
    started = time.monotonic()
    people = data.synthetic.GroupedClasses()
    rows = Sample(data.encode(people.draw(PEOPLE, 0), people.schema()))
    train, held = rows.split(SHARE, ask.seed)
    known: Any = {"delta": DELTA, "schema": people.schema(round(PEOPLE * (1 - SHARE)))}
    asked = DemographicParity(CHOSEN[1], confidence=CONFIDENCE)
    click.echo(f"Data: {PEOPLE:,} people who do not exist")
    click.echo(f"One model to be certified, then {len(EPSILONS) * len(GAPS)} private ones ...")
    template = FairClassifier(**known)
    sweep: Any = {"gaps": GAPS, "test": held.fit_arguments, "estimator": template}
    X = train.fit_arguments[0]
    with warnings_as_notes() as notes, waiting("Fitting the models"):
        clf = FairClassifier(asked, epsilon=CHOSEN[0], random_state=ask.seed, **known)
        clf.fit(X)
        seeds = None if ask.seed is None else (ask.seed,)
        found = frontier(X, epsilons=EPSILONS, seeds=seeds, **sweep)
        free = frontier(X, epsilons=(math.inf,), seeds=(0,), **sweep)  # without noise: no seed
    report = _report(found, free, clf, held, notes)
    known_facts = tuple(facts(report))
    with staged(ask.out, MARK, force=True) as made:
        made.free()
        save(clf, made.folder)
        (made.folder / MARK).write_text(found.to_json(), encoding="utf-8")
        found.privacy.write(made.folder / "all_models.json")
        report.write(made.folder / "report.html")
        made.move()
    files = "report.html, a model, its statement, all_models.json"
    print_facts(*known_facts, ("the sweep", found.summary))
    print_facts(*written(ask.out, files, clf.privacy_, None))
    seconds = time.monotonic() - started
    print_facts(("done", f"in {seconds:.0f} s: open {ask.out / 'report.html'}"))


def _report(found: Frontier, free: Frontier, clf: Any, held: Sample, notes: list[str]) -> Report:
    truth, prediction = held.truth(), Shown(clf, held.features).judged()
    classes, groups = clf.classes_.tolist(), clf.cells_
    shown = replace(found, published=free.series).shown(
        dataset="Made-up people", floor=_floor(found, held)
    )
    price = Note(f"The price of this sweep, apart from the model above: {found.summary}")
    notion = DemographicParity(CHOSEN[1], confidence=CONFIDENCE)
    return Report(
        "A fair and private model of made-up people",
        subject="A linear model, a quarter of the people held out. Privacy is record-level.",
        method="RaCO-DP, a linear model, certified",
        statement=clf.privacy_,
        statement_file="statement.json",
        required=tuple(figures_of(clf, [notion], truth, prediction)),
        people=(People(table_of(truth, prediction, groups=groups, classes=classes)),),
        baselines=clf.baselines_,
        certificate=clf.certificate_,
        sections=(("The sweep: what fairness and privacy cost", listed(price, *shown)),),
        not_covered=(
            f"The models of the sweep: {found.price} (all_models.json), which is beside the "
            f"statement of the model above.",
            "The curve that is fair, not private: fitted without noise, to compare with.",
        ),
        verify=("fairveil verify all_models.json",),
        notes=("Bound and budget on top were chosen before any data were seen.", *notes),
    )


def _floor(found: Frontier, held: Sample) -> Floor:
    """The gap that decisions independent of the group show on so few rows: E|p_1 - p_2| = sqrt(2/pi
    p (1-p) (1/n_1 + 1/n_2)), p the share of positive decisions of the fairest models."""
    fairest = [clf for (_, target, _), clf in found.models.items() if target == min(GAPS)]
    decided = [Shown(clf, held.features).judged() for clf in fairest]
    p = float(
        np.mean(
            [
                one[:, 1] if one.ndim == 2 else one == clf.classes_[1]
                for clf, one in zip(fairest, decided, strict=True)
            ]
        )
    )
    (column,) = held.truth().groups.values()
    sizes = sorted(np.unique(column, return_counts=True)[1].tolist())[:2]
    gap = math.sqrt(2 / math.pi * p * (1 - p) * sum(1 / size for size in sizes))
    errors = [line["error"] for line in found.table()]
    return Floor(((min(errors), gap), (max(errors), gap)))
