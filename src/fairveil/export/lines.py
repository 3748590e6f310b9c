"""A `Program` as lines of scalar expressions that compute one row. Each line gives one value a name,
by values that have names already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .._types import Floats
from .dialect import Sql, plus
from .program import (
    UNIFORM,
    Bins,
    ByGroup,
    Classified,
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
    NumberColumn,
    Program,
    Regressed,
    Scores,
    Softmax,
    Step,
    Tabled,
)

MOST_EXPONENT = 700.0
"""exp of more is no float64; a probability is then 0 or 1 to the last bit."""


@dataclass(frozen=True)
class Line:
    """name = expression; `level`: 1 + that of the names in it."""

    name: str
    text: str
    level: int


class Lines:
    """Lines as they are written, and the names of values that were computed already."""

    def __init__(self, dialect: Sql, prefix: str, inputs: Inputs) -> None:
        self.dialect, self.prefix, self._sizes = dialect, prefix, inputs.code_sizes
        self.lines: list[Line] = []
        self.guards: list[str] = []
        self._levels: dict[str, int] = {}
        self._done: dict[object, tuple[str, ...]] = {}
        self._numbers: tuple[str, ...] = ()
        self._codes: tuple[str, ...] = ()
        self._cell = ""
        self._read(inputs)

    def let(self, text: str, *of: str) -> str:
        """A name for an expression that reads `of`."""
        name = f"{self.prefix}{len(self.lines)}"
        level = 1 + max((self._levels.get(one, 0) for one in of), default=0)
        self.lines.append(Line(name, text, level))
        self._levels[name] = level
        return name

    # Columns

    def _read(self, inputs: Inputs) -> None:
        raw = tuple(self._number(column) for column in inputs.numbers)
        words = {
            one: self._guarded(self.dialect.coded_word(one))
            for one in dict.fromkeys((*inputs.words, *inputs.groups))
        }
        codes = [words[column] for column in inputs.words]
        codes += [self._position(step, raw) for step in inputs.steps]
        for pair in inputs.pairs:
            one, other = (
                self._position(side, raw) if isinstance(side, Step) else codes[side.place]
                for side in pair
            )
            codes.append(self.let(f"{one} * {pair[1].size} + {other}", one, other))
        self._codes = tuple(codes)
        self._numbers = tuple(
            self._finished(name, column) for name, column in zip(raw, inputs.numbers, strict=True)
        )
        for column in inputs.groups:
            own = words[column]
            self._cell = (
                self.let(f"{self._cell} * {len(column.values)} + {own}", self._cell, own)
                if self._cell
                else own
            )

    def _number(self, column: NumberColumn) -> str:
        name, number = self._guarded(self.dialect.coded_number(column)), self.dialect.number
        if column.bounds is None:
            return name
        scaled = self.let(f"({name} - {number(column.center)}) / {number(column.half)}", name)
        return self._between(scaled, -1.0, 1.0)

    def _between(self, name: str, low: float, high: float) -> str:
        number, when = self.dialect.number, self.dialect.when
        inner = when(f"{name} > {number(high)}", number(high), name)
        return self.let(when(f"{name} < {number(low)}", number(low), inner), name)

    def _position(self, step: Step, raw: Sequence[str]) -> str:
        name = raw[step.place]
        reached = (
            self.dialect.when(f"{name} >= {self.dialect.number(edge)}", "1", "0")
            for edge in step.edges
        )
        return self.let(plus(list(reached)) if step.edges else "0", name)

    def _finished(self, name: str, column: NumberColumn) -> str:
        number = self.dialect.number
        if column.along:
            name = self._along(name, column.along)
        if (column.mean, column.deviation) != (0.0, 1.0):
            name = self.let(f"({name} - {number(column.mean)}) / {number(column.deviation)}", name)
        return name

    def _along(self, name: str, edges: tuple[float, ...]) -> str:
        """-1 + sum_i 2 / m x (how much of part i lies below), in one line."""
        number, when = self.dialect.number, self.dialect.when
        share, parts = 2.0 / max(1, len(edges) - 1), [number(-1.0)]
        for low, high in pairwise(edges):
            inside = f"({name} - {number(low)}) / {number(high - low)}"
            inner = when(f"{name} >= {number(high)}", number(1.0), inside)
            parts.append(
                f"{number(share)} * {when(f'{name} <= {number(low)}', number(0.0), inner)}"
            )
        return self.let(plus(parts), name)

    # Scores

    def scores(self, scores: Scores) -> tuple[str, ...]:
        """One name an output."""
        if scores not in self._done:
            self._done[scores] = tuple(self._scores(scores))
        return self._done[scores]

    def _scores(self, scores: Scores) -> list[str]:
        if isinstance(scores, Linear):
            pairs = zip(scores.weights, scores.intercept, strict=True)
            return [self._linear(weights, float(intercept)) for weights, intercept in pairs]
        if isinstance(scores, ByGroup):
            lines = zip(self.scores(scores.scores), scores.offsets.T, strict=True)
            return [
                self.let(f"{own} + {self.dialect.at(self._cell, line.tolist())}", own, self._cell)
                for own, line in lines
            ]
        if isinstance(scores, GivenScore):
            return [self._guarded(self.dialect.given(scores.name))]
        if isinstance(scores, Moved):
            return [self._moved(p, k, scores) for k, p in enumerate(self.law(scores.law))]
        return [self._logit(self.law(scores.law)[1], scores.sure)]

    def _moved(self, p: str, k: int, scores: Moved) -> str:
        less = self.let(
            f"{p} - {self.dialect.at(self._cell, scores.offsets[:, k].tolist())}", p, self._cell
        )
        heat = scores.temperature
        return less if heat == 1.0 else self.let(f"{less} / {self.dialect.number(heat)}", less)

    def _linear(self, weights: Floats, intercept: float) -> str:
        number, used, parts = self.dialect.number, [], [self.dialect.number(intercept)]
        for name, weight in zip(self._numbers, weights.tolist(), strict=False):
            if weight:
                parts.append(f"{number(weight)} * {name}")
                used.append(name)
        start = len(self._numbers)
        for code, size in zip(self._codes, self._sizes, strict=True):
            part = weights[start : start + size].tolist()
            start += size
            if any(part):
                parts.append(self.dialect.at(code, part))
                used.append(code)
        total = self.let(plus(parts), *used)
        return self._guarded(self.dialect.finite(total), total)

    def _guarded(self, text: str, *of: str) -> str:
        """A value that refused rows do not have."""
        name = self.let(text, *of)
        self.guards.append(name)
        return name

    def _logit(self, p: str, sure: float) -> str:
        d = self.dialect
        inner = f"{d.log(p)} - {d.log(f'({d.number(1.0)} - {p})')}"
        safe = d.when(f"{p} >= {d.number(1.0)}", d.number(sure), inner)
        return self._between(
            self.let(d.when(f"{p} <= {d.number(0.0)}", d.number(-sure), safe), p), -sure, sure
        )

    # Distributions

    def law(self, law: Law) -> tuple[str, ...]:
        """One name a class."""
        if law not in self._done:
            self._done[law] = tuple(self._law(law))
        return self._done[law]

    def _law(self, law: Law) -> list[str]:
        one, zero = self.dialect.number(1.0), self.dialect.number(0.0)
        if isinstance(law, Softmax):
            return self._softmax(self.scores(law.scores))
        if isinstance(law, Hard):
            scores = self.scores(law.scores)
            return self._above(scores[0], zero) if len(scores) == 1 else self._largest(scores)
        if isinstance(law, Likeliest):
            inside = self.law(law.law)
            return (
                self._largest(inside)
                if law.threshold is None
                else self._above(inside[1], self.dialect.number(law.threshold))
            )
        if isinstance(law, Mixed):
            inner = [self.law(part) for part in law.laws]
            weights = [self.dialect.number(weight) for weight in law.weights]
            return [self._sum(weights, [names[k] for names in inner]) for k in range(law.classes)]
        if isinstance(law, Bins):
            (score,) = self.scores(law.scores)
            return self._bins(score, law.edges.tolist())
        if isinstance(law, GivenDecision):
            code = self._guarded(self.dialect.coded_word(law.column))
            return [
                self.let(self.dialect.when(self._is(code, k), one, zero), code)
                for k in range(law.classes)
            ]
        if isinstance(law, GivenLaw):
            return self._given_distribution(law)
        return self._tabled(law)

    def _given_distribution(self, law: GivenLaw) -> list[str]:
        d = self.dialect
        names = [self._guarded(d.given(name)) for name in law.names]
        total = self.let(plus(names), *names)
        near = d.both(
            f"{total} >= {d.number(1.0 - law.close)}", f"{total} <= {d.number(1.0 + law.close)}"
        )
        for name in names:
            near = d.both(near, f"{name} >= {d.number(-law.close)}")
        self._guarded(d.only(total, near), total)
        return names

    def _is(self, code: str, k: int) -> str:
        """code = k, as two comparisons that every language writes alike."""
        return self.dialect.both(f"{code} >= {k}", f"{code} <= {k}")

    def _sum(self, weights: Sequence[str], names: Sequence[str]) -> str:
        return self.let(
            plus([f"{weight} * {name}" for weight, name in zip(weights, names, strict=True)]),
            *names,
        )

    def _above(self, name: str, least: str) -> list[str]:
        second = self.let(
            self.dialect.when(
                f"{name} > {least}", self.dialect.number(1.0), self.dialect.number(0.0)
            ),
            name,
        )
        return [self.let(f"{self.dialect.number(1.0)} - {second}", second), second]

    def _largest(self, names: Sequence[str]) -> list[str]:
        out = []
        for k, name in enumerate(names):
            wins = [f"{name} > {other}" for other in names[:k]] + [
                f"{name} >= {other}" for other in names[k + 1 :]
            ]
            condition = wins[0]
            for more in wins[1:]:
                condition = self.dialect.both(condition, more)
            out.append(
                self.let(
                    self.dialect.when(
                        condition, self.dialect.number(1.0), self.dialect.number(0.0)
                    ),
                    *names,
                )
            )
        return out

    def _softmax(self, scores: Sequence[str]) -> list[str]:
        number, exp = self.dialect.number, self.dialect.exp
        if len(scores) == 1:
            score = self._between(scores[0], -MOST_EXPONENT, MOST_EXPONENT)
            power = self.let(exp(f"(0 - {score})"), score)
            second = self.let(f"{number(1.0)} / ({number(1.0)} + {power})", power)
            return [self.let(f"{power} / ({number(1.0)} + {power})", power), second]
        largest = scores[0]
        for score in scores[1:]:
            largest = self.let(
                self.dialect.when(f"{score} > {largest}", score, largest), score, largest
            )
        powers = []
        for score in scores:
            below = self._between(
                self.let(f"{score} - {largest}", score, largest), -MOST_EXPONENT, 0.0
            )
            powers.append(self.let(exp(below), below))
        total = self.let(" + ".join(powers), *powers)
        return [self.let(f"{power} / {total}", power, total) for power in powers]

    def _bins(self, score: str, edges: Sequence[float]) -> list[str]:
        one, zero, number = self.dialect.number(1.0), self.dialect.number(0.0), self.dialect.number
        above = [
            self.let(self.dialect.when(f"{score} > {number(edge)}", one, zero), score)
            for edge in edges
        ]
        if not above:
            return [self.let(one)]
        first = self.let(f"{one} - {above[0]}", above[0])
        between = [self.let(f"{low} - {high}", low, high) for low, high in pairwise(above)]
        return [first, *between, above[-1]]

    def _tabled(self, law: Tabled) -> list[str]:
        inner, out = self.law(law.law), []
        for k in range(law.classes):
            parts = []
            for j, name in enumerate(inner):
                column = law.table[:, j, k]
                if not column.any():
                    continue
                same = bool(np.all(column == column[0]))
                chance = (
                    self.dialect.number(float(column[0]))
                    if same
                    else self.dialect.at(self._cell, column.tolist())
                )
                parts.append(f"{chance} * {name}")
            names = (*inner, self._cell) if self._cell else inner
            out.append(self.let(plus(parts) if parts else self.dialect.number(0.0), *names))
        return out

    # Results

    def drawn(self, law: Sequence[str]) -> str:
        """The code that a uniform number draws: how many ends of the classes before the last it has
        reached."""
        uniform, when = self._guarded(self.dialect.given(UNIFORM)), self.dialect.when
        last = "0"
        for k, name in enumerate(law):
            last = when(f"{name} > {self.dialect.number(0.0)}", str(k), last)
        reached, end = [], ""
        for name in law[:-1]:
            end = self.let(f"{end} + {name}", end, name) if end else name
            reached.append(self.let(when(f"{uniform} >= {end}", "1", "0"), uniform, end))
        count, most = self.let(" + ".join(reached), *reached), self.let(last, *law)
        return self.let(when(f"{count} > {most}", most, count), count, most)

    def certain(self, law: Sequence[str]) -> str:
        """The code of the class that has all of it."""
        code = "0"
        for k, name in enumerate(law):
            code = self.dialect.when(f"{name} > {self.dialect.number(0.5)}", str(k), code)
        return self.let(code, *law)


@dataclass(frozen=True)
class Written:
    """Lines, and the names of the results: probabilities and a code, or a number alone. `guards`:
    values that refused rows do not have."""

    lines: tuple[Line, ...]
    guards: tuple[str, ...]
    probabilities: tuple[str, ...]
    result: str


def written(program: Program, dialect: Sql, prefix: str) -> Written:
    """All lines of a program."""
    lines, found = Lines(dialect, prefix, program.inputs), program.result
    if isinstance(found, Regressed):
        (score,) = lines.scores(found.scores)
        result = lines.let(
            f"{dialect.number(found.half)} * {score} + {dialect.number(found.center)}", score
        )
        return Written(tuple(lines.lines), tuple(lines.guards), (), result)
    assert isinstance(found, Classified)
    probabilities = lines.law(found.probabilities)
    law = lines.law(found.decision)
    result = lines.drawn(law) if found.drawn else lines.certain(law)
    return Written(tuple(lines.lines), tuple(lines.guards), probabilities, result)
