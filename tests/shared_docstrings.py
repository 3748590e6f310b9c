"""Words that docstrings of several public names share. Each text is written here once, and tests
compare docstrings with it.

A parameter means the same in every estimator, so it is described in the same words. Where it means
another thing in some, it has another text here, under a name that says which. Texts are compared
with line breaks as spaces.
"""

from __future__ import annotations

EVERY_FIT = {
    "epsilon": (
        "float",
        "Privacy budget of this fit. Smaller is more private. ``float('inf')`` adds no noise and "
        "gives no privacy; the "
        "statement is flagged ``not-private``. Choose it without looking at the data.",
    ),
    "delta": (
        "float",
        "Probability with which the epsilon bound may fail. Choose it well below ``1 / n_rows``.",
    ),
    "protects": (
        '{"records", "sensitive_features"}',
        'What is protected. ``"records"``: all of a row. ``"sensitive_features"``: the sensitive '
        "attributes alone; features "
        "and labels are then public.",
    ),
    "neighbours": (
        '{"add-remove", "replace-one"}',
        "Adjacency relation: one record is added or removed, or one is replaced. None: "
        '``"add-remove"`` for records, '
        '``"replace-one"`` for sensitive features.',
    ),
    "schema": (
        "Schema",
        "Public facts of the table (`fairveil.facts.Schema`). Columns, bounds, classes and groups "
        "are then its own, and none "
        "of them is read from the data. None: they are read, and the statement says so.",
    ),
    "public_rows": (
        "int",
        "About how many rows there are, where the exact number is private but a rough one is "
        "public. With a `unit`, about how "
        "many are read. None: the schema's number, else one noisy count that is part of the plan.",
    ),
    "max_sample_weight": (
        "float",
        "Largest sample weight. Larger weights are clipped to it, unless nothing is private. It "
        "multiplies every sensitivity, "
        "and so the noise.",
    ),
    "unsafe_data_dependent_bounds": (
        "bool",
        "Scale numbers by means and standard deviations of the training rows, which no guarantee "
        "covers. The statement is "
        "flagged ``data-dependent-bounds``. False: numbers are scaled by public bounds, or by "
        "noisy releases.",
    ),
    "random_state": (
        "int or Generator",
        "None draws secure noise. An integer, or a NumPy generator, repeats the fit and flags the "
        "statement INSECURE.",
    ),
    "ledger": (
        "Ledger",
        "Where the fit reserves its whole cost before rows are read, or is refused. None: the "
        "ledger of the ``with "
        "fairveil.ledger(...)`` block, if there is one. It is never saved with the estimator.",
    ),
    "sensitive_as_feature": (
        "bool",
        "Whether columns of X that are named as sensitive are features too. For "
        '``protects="records"`` alone.',
    ),
}
"""Of every estimator that has the parameter."""

PERSONS = {
    "unit": (
        "str, mapping of one name, or one value a row",
        "Protects persons, each with all of their rows (docs/persons.md). It is the name of the "
        "column of X that tells persons "
        "apart, which is then no feature, or one value a row. None: protects each row by itself.",
    ),
    "max_rows_per_unit": (
        "int",
        "Most rows of one person that the fit reads, a public number; required beside `unit`. A "
        "person with more rows has so "
        "many of them drawn. Noise of counts grows with it, and a `clip` is then of the sum of a "
        "person's gradients.",
    ),
}
COUNTED_BY_PERSON = {
    **PERSONS,
    "max_rows_per_unit": (
        "int",
        "Most rows of one person that the fit reads, a public number; required beside `unit`. A "
        "person with more rows has so "
        "many of them drawn. Noise of counts and of other sums over rows grows with it.",
    ),
}
IN_ONE_GROUP = {
    **PERSONS,
    "unit": (
        PERSONS["unit"][0],
        f"{PERSONS['unit'][1]} All rows of a person count in one group, where most of them are.",
    ),
}

