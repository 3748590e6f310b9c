"""`fairveil demo`: the main job on made-up people: one certified model at epsilon 1 and, below it, a
sweep with its own price."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options

if TYPE_CHECKING:
    from ..estimators import RateConstrainedClassifier
    from ..models.folders import Staged
    from ..show.frontier import Floor, Series
    from ..show.report import Report
    from ..study import Frontier
    from .samples import CodedSample, Truth

GAPS = (0.15, 0.1, 0.05, 0.02)
EPSILONS = (0.5, 1.0, 3.0)
CHOSEN = (1.0, 0.05)
"""The certified model, on top of the report: epsilon and gap fixed here, before any data are seen."""
CONFIDENCE = 0.95
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
    from ..fairness import DemographicParity
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
        f"Training one certified model, then {len(EPSILONS) * len(GAPS) * (1 if seed is None else SEEDS)}"
        f" models with record-level privacy ..."
    )
    # How many people are made up is public.
    public: dict[str, Any] = {"delta": DELTA, "public_rows": round(ROWS * (1 - SHARE))}
    asked = DemographicParity(CHOSEN[1], confidence=CONFIDENCE)
    template = RateConstrainedClassifier(**public)
    sweep: dict[str, Any] = {"gaps": GAPS, "test": held.fit_arguments, "estimator": template}
    X, y, sensitive = train.fit_arguments
    with options.warnings_as_notes() as notes:
        with waiting("Fitting the certified model"):
            clf = RateConstrainedClassifier(asked, epsilon=CHOSEN[0], random_state=seed, **public)
            clf.fit(X, y, sensitive_features=sensitive)
        with waiting("Fitting the sweep"):
            seeds = None if seed is None else range(seed, seed + SEEDS)
            found = frontier(X, y, sensitive, epsilons=EPSILONS, seeds=seeds, **sweep)
            # Without noise a seed changes nothing.
            free = frontier(X, y, sensitive, epsilons=(math.inf,), seeds=(0,), **sweep)
    assert isinstance(held, CodedSample)
    report = _report(found, free.series, clf, held, source, notes)
    known = tuple(facts(report))
    with staged(output, force=True, mark=MARK, of="--output") as made:
        _write(made, found, clf, report)
    if verbose:
        typer.echo(f"{clf.privacy_.summary()}\n")
    print_facts(
        (
            Fact(
                "shown",
                f"the model for epsilon {CHOSEN[0]:g} and a gap of {100 * CHOSEN[1]:g} points, "
                f"certified; chosen before any row was seen",
            ),
            *known,
            Fact("the sweep", found.summary),
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
    without_privacy: tuple[Series, ...],
    clf: RateConstrainedClassifier,
    held: CodedSample,
    source: str,
    notes: list[str],
) -> Report:
    from ..fairness import DemographicParity
    from ..show.parts import Note, listed
    from ..show.report import People, Report
    from .deciding import Shown
    from .measured import measure, table_of
    from .required import notion_figure

    truth, prediction = held.truth(), Shown(clf, held.features, None).judged()
    assert clf.cells_ is not None
    classes = clf.classes_.tolist()
    notion = DemographicParity(CHOSEN[1], confidence=CONFIDENCE)
    value = measure(notion, truth, prediction, groups=clf.cells_, classes=classes)
    one = (
        "one model with secure noise"
        if found.privacy.noise == "secure"
        else f"mean of {SEEDS} models with seeded noise"
    )
    name = source.partition(",")[0].capitalize()
    shown = replace(found, published=(*without_privacy, *found.published)).shown(
        dataset=name,
        floor=_floor(found, truth, held),
        notes=(f"Each point of Fairveil at an epsilon: {one}.",),
    )
    price = Note(f"The price of this sweep, apart from the model above: {found.summary}")
    return Report(
        "A fair and private model of made-up people",
        subject=f"Data: {source}, a quarter of them held out. Privacy is record-level.",
        method="RaCO-DP, a linear model, certified",
        statement=clf.privacy_,
        statement_file="statement.json",
        required=tuple(notion_figure(clf, notion, value)),
        people=(People(table_of(truth, prediction, groups=clf.cells_, classes=classes)),),
        baselines=clf.baselines_,
        certificate=clf.certificate_,
        sections=(("The sweep: what fairness and privacy cost", listed(price, *shown)),),
        not_covered=(
            f"The models of the sweep: {found.price} (all_models.json), which is beside the statement "
            f"of the model above.",
            "The curve that is fair, not private: fitted without noise, to compare with.",
        ),
        verify=("fairveil verify all_models.json",),
        notes=(
            f"On top: the model for epsilon {CHOSEN[0]:g} and a gap of at most {100 * CHOSEN[1]:g} "
            f"points, with {100 * CONFIDENCE:g}% confidence; chosen before any data were seen.",
            *notes,
        ),
    )


def _floor(found: Frontier, truth: Truth, held: CodedSample) -> Floor:
    """The gap that decisions independent of the group show on so few rows: E|p_1 - p_2| = sqrt(2/pi
    p (1-p) (1/n_1 + 1/n_2)).

    p is the share of positive decisions of the fairest models; n_1 and n_2 are the sizes of the
    groups.
    """
    import numpy as np

    from ..show.frontier import Floor
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

    made.free()
    save(clf, made.folder)
    (made.folder / MARK).write_text(found.to_json(), encoding="utf-8")
    found.privacy.write(made.folder / "all_models.json")
    report.write(made.folder / "report.html")
    made.move()
