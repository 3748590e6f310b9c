"""Words that a shell completes: methods, notions, objectives, data sets. Written down, since
loading the library takes longer than somebody at a keyboard waits; tests/cli/test_cli_completing.py
holds them against the library.
"""

from __future__ import annotations

from collections.abc import Callable

METHODS = (
    "rate-constrained",
    "post-processing",
    "parity-post-processing",
    "game",
    "group-objective",
    "fermi",
    "tailored",
)
MODELS = ("linear", "additive")
NOTIONS = (
    *(
        "demographic_parity",
        "equalized_odds",
        "equal_opportunity",
        "false_positive_rate_parity",
        "error_rate_parity",
    ),
    *("false_negative_rate", "bounded_group_loss"),
)
GAPS = NOTIONS[:5]
PENALISED = ("demographic_parity", "equalized_odds", "equal_opportunity")
OBJECTIVES = (
    *("error", "gmean", "hmean", "largest_group_loss", "mean_group_loss", "sum_of_error_rates"),
    *("false_negative_rate", "false_positive_rate"),
)
SHARED = ("groups", "people")
SEARCHES = ("linear-oracle", "exponential", "frank-wolfe")
ANSWERS = ("auto", "decision_function", "predict_proba", "predict")
DECISIONS = ("thresholds", "directions", "labellings")
ALLOCATIONS = ("least-noise", "standard-error", "equal", "size")
SPENDS = ("person", "total")
MODES = ("product", "marginal")
PROTECTS = ("records", "sensitive-features")
NEIGHBOURS = ("add-remove", "replace-one")
FILTERS = ("renyi", "gaussian", "zcdp", "pure")


def out_of(*words: str) -> Callable[[str], list[str]]:
    """What completes a word out of these.

    >>> out_of("game", "fermi")("g")
    ['game']
    """

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def bounded(*names: str) -> Callable[[str], list[str]]:
    """Names that a bound follows.

    >>> bounded("gmean")("gm")
    ['gmean:']
    """
    return out_of(*(f"{name}:" for name in names))
