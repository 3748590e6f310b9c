"""A classifier whose decisions are changed by chance, by group: the derived predictor of Hardt,
Price and Srebro (2016)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._types import Floats
from ..errors import InputError
from ..facts import Cells
from .groups import cell_ids, cells_from_values, cells_to_values
from .model import (
    Codes,
    Model,
    Parts,
    RandomState,
    ScoredModel,
    draw_codes,
    fixed_array,
    known_classes,
)

ROUNDING = 1e-9  # how far a row of probabilities may sum from 1 before it is refused
SURE = 40.0


@dataclass(frozen=True, eq=False, init=False)
class PostProcessedModel(Model):
    """P(decision = k | row) = mixing[c, j, k], for a row of group cell c on which the base decides
    j.

    `base`: a model, or None for a classifier made elsewhere, whose decisions are handed in: see
    `law`. `mixing`: (cells, classes, classes), each row a probability vector. `cells`: product
    cells, which tell a row's group by its sensitive codes; None: one cell for everybody, and no
    group is needed. A base that is randomized is followed in distribution.

    `edges`: rising numbers. Then j is the bin of the base's score (how many edges it is above), of
    two classes, and mixing is (cells, 1 + edges, 2): thresholds, or mixtures of some.

    >>> flip = [[[1.0, 0.0], [0.25, 0.75]], [[1.0, 0.0], [0.0, 1.0]]]
    >>> model = PostProcessedModel(flip, ("no", "yes"), Cells((("f", "m"),)))
    >>> model.law(np.array([1, 1]), np.array([0, 1])).tolist()
    [[0.25, 0.75], [0.0, 1.0]]
    """

    kind: ClassVar[str] = "post-processed"
    base: Model | None
    mixing: Floats
    cells: Cells | None
    edges: Floats | None
    _classes: tuple[Hashable, ...]

    def __init__(
        self,
        mixing: npt.ArrayLike,
        classes: Sequence[Hashable],
        cells: Cells | None = None,
        base: Model | None = None,
        edges: npt.ArrayLike | None = None,
    ) -> None:
        listed = known_classes(classes)
        if cells is not None and cells.mode != "product":
            remedy = "A person is in one product cell: build marginal groups from those."
            raise InputError.expected("product cells", of="cells", got=cells.mode, remedy=remedy)
        if base is not None and base.classes != listed:
            remedy = "Give the base's own classes, in its order."
            raise InputError.expected(
                f"the base's classes {base.classes}", of="classes", got=listed, remedy=remedy
            )
        bins = None if edges is None else fixed_array(edges, (len(np.atleast_1d(edges)),), "edges")
        if bins is not None and (len(listed) != 2 or not (np.diff(bins) > 0).all()):
            remedy = "Give thresholds to a classifier of two classes."
            raise InputError.expected(
                "rising edges of scores", of="edges", got=bins.tolist()[:4], remedy=remedy
            )
        answers = len(listed) if bins is None else 1 + len(bins)
        table = fixed_array(
            mixing, (1 if cells is None else cells.count, answers, len(listed)), "mixing"
        )
        if table.min() < 0 or np.abs(table.sum(axis=2) - 1.0).max() > ROUNDING:
            remedy = "Give a distribution over classes for each cell and base decision."
            raise InputError.expected(
                "rows of probabilities", of="mixing", got=table.tolist()[:2], remedy=remedy
            )
        _checks.normalise(self, base=base, mixing=table, cells=cells, edges=bins, _classes=listed)

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The classes, in the order of their codes."""
        return self._classes

    @property
    def is_randomised(self) -> bool:
        """Whether some base decision is changed by chance, or the base itself is randomized."""
        return bool(((self.mixing > 0) & (self.mixing < 1)).any()) or (
            self.base is not None and self.base.is_randomised
        )

    @property
    def reads_groups(self) -> bool:
        """Whether the table tells groups apart."""
        return self.cells is not None

    def law(self, decisions: Codes, cell_ids: npt.NDArray[np.integer] | None = None) -> Floats:
        """The distribution of the decision, (rows, classes), from the base's decisions (or bins,
        rows,) and the rows' cells (rows,)."""
        return np.asarray(self.mixing[0 if cell_ids is None else cell_ids, decisions])

    def bins(self, scores: Floats) -> Codes:
        """The bin of each score: how many edges it is above. NaN is no score."""
        if self.edges is None or np.isnan(scores).any():
            remedy = "Fill in missing features, or see why the base has no score for some rows."
            got = "NaN" if self.edges is not None else "decisions"
            raise InputError.expected(
                "scores of the base classifier", of="scores", got=got, remedy=remedy
            )
        return np.searchsorted(self.edges, scores, side="left").astype(np.intp)

    def mixed(self, base_law: Floats, cell_ids: npt.NDArray[np.integer] | None = None) -> Floats:
        """The same from the distribution of a base that is randomized, (rows, classes)."""
        tables = (
            np.broadcast_to(self.mixing[0], (1, *self.mixing.shape[1:]))
            if cell_ids is None
            else self.mixing[cell_ids]
        )
        return np.asarray((base_law[:, np.newaxis, :] @ tables)[:, 0, :])

    def predict_proba(self, rows: object) -> Floats:
        """The distribution of the decision: there is no other probability."""
        return self.decision_proba(rows)

    def decision_proba(self, rows: object) -> Floats:
        """The distribution of the decision for rows that carry sensitive codes."""
        if self.base is None:
            remedy = "Hand its decisions to law(decisions, cell_ids)."
            raise InputError.expected("a base model", of="base", got=None, remedy=remedy)
        ids = self._cell_ids(rows)
        if self.edges is not None:
            return self.law(self.bins(scores_of(self.base, rows)), ids)
        if self.base.is_randomised:
            return self.mixed(self.base.decision_proba(rows), ids)
        return self.law(self.base.predict_codes(rows), ids)

    def predict_codes(self, rows: object, random_state: RandomState = None) -> Codes:
        """One draw a row. The same seed and rows give the same draws."""
        return draw_codes(self.decision_proba(rows), random_state)

    def to_parts(self) -> Parts:
        """The table, classes and cells, and the parts of the base."""
        cells = None if self.cells is None else cells_to_values(self.cells)
        models = () if self.base is None else (self.base.to_parts(),)
        arrays = {"mixing": self.mixing} | ({} if self.edges is None else {"edges": self.edges})
        return Parts(self.kind, {"classes": list(self.classes), "cells": cells}, arrays, models)

    @staticmethod
    def from_parts(parts: Parts, models: Sequence[Model]) -> PostProcessedModel:
        """The inverse of `to_parts`."""
        given = parts.values["cells"]
        cells = None if given is None else cells_from_values(given)
        base = models[0] if models else None
        classes, edges = tuple(parts.values["classes"]), parts.arrays.get("edges")
        return PostProcessedModel(parts.arrays["mixing"], classes, cells, base, edges)

    def _cell_ids(self, rows: object) -> npt.NDArray[np.integer] | None:
        return None if self.cells is None else cell_ids(rows, self.cells)


def scores_of(base: Model, rows: object) -> Floats:
    """The score by which a model of two classes decides for the second, above 0: its own, or the
    logit of its probability."""
    if isinstance(base, ScoredModel):
        return np.asarray(base.decision_scores(rows)[:, 0])
    return logits(base.predict_proba(rows)[:, 1])


def logits(probabilities: object) -> Floats:
    """log(p / (1 - p)), at most `SURE` in size.

    >>> logits([0.0, 0.5, 1.0]).tolist()
    [-40.0, 0.0, 40.0]
    """
    p = np.asarray(probabilities, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.clip(np.log(p) - np.log1p(-p), -SURE, SURE))