CONSTRAINTS = {
    "constraints": (
        "notion, str or list of these",
        "Constraints on rates of decisions: a notion such as ``DemographicParity(max_gap=0.05)``, "
        "or its name and bound, "
        '``"demographic_parity:0.05"``. A list combines them. Bounds are shares of 1, so 0.05 is 5 '
        "percentage points. None: no "
        "constraint.",
    ),
}
CERTIFIED = {
    "certify_share": (
        "float or SetAside",
        "Share of the rows that is set aside to certify notions with a `confidence`, such as "
        "``DemographicParity(0.05, "
        "confidence=0.95)``, for people whom the model has not seen. Each row is set aside by a "
        "coin of its own. A "
        "`SetAside` also says what becomes of a model that is refused. None: 0.3. The result is "
        "`certificate_` "
        "(docs/certificates.md).",
    ),
    "certify": (
        "notion, str or list of these",
        "Notions to certify after the fit, such as ``DemographicParity(0.1, confidence=0.95)`` or "
        '``"demographic_parity:0.1"``. The fit does not aim at them. A notion without a '
        "`confidence` has that of the others, "
        "else 0.95. None: nothing.",
    ),
    "if_refused": (
        '{"replace", "keep"}',
        'What is handed out if the bound cannot be certified of the fitted model. ``"replace"``: a '
        "mixture in which as many "
        'decisions as necessary are replaced by blind ones; it is certified. ``"keep"``: the model '
        "as it is, not certified.",
    ),
}
ADDITIVE = {
    "model": (
        "str or Additive",
        'None: a model that is linear in the columns. ``"additive"`` or an `Additive`: steps of '
        "each number beside the line "
        "(docs/additive_models.md).",
    ),
}
MODULES = {
    "model": (
        "str, Additive or torch.nn.Module",
        'None: a linear model. ``"additive"`` or an `Additive`: steps of each number beside the '
        "line "
        "(docs/additive_models.md). A module is copied, and training starts from its weights "
        "(docs/networks.md).",
    ),
    "device": (
        "str",
        'Device on which a module is trained, such as ``"cuda"``. None: a GPU where there is one.',
    ),
}
DESCENT = {
    "rounds": (
        "int",
        (
            "Number of rounds of gradient descent. None: 240 for constraints and 120 for a "
            "penalty. Modules: 400, or 150 "
            "where sensitive features alone are protected. Without privacy a linear model is "
            "fitted until it converges."
        ),
    ),
    "clip": (
        "float",
        (
            "Largest Euclidean norm of one row's gradient; longer gradients are clipped. None: 2 "
            "for modules. For linear "
            "models it is chosen from public facts and the released number of rows."
        ),
    ),
    "temperature": (
        "float",
        "Temperature of the soft decisions that the gradient of a constraint acts on. None: 1.",
    ),
    "sampling_rate": (
        "float",
        (
            "Share of the rows in each secret random batch. None: all rows for linear models. For "
            "modules it is a twentieth, "
            "or what gives 256 rows if that is more. It is all rows where sensitive features alone "
            "are protected."
        ),
    ),
    "learning_rate": ("float", "Step size of a module's descent. None: 0.1."),
    "checkpoint": (
        "path or Checkpoints",
        "Folder in which an interrupted fit is kept. Fit again with the same arguments and rows, "
        "and it is resumed. Finished "
        "releases stay charged. A `Checkpoints` also says how often. None: nothing is kept.",
    ),
}
KEPT = {
    "checkpoint": (
        "path",
        "Folder in which answers of an interrupted fit are kept. Fit again with the same arguments "
        "and rows, and it is "
        "resumed: answers are given again at no further price. None: nothing is kept.",
    ),
}
LEAST_SQUARES = {
    "target_bounds": (
        "pair of float",
        "Public bounds ``(low, high)`` of y, in its own units; y is clipped to them. None: the "
        "schema's bounds, or the range "
        "of y where y is public. Otherwise (-1, 1), with a warning.",
    ),
}
GROUPS = {
    "groups": (
        '{"product", "marginal"}',
        "Groups of several sensitive columns: every combination of values, or every value of each "
        "column.",
    ),
}
DECLARED = {
    "groups": (
        "Cells",
        "The groups, where they are public and neither a schema nor coded rows say them. None: the "
        "schema's, else those that "
        "occur, which the statement lists as read from the data.",
    ),
}
TAILORED = {
    "objective": (
        '{"groups", "people"}',
        '``"groups"`` minimizes the mean of the groups\' losses. ``"people"`` minimizes the mean '
        "loss, in which large groups "
        "weigh more.",
    ),
    "stage_one_share": (
        "float",
        "Share of the squared budget that releases of standard errors may cost.",
    ),
    "spend": (
        '{"person", "total"}',
        '``"person"``: epsilon bounds the cost to any one person. ``"total"``: the groups\' shares '
        "of the last stage add up to "
        "what is left of epsilon, as in the paper.",
    ),
    "min_epsilon": (
        "float or mapping of groups to float",
        "Smallest epsilon that a group's people spend over the whole fit. For add/remove-one. "
        "None: no limit.",
    ),
    "max_epsilon": (
        "float or mapping of groups to float",
        "Largest epsilon that a group's people spend over the whole fit. For add/remove-one. None: "
        "no limit.",
    ),
    "region": (
        '{"ball", "box"}',
        "Set of coefficients that descent searches; its size is `radius`.",
    ),
    "step_size": (
        '{"steady", "decaying"}',
        '``"decaying"`` follows appendix E of the paper, and needs a `radius`. ``"steady"``: one '
        "step size for all rounds.",
    ),
}

