"""The passes of descent: a clipped gradient sum, a histogram of predictions, or both of one model,
over rows a to b of a block.

`Descent` holds what is the same at every step of a run; weights and costs come with the questions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._types import Floats, Ints
from ...core.rows import Block, Drawn, Rows
from ...facts import Cells
from ..question import Question, Scale, cell_count
from ..questions.cell_weights import by_model
from ..questions.gradients import GradientSum
from ..questions.histograms import PredictionHistogram

DescentJob = Callable[[Block | Drawn, int, int], tuple[Ints, ...]]

# models: from here one pass with models side by side beats one pass a model. To set up a row for
# many models takes as long as 8 models with a hundred numbers, and as 32 with few numbers and codes
PANEL_FROM, PANEL_FROM_FEW = 8, 32
FEW_NUMBERS = 16
PANEL_MODELS = 128  # models side by side: more no longer fit the cache
# models that the processor does at once: a panel is filled up to a multiple with models whose sums
# are dropped
LANES = 8
LOSS_CODES = {"log": 0, "squared": 1, "zero-one": 2, "none": 3}
DECISION_CODES = {"soft": 0, "hard": 1}
_NOTHING = np.empty((0, 0))
_NO_WEIGHTS = np.empty(0)


def units(scales: Sequence[Scale], models: int) -> Floats:
    """Grid steps to one, a number a model."""
    steps = [math.ldexp(1.0, scale.exponent) for scale in scales]
    return np.array(steps * models if len(steps) == 1 else steps)


def chunk(scales: Sequence[Scale]) -> int:
    """How many rows' integers add up exactly in float64, a power of two (see `kernels_panel`)."""
    bits = max(math.frexp(scale.bound.norm / scale.unit)[1] for scale in scales)
    return 1 << max(0, min(22, 52 - bits))


