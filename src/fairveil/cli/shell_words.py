"""What arguments of the library are called in the shell, and what helps after an error."""

from __future__ import annotations

import re
from collections.abc import Mapping

GROUPS = ("attribute", "data", "door", "ledger", "schema")
COMMANDS = (
    *(
        "fit",
        "tune",
        "predict",
        "audit",
        "audit-privacy",
        "certify",
        "monitor",
        "frontier",
        "release-groups",
        "encode",
        "plan",
        "verify",
        "sign",
        "export",
        "card",
        "demo",
        "serve",
        "attribute release",
        "attribute check",
        "data list",
        "data get",
        "data describe",
    ),
    *(
        "door token",
        "door tokens",
        "door revoke",
        "door runs",
        "door stop",
        "ledger create",
        "ledger show",
        "ledger history",
        "ledger check",
        "ledger export",
        "ledger import",
        "schema init",
        "schema check",
    ),
)
ARGUMENTS: Mapping[str, str] = {
    "random_state": "--seed",
    "sensitive_features": "--sensitive",
    "unsafe_data_dependent_bounds": "--unsafe-data-dependent-bounds",
    "param_distributions": "--grid",
    "roles": "--target, --sensitive, --ignore",
    "X": "TABLE",
    "client": "--scheduler",
    "y": "--target",
    **dict.fromkeys(
        ("constraint", "constraints", "max_gap", "max_rate", "max_loss", "bound"), "--constraint"
    ),
    **{name: f"--constraint, {name}" for name in ("positive", "compare", "loss")},
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            *(
                "epsilon",
                "delta",
                "protects",
                "neighbours",
                "public_rows",
                "holdout",
                "seed",
                "seeds",
                "gaps",
                "epsilons",
            ),
            *("unit", "max_rows_per_unit"),
            *(
                "target",
                "sensitive",
                "ignore",
                "notion",
                "strength",
                "objective",
                "search",
                "decisions",
                "allocation",
                "spend",
            ),
            *(
                "group_loss_bound",
                "min_epsilon",
                "max_epsilon",
                "groups",
                "method",
                "tuning",
                "earlier_releases",
                "purpose",
            ),
            *("as", "table", "keep", "certificate", "facts"),
            *(
                "scoring",
                "way",
                "runs",
                "grid",
                "minutes",
                "trials",
                "confidence",
                "certify",
                "certify_share",
                "if_refused",
                "intervals",
                "depth",
            ),
            *("false_alarm", "classes", "period", "if_refused"),
            *(
                "kind",
                "order",
                "production",
                "note",
                "query",
                "randomised",
                "predict_method",
                "group_aware",
                "rows",
                "shares",
            ),
        )
    },
}
"""Arguments of the library that an option stands for."""
HINTS: Mapping[str, str] = {
    "TABLE": "name a CSV or Parquet file first: people.csv, for example",
    "--out": "--out NAME: where to write",
    "--epsilon": "--epsilon 1, or --epsilon inf for a model that is not private",
    "--delta": "--delta 1e-6: well below one over the number of rows",
    "--protects": "--protects records, or --protects sensitive-features",
    "--neighbours": "--neighbours add-remove, or --neighbours replace-one",
    "--public-rows": "--public-rows 5000, or leave it out",
    "--unit": "--unit COLUMN: the column that tells persons apart",
    "--max-rows-per-unit": "--max-rows-per-unit 12: a public number, never the largest among the "
    "rows",
    "--holdout": "--holdout 0.25",
    "--scheduler": "--scheduler tls://scheduler:8786, or --scheduler local for workers of this "
    "machine",
    "--seed": "--seed 0, or leave it out for secure noise",
    "--seeds": "--seeds 5, or leave it out for one model a point",
    "--gaps": "--gaps 0.2,0.1,0.05",
    "--epsilons": "--epsilons 0.5,1,3",
    "--constraint": "--constraint demographic_parity:0.05; fairveil fit --help lists the names",
    "--notion": "--notion demographic_parity",
    "--strength": "--strength 1",
    "--objective": "--objective gmean; fairveil fit --help lists the names",
    "--method": "--method rate-constrained",
    "--groups": "--groups product, or --groups marginal",
    "--target": "--target COLUMN",
    "--sensitive": "--sensitive COLUMN: the column that makes the groups",
    "--min-epsilon": "--min-epsilon 0.1",
    "--max-epsilon": "--max-epsilon 1",
    "--group-loss-bound": "--group-loss-bound 0.5",
    "--allocation": "--allocation least-noise",
    "--confidence": "--confidence 0.95",
    "--certify": "--certify demographic_parity:10%, with --method fermi or tailored",
    "--certify-share": "--certify-share 0.3, beside --confidence 0.95",
    "--if-refused": "--if-refused replace, or --if-refused keep",
    "--intervals": "--intervals each, or --intervals all",
    "--depth": "--depth 2, or leave it out",
    "--group": "--group sex:f,m: a column and its values, which are public",
    "--classes": "--classes 0,1",
    "--false-alarm": "--false-alarm 0.05",
    "--period": "--period 2026-05",
    "--kind": "--kind renyi, gaussian, zcdp or pure",
    "--order": "--order 8, or leave it out",
    "--scoring": "--scoring error, gap or lagrangian",
    "--way": "--way auto, selection or all",
    "--runs": "--runs 10, or leave it out",
    "--minutes": "--minutes 10",
    "--trials": "--trials 500, or leave it out",
    "--rows": "--rows 10000: about how many there will be",
    "--shares": "--shares sex=f:0.3,m:0.7: a share for each value of a sensitive column, or of the "
    "target",
}
"""Ways out on the command line, for arguments whose way out the library says in Python."""
WAYS: Mapping[str, str] = {
    "a model that can be written in another language": "fairveil predict DIR TABLE decides rows by "
    "any saved model",
    "the file of a ledger": "fairveil ledger create budget.db NAME --epsilon 1 --delta 1e-6",
    "a delta above 0": "--delta 1e-6; a delta of 0 needs --method group-objective --search "
    "exponential",
    "a convex objective": "--constraint gini:0.1 bounds it, and --objective error is minimized",
    "an objective, or a name": "--objective gmean; a bound is a --constraint gmean:0.3",
    "a Schema": "--schema schema.toml: the public facts of the table",
    "a schema that lists the classes": "without a schema classes are read from the data, not "
    "covered: list them in one (fairveil schema init TABLE --out schema.toml); regressors of numbers "
    "are in Python alone: GroupObjectiveRegressor",
    "a schema file": "fairveil schema init TABLE --out schema.toml",
}
"""Ways out, by how what was expected begins, where the library's way is one of Python."""
WORDS = (
    (r"'([\w-]+)'(?= or |$)", r"\1"),
    (r"\b(epsilon|delta)=(?=[\d.])", r"\1 "),
    (r"\bsensitive_features\b", "sensitive-features"),
    (r"\bNone\b", "nothing"),
    (r"\bTrue\b", "true"),
    (r"\bFalse\b", "false"),
)
PYTHON = re.compile(
    r"\bPass\b|\b(?:None|True|False)\b|(?<![,\w])\w+=|\w\(|\b(?:fairveil|fv|data|losses|np)\.\w|\b[A-Z]\w+\.[a-z]|\bestimator\b|`\w+_`"
)
"""What marks a way out as one of Python."""
