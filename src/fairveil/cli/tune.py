"""`fairveil tune`: choose parameters by a private search, whose cost the statement has."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import fit_options as asking
from . import options
from .helping import FAIRNESS, MODEL, PRIVACY

if TYPE_CHECKING:
    from ..statement.document import PrivacyStatement
    from ..study import PrivateSearchCV

MARK = "estimator.json"


def tune(
    table: options.TableArgument,
    out: options.Out,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="try these values of a parameter, as in clip=0.5,1,2; repeat for more parameters",
            show_default=False,
            rich_help_panel=MODEL,
        ),
    ] = None,
    schema: options.SchemaFile = None,
    target: options.Target = None,
    sensitive: options.Sensitive = None,
    ignore: options.Ignore = None,
    query: options.Query = None,
    constraint: asking.Constraint = None,
    method: asking.Method = "rate-constrained",
    scoring: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="minimize error, gap, or lagrangian (the error, and what the gap is beyond its "
            "bound)",
            rich_help_panel=FAIRNESS,
        ),
    ] = "error",
    way: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="run all candidates once, or a selection from a secret number of runs; auto keeps "
            "the defaults as a floor",
            rich_help_panel=MODEL,
        ),
    ] = "auto",
    runs: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="set the mean number of runs of a selection",
            show_default="the number of candidates",
            rich_help_panel=MODEL,
        ),
    ] = None,
    holdout: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="score on this part of TABLE, which is covered by privacy",
            rich_help_panel=MODEL,
        ),
    ] = 0.25,
    epsilon: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help="set the privacy budget of the whole search",
            rich_help_panel=PRIVACY,
        ),
    ] = 1.0,
    delta: options.Delta = 1e-6,
    protects: options.Protects = "records",
    neighbours: options.Neighbours = None,
    public_rows: options.PublicRows = None,
    unit: options.Unit = None,
    max_rows_per_unit: options.MaxRowsPerUnit = None,
    seed: options.Seed = None,
    ledger: options.LedgerUrl = None,
    dataset: options.LedgerDataset = None,
    purpose: options.Purpose = None,
    verbose: options.Verbose = False,
    force: options.Force = False,
) -> None:
    """Choose parameters of a fit by a private search; write the best model and the statement of the
    search to a folder.

    Rows are set aside by coins. Candidates are fitted on the others, and scored on these with
    noise. One budget covers it all. The method's own defaults stay unless a candidate is clearly
    better, and nothing is searched where noise would hide that.

    Exit status: 0 written; 2 refused, nothing written or spent; 3 spent, but written to another
    folder, which is named on standard error.
    """
    from .. import _checks
    from .._waiting import waiting
    from ..errors import InputError
    from ..estimators import save
    from ..estimators.settings.setting import placed
    from ..study import PrivateSearchCV
    from . import persons
    from .folders import require_free, staged
    from .ledger_option import opened
    from .method_options import FitOptions
    from .methods import METHODS
    from .printing import print_facts
    from .rescue import already_charged
    from .samples import Roles
    from .written import written

    chosen = METHODS[_checks.one_of(tuple(METHODS), method=method)]
    require_free(out, force=force, mark=MARK)
    values = grid_of(grid or ())
    if method == "post-processing":
        remedy = "--method rate-constrained, game, group-objective, fermi or tailored"
        raise InputError.expected(
            "a method that can be searched", of="--method", got=method, remedy=remedy
        )
    asked = chosen.with_model(
        chosen.asked(FitOptions(constraint, None, None, None, None)), "linear", None
    )
    book = opened(ledger, dataset, purpose)
    roles = Roles.of(options.schema_of(schema), target, sensitive, ignore)
    told, people = persons.PersonColumn.of(unit, max_rows_per_unit, roles.schema), None
    if told is not None:
        roles = replace(roles, schema=told.of_schema(roles.schema))
    with waiting("Reading the table"):
        place = options.place_of(table, query)
        sample = roles.read(place)
        if told is not None:
            sample, people = told.read(place, sample)
    X, y, sensitive_features = sample.fit_arguments
    clf = chosen.built(
        **asked.arguments, schema=roles.schema, **persons.arguments(told, people, sample)
    )
    clf.set_params(
        public_rows=public_rows
        if public_rows is not None or told is not None
        else roles.public_rows
    )
    search = PrivateSearchCV(
        clf,
        {placed(clf, name): listed for name, listed in values.items()},
        epsilon=epsilon,
        delta=delta,
        scoring=scoring,
        way=way,
        runs=runs,
        holdout=holdout,
        protects=options.protection(protects),
        neighbours=neighbours,
        random_state=seed,
        ledger=book,
    )

    def done() -> PrivacyStatement | None:
        return search.privacy_ if hasattr(search, "best_estimator_") else None

    with (
        staged(out, force=force, mark=MARK) as made,
        already_charged(out, done, lambda folder: save(search.best_estimator_, folder), book),
    ):
        with options.warnings_as_notes():
            search.fit(X, y, sensitive_features=sensitive_features)
        made.free()
        save(search.best_estimator_, made.folder)
        made.move()
    if verbose:
        typer.echo(f"{search.privacy_.summary()}\n")
    print_facts((*_facts(search), *written(out, "model, statement.json", search.privacy_, book)))


def _facts(search: PrivateSearchCV) -> list[Any]:
    from ..show.numbers import at_most
    from .printing import Fact

    def shown(parameters: dict[str, Any]) -> str:
        names = {name: name.rpartition("__")[2] for name in parameters}
        return (
            ", ".join(f"{names[name]}={value}" for name, value in parameters.items())
            or "the defaults"
        )

    price, statement = search.price_, search.privacy_
    found = [Fact("best", shown(search.best_params_))]
    if price.way == "defaults":
        gain = (
            ""
            if price.least_gain is None
            else f": noise would hide gains below {100 * price.least_gain:.1f} points of error"
        )
        found.append(Fact("way", f"one fit, no search{gain}"))
    else:
        found.append(Fact("score", f"{search.best_score_:.4f}, with noise"))
        tried: list[Any] = search.cv_results_["params"]
        for at in range(len(tried) if len(tried) > 1 else 0):
            found.append(
                Fact("", f"{search.cv_results_['mean_test_score'][at]:.4f}  {shown(tried[at])}")
            )
        found.append(Fact("way", f"{price.way}; epsilon {at_most(price.epsilon)} for each fit"))
    spent = (
        f"epsilon {at_most(statement.epsilon, statement.promise.epsilon)} at delta "
        f"{statement.delta:g}, whole search"
    )
    return [*found, Fact("privacy", spent)]


def grid_of(given: Sequence[str]) -> dict[str, list[Any]]:
    """`clip=0.5,1` as values by name: numbers and truth values where they can be read as such."""
    from ..errors import InputError

    found: dict[str, list[Any]] = {}
    for text in given:
        name, equals, listed = text.partition("=")
        if (
            not equals
            or not name.strip()
            or not all(part.strip() for part in listed.split(","))
            or name in found
        ):
            remedy = "--grid clip=0.5,1,2: a parameter, once, and its values"
            raise InputError.expected("NAME=VALUE,...", of="--grid", got=text, remedy=remedy)
        found[name.strip()] = [_value(part.strip()) for part in listed.split(",")]
    if not found:
        remedy = "--grid clip=0.5,1,2: a parameter, and its values"
        raise InputError.expected("parameters to try", of="--grid", got=None, remedy=remedy)
    return found


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