@dataclass(frozen=True, slots=True)
class Descent:
    """A gradient sum, a histogram, or both in one pass: all but the weights, the costs and the
    weights of the loss."""

    models: int
    outputs: int
    cells: Cells | None
    loss: int  # its code
    sharpness: float
    clip: float
    cost_labels: int
    hist_labels: int
    width: int  # coordinates of a gradient; 0 without one
    buckets: int  # of the histogram; 0 without one
    kind: int
    g_unit: Floats
    h_unit: Floats
    rows_exact: int
    order: tuple[bool, ...]  # for each question, whether it is the gradient
    panel_from: int  # models that share a pass

    @staticmethod
    def of(measurements: Sequence[tuple[Question, Sequence[Scale]]], rows: Rows) -> Descent:
        """The pass that answers these one or two questions about one model."""
        gradient, g_scales = next(
            ((q, s) for q, s in measurements if isinstance(q, GradientSum)), (None, None)
        )
        histogram, h_scales = next(
            ((q, s) for q, s in measurements if isinstance(q, PredictionHistogram)), (None, None)
        )
        question = gradient or histogram
        assert question is not None
        model = question.model
        labels = (
            len(rows.layout.classes or ()) if histogram is not None and histogram.by_label else 1
        )
        few = rows.layout.numbers <= FEW_NUMBERS and not rows.sparse
        return Descent(
            model.models,
            model.outputs,
            histogram.cells if histogram is not None else question.cells,
            LOSS_CODES[gradient.loss] if gradient is not None else 0,
            model.sharpness,
            math.inf if gradient is None or gradient.clip is None else gradient.clip,
            1 if gradient is None else gradient.cost_labels,
            labels,
            1 + rows.layout.width if gradient is not None else 0,
            cell_count(histogram.cells) * labels if histogram is not None else 0,
            DECISION_CODES[histogram.decisions] if histogram is not None else 1,
            np.ones(model.models) if g_scales is None else units(g_scales, model.models),
            np.ones(model.models) if h_scales is None else units(h_scales, model.models),
            min(chunk(s) for s in (g_scales, h_scales) if s is not None),
            tuple(isinstance(q, GradientSum) for q, _ in measurements),
            PANEL_FROM_FEW if few else PANEL_FROM,
        )

    def job(self, questions: Sequence[Question], rows: Rows) -> DescentJob:
        """What to do with rows a to b of a block, for questions with the keys of those given to
        `of`."""
        gradient: Any = next(
            (q for q, is_gradient in zip(questions, self.order, strict=True) if is_gradient), None
        )
        costs = (
            gradient.costs(rows.layout)
            if gradient is not None and gradient.cell_costs is not None
            else None
        )
        weights: Floats = questions[0].model.array  # both kinds have one
        loss_scale = gradient.loss_weights if gradient is not None else np.zeros(self.models)
        parts = (
            None
            if gradient is None or gradient.cell_weights is None
            else by_model(gradient.cell_weights, self.models)
        )
        pass_over = self._panel if self.is_panel else self._one_by_one
        return pass_over(weights, loss_scale, parts, costs, rows)

    @property
    def is_panel(self) -> bool:
        """Whether models share a pass, side by side."""
        return self.outputs == 1 and self.models >= self.panel_from

    def _head(self, block: Block, rows: Rows) -> tuple[Any, ...]:
        fixed = (*block.arrays(rows.offsets), block.labels)
        return (*fixed, block.cells(self.cells), block.weights)

    def _one_by_one(
        self,
        weights: Floats,
        loss_scale: Floats,
        parts: Floats | None,
        costs: Floats | None,
        rows: Rows,
    ) -> DescentJob:
        from ..kernels import linear as kernels

        def job(block: Block | Drawn, a: int, b: int) -> tuple[Ints, ...]:
            chosen = None
            if isinstance(block, Drawn):
                # Gathered while they are read, where one pass over dense rows is all; else as a
                # block of their own.
                apart = block.block.is_sparse or self.models > 1
                chosen, block = (None, block.gathered) if apart else (block.index[a:b], block.block)
            head, sizes = self._head(block, rows), _NO_WEIGHTS
            if chosen is None:
                features, sizes = block.features(rows.offsets)
                head = (*features, *head[len(features) :])
            G = np.zeros((self.models, self.outputs, self.width), np.int64)
            H = np.zeros((self.models, self.buckets, self.outputs), np.int64)
            for m in range(self.models):
                c, g, h = (
                    _NOTHING if costs is None else costs[m],
                    float(self.g_unit[m]),
                    float(self.h_unit[m]),
                )
                end = (
                    c,
                    self.cost_labels,
                    self.clip,
                    g,
                    G[m],
                    self.kind,
                    self.hist_labels,
                    h,
                    H[m],
                )
                loss = (
                    self.loss,
                    float(loss_scale[m]),
                    _NO_WEIGHTS if parts is None else parts[m],
                    self.sharpness,
                )
                if chosen is not None:
                    kernels.descend_chosen(*head, chosen, weights[m], *loss, *end)
                else:
                    kernels.descend(*head, weights[m], a, b, *loss, *end, sizes)
            return tuple(G if is_gradient else H for is_gradient in self.order)

        return job

    def _panel(
        self,
        weights: Floats,
        loss_scale: Floats,
        parts: Floats | None,
        costs: Floats | None,
        rows: Rows,
    ) -> DescentJob:
        from ..kernels import panel as kernels_panel

        M = self.models
        # Panels of equal width: one that were nearly empty would cost as much as a full one.
        cuts = [M * i // -(-M // PANEL_MODELS) for i in range(1 - -M // PANEL_MODELS)]
        panels: list[tuple[Any, ...]] = []
        for lo, hi in itertools.pairwise(cuts):
            c = _NOTHING if costs is None else _filled(costs[lo:hi, :, 0].T, 0.0)
            by_cell = _NOTHING if parts is None else _filled(parts[lo:hi].T, 0.0)
            numbers = (_filled(u[lo:hi], 1.0) for u in (loss_scale, self.g_unit, self.h_unit))
            panels.append((lo, hi, _filled(weights[lo:hi, 0].T, 0.0), c, by_cell, *numbers))

        def job(block: Block | Drawn, a: int, b: int) -> tuple[Ints, ...]:
            head = self._head(block.gathered if isinstance(block, Drawn) else block, rows)
            G, H = np.empty((M, 1, self.width), np.int64), np.empty((M, self.buckets, 1), np.int64)
            for lo, hi, part, c, by_cell, pull, g_unit, h_unit in panels:
                g, h = (
                    np.zeros((self.width, part.shape[1]), np.int64),
                    np.zeros((self.buckets, part.shape[1]), np.int64),
                )
                end = (
                    c,
                    self.cost_labels,
                    self.clip,
                    g_unit,
                    g,
                    self.kind,
                    self.hist_labels,
                    h_unit,
                    h,
                )
                loss = (self.loss, pull, by_cell, self.sharpness)
                kernels_panel.descend_panel(*head, part, a, b, *loss, *end, self.rows_exact)
                G[lo:hi, 0], H[lo:hi, :, 0] = g[:, : hi - lo].T, h[:, : hi - lo].T
            return tuple(G if is_gradient else H for is_gradient in self.order)

        return job


def _filled(values: Floats, filling: float) -> Floats:
    """The last axis filled up to a multiple of LANES."""
    count = values.shape[-1]
    # Models that are filled in are of weight 0, and their sums are dropped: loops then have no
    # remainder.
    out = np.full((*values.shape[:-1], -(-count // LANES) * LANES), filling)
    out[..., :count] = values
    return out
