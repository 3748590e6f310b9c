"""The candidates of a private search, and the parts of a pipeline that they are set in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.pipeline import Pipeline

from .. import _checks
from ..errors import InputError, PrivacyError
from ..estimators import cautions, wrapped

Candidate = dict[str, Any]
SPENT_HERE = ("epsilon", "delta", "protects", "schema", "ledger", "random_state")
MOST_CANDIDATES = 1_000


def parts_of(estimator: object) -> tuple[Any, Any, str]:
    """(steps that learn nothing or None, classifier of ours, its name in the pipeline)."""
    front, last, name = None, estimator, ""
    if isinstance(estimator, Pipeline):
        learning = [step for at, one in estimator.steps[:-1] for step in cautions.learning(at, one)]
        if learning:
            named = ", ".join(map(str, learning))
            remedy = (
                "Scale by a schema, or give the step public numbers; FunctionTransformer learns "
                "nothing."
            )
            raise PrivacyError.expected(
                "steps that learn nothing from rows",
                of="estimator",
                got=named,
                remedy=remedy,
                quote=False,
            )
        name, last = estimator.steps[-1]
        front = Pipeline(estimator.steps[:-1]) if len(estimator.steps) > 1 else None
    plain = (
        wrapped.carries_a_promise(last)
        and hasattr(last, "_search")
        and not hasattr(last, "estimator")
    )
    if not plain or not isinstance(last, ClassifierMixin) or isinstance(last, type):
        remedy = (
            "Pass FairClassifier(), for example; post-processors and regressors are not searched."
        )
        got = type(last).__name__
        raise InputError.expected(
            "a private classifier of this library", of="estimator", got=got, remedy=remedy
        )
    if last.checkpoint is not None:
        remedy = "A folder keeps one fit, and a search has many: leave checkpoint=None."
        raise InputError.expected(
            "None", of="estimator.checkpoint", got=str(last.checkpoint), remedy=remedy
        )
    return front, last, name


def candidates_of(
    given: object, n_iter: object, seed: int | None, name: str, last: BaseEstimator
) -> list[Candidate]:
    """Public: drawn without a look at any row."""
    listed = (
        [given]
        if isinstance(given, Mapping)
        else list(given)
        if isinstance(given, list | tuple)
        else None
    )
    remedy = 'Pass {"solver__clip": [0.5, 1.0, 2.0]}, for example.'
    if not listed or any(not isinstance(one, Mapping) or not one for one in listed):
        raise InputError.expected(
            "names of parameters with values", of="param_distributions", got=given, remedy=remedy
        )
    for one in listed:
        for key, values in one.items():
            if not hasattr(values, "rvs") and (
                isinstance(values, str) or not hasattr(values, "__len__") or not len(values)
            ):
                of = f"param_distributions[{key!r}]"
                raise InputError.expected(
                    "a list of values, or a distribution", of=of, got=values, remedy=remedy
                )
    drawn = any(hasattr(values, "rvs") for one in listed for values in one.values())
    if drawn:
        count = _checks.whole(at_least=1, n_iter=n_iter)
        found = list(
            ParameterSampler(
                listed,
                min(count, MOST_CANDIDATES),
                random_state=0 if seed is None else seed % (1 << 32),
            )
        )
    else:
        found = list(ParameterGrid(listed))
    if len(found) > MOST_CANDIDATES:
        raise InputError.expected(
            f"at most {MOST_CANDIDATES} candidates",
            of="param_distributions",
            got=len(found),
            remedy=remedy,
        )
    prefix = f"{name}__" if name else ""
    known = set(last.get_params()) - set(SPENT_HERE)
    for one in found:
        for key in one:
            if not key.startswith(prefix) or key.removeprefix(prefix) not in known:
                listed_names = [f"{prefix}{each}" for each in sorted(known)]
                remedy = "Name a parameter of the classifier; the search itself sets what is spent."
                raise InputError.expected(
                    f"one of {listed_names}",
                    of="param_distributions",
                    got=key,
                    remedy=remedy,
                    among=listed_names,
                )
    return [{key.removeprefix(prefix): value for key, value in one.items()} for one in found]
