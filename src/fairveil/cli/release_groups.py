"""`fairveil release-groups`: a table in; noisy counts of groups in public clusters and their
statement out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import fit_options as asking
from . import options
from .helping import PRIVACY

if TYPE_CHECKING:
    from ..estimators import ReleasedGroups
    from ..statement.document import PrivacyStatement

MARK = "groups.json"
Clusters = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="make at most so many clusters",
        show_default="from public facts",
        rich_help_panel=PRIVACY,
    ),
]


def release_groups(
    table: options.TableArgument,
    out: options.Out,
    schema: options.SchemaFile = None,
    target: options.Target = None,
    sensitive: options.Sensitive = None,
    epsilon: asking.Epsilon = 1.0,
    delta: options.Delta = 0.0,
    protects: options.Protects = "sensitive-features",
    clusters: Clusters = None,
    query: options.Query = None,
    ignore: options.Ignore = None,
    seed: options.Seed = None,
    ledger: options.LedgerUrl = None,
    dataset: options.LedgerDataset = None,
    purpose: options.Purpose = None,
    verbose: options.Verbose = False,
    force: options.Force = False,
) -> None:
    """Release how many people of each group are in each public cluster, once; write groups.json and
    statement.json to a folder.

    Features and the target are public, and only the sensitive columns are protected. Models are
    then fitted to the folder in Python, at no further cost: ReleasedGroups.load(DIR).fit(X, y,
    "equalized_odds:0.05").

    Exit status: 0 written; 2 refused, nothing written or spent; 3 spent, but written to another
    folder, which is named on standard error.
    """
    from .._waiting import waiting
    from ..estimators import release_groups as release
    from .folders import require_free, staged
    from .ledger_option import opened
    from .printing import Fact, print_facts
    from .rescue import already_charged
    from .samples import Roles
    from .written import written

    require_free(out, force=force, mark=MARK)
    book = opened(ledger, dataset, purpose)
    roles = Roles.of(options.schema_of(schema), target, sensitive, ignore)
    with waiting("Reading the table"):
        X, y, sensitive_features = roles.read(options.place_of(table, query)).fit_arguments
    done: list[ReleasedGroups] = []

    def paid() -> PrivacyStatement | None:
        return done[0].privacy if done else None

    with (
        staged(out, force=force, mark=MARK) as made,
        already_charged(out, paid, lambda folder: done[0].save(folder), book),
    ):
        with options.warnings_as_notes(), waiting("Releasing"):
            done.append(
                release(
                    X,
                    y,
                    sensitive_features=sensitive_features,
                    epsilon=epsilon,
                    delta=delta,
                    protects=options.protection(protects),
                    clusters=clusters,
                    ledger=book,
                    random_state=seed,
                )
            )
        made.free()
        done[0].save(made.folder)
        made.move()
    released = done[0]
    if verbose:
        typer.echo(f"{released.privacy.summary()}\n")
    groups = ", ".join(map(str, released.groups))
    facts = (Fact("groups", groups), Fact("clusters", f"{released.clusters.count} of public rows"))
    print_facts((*facts, *written(out, "groups.json, statement.json", released.privacy, book)))
