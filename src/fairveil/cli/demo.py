"""`fairveil demo`: the main job on people who do not exist: a frontier, and one model in full."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options

if TYPE_CHECKING:
    from ..estimators import RateConstrainedClassifier
    from ..figures import Floor
    from ..models.folders import Staged
    from ..report import Report
    from ..study import Frontier
    from .samples import CodedSample, Truth

GAPS = (0.15, 0.1, 0.05, 0.02)
EPSILONS = (0.5, 1.0, 3.0)
CHOSEN = (1.0, 0.05)
"""The model that the report shows in full: fixed here, before any data are seen."""
SEEDS = 5
SHARE = 0.25
DELTA = 5e-10
ROWS = 30_000
MARK = "frontier.json"


def demo(
    output: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="write this folder; what an earlier demo wrote there is replaced"
        ),
    ] = Path("demo"),
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="repeat the noise, five models a point, flagged INSECURE",
            show_default="secure noise",
        ),
    ] = None,
    verbose: options.Verbose = False,
) -> None:
    """Fit models of made-up people that are fair to groups and private to everybody; write a report
    to look at."""
    from .._waiting import waiting
    from ..estimators import RateConstrainedClassifier
    from ..report.words import verdict
    from ..study import frontier
    from .folders import require_free, staged
    from .printing import Fact, print_facts
    from .samples import CodedSample
    from .summary import facts
    from .written import written

    require_free(output, force=True, mark=MARK, of="--output")
    started = time.monotonic()
    rows, source = _rows()
    train, held = rows.split(SHARE, seed)
    typer.echo(f"Data: {source}")
    typer.echo(
        f"Training {len(EPSILONS) * len(GAPS) * (1 if seed is None else SEEDS)} models with "
        f"record-level privacy ..."
    )
    with options.warnings_as_notes() as notes, waiting("Fitting the models"):
        found = frontier(
            *train.fit_arguments,
            gaps=GAPS,
            epsilons=EPSILONS,
            seeds=None if seed is None else range(seed, seed + SEEDS),
            test=held.fit_arguments,
            # How many people are made up is public.
            estimator=RateConstrainedClassifier(delta=DELTA, public_rows=round(ROWS * (1 - SHARE))),
        )
    clf = found.models[(*CHOSEN, seed)]
    assert isinstance(held, CodedSample)
    report = _report(found, clf, held, source, notes)
    known = tuple(facts(report))
    with staged(output, force=True, mark=MARK, of="--output") as made:
        _write(made, found, clf, report)
    if verbose:
        typer.echo(f"{verdict(report)}\n{found}\n")
    print_facts(
        (
            Fact(
                "shown",
                f"the model for epsilon {CHOSEN[0]:g} and a gap of {100 * CHOSEN[1]:g} points, "
                f"chosen before any row was seen",
            ),
            *known,
            Fact("all models", str(found)),
            *written(
                output, "report.html, a model, its statement, all_models.json", clf.privacy_, None
            ),
            Fact("done", f"in {time.monotonic() - started:.0f} s: open {output / 'report.html'}"),
        )
    )


def _rows() -> tuple[CodedSample, str]:
    """People who do not exist, and words about them."""
    from .. import data
    from .samples import CodedSample

    people = data.synthetic.GroupedClasses()
    table = data.encode(people.draw(ROWS, 0), people.schema())
    return CodedSample(table), f"synthetic, {ROWS:,} rows"


def _report(
    found: Frontier,
    clf: RateConstrainedClassifier,
    held: CodedSample,
    source: str,
    notes: list[str],
) -> Report:
    from ..fairness import DemographicParity
    from ..report import GroupSection, Report
    from .deciding import Shown
    from .measured import measure, table_of
    from .required import notion_figure

    epsilon, gap = CHOSEN
    truth, prediction = held.truth(), Shown(clf, held.features, None).judged()
    assert clf.cells_ is not None
    classes = clf.classes_.tolist()
    notion = DemographicParity(gap)
    value = measure(notion, truth, prediction, groups=clf.cells_, classes=classes)
    one = (
        "one model with secure noise"
        if found.privacy.noise == "secure"
        else f"mean of {SEEDS} models with seeded noise"
    )
    name = source.partition(",")[0].capitalize()
    figure = found.figure(
        dataset=name,
        floor=_floor(found, truth, held),
        notes=(f"Each point: {one}.",),
        layout="by-epsilon",
    )
    return Report(
        f"Fair and private models: {name}",
        subject=(
            f"Linear models of people who do not exist: {source}, a quarter of them held out. "
            f"Privacy is record-level."
        ),
        statement=clf.privacy_,
        all_models=found.privacy,
        statement_file="statement.json",
        gaps=tuple(notion_figure(clf, notion, value)),
        tables=(GroupSection(table_of(truth, prediction, groups=clf.cells_, classes=classes)),),
        frontiers=(figure,),
        not_covered=(_price_of_all(found, clf),),
        verify=("fairveil verify all_models.json",),
        notes=(
            f"Shown in full: the model for epsilon {epsilon:g} and a gap of at most {100 * gap:g} "
            f"points, "
            "chosen before any data were seen.",
            *notes,
        ),
    )


def _price_of_all(found: Frontier, clf: RateConstrainedClassifier) -> str:
    """What looking at all models costs, beside the one that is shown."""
    from ..privacy.shown import at_most
    from ..report.words import delta_words

    delta = delta_words(found.privacy.delta)
    alone, together = (
        at_most(clf.privacy_.epsilon, clf.privacy_.promise.epsilon),
        at_most(found.epsilon),
    )
    return (
        f"The model shown in full costs epsilon {alone} for whoever has not seen the others only: "
        f"looking "
        f"at all {len(found.runs)} models of this page costs epsilon {together} at delta {delta} "
        f"(all_models.json)."
    )


def _floor(found: Frontier, truth: Truth, held: CodedSample) -> Floor:
    """The gap that decisions independent of the group show on so few rows: E|p_1 - p_2| = sqrt(2/pi
    p (1-p) (1/n_1 + 1/n_2)).

    p is the share of positive decisions of the fairest models; n_1 and n_2 are the sizes of the
    groups.
    """
    import numpy as np

    from ..figures import Floor
    from .deciding import Shown

    fairest = [clf for (_, target, _), clf in found.models.items() if target == min(GAPS)]
    judged = [Shown(clf, held.features, None).judged() for clf in fairest]
    shares = [
        one[:, 1] if one.ndim == 2 else one == clf.classes_[1]
        for clf, one in zip(fairest, judged, strict=True)
    ]
    p = float(np.mean(shares))
    (column,) = truth.groups.values()
    sizes = sorted(np.unique(column, return_counts=True)[1].tolist())[:2]
    gap = math.sqrt(2 / math.pi * p * (1 - p) * sum(1 / size for size in sizes))
    errors = [line["error"] for line in found.table()]
    return Floor(((min(errors), gap), (max(errors), gap)))


def _write(made: Staged, found: Frontier, clf: RateConstrainedClassifier, report: Report) -> None:
    from ..estimators import save
    from ..report import write

    made.free()
    save(clf, made.folder)
    (made.folder / MARK).write_text(found.to_json(), encoding="utf-8")
    found.privacy.write(made.folder / "all_models.json")
    write(made.folder / "report.html", report)
    made.move()
