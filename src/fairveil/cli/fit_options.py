"""Options of `fairveil fit` alone: what is required, by which method, and sentences for the
statement."""

from __future__ import annotations

from typing import Annotated

import typer

from .completing import (
    ALLOCATIONS,
    ANSWERS,
    DECISIONS,
    GAPS,
    METHODS,
    MODELS,
    MODES,
    NOTIONS,
    OBJECTIVES,
    PENALISED,
    SEARCHES,
    SHARED,
    SPENDS,
    bounded,
    out_of,
)
from .helping import (
    DATA,
    FAIRNESS,
    MODEL,
    OF_FERMI,
    OF_OBJECTIVE,
    OF_POST,
    OF_TAILORED,
    OUTPUT,
    PRIVACY,
)

Constraint = Annotated[
    list[str] | None,
    typer.Option(
        "--constraint",
        metavar="NAME:BOUND",
        help=f"require a bound: {', '.join(NOTIONS)}, as in demographic_parity:5%; repeat for more",
        rich_help_panel=FAIRNESS,
        autocompletion=bounded(*NOTIONS, "gmean", "hmean", "gini"),
    ),
]
Method = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="fit by rate-constrained, post-processing (thresholds by group), game (randomized), "
        "group-objective (G-mean and the like; randomized), fermi (a penalty) or tailored (a budget "
        "shared among groups); all are linear, and networks are fitted in Python. With --help: show "
        "its options alone",
        rich_help_panel=MODEL,
        autocompletion=out_of(*METHODS),
    ),
]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        help="fit a model that is linear in the columns, or additive: steps of each number beside "
        "it, which needs a schema's "
        "bounds to be at its best",
        rich_help_panel=MODEL,
        autocompletion=out_of(*MODELS),
    ),
]
Interaction = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN,COLUMN",
        help="of an additive model: give combinations of these two columns a term each; repeat for "
        "more",
        rich_help_panel=MODEL,
    ),
]
Randomised = Annotated[
    bool | None,
    typer.Option(
        "--randomised/--no-randomised",
        help="whether the model may be randomized: a mixture is handed out where released numbers "
        "say that it keeps the "
        "constraints better, or errs less; yes unless you say no",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
PredictMethod = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="ask the base classifier for decision_function, predict_proba or predict (its "
        "decisions, then changed at random); "
        "auto takes its score, if it has one",
        show_default="auto",
        rich_help_panel=OF_POST,
        autocompletion=out_of(*ANSWERS),
    ),
]
GroupAware = Annotated[
    bool | None,
    typer.Option(
        "--group-aware/--no-group-aware",
        help="whether thresholds may differ by group, and the model reads the group when it "
        "decides; yes unless you say no",
        show_default=False,
        rich_help_panel=OF_POST,
    ),
]
Notion = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="make this gap smaller: demographic_parity, equalized_odds or equal_opportunity",
        show_default="demographic_parity",
        rich_help_panel=OF_FERMI,
        autocompletion=out_of(*PENALISED),
    ),
]
Strength = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="multiply the penalty by this",
        show_default="1",
        rich_help_panel=OF_FERMI,
    ),
]
Objective = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="minimize error, gmean, hmean, largest_group_loss, false_negative_rate or a gap such "
        "as equalized_odds "
        "(--constraint gmean:0.3 bounds one); of tailored: count groups or people alike",
        show_default="error; tailored: groups",
        rich_help_panel=OF_OBJECTIVE,
        autocompletion=out_of(*OBJECTIVES, *GAPS, *SHARED),
    ),
]
Search = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="search by linear-oracle or frank-wolfe (mixtures), or exponential (one decision of a "
        "list)",
        show_default="linear-oracle",
        rich_help_panel=OF_OBJECTIVE,
        autocompletion=out_of(*SEARCHES),
    ),
]
Decisions = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="choose among thresholds, directions or labellings",
        show_default="any linear rules; exponential: thresholds",
        rich_help_panel=OF_OBJECTIVE,
        autocompletion=out_of(*DECISIONS),
    ),
]
Allocation = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RULE",
        help="share the budget by least-noise, standard-error, equal or size; or GROUP:SHARE, "
        "repeated for each group",
        show_default="least-noise",
        rich_help_panel=OF_TAILORED,
        autocompletion=out_of(*ALLOCATIONS),
    ),
]
Spend = Annotated[
    str | None,
    typer.Option(
        metavar="WHOSE",
        help="count as epsilon the spending of the worst-off person, or the total",
        show_default="person",
        rich_help_panel=OF_TAILORED,
        autocompletion=out_of(*SPENDS),
    ),
]
GroupLossBound = Annotated[
    list[str] | None,
    typer.Option(
        metavar="BOUND",
        help="bound every group's mean log loss, or one group's with GROUP:BOUND; repeat for more",
        rich_help_panel=OF_TAILORED,
    ),
]
MinEpsilon = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NUMBER",
        help="spend at least this for a group's people: NUMBER or GROUP:NUMBER",
        rich_help_panel=OF_TAILORED,
    ),
]
MaxEpsilon = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NUMBER",
        help="spend at most this for a group's people: NUMBER or GROUP:NUMBER",
        rich_help_panel=OF_TAILORED,
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="MODE",
        help="combine several sensitive columns (product) or take them one by one (marginal)",
        show_default="product",
        rich_help_panel=OF_TAILORED,
        autocompletion=out_of(*MODES),
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="set rows aside, aim inside each --constraint, and certify it for people whom the "
        "model has not seen; with "
        "--certify 0.95 unless you say so",
        show_default="no certificate",
        rich_help_panel=FAIRNESS,
    ),
]
Certify = Annotated[
    list[str] | None,
    typer.Option(
        "--certify",
        metavar="NAME:BOUND",
        help="with fermi and tailored: set rows aside, and certify this bound of the model, as in "
        "demographic_parity:10%; "
        "repeat for more",
        rich_help_panel=FAIRNESS,
        autocompletion=bounded(*NOTIONS, "selection_rate_ratio"),
    ),
]
CertifyShare = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="with --confidence or --certify: set this part of the rows aside, by a coin each",
        show_default="0.3",
        rich_help_panel=FAIRNESS,
    ),
]
IfRefused = Annotated[
    str | None,
    typer.Option(
        metavar="replace|keep",
        help="with --confidence or --certify: what becomes of a model that is not certified",
        show_default="replace",
        rich_help_panel=FAIRNESS,
    ),
]
Epsilon = Annotated[
    float,
    typer.Option(
        metavar="NUMBER",
        help="set the privacy budget: smaller is more private",
        rich_help_panel=PRIVACY,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="read TABLE by the workers of this dask cluster (tls://...), or local",
        show_default="in this process",
        rich_help_panel=DATA,
    ),
]
Tuning = Annotated[
    str | None,
    typer.Option(
        metavar="WORDS", help="say in the statement what was tried before", rich_help_panel=OUTPUT
    ),
]
EarlierReleases = Annotated[
    str | None,
    typer.Option(
        metavar="WORDS",
        help="say in the statement what is already published",
        rich_help_panel=OUTPUT,
    ),
]
