"""AIF360's `BinaryLabelDataset`, in and out. Rows are handed on as they are: no release, and
nothing is priced.

Guarantees (tests/compat/test_aif360.py):
1. Features, labels, sensitive columns and weights come back from a data set as they went in.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from .._types import ColumnsLike, TableLike
from ..errors import InputError
from .handed import Handed, frame_of, labels_beside, weights_of
from .libraries import missing

LABEL = "label"


def from_dataset(dataset: object) -> Handed:
    """What a fit takes, of a `BinaryLabelDataset`: its protected attributes are the sensitive
    features, and no features.

    Codes that its metadata name (`label_maps`, `protected_attribute_maps`) are given their names.
    """
    import pandas as pd

    _library()
    from aif360.datasets import BinaryLabelDataset

    if not isinstance(dataset, BinaryLabelDataset):
        remedy = "Pass a BinaryLabelDataset."
        got = type(dataset).__name__
        raise InputError.expected(
            "a data set of AIF360 with two labels", of="dataset", got=got, remedy=remedy
        )
    protected = list(dataset.protected_attribute_names)
    names = [name for name in dataset.feature_names if name not in protected]
    whole = pd.DataFrame(dataset.features, columns=dataset.feature_names)
    maps = dataset.metadata.get("protected_attribute_maps") or [None] * len(protected)
    groups = {
        name: _named(dataset.protected_attributes[:, at], maps[at] if at < len(maps) else None)
        for at, name in enumerate(protected)
    }
    labels = _named(
        dataset.labels.ravel(), next(iter(dataset.metadata.get("label_maps") or [None]))
    )
    weights = np.asarray(dataset.instance_weights, np.float64)
    return Handed(
        whole[names], labels, pd.DataFrame(groups), None if (weights == 1.0).all() else weights
    )


def to_dataset(
    X: TableLike,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    *,
    favourable: Any,
    privileged: Mapping[str, Sequence[Any]],
    sample_weight: ColumnsLike = None,
) -> Any:
    """A `BinaryLabelDataset`, in which a sensitive column is 1 for privileged values, else 0.

    `X`: a data frame of numbers; `favourable`: the label that people want; `privileged`: the values
    of each sensitive column that are privileged.
    """
    _library()
    from aif360.datasets import BinaryLabelDataset

    frame, groups = frame_of(X, "X"), _frame(sensitive_features)
    labels = labels_beside(y, frame, groups)
    found = set(labels.tolist())
    _refuse(frame, groups, found, favourable, privileged)
    for name, values in privileged.items():
        frame[name] = np.isin(groups[name].to_numpy(), list(values)).astype(float)
    frame[LABEL] = (labels == favourable).astype(float)
    weights = {} if sample_weight is None else {"instance_weights_name": "weight"}
    if sample_weight is not None:
        frame["weight"] = weights_of(sample_weight, len(frame))
    (other,) = found - {favourable}
    maps = [{1.0: "privileged", 0.0: "unprivileged"} for _ in privileged]
    return BinaryLabelDataset(
        favorable_label=1.0,
        unfavorable_label=0.0,
        df=frame,
        label_names=[LABEL],
        protected_attribute_names=list(privileged),
        metadata={"label_maps": [{1.0: favourable, 0.0: other}], "protected_attribute_maps": maps},
        **weights,
    )


def _refuse(frame: Any, groups: Any, labels: set[Any], favourable: Any, privileged: object) -> None:
    """What AIF360 does not take."""
    if not isinstance(favourable, Hashable) or favourable not in labels or len(labels) != 2:
        remedy = "AIF360 has two labels: pass the one that people want."
        raise InputError.expected(
            "one of two labels", of="favourable", got=favourable, remedy=remedy
        )
    strange = [
        name
        for name, column in frame.items()
        if column.dtype.kind not in "biuf" or not np.isfinite(column).all()
    ]
    if strange:
        remedy = "Code words as numbers and fill in missing ones: AIF360 takes numbers alone."
        raise InputError.expected(
            "finite numbers", of=f"column {strange[0]!r}", got="others", remedy=remedy
        )
    listed: Any = privileged
    if not isinstance(listed, Mapping) or any(
        isinstance(one, str) or not np.iterable(one) for one in listed.values()
    ):
        remedy = "Pass privileged={'sex': ['m']}, for example."
        got = type(privileged).__name__
        raise InputError.expected(
            "privileged values of each column", of="privileged", got=got, remedy=remedy
        )
    if set(listed) != set(groups.columns) or set(groups.columns) & {*frame.columns, LABEL}:
        remedy = "Name each sensitive column once, and let none be a feature."
        known = sorted(map(str, listed))
        raise InputError.expected(
            f"the columns {list(groups.columns)}", of="privileged", got=known, remedy=remedy
        )


def _frame(given: object) -> Any:
    import pandas as pd

    if isinstance(given, pd.Series):
        name = "sensitive_0" if given.name is None else str(given.name)
        return pd.DataFrame({name: given.to_numpy()})
    if isinstance(given, pd.DataFrame | dict):
        return frame_of(given, "sensitive_features")
    return frame_of({"sensitive_0": np.atleast_1d(np.asarray(given))}, "sensitive_features")


def _named(codes: object, names: Mapping[float, Any] | None) -> Any:
    """Names of codes, where all of them have one."""
    listed = np.asarray(codes).tolist()
    if not names or not set(listed) <= set(names):
        return np.asarray(codes)
    return np.array([names[code] for code in listed])


def _library() -> None:
    try:
        import aif360  # noqa: F401
    except ImportError as error:
        raise missing(error, "aif360", extra=False) from None
