"""Counts of groups in public clusters, as they were released, and what follows from them for public
rows."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._types import ColumnsLike, Floats, TableLike
from ...errors import InputError
from ...facts import Cells, RowSource
from ...fairness import resolve
from ...learning.released import Clusters, GroupCounts, SoftValue, soft_values
from ...statement.document import PrivacyStatement
from .. import fitting
from ..faces import as_array
from ..reading.coding import Coding
from ..wrapped import codes_of
from .public_features import Ints, dealt, distribution_given, features_of, labels_in

LEAST = 1e-12  # a membership below has no row


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedCounts:
    """The release, and arithmetic on it. See `ReleasedGroups`."""

    privacy: PrivacyStatement
    cells: Cells
    classes: tuple[Hashable, ...]
    coding: Coding
    clusters: Clusters
    counts: GroupCounts

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The groups, in the order of the memberships' columns."""
        return self.cells.keys

    def memberships(self, X: TableLike, y: ColumnsLike = None) -> Floats:
        """Released share of each group in each row's cluster.

        Parameters
        ----------
        X : table or array
            Features.
        y : array, default=None
            Labels, or None where rows have none.

        Returns
        -------
        ndarray of shape (n_rows, n_groups)
            P(group | cluster of the row).
        """
        return np.asarray(self.counts.memberships[self.codes(X, y)])

    def codes(self, X: TableLike, y: ColumnsLike = None) -> Ints:
        """Cluster of each row, a function of its features and label.

        Parameters
        ----------
        X : table or array
            Features.
        y : array, default=None
            Labels, or None where rows have none.

        Returns
        -------
        ndarray of int
            Clusters.
        """
        labels = codes_of(labels_in(X, y, self.classes), self.classes, "y")
        return self.clusters.codes(features_of(self.coding, X), labels)

    def rates(
        self,
        X: TableLike,
        y: ColumnsLike,
        predictions: ColumnsLike,
        constraints: object,
        *,
        confidence: float = 0.95,
    ) -> tuple[SoftValue, ...]:
        """Value of each comparison of the constraints for these predictions, with error bars.

        Parameters
        ----------
        X : table or array
            Features of the rows of the release.
        y : array
            Their labels.
        predictions : array
            Classes, or probabilities of decisions (rows, classes).
        constraints : notion, str or list of these
            Constraints that are compared.
        confidence : float, default=0.95
            Confidence of the error bars.

        Returns
        -------
        tuple of SoftValue
            One for each comparison.
        """
        probability = 1.0 - _checks.fraction(confidence=confidence, low_open=True, high_open=True)
        system = resolve(fitting.notions_of(constraints), self.cells, self.classes)
        at = self.own_codes(X, y)
        law = distribution_given(predictions, self.classes, len(at))
        return tuple(soft_values(self.counts, at, self.clusters.labels, law, system, probability))

    def own_codes(self, X: TableLike, y: ColumnsLike) -> Ints:
        """Clusters of the rows of the release.

        Parameters
        ----------
        X : table or array
            Features of the rows of the release.
        y : array
            Their labels.

        Returns
        -------
        ndarray of int
            Clusters. Other rows are an error, since the release says nothing exact about them.
        """
        at = self.codes(X, y)
        if not np.array_equal(np.bincount(at, minlength=self.clusters.count), self.counts.sizes):
            remedy = (
                "Pass the X and y of release_groups; measure other rows where their groups are "
                "known."
            )
            raise InputError.expected(
                "the rows of the release", of="X, y", got="others", remedy=remedy
            )
        return at

    def __repr__(self) -> str:
        price = f"epsilon {self.privacy.epsilon:.3g}"
        return (
            f"ReleasedGroups({len(self.groups)} groups in {self.clusters.count} clusters of public "
            f"rows, {price})"
        )


def expanded_rows(
    released: ReleasedCounts,
    X: TableLike,
    labels: npt.NDArray[Any],
    copies: int | None,
    seed: int | None,
) -> tuple[Any, npt.NDArray[Any], npt.NDArray[Any], Floats]:
    """See `ReleasedGroups.expanded`."""
    from sklearn.utils import _safe_indexing

    if isinstance(X, RowSource):
        remedy = "Pass an array or a table."
        raise InputError.expected(
            "rows that can be repeated", of="X", got=type(X).__name__, remedy=remedy
        )
    keys = as_array(released.groups)
    if copies is None:
        soft = released.memberships(X, labels)
        rows, cells = np.nonzero(soft > LEAST)
        return _safe_indexing(X, rows), labels[rows], keys[cells], soft[rows, cells]
    codes, rng = released.codes(X, labels), np.random.default_rng(seed)
    cells = np.concatenate([dealt(codes, released.counts.memberships, rng) for _ in range(copies)])
    rows = np.tile(np.arange(len(codes)), copies)
    return _safe_indexing(X, rows), labels[rows], keys[cells], np.ones(len(rows))
