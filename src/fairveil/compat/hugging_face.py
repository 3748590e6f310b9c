"""Data sets of Hugging Face's `datasets`, in and out. Rows are handed on as they are: no release,
and nothing is priced.

Guarantees (tests/compat/test_hugging_face.py):
1. Columns come back from a data set as they went in; labels of a `ClassLabel` have their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import ColumnsLike, TableLike
from ..errors import InputError
from .handed import Handed, frame_of, labels_beside, name_of, names_of, weights_of
from .libraries import missing


def from_dataset(
    dataset: object,
    *,
    target: str,
    sensitive: Sequence[str],
    features: Sequence[str] | None = None,
    weight: str | None = None,
) -> Handed:
    """What a fit takes, of a `datasets.Dataset` (one split). `features`: None for all columns that
    have no other role."""
    library = _library()
    if not isinstance(dataset, library.Dataset):
        splits = list(dataset) if isinstance(dataset, dict) else None
        remedy = (
            f"Choose a split: dataset[{splits[0]!r}]."
            if splits
            else "Pass datasets.Dataset.from_pandas(frame)."
        )
        raise InputError.expected(
            "one split of a data set", of="dataset", got=type(dataset).__name__, remedy=remedy
        )
    target, groups = name_of(target, "target"), names_of(sensitive, "sensitive")
    if not groups:
        raise InputError.expected(
            "a list of columns", of="sensitive", got="none", remedy="Pass sensitive=['sex']."
        )
    known = list(dataset.column_names)
    roles = [target, *groups, *(() if weight is None else (name_of(weight, "weight"),))]
    chosen = (
        [name for name in known if name not in roles]
        if features is None
        else names_of(features, "features")
    )
    wrong = [name for name in (*roles, *chosen) if name not in known]
    if wrong or len(set(roles)) != len(roles) or not chosen:
        remedy = f"Its columns are {', '.join(known)}."
        raise InputError.expected(
            "distinct columns", of="dataset", got=wrong or roles, remedy=remedy, among=known
        )
    frame = dataset.with_format(None).to_pandas()
    named = {name: _named(dataset.features[name], frame[name]) for name in known}
    for name, values in named.items():
        if values is not None:
            frame[name] = values
    weights = None if weight is None else weights_of(frame[weight], len(frame))
    return Handed(frame[chosen], frame[target].to_numpy(), frame[groups], weights)


def to_dataset(
    X: TableLike, y: ColumnsLike, sensitive_features: ColumnsLike, *, target: str = "label"
) -> Any:
    """A `datasets.Dataset` with the columns of `X`, then the sensitive ones (both frames or
    mappings), then the target."""
    import pandas as pd

    library, target = _library(), name_of(target, "target")
    frame, groups = frame_of(X, "X"), frame_of(sensitive_features, "sensitive_features")
    taken = [str(name) for name in groups.columns if name in frame.columns]
    names = [*map(str, frame.columns), *map(str, groups.columns)]
    if taken or target in names or len(set(names)) != len(names):
        remedy = "Rename one of them: target= names the target."
        raise InputError.expected(
            "distinct names", of="columns", got=taken or target, remedy=remedy
        )
    labels = labels_beside(y, frame, groups)
    whole = pd.concat([frame, groups, pd.Series(labels, name=target)], axis=1)
    whole.columns = [*names, target]
    return library.Dataset.from_pandas(whole, preserve_index=False)


def _named(feature: object, column: Any) -> Any:
    """The names of codes of a `ClassLabel`; None of other columns."""
    names = getattr(feature, "names", None)
    if not names:
        return None
    codes = column.to_numpy()
    if len(codes) and (codes.min() < 0 or codes.max() >= len(names)):
        remedy = "Leave rows without a label out."
        raise InputError.expected(
            "a name for every code",
            of=f"column {column.name!r}",
            got="a code without",
            remedy=remedy,
        )
    return np.array(names, dtype=object)[codes]


def _library() -> Any:
    try:
        import datasets
    except ImportError as error:
        raise missing(error, "datasets", extra=False) from None
    return datasets