GAPS = {
    "max_gap": (
        "float",
        "Largest difference of two groups' rates, a share of 1: 0.05 is 5 percentage points. None "
        "requires nothing.",
    ),
    "groups": (
        '{"product", "marginal"}',
        "Groups of several sensitive columns: every combination of values, or every value of each "
        "column.",
    ),
    "compare": (
        '{"pairs", "rest"}',
        '``"pairs"``: every pair of groups. ``"rest"``: every group against all rows that are not '
        "in it, which is weaker for "
        "more than two groups.",
    ),
    "confidence": (
        "float",
        "Confidence with which a fit certifies the bound for the population, by rows that it sets "
        "aside. None: the bound is "
        "for the training rows alone.",
    ),
}
POSITIVE = {"positive": ("label", "The positive class. None: the second of two.")}
"""Parameters of notions."""

ROWS = {
    "X": (
        "table or array",
        "Features: an array, a table or a source of coded rows; see docs/data.md.",
    ),
    "y": (
        "array",
        "Labels, or numbers for regression. None: the schema names the target among the columns of "
        "X.",
    ),
    "sensitive_features": (
        "array, table or names of columns of X",
        "Groups: one column or several. None: the schema's, or no groups.",
    ),
    "sample_weight": ("array", "Weight of each row, clipped to `max_sample_weight`. None: 1."),
}
"""What is fitted to."""

PREDICTED = {
    "X": ("table or array", "Rows to predict for, with the columns of the fit."),
    "random_state": (
        "int or Generator",
        "Seed of draws, where decisions are drawn: the same seed and rows draw the same. None: "
        "fresh draws.",
    ),
    "sensitive_features": (
        "array, table or names of columns of X",
        "Groups of the rows, where the rule reads them. None: it does not.",
    ),
}
SCORED = {
    "X": ("table or array", "Rows to predict for, with the columns of the fit."),
    "y": ("array", "True labels or numbers. None: X is a source of coded rows, which has its own."),
    "sample_weight": ("array", "Weight of each row. None: 1."),
    "sensitive_features": PREDICTED["sensitive_features"],
}
"""What finished estimators are asked about."""

MEASURED = {
    "y": ("array", "Labels."),
    "prediction": (
        "array",
        "Decisions, one class a row, or probabilities of shape (rows, classes): rates are then "
        "expected ones.",
    ),
    "sensitive_features": ("array or table", "Groups: one column or several."),
}
"""What is measured exactly."""

