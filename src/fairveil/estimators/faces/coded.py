"""The face that estimators of coded rows share: how X is read at prediction. Abstract; `fit` is
each one's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ..._types import ColumnsLike, TableLike
from ...errors import FairveilError, InputError, KindError, complaint
from ...facts import Cells, RowBlock, RowSource
from ...statement.document import PrivacyStatement
from ...tables.given import shape_of
from ...tables.grids import refuse_duplicates, refuse_one_column
from ..fitting.planning import Planning
from ..fitting.recorded import Recorded
from ..reading.additive import takes_steps
from ..reading.coding import Coding, TableCoding
from ..reading.training import Training


class CodedReader(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What reads X at prediction as the coding of the fit does."""

    coding_: Coding
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]

    def _blocks(self, X: TableLike) -> Iterator[RowBlock]:
        check_is_fitted(self, "model_")
        if isinstance(X, RowSource | RowBlock):
            return self.coding_.blocks(X)
        refuse_duplicates(X, "X")
        columns = (isinstance(X, Mapping) and not issparse(X)) or (
            isinstance(X, np.ndarray) and X.dtype.names is not None
        )
        with as_ours("X"):
            if axes_of(X) != 2 and not columns:
                refuse_one_column(X)
                check_array(X)  # says how to reshape it
            if not self._lacks_only_groups(X) and not columns:
                validate_data(self, X, reset=False, skip_check_array=True)
        return self.coding_.blocks(X)

    def _lacks_only_groups(self, X: object) -> bool:
        """Whether X has all features by name: what is not there was sensitive, or is not read at
        all by a schema."""
        shown = _column_names(X)
        # a schema, which finds its columns itself, or coded rows
        if not isinstance(self.coding_, TableCoding):
            return shown is not None
        columns = self.coding_.columns
        features = [feature.name for feature in self.coding_.features]
        if isinstance(X, Mapping) and hasattr(self, "feature_names_in_"):
            lacking = [name for name in features if name not in X]
            if lacking:
                remedy = "Pass the columns of the fit."
                raise InputError.expected(f"columns {lacking}", of="X", got=shown, remedy=remedy)
            return True
        if len(features) == len(columns):
            return False
        if shown is None:
            return (shape_of(X) or ())[1:] == (len(features),)
        return [name for name in shown if name in columns] == [
            name for name in columns if name in shown
        ] and set(features) <= set(shown) <= set(columns)


class CodedEstimator(Planning, Recorded, CodedReader, ABC):
    """An estimator of rows that a coding makes of X. Abstract."""

    __metadata_request__fit: ClassVar = {"sensitive_features": True, "sample_weight": True}
    __metadata_request__score: ClassVar = {"sample_weight": True}

    privacy_: PrivacyStatement
    cells_: Cells | None
    groups_: tuple[Any, ...]

    @abstractmethod
    def fit(
        self,
        X: TableLike,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
    ) -> CodedEstimator:
        """Fit."""

    @property
    def _is_randomized(self) -> bool:
        """Whether `predict` may draw."""
        return True

    def _publish_columns(self, training: Training, cells: Cells | None) -> None:
        """Write what is public of the columns and groups of a fit."""
        self.coding_, self.cells_ = training.coding, cells
        self.groups_ = () if cells is None else cells.keys
        self.n_features_in_ = training.n_features
        if training.columns:
            self.feature_names_in_ = np.array(training.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.sparse = not takes_steps(self.get_params(deep=False).get("model"))
        return tags


class CodedClassifier(ClassifierMixin, CodedEstimator, ABC):  # type: ignore[misc]
    """A classifier of rows that a coding makes of X. Abstract."""

    classes_: npt.NDArray[Any]

    def _publish_shape(self, training: Training, cells: Cells | None) -> None:
        """Write what is public of the columns, classes and groups of a fit."""
        self._publish_columns(training, cells)
        self.classes_ = as_array(training.classes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


@contextmanager
def as_ours(of: str) -> Iterator[None]:
    """What scikit-learn says of an argument, in our family and with its words."""
    try:
        yield
    except (FairveilError, NotFittedError):
        raise
    except Exception as error:
        family = KindError if isinstance(error, TypeError) else InputError
        expected, got = "a table like that of the fit", f"another ({type(error).__name__})"
        raise family(
            complaint(expected=expected, of=of, got=got, remedy=f"{error}", quote=False)
        ) from None


def axes_of(X: TableLike) -> int:
    """How many axes; 2 where that cannot be seen."""
    axes = getattr(X, "ndim", 2)
    return axes if isinstance(axes, int) else 2


def as_array(classes: tuple[Any, ...]) -> npt.NDArray[Any]:
    """Classes as an array of their own kind; of objects where kinds are mixed."""
    if len({type(value) for value in classes}) == 1:
        return np.array(classes)
    out = np.empty(len(classes), dtype=object)
    out[:] = classes
    return out


def same(one: object, other: object) -> bool:
    return bool(one == other)


def labels_of(source: RowSource, classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    codes = [block.labels for block in source.blocks()]
    if any(part is None for part in codes):
        raise InputError.expected("rows with labels", of="X", got="rows without", remedy="Pass y.")
    return np.asarray(classes[np.concatenate([part for part in codes if part is not None])])


def _column_names(X: TableLike) -> list[str] | None:
    """Names of a table's columns; None for arrays."""
    if isinstance(X, Mapping):
        return list(map(str, X))
    import narwhals as nw

    wrapped = nw.from_native(X, pass_through=True, eager_only=True)
    return list(map(str, wrapped.columns)) if isinstance(wrapped, nw.DataFrame) else None
