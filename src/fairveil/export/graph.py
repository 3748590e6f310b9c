"""A `Program` as an ONNX graph, by columns: (rows, k) tensors of float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Floats
from .program import (
    LARGEST,
    UNIFORM,
    Bins,
    ByGroup,
    GivenDecision,
    GivenLaw,
    GivenScore,
    Hard,
    Inputs,
    Law,
    Likeliest,
    Linear,
    Mixed,
    Moved,
    Scores,
    Softmax,
    Step,
    Tabled,
    WordColumn,
)
from .tensors import Tensors

X = "X"
"""The name of an array's one input."""


class Graph(Tensors):
    """The nodes of a program."""

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self._done: dict[object, str] = {}
        self._sizes = inputs.code_sizes
        self._cell = ""
        self._read(inputs)

    # Columns

    def _read(self, inputs: Inputs) -> None:
        raw = self._raw(inputs) if inputs.numbers else ""
        codes = [self._word(column) for column in inputs.words]
        own = list(codes)
        codes += [self._position(step, raw) for step in inputs.steps]
        for one, other in inputs.pairs:
            first, second = (
                self._position(side, raw) if isinstance(side, Step) else own[side.place]
                for side in (one, other)
            )
            wide = self.op("Mul", first, self.constant([[other.size]], np.int64))
            codes.append(self.op("Add", wide, second))
        self._codes = codes
        self._numbers = self._finished(raw, inputs) if raw else ""
        for column in inputs.groups:
            code = self._word(column)
            wide = (
                self.op("Mul", self._cell, self.constant([[len(column.values)]], np.int64))
                if self._cell
                else ""
            )
            self._cell = self.op("Add", wide, code) if wide else code

    def _raw(self, inputs: Inputs) -> str:
        """Numbers, (rows, numbers), inside their bounds."""
        listed = inputs.numbers
        if inputs.matrix is not None:
            given = self.input(X, width=inputs.matrix)
        else:
            columns = [self.input(column.name) for column in listed]
            given = self.op("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]
        lost = self.op("IsNaN", given)
        if listed[0].bounds is None:
            large = self.op("Greater", self.op("Abs", given), self.constant([[LARGEST]]))
            strange = self.op("Or", lost, large)
            self.refuse(self.any([strange]))
            return self.op("Where", strange, self.constant(np.zeros((1, len(listed)))), given)
        if any(column.missing is None for column in listed):
            needed = self.constant([[column.missing is None for column in listed]], np.bool_)
            self.refuse(self.any([self.op("And", lost, needed)]))
        stand_ins = self.constant(
            [[0.0 if column.missing is None else column.missing for column in listed]]
        )
        ends = np.array([column.bounds for column in listed])
        filled = self.op("Where", lost, stand_ins, given)
        inside = self.op(
            "Min",
            self.op("Max", filled, self.constant(ends[:, :1].T)),
            self.constant(ends[:, 1:].T),
        )
        shifted = self.op("Sub", inside, self.constant([[column.center for column in listed]]))
        scaled = self.op("Div", shifted, self.constant([[column.half for column in listed]]))
        return self.op(
            "Min", self.op("Max", scaled, self.constant([[-1.0]])), self.constant([[1.0]])
        )

    def _finished(self, raw: str, inputs: Inputs) -> str:
        listed, name = inputs.numbers, raw
        if any(column.along for column in listed):
            parts = [
                self._along(self.column(raw, at), one.along) if one.along else self.column(raw, at)
                for at, one in enumerate(listed)
            ]
            name = self.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
        if all((column.mean, column.deviation) == (0.0, 1.0) for column in listed):
            return name
        shifted = self.op("Sub", name, self.constant([[column.mean for column in listed]]))
        return self.op("Div", shifted, self.constant([[column.deviation for column in listed]]))

    def _along(self, name: str, edges: tuple[float, ...]) -> str:
        low, width = np.array([edges[:-1]]), np.diff(np.array([edges]))
        if not low.size:
            return self.op(
                "Add", self.op("Mul", name, self.constant([[0.0]])), self.constant([[-1.0]])
            )
        part = self.op("Div", self.op("Sub", name, self.constant(low)), self.constant(width))
        part = self.op("Min", self.op("Max", part, self.constant([[0.0]])), self.constant([[1.0]]))
        shares = self.constant(np.full(low.shape, 2.0 / low.size))
        return self.op("Add", self.sum(self.op("Mul", part, shares)), self.constant([[-1.0]]))

    def _position(self, step: Step, raw: str) -> str:
        name = self.column(raw, step.place)
        if not step.edges:
            return self.cast(self.op("Mul", name, self.constant([[0.0]])), "INT64")
        reached = self.op("GreaterOrEqual", name, self.constant([step.edges]))
        return self.sum(self.cast(reached, "INT64"))

    def _word(self, column: WordColumn) -> str:
        """Codes, (rows, 1)."""
        if column in self._done:
            return self._done[column]
        known = self.inputs.get(column.name)
        given = column.name if known is not None else self.input(column.name, text=column.is_text)
        code = (
            self._text_code(column, given) if column.is_text else self._number_code(column, given)
        )
        if column.missing is None or column.unknown is None:
            below = self.op("Less", code, self.constant([[0]], np.int64))
            self.refuse(below)
            code = self.op("Max", code, self.constant([[0]], np.int64))
        self._done[column] = code
        return code

    def _text_code(self, column: WordColumn, given: str) -> str:
        missing = -1 if column.missing is None else column.missing
        codes: dict[Any, int] = dict.fromkeys(column.markers, missing)
        codes |= {value: code for code, value in enumerate(column.values)}
        options = {"keys_strings": list(codes), "values_int64s": list(codes.values())}
        unknown = -1 if column.unknown is None else column.unknown
        return self.op("LabelEncoder", given, domain="ai.onnx.ml", default_int64=unknown, **options)

    def _number_code(self, column: WordColumn, given: str) -> str:
        same = self.op("Equal", given, self.constant([[float(value) for value in column.values]]))
        found = self.cast(same, "INT64")
        place = self.sum(
            self.op("Mul", found, self.constant([range(len(column.values))], np.int64))
        )
        unknown = -1 if column.unknown is None else column.unknown
        missing = -1 if column.missing is None else column.missing
        other = self.op(
            "Where",
            self.op("IsNaN", given),
            self.constant([[missing]], np.int64),
            self.constant([[unknown]], np.int64),
        )
        listed = self.op("Greater", self.sum(found), self.constant([[0]], np.int64))
        return self.op("Where", listed, place, other)

    # Scores

    def scores(self, scores: Scores) -> str:
        """(rows, outputs)."""
        if scores not in self._done:
            self._done[scores] = self._scores(scores)
        return self._done[scores]

    def _scores(self, scores: Scores) -> str:
        if isinstance(scores, Linear):
            return self._linear(scores)
        if isinstance(scores, ByGroup):
            return self.op("Add", self.scores(scores.scores), self._at_cell(scores.offsets))
        if isinstance(scores, Moved):
            less = self.op("Sub", self.law(scores.law), self._at_cell(scores.offsets))
            return (
                less
                if scores.temperature == 1.0
                else self.op("Div", less, self.constant([[scores.temperature]]))
            )
        if isinstance(scores, GivenScore):
            given = self.input(scores.name)
            self.refuse(self.op("IsNaN", given))
            return given
        p = self.column(self.law(scores.law), 1)
        low, high = self.constant([[-scores.sure]]), self.constant([[scores.sure]])
        odds = self.op(
            "Sub", self.op("Log", p), self.op("Log", self.op("Sub", self.constant([[1.0]]), p))
        )
        return self.op("Min", self.op("Max", odds, low), high)

    def _linear(self, scores: Linear) -> str:
        start = scores.weights.shape[1] - sum(self._sizes)
        parts = (
            [self.op("MatMul", self._numbers, self.constant(scores.weights[:, :start].T))]
            if self._numbers
            else []
        )
        for code, size in zip(self._codes, self._sizes, strict=True):
            part = scores.weights[:, start : start + size].T
            start += size
            if part.any():
                flat = self.op("Squeeze", code, self.constant([1], np.int64))
                parts.append(self.op("Gather", self.constant(part), flat, axis=0))
        total = parts[0] if parts else self._zero()
        for one in parts[1:]:
            total = self.op("Add", total, one)
        total = self.op("Add", total, self.constant(scores.intercept[np.newaxis]))
        far = self.op("Greater", self.op("Abs", total), self.constant([[LARGEST]]))
        self.refuse(self.any([self.op("Or", far, self.op("IsNaN", total))]))
        return total

    def _zero(self) -> str:
        """(rows, 1) of zeros, where no number has a weight."""
        return self.op("Mul", self.cast(self._codes[0], "DOUBLE"), self.constant([[0.0]]))

    def _at_cell(self, table: Floats) -> str:
        """(rows, ...) of (cells, ...)."""
        return self.op(
            "Gather",
            self.constant(table),
            self.op("Squeeze", self._cell, self.constant([1], np.int64)),
            axis=0,
        )

    # Distributions

    def law(self, law: Law) -> str:
        """(rows, classes)."""
        if law not in self._done:
            self._done[law] = self._law(law)
        return self._done[law]

    def _law(self, law: Law) -> str:
        if isinstance(law, Softmax):
            scores = self.scores(law.scores)
            if law.scores.outputs == 1:
                scores = self.op(
                    "Concat", self.op("Mul", scores, self.constant([[0.0]])), scores, axis=1
                )
            return self.op("Softmax", scores, axis=1)
        if isinstance(law, Hard):
            scores = self.scores(law.scores)
            return (
                self._above(scores, 0.0)
                if law.scores.outputs == 1
                else self._largest(scores, law.classes)
            )
        if isinstance(law, Likeliest):
            inside = self.law(law.law)
            cut = law.threshold
            return (
                self._largest(inside, law.classes)
                if cut is None
                else self._above(self.column(inside, 1), cut)
            )
        if isinstance(law, Mixed):
            total = ""
            for weight, part in zip(law.weights, law.laws, strict=True):
                one = self.op("Mul", self.law(part), self.constant([[weight]]))
                total = self.op("Add", total, one) if total else one
            return total
        if isinstance(law, Bins):
            above = self.op("Greater", self.scores(law.scores), self.constant([law.edges]))
            return self._one_hot(self.sum(self.cast(above, "INT64")), law.classes)
        if isinstance(law, GivenDecision):
            return self._one_hot(self._word(law.column), law.classes)
        if isinstance(law, GivenLaw):
            return self._given_distribution(law)
        return self._tabled(law)

    def _given_distribution(self, law: GivenLaw) -> str:
        shares = self.op("Concat", *(self.input(name) for name in law.names), axis=1)
        total, close = self.sum(shares), law.close
        least = self.op("ReduceMin", shares, self.constant([1], np.int64), keepdims=1)
        near = self.op(
            "LessOrEqual",
            self.op("Abs", self.op("Sub", total, self.constant([[1.0]]))),
            self.constant([[close]]),
        )
        self.refuse(
            self.op(
                "Not",
                self.op("And", near, self.op("GreaterOrEqual", least, self.constant([[-close]]))),
            )
        )
        return shares

    def _above(self, score: str, least: float) -> str:
        return self._one_hot(
            self.cast(self.op("Greater", score, self.constant([[least]])), "INT64"), 2
        )

    def _largest(self, scores: str, classes: int) -> str:
        return self._one_hot(self.op("ArgMax", scores, axis=1, keepdims=1), classes)

    def _one_hot(self, codes: str, classes: int) -> str:
        return self.cast(
            self.op("Equal", codes, self.constant([range(classes)], np.int64)), "DOUBLE"
        )

    def _tabled(self, law: Tabled) -> str:
        inside = self.law(law.law)
        if len(law.table) == 1 or not self._cell:
            return self.op("MatMul", inside, self.constant(law.table[0]))
        row = self.op("Unsqueeze", inside, self.constant([1], np.int64))
        return self.op(
            "Squeeze",
            self.op("MatMul", row, self._at_cell(law.table)),
            self.constant([1], np.int64),
        )

    # Results

    def drawn(self, law: str, classes: int) -> str:
        """Codes, (rows, 1), that uniform numbers draw."""
        uniform = self.input(UNIFORM)
        inside = self.op(
            "And",
            self.op("GreaterOrEqual", uniform, self.constant([[0.0]])),
            self._below_one(uniform),
        )
        self.refuse(self.op("Not", inside))
        ends = self.op("CumSum", law, self.constant(1, np.int64))
        ends = self.op("Gather", ends, self.constant(range(classes - 1), np.int64), axis=1)
        count = self.sum(self.cast(self.op("GreaterOrEqual", uniform, ends), "INT64"))
        some = self.cast(self.op("Greater", law, self.constant([[0.0]])), "INT64")
        last = self.op(
            "ReduceMax",
            self.op("Mul", some, self.constant([range(classes)], np.int64)),
            self.constant([1], np.int64),
        )
        return self.op("Min", count, last)

    def _below_one(self, uniform: str) -> str:
        return self.op("Less", uniform, self.constant([[1.0]]))

    def certain(self, law: str) -> str:
        """Codes, (rows, 1), of the classes that have all of it."""
        return self.op("ArgMax", law, axis=1, keepdims=1)
