"""Classifiers that are changed by group before they decide: decisions by chance, the derived
predictor of Hardt, Price and Srebro (2016), or probabilities by a shift, after DP2DP of Denis, Pinot
and Say (2025)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._types import Floats
from ..core.errors import need
from ..facts import Cells
from .model import (
    Codes,
    Model,
    ScoredModel,
    cell_ids,
    fixed_array,
    known_classes,
    need_product,
    one_hot,
)

ROUNDING = 1e-9  # how far a row of probabilities may sum from 1 before it is refused
SURE = 40.0


def _checked(model: PostProcessedModel | ShiftedModel) -> tuple[Hashable, ...]:
    """The classes, which are those of the base where there is one."""
    listed, base = known_classes(model.classes), model.base
    need_product(model.cells)
    fix, same = "Give the base's own classes, in its order.", base is None or base.classes == listed
    words = "" if base is None else f"the base's classes {base.classes}"
    need(same, words, of="classes", got=listed, fix=fix)
    return listed


def _base(model: PostProcessedModel | ShiftedModel, fix: str) -> Model:
    need(model.base is not None, "a base model", of="base", got=None, fix=fix)
    assert model.base is not None
    return model.base


@dataclass(frozen=True, eq=False)
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
    mixing: Floats
    classes: tuple[Hashable, ...]
    cells: Cells | None = None
    base: Model | None = None
    edges: Floats | None = None

    def __post_init__(self) -> None:
        classes, edges = _checked(self), self.edges
        if edges is not None:
            edges = fixed_array(edges, (len(np.atleast_1d(edges)),), "edges")
            right, fix = len(classes) == 2, "Give thresholds to a classifier of two classes."
            right = right and bool((np.diff(edges) > 0).all())
            words, got = "rising edges of scores", edges.tolist()[:4]
            need(right, words, of="edges", got=got, fix=fix)
        cells = 1 if self.cells is None else self.cells.count
        answers = len(classes) if edges is None else 1 + len(edges)
        table = fixed_array(self.mixing, (cells, answers, len(classes)), "mixing")
        right = table.min() >= 0 and np.abs(table.sum(axis=2) - 1.0).max() <= ROUNDING
        words, got = "rows of probabilities", table.tolist()[:2]
        fix = "Give a distribution over classes for each cell and base decision."
        need(right, words, of="mixing", got=got, fix=fix)
        _checks.normalise(self, mixing=table, classes=classes, edges=edges)

    @property
    def is_randomised(self) -> bool:
        """Whether some base decision is changed by chance, or the base itself is randomized."""
        by_chance = bool(((self.mixing > 0) & (self.mixing < 1)).any())
        return by_chance or (self.base is not None and self.base.is_randomised)

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
        edges, got = self.edges, "decisions" if self.edges is None else "NaN"
        right, words = edges is not None, "scores of the base classifier"
        right = right and not np.isnan(scores).any()
        fix = "Fill in missing features, or see why the base has no score for some rows."
        need(right, words, of="scores", got=got, fix=fix)
        assert edges is not None
        return np.searchsorted(edges, scores, side="left").astype(np.intp)

    def mixed(self, base_law: Floats, cell_ids: npt.NDArray[np.integer] | None = None) -> Floats:
        """The same from the distribution of a base that is randomized, (rows, classes)."""
        tables = self.mixing[:1] if cell_ids is None else self.mixing[cell_ids]
        return np.asarray((base_law[:, np.newaxis, :] @ tables)[:, 0, :])

    def decision_proba(self, rows: object) -> Floats:
        """The distribution of the decision for rows that carry sensitive codes."""
        base = _base(self, "Hand its decisions to law(decisions, cell_ids).")
        ids = None if self.cells is None else cell_ids(rows, self.cells)
        if self.edges is not None:
            return self.law(self.bins(scores_of(base, rows)), ids)
        if base.is_randomised:
            return self.mixed(base.decision_proba(rows), ids)
        return self.law(base.predict_codes(rows), ids)


@dataclass(frozen=True, eq=False)
class ShiftedModel(Model):
    """Decide by p(k | row) - offsets[c, k], for a row of group cell c.

    `base`: a model, or None for a classifier made elsewhere, whose probabilities are handed in: see
    `law`. `offsets`: (cells, classes). `temperature`: decisions are drawn from the softmax of these
    differences over it; None: the largest decides.

    >>> model = ShiftedModel(
    ...     [[0.0, 0.0], [0.2, -0.2]], ("no", "yes"), Cells((("f", "m"),)), temperature=None
    ... )
    >>> model.law(np.array([[0.6, 0.4], [0.6, 0.4]]), np.array([0, 1])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    kind: ClassVar[str] = "shifted"
    offsets: Floats
    classes: tuple[Hashable, ...]
    cells: Cells
    temperature: float | None
    base: Model | None = None

    def __post_init__(self) -> None:
        classes, heat = _checked(self), self.temperature
        table = fixed_array(self.offsets, (self.cells.count, len(classes)), "offsets")
        heat = None if heat is None else _checks.positive(temperature=heat)
        _checks.normalise(self, offsets=table, classes=classes, temperature=heat)

    @property
    def is_randomised(self) -> bool:
        """Whether decisions are drawn."""
        return self.temperature is not None

    @property
    def reads_groups(self) -> bool:
        """Each group has offsets of its own."""
        return True

    def law(self, probabilities: Floats, ids: npt.NDArray[np.integer]) -> Floats:
        """The distribution of the decision, (rows, classes), from the base's probabilities and the
        rows' cells."""
        moved = np.asarray(probabilities, np.float64) - self.offsets[ids]
        if self.temperature is None:
            return one_hot(moved.argmax(axis=1), len(self.classes))
        return softened(moved, self.temperature)

    def decision_proba(self, rows: object) -> Floats:
        """The distribution of the decision for rows that carry sensitive codes."""
        base = _base(self, "Hand its probabilities to law(probabilities, ids).")
        return self.law(base.predict_proba(rows), cell_ids(rows, self.cells))


def softened(moved: Floats, temperature: float) -> Floats:
    """Their softmax at a temperature, along the last axis; sums are at most 1 but for a rounding.

    >>> softened(np.array([[0.5, 0.5], [1.0, 0.0]]), 0.1).round(3).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    shares = np.exp((moved - moved.max(axis=-1, keepdims=True)) / temperature)
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


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
