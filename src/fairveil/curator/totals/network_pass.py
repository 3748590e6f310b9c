"""The pass of a network over rows: a clipped gradient sum, a histogram of predictions, or both of
one network at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._types import Floats, Ints
from ...core.rows import Block, Drawn, Rows
from ...core.sums import added, whole_steps
from ...core.threads import in_pieces
from ..question import Question, Scale, cell_count
from ..questions.by_cell import ByCell, Weighed, inner_of
from ..questions.networks import LARGEST, Network, NetworkGradient, NetworkHistogram
from ..quiet import Troubles, quietly
from . import person_pass
from .cell_order import places


@dataclass(frozen=True, slots=True)
class NetworkPass:
    """All but the parameters and the costs, which come with the questions."""

    scales: tuple[Scale, ...]
    classes: int
    scratch: Any  # memory of the last step, for the next

    @staticmethod
    def of(measurements: Sequence[tuple[Question, Sequence[Scale]]], rows: Rows) -> NetworkPass:
        """The pass that answers these one or two questions about one network."""
        from ..kernels.torch_parts import Scratch

        return NetworkPass(
            tuple(scales[0] for _, scales in measurements),
            len(rows.layout.classes or ()),
            Scratch(in_pieces),
        )

    def job(
        self, questions: Sequence[Question], rows: Rows
    ) -> Callable[[Block | Drawn, int, int], tuple[Ints, ...]]:
        """What to do with rows a to b of a block, for questions with the keys of those given to
        `of`, or one around the one."""
        if isinstance(questions[0], ByCell):
            return self._by_cell(questions[0], rows)
        from ..kernels.torch_gradient import engine

        outer = questions[0]
        asked: list[Any] = [inner_of(question) for question in questions]
        model: Network = asked[0].model
        troubles: Troubles = asked[0]._troubles
        ready = engine(model.skeleton)

        def job(block: Block | Drawn, a: int, b: int) -> tuple[Ints, ...]:
            whole, index = _taken(block, a, b)
            wanted = None
            for question, scale in zip(asked, self.scales, strict=True):
                if isinstance(question, NetworkGradient):
                    wanted = _wanted(question, scale, whole, index, self.scratch)
                    if person_pass.is_by_person(question, rows):
                        most = wanted.clip * (rows.max_sample_weight if rows.weighted else 1.0)
                        wanted = replace(wanted, persons=whole.persons[index], most=most)
                    if isinstance(outer, Weighed):
                        wanted = replace(wanted, weights=outer.row_weights(whole, index))
            # tried on made-up rows first: what is heard of that is no row's
            found, _ = whole.row_major(index), ready.method
            logits, total = quietly(troubles, ready.run, model.parameters, found, wanted, troubles)
            out: list[Ints] = []
            for question, scale in zip(asked, self.scales, strict=True):
                if isinstance(question, NetworkHistogram):
                    out.append(_histogram(question, scale, logits, whole, index, self.classes))
                else:
                    assert total is not None
                    out.append(total)
            return tuple(out)

        return job

    def _by_cell(
        self, question: ByCell, rows: Rows
    ) -> Callable[[Block | Drawn, int, int], tuple[Ints, ...]]:
        """Each row once, those of one cell together."""
        plain = self.job([question.inner], rows)
        shape = question.shape(rows.layout)

        def job(block: Block | Drawn, a: int, b: int) -> tuple[Ints, ...]:
            whole, index = _taken(block, a, b)
            order, cuts = places(
                whole, question.cells, np.arange(a, b) if isinstance(index, slice) else index
            )
            out = np.zeros(shape, np.int64)
            for cell, (first, last) in enumerate(itertools.pairwise(cuts.tolist())):
                if first < last:
                    (out[cell],) = plain(Drawn(whole, order[first:last]), 0, last - first)
            return (out,)

        return job


def _taken(block: Block | Drawn, a: int, b: int) -> tuple[Block, Any]:
    """The block in which rows a to b lie, and where."""
    if isinstance(block, Drawn):
        return block.block, block.index[a:b]
    return block, slice(a, b)


def _wanted(
    question: NetworkGradient, scale: Scale, block: Block, index: slice | Ints, scratch: Any
) -> Any:
    from ..kernels.torch_gradient import Wanted

    labels = block.labels[index].astype(np.int64) if "label" in question.reads else None
    table, costs = question.costs, None
    if table is not None:
        by_label = labels if question.cost_labels > 1 and labels is not None else 0
        costs = np.zeros((1, 1))
        for line in block.cells(question.cells):  # the row's cells: one, or one a sensitive column
            costs = costs + table.take(
                line[index].astype(np.int64) * question.cost_labels + by_label, axis=0
            )
    return Wanted(
        LARGEST if question.clip is None else question.clip,
        scale.unit,
        scale.bound.diameter > 0.0,
        question.model.sharpness,
        float(np.asarray(question.loss_weight).item()),
        labels if question.loss == "log" else None,
        costs,
        block.weights[index] if len(block.weights) else None,
        scratch,
    )


def _histogram(
    question: NetworkHistogram,
    scale: Scale,
    logits: Floats,
    block: Block,
    index: slice | Ints,
    classes: int,
) -> Ints:
    """Rows whose logits are no numbers count nowhere."""
    values = decisions(logits, question.decisions, question.model.sharpness)
    labels = classes if question.by_label else 1
    weights = block.weights[index] if len(block.weights) else 1.0
    lines = block.cells(question.cells)[:, index].astype(np.int64) * labels
    lines = lines + (block.labels[index] if question.by_label else 0)
    steps = whole_steps(values.T, weights, math.ldexp(1.0, scale.exponent))
    return added(lines, steps, cell_count(question.cells) * labels)


def decisions(logits: Floats, kind: str, sharpness: float) -> Floats:
    """(rows, outputs): hard or soft decisions; of two classes the second's. Rows of NaN are
    zero."""
    good = np.isfinite(logits).all(axis=1, keepdims=True)
    z = np.where(good, logits, 0.0)
    if z.shape[1] == 1:
        with np.errstate(over="ignore"):
            values = (
                (z > 0).astype(np.float64)
                if kind == "hard"
                else 1.0 / (1.0 + np.exp(-sharpness * z))
            )
    elif kind == "hard":
        values = (z.argmax(axis=1)[:, np.newaxis] == np.arange(z.shape[1])).astype(np.float64)
    else:
        powers = np.exp(sharpness * (z - z.max(axis=1, keepdims=True)))
        values = powers / powers.sum(axis=1, keepdims=True)
    return np.where(good, values, 0.0)