COUNT = {
    "sensitive_features": (
        "array, table or names of columns of X",
        "Groups: one column or several. Several make a hierarchy of groups. None: the schema's.",
    ),
    "epsilon": (
        "float",
        "Privacy budget of the counts. ``float('inf')`` counts exactly: for people who are public "
        "or have consented. It must "
        "be given.",
    ),
    "delta": ("float", "Probability with which the epsilon bound may fail."),
    "protects": EVERY_FIT["protects"],
    "neighbours": EVERY_FIT["neighbours"],
    "schema": (
        "Schema",
        "Public facts of the table. None: classes and groups are those of the model, or read from "
        "the data.",
    ),
    "random_state": (
        "int",
        "None draws secure noise. An integer repeats the release and flags the statement INSECURE.",
    ),
    "ledger": (
        "Ledger",
        "Where the release is recorded. None: the ledger of the ``with fairveil.ledger(...)`` "
        "block, if there is one.",
    ),
}
COUNTED_PERSONS = {
    "unit": (
        "str, mapping of one name, or one value a row",
        "Column of X that tells persons apart, where a person may have several rows. Persons are "
        "then protected, with all of "
        "their rows. The model does not see the column. None: protects each row by itself.",
    ),
    "max_rows_per_unit": (
        "int",
        "Must be 1 with `unit`: one row of each person is counted, drawn by a coin, because "
        "intervals assume independent rows.",
    ),
}
"""Of functions that release counts once."""

FITTED = {
    "privacy_": ("PrivacyStatement", "Statement of what the fit cost and of what it covers."),
    "classes_": (
        "ndarray of shape (n_classes,)",
        "Classes, in the order of the columns of `predict_proba`.",
    ),
    "groups_": ("tuple", "Keys of the groups; empty for a fit without sensitive features."),
    "cells_": (
        "Cells or None",
        "Groups as cells of the sensitive columns; None for a fit without them.",
    ),
    "coding_": (
        "TableCoding or SchemaCoding",
        "How tables are coded: which column is which number or category.",
    ),
    "n_features_in_": ("int", "Number of features."),
    "feature_names_in_": (
        "ndarray of str",
        "Names of the columns of X; there only if X had names.",
    ),
    "n_iter_": ("int", "Number of rounds that ran."),
    "constraint_report_": (
        "ConstraintReport",
        "Released value, noise and bound of each constraint on the training rows.",
    ),
    "gap_report_": (
        "GapReport",
        "Released differences of rates among groups on the training rows.",
    ),
    "baselines_": (
        "BaselineReport or None",
        "Released error of the result beside results that cost nothing further.",
    ),
    "coef_": ("ndarray", "Coefficients, in the units of X; of linear models alone."),
    "intercept_": ("ndarray or float", "Intercept; of linear models alone."),
    "coef_names_": ("tuple of str", "Name of each coefficient; of linear models alone."),
    "objective_": ("float", "Released value of the minimized objective."),
    "certificate_": (
        "Certificate",
        "Bounds for people whom the model has not seen; only where notions are certified.",
    ),
    "certified_aim_": (
        "CertifiedAim",
        "Bounds that the fit aimed at, inside of those that it certifies; beside `certificate_`.",
    ),
    "candidates_": (
        "tuple",
        "Given classifiers that the mixture is of; empty for mixtures of the fit's own rules.",
    ),
    "plays_": ("ndarray", "Share of the mixture that each of `candidates_` has."),
    "target_": ("TargetScale", "How y is clipped and scaled."),
    "tailoring_": ("TailoringReport", "Shares, standard errors and guarantee of each group."),
}
"""Fitted attributes, in every estimator that has one."""

PURITY = (
    "The fit depends on the rows through the curator's releases alone, except for what "
    "`privacy_.facts` and "
    "`privacy_.not_covered` list as read from the data."
)
PRICE = "`privacy_` is the price of the whole plan, at most (epsilon, delta)."
PUBLIC = "With a schema, nothing is read from the data."
WHOLE = "A fit that fails or is interrupted changes no attribute."
