"""Distributions over groups, one a row: a group is drawn for each, once, by secret coins
(docs/theory/attribute_holder.md).

Guarantees (tests/methods/test_methods_reports.py):
4. A drawn group depends on that row's distribution and its own coin alone.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _checks
from ..._types import Floats
from ...core.noise import NoiseSource
from ...errors import InputError
from ...facts.reports import ABOUT_ONE, Reports

TWO_TO_64 = 2.0**64


@dataclass(frozen=True, eq=False, repr=False)  # it holds what is private
class SoftGroups:
    """A distribution over groups for each row, such as one from surname and place.

    `release_groups` takes it as `sensitive_features`. It draws one group for each row from that
    row's distribution, by secret coins, and counts the drawn groups. What is estimated are sums of
    these distributions, never the true groups.

    Parameters
    ----------
    shares : array of shape (n_rows, n_groups)
        Probabilities; lines sum to 1.
    groups : sequence
        The groups, in the order of the columns.

    See Also
    --------
    release_groups : Takes it.
    Reports : Groups that were flipped with known rates.

    Examples
    --------
    >>> soft = SoftGroups([[0.9, 0.1], [0.2, 0.8]], ("a", "b"))
    >>> soft.rows
    2
    """

    shares: Floats
    groups: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        shares, groups = np.array(self.shares, np.float64), tuple(self.groups)
        right = (
            shares.ndim == 2
            and shares.shape[1] == len(groups) >= 2
            and np.isfinite(shares).all()
            and (shares >= 0).all()
        )
        if (
            not right
            or len(set(groups)) != len(groups)
            or np.abs(shares.sum(axis=1) - 1.0).max(initial=0.0) > ABOUT_ONE
        ):
            remedy = "Pass one column for each group, probabilities that sum to 1 in every row."
            got = f"an array of shape {shares.shape}, or lines of another sum"
            raise InputError.expected(
                "probabilities of groups", of="shares", got=got, remedy=remedy, quote=False
            )
        _checks.normalise(self, shares=shares, groups=groups)

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.shares)

    @property
    def reports(self) -> Reports:
        """What drawn groups are: exact on average, and by chance."""
        return Reports(
            self.groups, tuple(map(tuple, np.eye(len(self.groups)).tolist())), drawn=True
        )

    def drawn(self, source: NoiseSource) -> Any:
        """One group a row, as a column of groups.

        Parameters
        ----------
        source : NoiseSource
            Where coins come from.

        Returns
        -------
        ndarray
            The drawn groups.
        """
        coins = source.stream("sampling", "groups").words(self.rows) / TWO_TO_64
        ends = np.cumsum(self.shares, axis=1)[:, :-1]
        at = (coins[:, np.newaxis] >= ends).sum(axis=1)
        out = np.empty(self.rows, dtype=object)
        out[:] = [self.groups[j] for j in at.tolist()]
        return out
